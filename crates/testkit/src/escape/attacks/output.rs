//! Attacks with output: floods, odd bytes, readers that do not read.

use anyhow::{Result, ensure};
use glovebox_protocol::event::Outcome;
use glovebox_protocol::ids::ExecutionId;
use glovebox_protocol::process::{StartProcess, Stdin};
use tokio::time::{Duration, timeout};

use super::{finish, host, usable};
use crate::escape::lab::{Lab, Subject, probe_argv};
use crate::escape::report::{Red, demand};

const MIB: u64 = 1024 * 1024;
/// Memory that an agent may take, whatever its workload says.
const AGENT_BYTES: u64 = 32 * MIB;

/// R9 and R10: output over the budget is dropped and counted, what is kept is byte for byte what
/// was written, and the agent does not grow.
///
/// # Errors
/// When the sandbox cannot be made or does not play along.
pub async fn floods(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let subject = lab.subject(Lab::small_limits()).await?;
    let invalid = b"\xff\xfe\x80\x00\x1b[2J\x1b]0;title\x07\r\x08";
    let all_bytes: Vec<u8> = (0..=255).collect();
    let large = crate::count(64, 10 * 1024) as u64;
    let kinds: [(&str, &[u8], u64); 5] = [
        ("no-newline", b"x", large),
        ("one-byte", b"x", 1),
        ("binary", &all_bytes, 8),
        ("invalid", invalid, 8),
        ("lines", b"y\n", large),
    ];
    for (kind, pattern, mebibytes) in kinds {
        let budget = 256 * 1024;
        let ran = subject
            .start_exactly(&flood(kind, mebibytes, Some(budget), 60_000))
            .await?
            .to_end()
            .await?;
        let kept = (ran.stdout.len() + ran.stderr.len()) as u64;
        demand(&mut reds, "R9", kept <= budget, || {
            format!("{kind}: {kept} bytes came through a budget of {budget}")
        });
        // The line that standard error ends with belongs to the budget too.
        let written = mebibytes * MIB;
        let total = kept + ran.dropped;
        demand(
            &mut reds,
            "R9",
            total >= written && total < written + MIB,
            || {
                format!(
                    "{kind}: {kept} kept and {} dropped of {written}",
                    ran.dropped
                )
            },
        );
        let intact = ran
            .stdout
            .iter()
            .zip(pattern.iter().cycle())
            .all(|(seen, wrote)| seen == wrote);
        demand(&mut reds, "R10", intact && !ran.stdout.is_empty(), || {
            format!("{kind}: the bytes that came are not those that were written")
        });
    }
    agent_is_small(&mut reds, &subject).await?;
    usable(&mut reds, "R9", &subject).await;
    finish(subject, reds).await
}

/// R9: a time limit ends a flood.
///
/// # Errors
/// When the sandbox cannot be made or does not play along.
pub async fn endless_flood(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let subject = lab.subject(Lab::small_limits()).await?;
    let start = flood("lines", 1024 * 1024, Some(MIB), 1_000);
    let ran = subject.start_exactly(&start).await?.to_end().await?;
    let ended = matches!(ran.outcome, Outcome::TimeLimit { .. });
    demand(&mut reds, "R9", ended, || {
        format!("an endless flood {}", ran.outcome)
    });
    finish(subject, reds).await
}

/// R24: a reader that does not read slows its program down and nothing else; when it goes, the
/// program goes.
///
/// # Errors
/// When the sandbox cannot be made or does not play along.
pub async fn slow_reader(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let subject = lab.subject(Lab::small_limits()).await?;
    let running = subject
        .start_exactly(&flood("lines", 1024, None, 60_000))
        .await?;
    // Nothing of it is read while the rest of the sandbox is used.
    for _ in 0..3 {
        usable(&mut reds, "R24", &subject).await;
    }
    let status = timeout(Duration::from_secs(20), subject.client.status()).await;
    demand(&mut reds, "R24", matches!(status, Ok(Ok(_))), || {
        format!("with a slow reader the agent does not answer: {status:?}")
    });
    agent_is_small(&mut reds, &subject).await?;
    drop(running);
    subject.client.end_workload().await?;
    let left = subject.client.status().await?.processes;
    demand(&mut reds, "R24", left == 0, || {
        format!("{left} processes are left")
    });
    finish(subject, reds).await
}

async fn agent_is_small(reds: &mut Vec<Red>, subject: &Subject) -> Result<()> {
    let bytes = host::Agent::of(subject).await?.resident_bytes()?;
    ensure!(bytes > 0, "the agent's memory could not be read");
    demand(reds, "R9", bytes <= AGENT_BYTES, || {
        format!("the agent takes {bytes} bytes of memory, the limit is {AGENT_BYTES}")
    });
    Ok(())
}

fn flood(kind: &str, mebibytes: u64, budget: Option<u64>, time_limit_ms: u64) -> StartProcess {
    StartProcess {
        execution: ExecutionId::new(),
        argv: probe_argv("hostile.py", &["flood", kind, &mebibytes.to_string()]),
        env: Default::default(),
        stdin: Stdin::Empty,
        time_limit_ms,
        output_limit_bytes: budget,
    }
}
