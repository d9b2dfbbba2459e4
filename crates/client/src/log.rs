//! The log of an execution, fetched like a file.

use bytes::Bytes;
use glovebox_protocol::ids::ExecutionId;
use glovebox_protocol::log::{Logged, MAX_LOG_BYTES};
use glovebox_protocol::process::ExecutionState;
use tokio::io::AsyncWrite;

use crate::agent::AgentClient;
use crate::error::ClientError;
use crate::files::receive;

impl AgentClient {
    /// Asks what became of an execution, such as one whose stream was cut. It is never run again
    /// under the same id.
    ///
    /// # Errors
    /// See [`ClientError`]; not found when it never came to the agent.
    pub async fn execution(&self, execution: ExecutionId) -> Result<ExecutionState, ClientError> {
        self.get_document(&format!("/v1/executions/{execution}"))
            .await
    }

    /// Fetches what an execution has written so far into `sink`, also what was over the budget of
    /// its stream: the beginning of it, as far as it is kept.
    ///
    /// # Errors
    /// See [`ClientError`]; not found when it did not run there, or its log made room for later
    /// ones.
    pub async fn log(
        &self,
        execution: ExecutionId,
        sink: &mut (impl AsyncWrite + Unpin + Send),
    ) -> Result<Logged, ClientError> {
        let target = format!("/v1/executions/{execution}/log");
        let answer = self.send("GET", &target, Bytes::new()).await?;
        let (received, said): (_, Logged) = receive(answer, sink, MAX_LOG_BYTES).await?;
        let is_whole = said.execution == execution
            && said.bytes == received.bytes
            && said.sha256 == received.sha256;
        if is_whole {
            Ok(said)
        } else {
            Err(ClientError::CorruptLog { execution })
        }
    }
}
