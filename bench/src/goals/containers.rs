//! G8: what a Docker sandbox through the gateway takes on top of what Docker takes by itself.

use std::time::Instant;

use anyhow::Result;

use super::{Repeats, round_trip, through};
use crate::engine::Engine;
use crate::figures::Figure;
use crate::gateway::{Gateway, Kind};
use crate::stage::{Stage, milliseconds, roomy};
use crate::statistics::Samples;

const PRINT: &str = "print(1)";

pub(super) async fn measure(stage: &Stage, repeats: Repeats) -> Result<Vec<Figure>> {
    match Engine::find() {
        Ok(engine) => {
            through(stage, Kind::Docker, async |gateway| {
                beside(gateway, &engine, repeats).await
            })
            .await
        }
        Err(why) => {
            let figure = Figure::not_measured("G8", "docker_create_added_ms", &why);
            Ok(vec![figure.at_most(10.0)])
        }
    }
}

/// Milliseconds of one thing, ours and Docker's, taken in turn.
#[derive(Default)]
struct Pairs {
    ours: Vec<f64>,
    theirs: Vec<f64>,
}

impl Pairs {
    fn figure(self, name: &str, peer: &str) -> Result<Figure> {
        let (ours, theirs) = (Samples::new(self.ours)?, Samples::new(self.theirs)?);
        Ok(Figure::median("G8", name, &ours).beside(peer, theirs.median()))
    }

    fn added(&self) -> Result<Samples> {
        let pairs = self.ours.iter().zip(&self.theirs);
        Samples::new(pairs.map(|(ours, theirs)| ours - theirs).collect())
    }
}

async fn beside(gateway: &Gateway, engine: &Engine, repeats: Repeats) -> Result<Vec<Figure>> {
    let [mut creates, mut firsts, mut processes, mut removals] = [(); 4].map(|()| Pairs::default());
    let mut row = Vec::new();
    // What is made on first use is made by the first round, which does not count.
    for round in 0..=repeats.of(2, 20) {
        let begun = Instant::now();
        let container = engine.start(&roomy())?;
        let their_create = milliseconds(begun);
        let their_process = container.exec_ms(PRINT)?;
        let begun = Instant::now();
        container.remove()?;
        let their_removal = milliseconds(begun);
        let their_first = engine.run_ms(PRINT)?;

        let asked = Instant::now();
        let sandbox = gateway.create().await?;
        let create = milliseconds(asked);
        let mut running = sandbox.start_python(PRINT).await?;
        running.first_output().await?;
        let first = milliseconds(asked);
        running.finish().await?;
        let begun = Instant::now();
        let mut running = sandbox.start_python(PRINT).await?;
        running.first_output().await?;
        let process = milliseconds(begun);
        running.finish().await?;
        // What the kernel's own start takes is in the first of these.
        sandbox.execute(PRINT).await?;
        let executes = round_trip::row(&sandbox, repeats.of(20, 100)).await?;
        let begun = Instant::now();
        gateway.remove(sandbox).await?;
        let removal = milliseconds(begun);

        if round == 0 {
            continue;
        }
        for (pairs, ours, theirs) in [
            (&mut creates, create, their_create),
            (&mut firsts, first, their_first),
            (&mut processes, process, their_process),
            (&mut removals, removal, their_removal),
        ] {
            pairs.ours.push(ours);
            pairs.theirs.push(theirs);
        }
        row.extend(executes);
    }
    let (added, executes) = (creates.added()?, Samples::new(row)?);
    let of_api = |what: &str| format!("{}, {what}", engine.peer);
    Ok(vec![
        Figure::median("G8", "docker_create_added_ms", &added).at_most(10.0),
        creates.figure("docker_create_ms", &of_api("API create and start"))?,
        firsts.figure("docker_first_result_ms", &of_api("`docker run` python"))?,
        processes.figure("docker_process_ms", &of_api("`docker exec` python"))?,
        Figure::median("G8", "docker_execute_p50_ms", &executes),
        Figure::new(
            "G8",
            "docker_execute_p99_ms",
            executes.percentile(99),
            executes.count(),
        ),
        removals.figure("docker_destroy_ms", &of_api("API remove by force"))?,
    ])
}
