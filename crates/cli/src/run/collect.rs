//! Brings out what the program saved.

use glovebox_client::AgentClient;
use glovebox_protocol::artifact::{Artifact, Sweep};
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
    let ended = async {
        // First everything ends: a file that is still written to has no hash.
        client
            .end_workload()
            .await
            .map_err(|error| from_client("ending what still runs", error))?;
        client
            .sweep(&Sweep::default())
            .await
            .map_err(|error| from_client("looking for results", error))
    };
    let swept = session.until_stopped("collecting results", ended).await?;
    let total = swept.artifacts.iter().map(|artifact| artifact.bytes).sum();
    if total > 0 {
        session.progress.phase_of_bytes("collecting results", total);
    }
    for artifact in swept.artifacts {
        let fetching = fetch(client, results, &artifact);
        let saved = session
            .until_stopped("collecting results", fetching)
            .await?;
        session.progress.add_bytes(artifact.bytes);
        let event = saved_event(
            &saved,
            artifact.name,
            artifact.bytes,
            artifact.sha256,
            artifact.media_type,
        );
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

async fn fetch(
    client: &AgentClient,
    results: &Results,
    artifact: &Artifact,
) -> Result<Saved, Failure> {
    let mut draft = results.draft()?;
    client
        .get(&artifact.name, &mut draft, artifact.bytes)
        .await
        .map_err(|error| match draft.take_fault() {
            Some(fault) => fault,
            None => from_client(format!("fetching {}", artifact.name), error),
        })?;
    // The agent's hash of the transfer is checked on the way; this one is of the sweep.
    if draft.written() != (artifact.bytes, artifact.sha256) {
        return Err(Failure::machine(
            format!("fetching {}", artifact.name),
            "it is not what it was when it was found",
        ));
    }
    draft.publish(&artifact.name)
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
