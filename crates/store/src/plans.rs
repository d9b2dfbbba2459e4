//! How the databases find what is swept again and again: by an index that holds only those rows.

use sqlx::{AnyConnection, AssertSqlSafe, Connection as _, Row as _};

use crate::database::Store;
use crate::{execution, forget, lease, message, purge};

/// Statements of sweeps, with the index that each is to use.
fn sweeps() -> [(String, &'static str); 7] {
    [
        (lease::live(), "leases_live"),
        (execution::UNDRIVEN.into(), "executions_running"),
        (message::undriven(), "messages_running"),
        (purge::DELETED.into(), "threads_deleted"),
        (forget::SESSIONS.into(), "sessions_by_end"),
        (forget::ATTEMPTS.into(), "sign_in_attempts_by_time"),
        (forget::LEASES.into(), "leases_to_forget"),
    ]
}

/// A statement with values in the places of its parameters.
fn with_values(sql: &str) -> String {
    sql.replace("$1", "1").replace("$2", "2")
}

#[tokio::test]
async fn sqlite_sweeps_without_reading_whole_tables() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("sqlite://{}", folder.path().join("gb.db").display());
    let store = Store::open(&address).await.unwrap();
    store.migrate().await.unwrap();
    let mut connection = AnyConnection::connect(&address).await.unwrap();
    for (sql, index) in sweeps() {
        let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {}", with_values(&sql)));
        let rows = sqlx::query(explain)
            .fetch_all(&mut connection)
            .await
            .unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.get("detail")).collect();
        assert!(
            plan.iter().any(|step| step.contains(index)),
            "{sql}: {plan:?}"
        );
        let reads_all = |step: &&String| step.starts_with("SCAN") && !step.contains("INDEX");
        assert_eq!(plan.iter().find(reads_all), None, "{sql}");
    }
}

#[tokio::test]
#[expect(
    clippy::disallowed_methods,
    reason = "a test has no other way to be told"
)]
async fn postgresql_can_sweep_without_reading_whole_tables() {
    let socket = std::env::var("GLOVEBOX_TEST_POSTGRES")
        .expect("GLOVEBOX_TEST_POSTGRES says where PostgreSQL is; run `make test`");
    let at = |name: &str| format!("postgres://glovebox@localhost/{name}?host={socket}");
    let name = format!("gb_{}", glovebox_protocol::ids::SandboxId::new()).replace('-', "_");
    sqlx::any::install_default_drivers();
    let mut server = AnyConnection::connect(&at("postgres")).await.unwrap();
    sqlx::query(AssertSqlSafe(format!("CREATE DATABASE {name}")))
        .execute(&mut server)
        .await
        .unwrap();
    let store = Store::open(&at(&name)).await.unwrap();
    store.migrate().await.unwrap();
    let mut connection = AnyConnection::connect(&at(&name)).await.unwrap();
    // Of tables without rows any plan is as good: it is asked which index could serve at all.
    sqlx::query("SET enable_seqscan = off")
        .execute(&mut connection)
        .await
        .unwrap();
    for (sql, index) in sweeps() {
        let explain = AssertSqlSafe(format!("EXPLAIN {}", with_values(&sql)));
        let rows = sqlx::query(explain)
            .fetch_all(&mut connection)
            .await
            .unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.get("QUERY PLAN")).collect();
        assert!(
            plan.iter().any(|step| step.contains(index)),
            "{sql}: {plan:#?}"
        );
    }
}
