//! Databases of a test's own, and what most tests begin with.

use chrono::{TimeDelta, Utc};
use glovebox_protocol::class::ResourceClass;
use glovebox_protocol::ids::{ProfileId, SandboxId, UserId, WorkspaceId};
use glovebox_store::{Access, NewLease, NewUser, ProfileSettings, Quotas, Role, Store};

/// Where `make test` has started a PostgreSQL for tests.
const POSTGRES: &str = "GLOVEBOX_TEST_POSTGRES";

/// A database of a test's own.
pub(crate) struct Database {
    pub(crate) store: Store,
    pub(crate) address: String,
    /// Holds the file of SQLite.
    _folder: Option<tempfile::TempDir>,
}

impl Database {
    /// In a file of its own, with tables and nothing in them.
    pub(crate) async fn sqlite() -> Self {
        Self::bare_sqlite().await.with_tables().await
    }

    /// On the server for tests, with tables and nothing in them.
    pub(crate) async fn postgres() -> Self {
        Self::bare_postgres().await.with_tables().await
    }

    /// In a file of its own, without tables.
    pub(crate) async fn bare_sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let address = format!("sqlite://{}", folder.path().join("gb.db").display());
        Self::at(address, Some(folder)).await
    }

    /// On the server for tests, under a name of its own, without tables.
    pub(crate) async fn bare_postgres() -> Self {
        let address =
            |name: &str| format!("postgres://glovebox@localhost/{name}?host={}", socket());
        let name = format!("gb_{}", SandboxId::new()).replace('-', "_");
        sqlx::any::install_default_drivers();
        let server = sqlx::AnyPool::connect(&address("postgres")).await;
        let server = server.expect("PostgreSQL answers; `make test` starts it");
        sqlx::query(sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}")))
            .execute(&server)
            .await
            .unwrap();
        server.close().await;
        Self::at(address(&name), None).await
    }

    async fn at(address: String, folder: Option<tempfile::TempDir>) -> Self {
        Self {
            store: Store::open(&address).await.unwrap(),
            address,
            _folder: folder,
        }
    }

    async fn with_tables(self) -> Self {
        self.store.migrate().await.unwrap();
        self
    }

    /// For statements that no method of the store has.
    pub(crate) async fn raw(&self) -> sqlx::AnyPool {
        sqlx::AnyPool::connect(&self.address).await.unwrap()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test has no other way to be told"
)]
fn socket() -> String {
    std::env::var(POSTGRES)
        .expect("GLOVEBOX_TEST_POSTGRES says where PostgreSQL is; run `make test`")
}

/// Runs a test on both databases.
macro_rules! on_both {
    ($($name:ident)*) => {
        mod on_sqlite {
            $(#[tokio::test]
            async fn $name() {
                super::$name(crate::support::Database::sqlite().await).await;
            })*
        }
        mod on_postgres {
            $(#[tokio::test]
            async fn $name() {
                super::$name(crate::support::Database::postgres().await).await;
            })*
        }
    };
}

pub(crate) use on_both;

/// A person with a workspace of its own.
pub(crate) struct Person {
    pub(crate) user: UserId,
    pub(crate) workspace: WorkspaceId,
    pub(crate) access: Access,
}

/// Makes a person who is the owner of a workspace of its own.
pub(crate) async fn person(store: &Store, name: &str) -> Person {
    let mut changes = store.begin().await.unwrap();
    let user = changes.create_user(&new_user(name)).await.unwrap();
    let workspace = changes.create_workspace(name).await.unwrap();
    changes
        .add_member(workspace, user, Role::Owner)
        .await
        .unwrap();
    changes.commit().await.unwrap();
    let access = store.access_of_user(user, workspace).await.unwrap();
    Person {
        user,
        workspace,
        access: access.expect("it is a member"),
    }
}

pub(crate) fn new_user(name: &str) -> NewUser {
    NewUser {
        email: format!("{name}@example.com"),
        name: name.into(),
        password_hash: None,
        is_system_admin: false,
    }
}

/// Makes a profile.
pub(crate) async fn profile(store: &Store) -> ProfileId {
    let mut changes = store.begin().await.unwrap();
    let id = changes
        .create_profile("embedded", "This machine", &ProfileSettings::default())
        .await;
    changes.commit().await.unwrap();
    id.unwrap()
}

pub(crate) fn new_lease(profile: ProfileId) -> NewLease {
    NewLease {
        id: SandboxId::new(),
        profile_id: profile,
        thread_id: None,
        class: ResourceClass::Small,
        idle_limit_ms: 600_000,
        hard_deadline: Utc::now() + TimeDelta::hours(1),
    }
}

/// Makes a lease, or says which quota is reached.
pub(crate) async fn lease(
    store: &Store,
    access: &Access,
    profile: ProfileId,
    quotas: &Quotas,
) -> Result<SandboxId, &'static str> {
    let new = new_lease(profile);
    let mut changes = store.begin().await.unwrap();
    changes
        .hold_workspace(access.workspace())
        .await
        .unwrap()
        .expect("there is the workspace");
    let placed = changes.create_lease(access, quotas, &new).await.unwrap();
    placed.map_err(|reached| reached.name)?;
    changes.commit().await.unwrap();
    Ok(new.id)
}
