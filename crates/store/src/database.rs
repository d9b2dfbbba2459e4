//! The database: one of two kinds, one set of statements.

use std::str::FromStr as _;
use std::time::Duration;

use chrono::{DateTime, TimeZone as _, Utc};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::any::{AnyConnectOptions, AnyPoolOptions, AnyRow};
use sqlx::{Any, AnyConnection, AnyPool, Connection as _, Row as _};

use crate::error::StoreError;
use crate::migrate;

/// How many connections one process keeps open at most.
const CONNECTIONS: u32 = 16;

/// How long a statement waits for a lock of SQLite, in milliseconds, and a caller for a connection.
const PATIENCE_MS: u64 = 10_000;

/// What kind of database it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// A file on this machine, for one server.
    Sqlite,
    /// A PostgreSQL server, which several servers may share.
    Postgres,
}

/// An open database. Clones share its connections.
#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) pool: AnyPool,
    backend: Backend,
}

/// Several changes that come about together or not at all: dropped without
/// [`Transaction::commit`], nothing of it has happened.
#[derive(Debug)]
pub struct Transaction {
    pub(crate) inner: sqlx::Transaction<'static, Any>,
    pub(crate) backend: Backend,
}

impl Transaction {
    /// Holds the row that a statement finds: whoever else wants to hold or change it waits until
    /// these changes are done. On SQLite there is one writer at a time anyway.
    ///
    /// `select` ends in `FOR NO KEY UPDATE`, which lets others refer to the row. A change that changes
    /// nothing would hold it too; but where many do that at once beside others that refer to the row,
    /// PostgreSQL 15 fails with `new multixact has more than one updating member`.
    pub(crate) async fn hold(
        &mut self,
        select: &'static str,
        key: &str,
        doing: &'static str,
    ) -> Result<(), StoreError> {
        if self.backend == Backend::Sqlite {
            return Ok(());
        }
        sqlx::query(select)
            .bind(key)
            .fetch_optional(&mut *self.inner)
            .await
            .map(|_| ())
            .map_err(statement(doing))
    }

    /// Makes the changes last.
    ///
    /// # Errors
    /// When the database does not confirm it.
    pub async fn commit(self) -> Result<(), StoreError> {
        self.inner
            .commit()
            .await
            .map_err(statement("committing changes"))
    }
}

impl Store {
    /// Opens the database at `sqlite:///PATH` (made where it is not there) or `postgres://…`.
    /// Does not look at its tables: see [`Store::migrate`] and [`Store::check_version`].
    ///
    /// # Errors
    /// When the address is none, or nothing can be opened there.
    pub async fn open(address: &str) -> Result<Self, StoreError> {
        sqlx::any::install_default_drivers();
        let backend = match address.split_once(':').map_or("", |(scheme, _)| scheme) {
            "sqlite" => Backend::Sqlite,
            "postgres" | "postgresql" => Backend::Postgres,
            _ => {
                return Err(StoreError::Address {
                    given: without_password(address),
                });
            }
        };
        let failed = |source| StoreError::Open {
            address: without_password(address),
            source,
        };
        let url = match backend {
            Backend::Sqlite if !address.contains('?') => format!("{address}?mode=rwc"),
            _ => address.to_owned(),
        };
        let options = AnyConnectOptions::from_str(&url).map_err(failed)?;
        if backend == Backend::Postgres {
            // A pool tries again until its patience is over, and then tells of that and not of why.
            let first = AnyConnection::connect_with(&options)
                .await
                .map_err(failed)?;
            first.close().await.map_err(failed)?;
        }
        let pool = AnyPoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(Duration::from_millis(PATIENCE_MS))
            // SQLite takes a transaction back by itself where the disk is full or broken. The driver
            // does not see that and would begin the next one inside: such a connection is closed.
            .before_acquire(|connection, _| {
                Box::pin(async move { Ok(!connection.is_in_transaction()) })
            })
            .after_connect(move |connection, _| {
                Box::pin(async move {
                    if backend == Backend::Sqlite {
                        // In this order: the first of them waits for others already.
                        for pragma in [
                            "PRAGMA busy_timeout = 10000",
                            "PRAGMA journal_mode = WAL",
                            "PRAGMA synchronous = NORMAL",
                            "PRAGMA foreign_keys = ON",
                        ] {
                            sqlx::query(pragma).execute(&mut *connection).await?;
                        }
                    }
                    Ok(())
                })
            })
            .connect_with(options)
            .await
            .map_err(failed)?;
        Ok(Self { pool, backend })
    }

    /// What kind of database it is.
    #[must_use]
    pub const fn backend(&self) -> Backend {
        self.backend
    }

    /// Brings the tables to the version that this program wants. Of several that do it at once,
    /// one does it and the others wait.
    ///
    /// # Errors
    /// When a statement fails; then nothing has changed.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        migrate::run(self).await
    }

    /// The version of the tables; 0 where there are none.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn version(&self) -> Result<i64, StoreError> {
        migrate::version(self).await
    }

    /// Makes sure that the tables are those that this program wants.
    ///
    /// # Errors
    /// When they are not, with what to do.
    pub async fn check_version(&self) -> Result<(), StoreError> {
        migrate::check(self).await
    }

    /// Begins changes that belong together. On SQLite there is one writer at a time from here on.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn begin(&self) -> Result<Transaction, StoreError> {
        let words = match self.backend {
            Backend::Sqlite => "BEGIN IMMEDIATE",
            Backend::Postgres => "BEGIN",
        };
        let inner = self.pool.begin_with(words).await;
        Ok(Transaction {
            inner: inner.map_err(statement("beginning changes"))?,
            backend: self.backend,
        })
    }

    /// Whether the database answers.
    ///
    /// # Errors
    /// When it does not.
    pub async fn ping(&self) -> Result<(), StoreError> {
        sqlx::query("SELECT 1")
            .execute(&self.pool)
            .await
            .map(|_| ())
            .map_err(statement("asking the database for a sign of life"))
    }

    /// Copies a database of SQLite, as it is at this moment, into a file that is not there yet. The
    /// file of the database alone would lack what stands only in the log beside it.
    ///
    /// # Errors
    /// When the file is there, cannot be written, or the database is none of SQLite.
    pub async fn copy_into(&self, file: &str) -> Result<(), StoreError> {
        sqlx::query("VACUUM INTO $1")
            .bind(file)
            .execute(&self.pool)
            .await
            .map(|_| ())
            .map_err(statement("copying the database"))
    }

    /// Gives the connections back.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

/// Makes a failed statement into an error that says what was being done.
pub(crate) fn statement(doing: &'static str) -> impl FnOnce(sqlx::Error) -> StoreError {
    move |source| StoreError::Statement { doing, source }
}

/// The same, where a unique value may be there already.
pub(crate) fn unique(
    doing: &'static str,
    what: &'static str,
) -> impl FnOnce(sqlx::Error) -> StoreError {
    move |source| {
        if StoreError::is_unique(&source) {
            StoreError::Taken { what }
        } else {
            StoreError::Statement { doing, source }
        }
    }
}

/// A time as it is stored.
pub(crate) fn to_ms(at: DateTime<Utc>) -> i64 {
    at.timestamp_millis()
}

/// Now, to the millisecond that is stored.
pub(crate) fn now_ms() -> i64 {
    Utc::now().timestamp_millis()
}

/// Reads columns of a row as what they mean.
pub(crate) trait Columns {
    fn text(&self, column: &'static str) -> Result<String, StoreError>;
    fn maybe_text(&self, column: &'static str) -> Result<Option<String>, StoreError>;
    fn number(&self, column: &'static str) -> Result<i64, StoreError>;
    fn maybe_number(&self, column: &'static str) -> Result<Option<i64>, StoreError>;

    fn flag(&self, column: &'static str) -> Result<bool, StoreError> {
        Ok(self.number(column)? != 0)
    }

    fn time(&self, column: &'static str) -> Result<DateTime<Utc>, StoreError> {
        as_time(column, self.number(column)?)
    }

    fn maybe_time(&self, column: &'static str) -> Result<Option<DateTime<Utc>>, StoreError> {
        self.maybe_number(column)?
            .map(|ms| as_time(column, ms))
            .transpose()
    }

    /// An id, or a word of a fixed set.
    fn word<T: std::str::FromStr>(&self, column: &'static str) -> Result<T, StoreError> {
        as_word(column, self.text(column)?)
    }

    fn maybe_word<T: std::str::FromStr>(
        &self,
        column: &'static str,
    ) -> Result<Option<T>, StoreError> {
        self.maybe_text(column)?
            .map(|found| as_word(column, found))
            .transpose()
    }

    fn document<T: DeserializeOwned>(&self, column: &'static str) -> Result<T, StoreError> {
        serde_json::from_str(&self.text(column)?)
            .map_err(|source| StoreError::Document { column, source })
    }
}

impl Columns for AnyRow {
    fn text(&self, column: &'static str) -> Result<String, StoreError> {
        self.try_get(column).map_err(statement("reading a row"))
    }

    fn maybe_text(&self, column: &'static str) -> Result<Option<String>, StoreError> {
        self.try_get(column).map_err(statement("reading a row"))
    }

    fn number(&self, column: &'static str) -> Result<i64, StoreError> {
        self.try_get(column).map_err(statement("reading a row"))
    }

    fn maybe_number(&self, column: &'static str) -> Result<Option<i64>, StoreError> {
        self.try_get(column).map_err(statement("reading a row"))
    }
}

fn as_time(column: &'static str, ms: i64) -> Result<DateTime<Utc>, StoreError> {
    Utc.timestamp_millis_opt(ms)
        .single()
        .ok_or_else(|| StoreError::Row {
            column,
            found: ms.to_string(),
        })
}

fn as_word<T: std::str::FromStr>(column: &'static str, found: String) -> Result<T, StoreError> {
    found.parse().map_err(|_| StoreError::Row { column, found })
}

/// A document as it is stored.
pub(crate) fn to_json<T: Serialize>(
    column: &'static str,
    document: &T,
) -> Result<String, StoreError> {
    serde_json::to_string(document).map_err(|source| StoreError::Document { column, source })
}

/// An address as it may be shown: without what stands between user and host.
fn without_password(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else {
        return address.chars().take(64).collect();
    };
    match rest.rsplit_once('@') {
        Some((user, host)) => {
            let user = user.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}@{host}")
        }
        None => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        for (given, shown) in [
            ("postgres://me:secret@db/gb", "postgres://me@db/gb"),
            ("postgres://me:s@cret@db/gb", "postgres://me@db/gb"),
            ("sqlite:///var/lib/gb.db", "sqlite:///var/lib/gb.db"),
            ("nonsense", "nonsense"),
        ] {
            assert_eq!(without_password(given), shown);
        }
    }
    #[tokio::test]
    async fn a_disk_that_was_full_is_only_in_the_way_while_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("gb.db");
        let store = Store::open(&format!("sqlite://{}", file.display())).await;
        let store = store.unwrap();
        store.migrate().await.unwrap();
        for _ in 0..3 * CONNECTIONS {
            let mut changes = store.begin().await.unwrap();
            let run = async |changes: &mut Transaction, text: &'static str| {
                sqlx::query(text).execute(&mut *changes.inner).await
            };
            run(&mut changes, "PRAGMA max_page_count = 1")
                .await
                .unwrap();
            let full = "INSERT INTO settings (name, value, changed_at) \
                 VALUES (hex(randomblob(8)), hex(randomblob(1000000)), 1)";
            assert!(run(&mut changes, full).await.is_err(), "there is room");
            run(&mut changes, "PRAGMA max_page_count = 4294967294")
                .await
                .unwrap();
            // As every use case does that meets an error.
            drop(changes);
        }
        let mut changes = store.begin().await.unwrap();
        changes.set("after", &1).await.unwrap();
        changes.commit().await.unwrap();
    }
}
