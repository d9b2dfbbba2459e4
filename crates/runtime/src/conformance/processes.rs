//! Running programs.

use std::time::Duration;

use glovebox_protocol::error::ErrorCode;
use glovebox_protocol::event::{Note, Outcome};
use glovebox_protocol::process::Stdin;

use super::subject::until_output;
use super::{Ran, Subject};

pub async fn the_exit_status_is_the_programs(subject: &Subject) {
    let guest = subject.create().await;
    for code in [0, 1, 42, 255] {
        let ran = guest.python(&format!("raise SystemExit({code})")).await;
        assert_eq!(ran.ended.outcome, Outcome::Exited { code });
    }
    let raised = guest.python("1/0").await;
    assert_eq!(raised.ended.outcome, Outcome::Exited { code: 1 });
    let stderr = String::from_utf8(raised.stderr()).unwrap();
    assert!(stderr.contains("ZeroDivisionError"), "{stderr}");
    guest.remove().await;
}

pub async fn both_streams_come_byte_for_byte(subject: &Subject) {
    let guest = subject.create().await;
    let ran = guest
        .python(
            "import os\n\
             for n in range(3000): os.write(1, bytes(range(256))); os.write(2, b'\\xff\\x00')",
        )
        .await;
    let all: Vec<u8> = (0..=255).collect();
    assert_eq!(ran.stdout(), all.repeat(3000));
    assert_eq!(ran.stderr(), b"\xff\x00".repeat(3000));
    guest.remove().await;
}

pub async fn arguments_and_variables_arrive(subject: &Subject) {
    let guest = subject.create().await;
    let mut start = guest.script("import sys, os; print(sys.argv[1:], os.environ['GREETING'])");
    for argument in ["", "a b", "-x", "é", "$HOME", "*"] {
        start.argv.push(argument.into());
    }
    start.env.insert("GREETING".into(), "good day".into());
    let ran = guest.run(&start).await;
    assert_eq!(
        ran.text(),
        "['', 'a b', '-x', 'é', '$HOME', '*'] good day\n"
    );
    guest.remove().await;
}

pub async fn standard_input_arrives(subject: &Subject) {
    let guest = subject.create().await;
    let empty = guest
        .python("import sys; print(repr(sys.stdin.read()))")
        .await;
    assert_eq!(empty.text(), "''\n");

    let mut start = guest.script("import sys; print(sys.stdin.buffer.read().hex())");
    start.stdin = Stdin::Requests;
    let running = guest.client.run(&start).await.unwrap();
    let (ran, sent) = tokio::join!(Ran::of(running), async {
        let id = start.execution;
        guest.client.stdin(id, b"ab".to_vec().into(), false).await?;
        guest.client.stdin(id, b"\xff".to_vec().into(), true).await
    });
    sent.unwrap();
    assert_eq!(ran.text(), "6162ff\n");
    guest.remove().await;
}

pub async fn a_time_limit_ends_the_program(subject: &Subject) {
    let guest = subject.create().await;
    let at_rest = guest.processes_at_rest().await;
    for (code, killed) in [
        ("while True: pass", false),
        ("import time; time.sleep(600)", false),
        (
            "import signal\nsignal.signal(2, signal.SIG_IGN)\nwhile True: pass",
            true,
        ),
    ] {
        let mut start = guest.script(code);
        start.time_limit_ms = 400;
        let ran = guest.run(&start).await;
        assert_eq!(
            ran.ended.outcome,
            Outcome::TimeLimit {
                limit_ms: 400,
                killed
            },
            "{code}"
        );
    }
    assert_eq!(guest.client.status().await.unwrap().processes, at_rest);
    guest.remove().await;
}

pub async fn a_signal_is_named(subject: &Subject) {
    let guest = subject.create().await;
    let ran = guest.python("import os; os.kill(os.getpid(), 11)").await;
    assert_eq!(ran.ended.outcome, Outcome::Signaled { signal: 11 });
    guest.remove().await;
}

pub async fn the_answer_comes_when_the_main_process_ends(subject: &Subject) {
    let guest = subject.create().await;
    let at_rest = guest.processes_at_rest().await;
    let running =
        guest.python("import subprocess; subprocess.Popen(['sleep', '600']); print('done')");
    let ran = tokio::time::timeout(Duration::from_secs(30), running)
        .await
        .expect("the answer waits for a child that holds the output open");
    assert_eq!(ran.text(), "done\n");
    assert_eq!(ran.ended.outcome, Outcome::Exited { code: 0 });
    let note = Note::LeftRunning { processes: 1 };
    assert!(ran.ended.notes.contains(&note), "{:?}", ran.ended);
    assert_eq!(guest.client.status().await.unwrap().processes, at_rest);
    guest.remove().await;
}

pub async fn an_execution_nobody_reads_is_ended(subject: &Subject) {
    let guest = subject.create().await;
    let at_rest = guest.processes_at_rest().await;
    let start = guest.script("print('up', flush=True)\nwhile True: pass");
    let mut running = guest.client.run(&start).await.unwrap();
    until_output(&mut running).await;
    drop(running);
    // The next one can only start on a processor that is free again, and sees nobody else.
    let gone = async {
        let mut look = tokio::time::interval(Duration::from_millis(20));
        while guest.client.status().await.unwrap().processes > at_rest {
            look.tick().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), gone)
        .await
        .expect("the program goes on without a reader");
    guest.remove().await;
}

pub async fn loader_variables_are_refused(subject: &Subject) {
    let guest = subject.create().await;
    for variable in [
        "LD_PRELOAD",
        "GLOVEBOX_X",
        "PATH",
        "bad-name",
        "",
        "1A",
        "A=B",
    ] {
        let mut start = guest.script("print(1)");
        start.env.insert(variable.into(), "x".into());
        let refused = guest.client.run(&start).await.map(|_| ());
        assert_eq!(
            refused.unwrap_err().code(),
            Some(ErrorCode::Invalid),
            "{variable}"
        );
    }
    guest.remove().await;
}
