//! What chat can do in a workspace, told before anybody tries.

use glovebox_protocol::limits::InputLimits;
use glovebox_store::{Access, Permission, StoreError};

use super::App;
use super::gate::{self, DEPLOYMENT, Denial, Deployment};
use crate::chat;

/// How many files can be sent with one message.
pub const MAX_FILES: usize = 20;

/// How long code may run where no profile says so, in seconds.
const EXECUTION_SECONDS: u32 = 60;

/// What files of a workspace may be like.
#[derive(Debug, Clone, Copy)]
pub struct FileLimits {
    /// The largest file, in bytes.
    pub file_bytes: u64,
    /// All files of a sandbox together, in bytes.
    pub total_bytes: u64,
    /// How long one step of code may run, in seconds.
    pub execution_seconds: u32,
}

/// What chat can do for somebody.
#[derive(Debug, Clone)]
pub struct ChatInfo {
    /// Whether whoever asks may begin threads and write into shared ones.
    pub may_write: bool,
    /// The model that answers words; where there is none, chat runs code that people type.
    pub model: Option<String>,
    /// What files may be like.
    pub limits: FileLimits,
    /// Why code cannot run, where it cannot.
    pub denial: Option<Denial>,
}

impl App {
    /// What chat can do in a workspace. Asks the gate without keeping its answer: nothing was tried.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn chat_info(&self, access: &Access) -> Result<ChatInfo, StoreError> {
        let decided = gate::decide(self.store(), self.break_glass(), access, None).await?;
        Ok(ChatInfo {
            may_write: access.may(Permission::Write),
            model: chat::model_name(self).await?,
            limits: self.file_limits(access).await?,
            denial: decided.err(),
        })
    }

    /// The limits of files in a workspace: those of its profile, whether code may run or not.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(crate) async fn file_limits(&self, access: &Access) -> Result<FileLimits, StoreError> {
        let store = self.store();
        let deployment: Deployment = store.setting(DEPLOYMENT).await?.unwrap_or_default();
        let resolved = match store.workspace(access.workspace()).await? {
            Some(workspace) => gate::resolve(store, &deployment, &workspace).await?,
            None => None,
        };
        Ok(match resolved {
            Some((profile, _)) => FileLimits {
                file_bytes: profile.settings.max_input_file_bytes,
                total_bytes: profile.settings.max_input_total_bytes,
                execution_seconds: profile.settings.execution_seconds,
            },
            None => {
                let usual = InputLimits::default();
                FileLimits {
                    file_bytes: usual.file_bytes,
                    total_bytes: usual.total_bytes,
                    execution_seconds: EXECUTION_SECONDS,
                }
            }
        })
    }
}
