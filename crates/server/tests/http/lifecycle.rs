//! How sandboxes come to be ready, are suspended, resumed and ended, with real ones: the server's own
//! gateway and worker, the embedded runtime, a kernel.

use std::time::{Duration, Instant};

use chrono::{TimeDelta, Utc};
use glovebox_protocol::class::ResourceClass;
use glovebox_protocol::gateway::CreateSandbox;
use glovebox_protocol::ids::SandboxId;
use glovebox_protocol::kernel::KernelState;
use glovebox_protocol::limits::{InputLimits, Limits};
use glovebox_server::Config;
use glovebox_store::{Lease, LeaseState, NewLease, ProfileSettings, Quotas};
use hyper::body::Bytes;
use serde_json::{Value, json};

use crate::embedded::{Running, start, told};
use crate::talk::{Talk, find, in_step, value};
use crate::visitor::types;
use crate::wire::{Who, listen, send};

/// How long something may take that is bound to come.
const PATIENCE: Duration = Duration::from_secs(90);

/// Saves a file, shows that it runs, and goes on.
const ENDLESS: &str = "open('half.csv', 'w').write('a\\n1\\n')
print('begun', flush=True)
import time
while True: time.sleep(1)";

/// Waits until something is so.
async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so().await {
        assert!(Instant::now() < deadline, "it has not come to be so");
        tokio::task::yield_now().await;
    }
}

/// Somebody with a server.
struct Home {
    server: Running,
    ada: Who,
    workspace: String,
    folder: tempfile::TempDir,
}

impl Home {
    /// A server whose profile has other settings than console and API take: limits of seconds.
    async fn with(change: impl FnOnce(&mut ProfileSettings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = start(folder.path()).await;
        let (ada, workspace) = server.begin().await;
        let store = server.app.store();
        let mut profile = store.profiles().await.unwrap().remove(0);
        change(&mut profile.settings);
        let mut changes = store.begin().await.unwrap();
        changes.update_profile(&profile).await.unwrap();
        changes.commit().await.unwrap();
        Self {
            server,
            ada,
            workspace,
            folder,
        }
    }

    /// The same with a server that was stopped and started again; `change` has its say.
    async fn again(self, change: impl FnOnce(&mut Config)) -> Self {
        self.server.stop().await;
        let server = told(self.folder.path(), change).await;
        Self { server, ..self }
    }

    async fn sandbox(&self) -> String {
        let wanted = json!({ "workspace_id": self.workspace });
        let made = self
            .server
            .call(&self.ada, "POST", "/api/v1/sandboxes", &wanted);
        made.await.ok()["id"].as_str().unwrap().to_owned()
    }

    /// Begins code; gives the path of its execution.
    async fn begin_code(&self, sandbox: &str, code: &str) -> String {
        let path = format!("/api/v1/sandboxes/{sandbox}/executions");
        let body = json!({ "code": code });
        let accepted = self.server.call(&self.ada, "POST", &path, &body).await.ok();
        format!("{path}/{}", accepted["id"].as_str().unwrap())
    }

    async fn lease(&self, id: &str) -> Lease {
        let lease = self.server.app.store().lease(id.parse().unwrap()).await;
        lease.unwrap().unwrap()
    }

    async fn until_state(&self, id: &str, state: LeaseState) -> Lease {
        until(async || self.lease(id).await.state == state).await;
        self.lease(id).await
    }

    /// The artifacts of a sandbox, by name, with what is in them.
    async fn artifacts(&self, sandbox: &str) -> Vec<(String, String)> {
        let workspace = &self.workspace;
        let path = format!("/api/v1/artifacts?workspace_id={workspace}&sandbox_id={sandbox}");
        let listed = self.server.get(&self.ada, &path).await.ok();
        let mut found = Vec::new();
        for item in listed["items"].as_array().unwrap() {
            let path = format!("/api/v1/artifacts/{}/content", item["id"].as_str().unwrap());
            let content = self.server.get(&self.ada, &path).await.text();
            found.push((item["name"].as_str().unwrap().to_owned(), content));
        }
        found
    }

    /// Puts a file into a sandbox, for code that waits for it.
    async fn put(&self, sandbox: &str, name: &str) {
        let path = format!("/api/v1/sandboxes/{sandbox}/files/{name}");
        let body = Bytes::from("go");
        send(self.server.address, &self.ada, "PUT", &path, &[], body)
            .await
            .ok();
    }

    async fn end_all(self) {
        let path = format!("/api/v1/sandboxes?workspace_id={}", self.workspace);
        let listed = self.server.get(&self.ada, &path).await.ok();
        for sandbox in listed["items"].as_array().unwrap() {
            let path = format!("/api/v1/sandboxes/{}", sandbox["id"].as_str().unwrap());
            let nothing = json!({});
            let end = self.server.call(&self.ada, "DELETE", &path, &nothing);
            end.await.ok();
        }
        self.server.stop().await;
    }
}

#[tokio::test]
async fn at_its_hard_limit_a_sandbox_tells_whoever_waits_and_gives_up_its_files_first() {
    let home = Home::with(|settings| {
        settings.hard_seconds = 40;
        settings.idle_seconds = 40;
    })
    .await;
    let busy = home.sandbox().await;
    let talk = Talk::begin(*home.server, &home.ada, &home.workspace, false).await;
    let run = home.begin_code(&busy, ENDLESS).await;
    // An older version that was restored is not undone by what still lies in the sandbox.
    let events = talk.run("open('back.csv', 'w').write('old')").await;
    let first = find(&events, "file_saved")["artifact"].clone();
    talk.run("open('back.csv', 'w').write('new')").await;
    // What goes on after its call has ended, and saves something when nobody runs code any more.
    talk.run(
        "import os, threading, time
def late():
    while not os.path.exists('go.txt'): time.sleep(0.05)
    open('late.csv', 'w').write('b\\n2\\n')
threading.Thread(target=late).start()",
    )
    .await;
    let thread = talk.id.parse().unwrap();
    let quiet = home.server.app.store().lease_of_thread(thread).await;
    let quiet = quiet.unwrap().unwrap().id.to_string();
    let mut told = talk
        .listen(talk.show().await["last_seq"].as_u64().unwrap())
        .await;
    let first = format!("/api/v1/artifacts/{}", first.as_str().unwrap());
    let restore = format!("{first}/restore");
    let restored = home
        .server
        .call(&home.ada, "POST", &restore, &json!({}))
        .await;
    assert_eq!(restored.status, 201);
    home.put(&quiet, "go.txt").await;

    let events = home
        .server
        .events(&home.ada, &format!("{run}/events"))
        .await;
    let last = events.last().unwrap();
    assert_eq!(last["type"], "sandbox_gone", "{events:?}");
    let said = last["data"]["reason"].as_str().unwrap();
    assert!(said.contains("hard limit of 40 s"), "{said}");
    assert!(types(&events).contains(&"artifact"), "{events:?}");
    let ended = home.until_state(&busy, LeaseState::Ended).await;
    assert_eq!(ended.ended_why.unwrap().as_str(), "hard_limit", "{ended:?}");
    let saved = ("half.csv".to_owned(), "a\n1\n".to_owned());
    assert_eq!(home.artifacts(&busy).await, [saved]);

    let restored = told.until("file_saved").await;
    assert_eq!(find(&restored, "file_saved")["restored_version"], 1);
    let saved = told.until("file_saved").await;
    assert_eq!(find(&saved, "file_saved")["name"], "late.csv");
    let ended = home.until_state(&quiet, LeaseState::Ended).await;
    let detail = ended.ended_detail.unwrap();
    assert!(detail.contains("hard limit of 40 s"), "{detail}");
    assert!(!detail.contains(';'), "something is missing: {detail}");
    // The next one has it, and what was restored.
    let events = talk
        .run("open('late.csv').read() + open('back.csv').read()")
        .await;
    assert_eq!(value(&events), "'b\\n2\\nold'");
    let versions = format!("{first}/versions");
    let versions = home.server.get(&home.ada, &versions).await.ok();
    assert_eq!(versions["items"].as_array().unwrap().len(), 3, "{versions}");
    home.end_all().await;
}

#[tokio::test]
async fn code_of_a_server_that_is_stopped_is_told_why_it_ends() {
    let home = Home::with(|_| ()).await;
    let sandbox = home.sandbox().await;
    home.server.run(&home.ada, &sandbox, "kept = 7").await;
    let run = home.begin_code(&sandbox, ENDLESS).await;
    let path = format!("{run}/events");
    let mut reader = listen(home.server.address, &home.ada, &path).await;
    reader.until("stdout").await;
    let (told, home) = tokio::join!(reader.until("failed"), home.again(|_| ()));
    let said = told.last().unwrap()["data"]["message"].as_str().unwrap();
    assert!(said.contains("is being stopped"), "{said}");
    assert!(types(&told).contains(&"artifact"), "{told:?}");
    assert!(reader.next().await.is_none(), "it was the last event");

    // The next one finds it ended, and the sandbox as it was.
    let shown = home.server.get(&home.ada, &run).await.ok();
    assert_eq!(shown["state"], "ended");
    let events = home.server.run(&home.ada, &sandbox, "kept").await;
    assert_eq!(events[1]["data"]["data"]["text/plain"], "7", "{events:?}");
    home.end_all().await;
}

#[tokio::test]
async fn a_reply_of_a_server_that_is_stopped_ends_with_a_reason() {
    let home = Home::with(|_| ()).await;
    let talk = Talk::begin(*home.server, &home.ada, &home.workspace, false).await;
    let mut reader = talk.listen(0).await;
    talk.try_send("code", ENDLESS, &[]).await.ok();
    while !crate::talk::has_begun(&reader.next().await.unwrap()) {}
    let (told, home) = tokio::join!(reader.until("reply_ended"), home.again(|_| ()));
    let ended = find(&told, "reply_ended");
    assert_eq!(ended["outcome"], "failed", "{told:?}");
    let said = ended["error"]["message"].as_str().unwrap();
    assert!(said.contains("is being stopped"), "{said}");
    home.end_all().await;
}

#[tokio::test]
async fn a_stop_of_one_execution_stops_no_other() {
    let home = Home::with(|_| ()).await;
    let sandbox = home.sandbox().await;
    let first = home.begin_code(&sandbox, "1").await;
    home.server
        .events(&home.ada, &format!("{first}/events"))
        .await;
    let waits = "import os, time
while not os.path.exists('go.txt'): time.sleep(0.05)
'went on'";
    let second = home.begin_code(&sandbox, waits).await;
    let interrupt = async |run: &str| {
        let path = format!("{run}/interrupt");
        let answer = home.server.call(&home.ada, "POST", &path, &json!({})).await;
        assert_eq!(answer.status, 202, "{}", answer.text());
        answer.json()["state"].clone()
    };
    assert_eq!(interrupt(&first).await, "ended");
    // Asked of the agent itself too, which knows the first one as ended.
    let id = sandbox.parse().unwrap();
    let execution = first.rsplit_once('/').unwrap().1.parse().unwrap();
    let how = glovebox_protocol::process::Cancel::Kill;
    let refused = home
        .server
        .app
        .agent(id)
        .cancel_execute(execution, how)
        .await;
    let code = refused.unwrap_err().code();
    assert_eq!(code, Some(glovebox_protocol::error::ErrorCode::Conflict));
    home.put(&sandbox, "go.txt").await;
    let events = home
        .server
        .events(&home.ada, &format!("{second}/events"))
        .await;
    let value = events.iter().find(|event| event["type"] == "result");
    assert_eq!(value.unwrap()["data"]["data"]["text/plain"], "'went on'");

    // At once, so that it may come before the code.
    let third = home.begin_code(&sandbox, ENDLESS).await;
    interrupt(&third).await;
    let events = home
        .server
        .events(&home.ada, &format!("{third}/events"))
        .await;
    let ended = &events.last().unwrap()["data"]["outcome"]["how"];
    assert!(ended == "cancelled" || ended == "raised", "{events:?}");
    home.end_all().await;
}

#[tokio::test]
async fn of_a_sandbox_that_is_gone_an_interrupt_says_so() {
    let home = Home::with(|_| ()).await;
    let sandbox = home.sandbox().await;
    let run = home.begin_code(&sandbox, ENDLESS).await;
    let path = format!("{run}/events");
    let mut reader = listen(home.server.address, &home.ada, &path).await;
    reader.until("stdout").await;
    let id: SandboxId = sandbox.parse().unwrap();
    home.server.app.gateway().delete(id).await.unwrap();
    let path = format!("{run}/interrupt");
    let answer = home.server.call(&home.ada, "POST", &path, &json!({})).await;
    // Whoever drives it may have seen the end before.
    let is_told = answer.status == 202 && answer.json()["state"] == "ended";
    assert!(
        is_told || (answer.status, answer.code().as_str()) == (409, "sandbox_gone"),
        "{} {}",
        answer.status,
        answer.text()
    );
    reader.until("sandbox_gone").await;
    home.end_all().await;
}

#[tokio::test]
async fn an_idle_sandbox_is_suspended_and_its_files_are_there_when_it_is_used_again() {
    let home = Home::with(|settings| settings.idle_seconds = 1).await;
    let sandbox = home.sandbox().await;
    let code = "kept = 7; open('kept.txt', 'w').write('still here')";
    home.server.run(&home.ada, &sandbox, code).await;
    until(async || home.lease(&sandbox).await.is_quiet).await;
    assert_eq!(home.lease(&sandbox).await.state, LeaseState::Suspended);
    let path = format!("/api/v1/workspaces/{}/code-execution", home.workspace);
    let meters = home.server.get(&home.ada, &path).await.ok();
    assert_eq!(meters["meters"]["concurrent"], 0);

    let code = "open('kept.txt').read(), 'kept' in globals()";
    let events = home.server.run(&home.ada, &sandbox, code).await;
    let replaced = events
        .iter()
        .find(|event| event["type"] == "kernel_replaced");
    let reason = replaced.unwrap()["data"]["reason"].as_str().unwrap();
    assert_eq!(reason, "the kernel was ended because nobody used it");
    let value = events.iter().find(|event| event["type"] == "result");
    let value = value.unwrap_or_else(|| panic!("no value: {events:?}"));
    let value = &value["data"]["data"]["text/plain"];
    assert_eq!(value, "('still here', False)");

    let talk = Talk::begin(*home.server, &home.ada, &home.workspace, false).await;
    talk.run("kept = 7; open('mine.txt', 'w').write('mine')")
        .await;
    let thread = talk.id.parse().unwrap();
    let store = home.server.app.store();
    until(async || {
        let lease = store.lease_of_thread(thread).await.unwrap().unwrap();
        lease.state == LeaseState::Suspended && lease.is_quiet
    })
    .await;
    let events = talk
        .run("open('mine.txt').read(), 'kept' in globals()")
        .await;
    assert_eq!(value_of(&events), "('mine', False)");
    let notice = find(&events, "notice");
    assert_eq!(notice["code"], "kernel_replaced", "{events:?}");
    home.end_all().await;
}

fn value_of(events: &[Value]) -> &str {
    assert!(!in_step(events).is_empty(), "{events:?}");
    value(events)
}

/// What a worker leaves that is killed between its note that a sandbox is suspended and the end of
/// its processes.
#[tokio::test]
async fn a_sandbox_that_was_only_noted_as_suspended_is_suspended_by_the_next_sweep() {
    let home = Home::with(|settings| settings.idle_seconds = 1).await;
    // One that does not sweep.
    let home = home.again(|config| config.queues = Vec::new()).await;
    let sandbox = home.sandbox().await;
    let id: SandboxId = sandbox.parse().unwrap();
    home.server.run(&home.ada, &sandbox, "kept = 7").await;
    let store = home.server.app.store();
    until(async || store.suspend_idle_lease(id).await.unwrap()).await;
    let kernel = async |running: &Running| running.app.agent(id).kernel().await.unwrap().state;
    assert_eq!(kernel(&home.server).await, KernelState::Idle);
    assert!(!home.lease(&sandbox).await.is_quiet);
    let home = home.again(|_| ()).await;
    until(async || home.lease(&sandbox).await.is_quiet).await;
    assert_eq!(kernel(&home.server).await, KernelState::Absent);
    home.end_all().await;
}

#[tokio::test]
async fn the_sweep_finds_sandboxes_that_are_there_on_one_side_only() {
    let home = Home::with(|_| ()).await;
    let app = &home.server.app;
    let store = app.store();
    let me = home.server.get(&home.ada, "/api/v1/session").await.ok();
    let user = me["user"]["id"].as_str().unwrap().parse().unwrap();
    let workspace = home.workspace.parse().unwrap();
    let access = store
        .access_of_user(user, workspace)
        .await
        .unwrap()
        .unwrap();
    let profile = store.profiles().await.unwrap().remove(0);
    let placed = async || {
        let new = NewLease {
            id: SandboxId::new(),
            profile_id: profile.id,
            thread_id: None,
            class: ResourceClass::Small,
            idle_limit_ms: 600_000,
            hard_deadline: Utc::now() + TimeDelta::hours(1),
        };
        let mut changes = store.begin().await.unwrap();
        let placed = changes
            .create_lease(&access, &Quotas::default(), &new)
            .await;
        placed.unwrap().unwrap();
        changes.commit().await.unwrap();
        new
    };
    // Whoever made this one was ended before it could note that it is there.
    let made = placed().await;
    let wanted = CreateSandbox {
        id: made.id,
        installation: app.installation(),
        image: None,
        limits: Limits::of(made.class),
        input_limits: InputLimits::default(),
        trust_domain: format!("workspace:{workspace}"),
        start: profile.settings.start,
        idle_limit_ms: None,
        hard_deadline_ms: made.hard_deadline.timestamp_millis(),
        start_limit_ms: 90_000,
        is_unclaimed: false,
    };
    app.gateway().create(&wanted).await.unwrap();
    // And this one its gateway has lost.
    let lost = placed().await;
    let moved = store.move_lease(lost.id, LeaseState::Starting, LeaseState::Ready);
    assert!(moved.await.unwrap());

    let lost = home
        .until_state(&lost.id.to_string(), LeaseState::Ended)
        .await;
    assert_eq!(lost.ended_why.unwrap().as_str(), "gateway_lost");
    let made = made.id.to_string();
    home.until_state(&made, LeaseState::Ready).await;
    let events = home.server.run(&home.ada, &made, "6 * 7").await;
    assert_eq!(events[1]["data"]["data"]["text/plain"], "42", "{events:?}");
    home.end_all().await;
}
