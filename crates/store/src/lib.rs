//! What a server remembers: rows in SQLite or PostgreSQL from one set of statements, secrets
//! sealed among them, and files in an object store.
//!
//! One file per noun. Nothing here decides who may do what; but rows that belong to a workspace
//! are only read and changed with an [`Access`] as proof that somebody may look there at
//! all, or by what acts for the system itself and says so.

mod access;
mod api_key;
mod artifact;
mod attachment;
mod audit;
mod backup;
mod database;
mod denial;
mod error;
mod execution;
mod forget;
mod knowledge;
mod lease;
mod lease_end;
mod leftovers;
mod member;
mod message;
mod migrate;
mod model;
mod new_upload;
mod objects;
#[cfg(test)]
mod plans;
mod preview;
mod preview_source;
mod profile;
mod purge;
mod quota;
mod revoke;
mod secret;
mod session;
mod setting;
mod staged;
mod task;
mod thread;
mod thread_history;
mod token;
mod uploaded_name;
mod user;
mod words;
mod workspace;

pub use access::{Access, Permission};
pub use api_key::{ApiKey, KeyScope, NewApiKey};
pub use artifact::{Artifact, ArtifactFilter, NewArtifact};
pub use attachment::{Attachment, NewAttachment};
pub use audit::{Actor, ActorKind, AuditEntry, AuditFilter, Entry};
pub use backup::{BackedUp, BackedUpFile, Backup, BackupError, Restored};
pub use database::{Backend, Store, Transaction};
pub use denial::DenialRow;
pub use error::StoreError;
pub use execution::{Execution, ExecutionState, NewExecution, Placed};
pub use knowledge::{KnowledgeFile, NewKnowledgeFile};
pub use lease::{EndedWhy, Lease, LeaseNames, LeasePurpose, LeaseState, NewLease};
pub use leftovers::{is_unfinished_object, remove_leftovers};
pub use member::{Member, Role};
pub use message::{Message, MessageRole, MessageState, NewMessage, PlacedMessage};
pub use model::{Model, ModelSettings};
pub use new_upload::NewUpload;
pub use objects::{ObjectKey, Objects, Upload};
pub use preview::{NewPreview, Preview, PreviewPart, PreviewState};
pub use preview_source::{PreviewSource, SourceFile};
pub use profile::{
    Acknowledgement, CheckKind, CheckRecord, Profile, ProfileSettings, ProfileState,
};
pub use quota::{Meters, QuotaReached};
pub use revoke::Revoked;
pub use secret::{MasterKey, SENTINEL, Sealed};
pub use session::{NewSession, Session};
pub use staged::Staged;
pub use task::{NewTask, Task, TaskStanding};
pub use thread::{NewThread, Thread, ThreadPlace, UNTITLED, plain_title};
pub use token::{Token, TokenHash};
pub use uploaded_name::UploadedName;
pub use user::{NewUser, User};
pub use words::UnknownWord;
pub use workspace::{Quotas, Workspace};
