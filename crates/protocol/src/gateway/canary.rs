//! The canary: what a sandbox must not be able to reach, and what a throwaway one found.
//!
//! The gateway says where to try, the sender runs the attempts in a sandbox with its own
//! signature, and the gateway says what its own end saw.

use serde::{Deserialize, Serialize};

use crate::agent_config::Start;

/// What is to be tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case", deny_unknown_fields)]
pub enum Reach {
    /// A TCP connection.
    Tcp {
        /// Address, version 4 or 6.
        address: String,
        /// Port.
        port: u16,
    },
    /// A name that the outside knows.
    Dns {
        /// The name.
        name: String,
        /// Who is asked for it, over UDP, beside the resolvers that the sandbox itself knows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resolver: Option<Resolver>,
    },
    /// Interfaces that there are beside the loopback.
    Interfaces,
    /// Routes that lead anywhere else than to the loopback.
    Routes,
    /// A socket that listens at this TCP port, in the list of all that the network namespace has.
    ListedSocket {
        /// Port.
        port: u16,
    },
    /// The network namespace of this number: being in it.
    NetworkNamespace {
        /// Its number, as the kernel names it.
        number: u64,
    },
    /// A Unix socket in the abstract name space.
    AbstractSocket {
        /// Its name, without the leading NUL.
        name: String,
    },
    /// A Unix socket inside the sandbox, which the attempt itself opens: the positive control.
    OwnSocket,
}

/// Somebody who may know names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resolver {
    /// Address, version 4 or 6.
    pub address: String,
    /// Port.
    pub port: u16,
}

/// What has to come of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Expected {
    /// Nothing may get through.
    Blocked,
    /// It has to get through: this shows that the attempts are real ones.
    Open,
}

/// One attempt to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CanaryTarget {
    /// Stable name, such as `metadata_v4`, `host_gateway_ssh`, `positive_control`.
    pub id: String,
    /// What to try.
    pub reach: Reach,
    /// What has to come of it.
    pub expected: Expected,
    /// Whether the gateway itself got through to it just now, or found what a look around is to
    /// find nothing of; nothing where it did not try, as with everything outside of its host.
    #[serde(default)]
    pub answers_gateway: Option<bool>,
}

/// Answer to `POST /v1/canary`, which has no body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CanaryPlan {
    /// What to try, in order.
    pub targets: Vec<CanaryTarget>,
    /// How long one attempt may take, in milliseconds.
    pub attempt_limit_ms: u64,
    /// Until when the gateway keeps its own targets open, in milliseconds since 1970 (UTC).
    pub open_until_ms: i64,
}

/// What came of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Verdict {
    /// Nothing got through.
    Blocked,
    /// Something got through.
    Open,
}

/// What came of one attempt, and how that is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CanaryResult {
    /// Which target's.
    pub id: String,
    /// How the kernel of the sandbox came into being that it was tried in: with `fresh` by a
    /// program, with `template` in the kernel itself, which is the copy.
    #[serde(default = "fresh")]
    pub start: Start,
    /// What came of it.
    pub verdict: Verdict,
    /// How it was tried and what was seen, in a sentence; from inside of the sandbox.
    pub how: String,
    /// How long it took, in microseconds.
    pub took_us: u64,
}

const fn fresh() -> Start {
    Start::Fresh
}

/// What all attempts say together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CanaryReport {
    /// Every target with its result, in the plan's order; all of them once for each start.
    pub results: Vec<(CanaryTarget, CanaryResult)>,
}

impl CanaryReport {
    /// The targets that came out otherwise than they have to, the positive control among them.
    pub fn wrong(&self) -> impl Iterator<Item = &(CanaryTarget, CanaryResult)> {
        self.results.iter().filter(|(target, result)| {
            !matches!(
                (target.expected, result.verdict),
                (Expected::Blocked, Verdict::Blocked) | (Expected::Open, Verdict::Open)
            )
        })
    }
}
