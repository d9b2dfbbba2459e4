use std::sync::Arc;

use glovebox_protocol::frame::{FrameKind, encode};
use glovebox_protocol::process::StartProcess;
use rustix::process::Signal;
use serde_json::json;

use super::*;
use crate::output::OutputThread;
use crate::run::hostile::{http, sandbox};
use crate::run::report::Audience;

/// What a session lends from.
struct Parts {
    reporter: Reporter,
    progress: Arc<Progress>,
    signals: Signals,
}

impl Parts {
    fn new() -> Self {
        let progress = Arc::new(Progress::new(false));
        let output = OutputThread::start(Arc::clone(&progress));
        Self {
            reporter: Reporter::new(output, Audience::QuietPerson),
            progress,
            signals: Signals::listen().unwrap(),
        }
    }

    fn session(&mut self) -> Session<'_> {
        Session::new(&mut self.reporter, &self.progress, &mut self.signals)
    }
}

fn press(signal: Signal) {
    rustix::process::kill_process(rustix::process::getpid(), signal).unwrap();
}

fn program() -> StartProcess {
    StartProcess {
        execution: ExecutionId::new(),
        argv: vec!["x".into()],
        env: std::collections::BTreeMap::new(),
        stdin: glovebox_protocol::process::Stdin::Empty,
        time_limit_ms: 1,
        output_limit_bytes: None,
    }
}

fn started() -> Vec<u8> {
    let event = json!({"type": "execution_started", "data": {"execution": ExecutionId::new()}});
    encode(FrameKind::Event, event.to_string().as_bytes())
        .unwrap()
        .to_vec()
}

#[tokio::test]
async fn an_event_that_is_not_understood_ends_the_program_and_not_the_run() {
    let sandbox = sandbox(|line| {
        let deep = format!("{}{}", "[".repeat(126), "]".repeat(126));
        let nonsense = encode(FrameKind::Event, deep.as_bytes()).unwrap();
        (line == "POST /v1/processes").then(|| http([started(), nonsense.to_vec()].concat()))
    });
    let mut parts = Parts::new();
    let mut session = parts.session();
    let program = program();
    let starting = ("starting", sandbox.client.run(&program));
    let followed = session
        .follow(&sandbox, starting, Target::Process, |_| {})
        .await;
    let Ok(Followed::Lost(failure)) = followed else {
        panic!("the run was given up")
    };
    assert!(
        failure.sentence().starts_with("following the program: "),
        "{}",
        failure.sentence()
    );
}

#[tokio::test]
async fn signals_are_heard_while_the_agent_does_not_answer() {
    // The program has started and says nothing; that it is to end has no answer, only another
    // signal.
    let sandbox = sandbox(|line| {
        if line.ends_with("/cancel") {
            press(Signal::HUP);
        }
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n";
        (line == "POST /v1/processes").then(|| [&head[..], &started()].concat())
    });
    let mut parts = Parts::new();
    let mut session = parts.session();
    let program = program();
    let starting = ("starting", sandbox.client.run(&program));
    let followed = session
        .follow(&sandbox, starting, Target::Process, |event| {
            assert!(matches!(event, EventBody::ExecutionStarted { .. }));
            press(Signal::INT);
        })
        .await;
    assert!(matches!(followed, Err(Failure::Stopped { signal: 1, .. })));
    // Nor does cleaning up keep the person from leaving.
    press(Signal::HUP);
    let cleaned = session.clean_up(std::future::pending()).await;
    assert!(matches!(cleaned, Err(Failure::Stopped { signal: 1, .. })));
}

#[tokio::test(start_paused = true)]
async fn what_never_answers_is_not_waited_for_for_ever() {
    let sandbox = sandbox(|_| None);
    let asked = ask(
        &sandbox.client,
        Target::Kernel,
        ExecutionId::new(),
        Cancel::Kill,
    )
    .await;
    assert_eq!(
        asked.unwrap_err().sentence(),
        "ending the program: its agent has not answered for 15 s"
    );
    let mut parts = Parts::new();
    let cleaned = parts.session().clean_up(std::future::pending()).await;
    assert_eq!(
        cleaned.unwrap_err().sentence(),
        "cleaning up: the launcher has not ended within 15 s"
    );
}
