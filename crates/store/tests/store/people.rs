//! Users, sessions, keys, members.

use chrono::{TimeDelta, Utc};
use glovebox_protocol::ids::AttemptId;
use glovebox_store::{KeyScope, NewApiKey, NewSession, Permission, Role, StoreError, Token};

use crate::support::{Database, new_user, on_both, person};

on_both! {
    an_address_belongs_to_one_user
    a_session_ends_with_its_time_its_user_and_by_itself
    a_key_has_the_present_role_of_its_maker_and_dies_with_it
    keys_of_a_member_are_revoked_in_its_workspace_alone
    a_key_that_was_left_by_a_membership_is_revoked_with_the_new_tables
    a_key_of_a_service_is_an_editor
    attempts_to_sign_in_are_counted_for_a_while
    of_attempts_at_once_each_counts_those_before
    roles_grow
}

async fn an_address_belongs_to_one_user(database: Database) {
    let store = &database.store;
    let mut changes = store.begin().await.unwrap();
    changes.create_user(&new_user("ada")).await.unwrap();
    changes.commit().await.unwrap();
    let mut changes = store.begin().await.unwrap();
    let again = changes.create_user(&new_user("ada")).await;
    assert!(matches!(again, Err(StoreError::Taken { .. })), "{again:?}");
    drop(changes);
    let found = store.user_by_email("ada@example.com").await.unwrap();
    assert_eq!(found.unwrap().name, "ada");
    assert!(
        store
            .user_by_email("bob@example.com")
            .await
            .unwrap()
            .is_none()
    );
}

async fn a_session_ends_with_its_time_its_user_and_by_itself(database: Database) {
    let store = &database.store;
    let ada = person(store, "ada").await;
    let open = async |minutes: i64| {
        let token = Token::random("gbsn_").unwrap();
        let new = NewSession {
            user_id: ada.user,
            token: token.hash(),
            address: "127.0.0.1".into(),
            user_agent: "a browser".into(),
            expires_at: Utc::now() + TimeDelta::minutes(minutes),
        };
        let mut changes = store.begin().await.unwrap();
        let id = changes.create_session(&new).await.unwrap();
        changes.commit().await.unwrap();
        (id, token)
    };
    let (late, old) = open(-1).await;
    assert!(
        store.session(&old.hash()).await.unwrap().is_none(),
        "{late}"
    );
    let (id, token) = open(10).await;
    let (session, user) = store.session(&token.hash()).await.unwrap().unwrap();
    assert_eq!((session.id, user.id), (id, ada.user));
    assert_eq!(store.sessions_of(ada.user).await.unwrap().len(), 1);
    let mut changes = store.begin().await.unwrap();
    assert!(changes.end_session(ada.user, id).await.unwrap());
    changes.commit().await.unwrap();
    assert!(store.session(&token.hash()).await.unwrap().is_none());

    let (_, token) = open(10).await;
    let mut changes = store.begin().await.unwrap();
    changes
        .change_user(ada.user, None, None, Some(true))
        .await
        .unwrap();
    changes.commit().await.unwrap();
    assert!(store.session(&token.hash()).await.unwrap().is_none());
}

async fn key(store: &glovebox_store::Store, new: NewApiKey) {
    let mut changes = store.begin().await.unwrap();
    changes.create_api_key(&new).await.unwrap();
    changes.commit().await.unwrap();
}

async fn a_key_has_the_present_role_of_its_maker_and_dies_with_it(database: Database) {
    let store = &database.store;
    let ada = person(store, "ada").await;
    let token = Token::random("gbk_").unwrap();
    let new = NewApiKey {
        workspace_id: ada.workspace,
        user_id: Some(ada.user),
        name: "script".into(),
        token: token.hash(),
        scopes: vec![KeyScope::FilesRead],
    };
    key(store, new).await;
    let access = store.access_of_key(&token.hash()).await.unwrap().unwrap();
    assert_eq!(access.role(), Role::Owner);
    assert!(access.has_scope(KeyScope::FilesRead));
    assert!(!access.has_scope(KeyScope::CodeExecutionRun));

    let mut changes = store.begin().await.unwrap();
    changes
        .set_role(ada.workspace, ada.user, Role::Viewer)
        .await
        .unwrap();
    changes.commit().await.unwrap();
    let access = store.access_of_key(&token.hash()).await.unwrap().unwrap();
    assert!(!access.may(Permission::RunCode));

    let mut changes = store.begin().await.unwrap();
    changes
        .remove_member(ada.workspace, ada.user)
        .await
        .unwrap();
    changes.commit().await.unwrap();
    assert!(store.access_of_key(&token.hash()).await.unwrap().is_none());
}

async fn keys_of_a_member_are_revoked_in_its_workspace_alone(database: Database) {
    let store = &database.store;
    let (ada, bob) = (person(store, "ada").await, person(store, "bob").await);
    let mut changes = store.begin().await.unwrap();
    changes
        .add_member(bob.workspace, ada.user, Role::Editor)
        .await
        .unwrap();
    changes.commit().await.unwrap();
    let make = async |workspace, user| {
        let token = Token::random("gbk_").unwrap();
        let new = NewApiKey {
            workspace_id: workspace,
            user_id: user,
            name: "script".into(),
            token: token.hash(),
            scopes: vec![KeyScope::FilesRead],
        };
        key(store, new).await;
        token.hash()
    };
    let revoked = make(bob.workspace, Some(ada.user)).await;
    let kept = [
        make(ada.workspace, Some(ada.user)).await,
        make(bob.workspace, Some(bob.user)).await,
        make(bob.workspace, None).await,
    ];
    let mut changes = store.begin().await.unwrap();
    let gone = changes.revoke_api_keys_of(bob.workspace, ada.user).await;
    assert_eq!(gone.unwrap()[0].1, "script");
    let again = changes.revoke_api_keys_of(bob.workspace, ada.user).await;
    assert!(again.unwrap().is_empty());
    changes.commit().await.unwrap();
    assert!(store.access_of_key(&revoked).await.unwrap().is_none());
    for token in kept {
        assert!(store.access_of_key(&token).await.unwrap().is_some());
    }
}

async fn a_key_that_was_left_by_a_membership_is_revoked_with_the_new_tables(database: Database) {
    let store = &database.store;
    let ada = person(store, "ada").await;
    let tokens = [Some(ada.user), None].map(|user| {
        let token = Token::random("gbk_").unwrap();
        let new = NewApiKey {
            workspace_id: ada.workspace,
            user_id: user,
            name: "script".into(),
            token: token.hash(),
            scopes: vec![KeyScope::FilesRead],
        };
        (token.hash(), new)
    });
    for (_, new) in &tokens {
        key(store, new.clone()).await;
    }
    let step = include_str!("../../migrations/0003-keys.sql");
    let raw = database.raw().await;
    let revoked = async || {
        sqlx::raw_sql(step).execute(&raw).await.unwrap();
        let left = store.api_keys(ada.workspace).await.unwrap();
        left.into_iter().map(|key| key.user_id).collect::<Vec<_>>()
    };
    assert_eq!(revoked().await, [Some(ada.user), None]);
    let mut changes = store.begin().await.unwrap();
    changes
        .remove_member(ada.workspace, ada.user)
        .await
        .unwrap();
    changes.commit().await.unwrap();
    assert_eq!(revoked().await, [None]);
}

async fn a_key_of_a_service_is_an_editor(database: Database) {
    let store = &database.store;
    let ada = person(store, "ada").await;
    let token = Token::random("gbk_").unwrap();
    let new = NewApiKey {
        workspace_id: ada.workspace,
        user_id: None,
        name: "nightly".into(),
        token: token.hash(),
        scopes: vec![KeyScope::CodeExecutionRun],
    };
    key(store, new).await;
    let access = store.access_of_key(&token.hash()).await.unwrap().unwrap();
    assert_eq!((access.role(), access.user()), (Role::Editor, None));
    assert_eq!(access.name(), "nightly");
    let id = access.api_key().unwrap();
    let mut changes = store.begin().await.unwrap();
    assert!(changes.revoke_api_key(ada.workspace, id).await.unwrap());
    assert!(!changes.revoke_api_key(ada.workspace, id).await.unwrap());
    changes.commit().await.unwrap();
    assert!(store.access_of_key(&token.hash()).await.unwrap().is_none());
}

async fn attempts_to_sign_in_are_counted_for_a_while(database: Database) {
    let store = &database.store;
    let hour_ago = Utc::now() - TimeDelta::hours(1);
    let note = async |subject: &str, since| {
        let attempt = AttemptId::new();
        let count = store.note_sign_in(attempt, subject, since).await.unwrap();
        (attempt, count)
    };
    assert_eq!(note("email:ada", hour_ago).await.1, 1);
    let (right, count) = note("email:ada", hour_ago).await;
    assert_eq!(count, 2);
    assert_eq!(note("email:bob", hour_ago).await.1, 1);
    store.forget_sign_in(right).await.unwrap();
    assert_eq!(note("email:ada", hour_ago).await.1, 2);
    let later = Utc::now() + TimeDelta::seconds(60);
    assert_eq!(note("email:ada", later).await.1, 0, "all are forgotten");
}

async fn of_attempts_at_once_each_counts_those_before(database: Database) {
    let hour_ago = Utc::now() - TimeDelta::hours(1);
    let store = &database.store;
    let all = (0..30).map(|_| store.note_sign_in(AttemptId::new(), "email:ada", hour_ago));
    let counts = futures_util::future::join_all(all).await;
    let few = counts
        .into_iter()
        .filter(|count| *count.as_ref().unwrap() <= 10);
    assert!(few.count() <= 10);
}

async fn roles_grow(database: Database) {
    let store = &database.store;
    let ada = person(store, "ada").await;
    let bob = person(store, "bob").await;
    assert!(
        store
            .access_of_user(bob.user, ada.workspace)
            .await
            .unwrap()
            .is_none()
    );
    for (role, run, manage) in [
        (Role::Viewer, false, false),
        (Role::Editor, true, false),
        (Role::Admin, true, true),
        (Role::Owner, true, true),
    ] {
        let mut changes = store.begin().await.unwrap();
        if changes
            .role_of(ada.workspace, bob.user)
            .await
            .unwrap()
            .is_none()
        {
            changes
                .add_member(ada.workspace, bob.user, role)
                .await
                .unwrap();
        }
        changes
            .set_role(ada.workspace, bob.user, role)
            .await
            .unwrap();
        changes.commit().await.unwrap();
        let access = store.access_of_user(bob.user, ada.workspace).await;
        let access = access.unwrap().unwrap();
        assert_eq!(access.role(), role);
        assert_eq!(access.may(Permission::RunCode), run, "{role}");
        assert_eq!(access.may(Permission::Manage), manage, "{role}");
    }
}
