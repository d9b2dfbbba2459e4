use std::sync::Arc;

use glovebox_protocol::artifact::Swept;
use glovebox_protocol::frame::{FrameKind, encode};
use serde_json::json;

use super::*;
use crate::output::OutputThread;
use crate::progress::Progress;
use crate::run::hostile::{http, sandbox};
use crate::run::report::{Audience, Reporter};
use crate::signals::Signals;

fn name(text: &str) -> FileName {
    FileName::from_bytes(text).unwrap()
}

fn artifact(text: &str) -> Artifact {
    Artifact {
        name: name(text),
        bytes: 4,
        sha256: BodyDigest::of(b"fine"),
        media_type: "text/csv".into(),
    }
}

/// Of three results the first has changed, the second cannot be had, the third is fine; and what
/// still runs cannot be ended.
fn answers(line: &str) -> Option<Vec<u8>> {
    let file = |name: &str, bytes: &[u8]| {
        let transferred =
            json!({"name": name, "bytes": bytes.len(), "sha256": BodyDigest::of(bytes)});
        let data = encode(FrameKind::Data, bytes).unwrap();
        let last = encode(FrameKind::Event, transferred.to_string().as_bytes()).unwrap();
        http([data, last].concat())
    };
    Some(match line {
        "POST /v1/artifacts/sweep" => http(
            serde_json::to_vec(&Swept {
                artifacts: ["changed.csv", "gone.csv", "fine.csv"].map(artifact).into(),
                left_out: Vec::new(),
                more_left_out: 0,
            })
            .unwrap(),
        ),
        "GET /v1/files/changed.csv" => file("changed.csv", b"evil"),
        "GET /v1/files/fine.csv" => file("fine.csv", b"fine"),
        _ => b"HTTP/1.1 500 no\r\nconnection: close\r\ncontent-length: 1\r\n\r\n\x1b".to_vec(),
    })
}

#[tokio::test]
async fn a_result_that_cannot_be_fetched_does_not_lose_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let results = Results::at(folder.path()).unwrap();
    let progress = Arc::new(Progress::new(false));
    let output = OutputThread::start(Arc::clone(&progress));
    let mut reporter = Reporter::new(output, Audience::QuietPerson);
    let mut signals = Signals::listen().unwrap();
    let mut session = Session::new(&mut reporter, &progress, &mut signals);
    let sandbox = sandbox(answers);
    collect(&mut session, &sandbox.client, &results)
        .await
        .unwrap();
    let saved: Vec<_> = fs_err::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(saved, ["fine.csv"]);
    let lost = session.lost.unwrap();
    assert_eq!(lost.exit_status(), 125);
    assert!(
        lost.sentence().starts_with("ending what still runs"),
        "{}",
        lost.sentence()
    );
}
