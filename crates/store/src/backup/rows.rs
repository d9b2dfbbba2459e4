//! Rows of any table as lists of texts and numbers, by the columns that the database names.

use serde_json::Value;
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::query::Query;
use sqlx::{Any, AnyConnection, AssertSqlSafe, Row as _};

use super::error::BackupError;
use crate::database::{Backend, Columns as _, statement};
use crate::error::StoreError;

/// The tables of a backup, each after those that its rows refer to.
const KEPT: [&str; 24] = [
    "settings",
    "secrets",
    "users",
    "profiles",
    "profile_checks",
    "acknowledgements",
    "organizations",
    "workspaces",
    "memberships",
    "api_keys",
    "models",
    "threads",
    "messages",
    "thread_events",
    "attachments",
    "knowledge_files",
    "leases",
    "executions",
    "events",
    "artifacts",
    "staged_files",
    "denials",
    "tasks",
    "audit",
];

/// Tables whose rows are of a moment. A session that was ended since would live again, and with
/// it whoever had stolen it; failed attempts to sign in are long over; previews are made anew from
/// their files, and whose turn it is among those that wait is begun anew.
const PASSING: [&str; 5] = [
    "sessions",
    "sign_in_attempts",
    "preview_parts",
    "previews",
    "task_turns",
];

/// Columns by which a row refers to another one of its table, which refers to none itself. Their keys do
/// not tell which is older: each server makes them by its own clock.
const OWN_REFERENCES: [(&str, &str); 2] = [("messages", "reply_to"), ("artifacts", "bytes_of")];

/// What a column holds: both databases have no more than these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
}

/// A table with its columns, in the order in which the database has them.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: &'static str,
    columns: Vec<(String, Kind)>,
}

/// The tables of a backup, as they are in this database.
pub(super) async fn tables(
    connection: &mut AnyConnection,
    backend: Backend,
) -> Result<Vec<Table>, StoreError> {
    let mut tables = Vec::with_capacity(KEPT.len());
    for name in KEPT {
        let columns = columns(connection, backend, name).await?;
        // Tables of an older version have not all of them.
        if !columns.is_empty() {
            tables.push(Table { name, columns });
        }
    }
    Ok(tables)
}

/// The columns of a table; none where there is no such table.
async fn columns(
    connection: &mut AnyConnection,
    backend: Backend,
    table: &'static str,
) -> Result<Vec<(String, Kind)>, StoreError> {
    let select = match backend {
        Backend::Sqlite => "SELECT name, type AS kind FROM pragma_table_info($1) ORDER BY cid",
        Backend::Postgres => {
            "SELECT CAST(column_name AS TEXT) AS name, CAST(data_type AS TEXT) AS kind \
             FROM information_schema.columns \
             WHERE table_schema = current_schema() AND table_name = $1 ORDER BY ordinal_position"
        }
    };
    let rows = sqlx::query(select)
        .bind(table)
        .fetch_all(connection)
        .await
        .map_err(statement("looking at the columns of a table"))?;
    rows.iter()
        .map(|row| Ok((row.text("name")?, kind(row.text("kind")?)?)))
        .collect()
}

fn kind(found: String) -> Result<Kind, StoreError> {
    match found.to_ascii_lowercase().as_str() {
        "text" => Ok(Kind::Text),
        "bigint" => Ok(Kind::Number),
        _ => Err(StoreError::Row {
            column: "kind",
            found,
        }),
    }
}

/// The first table that has a row. Nobody else writes one from here on, until these changes end.
pub(super) async fn first_filled(
    connection: &mut AnyConnection,
    backend: Backend,
) -> Result<Option<&'static str>, StoreError> {
    for table in KEPT.into_iter().chain(PASSING) {
        if columns(connection, backend, table).await?.is_empty() {
            continue;
        }
        if backend == Backend::Postgres {
            // A server that starts just now writes its first rows after, and finds ours.
            let lock = format!("LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE");
            sqlx::query(AssertSqlSafe(lock))
                .execute(&mut *connection)
                .await
                .map_err(statement("holding the tables"))?;
        }
        let count = format!("SELECT COUNT(*) AS n FROM {table}");
        let row = sqlx::query(AssertSqlSafe(count))
            .fetch_one(&mut *connection)
            .await
            .map_err(statement("looking for rows"))?;
        if row.number("n")? > 0 {
            return Ok(Some(table));
        }
    }
    Ok(None)
}

impl Table {
    /// The names of its columns.
    pub(super) fn columns(&self) -> Vec<String> {
        self.columns.iter().map(|(name, _)| name.clone()).collect()
    }

    /// The statement that reads all its rows, in the order of their keys; those that refer to another one
    /// of their table come after all that refer to none.
    pub(super) fn select(&self) -> String {
        let (columns, name) = (self.quoted(), self.name);
        let refers = OWN_REFERENCES.iter().find(|(table, column)| {
            *table == name && self.columns.iter().any(|(one, _)| one == column)
        });
        match refers {
            Some((_, column)) => {
                format!(
                    "SELECT {columns} FROM {name} ORDER BY CASE WHEN {column} IS NULL THEN 0 ELSE 1 END, 1"
                )
            }
            None => format!("SELECT {columns} FROM {name} ORDER BY 1"),
        }
    }

    /// The statement that writes one row.
    pub(super) fn insert(&self) -> String {
        let places: Vec<_> = (1..=self.columns.len()).map(|n| format!("${n}")).collect();
        format!(
            "INSERT INTO {} ({}) VALUES ({})",
            self.name,
            self.quoted(),
            places.join(", ")
        )
    }

    fn quoted(&self) -> String {
        let quoted = self.columns.iter().map(|(name, _)| format!("\"{name}\""));
        quoted.collect::<Vec<_>>().join(", ")
    }

    /// In which columns a row has its key and the reference to another row of its table; nothing where
    /// rows of the table refer to none.
    pub(super) fn own_reference(&self) -> Option<(usize, usize)> {
        let (_, refers) = OWN_REFERENCES
            .iter()
            .find(|(table, _)| *table == self.name)?;
        let at = |wanted: &str| self.columns.iter().position(|(name, _)| name == wanted);
        Some((at("id")?, at(refers)?))
    }

    /// A row that [`Table::select`] gave.
    pub(super) fn read(&self, row: &AnyRow) -> Result<Vec<Value>, BackupError> {
        let cell = |at: usize, kind: Kind| match kind {
            Kind::Text => row.try_get::<Option<String>, _>(at).map(Value::from),
            Kind::Number => row.try_get::<Option<i64>, _>(at).map(Value::from),
        };
        let cells = self.columns.iter().enumerate();
        cells
            .map(|(at, (_, kind))| cell(at, *kind).map_err(self.failed("reading")))
            .collect()
    }

    /// The statement [`Table::insert`] with the cells of a row; nothing where they do not fit.
    pub(super) fn bind<'q>(
        &self,
        mut query: Query<'q, Any, AnyArguments>,
        row: Vec<Value>,
    ) -> Option<Query<'q, Any, AnyArguments>> {
        if row.len() != self.columns.len() {
            return None;
        }
        for (cell, (_, kind)) in row.into_iter().zip(&self.columns) {
            query = match (kind, cell) {
                (Kind::Text, Value::String(text)) => query.bind(text),
                (Kind::Text, Value::Null) => query.bind(None::<String>),
                (Kind::Number, Value::Number(number)) => query.bind(number.as_i64()?),
                (Kind::Number, Value::Null) => query.bind(None::<i64>),
                _ => return None,
            };
        }
        Some(query)
    }

    /// Makes a failed statement into an error that names the table.
    pub(super) fn failed(&self, doing: &'static str) -> impl FnOnce(sqlx::Error) -> BackupError {
        let table = self.name;
        move |source| BackupError::Rows {
            doing,
            table,
            source,
        }
    }
}
