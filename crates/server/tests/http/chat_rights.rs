//! Who may do what in chat, what files may be like, and what is said when code may not run.

use chrono::{TimeDelta, Utc};
use glovebox_protocol::ids::{ArtifactId, AttachmentId, ExecutionId, ProfileId, SandboxId};
use glovebox_store::{KeyScope, NewArtifact, NewExecution, Role};
use serde_json::{Value, json};

use crate::stage::Stage;
use crate::talk::{Talk, code_of_failure, find};
use crate::visitor::{Visitor, types};
use crate::wire::{Who, send};

/// The SHA-256 of `saved`.
const SAVED: &str = "d81c55f49c5bb0d36bc11e3966ec4efab66f8dfefbbc1761161ca9d230e5466a";

async fn begin(stage: &Stage, who: &Who, workspace: &str, is_shared: bool) -> Talk {
    let visitor = Visitor {
        address: stage.address,
    };
    Talk::begin(visitor, who, workspace, is_shared).await
}

/// Everything that can be asked of a thread with a file, an artifact and a sandbox.
struct Everything {
    reads: Vec<String>,
    writes: Vec<(&'static str, String, Value)>,
}

/// Fills a thread as far as that goes without running code.
async fn furnish(stage: &Stage, talk: &Talk) -> Everything {
    let file = talk.upload("a.txt", b"hello").await;
    let events = talk.say("text", "Look at it", &[&file]).await;
    assert_eq!(code_of_failure(&events), "no_model");
    let message = find(&events, "message_sent")["message"].as_str().unwrap();
    let thread = talk.id.parse().unwrap();
    let found = stage.store().thread(thread).await.unwrap().unwrap();
    let access = stage
        .store()
        .access_of_user(found.user_id.unwrap(), found.workspace_id)
        .await
        .unwrap()
        .unwrap();
    let made = stage
        .app
        .make_sandbox(&access, None, SandboxId::new(), Some(thread));
    let lease = made.await.unwrap();
    let execution = ExecutionId::new();
    let artifacts = [ArtifactId::new(), ArtifactId::new()];
    let mut changes = stage.store().begin().await.unwrap();
    changes
        .place_execution(&NewExecution {
            id: execution,
            lease_id: lease.id,
            workspace_id: found.workspace_id,
            idempotency_key: None,
            request_hash: String::new(),
        })
        .await
        .unwrap();
    for id in artifacts {
        let new = NewArtifact {
            id,
            workspace_id: found.workspace_id,
            lease_id: lease.id,
            execution_id: execution,
            name: "out.txt".into(),
            bytes: 5,
            sha256: SAVED.into(),
            media_type: "text/plain".into(),
        };
        let mut upload = stage.app.objects().create(id).await.unwrap();
        upload.write(b"saved").await.unwrap();
        upload.finish().await.unwrap();
        changes.create_artifact(&new).await.unwrap();
    }
    changes.commit().await.unwrap();
    stage
        .store()
        .finish_execution(execution, &[])
        .await
        .unwrap();
    let artifact = format!("/api/v1/artifacts/{}", artifacts[0]);
    Everything {
        reads: vec![
            talk.path(""),
            format!("/api/v1/attachments/{file}"),
            format!("/api/v1/attachments/{file}/content"),
            artifact.clone(),
            format!("{artifact}/content"),
            format!("{artifact}/versions"),
            talk.path("/history"),
        ],
        writes: vec![
            ("POST", talk.path("/stop"), json!({})),
            (
                "POST",
                talk.path("/messages"),
                json!({ "kind": "text", "text": "x" }),
            ),
            (
                "POST",
                talk.path(&format!("/messages/{message}/retry")),
                json!({}),
            ),
            ("POST", format!("{artifact}/restore"), json!({})),
        ],
    }
}

/// What somebody sees of a thread: of reads and of writes the statuses that came.
async fn seen(stage: &Stage, who: &Who, all: &Everything) -> (Vec<u16>, Vec<u16>) {
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    for path in &all.reads {
        reads.push(stage.get(who, path).await.status);
    }
    for (method, path, body) in &all.writes {
        let answer = stage.call(who, method, path, body).await;
        writes.push(answer.status);
        // One reply at a time: that of one write is over before the next.
        settle(stage, &all.reads[0]).await;
    }
    (reads, writes)
}

/// Waits until nothing runs in a thread.
async fn settle(stage: &Stage, thread: &str) {
    let id = thread.rsplit('/').next().unwrap().parse().unwrap();
    while let Some(thread) = stage.store().thread(id).await.unwrap()
        && thread.running_reply.is_some()
    {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_private_thread_is_there_for_nobody_else() {
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    stage.open(workspace).await;
    let id = workspace.to_string();
    let (ada_id, ada) = stage.member(workspace, "ada", Role::Editor).await;
    let talk = begin(&stage, &ada, &id, false).await;
    let all = furnish(&stage, &talk).await;
    let (_, owner) = stage.member(workspace, "owner", Role::Owner).await;
    let (_, system_admin) = stage.user("system", true).await;
    let elsewhere = stage.workspace("Elsewhere").await;
    let (_, stranger) = stage.member(elsewhere, "stranger", Role::Owner).await;
    let service = stage.key(workspace, None, KeyScope::ALL).await;
    for who in [&owner, &system_admin, &stranger, &service] {
        let events = stage.get(who, &talk.path("/events")).await;
        assert_eq!(events.status, 404);
        let (reads, writes) = seen(&stage, who, &all).await;
        assert_eq!(reads, [404; 7]);
        assert_eq!(writes, [404; 4]);
        let change = json!({ "version": 1, "is_shared": true });
        let changed = stage.call(who, "PATCH", &talk.path(""), &change).await;
        let deleted = stage.call(who, "DELETE", &talk.path(""), &json!({})).await;
        assert_eq!((changed.status, deleted.status), (404, 404));
    }
    for path in ["threads", "artifacts"] {
        let path = format!("/api/v1/{path}?workspace_id={id}");
        let listed = stage.get(&owner, &path).await.ok();
        assert_eq!(listed["items"], json!([]));
    }
    // Its owner does all of it, with a key of theirs too.
    let key = stage.key(workspace, Some(ada_id), KeyScope::ALL).await;
    for who in [&ada, &key] {
        let (reads, writes) = seen(&stage, who, &all).await;
        assert_eq!(reads, [200; 7]);
        assert_eq!(writes[..3], [202, 202, 409], "{writes:?}");
    }
}

#[tokio::test]
async fn a_shared_thread_is_read_by_members_and_written_by_editors() {
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    stage.open(workspace).await;
    let id = workspace.to_string();
    let (_, ada) = stage.member(workspace, "ada", Role::Editor).await;
    let talk = begin(&stage, &ada, &id, true).await;
    let all = furnish(&stage, &talk).await;
    let (_, viewer) = stage.member(workspace, "viewer", Role::Viewer).await;
    let (_, editor) = stage.member(workspace, "editor", Role::Editor).await;
    let (_, system_admin) = stage.user("system", true).await;
    let (reads, writes) = seen(&stage, &viewer, &all).await;
    assert_eq!((reads, writes), (vec![200; 7], vec![403; 4]));
    let (reads, _) = seen(&stage, &system_admin, &all).await;
    assert_eq!(reads, [404; 7]);
    let (reads, writes) = seen(&stage, &editor, &all).await;
    assert_eq!(reads, [200; 7]);
    assert_eq!(writes, [202, 202, 409, 201], "{writes:?}");
    // Writing is not owning.
    let change = json!({ "version": 2, "title": "Mine" });
    let changed = stage.call(&editor, "PATCH", &talk.path(""), &change).await;
    let deleted = stage
        .call(&editor, "DELETE", &talk.path(""), &json!({}))
        .await;
    assert_eq!((changed.status, deleted.status), (403, 403));
    // Nor is the sandbox of the thread anybody's but whose it is.
    let sandboxes = format!("/api/v1/sandboxes?workspace_id={id}");
    let listed = stage.get(&editor, &sandboxes).await.ok();
    assert_eq!(listed["items"], json!([]));

    // Private again, it is gone for the others: streams that are open end.
    let mut reader = talk.of(&viewer).listen(0).await;
    reader.until("reply_ended").await;
    let show = talk.show().await;
    let change = json!({ "version": show["version"], "is_shared": false, "title": "Mine now" });
    let changed = stage
        .call(&ada, "PATCH", &talk.path(""), &change)
        .await
        .ok();
    assert_eq!(changed["is_shared"], false);
    while let Some(event) = reader.next().await {
        assert_ne!(event["data"]["title"], "Mine now", "{event}");
    }
    let (reads, writes) = seen(&stage, &viewer, &all).await;
    assert_eq!((reads, writes), (vec![404; 7], vec![404; 4]));

    // Deleted, it is gone for its owner, too, and its sandbox ends.
    let before = stage.store().live_leases().await.unwrap();
    assert_eq!(before.len(), 1);
    let deleted = stage.call(&ada, "DELETE", &talk.path(""), &json!({})).await;
    assert_eq!(deleted.status, 204);
    let (reads, writes) = seen(&stage, &ada, &all).await;
    assert_eq!((reads, writes), (vec![404; 7], vec![404; 4]));
    assert!(stage.store().live_leases().await.unwrap().is_empty());
    let gone = stage.app.gateway().sandbox(before[0].id).await;
    assert!(
        !matches!(
            gone.map(|view| view.state),
            Ok(glovebox_protocol::gateway::SandboxState::Running)
        ),
        "the sandbox of a deleted thread runs"
    );
    let file: AttachmentId = all.reads[1].rsplit('/').next().unwrap().parse().unwrap();
    let objects = stage.app.objects();
    assert!(objects.digest(file).await.unwrap().is_some());
    let later = Utc::now() + TimeDelta::hours(1);
    stage.app.purge_threads(later).await.unwrap();
    assert!(objects.digest(file).await.unwrap().is_none());
}

#[tokio::test]
async fn a_viewer_begins_nothing_and_a_key_does_what_its_scopes_say() {
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    let id = workspace.to_string();
    let (viewer_id, viewer) = stage.member(workspace, "viewer", Role::Viewer).await;
    let wanted = json!({ "workspace_id": id });
    for who in [
        &viewer,
        &stage.key(workspace, Some(viewer_id), KeyScope::ALL).await,
    ] {
        let refused = stage.call(who, "POST", "/api/v1/threads", &wanted).await;
        assert_eq!(refused.status, 403);
    }
    let (ada_id, ada) = stage.member(workspace, "ada", Role::Editor).await;
    let talk = begin(&stage, &ada, &id, false).await;
    let reading = stage
        .key(workspace, Some(ada_id), &[KeyScope::ThreadsRead])
        .await;
    assert_eq!(stage.get(&reading, &talk.path("")).await.status, 200);
    let body = json!({ "kind": "text", "text": "x" });
    let refused = stage
        .call(&reading, "POST", &talk.path("/messages"), &body)
        .await;
    assert_eq!(refused.status, 403);
    let refused = talk.of(&reading).try_upload("attachments", "a", b"x").await;
    assert_eq!(refused.status, 403);
    // Code that a key without the scope sends is refused where it is to run, by its name.
    stage.open(workspace).await;
    let writing = stage
        .key(
            workspace,
            Some(ada_id),
            &[KeyScope::ThreadsRead, KeyScope::ThreadsWrite],
        )
        .await;
    let events = talk.of(&writing).run("1").await;
    assert_eq!(code_of_failure(&events), "role");
    assert_eq!(find(&events, "step_ended")["is_success"], false);
}

#[tokio::test]
async fn what_is_in_the_way_of_code_is_said_and_nothing_is_lost() {
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    let id = workspace.to_string();
    let (_, ada) = stage.member(workspace, "ada", Role::Editor).await;
    let talk = begin(&stage, &ada, &id, false).await;
    let path = format!("/api/v1/workspaces/{id}/chat");
    let chat = stage.get(&ada, &path).await.ok();
    assert_eq!(
        (&chat["may_write"], &chat["has_model"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(chat["code_execution"]["name"], "deployment");
    let file = talk.upload("a.txt", b"kept").await;
    let events = talk.say("code", "open('a.txt').read()", &[&file]).await;
    assert_eq!(code_of_failure(&events), "deployment");
    stage.open(workspace).await;
    let chat = stage.get(&ada, &path).await.ok();
    assert_eq!(chat["code_execution"], Value::Null);

    // Every sandbox that the workspace may have is taken.
    let wanted = json!({ "workspace_id": id });
    let mut sandboxes = Vec::new();
    for _ in 0..2 {
        let made = stage
            .call(&ada, "POST", "/api/v1/sandboxes", &wanted)
            .await
            .ok();
        sandboxes.push(made["id"].clone());
    }
    let message = find(&events, "message_sent")["message"].clone();
    let events = talk.retry(&message).await;
    assert_eq!(code_of_failure(&events), "quota:max_concurrent");
    let details = &find(&events, "reply_ended")["error"]["details"];
    assert_eq!(
        (&details["limit"], &details["used"]),
        (&json!(2), &json!(2))
    );
    // Which are one's own is asked for by oneself.
    let path = format!("/api/v1/sandboxes?workspace_id={id}");
    let own = stage.get(&ada, &path).await.ok();
    let own = own["items"].as_array().unwrap().iter();
    assert_eq!(own.filter(|one| sandboxes.contains(&one["id"])).count(), 2);
    let path = format!("/api/v1/sandboxes/{}", sandboxes[0].as_str().unwrap());
    stage.call(&ada, "DELETE", &path, &json!({})).await.ok();
    // Now there is room; and what was attached is still there to be brought.
    let events = talk.retry(&message).await;
    let staged = events
        .iter()
        .filter(|event| event["data"]["event"]["type"] == "input_staged");
    assert_eq!(staged.count(), 1, "{events:?}");
    let content = stage
        .get(&ada, &format!("/api/v1/attachments/{file}/content"))
        .await;
    assert_eq!(content.text(), "kept");
}

#[tokio::test]
async fn a_stream_ends_with_the_rights_of_whoever_reads_it() {
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    let (_, ada) = stage.member(workspace, "ada", Role::Editor).await;
    let (bob_id, bob) = stage.member(workspace, "bob", Role::Editor).await;
    let (_, eve) = stage.member(workspace, "eve", Role::Editor).await;
    let talk = begin(&stage, &ada, &workspace.to_string(), true).await;
    talk.say("text", "Hello", &[]).await;
    let mut readers = Vec::new();
    for who in [&bob, &eve, &ada] {
        let mut reader = talk.of(who).listen(0).await;
        reader.until("reply_ended").await;
        readers.push(reader);
    }
    let mut changes = stage.store().begin().await.unwrap();
    changes.remove_member(workspace, bob_id).await.unwrap();
    changes.commit().await.unwrap();
    let out = stage
        .call(&eve, "DELETE", "/api/v1/session", &json!({}))
        .await;
    assert_eq!(out.status, 204, "{}", out.text());
    talk.say("text", "Are we alone?", &[]).await;
    let mut still = readers.pop().unwrap();
    assert_eq!(still.next().await.unwrap()["type"], "message_sent");
    for mut reader in readers {
        assert_eq!(reader.next().await, None);
    }
}

#[tokio::test]
async fn many_threads_at_once_do_not_stand_in_each_others_way() {
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    let (_, ada) = stage.member(workspace, "ada", Role::Editor).await;
    let id = workspace.to_string();
    let all = (0..30).map(async |_| {
        let talk = begin(&stage, &ada, &id, false).await;
        for _ in 0..3 {
            let events = talk.say("text", "Hello", &[]).await;
            assert_eq!(code_of_failure(&events), "no_model");
        }
        let seq: Vec<_> = {
            let mut reader = talk.listen(0).await;
            let mut seen = Vec::new();
            for _ in 0..3 {
                seen.extend(reader.until("reply_ended").await);
            }
            seen.iter()
                .map(|event| event["seq"].as_u64().unwrap())
                .collect()
        };
        assert_eq!(seq, (1..=10).collect::<Vec<_>>());
    });
    futures_util::future::join_all(all).await;
}

#[tokio::test]
async fn without_a_runtime_chat_goes_on_and_says_so() {
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    stage.open(workspace).await;
    let (_, ada) = stage.member(workspace, "ada", Role::Editor).await;
    let talk = begin(&stage, &ada, &workspace.to_string(), false).await;
    stage.end_gateway();
    let file = talk.upload("a.txt", b"kept").await;
    let events = talk.say("code", "open('a.txt')", &[&file]).await;
    assert_eq!(code_of_failure(&events), "runtime_unavailable");
    let error = &find(&events, "reply_ended")["error"];
    assert!(
        error["fix"].as_str().unwrap().contains("Chat goes on"),
        "{error}"
    );
    // What was tried counts for nothing, and what was said and sent is there.
    assert!(stage.store().live_leases().await.unwrap().is_empty());
    let events = talk.say("text", "Still there?", &[]).await;
    assert_eq!(code_of_failure(&events), "no_model");
    let content = stage
        .get(&ada, &format!("/api/v1/attachments/{file}/content"))
        .await;
    assert_eq!(content.text(), "kept");
}

#[tokio::test]
async fn of_more_files_than_fit_the_named_and_the_newest_are_brought() {
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    let profile = stage.open(workspace).await;
    limit_files(&stage, profile, 10, 20).await;
    let (_, ada) = stage.member(workspace, "ada", Role::Editor).await;
    let talk = begin(&stage, &ada, &workspace.to_string(), false).await;
    for name in ["1.txt", "2.txt", "3.txt", "4.txt"] {
        let file = talk.upload(name, b"12345678").await;
        talk.say("text", "x", &[&file]).await;
    }
    let brought = |events: &[Value]| -> Vec<String> {
        let staged = events
            .iter()
            .filter(|event| event["data"]["event"]["type"] == "input_staged");
        staged
            .map(|event| {
                event["data"]["event"]["data"]["name"]
                    .as_str()
                    .unwrap()
                    .into()
            })
            .collect()
    };
    let events = talk.run("open('2.txt')").await;
    assert_eq!(brought(&events), ["2.txt", "4.txt"]);
    let notice = find(&events, "notice");
    assert_eq!(notice["code"], "files_left_out");
    let text = notice["text"].as_str().unwrap();
    assert!(text.contains("3.txt, 1.txt are not there"), "{text}");
    // What is there is not brought again; what does not fit is said when it is named.
    let events = talk.run("1").await;
    assert!(brought(&events).is_empty() && !types(&events).contains(&"notice"));
    let events = talk.run("open('1.txt')").await;
    assert_eq!(find(&events, "notice")["code"], "files_left_out");
}

#[tokio::test]
async fn a_message_that_is_repeated_is_sent_once() {
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    let (_, ada) = stage.member(workspace, "ada", Role::Editor).await;
    let talk = begin(&stage, &ada, &workspace.to_string(), false).await;
    let post = async |text: &str| {
        let body = json!({ "kind": "text", "text": text }).to_string();
        let headers = [
            ("content-type", "application/json"),
            ("idempotency-key", "a"),
        ];
        let path = talk.path("/messages");
        send(stage.address, &ada, "POST", &path, &headers, body.into()).await
    };
    let first = post("x").await.ok();
    talk.listen(0).await.until("reply_ended").await;
    assert_eq!(post("x").await.ok(), first);
    let other = post("y").await;
    assert_eq!(
        (other.status, other.code()),
        (409, "idempotency_key_reused".into())
    );
    let found = stage.store().messages(talk.id.parse().unwrap(), 9).await;
    assert_eq!(found.unwrap().len(), 2);
}

/// Sets how large files may be, one and all of them.
async fn limit_files(stage: &Stage, profile: ProfileId, one: u64, all: u64) {
    let mut row = stage.store().profile(profile).await.unwrap().unwrap();
    row.settings.max_input_file_bytes = one;
    row.settings.max_input_total_bytes = all;
    let mut changes = stage.store().begin().await.unwrap();
    changes.update_profile(&row).await.unwrap();
    changes.commit().await.unwrap();
}

#[tokio::test]
async fn uploads_keep_to_their_limits_and_get_safe_names() {
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    let profile = stage.open(workspace).await;
    limit_files(&stage, profile, 10, 25).await;
    let (_, ada) = stage.member(workspace, "ada", Role::Editor).await;
    let talk = begin(&stage, &ada, &workspace.to_string(), false).await;
    let path = format!("/api/v1/workspaces/{workspace}/chat");
    let limits = &stage.get(&ada, &path).await.ok()["limits"];
    assert_eq!(limits["max_file_bytes"], 10);
    let large = talk.try_upload("attachments", "a", &[b'x'; 11]).await;
    assert_eq!((large.status, large.code()), (413, "too_large".into()));
    let named = talk
        .try_upload("attachments", "..%2F.p%C3%A4th%0A.csv", b"a,b\n")
        .await
        .ok();
    assert_eq!(named["name"], "päth_.csv");
    assert_eq!(named["media_type"], "text/csv");
    let mut files = vec![named["id"].as_str().unwrap().to_owned()];
    files.push(talk.upload("x", b"0123456789").await);
    files.push(talk.upload("x", b"0123456789").await);
    // More than a sandbox takes is not kept waiting either.
    let more = talk.try_upload("attachments", "x", b"12").await;
    assert_eq!(more.status, 413);
    let gone = format!("/api/v1/attachments/{}", files.remove(1));
    let deleted = stage.call(&ada, "DELETE", &gone, &json!({})).await;
    assert_eq!(deleted.status, 204);
    assert_eq!(stage.get(&ada, &gone).await.status, 404);
    let events = talk.say("text", "", &[&files[0], &files[1]]).await;
    let sent = &find(&events, "message_sent")["attachments"];
    assert_eq!(sent[1]["name"], "x");
    let kept = format!("/api/v1/attachments/{}", files[0]);
    let refused = stage.call(&ada, "DELETE", &kept, &json!({})).await;
    assert_eq!(refused.status, 403);
    for (kind, text) in [("code", ""), ("text", " "), ("text", "a\0")] {
        assert_eq!(talk.try_send(kind, text, &[]).await.status, 400);
    }
    let twice = talk.try_send("text", "x", &[&files[0]]).await;
    assert_eq!(twice.status, 400, "{}", twice.text());

    // What is never sent goes after a day.
    let waiting = talk.upload("late", b"1").await;
    let now = Utc::now();
    stage
        .app
        .throw_away_unsent(now - TimeDelta::hours(24))
        .await
        .unwrap();
    let path = format!("/api/v1/attachments/{waiting}");
    assert_eq!(stage.get(&ada, &path).await.status, 200);
    stage
        .app
        .throw_away_unsent(now + TimeDelta::hours(1))
        .await
        .unwrap();
    assert_eq!(stage.get(&ada, &path).await.status, 404);
    assert_eq!(stage.get(&ada, &kept).await.status, 200);
}

#[tokio::test]
async fn a_knowledge_base_is_read_by_members_and_changed_by_editors() {
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    let (_, ada) = stage.member(workspace, "ada", Role::Editor).await;
    let (_, viewer) = stage.member(workspace, "viewer", Role::Viewer).await;
    let elsewhere = stage.workspace("Elsewhere").await;
    let (_, stranger) = stage.member(elsewhere, "stranger", Role::Owner).await;
    let talk = begin(&stage, &ada, &workspace.to_string(), false).await;
    let added = talk.try_upload("knowledge", "prices.csv", b"a,b\n").await;
    assert_eq!(added.status, 201, "{}", added.text());
    let added = added.json();
    assert_eq!(
        (&added["added_by"], &added["media_type"]),
        (&json!("ada"), &json!("text/csv"))
    );
    let taken = talk.try_upload("knowledge", "prices.csv", b"other").await;
    assert_eq!((taken.status, taken.code()), (409, "name_taken".into()));
    let refused = talk.of(&viewer).try_upload("knowledge", "x", b"x").await;
    assert_eq!(refused.status, 403);
    let file = format!("/api/v1/knowledge/{}", added["id"].as_str().unwrap());
    let content = stage.get(&viewer, &format!("{file}/content")).await;
    assert_eq!(content.text(), "a,b\n");
    assert_eq!(
        content.headers["content-disposition"],
        "attachment; filename*=UTF-8''prices.csv"
    );
    let list = format!("/api/v1/knowledge?workspace_id={workspace}");
    let listed = stage.get(&viewer, &list).await.ok();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    assert_eq!(stage.get(&stranger, &list).await.status, 404);
    assert_eq!(
        stage
            .get(&stranger, &format!("{file}/content"))
            .await
            .status,
        404
    );
    let delete = async |who| stage.call(who, "DELETE", &file, &json!({})).await.status;
    assert_eq!(delete(&stranger).await, 404);
    assert_eq!(delete(&viewer).await, 403);
    assert_eq!(delete(&ada).await, 204);
    assert_eq!(
        stage.get(&ada, &format!("{file}/content")).await.status,
        404
    );
}
