//! G4: what an idle sandbox with a kernel costs in memory: the proportional share of all its
//! processes, agent included, plus what Linux keeps for it.

use anyhow::{Result, ensure};

use super::Repeats;
use crate::figures::Figure;
use crate::inspect;
use crate::peers::Peers;
use crate::stage::Stage;
use crate::statistics::Samples;

const PANDAS: &str = "import pandas as pd
frame = pd.DataFrame({'a': range(1000), 'b': [i % 7 for i in range(1000)]})
print(frame.groupby('b').a.sum())";

pub(super) async fn measure(stage: &Stage, peers: &Peers, repeats: Repeats) -> Result<Vec<Figure>> {
    let runs = repeats.of(2, 8);
    let gateway = peers.measure("memory", runs)?;
    let mut sandboxes = Vec::new();
    for _ in 0..runs {
        let sandbox = stage.create().await?;
        sandbox.execute("1+1").await?;
        sandboxes.push(sandbox);
    }
    // Measured while all are there: pages of programs and libraries are shared between them.
    let read = |what: fn(&inspect::Memory) -> f64| -> Result<Samples> {
        let mut row = Vec::new();
        for sandbox in &sandboxes {
            row.push(what(&inspect::memory(sandbox.id())?));
        }
        Samples::new(row)
    };
    let untouched = read(inspect::Memory::total_mib)?;
    let agent = read(|memory| memory.agent_share_mib)?;
    let kernel_side = read(|memory| memory.kernel_mib)?;
    ensure!(
        agent.median() > 0.0,
        "no sandbox was found among the control groups"
    );
    for sandbox in &sandboxes {
        sandbox.execute(PANDAS).await?;
    }
    let worked = read(inspect::Memory::total_mib)?;
    for sandbox in sandboxes {
        stage.remove(sandbox).await?;
    }
    Ok(vec![
        Figure::median("G4", "idle_untouched_mib", &untouched)
            .beside(&gateway.peer, gateway.samples("untouched_mib")?.median())
            .at_most(8.0),
        Figure::median("G4", "idle_pandas_mib", &worked)
            .beside(&gateway.peer, gateway.samples("pandas_mib")?.median())
            .at_most(16.0),
        Figure::median("G4", "agent_share_mib", &agent),
        Figure::median("G4", "untouched_kernel_side_mib", &kernel_side),
    ])
}
