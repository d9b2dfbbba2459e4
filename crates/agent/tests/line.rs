//! The line to the launcher: kernels that come ready-made. The test plays the launcher.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::collections::BTreeMap;

use glovebox_protocol::agent_config::Start;
use glovebox_protocol::error::ErrorCode;
use glovebox_protocol::event::Outcome;
use glovebox_protocol::kernel::{KernelState, StartKernel};
use glovebox_protocol::launcher_line::{FromAgent, ToAgent};
use glovebox_protocol::process::Cancel;
use support::launcher::{TestLauncher, agent_with_launcher};
use support::{TestAgent, code, eval, finish, replaced, results, shell};

/// An agent whose first kernel has come.
async fn agent() -> (TestAgent, TestLauncher) {
    let (test, launcher) = agent_with_launcher(|_| {}).await;
    launcher.give_kernel();
    assert!(matches!(
        launcher.hear().await,
        FromAgent::KernelReady { .. }
    ));
    (test, launcher)
}

#[tokio::test]
async fn a_kernel_from_a_template_is_there_before_anybody_asks() {
    let (test, launcher) = agent().await;
    let info = test.client.kernel().await.unwrap();
    assert_eq!((info.state, info.generation), (KernelState::Idle, 1));
    assert_eq!(info.start, Some(Start::Template));
    assert!(info.language.starts_with("python 3."), "{}", info.language);
    let done = eval(&test.client, "x = 41; print('hi')").await;
    assert_eq!(done.text(), "hi\n");
    assert_eq!(replaced(&done), None);
    assert_eq!(results(&eval(&test.client, "x + 1").await), ["42"]);
    assert!(!launcher.has_more());
    assert_eq!(launcher.words(), [""; 0]);
}

#[tokio::test]
async fn calls_wait_for_a_kernel_that_is_on_its_way_one_at_a_time() {
    let (test, launcher) = agent_with_launcher(|_| {}).await;
    assert_eq!(
        test.client.kernel().await.unwrap().state,
        KernelState::Starting
    );
    let first = test.client.execute(&code("6 * 7")).await.unwrap();
    let refused = test.client.execute(&code("1")).await.err().unwrap();
    assert_eq!(refused.code(), Some(ErrorCode::Conflict));
    assert!(!launcher.has_more(), "the first kernel comes unasked");
    launcher.give_kernel();
    assert_eq!(results(&finish(first).await), ["42"]);
    assert!(matches!(
        launcher.hear().await,
        FromAgent::KernelReady { .. }
    ));
}

#[tokio::test]
async fn a_call_can_be_cancelled_while_its_kernel_is_on_its_way() {
    let (test, launcher) = agent_with_launcher(|_| {}).await;
    let call = test
        .client
        .execute(&code("open('ran', 'w')"))
        .await
        .unwrap();
    test.client
        .interrupt_kernel(Cancel::Interrupt)
        .await
        .unwrap();
    launcher.give_kernel();
    let done = finish(call).await;
    assert_eq!(done.ended().outcome, Outcome::Cancelled { killed: false });
    assert!(!test.workspace.join("ran").exists());
    assert_eq!(results(&eval(&test.client, "1").await), ["1"]);
}

#[tokio::test]
async fn a_kernel_that_has_died_is_replaced_by_another_of_the_template() {
    let (test, launcher) = agent().await;
    let done = eval(&test.client, "import os; print('last'); os._exit(3)").await;
    let cause = Box::new(Outcome::Exited { code: 3 });
    assert_eq!(done.ended().outcome, Outcome::KernelDied { cause });
    assert!(!launcher.has_more(), "nobody has asked for another kernel");
    let next = test.client.execute(&code("2")).await.unwrap();
    assert_eq!(launcher.hear().await, FromAgent::KernelWanted);
    launcher.give_kernel();
    let next = finish(next).await;
    assert_eq!(results(&next), ["2"]);
    assert!(replaced(&next).unwrap().contains("3"), "{next:?}");
    let info = test.client.kernel().await.unwrap();
    assert_eq!((info.start, info.generation), (Some(Start::Template), 2));
    assert!(!launcher.has_more());
}

#[tokio::test]
async fn restart_shut_down_and_kill_work_on_it_as_on_any_other() {
    let (test, launcher) = agent().await;
    let sleeping = test
        .client
        .execute(&code("import time; time.sleep(60)"))
        .await
        .unwrap();
    test.client.interrupt_kernel(Cancel::Kill).await.unwrap();
    assert_eq!(
        finish(sleeping).await.ended().outcome,
        Outcome::Cancelled { killed: true }
    );
    for ended in ["killed", "restarted"] {
        let restart = test.client.restart_kernel();
        let give = async {
            assert_eq!(launcher.hear().await, FromAgent::KernelWanted);
            launcher.give_kernel();
        };
        let (info, ()) = tokio::join!(restart, give);
        let last_end = info.unwrap().last_end.unwrap();
        assert!(last_end.contains(ended), "{last_end}");
    }
    assert_eq!(results(&eval(&test.client, "1").await), ["1"]);
    let info = test.client.shut_down_kernel().await.unwrap();
    assert_eq!((info.state, info.start), (KernelState::Absent, None));
    assert!(!launcher.has_more());
}

#[tokio::test]
async fn without_a_template_a_kernel_is_started_and_the_reason_said() {
    let (test, launcher) = agent_with_launcher(|_| {}).await;
    let reason = "the template ended three times".to_owned();
    launcher.send(&ToAgent::NoKernel { reason }, None);
    assert!(matches!(
        launcher.hear().await,
        FromAgent::KernelReady { .. }
    ));
    let info = test.client.kernel().await.unwrap();
    assert_eq!(
        (info.state, info.start),
        (KernelState::Idle, Some(Start::Fresh))
    );
    let words = launcher.words();
    assert!(
        words[0].contains("the template ended three times"),
        "{words:?}"
    );
    eval(&test.client, "import os; os._exit(0)").await;
    let next = test.client.execute(&code("2")).await.unwrap();
    assert_eq!(launcher.hear().await, FromAgent::KernelWanted);
    launcher.give_kernel();
    assert_eq!(results(&finish(next).await), ["2"]);
}

#[tokio::test]
async fn a_kernel_that_is_gone_when_it_comes_counts_as_killed() {
    let (test, launcher) = agent_with_launcher(|_| {}).await;
    let mut gone = std::process::Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let pid = i32::try_from(gone.id()).unwrap();
    let (_kernel, wire) = launcher.start_kernel();
    let call = test.client.execute(&code("1")).await.unwrap();
    launcher.send(&ToAgent::Kernel { pid }, Some(wire));
    // The call asks again when the one that came unasked has failed.
    assert_eq!(launcher.hear().await, FromAgent::KernelWanted);
    launcher.give_kernel();
    assert_eq!(results(&finish(call).await), ["1"]);
    let words = launcher.words();
    assert!(words[0].contains("SIGKILL"), "{words:?}");
}

#[tokio::test]
async fn a_kernel_without_a_socket_or_with_no_number_is_none() {
    let (test, launcher) = agent_with_launcher(|_| {}).await;
    launcher.send(&ToAgent::Kernel { pid: 77 }, None);
    assert!(matches!(
        launcher.hear().await,
        FromAgent::KernelReady { .. }
    ));
    assert_eq!(
        test.client.kernel().await.unwrap().start,
        Some(Start::Fresh)
    );
    for pid in [0, -1, 1] {
        eval(&test.client, "import os; os._exit(0)").await;
        let next = test.client.execute(&code("2")).await.unwrap();
        assert_eq!(launcher.hear().await, FromAgent::KernelWanted);
        let (_kernel, wire) = launcher.start_kernel();
        launcher.send(&ToAgent::Kernel { pid }, Some(wire));
        assert_eq!(results(&finish(next).await), ["2"], "{pid}");
    }
    // One that nobody has asked for is not taken.
    let (_kernel, wire) = launcher.start_kernel();
    launcher.send(&ToAgent::Kernel { pid: 1 }, Some(wire));
    launcher.send(&ToAgent::NoKernel { reason: "x".into() }, None);
    assert_eq!(results(&eval(&test.client, "3").await), ["3"]);
}

#[tokio::test]
async fn variables_reach_a_kernel_that_was_there_before_its_caller() {
    let (test, launcher) = agent().await;
    let with = |value: &str| StartKernel {
        env: BTreeMap::from([("MY_VARIABLE".to_owned(), value.to_owned())]),
        ..StartKernel::default()
    };
    test.client.start_kernel(&with("\u{1f427}")).await.unwrap();
    let text = "import os; os.environ['MY_VARIABLE']";
    assert_eq!(results(&eval(&test.client, text).await), ["'\u{1f427}'"]);
    // From then on it is as with every kernel that is there.
    test.client.start_kernel(&with("other")).await.unwrap();
    assert_eq!(results(&eval(&test.client, text).await), ["'\u{1f427}'"]);
    eval(&test.client, "os._exit(0)").await;
    let next = test.client.execute(&code(text)).await.unwrap();
    assert_eq!(launcher.hear().await, FromAgent::KernelWanted);
    launcher.give_kernel();
    assert_eq!(results(&finish(next).await), ["'\u{1f427}'"]);
}

#[tokio::test]
async fn a_start_that_takes_too_long_says_so_and_the_kernel_is_there_for_the_next() {
    let (test, launcher) = agent().await;
    eval(&test.client, "import os; os._exit(0)").await;
    let short = StartKernel {
        start_limit_ms: 50,
        ..StartKernel::default()
    };
    let error = test.client.start_kernel(&short).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::StartTimeout));
    assert_eq!(launcher.hear().await, FromAgent::KernelWanted);
    launcher.give_kernel();
    assert_eq!(results(&eval(&test.client, "4").await), ["4"]);
    assert!(!launcher.has_more(), "one kernel was on its way already");
}

#[tokio::test]
async fn a_program_that_ends_takes_no_kernel_with_it() {
    let (test, _launcher) = agent().await;
    eval(&test.client, "x = 9").await;
    let done = support::run(&test.client, &shell("exit 3")).await.unwrap();
    assert_eq!(done.ended().outcome, Outcome::Exited { code: 3 });
    assert_eq!(results(&eval(&test.client, "x").await), ["9"]);
}

#[tokio::test]
async fn a_launcher_that_is_gone_leaves_an_agent_that_helps_itself() {
    let (test, launcher) = agent().await;
    drop(launcher);
    eval(&test.client, "import os; os._exit(0)").await;
    assert_eq!(results(&eval(&test.client, "5").await), ["5"]);
    assert_eq!(
        test.client.kernel().await.unwrap().start,
        Some(Start::Fresh)
    );
}
