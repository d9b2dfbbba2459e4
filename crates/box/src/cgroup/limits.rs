//! Which number goes into which file of a control group.

use glovebox_protocol::limits::Limits;

use super::layout::{Controller, Version};
use crate::mutation::{Mutation, Omissions};

/// Processes and threads that the agent itself may have, exec helpers that have not yet joined
/// the workload's group among them.
pub(crate) const AGENT_PROCESSES: u32 = 128;

/// Length of the interval over which processor time is measured, in microseconds: the kernel's
/// own.
const CPU_PERIOD_US: u64 = 100_000;

/// One of the three groups of a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The box as a whole; holds no process itself.
    Whole,
    /// The agent.
    Agent,
    /// Everything that the agent starts for others.
    Work,
}

/// A file of a control group and what is written to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) file: &'static str,
    pub(crate) value: String,
    /// Only written where the kernel has the file.
    pub(crate) optional: bool,
}

/// What is written to make `limits` hold, in the order in which it has to be written.
///
/// The agent has processor time of its own: when the workload has used up its share, the agent
/// still answers.
pub(crate) fn settings(
    version: Version,
    controller: Controller,
    role: Role,
    limits: &Limits,
    host_cpus: u32,
    omissions: &Omissions,
) -> Vec<Setting> {
    let must = |file, value: String| Setting {
        file,
        value,
        optional: false,
    };
    let may = |file, value: String| Setting {
        file,
        value,
        optional: true,
    };
    match controller {
        Controller::Memory => {
            let bytes = match role {
                Role::Whole => limits.sandbox_memory_bytes(),
                Role::Agent => limits.agent_memory_bytes(),
                Role::Work => limits.workload_memory_bytes(),
            };
            let mut settings = Vec::new();
            if !omissions.omits(Mutation::MemoryLimit) {
                settings.push(match version {
                    Version::One => must("memory.limit_in_bytes", bytes.to_string()),
                    Version::Two => must("memory.max", bytes.to_string()),
                });
            }
            if !omissions.omits(Mutation::SwapLimit) && !omissions.omits(Mutation::MemoryLimit) {
                // Version 1 limits memory and swap together, so the same number means no swap.
                settings.push(match version {
                    Version::One => may("memory.memsw.limit_in_bytes", bytes.to_string()),
                    Version::Two => may("memory.swap.max", "0".into()),
                });
            }
            settings
        }
        Controller::Pids if omissions.omits(Mutation::ProcessLimit) => Vec::new(),
        Controller::Pids => {
            let processes = match role {
                Role::Whole => limits.processes.saturating_add(AGENT_PROCESSES),
                Role::Agent => AGENT_PROCESSES,
                Role::Work => limits.processes,
            };
            vec![must("pids.max", processes.to_string())]
        }
        Controller::Cpu if omissions.omits(Mutation::CpuLimit) => Vec::new(),
        Controller::Cpu => {
            let millis = match role {
                Role::Whole => return Vec::new(),
                Role::Agent => 1000,
                Role::Work => limits.cpu_millis.min(host_cpus.saturating_mul(1000)),
            };
            let quota = u64::from(millis) * CPU_PERIOD_US / 1000;
            match version {
                // The period is what the kernel begins with. Each of these writes lets it look
                // through all groups of the machine, so it is not written again.
                Version::One => vec![must("cpu.cfs_quota_us", quota.to_string())],
                Version::Two => vec![must("cpu.max", format!("{quota} {CPU_PERIOD_US}"))],
            }
        }
        Controller::Freezer => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_protocol::class::ResourceClass;

    const MIB: u64 = 1024 * 1024;

    fn values(version: Version, controller: Controller, role: Role) -> Vec<(String, String)> {
        let limits = Limits::of(ResourceClass::Large);
        settings(version, controller, role, &limits, 2, &Omissions::default())
            .into_iter()
            .map(|setting| (setting.file.to_owned(), setting.value))
            .collect()
    }

    fn pair(file: &str, value: impl ToString) -> (String, String) {
        (file.into(), value.to_string())
    }

    #[test]
    fn memory_of_each_group_is_as_decided_and_without_swap() {
        for (role, mib) in [
            (Role::Whole, 4096 + 1024 + 32),
            (Role::Agent, 1024 + 32),
            (Role::Work, 4096 + 1024),
        ] {
            assert_eq!(
                values(Version::One, Controller::Memory, role),
                [
                    pair("memory.limit_in_bytes", mib * MIB),
                    pair("memory.memsw.limit_in_bytes", mib * MIB),
                ]
            );
            assert_eq!(
                values(Version::Two, Controller::Memory, role),
                [pair("memory.max", mib * MIB), pair("memory.swap.max", 0)]
            );
        }
    }

    #[test]
    fn processor_time_is_capped_at_what_the_host_has() {
        assert_eq!(
            values(Version::One, Controller::Cpu, Role::Work),
            [pair("cpu.cfs_quota_us", 200_000)]
        );
        assert_eq!(
            values(Version::Two, Controller::Cpu, Role::Work),
            [pair("cpu.max", "200000 100000")]
        );
        assert_eq!(values(Version::Two, Controller::Cpu, Role::Whole), []);
    }

    #[test]
    fn processes_are_limited_in_every_group() {
        for (role, count) in [(Role::Whole, 640), (Role::Agent, 128), (Role::Work, 512)] {
            assert_eq!(
                values(Version::One, Controller::Pids, role),
                [pair("pids.max", count)]
            );
        }
    }
}
