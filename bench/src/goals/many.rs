//! G9: a thousand idle sandboxes at once, and whether the last one is made as fast as the first.

use std::time::Instant;

use anyhow::Result;
use glovebox_runtime::Start;

use super::Repeats;
use crate::figures::Figure;
use crate::inspect;
use crate::machine::{available_mib, busy_ms, memory_monitors_ms};
use crate::stage::{Stage, milliseconds};
use crate::statistics::Samples;

/// How many neighbours stand for the first and for the last.
const NEIGHBOURS: usize = 25;

pub(super) async fn measure(stage: &Stage, repeats: Repeats) -> Result<Vec<Figure>> {
    // With one id for all, Linux counts all processes as one user's.
    let full = if stage.has_two_ids() { 1000 } else { 200 };
    let count = repeats.of(20, full);
    let near = NEIGHBOURS.min(count / 4);
    // The template is not part of what is measured.
    let warm = stage.create(Start::Template).await?;
    warm.execute("print(1)").await?;
    stage.remove(warm).await?;

    let (free, shares) = (available_mib(), inspect::all_shares_mib()?);
    let (mut creates, mut firsts, mut places) = (Vec::new(), Vec::new(), Vec::new());
    let mut steps = Vec::new();
    let mut work = vec![Work::so_far()];
    for made in 0..count {
        let asked = Instant::now();
        let sandbox = stage.create(Start::Template).await?;
        creates.push(milliseconds(asked));
        sandbox.execute("print(1)").await?;
        firsts.push(milliseconds(asked));
        steps.push(stage.steps(&sandbox));
        // Nobody keeps a connection to an idle one.
        places.push(sandbox.place());
        if made + 1 == near || made + 1 == count - near {
            work.push(Work::so_far());
        }
    }
    work.push(Work::so_far());
    let each = |all: f64| all / count as f64;
    let used = each(free - available_mib());
    let share = each(inspect::all_shares_mib()? - shares);
    // They are there, and do what they are asked.
    let mut answers = Vec::new();
    for place in places.iter().step_by((count / 20).max(1)) {
        let sandbox = place.clone().open();
        let begun = Instant::now();
        sandbox.execute("1+1").await?;
        answers.push(milliseconds(begun));
    }
    let ending = Instant::now();
    for place in places {
        stage.remove(place.open()).await?;
    }
    let ended = each(milliseconds(ending));

    let near_first = Samples::new(firsts[..near].to_vec())?.median();
    let near_last = Samples::new(firsts[count - near..].to_vec())?.median();
    let creates = Samples::new(creates)?;
    let mut figures = vec![
        Figure::new(
            "G9",
            "thousandth_create_ratio",
            near_last / near_first,
            count,
        )
        .at_most(2.0),
        Figure::new("G9", "first_ms", near_first, near),
        Figure::new("G9", "thousandth_ms", near_last, near),
        Figure::median("G9", "create_ms", &creates),
        Figure::new("G9", "create_max_ms", creates.max(), count),
        Figure::median("G9", "execute_among_all_ms", &Samples::new(answers)?),
        Figure::new("G9", "held_count", count as f64, 1).at_least(count as f64),
        Figure::new("G9", "share_each_mib", share, count),
        Figure::new("G9", "used_each_mib", used, count),
        Figure::new("G9", "used_all_mib", used * count as f64, count),
        Figure::new("G9", "remove_each_ms", ended, count),
    ];
    figures.extend(by_processor(&work, near, count));
    figures.extend(by_step("first", &steps[..near])?);
    figures.extend(by_step("thousandth", &steps[count - near..])?);
    Ok(figures)
}

/// Processor time, in milliseconds of one processor.
struct Work {
    /// All that was done, but for what comes next.
    ours: f64,
    /// What Linux did to watch memory, which it does for nobody's sandbox.
    monitors: f64,
}

impl Work {
    fn so_far() -> Self {
        let monitors = memory_monitors_ms();
        Self {
            ours: busy_ms() - monitors,
            monitors,
        }
    }

    fn until(&self, later: &Self) -> Self {
        Self {
            ours: later.ours - self.ours,
            monitors: later.monitors - self.monitors,
        }
    }
}

/// Processor time for each of the first and of the last. `work` is what was done when the first
/// `near` of `count` began and ended, and when the last did.
fn by_processor(work: &[Work], near: usize, count: usize) -> [Figure; 4] {
    let (first, last) = (work[0].until(&work[1]), work[2].until(&work[3]));
    let each = |ms: f64| ms / near as f64;
    let ratio = last.ours / first.ours;
    [
        Figure::new("G9", "first_processor_ms", each(first.ours), near),
        Figure::new("G9", "thousandth_processor_ms", each(last.ours), near),
        Figure::new("G9", "thousandth_processor_ratio", ratio, count),
        Figure::new(
            "G9",
            "thousandth_memory_monitor_ms",
            each(last.monitors),
            near,
        ),
    ]
}

/// How long each step took the launcher among some neighbours: where a difference comes from.
fn by_step(name: &str, neighbours: &[Vec<(String, f64)>]) -> Result<Vec<Figure>> {
    let names = neighbours[0].iter().map(|(step, _)| step);
    let each = names.enumerate().map(|(at, step)| {
        let lengths = neighbours.iter().filter_map(|one| Some(one.get(at)?.1));
        let step = step.replace([' ', '-'], "_");
        let lengths = Samples::new(lengths.collect())?;
        Ok(Figure::median(
            "G9",
            &format!("launcher_{name}_{step}_ms"),
            &lengths,
        ))
    });
    each.collect()
}
