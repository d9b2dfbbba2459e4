//! Files under our own ids, in a folder or a bucket.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt as _, TryStreamExt as _};
use glovebox_protocol::ids::{ArtifactId, AttachmentId, KnowledgeFileId, PreviewId};
use object_store::local::LocalFileSystem;
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStore, ObjectStoreExt as _, WriteMultipart};
use ring::digest::{Context, SHA256};

use crate::error::StoreError;
use crate::token::hex;

/// Where files lie. Clones share it.
#[derive(Debug, Clone)]
pub struct Objects {
    store: Arc<dyn ObjectStore>,
}

/// A file that is being written. Dropped without [`Upload::finish`], nothing of it is there.
#[derive(Debug)]
pub struct Upload {
    name: String,
    writer: WriteMultipart,
}

fn failed(doing: &'static str, name: &str) -> impl FnOnce(object_store::Error) -> StoreError {
    move |source| StoreError::Object {
        doing,
        name: name.into(),
        source,
    }
}

/// Which file: what it belongs to decides under which name its bytes lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectKey {
    /// A version of a file that left a sandbox.
    Artifact(ArtifactId),
    /// A file that was attached to a message.
    Attachment(AttachmentId),
    /// A file of a knowledge base.
    KnowledgeFile(KnowledgeFileId),
    /// A part of a preview: a word of ours and a number, such as `page-3.png`.
    PreviewPart(PreviewId, String),
}

impl From<ArtifactId> for ObjectKey {
    fn from(id: ArtifactId) -> Self {
        Self::Artifact(id)
    }
}

impl From<AttachmentId> for ObjectKey {
    fn from(id: AttachmentId) -> Self {
        Self::Attachment(id)
    }
}

impl From<KnowledgeFileId> for ObjectKey {
    fn from(id: KnowledgeFileId) -> Self {
        Self::KnowledgeFile(id)
    }
}

impl ObjectKey {
    /// Files lie in folders by the last letters of the random part of their ids, so that no
    /// folder grows without end.
    fn path(&self) -> ObjectPath {
        let (folder, id, part) = match self {
            Self::Artifact(id) => ("artifacts", id.to_string(), None),
            Self::Attachment(id) => ("attachments", id.to_string(), None),
            Self::KnowledgeFile(id) => ("knowledge", id.to_string(), None),
            Self::PreviewPart(id, part) => ("previews", id.to_string(), Some(part)),
        };
        let shard = &id[id.len() - 2..];
        let path = ObjectPath::from(format!("{folder}/{shard}/{id}"));
        match part {
            None => path,
            Some(part) => path.join(part.as_str()),
        }
    }
}

impl Objects {
    /// Files in a folder of this machine, which has to be there.
    ///
    /// # Errors
    /// When it is not.
    pub fn in_folder(folder: &Path) -> Result<Self, StoreError> {
        let store = LocalFileSystem::new_with_prefix(folder)
            .map_err(failed(
                "opening the folder of",
                &folder.display().to_string(),
            ))?
            .with_automatic_cleanup(true);
        Ok(Self {
            store: Arc::new(store),
        })
    }

    /// Begins to write a file.
    ///
    /// # Errors
    /// When the store does not take it.
    pub async fn create(&self, file: impl Into<ObjectKey>) -> Result<Upload, StoreError> {
        let path = file.into().path();
        let upload = self
            .store
            .put_multipart(&path)
            .await
            .map_err(failed("beginning to write", path.as_ref()))?;
        Ok(Upload {
            name: path.to_string(),
            writer: WriteMultipart::new(upload),
        })
    }

    /// Throws a file's bytes away.
    ///
    /// # Errors
    /// When the store does not do it.
    pub async fn delete(&self, file: impl Into<ObjectKey>) -> Result<(), StoreError> {
        let path = file.into().path();
        self.store
            .delete(&path)
            .await
            .map_err(failed("deleting", path.as_ref()))
    }

    /// Throws a file's bytes away, where they are there.
    ///
    /// # Errors
    /// When the store does not do it.
    pub async fn forget(&self, file: impl Into<ObjectKey>) -> Result<(), StoreError> {
        match self.delete(file).await {
            Err(StoreError::Object {
                source: object_store::Error::NotFound { .. },
                ..
            }) => Ok(()),
            deleted => deleted,
        }
    }

    /// Reads a file from the beginning.
    ///
    /// # Errors
    /// When it is not there or cannot be read.
    pub async fn read(
        &self,
        file: impl Into<ObjectKey>,
    ) -> Result<BoxStream<'static, Result<Bytes, StoreError>>, StoreError> {
        let path = file.into().path();
        let found = self
            .store
            .get(&path)
            .await
            .map_err(failed("opening", path.as_ref()))?;
        let name = path.to_string();
        let stream = found.into_stream();
        Ok(stream
            .map(move |part| part.map_err(failed("reading", &name)))
            .boxed())
    }

    /// Reads a file whose length and SHA-256 are known from the beginning, once all of it was looked
    /// at: what is given out is what was stored, or nothing of it.
    ///
    /// # Errors
    /// When it is not there, is not what was stored, or cannot be read.
    pub async fn read_stored(
        &self,
        file: impl Into<ObjectKey>,
        bytes: u64,
        sha256: &str,
    ) -> Result<BoxStream<'static, Result<Bytes, StoreError>>, StoreError> {
        let file = file.into();
        // Read twice: what is wrong at the end cannot be told any more once the beginning is sent.
        match self.digest(file.clone()).await? {
            Some((found, hash)) if (found, hash.as_str()) == (bytes, sha256) => {
                self.read(file).await
            }
            Some(_) => Err(StoreError::Altered {
                name: file.path().to_string(),
            }),
            None => Err(StoreError::Lost {
                name: file.path().to_string(),
            }),
        }
    }

    /// How many bytes a file has, and their SHA-256 in hexadecimal; nothing where it is not
    /// there.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn digest(
        &self,
        file: impl Into<ObjectKey>,
    ) -> Result<Option<(u64, String)>, StoreError> {
        let mut parts = match self.read(file).await {
            Ok(parts) => parts,
            Err(StoreError::Object {
                source: object_store::Error::NotFound { .. },
                ..
            }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let (mut bytes, mut hash) = (0, Context::new(&SHA256));
        while let Some(part) = parts.try_next().await? {
            bytes += part.len() as u64;
            hash.update(&part);
        }
        Ok(Some((bytes, hex(hash.finish().as_ref()))))
    }
}

impl Upload {
    /// Writes some more.
    ///
    /// # Errors
    /// When what was written before could not be.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        // Two parts are under way at most: memory stays flat however long the file is.
        self.writer
            .wait_for_capacity(2)
            .await
            .map_err(failed("writing", &self.name))?;
        self.writer.write(bytes);
        Ok(())
    }

    /// Makes the file appear under its id.
    ///
    /// # Errors
    /// When something could not be written; then it does not appear.
    pub async fn finish(self) -> Result<(), StoreError> {
        self.writer
            .finish()
            .await
            .map(|_| ())
            .map_err(failed("finishing", &self.name))
    }

    /// Throws away what was written.
    ///
    /// # Errors
    /// When the store does not do it.
    pub async fn abort(self) -> Result<(), StoreError> {
        self.writer
            .abort()
            .await
            .map_err(failed("throwing away", &self.name))
    }
}
