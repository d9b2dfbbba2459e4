//! Somebody who uses a server that makes real sandboxes.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hyper::body::Bytes;
use serde_json::{Value, json};

use crate::wire::{Answer, Who, send, session_of};

/// How long a gateway may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// Somebody who knows where it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Visitor {
    pub(crate) address: SocketAddr,
}

impl Visitor {
    pub(crate) async fn call(&self, who: &Who, method: &str, path: &str, body: &Value) -> Answer {
        let headers = [("content-type", "application/json")];
        let body = Bytes::from(body.to_string());
        send(self.address, who, method, path, &headers, body).await
    }

    pub(crate) async fn get(&self, who: &Who, path: &str) -> Answer {
        send(self.address, who, "GET", path, &[], Bytes::new()).await
    }

    /// What a first administrator does with the link: proves the profile, activates it, switches
    /// all on. Gives the session and the workspace.
    pub(crate) async fn open(&self, link: &str) -> (Who, String) {
        let body = json!({
            "token": link.split_once("#token=").unwrap().1,
            "email": "ada@example.com", "name": "Ada", "password": "correct horse battery"
        });
        let done = self
            .call(&Who::Nobody, "POST", "/api/v1/setup", &body)
            .await;
        let ada = session_of(&done);
        let me = done.ok();
        let workspace = me["memberships"][0]["workspace_id"]
            .as_str()
            .unwrap()
            .to_owned();
        let profiles = self.get(&ada, "/api/v1/admin/profiles").await.ok();
        let id = profiles["items"][0]["profile"]["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let one = format!("/api/v1/admin/profiles/{id}");
        let early = self
            .call(&ada, "POST", &format!("{one}/activate"), &json!({}))
            .await;
        assert_eq!(
            (early.status, early.code()),
            (409, "activation_blocked".into())
        );
        // The gateway may still be starting.
        let test = format!("{one}/test");
        let deadline = Instant::now() + PATIENCE;
        loop {
            let detail = self.call(&ada, "POST", &test, &json!({})).await.ok();
            if detail["test"]["is_passed"] == true {
                break;
            }
            assert!(Instant::now() < deadline, "{detail}");
            tokio::task::yield_now().await;
        }
        for (method, what) in [
            ("POST", "canary"),
            ("PUT", "acknowledgements/shared_kernel"),
            ("POST", "activate"),
        ] {
            let detail = self
                .call(&ada, method, &format!("{one}/{what}"), &json!({}))
                .await
                .ok();
            assert_ne!(detail["canary"]["is_passed"], false, "{detail}");
        }
        let on = json!({ "code_execution": true, "default_profile_id": id });
        self.call(&ada, "PATCH", "/api/v1/admin/sandbox", &on)
            .await
            .ok();
        let all = self.get(&ada, "/api/v1/admin/workspaces").await.ok();
        let on = json!({ "version": all["items"][0]["version"], "code_execution": true });
        let path = format!("/api/v1/admin/workspaces/{workspace}");
        self.call(&ada, "PATCH", &path, &on).await.ok();
        (ada, workspace)
    }

    /// Runs code and gives the events.
    pub(crate) async fn run(&self, who: &Who, sandbox: &str, code: &str) -> Vec<Value> {
        let path = format!("/api/v1/sandboxes/{sandbox}/executions");
        let accepted = self
            .call(who, "POST", &path, &json!({ "code": code }))
            .await;
        assert_eq!(accepted.status, 202, "{}", accepted.text());
        let id = accepted.json()["id"].as_str().unwrap().to_owned();
        self.events(who, &format!("{path}/{id}/events")).await
    }

    pub(crate) async fn events(&self, who: &Who, path: &str) -> Vec<Value> {
        let stream = self.get(who, path).await;
        assert_eq!(stream.headers["content-type"], "text/event-stream");
        stream
            .text()
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .map(|data| serde_json::from_str(data).unwrap())
            .collect()
    }
}

/// The types of events.
pub(crate) fn types(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect()
}
