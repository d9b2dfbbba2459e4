//! The whole way, with real sandboxes: the server's own gateway, the embedded runtime, a kernel.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use glovebox_protocol::gateway::SandboxState;
use glovebox_protocol::ids::SandboxId;
use glovebox_server::Config;
use glovebox_server::program::Server;
use glovebox_server::reset::reset_secrets;
use glovebox_store::Actor;
use glovebox_testkit::program;
use hyper::body::Bytes;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::stage::config;
use crate::visitor::{Visitor, types};
use crate::wire::{Who, send};

/// A server as `glovebox serve` runs it.
pub(crate) struct Running {
    visitor: Visitor,
    pub(crate) app: glovebox_server::app::App,
    stop: oneshot::Sender<()>,
    ended: tokio::task::JoinHandle<()>,
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test has no other way to be told"
)]
fn tree() -> PathBuf {
    std::env::var_os("GLOVEBOX_TEST_DATA")
        .expect("GLOVEBOX_TEST_DATA names a set-up tree; run `make test`")
        .into()
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test has no other way to be told"
)]
fn search() -> std::ffi::OsString {
    std::env::var_os("PATH").unwrap()
}

pub(crate) async fn start(folder: &Path) -> Running {
    told(folder, |_| ()).await
}

/// The same, of what it is told `change` has its say.
pub(crate) async fn told(folder: &Path, change: impl FnOnce(&mut Config)) -> Running {
    let running = begun(folder, |config| {
        change(config);
        config.gateway.program = program("glovebox-gateway").unwrap();
    })
    .await;
    // The gateway is ready when it answers.
    let patience = Instant::now() + Duration::from_secs(60);
    while let Err(error) = running.app.gateway().info().await {
        assert!(
            Instant::now() < patience,
            "the gateway does not answer: {error}"
        );
        tokio::task::yield_now().await;
    }
    running
}

/// The same, whether its gateway answers or not.
pub(crate) async fn begun(folder: &Path, change: impl FnOnce(&mut Config)) -> Running {
    let mut config = config(folder);
    change(&mut config);
    config.gateway.tree = tree();
    config.gateway.search = search();
    let server = Server::open(config).await.unwrap();
    let app = server.app().clone();
    let (stop, stopped) = oneshot::channel::<()>();
    let address = app.config().listen;
    let ended = tokio::spawn(async move {
        let stopped = async move {
            let _ = stopped.await;
        };
        server.run(stopped).await.unwrap();
    });
    Running {
        visitor: Visitor { address },
        app,
        stop,
        ended,
    }
}

impl Deref for Running {
    type Target = Visitor;

    fn deref(&self) -> &Visitor {
        &self.visitor
    }
}

impl Running {
    /// What the first administrator does.
    pub(crate) async fn begin(&self) -> (Who, String) {
        let link = self.app.new_setup_link().await.unwrap().unwrap();
        self.open(&link).await
    }

    pub(crate) async fn stop(self) {
        let _ = self.stop.send(());
        self.ended.await.unwrap();
    }
}

/// What the example of the Python client says.
async fn python_client(address: std::net::SocketAddr, key: &Who) -> String {
    let Who::Key(key) = key else {
        panic!("it takes a key")
    };
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/python");
    let ran = tokio::process::Command::new("python3")
        .arg(client.join("examples/sum.py"))
        .env("PYTHONPATH", client.join("src"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("GLOVEBOX_URL", format!("http://{address}"))
        .env("GLOVEBOX_KEY", key)
        .output()
        .await
        .unwrap();
    let complaint = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{complaint}");
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

const SUM: &str = "total = sum(n * n for n in range(1, 101))
open('sum.csv', 'w').write(f'sum\\n{total}\\n')
print('counted')
total";

#[tokio::test]
#[expect(
    clippy::too_many_lines,
    reason = "one journey, told from its beginning to its end"
)]
async fn from_the_first_link_to_a_file_that_left_a_sandbox() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path()).await;
    let (ada, workspace) = server.begin().await;
    let keys = format!("/api/v1/workspaces/{workspace}/api-keys");
    let wanted = json!({ "name": "script", "scopes": [
        "code_execution:run", "files:read", "files:write", "artifacts:read"] });
    let made = server.call(&ada, "POST", &keys, &wanted).await.ok();
    let key = Who::Key(made["token"].as_str().unwrap().to_owned());

    let sandbox = server
        .call(&key, "POST", "/api/v1/sandboxes", &json!({}))
        .await
        .ok();
    let id = sandbox["id"].as_str().unwrap();
    let put = format!("/api/v1/sandboxes/{id}/files/in%20a%2Fb.txt");
    let refused = send(server.address, &key, "PUT", &put, &[], Bytes::from("x")).await;
    assert_eq!((refused.status, refused.code()), (400, "invalid".into()));
    let put = format!("/api/v1/sandboxes/{id}/files/folder/in%20%C3%A4.txt");
    let stored = send(server.address, &key, "PUT", &put, &[], Bytes::from("hello"))
        .await
        .ok();
    assert_eq!(stored["bytes"], 5);
    let events = server.run(&key, id, SUM).await;
    assert_eq!(
        types(&events),
        [
            "execution_started",
            "stdout",
            "result",
            "artifact",
            "execution_ended"
        ]
    );
    assert_eq!(events[2]["data"]["data"]["text/plain"], "338350");
    let again = server
        .run(&key, id, "open('folder/in ä.txt').read(), total")
        .await;
    assert_eq!(again[1]["data"]["data"]["text/plain"], "('hello', 338350)");
    assert!(!types(&again).contains(&"artifact"), "it has not changed");

    let listed = server.get(&key, "/api/v1/artifacts").await.ok();
    let artifact = &listed["items"][0];
    assert_eq!(
        (&artifact["name"], &artifact["version"]),
        (&json!("sum.csv"), &json!(1))
    );
    let path = format!(
        "/api/v1/artifacts/{}/content",
        artifact["id"].as_str().unwrap()
    );
    let content = server.get(&key, &path).await;
    assert_eq!(content.text(), "sum\n338350\n");
    assert_eq!(
        content.headers["content-disposition"],
        "attachment; filename*=UTF-8''sum.csv"
    );
    let direct = server
        .get(&key, &format!("/api/v1/sandboxes/{id}/files/sum.csv"))
        .await;
    assert_eq!(direct.text(), "sum\n338350\n");

    let said = python_client(server.address, &key).await;
    assert_eq!(
        said,
        "the sum is 338350 \nsquares.csv, version 1:\nlimit,sum\n100,338350\n"
    );

    let meters = server
        .get(
            &ada,
            &format!("/api/v1/workspaces/{workspace}/code-execution"),
        )
        .await
        .ok();
    assert_eq!(meters["meters"]["concurrent"], 1);
    assert_eq!(meters["meters"]["artifact_bytes_today"], 11 + 21);
    let live = server.get(&ada, "/api/v1/admin/sandboxes").await.ok();
    assert_eq!(live["items"][0]["user_email"], "ada@example.com");
    let path = format!("/api/v1/sandboxes/{id}");
    let ended = server.call(&key, "DELETE", &path, &json!({})).await.ok();
    assert_eq!(ended["ended_why"], "asked");
    let gone = server
        .call(
            &key,
            "POST",
            &format!("{path}/executions"),
            &json!({ "code": "1" }),
        )
        .await;
    assert_eq!((gone.status, gone.code()), (409, "sandbox_gone".into()));
    server.stop().await;
}

#[tokio::test]
async fn code_is_interrupted_and_a_server_that_comes_back_finds_its_sandboxes() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path()).await;
    let (ada, workspace) = server.begin().await;
    let wanted = json!({ "workspace_id": workspace });
    let sandbox = server
        .call(&ada, "POST", "/api/v1/sandboxes", &wanted)
        .await
        .ok();
    let id = sandbox["id"].as_str().unwrap().to_owned();
    server.run(&ada, &id, "kept = 7").await;
    let path = format!("/api/v1/sandboxes/{id}/executions");
    let body = json!({ "code": "print('begun')\nwhile True: pass" });
    let accepted = server.call(&ada, "POST", &path, &body).await.ok();
    let run = format!("{path}/{}", accepted["id"].as_str().unwrap());
    let busy = server
        .call(&ada, "POST", &path, &json!({ "code": "1" }))
        .await;
    assert_eq!((busy.status, busy.code()), (409, "busy".into()));
    let interrupt = server
        .call(&ada, "POST", &format!("{run}/interrupt"), &json!({}))
        .await;
    assert_eq!(interrupt.status, 202);
    let events = server.events(&ada, &format!("{run}/events")).await;
    assert_eq!(types(&events).last(), Some(&"execution_ended"));
    let rest = server.events(&ada, &format!("{run}/events?after=1")).await;
    assert_eq!(rest[0]["seq"], 2);
    server.stop().await;

    // The sandbox has outlived server and gateway; so has what is in it.
    let server = start(folder.path()).await;
    let events = server.run(&ada, &id, "kept").await;
    assert_eq!(events[1]["data"]["data"]["text/plain"], "7", "{events:?}");
    let ended = server
        .call(
            &ada,
            "DELETE",
            &format!("/api/v1/sandboxes/{id}"),
            &json!({}),
        )
        .await;
    assert_eq!(ended.ok()["state"], "ended");
    server.stop().await;
}

/// The names of the sockets of boxes below a folder: the id of the sandbox that a box was made for,
/// or one that no sandbox has where it was made in advance.
fn boxes(folder: &Path) -> Vec<String> {
    let entries = fs_err::read_dir(folder).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => boxes(&entry.path()),
            _ => vec![entry.file_name().to_string_lossy().into_owned()],
        })
        .filter(|name| name.parse::<SandboxId>().is_ok())
        .collect()
}

#[tokio::test]
async fn a_warm_pool_is_kept_and_given_away() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path()).await;
    let (ada, workspace) = server.begin().await;
    let all = server.get(&ada, "/api/v1/admin/profiles").await.ok();
    let profile = &all["items"][0]["profile"];
    let path = format!("/api/v1/admin/profiles/{}", profile["id"].as_str().unwrap());
    let set = async |warm_pool: u32, version: &Value| {
        let mut settings = profile["settings"].clone();
        settings["warm_pool"] = json!(warm_pool);
        let change = json!({ "version": version, "settings": settings });
        server.call(&ada, "PATCH", &path, &change).await.ok()["profile"]["version"].clone()
    };
    let version = set(2, &profile["version"]).await;
    let run = folder.path().join("run");
    until(|| boxes(&run).len() == 2).await;
    let wanted = json!({ "workspace_id": workspace });
    let made = server
        .call(&ada, "POST", "/api/v1/sandboxes", &wanted)
        .await
        .ok();
    let id = made["id"].as_str().unwrap();
    assert!(!boxes(&run).contains(&id.to_owned()), "it was made anew");
    assert_eq!(
        server.run(&ada, id, "1 + 1").await[1]["data"]["data"]["text/plain"],
        "2"
    );
    // Another one takes its place, until none is wanted any more.
    until(|| boxes(&run).len() == 3).await;
    set(0, &version).await;
    until(|| boxes(&run).len() == 1).await;
    // It would outlive the test.
    let path = format!("/api/v1/sandboxes/{id}");
    server.call(&ada, "DELETE", &path, &json!({})).await.ok();
    server.stop().await;
}

/// Waits until something is so.
async fn until(is_so: impl Fn() -> bool) {
    let patience = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < patience, "it has not come to be so");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn sandboxes_end_with_the_key_that_their_agents_obey() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path()).await;
    let (ada, workspace) = server.begin().await;
    let wanted = json!({ "workspace_id": workspace });
    let sandboxes = "/api/v1/sandboxes";
    let before = server.call(&ada, "POST", sandboxes, &wanted).await.ok();
    let before = before["id"].as_str().unwrap();
    server.run(&ada, before, "kept = 7").await;
    server.stop().await;

    let actor = Actor::command_line("user id 7");
    let reset = reset_secrets(&config(folder.path()), &actor, true).await;
    assert_eq!(reset.unwrap().ended, 1);
    let server = start(folder.path()).await;
    let id = before.parse().unwrap();
    let patience = Instant::now() + Duration::from_secs(60);
    while let Ok(view) = server.app.gateway().sandbox(id).await
        && !matches!(view.state, SandboxState::Ended { .. })
    {
        assert!(Instant::now() < patience, "the sandbox is still there");
        tokio::task::yield_now().await;
    }
    let gone = server
        .get(&ada, &format!("{sandboxes}/{before}"))
        .await
        .ok();
    assert_eq!(gone["ended_why"], "admin", "{gone}");
    // The new key reaches what is made from now on.
    let after = server.call(&ada, "POST", sandboxes, &wanted).await.ok();
    let after = after["id"].as_str().unwrap();
    let events = server.run(&ada, after, "6 * 7").await;
    assert_eq!(events[1]["data"]["data"]["text/plain"], "42", "{events:?}");
    let path = format!("{sandboxes}/{after}");
    server.call(&ada, "DELETE", &path, &json!({})).await.ok();
    server.stop().await;
}
