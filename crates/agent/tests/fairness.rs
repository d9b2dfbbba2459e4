//! The agent has one thread for everything it answers. Code that writes without end, faster than
//! the agent reads, must not keep it for itself.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use glovebox_client::{AgentClient, ClientError, UnixConnector};
use glovebox_protocol::agent_config::AgentConfig;
use glovebox_protocol::error::ErrorCode;
use glovebox_protocol::event::{Ended, Outcome};
use glovebox_protocol::ids::ExecutionId;
use glovebox_protocol::kernel::{Execute, StartKernel};
use glovebox_protocol::process::StartProcess;
use support::{TestAgent, code, eval, execute, finish, kernel_env, python, run, shell};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Far more than anything here takes; an agent that has no turn left takes for ever.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts programs that keep the pipes of this call full, and leaves them running.
const FLOOD: &str = "\
import fcntl, subprocess
for fd in 1, 2:
    fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, 1 << 20)
flood = [subprocess.Popen('cat /dev/zero; cat /dev/zero >&2', shell=True) for _ in range(4)]
";

/// A client of an agent on a thread of its own, as it is in a sandbox: what starves the agent does
/// not starve the test. Dropped, the agent ends.
async fn agent(change: impl FnOnce(&mut AgentConfig) + Send + 'static) -> (AgentClient, Guard) {
    let (tell, told) = oneshot::channel();
    let (guard, over) = oneshot::channel::<()>();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let test = TestAgent::start_with(change, kernel_env()).await;
            tell.send((test.identity.clone(), test.socket.clone()))
                .unwrap();
            let _ = over.await;
            test.agent.end_workload().await;
        });
    });
    let (identity, socket) = told.await.unwrap();
    (
        AgentClient::new(identity, UnixConnector(socket)),
        Guard(guard),
    )
}

struct Guard(#[expect(dead_code, reason = "dropping it is what tells")] oneshot::Sender<()>);

/// The agent answers, and holds the time limit of a call.
async fn works(client: &AgentClient) {
    let working = async {
        client.status().await.unwrap();
        let endless = Execute {
            time_limit_ms: 500,
            ..code("while True: pass")
        };
        let ended = execute(client, &endless).await.ended.unwrap();
        assert_eq!(ended.outcome, at_limit(500));
    };
    timeout(PATIENCE, working).await.unwrap();
}

fn at_limit(limit_ms: u64) -> Outcome {
    Outcome::TimeLimit {
        limit_ms,
        killed: false,
    }
}

#[tokio::test]
async fn programs_that_write_on_after_their_call_leave_the_agent_its_turns() {
    let (client, _guard) = agent(|config| config.python = python()).await;
    assert_succeeded(&eval(&client, FLOOD).await.ended.unwrap());
    works(&client).await;
}

#[tokio::test]
async fn a_program_that_writes_over_its_budget_leaves_the_agent_its_turns() {
    let (client, _guard) = agent(|config| config.python = python()).await;
    let flood = StartProcess {
        output_limit_bytes: Some(1024),
        ..shell("for n in 1 2 3; do cat /dev/zero & done; cat /dev/zero")
    };
    let running = client.run(&flood).await.unwrap();
    works(&client).await;
    drop(running);
    let limited = StartProcess {
        execution: ExecutionId::new(),
        time_limit_ms: 500,
        ..flood
    };
    let done = timeout(PATIENCE, run(&client, &limited)).await.unwrap();
    assert_eq!(done.unwrap().ended().outcome, at_limit(500));
}

#[tokio::test]
async fn a_kernel_that_writes_while_it_starts_leaves_the_agent_its_turns() {
    let folder = tempfile::tempdir().unwrap();
    let flood = "for n in 1 2 3; do cat /dev/zero & done; cat /dev/zero";
    let program = script(&folder, flood);
    let (client, _guard) = agent(move |config| config.python = program).await;
    let start = StartKernel {
        start_limit_ms: 500,
        ..StartKernel::default()
    };
    let started = timeout(PATIENCE, client.start_kernel(&start))
        .await
        .unwrap();
    match started.unwrap_err() {
        ClientError::Refused(body) => assert_eq!(body.code, ErrorCode::StartTimeout),
        other => panic!("{other}"),
    }
    timeout(PATIENCE, client.status()).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_kernel_whose_first_output_never_ends_leaves_the_agent_its_turns() {
    let folder = tempfile::tempdir().unwrap();
    let flood = "for n in 1 2 3; do cat /dev/zero & done; exec";
    let program = script(&folder, &format!("{flood} '{}' \"$@\"", python()));
    let (client, _guard) = agent(move |config| config.python = program).await;
    let start = StartKernel::default();
    let started = timeout(PATIENCE, client.start_kernel(&start))
        .await
        .unwrap();
    started.unwrap();
    works(&client).await;
}

#[tokio::test]
async fn a_runner_that_is_deaf_but_not_dumb_leaves_the_agent_its_turns() {
    let (client, _guard) = agent(|config| config.python = python()).await;
    // What is shown is acknowledged, to somebody who does not read.
    let deaf = format!(
        "\
import json, os, socket, struct
shown = json.dumps({{'type': 'clear_output', 'seq': 1, 'id': '{}', 'wait': False}}).encode()
for fd in map(int, os.listdir('/proc/self/fd')):
    try:
        agent = socket.socket(fileno=os.dup(fd))
        agent.shutdown(socket.SHUT_RD)
        agent.sendall(struct.pack('>I', len(shown)) + shown)
    except OSError:
        pass
while True:
    pass
",
        ExecutionId::new()
    );
    let endless = Execute {
        time_limit_ms: 500,
        ..code(&deaf)
    };
    let running = client.execute(&endless).await.unwrap();
    timeout(PATIENCE, finish(running)).await.unwrap();
    timeout(PATIENCE, client.restart_kernel())
        .await
        .unwrap()
        .unwrap();
    works(&client).await;
}

fn assert_succeeded(ended: &Ended) {
    assert!(ended.outcome.is_success(), "{:?}", ended.outcome);
}

/// A program in the place of Python.
fn script(folder: &tempfile::TempDir, text: &str) -> String {
    let path = folder.path().join("python");
    fs_err::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().into()
}
