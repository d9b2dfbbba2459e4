//! Z4 and Z6: what kernels have of each other, and what they have of their template.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use glovebox_protocol::event::Outcome;

use super::tell;
use crate::escape::attacks::{host, limits::Groups};
use crate::escape::batch::{self, Position};
use crate::escape::lab::{Lab, Subject};
use crate::escape::report::{Red, demand};

const MIB: u64 = 1024 * 1024;

/// A word that one kernel leaves, and that is to be found in no other.
const WORD: &str = "a canary that one kernel leaves for its siblings";

/// Where a kernel finds the word: in files and in its own memory.
async fn places(subject: &Subject) -> Result<Vec<String>> {
    let inverted: String = WORD
        .bytes()
        .map(|byte| format!("{:02x}", byte ^ 0xff))
        .collect();
    let env = BTreeMap::from([("PROBE_CANARY_INVERTED".to_owned(), inverted)]);
    let reports = batch::reports(subject, Position::Kernel, &["S3", "S11"], env).await?;
    let lists = reports
        .iter()
        .filter_map(|report| report.observed.as_array());
    Ok(lists
        .flatten()
        .filter_map(|place| place.as_str().map(str::to_owned))
        .collect())
}

/// Z4: what one kernel leaves anywhere is in none of its siblings, made before or after.
///
/// # Errors
/// When the sandboxes cannot be made or do not play along.
pub async fn canaries_stay(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let (first, before) = (
        lab.subject(Lab::small_limits()).await?,
        lab.subject(Lab::small_limits()).await?,
    );
    let found = places(&before).await?;
    demand(&mut reds, "Z4", found.is_empty(), || {
        format!("before it was left anywhere, the word is in {found:?}")
    });
    let text: String = WORD.bytes().map(|byte| format!("{byte:02x}")).collect();
    tell(&first, &["plant", &text]).await?;
    // The control: where it was left it is found, in files and in memory.
    let found = places(&first).await?;
    let in_memory = found.iter().any(|place| !place.starts_with('/'));
    let in_files = ["/workspace/planted", "/tmp/planted", "/dev/shm/planted"]
        .iter()
        .all(|file| found.iter().any(|place| place == file));
    demand(&mut reds, "Z4", in_memory && in_files, || {
        format!("the control failed: the word was found in {found:?}")
    });
    let after = lab.subject(Lab::small_limits()).await?;
    for (which, subject) in [("an older", &before), ("a younger", &after)] {
        let found = places(subject).await?;
        demand(&mut reds, "Z4", found.is_empty(), || {
            format!("what one kernel left is in {found:?} of {which} sandbox")
        });
        let seen = "import os, sys\n\
            print('planted' in sys.modules, 'PLANTED' in os.environ, 'planted' in globals())";
        let seen = subject.kernel(seen).await?;
        demand(
            &mut reds,
            "Z4",
            seen.stdout == b"False False False\n",
            || {
                format!(
                    "{which} sandbox sees {}",
                    String::from_utf8_lossy(&seen.stdout)
                )
            },
        );
    }
    for subject in [first, before, after] {
        subject.remove().await?;
    }
    Ok(reds)
}

/// Z4 and K21: a kernel has nothing in common with another through which something could pass:
/// no memory that both write, no file that both can open.
///
/// # Errors
/// When the sandbox cannot be made or does not play along.
pub async fn nothing_is_shared(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let subject = lab.subject(Lab::small_limits()).await?;
    let ran = tell(&subject, &["shared"]).await?;
    let control = ran.number("control")?;
    demand(&mut reds, "Z4", control > 0, || {
        "the control failed: a shared mapping was not seen".into()
    });
    let shared = ran.observed("shared")?.observed;
    demand(&mut reds, "Z4", shared == serde_json::json!([]), || {
        format!("a kernel begins with the shared mappings {shared}")
    });
    if lab.start() == glovebox_runtime::Start::Template {
        // The template's own file system is not the sandbox's: what could be opened there would
        // have locks and watches in common with every other copy.
        let ran = tell(&subject, &["own-file"]).await?;
        let (own, named) = (ran.text("own file")?, ran.text("by its name")?);
        demand(&mut reds, "K21", named == "ok", || {
            format!("the control failed: the same file by its name gave {named}")
        });
        let closed = own == "EACCES" || lab.landlock_abi() == 0;
        demand(&mut reds, "K21", closed, || {
            format!("opening a file on the template's file system gave {own}")
        });
    }
    subject.remove().await?;
    Ok(reds)
}

/// Z6: what a kernel has from its template is charged to its sandbox as soon as it is written to,
/// and the limit holds for all of it.
///
/// # Errors
/// When the sandbox cannot be made or does not play along.
pub async fn dirtied_memory_is_counted(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let subject = lab.subject(Lab::small_limits()).await?;
    subject.kernel("1").await?;
    let groups = Groups::of(&host::workload_of(&subject).await?)?;
    let before = usage(&groups)?;
    let dirtied = tell(&subject, &["dirty"]).await?.number("dirtied")?;
    let after = usage(&groups)?;
    let charged = after.saturating_sub(before);
    // Part of it was the kernel's own before.
    demand(&mut reds, "Z6", charged > dirtied / 2, || {
        format!("{dirtied} bytes of inherited memory were written to, {charged} were charged")
    });
    // What fits beside a kernel that has written to little does not beside this one.
    let limit = subject.limits.workload_memory_bytes();
    let much = limit.saturating_sub(dirtied / 2);
    let take = format!("taken = bytearray({much})\ntaken[::4096] = b'x' * len(taken[::4096])");
    demand(&mut reds, "Z6", dirtied > 32 * MIB, || {
        format!("only {dirtied} bytes are inherited: too few to tell anything")
    });
    let ran = subject.kernel(&take).await?;
    demand(&mut reds, "Z6", is_out_of_memory(&ran.outcome), || {
        format!(
            "over its limit of {limit} bytes with what it inherited, the cell {}",
            ran.outcome
        )
    });
    // The control: a kernel that writes to nothing has room for it.
    let ran = subject.kernel(&take).await?;
    demand(&mut reds, "Z6", ran.outcome.is_success(), || {
        format!("the control failed: the cell {}", ran.outcome)
    });
    subject.remove().await?;
    Ok(reds)
}

fn is_out_of_memory(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Outcome::KernelDied { cause } if matches!(**cause, Outcome::OutOfMemory { .. })
    )
}

fn usage(groups: &Groups) -> Result<u64> {
    groups
        .number("memory", &["memory.usage_in_bytes", "memory.current"])?
        .context("the workload's memory is not counted")
}
