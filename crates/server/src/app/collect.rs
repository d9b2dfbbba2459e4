//! What code saved leaves its sandbox: swept, fetched, checked, stored under our own ids.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use glovebox_client::{AgentClient, ClientError};
use glovebox_protocol::artifact::{Artifact as Found, LeftOutReason, Sweep};
use glovebox_protocol::event::EventBody;
use glovebox_protocol::ids::{ArtifactId, ExecutionId, SandboxId};
use glovebox_store::{NewArtifact, ProfileSettings, StoreError, Workspace};
use tokio::io::AsyncWrite;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use super::App;
use crate::failure::{NO_ROOM, chain};

/// How many parts of a file are under way between sandbox and store.
const PARTS: usize = 4;

/// What is told where it could not be looked at what code saved.
const NOT_SWEPT: &str = "the sandbox did not answer when the files that the code saved were asked \
                         for; they are still in it, and are collected when more code has run";
/// How many files that were not collected in time are named.
const NAMED: usize = 5;

/// What may be collected, for whom, and until when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Collection<'a> {
    pub(crate) settings: &'a ProfileSettings,
    pub(crate) workspace: &'a Workspace,
    /// What has not been collected by then stays where it is.
    pub(crate) until: Instant,
}

impl App {
    /// Collects what is new in a sandbox, and says what was stored and what stayed there.
    ///
    /// That a sandbox cannot be swept is no error of the execution: what cannot be had is told.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn collect(
        &self,
        sandbox: SandboxId,
        execution: ExecutionId,
        collection: &Collection<'_>,
    ) -> Result<Vec<EventBody>, StoreError> {
        let settings = collection.settings;
        let sweep = Sweep {
            types: settings.artifact_types.clone(),
            max_files: settings.max_artifacts,
            max_bytes: settings.max_artifact_bytes,
        };
        let agent = self.agent(sandbox);
        let swept = match timeout_at(collection.until, agent.sweep(&sweep)).await {
            Ok(Ok(swept)) => swept,
            Ok(Err(error)) => {
                tracing::warn!(%sandbox, error = chain(&error), "a sandbox was not swept");
                return Ok(vec![not_collected(NOT_SWEPT)]);
            }
            Err(_) => {
                let message = "there was no time left to look what the code saved";
                return Ok(vec![not_collected(message)]);
            }
        };
        let (mut events, mut late) = (Vec::new(), Vec::new());
        for found in swept.artifacts {
            let name = found.name.encoded();
            let sha256 = found.sha256.to_string();
            if self.store().has_artifact(sandbox, &name, &sha256).await? {
                continue;
            }
            let shown = found.name.for_display();
            let kept = self.keep(&agent, sandbox, execution, collection, found);
            match kept.await? {
                Some(event) => events.push(event),
                None => late.push(shown),
            }
        }
        if !late.is_empty() {
            events.push(not_collected(in_time(&late)));
        }
        // That an input is still what it was is what everybody expects.
        let is_news = |reason| reason != LeftOutReason::UnchangedInput;
        let left_out = swept.left_out.into_iter();
        events.extend(left_out.filter(|left| is_news(left.reason)).map(|left| {
            EventBody::LeftOut {
                name: left.name,
                reason: left.reason,
                message: left.message,
            }
        }));
        if swept.more_left_out > 0 {
            events.push(EventBody::MoreLeftOut {
                files: swept.more_left_out,
            });
        }
        Ok(events)
    }

    /// Fetches one file and stores it, if the day's quota allows it. Nothing where there was no time
    /// for it.
    async fn keep(
        &self,
        agent: &AgentClient,
        sandbox: SandboxId,
        execution: ExecutionId,
        collection: &Collection<'_>,
        found: Found,
    ) -> Result<Option<EventBody>, StoreError> {
        let quotas = &collection.workspace.quotas;
        let workspace = collection.workspace.id;
        let over = |left: u64| EventBody::LeftOut {
            name: found.name.clone(),
            reason: LeftOutReason::TooManyBytes,
            message: format!(
                "quota:max_artifact_bytes_per_day: {} bytes are left of today's {}",
                left, quotas.max_artifact_bytes_per_day
            ),
        };
        let stored = self.store().meters(workspace).await?.artifact_bytes_today;
        let left = quotas.max_artifact_bytes_per_day.saturating_sub(stored);
        if found.bytes > left {
            return Ok(Some(over(left)));
        }
        if !self.has_room_for(found.bytes) {
            return Ok(Some(EventBody::LeftOut {
                name: found.name,
                reason: LeftOutReason::TooManyBytes,
                message: format!("disk_full: {NO_ROOM}"),
            }));
        }
        let id = ArtifactId::new();
        match self.fetch(agent, id, &found, collection.until).await {
            Ok(()) => {}
            Err(FetchError::Store(error)) => return Err(error),
            Err(FetchError::Late) => return Ok(None),
            Err(error) => {
                tracing::warn!(%sandbox, error = chain(&error), "a file could not be collected");
                return Ok(Some(EventBody::LeftOut {
                    name: found.name,
                    reason: LeftOutReason::Unreadable,
                    message: "it could not be fetched, or changed while it was".into(),
                }));
            }
        }
        let mut changes = self.store().begin().await?;
        let held = changes.hold_workspace(workspace).await?;
        // Others may have stored something meanwhile, or changed the quota.
        let quotas = held.as_ref().map_or(quotas, |held| &held.quotas);
        let left = changes.artifact_bytes_left(workspace, quotas).await?;
        if found.bytes > left {
            drop(changes);
            self.objects().delete(id).await?;
            return Ok(Some(over(left)));
        }
        let version = changes
            .create_artifact(&NewArtifact {
                id,
                workspace_id: workspace,
                lease_id: sandbox,
                execution_id: execution,
                name: found.name.encoded(),
                bytes: found.bytes,
                sha256: found.sha256.to_string(),
                media_type: found.media_type.clone(),
            })
            .await?;
        changes.commit().await?;
        tracing::debug!(%sandbox, artifact = %id, version, "an artifact was stored");
        Ok(Some(EventBody::Artifact {
            name: found.name,
            saved_as: id.to_string(),
            bytes: found.bytes,
            sha256: found.sha256,
            media_type: found.media_type,
            already_there: false,
        }))
    }

    /// Streams a file from its sandbox into the object store; never whole in memory. Code that runs
    /// on may write to it meanwhile: only the very bytes that were found are kept, as everything
    /// that is known of them, and whoever may see them, goes by their hash.
    async fn fetch(
        &self,
        agent: &AgentClient,
        id: ArtifactId,
        found: &Found,
        until: Instant,
    ) -> Result<(), FetchError> {
        let mut upload = self.objects().create(id).await?;
        let (sender, mut parts) = mpsc::channel::<Vec<u8>>(PARTS);
        let mut sink = ChannelSink(tokio_util::sync::PollSender::new(sender));
        let read = async {
            let got = timeout_at(until, agent.get(&found.name, &mut sink, found.bytes)).await;
            drop(sink);
            got.map_err(|_| FetchError::Late)?.map_err(FetchError::from)
        };
        let write = async {
            while let Some(part) = parts.recv().await {
                upload.write(&part).await?;
            }
            Ok::<_, StoreError>(())
        };
        let (got, written) = tokio::join!(read, write);
        match (got, written) {
            (Ok(got), Ok(())) if got.bytes == found.bytes && got.sha256 == found.sha256 => {
                Ok(upload.finish().await?)
            }
            (got, written) => {
                // What went wrong first is what has to be known.
                if let Err(error) = upload.abort().await {
                    tracing::warn!(error = chain(&error), "throwing away half a file");
                }
                written?;
                got?;
                Err(FetchError::Changed)
            }
        }
    }
}

/// Why a file did not come.
#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error("fetching a file")]
    Client(#[from] ClientError),
    #[error("storing a file")]
    Store(#[from] StoreError),
    #[error("the file is not what it was when it was swept")]
    Changed,
    #[error("there was no time left")]
    Late,
}

fn not_collected(message: impl Into<String>) -> EventBody {
    EventBody::NotCollected {
        message: message.into(),
    }
}

/// What is told of files for which there was no time.
fn in_time(late: &[String]) -> String {
    let named = late.iter().take(NAMED).map(String::as_str);
    let named = named.collect::<Vec<_>>().join(", ");
    let more = match late.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("there was no time left to collect {named}{more}")
}

/// Hands what is written to it to whoever stores it.
struct ChannelSink(tokio_util::sync::PollSender<Vec<u8>>);

impl AsyncWrite for ChannelSink {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let closed = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        std::task::ready!(self.0.poll_reserve(context)).map_err(closed)?;
        self.0.send_item(bytes.to_vec()).map_err(closed)?;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.close();
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_files_that_were_not_collected_some_are_named() {
        let names: Vec<_> = (1..=7).map(|n| format!("{n}.csv")).collect();
        assert_eq!(
            in_time(&names[..2]),
            "there was no time left to collect 1.csv, 2.csv"
        );
        assert_eq!(
            in_time(&names),
            "there was no time left to collect 1.csv, 2.csv, 3.csv, 4.csv, 5.csv and 2 more"
        );
    }
}
