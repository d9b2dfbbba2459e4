//! Attacks with processes: bombs, orphans, daemons, signals, descriptors.

use anyhow::Result;
use glovebox_protocol::event::{Note, Outcome};

use super::{finish, host, usable};
use crate::escape::lab::Lab;
use crate::escape::report::{Red, demand};

/// Ways of making a process or thread.
pub const BOMBS: [&str; 4] = ["fork", "vfork", "clone", "thread"];

/// R1: a bomb stops at the limit, the agent answers meanwhile, the host is not flooded.
///
/// # Errors
/// When the sandbox cannot be made or does not play along.
pub async fn bomb(lab: &Lab, kind: &str) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let subject = lab.subject(Lab::small_limits()).await?;
    let limit = u64::from(subject.limits.processes);
    let bound = (limit + 100).to_string();
    let place = host::Place::of(&subject).await?;
    let mut running = subject
        .start_probe("hostile.py", &["bomb", kind, &bound])
        .await?;
    running.until("made").await?;
    let status = subject.client.status().await;
    demand(&mut reds, "R1", status.is_ok(), || {
        format!("with a {kind} bomb the agent does not answer: {status:?}")
    });
    let on_host = place.threads();
    subject.client.end_workload().await?;
    let ran = running.to_end().await?;
    let on_host = on_host?;
    demand(
        &mut reds,
        "R1",
        (1..=limit + host::AGENT_THREADS).contains(&on_host),
        || format!("the host sees {on_host} threads of a sandbox with a limit of {limit}"),
    );
    let (control, made) = (ran.text("control")?, ran.observed("made")?);
    demand(&mut reds, "R1", control == "ok", || {
        format!("the control of the {kind} bomb failed: {control}")
    });
    let number = made.observed.as_u64().unwrap_or(u64::MAX);
    demand(&mut reds, "R1", number < limit, || {
        format!("{number} processes were made by {kind}, the limit is {limit}")
    });
    let refused = ["EAGAIN", "can't start new thread"].contains(&made.detail.as_str());
    demand(&mut reds, "R1", refused, || {
        format!("the {kind} bomb ended with `{}`", made.detail)
    });
    usable(&mut reds, "R1", &subject).await;
    finish(subject, reds).await
}

/// R12: the result comes when the main program exits, and nothing is left running.
///
/// # Errors
/// When the sandbox cannot be made or does not play along.
pub async fn daemon(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let subject = lab.subject(Lab::small_limits()).await?;
    let ran = subject.probe("hostile.py", &["daemon"]).await?;
    demand(&mut reds, "R12", ran.outcome.is_success(), || {
        format!("a program that leaves a daemon {}", ran.outcome)
    });
    let told = ran.notes.contains(&Note::LeftRunning { processes: 1 });
    demand(&mut reds, "R12", told, || {
        format!("what was left running was not told: {:?}", ran.notes)
    });
    let left = subject.client.status().await?.processes;
    demand(&mut reds, "R12", left == 0, || {
        format!("{left} processes are left")
    });
    usable(&mut reds, "R12", &subject).await;
    finish(subject, reds).await
}

/// R13: orphans that end are collected, and their places are free again.
///
/// # Errors
/// When the sandbox cannot be made or does not play along.
pub async fn zombies(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let subject = lab.subject(Lab::small_limits()).await?;
    let count = crate::count(2_000, 10_000);
    let ran = subject
        .probe("hostile.py", &["zombies", &count.to_string()])
        .await?;
    demand(&mut reds, "R13", ran.outcome.is_success(), || {
        format!(
            "a program with {count} orphans {}: {}",
            ran.outcome,
            String::from_utf8_lossy(&ran.stderr)
        )
    });
    let left = host::threads_of(&subject).await?;
    demand(&mut reds, "R13", left <= host::AGENT_THREADS, || {
        format!("{left} threads are left after {count} orphans")
    });
    usable(&mut reds, "R13", &subject).await;
    finish(subject, reds).await
}

/// R14: no signal from inside ends or stops the agent.
///
/// # Errors
/// When the sandbox cannot be made or does not play along.
pub async fn signals(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let subject = lab.subject(Lab::small_limits()).await?;
    let ran = subject.probe("hostile.py", &["kill-everything"]).await?;
    let control = ran.observed("control")?;
    demand(&mut reds, "R14", control.observed == true, || {
        "the control failed: signals did not reach a child of its own".into()
    });
    demand(&mut reds, "R14", ran.outcome.is_success(), || {
        format!("the program {}", ran.outcome)
    });
    usable(&mut reds, "R14", &subject).await;
    finish(subject, reds).await
}

/// Kinds of descriptors.
pub const DESCRIPTORS: [&str; 7] = [
    "file",
    "pipe",
    "epoll",
    "eventfd",
    "timerfd",
    "inotify",
    "socketpair",
];

/// R6: descriptors run out for the program, and not for the agent.
///
/// # Errors
/// When the sandbox cannot be made or does not play along.
pub async fn descriptors(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let mut limits = Lab::small_limits();
    limits.open_files = 256;
    let subject = lab.subject(limits).await?;
    for kind in DESCRIPTORS {
        let arguments = ["descriptors", kind, "4096"];
        let mut running = subject.start_probe("hostile.py", &arguments).await?;
        running.until("opened").await?;
        usable(&mut reds, "R6", &subject).await;
        subject.client.end_workload().await?;
        let ran = running.to_end().await?;
        let control = ran.text("control")?;
        let opened = ran.observed("opened")?;
        let few = opened.observed.as_u64().is_some_and(|number| number <= 256);
        demand(
            &mut reds,
            "R6",
            control == "ok" && few && opened.detail == "EMFILE",
            || {
                format!(
                    "{kind}: control {control}, opened {} until {}",
                    opened.observed, opened.detail
                )
            },
        );
    }
    finish(subject, reds).await
}

/// R19: the ways in which a program can end are told apart.
///
/// # Errors
/// When the sandbox cannot be made or does not play along.
pub async fn endings(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let subject = lab.subject(Lab::small_limits()).await?;
    for (how, expected) in [
        ("segv", Outcome::Signaled { signal: 11 }),
        ("sigkill", Outcome::Signaled { signal: 9 }),
        ("sigabrt", Outcome::Signaled { signal: 6 }),
    ] {
        let ran = subject.probe("hostile.py", &["crash", how]).await?;
        demand(&mut reds, "R19", ran.outcome == expected, || {
            format!(
                "a {how} crash {} and should have ended by its signal",
                ran.outcome
            )
        });
    }
    let ran = subject.probe("hostile.py", &["no such attack"]).await?;
    demand(
        &mut reds,
        "R19",
        ran.outcome == Outcome::Exited { code: 1 },
        || format!("a program that exits with 1 {}", ran.outcome),
    );
    finish(subject, reds).await
}
