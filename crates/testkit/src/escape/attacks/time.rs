//! Attacks with time: programs that do not end, and programs that take every processor.

use anyhow::Result;
use glovebox_protocol::event::Outcome;
use tokio::time::{Duration, timeout};

use super::{finish, usable};
use crate::escape::lab::{Lab, probe_argv};
use crate::escape::report::{Red, demand};

/// Ways of not ending.
pub const WAITS: [&[&str]; 6] = [
    &["wait-for", "busy"],
    &["wait-for", "sleep"],
    &["wait-for", "read"],
    &["wait-for", "child"],
    &["wait-for", "stubborn"],
    &["stop-all"],
];

/// Milliseconds in which a program has to be gone after its limit.
const LATE_MS: u64 = 1_000;

/// R18 and R19: whatever a program waits for, its time limit ends it, at the limit.
///
/// # Errors
/// When the sandbox cannot be made or does not play along.
pub async fn limits(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let subject = lab.subject(Lab::small_limits()).await?;
    for wait in WAITS {
        let limit_ms = 700;
        let argv = probe_argv("hostile.py", wait);
        let running = subject.start(argv, Default::default(), limit_ms).await?;
        let Ok(ran) = timeout(Duration::from_secs(60), running.to_end()).await else {
            reds.push(Red::new("R19", format!("{wait:?} did not end")));
            continue;
        };
        let ran = ran?;
        let ended = matches!(ran.outcome, Outcome::TimeLimit { .. });
        demand(&mut reds, "R19", ended, || {
            format!("{wait:?} {}", ran.outcome)
        });
        let late = ran.duration_ms.saturating_sub(limit_ms);
        demand(&mut reds, "R19", late <= LATE_MS, || {
            format!("{wait:?} was ended {late} ms after its limit, should be {LATE_MS} at most")
        });
        let _ = subject.client.delete(&"never".parse()?).await;
    }
    let left = subject.client.status().await?.processes;
    demand(&mut reds, "R18", left == 0, || {
        format!("{left} processes are left")
    });
    usable(&mut reds, "R18", &subject).await;
    finish(subject, reds).await
}

/// R8: processor time is held to the share that was asked for, and a sibling goes on.
///
/// # Errors
/// When the sandbox cannot be made or does not play along.
pub async fn spin(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let mut limits = Lab::small_limits();
    limits.cpu_millis = 300;
    let subject = lab.subject(limits).await?;
    let sibling = lab.subject(Lab::small_limits()).await?;
    let mut running = subject
        .start_probe("hostile.py", &["spin", "2", "4"])
        .await?;
    running.until("spinning").await?;
    let during = timeout(Duration::from_secs(20), sibling.still_works()).await;
    demand(&mut reds, "R8", matches!(during, Ok(Ok(()))), || {
        format!("a sibling of a sandbox that spins: {during:?}")
    });
    let ran = running.to_end().await?;
    let share = ran.observed("share")?.observed.as_f64().unwrap_or(f64::MAX);
    demand(&mut reds, "R8", share < 0.45, || {
        format!("it took {share:.2} processors, the limit is 0.30")
    });
    demand(&mut reds, "R8", share > 0.05, || {
        format!("the control failed: it took {share:.2} processors only")
    });
    sibling.remove().await?;
    finish(subject, reds).await
}
