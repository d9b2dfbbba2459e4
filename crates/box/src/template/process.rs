//! A template as the launcher holds it: started, given orders, ended.

use std::cell::Cell;
use std::ffi::CString;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use glovebox_protocol::agent_config::AgentIds;
use glovebox_protocol::environment::workload_environment;
use glovebox_protocol::limits::Limits;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, socketpair};
use rustix::process::{Signal, WaitOptions, kill_process_group, waitpgid};

use super::namespaces::Namespaces;
use super::order::{Answer, GroupsWay, Order, Received, receive, send};
use super::start::{self, Plan};
use crate::cgroup::CgroupError;
use crate::cgroup::group::WorkDoors;
use crate::cgroup::template::TemplateGroup;
use crate::control::Fault;
use crate::create::parent::Surroundings;
use crate::create::preparation::check_layers;
use crate::create::process::{end, host_pid, kill, reap};
use crate::create::remains::Stays;
use crate::fault::chain;
use crate::mutation::Omissions;
use crate::sys::clone::{Cloned, clone_process};

/// The namespaces that a template has for itself. It stays in the pod's user and process
/// namespaces, from which alone boxes can be joined, and in its view of control groups: version 2
/// clones into no group outside of it.
const NAMESPACES: i32 =
    libc::CLONE_NEWNS | libc::CLONE_NEWNET | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;

/// How long the group of one that could not be started is given to become empty: the kernel takes
/// a process out of it a moment after it has been waited for.
const REMOVE_PATIENCE: Duration = Duration::from_secs(1);

/// A process that kernels are copied from.
///
/// Started with [`Self::start`], which does not wait: the template says [`Answer::Ready`] some
/// seconds later. From then on it takes one [`Wanted`] after the other and answers each. Has to be
/// ended with [`Self::kill`] and [`Self::take_away`].
#[derive(Debug)]
pub(crate) struct Template {
    process: Cloned,
    host_pid: i32,
    line: OwnedFd,
    group: TemplateGroup,
}

/// A kernel that is wanted in a box.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    /// Repeated in the answer.
    pub(crate) id: u64,
    /// The ids inside the box.
    pub(crate) ids: AgentIds,
    /// The limits of the box.
    pub(crate) limits: &'a Limits,
    /// The namespaces of the box.
    pub(crate) namespaces: &'a Namespaces,
    /// The kernel's end of the wire to the agent.
    pub(crate) wire: BorrowedFd<'a>,
    /// Whether nobody waits for it yet.
    pub(crate) in_advance: bool,
    /// The ways into the workload's control groups; none where there are no groups.
    pub(crate) doors: &'a WorkDoors,
    /// What is left out of this box.
    pub(crate) omissions: &'a Omissions,
}

/// A template has closed its line or broken the rules of it: it has ended, or has to be.
#[derive(Debug, thiserror::Error)]
#[error("the template {0}")]
pub(crate) struct Gone(String);

impl Template {
    /// Starts a Python in the layers, which loads what kernels need. `name` is that of its
    /// control group, unique among templates and boxes of the pod. On failure nothing is left.
    ///
    /// What goes wrong in the new process is told over the line, as [`Answer::Failed`].
    ///
    /// # Errors
    /// What could not be done, why, and what to do about it.
    pub(crate) fn start(
        surroundings: &Surroundings,
        name: &str,
        layers: &[String],
    ) -> Result<Self, Fault> {
        let layers = check_layers(layers)?;
        let group = TemplateGroup::make(
            &surroundings.pod,
            name,
            surroundings.host_cpus,
            &surroundings.omissions,
        )
        .map_err(in_groups)?;
        match launch(surroundings, &group, layers) {
            Ok((process, line)) => match host_pid(&process) {
                Ok(host_pid) => Ok(Self {
                    process,
                    host_pid,
                    line,
                    group,
                }),
                Err(fault) => Err(fault.and_then(end(&process)).and_then(remove(&group))),
            },
            Err(fault) => Err(fault.and_then(remove(&group))),
        }
    }

    /// Readable when [`Self::receive`] has something to say.
    pub(crate) const fn line(&self) -> &OwnedFd {
        &self.line
    }

    /// Readable once the process has ended.
    pub(crate) const fn process(&self) -> &OwnedFd {
        &self.process.pidfd
    }

    /// Its process id as the host sees it.
    pub(crate) const fn host_pid(&self) -> i32 {
        self.host_pid
    }

    /// Takes the next thing that the template has said, without waiting.
    ///
    /// # Errors
    /// When it can say no more: it is to be ended.
    pub(crate) fn receive(&self) -> Result<Option<Answer>, Gone> {
        match receive(&self.line, RecvFlags::DONTWAIT) {
            Ok(Some(Received { message, .. })) => Ok(Some(message)),
            Ok(None) => Err(Gone("has ended".into())),
            Err(error) if would_wait(&error) => Ok(None),
            // It has ended without having read everything.
            Err(error) if error.raw_os_error() == Some(Errno::CONNRESET.raw_os_error()) => {
                Err(Gone("has ended".into()))
            }
            Err(error) => Err(Gone(format!("said what nobody understands: {error}"))),
        }
    }

    /// Asks for a kernel, without waiting. One at a time: the answer has to be there before the
    /// next order.
    ///
    /// While it copies itself the template waits for helpers that are in the box already, and
    /// gives them up after some seconds. Whoever waits for an answer longer than that ends the box
    /// first: that ends whatever of the template's is in there.
    ///
    /// # Errors
    /// When the template takes no more; whatever `sendmsg` says.
    pub(crate) fn order(&self, wanted: &Wanted<'_>) -> Result<(), Fault> {
        let mut descriptors: Vec<_> = wanted.namespaces.descriptors().collect();
        descriptors.push(wanted.wire);
        let groups = match wanted.doors {
            WorkDoors::Doors(doors) => {
                descriptors.extend(doors.iter().map(|door| door.as_fd()));
                GroupsWay::Doors(doors.len())
            }
            WorkDoors::Folder(folder) => {
                descriptors.push(folder.as_fd());
                GroupsWay::Folder
            }
        };
        let order = Order {
            id: wanted.id,
            ids: wanted.ids,
            limits: wanted.limits.clone(),
            threads: wanted.limits.library_threads(),
            in_advance: wanted.in_advance,
            groups,
            omissions: wanted.omissions.clone(),
        };
        send(&self.line, &order, &descriptors)
            .map_err(|error| Fault::failed("asking a template for a kernel", error))
    }

    /// Kills it. Kernels that were copied from it live on.
    ///
    /// # Errors
    /// When it cannot be signalled.
    pub(crate) fn kill(&self) -> Result<(), Fault> {
        // All of its processes: helpers that were just copying it are in its process group, and
        // would be left to us as its heirs.
        match kill_process_group(self.process.pid, Signal::KILL) {
            // It may not have made its group yet.
            Ok(()) | Err(Errno::SRCH) => kill(&self.process),
            Err(error) => Err(Fault::failed("ending a template", error)),
        }
    }

    /// Whether its process has ended and was waited for, or cannot be.
    pub(crate) fn has_ended(&self) -> bool {
        !matches!(reap(&self.process), Ok(false))
    }

    /// Takes away what a killed one leaves, as far as that can be done without waiting. Can be
    /// tried again where it fails.
    ///
    /// # Errors
    /// When something has not gone away yet.
    pub(crate) fn take_away(&self) -> Result<(), Stays> {
        let lives = |what: &str| Stays::ForNow(Fault::failed("ending a template", what));
        if !reap(&self.process).map_err(Stays::ForGood)? {
            return Err(lives("it was killed and has not ended"));
        }
        loop {
            match waitpgid(self.process.pid, WaitOptions::NOHANG) {
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return Err(lives("a helper of it was killed and has not ended")),
                Err(_) => break,
            }
        }
        self.group.try_remove().map_err(|error| {
            let fault = Fault::failed("removing a template's control group", chain(&error));
            if error.is_passing() {
                Stays::ForNow(fault)
            } else {
                Stays::ForGood(fault)
            }
        })
    }
}

fn would_wait(error: &std::io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::AGAIN | Errno::INTR)
    )
}

fn in_groups(error: CgroupError) -> Fault {
    Fault::failed("making the template's control group", chain(&error))
}

fn remove(group: &TemplateGroup) -> Result<(), Fault> {
    group
        .remove(Instant::now() + REMOVE_PATIENCE)
        .map_err(|error| Fault::failed("removing a template's control group", chain(&error)))
}

fn launch(
    surroundings: &Surroundings,
    group: &TemplateGroup,
    layers: CString,
) -> Result<(Cloned, OwnedFd), Fault> {
    let failed = |error: Errno| Fault::failed("making the line to a template", error);
    let (ours, theirs) = socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .map_err(failed)?;
    let plan = Plan {
        layers,
        doors: group.doors().map_err(in_groups)?,
        line: theirs,
        environment: environment(),
        omissions: surroundings.omissions.clone(),
    };
    let target = group.clone_target().map_err(in_groups)?;
    let outside = Cell::new(Some(ours));
    let process = clone_process(
        &surroundings.one_thread,
        NAMESPACES,
        target.as_ref().map(|target| target.as_fd()),
        || {
            // If the template held our end too, it would not see it close.
            drop(outside.take());
            start::run(plan)
        },
    )
    .map_err(|error| Fault::failed("starting a template", error))?;
    match outside.take() {
        Some(line) => Ok((process, line)),
        None => Err(Fault::failed("starting a template", "no line is left")),
    }
}

/// What every program in a box starts with: copies cannot be given another environment.
fn environment() -> Vec<CString> {
    workload_environment(1)
        .into_iter()
        .filter_map(|(name, value)| CString::new(format!("{name}={value}")).ok())
        .collect()
}
