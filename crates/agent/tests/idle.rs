//! A sandbox that nobody uses: what runs is ended, once, and the workspace stays. Time is moved
//! on by hand, so that a quarter of an hour takes no time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::time::Duration;

use glovebox_protocol::agent_config::AgentConfig;
use glovebox_protocol::kernel::{Execute, KernelState};
use glovebox_protocol::launcher_line::FromAgent;
use glovebox_protocol::process::StartProcess;
use support::launcher::agent_with_launcher;
use support::{TestAgent, code, eval, finish, kernel_env, name, python, replaced, results, shell};

const LIMIT: Duration = Duration::from_secs(15 * 60);
const DAY_MS: u64 = 24 * 3600 * 1000;

fn limited(config: &mut AgentConfig) {
    config.claim.as_mut().unwrap().idle_limit_ms = Some(u64::try_from(LIMIT.as_millis()).unwrap());
}

async fn agent() -> TestAgent {
    let change = |config: &mut AgentConfig| {
        config.python = python();
        limited(config);
    };
    TestAgent::start_with(change, kernel_env()).await
}

/// Lets time pass. It runs on as it does after that, because kernels take some.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

/// Waits until there is no kernel. Asking is no use of the sandbox.
async fn until_absent(test: &TestAgent) -> String {
    loop {
        let info = test.client.kernel().await.unwrap();
        if info.state == KernelState::Absent {
            return info.last_end.unwrap();
        }
    }
}

#[tokio::test]
async fn an_unused_kernel_is_ended_and_the_next_call_is_told() {
    let test = agent().await;
    eval(&test.client, "x = 1; open('kept', 'w').write('here')").await;
    pass(LIMIT - Duration::from_secs(60)).await;
    assert_eq!(test.client.kernel().await.unwrap().state, KernelState::Idle);
    pass(Duration::from_secs(61)).await;
    let reason = "the kernel was ended after 15 min without use";
    assert_eq!(until_absent(&test).await, reason);
    assert_eq!(test.client.status().await.unwrap().processes, 0);
    // Long unused it stays as it is.
    pass(LIMIT * 10).await;
    assert_eq!(until_absent(&test).await, reason);
    let next = eval(&test.client, "('x' in globals(), open('kept').read())").await;
    assert_eq!(replaced(&next), Some(reason));
    assert_eq!(results(&next), ["(False, 'here')"]);
    // And the time begins anew.
    pass(LIMIT * 2).await;
    assert_eq!(until_absent(&test).await, reason);
    assert_eq!(test.client.kernel().await.unwrap().generation, 2);
}

#[tokio::test]
async fn every_use_puts_the_end_off() {
    let test = agent().await;
    eval(&test.client, "x = 1").await;
    for _ in 0..3 {
        pass(LIMIT - Duration::from_secs(60)).await;
        test.client.list(None).await.unwrap();
    }
    assert_eq!(results(&eval(&test.client, "x").await), ["1"]);
}

#[tokio::test]
async fn what_runs_is_use_however_long_it_takes() {
    let test = agent().await;
    let wait = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)\n'done'";
    let call = Execute {
        time_limit_ms: DAY_MS,
        ..code(wait)
    };
    eval(&test.client, "1").await;
    let call = test.client.execute(&call).await.unwrap();
    while test.client.kernel().await.unwrap().state != KernelState::Busy {}
    let program = StartProcess {
        time_limit_ms: DAY_MS,
        ..shell("while [ ! -e go ]; do sleep 0.01; done; echo done")
    };
    let program = test.client.run(&program).await.unwrap();
    pass(LIMIT * 4).await;
    test.client.put_bytes(&name("go"), "".into()).await.unwrap();
    assert_eq!(results(&finish(call).await), ["'done'"]);
    assert_eq!(finish(program).await.text(), "done\n");
    assert_eq!(test.client.kernel().await.unwrap().generation, 1);
}

#[tokio::test]
async fn no_kernel_is_asked_for_in_the_place_of_an_unused_one() {
    let (test, launcher) = agent_with_launcher(limited).await;
    launcher.give_kernel();
    assert!(matches!(
        launcher.hear().await,
        FromAgent::KernelReady { .. }
    ));
    pass(LIMIT).await;
    until_absent(&test).await;
    assert!(!launcher.has_more());
    let next = test.client.execute(&code("2")).await.unwrap();
    assert_eq!(launcher.hear().await, FromAgent::KernelWanted);
    launcher.give_kernel();
    let next = finish(next).await;
    assert!(replaced(&next).unwrap().contains("15 min"), "{next:?}");
    assert_eq!(results(&next), ["2"]);
}
