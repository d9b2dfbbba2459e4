//! Programs in an agent.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod support;

use glovebox_protocol::event::{EventBody, Outcome};
use support::{TestAgent, run, shell};

#[tokio::test]
async fn a_program_runs_and_its_output_and_status_come_back() {
    let test = TestAgent::start().await;
    let start = shell("echo out; echo err >&2; exit 3");
    let done = run(&test.client, &start).await.unwrap();
    assert_eq!(done.text(), "out\n");
    assert_eq!(done.errors(), "err\n");
    assert_eq!(done.ended().outcome, Outcome::Exited { code: 3 });
    assert_eq!(
        done.events,
        [EventBody::ExecutionStarted {
            execution: start.execution
        }]
    );
}
