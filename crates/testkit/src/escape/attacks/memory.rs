//! Attacks with memory, wherever it can be hidden.

use anyhow::Result;
use glovebox_protocol::event::Outcome;
use glovebox_protocol::limits::Limits;

use super::{finish, usable};
use crate::escape::lab::Lab;
use crate::escape::report::{Red, demand};

const MIB: u64 = 1024 * 1024;

/// Places where memory can be taken: R2's and F5's.
pub const KINDS: [&str; 9] = [
    "heap", "private", "shared", "stack", "memfd", "memfds", "deleted", "pipes", "sockets",
];

/// Small memory, so that little has to be written to fill it.
fn limits() -> Limits {
    Limits {
        memory_bytes: 96 * MIB,
        workspace_bytes: 16 * MIB,
        ..Lab::small_limits()
    }
}

/// R2 and F5: memory of this kind is counted and limited, and only the program that took it
/// suffers.
///
/// # Errors
/// When the sandbox cannot be made or does not play along.
pub async fn take(lab: &Lab, kind: &str) -> Result<Vec<Red>> {
    let check = if ["heap", "private", "shared", "stack"].contains(&kind) {
        "R2"
    } else {
        "F5"
    };
    let mut reds = Vec::new();
    let subject = lab.subject(limits()).await?;
    let limit = subject.limits.workload_memory_bytes();
    let bound = (limit / MIB + 64).to_string();
    let swap = swap_free()?;
    let ran = subject
        .probe("hostile.py", &["memory", kind, &bound])
        .await?;
    let control = ran.text("control")?;
    demand(&mut reds, check, control == "running", || {
        "the control failed".into()
    });
    let out_of_memory = matches!(ran.outcome, Outcome::OutOfMemory { .. });
    if out_of_memory {
        let counted = subject.client.status().await?.oom_kills;
        demand(&mut reds, check, counted > 0, || {
            "the agent did not count the kill".into()
        });
    } else {
        let taken = ran.observed("taken")?;
        let mebibytes = taken.observed.as_u64().unwrap_or(u64::MAX);
        let held = mebibytes * MIB < limit && taken.detail != "never refused";
        demand(&mut reds, check, held, || {
            format!(
                "{mebibytes} MiB of {kind} could be taken ({}), the limit is {} MiB",
                taken.detail,
                limit / MIB
            )
        });
    }
    let used = swap.saturating_sub(swap_free()?);
    demand(&mut reds, "R2", used < 32 * MIB, || {
        format!("{used} bytes of swap were used")
    });
    usable(&mut reds, check, &subject).await;
    finish(subject, reds).await
}

/// R2: the kind of end is told, with the limit.
///
/// # Errors
/// When the sandbox cannot be made or does not play along.
pub async fn is_named(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let subject = lab.subject(limits()).await?;
    let bound = (subject.limits.workload_memory_bytes() / MIB + 64).to_string();
    let ran = subject
        .probe("hostile.py", &["memory", "private", &bound])
        .await?;
    let named = matches!(ran.outcome, Outcome::OutOfMemory { limit_bytes } if limit_bytes > 0);
    demand(&mut reds, "R2", named, || {
        format!("a program that took too much memory {}", ran.outcome)
    });
    finish(subject, reds).await
}

/// R3: memory that the kernel takes is counted from its first page, whatever it was started from.
///
/// # Errors
/// When the sandbox cannot be made or does not play along.
pub async fn of_the_kernel(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let subject = lab.subject(Lab::small_limits()).await?;
    let size = subject.limits.workload_memory_bytes() + 64 * MIB;
    let code = format!("taken = bytearray({size})\nprint(sum(taken[::4096]))");
    let ran = subject.kernel(&code).await?;
    let named = matches!(
        &ran.outcome,
        Outcome::KernelDied { cause } if matches!(**cause, Outcome::OutOfMemory { .. })
    );
    demand(&mut reds, "R3", named, || {
        format!(
            "a kernel that took too much memory: the cell {}",
            ran.outcome
        )
    });
    let again = subject.kernel("print(6 * 7)").await?;
    demand(&mut reds, "R3", again.stdout.starts_with(b"42"), || {
        format!("the next kernel does not work: the cell {}", again.outcome)
    });
    finish(subject, reds).await
}

fn swap_free() -> Result<u64> {
    let table = fs_err::read_to_string("/proc/meminfo")?;
    let line = table
        .lines()
        .find_map(|line| line.strip_prefix("SwapFree:"));
    let kibibytes = line.and_then(|rest| rest.trim().split(' ').next()?.parse::<u64>().ok());
    Ok(kibibytes.unwrap_or(0) * 1024)
}
