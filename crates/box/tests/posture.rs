//! What a fresh box looks like from inside, exactly: for the agent and for a workload.
#![cfg(test)]

mod support;

use std::collections::BTreeMap;

use glovebox_box::cgroup::layout::Version;
use support::groups::version;
use support::launcher::{Launcher, posture, run, spec};
use support::tree;

fn field<'a>(status: &'a str, name: &str) -> &'a str {
    status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        .unwrap_or_else(|| panic!("no {name} in {status}"))
        .trim()
}

/// How some kernels spell out what others leave unsaid: the width of inode numbers, and that an
/// overlay whose marks are a user's follows no redirections.
const UNSAID: [&str; 2] = ["inode64", "redirect_dir=nofollow"];

/// A line of mountinfo without what differs from box to box, or from kernel to kernel.
fn mount(line: &str) -> String {
    let fields: Vec<_> = line.split(' ').collect();
    let kind = fields.iter().position(|field| *field == "-").unwrap();
    let target = fields[4];
    let flags = fields[5];
    let (fs, options) = (fields[kind + 1], fields[kind + 3]);
    let options: Vec<_> = options
        .split(',')
        .filter(|option| !option.starts_with("uid=") && !option.starts_with("gid="))
        .filter(|option| !UNSAID.contains(option))
        .collect();
    if fs == "devtmpfs" {
        return format!("{target} {flags} {fs}");
    }
    format!("{target} {flags} {fs} {}", options.join(","))
}

const MOUNTS: &str = "\
/ ro,nosuid,nodev,relatime overlay ro,lowerdir=layers/runtime-test:trees/root-test,userxattr
/workspace rw,nosuid,nodev,relatime tmpfs rw,size=16384k,nr_inodes=65,mode=700
/tmp rw,nosuid,nodev,relatime tmpfs rw,size=65536k,nr_inodes=16384
/dev ro,nosuid,nodev,noexec,relatime tmpfs rw,size=64k,nr_inodes=64,mode=755
/dev/null ro,nosuid,noexec,relatime devtmpfs
/dev/zero ro,nosuid,noexec,relatime devtmpfs
/dev/full ro,nosuid,noexec,relatime devtmpfs
/dev/random ro,nosuid,noexec,relatime devtmpfs
/dev/urandom ro,nosuid,noexec,relatime devtmpfs
/dev/shm rw,nosuid,nodev,noexec,relatime tmpfs rw,size=65536k,nr_inodes=16384
/proc ro,nosuid,nodev,noexec,relatime proc ro,hidepid=invisible,subset=pid";

fn mounts(mountinfo: &str) -> String {
    let lines: Vec<_> = mountinfo.trim().lines().map(mount).collect();
    lines.join("\n")
}

#[test]
fn the_agent_has_what_it_needs_and_nothing_else() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let facts = launcher.create(spec()).unwrap();
    let seen = posture(&facts);
    let status = &seen["status"];
    assert_eq!(field(status, "Uid"), "999\t999\t999\t999");
    assert_eq!(field(status, "Gid"), "999\t999\t999\t999");
    assert_eq!(field(status, "Groups"), "");
    // SETGID, SETUID and KILL, in its own user namespace.
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert_eq!(field(status, set), "00000000000000e0", "{set}");
    }
    assert_eq!(field(status, "CapBnd"), "0000000000000000");
    assert_eq!(seen["securebits"], "0xef");
    assert_eq!(field(status, "NoNewPrivs"), "1");
    assert_eq!(field(status, "Seccomp"), "2");
    assert_eq!(field(status, "Seccomp_filters"), "5");
    assert_eq!(field(status, "Umask"), "0077");
    assert_eq!(field(status, "NSpid"), "1");
    assert_eq!(mounts(&seen["mountinfo"]), MOUNTS);
    fn words(text: &str) -> Vec<&str> {
        text.split_whitespace().collect()
    }
    for map in ["uid_map", "gid_map"] {
        // Which pair of the range it is depends on what else lives on this machine.
        let [_, agent, _, _, workload, _] = words(&seen[map])[..] else {
            panic!("{map}: {}", seen[map])
        };
        let pair: u32 = agent.parse().unwrap();
        assert_eq!(
            words(&seen[map]),
            ["999", agent, "1", "1000", workload, "1"],
            "{map}"
        );
        assert_eq!(workload, (pair + 1).to_string(), "{map}");
    }
    assert_eq!(seen["setgroups"].trim(), "deny");
    assert_eq!(seen["environ"], "");
    assert_eq!(seen["cmdline"], "/opt/glovebox/bin/glovebox-agent\0");
    assert_eq!((seen["cwd"].as_str(), seen["root"].as_str()), ("/", "/"));
    assert_eq!(seen["hostname"], "glovebox");
    assert_eq!(seen["domainname"], "");
    assert_eq!(
        words(&seen["ls /dev"]),
        [
            "fd", "full", "null", "random", "shm", "stderr", "stdin", "stdout", "urandom", "zero"
        ]
    );
    assert_eq!(words(&seen["ls /proc"]), ["1", "self", "thread-self"]);
    for line in seen["cgroup"].lines() {
        assert!(line.ends_with(":/"), "{line}");
    }
    agents_descriptors(&seen);
    assert!(launcher.close().success());
}

/// The configuration, nowhere, the launcher's ear, the socket, the line to the launcher, the count
/// of kills, one control group per hierarchy; behind them the connection of this test and the folder being listed.
fn agents_descriptors(seen: &BTreeMap<String, String>) {
    let kinds: BTreeMap<u32, String> = seen["fds"]
        .lines()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(number, target)| {
            let kind = target.split([':', ' ']).next().unwrap();
            let kind = kind.rsplit('/').next().unwrap();
            (number.parse().unwrap(), kind.to_owned())
        })
        .collect();
    let kinds: Vec<_> = kinds.values().map(String::as_str).collect();
    let (kills, door, hierarchies) = match version() {
        Version::One => ("memory.oom_control", "tasks", 4),
        Version::Two => ("memory.events", "cgroup.procs", 1),
    };
    assert_eq!(
        kinds[..6],
        ["memfd", "null", "pipe", "socket", "socket", kills]
    );
    let groups = kinds.len() - 2;
    assert!(kinds[6..groups].iter().all(|kind| *kind == door));
    assert_eq!(groups - 6, hierarchies, "{kinds:?}");
}

#[test]
fn a_workload_has_no_rights_at_all() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let facts = launcher.create(spec()).unwrap();
    // Also from a grandchild in a session of its own.
    let grandchild = "import os, sys
if os.fork() == 0:
    os.setsid()
    print(open('/proc/self/status').read())
    sys.stdout.flush()
    os._exit(0)
os.wait()";
    for argv in [
        vec!["cat", "/proc/self/status"],
        vec!["python3", "-c", grandchild],
    ] {
        let ran = run(&facts, &argv);
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
        assert_eq!(field(&status, "Seccomp_filters"), "10");
        assert_eq!(field(&status, "SigBlk"), "0000000000000000");
        assert_eq!(field(&status, "Umask"), "0022");
    }
    let ran = run(
        &facts,
        &["cat", "/proc/self/mountinfo", "/proc/self/status"],
    );
    assert!(
        ran.stdout.contains("SigIgn:\t0000000000000000"),
        "{}",
        ran.stdout
    );
    let mountinfo = ran.stdout.split("Name:").next().unwrap();
    assert_eq!(mounts(mountinfo), MOUNTS);
    assert!(launcher.close().success());
}

#[test]
fn a_workload_has_three_descriptors_and_limits_that_cannot_be_raised() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let facts = launcher.create(spec()).unwrap();
    let code = "import os, resource as r
print(sorted(os.listdir('/proc/self/fd'), key=int)[:3], len(os.listdir('/proc/self/fd')))
names = [name for name in dir(r) if name.startswith('RLIMIT_')]
print([name for name in names if len(set(r.getrlimit(getattr(r, name)))) > 1])
for name in 'CORE NOFILE FSIZE MSGQUEUE MEMLOCK NICE RTPRIO STACK SIGPENDING NPROC'.split():
    print(name, *r.getrlimit(getattr(r, 'RLIMIT_' + name)))
for name in names:
    limit = getattr(r, name)
    high = r.getrlimit(limit)[1]
    try:
        if high != r.RLIM_INFINITY: r.setrlimit(limit, (high + 1, high + 1)); print('raised', name)
    except (ValueError, OSError): pass
print(os.getcwd(), os.getsid(0) == os.getpid(), os.readlink('/proc/self/root'))
print(sorted(os.environ))";
    let ran = run(&facts, &["python3", "-c", code]);
    assert_eq!(ran.stderr, "");
    assert_eq!(
        ran.stdout,
        "['0', '1', '2'] 4
[]
CORE 1 1
NOFILE 1024 1024
FSIZE 1073741824 1073741824
MSGQUEUE 0 0
MEMLOCK 8388608 8388608
NICE 0 0
RTPRIO 0 0
STACK 8388608 8388608
SIGPENDING 1024 1024
NPROC 256 256
/workspace True /
['HOME', 'LANG', 'PATH']
"
    );
    assert!(launcher.close().success());
}

#[test]
fn no_two_boxes_share_a_namespace_or_an_id() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let boxes = [
        launcher.create(spec()).unwrap(),
        launcher.create(spec()).unwrap(),
    ];
    let seen = boxes.each_ref().map(posture);
    for space in ["user", "pid", "mnt", "net", "ipc", "uts", "cgroup"] {
        let name = format!("ns/{space}");
        let host = fs_err::read_link(format!("/proc/self/{name}")).unwrap();
        let host = host.display().to_string();
        assert_ne!(seen[0][&name], seen[1][&name], "{space}");
        assert_ne!(seen[0][&name], host, "{space}");
        assert_ne!(seen[1][&name], host, "{space}");
    }
    assert_ne!(boxes[0].host_ids.agent, boxes[1].host_ids.agent);
    assert_ne!(boxes[0].host_ids.workload, boxes[1].host_ids.workload);
    let status = fs_err::read_to_string(format!("/proc/{}/status", boxes[0].pid)).unwrap();
    let id = boxes[0].host_ids.agent;
    assert_eq!(field(&status, "Uid"), format!("{id}\t{id}\t{id}\t{id}"));
    assert!(launcher.close().success());
}
