//! The escape suite behind a gateway: what holds without one holds with one. Each check that looks
//! at a sandbox, or at two, runs once over each runtime; which do not, and why, stands in
//! `docs/security/checks.md`.

use std::sync::Arc;

use anyhow::Result;
use glovebox_protocol::sign::SigningKey;
use glovebox_testkit::escape::containers::{differences, probe_of};
use glovebox_testkit::escape::{Lab, Red, report};

use crate::stage::{Kind, Stage};

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

/// Tests of one check each, over every runtime.
macro_rules! on_both {
    ($($name:ident: $check:expr;)*) => {
        mod on_embedded {
            $(#[tokio::test]
            async fn $name() -> anyhow::Result<()> {
                super::$name(crate::stage::Kind::Embedded).await
            })*
        }
        mod on_docker {
            $(#[tokio::test]
            async fn $name() -> anyhow::Result<()> {
                super::$name(crate::stage::Kind::Docker).await
            })*
        }
        $(async fn $name(kind: crate::stage::Kind) -> anyhow::Result<()> {
            super::holds(kind, $check).await
        })*
    };
}

/// Tests of one check each, over the embedded runtime.
macro_rules! on_embedded {
    ($($name:ident: $check:expr;)*) => {
        $(#[tokio::test]
        async fn $name() -> anyhow::Result<()> {
            super::holds(crate::stage::Kind::Embedded, $check).await
        })*
    };
}

mod attacks;
mod copies;
mod positions;
mod posture;
mod ready;
mod siblings;
