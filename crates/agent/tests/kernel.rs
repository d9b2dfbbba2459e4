//! The kernel, with the real runner of `sandbox/kernel` on the toolbox's Python.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::collections::BTreeMap;
use std::time::Duration;

use glovebox_client::ClientError;
use glovebox_protocol::error::ErrorCode;
use glovebox_protocol::event::{EventBody, Note, Outcome, Output};
use glovebox_protocol::kernel::{Execute, KernelState, StartKernel};
use glovebox_protocol::process::Cancel;
use support::{TestAgent, code, eval, execute, finish, kernel_env, name, python, results};

async fn agent() -> TestAgent {
    TestAgent::start_with(|config| config.python = python(), kernel_env()).await
}

#[tokio::test]
async fn variables_live_from_call_to_call() {
    let test = agent().await;
    assert_eq!(
        test.client.kernel().await.unwrap().state,
        KernelState::Absent
    );
    let first = eval(&test.client, "x = 41\nprint('hi')").await;
    assert_eq!(first.text(), "hi\n");
    assert_eq!(
        first.ended().outcome,
        Outcome::Succeeded { execution_count: 1 }
    );
    let second = eval(&test.client, "x + 1").await;
    assert_eq!(results(&second), ["42"]);
    let info = test.client.kernel().await.unwrap();
    assert_eq!((info.state, info.generation), (KernelState::Idle, 1));
    assert!(info.language.starts_with("python 3."), "{}", info.language);
}

#[tokio::test]
async fn output_and_displays_come_in_the_order_of_the_program() {
    let test = agent().await;
    let text = "for n in range(20):\n    print(n)\n    display({'text/plain': str(n)}, raw=True)";
    let mut execution = test.client.execute(&code(text)).await.unwrap();
    let mut order = Vec::new();
    while let Some(event) = execution.next().await.unwrap() {
        match event {
            EventBody::Stdout(Output(bytes)) => {
                order.extend(
                    String::from_utf8_lossy(&bytes)
                        .lines()
                        .map(|line| format!("o{line}")),
                );
            }
            EventBody::Display(shown) => {
                order.push(format!("d{}", shown.data["text/plain"].as_str().unwrap()));
            }
            _ => {}
        }
    }
    let expected: Vec<_> = (0..20)
        .flat_map(|n| [format!("o{n}"), format!("d{n}")])
        .collect();
    assert_eq!(order, expected);
}

#[tokio::test]
async fn an_exception_comes_with_its_traceback_and_the_kernel_lives_on() {
    let test = agent().await;
    let done = eval(&test.client, "1/0").await;
    assert!(done.events.iter().any(|event| matches!(
        event,
        EventBody::Error { name, traceback, .. } if name == "ZeroDivisionError" && !traceback.is_empty()
    )));
    let Outcome::Raised { name, .. } = &done.ended().outcome else {
        panic!("{:?}", done.ended().outcome);
    };
    assert_eq!(name, "ZeroDivisionError");
    assert_eq!(results(&eval(&test.client, "1 + 1").await), ["2"]);
}

#[tokio::test]
async fn output_of_subprocesses_is_captured() {
    let test = agent().await;
    let text = "import os, subprocess\nos.write(1, b'fd\\n')\nsubprocess.run(['echo', 'child'])\n!echo shell";
    let done = eval(&test.client, text).await;
    assert_eq!(done.text(), "fd\nchild\nshell\n");
}

#[tokio::test]
async fn at_the_time_limit_code_is_interrupted_and_variables_stay() {
    let test = agent().await;
    eval(&test.client, "x = 5").await;
    for text in [
        "while True: pass",
        "import time; time.sleep(60)",
        "import os; os.read(os.pipe()[0], 1)",
    ] {
        let done = execute(
            &test.client,
            &Execute {
                time_limit_ms: 300,
                ..code(text)
            },
        )
        .await;
        assert_eq!(
            done.ended().outcome,
            Outcome::TimeLimit {
                limit_ms: 300,
                killed: false
            },
            "{text}"
        );
        assert_eq!(results(&eval(&test.client, "x").await), ["5"]);
    }
}

#[tokio::test]
async fn code_that_ignores_the_interrupt_is_killed_and_the_next_call_says_so() {
    let test = agent().await;
    let text = "import time, signal\nwhile True:\n    try:\n        time.sleep(1)\n    except BaseException:\n        pass";
    let done = execute(
        &test.client,
        &Execute {
            time_limit_ms: 200,
            ..code(text)
        },
    )
    .await;
    assert_eq!(
        done.ended().outcome,
        Outcome::TimeLimit {
            limit_ms: 200,
            killed: true
        }
    );
    let next = eval(&test.client, "1").await;
    assert!(
        matches!(&next.events[1], EventBody::KernelReplaced { reason } if reason.contains("200 ms")),
        "{:?}",
        next.events
    );
    assert_eq!(results(&next), ["1"]);
    assert_eq!(test.client.kernel().await.unwrap().generation, 2);
}

#[tokio::test]
async fn a_kernel_that_dies_is_named_at_once_and_replaced() {
    let test = agent().await;
    for (text, cause) in [
        (
            "import os; print('last'); os._exit(3)",
            Outcome::Exited { code: 3 },
        ),
        (
            "import os, signal; print('last', flush=True); os.kill(os.getpid(), 9)",
            Outcome::Signaled { signal: 9 },
        ),
        (
            "import ctypes; print('last', flush=True); ctypes.string_at(0)",
            Outcome::Signaled { signal: 11 },
        ),
    ] {
        test.client
            .start_kernel(&StartKernel::default())
            .await
            .unwrap();
        let done = eval(&test.client, text).await;
        assert_eq!(
            done.ended().outcome,
            Outcome::KernelDied {
                cause: Box::new(cause)
            },
            "{text}"
        );
        if !text.contains("_exit") {
            assert_eq!(done.text(), "last\n");
        }
        let next = eval(&test.client, "2").await;
        assert!(
            matches!(next.events[1], EventBody::KernelReplaced { .. }),
            "{:?}",
            next.events
        );
        assert_eq!(results(&next), ["2"]);
    }
}

#[tokio::test]
async fn a_kernel_that_ends_itself_between_calls_is_replaced() {
    let test = agent().await;
    let done = eval(&test.client, "exit()").await;
    assert!(
        matches!(done.ended().outcome, Outcome::Succeeded { .. }),
        "{:?}",
        done.ended()
    );
    let next = eval(&test.client, "3").await;
    assert!(
        matches!(&next.events[1], EventBody::KernelReplaced { reason } if reason.contains("exit status 0")),
        "{:?}",
        next.events
    );
}

#[tokio::test]
async fn output_over_its_budget_is_dropped_and_counted() {
    let test = agent().await;
    let text = "import sys\nfor _ in range(50): sys.stdout.write('x' * 1_000_000)";
    let done = eval(&test.client, text).await;
    let limit_bytes = Execute::default_output_limit_bytes();
    assert_eq!(done.stdout.len() as u64, limit_bytes);
    assert!(done.events.contains(&EventBody::OutputDropped {
        dropped_bytes: 50_000_000 - limit_bytes,
        limit_bytes,
    }));
    assert_eq!(results(&eval(&test.client, "4").await), ["4"]);
}

#[tokio::test]
async fn displays_count_against_the_budget_too() {
    let test = agent().await;
    let text = "for _ in range(9): display({'text/plain': 'y' * 1000}, raw=True)";
    let done = execute(
        &test.client,
        &Execute {
            output_limit_bytes: 5000,
            ..code(text)
        },
    )
    .await;
    let displays = done
        .events
        .iter()
        .filter(|e| matches!(e, EventBody::Display(_)))
        .count();
    assert_eq!(displays, 4);
    assert!(matches!(
        done.events.last(),
        Some(EventBody::OutputDropped {
            limit_bytes: 5000,
            ..
        })
    ));
}

#[tokio::test]
async fn late_output_is_told_apart() {
    let test = agent().await;
    let early = code(
        "import threading, subprocess\ngo = threading.Event()\n\
         t = threading.Thread(target=lambda: (go.wait(), print('thread')))\nt.start()\n\
         p = subprocess.Popen(['sh', '-c', 'read x; echo child'], stdin=subprocess.PIPE)\nprint('now')",
    );
    let done = execute(&test.client, &early).await;
    assert_eq!(done.text(), "now\n");
    let second = eval(
        &test.client,
        "go.set(); t.join(); p.communicate(b'\\n'); print('mine')",
    )
    .await;
    assert_eq!(second.text(), "mine\n");
    let third = eval(&test.client, "print('third')").await;
    assert_eq!(third.text(), "third\n");
    let late: Vec<_> = third
        .events
        .iter()
        .filter_map(|event| match event {
            EventBody::LateOutput {
                execution, output, ..
            } => Some((*execution, output.0.clone())),
            _ => None,
        })
        .collect();
    let [(execution, bytes)] = &late[..] else {
        panic!("{late:?}")
    };
    assert_eq!(*execution, early.execution);
    assert!(
        bytes[..] == b"thread\nchild\n"[..] || bytes[..] == b"child\nthread\n"[..],
        "{bytes:?}"
    );
}

#[tokio::test]
async fn a_second_call_while_one_runs_is_refused() {
    let test = agent().await;
    eval(&test.client, "import time").await;
    let first = test.client.execute(&code("time.sleep(30)")).await.unwrap();
    let refused = test.client.execute(&code("1")).await.err().unwrap();
    assert_eq!(refused.code(), Some(ErrorCode::Conflict));
    assert_eq!(test.client.kernel().await.unwrap().state, KernelState::Busy);
    test.client
        .interrupt_kernel(Cancel::Interrupt)
        .await
        .unwrap();
    let done = finish(first).await;
    assert_eq!(done.ended().outcome, Outcome::Cancelled { killed: false });
}

#[tokio::test]
async fn a_call_is_cancelled_by_its_id_and_no_other_with_it() {
    let test = agent().await;
    let first = code("import os, time");
    execute(&test.client, &first).await;
    let waits = code("while not os.path.exists('go'): time.sleep(0.01)");
    let second = test.client.execute(&waits).await.unwrap();
    for how in [Cancel::Interrupt, Cancel::Kill] {
        let refused = test.client.cancel_execute(first.execution, how).await;
        assert_eq!(refused.unwrap_err().code(), Some(ErrorCode::Conflict));
    }
    // One that has not come yet.
    let third = code("open('ran', 'w')");
    let early = test
        .client
        .cancel_execute(third.execution, Cancel::Interrupt);
    early.await.unwrap();
    fs_err::write(test.workspace.join("go"), "").unwrap();
    let done = finish(second).await;
    assert_eq!(
        done.ended().outcome,
        Outcome::Succeeded { execution_count: 2 }
    );
    let done = execute(&test.client, &third).await;
    assert_eq!(done.ended().outcome, Outcome::Cancelled { killed: false });
    assert!(!test.workspace.join("ran").exists(), "it has run");
    let fourth = test.client.execute(&code("time.sleep(30)")).await.unwrap();
    let id = fourth.id();
    test.client.cancel_execute(id, Cancel::Kill).await.unwrap();
    let done = finish(fourth).await;
    assert_eq!(done.ended().outcome, Outcome::Cancelled { killed: true });
}

#[tokio::test]
async fn what_is_not_used_is_ended_and_what_is_used_is_not() {
    let test = agent().await;
    eval(&test.client, "import os, time; x = 1").await;
    let waits = code("while not os.path.exists('go'): time.sleep(0.01)");
    let call = test.client.execute(&waits).await.unwrap();
    let refused = test.client.end_unused_workload().await.unwrap_err();
    assert_eq!(refused.code(), Some(ErrorCode::Conflict));
    fs_err::write(test.workspace.join("go"), "").unwrap();
    finish(call).await;
    // The answer to the call counts as use until it is gone.
    while let Err(error) = test.client.end_unused_workload().await {
        assert_eq!(error.code(), Some(ErrorCode::Conflict));
    }
    assert_eq!(
        test.client.kernel().await.unwrap().state,
        KernelState::Absent
    );
    let next = eval(&test.client, "'x' in globals()").await;
    assert_eq!(results(&next), ["False"]);
    assert!(
        matches!(&next.events[1], EventBody::KernelReplaced { reason } if reason.contains("nobody used it"))
    );
}

#[tokio::test]
async fn an_id_is_used_once() {
    let test = agent().await;
    let once = code("1");
    execute(&test.client, &once).await;
    let error = test.client.execute(&once).await.err().unwrap();
    assert_eq!(error.code(), Some(ErrorCode::Conflict));
}

#[tokio::test]
async fn a_caller_who_goes_away_interrupts_the_code() {
    let test = agent().await;
    eval(&test.client, "x = 7").await;
    let mut execution = test
        .client
        .execute(&code("while True: print(end='')"))
        .await
        .unwrap();
    execution.next().await.unwrap();
    drop(execution);
    let done = loop {
        match test.client.execute(&code("x")).await {
            Ok(execution) => break finish(execution).await,
            Err(ClientError::Refused(_)) => tokio::task::yield_now().await,
            Err(other) => panic!("{other}"),
        }
    };
    assert_eq!(results(&done), ["7"]);
}

#[tokio::test]
async fn killing_restarting_and_shutting_down() {
    let test = agent().await;
    eval(&test.client, "import time; x = 1").await;
    let first = test.client.execute(&code("time.sleep(30)")).await.unwrap();
    test.client.interrupt_kernel(Cancel::Kill).await.unwrap();
    assert_eq!(
        finish(first).await.ended().outcome,
        Outcome::Cancelled { killed: true }
    );
    let info = test.client.restart_kernel().await.unwrap();
    assert_eq!((info.state, info.generation), (KernelState::Idle, 2));
    assert_eq!(
        info.last_end.as_deref(),
        Some("the kernel was killed on request")
    );
    // The answer to the restart has said it; the next call does not repeat it.
    let next = eval(&test.client, "'x' in globals()").await;
    assert_eq!(results(&next), ["False"]);
    assert!(
        !next
            .events
            .iter()
            .any(|event| matches!(event, EventBody::KernelReplaced { .. }))
    );
    let info = test.client.shut_down_kernel().await.unwrap();
    assert_eq!(info.state, KernelState::Absent);
    let next = eval(&test.client, "1").await;
    assert!(
        matches!(&next.events[1], EventBody::KernelReplaced { reason } if reason.contains("shut down"))
    );
}

#[tokio::test]
async fn a_restart_ends_a_call_that_runs() {
    let test = agent().await;
    eval(&test.client, "import time").await;
    let call = test.client.execute(&code("time.sleep(30)")).await.unwrap();
    let info = test.client.restart_kernel().await.unwrap();
    assert_eq!(info.generation, 2);
    assert_eq!(
        finish(call).await.ended().outcome,
        Outcome::Cancelled { killed: true }
    );
}

#[tokio::test]
async fn a_kernel_that_talks_nonsense_is_ended_and_named() {
    let test = agent().await;
    for nonsense in [
        "b'\\xff\\xff\\xff\\xff'",
        "b'\\0\\0\\0\\2{]'",
        "b'\\0\\0\\0\\x1e{\"type\":\"ready\",\"language\":\"\"}'",
    ] {
        let text = format!(
            "import os, stat\nfor fd in range(240, 260):\n    try:\n        if stat.S_ISSOCK(os.fstat(fd).st_mode): os.write(fd, {nonsense})\n    except OSError: pass\nimport time; time.sleep(30000)"
        );
        let done = eval(&test.client, &text).await;
        assert!(
            matches!(done.ended().outcome, Outcome::KernelBroken { .. }),
            "{:?}",
            done.ended()
        );
    }
    assert_eq!(results(&eval(&test.client, "5").await), ["5"]);
}

/// Two bytes of such a document would become one value of dozens in the agent's memory.
#[tokio::test]
async fn a_display_of_very_many_values_is_told_in_a_word() {
    let test = agent().await;
    let text = r#"import os, stat, struct
for fd in range(240, 260):
    try:
        if stat.S_ISSOCK(os.fstat(fd).st_mode): sock = fd
    except OSError: pass
many = '0,' * 5_000_000
body = ('{"type":"display","seq":1,"id":"ID","data":{"a":[' + many + '0]}}').encode()
body = struct.pack('>I', len(body)) + body
while body: body = body[os.write(sock, body):]
print('sent')"#;
    let mut request = code("");
    request.code = text.replace("ID", &request.execution.to_string());
    let done = execute(&test.client, &request).await;
    assert_eq!(done.text(), "sent\n");
    let told = done.events.iter().any(|event| {
        matches!(event, EventBody::Display(shown)
            if shown.data.get("text/plain").is_some_and(|text| text.to_string().contains("not passed on")))
    });
    assert!(told, "{:?}", done.events);
    assert_eq!(results(&eval(&test.client, "5").await), ["5"]);
}

/// Code that fills the socket faster than it is read must not keep the clock from being looked at,
/// and what it was in the middle of saying when it was killed is not held against it.
#[tokio::test]
async fn a_flood_of_messages_does_not_stretch_the_time_limit() {
    let test = agent().await;
    let mut request = code("");
    request.code = r#"import os, signal, stat, struct
signal.signal(signal.SIGINT, signal.SIG_IGN)
for fd in range(240, 260):
    try:
        if stat.S_ISSOCK(os.fstat(fd).st_mode): sock = fd
    except OSError: pass
body = b'{"type":"clear_output","seq":1,"id":"ID","wait":true}'
block = (struct.pack('>I', len(body)) + body) * 1000
while True: os.write(sock, block)"#
        .replace("ID", &request.execution.to_string());
    request.time_limit_ms = 500;
    request.output_limit_bytes = 1000;
    let done = tokio::time::timeout(Duration::from_secs(60), execute(&test.client, &request))
        .await
        .expect("the flood goes on");
    let expected = Outcome::TimeLimit {
        limit_ms: 500,
        killed: true,
    };
    assert_eq!(done.ended().outcome, expected);
    assert_eq!(results(&eval(&test.client, "5").await), ["5"]);
}

#[tokio::test]
async fn variables_are_checked_like_those_of_programs_and_outlive_the_kernel() {
    let test = agent().await;
    let with = |name: &str| StartKernel {
        env: BTreeMap::from([(name.to_owned(), "7".to_owned())]),
        ..StartKernel::default()
    };
    for name in ["PATH", "LD_PRELOAD", "GLOVEBOX_X", "A=B"] {
        let error = test.client.start_kernel(&with(name)).await.unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::Invalid), "{name}");
    }
    test.client
        .start_kernel(&with("OPENBLAS_NUM_THREADS"))
        .await
        .unwrap();
    let text = "import os; os.environ['OPENBLAS_NUM_THREADS']";
    assert_eq!(results(&eval(&test.client, text).await), ["'7'"]);
    eval(&test.client, "import os; os._exit(3)").await;
    assert_eq!(results(&eval(&test.client, text).await), ["'7'"]);
    test.client.restart_kernel().await.unwrap();
    assert_eq!(results(&eval(&test.client, text).await), ["'7'"]);
}

#[tokio::test]
async fn a_kernel_that_cannot_start_says_why() {
    let test = TestAgent::start_with(|config| config.python = python(), BTreeMap::new()).await;
    let error = test
        .client
        .start_kernel(&StartKernel::default())
        .await
        .unwrap_err();
    let ClientError::Refused(body) = error else {
        panic!("{error}")
    };
    assert!(body.message.contains("glovebox_kernel"), "{}", body.message);
    let done = eval(&test.client, "1").await;
    assert!(
        matches!(done.ended().outcome, Outcome::KernelDied { .. }),
        "{:?}",
        done.ended()
    );
}

#[tokio::test]
async fn many_displays_of_a_busy_kernels_thread_do_not_stall_it() {
    let test = agent().await;
    let text = "import threading\ndef work():\n    for n in range(3000): display({'text/plain': str(n)}, raw=True)\n\
                t = threading.Thread(target=work)\nt.start()\nt.join()\nprint('done')";
    let done = execute(
        &test.client,
        &Execute {
            time_limit_ms: 30_000,
            ..code(text)
        },
    )
    .await;
    assert_eq!(done.text(), "done\n");
    assert!(done.ended().outcome.is_success(), "{:?}", done.ended());
}

#[tokio::test]
async fn code_of_many_megabytes_runs() {
    let test = agent().await;
    let long = format!("x = '{}'\nlen(x)", "z".repeat(8 << 20));
    assert_eq!(
        results(&eval(&test.client, &long).await),
        [(8 << 20).to_string()]
    );
}

#[tokio::test]
async fn files_pushed_in_are_there_for_the_code() {
    let test = agent().await;
    test.client
        .put_bytes(&name("in.txt"), "content".into())
        .await
        .unwrap();
    let done = eval(&test.client, "open('in.txt').read()").await;
    assert_eq!(results(&done), ["'content'"]);
    assert!(
        !done
            .ended()
            .notes
            .iter()
            .any(|note| matches!(note, Note::DiskFull { .. }))
    );
}
