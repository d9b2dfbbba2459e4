//! G5: how many sandboxes a second can be made, used and removed for as long as one likes, and
//! whether anything of them stays behind.

use std::cell::Cell;
use std::time::{Duration, Instant};

use anyhow::Result;
use futures_util::future::try_join_all;
use glovebox_runtime::Start;
use glovebox_testkit::HostSnapshot;

use super::{Repeats, through};
use crate::figures::Figure;
use crate::gateway::{Gateway, Kind};
use crate::machine::{busy_ms, kernel_memory_mib};
use crate::sandbox::Sandbox;
use crate::stage::{Stage, milliseconds};
use crate::statistics::Samples;

/// How many are kept ready, where some are.
const POOL: u32 = 8;

/// For how long what was told to end may still be there, and how often it is looked.
const REMOVAL_PATIENCE: Duration = Duration::from_secs(10);
const GLANCE: Duration = Duration::from_millis(100);

pub(super) async fn measure(stage: &Stage, repeats: Repeats) -> Result<Vec<Figure>> {
    let runs = repeats.of(12, 1000);
    // Everything that stays for good is there by then.
    sustained(stage, Start::Template, 2, 4).await?;
    let (host, memory) = (HostSnapshot::take(&[])?, kernel_memory_mib());

    let mut figures = Vec::new();
    for at_a_time in [1, 2, 4] {
        let rate = sustained(stage, Start::Template, at_a_time, runs).await?;
        let name = format!("agent_{at_a_time}_at_a_time_");
        figures.extend(rate.figures(&name, runs));
    }
    stage.keep_ready(POOL).await?;
    let pooled = sustained(stage, Start::Template, 2, runs).await?;
    figures.extend(pooled.figures("agent_pool_2_at_a_time_", runs));
    stage.keep_ready(0).await?;

    let left = left_behind(&host).await?;
    let grown = kernel_memory_mib() - memory;
    figures.extend(through_gateway(stage, repeats).await?);
    let fresh = repeats.of(4, 60);
    let rate = sustained(stage, Start::Fresh, 2, fresh).await?;
    figures.extend(rate.figures("agent_fresh_kernel_2_at_a_time_", fresh));
    figures.push(empty(stage, repeats.of(5, 100)).await?);
    figures.extend([
        Figure::new("G5", "left_behind_count", left as f64, 4 * runs).at_most(0.0),
        Figure::new("G5", "linux_memory_grown_mib", grown, 4 * runs),
    ]);
    Ok(figures)
}

/// How fast it went.
struct Rate {
    per_second: f64,
    /// Processor time that one took, of all programs of the machine together.
    cpu_ms: f64,
    removals: Samples,
}

impl Rate {
    fn figures(&self, name: &str, runs: usize) -> Vec<Figure> {
        let per_second = format!("{name}create_use_destroy_per_s");
        let per_second = Figure::new("G5", &per_second, self.per_second, runs);
        let has_goal = !name.contains("fresh") && !name.contains("1_at_a_time");
        vec![
            if has_goal {
                per_second.at_least(100.0)
            } else {
                per_second
            },
            Figure::new("G5", &format!("{name}cpu_each_ms"), self.cpu_ms, runs),
            Figure::median("G5", &format!("{name}destroy_ms"), &self.removals),
        ]
    }
}

/// The same through the gateway, two at a time where the name says nothing.
async fn through_gateway(stage: &Stage, repeats: Repeats) -> Result<Vec<Figure>> {
    let runs = repeats.of(12, 1000);
    let host = HostSnapshot::take(&[])?;
    let mut figures = through(stage, Kind::Embedded(0), async |gateway| {
        gateway_rate(gateway, 2, 4).await?;
        let mut figures = gateway_rate(gateway, 2, runs).await?.figures("", runs);
        let alone = gateway_rate(gateway, 1, runs).await?;
        figures.extend(alone.figures("1_at_a_time_", runs));
        Ok(figures)
    })
    .await?;
    let pooled = through(stage, Kind::Embedded(POOL), async |gateway| {
        gateway.until_ready().await?;
        let rate = gateway_rate(gateway, 2, runs).await?;
        Ok(rate.figures("pool_", runs))
    });
    figures.extend(pooled.await?);
    // Of the sandboxes and of two gateways that have ended.
    let left = left_behind(&host).await?;
    let left = Figure::new("G5", "gateway_left_behind_count", left as f64, 3 * runs);
    figures.push(left.at_most(0.0));
    Ok(figures)
}

/// How much of the machine is otherwise than it was; what it is, is said. What was kept ready is
/// taken away after it was told that it is not wanted any more: that is waited for.
async fn left_behind(host: &HostSnapshot) -> Result<usize> {
    let patience = Instant::now() + REMOVAL_PATIENCE;
    let mut left = host.changes_until(&HostSnapshot::take(&[])?);
    while !left.is_empty() && Instant::now() < patience {
        tokio::time::sleep_until((Instant::now() + GLANCE).into()).await;
        left = host.changes_until(&HostSnapshot::take(&[])?);
    }
    for one in &left {
        crate::say(
            &mut std::io::stderr(),
            &format!("bench: left behind: {one}\n"),
        );
    }
    Ok(left.len())
}

async fn sustained(stage: &Stage, start: Start, at_a_time: usize, runs: usize) -> Result<Rate> {
    let create = async || stage.create(start).await;
    let remove = async |sandbox| stage.remove(sandbox).await;
    rate(create, remove, at_a_time, runs).await
}

async fn gateway_rate(gateway: &Gateway, at_a_time: usize, runs: usize) -> Result<Rate> {
    let create = async || gateway.create().await;
    let remove = async |sandbox| gateway.remove(sandbox).await;
    rate(create, remove, at_a_time, runs).await
}

/// Creates, prints and removes until `runs` sandboxes were there, some at a time.
async fn rate(
    create: impl AsyncFn() -> Result<Sandbox>,
    remove: impl AsyncFn(Sandbox) -> Result<()>,
    at_a_time: usize,
    runs: usize,
) -> Result<Rate> {
    let left = Cell::new(runs);
    let worker = async || -> Result<Vec<f64>> {
        let mut removals = Vec::new();
        while left.get() > 0 {
            left.set(left.get() - 1);
            let sandbox = create().await?;
            sandbox.execute("print(1)").await?;
            let ending = Instant::now();
            remove(sandbox).await?;
            removals.push(milliseconds(ending));
        }
        Ok(removals)
    };
    let (begun, busy) = (Instant::now(), busy_ms());
    let removals = try_join_all((0..at_a_time).map(|_| worker())).await?;
    Ok(Rate {
        per_second: runs as f64 / begun.elapsed().as_secs_f64(),
        cpu_ms: (busy_ms() - busy) / runs as f64,
        removals: Samples::new(removals.concat())?,
    })
}

/// The same without any use, which shows what the boxes alone cost.
async fn empty(stage: &Stage, runs: usize) -> Result<Figure> {
    let begun = Instant::now();
    for _ in 0..runs {
        let sandbox = stage.create(Start::Fresh).await?;
        stage.remove(sandbox).await?;
    }
    let per_second = runs as f64 / begun.elapsed().as_secs_f64();
    Ok(Figure::new(
        "G5",
        "agent_create_destroy_per_s",
        per_second,
        runs,
    ))
}
