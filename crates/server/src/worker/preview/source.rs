//! The file that a preview is made of, on its way out of the object store.

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use futures_util::stream::BoxStream;
use glovebox_protocol::sign::BodyDigest;
use glovebox_store::{Preview, StoreError};
use ring::digest::{Context, SHA256};
use tokio::io::AsyncWriteExt as _;

use super::Stopped;
use crate::app::App;
use crate::app::previews::contents::Contents;
use crate::app::spool::Unnamed;
use crate::failure::chain;

/// Reads the file of a preview, no more than `limit` bytes.
pub(super) async fn read_source(
    app: &App,
    preview: &Preview,
    limit: u64,
) -> Result<Vec<u8>, Stopped> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut source = Source::open(app, preview).await?;
    let mut bytes = Vec::new();
    // To its end, also where no more is kept: its hash is known then.
    while let Some(part) = source.next().await? {
        let room = limit - bytes.len();
        bytes.extend_from_slice(&part[..part.len().min(room)]);
    }
    Ok(bytes)
}

/// The bytes of a preview's file on their way out of the object store.
struct Source<'a> {
    preview: &'a Preview,
    parts: BoxStream<'static, Result<Bytes, StoreError>>,
    hash: Context,
}

impl<'a> Source<'a> {
    async fn open(app: &App, preview: &'a Preview) -> Result<Self, Stopped> {
        let opened = app.objects().read(preview.source).await;
        let parts = opened.map_err(|error| {
            tracing::info!(preview = %preview.id, error = chain(&error), "opening the file of a preview");
            let message = "the file is not there any more";
            Stopped::File(Contents::failed_for_now(message, None))
        })?;
        Ok(Self {
            preview,
            parts,
            hash: Context::new(&SHA256),
        })
    }

    /// The file is there and cannot be read to its end: of the disk or of the object store.
    fn unread(&self, error: &StoreError) -> Stopped {
        tracing::error!(preview = %self.preview.id, error = chain(error), "reading the file of a preview");
        Stopped::Unread
    }

    /// The next part; nothing at the end, where all of them were the bytes that the preview is of.
    /// Everybody who may read a file with these bytes sees it, so that no others may be shown.
    async fn next(&mut self) -> Result<Option<Bytes>, Stopped> {
        let part = self.parts.try_next().await;
        if let Some(part) = part.map_err(|error| self.unread(&error))? {
            self.hash.update(&part);
            return Ok(Some(part));
        }
        let hash = self.hash.clone().finish();
        let is_of_them = self
            .preview
            .sha256
            .parse::<BodyDigest>()
            .is_ok_and(|wanted| wanted.as_bytes() == hash.as_ref());
        if is_of_them {
            return Ok(None);
        }
        let preview = self.preview.id;
        tracing::error!(%preview, "the bytes of a file are not those that were stored");
        let message = "the stored file is damaged: its bytes are not those that were saved";
        let fix = "save or send the file again; a system admin checks the disk of the object store";
        Err(Stopped::File(Contents::failed_for_now(
            message,
            Some(fix.into()),
        )))
    }
}

/// Copies the file of a preview into a file of this machine that has no name, and so goes with this
/// process at the latest: its hash has to be known before its first byte goes out, and it is never
/// whole in memory.
pub(super) async fn spool_source(app: &App, preview: &Preview) -> Result<Unnamed, Stopped> {
    let failed = |error: std::io::Error| {
        tracing::error!(error = chain(&error), "spooling the file of a preview");
        Stopped::Now {
            message: "it cannot be made now: the server has no room to work in".into(),
            fix: Some("try again in a moment; a system admin sees the reason in the log".into()),
            again: false,
        }
    };
    let file = Unnamed::in_folder(&app.config().data.join("spool")).map_err(failed)?;
    let mut out = file.open().map_err(failed)?;
    let mut source = Source::open(app, preview).await?;
    while let Some(part) = source.next().await? {
        out.write_all(&part).await.map_err(failed)?;
    }
    out.flush().await.map_err(failed)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt as _;
    use futures_util::stream;
    use glovebox_protocol::ids::{KnowledgeFileId, PreviewId, WorkspaceId};
    use glovebox_store::{PreviewSource, PreviewState};

    use super::*;

    #[tokio::test]
    async fn a_file_that_breaks_off_is_unread() {
        let preview = Preview {
            id: PreviewId::new(),
            workspace_id: WorkspaceId::new(),
            sha256: String::new(),
            format: "markdown".into(),
            source: PreviewSource::KnowledgeFile(KnowledgeFileId::new()),
            bytes: 2,
            state: PreviewState::Making,
            contents: serde_json::Value::Null,
            created_at: chrono::Utc::now(),
            made_at: None,
        };
        let broken = StoreError::Row {
            column: "x",
            found: String::new(),
        };
        let mut source = Source {
            preview: &preview,
            parts: stream::iter([Ok(Bytes::from_static(b"a")), Err(broken)]).boxed(),
            hash: Context::new(&SHA256),
        };
        assert!(matches!(source.next().await, Ok(Some(_))));
        assert!(matches!(source.next().await, Err(Stopped::Unread)));
    }
}
