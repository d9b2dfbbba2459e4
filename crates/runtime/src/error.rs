//! How a runtime can fail.

use glovebox_protocol::ids::SandboxId;

/// The cause of a failure, as its driver knows it.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// How a runtime can fail. The variant says who can do something about it.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// There is no such sandbox, or it has ended.
    #[error("there is no sandbox {id}{}", reason.as_ref().map(|r| format!(": {r}")).unwrap_or_default())]
    NotFound {
        /// Which one was asked for.
        id: SandboxId,
        /// Why it is gone, where that is known.
        reason: Option<String>,
    },
    /// A sandbox with this id exists.
    #[error("a sandbox {id} exists already")]
    AlreadyExists {
        /// Which one.
        id: SandboxId,
    },
    /// The runtime cannot enforce something that was asked for.
    #[error("{what} cannot be enforced here")]
    Unsupported {
        /// What, by its stable name.
        what: String,
        /// What to do about it.
        fix: Option<String>,
        /// What stands in the way.
        #[source]
        cause: Option<Cause>,
    },
    /// Something in the request is wrong.
    #[error("the sandbox cannot be made as asked for")]
    Invalid(#[source] Cause),
    /// There is no room for another sandbox.
    #[error("there is no room for another sandbox")]
    Exhausted(#[source] Cause),
    /// The runtime cannot be reached; trying again may help.
    #[error("{doing}")]
    Unavailable {
        /// What was being done.
        doing: String,
        /// What to do about it.
        fix: Option<String>,
        /// Why it failed.
        #[source]
        cause: Cause,
    },
    /// A fault of the driver.
    #[error("{doing}")]
    Internal {
        /// What was being done.
        doing: String,
        /// Why it failed.
        #[source]
        cause: Cause,
    },
}
