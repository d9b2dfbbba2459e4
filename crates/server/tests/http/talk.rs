//! Somebody who talks in a thread of chat.

use hyper::body::Bytes;
use serde_json::{Value, json};

use crate::visitor::Visitor;
use crate::wire::{Answer, Listening, Who, listen, send};

/// Runs until it is interrupted, and shows that it does.
pub(crate) const ENDLESS: &str =
    "print('begun', flush=True)\nimport time\nwhile True: time.sleep(1)";

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

    /// Uploads a file, below `attachments` or `knowledge`.
    pub(crate) async fn try_upload(&self, below: &str, name: &str, bytes: &[u8]) -> Answer {
        let workspace = &self.workspace;
        let path = format!("/api/v1/{below}?workspace_id={workspace}&name={name}");
        let body = Bytes::copy_from_slice(bytes);
        send(self.visitor.address, &self.who, "POST", &path, &[], body).await
    }

    pub(crate) async fn upload(&self, name: &str, bytes: &[u8]) -> String {
        let uploaded = self.try_upload("attachments", name, bytes).await;
        assert_eq!(uploaded.status, 201, "{}", uploaded.text());
        uploaded.json()["id"].as_str().unwrap().into()
    }
}

/// What the events of a step wrap: those of its execution.
pub(crate) fn in_step(events: &[Value]) -> Vec<&Value> {
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

pub(crate) fn outcome(events: &[Value]) -> &str {
    find(events, "reply_ended")["outcome"].as_str().unwrap()
}

pub(crate) fn code_of_failure(events: &[Value]) -> &str {
    let ended = find(events, "reply_ended");
    assert_eq!(ended["outcome"], "failed", "{ended}");
    let error = &ended["error"];
    for part in ["message", "fix"] {
        let words = error[part].as_str().unwrap();
        assert!(words.contains(' '), "no plain words: {error}");
    }
    error["code"].as_str().unwrap()
}

/// Whether code has printed something.
pub(crate) fn has_begun(event: &Value) -> bool {
    event["data"]["event"]["type"] == "stdout"
}

/// Ends all sandboxes of somebody: they would outlive the test.
pub(crate) async fn end_sandboxes(talk: &Talk) {
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
