//! Many sandboxes leave nothing behind.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use glovebox_runtime::conformance::Subject;
use glovebox_runtime_engine::EngineRuntime;
use glovebox_testkit::{HostSnapshot, count};

/// What the engine has, and what it keeps on the disk for each container.
fn of_the_engine() -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for arguments in [
        &["ps", "--all", "--quiet", "--no-trunc"][..],
        &["volume", "ls", "--quiet"],
        &["network", "ls", "--quiet", "--no-trunc"],
        &["images", "--all", "--quiet", "--no-trunc"],
    ] {
        lines.extend(
            support::docker(arguments)
                .lines()
                .map(|line| format!("{} {line}", arguments[0])),
        );
    }
    // Each container has a process of the engine's beside it, until some moments after its end.
    for entry in fs_err::read_dir("/proc").unwrap().flatten() {
        let name = fs_err::read_to_string(entry.path().join("comm")).unwrap_or_default();
        if name.starts_with("containerd-shim") || name.starts_with("runc") {
            lines.insert(format!("process {} {name}", entry.path().display()));
        }
    }
    let root = support::docker(&["info", "--format", "{{.DockerRootDir}}"]);
    for folder in ["containers", "overlay2"] {
        // Only root can look there, and only there where the driver is the usual one.
        let entries = fs_err::read_dir(Path::new(root.trim()).join(folder));
        for entry in entries.into_iter().flatten().flatten() {
            lines.insert(format!("{folder} {}", entry.file_name().display()));
        }
    }
    lines
}

/// What there is more, and what is gone that does not end by itself.
fn changes_since(before: &BTreeSet<String>) -> Vec<String> {
    let ends_by_itself = |line: &String| before.contains(line) && line.starts_with("process ");
    let now = of_the_engine();
    let changes = now.symmetric_difference(before);
    changes
        .filter(|line| !ends_by_itself(line))
        .cloned()
        .collect()
}

#[tokio::test]
async fn making_and_removing_many_leaves_the_host_as_it_was() {
    let options = support::options();
    let installation = options.installation;
    let _cleaner = support::Cleaner(installation);
    let runtime = Arc::new(EngineRuntime::start(options).await.unwrap());
    let subject = Subject::new(runtime, installation, support::PYTHON);
    // What an engine makes once and keeps is there after the first.
    subject.create().await.remove().await;
    let (host, engine) = (HostSnapshot::take(&[]).unwrap(), of_the_engine());
    for round in 0..count(30, 200) {
        let guest = subject.create().await;
        if round % 10 == 0 {
            assert_eq!(guest.python("print(6 * 7)").await.text(), "42\n");
        }
        guest.remove().await;
    }
    let mut look = tokio::time::interval(Duration::from_millis(50));
    let settled = async {
        while !changes_since(&engine).is_empty() {
            look.tick().await;
        }
    };
    if tokio::time::timeout(Duration::from_secs(30), settled)
        .await
        .is_err()
    {
        panic!("{:?}", changes_since(&engine));
    }
    let changes = host.changes_until(&HostSnapshot::take(&[]).unwrap());
    assert!(changes.is_empty(), "{changes:?}");
}
