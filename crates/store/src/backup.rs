//! A backup: all rows and all objects in one file that either kind of database takes back.
//!
//! The master key is in none: secrets are in it as they are stored, sealed. Rows are taken as
//! they are, whatever they mean, so that a new column needs nothing here; a new table needs its
//! name in `rows`, in its place.

mod error;
mod file;
mod object;
mod restore;
mod rows;

use std::io::Write;

use futures_util::TryStreamExt as _;
use sqlx::{AnyConnection, AssertSqlSafe};

pub use error::BackupError;
pub use object::BackedUpFile;
pub use restore::{Backup, Restored};

use crate::database::{Backend, Columns as _, Store, Transaction, statement};
use crate::error::StoreError;
use crate::migrate;
use crate::objects::Objects;
use file::{Digest, Entry, Writer};
use rows::Table;

/// What a backup holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackedUp {
    /// How many rows.
    pub rows: u64,
    /// How many objects.
    pub objects: u64,
    /// How long the file is.
    pub bytes: u64,
    /// Files whose bytes are not in the object store, or not those that were kept: their rows are
    /// in the backup, and nothing of their bytes.
    pub missing: Vec<BackedUpFile>,
}

impl Store {
    /// Writes everything as it is at this moment, also while a server runs. Sessions and failed
    /// sign-ins are left out: they belong to the moment.
    ///
    /// # Errors
    /// When the tables are not of this program's version, something cannot be read, or the file
    /// cannot be written.
    pub async fn back_up<W: Write + Send>(
        &self,
        objects: &Objects,
        out: W,
    ) -> Result<BackedUp, BackupError> {
        self.check_version().await?;
        let mut snapshot = self.snapshot().await?;
        let connection = &mut *snapshot.inner;
        let version = migrate::newest(connection).await?;
        let mut file = Writer::begin(out, version)?;
        let mut missing = Vec::new();
        let files = files(connection).await?;
        for found in &files {
            if is_whole(objects, found).await? {
                file.line(&Entry::Object(found.clone()))?;
                copy(objects, found, &mut file).await?;
            } else {
                file.line(&Entry::Missing(found.file))?;
                missing.push(found.file);
            }
        }
        let copied = (files.len() - missing.len()) as u64;
        let mut rows = 0;
        for table in rows::tables(connection, self.backend()).await? {
            file.line(&Entry::Table {
                name: table.name.into(),
                columns: table.columns(),
            })?;
            rows += write_rows(connection, &table, &mut file).await?;
        }
        Ok(BackedUp {
            rows,
            objects: copied,
            bytes: file.finish(copied, rows)?,
            missing,
        })
    }

    /// What the database holds at this moment, whatever others do meanwhile.
    async fn snapshot(&self) -> Result<Transaction, StoreError> {
        let words = match self.backend() {
            // The first statement fixes what all others see.
            Backend::Sqlite => "BEGIN",
            Backend::Postgres => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        };
        let inner = self.pool.begin_with(words).await;
        Ok(Transaction {
            inner: inner.map_err(statement("beginning a backup"))?,
            backend: self.backend(),
        })
    }
}

/// What the rows say of all files.
async fn files(connection: &mut AnyConnection) -> Result<Vec<Digest>, StoreError> {
    let rows = sqlx::query(object::ALL)
        .fetch_all(connection)
        .await
        .map_err(statement("listing files"))?;
    rows.iter()
        .map(|row| {
            Ok(Digest {
                file: BackedUpFile::of(row)?,
                bytes: u64::try_from(row.number("bytes")?).unwrap_or(0),
                sha256: row.text("sha256")?,
            })
        })
        .collect()
}

/// Whether the bytes of a file are there and those that were kept. One that is not does not
/// keep everything else from being saved.
async fn is_whole(objects: &Objects, digest: &Digest) -> Result<bool, StoreError> {
    let found = objects.digest(digest.file).await?;
    Ok(found.is_some_and(|found| found == (digest.bytes, digest.sha256.clone())))
}

async fn copy<W: Write>(
    objects: &Objects,
    digest: &Digest,
    file: &mut Writer<W>,
) -> Result<(), BackupError> {
    let mut bytes = objects.read(digest.file).await?;
    let mut length = 0;
    while let Some(part) = bytes.try_next().await? {
        length += part.len() as u64;
        file.raw(&part)?;
    }
    if length != digest.bytes {
        return Err(BackupError::Unsteady { id: digest.file });
    }
    file.raw(b"\n")
}

async fn write_rows<W: Write>(
    connection: &mut AnyConnection,
    table: &Table,
    file: &mut Writer<W>,
) -> Result<u64, BackupError> {
    let mut rows = sqlx::query(AssertSqlSafe(table.select())).fetch(connection);
    let mut count = 0;
    while let Some(row) = rows.try_next().await.map_err(table.failed("reading"))? {
        file.line(&table.read(&row)?)?;
        count += 1;
    }
    Ok(count)
}
