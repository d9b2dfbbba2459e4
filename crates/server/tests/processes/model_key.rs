//! What a server writes while a model is used and refuses: nowhere does its key stand readable.

use std::path::Path;

use glovebox_testkit::ScriptedModel;
use serde_json::{Value, json};

use crate::process::Place;

const KEY: &str = "sk-planted-process-key-0123456789";

/// Files below a folder that have the key in them.
fn with_key(folder: &Path, found: &mut Vec<String>) {
    for entry in fs_err::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            with_key(&path, found);
        } else if kind.is_file() {
            let bytes = fs_err::read(&path).unwrap();
            if bytes.windows(KEY.len()).any(|part| part == KEY.as_bytes()) {
                found.push(path.display().to_string());
            }
        }
    }
}

#[tokio::test]
async fn a_models_key_is_in_no_log_and_in_no_file_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place {
        folder: folder.path().to_owned(),
        database: None,
    };
    let server = place.serve(&["--log", "trace"]);
    let (ada, workspace) = server.begin().await;
    // It takes the key, and sends it back in every form that a careless endpoint has.
    let careless = ScriptedModel::play(json!({ "api_key": KEY, "rules": [
        { "times": 1, "then": { "text": "Hello." } },
        { "times": 1, "then": { "status": 403, "body": format!("{{\"error\":\"{KEY}\"}}") } },
        { "times": 1, "then": { "body":
            format!("data: {{\"error\": {{\"message\": \"no {KEY}\"}}}}\n\n") } },
        { "times": 1, "then": { "body": format!("data: {{\"{KEY}\n\n") } },
        { "then": { "status": 500, "headers": { "x-key": KEY },
            "body": format!("<html>{KEY}</html>") } }
    ] }))
    .await
    .unwrap();
    let wanted = json!({ "name": "Careless", "base_url": careless.base_url(), "model": "m",
        "api_key": KEY });
    let visitor = server.visitor;
    let made = visitor.call(&ada, "POST", "/api/v1/admin/models", &wanted).await;
    let mut told = made.text();
    let one = format!("/api/v1/admin/models/{}", made.ok()["id"].as_str().unwrap());
    let thread = visitor
        .call(&ada, "POST", "/api/v1/threads", &json!({ "workspace_id": workspace }))
        .await
        .ok();
    let thread = format!("/api/v1/threads/{}", thread["id"].as_str().unwrap());
    for number in 0..5 {
        let body = json!({ "text": format!("message {number}"), "kind": "text", "attachments": [] });
        let sent = visitor.call(&ada, "POST", &format!("{thread}/messages"), &body).await;
        told += &sent.ok().to_string();
        // The thread shows no running reply once it is over.
        loop {
            let seen = visitor.get(&ada, &thread).await.ok();
            if seen["running_reply"] == Value::Null {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
    told += &visitor.call(&ada, "POST", &format!("{one}/test"), &json!({})).await.text();
    let asked = careless.seen();
    assert!(asked.len() > 7, "{}", asked.len());
    assert!(asked.iter().all(|seen| seen.headers["authorization"].contains(KEY)));
    for path in ["/api/v1/admin/models", "/api/v1/admin/audit", "/api/v1/threads"] {
        let path = format!("{path}?workspace_id={workspace}");
        let path = if path.contains("admin") { path.split('?').next().unwrap().to_owned() } else { path };
        told += &visitor.get(&ada, &path).await.text();
    }
    assert!(!told.contains(KEY), "{told}");
    let log = fs_err::read_to_string(folder.path().join("server.log")).unwrap();
    assert!(log.contains("a model gave no answer"), "the log tells of it: {log}");
    let mut found = Vec::new();
    with_key(folder.path(), &mut found);
    assert!(found.is_empty(), "the key stands readable in {found:?}");
}
