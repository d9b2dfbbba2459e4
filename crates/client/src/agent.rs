//! The client of one agent.

use std::sync::Arc;

use bytes::Bytes;
use glovebox_protocol::PROTOCOL_VERSION;
use glovebox_protocol::artifact::{Sweep, Swept};
use glovebox_protocol::file::{FileName, FileStat, Listing};
use glovebox_protocol::health::{Health, Status};
use glovebox_protocol::ids::{ExecutionId, InstallationId, SandboxId};
use glovebox_protocol::kernel::{Execute, KernelInfo, StartKernel};
use glovebox_protocol::process::{Cancel, StartProcess, WorkloadEnded};
use glovebox_protocol::sign::{BodyDigest, Epoch, SigningKey};
use hyper::header::HOST;
use hyper::{Request, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::body::RequestBody;
use crate::connect::Connector;
use crate::error::ClientError;
use crate::exchange::{Head, Link};
use crate::execution::Execution;
use crate::pool::{Answer, MAX_ANSWER, refusal};

/// Most bytes of input that one request carries to a program.
const STDIN_BYTES: usize = 256 * 1024;

/// Who speaks to whom: what every request is signed with and for.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The key that the agent was told to obey.
    pub key: Arc<SigningKey>,
    /// The installation that both belong to.
    pub installation: InstallationId,
    /// The sandbox that is meant.
    pub sandbox: SandboxId,
}

/// A client of one agent. Clones share connections. All calls may be made at once.
///
/// ```no_run
/// use glovebox_client::{AgentClient, Identity, UnixConnector};
/// use glovebox_protocol::event::EventBody;
/// use glovebox_protocol::file::FileName;
/// use glovebox_protocol::process::StartProcess;
/// # async fn example(identity: Identity, start: StartProcess) -> Result<(), Box<dyn std::error::Error>> {
/// let client = AgentClient::new(identity, UnixConnector("/run/agent.sock".into()));
/// client.put_path(&FileName::from_bytes("in.csv")?, "in.csv".as_ref()).await?;
/// let mut execution = client.run(&start).await?;
/// while let Some(event) = execution.next().await? {
///     if let EventBody::ExecutionEnded(ended) = event {
///         println!("it {}", ended.outcome);
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct AgentClient {
    pub(crate) link: Arc<Link>,
}

impl AgentClient {
    /// A client that has not connected yet.
    #[must_use]
    pub fn new(identity: Identity, connector: impl Connector + 'static) -> Self {
        Self {
            link: Arc::new(Link::straight(identity, Box::new(connector))),
        }
    }

    /// The same, where the agent's boot epoch is known already: then nobody has to ask for it
    /// before the first request.
    #[must_use]
    pub fn knowing(self, epoch: Option<Epoch>) -> Self {
        if let Some(epoch) = epoch {
            self.link.set_epoch(epoch);
        }
        self
    }

    pub(crate) fn over(link: Link) -> Self {
        Self {
            link: Arc::new(link),
        }
    }

    /// What the agent says of itself unasked. Also learns which epoch to sign for; other calls
    /// do this by themselves.
    ///
    /// # Errors
    /// When the agent cannot be reached or speaks another protocol.
    pub async fn health(&self) -> Result<Health, ClientError> {
        let head = Head {
            method: "GET",
            target: "/v1/health",
            length: 0,
            sha256: BodyDigest::of(b""),
        };
        let mut meant = self.link.meant();
        let (status, answer) = loop {
            let request = Request::get(self.link.address(head.target))
                .header(HOST, "agent")
                .body(RequestBody::Whole(None))
                .map_err(ClientError::Request)?;
            let (status, answer) = self.link.send(request, head).await?;
            // Only a gateway that was started anew can say this, and no more than once.
            if status != StatusCode::UNAUTHORIZED || self.link.meant() == meant {
                break (status, answer);
            }
            meant = self.link.meant();
        };
        if status != StatusCode::OK {
            return Err(refusal(answer).await);
        }
        let health: Health = document(answer).await?;
        if health.protocol != PROTOCOL_VERSION {
            return Err(ClientError::ProtocolMismatch {
                theirs: health.protocol,
            });
        }
        self.link.set_epoch(health.epoch);
        Ok(health)
    }

    /// What the agent says of its sandbox.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn status(&self) -> Result<Status, ClientError> {
        self.get_document("/v1/status").await
    }

    /// What is known of one file, folder or link.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn stat(&self, name: &FileName) -> Result<FileStat, ClientError> {
        self.get_document(&format!("/v1/stat/{}", name.encoded()))
            .await
    }

    /// The names in the workspace after `after`, in order; at most 10 000 in one answer.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn list(&self, after: Option<&FileName>) -> Result<Listing, ClientError> {
        let target = match after {
            None => "/v1/list".into(),
            Some(after) => format!("/v1/list?after={}", after.encoded()),
        };
        self.get_document(&target).await
    }

    /// Removes a file, a link or an empty folder.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn delete(&self, name: &FileName) -> Result<(), ClientError> {
        let target = format!("/v1/files/{}", name.encoded());
        self.send("DELETE", &target, Bytes::new())
            .await?
            .whole(MAX_ANSWER)
            .await?;
        Ok(())
    }

    /// Starts a program. Dropping the returned execution kills it.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn run(&self, start: &StartProcess) -> Result<Execution, ClientError> {
        let answer = self.send("POST", "/v1/processes", json(start)?).await?;
        Ok(Execution::new(answer, start.execution))
    }

    /// Feeds a program that was started with its input from requests, and closes the input with
    /// `eof`. Returns when the program's pipe has taken all of it.
    ///
    /// # Errors
    /// See [`ClientError`]; a conflict when the program does not read any more.
    pub async fn stdin(
        &self,
        execution: ExecutionId,
        mut bytes: Bytes,
        eof: bool,
    ) -> Result<(), ClientError> {
        loop {
            let part = bytes.split_to(bytes.len().min(STDIN_BYTES));
            let last = bytes.is_empty();
            let query = if eof && last { "?eof" } else { "" };
            let target = format!("/v1/processes/{execution}/stdin{query}");
            self.send("POST", &target, part)
                .await?
                .whole(MAX_ANSWER)
                .await?;
            if last {
                return Ok(());
            }
        }
    }

    /// Interrupts or kills a program.
    ///
    /// # Errors
    /// See [`ClientError`]; a conflict when it has ended.
    pub async fn cancel(&self, execution: ExecutionId, how: Cancel) -> Result<(), ClientError> {
        let target = format!("/v1/processes/{execution}/cancel");
        self.send("POST", &target, json(&how)?)
            .await?
            .whole(MAX_ANSWER)
            .await?;
        Ok(())
    }

    /// Starts the kernel, if there is none, and returns when it is ready.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn start_kernel(&self, start: &StartKernel) -> Result<KernelInfo, ClientError> {
        self.post_document("/v1/kernel", json(start)?).await
    }

    /// What is known of the kernel.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn kernel(&self) -> Result<KernelInfo, ClientError> {
        self.get_document("/v1/kernel").await
    }

    /// Ends the kernel.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn shut_down_kernel(&self) -> Result<KernelInfo, ClientError> {
        document(self.send("DELETE", "/v1/kernel", Bytes::new()).await?).await
    }

    /// Ends the kernel and starts a fresh one.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn restart_kernel(&self) -> Result<KernelInfo, ClientError> {
        self.post_document("/v1/kernel/restart", Bytes::new()).await
    }

    /// Interrupts the kernel, or kills it.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn interrupt_kernel(&self, how: Cancel) -> Result<(), ClientError> {
        let answer = self
            .send("POST", "/v1/kernel/interrupt", json(&how)?)
            .await?;
        answer.whole(MAX_ANSWER).await?;
        Ok(())
    }

    /// Interrupts one execute, or kills the kernel that runs it; no other one. One that the agent
    /// has not seen yet is cancelled when it comes.
    ///
    /// # Errors
    /// See [`ClientError`]; a conflict when it has ended.
    pub async fn cancel_execute(
        &self,
        execution: ExecutionId,
        how: Cancel,
    ) -> Result<(), ClientError> {
        let target = format!("/v1/kernel/{execution}/cancel");
        let answer = self.send("POST", &target, json(&how)?).await?;
        answer.whole(MAX_ANSWER).await?;
        Ok(())
    }

    /// Runs code in the kernel. Dropping the returned execution interrupts it.
    ///
    /// # Errors
    /// See [`ClientError`]; a conflict while other code runs.
    pub async fn execute(&self, execute: &Execute) -> Result<Execution, ClientError> {
        let answer = self
            .send("POST", "/v1/kernel/execute", json(execute)?)
            .await?;
        Ok(Execution::new(answer, execute.execution))
    }

    /// Finds out which files may leave.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn sweep(&self, sweep: &Sweep) -> Result<Swept, ClientError> {
        self.post_document("/v1/artifacts/sweep", json(sweep)?)
            .await
    }

    /// Kills everything that runs in the sandbox and returns when nothing is left.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn end_workload(&self) -> Result<WorkloadEnded, ClientError> {
        self.post_document("/v1/workload/end", Bytes::new()).await
    }

    /// Ends the kernel with all that it started, where nothing uses the sandbox at this moment.
    ///
    /// # Errors
    /// See [`ClientError`]; a conflict where something does.
    pub async fn end_unused_workload(&self) -> Result<WorkloadEnded, ClientError> {
        self.post_document("/v1/workload/end?unused", Bytes::new())
            .await
    }

    pub(crate) async fn get_document<T: DeserializeOwned>(
        &self,
        target: &str,
    ) -> Result<T, ClientError> {
        document(self.send("GET", target, Bytes::new()).await?).await
    }

    async fn post_document<T: DeserializeOwned>(
        &self,
        target: &str,
        body: Bytes,
    ) -> Result<T, ClientError> {
        document(self.send("POST", target, body).await?).await
    }

    /// The epoch to sign for, asked for where none is known.
    pub(crate) async fn epoch(&self) -> Result<Epoch, ClientError> {
        match self.link.epoch() {
            Some(epoch) => Ok(epoch),
            None => Ok(self.health().await?.epoch),
        }
    }

    /// Sends a request with a body that is in memory. When the agent, or the gateway on the way,
    /// turns out to be in another life than the one signed for, signs once more.
    pub(crate) async fn send(
        &self,
        method: &str,
        target: &str,
        body: Bytes,
    ) -> Result<Answer, ClientError> {
        let head = Head {
            method,
            target,
            length: body.len() as u64,
            sha256: BodyDigest::of(&body),
        };
        let mut signed_anew = false;
        loop {
            let epoch = self.epoch().await?;
            let meant = self.link.meant();
            let body = RequestBody::Whole(Some(body.clone()));
            let request = self.link.sign(head, epoch, body)?;
            let (status, answer) = self.link.send(request, head).await?;
            if status == StatusCode::OK {
                return Ok(answer);
            }
            let refusal = refusal(answer).await;
            let is_another_life = self.link.meant() != meant;
            if status != StatusCode::UNAUTHORIZED || !is_another_life || signed_anew {
                return Err(refusal);
            }
            signed_anew = true;
        }
    }
}

fn json(document: &impl Serialize) -> Result<Bytes, ClientError> {
    serde_json::to_vec(document)
        .map(Bytes::from)
        .map_err(ClientError::Answer)
}

async fn document<T: DeserializeOwned>(answer: Answer) -> Result<T, ClientError> {
    let body = answer.whole(MAX_ANSWER).await?;
    serde_json::from_slice(&body).map_err(ClientError::Answer)
}
