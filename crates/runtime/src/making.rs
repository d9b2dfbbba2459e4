//! Making a sandbox to the end, whether or not somebody still waits for it.

use std::sync::Arc;

use glovebox_protocol::ids::SandboxId;
use tokio::task::JoinHandle;

use crate::{Reply, RuntimeError, Sandbox, ValidatedSpec};

/// What makes sandboxes and takes them away, as a driver knows how.
pub trait Maker: Send + Sync + 'static {
    /// Makes one, and leaves nothing behind where that fails.
    fn make(self: Arc<Self>, spec: ValidatedSpec) -> Reply<'static, Sandbox>;

    /// Ends one and forgets it.
    fn take_down(self: Arc<Self>, id: SandboxId) -> Reply<'static, ()>;
}

/// Begins to make a sandbox at once, in a task of its own. Where what is returned is dropped before
/// it is made, it is taken down as soon as it is: it is never left half made, and never left to
/// nobody.
pub fn make_to_the_end<M: Maker>(maker: Arc<M>, spec: ValidatedSpec) -> Reply<'static, Sandbox> {
    let id = spec.get().id;
    let task = tokio::spawn(Arc::clone(&maker).make(spec));
    let making = Making {
        maker,
        id,
        task: Some(task),
    };
    Box::pin(making.ended())
}

/// A sandbox that is being made.
struct Making<M: Maker> {
    maker: Arc<M>,
    id: SandboxId,
    task: Option<JoinHandle<Result<Sandbox, RuntimeError>>>,
}

impl<M: Maker> Making<M> {
    async fn ended(mut self) -> Result<Sandbox, RuntimeError> {
        let Some(task) = self.task.as_mut() else {
            return Err(RuntimeError::NotFound {
                id: self.id,
                reason: None,
            });
        };
        let result = task.await;
        self.task = None;
        result.unwrap_or_else(|error| {
            Err(RuntimeError::Internal {
                doing: format!("making the sandbox {}", self.id),
                cause: error.into(),
            })
        })
    }
}

impl<M: Maker> Drop for Making<M> {
    fn drop(&mut self) {
        let Some(task) = self.task.take() else {
            return;
        };
        // Without an event loop the program is ending: then the sandbox goes with what holds it, or
        // is found at the next start.
        let Ok(event_loop) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let (maker, id) = (Arc::clone(&self.maker), self.id);
        event_loop.spawn(async move {
            if matches!(task.await, Ok(Ok(_))) {
                // The same where it cannot be taken down now.
                let _ = maker.take_down(id).await;
            }
        });
    }
}
