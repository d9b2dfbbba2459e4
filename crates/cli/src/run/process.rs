//! Runs a script as `python script.py` would.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use glovebox_protocol::event::EventBody;
use glovebox_protocol::ids::ExecutionId;
use glovebox_protocol::process::{StartProcess, Stdin};
use tokio::sync::Notify;

use super::program::ProcessPlan;
use super::sandbox::Sandbox;
use super::session::{Followed, Session, Target};
use super::stdin;
use super::verdict::Verdict;
use crate::failure::Failure;

/// Runs the program to its end and passes standard input, output and signals on.
pub(crate) async fn run(
    session: &mut Session<'_>,
    sandbox: &Sandbox,
    plan: &ProcessPlan,
    env: &BTreeMap<String, String>,
    time_limit: Duration,
) -> Result<Verdict, Failure> {
    let reads_stdin = stdin::can_be_read();
    let start = StartProcess {
        execution: ExecutionId::new(),
        argv: plan.argv.clone(),
        env: env.clone(),
        stdin: if reads_stdin {
            Stdin::Requests
        } else {
            Stdin::Empty
        },
        time_limit_ms: u64::try_from(time_limit.as_millis()).unwrap_or(u64::MAX),
        output_limit_bytes: None,
    };
    session.progress.phase(format!("running {}", plan.called));
    let id = start.execution;
    let doing = format!("starting {}", plan.called);
    let followed = {
        let starting = (doing.as_str(), sandbox.client.run(&start));
        // What is fed to a program that is not there yet would be refused, and lost.
        let started = Notify::new();
        let seen = |event: &EventBody| {
            if matches!(event, EventBody::ExecutionStarted { .. }) {
                started.notify_one();
            }
        };
        let mut following = pin!(session.follow(sandbox, starting, Target::Process, seen));
        let mut feeding = pin!(async {
            started.notified().await;
            feed(sandbox, id, reads_stdin).await;
        });
        loop {
            tokio::select! {
                followed = &mut following => break followed?,
                () = &mut feeding => {}
            }
        }
    };
    Ok(match followed {
        Followed::Ended(ended) => Verdict::of(&ended.outcome, &plan.called),
        Followed::Gone(reason) => Verdict::gone(&plan.called, &reason),
        Followed::Lost(failure) => {
            session.lose(failure);
            Verdict::LOST
        }
    })
}

/// Passes standard input on until it ends, then never returns.
async fn feed(sandbox: &Sandbox, id: ExecutionId, reads_stdin: bool) {
    if reads_stdin {
        let mut chunks = stdin::chunks();
        loop {
            let (bytes, eof) = match chunks.recv().await {
                Some(bytes) => (bytes, false),
                None => (Bytes::new(), true),
            };
            // A program need not read its input, and may end before it has.
            let taken = sandbox.client.stdin(id, bytes, eof).await;
            if eof || taken.is_err() {
                break;
            }
        }
    }
    std::future::pending().await
}
