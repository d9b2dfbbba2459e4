//! G7: how fast a program's output reaches the client, what it does to the agent's memory, and
//! what it does to another sandbox.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Result, anyhow, ensure};

use glovebox_runtime::Start;

use super::{Repeats, round_trip, through};
use crate::figures::Figure;
use crate::gateway::Kind;
use crate::inspect;
use crate::peers::{Measured, Peers};
use crate::sandbox::{Place, Sandbox};
use crate::stage::Stage;
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
    let peer = peers.measure("stdout", repeats.of(1, 5))?;
    let (loud, other) = (
        stage.create(Start::Template).await?,
        stage.create(Start::Template).await?,
    );
    let agent_peak = || inspect::agent_peak_mib(loud.id());
    let mut figures = of_way("agent_", (&loud, &other), agent_peak, &peer, repeats).await?;
    stage.remove(loud).await?;
    stage.remove(other).await?;
    let through = through(stage, Kind::Embedded(0), async |gateway| {
        let (loud, other) = (gateway.create().await?, gateway.create().await?);
        let gateway_peak = || gateway.peak_mib();
        let figures = of_way("", (&loud, &other), gateway_peak, &peer, repeats).await?;
        gateway.remove(loud).await?;
        gateway.remove(other).await?;
        Ok(figures)
    });
    figures.extend(through.await?);
    Ok(figures)
}

/// The figures of one way to two sandboxes; `peak` gives the most memory that the program on the
/// way has had.
async fn of_way(
    name: &str,
    (loud, other): (&Sandbox, &Sandbox),
    peak: impl Fn() -> Result<f64>,
    peer: &Measured,
    repeats: Repeats,
) -> Result<Vec<Figure>> {
    loud.execute("1+1").await?;
    other.execute("1+1").await?;
    let peak_before = peak()?;

    let runs = repeats.of(1, 5);
    let many = repeats.of(300, 5000);
    let (mut program, mut kernel) = (Vec::new(), Vec::new());
    let (mut program_lines, mut kernel_lines) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        program.push(process_speed(loud, &blocks(many), many * 100_000).await?);
        kernel.push(kernel_speed(loud, &blocks(many), many * 100_000).await?);
        program_lines.push(process_speed(loud, &lines(many * 50), many * 5_000).await?);
        kernel_lines.push(kernel_speed(loud, &lines(many * 50), many * 5_000).await?);
    }
    let peak_after = peak()?;
    let quiet = Samples::new(round_trip::row(other, repeats.of(50, 1000)).await?)?;
    let flooded = Samples::new(beside_a_flood(loud, other, many * 2).await?)?;

    let (their_blocks, their_lines) = (
        peer.samples("blocks_mb_per_s")?.median(),
        peer.samples("lines_mb_per_s")?.median(),
    );
    let speed = |what: &str, samples: Vec<f64>, theirs: f64| -> Result<Figure> {
        let samples = Samples::new(samples)?;
        let figure = Figure::median("G7", &format!("{name}{what}"), &samples);
        Ok(figure.beside(&peer.peer, theirs))
    };
    // Without the gateway it is the agent's memory.
    let whose = if name.is_empty() { "gateway" } else { "agent" };
    let memory = |what: &str, mib| Figure::new("G7", &format!("{whose}_{what}_mib"), mib, 1);
    let mut figures = vec![
        speed("stdout_mb_per_s", program, their_blocks)?.at_least(100.0),
        speed("kernel_stdout_mb_per_s", kernel, their_blocks)?.at_least(100.0),
        speed("lines_mb_per_s", program_lines, their_lines)?,
        speed("kernel_lines_mb_per_s", kernel_lines, their_lines)?,
        memory("peak_before", peak_before),
        memory("peak", peak_after),
    ];
    figures.extend(of_other(name, &quiet, &flooded, peer)?);
    Ok(figures)
}

/// What a flood does to somebody else.
fn of_other(
    name: &str,
    quiet: &Samples,
    flooded: &Samples,
    peer: &Measured,
) -> Result<[Figure; 4]> {
    let their_flooded = peer.samples("other_flood_ms")?.percentile(99);
    let their_ratio = their_flooded / peer.samples("other_quiet_ms")?.percentile(99);
    let (p99, runs) = (flooded.percentile(99), flooded.count());
    let figure =
        |what: &str, value, runs| Figure::new("G7", &format!("{name}other_{what}"), value, runs);
    Ok([
        figure("p99_quiet_ms", quiet.percentile(99), quiet.count()),
        figure("p99_flood_ms", p99, runs).beside(&peer.peer, their_flooded),
        figure("p50_flood_ms", flooded.median(), runs),
        figure("p99_flood_ratio", p99 / quiet.percentile(99), runs)
            .beside(&peer.peer, their_ratio)
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
