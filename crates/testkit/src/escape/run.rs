//! A program that runs in a sandbox, and what it did.

use anyhow::{Context as _, Result, bail};
use glovebox_client::{AgentClient, Execution};
use glovebox_protocol::event::{EventBody, Note, Outcome};
use glovebox_protocol::process::Cancel;

use super::report::Report;

/// A program that runs in a sandbox.
pub struct Running {
    execution: Execution,
    client: AgentClient,
    in_kernel: bool,
    ran: Ran,
}

impl Running {
    pub(super) fn new(execution: Execution, client: AgentClient) -> Self {
        Self {
            execution,
            client,
            in_kernel: false,
            ran: Ran::default(),
        }
    }

    pub(super) fn in_kernel(execution: Execution, client: AgentClient) -> Self {
        Self {
            in_kernel: true,
            ..Self::new(execution, client)
        }
    }

    /// Waits until it reports something under this id.
    ///
    /// # Errors
    /// When it ends without.
    pub async fn until(&mut self, id: &str) -> Result<()> {
        while !self.ran.reports().iter().any(|report| report.id == id) {
            if !self.step().await? {
                bail!(
                    "the program {} and never reported `{id}`: {}",
                    self.ran.outcome,
                    String::from_utf8_lossy(&self.ran.stderr)
                );
            }
        }
        Ok(())
    }

    /// What it did until now.
    #[must_use]
    pub const fn so_far(&self) -> &Ran {
        &self.ran
    }

    /// Interrupts it, and takes what it says last.
    ///
    /// # Errors
    /// When the agent does not play along.
    pub async fn interrupt(self) -> Result<Ran> {
        if self.in_kernel {
            self.client.interrupt_kernel(Cancel::Interrupt).await?;
        } else {
            let id = self.execution.id();
            self.client.cancel(id, Cancel::Interrupt).await?;
        }
        self.to_end().await
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When the agent does not play along.
    pub async fn to_end(mut self) -> Result<Ran> {
        while self.step().await? {}
        Ok(self.ran)
    }

    async fn step(&mut self) -> Result<bool> {
        let Some(event) = self.execution.next().await? else {
            return Ok(false);
        };
        match event {
            EventBody::Stdout(output) => self.ran.stdout.extend_from_slice(&output.0),
            EventBody::Stderr(output) => self.ran.stderr.extend_from_slice(&output.0),
            EventBody::OutputDropped { dropped_bytes, .. } => self.ran.dropped = dropped_bytes,
            EventBody::ExecutionEnded(ended) => {
                self.ran.outcome = ended.outcome;
                self.ran.notes = ended.notes;
                self.ran.duration_ms = ended.duration_ms;
            }
            EventBody::Error { name, value, .. } => {
                self.ran.raised = Some(format!("{name}: {value}"))
            }
            EventBody::Failed(body) => bail!("the agent failed: {}", body.message),
            _ => {}
        }
        Ok(true)
    }
}

/// What a program did.
#[derive(Debug, Clone)]
pub struct Ran {
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
    /// How it ended.
    pub outcome: Outcome,
    /// What else the agent said of its end.
    pub notes: Vec<Note>,
    /// Output that was dropped, in bytes.
    pub dropped: u64,
    /// How long it ran.
    pub duration_ms: u64,
    /// The exception that reached the top of a kernel's cell.
    pub raised: Option<String>,
}

impl Default for Ran {
    fn default() -> Self {
        Self {
            stdout: Vec::new(),
            stderr: Vec::new(),
            outcome: Outcome::Exited { code: -1 },
            notes: Vec::new(),
            dropped: 0,
            duration_ms: 0,
            raised: None,
        }
    }
}

impl Ran {
    /// What it reported.
    #[must_use]
    pub fn reports(&self) -> Vec<Report> {
        Report::all_in(&self.stdout)
    }

    /// What it reported under an id.
    ///
    /// # Errors
    /// When it reported nothing under it; says what it did instead.
    pub fn observed(&self, id: &str) -> Result<Report> {
        let found = self.reports().into_iter().find(|report| report.id == id);
        found.with_context(|| {
            format!(
                "nothing was reported as `{id}`; the program {}{}; standard error: {}",
                self.outcome,
                self.raised
                    .as_deref()
                    .map(|r| format!(" ({r})"))
                    .unwrap_or_default(),
                String::from_utf8_lossy(&self.stderr)
            )
        })
    }

    /// What it reported under an id, as text.
    ///
    /// # Errors
    /// As [`Ran::observed`]; also when it is no text.
    pub fn text(&self, id: &str) -> Result<String> {
        let report = self.observed(id)?;
        let text = report.observed.as_str();
        Ok(text
            .with_context(|| format!("`{id}` is no text"))?
            .to_owned())
    }

    /// What it reported under an id, as a number.
    ///
    /// # Errors
    /// As [`Ran::observed`]; also when it is no number.
    pub fn number(&self, id: &str) -> Result<u64> {
        let report = self.observed(id)?;
        let number = report.observed.as_u64();
        number.with_context(|| format!("`{id}` is no whole number: {}", report.observed))
    }
}
