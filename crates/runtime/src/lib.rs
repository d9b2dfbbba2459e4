//! What a runtime is: the trait, what it is asked for, what it can promise.
//!
//! A runtime makes sealed sandboxes and gives a byte stream to the agent in each. Everything
//! else (files, processes, kernels, artifacts) is the agent's protocol and written once. This
//! crate makes no sandbox itself.

#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
mod examine;
#[cfg(feature = "fake")]
mod fake;
mod kinds;
mod making;
mod ready;
mod spec;

pub use error::{Cause, RuntimeError};
pub use examine::Examined;
#[cfg(feature = "fake")]
pub use fake::{FakeRuntime, Fault};
pub use glovebox_protocol::capability::{Capabilities, Capability};
pub use kinds::ReadyKind;
pub use making::{Maker, make_to_the_end};
pub use ready::{AgentConnector, agent_answers};
pub use spec::{InvalidSpec, SandboxSpec, Start, ValidatedSpec, check_limits};

use std::future::Future;
use std::pin::Pin;

use glovebox_protocol::ids::SandboxId;
use glovebox_protocol::sign::Epoch;

pub use glovebox_client::ByteStream as AgentStream;

/// What a method of [`Runtime`] returns.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T, RuntimeError>> + Send + 'a>>;

/// Makes sandboxes. Every driver passes the conformance suite of this crate.
///
/// Legal order: `create`, then any number of `inspect`, `connect` and `list`, then `stop` or
/// `remove`. All calls may be made at once from several tasks. Dropping a returned future may
/// leave the call running; it leaves nothing half made.
pub trait Runtime: Send + Sync {
    /// Says what this runtime is and what it can enforce. Costs nothing.
    fn describe(&self) -> Description;

    /// Makes a sandbox whose agent answers. Leaves nothing behind on failure.
    ///
    /// A driver refuses what it cannot enforce ([`RuntimeError::Unsupported`]); it never ignores
    /// part of a spec. Creating an id that exists is [`RuntimeError::AlreadyExists`].
    fn create(&self, spec: ValidatedSpec) -> Reply<'_, Sandbox>;

    /// What is known of a sandbox: running, or ended and why. [`RuntimeError::NotFound`] for one
    /// that was never made or was removed.
    fn inspect(&self, id: SandboxId) -> Reply<'_, Sandbox>;

    /// All sandboxes of this installation, in no particular order.
    fn list(&self) -> Reply<'_, Vec<Sandbox>>;

    /// A new byte stream to the agent. [`RuntimeError::NotFound`] when the sandbox has ended.
    fn connect(&self, id: SandboxId) -> Reply<'_, Box<dyn AgentStream>>;

    /// Ends a sandbox's processes, all of them, and verifies it. What `inspect` says stays until
    /// `remove`. Ending one that has ended, or that is not there, succeeds.
    fn stop(&self, id: SandboxId) -> Reply<'_, ()>;

    /// Ends a sandbox and forgets it, workspace included. Removing one that is not there
    /// succeeds.
    fn remove(&self, id: SandboxId) -> Reply<'_, ()>;

    /// Whether sandboxes are made of images. Costs nothing.
    fn has_images(&self) -> bool {
        false
    }

    /// Looks at the host: whether it can do what sandboxes need, and what there is to make them
    /// of. `images` are the repositories that may be used; where the runtime has none, it is not
    /// looked at. A runtime that cannot be reached is an error, not a check.
    fn examine<'a>(&'a self, images: &'a [String]) -> Reply<'a, Examined> {
        let _ = images;
        Box::pin(std::future::ready(Ok(Examined::default())))
    }

    /// Keeps so many sandboxes of each of these kinds ready from now on, and none of any other, so
    /// that who asks for one has it at once. A runtime that keeps none refuses any
    /// ([`RuntimeError::Unsupported`]).
    fn keep_only_ready(&self, wanted: Vec<(ReadyKind, u32)>) -> Reply<'_, ()> {
        let refusal = (!wanted.is_empty()).then(|| RuntimeError::Unsupported {
            what: "sandboxes that are kept ready".into(),
            fix: Some("keep none ready on this runtime".into()),
            cause: None,
        });
        Box::pin(std::future::ready(refusal.map_or(Ok(()), Err)))
    }

    /// Memory that all sandboxes together use now, in bytes; nothing where the runtime cannot
    /// tell.
    fn memory_used(&self) -> Reply<'_, Option<u64>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

/// What a runtime says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Its name, such as `embedded`.
    pub name: &'static str,
    /// What it can enforce.
    pub capabilities: Capabilities,
}

/// One sandbox as its runtime sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// Which one.
    pub id: SandboxId,
    /// Whether it runs.
    pub state: SandboxState,
    /// When it has to be gone, in milliseconds since 1970 (UTC).
    pub hard_deadline_ms: Option<i64>,
    /// The boot epoch of its agent, where that is known without asking it: as a rule when it has
    /// just been made.
    pub agent_epoch: Option<Epoch>,
}

/// Whether a sandbox runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SandboxState {
    /// Its agent answers.
    Running,
    /// It has ended.
    Ended {
        /// Why, in words.
        reason: String,
    },
}
