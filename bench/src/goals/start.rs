//! G2: from nothing to the first output of a program, without pool and without template. For
//! information also to the first cell of a kernel, which is what the kernel gateway gives.

use std::time::Instant;

use anyhow::Result;

use glovebox_runtime::Start;

use super::Repeats;
use crate::figures::Figure;
use crate::peers::{Bubblewrap, Peers};
use crate::stage::{Stage, milliseconds};
use crate::statistics::Samples;

const BARE: &str = "print(1)";
const LIBRARIES: &str = "import pandas, numpy, matplotlib.pyplot, openpyxl, pptx; print(1)";

pub(super) async fn measure(stage: &Stage, peers: &Peers, repeats: Repeats) -> Result<Vec<Figure>> {
    let gateway = peers.measure("start", repeats.of(1, 5))?;
    let bubblewrap = Bubblewrap::on(stage.root_tree())?;
    let runs = repeats.of(3, 40);
    // Once for nothing: files that nobody has read yet come from the disk.
    for code in [BARE, LIBRARIES] {
        first_output_ms(stage, code).await?;
        bubblewrap.first_output_ms(code)?;
    }
    let mut ours = [Vec::new(), Vec::new()];
    let mut theirs = [Vec::new(), Vec::new()];
    let mut made = Vec::new();
    for run in 0..runs {
        for (place, code) in [BARE, LIBRARIES].into_iter().enumerate() {
            // The libraries take much longer, so they are measured less often.
            if place == 1 && run % 2 == 1 {
                continue;
            }
            let (create, first) = first_output_ms(stage, code).await?;
            made.push(create);
            ours[place].push(first);
            theirs[place].push(bubblewrap.first_output_ms(code)?);
        }
    }
    let mut kernel_start = Vec::new();
    for _ in 0..repeats.of(2, 10) {
        let begun = Instant::now();
        let sandbox = stage.create(Start::Fresh).await?;
        sandbox.execute(BARE).await?;
        kernel_start.push(milliseconds(begun));
        stage.remove(sandbox).await?;
    }
    let kernel_start = Samples::new(kernel_start)?;
    let [bare, libraries] = ours.map(Samples::new);
    let [wrapped_bare, wrapped_libraries] = theirs.map(Samples::new);
    let (bare, libraries, made) = (bare?, libraries?, Samples::new(made)?);
    let kernel = &gateway.peer;
    Ok(vec![
        Figure::median("G2", "fresh_libraries_ms", &libraries)
            .beside(kernel, gateway.samples("libraries_ms")?.median())
            .at_most(800.0),
        Figure::median("G2", "fresh_bare_ms", &bare)
            .beside(kernel, gateway.samples("bare_ms")?.median())
            .at_most(60.0),
        Figure::median("G2", "fresh_libraries_beside_bwrap_ms", &libraries)
            .beside(&bubblewrap.peer, wrapped_libraries?.median()),
        Figure::median("G2", "fresh_bare_beside_bwrap_ms", &bare)
            .beside(&bubblewrap.peer, wrapped_bare?.median()),
        Figure::median("G2", "fresh_kernel_ms", &kernel_start)
            .beside(kernel, gateway.samples("bare_ms")?.median()),
        Figure::new("G2", "fresh_bare_p99_ms", bare.percentile(99), bare.count()),
        Figure::median("G2", "create_ms", &made),
    ])
}

/// Milliseconds until the sandbox answers, and until its first program's first output.
async fn first_output_ms(stage: &Stage, code: &str) -> Result<(f64, f64)> {
    let begun = Instant::now();
    let sandbox = stage.create(Start::Fresh).await?;
    let created = milliseconds(begun);
    let mut running = sandbox.start_python(code).await?;
    running.first_output().await?;
    let first = milliseconds(begun);
    running.finish().await?;
    stage.remove(sandbox).await?;
    Ok((created, first))
}
