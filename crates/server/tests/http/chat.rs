//! Chat without a model, the whole way: code that people type, in real sandboxes.

use std::time::{Duration, Instant};

use glovebox_protocol::ids::MessageId;
use glovebox_protocol::sign::BodyDigest;
use serde_json::json;

use crate::embedded::{Running, start};
use crate::talk::{
    ENDLESS, Talk, code_of_failure, end_sandboxes, find, has_begun, in_step, outcome, value,
};
use crate::visitor::types;

/// Does not end when it is interrupted.
const STUBBORN: &str = "print('begun', flush=True)
import time
while True:
    try: time.sleep(1)
    except KeyboardInterrupt: pass";

async fn ready(folder: &std::path::Path) -> (Running, Talk) {
    let server = start(folder).await;
    let (ada, workspace) = server.begin().await;
    let talk = Talk::begin(*server, &ada, &workspace, false).await;
    (server, talk)
}

#[tokio::test]
async fn typed_code_runs_in_the_threads_sandbox_and_its_files_are_the_threads() {
    let folder = tempfile::tempdir().unwrap();
    let (server, talk) = ready(folder.path()).await;
    let file = talk.upload("in%20put.csv", b"a,b\n1,2\n").await;
    talk.upload("unsent.csv", b"a\n").await;
    let code = "total = open('in put.csv').read()
open('out.csv', 'w').write(total * 2)
print('counted')
import os
len(total), sorted(os.listdir())";
    let events = talk.say("code", code, &[&file]).await;
    assert_eq!(
        types(&events),
        [
            "message_sent",
            "thread_changed",
            "reply_started",
            "step_started",
            "step_event",
            "step_event",
            "step_event",
            "step_event",
            "step_event",
            "step_event",
            "file_saved",
            "step_ended",
            "reply_ended"
        ]
    );
    let inner: Vec<_> = in_step(&events)
        .iter()
        .map(|event| event["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        inner,
        [
            "sandbox_starting",
            "sandbox_ready",
            "input_staged",
            "execution_started",
            "stdout",
            "result"
        ]
    );
    assert_eq!(in_step(&events)[2]["data"]["name"], "in put.csv");
    assert_eq!(value(&events), "(8, ['in put.csv', 'out.csv'])");
    assert_eq!(outcome(&events), "done");
    let sent = &find(&events, "message_sent")["attachments"][0];
    assert_eq!(
        (&sent["name"], &sent["bytes"]),
        (&json!("in put.csv"), &json!(8))
    );
    assert_eq!(sent["media_type"], "text/csv");
    let saved = find(&events, "file_saved");
    assert_eq!(
        (&saved["name"], &saved["version"]),
        (&json!("out.csv"), &json!(1))
    );
    assert_eq!(find(&events, "step_ended")["summary"], "ran to its end");

    // Variables stay, and an error is told as what it is.
    let events = talk.run("total.lower(); undefined").await;
    assert_eq!(outcome(&events), "done");
    let ended = find(&events, "step_ended");
    assert_eq!(ended["is_success"], false);
    assert_eq!(ended["summary"], "raised NameError");

    end_sandboxes(&talk).await;
    server.stop().await;
}

#[tokio::test]
async fn the_same_name_again_is_another_version_and_an_old_one_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let (server, talk) = ready(folder.path()).await;
    let events = talk.run("open('out.csv', 'w').write('old')").await;
    let saved = find(&events, "file_saved");
    let events = talk.run("open('out.csv', 'w').write('new')").await;
    assert_eq!(find(&events, "file_saved")["version"], 2);
    let path = format!("/api/v1/artifacts/{}", saved["artifact"].as_str().unwrap());
    let old = talk.visitor.get(&talk.who, &path).await.ok();
    assert_eq!(
        (&old["is_newest"], &old["may_restore"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(old["thread_id"], talk.id);
    let restored = talk
        .visitor
        .call(&talk.who, "POST", &format!("{path}/restore"), &json!({}))
        .await;
    assert_eq!(restored.status, 201, "{}", restored.text());
    let restored = restored.json();
    assert_eq!(
        (&restored["version"], &restored["is_newest"]),
        (&json!(3), &json!(true))
    );
    let content = format!(
        "/api/v1/artifacts/{}/content",
        restored["id"].as_str().unwrap()
    );
    let content = talk.visitor.get(&talk.who, &content).await;
    assert_eq!(content.text(), "old");
    let events = talk.run("open('out.csv').read()").await;
    assert_eq!(value(&events), "'old'");
    assert!(!types(&events).contains(&"file_saved"), "{events:?}");
    let versions = talk
        .visitor
        .get(&talk.who, &format!("{path}/versions"))
        .await
        .ok();
    let numbers: Vec<_> = versions["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|version| version["version"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, [3, 2, 1]);
    end_sandboxes(&talk).await;
    server.stop().await;
}

#[tokio::test]
async fn two_readers_see_the_same_and_a_reload_sees_it_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let (server, talk) = ready(folder.path()).await;
    let mut first = talk.listen(0).await;
    let sent = talk.try_send("code", ENDLESS, &[]).await;
    assert_eq!(sent.status, 202);
    let mut seen = Vec::new();
    while !seen.last().is_some_and(has_begun) {
        seen.push(first.next().await.unwrap());
    }
    // A reload in the middle, and from the middle on.
    let show = talk.show().await;
    assert_eq!(show["running_reply"], sent.json()["reply_id"]);
    let mut second = talk.listen(0).await;
    let mut third = talk.listen(3).await;
    let busy = talk.try_send("code", "1", &[]).await;
    assert_eq!((busy.status, busy.code()), (409, "busy".into()));
    // Whoever means a reply that has ended stops no other.
    let before = format!("/stop?reply_id={}", MessageId::new());
    let nothing = talk.post(&before, &json!({})).await.ok();
    assert_eq!(nothing, json!({ "was_running": false, "reply_id": null }));
    let unknown = talk.post("/stop?reply_id=x", &json!({})).await;
    assert_eq!((unknown.status, unknown.code()), (400, "invalid".into()));
    let reply = sent.json()["reply_id"].as_str().unwrap().to_owned();
    let stopped = talk
        .post(&format!("/stop?reply_id={reply}"), &json!({}))
        .await;
    assert_eq!(stopped.status, 202);
    assert_eq!(stopped.json()["reply_id"], reply);
    seen.extend(first.until("reply_ended").await);
    assert_eq!(second.until("reply_ended").await, seen);
    assert_eq!(third.until("reply_ended").await, seen[3..]);
    assert_eq!(outcome(&seen), "stopped");
    let numbers: Vec<_> = seen
        .iter()
        .map(|event| event["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (1..=seen.len() as u64).collect::<Vec<_>>());
    let nothing = talk.post("/stop", &json!({})).await;
    assert_eq!(nothing.json()["was_running"], false);
    // It was interrupted only: the sandbox is there, and what comes now is seen by all.
    let sent = talk.try_send("code", "1 + 1", &[]).await;
    assert_eq!(sent.status, 202);
    let more = first.until("reply_ended").await;
    assert_eq!(value(&more), "2");
    assert!(!types(&more).contains(&"notice"), "{more:?}");
    assert_eq!(second.until("reply_ended").await, more);
    end_sandboxes(&talk).await;
    server.stop().await;
}

#[tokio::test]
async fn a_server_that_ends_leaves_no_reply_that_seems_to_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let (server, talk) = ready(folder.path()).await;
    let mut reader = talk.listen(0).await;
    assert_eq!(talk.try_send("code", ENDLESS, &[]).await.status, 202);
    while !has_begun(&reader.next().await.unwrap()) {}
    server.stop().await;
    let server = start(folder.path()).await;
    let talk = Talk {
        visitor: *server,
        ..talk
    };
    assert_eq!(talk.show().await["running_reply"], json!(null));
    let events = talk.listen(0).await.until("reply_ended").await;
    assert_eq!(code_of_failure(&events), "server_ended");
    // Its sandbox is there still, and what ran in it was interrupted.
    let events = talk.run("6 * 7").await;
    assert_eq!(value(&events), "42");
    assert!(!types(&events).contains(&"notice"), "{events:?}");
    end_sandboxes(&talk).await;
    server.stop().await;
}

/// Saves files, and goes on changing them for as long as the kernel lives.
const RESTLESS: &str = "import os, threading
def save(number, text):
    with open(f'.{number}', 'w') as file: file.write(text)
    os.replace(f'.{number}', f'{number}.csv')
for number in range(20): save(number, 'a\\n0\\n')
def change():
    count = 0
    while True:
        count += 1
        for number in range(20): save(number, f'a\\n{count % 10}\\n')
threading.Thread(target=change, daemon=True).start()";

#[tokio::test]
async fn what_is_known_of_a_file_is_true_of_its_bytes_also_where_code_changes_it_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let (server, talk) = ready(folder.path()).await;
    let events = talk.run(RESTLESS).await;
    assert_eq!(outcome(&events), "done");
    let of_one = |event: &serde_json::Value| {
        let name = &event["data"]["event"]["data"]["name"];
        event["type"] == "file_saved" || name.as_str().is_some_and(|name| name.ends_with(".csv"))
    };
    assert_eq!(
        events.iter().filter(|event| of_one(event)).count(),
        20,
        "{events:?}"
    );
    let workspace = &talk.workspace;
    let path = format!(
        "/api/v1/artifacts?workspace_id={workspace}&thread_id={}",
        talk.id
    );
    let listed = talk.visitor.get(&talk.who, &path).await.ok();
    for artifact in listed["items"].as_array().unwrap() {
        let path = format!(
            "/api/v1/artifacts/{}/content",
            artifact["id"].as_str().unwrap()
        );
        let content = talk.visitor.get(&talk.who, &path).await;
        let sha256 = BodyDigest::of(&content.bytes).to_string();
        assert_eq!(artifact["sha256"], sha256, "{artifact}");
    }
    end_sandboxes(&talk).await;
    server.stop().await;
}

#[tokio::test]
async fn code_that_does_not_want_to_end_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let (server, talk) = ready(folder.path()).await;
    let mut reader = talk.listen(0).await;
    assert_eq!(talk.try_send("code", STUBBORN, &[]).await.status, 202);
    while !has_begun(&reader.next().await.unwrap()) {}
    assert_eq!(talk.post("/stop", &json!({})).await.status, 202);
    let events = reader.until("reply_ended").await;
    assert_eq!(outcome(&events), "stopped");
    let events = talk.run("6 * 7").await;
    assert_eq!(value(&events), "42");
    assert_eq!(find(&events, "notice")["code"], "kernel_replaced");
    end_sandboxes(&talk).await;
    server.stop().await;
}

#[tokio::test]
async fn a_sandbox_that_ended_is_replaced_with_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let (server, talk) = ready(folder.path()).await;
    let file = talk.upload("in.txt", b"brought").await;
    let code = "open('kept.txt', 'w').write('made'); open('lost.bin', 'wb').write(b'x'); x = 1";
    let events = talk.say("code", code, &[&file]).await;
    assert_eq!(outcome(&events), "done");
    end_sandboxes(&talk).await;
    let code = "import os; (sorted(os.listdir()), open('in.txt').read(), open('kept.txt').read())";
    let events = talk.run(code).await;
    assert_eq!(
        value(&events),
        "(['in.txt', 'kept.txt'], 'brought', 'made')"
    );
    let notice = find(&events, "notice");
    assert_eq!(notice["code"], "sandbox_replaced");
    let text = notice["text"].as_str().unwrap();
    assert!(
        text.contains("asked for it") && text.contains("Variables"),
        "{text}"
    );
    // What was put back has not changed, and so is no new version.
    assert!(!types(&events).contains(&"file_saved"), "{events:?}");

    // While code runs: the reply says so, and can be tried again.
    let mut reader = talk
        .listen(talk.show().await["last_seq"].as_u64().unwrap())
        .await;
    let sent = talk.try_send("code", ENDLESS, &[]).await.ok();
    while !has_begun(&reader.next().await.unwrap()) {}
    end_sandboxes(&talk).await;
    let events = reader.until("reply_ended").await;
    assert_eq!(code_of_failure(&events), "sandbox_gone");
    let retry = format!("/messages/{}/retry", sent["message_id"].as_str().unwrap());
    assert_eq!(talk.post(&retry, &json!({})).await.status, 202);
    while !has_begun(&reader.next().await.unwrap()) {}
    talk.post("/stop", &json!({})).await.ok();
    assert_eq!(outcome(&reader.until("reply_ended").await), "stopped");
    end_sandboxes(&talk).await;
    server.stop().await;
}

#[tokio::test]
async fn a_sandbox_that_was_suspended_goes_on_with_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let (server, talk) = ready(folder.path()).await;
    // Less than people may set, so that the test need not wait for it.
    let mut profile = server.app.store().profiles().await.unwrap().remove(0);
    profile.settings.idle_seconds = 1;
    let mut changes = server.app.store().begin().await.unwrap();
    changes.update_profile(&profile).await.unwrap();
    changes.commit().await.unwrap();
    let file = talk.upload("in.txt", b"sent").await;
    let code = "open('kept.bin', 'wb').write(b'not collected'); kept = 7";
    let events = talk.say("code", code, &[&file]).await;
    assert_eq!(outcome(&events), "done");
    let before = suspended(&talk).await;

    let code = "import os; (sorted(os.listdir()), open('kept.bin').read(), open('in.txt').read(), \
                'kept' in globals())";
    let events = talk.run(code).await;
    assert_eq!(
        value(&events),
        "(['in.txt', 'kept.bin'], 'not collected', 'sent', False)"
    );
    // People are told what is gone, and nothing is brought a second time.
    let notice = find(&events, "notice");
    assert_eq!(notice["code"], "kernel_replaced", "{notice}");
    let text = notice["text"].as_str().unwrap();
    assert!(
        text.contains("Variables are gone") && text.contains("files are still there"),
        "{text}"
    );
    let inner: Vec<_> = in_step(&events)
        .iter()
        .map(|event| event["type"].as_str().unwrap().to_owned())
        .collect();
    assert!(!inner.contains(&"sandbox_starting".into()), "{inner:?}");
    assert!(!inner.contains(&"input_staged".into()), "{inner:?}");
    assert_eq!(suspended(&talk).await, before, "it is the same one");
    end_sandboxes(&talk).await;
    server.stop().await;
}

/// The id of the thread's sandbox, once it is suspended.
async fn suspended(talk: &Talk) -> String {
    let path = format!("/api/v1/sandboxes?workspace_id={}", talk.workspace);
    let mut looks = tokio::time::interval(Duration::from_millis(100));
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        looks.tick().await;
        let listed = talk.visitor.get(&talk.who, &path).await.ok();
        let sandbox = &listed["items"][0];
        if sandbox["state"] == "suspended" {
            return sandbox["id"].as_str().unwrap().to_owned();
        }
        assert!(Instant::now() < deadline, "{listed}");
    }
}
