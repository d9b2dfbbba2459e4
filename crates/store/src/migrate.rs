//! The tables and their versions.

use sqlx::{AnyConnection, Row as _};

use crate::database::{Backend, Store, Transaction, now_ms, statement};
use crate::error::StoreError;

/// One step from a version to the next. Steps are only ever added at the end.
struct Step {
    both: &'static str,
    sqlite: &'static str,
    postgres: &'static str,
}

const STEPS: [Step; 7] = [
    Step {
        both: include_str!("../migrations/0001-first.sql"),
        sqlite: include_str!("../migrations/0001-sqlite.sql"),
        postgres: include_str!("../migrations/0001-postgres.sql"),
    },
    Step {
        both: include_str!("../migrations/0002-chat.sql"),
        sqlite: "",
        postgres: "",
    },
    Step {
        both: include_str!("../migrations/0003-keys.sql"),
        sqlite: include_str!("../migrations/0003-sqlite.sql"),
        postgres: "",
    },
    Step {
        both: include_str!("../migrations/0004-lifecycle.sql"),
        sqlite: "",
        postgres: "",
    },
    Step {
        both: include_str!("../migrations/0005-fair-and-timely.sql"),
        sqlite: "",
        postgres: "",
    },
    Step {
        both: include_str!("../migrations/0006-titles.sql"),
        sqlite: "",
        postgres: "",
    },
    Step {
        both: include_str!("../migrations/0007-order.sql"),
        sqlite: "",
        postgres: include_str!("../migrations/0007-postgres.sql"),
    },
];

/// The version that this program wants.
pub(crate) const WANTED: i64 = STEPS.len() as i64;

/// A number of our own among PostgreSQL's advisory locks.
const TAKE_LOCK: &str = "SELECT pg_advisory_xact_lock(7401820934127)";

const TABLE: &str =
    "CREATE TABLE IF NOT EXISTS schema_versions (version BIGINT PRIMARY KEY, at BIGINT NOT NULL)";

const NEWEST: &str = "SELECT COALESCE(MAX(version), 0) AS version FROM schema_versions";

pub(crate) async fn run(store: &Store) -> Result<(), StoreError> {
    let mut changes = store.begin().await?;
    bring(&mut changes, store.backend(), WANTED).await?;
    changes.commit().await
}

/// Brings the tables to a version, if they are older, and says which one they had.
pub(crate) async fn bring(
    changes: &mut Transaction,
    backend: Backend,
    to: i64,
) -> Result<i64, StoreError> {
    let failed = || statement("bringing the tables to a new version");
    let connection = &mut *changes.inner;
    if backend == Backend::Postgres {
        // Two that make the same table at once would both see that it is not there.
        sqlx::query(TAKE_LOCK)
            .execute(&mut *connection)
            .await
            .map_err(failed())?;
    }
    sqlx::query(TABLE)
        .execute(&mut *connection)
        .await
        .map_err(failed())?;
    let found = newest(connection).await?;
    if found > WANTED {
        return Err(newer(found));
    }
    for (step, version) in STEPS.iter().zip(1_i64..) {
        if version <= found || version > to {
            continue;
        }
        let more = match backend {
            Backend::Sqlite => step.sqlite,
            Backend::Postgres => step.postgres,
        };
        for text in [step.both, more] {
            sqlx::raw_sql(text)
                .execute(&mut *connection)
                .await
                .map_err(failed())?;
        }
        sqlx::query("INSERT INTO schema_versions (version, at) VALUES ($1, $2)")
            .bind(version)
            .bind(now_ms())
            .execute(&mut *connection)
            .await
            .map_err(failed())?;
    }
    Ok(found)
}

/// The version of tables that are there.
pub(crate) async fn newest(connection: &mut AnyConnection) -> Result<i64, StoreError> {
    let row = sqlx::query(NEWEST).fetch_one(connection).await;
    row.and_then(|row| row.try_get("version"))
        .map_err(statement("looking at the version of the tables"))
}

pub(crate) async fn version(store: &Store) -> Result<i64, StoreError> {
    let there = match store.backend() {
        Backend::Sqlite => {
            "SELECT COUNT(*) AS n FROM sqlite_master WHERE type = 'table' AND name = 'schema_versions'"
        }
        Backend::Postgres => {
            "SELECT COUNT(*) AS n FROM pg_tables WHERE schemaname = current_schema() \
             AND tablename = 'schema_versions'"
        }
    };
    let failed = || statement("looking at the version of the tables");
    let row = sqlx::query(there).fetch_one(&store.pool).await;
    let there: i64 = row.and_then(|row| row.try_get("n")).map_err(failed())?;
    if there == 0 {
        return Ok(0);
    }
    let row = sqlx::query(NEWEST).fetch_one(&store.pool).await;
    row.and_then(|row| row.try_get("version")).map_err(failed())
}

pub(crate) async fn check(store: &Store) -> Result<(), StoreError> {
    let found = version(store).await?;
    match found {
        found if found > WANTED => Err(newer(found)),
        WANTED => Ok(()),
        found => Err(StoreError::Version {
            found,
            wanted: WANTED,
            hint: "run `glovebox migrate` with the same settings",
        }),
    }
}

fn newer(found: i64) -> StoreError {
    StoreError::Version {
        found,
        wanted: WANTED,
        hint: "a newer Glovebox has been here; use that one, or restore a backup from before",
    }
}
