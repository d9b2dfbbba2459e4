//! Sandboxes outlive the process that drives them, and the next one finds them as they are.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use glovebox_client::ClientError;
use glovebox_protocol::error::ErrorCode;
use glovebox_protocol::event::{EventBody, Outcome};
use glovebox_protocol::ids::{ExecutionId, InstallationId};
use glovebox_protocol::process::ExecutionState;
use glovebox_runtime::conformance::{Guest, Subject};
use glovebox_runtime::{Runtime as _, RuntimeError, SandboxState};
use glovebox_runtime_engine::EngineRuntime;
use glovebox_testkit::count;

async fn start(installation: InstallationId) -> Arc<EngineRuntime> {
    Arc::new(
        EngineRuntime::start(support::options_of(installation))
            .await
            .unwrap(),
    )
}

fn subject(runtime: &Arc<EngineRuntime>, installation: InstallationId) -> Subject {
    Subject::new(Arc::clone(runtime) as _, installation, support::PYTHON)
}

/// Waits until an execution is over that nobody listens to.
async fn end_of(client: &glovebox_client::AgentClient, execution: ExecutionId) -> Outcome {
    let mut look = tokio::time::interval(Duration::from_millis(50));
    loop {
        match client.execution(execution).await.unwrap() {
            ExecutionState::Ended { ended } => return ended.outcome,
            ExecutionState::Running => {
                look.tick().await;
            }
            ExecutionState::Failed => panic!("it did not run"),
        }
    }
}

#[tokio::test]
async fn an_execution_goes_on_while_nobody_is_attached_and_is_not_run_twice() {
    let installation = InstallationId::new();
    let _cleaner = support::Cleaner(installation);
    let runtime = start(installation).await;
    let before = subject(&runtime, installation);
    let key = Arc::clone(&before.key);
    let Guest { id, client, .. } = before.create().await;
    let run = script(
        "import os, time\n\
         print('begun', flush=True)\n\
         while not os.path.exists('go'): time.sleep(0.02)\n\
         print('x' * 3_000_000)\n\
         print('done')",
    );
    let execution = run.execution;
    let mut running = client.run(&run).await.unwrap();
    loop {
        if let Some(EventBody::Stdout(_)) = running.next().await.unwrap() {
            break;
        }
    }
    // As when the process is killed: the session ends without a word, and the streams in it after.
    runtime.detach();
    drop((running, client, before, runtime));

    let runtime = start(installation).await;
    let mut after = subject(&runtime, installation);
    after.key = key;
    let client = after.client(id, Arc::clone(&after.key));
    assert_eq!(runtime.list().await.unwrap().len(), 1);
    assert_eq!(
        client.execution(execution).await.unwrap(),
        ExecutionState::Running
    );
    let again = client.run(&run).await.err().and_then(|error| error.code());
    assert_eq!(again, Some(ErrorCode::Conflict));
    client
        .put_bytes(&"go".parse().unwrap(), "".into())
        .await
        .unwrap();
    assert_eq!(
        end_of(&client, execution).await,
        Outcome::Exited { code: 0 }
    );
    let mut log = Vec::new();
    client.log(execution, &mut log).await.unwrap();
    assert!(
        log.starts_with(b"begun\nxxx") && log.ends_with(b"xxx\ndone\n"),
        "{}",
        log.len()
    );
    let never: Result<_, ClientError> = client.execution(ExecutionId::new()).await;
    assert_eq!(never.unwrap_err().code(), Some(ErrorCode::NotFound));
    runtime.remove(id).await.unwrap();
    assert!(support::containers(installation).is_empty());
}

/// Cut off in the middle of transfers both ways, over and over: the next session is in step at
/// once, and what was under way is there whole or not at all.
#[tokio::test]
async fn a_driver_that_is_cut_off_in_the_middle_of_transfers_is_followed_by_another() {
    let installation = InstallationId::new();
    let _cleaner = support::Cleaner(installation);
    let mut runtime = start(installation).await;
    let mut now = subject(&runtime, installation);
    let key = Arc::clone(&now.key);
    let id = now.create().await.id;
    let content: Vec<u8> = (0..20_000_000_u32).map(|n| (n % 251) as u8).collect();
    for round in 0..count(8, 100) {
        let client = now.client(id, Arc::clone(&key));
        let run = script("import sys\nfor n in range(200): sys.stdout.write('y' * 100_000)");
        let mut running = client.run(&run).await.unwrap();
        let name = format!("round-{round}").parse().unwrap();
        let put = client.put_bytes(&name, content.clone().into());
        let reading = async {
            // Some of it, and then no more.
            let mut seen = 0;
            while seen < 300_000 * (round % 7) {
                match running.next().await.unwrap() {
                    Some(EventBody::Stdout(output)) => seen += output.0.len(),
                    Some(_) => {}
                    None => break,
                }
            }
        };
        tokio::select! {
            _ = put => {}
            () = reading => {}
        }
        runtime.detach();
        drop((running, client, now, runtime));

        runtime = start(installation).await;
        now = subject(&runtime, installation);
        let client = now.client(id, Arc::clone(&key));
        assert_eq!(client.status().await.unwrap().sandbox_id, id);
        assert_eq!(
            end_of(&client, run.execution).await,
            Outcome::Exited { code: 0 }
        );
        let mut log = Vec::new();
        let logged = client.log(run.execution, &mut log).await.unwrap();
        assert_eq!(logged.bytes + logged.dropped_bytes, 20_000_000);
        match client.get_bytes(&name, 30_000_000).await {
            Ok(bytes) => assert!(bytes == content, "round {round}: another content"),
            Err(error) => assert_eq!(error.code(), Some(ErrorCode::NotFound), "{error:?}"),
        }
        let left = script("import os\nfor name in os.listdir('.'): os.remove(name)");
        let mut running = client.run(&left).await.unwrap();
        while running.next().await.unwrap().is_some() {}
    }
    runtime.remove(id).await.unwrap();
}

fn script(code: &str) -> glovebox_protocol::process::StartProcess {
    glovebox_protocol::process::StartProcess {
        execution: ExecutionId::new(),
        argv: [support::PYTHON, "-c", code].map(Into::into).to_vec(),
        env: Default::default(),
        stdin: glovebox_protocol::process::Stdin::Empty,
        time_limit_ms: 60_000,
        output_limit_bytes: None,
    }
}

#[tokio::test]
async fn what_has_ended_meanwhile_is_told_and_a_deadline_still_holds() {
    let installation = InstallationId::new();
    let _cleaner = support::Cleaner(installation);
    let runtime = start(installation).await;
    let before = subject(&runtime, installation);
    let (ended, stopped) = (before.create().await.id, before.create().await.id);
    runtime.stop(stopped).await.unwrap();
    let mut spec = before.spec();
    let now = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
    let deadline = now.unwrap() + Duration::from_secs(4);
    spec.hard_deadline_ms = Some(i64::try_from(deadline.as_millis()).unwrap());
    let timed = before.create_as(spec).await.id;
    drop(before);
    drop(runtime);
    support::docker(&["kill", &format!("glovebox-{ended}")]);

    let runtime = start(installation).await;
    for id in [ended, stopped] {
        let state = runtime.inspect(id).await.unwrap().state;
        assert!(
            matches!(&state, SandboxState::Ended { reason } if reason.contains("killed")),
            "{state:?}"
        );
        let connected = runtime.connect(id).await.map(|_| ());
        assert!(
            matches!(connected, Err(RuntimeError::NotFound { .. })),
            "{connected:?}"
        );
    }
    let mut look = tokio::time::interval(Duration::from_millis(50));
    let state = loop {
        match runtime.inspect(timed).await.unwrap().state {
            SandboxState::Running => look.tick().await,
            ended => break ended,
        };
    };
    assert!(
        matches!(&state, SandboxState::Ended { reason } if reason.contains("time limit")),
        "{state:?}"
    );
    for id in [ended, stopped, timed] {
        runtime.remove(id).await.unwrap();
    }
    assert!(runtime.list().await.unwrap().is_empty());
}

#[tokio::test]
async fn only_half_made_containers_of_ones_own_installation_are_removed() {
    let (mine, other) = (InstallationId::new(), InstallationId::new());
    let _cleaners = [support::Cleaner(mine), support::Cleaner(other)];
    let half_made = |installation: InstallationId| {
        let id = glovebox_protocol::ids::SandboxId::new();
        let labels = [
            format!("glovebox.installation={installation}"),
            format!("glovebox.id={id}"),
            format!("glovebox.channel={}", "0".repeat(32)),
        ];
        let image = support::image();
        let mut words = vec!["create", "--network", "none", "--interactive"];
        for label in &labels {
            words.extend(["--label", label]);
        }
        words.push(&image);
        support::docker(&words)
    };
    half_made(mine);
    half_made(other);
    let runtime = start(mine).await;
    assert!(runtime.list().await.unwrap().is_empty());
    assert!(support::containers(mine).is_empty());
    assert_eq!(support::containers(other).len(), 1);
}

#[tokio::test]
async fn an_installation_has_one_driver_at_a_time() {
    let installation = InstallationId::new();
    let first = start(installation).await;
    let second = EngineRuntime::start(support::options_of(installation)).await;
    assert!(
        matches!(&second, Err(RuntimeError::Unavailable { doing, .. }) if doing.contains("lock")),
        "{second:?}"
    );
    drop(first);
    start(installation).await;
}
