//! G7: how fast a program's output reaches the client, what it does to the agent's memory, and
//! what it does to another sandbox.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Result, anyhow, ensure};

use glovebox_runtime::Start;

use super::{Repeats, round_trip};
use crate::figures::Figure;
use crate::inspect;
use crate::peers::Peers;
use crate::sandbox::Sandbox;
use crate::stage::{Place, Stage};
use crate::statistics::Samples;

/// Writes `count` blocks of 100 000 bytes; the peer runs the same.
fn blocks(count: usize) -> String {
    format!(
        "import sys\nblock = ('x' * 99 + '\\n') * 1000\nfor _ in range({count}): _ = sys.stdout.write(block)"
    )
}

/// Prints `count` lines of 100 bytes.
fn lines(count: usize) -> String {
    format!("for _ in range({count}): print('x' * 99)")
}

pub(super) async fn measure(stage: &Stage, peers: &Peers, repeats: Repeats) -> Result<Vec<Figure>> {
    let gateway = peers.measure("stdout", repeats.of(1, 5))?;
    let loud = stage.create(Start::Template).await?;
    let other = stage.create(Start::Template).await?;
    loud.execute("1+1").await?;
    other.execute("1+1").await?;
    let peak_before = inspect::agent_peak_mib(loud.id())?;

    let runs = repeats.of(1, 5);
    let many = repeats.of(300, 5000);
    let (mut program, mut kernel) = (Vec::new(), Vec::new());
    let (mut program_lines, mut kernel_lines) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        program.push(process_speed(&loud, &blocks(many), many * 100_000).await?);
        kernel.push(kernel_speed(&loud, &blocks(many), many * 100_000).await?);
        program_lines.push(process_speed(&loud, &lines(many * 50), many * 5_000).await?);
        kernel_lines.push(kernel_speed(&loud, &lines(many * 50), many * 5_000).await?);
    }
    let peak = inspect::agent_peak_mib(loud.id())?;
    let quiet = Samples::new(round_trip::row(&other, repeats.of(50, 1000)).await?)?;
    let flooded = Samples::new(beside_a_flood(&loud, &other, many * 2).await?)?;
    stage.remove(loud).await?;
    stage.remove(other).await?;

    let program = Samples::new(program)?;
    let their_ratio = gateway.samples("other_flood_ms")?.percentile(99)
        / gateway.samples("other_quiet_ms")?.percentile(99);
    Ok(vec![
        Figure::median("G7", "agent_stdout_mb_per_s", &program)
            .beside(&gateway.peer, gateway.samples("blocks_mb_per_s")?.median())
            .at_least(100.0),
        Figure::median("G7", "agent_kernel_stdout_mb_per_s", &Samples::new(kernel)?)
            .beside(&gateway.peer, gateway.samples("blocks_mb_per_s")?.median())
            .at_least(100.0),
        Figure::median("G7", "agent_lines_mb_per_s", &Samples::new(program_lines)?)
            .beside(&gateway.peer, gateway.samples("lines_mb_per_s")?.median()),
        Figure::median(
            "G7",
            "agent_kernel_lines_mb_per_s",
            &Samples::new(kernel_lines)?,
        )
        .beside(&gateway.peer, gateway.samples("lines_mb_per_s")?.median()),
        Figure::new("G7", "agent_peak_before_mib", peak_before, 1),
        Figure::new("G7", "agent_peak_mib", peak, 1),
        Figure::new(
            "G7",
            "other_p99_quiet_ms",
            quiet.percentile(99),
            quiet.count(),
        ),
        Figure::new(
            "G7",
            "other_p99_flood_ms",
            flooded.percentile(99),
            flooded.count(),
        )
        .beside(
            &gateway.peer,
            gateway.samples("other_flood_ms")?.percentile(99),
        ),
        Figure::new(
            "G7",
            "other_p50_flood_ms",
            flooded.median(),
            flooded.count(),
        ),
        Figure::new(
            "G7",
            "other_p99_flood_ratio",
            flooded.percentile(99) / quiet.percentile(99),
            flooded.count(),
        )
        .beside(&gateway.peer, their_ratio)
        .at_most(3.0),
    ])
}

async fn process_speed(sandbox: &Sandbox, code: &str, bytes: usize) -> Result<f64> {
    let begun = Instant::now();
    let mut running = sandbox.start_python(code).await?;
    let seen = running.finish().await?;
    speed(begun, seen, bytes)
}

async fn kernel_speed(sandbox: &Sandbox, code: &str, bytes: usize) -> Result<f64> {
    let begun = Instant::now();
    let seen = sandbox.execute(code).await?;
    speed(begun, seen, bytes)
}
fn speed(begun: Instant, seen: u64, sent: usize) -> Result<f64> {
    let seconds = begun.elapsed().as_secs_f64();
    ensure!(seen == sent as u64, "of {sent} bytes {seen} arrived");
    Ok(sent as f64 / 1e6 / seconds)
}

/// Small executes in `other` while `loud` floods a client of its own on a thread of its own: what
/// one client has to do would otherwise be measured as the other's delay.
async fn beside_a_flood(loud: &Sandbox, other: &Sandbox, count: usize) -> Result<Vec<f64>> {
    let over = Arc::new(AtomicBool::new(false));
    let place = loud.place();
    let told = Arc::clone(&over);
    let flood = std::thread::spawn(move || {
        let flooded = flood(place, &blocks(count));
        told.store(true, Ordering::Release);
        flooded
    });
    let mut row = Vec::new();
    while !over.load(Ordering::Acquire) {
        row.extend(round_trip::row(other, 1).await?);
    }
    let seen = flood
        .join()
        .map_err(|_| anyhow!("the thread of the flood panicked"))??;
    ensure!(
        seen == count as u64 * 100_000,
        "the flood brought {seen} bytes"
    );
    Ok(row)
}

fn flood(place: Place, code: &str) -> Result<u64> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let sandbox = place.open();
        sandbox.start_python(code).await?.finish().await
    })
}
