//! G10: how soon it is noticed that a kernel died, that memory ran out, that time was up.
//!
//! The code in the sandbox says on the machine's monotonic clock when it did its last thing.

use anyhow::{Context as _, Result, ensure};
use glovebox_protocol::event::Outcome;
use glovebox_protocol::limits::{InputLimits, Limits};

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
    let runs = repeats.of(2, 20);
    let sandbox = stage.create().await?;
    let mut deaths = Vec::new();
    for _ in 0..runs {
        sandbox.execute("1+1").await?;
        let (last, outcome) = sandbox.last_words(DIE).await?;
        deaths.push(since(&last)?);
        ensure!(
            matches!(outcome, Outcome::KernelDied { .. }),
            "the kernel's death was told as {outcome:?}"
        );
    }
    let mut over = Vec::new();
    sandbox.execute("1+1").await?;
    for _ in 0..runs {
        let begun = std::time::Instant::now();
        let outcome = sandbox.execute_within("while True: pass", LIMIT_MS).await?;
        over.push(milliseconds(begun) - LIMIT_MS as f64);
        ensure!(
            matches!(outcome, Outcome::TimeLimit { killed: false, .. }),
            "the time limit was told as {outcome:?}"
        );
    }
    stage.remove(sandbox).await?;
    let memory = out_of_memory(stage, runs).await?;
    let (deaths, over) = (Samples::new(deaths)?, Samples::new(over)?);
    Ok(vec![
        Figure::median("G10", "death_ms", &deaths)
            .beside(&gateway.peer, gateway.samples("death_ms")?.median())
            .at_most(50.0),
        Figure::median("G10", "oom_ms", &memory).at_most(50.0),
        Figure::median("G10", "timeout_over_ms", &over)
            .beside(
                &format!("{}, client's own timer", gateway.peer),
                gateway.samples("timeout_over_ms")?.median(),
            )
            .at_most(100.0),
        Figure::new("G10", "death_max_ms", deaths.max(), deaths.count()),
        Figure::new("G10", "oom_max_ms", memory.max(), memory.count()),
        Figure::new("G10", "timeout_over_max_ms", over.max(), over.count()),
    ])
}

/// From the last sign of life of a program that uses up its memory to the word that it ended.
async fn out_of_memory(stage: &Stage, runs: usize) -> Result<Samples> {
    let limits = Limits {
        memory_bytes: 128 * 1024 * 1024,
        workspace_bytes: 16 * 1024 * 1024,
        ..roomy()
    };
    let sandbox = stage.create_with(limits, InputLimits::default()).await?;
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
