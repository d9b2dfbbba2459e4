//! Settings, secrets, versions of rows, tasks, refusals.

use chrono::{TimeDelta, Utc};
use futures_util::future::join_all;
use glovebox_store::{CheckKind, MasterKey, ProfileState, SENTINEL, StoreError};
use serde_json::json;

use crate::support::{Database, on_both, person, profile};

on_both! {
    a_secret_opens_with_the_key_of_the_database_only
    of_master_keys_that_are_adopted_at_once_one_is_the_databases
    documents_of_a_newer_version_are_read
    another_master_key_takes_along_what_the_present_one_opens
    two_changes_of_one_row_do_not_overwrite_each_other
    a_profile_keeps_its_proofs
    a_task_is_taken_once
    the_last_refusals_are_kept
}

async fn a_secret_opens_with_the_key_of_the_database_only(database: Database) {
    let store = &database.store;
    let (key, other) = (MasterKey::random().unwrap(), MasterKey::random().unwrap());
    assert!(!store.has_secrets().await.unwrap());
    store.adopt_master_key(&key).await.unwrap();
    store.adopt_master_key(&key).await.unwrap();
    let refused = store.adopt_master_key(&other).await;
    assert!(
        matches!(refused, Err(StoreError::Sealed { .. })),
        "{refused:?}"
    );
    let mut changes = store.begin().await.unwrap();
    changes.put_secret(&key, "a", b"one").await.unwrap();
    changes.put_secret(&key, "a", b"two").await.unwrap();
    changes.commit().await.unwrap();
    let opened = store.secret(&key, "a").await.unwrap().unwrap();
    assert_eq!(&**opened, b"two");
    assert!(store.secret(&other, "a").await.is_err());
    assert!(store.secret(&key, "b").await.unwrap().is_none());
}

async fn of_master_keys_that_are_adopted_at_once_one_is_the_databases(database: Database) {
    let store = &database.store;
    let adopting = (0..8).map(async |_| {
        let key = MasterKey::random().unwrap();
        store.adopt_master_key(&key).await.map(|()| key)
    });
    let adopted = join_all(adopting).await;
    let own: Vec<_> = adopted.iter().flatten().collect();
    assert_eq!(own.len(), 1);
    assert!(store.secret(own[0], SENTINEL).await.unwrap().is_some());
    for refused in adopted.iter().filter_map(|one| one.as_ref().err()) {
        assert!(matches!(refused, StoreError::Sealed { .. }), "{refused}");
    }
}

async fn documents_of_a_newer_version_are_read(database: Database) {
    let store = &database.store;
    let ada = person(store, "ada").await;
    let id = profile(store).await;
    let raw = database.raw().await;
    for statement in [
        "UPDATE profiles SET settings = '{\"warm_pool\": 3, \"of_a_newer_version\": {\"a\": 1}}'",
        "UPDATE workspaces SET quotas = '{\"max_concurrent\": 7, \"of_a_newer_version\": 1}'",
    ] {
        sqlx::query(statement).execute(&raw).await.unwrap();
    }
    let settings = store.profile(id).await.unwrap().unwrap().settings;
    assert_eq!((settings.warm_pool, settings.idle_seconds), (3, 600));
    let quotas = store
        .workspace(ada.workspace)
        .await
        .unwrap()
        .unwrap()
        .quotas;
    assert_eq!((quotas.max_concurrent, quotas.max_jobs_per_hour), (7, 60));
}

async fn another_master_key_takes_along_what_the_present_one_opens(database: Database) {
    let store = &database.store;
    let keys: Vec<_> = (0..3).map(|_| MasterKey::random().unwrap()).collect();
    store.adopt_master_key(&keys[0]).await.unwrap();
    let mut changes = store.begin().await.unwrap();
    changes.put_secret(&keys[0], "a", b"one").await.unwrap();
    changes.put_secret(&keys[1], "b", b"two").await.unwrap();
    let lost = changes.change_master_key(Some(&keys[0]), &keys[1]).await;
    assert_eq!(lost.unwrap(), ["b"]);
    changes.commit().await.unwrap();
    store.adopt_master_key(&keys[1]).await.unwrap();
    let opened = store.secret(&keys[1], "a").await.unwrap().unwrap();
    assert_eq!(&**opened, b"one");

    let mut changes = store.begin().await.unwrap();
    let lost = changes.change_master_key(None, &keys[2]).await;
    assert_eq!(lost.unwrap(), ["a", SENTINEL]);
    changes.commit().await.unwrap();
    store.adopt_master_key(&keys[2]).await.unwrap();
    assert!(store.secret(&keys[2], "a").await.unwrap().is_none());
}

async fn two_changes_of_one_row_do_not_overwrite_each_other(database: Database) {
    let store = &database.store;
    let ada = person(store, "ada").await;
    let read = store.workspace(ada.workspace).await.unwrap().unwrap();
    let (mut first, mut second) = (read.clone(), read);
    first.code_execution = true;
    second.name = "another".into();
    let mut changes = store.begin().await.unwrap();
    changes.update_workspace(&first).await.unwrap();
    changes.commit().await.unwrap();
    let mut changes = store.begin().await.unwrap();
    let late = changes.update_workspace(&second).await;
    assert!(matches!(late, Err(StoreError::Conflict { .. })), "{late:?}");
    drop(changes);
    let found = store.workspace(ada.workspace).await.unwrap().unwrap();
    assert!(found.code_execution);
    assert_eq!((found.name.as_str(), found.version), ("ada", 2));
}

async fn a_profile_keeps_its_proofs(database: Database) {
    let store = &database.store;
    let (ada, id) = (person(store, "ada").await, profile(store).await);
    let mut found = store.profile(id).await.unwrap().unwrap();
    assert_eq!(found.state, ProfileState::Draft);
    assert_eq!(found.settings.hard_seconds, 3_600);
    found.state = ProfileState::Active;
    found.activated_at = Some(Utc::now());
    let mut changes = store.begin().await.unwrap();
    changes.update_profile(&found).await.unwrap();
    for passed in [false, true] {
        let report = json!({ "passed": passed });
        changes
            .keep_check(id, CheckKind::Test, passed, &report)
            .await
            .unwrap();
    }
    changes
        .acknowledge(id, "shared_kernel", ada.user)
        .await
        .unwrap();
    changes
        .acknowledge(id, "shared_kernel", ada.user)
        .await
        .unwrap();
    changes.commit().await.unwrap();
    let test = store
        .last_check(id, CheckKind::Test)
        .await
        .unwrap()
        .unwrap();
    assert!(test.is_passed);
    assert_eq!(test.report, json!({ "passed": true }));
    assert!(
        store
            .last_check(id, CheckKind::Canary)
            .await
            .unwrap()
            .is_none()
    );
    let acknowledged = store.acknowledgements(id).await.unwrap();
    assert_eq!(acknowledged.len(), 1);
    assert_eq!(acknowledged[0].by, "ada@example.com");
}

async fn a_task_is_taken_once(database: Database) {
    let store = &database.store;
    let mut changes = store.begin().await.unwrap();
    for n in 0..20 {
        let subject = n.to_string();
        for _ in 0..2 {
            changes
                .enqueue("parsing", "parse", &subject, &json!({}), Utc::now())
                .await
                .unwrap();
        }
    }
    let later = Utc::now() + TimeDelta::hours(1);
    changes
        .enqueue("parsing", "parse", "later", &json!({}), later)
        .await
        .unwrap();
    changes.commit().await.unwrap();
    let worker = async || {
        let mut taken = Vec::new();
        while let Some(task) = store.take_task("parsing", 60_000).await.unwrap() {
            taken.push(task.subject.clone());
            if taken.len() % 2 == 0 {
                store.finish_task(task.id).await.unwrap();
            }
        }
        taken
    };
    let mut all = join_all((0..4).map(|_| worker())).await.concat();
    all.sort();
    let mut expected: Vec<_> = (0..20).map(|n| n.to_string()).collect();
    expected.sort();
    assert_eq!(all, expected);
    assert!(store.take_task("preview", 1).await.unwrap().is_none());
}

async fn the_last_refusals_are_kept(database: Database) {
    let store = &database.store;
    let ada = person(store, "ada").await;
    for n in 0..60 {
        store
            .keep_denial(ada.workspace, "role", &n.to_string())
            .await
            .unwrap();
    }
    let kept = store.denials(ada.workspace, 100).await.unwrap();
    assert_eq!(kept.len(), 50);
    assert_eq!(
        (kept[0].actor.as_str(), kept[49].actor.as_str()),
        ("59", "10")
    );
}
