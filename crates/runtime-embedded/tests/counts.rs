//! What a new sandbox costs in things that can be counted: processes, questions to the launcher,
//! connections to the agent, bytes. Times change with the machine; these do not.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use glovebox_runtime::conformance::Subject;
use glovebox_runtime::{Runtime, Start};
use glovebox_runtime_embedded::{EmbeddedRuntime, ReadyKind};
use glovebox_testkit::programs;
use serde_json::Value;

/// Processes and threads that are started for one sandbox from its making to its removal: the
/// agent and its threads, the two helpers that bring the copy of the template in, and the copy.
const STARTED: u64 = 7;

/// What was heard from asking for a sandbox to the result of its first code.
#[derive(Debug, Default)]
struct Heard {
    /// Lines to the launcher.
    requests: usize,
    /// Lines from it.
    answers: usize,
    /// To the agent.
    connections: usize,
    bytes_to_launcher: u64,
    bytes_from_launcher: u64,
    bytes_to_agent: u64,
    bytes_from_agent: u64,
    /// The agent's number on this machine.
    agent: u64,
    /// How many processes and threads there had been in the pod when the agent was started.
    agent_number: u64,
    was_ready: bool,
    /// The agent and everything in its box.
    processes: BTreeSet<u64>,
}

impl Heard {
    fn assert_few_words(&self, connections: usize) {
        assert_eq!((self.requests, self.answers), (1, 1), "{self:?}");
        assert_eq!(self.connections, connections, "{self:?}");
        for (bytes, most) in [
            (self.bytes_to_launcher, 1024),
            (self.bytes_from_launcher, 1536),
            (self.bytes_to_agent, 1024),
            (self.bytes_from_agent, 1024),
        ] {
            assert!((1..=most).contains(&bytes), "{self:?}");
        }
    }
}

/// A runtime whose every word is written down.
struct Tapped {
    subject: Subject,
    runtime: Arc<EmbeddedRuntime>,
    log: PathBuf,
    _folder: tempfile::TempDir,
}

impl Tapped {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = support::options();
        let log = folder.path().join("log");
        options.launcher = between(&options.launcher, folder.path(), &log);
        let installation = options.installation;
        let runtime = Arc::new(EmbeddedRuntime::start(options).await.unwrap());
        let driven: Arc<dyn Runtime> = Arc::<EmbeddedRuntime>::clone(&runtime);
        let subject = Subject::new(driven, installation, support::PYTHON).starting(Start::Template);
        Self {
            subject,
            runtime,
            log,
            _folder: folder,
        }
    }

    /// Waits until two are ready.
    async fn until_ready(&self, kind: &ReadyKind) {
        let ready = async {
            let mut look = tokio::time::interval(Duration::from_millis(20));
            loop {
                look.tick().await;
                let measured = self.runtime.measure().await.unwrap();
                if measured.pool(kind).is_some_and(|pool| pool.ready == 2) {
                    return;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(120), ready)
            .await
            .unwrap();
    }

    /// Makes a sandbox and runs its first code.
    async fn first_result(&self) -> Heard {
        let before = fs_err::read_to_string(&self.log).unwrap().len();
        let guest = self.subject.create().await;
        assert_eq!(guest.execute("print(1)").await.text(), "1\n");
        let text = fs_err::read_to_string(&self.log).unwrap();
        let mut heard = heard(&text[before..]);
        heard.processes = descendants_of(heard.agent);
        guest.remove().await;
        heard
    }

    async fn end(self) {
        self.subject.finish().await;
        let runtime = Arc::into_inner(self.runtime).unwrap();
        runtime.shut_down().await.unwrap();
    }
}

/// A program to start in the launcher's place. A runtime gives its launcher no arguments.
fn between(launcher: &Path, folder: &Path, log: &Path) -> PathBuf {
    let eavesdropper = programs().unwrap().join("examples/eavesdropper");
    assert!(
        eavesdropper.is_file(),
        "there is no {}; `cargo build --examples` makes it",
        eavesdropper.display()
    );
    let script = folder.join("between");
    let command = [&eavesdropper, launcher, log].map(|path| format!("'{}'", path.display()));
    fs_err::write(&script, format!("#!/bin/sh\nexec {}\n", command.join(" "))).unwrap();
    fs_err::set_permissions(&script, std::fs::Permissions::from_mode(0o700)).unwrap();
    script
}

fn heard(log: &str) -> Heard {
    let mut heard = Heard::default();
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let bytes = line["bytes"].as_u64().unwrap_or(0);
        match line["heard"].as_str().unwrap() {
            "request" => {
                heard.requests += 1;
                heard.bytes_to_launcher += bytes;
            }
            "answer" => {
                heard.answers += 1;
                heard.bytes_from_launcher += bytes;
                let facts = &line["said"]["facts"];
                heard.was_ready = facts["was_ready"].as_bool().unwrap();
                heard.agent = facts["pid"].as_u64().unwrap();
                heard.agent_number = number_in_pod(heard.agent);
            }
            "connection" => heard.connections += 1,
            "to_agent" => heard.bytes_to_agent += bytes,
            "from_agent" => heard.bytes_from_agent += bytes,
            other => panic!("{other} was heard"),
        }
    }
    heard
}

/// The number of a process among all that were started in the pod, which Linux gives out one
/// after the other.
fn number_in_pod(pid: u64) -> u64 {
    let status = fs_err::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let numbers = status
        .lines()
        .find_map(|l| l.strip_prefix("NSpid:"))
        .unwrap();
    // The host's, the pod's, the box's.
    numbers
        .split_whitespace()
        .rev()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap()
}

/// Everything that runs and was started by a process, itself included.
fn descendants_of(ancestor: u64) -> BTreeSet<u64> {
    let mut parents: BTreeMap<u64, u64> = BTreeMap::new();
    for entry in fs_err::read_dir("/proc").unwrap().flatten() {
        let pid = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let (Some(pid), Ok(stat)) = (pid, fs_err::read_to_string(entry.path().join("stat"))) else {
            continue;
        };
        // The name before it may hold anything.
        let after_name = stat.rsplit_once(')').unwrap().1;
        let parent = after_name.split_whitespace().nth(1).unwrap();
        parents.insert(pid, parent.parse().unwrap());
    }
    let mut found = BTreeSet::from([ancestor]);
    loop {
        let before = found.len();
        found.extend(
            parents
                .iter()
                .filter(|(_, of)| found.contains(of))
                .map(|(pid, _)| *pid)
                .collect::<Vec<_>>(),
        );
        if found.len() == before {
            return found;
        }
    }
}

#[tokio::test]
async fn a_sandbox_from_the_template_costs_few_processes_and_words() {
    let tapped = Tapped::start().await;
    // The first one brings the template with it.
    tapped.first_result().await;
    let mut last = tapped.first_result().await;
    for _ in 0..5 {
        let next = tapped.first_result().await;
        next.assert_few_words(2);
        assert!(!next.was_ready);
        assert!(
            next.agent_number - last.agent_number <= STARTED,
            "{next:?} after {last:?}"
        );
        last = next;
    }
    tapped.end().await;
}

#[tokio::test]
async fn a_sandbox_that_was_ready_costs_no_process_and_one_word() {
    let tapped = Tapped::start().await;
    let kind = ReadyKind::of(&tapped.subject.spec());
    tapped.runtime.keep_ready(kind.clone(), 2).await.unwrap();
    for _ in 0..5 {
        tapped.until_ready(&kind).await;
        let there = descendants_of(std::process::id().into());
        let next = tapped.first_result().await;
        next.assert_few_words(1);
        assert!(next.was_ready);
        let new: Vec<_> = next.processes.difference(&there).collect();
        assert_eq!((new.len(), next.processes.len()), (0, 2), "{next:?}");
    }
    tapped.end().await;
}
