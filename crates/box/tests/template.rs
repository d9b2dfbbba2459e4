//! Kernels that are copied from a template: what such a process is, whose it is, and what is left
//! of it.
#![cfg(test)]

mod support;

use std::path::Path;

use glovebox_box::control::{BoxEnd, BoxFacts, FromLauncher, TemplateFacts};
use rustix::process::Signal;
use support::launcher::{
    Launcher, another_kernel, hang_up, kernel, order, run, run_as_agent, tell, template_spec,
};
use support::oracle::{Host, processes};
use support::tree;
use support::user::{self, Account};
use tempfile::TempDir;

const LOOK: &str = include_str!("support/look.py");

/// A box with a kernel in it.
fn with_kernel(launcher: &mut Launcher) -> (BoxFacts, i32) {
    let facts = launcher.create(template_spec()).unwrap();
    let pid = kernel(&facts).unwrap();
    (facts, pid)
}

/// Everything that a workload can see of its own posture is the same for both.
fn is_sealed_as_a_program(mut launcher: Launcher) {
    let (facts, pid) = with_kernel(&mut launcher);
    let program = run(&facts, &["python3", "-c", LOOK]);
    assert_eq!(program.stderr, "");
    let copied = tell(&facts, pid, LOOK);
    for (copied, program) in copied.lines().zip(program.stdout.lines()) {
        assert_eq!(copied, program);
    }
    assert_eq!(copied, program.stdout);
    assert!(copied.lines().count() > 100, "{copied}");
    assert!(launcher.close().success());
}

#[test]
fn a_copy_is_sealed_as_a_program_is() {
    let data = tree::data();
    is_sealed_as_a_program(Launcher::start(data.path()));
}

fn data_of(user: &Account) -> TempDir {
    let data = tree::data();
    std::os::unix::fs::chown(data.path(), Some(user.uid), Some(user.gid)).unwrap();
    data
}

#[test]
fn a_copy_is_sealed_as_a_program_is_for_a_user_with_subordinate_ids() {
    let user = user::with_range();
    let data = data_of(&user);
    is_sealed_as_a_program(Launcher::start_as(data.path(), Some(&user), &[]).unwrap());
}

#[test]
fn a_copy_is_sealed_as_a_program_is_for_a_user_without() {
    let Some(user) = user::without_range() else {
        return;
    };
    let data = data_of(&user);
    is_sealed_as_a_program(Launcher::start_as(data.path(), Some(&user), &[]).unwrap());
}

#[test]
fn a_copy_is_sealed_as_a_program_is_on_version_2_of_control_groups() {
    // Elsewhere the tests above are on it already, or nothing is.
    let data = tree::data();
    let Some(mut launcher) = Launcher::start_on_version_two(data.path()) else {
        return;
    };
    assert_eq!(launcher.facts.cgroup_version, 2);
    let (facts, pid) = with_kernel(&mut launcher);
    let groups = "print(open('/proc/self/cgroup').read())";
    assert!(tell(&facts, pid, groups).contains("0::/../work\n"));
    is_sealed_as_a_program(launcher);
}

#[test]
fn a_copy_has_null_streams_and_its_wire_and_the_agent_for_a_parent() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let (facts, pid) = with_kernel(&mut launcher);
    let code = "import fcntl, os
print(wire, threads, reseed, in_advance)
for fd in sorted(os.listdir('/proc/self/fd'), key=int):
    try: print(fd, os.readlink(f'/proc/self/fd/{fd}').split(':')[0], fcntl.fcntl(int(fd), fcntl.F_GETFL) & os.O_ACCMODE)
    except OSError: pass
print(os.getppid(), open('/proc/self/cmdline').read().split('\\0')[1:4], os.environ['HOME'])
import threading; print(threading.main_thread() is threading.current_thread(), threading.active_count())
print(os.getpid() == int(os.readlink('/proc/self')), threading.get_native_id() == os.getpid())";
    let module = "['-P', '-m', 'glovebox_kernel.template']";
    assert_eq!(
        tell(&facts, pid, code),
        format!(
            "3 1 1 0
0 /dev/null 0
1 /dev/null 1
2 /dev/null 1
3 socket 2
1 {module} /tmp
True 1
True True
"
        )
    );
    // The agent hears how it ended, as of any child.
    assert_eq!(hang_up(&facts, pid), "Some(Some(7))");
    assert!(launcher.close().success());
}

/// It is under other Landlock rules than the agent.
#[test]
fn the_agent_sees_a_copy_and_what_it_starts_and_other_programs_do_not() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let (facts, pid) = with_kernel(&mut launcher);
    let start = "import subprocess; child = subprocess.Popen(['sleep', '1000']); print(child.pid)";
    let child = tell(&facts, pid, start);
    let names = |text: &str| {
        text.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let seen = names(&run_as_agent(&facts, &["ls", "/proc"]).stdout);
    for pid in [pid.to_string().as_str(), child.trim()] {
        assert!(seen.contains(&pid.to_owned()), "{pid} is not in {seen:?}");
    }
    let seen = names(&run(&facts, &["ls", "/proc"]).stdout);
    assert!(!seen.contains(&pid.to_string()), "{seen:?}");
    // Below version 6 Landlock has no rule for signals between programs of one id.
    let kill = format!("kill -0 {pid}");
    let reached = run(&facts, &["sh", "-c", &kill]).code == Some(0);
    assert_eq!(reached, launcher.facts.landlock_abi < 6);
    assert!(launcher.close().success());
}

#[test]
fn copies_are_processes_of_their_own() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let (facts, first) = with_kernel(&mut launcher);
    tell(
        &facts,
        first,
        "import os; kept = 1; os.environ['KEPT'] = '1'; os.mkdir('/tmp/mine')",
    );
    let second = another_kernel(&facts).unwrap();
    assert_ne!(first, second);
    let look = "import os; print('kept' in globals(), 'KEPT' in os.environ, os.listdir('/tmp'))";
    // The folder is the box's.
    assert_eq!(tell(&facts, second, look), "False False ['mine']\n");
    assert_eq!(tell(&facts, first, look), "True True ['mine']\n");
    let (other, pid) = with_kernel(&mut launcher);
    assert_eq!(tell(&other, pid, look), "False False []\n");
    assert!(launcher.close().success());
}

/// The one template that there is.
fn template(launcher: &mut Launcher) -> TemplateFacts {
    let (_, templates) = launcher.measure();
    let [template] = &templates[..] else {
        panic!("there is not one template: {templates:?}");
    };
    template.clone()
}

#[test]
fn a_template_has_no_rights_but_over_the_boxes_of_its_pod() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let (facts, _) = with_kernel(&mut launcher);
    let pid = template(&mut launcher).pid;
    let proc = Path::new("/proc").join(pid.to_string());
    let status = fs_err::read_to_string(proc.join("status")).unwrap();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().trim().to_owned()
    };
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        assert_eq!(field(set), "0000000000000000", "{set}");
    }
    assert_eq!(field("NoNewPrivs:"), "1");
    assert_eq!(field("Groups:"), "");
    assert_eq!(field("Threads:"), "1");
    assert_eq!(field("SigBlk:"), "0000000000000000");
    let fds = fs_err::read_dir(proc.join("fd")).unwrap().flatten();
    let mut fds: Vec<_> = fds
        .map(|entry| {
            let link = fs_err::read_link(entry.path()).unwrap();
            let link = link.to_string_lossy();
            let kind = link.split(':').next().unwrap().to_owned();
            (entry.file_name().into_string().unwrap(), kind)
        })
        .collect();
    fds.sort();
    let fds: Vec<_> = fds.iter().map(|(n, k)| (n.as_str(), k.as_str())).collect();
    let null = "/dev/null";
    assert_eq!(
        fds,
        [("0", null), ("1", null), ("2", null), ("3", "socket")]
    );
    let namespace = |pid: i32, kind: &str| fs_err::read_link(format!("/proc/{pid}/ns/{kind}"));
    for kind in ["mnt", "net", "ipc", "uts"] {
        let own = namespace(pid, kind).unwrap();
        assert_ne!(own, namespace(facts.pid, kind).unwrap(), "{kind}");
        let host = fs_err::read_link(format!("/proc/self/ns/{kind}")).unwrap();
        assert_ne!(own, host, "{kind}");
    }
    let groups = fs_err::read_to_string(proc.join("cgroup")).unwrap();
    assert!(groups.contains("/template-"), "{groups}");
    assert!(launcher.close().success());
}

#[test]
fn a_box_that_has_ended_is_refused_a_kernel_and_the_next_gets_one() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let (_, _) = with_kernel(&mut launcher);
    let before = template(&mut launcher);
    for _ in 0..5 {
        let (facts, _) = with_kernel(&mut launcher);
        order(&facts, r#"{"do":"ask_and_exit"}"#);
        let end = BoxEnd::AgentExited { code: 0 };
        let sandbox = facts.sandbox;
        assert_eq!(launcher.hear(), FromLauncher::Ended { sandbox, end });
    }
    with_kernel(&mut launcher);
    let after = template(&mut launcher);
    assert_eq!((after.pid, after.ready), (before.pid, true));
    assert!(launcher.close().success());
}

/// Signals everything in the box that it may, again and again, for as long as the box lives.
const STORM: &str = "
import os, sys
if os.fork() == 0:
    os.setsid()
    os.closerange(0, 3)
    while os.getppid() != 1: pass
    while True:
        try: os.kill(-1, int(sys.argv[1]))
        except ProcessLookupError: pass
";

/// An agent that was taken over, or a workload that has the agent's id, may signal what comes into
/// the box to make a kernel there.
#[test]
fn code_that_stops_or_kills_what_enters_its_box_harms_that_box_alone() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let (other, its_kernel) = with_kernel(&mut launcher);
    let before = template(&mut launcher);
    for signal in [Signal::STOP, Signal::KILL] {
        let (facts, _) = with_kernel(&mut launcher);
        let signal = signal.as_raw().to_string();
        let storm = ["/opt/python/bin/python3", "-c", STORM, &signal];
        assert_eq!(run_as_agent(&facts, &storm).code, Some(0));
        for _ in 0..2 {
            // Whatever comes of it.
            let _ = another_kernel(&facts);
        }
        launcher.remove(facts.sandbox);
        assert_eq!(tell(&other, its_kernel, "print(1)"), "1\n");
        let (facts, pid) = with_kernel(&mut launcher);
        assert_eq!(tell(&facts, pid, "print(2)"), "2\n");
        launcher.remove(facts.sandbox);
    }
    let after = template(&mut launcher);
    assert_eq!((after.pid, after.ready), (before.pid, true));
    assert!(launcher.close().success());
}

/// Bytes that the workload of a box has in memory; `None` where nobody counts them.
fn used(launcher: &Launcher, facts: &BoxFacts) -> Option<u64> {
    let pods = launcher.pod().bases.into_iter();
    let pods = pods.filter_map(|base| fs_err::read_dir(base).ok());
    let works = pods.flat_map(|pods| pods.flatten()).map(|pod| {
        let folder = pod.path().join(facts.sandbox.to_string());
        folder.join("work")
    });
    let files = works
        .flat_map(|work| ["memory.usage_in_bytes", "memory.current"].map(|file| work.join(file)));
    let mut texts = files.filter_map(|file| fs_err::read_to_string(file).ok());
    texts.next()?.trim().parse().ok()
}

/// The kernel chooses among the processes of the group whom to kill, and with him all that have
/// the same memory. A helper of the template is in the group while it makes a copy.
#[test]
fn a_box_whose_memory_has_run_out_does_not_take_the_template_along() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let (other, _) = with_kernel(&mut launcher);
    let before = template(&mut launcher);
    let mut spec = template_spec();
    let mib = 1024 * 1024;
    spec.kind.limits.memory_bytes = 100 * mib;
    let limit = spec.kind.limits.workload_memory_bytes();
    let facts = launcher.create(spec).unwrap();
    let mut pid = kernel(&facts).unwrap();
    // Files, so that no process is to blame; then memory, to the last page.
    let files = "for name in ('/tmp/a', '/dev/shm/a'): open(name, 'wb').write(bytes(45 << 20))";
    assert_eq!(tell(&facts, pid, files), "");
    for _ in 0..5 {
        for _ in 0..10 {
            let left = limit.saturating_sub(used(&launcher, &facts).unwrap_or(limit));
            let hog =
                format!("hog = globals().get('hog', []); hog.append(b'x' * ({left} // 4 * 3))");
            tell(&facts, pid, &hog);
        }
        // A kernel is killed, the old or the new one.
        pid = another_kernel(&facts).unwrap_or(pid);
    }
    launcher.remove(facts.sandbox);
    assert_eq!(template(&mut launcher).pid, before.pid);
    let pid = another_kernel(&other).unwrap();
    assert_eq!(tell(&other, pid, "print(1)"), "1\n");
    assert!(launcher.close().success());
}

/// What a template and its launcher have, to be compared.
fn belongings(launcher: &mut Launcher) -> (usize, usize, Vec<String>) {
    let template = template(launcher).pid;
    let fds = |pid: &str| fs_err::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    let inner = fs_err::read_to_string(format!("/proc/{template}/status")).unwrap();
    let inner = inner.lines().find_map(|line| line.strip_prefix("PPid:"));
    let states = processes(&launcher.pod()).into_keys().filter_map(|pid| {
        let status = fs_err::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let state = status
            .lines()
            .find_map(|line| line.strip_prefix("State:"))?;
        Some(state.trim().to_owned())
    });
    let zombies = states.filter(|state| state.starts_with('Z')).collect();
    (
        fds(&template.to_string()),
        fds(inner.unwrap().trim()),
        zombies,
    )
}

#[test]
fn two_hundred_copies_leave_nothing_behind() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let pod = launcher.pod();
    let empty = Host::look(&pod);
    let (facts, _) = with_kernel(&mut launcher);
    launcher.remove(facts.sandbox);
    let (before, had) = (Host::look(&pod), belongings(&mut launcher));
    assert_eq!(before.processes(), empty.processes() + 1);
    for _ in 0..200 {
        let (facts, pid) = with_kernel(&mut launcher);
        assert_eq!(tell(&facts, pid, "print(1)"), "1\n");
        launcher.remove(facts.sandbox);
    }
    assert_eq!(Host::look(&pod), before);
    assert_eq!(belongings(&mut launcher), had);
    assert!(launcher.close().success());
    Host::settles(&pod, |host| host.processes() == 0 && host.groups() == 0);
}

/// Lets the stand-in find a file when it starts.
fn told(name: &str) -> TempDir {
    let data = tree::data();
    let folder = data.path().join(tree::LAYERS[0]).join("opt/glovebox/share");
    fs_err::write(folder.join(name), "").unwrap();
    data
}

#[test]
fn a_template_that_cannot_start_says_why() {
    let data = told("fail");
    let mut launcher = Launcher::start(data.path());
    let facts = launcher.create(template_spec()).unwrap();
    let reason = kernel(&facts).unwrap_err();
    assert!(reason.contains("told to"), "{reason}");
    assert!(launcher.close().success());
}

#[test]
fn a_template_with_two_threads_copies_nothing() {
    let data = told("two-threads");
    let mut launcher = Launcher::start(data.path());
    let facts = launcher.create(template_spec()).unwrap();
    let reason = kernel(&facts).unwrap_err();
    assert!(reason.contains("more than one thread"), "{reason}");
    assert!(launcher.close().success());
}
