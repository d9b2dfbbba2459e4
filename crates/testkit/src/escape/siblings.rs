//! Checks with two sides: two sandboxes, or two executions of one, that must not notice each
//! other.

use std::collections::BTreeMap;

use anyhow::Result;
use glovebox_runtime::Capability;

use super::batch::{self, Position};
use super::lab::Lab;
use super::report::{Red, Report, demand};
use super::run::Ran;

/// A file of the shared root that both sides can open.
const SHARED_FILE: &str = "/usr/share/zoneinfo/UTC";

/// Two sandboxes: what one holds, and what the other then finds. Ends both.
async fn two(lab: &Lab, hold: &[&str], look: &[&str]) -> Result<(Ran, Ran)> {
    let (first, second) = (
        lab.subject(Lab::small_limits()).await?,
        lab.subject(Lab::small_limits()).await?,
    );
    let mut arguments = vec!["hold"];
    arguments.extend(hold);
    let mut holding = first.start_probe("sibling.py", &arguments).await?;
    holding.until("ready").await?;
    let mut arguments = vec!["look"];
    arguments.extend(look);
    let found = second.probe("sibling.py", &arguments).await?;
    let held = holding.interrupt().await?;
    first.remove().await?;
    second.remove().await?;
    Ok((held, found))
}

/// K21: locks on a file of the shared root.
///
/// # Errors
/// When the sandboxes cannot be made or do not play along.
pub async fn locks(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let (held, found) = two(lab, &["lock", SHARED_FILE], &["lock", SHARED_FILE]).await?;
    let (lock, second) = (held.text("lock")?, held.text("second lock")?);
    demand(&mut reds, "K21", lock == "ok" && second == "EAGAIN", || {
        format!("the control failed: the lock gave {lock}, a second one {second}")
    });
    let found = found.text("lock")?;
    demand(&mut reds, "K21", found == "ok", || {
        format!("a lock of another sandbox shows: {found}")
    });
    Ok(reds)
}

/// K21: uses of a file of the shared root.
///
/// # Errors
/// When the sandboxes cannot be made or do not play along.
pub async fn file_events(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let (held, _) = two(lab, &["watch", SHARED_FILE], &["watch", SHARED_FILE]).await?;
    let own = held.observed("own events")?.observed;
    demand(&mut reds, "K21", own == true, || {
        "the control failed: no own event was seen".into()
    });
    for what in ["events", "notifications"] {
        let seen = held.number(what)?;
        demand(&mut reds, "K21", seen == 0, || {
            format!("{seen} {what} of another sandbox's uses were seen")
        });
    }
    Ok(reds)
}

/// K22: names of inter-process communication, in a sandbox beside and in one after.
///
/// # Errors
/// When the sandboxes cannot be made or do not play along.
pub async fn ipc_names(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let names = ["ipc", "1592653589", "glovebox-probe-name"];
    let (held, found) = two(lab, &names, &names).await?;
    let control = held.observed("own memory file")?.observed;
    demand(&mut reds, "K22", control == true, || {
        "the control failed".into()
    });
    nothing_is_found(&mut reds, &found, "beside");
    let next = lab.subject(Lab::small_limits()).await?;
    let mut arguments = vec!["look"];
    arguments.extend(names);
    nothing_is_found(
        &mut reds,
        &next.probe("sibling.py", &arguments).await?,
        "after",
    );
    next.remove().await?;
    Ok(reds)
}

fn nothing_is_found(reds: &mut Vec<Red>, found: &Ran, place: &str) {
    let reports = found.reports();
    demand(reds, "K22", reports.len() == 6, || {
        format!("{} of 6 names were looked up {place}", reports.len())
    });
    for Report { id, observed, .. } in reports {
        let absent = ["ENOENT", "ENOSYS", "EPERM", "ENOKEY", "EACCES"];
        let gone = observed.as_str().is_some_and(|word| absent.contains(&word));
        demand(reds, "K22", gone, || {
            format!("{id} of a sandbox {place}: {observed}")
        });
    }
}

/// N5 and N8: sockets by name, of another sandbox.
///
/// # Errors
/// When the sandboxes cannot be made or do not play along.
pub async fn abstract_sockets(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let name = ["abstract", "glovebox-probe-socket"];
    let (held, found) = two(lab, &name, &name).await?;
    let own = held.text("own connection")?;
    demand(&mut reds, "N8", own == "ok", || {
        format!("the control failed: {own}")
    });
    let found_abstract = found.text("abstract")?;
    demand(&mut reds, "N8", found_abstract != "ok", || {
        "an abstract socket of another sandbox can be connected to".into()
    });
    let found_path = found.text("by path")?;
    demand(&mut reds, "N5", found_path != "ok", || {
        "a listener of another sandbox can be connected to".into()
    });
    Ok(reds)
}

/// K17 and S2 between two sandboxes: no process of the other is seen or reached.
///
/// # Errors
/// When the sandboxes cannot be made or do not play along.
pub async fn processes(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let word = "a-word-of-another-sandbox";
    // The id is meaningless over there; what it stands for must not be the other's process.
    let (_, found) = two(lab, &["process", word], &["process", word, "2"]).await?;
    let places = found.observed("found in")?.observed;
    demand(&mut reds, "K17", places == serde_json::json!([]), || {
        format!("a process of another sandbox shows in {places}")
    });
    let own = found.text("own memory")?;
    demand(&mut reds, "K17", own == "ok", || {
        format!("the control failed: {own}")
    });
    Ok(reds)
}

/// K20: two executions of one sandbox are in Landlock domains of their own: where the kernel can
/// do it, one neither signals the other nor reaches its abstract sockets or its memory.
///
/// # Errors
/// When the sandbox cannot be made or does not play along.
pub async fn executions(lab: &Lab, scoped: bool) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let subject = lab.subject(Lab::small_limits()).await?;
    let name = "glovebox-probe-inner";
    let mut socket = subject
        .start_probe("sibling.py", &["hold", "abstract", name])
        .await?;
    socket.until("ready").await?;
    let found = subject
        .probe("sibling.py", &["look", "abstract", name])
        .await?;
    let by_path = found.text("by path")?;
    demand(&mut reds, "K20", by_path == "ok", || {
        format!("the control failed: a socket with a path gave {by_path}")
    });
    let by_name = found.text("abstract")?;
    demand(&mut reds, "K20", !scoped || by_name == "EPERM", || {
        format!("an abstract socket of another execution: {by_name}")
    });
    let held = socket.interrupt().await?;
    demand(
        &mut reds,
        "K20",
        held.text("own connection")? == "ok",
        || "the control failed: a program cannot reach its own abstract socket".into(),
    );
    let word = "a-word-of-another-execution";
    let mut holding = subject
        .start_probe("sibling.py", &["hold", "process", word])
        .await?;
    holding.until("process").await?;
    let pid = holding.so_far().number("process")?.to_string();
    let found = subject
        .probe("sibling.py", &["look", "process", word, &pid])
        .await?;
    let own = found.text("own memory")?;
    demand(&mut reds, "K20", own == "ok", || {
        format!("the control failed: {own}")
    });
    for what in ["memory", "descriptors"] {
        let seen = found.text(what)?;
        demand(&mut reds, "K20", seen != "ok", || {
            format!("the {what} of another execution can be opened")
        });
    }
    let signal = found.text("signal")?;
    demand(&mut reds, "K20", !scoped || signal != "ok", || {
        "another execution can be signalled".into()
    });
    holding.interrupt().await?;
    subject.remove().await?;
    Ok(reds)
}

/// R7: limits that the kernel counts for a user of the host are not used up by one sandbox.
///
/// # Errors
/// When the sandboxes cannot be made or do not play along.
pub async fn user_limits(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let (held, found) = two(lab, &["instances", "900"], &["instances"]).await?;
    for what in ["instances", "pipes"] {
        let number = held.number(what)?;
        demand(&mut reds, "R7", number > 0, || {
            format!("the control failed: no {what}")
        });
    }
    // Room in pipes is counted for the id on the host: sandboxes without ids of their own share it,
    // which their runtime says by not claiming separate ids.
    let capabilities = lab.runtime.describe().capabilities;
    let shared = !capabilities.has(Capability::SeparateIds);
    for what in ["an instance", "a large pipe"] {
        let seen = found.text(what)?;
        let excused = shared && what == "a large pipe";
        demand(&mut reds, "R7", seen == "ok" || excused, || {
            format!(
                "with {} instances in one sandbox, {what} in another gave {seen}",
                held.number("instances").unwrap_or(0)
            )
        });
    }
    Ok(reds)
}

/// F11 and S11: nothing of one sandbox is found in the next, in files or in memory.
///
/// # Errors
/// When the sandboxes cannot be made or do not play along.
pub async fn leftovers(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let word = b"a canary that one sandbox leaves for the next";
    let text: String = word.iter().map(|byte| format!("{byte:02x}")).collect();
    let inverted: String = word
        .iter()
        .map(|byte| format!("{:02x}", byte ^ 0xff))
        .collect();
    let env = || BTreeMap::from([("PROBE_CANARY_INVERTED".to_owned(), inverted.clone())]);
    let first = lab.subject(Lab::small_limits()).await?;
    let planted = first.probe("sibling.py", &["look", "plant", &text]).await?;
    demand(&mut reds, "S11", planted.number("planted")? == 48, || {
        "nothing was planted".into()
    });
    // The control: the same search finds it where it was planted.
    let found = batch::reports(&first, Position::First, &["S3"], env()).await?;
    let places = found.iter().find(|report| report.id == "S3/places");
    let seen = places
        .map(|report| report.observed.to_string())
        .unwrap_or_default();
    demand(
        &mut reds,
        "S11",
        seen.contains("/workspace/planted"),
        || format!("the control failed: the search found {seen}"),
    );
    first.remove().await?;
    for _ in 0..2 {
        let next = lab.subject(Lab::small_limits()).await?;
        for report in batch::reports(&next, Position::First, &["S3", "S11"], env()).await? {
            if report.id.ends_with("/places") {
                let nowhere = report.observed == serde_json::json!([]);
                let check = if report.id.starts_with("S11") {
                    "S11"
                } else {
                    "F11"
                };
                demand(&mut reds, check, nowhere, || {
                    format!("what another sandbox left is in {}", report.observed)
                });
            }
        }
        let left = next.client.list(None).await?.entries.len();
        let probes = super::PROBES.len() + 1;
        demand(&mut reds, "F11", left == probes, || {
            format!("{left} files instead of {probes}")
        });
        next.remove().await?;
    }
    Ok(reds)
}
