//! The metrics: what is counted, under which names, and where it is told.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;

use glovebox_protocol::ids::WorkspaceId;
use glovebox_server::program::Server;
use glovebox_store::Role;
use hyper::body::Bytes;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::stage::{Stage, config};
use crate::wire::{Answer, Who, send};

async fn read(address: SocketAddr, path: &str) -> Answer {
    send(address, &Who::Nobody, "GET", path, &[], Bytes::new()).await
}

/// The metrics of a stage, as a program that collects them gets them.
async fn metrics(stage: &Stage) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let routes = glovebox_server::http::metrics_router(stage.app.clone());
    let serving = tokio::spawn(async move { axum::serve(listener, routes).await });
    let answer = read(address, "/metrics").await;
    serving.abort();
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(
        answer.headers["content-type"],
        "text/plain; version=0.0.4; charset=utf-8"
    );
    answer.text()
}

/// The value of one series.
fn value(text: &str, series: &str) -> f64 {
    let found = text
        .lines()
        .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    let found = found.unwrap_or_else(|| panic!("there is no {series} in\n{text}"));
    found.parse().unwrap()
}

/// A stage on which code may run, with somebody who may run it and somebody who may not.
async fn open() -> (Stage, WorkspaceId, Who, Who) {
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    stage.open(workspace).await;
    let (_, editor) = stage.member(workspace, "editor", Role::Editor).await;
    let (_, viewer) = stage.member(workspace, "viewer", Role::Viewer).await;
    (stage, workspace, editor, viewer)
}

#[tokio::test]
async fn what_happens_is_counted_and_what_is_there_is_told() {
    let (stage, workspace, editor, viewer) = open().await;
    let wanted = json!({ "workspace_id": workspace });
    let path = "/api/v1/sandboxes";
    assert_eq!(stage.call(&editor, "POST", path, &wanted).await.status, 201);
    assert_eq!(stage.call(&viewer, "POST", path, &wanted).await.status, 403);
    let text = metrics(&stage).await;
    for (series, expected) in [
        (
            r#"glovebox_http_requests_total{method="POST",route="/api/v1/sandboxes",status="201"}"#,
            1.0,
        ),
        (
            r#"glovebox_http_requests_total{method="POST",route="/api/v1/sandboxes",status="403"}"#,
            1.0,
        ),
        (
            r#"glovebox_http_request_duration_seconds_count{method="POST",route="/api/v1/sandboxes"}"#,
            2.0,
        ),
        (r#"glovebox_sandboxes_started_total{outcome="ready"}"#, 1.0),
        (r#"glovebox_gate_denials_total{denial="role"}"#, 1.0),
        (r#"glovebox_leases{state="ready"}"#, 1.0),
        (r#"glovebox_leases{state="suspended"}"#, 0.0),
        ("glovebox_database_up", 1.0),
        ("glovebox_gateway_up", 1.0),
        ("glovebox_gateway_sandboxes", 1.0),
        ("glovebox_gateway_sandboxes_limit", 100.0),
    ] {
        let found = value(&text, series);
        assert!((found - expected).abs() < f64::EPSILON, "{series} {found}");
    }
}

#[tokio::test]
async fn every_denial_of_the_gate_is_a_word_that_is_there_from_the_start() {
    let (stage, workspace, editor, _) = open().await;
    let text = metrics(&stage).await;
    // One that the list lacks would come up as a new series.
    let names = |text: &str| -> BTreeSet<String> {
        let lines = text.lines();
        lines
            .filter(|line| line.starts_with("glovebox_gate_denials_total{"))
            .map(|line| line.split('"').nth(1).unwrap().to_owned())
            .collect()
    };
    let at_first = names(&text);
    let mut row = stage.store().workspace(workspace).await.unwrap().unwrap();
    row.quotas.max_concurrent = 0;
    let mut changes = stage.store().begin().await.unwrap();
    changes.update_workspace(&row).await.unwrap();
    changes.commit().await.unwrap();
    let wanted = json!({ "workspace_id": workspace });
    let answer = stage
        .call(&editor, "POST", "/api/v1/sandboxes", &wanted)
        .await;
    assert_eq!(answer.code(), "quota:max_concurrent");
    let text = metrics(&stage).await;
    assert_eq!(names(&text), at_first);
    let denied = r#"glovebox_gate_denials_total{denial="quota:max_concurrent"}"#;
    assert!((value(&text, denied) - 1.0).abs() < f64::EPSILON);
}

#[tokio::test]
async fn no_address_that_somebody_asks_for_becomes_a_label() {
    let (stage, workspace, editor, _) = open().await;
    let planted = "planted-in-an-address";
    for path in [
        format!("/api/v1/{planted}"),
        format!("/{planted}"),
        format!("/api/v1/sandboxes/{planted}"),
        format!("/api/v1/sandboxes?workspace_id={workspace}&cursor={planted}"),
        format!("/api/v1/sandboxes/{workspace}/files/{planted}"),
    ] {
        stage.get(&editor, &path).await;
    }
    let text = metrics(&stage).await;
    assert!(
        text.contains(r#"route="/api/v1/sandboxes/{sandbox}""#),
        "{text}"
    );
    assert!(text.contains(r#"route="other""#), "{text}");
    for secret in [planted, &workspace.to_string(), "editor", "example.com"] {
        assert!(!text.contains(secret), "{secret} is in\n{text}");
    }
}

/// What is served, as rows of the table in the documents: name, kind, labels, meaning.
fn rows(text: &str) -> Vec<String> {
    let mut kinds = BTreeMap::new();
    let mut meanings = Vec::new();
    let mut labels: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            meanings.push(rest.split_once(' ').unwrap());
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            kinds.insert(name, kind);
        } else if let Some((series, rest)) = line.split_once('{') {
            let name = kinds.keys().rfind(|name| series.starts_with(**name));
            let words = rest.split("\",").filter_map(|label| label.split_once('='));
            let words = words.map(|(label, _)| label).filter(|label| *label != "le");
            labels.entry(name.unwrap()).or_default().extend(words);
        }
    }
    meanings
        .into_iter()
        .map(|(name, meaning)| {
            let labels: Vec<_> = labels.get(name).into_iter().flatten().copied().collect();
            format!(
                "| `{name}` | {} | {} | {} |",
                kinds[name],
                labels.join(", "),
                meaning.trim_end_matches('.')
            )
        })
        .collect()
}

#[tokio::test]
async fn the_table_in_the_documents_is_what_is_served() {
    let (stage, ..) = open().await;
    stage.get(&Who::Nobody, "/healthz").await;
    let served = rows(&metrics(&stage).await);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/metrics.md");
    let document = fs_err::read_to_string(path).unwrap_or_default();
    let written: Vec<_> = document
        .lines()
        .filter(|line| line.starts_with("| `glovebox_"))
        .collect();
    assert_eq!(
        served,
        written,
        "the rows of docs/reference/metrics.md should be\n{}",
        served.join("\n")
    );
}

#[tokio::test]
async fn they_have_an_address_of_their_own_and_none_unless_it_is_set() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    config.metrics_listen = Some(([127, 0, 0, 1], 0).into());
    let server = Server::open(config).await.unwrap();
    let main = server.app().config().listen;
    let own = server.app().config().metrics_listen.unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let ended = tokio::spawn(server.run(async move {
        let _ = stopped.await;
    }));
    let text = read(own, "/metrics").await.text();
    // Its gateway's program is not there: that is told, and keeps nothing else from being told.
    assert!(value(&text, "glovebox_gateway_up").abs() < f64::EPSILON);
    assert!((value(&text, "glovebox_database_up") - 1.0).abs() < f64::EPSILON);
    assert!(value(&text, "glovebox_worker_last_sweep_age_seconds") >= 0.0);
    assert_eq!(read(own, "/api/v1/session").await.status, 404);
    let at_main = read(main, "/metrics").await.text();
    assert!(!at_main.contains("glovebox_"), "{at_main}");
    stop.send(()).unwrap();
    ended.await.unwrap().unwrap();
    assert!(Stage::start().await.app.config().metrics_listen.is_none());
}
