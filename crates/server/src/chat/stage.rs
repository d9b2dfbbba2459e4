//! Files on their way into the sandbox of a thread.

use futures_util::TryStreamExt as _;
use glovebox_client::ClientError;
use glovebox_protocol::error::ErrorCode;
use glovebox_protocol::event::EventBody;
use glovebox_protocol::file::{FileName, escape_for_display};
use glovebox_protocol::sign::BodyDigest;
use glovebox_protocol::thread::ThreadEventBody;
use glovebox_store::{KeyScope, Lease, ObjectKey, Profile, Staged, StoreError, UploadedName};
use tokio_util::io::StreamReader;

use super::failure::{self, refused};
use super::sandbox::{self, Ready};
use super::turn::{FileKind, ThreadFile, Turn, TurnError};
use crate::failure::chain;

/// A file that belongs into the sandbox and is not there.
#[derive(Debug)]
struct Waiting {
    source: String,
    object: ObjectKey,
    name: FileName,
    bytes: u64,
    sha256: String,
    /// Whether it was sent with what is answered now.
    is_new: bool,
}

/// What a sandbox still takes, in bytes.
struct Room {
    file_bytes: u64,
    left: u64,
}

impl Room {
    fn takes(&self, bytes: u64) -> bool {
        bytes <= self.file_bytes && bytes <= self.left
    }
}

/// Puts what the thread has and the sandbox lacks into it: what the code names, attachments with
/// the newest message first, artifacts. Where not all of them fit, half of what the sandbox takes
/// is kept for what later code names. Tells what could not be brought.
pub(super) async fn stage(
    turn: &Turn,
    ready: &Ready,
    step: u32,
    code: &str,
) -> Result<Vec<String>, TurnError> {
    let (waiting, mut room) = waiting(turn, &ready.lease, &ready.grant.profile).await?;
    let all: u64 = waiting.iter().map(|file| file.bytes).sum();
    // What comes by itself, without being named.
    let mut unasked = if all <= room.left {
        room.left
    } else {
        room.left / 2
    };
    let (named, rest): (Vec<_>, Vec<_>) = waiting
        .into_iter()
        .partition(|file| is_named(code, &file.name));
    let mut left_out = Vec::new();
    let in_order = named
        .into_iter()
        .map(|file| (file, true))
        .chain(rest.into_iter().map(|file| (file, false)));
    for (file, is_asked) in in_order {
        let fits = room.takes(file.bytes) && (is_asked || file.bytes <= unasked);
        if fits && put(turn, &ready.lease, &file, Some(step)).await? {
            room.left -= file.bytes;
            unasked = unasked.saturating_sub(if is_asked { 0 } else { file.bytes });
        } else if fits || is_asked || ready.is_new || file.is_new {
            left_out.push(file.name.for_display());
        }
    }
    let mut notices = Vec::new();
    if !left_out.is_empty() {
        let text = format!(
            "not all files of this thread fit into its sandbox: {} {} not there",
            listed(&left_out),
            if left_out.len() == 1 { "is" } else { "are" }
        );
        let fix = "name a file in the code and it is brought where it fits; or send smaller files";
        notices.push(text.clone());
        notice(turn, "files_left_out", text, Some(fix)).await?;
    }
    Ok(notices)
}

/// Where a sandbox took the place of one that is gone, tells it: to everybody in the thread, and to
/// the model with what it is told of the next step.
pub(super) async fn note_replaced(turn: &Turn, ready: &Ready) -> Result<(), StoreError> {
    let Some(why) = &ready.replaces else {
        return Ok(());
    };
    if !turn.is_to_note(ready.lease.id) {
        return Ok(());
    }
    let why = if why.is_empty() { "it is gone" } else { why };
    let text = format!(
        "A new sandbox took the place of the last one, which has ended: {why}. Variables and files \
         that were not saved are gone; the files of this thread are brought again."
    );
    turn.carry(text.clone());
    notice(turn, "sandbox_replaced", text, None).await
}

/// Tells everybody in the thread something.
pub(super) async fn notice(
    turn: &Turn,
    code: &str,
    text: String,
    fix: Option<&str>,
) -> Result<(), StoreError> {
    turn.tell(ThreadEventBody::Notice {
        reply: Some(turn.reply()),
        code: code.into(),
        text,
        fix: fix.map(Into::into),
    })
    .await
}

/// Some names in words, the rest of them counted.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = names[..names.len().min(SHOWN)].join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Whether code writes the name of a file.
fn is_named(code: &str, name: &FileName) -> bool {
    std::str::from_utf8(name.base()).is_ok_and(|base| code.contains(base))
}

/// What is not in the sandbox yet, and how much that still takes.
async fn waiting(
    turn: &Turn,
    lease: &Lease,
    profile: &Profile,
) -> Result<(Vec<Waiting>, Room), TurnError> {
    let store = turn.app.store();
    let staged = store.staged(lease.id).await?;
    let is_there = |source: &str| staged.iter().any(|staged| staged.source == source);
    let settings = &profile.settings;
    let used: u64 = staged.iter().map(|staged| staged.bytes).sum();
    let room = Room {
        file_bytes: settings.max_input_file_bytes,
        left: settings.max_input_total_bytes.saturating_sub(used),
    };
    let mut waiting = Vec::new();
    for file in store.attachments_of_thread(turn.thread.id).await? {
        let source = file.id.to_string();
        if is_there(&source) {
            continue;
        }
        waiting.push(Waiting {
            source,
            object: file.id.into(),
            name: in_sandbox(&file.name)?,
            bytes: file.bytes,
            sha256: file.sha256,
            is_new: file.message_id == Some(turn.question().id),
        });
    }
    for artifact in store.newest_of_thread(turn.thread.id).await? {
        let source = artifact.id.to_string();
        let came_out_of_it = artifact.lease_id == lease.id && artifact.bytes_of.is_none();
        if came_out_of_it || is_there(&source) {
            continue;
        }
        let Ok(name) = artifact.name.parse::<FileName>() else {
            continue;
        };
        // What code has made of an attachment takes its place.
        waiting.retain(|file: &Waiting| file.name != name);
        waiting.push(Waiting {
            source,
            object: artifact.bytes_id().into(),
            name,
            bytes: artifact.bytes,
            sha256: artifact.sha256,
            is_new: artifact.bytes_of.is_some(),
        });
    }
    Ok((waiting, room))
}

fn in_sandbox(name: &str) -> Result<FileName, TurnError> {
    FileName::from_bytes(name).map_err(|error| {
        let shown = escape_for_display(name.as_bytes());
        refused(
            "invalid",
            format!("the file {shown} cannot be put into a sandbox: {error}"),
            "send it under another name",
        )
    })
}

/// Streams one file into the sandbox. Says whether it is there now: a file that cannot be read or
/// that the sandbox does not take keeps nothing else from going on.
async fn put(
    turn: &Turn,
    lease: &Lease,
    file: &Waiting,
    step: Option<u32>,
) -> Result<bool, TurnError> {
    let sent = tokio::select! {
        sent = send(turn, lease, file) => sent?,
        () = turn.stopped() => return Err(TurnError::Stopped),
    };
    let sha256 = match sent {
        Ok(sha256) => sha256,
        Err(error) => return not_put(turn, lease, file, error).await,
    };
    let staged = Staged {
        source: file.source.clone(),
        name: file.name.for_display(),
        bytes: file.bytes,
    };
    turn.app.store().keep_staged(lease.id, &staged).await?;
    if let Some(step) = step {
        turn.tell(ThreadEventBody::StepEvent {
            reply: turn.reply(),
            step,
            event: EventBody::InputStaged {
                name: file.name.for_display(),
                bytes: file.bytes,
                sha256,
            },
        })
        .await?;
    }
    Ok(true)
}

async fn send(
    turn: &Turn,
    lease: &Lease,
    file: &Waiting,
) -> Result<Result<BodyDigest, ClientError>, TurnError> {
    let Ok(sha256) = file.sha256.parse::<BodyDigest>() else {
        return Err(refused(
            "internal",
            format!("what is kept of the file {} is damaged", file.name),
            "send it again",
        ));
    };
    let stream = match turn.app.objects().read(file.object.clone()).await {
        Ok(stream) => stream.map_err(std::io::Error::other),
        Err(error) => return Ok(Err(ClientError::Read(std::io::Error::other(error)))),
    };
    let mut source = StreamReader::new(stream);
    let agent = turn.app.agent(lease.id);
    let put = agent.put(&file.name, &mut source, file.bytes, sha256).await;
    Ok(put.map(|_| sha256))
}

/// What is to be done where a file did not come into the sandbox.
async fn not_put(
    turn: &Turn,
    lease: &Lease,
    file: &Waiting,
    error: ClientError,
) -> Result<bool, TurnError> {
    match &error {
        ClientError::Read(_) => {
            tracing::error!(file = %file.source, error = chain(&error), "a stored file cannot be read");
            return Ok(false);
        }
        ClientError::Refused(body)
            if matches!(
                body.code,
                ErrorCode::InputLimit | ErrorCode::Conflict | ErrorCode::Invalid
            ) =>
        {
            tracing::info!(sandbox = %lease.id, error = chain(&error), "a sandbox does not take a file");
            return Ok(false);
        }
        _ => {}
    }
    let ended = turn.app.store().lease(lease.id).await?;
    let why = ended.and_then(|lease| lease.ended_detail);
    Err(TurnError::Refused(match why {
        Some(why) => failure::gone(&why),
        None => failure::of_client(&error),
    }))
}

/// Puts a file of the knowledge base into the sandbox, by its name.
pub(super) async fn open_knowledge_file(turn: &Turn, name: &str) -> Result<ThreadFile, TurnError> {
    if turn.is_stopped() {
        return Err(TurnError::Stopped);
    }
    let access = turn.access().await?;
    let store = turn.app.store();
    let may_read = access.has_scope(KeyScope::KnowledgeRead);
    let found = store.knowledge_file_named(&access, name).await?;
    let Some(found) = found.filter(|_| may_read) else {
        let shown: String = escape_for_display(name.as_bytes())
            .chars()
            .take(100)
            .collect();
        return Err(refused(
            "no_such_file",
            format!("there is no file `{shown}` in the knowledge base of this workspace"),
            "look at the list of the knowledge base; names are exact",
        ));
    };
    let ready = sandbox::ready(turn, &access, None).await?;
    note_replaced(turn, &ready).await?;
    let source = found.id.to_string();
    let (_, room) = waiting(turn, &ready.lease, &ready.grant.profile).await?;
    let staged = store.staged(ready.lease.id).await?;
    let before = staged.into_iter().find(|staged| staged.source == source);
    let name = match &before {
        Some(staged) => staged.name.clone(),
        None => {
            let taken = store.names_of_thread(turn.thread.id).await?;
            let name = UploadedName::of(&found.name).free_among(&taken);
            name.as_str().to_owned()
        }
    };
    let file = ThreadFile {
        name: name.clone(),
        bytes: found.bytes,
        media_type: found.media_type,
        kind: FileKind::Knowledge,
        version: None,
    };
    if before.is_some() {
        return Ok(file);
    }
    let waiting = Waiting {
        source,
        object: found.id.into(),
        name: in_sandbox(&name)?,
        bytes: found.bytes,
        sha256: found.sha256,
        is_new: true,
    };
    let fits = room.takes(found.bytes);
    if fits && put(turn, &ready.lease, &waiting, None).await? {
        return Ok(file);
    }
    Err(refused(
        "input_limit",
        format!("the file {name} does not fit into the sandbox of this thread"),
        "open a smaller one, or begin another thread",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_names_stays_short() {
        let names: Vec<String> = (1..=7).map(|n| format!("{n}.csv")).collect();
        assert_eq!(listed(&names[..1]), "1.csv");
        assert_eq!(
            listed(&names),
            "1.csv, 2.csv, 3.csv, 4.csv, 5.csv and 2 more"
        );
    }

    #[test]
    fn code_names_a_file_by_the_last_part_of_its_path() {
        let name = FileName::from_bytes("out/a b.csv").unwrap();
        assert!(is_named("open('out/a b.csv')", &name));
        assert!(is_named("open(folder / 'a b.csv')", &name));
        assert!(!is_named("open('b.csv')", &name));
    }
}
