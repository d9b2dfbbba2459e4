//! A gateway that is killed in the middle of its work: sandboxes stay, the next one takes them
//! over, and who was asking is told so in a way that says "again".

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

#[path = "../../../runtime-engine/tests/support/mod.rs"]
mod engine;
mod process;

use std::collections::BTreeMap;
use std::time::Duration;

use glovebox_client::{AgentClient, ClientError};
use glovebox_protocol::capability::Capability;
use glovebox_protocol::error::ErrorCode;
use glovebox_protocol::event::{Ended, EventBody, Outcome};
use glovebox_protocol::file::FileName;
use glovebox_protocol::gateway::SandboxState;
use glovebox_protocol::ids::{ExecutionId, SandboxId};
use glovebox_protocol::kernel::Execute;
use glovebox_protocol::process::{Argument, ExecutionState, StartProcess, Stdin};
use glovebox_protocol::sign::BodyDigest;
use glovebox_runtime::conformance::Ran;
use tokio::io::AsyncWriteExt as _;

use process::{Kind, Stage};

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
    during_an_execute(Kind::Embedded).await;
}

#[tokio::test]
async fn a_gateway_that_is_killed_during_an_upload_leaves_the_old_file_or_none() {
    during_an_upload(Kind::Embedded).await;
}

#[tokio::test]
async fn a_gateway_that_is_killed_during_creates_makes_each_sandbox_once_or_not_at_all() {
    during_creates(Kind::Embedded).await;
}

#[tokio::test]
async fn a_launcher_that_is_killed_takes_its_sandboxes_along_and_is_replaced() {
    let stage = Stage::start(Kind::Embedded).await;
    let lost = stage.wanted(SandboxId::new());
    stage.gateway().create(&lost).await.unwrap();
    stage.kill_launcher();
    let gone = async {
        let mut look = tokio::time::interval(Duration::from_millis(50));
        loop {
            look.tick().await;
            let view = stage.gateway().sandbox(lost.id).await.unwrap();
            if let SandboxState::Ended { reason, .. } = view.state {
                return reason;
            }
        }
    };
    let reason = tokio::time::timeout(PATIENCE, gone).await.unwrap();
    assert_eq!(reason, "the launcher has ended");
    let next = stage.wanted(SandboxId::new());
    stage.gateway().create(&next).await.unwrap();
    assert_eq!(execute(&stage.agent(next.id), "print(1 + 1)").await, "2\n");
    stage.finish().await;
}

#[tokio::test]
async fn a_second_gateway_of_an_installation_is_told_so_and_does_no_harm() {
    let mut stage = Stage::start(Kind::Embedded).await;
    let wanted = stage.wanted(SandboxId::new());
    stage.gateway().create(&wanted).await.unwrap();
    let (did_well, said) = stage.second();
    assert!(
        !did_well && said.contains("serves another runtime"),
        "{said}"
    );
    assert_eq!(
        execute(&stage.agent(wanted.id), "print(1 + 1)").await,
        "2\n"
    );
    stage.finish().await;
}

mod docker {
    use super::Kind;

    #[tokio::test]
    async fn a_gateway_that_is_killed_during_an_execute_loses_no_sandbox() {
        super::during_an_execute(Kind::Docker).await;
    }

    #[tokio::test]
    async fn a_gateway_that_is_killed_during_an_upload_leaves_the_old_file_or_none() {
        super::during_an_upload(Kind::Docker).await;
    }

    #[tokio::test]
    async fn a_gateway_that_is_killed_during_creates_makes_each_sandbox_once_or_not_at_all() {
        super::during_creates(Kind::Docker).await;
    }
}

/// Says that it has begun, waits for a file, and leaves another: once, however often it is asked.
const PATIENT: &str = "import os, time\n\
    open('begun', 'a').write('x')\n\
    print('begun', flush=True)\n\
    while not os.path.exists('go'): time.sleep(0.05)\n\
    open('done', 'a').write('x')";

/// How an execution stands, when it has ended.
async fn ended(client: &AgentClient, execution: ExecutionId) -> Ended {
    let looking = async {
        let mut look = tokio::time::interval(Duration::from_millis(50));
        loop {
            look.tick().await;
            if let ExecutionState::Ended { ended } = client.execution(execution).await.unwrap() {
                return ended;
            }
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.unwrap()
}

async fn during_an_execute(kind: Kind) {
    let mut stage = Stage::start(kind).await;
    let id = SandboxId::new();
    stage.gateway().create(&stage.wanted(id)).await.unwrap();
    let client = stage.agent(id);
    assert_eq!(execute(&client, "x = 41; print(x)").await, "41\n");
    let start = script(PATIENT);
    let mut running = client.run(&start).await.unwrap();
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

    stage.restart();
    let view = stage.gateway().sandbox(id).await.unwrap();
    assert_eq!(view.state, SandboxState::Running);
    // The client of before goes on: it learns by itself that the gateway is in another life.
    assert_eq!(execute(&client, "print(x + 1)").await, "42\n");
    let go = FileName::from_bytes(b"go").unwrap();
    client.put_bytes(&go, bytes::Bytes::new()).await.unwrap();
    let ended = ended(&client, start.execution).await;
    let content = async |name: &str| {
        let name = FileName::from_bytes(name).unwrap();
        client.get_bytes(&name, 1024).await.ok()
    };
    assert_eq!(content("begun").await.as_deref(), Some(&b"x"[..]));
    let capabilities = stage.gateway().info().await.unwrap().capabilities;
    if capabilities.has(Capability::KeepsExecutions) {
        assert_eq!(ended.outcome, Outcome::Exited { code: 0 }, "{ended:?}");
        assert_eq!(content("done").await.as_deref(), Some(&b"x"[..]));
        // Its id is used: the same request again runs nothing.
        let again = client.run(&start).await.map(drop).unwrap_err();
        assert_eq!(again.code(), Some(ErrorCode::Conflict), "{again:?}");
        assert_eq!(content("begun").await.as_deref(), Some(&b"x"[..]));
    } else {
        assert_ne!(ended.outcome, Outcome::Exited { code: 0 }, "{ended:?}");
        assert_eq!(content("done").await, None);
    }
    let list = stage.gateway().sandboxes(None).await.unwrap();
    assert_eq!(list.items.len(), 1);
    if stage.kind == Kind::Docker {
        assert_eq!(stage.containers(), 1);
    }
    stage.finish().await;
}

async fn during_an_upload(kind: Kind) {
    let mut stage = Stage::start(kind).await;
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

    stage.restart();
    let missing = client.stat(&name).await.unwrap_err();
    assert_eq!(missing.code(), Some(ErrorCode::NotFound), "{missing:?}");
    client.put_bytes(&name, content.into()).await.unwrap();
    stage.finish().await;
}

async fn during_creates(kind: Kind) {
    let mut stage = Stage::start(kind).await;
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
        stage.restart();
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
