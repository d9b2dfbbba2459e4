//! Attacks with files: full disks, many names, deep folders, planted links.

use anyhow::{Context as _, Result};
use glovebox_protocol::artifact::Sweep;
use glovebox_protocol::event::Note;
use glovebox_protocol::file::FileName;
use tokio::time::{Duration, timeout};

use super::{finish, usable};
use crate::escape::lab::Lab;
use crate::escape::report::{Red, demand};

const MIB: u64 = 1024 * 1024;

/// F3 and R4: a full workspace is told to the program, and to nobody else; after deleting there
/// is room again.
///
/// # Errors
/// When the sandbox cannot be made or does not play along.
pub async fn full_disk(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let mut limits = Lab::small_limits();
    limits.workspace_bytes = 16 * MIB;
    let subject = lab.subject(limits.clone()).await?;
    let sibling = lab.subject(limits).await?;
    let ran = subject
        .probe("hostile.py", &["fill-disk", "/workspace", "32"])
        .await?;
    let written = ran.observed("written")?;
    let bytes = written.observed.as_u64().unwrap_or(u64::MAX);
    demand(
        &mut reds,
        "F3",
        bytes <= 16 * MIB && written.detail == "ENOSPC",
        || {
            format!(
                "{bytes} bytes were written until `{}`, the limit is 16 MiB",
                written.detail
            )
        },
    );
    let (full, after) = (
        ran.text("write when full")?,
        ran.text("write after deleting")?,
    );
    demand(&mut reds, "R4", full == "ENOSPC" && after == "ok", || {
        format!("writing when full gave {full}, after deleting {after}")
    });
    demand(
        &mut reds,
        "F3",
        ran.observed("control")?.observed == 1,
        || "the control failed".into(),
    );
    usable(&mut reds, "F3", &subject).await;
    usable(&mut reds, "F3", &sibling).await;
    let ran = sibling
        .probe("hostile.py", &["fill-disk", "/workspace", "1"])
        .await?;
    demand(
        &mut reds,
        "F3",
        ran.observed("written")?.detail == "never refused",
        || "another sandbox could not write 1 MiB".into(),
    );
    sibling.remove().await?;
    finish(subject, reds).await
}

/// A full workspace is named when the program ends.
///
/// # Errors
/// When the sandbox cannot be made or does not play along.
pub async fn full_disk_is_named(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let mut limits = Lab::small_limits();
    limits.workspace_bytes = 4 * MIB;
    let subject = lab.subject(limits).await?;
    let argv = ["/bin/sh", "-c", "cat /dev/zero > zeros"].map(Into::into);
    let ran = subject
        .start(argv.into(), Default::default(), 60_000)
        .await?
        .to_end()
        .await?;
    let named = ran
        .notes
        .iter()
        .any(|note| matches!(note, Note::DiskFull { .. }));
    demand(&mut reds, "F3", named, || {
        format!("a full disk was not named: {:?}", ran.notes)
    });
    finish(subject, reds).await
}

/// F4 and R5: files run out at exactly the number set.
///
/// # Errors
/// When the sandbox cannot be made or does not play along.
pub async fn full_of_files(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let mut limits = Lab::small_limits();
    limits.workspace_inodes = 200;
    let subject = lab.subject(limits).await?;
    let before = subject.client.list(None).await?.entries.len() as u64;
    let ran = subject
        .probe("hostile.py", &["fill-inodes", "/workspace", "400"])
        .await?;
    let made = ran.observed("made")?;
    let expected = 200 - before - 1;
    let number = made.observed.as_u64().unwrap_or(u64::MAX);
    demand(
        &mut reds,
        "F4",
        number == expected && made.detail == "ENOSPC",
        || {
            format!(
                "{number} files were made until `{}`, should be {expected}",
                made.detail
            )
        },
    );
    let after = ran.text("make after deleting")?;
    demand(&mut reds, "R5", after == "ok", || {
        format!("after deleting: {after}")
    });
    usable(&mut reds, "R5", &subject).await;
    finish(subject, reds).await
}

/// R20: no file grows over the size that the sandbox was made with.
///
/// # Errors
/// When the sandbox cannot be made or does not play along.
pub async fn large_file(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let mut limits = Lab::small_limits();
    limits.file_size_bytes = 2 * MIB;
    let subject = lab.subject(limits).await?;
    let ran = subject
        .probe("hostile.py", &["fill-disk", "/workspace", "8"])
        .await?;
    let written = ran.observed("written")?;
    let bytes = written.observed.as_u64().unwrap_or(u64::MAX);
    demand(
        &mut reds,
        "R20",
        bytes <= 2 * MIB && written.detail == "EFBIG",
        || {
            format!(
                "a file of {bytes} bytes was written until `{}`",
                written.detail
            )
        },
    );
    finish(subject, reds).await
}

/// R11: very many files are listed in part, which is said.
///
/// # Errors
/// When the sandbox cannot be made or does not play along.
pub async fn many_files(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let count = crate::count(12_000, 1_000_000);
    let mut limits = Lab::small_limits();
    limits.workspace_inodes = count as u64 + 1000;
    // Each file takes memory of the machine though it is empty.
    limits.memory_bytes = 256 * MIB + count as u64 * 2048;
    let subject = lab.subject(limits).await?;
    let ran = subject
        .probe("hostile.py", &["many-files", &count.to_string()])
        .await?;
    let made = ran.number("made")?;
    demand(&mut reds, "R11", made == count as u64, || {
        format!("the control made {made} files")
    });
    let listing = subject.client.list(None).await?;
    demand(
        &mut reds,
        "R11",
        listing.truncated && listing.entries.len() == 10_000,
        || {
            format!(
                "{} entries were listed, truncated: {}",
                listing.entries.len(),
                listing.truncated
            )
        },
    );
    let swept = subject.client.sweep(&Sweep::default()).await?;
    demand(
        &mut reds,
        "R11",
        swept.more_left_out > 0 && swept.left_out.len() <= 1000,
        || {
            format!(
                "{} left out, {} more",
                swept.left_out.len(),
                swept.more_left_out
            )
        },
    );
    usable(&mut reds, "R11", &subject).await;
    finish(subject, reds).await
}

/// F14: a sandbox with folders deeper than any path, names with control characters and immutable
/// bits is removed like any other.
///
/// # Errors
/// When the sandbox cannot be made or does not play along.
pub async fn deep_tree(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let mut limits = Lab::small_limits();
    limits.workspace_inodes = 20_000;
    let subject = lab.subject(limits).await?;
    // Deeper than a path may be long. Each step costs the kernel one more for each that it is down,
    // because Landlock looks at every folder above.
    let depth = crate::count(3_000, 10_000) as u64;
    let ran = subject
        .probe("hostile.py", &["deep-tree", &depth.to_string()])
        .await?;
    let levels = ran.number("levels")?;
    demand(&mut reds, "F14", levels == depth, || {
        format!("the control made {levels} levels")
    });
    let swept = timeout(
        Duration::from_secs(60),
        subject.client.sweep(&Sweep::default()),
    )
    .await;
    demand(&mut reds, "F14", matches!(swept, Ok(Ok(_))), || {
        format!("a sweep of deep folders: {swept:?}")
    });
    let listing = timeout(Duration::from_secs(60), subject.client.list(None)).await;
    demand(&mut reds, "F14", matches!(listing, Ok(Ok(_))), || {
        format!("a listing of deep folders: {listing:?}")
    });
    usable(&mut reds, "F14", &subject).await;
    let removed = timeout(Duration::from_secs(60), subject.remove()).await;
    demand(&mut reds, "F14", matches!(removed, Ok(Ok(()))), || {
        format!("removing it: {removed:?}")
    });
    Ok(reds)
}

/// F13 and A10 to A12 from the outside: nothing that collects follows what was planted.
///
/// # Errors
/// When the sandbox cannot be made or does not play along.
pub async fn planted_links(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let folder = tempfile::tempdir()?;
    let sentinel = folder.path().join("sentinel.txt");
    fs_err::write(&sentinel, "not for you")?;
    let before = Sentinel::look(&sentinel)?;
    let subject = lab.subject(Lab::small_limits()).await?;
    let outside = sentinel
        .to_str()
        .context("the temporary folder has an odd name")?;
    let ran = subject.probe("hostile.py", &["links", outside]).await?;
    let planted: Vec<String> = serde_json::from_value(ran.observed("planted")?.observed)?;
    for name in planted.iter().filter(|name| *name != "probes") {
        let file = FileName::from_bytes(name.as_bytes())?;
        let got = subject.client.get_bytes(&file, MIB).await;
        let plain = name == "plain.txt" || name == "second.txt";
        demand(&mut reds, "F13", plain || got.is_err(), || {
            format!("{name} could be fetched: {got:?}")
        });
    }
    let inner = FileName::from_bytes(&b"folder/sentinel.txt"[..])?;
    let put = subject.client.put_bytes(&inner, "changed".into()).await;
    demand(&mut reds, "F13", put.is_err(), || {
        "a file was put through a linked folder".into()
    });
    let link = FileName::from_bytes(&b"link.txt"[..])?;
    // It may be replaced or refused; what it leads to must not be touched.
    let _ = subject.client.put_bytes(&link, "changed".into()).await;
    let swept = subject.client.sweep(&Sweep::default()).await?;
    for artifact in &swept.artifacts {
        let name = artifact.name.to_string();
        let own = name.starts_with("probes/") || name == "link.txt";
        demand(&mut reds, "F13", own, || format!("{name} was collected"));
    }
    subject.remove().await?;
    let after = Sentinel::look(&sentinel)?;
    demand(&mut reds, "F13", before == after, || {
        format!("the file outside changed: {before:?} to {after:?}")
    });
    Ok(reds)
}

#[derive(Debug, PartialEq, Eq)]
struct Sentinel {
    content: Vec<u8>,
    mode: u32,
    owner: (u32, u32),
    modified: (i64, i64),
    links: u64,
}

impl Sentinel {
    fn look(path: &std::path::Path) -> Result<Self> {
        use std::os::unix::fs::MetadataExt as _;
        let facts = fs_err::symlink_metadata(path)?;
        Ok(Self {
            content: fs_err::read(path)?,
            mode: facts.mode(),
            owner: (facts.uid(), facts.gid()),
            modified: (facts.mtime(), facts.mtime_nsec()),
            links: facts.nlink(),
        })
    }
}
