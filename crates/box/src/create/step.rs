//! The steps that a box's first process takes before it becomes the agent, by name.

use std::io;

macro_rules! steps {
    ($($(#[$doc:meta])* $variant:ident: $stage:literal, $doing:literal;)*) => {
        /// One step.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Step {
            $($(#[$doc])* $variant,)*
        }

        impl Step {
            const ALL: &[Self] = &[$(Self::$variant,)*];

            /// A short name, for figures.
            pub(crate) const fn stage(self) -> &'static str {
                match self {
                    $(Self::$variant => $stage,)*
                }
            }

            /// What was being done, for messages.
            pub(crate) const fn doing(self) -> &'static str {
                match self {
                    $(Self::$variant => $doing,)*
                }
            }
        }
    };
}

steps! {
    OwnDescriptors: "own_descriptors", "leaving the launcher's descriptors behind";
    Release: "release", "waiting for the launcher to release the box";
    DieWithParent: "die_with_parent", "tying the box to its launcher";
    Join: "join", "joining the agent's control groups";
    Session: "session", "starting a session for the box";
    CgroupNamespace: "cgroup_namespace", "hiding the host's control groups";
    PrivateMounts: "private_mounts", "cutting the box's mounts off from the host's";
    Root: "root", "mounting the root of the box over its layers";
    Ids: "ids", "taking the agent's ids";
    Workspace: "workspace", "mounting the workspace";
    Tmp: "tmp", "mounting /tmp";
    Devices: "devices", "putting the few devices in place";
    SharedMemory: "shared_memory", "mounting /dev/shm";
    Counts: "counts", "limiting what the kernel counts for a user";
    Proc: "proc", "mounting /proc";
    Pivot: "pivot", "leaving the host's file system";
    Names: "names", "naming the box";
    ResourceLimits: "resource_limits", "limiting what one process may use";
    Capabilities: "capabilities", "dropping capabilities";
    Doors: "doors", "opening the workload's control groups";
    Descriptors: "descriptors", "closing what the agent must not have";
    NoNewPrivileges: "no_new_privileges", "ruling out new privileges";
    Landlock: "landlock", "putting the agent under Landlock";
    Seccomp: "seccomp", "limiting the agent's system calls";
    Execute: "execute", "starting the agent";
}

impl Step {
    pub(crate) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    pub(crate) const fn number(self) -> u8 {
        self as u8
    }
}

/// A step that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Failed {
    pub(crate) step: Step,
    /// The kernel's error number; 0 where it gave none.
    pub(crate) errno: i32,
}

/// Names the step in which an operation failed.
pub(crate) trait InStep<T> {
    fn step(self, step: Step) -> Result<T, Failed>;
}

impl<T, E: Into<io::Error>> InStep<T> for Result<T, E> {
    fn step(self, step: Step) -> Result<T, Failed> {
        self.map_err(|error| Failed {
            step,
            errno: error.into().raw_os_error().unwrap_or(0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_has_a_number_that_leads_back_to_it() {
        for step in Step::ALL {
            assert_eq!(Step::from_number(step.number()), Some(*step));
        }
        assert_eq!(Step::from_number(255), None);
    }
}
