//! What the API shows: plain documents, made from what the store and the use cases know.

mod artifacts;
mod audit;
mod people;
mod profiles;
mod sandboxes;
mod workspaces;

pub(crate) use artifacts::ArtifactView;
pub(crate) use audit::AuditView;
pub(crate) use people::{ApiKeyView, MemberView, SessionView, UserView};
pub(crate) use profiles::ProfileDetailView;
pub(crate) use sandboxes::{ClassName, ExecutionView, SandboxView};
pub(crate) use workspaces::{ChangeQuotas, CodeExecutionView, DeniedView, WorkspaceView};
