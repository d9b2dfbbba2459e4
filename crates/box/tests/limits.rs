//! Every limit of a box holds against code that tries to pass it, and the agent goes on
//! answering.
#![cfg(test)]

mod support;

use glovebox_box::cgroup::layout::Version;
use glovebox_box::control::{BoxFacts, BoxSpec};
use support::groups::{version, work_file};
use support::launcher::{Launcher, order, posture, run, spec};
use support::tree;

fn in_box(spec: BoxSpec, check: impl FnOnce(&BoxFacts)) {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let facts = launcher.create(spec).unwrap();
    check(&facts);
    assert_eq!(posture(&facts)["pid"], "1", "the agent does not answer");
    launcher.remove(facts.sandbox);
    assert!(launcher.close().success());
}

fn python(facts: &BoxFacts, code: &str) -> support::launcher::Ran {
    run(facts, &["python3", "-c", code])
}

#[test]
fn a_fork_bomb_meets_the_process_limit() {
    let mut wanted = spec();
    wanted.kind.limits.processes = 20;
    in_box(wanted, |facts| {
        let ran = python(
            facts,
            "import os, time
made = 0
try:
    while True:
        if os.fork() == 0:
            time.sleep(60); os._exit(0)
        made += 1
except OSError as error:
    print(made, error.errno)
import signal; os.kill(-1, signal.SIGKILL)",
        );
        assert_eq!(ran.stdout, "19 11\n", "{ran:?}");
    });
}

#[test]
fn memory_runs_out_for_the_workload_alone_and_is_counted() {
    let mut wanted = spec();
    wanted.kind.limits.memory_bytes = 64 * 1024 * 1024;
    in_box(wanted, |facts| {
        let kills = || order(facts, r#"{"do":"kills"}"#);
        assert!(kills().contains("oom_kill 0"), "{}", kills());
        let small = python(facts, "print(len(bytearray(32 * 1024 * 1024)))");
        assert_eq!(small.stdout, "33554432\n", "{small:?}");
        let ran = python(facts, "bytearray(256 * 1024 * 1024)");
        assert_eq!(ran.signal, Some(9), "{ran:?}");
        assert!(kills().contains("oom_kill 1"), "{}", kills());
    });
}

#[test]
fn a_full_workspace_says_so_in_bytes_and_in_files() {
    in_box(spec(), |facts| {
        let ran = python(
            facts,
            "import errno, os
try:
    with open('/workspace/big', 'wb') as file:
        while True: file.write(bytes(1 << 20))
except OSError as error:
    print(errno.errorcode[error.errno], os.stat('/workspace/big').st_size)
os.unlink('/workspace/big')
made = 0
try:
    while True:
        open(f'/workspace/{made}', 'w').close(); made += 1
except OSError as error:
    print(errno.errorcode[error.errno], made)",
        );
        assert_eq!(ran.stdout, "ENOSPC 16777216\nENOSPC 64\n", "{ran:?}");
        let again = python(
            facts,
            "import os; os.unlink('/workspace/0'); open('/workspace/new', 'w')",
        );
        assert_eq!(again.code, Some(0), "{again:?}");
    });
}

#[test]
fn one_process_cannot_take_all_descriptors_nor_write_a_file_too_large() {
    let mut wanted = spec();
    wanted.kind.limits.open_files = 64;
    wanted.kind.limits.file_size_bytes = 1024 * 1024;
    in_box(wanted, |facts| {
        let ran = python(
            facts,
            "import errno, os, signal
held = []
try:
    while True: held.append(os.open('/dev/null', os.O_RDONLY))
except OSError as error:
    print(errno.errorcode[error.errno], len(held))
for fd in held: os.close(fd)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    with open('/workspace/f', 'wb') as file: file.write(bytes(2 << 20))
except OSError as error:
    print(errno.errorcode[error.errno], os.stat('/workspace/f').st_size)",
        );
        assert_eq!(ran.stdout, "EMFILE 61\nEFBIG 1048576\n", "{ran:?}");
    });
}

#[test]
fn processor_time_is_held_back() {
    let mut wanted = spec();
    wanted.kind.limits.cpu_millis = 100;
    in_box(wanted, |facts| {
        let ran = python(
            facts,
            "import time
end = time.process_time() + 0.05
while time.process_time() < end: pass",
        );
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let quota = work_file(facts, "cpu.cfs_quota_us", "cpu.max");
        assert_eq!(quota.split_whitespace().next(), Some("10000"), "{quota}");
        let stat = work_file(facts, "cpu.stat", "cpu.stat");
        let throttled: u64 = stat
            .lines()
            .find_map(|line| line.strip_prefix("nr_throttled ")?.parse().ok())
            .unwrap();
        assert!(throttled > 0, "{stat}");
    });
}

#[test]
fn everything_that_a_workload_starts_is_in_its_group() {
    in_box(spec(), |facts| {
        let ran = run(facts, &["sh", "-c", "cat /proc/self/cgroup"]);
        let hierarchies: &[&str] = match version() {
            Version::One => &["memory", "pids", "cpu", "freezer"],
            Version::Two => &[""],
        };
        for name in hierarchies {
            let place = format!(":{name}:/../work");
            assert!(
                ran.stdout.lines().any(|line| line.ends_with(&place)),
                "{place} is missing in {}",
                ran.stdout
            );
        }
    });
}
