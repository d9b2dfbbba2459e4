//! Files of a sandbox: pushed in, listed, fetched, deleted.

use glovebox_client::AgentClient;
use glovebox_protocol::file::{FileName, Listing, Transferred};
use glovebox_protocol::ids::SandboxId;
use glovebox_store::{Access, LeaseState};

use super::App;
use super::sandboxes::{SandboxError, gone};

impl App {
    /// A client of the agent in a sandbox that the caller may see, for its files, and the largest
    /// file that may be pushed in, in bytes.
    ///
    /// Files start nothing and run nothing, so the gate is not asked: a key without the scope to
    /// run code can fetch what code has made, also when code execution has been switched off
    /// meanwhile. The agent is there in a suspended sandbox too.
    ///
    /// # Errors
    /// When there is none, or it has ended.
    pub async fn files_of(
        &self,
        access: &Access,
        sandbox: SandboxId,
    ) -> Result<(AgentClient, u64), SandboxError> {
        let lease = self.store().lease_of(access, sandbox).await?;
        let lease = lease.ok_or(SandboxError::NotFound)?;
        if lease.state == LeaseState::Ended {
            return Err(gone(&lease));
        }
        let profile = self.store().profile(lease.profile_id).await?;
        let profile = profile.ok_or(SandboxError::NotFound)?;
        self.store().touch_lease(lease.id).await?;
        Ok((self.agent(sandbox), profile.settings.max_input_file_bytes))
    }

    /// The files of a sandbox after `after`, in order.
    ///
    /// # Errors
    /// As for [`App::files_of`], and when the runtime does not answer.
    pub async fn list_files(
        &self,
        access: &Access,
        sandbox: SandboxId,
        after: Option<&FileName>,
    ) -> Result<Listing, SandboxError> {
        let (agent, _) = self.files_of(access, sandbox).await?;
        Ok(agent.list(after).await?)
    }

    /// Pushes a file in that lies in a temporary file of this machine, as its hash has to be
    /// known before its first byte goes out.
    ///
    /// # Errors
    /// As for [`App::files_of`]; when it is over a limit.
    pub async fn put_file(
        &self,
        access: &Access,
        sandbox: SandboxId,
        name: &FileName,
        spooled: &std::path::Path,
    ) -> Result<Transferred, SandboxError> {
        let (agent, _) = self.files_of(access, sandbox).await?;
        Ok(agent.put_path(name, spooled).await?)
    }

    /// Deletes a file.
    ///
    /// # Errors
    /// As for [`App::files_of`]; when there is none.
    pub async fn delete_file(
        &self,
        access: &Access,
        sandbox: SandboxId,
        name: &FileName,
    ) -> Result<(), SandboxError> {
        let (agent, _) = self.files_of(access, sandbox).await?;
        Ok(agent.delete(name).await?)
    }
}
