//! The persistent kernel.

use std::time::Duration;

use glovebox_protocol::error::ErrorCode;
use glovebox_protocol::event::{EventBody, Outcome, Output};
use glovebox_protocol::process::Cancel;

use super::subject::until_output;
use super::{Ran, Subject};

pub async fn variables_live_from_call_to_call(subject: &Subject) {
    let guest = subject.create().await;
    guest.execute("x = 20").await;
    let ran = guest.execute("print(x + 1)").await;
    assert_eq!(ran.text(), "21\n");
    assert_eq!(ran.ended.outcome, Outcome::Succeeded { execution_count: 2 });
    let restarted = guest.client.restart_kernel().await.unwrap();
    assert_eq!(restarted.generation, 2);
    let lost = guest.execute("print(x)").await;
    assert!(matches!(&lost.ended.outcome, Outcome::Raised { name, .. } if name == "NameError"));
    guest.remove().await;
}

pub async fn output_comes_in_program_order(subject: &Subject) {
    let guest = subject.create().await;
    let ran = guest
        .execute(
            "import os, subprocess, sys\n\
             from IPython.display import display, HTML\n\
             for n in range(20):\n\
             \x20   print('a', n)\n\
             \x20   os.write(1, b'b\\n')\n\
             \x20   subprocess.run(['echo', 'c'])\n\
             \x20   display(HTML(str(n)))\n",
        )
        .await;
    let mut story = String::new();
    for event in &ran.events {
        match event {
            EventBody::Stdout(Output(bytes)) => story.push_str(std::str::from_utf8(bytes).unwrap()),
            EventBody::Display(shown) => {
                story.push_str(shown.data["text/html"].as_str().unwrap());
                story.push('\n');
            }
            _ => {}
        }
    }
    let expected: String = (0..20).map(|n| format!("a {n}\nb\nc\n{n}\n")).collect();
    assert_eq!(story, expected);
    guest.remove().await;
}

pub async fn an_exception_is_told_and_the_kernel_goes_on(subject: &Subject) {
    let guest = subject.create().await;
    let ran = guest.execute("kept = 1\nprint('before')\n1/0").await;
    assert_eq!(ran.text(), "before\n");
    let Some(EventBody::Error {
        name,
        value,
        traceback,
    }) = ran.events.last()
    else {
        panic!("no error was told: {ran:?}");
    };
    assert_eq!(
        (name.as_str(), value.as_str()),
        ("ZeroDivisionError", "division by zero")
    );
    assert!(!traceback.is_empty());
    assert_eq!(guest.execute("print(kept)").await.text(), "1\n");
    guest.remove().await;
}

pub async fn the_last_expression_is_shown(subject: &Subject) {
    let guest = subject.create().await;
    let ran = guest.execute("[1, 2]").await;
    let Some(EventBody::Result {
        execution_count,
        shown,
    }) = ran.events.last()
    else {
        panic!("no result: {ran:?}");
    };
    assert_eq!(*execution_count, 1);
    assert_eq!(shown.data["text/plain"], "[1, 2]");
    guest.remove().await;
}

pub async fn an_interrupt_keeps_variables(subject: &Subject) {
    let guest = subject.create().await;
    guest.execute("kept = 7").await;
    for code in [
        "while True: pass",
        "import time; time.sleep(600)",
        "import os; os.read(os.pipe()[0], 1)",
    ] {
        // The print shows that the code runs, so that the interrupt meets it and not its start.
        let cell = guest.cell(&format!("print('up', flush=True)\n{code}"));
        let mut running = guest.client.execute(&cell).await.unwrap();
        until_output(&mut running).await;
        guest
            .client
            .interrupt_kernel(Cancel::Interrupt)
            .await
            .unwrap();
        let ran = Ran::of(running).await;
        assert_eq!(
            ran.ended.outcome,
            Outcome::Cancelled { killed: false },
            "{code}"
        );
        assert_eq!(guest.execute("print(kept)").await.text(), "7\n", "{code}");
    }
    let mut limited = guest.cell("while True: pass");
    limited.time_limit_ms = 400;
    let ran = guest.execute_as(&limited).await;
    let expected = Outcome::TimeLimit {
        limit_ms: 400,
        killed: false,
    };
    assert_eq!(ran.ended.outcome, expected);
    assert_eq!(guest.execute("print(kept)").await.text(), "7\n");
    guest.remove().await;
}

pub async fn a_dead_kernel_is_named_and_replaced(subject: &Subject) {
    let guest = subject.create().await;
    for (code, cause) in [
        ("import os; os._exit(3)", Outcome::Exited { code: 3 }),
        (
            "import os, signal; os.kill(os.getpid(), 11)",
            Outcome::Signaled { signal: 11 },
        ),
    ] {
        guest.execute("gone = 1").await;
        let ran = guest.execute(code).await;
        assert_eq!(
            ran.ended.outcome,
            Outcome::KernelDied {
                cause: Box::new(cause)
            }
        );
        let next = guest.execute("print('gone' in globals())").await;
        assert_eq!(next.text(), "False\n");
        assert!(
            next.events
                .iter()
                .any(|event| matches!(event, EventBody::KernelReplaced { .. })),
            "nobody was told: {next:?}"
        );
    }
    guest.remove().await;
}

pub async fn late_output_is_not_mixed_into_the_next_call(subject: &Subject) {
    let guest = subject.create().await;
    let first = guest.cell(
        "import subprocess, threading\n\
         go = threading.Event()\n\
         def late():\n\
         \x20   go.wait(); print('late thread'); subprocess.run(['echo', 'late child']); done.set()\n\
         done = threading.Event()\n\
         threading.Thread(target=late).start()\n\
         subprocess.Popen(['sh', '-c', 'read x; echo late background'], stdin=subprocess.PIPE)",
    );
    guest.execute_as(&first).await;
    let second = guest
        .execute("go.set(); done.wait(); print('second')")
        .await;
    let third = guest.execute("print('third')").await;
    assert!(!second.text().contains("late thread"), "{}", second.text());
    assert!(second.text().contains("second\n"));
    assert_eq!(third.text(), "third\n");
    let late = [&second, &third]
        .into_iter()
        .flat_map(|ran| &ran.events)
        .any(|event| {
            matches!(event, EventBody::LateOutput { execution, output, .. }
            if *execution == first.execution
                && String::from_utf8_lossy(&output.0).contains("late thread"))
        });
    assert!(late, "the late output is lost: {second:?} {third:?}");
    guest.remove().await;
}

pub async fn input_fails_clearly(subject: &Subject) {
    let guest = subject.create().await;
    for code in ["input('name? ')", "import getpass; getpass.getpass()"] {
        let ran = tokio::time::timeout(Duration::from_secs(30), guest.execute(code))
            .await
            .expect("input waits for somebody who is not there");
        assert!(
            matches!(ran.ended.outcome, Outcome::Raised { .. }),
            "{ran:?}"
        );
    }
    guest.remove().await;
}

pub async fn one_call_at_a_time(subject: &Subject) {
    let guest = subject.create().await;
    let cell = guest.cell("print('up', flush=True)\nwhile True: pass");
    let mut running = guest.client.execute(&cell).await.unwrap();
    until_output(&mut running).await;
    let second = guest.client.execute(&guest.cell("1")).await.map(|_| ());
    assert_eq!(second.unwrap_err().code(), Some(ErrorCode::Conflict));
    guest
        .client
        .interrupt_kernel(Cancel::Interrupt)
        .await
        .unwrap();
    Ran::of(running).await;
    assert!(guest.execute("1").await.ended.outcome.is_success());
    guest.remove().await;
}

pub async fn output_over_the_budget_is_dropped_and_counted(subject: &Subject) {
    let guest = subject.create().await;
    let mut cell = guest.cell("import sys\nfor n in range(1000): sys.stdout.write('x' * 1000)");
    cell.output_limit_bytes = 100_000;
    let ran = guest.execute_as(&cell).await;
    assert!(ran.ended.outcome.is_success());
    assert_eq!(ran.stdout().len(), 100_000);
    let expected = EventBody::OutputDropped {
        dropped_bytes: 900_000,
        limit_bytes: 100_000,
    };
    assert_eq!(ran.events.last(), Some(&expected));
    assert_eq!(guest.execute("print(1)").await.text(), "1\n");
    guest.remove().await;
}
