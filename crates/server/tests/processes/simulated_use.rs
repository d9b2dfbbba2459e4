//! People who chat, run code, look at files and throw threads away, one round after the other: the
//! memory of server, gateway and worker stays what it was.
//!
//! With each change a few rounds; in `make soak` an hour of them. What was seen is written to standard
//! output as a table.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use glovebox_testkit::{ScriptedModel, is_soak};
use serde_json::{Value, json};

use crate::process::{Server, on_sqlite, until};
use crate::talk::{Talk, find, outcome, value};
use crate::wire::Who;

/// How many people there are.
const PEOPLE: usize = 4;

/// How many rounds are played with each change.
const ROUNDS: usize = 6;

/// For how long in `make soak`, unless `GLOVEBOX_SOAK_SECONDS` says otherwise.
const SOAK: Duration = Duration::from_secs(60 * 60);

/// The processes, and what each may have grown by after its second third, in KiB: an hour has some
/// thousand rounds, so that a leak of some KiB in each shows. Server and worker hold large files for a
/// moment, whose room the allocator gives back in its time.
const MAY_GROW_KIB: [(&str, u64); 3] = [
    ("server", 24 * 1024),
    ("gateway", 4 * 1024),
    ("worker", 24 * 1024),
];

/// How many descriptors a process may have more than after its second third.
const MAY_OPEN: usize = 24;

/// A deck is much to draw: every so many rounds one is.
const DECK_EVERY: usize = 5;

const FIGURES: &str = "import pandas as pd, matplotlib.pyplot as plt
table = pd.DataFrame({'n': range(200)}); table['square'] = table.n ** 2
table.to_csv('figures.csv', index=False)
plt.figure(); plt.plot(table.n, table.square); plt.savefig('figures.png'); plt.close()
print(table.describe())
int(table.square.sum())";

const DECK: &str = "import pptx
deck = pptx.Presentation()
for n in range(3):
    deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text = f'Slide {n}'
deck.save('deck.pptx'); len(deck.slides)";

/// What is known of a process at one moment.
#[derive(Debug, Clone, Copy)]
struct Size {
    /// Its memory that is no file's, in KiB.
    memory: u64,
    descriptors: usize,
}

fn size(pid: u32) -> Size {
    let status = fs_err::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let memory = status.lines().find_map(|line| {
        let words = line.strip_prefix("RssAnon:")?;
        words.split_whitespace().next()?.parse().ok()
    });
    Size {
        memory: memory.unwrap(),
        descriptors: fs_err::read_dir(format!("/proc/{pid}/fd")).unwrap().count(),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test has no other way to be told"
)]
fn soak_length() -> Duration {
    let given = std::env::var("GLOVEBOX_SOAK_SECONDS").ok();
    given
        .and_then(|seconds| seconds.parse().ok())
        .map_or(SOAK, Duration::from_secs)
}

/// Whether another round is played.
fn goes_on(round: usize, begun: Instant) -> bool {
    if is_soak() {
        round < 3 || begun.elapsed() < soak_length()
    } else {
        round < ROUNDS
    }
}

fn script() -> Value {
    let call = |name: &str, arguments: Value| json!({ "calls": [{ "name": name, "arguments": arguments }] });
    let when = |tool: &str, results: usize| json!({ "tool": tool, "results": results });
    json!({ "rules": [
        { "when": { "said": "just talk" }, "then": { "text": "word ".repeat(60), "piece": 10, "pause_ms": 5 } },
        { "when": when("code_execution", 0),
            "then": call("code_execution", json!({ "task": "make the figures" })) },
        { "when": when("run_python", 0),
            "then": call("run_python", json!({ "code": FIGURES, "plan": "Counts" })) },
        { "when": { "tool": "run_python" }, "then": { "text": "Saved figures.csv and figures.png." } },
        { "then": { "text": "Here are **the figures**.", "piece": 4, "pause_ms": 2 } }
    ] })
}

/// Lets a workspace have sandboxes for everybody.
async fn make_room(server: &Server, ada: &Who, workspace: &str) {
    let visitor = server.visitor;
    let all = visitor.get(ada, "/api/v1/admin/workspaces").await.ok();
    let one = &all["items"][0];
    let mut quotas = one["quotas"].clone();
    quotas["max_concurrent"] = json!(PEOPLE * 3);
    quotas["max_jobs_per_hour"] = json!(100_000);
    quotas["max_artifact_bytes_per_day"] = json!(1_u64 << 40);
    let change = json!({ "version": one["version"], "quotas": quotas });
    let path = format!("/api/v1/admin/workspaces/{workspace}");
    visitor.call(ada, "PATCH", &path, &change).await.ok();
}

/// What one person does in one round, in a thread of their own that is thrown away at the end.
async fn round(server: &Server, ada: &Who, workspace: &str, number: usize) {
    let talk = Talk::begin(server.visitor, ada, workspace, number.is_multiple_of(2)).await;
    let file = talk.upload("in.csv", b"a,b\n1,2\n").await;
    let events = talk.say("text", "just talk, please", &[&file]).await;
    assert_eq!(outcome(&events), "done", "{events:?}");
    let events = talk.say("text", "The figures, please", &[]).await;
    assert_eq!(outcome(&events), "done", "{events:?}");
    let saved: Vec<&Value> = events
        .iter()
        .filter(|event| event["type"] == "file_saved")
        .map(|event| &event["data"]["artifact"])
        .collect();
    assert_eq!(saved.len(), 2, "{events:?}");
    for artifact in saved {
        looks_at(&talk, artifact).await;
    }
    assert_eq!(
        value(&talk.run("open('in.csv').read()").await),
        "'a,b\\n1,2\\n'"
    );
    if number.is_multiple_of(DECK_EVERY) {
        let events = talk.run(DECK).await;
        looks_at(&talk, &find(&events, "file_saved")["artifact"]).await;
    }
    // What fails is part of the day.
    assert_eq!(outcome(&talk.run("{}['missing']").await), "done");
    let path = format!("/api/v1/threads?workspace_id={workspace}");
    talk.visitor.get(ada, &path).await.ok();
    let path = format!("/api/v1/threads/{}", talk.id);
    let gone = talk.visitor.call(ada, "DELETE", &path, &json!({})).await;
    assert!(gone.status < 300, "{}", gone.text());
}

/// Has a file previewed and downloads it.
async fn looks_at(talk: &Talk, artifact: &Value) {
    let artifact = format!("/api/v1/artifacts/{}", artifact.as_str().unwrap());
    let path = format!("{artifact}/preview");
    let mut looks = tokio::time::interval(Duration::from_millis(200));
    let deadline = Instant::now() + Duration::from_secs(240);
    loop {
        looks.tick().await;
        let view = talk.visitor.get(&talk.who, &path).await.ok();
        if view["state"] == "ready" {
            break;
        }
        assert!(
            view["state"] != "failed" && Instant::now() < deadline,
            "{view}"
        );
    }
    let content = format!("{artifact}/content");
    assert_eq!(talk.visitor.get(&talk.who, &content).await.status, 200);
}

/// Sizes of all processes after each round, as a table.
fn table(names: &[&str], seen: &[(u64, Vec<Size>)]) -> String {
    let mut text = format!("seconds  round  {}\n", names.join(" KiB (descriptors)  "));
    // Of an hour no more lines than people read.
    let every = seen.len().div_ceil(30).max(1);
    let rounds = seen.iter().enumerate();
    for (round, (seconds, sizes)) in
        rounds.filter(|(at, _)| at % every == 0 || at + 1 == seen.len())
    {
        let sizes: Vec<_> = sizes
            .iter()
            .map(|size| format!("{:>8} ({})", size.memory, size.descriptors))
            .collect();
        text.push_str(&format!("{seconds:>7}  {round:>5}  {}\n", sizes.join("  ")));
    }
    text
}

/// The size in the middle of a row.
fn median(row: &[(u64, Vec<Size>)], at: usize) -> Size {
    let middle = |mut all: Vec<u64>| {
        all.sort_unstable();
        all[all.len() / 2]
    };
    let memory = row.iter().map(|(_, sizes)| sizes[at].memory).collect();
    let descriptors = row
        .iter()
        .map(|(_, sizes)| sizes[at].descriptors as u64)
        .collect();
    Size {
        memory: middle(memory),
        descriptors: usize::try_from(middle(descriptors)).unwrap(),
    }
}

#[tokio::test]
async fn after_some_rounds_memory_is_what_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let place = on_sqlite(folder.path());
    let server = place.serve(&["--queues", "none", "--log", "warn"]);
    let (ada, workspace) = server.begin().await;
    let worker = place.work();
    make_room(&server, &ada, &workspace).await;
    let model = ScriptedModel::play(script()).await.unwrap();
    let wanted = json!({ "name": "Scripted", "base_url": model.base_url(), "model": "scripted" });
    let models = "/api/v1/admin/models";
    server
        .visitor
        .call(&ada, "POST", models, &wanted)
        .await
        .ok();

    let pids = [
        server.process.id(),
        server.process.child_named("glovebox-gateway"),
        worker.id(),
    ];
    let begun = Instant::now();
    let mut seen = Vec::new();
    while goes_on(seen.len(), begun) {
        let number = seen.len();
        let all = (0..PEOPLE).map(|person| round(&server, &ada, &workspace, number + person));
        join_all(all).await;
        let sizes = pids.iter().map(|pid| size(*pid)).collect();
        seen.push((begun.elapsed().as_secs(), sizes));
    }
    println_table(&table(&MAY_GROW_KIB.map(|(name, _)| name), &seen));
    let third = seen.len().div_ceil(3);
    for (at, (name, may_grow)) in MAY_GROW_KIB.into_iter().enumerate() {
        let before = median(&seen[third - 1..(2 * third).min(seen.len())], at);
        let after = median(&seen[seen.len() - third..], at);
        assert!(
            after.memory <= before.memory + may_grow,
            "the {name} has grown from {} to {} KiB",
            before.memory,
            after.memory
        );
        assert!(
            after.descriptors <= before.descriptors + MAY_OPEN,
            "the {name} has opened more and more: {} and then {}",
            before.descriptors,
            after.descriptors
        );
    }
    // The sandboxes of threads that were thrown away are gone, too.
    let live = "/api/v1/admin/sandboxes";
    until(async || server.visitor.get(&ada, live).await.ok()["items"] == json!([])).await;
}

#[expect(
    clippy::print_stdout,
    reason = "the figures of a soak are written down"
)]
fn println_table(text: &str) {
    println!("{text}");
}
