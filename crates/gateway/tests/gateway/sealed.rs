//! With real sandboxes: the embedded runtime behind the gateway.

use std::path::PathBuf;
use std::sync::Arc;

use glovebox_box::control::DEFAULT_ROOT_RANGE_START;
use glovebox_client::canary;
use glovebox_protocol::agent_config::Start;
use glovebox_protocol::gateway::{CanaryResult, CheckStatus, Preflight, Verdict};
use glovebox_protocol::ids::InstallationId;
use glovebox_protocol::process::StartProcess;
use glovebox_runtime_embedded::tree::{LOCK, Programs, Setup, Silent};
use glovebox_runtime_embedded::{Afterwards, CHECKS, EmbeddedRuntime, Options};
use glovebox_testkit::{programs, test_data};

use crate::rig::Rig;

/// A gateway over the embedded runtime.
async fn sealed() -> Rig {
    let (rig, _) = sealed_with_runtime().await;
    rig
}

/// What an embedded runtime of these tests needs to know.
pub(crate) fn options() -> Options {
    let folder = programs().unwrap();
    let data = test_data().unwrap();
    let setup = Setup {
        data: data.clone(),
        programs: Programs::in_folder(&folder),
        python: None,
        search: Vec::new(),
        lock: LOCK.into(),
        office: true,
    };
    let trees = setup.ensure(&mut Silent).unwrap();
    let user = rustix::process::geteuid();
    let run = if user.is_root() {
        PathBuf::from("/run/glovebox-test")
    } else {
        PathBuf::from(format!("/tmp/glovebox-test-{}", user.as_raw()))
    };
    Options {
        launcher: folder.join("glovebox-launcher"),
        data,
        run,
        layers: trees.layers,
        installation: InstallationId::new(),
        root_range_start: DEFAULT_ROOT_RANGE_START,
        accept_weaker: Vec::new(),
        afterwards: Afterwards::TheyEnd,
    }
}

async fn sealed_with_runtime() -> (Rig, Arc<EmbeddedRuntime>) {
    let options = options();
    let installation = options.installation;
    let runtime = Arc::new(EmbeddedRuntime::start(options).await.unwrap());
    let rig = Rig::over(runtime.clone(), |rules| rules.installation = installation).await;
    (rig, runtime)
}

/// From both places: a program, and a kernel that is a copy of a template.
#[tokio::test]
async fn a_sealed_sandbox_reaches_nothing_but_itself() {
    let (rig, runtime) = sealed_with_runtime().await;
    let gateway = rig.client();
    let report = canary::prove(&gateway, &rig.key, rig.rules.installation).await;
    let report = report.unwrap();
    let wrong: Vec<_> = report.wrong().collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    for start in [Start::Fresh, Start::Template] {
        let of_start = |(_, result): &&(_, CanaryResult)| result.start == start;
        let results: Vec<_> = report.results.iter().filter(of_start).collect();
        assert!(results.len() > 15, "{start:?}: {results:#?}");
        let open = results
            .iter()
            .filter(|(_, result)| result.verdict == Verdict::Open);
        assert_eq!(open.count(), 1, "{start:?}");
        for (target, result) in results {
            // What could not be looked at would not be shown to be closed.
            assert!(!result.how.contains("cannot be looked at"), "{result:?}");
            assert_eq!(target.id, result.id);
        }
    }
    drop(gateway);
    runtime.shut_down().await.unwrap();
}

#[tokio::test]
async fn preflight_says_how_this_machine_stands() {
    let (rig, runtime) = sealed_with_runtime().await;
    let mut wire = rig.wire().await;
    let preflight: Preflight = rig.get(&mut wire, "/v1/preflight").await.document();
    let ids: Vec<_> = preflight
        .checks
        .iter()
        .map(|check| check.id.as_str())
        .collect();
    let expected: Vec<_> = glovebox_gateway::preflight::CHECKS
        .into_iter()
        .chain(CHECKS)
        .collect();
    assert_eq!(ids, expected);
    assert_ne!(preflight.status(), CheckStatus::Fail, "{preflight:#?}");
    runtime.shut_down().await.unwrap();
}

#[tokio::test]
async fn a_program_runs_through_the_gateway() {
    let rig = sealed().await;
    let mut wire = rig.wire().await;
    let of = rig.make(&mut wire).await;
    let start = StartProcess {
        execution: glovebox_protocol::ids::ExecutionId::new(),
        argv: ["python3", "-c", "print(6 * 7)"].map(Into::into).to_vec(),
        env: Default::default(),
        stdin: Default::default(),
        time_limit_ms: 60_000,
        output_limit_bytes: None,
    };
    let body = serde_json::to_vec(&start).unwrap();
    let answer = rig
        .ask_agent(&mut wire, of, ("POST", "/v1/processes"), &body)
        .await;
    assert_eq!(answer.status, hyper::StatusCode::OK);
    let text = String::from_utf8_lossy(&answer.body);
    assert!(text.contains("42"), "{text:?}");
    assert!(text.contains("execution_ended"), "{text:?}");
}
