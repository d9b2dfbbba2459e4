//! Tables and their versions, and the audit log.

use futures_util::future::join_all;
use glovebox_store::{Actor, AuditFilter, Entry, Store};

use crate::support::{Database, on_both};

on_both! {
    several_that_migrate_at_once_do_it_once
    nothing_is_taken_out_of_the_audit_log
    the_audit_log_is_filtered_and_paged
    what_is_not_committed_has_not_happened
    a_setting_that_is_read_to_be_changed_is_one_ones_at_a_time
}

async fn several_that_migrate_at_once_do_it_once(database: Database) {
    let address = &database.address;
    let again = (0..4).map(async |_| {
        let store = Store::open(address).await.unwrap();
        store.migrate().await.unwrap();
        store.check_version().await.unwrap();
        store.version().await.unwrap()
    });
    assert_eq!(join_all(again).await, [7, 7, 7, 7]);
}

async fn record(store: &Store, action: &str, actor: &str) {
    let mut changes = store.begin().await.unwrap();
    let entry = Entry {
        action,
        object_kind: "thing",
        object_id: None,
        object: "it",
        workspace: None,
        fields: &["name"],
    };
    let actor = Actor::command_line(actor);
    changes.record(&actor, entry).await.unwrap();
    changes.commit().await.unwrap();
}

async fn nothing_is_taken_out_of_the_audit_log(database: Database) {
    record(&database.store, "thing.make", "ada").await;
    let raw = sqlx::AnyPool::connect(&database.address).await.unwrap();
    for statement in [
        "UPDATE audit SET actor = 'nobody'",
        "DELETE FROM audit",
        "DELETE FROM audit WHERE action = 'thing.make'",
    ] {
        let refused = sqlx::query(statement).execute(&raw).await.unwrap_err();
        assert!(
            refused.to_string().contains("append-only"),
            "{statement}: {refused}"
        );
    }
    let entries = database.store.audit(&AuditFilter::default(), 9).await;
    assert_eq!(entries.unwrap()[0].actor.name, "ada");
}

/// `REPLACE` takes rows away that are in its way, by id or by rowid, and asks no trigger on DELETE.
#[tokio::test]
async fn no_row_of_the_audit_log_is_replaced() {
    let database = Database::sqlite().await;
    record(&database.store, "thing.make", "ada").await;
    let raw = database.raw().await;
    let values = "0, 'user', NULL, 'nobody', '', 'x', 'x', NULL, 'x', NULL, '[]', ''";
    let columns = "at, actor_kind, actor_id, actor, address, action, object_kind, object_id, \
         object, workspace_id, fields, request_id";
    for statement in [
        format!("REPLACE INTO audit (id, {columns}) SELECT id, {values} FROM audit"),
        format!(
            "INSERT OR REPLACE INTO audit (rowid, id, {columns}) SELECT rowid, 'x', {values} FROM audit"
        ),
        format!("REPLACE INTO audit (rowid, id, {columns}) VALUES (1, 'x', {values})"),
    ] {
        let refused = sqlx::query(sqlx::AssertSqlSafe(statement.clone()));
        let refused = refused.execute(&raw).await.unwrap_err();
        assert!(
            refused.to_string().contains("append-only"),
            "{statement}: {refused}"
        );
    }
    record(&database.store, "thing.make", "bob").await;
    let entries = database.store.audit(&AuditFilter::default(), 9).await;
    let actors: Vec<_> = entries
        .unwrap()
        .into_iter()
        .map(|one| one.actor.name)
        .collect();
    assert_eq!(actors, ["bob", "ada"]);
}

async fn the_audit_log_is_filtered_and_paged(database: Database) {
    let store = &database.store;
    for (action, actor) in [
        ("user.create", "ada"),
        ("user.update", "Ada 100%"),
        ("profile.update", "bob"),
    ] {
        record(store, action, actor).await;
    }
    let actions = async |filter: AuditFilter| {
        let entries = store.audit(&filter, 9).await.unwrap();
        entries
            .into_iter()
            .map(|entry| entry.action)
            .collect::<Vec<_>>()
    };
    let all = AuditFilter::default;
    assert_eq!(
        actions(all()).await,
        ["profile.update", "user.update", "user.create"]
    );
    let users = AuditFilter {
        action: Some("user.".into()),
        ..all()
    };
    assert_eq!(actions(users).await, ["user.update", "user.create"]);
    for (text, expected) in [("ADA", 2), ("100%", 1), ("%", 1), ("_", 0)] {
        let filter = AuditFilter {
            actor: Some(text.into()),
            ..all()
        };
        assert_eq!(actions(filter).await.len(), expected, "{text}");
    }
    let first = store.audit(&all(), 1).await.unwrap();
    let older = AuditFilter {
        before: Some(first[0].id),
        ..all()
    };
    assert_eq!(actions(older).await, ["user.update", "user.create"]);
}

async fn what_is_not_committed_has_not_happened(database: Database) {
    let store = &database.store;
    let mut changes = store.begin().await.unwrap();
    changes.set("a", &1).await.unwrap();
    drop(changes);
    assert_eq!(store.setting::<i32>("a").await.unwrap(), None);
    let mut changes = store.begin().await.unwrap();
    assert_eq!(changes.set_once("a", 2).await.unwrap(), 2);
    assert_eq!(changes.set_once("a", 3).await.unwrap(), 2);
    changes.commit().await.unwrap();
    assert_eq!(store.setting::<i32>("a").await.unwrap(), Some(2));
}

#[tokio::test]
async fn a_database_that_refuses_is_told_with_the_reason_and_without_the_password() {
    let refused = Store::open("postgres://me:secret@127.0.0.1:1/gb").await;
    let error = refused.unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    let said = format!("{error}: {cause}");
    assert!(said.contains("refused"), "{said}");
    assert!(!said.contains("secret"), "{said}");
}

#[tokio::test]
async fn a_copy_has_what_stands_only_in_the_log_beside_the_file() {
    let database = Database::sqlite().await;
    record(&database.store, "profile.activate", "Ada").await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("copy.db").display().to_string();
    database.store.copy_into(&file).await.unwrap();
    let copy = Store::open(&format!("sqlite://{file}")).await.unwrap();
    let entries = async |store: &Store| {
        let found = store.audit(&AuditFilter::default(), 10).await;
        found.unwrap().len()
    };
    assert_eq!(entries(&copy).await, 1);
    assert_eq!(entries(&database.store).await, 1);
    assert!(
        database.store.copy_into(&file).await.is_err(),
        "it is there"
    );
}

/// Both read what is there before either has changed it, where nothing makes one of them wait.
async fn a_setting_that_is_read_to_be_changed_is_one_ones_at_a_time(database: Database) {
    let store = &database.store;
    let mut changes = store.begin().await.unwrap();
    changes.set("counter", &0).await.unwrap();
    changes.commit().await.unwrap();
    let counting = (0..20).map(async |_| {
        let mut changes = store.begin().await.unwrap();
        let counter: Option<u32> = changes.setting("counter").await.unwrap();
        changes
            .set("counter", &(counter.unwrap() + 1))
            .await
            .unwrap();
        changes.commit().await.unwrap();
    });
    join_all(counting).await;
    assert_eq!(store.setting::<u32>("counter").await.unwrap(), Some(20));

    let first = (0..20).map(async |number: u32| {
        let mut changes = store.begin().await.unwrap();
        let set = changes.set_once("first", number).await.unwrap();
        changes.commit().await.unwrap();
        set
    });
    let first = join_all(first).await;
    assert!(first.iter().all(|number| *number == first[0]), "{first:?}");
}
