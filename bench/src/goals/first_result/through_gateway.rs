//! The same, asked of the gateway's program over TLS.

use std::cell::Cell;

use anyhow::Result;

use super::super::{Repeats, through};
use super::{Beside, POOL, READY, USES, Way, both, execute, gap, headline};
use crate::figures::Figure;
use crate::gateway::{Gateway, Kind};
use crate::inspect;
use crate::stage::{Stage, monotonic_ms};

/// From a template, and from those that the gateway keeps ready.
pub(super) async fn measure(
    stage: &Stage,
    repeats: Repeats,
    beside: &Beside<'_>,
) -> Result<Vec<Figure>> {
    let mut figures = through(stage, Kind::Embedded(0), async |gateway| {
        // The first sandbox of all waits for the template.
        let cold = way(gateway, READY, &Cell::new(0)).await?;
        let mut figures = vec![Figure::new("G1", "cold_ms", cold.arrived, 1)];
        figures.extend(rows(gateway, "template", repeats, beside, 10.0).await?);
        Ok(figures)
    })
    .await?;
    let pooled = through(stage, Kind::Embedded(POOL), async |gateway| {
        rows(gateway, "pool", repeats, beside, 2.0).await
    });
    figures.extend(pooled.await?);
    Ok(figures)
}

async fn rows(
    gateway: &Gateway,
    name: &str,
    repeats: Repeats,
    beside: &Beside<'_>,
    goal: f64,
) -> Result<Vec<Figure>> {
    let (runs, few) = (repeats.of(40, 300), repeats.of(10, 100));
    let missed = Cell::new(0);
    let row = with_gaps(gateway, READY, runs, &missed).await?;
    let mut figures = headline(name, &row, beside, goal)?;
    let mut row = Vec::with_capacity(runs);
    while row.len() < runs {
        // As many as are ready; where none are kept it is the same.
        gateway.until_ready().await?;
        gap().await;
        for _ in 0..POOL {
            row.push(way(gateway, READY, &missed).await?);
        }
    }
    figures.extend(both(&format!("{name}_back_to_back"), &row)?);
    for (what, code) in USES {
        let row = with_gaps(gateway, code, few, &missed).await?;
        figures.extend(both(&format!("{name}_{what}"), &row)?);
    }
    if gateway.keeps_ready() {
        let name = format!("{name}_missed_count");
        let all = 2 * (runs + few);
        figures.push(Figure::new("G1", &name, missed.get() as f64, all).at_most(0.0));
    }
    Ok(figures)
}

async fn with_gaps(
    gateway: &Gateway,
    code: &str,
    runs: usize,
    missed: &Cell<usize>,
) -> Result<Vec<Way>> {
    let mut row = Vec::with_capacity(runs);
    for _ in 0..runs {
        gateway.until_ready().await?;
        gap().await;
        row.push(way(gateway, code, missed).await?);
    }
    Ok(row)
}

/// One sandbox from asking to result. Its removal is not part of it. `missed` counts those that
/// were made anew where some are kept ready.
async fn way(gateway: &Gateway, code: &str, missed: &Cell<usize>) -> Result<Way> {
    let asked = monotonic_ms();
    let sandbox = gateway.create().await?;
    let created = monotonic_ms() - asked;
    let way = execute(&sandbox, code, asked, created).await?;
    if gateway.keeps_ready() && inspect::was_made_for(sandbox.id()) {
        missed.set(missed.get() + 1);
    }
    gateway.remove(sandbox).await?;
    Ok(way)
}
