//! The logs of executions.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use glovebox_protocol::error::ErrorCode;
use glovebox_protocol::event::{EventBody, Outcome};
use glovebox_protocol::ids::ExecutionId;
use glovebox_protocol::kernel::Execute;
use glovebox_protocol::log::{Logged, MAX_LOG_BYTES};
use glovebox_protocol::process::{Cancel, ExecutionState, StartProcess};
use support::{TestAgent, code, eval, execute, finish, kernel_env, name, python, run, shell};

async fn agent() -> TestAgent {
    TestAgent::start_with(|config| config.python = python(), kernel_env()).await
}

async fn log(test: &TestAgent, execution: ExecutionId) -> (Vec<u8>, Logged) {
    let mut bytes = Vec::new();
    let logged = test.client.log(execution, &mut bytes).await.unwrap();
    (bytes, logged)
}

#[tokio::test]
async fn a_log_holds_both_streams_in_the_order_in_which_they_came() {
    let test = agent().await;
    let script = "echo one; read x; echo two >&2; read x; echo three";
    let mut start = shell(script);
    start.stdin = glovebox_protocol::process::Stdin::Requests;
    let mut running = test.client.run(&start).await.unwrap();
    let line = || test.client.stdin(start.execution, "\n".into(), false);
    for _ in 0..2 {
        while !matches!(
            running.next().await.unwrap().unwrap(),
            glovebox_protocol::event::EventBody::Stdout(_)
                | glovebox_protocol::event::EventBody::Stderr(_)
        ) {}
        // What runs has a log already.
        let (bytes, _) = log(&test, start.execution).await;
        assert!(bytes.starts_with(b"one\n"));
        line().await.unwrap();
    }
    finish(running).await;
    let (bytes, logged) = log(&test, start.execution).await;
    assert_eq!(bytes, b"one\ntwo\nthree\n");
    assert_eq!((logged.bytes, logged.dropped_bytes), (14, 0));
}

#[tokio::test]
async fn a_log_has_what_was_over_the_budget_of_the_stream() {
    let test = agent().await;
    let request = Execute {
        output_limit_bytes: 1000,
        ..code("print('x' * 100_000)")
    };
    let done = execute(&test.client, &request).await;
    assert_eq!(done.stdout.len(), 1000);
    let (bytes, logged) = log(&test, request.execution).await;
    assert_eq!((bytes.len(), logged.dropped_bytes), (100_001, 0));
    let request = StartProcess {
        output_limit_bytes: Some(1000),
        ..shell("head -c 100000 /dev/zero")
    };
    assert_eq!(
        run(&test.client, &request).await.unwrap().stdout.len(),
        1000
    );
    assert_eq!(log(&test, request.execution).await.0.len(), 100_000);
}

#[tokio::test]
async fn a_log_ends_at_its_limit_and_says_how_much_more_there_was() {
    let test = agent().await;
    let more = 5_000_000;
    let long = code(&format!(
        "import sys\nfor _ in range({}): sys.stdout.write('y' * {more})",
        MAX_LOG_BYTES / more + 1
    ));
    let written = more * (MAX_LOG_BYTES / more + 1);
    execute(&test.client, &long).await;
    let (bytes, logged) = log(&test, long.execution).await;
    assert_eq!(bytes.len() as u64, MAX_LOG_BYTES);
    assert_eq!(logged.dropped_bytes, written - MAX_LOG_BYTES);
    // A later one has it give way a little, and a longer one altogether.
    let short = code("print('short')");
    execute(&test.client, &short).await;
    let (bytes, logged) = log(&test, long.execution).await;
    assert!(bytes.len() as u64 > MAX_LOG_BYTES / 2 && logged.bytes < MAX_LOG_BYTES);
    assert_eq!(logged.bytes + logged.dropped_bytes, written);
    assert_eq!(log(&test, short.execution).await.0, b"short\n");
    eval(
        &test.client,
        "for _ in range(4): sys.stdout.write('z' * 5_000_000)",
    )
    .await;
    let error = test.client.log(long.execution, &mut Vec::new()).await;
    assert_eq!(error.unwrap_err().code(), Some(ErrorCode::NotFound));
}

#[tokio::test]
async fn late_output_is_in_the_log_of_its_own_execution() {
    let test = agent().await;
    let early = code(
        "import threading\ngo = threading.Event()\n\
         t = threading.Thread(target=lambda: (go.wait(), print('late')))\nt.start()\nprint('now')",
    );
    execute(&test.client, &early).await;
    let second = code("go.set(); t.join(); print('mine')");
    execute(&test.client, &second).await;
    eval(&test.client, "1").await;
    assert_eq!(log(&test, early.execution).await.0, b"now\nlate\n");
    assert_eq!(log(&test, second.execution).await.0, b"mine\n");
}

#[tokio::test]
async fn an_execution_that_wrote_nothing_has_an_empty_log_and_an_unknown_one_none() {
    let test = agent().await;
    let quiet = code("1");
    execute(&test.client, &quiet).await;
    assert_eq!(log(&test, quiet.execution).await.0, b"");
    let error = test.client.log(ExecutionId::new(), &mut Vec::new()).await;
    assert_eq!(error.unwrap_err().code(), Some(ErrorCode::NotFound));
    for target in ["/v1/executions/1/log", "/v1/executions//log"] {
        assert_eq!(support::signed_status(&test, "GET", target).await, 400);
    }
    for (method, target) in [
        ("GET", "/v1/executions"),
        ("GET", "/v1/executions/0192f0c1-2b3a-7c4d-8e5f-60718293a4b5"),
        (
            "POST",
            "/v1/executions/0192f0c1-2b3a-7c4d-8e5f-60718293a4b5/log",
        ),
    ] {
        assert_eq!(support::signed_status(&test, method, target).await, 404);
    }
}

#[tokio::test]
async fn what_became_of_an_execution_can_be_asked_for() {
    let test = agent().await;
    let raised = code("1 / 0");
    execute(&test.client, &raised).await;
    let ended = test.client.execution(raised.execution).await.unwrap();
    let ExecutionState::Ended { ended } = ended else {
        panic!("{ended:?}")
    };
    assert_eq!(ended.execution, raised.execution);
    assert!(matches!(&ended.outcome, Outcome::Raised { name, .. } if name == "ZeroDivisionError"));

    let start = shell("echo begun; exec sleep 600");
    let mut running = test.client.run(&start).await.unwrap();
    while !matches!(running.next().await.unwrap(), Some(EventBody::Stdout(_))) {}
    let state = test.client.execution(start.execution).await.unwrap();
    assert_eq!(state, ExecutionState::Running);
    // The id is used, whatever became of it.
    let again = test.client.run(&start).await.err();
    assert_eq!(
        again.and_then(|error| error.code()),
        Some(ErrorCode::Conflict)
    );
    test.client
        .cancel(start.execution, Cancel::Kill)
        .await
        .unwrap();
    while running.next().await.unwrap().is_some() {}
    let state = test.client.execution(start.execution).await.unwrap();
    let ExecutionState::Ended { ended } = state else {
        panic!("{state:?}")
    };
    assert_eq!(ended.outcome, Outcome::Cancelled { killed: true });
}

#[tokio::test]
async fn nothing_in_the_sandbox_reaches_a_log() {
    let test = agent().await;
    let secret = code("print('only' + 'here')");
    execute(&test.client, &secret).await;
    assert_eq!(test.client.list(None).await.unwrap().entries, []);
    test.client.end_workload().await.unwrap();
    let start = shell("ls -A; find . -type f");
    assert_eq!(run(&test.client, &start).await.unwrap().text(), "");
    assert_eq!(log(&test, secret.execution).await.0, b"onlyhere\n");
    let error = test.client.stat(&name("log")).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::NotFound));
}
