//! Files of a sandbox: pushed in, listed, fetched, deleted.

use glovebox_client::AgentClient;
use glovebox_protocol::file::{FileName, Listing, Transferred};
use glovebox_protocol::ids::SandboxId;
use glovebox_store::Access;

use super::App;
use super::sandboxes::SandboxError;

impl App {
    /// A client of the agent in a sandbox that the caller may use, for its files.
    ///
    /// # Errors
    /// When there is none, it has ended, or the gate does not let the caller through.
    pub async fn files_of(
        &self,
        access: &Access,
        sandbox: SandboxId,
    ) -> Result<AgentClient, SandboxError> {
        let (lease, _) = self.usable_sandbox(access, sandbox).await?;
        self.store().touch_lease(lease.id).await?;
        Ok(self.agent(sandbox))
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
        let agent = self.files_of(access, sandbox).await?;
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
        let agent = self.files_of(access, sandbox).await?;
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
        let agent = self.files_of(access, sandbox).await?;
        Ok(agent.delete(name).await?)
    }
}
