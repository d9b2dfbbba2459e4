//! G4: what an idle sandbox with a kernel costs in memory, agent included.
//!
//! All processes' proportional shares are added up, launcher and template with them, before and
//! after a number of sandboxes are made: in such a sum every page counts once, however many share
//! it. The difference, shared out among the sandboxes, and what Linux keeps for each, is what one
//! more sandbox costs. What the template itself holds is there with the first one and reported by
//! itself.

use anyhow::{Result, ensure};
use glovebox_runtime::Start;

use super::Repeats;
use crate::figures::Figure;
use crate::inspect;
use crate::peers::Peers;
use crate::sandbox::Sandbox;
use crate::stage::Stage;
use crate::statistics::Samples;

const PANDAS: &str = "import pandas as pd
frame = pd.DataFrame({'a': range(1000), 'b': [i % 7 for i in range(1000)]})
print(frame.groupby('b').a.sum())";

pub(super) async fn measure(stage: &Stage, peers: &Peers, repeats: Repeats) -> Result<Vec<Figure>> {
    let runs = repeats.of(2, 16);
    let gateway = peers.measure("memory", repeats.of(2, 8))?;
    let (untouched, worked) = (
        gateway.samples("untouched_mib")?,
        gateway.samples("pandas_mib")?,
    );
    let peer = (&*gateway.peer, untouched.median(), worked.median());
    let mut figures = Vec::new();
    for (name, start, goal) in [
        ("", Start::Template, true),
        ("fresh_kernel_", Start::Fresh, false),
    ] {
        figures.extend(of_start(stage, start, name, goal, peer, runs).await?);
    }
    let template = inspect::resident_mib(stage.template().await?)?;
    figures.push(Figure::new("G4", "template_resident_mib", template, 1));
    Ok(figures)
}

/// The figures of one way of starting; `peer` is its name and what it needs before and after work.
async fn of_start(
    stage: &Stage,
    start: Start,
    name: &str,
    has_goal: bool,
    peer: (&str, f64, f64),
    runs: usize,
) -> Result<Vec<Figure>> {
    // What the first sandbox brings with it stays and is not counted to those that follow.
    let first = stage.create(start).await?;
    first.execute(PANDAS).await?;
    let before = inspect::all_shares_mib()?;
    let mut sandboxes = Vec::new();
    for _ in 0..runs {
        let sandbox = stage.create(start).await?;
        sandbox.execute("1+1").await?;
        sandboxes.push(sandbox);
    }
    let untouched = Cost::of(&sandboxes, before)?;
    for sandbox in &sandboxes {
        sandbox.execute(PANDAS).await?;
    }
    let worked = Cost::of(&sandboxes, before)?;
    for sandbox in sandboxes {
        stage.remove(sandbox).await?;
    }
    stage.remove(first).await?;

    let mut figures = Vec::new();
    for (what, cost, theirs, goal) in [
        ("untouched", &untouched, peer.1, 8.0),
        ("pandas", &worked, peer.2, 16.0),
    ] {
        let figure = Figure::new("G4", &format!("{name}idle_{what}_mib"), cost.total(), runs)
            .beside(peer.0, theirs);
        figures.extend([
            if has_goal {
                figure.at_most(goal)
            } else {
                figure
            },
            Figure::new(
                "G4",
                &format!("{name}{what}_kernel_side_mib"),
                cost.kernel_side,
                runs,
            ),
            Figure::new(
                "G4",
                &format!("{name}{what}_charged_mib"),
                cost.charged,
                runs,
            ),
        ]);
    }
    figures.push(Figure::new(
        "G4",
        &format!("{name}agent_private_mib"),
        untouched.agent,
        runs,
    ));
    Ok(figures)
}

/// What one sandbox costs, in MiB.
struct Cost {
    /// Its part of what all processes have in memory.
    share: f64,
    /// What Linux keeps for it: page tables, stacks, sockets, mounts; the median.
    kernel_side: f64,
    /// What its control group says that it uses, kernel side included; the median. Pages that
    /// somebody else used first are not in it.
    charged: f64,
    /// What the agent has for itself; the median.
    agent: f64,
}

impl Cost {
    fn of(sandboxes: &[Sandbox], before: f64) -> Result<Self> {
        let share = (inspect::all_shares_mib()? - before) / sandboxes.len() as f64;
        let mut all = [Vec::new(), Vec::new(), Vec::new()];
        for sandbox in sandboxes {
            let memory = inspect::memory(sandbox.id())?;
            all[0].push(memory.kernel_side_mib);
            all[1].push(memory.charged_mib);
            all[2].push(memory.agent_private_mib);
        }
        let [kernel_side, charged, agent] = all.map(Samples::new);
        let agent = agent?.median();
        ensure!(agent > 0.0, "no sandbox was found among the control groups");
        Ok(Self {
            share,
            kernel_side: kernel_side?.median(),
            charged: charged?.median(),
            agent,
        })
    }

    fn total(&self) -> f64 {
        self.share + self.kernel_side
    }
}
