//! G1: from asking for a sandbox to the first result of code that finds its libraries ready.
//!
//! What the code does with them is its own work and has rows of its own: the first use of pandas,
//! small and larger, takes pandas some milliseconds wherever it runs.
//!
//! Taken from a template, from the pool, and from a template into a box that is there already.
//! The code says on the machine's monotonic clock when it began and ended, so that the way there
//! can be told from the work itself.

mod through_gateway;

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use glovebox_runtime::Start;
use tokio::time::{Instant, sleep_until};

use super::Repeats;
use crate::figures::Figure;
use crate::peers::{Bubblewrap, Peers};
use crate::sandbox::Sandbox;
use crate::stage::{Stage, monotonic_ms};
use crate::statistics::Samples;

/// The libraries are there; the peers run the same.
pub(super) const READY: &str = "import time; begun = time.monotonic_ns()
import pandas as pd
print(pd.__version__, begun, time.monotonic_ns())";

/// A first use of pandas.
const FRAME: &str = "import time; begun = time.monotonic_ns()
import pandas as pd
total = pd.DataFrame({'a': [1, 2, 3]}).a.sum()
print(total, begun, time.monotonic_ns())";

/// More work, which takes pandas much longer the first time.
const GROUPBY: &str = "import time; begun = time.monotonic_ns()
import pandas as pd
frame = pd.DataFrame({'a': range(1000), 'b': [i % 7 for i in range(1000)]})
total = frame.groupby('b').a.sum().sum()
print(total, begun, time.monotonic_ns())";

/// What is run in further rows, and their names.
const USES: [(&str, &str); 2] = [("frame", FRAME), ("groupby", GROUPBY)];

/// How long nothing happens between two of a row with gaps. Linux is slower to move a process
/// into a control group when it has not done so for a while.
const GAP: Duration = Duration::from_millis(200);

/// How many boxes are kept ready.
const POOL: u32 = 8;

/// When what happened, in milliseconds from the asking on.
#[derive(Debug, Clone)]
struct Way {
    /// How long each step took the launcher.
    steps: Vec<(String, f64)>,
    /// The sandbox answers.
    created: f64,
    /// The code begins.
    begun: f64,
    /// The code ends.
    ended: f64,
    /// The result has arrived.
    arrived: f64,
}

/// Gives how long one stage of a way took.
type Length = fn(&Way) -> f64;

/// Where the time goes.
const STAGES: [(&str, Length); 4] = [
    ("asked_to_answering", |way| way.created),
    ("answering_to_code", |way| way.begun - way.created),
    ("code", |way| way.ended - way.begun),
    ("code_to_result", |way| way.arrived - way.ended),
];

pub(super) async fn measure(stage: &Stage, peers: &Peers, repeats: Repeats) -> Result<Vec<Figure>> {
    let gateway = peers.measure_code("first_result", repeats.of(2, 20), READY)?;
    let bubblewrap = Bubblewrap::on(stage.root_tree())?;
    bubblewrap.first_output_ms(READY)?;
    let mut wrapped = Vec::new();
    for _ in 0..repeats.of(2, 20) {
        wrapped.push(bubblewrap.first_output_ms(READY)?);
    }
    let (theirs, wrapped) = (gateway.samples("first_result_ms")?, Samples::new(wrapped)?);
    let beside = Beside {
        gateway: (&gateway.peer, &theirs),
        bubblewrap: (&bubblewrap.peer, &wrapped),
    };

    let mut figures = Vec::new();
    // The first sandbox of all waits for the template.
    let cold = way(stage, READY).await?;
    figures.push(Figure::new("G1", "agent_cold_ms", cold.arrived, 1));
    figures.extend(from_template(stage, repeats, &beside).await?);
    figures.extend(from_pool(stage, repeats, &beside).await?);
    figures.extend(made_box(stage, repeats).await?);
    figures.extend(through_gateway::measure(stage, repeats, &beside).await?);
    Ok(figures)
}

/// What the headline figures are set beside.
struct Beside<'a> {
    gateway: (&'a str, &'a Samples),
    bubblewrap: (&'a str, &'a Samples),
}

async fn from_template(
    stage: &Stage,
    repeats: Repeats,
    beside: &Beside<'_>,
) -> Result<Vec<Figure>> {
    let runs = repeats.of(40, 300);
    let few = repeats.of(10, 100);
    let name = "template";
    let mut figures = headline(
        &format!("agent_{name}"),
        &with_gaps(stage, READY, runs, 0).await?,
        beside,
        10.0,
    )?;
    let row = back_to_back(stage, READY, runs).await?;
    figures.extend(both(&format!("agent_{name}_back_to_back"), &row)?);
    for (what, code) in USES {
        let row = with_gaps(stage, code, few, 0).await?;
        figures.extend(both(&format!("agent_{name}_{what}"), &row)?);
    }
    Ok(figures)
}

async fn from_pool(stage: &Stage, repeats: Repeats, beside: &Beside<'_>) -> Result<Vec<Figure>> {
    let runs = repeats.of(40, 300);
    let few = repeats.of(10, 100);
    let name = "pool";
    stage.keep_ready(POOL).await?;
    let before = taken(stage).await?;
    let mut figures = headline(
        &format!("agent_{name}"),
        &with_gaps(stage, READY, runs, POOL).await?,
        beside,
        2.0,
    )?;
    // As many as are ready, then a wait until all are there again.
    let mut row = Vec::new();
    while row.len() < runs {
        stage.until_ready(POOL).await?;
        row.extend(back_to_back(stage, READY, POOL as usize).await?);
    }
    figures.extend(both(&format!("agent_{name}_back_to_back"), &row)?);
    let mut asked = runs + row.len();
    for (what, code) in USES {
        let row = with_gaps(stage, code, few, POOL).await?;
        asked += row.len();
        figures.extend(both(&format!("agent_{name}_{what}"), &row)?);
    }
    let taken = taken(stage).await? - before;
    ensure!(
        taken == asked as u64,
        "of {asked} sandboxes only {taken} came from the pool"
    );
    if let Some(pool) = stage.pool().await? {
        let refill = pool.last_refill.as_secs_f64() * 1000.0;
        figures.push(Figure::new("G1", "agent_pool_refill_ms", refill, 1));
    }
    stage.keep_ready(0).await?;
    Ok(figures)
}

/// How many sandboxes have come from the pool so far.
async fn taken(stage: &Stage) -> Result<u64> {
    Ok(stage.pool().await?.map_or(0, |pool| pool.hits))
}

/// A kernel from the template in a box that has been there for a while: where control groups are of
/// version 1, moving a process into a new one waits for Linux, and it is this that is held to the
/// goal.
async fn made_box(stage: &Stage, repeats: Repeats) -> Result<Vec<Figure>> {
    let sandbox = stage.create(Start::Template).await?;
    let mut row = Vec::new();
    for _ in 0..repeats.of(10, 100) {
        sandbox.end_kernel().await?;
        gap().await;
        row.push(execute(&sandbox, READY, monotonic_ms(), 0.0).await?);
    }
    stage.remove(sandbox).await?;
    let figures = both("agent_template_made_box", &row)?;
    let bounds = [10.0, 25.0];
    Ok(figures
        .into_iter()
        .zip(bounds)
        .map(|(figure, bound)| figure.at_most(bound))
        .collect())
}

/// The two figures that are held to the goal, beside both peers, and where their time goes.
fn headline(name: &str, row: &[Way], beside: &Beside<'_>, goal: f64) -> Result<Vec<Figure>> {
    let times = times(row)?;
    let (runs, p50, p99) = (times.count(), times.median(), times.percentile(99));
    let bound_p99 = if goal > 5.0 { 25.0 } else { 10.0 };
    let (gateway, bubblewrap) = (beside.gateway, beside.bubblewrap);
    let mut figures = vec![
        Figure::new("G1", &format!("{name}_p50_ms"), p50, runs)
            .beside(gateway.0, gateway.1.median())
            .at_most(goal),
        Figure::new("G1", &format!("{name}_p99_ms"), p99, runs)
            .beside(gateway.0, gateway.1.percentile(99))
            .at_most(bound_p99),
        Figure::new("G1", &format!("{name}_beside_bwrap_ms"), p50, runs)
            .beside(bubblewrap.0, bubblewrap.1.median()),
    ];
    // Of what is taken without the gateway the stages go without that word.
    let name = name
        .strip_prefix("agent_")
        .map_or_else(|| format!("gateway_{name}"), String::from);
    for (stage, length) in STAGES {
        let lengths = Samples::new(row.iter().map(length).collect())?;
        let name = format!("stage_{name}_{stage}_ms");
        figures.push(Figure::median("G1", &name, &lengths));
    }
    // All were made in the same steps.
    for (at, (step, _)) in row[0].steps.iter().enumerate() {
        let lengths = row.iter().filter_map(|way| Some(way.steps.get(at)?.1));
        let lengths = Samples::new(lengths.collect())?;
        let name = format!("launcher_{name}_{}_ms", step.replace([' ', '-'], "_"));
        figures.push(Figure::median("G1", &name, &lengths));
    }
    Ok(figures)
}

fn both(name: &str, row: &[Way]) -> Result<Vec<Figure>> {
    let times = times(row)?;
    let (runs, p50, p99) = (times.count(), times.median(), times.percentile(99));
    Ok(vec![
        Figure::new("G1", &format!("{name}_p50_ms"), p50, runs),
        Figure::new("G1", &format!("{name}_p99_ms"), p99, runs),
    ])
}

fn times(row: &[Way]) -> Result<Samples> {
    Samples::new(row.iter().map(|way| way.arrived).collect())
}

/// `ready` says how many are kept ready: all of them are before each is asked for.
async fn with_gaps(stage: &Stage, code: &str, runs: usize, ready: u32) -> Result<Vec<Way>> {
    let mut row = Vec::with_capacity(runs);
    for _ in 0..runs {
        stage.until_ready(ready).await?;
        gap().await;
        row.push(way(stage, code).await?);
    }
    Ok(row)
}

async fn back_to_back(stage: &Stage, code: &str, runs: usize) -> Result<Vec<Way>> {
    let mut row = Vec::with_capacity(runs);
    for _ in 0..runs {
        row.push(way(stage, code).await?);
    }
    Ok(row)
}

/// A person who thinks for a moment.
pub(super) async fn gap() {
    sleep_until(Instant::now() + GAP).await;
}

/// One sandbox from asking to result. Its removal is not part of it.
async fn way(stage: &Stage, code: &str) -> Result<Way> {
    let asked = monotonic_ms();
    let sandbox = stage.create(Start::Template).await?;
    let created = monotonic_ms() - asked;
    let mut way = execute(&sandbox, code, asked, created).await?;
    way.steps = stage.steps(&sandbox);
    stage.remove(sandbox).await?;
    Ok(way)
}

async fn execute(sandbox: &Sandbox, code: &str, asked: f64, created: f64) -> Result<Way> {
    let (said, outcome) = sandbox.last_words(code).await?;
    let arrived = monotonic_ms() - asked;
    ensure!(outcome.is_success(), "the first code {outcome}");
    let said = String::from_utf8_lossy(&said);
    let mut numbers = said.split_whitespace().skip(1).map(str::parse::<f64>);
    let mut next = || -> Result<f64> {
        let number = numbers.next().context("the first code said too little")??;
        Ok(number / 1e6 - asked)
    };
    Ok(Way {
        steps: Vec::new(),
        created,
        begun: next()?,
        ended: next()?,
        arrived,
    })
}
