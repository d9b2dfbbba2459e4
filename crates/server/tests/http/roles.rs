//! Every route against every kind of caller. What comes back stands in a table that is committed,
//! so that a route nobody has thought about cannot come in unseen.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use futures_util::StreamExt as _;
use futures_util::stream;
use glovebox_protocol::ids::{SandboxId, WorkspaceId};
use glovebox_store::{KeyScope, ModelSettings, Role};
use serde_json::{Value, json};

use crate::stage::Stage;
use crate::talk::{Talk, find};
use crate::visitor::Visitor;
use crate::wire::Who;

/// Everybody who may call, in the order of the table.
const CALLERS: [&str; 9] = [
    "nobody",
    "stranger",
    "viewer",
    "editor",
    "admin",
    "owner",
    "system admin",
    "owner's key",
    "key without scopes",
];

/// The world that each call is made in: made anew for each, as calls change it.
struct World {
    stage: Stage,
    callers: BTreeMap<&'static str, Who>,
    workspace: WorkspaceId,
    sandbox: SandboxId,
    member: String,
    /// The owner's, shared, with a message in it.
    thread: String,
    message: String,
    /// The owner's, not sent.
    attachment: String,
    knowledge: String,
    model: String,
}

async fn world() -> World {
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    let elsewhere = stage.workspace("Elsewhere").await;
    stage.open(workspace).await;
    let (_, stranger) = stage.member(elsewhere, "stranger", Role::Owner).await;
    let (member, viewer) = stage.member(workspace, "viewer", Role::Viewer).await;
    let (_, editor) = stage.member(workspace, "editor", Role::Editor).await;
    let (_, admin) = stage.member(workspace, "admin", Role::Admin).await;
    let (owner_id, owner) = stage.member(workspace, "owner", Role::Owner).await;
    let (_, system_admin) = stage.user("system", true).await;
    let key = stage.key(workspace, Some(owner_id), KeyScope::ALL).await;
    let bare = stage
        .key(workspace, Some(owner_id), &[KeyScope::KnowledgeRead])
        .await;
    let access = stage.store().access_of_user(owner_id, workspace).await;
    let access = access.unwrap().unwrap();
    let lease = stage.app.create_sandbox(&access, None).await.unwrap();
    let visitor = Visitor {
        address: stage.address,
    };
    let talk = Talk::begin(visitor, &owner, &workspace.to_string(), true).await;
    let events = talk.say("text", "Hello", &[]).await;
    let message = find(&events, "message_sent")["message"].clone();
    let attachment = talk.upload("a.txt", b"a").await;
    let knowledge = talk.try_upload("knowledge", "k.txt", b"k").await.ok();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut changes = stage.store().begin().await.unwrap();
    let model = changes
        .create_model(&ModelSettings {
            name: "Nobody".into(),
            // Nobody listens there, which a test of it says.
            base_url: "http://127.0.0.1:9/v1".into(),
            model: "m".into(),
            context_tokens: 8_192,
            connect_timeout_seconds: 1,
            silence_timeout_seconds: 1,
            reply_timeout_seconds: 60,
        })
        .await
        .unwrap();
    changes.commit().await.unwrap();
    World {
        thread: talk.id,
        message: text(&message),
        attachment,
        knowledge: text(&knowledge["id"]),
        callers: BTreeMap::from([
            ("nobody", Who::Nobody),
            ("stranger", stranger),
            ("viewer", viewer),
            ("editor", editor),
            ("admin", admin),
            ("owner", owner),
            ("system admin", system_admin),
            ("owner's key", key),
            ("key without scopes", bare),
        ]),
        workspace,
        sandbox: lease.id,
        member: member.to_string(),
        model: model.to_string(),
        stage,
    }
}

impl World {
    /// A path with the ids of this world in it.
    fn path(&self, method: &str, pattern: &str, profile: &str) -> String {
        let unknown = SandboxId::new().to_string();
        let path = pattern
            .replace("{workspace}", &self.workspace.to_string())
            .replace("{sandbox}", &self.sandbox.to_string())
            .replace("{user}", &self.member)
            .replace("{profile}", profile)
            .replace("{name}", "shared_kernel")
            .replace("{form}", "json")
            .replace("{path}", "a.txt")
            .replace("{session}", &unknown)
            .replace("{key}", &unknown)
            .replace("{artifact}", &unknown)
            .replace("{model}", &self.model)
            .replace("{preview}", &unknown)
            .replace("{number}", "1")
            .replace("{execution}", &unknown)
            .replace("{thread}", &self.thread)
            .replace("{message}", &self.message)
            .replace("{attachment}", &self.attachment)
            .replace("{file}", &self.knowledge);
        let workspace = format!("workspace_id={}", self.workspace);
        match pattern {
            "/api/v1/sandboxes" | "/api/v1/artifacts" | "/api/v1/threads" => {
                format!("{path}?{workspace}")
            }
            "/api/v1/attachments" => format!("{path}?{workspace}&name=b.txt"),
            "/api/v1/knowledge" if method == "post" => format!("{path}?{workspace}&name=l.txt"),
            "/api/v1/knowledge" => format!("{path}?{workspace}"),
            _ => path,
        }
    }

    /// A body that a call takes: of routes that take several, one that changes little.
    fn body(&self, method: &str, pattern: &str) -> Value {
        match (method, pattern) {
            ("post", "/api/v1/sandboxes" | "/api/v1/threads") => {
                json!({ "workspace_id": self.workspace })
            }
            ("patch", "/api/v1/threads/{thread}") => json!({ "version": 1, "title": "Renamed" }),
            ("post", "/api/v1/threads/{thread}/messages") => {
                json!({ "kind": "text", "text": "x" })
            }
            ("post", "/api/v1/workspaces/{workspace}/members") => {
                json!({ "email": "stranger@example.com", "role": "viewer" })
            }
            ("patch", "/api/v1/workspaces/{workspace}/members/{user}") => {
                json!({ "role": "editor" })
            }
            ("post", "/api/v1/workspaces/{workspace}/api-keys") => {
                json!({ "name": "x", "scopes": ["files:read"] })
            }
            ("post", "/api/v1/sandboxes/{sandbox}/executions") => json!({ "code": "1" }),
            ("patch", "/api/v1/admin/workspaces/{workspace}") => {
                json!({ "version": 2, "name": "Renamed" })
            }
            ("patch", "/api/v1/admin/profiles/{profile}") => {
                json!({ "version": 2, "name": "Renamed" })
            }
            ("post", "/api/v1/admin/models") => {
                json!({ "name": "M", "base_url": "http://127.0.0.1:9/v1", "model": "m" })
            }
            ("patch", "/api/v1/admin/models/{model}") => json!({ "version": 1, "name": "M" }),
            ("post", "/api/v1/admin/workspaces") => json!({ "name": "New" }),
            ("post", "/api/v1/admin/users") => {
                json!({ "email": "n@example.com", "name": "N", "password": "long enough word" })
            }
            ("post", "/api/v1/account/password") => {
                json!({ "present": "wrong", "new": "long enough word" })
            }
            ("post", "/api/v1/session") => json!({ "email": "n@example.com", "password": "x" }),
            ("post", "/api/v1/setup") => {
                json!({ "token": "x", "email": "n@example.com", "name": "N",
                    "password": "long enough word" })
            }
            _ => json!({}),
        }
    }
}

/// What a call answers one caller, as the table shows it.
async fn seen(method: &str, pattern: &str, caller: &str) -> String {
    let world = world().await;
    let profile = world.stage.store().profiles().await.unwrap()[0].id;
    let path = world.path(method, pattern, &profile.to_string());
    let body = world.body(method, pattern);
    let method = method.to_uppercase();
    let who = &world.callers[caller];
    let answer = world.stage.call(who, &method, &path, &body).await;
    assert!(
        answer.status < 500,
        "{method} {path} as {caller}: {} {}",
        answer.status,
        answer.text()
    );
    match answer.code() {
        code if code.is_empty() => answer.status.to_string(),
        code => format!("{} {code}", answer.status),
    }
}

#[tokio::test]
async fn every_route_answers_every_caller_as_the_table_says() {
    let document = serde_json::to_value(glovebox_server::http::document()).unwrap();
    let mut calls = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            // A canary wants real sandboxes, and the events of a thread have no end: they have their
            // own tests.
            let is_other = path.ends_with("/canary") || path == "/api/v1/threads/{thread}/events";
            if method != "parameters" && !is_other {
                calls.push((method.clone(), path.clone()));
            }
        }
    }
    let table = stream::iter(calls)
        .map(|(method, path)| async move {
            let mut row = format!("{method} {path}\n");
            for caller in CALLERS {
                let seen = seen(&method, &path, caller).await;
                // Writing to a `String` cannot fail.
                let _ = writeln!(row, "    {caller}: {seen}");
            }
            row
        })
        .buffered(8)
        .collect::<Vec<_>>()
        .await;
    // The same picture for every database.
    let mut pictures = insta::Settings::clone_current();
    pictures.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/http/snapshots"));
    pictures.set_prepend_module_to_snapshot(false);
    pictures.bind(|| insta::assert_snapshot!("every_route_answers_every_caller", table.concat()));
}
