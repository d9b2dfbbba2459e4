//! A gateway that is killed in the middle of its work: sandboxes stay, the next one takes them
//! over, and who was asking is told so in a way that says "again".

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod process;

use std::collections::BTreeMap;
use std::time::Duration;

use glovebox_client::{AgentClient, ClientError};
use glovebox_protocol::event::EventBody;
use glovebox_protocol::file::FileName;
use glovebox_protocol::gateway::SandboxState;
use glovebox_protocol::ids::{ExecutionId, SandboxId};
use glovebox_protocol::kernel::Execute;
use glovebox_protocol::process::{Argument, StartProcess, Stdin};
use glovebox_protocol::sign::BodyDigest;
use glovebox_runtime::conformance::Ran;
use tokio::io::AsyncWriteExt as _;

use process::Stage;

/// How long a machine may take to what is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

fn cell(code: &str) -> Execute {
    Execute {
        execution: ExecutionId::new(),
        code: code.into(),
        time_limit_ms: 60_000,
        output_limit_bytes: Execute::default_output_limit_bytes(),
        silent: false,
    }
}

fn script(code: &str) -> StartProcess {
    StartProcess {
        execution: ExecutionId::new(),
        argv: ["python3", "-c", code].map(Argument::from).into(),
        env: BTreeMap::new(),
        stdin: Stdin::Empty,
        time_limit_ms: 60_000,
        output_limit_bytes: None,
    }
}

async fn execute(client: &AgentClient, code: &str) -> String {
    let running = client.execute(&cell(code)).await.unwrap();
    Ran::of(running).await.text()
}

/// What a client is told whose gateway has gone away: that it may ask again, not that its sandbox
/// is gone.
fn says_that_the_way_is_cut(error: &ClientError) {
    let is_cut = error.is_gone() && error.code().is_none();
    assert!(is_cut, "{error:?}");
}

#[tokio::test]
async fn a_gateway_that_is_killed_during_an_execute_loses_no_sandbox() {
    let mut stage = Stage::start().await;
    let id = SandboxId::new();
    stage.gateway().create(&stage.wanted(id)).await.unwrap();
    let client = stage.agent(id);
    assert_eq!(execute(&client, "x = 41; print(x)").await, "41\n");
    let mut running = client
        .run(&script(
            "import time; print('begun', flush=True); time.sleep(50)",
        ))
        .await
        .unwrap();
    while !matches!(running.next().await.unwrap(), Some(EventBody::Stdout(_))) {}

    stage.kill();
    let cut = loop {
        match running.next().await {
            Ok(event) => assert!(event.is_some(), "the execution ended in good order"),
            Err(error) => break error,
        }
    };
    says_that_the_way_is_cut(&cut);
    let refused = client.status().await.unwrap_err();
    says_that_the_way_is_cut(&refused);

    stage.restart().await;
    let view = stage.gateway().sandbox(id).await.unwrap();
    assert_eq!(view.state, SandboxState::Running);
    // The client of before goes on: it learns by itself that the gateway is in another life.
    assert_eq!(execute(&client, "print(x + 1)").await, "42\n");
    let list = stage.gateway().sandboxes(None).await.unwrap();
    assert_eq!(list.items.len(), 1);
    stage.finish().await;
}

#[tokio::test]
async fn a_gateway_that_is_killed_during_an_upload_leaves_the_old_file_or_none() {
    let mut stage = Stage::start().await;
    let id = SandboxId::new();
    stage.gateway().create(&stage.wanted(id)).await.unwrap();
    let client = stage.agent(id);
    let name = FileName::from_bytes(b"half.bin").unwrap();
    let content = vec![7_u8; 1_000_000];
    let digest = BodyDigest::of(&content);
    let (mut feed, mut source) = tokio::io::duplex(64 * 1024);
    let uploading = {
        let (client, name) = (client.clone(), name.clone());
        tokio::spawn(async move { client.put(&name, &mut source, 1_000_000, digest).await })
    };
    feed.write_all(&content[..500_000]).await.unwrap();

    stage.kill();
    // Whether the rest is still taken depends on how much lies on the way.
    let _ = feed.write_all(&content[500_000..]).await;
    let cut = tokio::time::timeout(PATIENCE, uploading).await.unwrap();
    says_that_the_way_is_cut(&cut.unwrap().unwrap_err());

    stage.restart().await;
    let missing = client.stat(&name).await.unwrap_err();
    assert_eq!(
        missing.code(),
        Some(glovebox_protocol::error::ErrorCode::NotFound),
        "{missing:?}"
    );
    client.put_bytes(&name, content.into()).await.unwrap();
    stage.finish().await;
}

#[tokio::test]
async fn a_gateway_that_is_killed_during_creates_makes_each_sandbox_once_or_not_at_all() {
    let mut stage = Stage::start().await;
    for round in 0..glovebox_testkit::count(4, 100) {
        let wanted = stage.wanted(SandboxId::new());
        let creating = {
            let (gateway, wanted) = (stage.gateway(), wanted.clone());
            tokio::spawn(async move { gateway.create(&wanted).await })
        };
        // At another place of the making each time, the first ones before it has begun.
        for _ in 0..round * 40 {
            tokio::task::yield_now().await;
        }
        stage.kill();
        let _ = tokio::time::timeout(PATIENCE, creating).await.unwrap();
        stage.restart().await;
        // The same words again: there is one, or it is made now.
        let made = stage.gateway().create(&wanted).await.unwrap();
        assert_eq!(made.id, wanted.id);
        assert_eq!(execute(&stage.agent(made.id), "print(1 + 1)").await, "2\n");
        let list = stage.gateway().sandboxes(None).await.unwrap();
        assert_eq!(list.items.len(), 1, "{list:?}");
        stage.gateway().delete(made.id).await.unwrap();
    }
    stage.finish().await;
}
