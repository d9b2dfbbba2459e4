//! G5 and G9 as far as they go without a template: how many sandboxes a second can be made,
//! used and removed. For information; the goals themselves need the template.

use std::time::Instant;

use anyhow::Result;

use super::Repeats;
use crate::figures::Figure;
use crate::stage::{Stage, milliseconds};
use crate::statistics::Samples;

pub(super) async fn measure(stage: &Stage, repeats: Repeats) -> Result<Vec<Figure>> {
    let runs = repeats.of(5, 100);
    let begun = Instant::now();
    let mut removals = Vec::with_capacity(runs);
    for _ in 0..runs {
        let sandbox = stage.create().await?;
        let mut running = sandbox.start_python("print(1)").await?;
        running.finish().await?;
        let ending = Instant::now();
        stage.remove(sandbox).await?;
        removals.push(milliseconds(ending));
    }
    let used = per_second(runs, begun);
    let begun = Instant::now();
    for _ in 0..runs {
        let sandbox = stage.create().await?;
        stage.remove(sandbox).await?;
    }
    let empty = per_second(runs, begun);
    Ok(vec![
        Figure::new("G5", "agent_fresh_create_use_destroy_per_s", used, runs),
        Figure::new("G5", "agent_create_destroy_per_s", empty, runs),
        Figure::median("G5", "destroy_ms", &Samples::new(removals)?),
    ])
}
fn per_second(count: usize, begun: Instant) -> f64 {
    count as f64 / begun.elapsed().as_secs_f64()
}
