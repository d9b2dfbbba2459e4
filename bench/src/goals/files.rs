//! G6: files in and out, signed and with their hashes checked.

use std::time::Instant;

use anyhow::{Result, ensure};
use bytes::Bytes;

use glovebox_runtime::Start;

use super::Repeats;
use crate::figures::Figure;
use crate::inspect;
use crate::peers::Peers;
use crate::stage::{Stage, milliseconds};
use crate::statistics::Samples;

const MIB: usize = 1024 * 1024;
const LARGE: usize = 100 * MIB;
/// Megabytes of 10^6 in the large file.
const LARGE_MB: f64 = 104.857_6;
/// The same for the nine mebibytes that the peer is given.
const PEER_MB: f64 = 9.437_184;

pub(super) async fn measure(stage: &Stage, peers: &Peers, repeats: Repeats) -> Result<Vec<Figure>> {
    let gateway = peers.measure("files", repeats.of(1, 3))?;
    let sandbox = stage.create(Start::Template).await?;
    let large = Bytes::from(noise(LARGE));
    let small = large.slice(..MIB);
    let peak_before = inspect::agent_peak_mib(sandbox.id())?;
    let (mut puts, mut gets) = (Vec::new(), Vec::new());
    for _ in 0..repeats.of(1, 7) {
        let begun = Instant::now();
        sandbox.put("large", &large).await?;
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
    let peak = inspect::agent_peak_mib(sandbox.id())?;
    let (mut small_puts, mut small_gets) = (Vec::new(), Vec::new());
    for _ in 0..repeats.of(3, 50) {
        let begun = Instant::now();
        sandbox.put("small", &small).await?;
        small_puts.push(milliseconds(begun));
        let begun = Instant::now();
        sandbox.get("small").await?;
        small_gets.push(milliseconds(begun));
    }
    stage.remove(sandbox).await?;
    let their_speed =
        |name: &str| -> Result<f64> { Ok(PEER_MB / gateway.samples(name)?.median() * 1000.0) };
    Ok(vec![
        Figure::median("G6", "agent_put_100mib_mb_per_s", &Samples::new(puts)?)
            .beside(
                &format!("{}, 9 MiB", gateway.peer),
                their_speed("put_9mib_ms")?,
            )
            .at_least(400.0),
        Figure::median("G6", "agent_get_100mib_mb_per_s", &Samples::new(gets)?)
            .beside(
                &format!("{}, 9 MiB", gateway.peer),
                their_speed("get_9mib_ms")?,
            )
            .at_least(400.0),
        Figure::median("G6", "agent_put_1mib_ms", &Samples::new(small_puts)?)
            .beside(&gateway.peer, gateway.samples("put_1mib_ms")?.median())
            .at_most(3.0),
        Figure::median("G6", "agent_get_1mib_ms", &Samples::new(small_gets)?).at_most(3.0),
        Figure::new("G6", "agent_peak_before_mib", peak_before, 1),
        Figure::new("G6", "agent_peak_mib", peak, 1),
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
