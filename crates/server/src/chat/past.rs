//! What a thread holds already: what was said, and its files.

use std::collections::{BTreeMap, HashMap};

use glovebox_protocol::file::FileName;
use glovebox_protocol::ids::{MessageId, ThreadId};
use glovebox_protocol::thread::{Author, SentFile};
use glovebox_store::{Access, Artifact, Attachment, Message, MessageRole, StoreError};
use serde_json::Value;

use super::turn::{FileKind, Knowledge, PastMessage, Speaker, ThreadFile};
use crate::app::App;

/// How many messages and replies are looked back at, most of all.
const MOST: u32 = 400;

/// What was said so far, the oldest first; last what is answered. Of several replies to one message
/// the last one counts, and of what is answered none.
pub(super) async fn history(
    app: &App,
    thread: ThreadId,
    question: &Message,
    reply: MessageId,
) -> Result<Vec<PastMessage>, StoreError> {
    let messages = app.store().messages(thread, MOST).await?;
    let mut files: HashMap<MessageId, Vec<SentFile>> = HashMap::new();
    for attachment in app.store().attachments_of_thread(thread).await? {
        if let Some(message) = attachment.message_id {
            files.entry(message).or_default().push(sent(attachment));
        }
    }
    let mut replies: HashMap<MessageId, &Message> = HashMap::new();
    for message in &messages {
        if let Some(to) = message.reply_to
            && message.id != reply
            && to != question.id
        {
            replies.insert(to, message);
        }
    }
    let mut past = Vec::new();
    let said = messages
        .iter()
        .filter(|message| message.role == MessageRole::User);
    for message in said {
        past.push(PastMessage {
            role: Speaker::User,
            kind: message.kind,
            text: message.body.clone(),
            attachments: files.remove(&message.id).unwrap_or_default(),
            author: Some(Author {
                user: message.user_id,
                name: message.author.clone(),
            }),
            turns: Value::Null,
        });
        let answer = replies
            .get(&message.id)
            .filter(|answer| !answer.body.is_empty() || !answer.turns.is_null());
        past.extend(answer.map(|answer| PastMessage {
            role: Speaker::Assistant,
            kind: answer.kind,
            text: answer.body.clone(),
            attachments: Vec::new(),
            author: None,
            turns: answer.turns.clone(),
        }));
    }
    Ok(past)
}

fn sent(attachment: Attachment) -> SentFile {
    SentFile {
        attachment: attachment.id,
        name: attachment.name,
        uploaded_as: None,
        bytes: attachment.bytes,
        media_type: attachment.media_type,
    }
}

/// The files of a thread by name: what was sent, and over it what code has made of it.
pub(super) async fn files(app: &App, thread: ThreadId) -> Result<Vec<ThreadFile>, StoreError> {
    let mut files = BTreeMap::new();
    for attachment in app.store().attachments_of_thread(thread).await? {
        files.insert(
            attachment.name.clone(),
            ThreadFile {
                name: attachment.name,
                bytes: attachment.bytes,
                media_type: attachment.media_type,
                kind: FileKind::Attachment,
                version: None,
            },
        );
    }
    for artifact in app.store().newest_of_thread(thread).await? {
        let file = of_artifact(&artifact);
        files.insert(file.name.clone(), file);
    }
    Ok(files.into_values().collect())
}

/// How many names of a knowledge base are told.
const MOST_NAMES: u32 = 100;

/// How many characters they have together: a model with a short memory has to have room for more.
const MOST_CHARACTERS: usize = 4_000;

/// What the knowledge base of a workspace holds, the newest files first.
pub(super) async fn knowledge(app: &App, access: &Access) -> Result<Knowledge, StoreError> {
    let files = app
        .store()
        .knowledge_of(access, None, MOST_NAMES + 1)
        .await?;
    let there = files.len();
    let mut left = MOST_CHARACTERS;
    let names: Vec<_> = files
        .into_iter()
        .map(|file| file.name)
        .take(MOST_NAMES as usize)
        .take_while(|name| {
            let fits = name.chars().count() <= left;
            left = left.saturating_sub(name.chars().count());
            fits
        })
        .collect();
    Ok(Knowledge {
        has_more: names.len() < there,
        names,
    })
}

/// An artifact as a file of its thread.
pub(super) fn of_artifact(artifact: &Artifact) -> ThreadFile {
    ThreadFile {
        name: name(&artifact.name),
        bytes: artifact.bytes,
        media_type: artifact.media_type.clone(),
        kind: FileKind::Artifact,
        version: u32::try_from(artifact.version).ok(),
    }
}

/// A name as code writes it, where it is text; else as people are shown it.
fn name(encoded: &str) -> String {
    match encoded.parse::<FileName>() {
        Ok(name) => match std::str::from_utf8(name.as_bytes()) {
            Ok(text) => text.to_owned(),
            Err(_) => name.for_display(),
        },
        Err(_) => encoded.to_owned(),
    }
}
