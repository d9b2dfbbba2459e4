//! The goals, a file each. Every one gives its figures, taken beside the peers in the same run.

mod api;
mod artifacts;
mod chat;
mod containers;
mod deaths;
mod files;
mod first_result;
mod many;
mod memory;
mod output;
mod previews;
mod rate;
mod round_trip;
mod start;

use anyhow::{Context as _, Result};

use crate::figures::Figure;
use crate::gateway::{Gateway, Kind};
use crate::peers::Peers;
use crate::stage::Stage;

/// How often things are repeated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Repeats {
    /// Only to show that everything runs.
    pub(crate) short: bool,
}

impl Repeats {
    /// `full` times, or `short` times in the short form.
    pub(crate) const fn of(self, short: usize, full: usize) -> usize {
        if self.short { short } else { full }
    }
}

/// Takes figures through a gateway that is there for them alone.
async fn through(
    stage: &Stage,
    kind: Kind,
    take: impl AsyncFnOnce(&Gateway) -> Result<Vec<Figure>>,
) -> Result<Vec<Figure>> {
    let gateway = stage.gateway(kind)?;
    let taken = take(&gateway).await;
    let closed = gateway.close().await;
    // What went wrong first is what has to be known.
    let taken = taken.context("through the gateway")?;
    closed.context("ending the gateway")?;
    Ok(taken)
}

/// What was measured, and what could not be.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// Of the goals that could be measured.
    pub(crate) figures: Vec<Figure>,
    /// Of each other one, why not.
    pub(crate) failed: Vec<anyhow::Error>,
}

/// Takes the figures of the goals whose names are in `only`, or of all; tells `begins` which goal
/// is next. One that cannot be measured keeps no other from it.
pub(crate) async fn measure(
    stage: &Stage,
    peers: &Peers,
    repeats: Repeats,
    only: &[String],
    mut begins: impl FnMut(&str),
) -> Taken {
    let mut all = Taken::default();
    for goal in [
        "G1", "G2", "G3", "G4", "G5", "G6", "G7", "G8", "G9", "G10", "API", "CHAT", "PREVIEW",
        "ARTIFACT",
    ] {
        if !only.is_empty() && !only.iter().any(|wanted| wanted == goal) {
            continue;
        }
        begins(goal);
        let taken = match goal {
            "G1" => first_result::measure(stage, peers, repeats).await,
            "G2" => start::measure(stage, peers, repeats).await,
            "G3" => round_trip::measure(stage, peers, repeats).await,
            "G4" => memory::measure(stage, peers, repeats).await,
            "G5" => rate::measure(stage, repeats).await,
            "G6" => files::measure(stage, peers, repeats).await,
            "G7" => output::measure(stage, peers, repeats).await,
            "G8" => containers::measure(stage, repeats).await,
            "G9" => many::measure(stage, repeats).await,
            "CHAT" => chat::measure(stage, repeats).await,
            "PREVIEW" => previews::measure(stage, repeats).await,
            "ARTIFACT" => artifacts::measure(stage, repeats).await,
            "API" => api::measure(stage, repeats).await,
            _ => deaths::measure(stage, peers, repeats).await,
        };
        match taken {
            Ok(figures) => all.figures.extend(figures),
            Err(error) => all.failed.push(error.context(format!("measuring {goal}"))),
        }
    }
    all
}
