//! `glovebox-bench`: repeatable measurements of Glovebox beside what people use today.
//!
//! Started by `bench/run`, which makes what it needs. It asserts on no time: it says which goals
//! are met, and fails only when something could not be measured.

mod document;
mod engine;
mod figures;
mod gateway;
mod goals;
mod inspect;
mod machine;
mod peers;
mod sandbox;
mod server;
mod stage;
mod statistics;

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Parser;

use document::Origin;
use goals::Repeats;
use machine::Machine;
use peers::Peers;
use stage::Stage;

/// Measures Glovebox beside what people use today.
#[derive(Debug, Parser)]
struct Arguments {
    /// The folder with the built programs
    #[arg(long)]
    programs: PathBuf,
    /// The data folder with the trees that boxes stand on
    #[arg(long)]
    data: PathBuf,
    /// The folders that `glovebox setup` looked for an interpreter in, as PATH has them
    #[arg(long)]
    search: std::ffi::OsString,
    /// A Python with the packages of bench/peers/requirements.txt
    #[arg(long)]
    python: PathBuf,
    /// The folder bench/peers
    #[arg(long)]
    peers: PathBuf,
    /// Where to write the figures, a line of JSON each
    #[arg(long)]
    out: PathBuf,
    /// Where to write the table that is also printed
    #[arg(long)]
    table: PathBuf,
    /// A document whose marked part is written anew
    #[arg(long, requires = "date", requires = "commit")]
    document: Option<PathBuf>,
    /// The day, for the document
    #[arg(long)]
    date: Option<String>,
    /// The commit that is measured, for the document
    #[arg(long)]
    commit: Option<String>,
    /// Few repeats: shows that everything runs
    #[arg(long)]
    short: bool,
    /// Only these goals, such as G2; all without it
    #[arg(long)]
    only: Vec<String>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    // One thread, as `glovebox run` has: a second one would cost wake-ups and none is needed.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting the runtime")?;
    runtime.block_on(run(arguments))
}

async fn run(arguments: Arguments) -> Result<()> {
    let machine = Machine::look();
    let stage = Stage::open(&arguments.programs, &arguments.data, &arguments.search).await?;
    let peers = Peers {
        python: arguments.python,
        scripts: arguments.peers,
    };
    let repeats = Repeats {
        short: arguments.short,
    };
    let taken = goals::measure(&stage, &peers, repeats, &arguments.only, |goal| {
        say(
            &mut std::io::stderr(),
            &format!("bench: measuring {goal}\n"),
        );
    })
    .await;
    for failed in &taken.failed {
        let failed = format!("bench: not measured: {failed:#}\n");
        say(&mut std::io::stderr(), &failed);
    }
    stage.close().await?;
    let figures = taken.figures;
    figures::write_lines(&arguments.out, &figures)?;
    let form = if arguments.short {
        "short form: these figures say little"
    } else {
        "medians unless the name says otherwise"
    };
    let table = figures::table(&figures);
    let text = format!("{}\n{form}\n\n{table}", machine.line());
    fs_err::write(&arguments.table, &text)?;
    say(&mut std::io::stdout(), &text);
    // The document is of everything or of nothing.
    if let Some(failed) = taken.failed.into_iter().next() {
        return Err(failed);
    }
    if let (Some(path), Some(date), Some(commit)) =
        (arguments.document, arguments.date, arguments.commit)
    {
        document::write(&path, &Origin { date, commit }, &machine, &figures)?;
    }
    Ok(())
}

/// Whoever reads may have gone away; the figures are in their file all the same.
fn say(to: &mut impl std::io::Write, text: &str) {
    let _ = to.write_all(text.as_bytes());
}
