//! One sandbox, and what can be done in it.

use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use bytes::Bytes;
use glovebox_client::{AgentClient, Execution};
use glovebox_protocol::event::{Ended, EventBody, Outcome};
use glovebox_protocol::file::FileName;
use glovebox_protocol::ids::{ExecutionId, SandboxId};
use glovebox_protocol::kernel::Execute;
use glovebox_protocol::process::{StartProcess, Stdin};

/// Nothing that is measured takes longer, in milliseconds.
const TIME_LIMIT_MS: u64 = 120_000;

/// Where a sandbox is; can be taken to another thread and opened there.
#[derive(Clone)]
pub(crate) struct Place {
    id: SandboxId,
    way: Arc<dyn Fn() -> AgentClient + Send + Sync>,
}

impl Place {
    /// The place of a sandbox, and how a client of its agent is made.
    pub(crate) fn new(
        id: SandboxId,
        way: impl Fn() -> AgentClient + Send + Sync + 'static,
    ) -> Self {
        Self {
            id,
            way: Arc::new(way),
        }
    }

    /// A client with connections of its own, which belong to the event loop that it is used in.
    pub(crate) fn open(self) -> Sandbox {
        Sandbox::new((self.way)(), self)
    }
}

/// One sandbox and a client of its agent.
pub(crate) struct Sandbox {
    client: AgentClient,
    place: Place,
}

impl Sandbox {
    /// A sandbox through a client of its own.
    pub(crate) const fn new(client: AgentClient, place: Place) -> Self {
        Self { client, place }
    }

    /// Which one it is.
    pub(crate) const fn id(&self) -> SandboxId {
        self.place.id
    }

    /// Where it is.
    pub(crate) fn place(&self) -> Place {
        self.place.clone()
    }

    /// Starts `python3 -c CODE`.
    ///
    /// # Errors
    /// When the agent refuses.
    pub(crate) async fn start_python(&self, code: &str) -> Result<Running> {
        let start = StartProcess {
            execution: ExecutionId::new(),
            argv: ["python3", "-c", code].map(Into::into).into(),
            env: std::collections::BTreeMap::default(),
            stdin: Stdin::Empty,
            time_limit_ms: TIME_LIMIT_MS,
            output_limit_bytes: None,
        };
        Ok(Running(self.client.run(&start).await?))
    }

    /// Runs code in the kernel, which is started if there is none; gives the bytes that it wrote.
    ///
    /// # Errors
    /// When it does not succeed.
    pub(crate) async fn execute(&self, code: &str) -> Result<u64> {
        let mut running = self.start_code(code, TIME_LIMIT_MS).await?;
        running.finish().await
    }

    /// Ends the kernel; the next execute gets a new one.
    ///
    /// # Errors
    /// When the agent refuses.
    pub(crate) async fn end_kernel(&self) -> Result<()> {
        self.client.shut_down_kernel().await?;
        Ok(())
    }

    /// Runs code in the kernel under a time limit and gives how it ended.
    ///
    /// # Errors
    /// When it cannot be run.
    pub(crate) async fn execute_within(&self, code: &str, time_limit_ms: u64) -> Result<Outcome> {
        let mut running = self.start_code(code, time_limit_ms).await?;
        Ok(running.read(|_| ()).await?.outcome)
    }

    /// Runs code in the kernel and gives what it wrote last, at most some bytes, and how it ended.
    ///
    /// # Errors
    /// When it cannot be run.
    pub(crate) async fn last_words(&self, code: &str) -> Result<(Vec<u8>, Outcome)> {
        let mut running = self.start_code(code, TIME_LIMIT_MS).await?;
        let mut said = Vec::new();
        let ended = running.read(|bytes| said.extend_from_slice(bytes)).await?;
        Ok((said, ended.outcome))
    }

    async fn start_code(&self, code: &str, time_limit_ms: u64) -> Result<Running> {
        let execute = Execute {
            execution: ExecutionId::new(),
            code: code.into(),
            time_limit_ms,
            output_limit_bytes: u64::MAX,
            silent: false,
        };
        Ok(Running(self.client.execute(&execute).await?))
    }

    /// Pushes a file in.
    ///
    /// # Errors
    /// When the agent refuses.
    pub(crate) async fn put(&self, name: &str, bytes: &Bytes) -> Result<()> {
        self.client.put_bytes(&named(name)?, bytes.clone()).await?;
        Ok(())
    }

    /// Fetches a file and gives its length; its bytes go nowhere, as a disk would be measured too.
    ///
    /// # Errors
    /// When the agent refuses, or the hash is wrong.
    pub(crate) async fn get(&self, name: &str) -> Result<u64> {
        let got = self
            .client
            .get(&named(name)?, &mut tokio::io::sink(), u64::MAX)
            .await?;
        Ok(got.bytes)
    }

    /// Deletes a file.
    ///
    /// # Errors
    /// When the agent refuses.
    pub(crate) async fn delete(&self, name: &str) -> Result<()> {
        Ok(self.client.delete(&named(name)?).await?)
    }
}

/// Something that runs in a sandbox.
pub(crate) struct Running(Execution);

impl Running {
    /// Waits for the first bytes of output.
    ///
    /// # Errors
    /// When it ends without any.
    pub(crate) async fn first_output(&mut self) -> Result<()> {
        while let Some(event) = self.0.next().await? {
            match event {
                EventBody::Stdout(_) => return Ok(()),
                EventBody::ExecutionEnded(ended) => bail!("it wrote nothing and {}", ended.outcome),
                _ => {}
            }
        }
        bail!("it wrote nothing")
    }

    /// Waits for the end, which has to be a success; gives the bytes that were written.
    ///
    /// # Errors
    /// When it did not succeed, with what it wrote to standard error.
    pub(crate) async fn finish(&mut self) -> Result<u64> {
        let mut count = 0;
        let ended = self.read(|bytes| count += bytes.len() as u64).await?;
        ensure!(ended.outcome.is_success(), "it {}", ended.outcome);
        Ok(count)
    }

    async fn read(&mut self, mut wrote: impl FnMut(&[u8])) -> Result<Ended> {
        let mut complaint = Vec::new();
        while let Some(event) = self.0.next().await? {
            match event {
                EventBody::Stdout(output) => wrote(&output.0),
                EventBody::Stderr(output) if complaint.len() < 4096 => {
                    complaint.extend_from_slice(&output.0)
                }
                EventBody::Error { name, value, .. } => {
                    complaint = format!("{name}: {value}").into_bytes()
                }
                EventBody::ExecutionEnded(ended) => {
                    if let Outcome::Exited { code: 1.. } | Outcome::Raised { .. } = ended.outcome {
                        bail!("it failed: {}", String::from_utf8_lossy(&complaint));
                    }
                    return Ok(ended);
                }
                EventBody::Failed(body) => bail!("the agent failed: {}", body.message),
                _ => {}
            }
        }
        bail!("its events ended before it did")
    }
}

fn named(name: &str) -> Result<FileName> {
    Ok(FileName::from_bytes(name)?)
}
