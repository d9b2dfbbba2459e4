//! Previews while there is no gateway, and what becomes of the sandboxes that they are made in.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use glovebox_protocol::ids::SandboxId;
use glovebox_store::LeaseState;
use glovebox_testkit::{program, repository};
use serde_json::{Value, json};

use crate::embedded::{Running, begun, start, told};
use crate::wire::{Who, send};

/// How long something may take that is bound to come.
const PATIENCE: Duration = Duration::from_secs(120);

/// Adds a file to the knowledge of a workspace; gives the path of its preview.
async fn added(server: &Running, who: &Who, workspace: &str, name: &str, bytes: &[u8]) -> String {
    let path = format!("/api/v1/knowledge?workspace_id={workspace}&name={name}");
    let headers = [("content-type", "application/octet-stream")];
    let body = bytes.to_vec().into();
    let added = send(server.address, who, "POST", &path, &headers, body).await;
    let id = added.ok()["id"].as_str().unwrap().to_owned();
    format!("/api/v1/knowledge/{id}/preview")
}

/// Asks as a page asks, until something is so.
async fn until(server: &Running, who: &Who, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + PATIENCE;
    let mut looks = tokio::time::interval(Duration::from_millis(100));
    loop {
        looks.tick().await;
        let view = server.get(who, path).await.ok();
        if is_so(&view) {
            return view;
        }
        assert!(Instant::now() < deadline, "{view}");
    }
}

#[tokio::test]
async fn a_preview_waits_for_a_gateway_and_goes_on_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path()).await;
    let (ada, workspace) = server.begin().await;
    server.stop().await;

    let place = folder.path().join("a-gateway");
    let server = begun(folder.path(), |config| {
        config.gateway.program = place.clone();
    })
    .await;
    let path = added(&server, &ada, &workspace, "a.csv", b"a,b\n1,2\n").await;
    let id = server.get(&ada, &path).await.ok()["id"].clone();
    let id = id.as_str().unwrap();
    // As often as it was given up after, and once more.
    let mut put_off = BTreeSet::new();
    let deadline = Instant::now() + PATIENCE;
    let mut looks = tokio::time::interval(Duration::from_millis(100));
    while put_off.len() < 4 {
        looks.tick().await;
        assert!(Instant::now() < deadline, "{put_off:?}");
        let standing = server.app.store().task_standing("preview", "make", id);
        let standing = standing.await.unwrap().expect("it is not given up");
        if standing.last_error.is_some() && !standing.is_taken {
            put_off.insert(standing.due_at);
        }
    }
    let says_why = |view: &Value| view["message"].is_string();
    let waiting = until(&server, &ada, &path, says_why).await;
    assert_eq!(
        (&waiting["state"], &waiting["message"], &waiting["fix"]),
        (
            &json!("waiting"),
            &json!("it waits: the runtime of sandboxes does not answer"),
            &json!("it is tried again by itself in a moment")
        )
    );
    // Nobody asks for anything but whether it is there.
    fs_err::os::unix::fs::symlink(program("glovebox-gateway").unwrap(), &place).unwrap();
    let is_over = |view: &Value| matches!(view["state"].as_str(), Some("ready" | "failed"));
    let view = until(&server, &ada, &path, is_over).await;
    assert_eq!(view["state"], "ready", "{view}");
    server.stop().await;
}

/// The sandboxes of previews, as a system admin sees them.
async fn listed(server: &Running, admin: &Who) -> Vec<Value> {
    let all = server.get(admin, "/api/v1/admin/sandboxes").await.ok();
    let all = all["items"].as_array().unwrap().iter();
    let of_previews = all.filter(|one| one["purpose"] == "preview");
    of_previews.cloned().collect()
}

/// The sandbox of the preview that is being made, another one than `before`.
async fn makes_in(server: &Running, admin: &Who, before: Option<&str>) -> String {
    let deadline = Instant::now() + PATIENCE;
    let mut looks = tokio::time::interval(Duration::from_millis(100));
    loop {
        looks.tick().await;
        let all = listed(server, admin).await;
        if let Some(one) = all.iter().find(|one| one["state"] == "ready") {
            let id = one["id"].as_str().unwrap();
            if Some(id) != before {
                assert_eq!(one["user_email"], Value::Null, "{one}");
                assert_eq!(one["workspace_name"], "Main");
                return id.to_owned();
            }
        }
        assert!(Instant::now() < deadline, "no sandbox of a preview");
    }
}

#[tokio::test]
async fn the_sandboxes_of_previews_are_seen_and_end_with_their_worker() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path()).await;
    let (ada, workspace) = server.begin().await;
    let deck = repository().join("crates/cli/tests/real_files/data/deck.pptx");
    let bytes = fs_err::read(deck).unwrap();
    let path = added(&server, &ada, &workspace, "deck.pptx", &bytes).await;
    server.get(&ada, &path).await.ok();
    let first = makes_in(&server, &ada, None).await;
    let one = format!("/api/v1/admin/sandboxes/{first}");
    let ended = server.call(&ada, "DELETE", &one, &json!({})).await.ok();
    assert_eq!(ended["ended_why"], "admin", "{ended}");
    // It is begun anew.
    let second = makes_in(&server, &ada, Some(&first)).await;
    server.stop().await;

    // Nobody looks after sandboxes or makes previews: what is gone went before.
    let server = told(folder.path(), |config| config.queues = Vec::new()).await;
    let id: SandboxId = second.parse().unwrap();
    let lease = server.app.store().lease(id).await.unwrap().unwrap();
    assert_eq!(lease.state, LeaseState::Ended, "{lease:?}");
    let detail = lease.ended_detail.as_deref();
    assert_eq!(detail, Some("the worker that made it was told to stop"));
    let there = server.app.gateway().sandboxes(None).await.unwrap();
    assert!(there.items.iter().all(|one| one.id != id), "{there:?}");
    assert!(listed(&server, &ada).await.is_empty());
    assert_eq!(server.get(&ada, &path).await.ok()["state"], "waiting");
    server.stop().await;

    // Whoever is next makes it at once.
    let server = start(folder.path()).await;
    let is_over = |view: &Value| matches!(view["state"].as_str(), Some("ready" | "failed"));
    let view = until(&server, &ada, &path, is_over).await;
    assert_eq!(view["state"], "ready", "{view}");
    server.stop().await;
}
