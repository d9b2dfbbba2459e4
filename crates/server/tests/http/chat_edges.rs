//! Chat at its edges: senders who go away, many at once, files that cannot be deleted, sandboxes
//! that are still being made, and what is told to whoever reads a shared thread.

use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use futures_util::future::join_all;
use futures_util::poll;
use glovebox_protocol::ids::ThreadId;
use glovebox_protocol::thread::MessageKind;
use glovebox_server::app::messages::Sending;
use glovebox_store::{KeyScope, LeaseState, Role};
use serde_json::{Value, json};

use crate::stage::Stage;
use crate::talk::{Talk, code_of_failure, find};
use crate::visitor::Visitor;
use crate::wire::Who;

async fn begin(stage: &Stage, who: &Who, workspace: &str, is_shared: bool) -> Talk {
    let visitor = Visitor {
        address: stage.address,
    };
    Talk::begin(visitor, who, workspace, is_shared).await
}

fn thread(talk: &Talk) -> ThreadId {
    talk.id.parse().unwrap()
}

#[tokio::test]
async fn who_reads_a_shared_thread_learns_nothing_of_private_ones() {
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    stage.open(workspace).await;
    let id = workspace.to_string();
    let (_, ada) = stage.member(workspace, "ada", Role::Admin).await;
    let (_, viewer) = stage.member(workspace, "viewer", Role::Viewer).await;
    let mut private = Vec::new();
    for _ in 0..2 {
        let talk = begin(&stage, &ada, &id, false).await;
        talk.run("# Ben is to be let go\n1").await;
        private.push(talk.id);
    }
    let shared = begin(&stage, &ada, &id, true).await;
    let events = shared.run("1").await;
    assert_eq!(code_of_failure(&events), "quota:max_concurrent");
    let seen = shared
        .of(&viewer)
        .listen(0)
        .await
        .until("reply_ended")
        .await;
    let told = json!(seen).to_string();
    assert!(!told.contains("let go"), "{told}");
    assert!(!private.iter().any(|id| told.contains(id)), "{told}");
    // What the console goes by: it asks for one's own sandboxes itself.
    let details = &find(&seen, "reply_ended")["error"]["details"];
    let expected = json!({ "denial": "quota:max_concurrent", "limit": 2, "used": 2 });
    assert_eq!(details, &expected);
    assert_eq!(find(&seen, "step_ended")["code"], "quota:max_concurrent");
}

#[tokio::test]
async fn nobodys_address_is_told_with_what_keeps_code_from_running() {
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    stage.open(workspace).await;
    let id = workspace.to_string();
    let (_, ada) = stage.member(workspace, "ada", Role::Editor).await;
    let (_, root) = stage.user("root", true).await;
    let talk = begin(&stage, &ada, &id, true).await;
    talk.run("1").await;
    for (who, path) in [
        (&ada, "/api/v1/sandboxes"),
        (&root, "/api/v1/admin/sandboxes"),
    ] {
        let lease = stage.store().lease_of_thread(thread(&talk)).await.unwrap();
        let path = format!("{path}/{}", lease.unwrap().id);
        stage.call(who, "DELETE", &path, &json!({})).await.ok();
        let events = talk.run("2").await;
        assert_eq!(find(&events, "notice")["code"], "sandbox_replaced");
    }
    let scopes = [KeyScope::ThreadsRead, KeyScope::ThreadsWrite];
    let key = stage.key(workspace, None, &scopes).await;
    let refused = talk.of(&key).run("3").await;
    assert_eq!(code_of_failure(&refused), "role");
    let all = talk.listen(0).await;
    let told = json!(until_last(&talk, all).await).to_string();
    assert!(!told.contains("@example.com"), "{told}");
}

/// All events of a thread in which nothing happens.
async fn until_last(talk: &Talk, mut listening: crate::wire::Listening) -> Vec<Value> {
    let last = talk.show().await["last_seq"].clone();
    let mut events: Vec<Value> = Vec::new();
    while events.last().is_none_or(|event| event["seq"] != last) {
        events.push(listening.next().await.unwrap());
    }
    events
}

#[tokio::test]
async fn a_sandbox_that_is_being_made_is_waited_for() {
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    stage.open(workspace).await;
    let (_, ada) = stage.member(workspace, "ada", Role::Editor).await;
    let talk = begin(&stage, &ada, &workspace.to_string(), false).await;
    talk.run("1").await;
    let store = stage.store();
    let made = store.lease_of_thread(thread(&talk)).await.unwrap().unwrap();
    // As a reply leaves it that was stopped before its sandbox was there.
    let (ready, starting) = (LeaseState::Ready, LeaseState::Starting);
    assert!(store.move_lease(made.id, ready, starting).await.unwrap());
    talk.run("2").await;
    let all = store.leases_of_thread(thread(&talk)).await.unwrap();
    let found: Vec<_> = all.iter().map(|lease| (lease.id, lease.state)).collect();
    assert_eq!(found, [(made.id, ready)]);
    let meters = store.meters(workspace).await.unwrap();
    assert_eq!(meters.started_last_hour, 1);
}

#[tokio::test]
async fn a_message_is_answered_also_where_its_sender_goes_away() {
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    let (user, ada) = stage.member(workspace, "ada", Role::Editor).await;
    let talk = begin(&stage, &ada, &workspace.to_string(), false).await;
    let access = stage.store().access_of_user(user, workspace).await;
    let access = access.unwrap().unwrap();
    let sending = Sending {
        kind: MessageKind::Text,
        text: "Is anybody there?".into(),
        attachments: Vec::new(),
        idempotency_key: None,
    };
    let mut request = Box::pin(stage.app.send_message(&access, thread(&talk), sending));
    // Dropped, as a request is with its connection, as soon as others see the message.
    while talk.show().await["last_seq"] == 0 && poll!(&mut request).is_pending() {}
    drop(request);
    let ended = talk.listen(0).await;
    let within = tokio::time::timeout(Duration::from_secs(20), until_ended(ended)).await;
    let events = within.expect("somebody drives the reply");
    assert_eq!(code_of_failure(&events), "no_model");
}

async fn until_ended(mut listening: crate::wire::Listening) -> Vec<Value> {
    listening.until("reply_ended").await
}

/// Where the bytes of a file lie.
fn object(stage: &Stage, kind: &str, id: &str) -> PathBuf {
    let shard = &id[id.len() - 2..];
    let path = stage.folder().join("objects").join(kind).join(shard);
    let path = path.join(id);
    assert!(path.is_file());
    path
}

/// Puts in the place of a file what no file's deletion takes away.
fn put_in_the_way(file: &Path) {
    fs_err::remove_file(file).unwrap();
    fs_err::create_dir_all(file.join("in the way")).unwrap();
}

#[tokio::test]
async fn a_file_that_cannot_be_deleted_stays_known_until_it_can() {
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    let (_, ada) = stage.member(workspace, "ada", Role::Editor).await;
    let talk = begin(&stage, &ada, &workspace.to_string(), false).await;
    for kind in ["attachments", "knowledge"] {
        let added = talk.try_upload(kind, "a.txt", b"hello").await.json();
        let id = added["id"].as_str().unwrap();
        let (path, bytes) = (format!("/api/v1/{kind}/{id}"), object(&stage, kind, id));
        put_in_the_way(&bytes);
        let refused = stage.call(&ada, "DELETE", &path, &json!({})).await;
        assert_eq!((refused.status, refused.code()), (500, "internal".into()));
        let there = format!("{path}/content");
        assert_ne!(stage.get(&ada, &there).await.status, 404, "{kind}");
        fs_err::remove_dir_all(&bytes).unwrap();
        let deleted = stage.call(&ada, "DELETE", &path, &json!({})).await;
        assert_eq!(deleted.status, 204, "{}", deleted.text());
        assert_eq!(stage.get(&ada, &there).await.status, 404, "{kind}");
    }

    // What was never sent is tried again, and keeps nothing else from being thrown away.
    let (stuck, goes) = (
        talk.upload("stuck", b"1").await,
        talk.upload("goes", b"1").await,
    );
    let bytes = object(&stage, "attachments", &stuck);
    put_in_the_way(&bytes);
    let later = Utc::now() + TimeDelta::hours(1);
    stage.app.throw_away_unsent(later).await.unwrap();
    let left = stage.store().unsent_before(later, 0, 9).await.unwrap();
    let left: Vec<_> = left.iter().map(|file| file.id.to_string()).collect();
    assert_eq!(left, [stuck]);
    let path = format!("/api/v1/attachments/{goes}");
    assert_eq!(stage.get(&ada, &path).await.status, 404);
    fs_err::remove_dir_all(&bytes).unwrap();
    stage.app.throw_away_unsent(later).await.unwrap();
    assert_eq!(files_below(&stage.folder().join("objects")), 0);
}

#[tokio::test]
async fn a_thread_that_cannot_be_taken_away_keeps_no_other() {
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    let (_, ada) = stage.member(workspace, "ada", Role::Editor).await;
    let mut threads = Vec::new();
    for n in 0..22 {
        let talk = begin(&stage, &ada, &workspace.to_string(), false).await;
        let file = talk.upload("a.txt", b"hello").await;
        talk.say("text", "x", &[&file]).await;
        let object = object(&stage, "attachments", &file);
        if n < 21 {
            put_in_the_way(&object);
        }
        let path = talk.path("");
        assert_eq!(
            stage.call(&ada, "DELETE", &path, &json!({})).await.status,
            204
        );
        threads.push((thread(&talk), object));
    }
    let later = Utc::now() + TimeDelta::hours(1);
    stage.app.purge_threads(later).await.unwrap();
    let left = stage.store().threads_deleted_before(later, 0, 99).await;
    let stuck: Vec<_> = threads[..21].iter().map(|(id, _)| *id).collect();
    assert_eq!(left.unwrap(), stuck);
    assert!(!threads[21].1.exists());
    // Once nothing is in the way any more they go, too.
    for (_, object) in &threads[..21] {
        fs_err::remove_dir_all(object).unwrap();
    }
    for _ in 0..2 {
        stage.app.purge_threads(later).await.unwrap();
    }
    let left = stage.store().threads_deleted_before(later, 0, 99).await;
    assert!(left.unwrap().is_empty());
}

#[tokio::test]
async fn many_uploads_at_once_keep_to_the_quota_of_the_workspace() {
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    let (_, ada) = stage.member(workspace, "ada", Role::Editor).await;
    let (_, ben) = stage.member(workspace, "ben", Role::Editor).await;
    let talk = begin(&stage, &ada, &workspace.to_string(), false).await;
    let of_ben = talk.of(&ben);
    let mut row = stage.store().workspace(workspace).await.unwrap().unwrap();
    row.quotas.max_uploaded_bytes = 100;
    let mut changes = stage.store().begin().await.unwrap();
    changes.update_workspace(&row).await.unwrap();
    changes.commit().await.unwrap();
    let names: Vec<_> = (0..12).map(|n| format!("{n}.txt")).collect();
    let uploads = names.iter().enumerate().map(|(n, name)| {
        let who = if n % 2 == 0 { &talk } else { &of_ben };
        let below = if n % 3 == 0 {
            "knowledge"
        } else {
            "attachments"
        };
        who.try_upload(below, name, b"0123456789abcdefghij")
    });
    let answers = join_all(uploads).await;
    let kept = answers.iter().filter(|answer| answer.status == 201).count();
    assert_eq!(kept, 5);
    let refused = answers.iter().filter(|answer| answer.status != 201);
    for answer in refused {
        let expected = (429, "quota:max_uploaded_bytes".into());
        assert_eq!((answer.status, answer.code()), expected);
    }
    let meters = stage.store().meters(workspace).await.unwrap();
    assert_eq!(meters.uploaded_bytes, 100);
    // Nothing is left of what was refused, and what is deleted makes room.
    assert_eq!(files_below(&stage.folder().join("objects")), 5);
    let listed = format!("/api/v1/knowledge?workspace_id={workspace}");
    let listed = stage.get(&ada, &listed).await.ok();
    let known = listed["items"].as_array().unwrap().first();
    let path = match known {
        Some(file) => format!("/api/v1/knowledge/{}", file["id"].as_str().unwrap()),
        None => {
            let own = answers
                .iter()
                .step_by(2)
                .find(|answer| answer.status == 201);
            let own = own.unwrap().json();
            format!("/api/v1/attachments/{}", own["id"].as_str().unwrap())
        }
    };
    assert_eq!(
        stage.call(&ada, "DELETE", &path, &json!({})).await.status,
        204
    );
    let again = talk
        .try_upload("attachments", "more.txt", b"0123456789")
        .await;
    assert_eq!(again.status, 201);
}

fn files_below(folder: &std::path::Path) -> usize {
    let entries = fs_err::read_dir(folder).unwrap().map(Result::unwrap);
    entries
        .map(|entry| match entry.file_type().unwrap().is_dir() {
            true => files_below(&entry.path()),
            false => 1,
        })
        .sum()
}

#[tokio::test]
async fn many_uploads_at_once_keep_to_what_may_wait_to_be_sent() {
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    let profile = stage.open(workspace).await;
    let mut row = stage.store().profile(profile).await.unwrap().unwrap();
    (
        row.settings.max_input_file_bytes,
        row.settings.max_input_total_bytes,
    ) = (20, 50);
    let mut changes = stage.store().begin().await.unwrap();
    changes.update_profile(&row).await.unwrap();
    changes.commit().await.unwrap();
    let (_, ada) = stage.member(workspace, "ada", Role::Editor).await;
    let talk = begin(&stage, &ada, &workspace.to_string(), false).await;
    let uploads = (0..12).map(|_| talk.try_upload("attachments", "a", b"0123456789abcdefghij"));
    let answers = join_all(uploads).await;
    let kept = answers.iter().filter(|answer| answer.status == 201).count();
    assert_eq!(kept, 2);
}
