//! The canary's looks around notice that a sandbox has no network namespace of its own, though the
//! filter of system calls keeps every connection from being made.

use anyhow::{Context as _, Result, ensure};
use glovebox_box::mutation::Mutation;
use glovebox_client::canary;
use glovebox_protocol::gateway::{CanaryPlan, CanaryTarget, Expected, Reach, Verdict};
use glovebox_testkit::escape::Lab;
use rustix::fs::stat;

use crate::mutation::Workshop;

fn target(id: &str, reach: Reach, expected: Expected) -> CanaryTarget {
    CanaryTarget {
        id: id.into(),
        reach,
        expected,
        answers_gateway: None,
    }
}

/// What a gateway on this machine would have tried, with a listener at `port`.
fn plan(port: u16) -> Result<CanaryPlan> {
    let number = stat("/proc/self/ns/net")?.st_ino;
    let connection = Reach::Tcp {
        address: "127.0.0.1".into(),
        port,
    };
    let blocked = |id, reach| target(id, reach, Expected::Blocked);
    Ok(CanaryPlan {
        targets: vec![
            target("positive_control", Reach::OwnSocket, Expected::Open),
            blocked("host_loopback_v4", connection),
            blocked("network_interfaces", Reach::Interfaces),
            blocked("network_routes", Reach::Routes),
            blocked("network_sockets", Reach::ListedSocket { port }),
            blocked("network_namespace", Reach::NetworkNamespace { number }),
        ],
        attempt_limit_ms: 2_000,
        open_until_ms: i64::MAX,
    })
}

/// The targets that are open, without that which has to be.
async fn holes(workshop: &Workshop, left_out: Option<Mutation>) -> Result<Vec<String>> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let plan = plan(listener.local_addr()?.port())?;
    let embedded = workshop.runtime(left_out).await?;
    let subject = embedded.lab.bare_subject(Lab::small_limits()).await?;
    let report = canary::run(&plan, &subject.client, &subject.client).await?;
    subject.remove().await?;
    embedded.finish().await?;
    let (control, others) = report.results.split_first().context("no results")?;
    ensure!(control.1.verdict == Verdict::Open, "{control:?}");
    let open = others
        .iter()
        .filter(|(_, result)| result.verdict == Verdict::Open);
    Ok(open.map(|(target, _)| target.id.clone()).collect())
}

#[tokio::test]
async fn the_canary_notices_a_missing_network_namespace_behind_the_filter() -> Result<()> {
    let workshop = Workshop::open().await?;
    let none = holes(&workshop, None).await?;
    ensure!(none.is_empty(), "with nothing left out: {none:?}");
    let network = Mutation::ALL
        .iter()
        .copied()
        .find(|mutation| mutation.name() == "network-namespace");
    let found = holes(&workshop, Some(network.context("no such mutation")?)).await?;
    // No connection is among them: the filter holds.
    let looks = [
        "network_interfaces",
        "network_routes",
        "network_sockets",
        "network_namespace",
    ];
    ensure!(found == looks, "{found:?}");
    Ok(())
}
