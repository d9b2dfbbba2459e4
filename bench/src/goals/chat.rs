//! Chat: what a reply takes beyond what its model takes.
//!
//! The model plays a script: a number of words with a pause before each. Asked directly, by as many
//! at once, it shows its own time; what a reply takes more is ours.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use glovebox_testkit::{Script, ScriptedModel};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::Repeats;
use crate::figures::Figure;
use crate::server::{Client, Server};
use crate::stage::{Stage, milliseconds};
use crate::statistics::Samples;

/// How many threads stream at once.
const THREADS: usize = 50;

/// How many words one reply has.
const WORDS: usize = 100;

/// Milliseconds before each word.
const PAUSE_MS: u64 = 10;

/// A model with a processor of its own to run on, as far as there is one.
struct Model {
    base_url: String,
    address: std::net::SocketAddr,
    /// Dropped it ends.
    _stop: oneshot::Sender<()>,
}

impl Model {
    fn start() -> Result<Self> {
        let (tell, told) = std::sync::mpsc::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let text = "word ".repeat(WORDS);
        let script: Script = serde_json::from_value(json!({ "rules": [
            { "then": { "text": text, "piece": 5, "pause_ms": PAUSE_MS } }
        ] }))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        std::thread::spawn(move || {
            runtime.block_on(async move {
                let model = ScriptedModel::start(script).await;
                let place = model
                    .as_ref()
                    .ok()
                    .map(|one| (one.base_url(), one.address()));
                let _ = tell.send(place);
                let _ = stopped.await;
                drop(model);
            });
        });
        let (base_url, address) = told.recv()?.context("starting the model")?;
        Ok(Self {
            base_url,
            address,
            _stop: stop,
        })
    }
}

/// What one reply took: to its first word, and to its end.
#[derive(Clone, Copy)]
struct Took {
    first: f64,
    all: f64,
}

pub(super) async fn measure(stage: &Stage, repeats: Repeats) -> Result<Vec<Figure>> {
    let on = async |server: &Server| measure_on(server, repeats).await;
    stage.on_server("none", on).await
}

async fn measure_on(server: &Server, repeats: Repeats) -> Result<Vec<Figure>> {
    let model = Model::start()?;
    server.set_model(&model.base_url).await?;
    let mut figures = Vec::new();
    for (name, threads) in [("alone", 1), ("at_50_threads", THREADS)] {
        let each = repeats.of(2, 10);
        let own = at_once(threads, || direct(&model, each)).await?;
        let ours = at_once(threads, || replies(server, each)).await?;
        let row =
            |took: &[Took], part: fn(&Took) -> f64| Samples::new(took.iter().map(part).collect());
        let (own_first, own_all) = (row(&own, |took| took.first)?, row(&own, |took| took.all)?);
        let (first, all) = (row(&ours, |took| took.first)?, row(&ours, |took| took.all)?);
        let count = all.count();
        let mut figure = |what: &str, value: f64| {
            figures.push(Figure::new(
                "CHAT",
                &format!("{name}_{what}_ms"),
                value,
                count,
            ));
        };
        figure("model_itself_p50", own_all.median());
        figure("overhead_p50", all.median() - own_all.median());
        figure("overhead_p99", all.percentile(99) - own_all.median());
        figure(
            "first_word_overhead_p50",
            first.median() - own_first.median(),
        );
    }
    Ok(figures)
}

/// The same by many at once.
async fn at_once<F: Future<Output = Result<Vec<Took>>>>(
    count: usize,
    one: impl Fn() -> F,
) -> Result<Vec<Took>> {
    let rows = futures_util::future::join_all((0..count).map(|_| one())).await;
    Ok(rows.into_iter().collect::<Result<Vec<_>>>()?.concat())
}

/// The model itself, asked as the server asks it: a connection for each question.
async fn direct(model: &Model, each: usize) -> Result<Vec<Took>> {
    let mut row = Vec::new();
    let question = json!({ "model": "scripted", "stream": true,
        "messages": [{ "role": "user", "content": "words, please" }] });
    for _ in 0..each {
        let begun = Instant::now();
        let mut client = Client::connect(model.address, None).await?;
        let mut first = None;
        let path = "/v1/chat/completions";
        client
            .stream("POST", path, &question, |line| {
                if line.contains("word") {
                    first.get_or_insert_with(|| milliseconds(begun));
                }
                line == "data: [DONE]"
            })
            .await?;
        row.push(Took {
            first: first.context("the model said no word")?,
            all: milliseconds(begun),
        });
    }
    Ok(row)
}

/// Replies in a thread of its own, from sending the message to the event of its end.
async fn replies(server: &Server, each: usize) -> Result<Vec<Took>> {
    let mut client = server.client().await?;
    let wanted = json!({ "workspace_id": server.workspace });
    let thread = client.ask("POST", "/api/v1/threads", &wanted).await?;
    let thread = thread["id"].as_str().context("the thread has no id")?;
    let thread = format!("/api/v1/threads/{thread}");
    let (mut row, mut after) = (Vec::new(), 0);
    for _ in 0..each {
        let begun = Instant::now();
        let message = json!({ "text": "words, please", "kind": "text", "attachments": [] });
        let path = format!("{thread}/messages");
        client.ask("POST", &path, &message).await?;
        let (mut first, mut is_done) = (None, false);
        let mut listening = server.client().await?;
        let path = format!("{thread}/events?after={after}");
        listening
            .stream("GET", &path, &Value::Null, |line| {
                if let Some(seq) = line.strip_prefix("id: ").and_then(|seq| seq.parse().ok()) {
                    after = seq;
                }
                if line == "event: text" {
                    first.get_or_insert_with(|| milliseconds(begun));
                }
                is_done |= line.contains(r#""outcome":"done""#);
                line.starts_with("data: ") && line.contains(r#""type":"reply_ended""#)
            })
            .await?;
        ensure!(is_done, "a reply did not come to its end");
        row.push(Took {
            first: first.context("a reply said no word")?,
            all: milliseconds(begun),
        });
    }
    Ok(row)
}
