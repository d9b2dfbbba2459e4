//! G6: files in and out, signed and with their hashes checked.

use std::time::Instant;

use anyhow::{Result, ensure};
use bytes::Bytes;

use glovebox_runtime::Start;

use super::{Repeats, through};
use crate::figures::Figure;
use crate::gateway::Kind;
use crate::inspect;
use crate::peers::{Measured, Peers};
use crate::sandbox::Sandbox;
use crate::stage::{Stage, milliseconds};
use crate::statistics::Samples;

const MIB: usize = 1024 * 1024;
const LARGE: usize = 100 * MIB;
/// Megabytes of 10^6 in the large file.
const LARGE_MB: f64 = 104.857_6;
/// The same for the nine mebibytes that the peer is given.
const PEER_MB: f64 = 9.437_184;

pub(super) async fn measure(stage: &Stage, peers: &Peers, repeats: Repeats) -> Result<Vec<Figure>> {
    let peer = peers.measure("files", repeats.of(1, 3))?;
    let large = Bytes::from(noise(LARGE));
    let sandbox = stage.create(Start::Template).await?;
    let agent_peak = || inspect::agent_peak_mib(sandbox.id());
    let mut figures = of_way("agent_", &sandbox, &large, agent_peak, &peer, repeats).await?;
    stage.remove(sandbox).await?;
    let through = through(stage, Kind::Embedded(0), async |gateway| {
        let sandbox = gateway.create().await?;
        let gateway_peak = || gateway.peak_mib();
        let figures = of_way("", &sandbox, &large, gateway_peak, &peer, repeats).await?;
        gateway.remove(sandbox).await?;
        Ok(figures)
    });
    figures.extend(through.await?);
    Ok(figures)
}

/// The figures of one way to a sandbox; `peak` gives the most memory that the program on the way
/// has had.
async fn of_way(
    name: &str,
    sandbox: &Sandbox,
    large: &Bytes,
    peak: impl Fn() -> Result<f64>,
    peer: &Measured,
    repeats: Repeats,
) -> Result<Vec<Figure>> {
    let small = large.slice(..MIB);
    sandbox.put("small", &small).await?;
    let peak_before = peak()?;
    let (mut puts, mut gets) = (Vec::new(), Vec::new());
    for _ in 0..repeats.of(1, 7) {
        let begun = Instant::now();
        sandbox.put("large", large).await?;
        puts.push(LARGE_MB / begun.elapsed().as_secs_f64());
        let begun = Instant::now();
        let got = sandbox.get("large").await?;
        gets.push(LARGE_MB / begun.elapsed().as_secs_f64());
        ensure!(
            got == LARGE as u64,
            "the large file came back with {got} bytes"
        );
        sandbox.delete("large").await?;
    }
    let peak_after = peak()?;
    let (mut small_puts, mut small_gets) = (Vec::new(), Vec::new());
    for _ in 0..repeats.of(3, 50) {
        let begun = Instant::now();
        sandbox.put("small", &small).await?;
        small_puts.push(milliseconds(begun));
        let begun = Instant::now();
        sandbox.get("small").await?;
        small_gets.push(milliseconds(begun));
    }
    let their_speed =
        |name: &str| -> Result<f64> { Ok(PEER_MB / peer.samples(name)?.median() * 1000.0) };
    let nine = format!("{}, 9 MiB", peer.peer);
    let median = |what: &str, samples: Vec<f64>| -> Result<Figure> {
        let samples = Samples::new(samples)?;
        Ok(Figure::median("G6", &format!("{name}{what}"), &samples))
    };
    // Without the gateway it is the agent's memory.
    let whose = if name.is_empty() { "gateway" } else { "agent" };
    let memory = |what: &str, mib| Figure::new("G6", &format!("{whose}_{what}_mib"), mib, 1);
    Ok(vec![
        median("put_100mib_mb_per_s", puts)?
            .beside(&nine, their_speed("put_9mib_ms")?)
            .at_least(400.0),
        median("get_100mib_mb_per_s", gets)?
            .beside(&nine, their_speed("get_9mib_ms")?)
            .at_least(400.0),
        median("put_1mib_ms", small_puts)?
            .beside(&peer.peer, peer.samples("put_1mib_ms")?.median())
            .at_most(3.0),
        median("get_1mib_ms", small_gets)?.at_most(3.0),
        memory("peak_before", peak_before),
        memory("peak", peak_after),
    ])
}

/// Bytes that do not compress and are the same in every run (xorshift).
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}
