//! Chat without a model, the whole way: code that people type, in real sandboxes.

use hyper::body::Bytes;
use serde_json::{Value, json};

use crate::embedded::{Running, start};
use crate::visitor::Visitor;
use crate::visitor::types;
use crate::wire::{Answer, Listening, Who, listen, send};

/// Runs until it is interrupted, and shows that it does.
const ENDLESS: &str = "print('begun', flush=True)\nimport time\nwhile True: time.sleep(1)";

/// Does not end when it is interrupted.
const STUBBORN: &str = "print('begun', flush=True)
import time
while True:
    try: time.sleep(1)
    except KeyboardInterrupt: pass";

/// Somebody in a thread.
pub(crate) struct Talk {
    pub(crate) visitor: Visitor,
    pub(crate) who: Who,
    pub(crate) workspace: String,
    pub(crate) id: String,
}

impl Talk {
    /// Begins a thread.
    pub(crate) async fn begin(
        visitor: Visitor,
        who: &Who,
        workspace: &str,
        is_shared: bool,
    ) -> Self {
        let wanted = json!({ "workspace_id": workspace, "is_shared": is_shared });
        let made = visitor.call(who, "POST", "/api/v1/threads", &wanted).await;
        assert_eq!(made.status, 201, "{}", made.text());
        Self {
            visitor,
            who: who.clone(),
            workspace: workspace.into(),
            id: made.json()["id"].as_str().unwrap().into(),
        }
    }

    /// The same thread, for somebody else.
    pub(crate) fn of(&self, who: &Who) -> Self {
        Self {
            visitor: self.visitor,
            who: who.clone(),
            workspace: self.workspace.clone(),
            id: self.id.clone(),
        }
    }

    pub(crate) fn path(&self, below: &str) -> String {
        format!("/api/v1/threads/{}{below}", self.id)
    }

    pub(crate) async fn show(&self) -> Value {
        self.visitor.get(&self.who, &self.path("")).await.ok()
    }

    pub(crate) async fn post(&self, below: &str, body: &Value) -> Answer {
        let path = self.path(below);
        self.visitor.call(&self.who, "POST", &path, body).await
    }

    pub(crate) async fn try_send(&self, kind: &str, text: &str, files: &[&str]) -> Answer {
        let body = json!({ "kind": kind, "text": text, "attachments": files });
        self.post("/messages", &body).await
    }

    /// Sends a message and gives the events of the reply to it, from the message on.
    pub(crate) async fn say(&self, kind: &str, text: &str, files: &[&str]) -> Vec<Value> {
        let after = self.show().await["last_seq"].as_u64().unwrap();
        let sent = self.try_send(kind, text, files).await;
        assert_eq!(sent.status, 202, "{}", sent.text());
        self.listen(after).await.until("reply_ended").await
    }

    pub(crate) async fn run(&self, code: &str) -> Vec<Value> {
        self.say("code", code, &[]).await
    }

    pub(crate) async fn retry(&self, message: &Value) -> Vec<Value> {
        let after = self.show().await["last_seq"].as_u64().unwrap();
        let path = format!("/messages/{}/retry", message.as_str().unwrap());
        let tried = self.post(&path, &json!({})).await;
        assert_eq!(tried.status, 202, "{}", tried.text());
        self.listen(after).await.until("reply_ended").await
    }

    pub(crate) async fn listen(&self, after: u64) -> Listening {
        let path = self.path(&format!("/events?after={after}"));
        listen(self.visitor.address, &self.who, &path).await
    }

    pub(crate) async fn upload(&self, name: &str, bytes: &[u8]) -> String {
        let uploaded = upload(self, name, bytes).await;
        assert_eq!(uploaded.status, 201, "{}", uploaded.text());
        uploaded.json()["id"].as_str().unwrap().into()
    }
}

async fn upload(talk: &Talk, name: &str, bytes: &[u8]) -> Answer {
    let path = format!(
        "/api/v1/attachments?workspace_id={}&name={name}",
        talk.workspace
    );
    let body = Bytes::copy_from_slice(bytes);
    send(talk.visitor.address, &talk.who, "POST", &path, &[], body).await
}

/// What the events of a step wrap: those of its execution.
fn in_step(events: &[Value]) -> Vec<&Value> {
    let all = events.iter().filter(|event| event["type"] == "step_event");
    all.map(|event| &event["data"]["event"]).collect()
}

/// The value that the code of a step ended with.
pub(crate) fn value(events: &[Value]) -> &str {
    in_step(events)
        .into_iter()
        .find(|event| event["type"] == "result")
        .and_then(|event| event["data"]["data"]["text/plain"].as_str())
        .unwrap_or_else(|| panic!("no value: {events:?}"))
}

pub(crate) fn find<'a>(events: &'a [Value], wanted: &str) -> &'a Value {
    let found = events.iter().find(|event| event["type"] == wanted);
    let found = found.unwrap_or_else(|| panic!("no {wanted}: {events:?}"));
    &found["data"]
}

fn outcome(events: &[Value]) -> &str {
    find(events, "reply_ended")["outcome"].as_str().unwrap()
}

fn code_of_failure(events: &[Value]) -> &str {
    let ended = find(events, "reply_ended");
    assert_eq!(ended["outcome"], "failed", "{ended}");
    let error = &ended["error"];
    for part in ["message", "fix"] {
        let words = error[part].as_str().unwrap();
        assert!(words.contains(' '), "no plain words: {error}");
    }
    error["code"].as_str().unwrap()
}

async fn ready(folder: &std::path::Path) -> (Running, Talk) {
    let server = start(folder).await;
    let (ada, workspace) = server.begin().await;
    let talk = Talk::begin(*server, &ada, &workspace, false).await;
    (server, talk)
}

/// Ends all sandboxes of somebody: they would outlive the test.
async fn end_sandboxes(talk: &Talk) {
    let path = format!("/api/v1/sandboxes?workspace_id={}", talk.workspace);
    let listed = talk.visitor.get(&talk.who, &path).await.ok();
    for sandbox in listed["items"].as_array().unwrap() {
        let path = format!("/api/v1/sandboxes/{}", sandbox["id"].as_str().unwrap());
        talk.visitor
            .call(&talk.who, "DELETE", &path, &json!({}))
            .await
            .ok();
    }
}

#[tokio::test]
async fn typed_code_runs_in_the_threads_sandbox_and_its_files_are_the_threads() {
    let folder = tempfile::tempdir().unwrap();
    let (server, talk) = ready(folder.path()).await;
    let file = talk.upload("in%20put.csv", b"a,b\n1,2\n").await;
    let code = "total = open('in put.csv').read()
open('out.csv', 'w').write(total * 2)
print('counted')
len(total)";
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
    assert_eq!(value(&events), "8");
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

    // The same name again is another version, and the old one can come back.
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
    assert_eq!(content.text(), "a,b\n1,2\na,b\n1,2\n");
    let events = talk.run("open('out.csv').read()[:3]").await;
    assert_eq!(value(&events), "'a,b'");
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
    let begun = |event: &Value| event["data"]["event"]["type"] == "stdout";
    let mut seen = Vec::new();
    while !seen.last().is_some_and(begun) {
        seen.push(first.next().await.unwrap());
    }
    // A reload in the middle, and from the middle on.
    let show = talk.show().await;
    assert_eq!(show["running_reply"], sent.json()["reply_id"]);
    let mut second = talk.listen(0).await;
    let mut third = talk.listen(3).await;
    let busy = talk.try_send("code", "1", &[]).await;
    assert_eq!((busy.status, busy.code()), (409, "busy".into()));
    let stopped = talk.post("/stop", &json!({})).await;
    assert_eq!(stopped.status, 202);
    assert_eq!(stopped.json()["reply_id"], sent.json()["reply_id"]);
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
async fn code_that_does_not_want_to_end_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let (server, talk) = ready(folder.path()).await;
    let mut reader = talk.listen(0).await;
    assert_eq!(talk.try_send("code", STUBBORN, &[]).await.status, 202);
    let begun = |event: &Value| event["data"]["event"]["type"] == "stdout";
    while !begun(&reader.next().await.unwrap()) {}
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
    let begun = |event: &Value| event["data"]["event"]["type"] == "stdout";
    while !begun(&reader.next().await.unwrap()) {}
    end_sandboxes(&talk).await;
    let events = reader.until("reply_ended").await;
    assert_eq!(code_of_failure(&events), "sandbox_gone");
    let retry = format!("/messages/{}/retry", sent["message_id"].as_str().unwrap());
    assert_eq!(talk.post(&retry, &json!({})).await.status, 202);
    while !begun(&reader.next().await.unwrap()) {}
    talk.post("/stop", &json!({})).await.ok();
    assert_eq!(outcome(&reader.until("reply_ended").await), "stopped");
    end_sandboxes(&talk).await;
    server.stop().await;
}
