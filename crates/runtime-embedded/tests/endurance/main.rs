//! The same thing many times over: nothing grows, nothing stays behind.
//!
//! `make test` runs these at a small size, `make soak` at the full one.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod alone;
mod ordinary;
#[path = "../support/mod.rs"]
mod support;
#[expect(dead_code, reason = "the tests of the launcher use more of it")]
#[path = "../../../box/tests/support/user.rs"]
mod user;

use std::collections::BTreeMap;
use std::sync::Arc;

use glovebox_protocol::event::{EventBody, Note, Outcome};
use glovebox_protocol::ids::SandboxId;
use glovebox_protocol::kernel::{KernelState, StartKernel};
use glovebox_runtime::conformance::{Guest, Subject};
use glovebox_runtime::{Capability, SandboxSpec, Start};
use glovebox_runtime_embedded::ReadyKind;
use glovebox_testkit::count;

use alone::{Alone, alone};

/// A name in `/tmp` that the tests of one user share.
fn scratch(name: &str) -> std::path::PathBuf {
    let uid = rustix::process::geteuid().as_raw();
    format!("/tmp/glovebox-test-{uid}-{name}").into()
}

/// Memory that may come and go without being growth, in bytes.
const SLACK: u64 = 8 * 1024 * 1024;

/// Asks the kernel how much memory it holds itself, after collecting what nobody holds.
const RESIDENT: &str = "import gc; gc.collect(); \
    print([int(l.split()[1]) for l in open('/proc/self/status') if l.startswith('VmRSS')][0] * 1024)";

async fn kernel_bytes(guest: &Guest) -> u64 {
    guest.execute(RESIDENT).await.text().trim().parse().unwrap()
}

/// How much memory the agent holds, as the host sees it: the one whose launcher this test started.
fn agent_bytes() -> u64 {
    let mut agents = fs_err::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| status_of(entry.file_name().to_str()?))
        .filter(|status| status["Name"] == "glovebox-agent" && is_descendant(status));
    let agent = agents.next().expect("no agent runs");
    assert!(agents.next().is_none(), "more than one agent runs");
    let kib: u64 = agent["VmRSS"].trim_end_matches(" kB").parse().unwrap();
    kib * 1024
}

/// What `/proc` says of a process, if it is one and still there.
fn status_of(pid: &str) -> Option<BTreeMap<String, String>> {
    pid.parse::<u32>().ok()?;
    let text = fs_err::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    Some(pairs.map(|(k, v)| (k.into(), v.trim().into())).collect())
}

fn is_descendant(process: &BTreeMap<String, String>) -> bool {
    let parent = process["PPid"].as_str();
    parent == std::process::id().to_string()
        || status_of(parent).is_some_and(|parent| is_descendant(&parent))
}

#[tokio::test]
async fn executing_many_times_keeps_memory_flat_and_leaves_the_host_as_it_was() {
    alone(execute_many_times).await;
}

async fn execute_many_times(Alone { subject, .. }: &Alone) {
    let guest = subject.create().await;
    let execute = async |times: usize| {
        for n in 0..times {
            let ran = guest.execute("1 + 1").await;
            assert!(
                ran.ended.outcome.is_success(),
                "execute {n}: {:?}",
                ran.ended
            );
            assert!(matches!(ran.events.last(), Some(EventBody::Result { .. })));
        }
    };
    // What is made on first use is made by then.
    execute(200).await;
    let before = (kernel_bytes(&guest).await, agent_bytes());
    execute(count(1_000, 10_000)).await;
    let after = (kernel_bytes(&guest).await, agent_bytes());
    assert!(
        after.0 < before.0 + SLACK,
        "the kernel grew: {before:?} to {after:?}"
    );
    assert!(
        after.1 < before.1 + SLACK,
        "the agent grew: {before:?} to {after:?}"
    );
    guest.remove().await;
}

#[tokio::test]
async fn fifty_megabytes_of_output_pass_through_without_staying_and_leaves_the_host_as_it_was() {
    alone(print_fifty_megabytes).await;
}

async fn print_fifty_megabytes(Alone { subject, .. }: &Alone) {
    const BYTES: u64 = 50_000_000;
    let guest = subject.create().await;
    let flood = "import os\nblock = b'x' * 50_000\nfor n in range(1000): os.write(1, block)";
    // The agent keeps the beginning of what is written, up to a limit that is reached by then.
    guest.execute(flood).await;
    let before = agent_bytes();

    let mut cell = guest.cell(flood);
    cell.output_limit_bytes = 1_000_000;
    let ran = guest.execute_as(&cell).await;
    assert_eq!(ran.stdout().len(), 1_000_000);
    let dropped = EventBody::OutputDropped {
        dropped_bytes: BYTES - 1_000_000,
        limit_bytes: 1_000_000,
    };
    assert_eq!(ran.events.last(), Some(&dropped));

    // Without a budget all of it comes, at the reader's pace.
    let mut running = guest.client.run(&guest.script(flood)).await.unwrap();
    let mut seen = 0;
    let mut most = 0;
    while let Some(event) = running.next().await.unwrap() {
        if let EventBody::Stdout(output) = event {
            seen += output.0.len() as u64;
            most = most.max(agent_bytes());
        }
    }
    assert_eq!(seen, BYTES);
    assert!(
        most < before + SLACK,
        "the agent grew from {before} to {most} bytes"
    );
    guest.remove().await;
}

/// Work as people do: a table, and now and then a picture.
const TABLE: &str = "import pandas as pd
print(pd.DataFrame({'a': range(100), 'b': [n % 7 for n in range(100)]}).groupby('b').a.sum().sum())";
const PLOT: &str = "import matplotlib.pyplot as plt
plt.plot([3, 1, 2])
plt.show()";

#[tokio::test]
async fn working_in_many_sandboxes_leaves_the_host_as_it_was() {
    alone(work_in_many).await;
}

async fn work_in_many(Alone { subject, .. }: &Alone) {
    for n in 0..count(300, 10_000) {
        work(subject, n % 10 == 9).await;
    }
}

async fn work(subject: &Subject, plots: bool) {
    let guest = subject.create().await;
    let ran = guest.execute(TABLE).await;
    assert_eq!(ran.text(), "4950\n", "{ran:?}");
    if plots {
        let ran = guest.execute(PLOT).await;
        let is_picture = |event: &EventBody| matches!(event, EventBody::Display(shown) if shown.data.contains_key("image/png"));
        assert!(ran.events.iter().any(is_picture), "{ran:?}");
    }
    guest.remove().await;
}

#[tokio::test]
async fn working_in_many_sandboxes_that_were_ready_leaves_the_host_as_it_was() {
    alone(work_in_many_ready).await;
}

async fn work_in_many_ready(Alone { subject, runtime }: &Alone) {
    let kind = ReadyKind::of(&subject.spec());
    runtime.keep_ready(kind.clone(), 4).await.unwrap();
    let asked = count(60, 2_000);
    for n in 0..asked {
        work(subject, n % 10 == 9).await;
    }
    let measured = runtime.measure().await.unwrap();
    let pool = measured.pool(&kind).unwrap();
    assert_eq!(pool.hits + pool.misses, asked as u64, "{pool:?}");
    // Those that nobody asked for go with the launcher.
}

#[tokio::test]
async fn making_and_ending_many_sandboxes_leaves_the_host_as_it_was() {
    alone(make_and_end_many).await;
}

async fn make_and_end_many(Alone { subject, .. }: &Alone) {
    for n in 0..count(100, 1_000) {
        let start = [Start::Template, Start::Fresh][n / 4 % 2];
        let guest = subject
            .create_as(SandboxSpec {
                start,
                ..subject.spec()
            })
            .await;
        // Ways in which sandboxes are left: idle and perhaps still without the kernel that is on
        // its way, in use, with leftovers, in the middle of work.
        match n % 4 {
            0 => {}
            1 => {
                guest.put("in.txt", b"x").await;
                let ran = guest.python("print(open('in.txt').read())").await;
                assert_eq!(ran.text(), "x\n");
            }
            2 => {
                let ran = guest
                    .python("import subprocess; subprocess.Popen(['sleep', '600'], start_new_session=True)")
                    .await;
                // What leaves its session beside a kernel may be the kernel's, and is left alone.
                let note = Note::LeftRunning { processes: 1 };
                let is_told = ran.ended.notes.contains(&note);
                assert_eq!(is_told, start == Start::Fresh, "{:?}", ran.ended);
            }
            _ => {
                let cell = guest.cell("print('up', flush=True)\nwhile True: pass");
                let mut running = guest.client.execute(&cell).await.unwrap();
                // It is in the middle of its work when it is taken away.
                while !matches!(running.next().await.unwrap(), Some(EventBody::Stdout(_))) {}
            }
        }
        guest.remove().await;
    }
}

#[tokio::test]
async fn many_idle_sandboxes_live_side_by_side_and_leaves_the_host_as_it_was() {
    alone(hold_many_idle).await;
}

async fn hold_many_idle(Alone { subject, .. }: &Alone) {
    // Where all have one id, Linux counts all their processes together.
    let most = if subject.can(Capability::SeparateIds) {
        1_000
    } else {
        200
    };
    let mut held = Vec::new();
    for _ in 0..count(50, most) {
        held.push(idle(subject).await);
    }
    for guest in &held {
        let client = subject.client(*guest, Arc::clone(&subject.key));
        assert_eq!(client.status().await.unwrap().sandbox_id, *guest);
        let kernel = client.kernel().await.unwrap();
        assert_eq!((kernel.state, kernel.generation), (KernelState::Idle, 1));
        assert_eq!(kernel.start, Some(Start::Template));
    }
    let guest = subject.create().await;
    let ran = guest.python("print('last')").await;
    assert_eq!(ran.ended.outcome, Outcome::Exited { code: 0 });
    guest.remove().await;
    for guest in held {
        subject.runtime.remove(guest).await.unwrap();
    }
}

/// A sandbox whose kernel takes code, and to which nobody has a connection.
async fn idle(subject: &Subject) -> SandboxId {
    let guest = subject.create().await;
    let start = StartKernel::default();
    guest.client.start_kernel(&start).await.unwrap();
    guest.id
}
