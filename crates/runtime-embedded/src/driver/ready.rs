//! Sandboxes that are made before anybody asks for them, and what the launcher says of them.

use std::time::Duration;

use glovebox_box::control::{BoxFacts, BoxKind, PoolFacts, TemplateFacts};
use glovebox_runtime::ReadyKind;

/// What the launcher calls a kind.
pub(super) fn on(kind: ReadyKind, layers: Vec<String>) -> BoxKind {
    BoxKind {
        trust_domain: kind.trust_domain,
        start: kind.start,
        limits: kind.limits,
        layers,
    }
}

/// How the sandboxes that are kept ready do, and the templates that kernels are copied from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Measured {
    /// One for each kind that is kept ready.
    pub pools: Vec<Pool>,
    /// Every template that lives.
    pub templates: Vec<Template>,
    /// Memory that all sandboxes and templates use together, in bytes; nothing where memory is not
    /// counted.
    pub memory_bytes: Option<u64>,
}

impl Measured {
    /// The pool of one kind, where such sandboxes are kept ready.
    #[must_use]
    pub fn pool(&self, kind: &ReadyKind) -> Option<&Pool> {
        self.pools.iter().find(|pool| pool.kind == *kind)
    }

    /// The template of one trust domain, where there is one that can be copied.
    #[must_use]
    pub fn template(&self, trust_domain: &str) -> Option<&Template> {
        self.templates
            .iter()
            .find(|template| template.trust_domain == trust_domain && template.is_ready)
    }
}

/// The sandboxes of one kind that are kept ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// Which kind.
    pub kind: ReadyKind,
    /// How many are to be ready.
    pub wanted: u32,
    /// How many are.
    pub ready: u32,
    /// How often one was asked for and there was one.
    pub hits: u64,
    /// How often there was none, and one was made.
    pub misses: u64,
    /// How many were ended unused because they, or their template, had become too old.
    pub aged_out: u64,
    /// How long the last one took to make, up to a kernel that takes code.
    pub last_refill: Duration,
    /// How long the oldest one has been ready; zero where there is none.
    pub oldest: Duration,
}

/// A process that kernels are copied from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// Whose it is.
    pub trust_domain: String,
    /// Whether kernels can be copied from it already.
    pub is_ready: bool,
    /// How many were.
    pub kernels: u64,
    /// How long ago it was started.
    pub age: Duration,
    /// Its process id on this machine.
    pub pid: i32,
}

/// How the launcher made a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// Whether it had been made before it was asked for.
    pub was_ready: bool,
    /// How long each step took, in order.
    pub steps: Vec<(String, Duration)>,
}

impl From<&BoxFacts> for Made {
    fn from(facts: &BoxFacts) -> Self {
        let steps = facts.stages_us.iter();
        Self {
            was_ready: facts.was_ready,
            steps: steps
                .map(|(step, micros)| (step.clone(), Duration::from_micros(*micros)))
                .collect(),
        }
    }
}

impl From<PoolFacts> for Pool {
    fn from(facts: PoolFacts) -> Self {
        let BoxKind {
            trust_domain,
            start,
            limits,
            layers: _,
        } = facts.kind;
        Self {
            kind: ReadyKind {
                trust_domain,
                start,
                limits,
            },
            wanted: facts.wanted,
            ready: facts.ready,
            hits: facts.hits,
            misses: facts.misses,
            aged_out: facts.aged_out,
            last_refill: Duration::from_micros(facts.last_refill_us),
            oldest: Duration::from_millis(facts.oldest_ms),
        }
    }
}

impl From<TemplateFacts> for Template {
    fn from(facts: TemplateFacts) -> Self {
        Self {
            trust_domain: facts.trust_domain,
            is_ready: facts.ready,
            kernels: facts.kernels,
            age: Duration::from_millis(facts.age_ms),
            pid: facts.pid,
        }
    }
}
