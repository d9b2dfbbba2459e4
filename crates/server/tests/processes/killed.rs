//! `kill -9` of a server, a gateway or a worker in the middle of its work.

use std::process::Command;

use glovebox_testkit::repository;
use serde_json::Value;

use crate::process::{Server, on_sqlite, until, value_of};
use crate::visitor::types;
use crate::wire::{Who, send};

/// Runs until it is interrupted, and shows that it does.
const ENDLESS: &str = "import time
open('begun.txt', 'w').write('x')
while True: time.sleep(1)";

#[tokio::test]
async fn a_server_that_is_killed_leaves_sandboxes_whole_and_its_executions_told() {
    let folder = tempfile::tempdir().unwrap();
    let place = on_sqlite(folder.path());
    let server = place.serve(&[]);
    let (ada, workspace) = server.begin().await;
    let sandbox = server.sandbox(&ada, &workspace).await;
    let events = server.visitor.run(&ada, &sandbox, "kept = 7; kept").await;
    assert_eq!(value_of(&events), "7");
    let run = server
        .begin_code(&ada, &sandbox, ENDLESS, "begun.txt")
        .await;
    server.process.kill();

    let server = place.serve(&[]);
    // The stream ends when the execution has.
    let events = server.visitor.events(&ada, &format!("{run}/events")).await;
    let last = events.last().unwrap();
    assert_eq!(last["type"], "failed", "{events:?}");
    let said = last["data"]["message"].as_str().unwrap();
    assert!(
        said.contains("the server that ran this was ended"),
        "{said}"
    );
    assert_eq!(server.value(&ada, &sandbox, "kept").await, "7");
    server.end_sandboxes(&ada, &workspace).await;
}

#[tokio::test]
async fn a_gateway_that_is_killed_is_started_again_and_finds_its_sandboxes() {
    let folder = tempfile::tempdir().unwrap();
    let server = on_sqlite(folder.path()).serve(&[]);
    let (ada, workspace) = server.begin().await;
    let sandbox = server.sandbox(&ada, &workspace).await;
    let events = server.visitor.run(&ada, &sandbox, "kept = 7; kept").await;
    assert_eq!(value_of(&events), "7");
    let run = server
        .begin_code(&ada, &sandbox, ENDLESS, "begun.txt")
        .await;
    server.process.kill_child("glovebox-gateway");
    let events = server.visitor.events(&ada, &format!("{run}/events")).await;
    let told = types(&events);
    assert!(
        matches!(told.last(), Some(&("failed" | "execution_ended"))),
        "{events:?}"
    );
    assert_eq!(server.value(&ada, &sandbox, "kept").await, "7");
    server.end_sandboxes(&ada, &workspace).await;
}

#[tokio::test]
async fn a_worker_that_is_killed_is_replaced_and_no_limit_is_passed() {
    let folder = tempfile::tempdir().unwrap();
    let place = on_sqlite(folder.path());
    let server = place.serve(&["--queues", "none"]);
    let (ada, workspace) = server.begin().await;
    let [short, long] = [
        server.sandbox(&ada, &workspace).await,
        server.sandbox(&ada, &workspace).await,
    ];
    let worker = place.work();
    until(async || sweeps(&place.folder) > 0).await;
    worker.kill();
    bring_deadline_forward(&place.folder, &short);
    let _second = place.work();
    let path = format!("/api/v1/sandboxes/{short}");
    let mut seen = Value::Null;
    until(async || {
        seen = server.visitor.get(&ada, &path).await.ok();
        seen["state"] == "ended"
    })
    .await;
    assert_eq!(seen["ended_why"], "hard_limit", "{seen}");
    assert_eq!(server.value(&ada, &long, "1 + 1").await, "2");
    server.end_sandboxes(&ada, &workspace).await;
}

#[tokio::test]
async fn a_worker_that_is_killed_in_a_preview_leaves_it_to_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let place = on_sqlite(folder.path());
    let server = place.serve(&["--queues", "none"]);
    let (ada, workspace) = server.begin().await;
    let path = add_deck(&server, &ada, &workspace).await;
    let state = async || server.visitor.get(&ada, &path).await.ok()["state"].clone();
    assert_eq!(state().await, "waiting");
    let worker = place.work();
    until(async || state().await == "making").await;
    worker.kill();
    assert_eq!(state().await, "making");
    // Its time is over: waiting for it would take a while.
    let lost = "UPDATE tasks SET taken_until = 1 WHERE queue = 'preview' AND kind = 'make'";
    assert_eq!(sql(&place.folder, lost), "1");
    let _second = place.work();
    until(async || state().await == "ready").await;
    let live = "SELECT id FROM leases WHERE state <> 'ended'";
    until(async || sql(&place.folder, live).is_empty()).await;
    assert_eq!(sql(&place.folder, "SELECT count(*) FROM leases"), "2");
}

#[tokio::test]
async fn the_sandbox_of_a_preview_ends_though_nobody_takes_its_killed_workers_place() {
    let folder = tempfile::tempdir().unwrap();
    let place = on_sqlite(folder.path());
    let server = place.serve(&["--queues", "sandbox"]);
    let (ada, workspace) = server.begin().await;
    let path = add_deck(&server, &ada, &workspace).await;
    let state = async || server.visitor.get(&ada, &path).await.ok()["state"].clone();
    assert_eq!(state().await, "waiting");
    let worker = place.work_with(&["--queues", "preview"]);
    until(async || state().await == "making").await;
    worker.kill();
    // Nobody has held on to it for a while: waiting for that would take half a minute.
    let left = "UPDATE leases SET active_at = 1 WHERE state <> 'ended' AND purpose = 'preview'";
    assert_eq!(sql(&place.folder, left), "1");
    let live = "SELECT id FROM leases WHERE state <> 'ended'";
    until(async || sql(&place.folder, live).is_empty()).await;
    let why = sql(&place.folder, "SELECT ended_detail FROM leases");
    assert_eq!(why, "the worker that used it was ended");
}

/// Adds a deck to the knowledge of a workspace; gives the path of its preview.
async fn add_deck(server: &Server, who: &Who, workspace: &str) -> String {
    let deck = repository().join("crates/cli/tests/real_files/data/deck.pptx");
    let path = format!("/api/v1/knowledge?workspace_id={workspace}&name=deck.pptx");
    let headers = [("content-type", "application/octet-stream")];
    let body = fs_err::read(deck).unwrap().into();
    let added = send(server.visitor.address, who, "POST", &path, &headers, body).await;
    format!(
        "/api/v1/knowledge/{}/preview",
        added.ok()["id"].as_str().unwrap()
    )
}

/// Lets a lease reach its hard limit now: waiting for it would take a minute.
fn bring_deadline_forward(folder: &std::path::Path, sandbox: &str) {
    let changed = sql(
        folder,
        &format!("UPDATE leases SET hard_deadline = 1 WHERE id = '{sandbox}'"),
    );
    assert_eq!(changed, "1");
}

/// How often a worker has taken the task to look everything through, since it last succeeded.
fn sweeps(folder: &std::path::Path) -> u32 {
    let found = sql(folder, "SELECT 1 FROM tasks WHERE queue = 'sandbox'");
    u32::from(!found.is_empty())
}

/// What a statement on the database of a running server gives, or how many rows it changed.
fn sql(folder: &std::path::Path, statement: &str) -> String {
    const PROGRAM: &str = "import sqlite3, sys
with sqlite3.connect(sys.argv[1], timeout=30) as database:
    done = database.execute(sys.argv[2])
    row = done.fetchone()
    print(row[0] if row else done.rowcount if done.rowcount > 0 else '', end='')";
    let database = folder.join("glovebox.db");
    let ran = Command::new("python3")
        .args(["-c", PROGRAM])
        .arg(database)
        .arg(statement)
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{complaint}");
    String::from_utf8(ran.stdout).unwrap()
}
