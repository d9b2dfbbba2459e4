//! Previews: from the request of whoever opens a file to the first thing that is seen of it, and to
//! the end.
//!
//! Files come from code in a sandbox, as people's do. The server asks as the console does, a little
//! more often, and the picture of the first page has to have come: that it is there is not enough.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use serde_json::{Value, json};

use super::Repeats;
use crate::figures::Figure;
use crate::server::{Client, Server};
use crate::stage::{Stage, milliseconds};
use crate::statistics::Samples;

/// The code that makes the files.
const FILES: &str = include_str!("previews/files.py");

/// Each kind of file: its word in figures, its name, and the most milliseconds to what is seen first,
/// where there is a goal.
const KINDS: [(&str, &str, Option<f64>); 8] = [
    ("pptx", "deck.pptx", Some(3_000.0)),
    ("docx", "letter.docx", None),
    ("pdf", "paper.pdf", None),
    ("xlsx", "book.xlsx", None),
    ("xlsx_formulas", "formulas.xlsx", None),
    ("csv", "table.csv", None),
    ("markdown", "notes.md", None),
    ("image", "image.png", None),
];

/// The seed of the files of which one is the first of all.
const FIRST_OF_ALL: usize = 1_000_000;

/// How often is asked how far a preview is.
const GLANCE: Duration = Duration::from_millis(20);

/// How long one may take.
const PATIENCE: Duration = Duration::from_secs(240);

/// What one preview took: to what is seen first, and to its end.
#[derive(Clone, Copy)]
struct Took {
    first: f64,
    all: f64,
}

pub(super) async fn measure(stage: &Stage, repeats: Repeats) -> Result<Vec<Figure>> {
    let on = async |server: &Server| measure_on(server, repeats).await;
    stage.on_server("preview", on).await
}

async fn measure_on(server: &Server, repeats: Repeats) -> Result<Vec<Figure>> {
    let mut client = server.client().await?;
    let sandbox = client.sandbox().await?;
    let mut rows: [Vec<Took>; KINDS.len()] = Default::default();
    // The first one of all finds nothing of LibreOffice in the memory of the machine.
    let first_of_all = made(&mut client, &sandbox, FIRST_OF_ALL).await?;
    let first_of_all = preview(&mut client, &artifact(&first_of_all, "deck.pptx")?).await?;
    for seed in 0..repeats.of(1, 10) {
        let events = made(&mut client, &sandbox, seed).await?;
        for (row, (_, name, _)) in rows.iter_mut().zip(KINDS) {
            let id = artifact(&events, name)?;
            row.push(preview(&mut client, &id).await?);
        }
    }
    client.bytes("DELETE", &sandbox, &Value::Null).await?;
    let mut figures = vec![Figure::new(
        "PREVIEW",
        "pptx_first_of_all_ms",
        first_of_all.first,
        1,
    )];
    for (row, (word, _, goal)) in rows.iter().zip(KINDS) {
        let of = |part: fn(&Took) -> f64| Samples::new(row.iter().map(part).collect());
        let (first, all) = (of(|took| took.first)?, of(|took| took.all)?);
        let seen = Figure::median("PREVIEW", &format!("{word}_first_p50_ms"), &first);
        figures.push(match goal {
            Some(most) => seen.at_most(most),
            None => seen,
        });
        let longest = Figure::new(
            "PREVIEW",
            &format!("{word}_first_max_ms"),
            first.max(),
            first.count(),
        );
        figures.push(longest);
        figures.push(Figure::median(
            "PREVIEW",
            &format!("{word}_all_p50_ms"),
            &all,
        ));
    }
    Ok(figures)
}

/// Has code make all files; the events of its execution.
async fn made(client: &mut Client, sandbox: &str, seed: usize) -> Result<Bytes> {
    let code = format!("{FILES}\nmake({seed})\n");
    client.execute(sandbox, &code).await
}

/// The id of a file that code has saved, by the events of its execution.
pub(super) fn artifact(events: &[u8], name: &str) -> Result<String> {
    let events = String::from_utf8_lossy(events);
    let mut documents = events
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
    let saved =
        documents.find(|event| event["data"]["name"] == name && event["type"] == "artifact");
    let saved = saved.with_context(|| format!("{name} was not collected: {events}"))?;
    let id = saved["data"]["saved_as"].as_str();
    Ok(id.context("an artifact has no id")?.to_owned())
}

/// Has a file previewed.
async fn preview(client: &mut Client, artifact: &str) -> Result<Took> {
    let begun = Instant::now();
    let path = format!("/api/v1/artifacts/{artifact}/preview");
    let mut first = None;
    loop {
        let view = client.ask("GET", &path, &Value::Null).await?;
        if first.is_none()
            && let Some(part) = seen_first(&view)
        {
            let id = view["id"].as_str().context("a preview has no id")?;
            let path = format!("/api/v1/previews/{id}/{part}");
            let bytes = client.bytes("GET", &path, &Value::Null).await?;
            ensure!(!bytes.is_empty(), "{path} is empty");
            first = Some(milliseconds(begun));
        }
        ensure!(view["state"] != "failed", "a preview failed: {view}");
        if view["state"] == "ready" {
            return Ok(Took {
                first: first.context("nothing is seen of a preview")?,
                all: milliseconds(begun),
            });
        }
        ensure!(begun.elapsed() < PATIENCE, "a preview is not made: {view}");
        tokio::time::sleep_until((Instant::now() + GLANCE).into()).await;
    }
}

/// The part that people see first, once it is there.
fn seen_first(view: &Value) -> Option<&'static str> {
    let has = |parts: &str| view[parts].as_array().is_some_and(|all| !all.is_empty());
    if has("pages") {
        Some("pages/1")
    } else if has("sheets") {
        Some("sheets/1")
    } else if view["image"].is_object() {
        Some("image")
    } else if view["text_media"] == json!("markdown") {
        Some("markdown")
    } else {
        None
    }
}
