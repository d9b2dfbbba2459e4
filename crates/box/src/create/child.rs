//! The first process of a box, from the clone to the start of the agent: the order of the steps.
//!
//! Read it beside the list in `docs/security/`: several steps are only possible before, or only
//! effective after, their neighbours, and the comments say which.

use std::convert::Infallible;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd, RawFd};

use glovebox_protocol::agent_config::AgentIds;
use glovebox_protocol::limits::Limits;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Signal, set_dumpable_behavior, set_parent_process_death_signal,
};

use super::descriptors::{Inheritance, arrange};
use super::report::Reporter;
use super::step::{Failed, InStep as _, Step};
use super::{counts, mounts, privileges};
use crate::cgroup::group::Door;
use crate::mutation::{Mutation, Omissions};
use crate::policy::seccomp::Filters;
use crate::sys;

/// Where the agent lies in a box.
pub(crate) const AGENT: &CStr = c"/opt/glovebox/bin/glovebox-agent";

/// What the box is called inside.
const HOSTNAME: &[u8] = b"glovebox";

/// Everything the first process needs. It owns nothing that the launcher goes on using.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) ids: AgentIds,
    pub(crate) limits: Limits,
    /// The option string of the root mount.
    pub(crate) layers: CString,
    pub(crate) config: OwnedFd,
    pub(crate) listener: OwnedFd,
    /// The agent's end of the line to the launcher.
    pub(crate) line: OwnedFd,
    pub(crate) oom_events: Option<OwnedFd>,
    /// The doors of the agent's control groups, where a process cannot be cloned into them.
    pub(crate) own_doors: Vec<OwnedFd>,
    /// The doors of the workload's.
    pub(crate) doors: Vec<Door>,
    pub(crate) omissions: Omissions,
}

/// The first process's ends of the pipes to the launcher.
#[derive(Debug)]
pub(crate) struct Pipes {
    /// Says when the maps are written and the groups joined; closes with the launcher.
    pub(crate) release: OwnedFd,
    /// Takes what was done and what failed.
    pub(crate) report: OwnedFd,
    /// Becomes the agent's standard error.
    pub(crate) words: OwnedFd,
}

/// What a first process begins with. The launcher keeps the same open until it hears of it: up to
/// then, both have one table of descriptors.
#[derive(Debug)]
pub(crate) struct Inside {
    pub(crate) plan: Plan,
    pub(crate) pipes: Pipes,
}

impl Inside {
    /// The numbers of all that is to stay open.
    fn numbers(&self) -> Vec<RawFd> {
        let Self { plan, pipes } = self;
        let single = [
            &plan.config,
            &plan.listener,
            &plan.line,
            &pipes.release,
            &pipes.report,
            &pipes.words,
        ];
        let doors = plan.doors.iter().map(Door::as_fd);
        let owned = plan.oom_events.iter().chain(&plan.own_doors).chain(single);
        let all = owned.map(OwnedFd::as_fd).chain(doors);
        all.map(|fd| fd.as_raw_fd()).collect()
    }
}

/// Sets the box up and becomes the agent. Comes back only when that failed, with the status to
/// end with.
pub(crate) fn run(inside: Inside, filters: &Filters) -> i32 {
    // None of the launcher's ends may be open here: the box would not see them close.
    let kept = sys::descriptors::keep_only(&mut inside.numbers()).step(Step::OwnDescriptors);
    let Inside { plan, pipes } = inside;
    let mut reporter = Reporter::new(pipes.report);
    if let Err(failed) = kept {
        reporter.failed(failed);
        // They are still the launcher's as well, which goes on using its table.
        std::mem::forget((plan, pipes.release, pipes.words, reporter));
        return 1;
    }
    let set_up = set_up(plan, &pipes.release, &mut reporter)
        .and_then(|plan| confine(plan, (pipes.release, pipes.words), filters, &mut reporter));
    let Err(failed) = set_up.and_then(|()| become_agent());
    reporter.failed(failed);
    1
}

fn set_up(mut plan: Plan, release: &OwnedFd, reporter: &mut Reporter) -> Result<Plan, Failed> {
    // Before the wait: if the launcher dies first, the wait ends with an error.
    die_with_launcher()?;
    wait_for_release(release)?;
    reporter.begin();
    // First of all, so that everything that is made here is counted.
    for door in std::mem::take(&mut plan.own_doors) {
        rustix::io::write(&door, b"0").step(Step::Join)?;
    }
    reporter.done(Step::Join);
    rustix::process::setsid().step(Step::Session)?;
    sys::signals::reset().step(Step::Session)?;
    rustix::process::umask(Mode::from_raw_mode(0o022));
    // After the groups were joined: what is joined now is the root of this view.
    if !plan.omissions.omits(Mutation::CgroupNamespace) {
        sys::clone::enter_cgroup_namespace().step(Step::CgroupNamespace)?;
    }
    reporter.done(Step::CgroupNamespace);
    build_root(&plan, reporter)?;
    rustix::process::umask(Mode::from_raw_mode(0o077));
    if !plan.omissions.omits(Mutation::UtsNamespace) {
        rustix::system::sethostname(HOSTNAME).step(Step::Names)?;
        rustix::system::setdomainname(b"").step(Step::Names)?;
    }
    reporter.done(Step::Names);
    // A kernel can be copied into the box from here on.
    reporter.send();
    Ok(plan)
}

fn become_agent() -> Result<Infallible, Failed> {
    let error = sys::execute::execute(AGENT, &[CString::from(AGENT)], &[]);
    Err(error).step(Step::Execute)
}

fn build_root(plan: &Plan, reporter: &mut Reporter) -> Result<(), Failed> {
    let (limits, omissions) = (&plan.limits, &plan.omissions);
    let agent = plan.ids.agent;
    mounts::cut_off().step(Step::PrivateMounts)?;
    reporter.done(Step::PrivateMounts);
    // While the launcher's own id still opens the way to the data folder.
    mounts::root(&plan.layers, omissions).step(Step::Root)?;
    reporter.done(Step::Root);
    // Files in the mounts below need an owner that exists in the box.
    privileges::take_ids(agent).step(Step::Ids)?;
    // The change has cleared it.
    die_with_launcher()?;
    // And has closed the namespaces of this process to the launcher, which is to open them for a
    // template. The agent closes what it has to itself.
    set_dumpable_behavior(DumpableBehavior::Dumpable).step(Step::Ids)?;
    reporter.done(Step::Ids);
    mounts::workspace(limits, plan.ids.workload, omissions).step(Step::Workspace)?;
    reporter.done(Step::Workspace);
    mounts::tmp(limits, agent, omissions).step(Step::Tmp)?;
    reporter.done(Step::Tmp);
    mounts::devices(agent, omissions).step(Step::Devices)?;
    reporter.done(Step::Devices);
    mounts::shared_memory(limits, agent, omissions).step(Step::SharedMemory)?;
    reporter.done(Step::SharedMemory);
    if !omissions.omits(Mutation::UserCounts) {
        // While the host's /proc is there; the box's shows no such file.
        counts::limit_box().step(Step::Counts)?;
    }
    reporter.done(Step::Counts);
    // A new /proc is only allowed while an old one is fully visible.
    mounts::proc(plan.ids, omissions).step(Step::Proc)?;
    reporter.done(Step::Proc);
    mounts::pivot(omissions).step(Step::Pivot)?;
    reporter.done(Step::Pivot);
    Ok(())
}

fn confine(
    plan: Plan,
    (release, words): (OwnedFd, OwnedFd),
    filters: &Filters,
    reporter: &mut Reporter,
) -> Result<(), Failed> {
    let omissions = plan.omissions;
    privileges::limit_resources(&plan.limits, &omissions).step(Step::ResourceLimits)?;
    reporter.done(Step::ResourceLimits);
    // Under the agent's ids: version 1 asks who opened the door.
    let groups = plan
        .doors
        .into_iter()
        .map(Door::open)
        .collect::<Result<Vec<_>, _>>()
        .step(Step::Doors)?;
    reporter.done(Step::Doors);
    privileges::drop_capabilities(privileges::kept(plan.ids), &omissions)
        .step(Step::Capabilities)?;
    reporter.done(Step::Capabilities);
    is_launcher_alive(&release)?;
    let inheritance = Inheritance {
        config: plan.config,
        words,
        listener: plan.listener,
        line: plan.line,
        oom_events: plan.oom_events,
        groups,
    };
    arrange(inheritance, reporter.pipe(), &omissions).step(Step::Descriptors)?;
    // Its number is closed already.
    std::mem::forget(release);
    reporter.done(Step::Descriptors);
    privileges::restrict(&omissions, filters, |step| reporter.done(step))?;
    reporter.done(Step::Seccomp);
    reporter.send();
    Ok(())
}

fn die_with_launcher() -> Result<(), Failed> {
    set_parent_process_death_signal(Some(Signal::KILL)).step(Step::DieWithParent)
}

/// Waits for one byte. When the launcher is gone, so is its end of the pipe.
fn wait_for_release(pipe: &OwnedFd) -> Result<(), Failed> {
    let mut byte = [0];
    loop {
        match rustix::io::read(pipe, &mut byte) {
            Ok(1) => return Ok(()),
            Ok(_) => return Err(Errno::PIPE).step(Step::Release),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error).step(Step::Release),
        }
    }
}

/// Looks whether the launcher still holds its end of the pipe. It may have died between the two
/// moments at which the death signal was set.
fn is_launcher_alive(pipe: &OwnedFd) -> Result<(), Failed> {
    let mut fds = [PollFd::new(pipe, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec::default())).step(Step::DieWithParent)?;
    if fds[0].revents().contains(PollFlags::HUP) {
        Err(Errno::PIPE).step(Step::DieWithParent)
    } else {
        Ok(())
    }
}
