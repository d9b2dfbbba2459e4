//! Each protection is left out in turn, and a look at the box must show it. Built and run with
//! the feature `mutations` only, in a target folder of its own.

#![cfg(all(test, feature = "mutations"))]

mod support;

use std::collections::BTreeMap;

use glovebox_box::control::{BoxFacts, Fault};
use glovebox_box::mutation::Mutation;
use support::groups::work_file;
use support::launcher::{Launcher, kernel, posture, run, run_as_agent, spec, tell, template_spec};
use support::tree;

/// What a workload sees of its box, without what differs from box to box.
const LOOK: &str = "
import ctypes, errno, fcntl, os, resource, socket
def attempt(work):
    try: return repr(work())
    except OSError as error: return errno.errorcode[error.errno]
libc = ctypes.CDLL(None, use_errno=True)
def call(number):
    ctypes.set_errno(0)
    return libc.syscall(number, 0, 0, 0, 0, 0, 0), errno.errorcode.get(ctypes.get_errno())
status = dict(line.split(':', 1) for line in open('/proc/self/status'))
for name in 'CapInh CapPrm CapEff CapBnd CapAmb NoNewPrivs Seccomp Seccomp_filters'.split(): print(name, status[name].strip())
for line in open('/proc/self/mountinfo'): fields = line.split(); print(fields[4], fields[5])
for folder in ('/workspace', '/tmp', '/dev/shm'):
    stat = os.statvfs(folder); print(folder, stat.f_blocks, stat.f_files)
print(sorted(name for name in os.listdir('/proc') if not name.isdigit()), '1' in os.listdir('/proc'))
print(os.listdir('/mnt'), os.uname().nodename, sorted(os.listdir('/proc/self/fd')))
print([(name, resource.getrlimit(getattr(resource, name))) for name in sorted(dir(resource)) if name.startswith('RLIMIT_') and name != 'RLIMIT_NPROC'])
print(os.getsid(0) == os.getpid(), attempt(lambda: socket.socket(socket.AF_INET)))
print(open('/proc/self/cgroup').read(), open('/proc/self/setgroups').read())
print(attempt(lambda: open('/opt/glovebox/bin/glovebox-exec', 'rb').read(4)), call(308))
watchers = 0
while watchers < 40 and libc.inotify_init() >= 0: watchers += 1
print(watchers)
";

/// What the agent sees beside its posture.
const AGENT_LOOK: &str = "
import errno, fcntl
try: fcntl.ioctl(open('/dev/null'), 0x5401, bytes(64))
except OSError as error: print(errno.errorcode[error.errno])
";

/// Everything that is looked at.
fn look(launcher: &mut Launcher, left_out: &[Mutation], other: &BoxFacts) -> Result<String, Fault> {
    let mut wanted = spec();
    wanted.mutations = left_out.to_vec();
    let facts = launcher.create(wanted)?;
    let mut seen = posture(&facts);
    seen.retain(|name, _| {
        ["fds", "securebits", "limits", "setgroups", "hostname"].contains(&name.as_str())
    });
    let fds = seen["fds"].lines().count().to_string();
    seen.insert("fds".into(), fds);
    let spaces: BTreeMap<_, _> = ["net", "ipc", "uts", "pid", "cgroup"]
        .map(|space| {
            let of = |pid: &str| fs_err::read_link(format!("/proc/{pid}/ns/{space}")).unwrap();
            (space, of("self") == of(&facts.pid.to_string()))
        })
        .into();
    let workload = run(&facts, &["python3", "-c", LOOK]);
    let agent = run_as_agent(&facts, &["/opt/python/bin/python3", "-c", AGENT_LOOK]);
    let shares_ids = facts.host_ids.workload == other.host_ids.workload;
    let groups = group_files(&facts);
    launcher.remove(facts.sandbox);
    Ok(format!(
        "{seen:#?}\n{spaces:?}\n{shares_ids}\n{groups:?}\n{}{}\n{}{}",
        workload.stdout, workload.stderr, agent.stdout, agent.stderr
    ))
}

fn group_files(facts: &BoxFacts) -> Vec<String> {
    [
        ("memory.limit_in_bytes", "memory.max"),
        ("memory.memsw.limit_in_bytes", "memory.swap.max"),
        ("pids.max", "pids.max"),
        ("cpu.cfs_quota_us", "cpu.max"),
    ]
    .map(|(one, two)| work_file(facts, one, two))
    .into()
}

/// The first line that differs, for whoever reads the output.
fn difference(seen: &Result<String, Fault>, sealed: &str) -> String {
    match seen {
        Ok(seen) => {
            let mut lines = seen.lines().zip(sealed.lines());
            let line = lines.find(|(seen, sealed)| seen != sealed);
            line.map_or("none".into(), |(seen, _)| seen.trim().to_owned())
        }
        Err(fault) => format!("{fault}"),
    }
}

/// The steps of the seal that can be left out of the copy of a template. The agent's Landlock rules
/// are not among them: in a copy they lie behind the workload's, which are narrower.
const OF_A_COPY: [Mutation; 14] = [
    Mutation::SeccompWorkload,
    Mutation::SeccompFamilies,
    Mutation::SeccompAnswers,
    Mutation::SeccompAgent,
    Mutation::LandlockWorkload,
    Mutation::BoundingSet,
    Mutation::Capabilities,
    Mutation::Securebits,
    Mutation::NoNewPrivileges,
    Mutation::WorkCgroup,
    Mutation::CloseWorkloadDescriptors,
    Mutation::ResourceLimits,
    Mutation::Session,
    Mutation::Reseed,
];

/// What a copy sees of itself, without what differs from box to box. An error where there is none.
fn look_at_copy(launcher: &mut Launcher, left_out: &[Mutation]) -> Result<String, String> {
    let mut wanted = template_spec();
    wanted.mutations = left_out.to_vec();
    let facts = launcher.create(wanted).map_err(|fault| fault.to_string())?;
    let seen = kernel(&facts).map(|pid| {
        let fds = "print(wire, reseed, sorted(__import__('os').listdir('/proc/self/fd')))";
        let seen = tell(&facts, pid, include_str!("support/look.py")) + &tell(&facts, pid, fds);
        // Numbers of namespaces and mounts.
        let differs = |line: &&str| line.contains(":[") || line.contains(" - ");
        let seen = seen.lines().filter(|line| !differs(line));
        seen.collect::<Vec<_>>().join("\n")
    });
    launcher.remove(facts.sandbox);
    seen
}

#[test]
fn every_step_that_is_left_out_of_the_seal_of_a_copy_is_noticed() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let sealed = look_at_copy(&mut launcher, &[]).unwrap();
    assert_eq!(
        look_at_copy(&mut launcher, &[]).unwrap(),
        sealed,
        "not steady"
    );
    let unnoticed: Vec<_> = OF_A_COPY
        .into_iter()
        .filter(|mutation| {
            look_at_copy(&mut launcher, &[*mutation]).is_ok_and(|seen| seen == sealed)
        })
        .collect();
    assert_eq!(unnoticed, Vec::<Mutation>::new());
    assert!(launcher.close().success());
}

/// How many templates there are for the kernels of two trust domains.
fn templates_of_two_domains(left_out: &[Mutation]) -> usize {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    for domain in ["one", "two"] {
        let mut wanted = template_spec();
        wanted.kind.trust_domain = domain.into();
        wanted.mutations = left_out.to_vec();
        let facts = launcher.create(wanted).unwrap();
        kernel(&facts).unwrap();
    }
    let (_, templates) = launcher.measure();
    assert!(launcher.close().success());
    templates.len()
}

#[test]
fn a_template_for_everybody_is_noticed() {
    assert_eq!(templates_of_two_domains(&[]), 2);
    assert_eq!(templates_of_two_domains(&[Mutation::TrustDomain]), 1);
}

#[test]
fn every_protection_that_is_left_out_is_noticed() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let other = launcher.create(spec()).unwrap();
    let sealed = look(&mut launcher, &[], &other).unwrap();
    assert_eq!(
        look(&mut launcher, &[], &other).unwrap(),
        sealed,
        "not steady"
    );
    // Those that are about templates have tests of their own.
    let of_templates = [Mutation::Reseed, Mutation::TrustDomain];
    let unnoticed: Vec<_> = Mutation::ALL
        .iter()
        .filter(|mutation| !of_templates.contains(mutation))
        .filter(|mutation| {
            let seen = look(&mut launcher, &[**mutation], &other);
            println!("{}: {}", mutation.name(), difference(&seen, &sealed));
            // A box that cannot be made at all is a box that was noticed.
            seen.is_ok_and(|seen| seen == sealed)
        })
        .collect();
    assert_eq!(unnoticed, Vec::<&Mutation>::new());
    assert!(launcher.close().success());
}
