//! The canary: what is opened is told, and a sandbox that is none is found out.
//!
//! The runtime here keeps nothing in, so that everything of this machine's is a hole that was
//! opened on purpose. What is beyond this machine is never tried by these tests; that a sealed
//! sandbox reaches none of it is shown in `sealed.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;

use glovebox_client::{AgentClient, Identity, canary};
use glovebox_protocol::gateway::{CanaryPlan, Expected, Reach, Verdict};
use glovebox_protocol::ids::SandboxId;
use glovebox_runtime::{AgentConnector, FakeRuntime};

use crate::rig::{Rig, now_ms};
use crate::wire::Wire;

pub(crate) async fn plan(rig: &Rig, wire: &mut Wire) -> CanaryPlan {
    rig.ask(wire, "POST", "/v1/canary", b"").await.document()
}

pub(crate) fn client(rig: &Rig, sandbox: SandboxId) -> AgentClient {
    let identity = Identity {
        key: Arc::clone(&rig.key),
        installation: rig.rules.installation,
        sandbox,
    };
    let connector = AgentConnector {
        runtime: Arc::clone(&rig.runtime),
        sandbox,
    };
    AgentClient::new(identity, connector)
}

/// A runtime without walls, whose agents start a Python of this machine's.
fn without_walls() -> Arc<FakeRuntime> {
    let python = glovebox_testkit::toolbox_python().unwrap();
    let folder = python.parent().unwrap().to_str().unwrap().to_owned();
    let libraries = glovebox_testkit::toolbox_libraries().unwrap();
    let libraries = libraries.to_str().unwrap().to_owned();
    let env = [
        ("PATH".to_owned(), format!("{folder}:/usr/bin:/bin")),
        ("LD_LIBRARY_PATH".to_owned(), libraries),
    ];
    Arc::new(FakeRuntime::new(python, BTreeMap::from(env)))
}

fn is_of_this_machine(reach: &Reach, rig: &Rig) -> bool {
    match reach {
        Reach::Tcp { address, .. } => {
            let own = glovebox_gateway::config::interfaces().unwrap();
            let address: std::net::IpAddr = address.parse().unwrap();
            address.is_loopback()
                || address == rig.address.ip()
                || own.iter().any(|one| one.address == address)
        }
        Reach::Dns { resolver, .. } => resolver.is_some(),
        _ => true,
    }
}

#[tokio::test]
async fn the_plan_holds_every_kind_of_target_and_what_the_gateway_opened_answers_it() {
    let rig = Rig::start().await;
    let mut wire = rig.wire().await;
    let plan = plan(&rig, &mut wire).await;
    assert!(plan.open_until_ms > now_ms());
    for id in [
        "positive_control",
        "other_sandbox",
        "internet_v4",
        "internet_v6",
        "metadata_v4",
        "metadata_v6",
        "dns_outside",
        "server",
        "gateway",
        "host_loopback_v4",
        "host_gateway_ssh",
        "host_abstract_socket",
        "host_resolver",
        "network_interfaces",
        "network_routes",
        "network_sockets",
        "network_namespace",
    ] {
        let found = plan.targets.iter().filter(|target| target.id == id).count();
        assert_eq!(found, 1, "{id}");
    }
    for target in &plan.targets {
        let expected = match target.id.as_str() {
            "positive_control" => Expected::Open,
            _ => Expected::Blocked,
        };
        assert_eq!(target.expected, expected, "{target:?}");
        let is_ours = target.id == "gateway"
            || target.id.starts_with("network_") && target.id != "network_namespace"
            || target.id.starts_with("host_") && target.id != "host_gateway_ssh";
        if is_ours {
            assert_eq!(target.answers_gateway, Some(true), "{target:?}");
        }
    }
}

#[tokio::test]
async fn the_canary_turns_red_where_there_are_holes() {
    let rig = Rig::over(without_walls(), |_| ()).await;
    let mut wire = rig.wire().await;
    let mut plan = plan(&rig, &mut wire).await;
    plan.targets
        .retain(|target| is_of_this_machine(&target.reach, &rig));
    plan.targets
        .retain(|target| !matches!(&*target.id, "host_gateway_ssh" | "server"));
    let (subject, other) = (rig.make(&mut wire).await.0, rig.make(&mut wire).await.0);
    let report = canary::run(&plan, &client(&rig, subject), &client(&rig, other)).await;
    let report = report.unwrap();
    let wrong: Vec<_> = report
        .wrong()
        .map(|(target, _)| target.id.as_str())
        .collect();
    for (target, result) in &report.results {
        assert_eq!(result.verdict, Verdict::Open, "{result:?}");
        assert_eq!(target.id, result.id);
        let is_wrong = target.id != "positive_control";
        assert_eq!(wrong.contains(&&*target.id), is_wrong, "{target:?}");
    }
    for id in [
        "other_sandbox",
        "host_loopback_v4",
        "host_resolver",
        "network_interfaces",
        "network_routes",
        "network_sockets",
        "network_namespace",
    ] {
        assert!(wrong.contains(&id), "{id}");
    }
}

/// Those that are asked of whoever knows names: where a name is known, and where somebody answers
/// that it is not.
#[tokio::test]
async fn a_name_that_is_known_and_a_resolver_that_answers_turn_the_canary_red() {
    let rig = Rig::over(without_walls(), |_| ()).await;
    let mut wire = rig.wire().await;
    let mut plan = plan(&rig, &mut wire).await;
    plan.targets.retain(|target| {
        matches!(
            &*target.id,
            "positive_control" | "dns_outside" | "host_resolver"
        )
    });
    for target in &mut plan.targets {
        if let Reach::Dns {
            name,
            resolver: None,
        } = &mut target.reach
        {
            // Every machine knows itself, without asking anybody.
            *name = "localhost".into();
        }
    }
    let subject = client(&rig, rig.make(&mut wire).await.0);
    let report = canary::run(&plan, &subject, &subject).await.unwrap();
    let wrong: Vec<_> = report.wrong().map(|(target, _)| &*target.id).collect();
    assert_eq!(wrong, ["dns_outside", "host_resolver"], "{report:#?}");
    let (_, asked) = &report.results[2];
    assert!(
        asked.how.contains("was answered with the code 3"),
        "{asked:?}"
    );
}

#[tokio::test]
async fn attempts_without_a_result_are_no_pass() {
    let rig = Rig::start().await;
    let mut wire = rig.wire().await;
    let mut plan = plan(&rig, &mut wire).await;
    plan.targets
        .retain(|target| target.id == "positive_control");
    let subject = client(&rig, rig.make(&mut wire).await.0);
    let mut doubled = plan.clone();
    doubled.targets.push(plan.targets[0].clone());
    let missing = canary::run(&doubled, &subject, &subject).await;
    assert!(
        matches!(missing, Err(canary::CanaryError::NoResult { .. })),
        "{missing:?}"
    );
}

#[tokio::test]
async fn canaries_are_bounded() {
    let rig = Rig::start().await;
    let mut wire = rig.wire().await;
    for _ in 0..4 {
        plan(&rig, &mut wire).await;
    }
    let refused = rig.ask(&mut wire, "POST", "/v1/canary", b"").await;
    assert_eq!(refused.code(), "exhausted");
}
