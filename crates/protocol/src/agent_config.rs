//! What the launcher hands an agent at its start, once, over an inherited descriptor.

use serde::{Deserialize, Serialize};

use crate::ids::{InstallationId, SandboxId};
use crate::limits::{InputLimits, Limits};
use crate::sign::PublicKey;

/// An agent's configuration. It holds no secret: whoever reads it can command nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentConfig {
    /// Whose sandbox this is. `None` in a box that is made in advance: then it comes over the
    /// launcher's line, once, and until then no request is answered.
    pub claim: Option<Claim>,
    /// The limits the sandbox was made with; the agent names them in messages.
    pub limits: Limits,
    /// Where the kernel comes from.
    pub start: Start,
    /// Which ids agent and workload have.
    pub ids: AgentIds,
    /// The program that turns a fresh process into a sealed workload; see the exec helper of
    /// `crates/box`.
    pub exec_helper: String,
    /// The Python of the sandbox.
    pub python: String,
    /// Descriptors that the agent inherits.
    pub fds: AgentFds,
}

/// What makes a box somebody's sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Which sandbox this is; the audience of every signed request.
    pub sandbox: SandboxId,
    /// Which installation it belongs to.
    pub installation: InstallationId,
    /// The keys whose requests are obeyed: one, or two during a rotation.
    pub keys: Vec<PublicKey>,
    /// How much may be pushed in.
    pub input_limits: InputLimits,
    /// After so many milliseconds without a request or a running program, what runs is ended and
    /// the workspace kept; never where it is `None`.
    pub idle_limit_ms: Option<u64>,
    /// Made in advance by whoever holds the keys: until it is claimed with `POST /v1/claim`, only
    /// that and what asks about the sandbox is obeyed.
    #[serde(default)]
    pub is_unclaimed: bool,
}

/// How a sandbox's kernel comes into being.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// As a copy of a process that has the libraries loaded already and never ran anybody's code.
    /// All copies of one such process have its address-space layout and its hash seed.
    #[default]
    Template,
    /// By a program start of its own.
    Fresh,
}

/// The ids inside a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentIds {
    /// User and group id of the agent.
    pub agent: u32,
    /// User and group id of the workload. The same as the agent's in one-id mode.
    pub workload: u32,
}

impl AgentIds {
    /// The agent's id where two can be had.
    pub const AGENT: u32 = 999;
    /// The workload's id.
    pub const WORKLOAD: u32 = 1000;

    /// Whether agent and workload are told apart by id.
    #[must_use]
    pub const fn are_separate(&self) -> bool {
        self.agent != self.workload
    }
}

/// Descriptors that the agent inherits, by number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentFds {
    /// The listening Unix socket.
    pub listener: i32,
    /// The line to the launcher, a socket that keeps packets apart; see
    /// [`crate::launcher_line`]. `None` where there is no launcher.
    pub launcher: Option<i32>,
    /// The door of the workload's control group, one per hierarchy: a process with one thread
    /// that writes `0` moves itself in. Open for the exec helper, which closes them; empty where
    /// the whole sandbox is one control group.
    pub workload_cgroups: Vec<i32>,
    /// Where kills by the out-of-memory killer are counted, and in which form.
    pub oom_events: Option<OomEvents>,
}

/// A file whose `oom_kill` line counts kills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OomEvents {
    /// The open file; read it again from its start each time.
    pub fd: i32,
}

impl OomEvents {
    /// The number in the line `oom_kill N` of such a file, which both versions of control groups
    /// have; 0 when there is none.
    #[must_use]
    pub fn kills(text: &[u8]) -> u64 {
        std::str::from_utf8(text)
            .unwrap_or_default()
            .lines()
            .find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
            .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_of_kills_is_found_in_both_versions() {
        for (text, kills) in [
            ("low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\n".as_bytes(), 2),
            (b"oom_kill_disable 0\nunder_oom 0\noom_kill 7\n", 7),
            (b"", 0),
            (b"\xff", 0),
        ] {
            assert_eq!(OomEvents::kills(text), kills, "{text:?}");
        }
    }
}
