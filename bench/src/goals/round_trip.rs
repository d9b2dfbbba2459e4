//! G3: a small execute in a kernel that is there, over a connection that is kept.

use anyhow::Result;
use glovebox_runtime::Start;

use super::{Repeats, through};
use crate::figures::Figure;
use crate::gateway::Kind;
use crate::peers::Peers;
use crate::sandbox::Sandbox;
use crate::stage::{Stage, milliseconds};
use crate::statistics::Samples;

pub(super) async fn measure(stage: &Stage, peers: &Peers, repeats: Repeats) -> Result<Vec<Figure>> {
    let gateway = peers.measure("round_trip", repeats.of(20, 300))?;
    let theirs = gateway.samples("execute_ms")?;
    let mut figures = Vec::new();
    for (name, start) in [
        ("agent", Start::Template),
        ("agent_fresh_kernel", Start::Fresh),
    ] {
        let sandbox = stage.create(start).await?;
        // What is made on first use is made by then.
        row(&sandbox, 20).await?;
        let ours = Samples::new(row(&sandbox, repeats.of(50, 2000)).await?)?;
        stage.remove(sandbox).await?;
        figures.extend(of_row(name, &ours, (&gateway.peer, &theirs), 0.5));
    }
    let gateway_figures = through(stage, Kind::Embedded(0), async |way| {
        let sandbox = way.create().await?;
        row(&sandbox, 20).await?;
        let ours = Samples::new(row(&sandbox, repeats.of(50, 2000)).await?)?;
        way.remove(sandbox).await?;
        Ok(of_row("gateway", &ours, (&gateway.peer, &theirs), 1.0).into())
    });
    figures.extend(gateway_figures.await?);
    Ok(figures)
}

/// The figures of one row, beside the peer's; `goal` is what half of them take at most.
fn of_row(name: &str, ours: &Samples, theirs: (&str, &Samples), goal: f64) -> [Figure; 3] {
    let (p50, p99, runs) = (ours.median(), ours.percentile(99), ours.count());
    let (peer, theirs) = theirs;
    [
        Figure::new("G3", &format!("{name}_p50_ms"), p50, runs)
            .beside(peer, theirs.median())
            .at_most(goal),
        Figure::new("G3", &format!("{name}_p99_ms"), p99, runs)
            .beside(peer, theirs.percentile(99))
            .at_most(p50 * 5.0),
        Figure::new("G3", &format!("{name}_max_ms"), ours.max(), runs).beside(peer, theirs.max()),
    ]
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
