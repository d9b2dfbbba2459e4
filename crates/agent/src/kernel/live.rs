//! One kernel that takes code, and how it ended.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use glovebox_protocol::agent_config::Start;
use glovebox_protocol::event::{Note, Outcome};
use tokio::sync::watch;

use super::clock::Alarm;
use super::wire::Wire;
use crate::process::Child;

/// How a kernel's process ended.
#[derive(Debug, Clone)]
pub(crate) struct KernelEnd {
    pub(crate) outcome: Outcome,
    pub(crate) notes: Vec<Note>,
}

/// A kernel that is ready.
pub(crate) struct Live {
    pub(crate) child: Child,
    pub(crate) wire: Wire,
    /// Set once its process has ended.
    pub(crate) ended: watch::Receiver<Option<KernelEnd>>,
    pub(crate) language: String,
    /// Where it came from.
    pub(crate) start: Start,
    /// The clock of its calls.
    pub(super) alarm: Option<Alarm>,
    /// How often memory had run out when the present call began: what is more is this call's.
    pub(crate) oom_kills_before: Arc<AtomicU64>,
}

impl Live {
    /// Whether its process has not ended.
    pub(crate) fn is_alive(&self) -> bool {
        self.child.exit().is_none()
    }
}

/// The end of a kernel, once it has come.
pub(crate) async fn end_of(ended: &mut watch::Receiver<Option<KernelEnd>>) -> KernelEnd {
    let end = ended.wait_for(Option::is_some).await;
    end.ok().and_then(|end| end.clone()).unwrap_or(KernelEnd {
        outcome: Outcome::Signaled { signal: 9 },
        notes: Vec::new(),
    })
}
