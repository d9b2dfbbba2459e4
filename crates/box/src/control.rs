//! What a runtime and its launcher say to each other: one JSON document a line over one socket.
//!
//! The runtime speaks first with a [`LauncherConfig`]; the launcher answers [`FromLauncher::Ready`]
//! or [`FromLauncher::Failed`] with id 0 and ends. When the runtime's end of the socket closes,
//! the launcher removes every box it made and ends.
//!
//! One that stays ([`LauncherConfig::stays`]) goes on instead, and waits at [`DOOR`] in its run
//! folder for the next runtime, which speaks first with the same configuration. Answers to what
//! the one before has asked are not given to it; what has ended meanwhile it is told.

use std::path::PathBuf;
use std::time::Duration;

use glovebox_protocol::agent_config::{AgentIds, Start};
use glovebox_protocol::gateway::HARD_LIMIT_REACHED;
use glovebox_protocol::ids::{InstallationId, SandboxId};
use glovebox_protocol::limits::{InputLimits, Limits};
use glovebox_protocol::sign::{Epoch, PublicKey};
use serde::{Deserialize, Serialize};

use crate::weakness::Weakness;

/// First line from runtime to launcher.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LauncherConfig {
    /// The data folder; layers are named relative to it, so that no host path shows in a box.
    pub data: PathBuf,
    /// A folder for sockets, for this launcher alone, which makes it where it is not there.
    pub run: PathBuf,
    /// Which installation the boxes belong to.
    pub installation: InstallationId,
    /// When root launches: the first host id of the pod's range. An ordinary user's range comes
    /// from `/etc/subuid` and `/etc/subgid`.
    pub root_range_start: u32,
    /// Protections whose lack was accepted by name.
    pub accept_weaker: Vec<Weakness>,
    /// When that is made anew which is there in advance.
    #[serde(default)]
    pub renewal: Renewal,
    /// Whether the launcher outlives its runtime. It ends when it is told to, and when no runtime
    /// has come for a while and there is no sandbox left.
    #[serde(default)]
    pub stays: bool,
}

/// The socket in the run folder of a launcher that stays, at which the next runtime comes in.
pub const DOOR: &str = "control";

/// When that is made anew which is there before it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Renewal {
    /// For how many milliseconds a box is kept ready.
    pub ready_ms: u64,
    /// For how many milliseconds kernels are copied from one template.
    pub template_ms: u64,
    /// How many kernels are.
    pub template_kernels: u64,
}

impl Renewal {
    /// How long a box is kept ready.
    #[must_use]
    pub const fn ready(&self) -> Duration {
        Duration::from_millis(self.ready_ms)
    }

    /// How long kernels are copied from one template.
    #[must_use]
    pub const fn template(&self) -> Duration {
        Duration::from_millis(self.template_ms)
    }
}

impl Default for Renewal {
    fn default() -> Self {
        Self {
            ready_ms: 10 * 60 * 1000,
            template_ms: 24 * 60 * 60 * 1000,
            template_kernels: 10_000,
        }
    }
}

/// Host ids that root takes when nothing else is configured: 65 536 from here.
pub const DEFAULT_ROOT_RANGE_START: u32 = 1_879_048_192;

/// A line from runtime to launcher.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum ToLauncher {
    /// Make a box.
    Create {
        /// Repeated in the answer.
        id: u64,
        /// What to make.
        spec: Box<BoxSpec>,
    },
    /// End a box and verify that nothing of it is left. Succeeds when there is none.
    Remove {
        /// Repeated in the answer.
        id: u64,
        /// Which one.
        sandbox: SandboxId,
    },
    /// Say which boxes there are. Those that are kept ready for nobody yet are not among them.
    List {
        /// Repeated in the answer.
        id: u64,
    },
    /// Keep boxes of one kind ready, each with a kernel in it that takes code. They are made one
    /// after the other, with pauses that leave the processor to people's code.
    KeepReady {
        /// Repeated in the answer.
        id: u64,
        /// Which kind.
        kind: BoxKind,
        /// How many; 0 ends those that are ready.
        count: u32,
    },
    /// Say how many boxes are ready, and how templates do.
    Measure {
        /// Repeated in the answer.
        id: u64,
    },
    /// End every box, and then the launcher, also one that stays. The end of the line answers.
    End,
}

/// What boxes have in common that can stand in for each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoxKind {
    /// Who may share a template: an organization's id, else a workspace's. Never empty.
    pub trust_domain: String,
    /// How the kernel comes into being.
    pub start: Start,
    /// Hard limits.
    pub limits: Limits,
    /// Layers of the root, topmost first, relative to the data folder.
    pub layers: Vec<String>,
}

/// What to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoxSpec {
    /// Which sandbox this is.
    pub sandbox: SandboxId,
    /// What kind of box. One that is ready is taken, where there is one of this kind.
    pub kind: BoxKind,
    /// Whose requests the agent obeys.
    pub keys: Vec<PublicKey>,
    /// How much may be pushed in.
    pub input_limits: InputLimits,
    /// After so many milliseconds without a request or a running program, what runs is ended and
    /// the workspace kept.
    pub idle_limit_ms: Option<u64>,
    /// Whether its agent obeys nothing but a claim until it gets one.
    #[serde(default)]
    pub is_unclaimed: bool,
    /// When the box has to be gone, in milliseconds since 1970 (UTC), whatever happens.
    pub hard_deadline_ms: Option<i64>,
    /// Protections that are left out, to see that a check notices. Only in a test build.
    #[cfg(feature = "mutations")]
    #[serde(default)]
    pub mutations: Vec<crate::mutation::Mutation>,
}

/// A line from launcher to runtime.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum FromLauncher {
    /// The pod is made; boxes can be.
    Ready(PodFacts),
    /// A box is made and its agent started.
    Created {
        /// From the request.
        id: u64,
        /// What was made.
        facts: BoxFacts,
    },
    /// A box is gone and nothing of it is left.
    Removed {
        /// From the request.
        id: u64,
    },
    /// The boxes there are.
    Listed {
        /// From the request.
        id: u64,
        /// All of them.
        boxes: Vec<BoxFacts>,
    },
    /// The boxes of a kind are being made, or ended.
    Kept {
        /// From the request.
        id: u64,
    },
    /// How many boxes are ready, and how templates do.
    Measured {
        /// From the request.
        id: u64,
        /// One for each kind that is kept ready.
        pools: Vec<PoolFacts>,
        /// Every template that lives.
        templates: Vec<TemplateFacts>,
        /// Memory that all boxes and templates use together, in bytes; nothing where memory is not
        /// counted.
        memory_bytes: Option<u64>,
    },
    /// A request could not be fulfilled; nothing of it is left behind.
    Failed {
        /// From the request; 0 when the launcher itself could not start.
        id: u64,
        /// Why.
        fault: Fault,
    },
    /// A box has ended by itself and was cleaned up.
    Ended {
        /// Which one.
        sandbox: SandboxId,
        /// How.
        end: BoxEnd,
    },
}

/// What is true of all boxes of one launcher.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodFacts {
    /// Whether agent and workload have ids of their own.
    pub two_ids: bool,
    /// 1 or 2; 0 where there are no control groups and that was accepted.
    pub cgroup_version: u8,
    /// The Landlock version of this machine's kernel; 0 where there is none and that was accepted.
    pub landlock_abi: u32,
    /// Protections that are missing and were accepted by name.
    pub weaker: Vec<Weakness>,
}

/// A box that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoxFacts {
    /// Which sandbox it is.
    pub sandbox: SandboxId,
    /// Where the agent listens.
    pub socket: PathBuf,
    /// The agent's process id as the host sees it.
    pub pid: i32,
    /// The ids inside.
    pub ids: AgentIds,
    /// The host ids that agent and workload have.
    pub host_ids: AgentIds,
    /// When it has to be gone, in milliseconds since 1970 (UTC).
    pub hard_deadline_ms: Option<i64>,
    /// The boot epoch of its agent, where that has said it.
    pub agent_epoch: Option<Epoch>,
    /// Whether it had been made before it was asked for.
    pub was_ready: bool,
    /// Microseconds that each step of the making took, in order.
    pub stages_us: Vec<(String, u64)>,
}

/// The boxes of one kind that are kept ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolFacts {
    /// Which kind.
    pub kind: BoxKind,
    /// How many are to be ready.
    pub wanted: u32,
    /// How many are.
    pub ready: u32,
    /// How many times a box of this kind was asked for and one was ready.
    pub hits: u64,
    /// How many times none was.
    pub misses: u64,
    /// How many were ended because they had become too old, or their template had.
    pub aged_out: u64,
    /// Microseconds that the last one took, from the first step to a kernel that takes code.
    pub last_refill_us: u64,
    /// Milliseconds since the oldest one became ready; 0 where there is none.
    pub oldest_ms: u64,
}

/// A process that kernels are copied from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateFacts {
    /// Whose it is.
    pub trust_domain: String,
    /// Whether kernels can be copied from it already.
    pub ready: bool,
    /// How many kernels were.
    pub kernels: u64,
    /// Milliseconds since it was started.
    pub age_ms: u64,
    /// Its process id as the host sees it.
    pub pid: i32,
}

/// How a box came to an end without being asked to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum BoxEnd {
    /// The agent exited by itself.
    AgentExited {
        /// Its exit status.
        code: i32,
    },
    /// The agent was ended by a signal.
    AgentKilled {
        /// The signal's number.
        signal: i32,
        /// Whether memory had run out.
        out_of_memory: bool,
    },
    /// The hard deadline came.
    DeadlineReached,
}

impl std::fmt::Display for BoxEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AgentExited { code } => write!(f, "its agent ended with exit status {code}"),
            Self::AgentKilled {
                out_of_memory: true,
                ..
            } => f.write_str("its agent was ended because memory ran out"),
            Self::AgentKilled { signal, .. } => write!(
                f,
                "its agent was ended by {}",
                glovebox_protocol::event::signal_name(*signal)
            ),
            Self::DeadlineReached => f.write_str(HARD_LIMIT_REACHED),
        }
    }
}

/// Why something could not be done: what was being done, with what, why it failed, what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{doing}: {cause}")]
pub struct Fault {
    /// Which kind of failure.
    pub kind: FaultKind,
    /// What was being done, and with what.
    pub doing: String,
    /// Why it failed.
    pub cause: String,
    /// What to do about it.
    pub fix: Option<String>,
}

/// Kinds of failure a caller can act on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FaultKind {
    /// A protection cannot be had on this machine and its lack was not accepted.
    Weaker {
        /// Which.
        weakness: Weakness,
    },
    /// There is no room for another box.
    Exhausted,
    /// The request cannot be fulfilled as it stands.
    Invalid,
    /// Another launcher holds the run folder.
    Held,
    /// Anything else.
    Failed,
}
