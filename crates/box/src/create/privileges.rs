//! Ids, capabilities and limits of the agent.
//!
//! The agent is no root anywhere: inside its own user namespace it keeps the capabilities to
//! become the workload's id and to signal it, and nothing can add to them.

use glovebox_protocol::agent_config::AgentIds;
use glovebox_protocol::limits::Limits;
use rustix::io::{Errno, Result};
use rustix::process::{Gid, Resource, Rlimit, Uid, getrlimit, setrlimit};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities,
    clear_ambient_capability_set, configure_capability_in_ambient_set,
    remove_capability_from_bounding_set, set_capabilities, set_capabilities_secure_bits,
    set_thread_res_gid, set_thread_res_uid,
};

use super::step::{Failed, InStep as _, Step};
use crate::cgroup::limits::AGENT_PROCESSES;
use crate::mutation::{Mutation, Omissions};
use crate::policy::landlock::restrict_agent;
use crate::policy::seccomp::Filters;

/// The securebits of everything in a box, all of them locked: no id is special, ids change no
/// capabilities, and none can be raised again.
pub(crate) const SECUREBITS: CapabilitiesSecureBits = CapabilitiesSecureBits::NO_ROOT
    .union(CapabilitiesSecureBits::NO_ROOT_LOCKED)
    .union(CapabilitiesSecureBits::NO_SETUID_FIXUP)
    .union(CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED)
    .union(CapabilitiesSecureBits::KEEP_CAPS_LOCKED)
    .union(CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE)
    .union(CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED);

/// What the agent keeps, in its own user namespace.
pub(crate) fn kept(ids: AgentIds) -> CapabilitySet {
    if ids.are_separate() {
        CapabilitySet::SETUID | CapabilitySet::SETGID | CapabilitySet::KILL
    } else {
        CapabilitySet::empty()
    }
}

/// Takes the agent's ids. Capabilities stay, because no id here is root's.
pub(crate) fn take_ids(id: u32) -> Result<()> {
    set_capabilities_secure_bits(CapabilitiesSecureBits::NO_SETUID_FIXUP)?;
    let (uid, gid) = (Uid::from_raw(id), Gid::from_raw(id));
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)
}

/// Drops everything but `keep`, for this program and for all that follow.
///
/// What is kept goes through the ambient set, which the bounding set does not limit: so the
/// bounding set can be empty from the beginning.
pub(crate) fn drop_capabilities(keep: CapabilitySet, omissions: &Omissions) -> Result<()> {
    let all = capabilities(None)?;
    set_capabilities(
        None,
        CapabilitySets {
            inheritable: keep,
            ..all
        },
    )?;
    clear_ambient_capability_set()?;
    for capability in keep.iter() {
        configure_capability_in_ambient_set(capability, true)?;
    }
    if !omissions.omits(Mutation::BoundingSet) {
        empty_bounding_set()?;
    }
    if !omissions.omits(Mutation::Securebits) {
        set_capabilities_secure_bits(SECUREBITS)?;
    }
    set_capabilities(
        None,
        CapabilitySets {
            effective: keep,
            permitted: keep,
            inheritable: keep,
        },
    )
}

/// Puts the agent under its rules: rules out new privileges, without which the kernel takes neither
/// rules nor filters; the list of calls last, because it ends what can be done to this process
/// from inside. Says what is done.
pub(crate) fn restrict(
    omissions: &Omissions,
    filters: &Filters,
    mut done: impl FnMut(Step),
) -> std::result::Result<(), Failed> {
    if omissions.omits(Mutation::NoNewPrivileges) {
        return Ok(());
    }
    rustix::thread::set_no_new_privs(true).step(Step::NoNewPrivileges)?;
    done(Step::NoNewPrivileges);
    if !omissions.omits(Mutation::LandlockAgent) {
        restrict_agent().step(Step::Landlock)?;
    }
    done(Step::Landlock);
    filters.load_answers(omissions).step(Step::Seccomp)?;
    if !omissions.omits(Mutation::SeccompAgent) {
        filters.list.load().step(Step::Seccomp)?;
    }
    Ok(())
}

/// Empties the bounding set and looks that it is empty.
pub(crate) fn empty_bounding_set() -> Result<()> {
    // As many as there can be: a newer kernel knows more of them than this program.
    for number in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        match rustix::thread::capability_is_in_bounding_set(capability) {
            Ok(false) => {}
            Ok(true) => remove_capability_from_bounding_set(capability)?,
            // The kernel knows fewer.
            Err(Errno::INVAL) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Descriptors that the agent may hold open, where the host allows as many.
const AGENT_OPEN_FILES: u64 = 4096;

/// Limits the agent, and with it everything it can allow its workloads.
pub(crate) fn limit_resources(limits: &Limits, omissions: &Omissions) -> Result<()> {
    if omissions.omits(Mutation::ResourceLimits) {
        return Ok(());
    }
    let files = getrlimit(Resource::Nofile)
        .maximum
        .unwrap_or(u64::MAX)
        .min(AGENT_OPEN_FILES.max(limits.open_files));
    fix(Resource::Nofile, files)?;
    // Behind the control group's limit, which is the first that is met.
    let processes = u64::from(limits.processes).saturating_add(u64::from(AGENT_PROCESSES));
    fix_at_most(Resource::Nproc, processes)?;
    limit_process(omissions)
}

/// Limits that are the same for the agent and for workloads; of everything that is not named
/// the limit that can be had becomes the limit that is set, so that none can be raised.
pub(crate) fn limit_process(omissions: &Omissions) -> Result<()> {
    for (resource, value) in PROCESS_LIMITS {
        fix_at_most(resource, value)?;
    }
    if !omissions.omits(Mutation::CoreLimit) {
        limit_cores()?;
    }
    for resource in UNNAMED {
        let limit = getrlimit(resource);
        if limit.current != limit.maximum {
            let maximum = limit.current;
            setrlimit(resource, Rlimit { maximum, ..limit })?;
        }
    }
    Ok(())
}

/// Too little for a file, which has a page at least, and the one value at which the kernel does
/// not start a program that the host has set for crashes: with 0 it would, as the host's root.
const CORE: u64 = 1;

/// Sets the limit of cores, where it is not set already: in a box the filter refuses it.
fn limit_cores() -> Result<()> {
    let limit = getrlimit(Resource::Core);
    if (limit.current, limit.maximum) == (Some(CORE), Some(CORE)) {
        return Ok(());
    }
    fix_at_most(Resource::Core, CORE)
}

/// Limits of every process in a box, hard and soft, beside files, processes and cores.
const PROCESS_LIMITS: [(Resource, u64); 6] = [
    // What threads get for their stacks follows from it; unlimited means another layout of memory.
    (Resource::Stack, 8 * 1024 * 1024),
    // Locked memory counts against the memory limit; this much serves programs that lock keys.
    (Resource::Memlock, 8 * 1024 * 1024),
    // Counted for all sandboxes of a user together, and then for the user.
    (Resource::Sigpending, 1024),
    // No message queues: they would be memory that outlives a process.
    (Resource::Msgqueue, 0),
    // No priority above the others'.
    (Resource::Nice, 0),
    (Resource::Rtprio, 0),
];

/// Limits that stay as they were given to us, but hard. The control groups limit what they are
/// about.
const UNNAMED: [Resource; 7] = [
    Resource::As,
    Resource::Cpu,
    Resource::Data,
    Resource::Locks,
    Resource::Nproc,
    Resource::Rss,
    Resource::Rttime,
];

/// Sets a limit to `value`, hard and soft.
pub(crate) fn fix(resource: Resource, value: u64) -> Result<()> {
    setrlimit(
        resource,
        Rlimit {
            current: Some(value),
            maximum: Some(value),
        },
    )
}

/// Sets a limit to `value`, or to what is allowed where that is less.
pub(crate) fn fix_at_most(resource: Resource, value: u64) -> Result<()> {
    let allowed = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    fix(resource, value.min(allowed))
}
