//! The exec helper in a real box: a workload is sealed, runs what it is told to, and says how a
//! start failed.

mod support;

use support::launcher::{Launcher, run, run_as_agent, spec};
use support::tree;

/// The lines of `/proc/self/status` that say what a process may do.
fn field<'a>(status: &'a str, name: &str) -> &'a str {
    status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        .unwrap_or_else(|| panic!("no {name} in {status}"))
        .trim()
}

#[test]
fn a_workload_has_no_rights_at_all() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let facts = launcher.create(spec()).unwrap();
    let ran = run(&facts, &["cat", "/proc/self/status"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let status = ran.stdout;
    assert_eq!(field(&status, "Uid"), "1000\t1000\t1000\t1000");
    assert_eq!(field(&status, "Gid"), "1000\t1000\t1000\t1000");
    assert_eq!(field(&status, "Groups"), "");
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(field(&status, set), "0000000000000000", "{set}");
    }
    assert_eq!(field(&status, "NoNewPrivs"), "1");
    assert_eq!(field(&status, "Seccomp"), "2");
    assert_eq!(field(&status, "Seccomp_filters"), "4");
    assert_eq!(field(&status, "SigIgn"), "0000000000000000");
    assert_eq!(field(&status, "SigBlk"), "0000000000000000");
    launcher.remove(facts.sandbox);
}
#[test]
fn scratch() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let facts = launcher.create(spec()).unwrap();
    for argv in [
        vec![
            "sh",
            "-c",
            "ls -la / /proc/self/fd /workspace /dev; id; cat /proc/self/cgroup; pwd; ulimit -a",
        ],
        vec![
            "python3",
            "-c",
            "import sqlite3, multiprocessing as m, subprocess; print(m.Pool(2).map(abs, [-1,-2])); print(subprocess.run(['ls','/'],capture_output=True)); import os; print(os.listdir('/proc'))",
        ],
        vec!["nonesuch"],
        vec!["/etc"],
        vec!["/workspace/x/y"],
    ] {
        let ran = run(&facts, &argv);
        println!(
            "{argv:?} {:?} {:?}\n{}\n{}",
            ran.code, ran.signal, ran.stdout, ran.stderr
        );
    }
    println!(
        "{:?}",
        run_as_agent(&facts, &["/opt/glovebox/bin/glovebox-exec", "--what"])
    );
    for (stage, us) in &facts.stages_us {
        print!("{stage}: {us}, ");
    }
}
