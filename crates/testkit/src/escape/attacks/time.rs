//! Attacks with time: programs that do not end, and programs that take every processor.

use anyhow::Result;
use glovebox_protocol::event::Outcome;
use glovebox_protocol::process::Argument;
use tokio::time::{Duration, timeout};

use super::{finish, usable};
use crate::escape::lab::{Lab, Subject, probe_argv};
use crate::escape::report::{Red, demand};
use crate::escape::run::Ran;

/// Ways of not ending, and whether an interrupt helps.
const WAITS: [(&[&str], bool); 6] = [
    (&["wait-for", "busy"], true),
    (&["wait-for", "sleep"], true),
    (&["wait-for", "read"], true),
    (&["wait-for", "child"], true),
    (&["wait-for", "stubborn"], false),
    (&["stop-all"], false),
];

/// A plain program that has to be killed, beside each of them: what it takes on this machine at
/// this moment.
const CONTROL: &str = "trap '' INT; exec sleep 600";

/// The time limit of each: enough for a Python to start.
const LIMIT_MS: u64 = 1_500;

/// Milliseconds by which two programs that began together may end apart.
const APART_MS: u64 = 500;

/// R18 and R19: whatever a program waits for, its time limit ends it, no later than any other.
///
/// # Errors
/// When the sandbox cannot be made or does not play along.
pub async fn limits(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let subject = lab.subject(Lab::small_limits()).await?;
    for (wait, heeds) in WAITS {
        let argv = probe_argv("hostile.py", wait);
        let beside = ["/bin/sh", "-c", CONTROL].map(Argument::from).to_vec();
        let both = async { tokio::try_join!(limited(&subject, argv), limited(&subject, beside)) };
        let Ok(both) = timeout(Duration::from_secs(60), both).await else {
            reds.push(Red::new("R19", format!("{wait:?} did not end")));
            continue;
        };
        let (ran, control) = both?;
        demand(&mut reds, "R19", ran.observed("control").is_ok(), || {
            format!("the control failed: {wait:?} did not get so far in {LIMIT_MS} ms")
        });
        for (what, ran, killed) in [(wait, &ran, !heeds), (&[CONTROL][..], &control, true)] {
            let expected = Outcome::TimeLimit {
                limit_ms: LIMIT_MS,
                killed,
            };
            demand(&mut reds, "R19", ran.outcome == expected, || {
                format!("{what:?} {}, should be {expected:?}", ran.outcome)
            });
        }
        let latest = control.duration_ms + APART_MS;
        demand(&mut reds, "R19", ran.duration_ms <= latest, || {
            format!(
                "{wait:?} was ended after {} ms, and another program beside it after {} ms",
                ran.duration_ms, control.duration_ms
            )
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

/// Runs a program until its time limit ends it.
async fn limited(subject: &Subject, argv: Vec<Argument>) -> Result<Ran> {
    let running = subject.start(argv, Default::default(), LIMIT_MS).await?;
    running.to_end().await
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
