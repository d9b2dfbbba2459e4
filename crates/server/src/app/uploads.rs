//! Receiving a file: streamed into the object store, never whole in memory, with its length, hash
//! and type found out on the way.

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use glovebox_protocol::content::{Archive, Check, FileType};
use glovebox_store::{
    Access, NewUpload, ObjectKey, Quotas, StoreError, Transaction, Upload, UploadedName,
};
use ring::digest::{Context, SHA256};

use super::threads::ChatError;
use super::{App, to_its_end};
use crate::failure::chain;

/// How much of a file is looked at to tell what it is.
const HEAD_BYTES: usize = 512;

/// What came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) bytes: u64,
    /// In hexadecimal.
    pub(crate) sha256: String,
    /// By content.
    pub(crate) media_type: String,
}

impl Received {
    /// What is kept of it, under an id and a name.
    pub(super) fn kept_as<Id>(self, id: Id, name: UploadedName) -> NewUpload<Id> {
        NewUpload {
            id,
            name,
            bytes: self.bytes,
            sha256: self.sha256,
            media_type: self.media_type,
        }
    }
}

impl App {
    /// Receives a file of at most `limit` bytes, for [`App::keep_received`]. Where it is not received
    /// whole, nothing of it is kept.
    ///
    /// # Errors
    /// When it is over the limit, breaks off, or cannot be stored.
    pub(crate) async fn receive<E>(
        &self,
        key: ObjectKey,
        name: &str,
        limit: u64,
        mut parts: impl Stream<Item = Result<Bytes, E>> + Unpin,
    ) -> Result<(Received, Upload), ChatError> {
        self.needs_room_for(0)?;
        let mut upload = self.objects().create(key).await?;
        let mut looking = Looking::new(name);
        let (mut bytes, mut hash) = (0, Context::new(&SHA256));
        let failed = loop {
            let part = match parts.next().await {
                None => break None,
                Some(Err(_)) => break Some(ChatError::BrokenOff),
                Some(Ok(part)) => part,
            };
            bytes += part.len() as u64;
            if bytes > limit {
                break Some(too_large(limit));
            }
            // Others may bring something at the same time.
            if let Err(error) = self.needs_room_for(part.len() as u64) {
                break Some(error);
            }
            hash.update(&part);
            looking.update(&part);
            if let Err(error) = upload.write(&part).await {
                break Some(error.into());
            }
        };
        if let Some(error) = failed {
            // What made it fail says more than that this did, too.
            let _ = upload.abort().await;
            return Err(error);
        }
        let sha256 = hash.finish();
        let received = Received {
            bytes,
            sha256: sha256
                .as_ref()
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect(),
            media_type: looking.finish().into(),
        };
        Ok((received, upload))
    }

    /// Keeps what was received: its bytes, then the row that `keep` makes. Both or neither, also where
    /// whoever sent it goes away meanwhile: bytes without a row are found by nobody.
    pub(crate) async fn keep_received(
        &self,
        key: ObjectKey,
        upload: Upload,
        keep: impl Future<Output = Result<(), ChatError>> + Send + 'static,
    ) -> Result<(), ChatError> {
        let app = self.clone();
        to_its_end(async move {
            upload.finish().await?;
            let kept = keep.await;
            if kept.is_err()
                && let Err(error) = app.objects().forget(key).await
            {
                tracing::warn!(
                    error = chain(&error),
                    "throwing away a file that is not kept"
                );
            }
            kept
        })
        .await
    }

    /// Whether people may bring so many bytes more into a workspace, as it is at this moment. What
    /// comes at the same time is only counted where the row is made.
    pub(crate) async fn may_upload(
        &self,
        access: &Access,
        announced: Option<u64>,
    ) -> Result<(), ChatError> {
        self.needs_room_for(announced.unwrap_or_default())?;
        let workspace = self.store().workspace(access.workspace()).await?;
        let workspace = workspace.ok_or(ChatError::NotFound("workspace"))?;
        let used = self.store().meters(workspace.id).await?.uploaded_bytes;
        let left = workspace.quotas.max_uploaded_bytes.saturating_sub(used);
        room(&workspace.quotas, left, announced.unwrap_or(1))
    }

    /// Begins to make the row of a file of so many bytes: the workspace is held, so that its quota is
    /// counted once.
    pub(crate) async fn begin_upload(
        &self,
        access: &Access,
        bytes: u64,
    ) -> Result<Transaction, ChatError> {
        let mut changes = self.store().begin().await?;
        let workspace = changes.hold_workspace(access.workspace()).await?;
        let workspace = workspace.ok_or(ChatError::NotFound("workspace"))?;
        let quotas = &workspace.quotas;
        let left = changes.uploaded_bytes_left(workspace.id, quotas).await?;
        room(quotas, left, bytes)?;
        Ok(changes)
    }

    /// Throws a stored file away together with its row, which is away already as `changes` see it.
    /// Where its bytes cannot be deleted the row stays too, so that it can be tried again: bytes that
    /// no row knows of would be deleted by nobody.
    ///
    /// # Errors
    /// When the bytes or the row cannot be deleted.
    pub(crate) async fn throw_away_with(
        &self,
        changes: Transaction,
        key: ObjectKey,
    ) -> Result<(), StoreError> {
        let app = self.clone();
        to_its_end(async move {
            app.objects().forget(key).await?;
            changes.commit().await
        })
        .await
    }
}

/// Whether there is room for a file.
fn room(quotas: &Quotas, left: u64, bytes: u64) -> Result<(), ChatError> {
    if bytes <= left {
        return Ok(());
    }
    Err(ChatError::Quota {
        name: "quota:max_uploaded_bytes",
        message: format!(
            "{left} bytes are left of the {} for attachments and the knowledge base of this workspace",
            quotas.max_uploaded_bytes
        ),
        fix: "delete files of the knowledge base or threads that are not needed, or ask a system \
              admin to raise the quota",
    })
}

/// A file is larger than it may be.
pub(crate) fn too_large(limit: u64) -> ChatError {
    ChatError::TooLarge {
        message: format!("the file is over the limit of {limit} bytes for one file"),
        fix: "send a smaller file, or ask a system admin for a larger limit",
    }
}

/// Finds out what a file is while it comes: its ending is believed where the content agrees.
struct Looking {
    claimed: Option<(FileType, Check)>,
    text: Option<Check>,
    archive: Archive,
    head: Vec<u8>,
}

impl Looking {
    fn new(name: &str) -> Self {
        let ending = name
            .rsplit_once('.')
            .map(|(_, ending)| ending.to_lowercase());
        let claimed = ending.and_then(|ending| FileType::of(&ending));
        Self {
            claimed: claimed.map(|claimed| (claimed, Check::new(claimed))),
            text: Some(Check::new(FileType::Txt)),
            archive: Archive::default(),
            head: Vec::new(),
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        let room = HEAD_BYTES.saturating_sub(self.head.len());
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.archive.update(bytes);
        self.claimed = self
            .claimed
            .take()
            .and_then(|(claimed, mut check)| check.update(bytes).then_some((claimed, check)));
        self.text = self
            .text
            .take()
            .and_then(|mut check| check.update(bytes).then_some(check));
    }

    fn finish(self) -> &'static str {
        if let Some((claimed, check)) = self.claimed
            && check.finish()
        {
            return claimed.media_type();
        }
        if let Some(office) = self.archive.office_type() {
            return office.media_type();
        }
        if let Some(known) = by_beginning(&self.head) {
            return known;
        }
        if self.text.is_some_and(Check::finish) {
            return "text/plain";
        }
        "application/octet-stream"
    }
}

/// What begins like this, whatever its name.
fn by_beginning(head: &[u8]) -> Option<&'static str> {
    let begins = |mark: &[u8]| head.starts_with(mark);
    Some(if begins(b"%PDF-") {
        "application/pdf"
    } else if begins(b"\x89PNG\r\n\x1a\n") {
        "image/png"
    } else if begins(b"\xff\xd8\xff") {
        "image/jpeg"
    } else if begins(b"GIF87a") || begins(b"GIF89a") {
        "image/gif"
    } else if begins(b"RIFF") && head.get(8..12) == Some(b"WEBP") {
        "image/webp"
    } else if begins(b"RIFF") && head.get(8..12) == Some(b"WAVE") {
        "audio/wav"
    } else if begins(b"OggS") {
        "audio/ogg"
    } else if begins(b"fLaC") {
        "audio/flac"
    } else if begins(b"ID3") || begins(b"\xff\xfb") {
        "audio/mpeg"
    } else if head.get(4..11) == Some(b"ftypM4A") {
        "audio/mp4"
    } else if begins(b"PK\x03\x04") {
        "application/zip"
    } else {
        return None;
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(name: &str, bytes: &[u8]) -> &'static str {
        let mut looking = Looking::new(name);
        for part in bytes.chunks(7) {
            looking.update(part);
        }
        looking.finish()
    }

    #[test]
    fn an_ending_is_believed_where_the_content_agrees() {
        assert_eq!(is("a.CSV", b"a,b\n1,2\n"), "text/csv");
        assert_eq!(is("a.csv", b"%PDF-1.7 \x00"), "application/pdf");
        assert_eq!(is("a.png", b"<script>alert(1)</script>"), "text/plain");
        assert_eq!(is("a.pdf", b"\x00\x01\x02"), "application/octet-stream");
        assert_eq!(is("a.bin", b"PK\x03\x04rest"), "application/zip");
        assert_eq!(is("song.mp3", b"ID3\x04\x00"), "audio/mpeg");
        assert_eq!(is("noending", b""), "text/plain");
    }

    #[test]
    fn an_office_file_is_told_by_what_is_in_it() {
        let folder = glovebox_testkit::repository().join("crates/cli/tests/real_files/data");
        let read = |name: &str| fs_err::read(folder.join(name)).unwrap();
        for (name, file_type) in [
            ("deck.pptx", FileType::Pptx),
            ("letter.docx", FileType::Docx),
            ("weather.xlsx", FileType::Xlsx),
        ] {
            let bytes = read(name);
            for named in [name, "a.pptx", "a.xlsx", "a.zip", "a"] {
                assert_eq!(
                    is(named, &bytes),
                    file_type.media_type(),
                    "{name} as {named}"
                );
            }
            // A part of it is none, whatever it is called.
            let half = &bytes[..bytes.len() / 2];
            assert_eq!(is(name, half), "application/zip", "half of {name}");
        }
        assert_eq!(is("a.xlsx", b"PK\x03\x04rest"), "application/zip");
    }
}
