//! Leases within quotas, executions, events, artifacts.

use std::collections::BTreeMap;

use chrono::Utc;
use futures_util::future::join_all;
use glovebox_protocol::event::{Event, EventBody, Output};
use glovebox_protocol::ids::{ArtifactId, ExecutionId, SandboxId, WorkspaceId};
use glovebox_store::{
    ArtifactFilter, EndedWhy, ExecutionState, LeaseState, NewArtifact, NewExecution, Placed,
    Quotas, Role, Store,
};

use crate::support::{Database, lease, new_user, on_both, person, profile};

on_both! {
    fifty_at_once_never_exceed_the_quota
    new_sandboxes_are_counted_by_the_hour
    a_suspended_sandbox_does_not_count_until_it_is_resumed
    a_lease_ends_once_and_keeps_its_first_reason
    a_request_is_run_once_and_one_at_a_time
    events_come_back_in_order_and_end
    an_execution_that_nobody_drives_is_found
    versions_count_up_and_bytes_are_charged
    what_is_somebody_elses_is_not_seen
}

async fn fifty_at_once_never_exceed_the_quota(database: Database) {
    let store = &database.store;
    let (ada, profile) = (person(store, "ada").await, profile(store).await);
    let quotas = Quotas::default();
    let tries = (0..50).map(|_| lease(store, &ada.access, profile, &quotas));
    let mut came: BTreeMap<&str, usize> = BTreeMap::new();
    for tried in join_all(tries).await {
        *came.entry(tried.err().unwrap_or("made")).or_default() += 1;
    }
    let expected = BTreeMap::from([("made", 2), ("quota:max_concurrent", 48)]);
    assert_eq!(came, expected);
    assert_eq!(store.meters(ada.workspace).await.unwrap().concurrent, 2);
}

async fn new_sandboxes_are_counted_by_the_hour(database: Database) {
    let store = &database.store;
    let (ada, profile) = (person(store, "ada").await, profile(store).await);
    let quotas = Quotas {
        max_jobs_per_hour: 2,
        ..Quotas::default()
    };
    for _ in 0..2 {
        let id = lease(store, &ada.access, profile, &quotas).await.unwrap();
        store.end_lease(id, EndedWhy::Asked, "").await.unwrap();
    }
    let third = lease(store, &ada.access, profile, &quotas).await;
    assert_eq!(third, Err("quota:max_jobs_per_hour"));
    let meters = store.meters(ada.workspace).await.unwrap();
    assert_eq!((meters.concurrent, meters.started_last_hour), (0, 2));
}

async fn a_suspended_sandbox_does_not_count_until_it_is_resumed(database: Database) {
    let store = &database.store;
    let (ada, profile) = (person(store, "ada").await, profile(store).await);
    let quotas = Quotas {
        max_concurrent: 1,
        ..Quotas::default()
    };
    let first = lease(store, &ada.access, profile, &quotas).await.unwrap();
    let to_ready = store.move_lease(first, LeaseState::Starting, LeaseState::Ready);
    assert!(to_ready.await.unwrap());
    let suspend = store.move_lease(first, LeaseState::Ready, LeaseState::Suspended);
    assert!(suspend.await.unwrap());
    let second = lease(store, &ada.access, profile, &quotas).await.unwrap();
    let mut changes = store.begin().await.unwrap();
    changes.hold_workspace(ada.workspace).await.unwrap();
    let room = changes.has_room(ada.workspace, &quotas).await.unwrap();
    assert_eq!(room.unwrap_err().name, "quota:max_concurrent");
    drop(changes);
    store.end_lease(second, EndedWhy::Asked, "").await.unwrap();
    let mut changes = store.begin().await.unwrap();
    changes.hold_workspace(ada.workspace).await.unwrap();
    assert!(
        changes
            .has_room(ada.workspace, &quotas)
            .await
            .unwrap()
            .is_ok()
    );
    assert!(changes.resume_lease(first).await.unwrap());
    assert!(!changes.resume_lease(first).await.unwrap());
    changes.commit().await.unwrap();
    assert_eq!(store.meters(ada.workspace).await.unwrap().concurrent, 1);
}

async fn a_lease_ends_once_and_keeps_its_first_reason(database: Database) {
    let store = &database.store;
    let (ada, profile) = (person(store, "ada").await, profile(store).await);
    let id = lease(store, &ada.access, profile, &Quotas::default())
        .await
        .unwrap();
    let ended = store.end_lease(id, EndedWhy::OutOfMemory, "1 GiB").await;
    assert!(ended.unwrap());
    assert!(!store.end_lease(id, EndedWhy::Admin, "no").await.unwrap());
    let found = store.lease(id).await.unwrap().unwrap();
    assert_eq!(found.state, LeaseState::Ended);
    assert_eq!(found.ended_why, Some(EndedWhy::OutOfMemory));
    assert_eq!(found.ended_detail.as_deref(), Some("1 GiB"));
    assert!(store.live_leases().await.unwrap().is_empty());
}

async fn place(
    store: &Store,
    lease: SandboxId,
    workspace: WorkspaceId,
    key: Option<&str>,
    hash: &str,
) -> (ExecutionId, Placed) {
    let new = NewExecution {
        id: ExecutionId::new(),
        lease_id: lease,
        workspace_id: workspace,
        idempotency_key: key.map(String::from),
        request_hash: hash.into(),
    };
    let mut changes = store.begin().await.unwrap();
    let placed = changes.place_execution(&new).await.unwrap();
    changes.commit().await.unwrap();
    (new.id, placed)
}

async fn a_request_is_run_once_and_one_at_a_time(database: Database) {
    let store = &database.store;
    let (ada, profile) = (person(store, "ada").await, profile(store).await);
    let quotas = Quotas::default();
    let id = lease(store, &ada.access, profile, &quotas).await.unwrap();
    let try_once = |key, hash| place(store, id, ada.workspace, key, hash);
    let (first, placed) = try_once(Some("a"), "1").await;
    assert_eq!(placed, Placed::New);
    assert_eq!(try_once(Some("a"), "1").await.1, Placed::Repeated(first));
    assert_eq!(try_once(Some("a"), "2").await.1, Placed::KeyIsTaken);
    assert_eq!(try_once(None, "3").await.1, Placed::Busy(first));
    store.finish_execution(first, &[]).await.unwrap();
    assert_eq!(try_once(Some("a"), "1").await.1, Placed::Repeated(first));
    let (_, placed) = try_once(None, "3").await;
    assert_eq!(placed, Placed::New);

    // Of many at once one is run.
    let other = lease(store, &ada.access, profile, &quotas).await.unwrap();
    let all = (0..20).map(|_| place(store, other, ada.workspace, None, "x"));
    let placed = join_all(all).await;
    let new = placed.iter().filter(|(_, placed)| *placed == Placed::New);
    assert_eq!(new.count(), 1);
}

fn said(seq: u64, text: &str) -> Event {
    Event {
        seq,
        at: Utc::now(),
        body: EventBody::Stdout(Output(text.to_owned().into_bytes().into())),
    }
}

async fn events_come_back_in_order_and_end(database: Database) {
    let store = &database.store;
    let (ada, profile) = (person(store, "ada").await, profile(store).await);
    let id = lease(store, &ada.access, profile, &Quotas::default())
        .await
        .unwrap();
    let (execution, _) = place(store, id, ada.workspace, None, "1").await;
    let events: Vec<_> = (1..=5).map(|n| said(n, &format!("{n}\n"))).collect();
    store.keep_events(execution, &events[..3]).await.unwrap();
    store
        .finish_execution(execution, &events[3..])
        .await
        .unwrap();
    let all = store.events(execution, 0, 100).await.unwrap();
    let numbers: Vec<_> = all.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
    assert_eq!(all[4].body, events[4].body);
    assert_eq!(store.events(execution, 3, 1).await.unwrap()[0].seq, 4);
    let found = store.execution(id, execution).await.unwrap().unwrap();
    assert_eq!(found.state, ExecutionState::Ended);
    assert!(found.ended_at.is_some());
    // It belongs to its sandbox and to no other.
    let elsewhere = store.execution(SandboxId::new(), execution).await.unwrap();
    assert!(elsewhere.is_none());
}

async fn an_execution_that_nobody_drives_is_found(database: Database) {
    let store = &database.store;
    let (ada, profile) = (person(store, "ada").await, profile(store).await);
    let id = lease(store, &ada.access, profile, &Quotas::default())
        .await
        .unwrap();
    let (execution, _) = place(store, id, ada.workspace, None, "1").await;
    assert!(store.undriven_executions().await.unwrap().is_empty());
    store.mark_driven(&[execution], -1).await.unwrap();
    assert_eq!(store.undriven_executions().await.unwrap().len(), 1);
    store.keep_events(execution, &[said(1, "x")]).await.unwrap();
    let last = EventBody::Stderr(Output(b"gone".to_vec().into()));
    assert!(
        store
            .end_execution(execution, std::slice::from_ref(&last))
            .await
            .unwrap()
    );
    assert!(!store.end_execution(execution, &[last]).await.unwrap());
    assert_eq!(store.events(execution, 0, 9).await.unwrap()[1].seq, 2);
    assert!(store.running_executions(Some(id)).await.unwrap().is_empty());
}

async fn versions_count_up_and_bytes_are_charged(database: Database) {
    let store = &database.store;
    let (ada, profile) = (person(store, "ada").await, profile(store).await);
    let quotas = Quotas {
        max_artifact_bytes_per_day: 100,
        ..Quotas::default()
    };
    let id = lease(store, &ada.access, profile, &quotas).await.unwrap();
    let (execution, _) = place(store, id, ada.workspace, None, "1").await;
    for version in 1..=3 {
        let mut changes = store.begin().await.unwrap();
        changes.hold_workspace(ada.workspace).await.unwrap();
        let new = NewArtifact {
            id: ArtifactId::new(),
            workspace_id: ada.workspace,
            lease_id: id,
            execution_id: execution,
            name: "a.csv".into(),
            bytes: 20,
            sha256: format!("{version}"),
            media_type: "text/csv".into(),
        };
        assert_eq!(changes.create_artifact(&new).await.unwrap(), version);
        let left = changes.artifact_bytes_left(ada.workspace, &quotas).await;
        assert_eq!(left.unwrap(), 100 - 20 * u64::try_from(version).unwrap());
        changes.commit().await.unwrap();
    }
    for (name, sha256, has) in [
        ("a.csv", "3", true),
        ("a.csv", "2", false),
        ("b.csv", "3", false),
    ] {
        let found = store.has_artifact(id, name, sha256).await.unwrap();
        assert_eq!(found, has, "{name} {sha256}");
    }
    let listed = store.artifacts_of(&ada.access, of_lease(id), None, 2).await;
    let listed = listed.unwrap();
    assert_eq!(listed.iter().map(|a| a.version).collect::<Vec<_>>(), [3, 2]);
    let rest = store
        .artifacts_of(
            &ada.access,
            ArtifactFilter::default(),
            Some(listed[1].id),
            9,
        )
        .await;
    assert_eq!(rest.unwrap().len(), 1);
    let meters = store.meters(ada.workspace).await.unwrap();
    assert_eq!(meters.artifact_bytes_today, 60);
}

async fn what_is_somebody_elses_is_not_seen(database: Database) {
    let store = &database.store;
    let (ada, profile) = (person(store, "ada").await, profile(store).await);
    let bob = person(store, "bob").await;
    let mut changes = store.begin().await.unwrap();
    // Somebody of the same workspace, who is its admin even.
    let eve = changes.create_user(&new_user("eve")).await.unwrap();
    changes
        .add_member(ada.workspace, eve, Role::Admin)
        .await
        .unwrap();
    changes.commit().await.unwrap();
    let eve = store.access_of_user(eve, ada.workspace).await;
    let eve = eve.unwrap().unwrap();
    let id = lease(store, &ada.access, profile, &Quotas::default())
        .await
        .unwrap();
    assert!(store.lease_of(&ada.access, id).await.unwrap().is_some());
    for other in [&bob.access, &eve] {
        assert!(store.lease_of(other, id).await.unwrap().is_none());
        assert!(store.leases_of(other, None, 9).await.unwrap().is_empty());
        let artifacts = store.artifacts_of(other, of_lease(id), None, 9).await;
        assert!(artifacts.unwrap().is_empty());
    }
    assert_eq!(
        store.leases_of(&ada.access, None, 9).await.unwrap().len(),
        1
    );
}

fn of_lease(id: SandboxId) -> ArtifactFilter {
    ArtifactFilter {
        lease: Some(id),
        ..ArtifactFilter::default()
    }
}
