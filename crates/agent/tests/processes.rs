//! Programs in an agent.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use glovebox_protocol::error::ErrorCode;
use glovebox_protocol::event::{EventBody, Note, Outcome, Output};
use glovebox_protocol::process::{Argument, Cancel, StartProcess, Stdin};
use support::{TestAgent, finish, program, run, shell};

const MIB: usize = 1024 * 1024;

#[tokio::test]
async fn a_program_runs_and_its_output_and_status_come_back() {
    let test = TestAgent::start().await;
    let start = shell("echo out; echo err >&2; exit 3");
    let done = run(&test.client, &start).await.unwrap();
    assert_eq!(done.text(), "out\n");
    assert_eq!(done.errors(), "err\n");
    assert_eq!(done.ended().outcome, Outcome::Exited { code: 3 });
    let execution = start.execution;
    assert_eq!(done.events, [EventBody::ExecutionStarted { execution }]);
    assert_eq!(done.ended().notes, []);
}

#[tokio::test]
async fn arguments_environment_and_folder_are_as_asked() {
    let test = TestAgent::start().await;
    let mut start = shell(
        "printf '%s|' \"$@\"; echo \"$MINE $TZ $HOME $PATH\"; pwd; env | cut -d= -f1 | sort | tr '\\n' ' '",
    );
    start.argv.push("sh".into());
    start.argv.push("two words".into());
    start.argv.push(Argument::Bytes {
        bytes: b"\xff\n'".to_vec(),
    });
    start.argv.push("-n".into());
    start.env = BTreeMap::from([
        ("MINE".into(), "\u{1f427}".into()),
        ("TZ".into(), "Asia/Tokyo".into()),
    ]);
    let done = run(&test.client, &start).await.unwrap();
    let text = &done.stdout[..];
    let mut expected =
        b"two words|\xff\n'|-n|\xf0\x9f\x90\xa7 Asia/Tokyo /tmp /opt/python/bin:/usr/bin:/bin\n"
            .to_vec();
    expected.extend_from_slice(test.workspace.to_str().unwrap().as_bytes());
    assert!(text.starts_with(&expected), "{}", done.text());
    let names = done.text().lines().last().unwrap().to_owned();
    let allowed = [
        "HOME",
        "LANG",
        "LOGNAME",
        "MINE",
        "MPLCONFIGDIR",
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "PATH",
        "PWD",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONUNBUFFERED",
        "SHELL",
        "SHLVL",
        "TZ",
        "USER",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "_",
        "OLDPWD",
        "LD_LIBRARY_PATH", // of the runtime that only plays one: see the support module
    ];
    for name in names.split_whitespace() {
        assert!(allowed.contains(&name), "`{name}` is in the environment");
    }
}

#[tokio::test]
async fn requests_that_make_no_sense_are_refused() {
    let test = TestAgent::start().await;
    let nothing = StartProcess {
        argv: Vec::new(),
        ..shell("")
    };
    let nul = program(&["echo", "a\0b"]);
    let timeless = StartProcess {
        time_limit_ms: 0,
        ..shell("")
    };
    let mut loader = shell("");
    loader.env.insert("LD_PRELOAD".into(), "x".into());
    for start in [nothing, nul, timeless, loader] {
        let error = test.client.run(&start).await.err().unwrap();
        assert_eq!(error.code(), Some(ErrorCode::Invalid), "{start:?}");
    }
    let start = shell("exit 0");
    run(&test.client, &start).await.unwrap();
    let error = test.client.run(&start).await.err().unwrap();
    assert_eq!(
        error.code(),
        Some(ErrorCode::Conflict),
        "an id is used once"
    );
    let gone = test
        .client
        .cancel(start.execution, Cancel::Kill)
        .await
        .unwrap_err();
    assert_eq!(gone.code(), Some(ErrorCode::Conflict));
    let never = test
        .client
        .cancel(shell("").execution, Cancel::Kill)
        .await
        .unwrap_err();
    assert_eq!(never.code(), Some(ErrorCode::NotFound));
}

#[tokio::test]
async fn a_program_that_is_not_there_is_127_and_one_that_cannot_run_126() {
    let test = TestAgent::start().await;
    let done = run(&test.client, &program(&["no-such-program"]))
        .await
        .unwrap();
    assert_eq!(done.ended().outcome, Outcome::Exited { code: 127 });
    assert!(done.errors().contains("cannot be started"));
    let done = run(&test.client, &program(&["/etc/passwd"])).await.unwrap();
    assert_eq!(done.ended().outcome, Outcome::Exited { code: 126 });
}

#[tokio::test]
async fn a_signal_is_named() {
    let test = TestAgent::start().await;
    for (name, signal) in [("SEGV", 11), ("KILL", 9), ("ABRT", 6)] {
        let done = run(&test.client, &shell(&format!("kill -{name} $$")))
            .await
            .unwrap();
        assert_eq!(done.ended().outcome, Outcome::Signaled { signal });
    }
}

#[tokio::test]
async fn at_the_time_limit_a_program_is_interrupted_and_if_need_be_killed() {
    let test = TestAgent::start().await;
    for (script, killed) in [
        ("sleep 60", false),
        ("mkfifo f; cat f", false),
        (
            "trap 'echo saved; exit 0' INT; while :; do sleep 1; done",
            false,
        ),
        ("trap '' INT; while :; do sleep 1; done", true),
        ("trap '' INT TERM HUP; kill -STOP $$", true),
    ] {
        let start = StartProcess {
            time_limit_ms: 200,
            ..shell(script)
        };
        let done = run(&test.client, &start).await.unwrap();
        assert_eq!(
            done.ended().outcome,
            Outcome::TimeLimit {
                limit_ms: 200,
                killed
            },
            "{script}"
        );
        if script.contains("saved") {
            assert_eq!(done.text(), "saved\n");
        }
    }
}

#[tokio::test]
async fn a_program_can_be_interrupted_and_killed_on_request() {
    let test = TestAgent::start().await;
    for (how, script, outcome) in [
        (
            Cancel::Interrupt,
            "echo on; exec sleep 60",
            Outcome::Cancelled { killed: false },
        ),
        (
            Cancel::Interrupt,
            "trap 'exit 7' INT; echo on; while :; do sleep 0.1; done",
            Outcome::Exited { code: 7 },
        ),
        (
            Cancel::Kill,
            "trap '' INT; echo on; while :; do sleep 0.1; done",
            Outcome::Cancelled { killed: true },
        ),
    ] {
        let mut execution = test.client.run(&shell(script)).await.unwrap();
        while !matches!(execution.next().await.unwrap(), Some(EventBody::Stdout(_))) {}
        test.client.cancel(execution.id(), how).await.unwrap();
        assert_eq!(finish(execution).await.ended().outcome, outcome, "{script}");
    }
}

#[tokio::test]
async fn output_without_a_budget_comes_whole_however_it_is_written() {
    let test = TestAgent::start().await;
    let done = run(
        &test.client,
        &shell("head -c 50000000 /dev/zero | tr '\\0' x"),
    )
    .await
    .unwrap();
    assert!(done.stdout.len() == 50_000_000 && done.stdout.iter().all(|byte| *byte == b'x'));
    let done = run(
        &test.client,
        &shell("i=0; while [ $i -lt 3000 ]; do printf a; i=$((i+1)); done"),
    )
    .await
    .unwrap();
    assert_eq!(done.text(), "a".repeat(3000));
    let done = run(&test.client, &shell("printf '\\377\\000\\033[2J\\303'"))
        .await
        .unwrap();
    assert_eq!(done.stdout, b"\xff\0\x1b[2J\xc3");
}

#[tokio::test]
async fn output_over_a_budget_is_dropped_and_counted_and_the_program_goes_on() {
    let test = TestAgent::start().await;
    let script = "head -c 3000000 /dev/zero; head -c 2000000 /dev/zero >&2; echo done > finished";
    let start = StartProcess {
        output_limit_bytes: Some(1000),
        ..shell(script)
    };
    let done = run(&test.client, &start).await.unwrap();
    assert_eq!(done.stdout.len() + done.stderr.len(), 1000);
    assert_eq!(
        done.events.last(),
        Some(&EventBody::OutputDropped {
            dropped_bytes: 4_999_000,
            limit_bytes: 1000
        })
    );
    assert!(done.ended().outcome.is_success());
    assert!(test.workspace.join("finished").exists());
}

#[tokio::test]
async fn a_slow_reader_slows_the_program_down_and_loses_nothing() {
    let test = TestAgent::start().await;
    let script = "i=0; while [ $i -lt 200 ]; do head -c 100000 /dev/zero; i=$((i+1)); echo $i > progress; done";
    let mut execution = test.client.run(&shell(script)).await.unwrap();
    while !matches!(execution.next().await.unwrap(), Some(EventBody::Stdout(_))) {}
    let progress = || {
        let text = fs_err::read_to_string(test.workspace.join("progress")).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    };
    // Whatever is buffered on the way fills up, and then the program stands still.
    let mut seen: u32 = progress();
    loop {
        tokio::time::timeout(Duration::from_millis(300), std::future::pending::<()>())
            .await
            .unwrap_err();
        let now = progress();
        if now == seen && now > 0 {
            break;
        }
        seen = now;
    }
    assert!(seen < 100, "{seen} of 200 were written though nobody read");
    let mut bytes = 0;
    while let Some(event) = execution.next().await.unwrap() {
        if let EventBody::Stdout(Output(chunk)) = event {
            bytes += chunk.len();
        }
    }
    assert!(bytes > 20_000_000 - MIB, "{bytes}");
}

#[tokio::test]
async fn the_time_limit_holds_though_nobody_reads() {
    let test = TestAgent::start().await;
    let start = StartProcess {
        time_limit_ms: 300,
        ..shell("echo $$ > pid; exec cat /dev/zero")
    };
    let mut execution = test.client.run(&start).await.unwrap();
    execution.next().await.unwrap();
    until_nothing_runs(&test).await;
    let done = finish(execution).await;
    assert_eq!(
        done.ended().outcome,
        Outcome::TimeLimit {
            limit_ms: 300,
            killed: false
        }
    );
}

#[tokio::test]
async fn the_result_comes_when_the_program_ends_though_a_child_holds_its_output() {
    let test = TestAgent::start().await;
    let script = "(trap '' HUP INT TERM; sleep 50000) & echo main; exit 4";
    let done = run(&test.client, &shell(script)).await.unwrap();
    assert_eq!(done.text(), "main\n");
    assert_eq!(done.ended().outcome, Outcome::Exited { code: 4 });
    assert!(
        matches!(
            done.ended().notes[..],
            [Note::LeftRunning { processes: 1.. }]
        ),
        "{:?}",
        done.ended()
    );
    let flood = run(&test.client, &shell("yes & exit 0")).await.unwrap();
    assert!(flood.ended().outcome.is_success());
}

#[tokio::test]
async fn a_program_is_fed_by_requests() {
    let test = TestAgent::start().await;
    let start = StartProcess {
        stdin: Stdin::Requests,
        ..shell("sha256sum; echo end")
    };
    let execution = test.client.run(&start).await.unwrap();
    let id = execution.id();
    let bytes = Bytes::from(vec![b'q'; 2 * MIB]);
    test.client.stdin(id, bytes.clone(), false).await.unwrap();
    test.client.stdin(id, Bytes::new(), false).await.unwrap();
    test.client
        .stdin(id, Bytes::from_static(b"last"), true)
        .await
        .unwrap();
    let closed = test
        .client
        .stdin(id, Bytes::new(), false)
        .await
        .unwrap_err();
    assert_eq!(closed.code(), Some(ErrorCode::Conflict));
    let done = finish(execution).await;
    let whole = [&bytes[..], b"last"].concat();
    let sha256 = glovebox_protocol::sign::BodyDigest::of(&whole);
    assert_eq!(done.text(), format!("{sha256}  -\nend\n"));

    let done = run(&test.client, &shell("cat; echo empty")).await.unwrap();
    assert_eq!(done.text(), "empty\n");

    let deaf = StartProcess {
        stdin: Stdin::Requests,
        ..shell("exec sleep 60")
    };
    let execution = test.client.run(&deaf).await.unwrap();
    let id = execution.id();
    // Its pipe takes some of it and no more; the rest is refused when the program has gone.
    let (error, ()) = tokio::join!(test.client.stdin(id, bytes, false), async {
        let begun = test.client.status().await.unwrap();
        assert_eq!(begun.processes, 1);
        test.client.cancel(id, Cancel::Kill).await.unwrap();
    });
    assert_eq!(error.unwrap_err().code(), Some(ErrorCode::Conflict));
    let ended = finish(execution).await;
    assert_eq!(ended.ended().outcome, Outcome::Cancelled { killed: true });
}

#[tokio::test]
async fn a_caller_who_goes_away_ends_the_program() {
    let test = TestAgent::start().await;
    let mut execution = test
        .client
        .run(&shell(
            "trap '' INT HUP TERM; echo on; while :; do sleep 0.1; done",
        ))
        .await
        .unwrap();
    while !matches!(execution.next().await.unwrap(), Some(EventBody::Stdout(_))) {}
    assert_eq!(test.client.status().await.unwrap().processes, 1);
    drop(execution);
    until_nothing_runs(&test).await;
}

async fn until_nothing_runs(test: &TestAgent) {
    let gone = async {
        let mut look = tokio::time::interval(Duration::from_millis(20));
        while test.client.status().await.unwrap().processes > 0 {
            look.tick().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), gone)
        .await
        .expect("it still runs");
}

#[tokio::test]
async fn the_end_of_the_workload_ends_every_program() {
    let test = TestAgent::start().await;
    let mut executions = Vec::new();
    for _ in 0..3 {
        let mut execution = test
            .client
            .run(&shell(
                "trap '' INT TERM; echo on; while :; do sleep 0.1; done",
            ))
            .await
            .unwrap();
        while !matches!(execution.next().await.unwrap(), Some(EventBody::Stdout(_))) {}
        executions.push(execution);
    }
    assert!(test.client.end_workload().await.unwrap().processes >= 3);
    assert_eq!(test.client.status().await.unwrap().processes, 0);
    for execution in executions {
        assert_eq!(
            finish(execution).await.ended().outcome,
            Outcome::Signaled { signal: 9 }
        );
    }
}

#[tokio::test]
async fn many_programs_run_at_once_without_mixing_their_output() {
    let test = TestAgent::start().await;
    let runs = (0..12).map(|number| {
        let client = test.client.clone();
        tokio::spawn(async move {
            let script = format!("i=0; while [ $i -lt 50 ]; do echo {number}; i=$((i+1)); done");
            (number, run(&client, &shell(&script)).await)
        })
    });
    for run in runs.collect::<Vec<_>>() {
        let (number, done) = run.await.unwrap();
        assert_eq!(done.unwrap().text(), format!("{number}\n").repeat(50));
    }
}

#[tokio::test]
async fn a_sandbox_is_idle_from_the_end_of_the_last_program() {
    let test = TestAgent::start().await;
    let start = shell("sleep 0.4; echo on; sleep 60");
    let mut execution = test.client.run(&start).await.unwrap();
    while !matches!(execution.next().await.unwrap(), Some(EventBody::Stdout(_))) {}
    let status = test.client.status().await.unwrap();
    // Idle since before the program began, it would be as long as the agent is up.
    assert!(status.idle_ms + 400 <= status.uptime_ms, "{status:?}");
    drop(execution);
}
