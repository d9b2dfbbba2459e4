//! Brings out what the program saved.

use glovebox_client::{AgentClient, ClientError};
use glovebox_protocol::artifact::{Artifact, LeftOutReason, Sweep};
use glovebox_protocol::event::EventBody;
use glovebox_protocol::file::FileName;
use glovebox_protocol::sign::BodyDigest;

use super::results::{How, Results, Saved};
use super::sandbox::from_client;
use super::session::Session;
use crate::failure::Failure;

/// Ends everything that still runs, and saves what may leave.
pub(crate) async fn collect(
    session: &mut Session<'_>,
    client: &AgentClient,
    results: &Results,
) -> Result<(), Failure> {
    session.progress.phase("collecting results");
    // First everything ends: a file that is still written to has no hash.
    let ending = async {
        let ended = client.end_workload().await;
        ended.map_err(|error| from_client("ending what still runs", error))
    };
    let ended = session.until_stopped("collecting results", ending).await;
    session.survive(ended)?;
    let sweeping = async {
        let swept = client.sweep(&Sweep::default()).await;
        swept.map_err(|error| from_client("looking for results", error))
    };
    let swept = session.until_stopped("collecting results", sweeping).await;
    let Some(swept) = session.survive(swept)? else {
        return Ok(());
    };
    let total = swept.artifacts.iter().map(|artifact| artifact.bytes).sum();
    if total > 0 {
        session.progress.phase_of_bytes("collecting results", total);
    }
    for artifact in swept.artifacts {
        let event = bring_out(session, client, results, artifact).await?;
        session.tell(event).await?;
    }
    for left_out in swept.left_out {
        session
            .tell(EventBody::LeftOut {
                name: left_out.name,
                reason: left_out.reason,
                message: left_out.message,
            })
            .await?;
    }
    if swept.more_left_out > 0 {
        let files = swept.more_left_out;
        session.tell(EventBody::MoreLeftOut { files }).await?;
    }
    session.reporter.sum_up().await;
    Ok(())
}

/// Fetches one file. That it cannot be had is told and remembered; the others still come out.
async fn bring_out(
    session: &mut Session<'_>,
    client: &AgentClient,
    results: &Results,
    artifact: Artifact,
) -> Result<EventBody, Failure> {
    let fetching = async { Ok(fetch(client, results, &artifact).await) };
    let fetched = session
        .until_stopped("collecting results", fetching)
        .await?;
    session.progress.add_bytes(artifact.bytes);
    Ok(match fetched {
        Ok(saved) => saved_event(
            &saved,
            artifact.name,
            artifact.bytes,
            artifact.sha256,
            artifact.media_type,
        ),
        Err((reason, failure)) => {
            let message = failure.sentence();
            session.lose(failure);
            EventBody::LeftOut {
                name: artifact.name,
                reason,
                message,
            }
        }
    })
}

async fn fetch(
    client: &AgentClient,
    results: &Results,
    artifact: &Artifact,
) -> Result<Saved, (LeftOutReason, Failure)> {
    let doing = || format!("fetching {}", artifact.name);
    let unreadable = |failure| (LeftOutReason::Unreadable, failure);
    let changed = |failure| (LeftOutReason::Changed, failure);
    let mut draft = results.draft().map_err(unreadable)?;
    let fetched = client.get(&artifact.name, &mut draft, artifact.bytes).await;
    fetched.map_err(|error| match (draft.take_fault(), error) {
        (Some(fault), _) => unreadable(fault),
        (None, error @ (ClientError::Corrupt { .. } | ClientError::TooLong { .. })) => {
            changed(from_client(doing(), error))
        }
        (None, error) => unreadable(from_client(doing(), error)),
    })?;
    // The agent's hash of the transfer is checked on the way; this one is of the sweep.
    if draft.written() != (artifact.bytes, artifact.sha256) {
        let problem = "it is not what it was when it was found";
        return Err(changed(Failure::machine(doing(), problem)));
    }
    draft.publish(&artifact.name).map_err(unreadable)
}

/// The event that tells of a saved file.
pub(crate) fn saved_event(
    saved: &Saved,
    name: FileName,
    bytes: u64,
    sha256: BodyDigest,
    media_type: String,
) -> EventBody {
    EventBody::Artifact {
        name,
        saved_as: saved.path.to_string_lossy().into_owned(),
        bytes,
        sha256,
        media_type,
        already_there: saved.how == How::Unchanged,
    }
}

#[cfg(test)]
mod tests;
