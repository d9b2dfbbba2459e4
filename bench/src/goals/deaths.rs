//! G10: how soon it is noticed that a kernel died, that memory ran out, that time was up.
//!
//! The code in the sandbox says on the machine's monotonic clock when it did its last thing.

use anyhow::{Context as _, Result, ensure};
use glovebox_protocol::event::Outcome;
use glovebox_protocol::limits::Limits;
use glovebox_runtime::Start;

use super::Repeats;
use crate::figures::Figure;
use crate::peers::Peers;
use crate::stage::{Stage, milliseconds, monotonic_ms, roomy};
use crate::statistics::Samples;

const DIE: &str = "import os, time
os.write(1, b'%d\\n' % time.monotonic_ns())
os.kill(os.getpid(), 9)";

/// The last number is at most one mebibyte before the end.
const EAT: &str = "import os, time
eaten = []
while True:
    os.write(1, b'%d\\n' % time.monotonic_ns())
    eaten.append(bytearray(1024 * 1024))";

const LIMIT_MS: u64 = 300;

pub(super) async fn measure(stage: &Stage, peers: &Peers, repeats: Repeats) -> Result<Vec<Figure>> {
    let gateway = peers.measure("death", repeats.of(1, 5))?;
    let theirs = (
        gateway.samples("death_ms")?.median(),
        gateway.samples("timeout_over_ms")?.median(),
    );
    let timer = format!("{}, client's own timer", gateway.peer);
    let mut figures = Vec::new();
    for (name, start) in [("", Start::Template), ("fresh_kernel_", Start::Fresh)] {
        let runs = repeats.of(2, 20);
        let deaths = deaths(stage, start, runs).await?;
        let memory = out_of_memory(stage, start, runs).await?;
        let over = over_time(stage, start, runs).await?;
        let figure = |what: &str, samples: &Samples| {
            Figure::median("G10", &format!("{name}{what}_ms"), samples)
        };
        let longest = |what: &str, samples: &Samples| {
            let (max, count) = (samples.max(), samples.count());
            Figure::new("G10", &format!("{name}{what}_max_ms"), max, count)
        };
        figures.extend([
            figure("death", &deaths)
                .beside(&gateway.peer, theirs.0)
                .at_most(50.0),
            figure("oom", &memory).at_most(50.0),
            figure("timeout_over", &over)
                .beside(&timer, theirs.1)
                .at_most(100.0),
            longest("death", &deaths),
            longest("oom", &memory),
            longest("timeout_over", &over),
        ]);
    }
    Ok(figures)
}

/// From the last sign of life of a kernel that ends itself to the word that it ended.
async fn deaths(stage: &Stage, start: Start, runs: usize) -> Result<Samples> {
    let sandbox = stage.create(start).await?;
    let mut row = Vec::new();
    for _ in 0..runs {
        sandbox.execute("1+1").await?;
        let (last, outcome) = sandbox.last_words(DIE).await?;
        row.push(since(&last)?);
        ensure!(
            matches!(outcome, Outcome::KernelDied { .. }),
            "the kernel's death was told as {outcome:?}"
        );
    }
    stage.remove(sandbox).await?;
    Samples::new(row)
}

/// How long after its time limit code that does not end is told as ended.
async fn over_time(stage: &Stage, start: Start, runs: usize) -> Result<Samples> {
    let sandbox = stage.create(start).await?;
    sandbox.execute("1+1").await?;
    let mut row = Vec::new();
    for _ in 0..runs {
        let begun = std::time::Instant::now();
        let outcome = sandbox.execute_within("while True: pass", LIMIT_MS).await?;
        row.push(milliseconds(begun) - LIMIT_MS as f64);
        ensure!(
            matches!(outcome, Outcome::TimeLimit { killed: false, .. }),
            "the time limit was told as {outcome:?}"
        );
    }
    stage.remove(sandbox).await?;
    Samples::new(row)
}

/// From the last sign of life of a program that uses up its memory to the word that it ended.
async fn out_of_memory(stage: &Stage, start: Start, runs: usize) -> Result<Samples> {
    let limits = Limits {
        memory_bytes: 128 * 1024 * 1024,
        workspace_bytes: 16 * 1024 * 1024,
        ..roomy()
    };
    let sandbox = stage.create_within(limits, start).await?;
    let mut row = Vec::new();
    for _ in 0..runs {
        sandbox.execute("1+1").await?;
        let (last, outcome) = sandbox.last_words(EAT).await?;
        row.push(since(&last)?);
        let out_of_memory = match &outcome {
            Outcome::KernelDied { cause } => matches!(**cause, Outcome::OutOfMemory { .. }),
            _ => false,
        };
        ensure!(out_of_memory, "the lack of memory was told as {outcome:?}");
    }
    stage.remove(sandbox).await?;
    Samples::new(row)
}

/// Milliseconds since the last number in what a program said.
fn since(said: &[u8]) -> Result<f64> {
    let now = monotonic_ms();
    let text = String::from_utf8_lossy(said);
    let last = text
        .lines()
        .next_back()
        .and_then(|line| line.parse::<f64>().ok());
    Ok(now - last.context("the program did not say when it ended")? / 1e6)
}
