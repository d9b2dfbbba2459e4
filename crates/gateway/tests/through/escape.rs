//! The probes of the escape suite behind a gateway: what holds without one holds with one.

use std::sync::Arc;

use anyhow::Result;
use glovebox_protocol::sign::SigningKey;
use glovebox_testkit::escape::attacks::{files, memory, output, processes};
use glovebox_testkit::escape::batch::{self, Position};
use glovebox_testkit::escape::containers::{differences, probe_of};
use glovebox_testkit::escape::posture::{self, Process};
use glovebox_testkit::escape::{Lab, Red, report};

use crate::stage::{Kind, Stage};

/// What the embedded runtime's own test holds a fresh sandbox to.
const POSTURE: &str = include_str!("../../../runtime-embedded/tests/escape/posture.json");

/// A gateway, and a lab of what is behind it.
async fn lab(kind: Kind) -> Result<(Stage, Lab)> {
    let key = SigningKey::generate()?;
    let stage = Stage::start(kind, key.public()).await;
    let lab = Lab::with_key(Arc::clone(&stage.runtime) as _, stage.installation, key)
        .with_landlock(stage.landlock_abi)
        .through(stage.client.clone());
    Ok((stage, lab))
}

/// Runs a check behind a gateway and fails with what it finds beyond what is known.
async fn holds(kind: Kind, check: impl AsyncFnOnce(&Lab) -> Result<Vec<Red>>) -> Result<()> {
    let (stage, lab) = lab(kind).await?;
    let mut reds = check(&lab).await?;
    drop(lab);
    stage.finish().await;
    if kind == Kind::Docker {
        let known = differences()?;
        reds.retain(|red| !probe_of(red).is_some_and(|probe| known.contains(probe)));
    }
    report::none(&reds)
}

#[tokio::test]
async fn a_fresh_sandbox_behind_a_gateway_is_what_the_document_says() -> Result<()> {
    let (stage, lab) = lab(Kind::Embedded).await?;
    let seen = posture::take(&lab, Process::Program).await?;
    let headings = stage.headings.clone();
    drop(lab);
    stage.finish().await;
    let document = serde_json::from_str(POSTURE)?;
    report::none(&posture::compare(&document, &headings, &seen)?)
}

macro_rules! on_both {
    ($($name:ident: $check:expr;)*) => {
        mod on_embedded {
            $(#[tokio::test]
            async fn $name() -> anyhow::Result<()> {
                super::$name(super::Kind::Embedded).await
            })*
        }
        mod on_docker {
            $(#[tokio::test]
            async fn $name() -> anyhow::Result<()> {
                super::$name(super::Kind::Docker).await
            })*
        }
        $(async fn $name(kind: Kind) -> Result<()> {
            holds(kind, $check).await
        })*
    };
}

on_both! {
    the_probes_hold_in_the_first_program_of_a_sandbox:
        async |lab| batch::run(lab, Position::First).await;
    the_probes_hold_in_a_used_sandbox:
        async |lab| batch::run(lab, Position::Used).await;
    the_probes_hold_in_the_kernel:
        async |lab| batch::run(lab, Position::Kernel).await;
    the_probes_hold_in_a_program_of_the_kernel:
        async |lab| batch::run(lab, Position::ProgramOfKernel).await;
    the_tree_holds_no_privilege_and_no_secret:
        async |lab| batch::run_walks(lab).await;
    a_fork_bomb_stops_at_the_limit:
        async |lab| processes::bomb(lab, "fork").await;
    memory_is_limited:
        async |lab| memory::take(lab, "heap").await;
    files_run_out_at_the_number_set:
        async |lab| files::full_of_files(lab).await;
    output_over_the_budget_is_dropped_and_counted:
        async |lab| output::floods(lab).await;
    a_slow_reader_holds_up_nothing_else:
        async |lab| output::slow_reader(lab).await;
}
