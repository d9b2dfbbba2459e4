//! Turning the tables of system calls into filters, and loading them.
//!
//! Filters are stacked, because one can answer in one way only. The list says `ENOSYS` to what is
//! not on it. The others answer in its place where that would be the wrong word: a family of
//! sockets that is not ours gets `EAFNOSUPPORT`, which is what libraries expect of a machine
//! without that network. Of filters that answer, the last loaded is heard; so what is answered
//! here has to stand on the list. All kill a process that calls by another processor's numbers.
//!
//! How the list finds the rules of a call is in [`halving`](super::halving).

use std::collections::BTreeMap;

use rustix::io::Errno;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

use super::halving::{CALLS_IN_PART, Part, joined};
use super::syscalls::{
    AGENT, Allowed, CLONE_NEW, FLAGS_REFUSED, IOCTL_NETWORK, IOCTL_REFUSED, LOCK_RECORD,
    PERSONALITY_QUERY, PRCTL, SET_ATTRIBUTE, SOCKET_OPTIONS_REFUSED, WORKLOAD, WORKLOAD_OLDER,
};
use crate::mutation::{Mutation, Omissions};

/// A filter could not be built or loaded.
#[derive(Debug, thiserror::Error)]
#[error("system call filter: {0}")]
pub(crate) struct SeccompError(String);

impl From<SeccompError> for std::io::Error {
    /// Keeps to a number, because that is what goes through the report of a box's first process.
    fn from(_: SeccompError) -> Self {
        Errno::INVAL.into()
    }
}

/// A filter that is ready to be loaded.
#[derive(Debug)]
pub(crate) struct Filter(BpfProgram);

/// The filters of one position.
#[derive(Debug)]
pub(crate) struct Filters {
    /// What only local sockets are made with.
    families: Filter,
    /// What is answered otherwise, see [`answers`].
    answers: Vec<Filter>,
    /// What exists at all.
    pub(crate) list: Filter,
}

impl Filters {
    /// Of an agent.
    pub(crate) fn agent() -> Result<Self, SeccompError> {
        Self::with(Filter::agent()?)
    }

    /// Of a workload. With `shares_id` it has the agent's id.
    pub(crate) fn workload(shares_id: bool) -> Result<Self, SeccompError> {
        Self::with(Filter::workload(shares_id)?)
    }

    fn with(list: Filter) -> Result<Self, SeccompError> {
        Ok(Self {
            families: Filter::families()?,
            answers: answers()?,
            list,
        })
    }

    /// Loads all but the list.
    pub(crate) fn load_answers(&self, omissions: &Omissions) -> Result<(), SeccompError> {
        if !omissions.omits(Mutation::SeccompFamilies) {
            self.families.load()?;
        }
        if !omissions.omits(Mutation::SeccompAnswers) {
            self.answers.iter().try_for_each(Filter::load)?;
        }
        Ok(())
    }
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

impl Filter {
    /// Puts this thread, and everything that comes from it, under the filter. New privileges are
    /// ruled out by the same call.
    pub(crate) fn load(&self) -> Result<(), SeccompError> {
        apply_filter(&self.0).map_err(describe)
    }

    /// The system calls of a workload.
    fn workload(shares_id: bool) -> Result<Self, SeccompError> {
        let mut rules = always(&[WORKLOAD, WORKLOAD_OLDER]);
        with_arguments(&mut rules)?;
        // `nice`. Of others, of groups and of users never: with one id the agent is among them.
        let own = vec![equal(0, 0)?, equal(1, 0)?];
        rules.insert(libc::SYS_setpriority, vec![rule(own)?]);
        if shares_id {
            rules.insert(libc::SYS_sched_setaffinity, vec![rule(vec![equal(0, 0)?])?]);
        }
        let options = PRCTL
            .iter()
            .map(|(option, _)| rule(vec![equal(0, u64::from(option.cast_unsigned()))?]))
            .collect::<Result<_, _>>()?;
        rules.insert(libc::SYS_prctl, options);
        // Of itself only: limits of others are the agent's.
        rules.insert(libc::SYS_prlimit64, vec![rule(vec![equal(0, 0)?])?]);
        let loads_nothing = SOCKET_OPTIONS_REFUSED
            .iter()
            .map(|(option, _)| unequal(2, u64::from(option.cast_unsigned())))
            .collect::<Result<_, _>>()?;
        rules.insert(libc::SYS_setsockopt, vec![rule(loads_nothing)?]);
        list(rules)
    }

    /// The system calls of the agent and the exec helper: a workload's, and those with which
    /// rights are given up.
    fn agent() -> Result<Self, SeccompError> {
        let mut rules = always(&[WORKLOAD, WORKLOAD_OLDER, AGENT]);
        with_arguments(&mut rules)?;
        list(rules)
    }

    /// Sockets of no family but the local one.
    fn families() -> Result<Self, SeccompError> {
        let other = || rule(vec![unequal(0, libc::AF_UNIX as u64)?]);
        let rules = [
            (libc::SYS_socket, vec![other()?]),
            (libc::SYS_socketpair, vec![other()?]),
        ];
        build(
            rules.into(),
            SeccompAction::Allow,
            SeccompAction::Errno(libc::EAFNOSUPPORT.cast_unsigned()),
        )
    }
}

/// What is answered in the list's place, to agent and workload alike.
fn answers() -> Result<Vec<Filter>, SeccompError> {
    let attributes = SET_ATTRIBUTE.iter().map(|call| (*call, Vec::new()));
    let locks = LOCK_RECORD
        .iter()
        .map(|command| rule(vec![equal(1, u64::from(command.cast_unsigned()))?]))
        .collect::<Result<_, _>>()?;
    let core = u64::from(libc::RLIMIT_CORE);
    let is_there = condition(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
    let cores = [
        (libc::SYS_setrlimit, vec![rule(vec![equal(0, core)?])?]),
        (
            libc::SYS_prlimit64,
            vec![rule(vec![equal(1, core)?, is_there])?],
        ),
    ];
    [
        (attributes.collect(), libc::EOPNOTSUPP),
        ([(libc::SYS_fcntl, locks)].into(), 0),
        (cores.into(), libc::EPERM),
    ]
    .into_iter()
    .map(|(rules, errno)| {
        build(
            rules,
            SeccompAction::Allow,
            SeccompAction::Errno(errno.cast_unsigned()),
        )
    })
    .collect()
}

fn always(tables: &[&[Allowed]]) -> Rules {
    tables
        .iter()
        .flat_map(|table| table.iter())
        .map(|allowed| (allowed.number, Vec::new()))
        .collect()
}

/// Calls whose arguments decide, for workload and agent alike.
fn with_arguments(rules: &mut Rules) -> Result<(), SeccompError> {
    let no_namespace = condition(
        0,
        SeccompCmpArgLen::Qword,
        SeccompCmpOp::MaskedEq(CLONE_NEW),
        0,
    )?;
    rules.insert(libc::SYS_clone, vec![rule(vec![no_namespace])?]);
    let outside = [
        (SeccompCmpOp::Lt, *IOCTL_NETWORK.start()),
        (SeccompCmpOp::Gt, *IOCTL_NETWORK.end()),
    ];
    let harmless = outside
        .into_iter()
        .map(|(side, bound)| {
            let mut conditions = vec![condition(1, SeccompCmpArgLen::Dword, side, bound)?];
            for (request, _) in IOCTL_REFUSED {
                conditions.push(unequal(1, *request)?);
            }
            rule(conditions)
        })
        .collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_ioctl, harmless);
    for (call, argument, flag, _) in FLAGS_REFUSED {
        let without = SeccompCmpOp::MaskedEq(*flag);
        let condition = condition(*argument, SeccompCmpArgLen::Dword, without, 0)?;
        rules.insert(*call, vec![rule(vec![condition])?]);
    }
    rules.insert(
        libc::SYS_personality,
        vec![rule(vec![equal(0, PERSONALITY_QUERY)?])?],
    );
    Ok(())
}

fn list(rules: Rules) -> Result<Filter, SeccompError> {
    let mut rules = rules.into_iter().peekable();
    let mut parts = Vec::new();
    while let Some((first, _)) = rules.peek() {
        let first = u32::try_from(*first).map_err(describe)?;
        let calls = rules.by_ref().take(CALLS_IN_PART).collect();
        let Filter(program) = build(
            calls,
            SeccompAction::Errno(libc::ENOSYS.cast_unsigned()),
            SeccompAction::Allow,
        )?;
        parts.push(Part { first, program });
    }
    Ok(Filter(joined(&parts)))
}

fn build(
    rules: Rules,
    otherwise: SeccompAction,
    on_match: SeccompAction,
) -> Result<Filter, SeccompError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(describe)?;
    let filter = SeccompFilter::new(rules, otherwise, on_match, arch).map_err(describe)?;
    BpfProgram::try_from(filter).map(Filter).map_err(describe)
}

fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, SeccompError> {
    SeccompRule::new(conditions).map_err(describe)
}

/// Looks at the lower half of an argument: the kernel does no more for these calls, so the upper
/// half could hide a value.
fn equal(argument: u8, value: u64) -> Result<SeccompCondition, SeccompError> {
    condition(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn unequal(argument: u8, value: u64) -> Result<SeccompCondition, SeccompError> {
    condition(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
}

fn condition(
    argument: u8,
    length: SeccompCmpArgLen,
    operator: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, SeccompError> {
    SeccompCondition::new(argument, length, operator, value).map_err(describe)
}

fn describe(error: impl std::fmt::Display) -> SeccompError {
    SeccompError(error.to_string())
}

#[cfg(test)]
mod tests;
