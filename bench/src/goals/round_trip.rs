//! G3: a small execute in a kernel that is there, over a connection that is kept.

use anyhow::Result;

use super::Repeats;
use crate::figures::Figure;
use crate::peers::Peers;
use crate::stage::{Sandbox, Stage, milliseconds};
use crate::statistics::Samples;

pub(super) async fn measure(stage: &Stage, peers: &Peers, repeats: Repeats) -> Result<Vec<Figure>> {
    let gateway = peers.measure("round_trip", repeats.of(20, 300))?;
    let theirs = gateway.samples("execute_ms")?;
    let sandbox = stage.create().await?;
    sandbox.execute("1+1").await?;
    let ours = Samples::new(row(&sandbox, repeats.of(50, 2000)).await?)?;
    stage.remove(sandbox).await?;
    Ok(vec![
        Figure::median("G3", "agent_p50_ms", &ours)
            .beside(&gateway.peer, theirs.median())
            .at_most(0.5),
        Figure::new("G3", "agent_p99_ms", ours.percentile(99), ours.count())
            .beside(&gateway.peer, theirs.percentile(99))
            .at_most(ours.median() * 5.0),
        Figure::new("G3", "agent_max_ms", ours.max(), ours.count())
            .beside(&gateway.peer, theirs.max()),
    ])
}

/// Runs `1+1` again and again; the milliseconds of each.
pub(super) async fn row(sandbox: &Sandbox, runs: usize) -> Result<Vec<f64>> {
    let mut row = Vec::with_capacity(runs);
    for _ in 0..runs {
        let begun = std::time::Instant::now();
        sandbox.execute("1+1").await?;
        row.push(milliseconds(begun));
    }
    Ok(row)
}
