//! How leases end, and what is forgotten after a time.

use chrono::{TimeDelta, Utc};
use futures_util::future::join_all;
use glovebox_protocol::event::{Event, EventBody, Output};
use glovebox_protocol::ids::{ArtifactId, AttemptId, ExecutionId, SandboxId};
use glovebox_store::{
    EndedWhy, LeaseState, NewArtifact, NewExecution, NewSession, Placed, Quotas, Store, Token,
};

use crate::support::{Database, Person, lease, on_both, person, profile};

on_both! {
    of_several_that_notice_a_hard_limit_one_collects_and_no_code_begins
    what_was_noted_as_suspended_is_quiet_only_when_it_is
    what_ran_is_forgotten_in_batches_and_what_was_saved_is_not
    sessions_and_attempts_are_forgotten_when_their_time_is_over
}

fn quotas() -> Quotas {
    Quotas {
        max_concurrent: 100,
        ..Quotas::default()
    }
}

async fn ready(store: &Store, person: &Person) -> SandboxId {
    let profile = match store.profiles().await.unwrap().first() {
        Some(profile) => profile.id,
        None => profile(store).await,
    };
    let id = lease(store, &person.access, profile, &quotas()).await;
    let id = id.unwrap();
    let moved = store.move_lease(id, LeaseState::Starting, LeaseState::Ready);
    assert!(moved.await.unwrap());
    id
}

async fn place(store: &Store, person: &Person, sandbox: SandboxId) -> (ExecutionId, Placed) {
    let new = NewExecution {
        id: ExecutionId::new(),
        lease_id: sandbox,
        workspace_id: person.workspace,
        idempotency_key: None,
        request_hash: "1".into(),
    };
    let mut changes = store.begin().await.unwrap();
    let placed = changes.place_execution(&new).await.unwrap();
    changes.commit().await.unwrap();
    (new.id, placed)
}

async fn of_several_that_notice_a_hard_limit_one_collects_and_no_code_begins(database: Database) {
    let store = &database.store;
    let ada = person(store, "ada").await;
    let id = ready(store, &ada).await;
    let tries = join_all((0..10).map(|_| store.begin_last_collection(id))).await;
    let begun = tries.into_iter().filter(|begun| *begun.as_ref().unwrap());
    assert_eq!(begun.count(), 1);
    assert_eq!(place(store, &ada, id).await.1, Placed::NotReady);
    store.end_lease(id, EndedWhy::HardLimit, "").await.unwrap();
    assert!(!store.begin_last_collection(id).await.unwrap());
}

async fn what_was_noted_as_suspended_is_quiet_only_when_it_is(database: Database) {
    let store = &database.store;
    let ada = person(store, "ada").await;
    let id = ready(store, &ada).await;
    // Of one that is in use again there is nothing to note.
    store.note_quiet(id).await.unwrap();
    assert!(!store.lease(id).await.unwrap().unwrap().is_quiet);
    assert!(
        !store.suspend_idle_lease(id).await.unwrap(),
        "it is not idle"
    );
    let pool = database.raw().await;
    sqlx::query("UPDATE leases SET idle_limit_ms = 0")
        .execute(&pool)
        .await
        .unwrap();
    for _ in 0..2 {
        assert!(store.suspend_idle_lease(id).await.unwrap());
        assert!(!store.lease(id).await.unwrap().unwrap().is_quiet);
        store.note_quiet(id).await.unwrap();
        assert!(store.lease(id).await.unwrap().unwrap().is_quiet);
        let mut changes = store.begin().await.unwrap();
        assert!(changes.resume_lease(id).await.unwrap());
        changes.commit().await.unwrap();
    }
}

/// Runs something in a sandbox, to its end.
async fn run(store: &Store, person: &Person, sandbox: SandboxId) -> ExecutionId {
    let (id, placed) = place(store, person, sandbox).await;
    assert_eq!(placed, Placed::New);
    let said = Event {
        seq: 1,
        at: Utc::now(),
        body: EventBody::Stdout(Output(b"said".to_vec().into())),
    };
    store.finish_execution(id, &[said]).await.unwrap();
    id
}

async fn what_ran_is_forgotten_in_batches_and_what_was_saved_is_not(database: Database) {
    let store = &database.store;
    let ada = person(store, "ada").await;
    let [plain, saved, young] = [
        ready(store, &ada).await,
        ready(store, &ada).await,
        ready(store, &ada).await,
    ];
    let mut ran = Vec::new();
    for sandbox in [plain, plain, plain, saved, saved, young] {
        ran.push(run(store, &ada, sandbox).await);
    }
    let mut changes = store.begin().await.unwrap();
    let new = NewArtifact {
        id: ArtifactId::new(),
        workspace_id: ada.workspace,
        lease_id: saved,
        execution_id: ran[3],
        name: "a.csv".into(),
        bytes: 1,
        sha256: "1".into(),
        media_type: "text/csv".into(),
    };
    changes.create_artifact(&new).await.unwrap();
    changes.commit().await.unwrap();
    for sandbox in [plain, saved] {
        let ended = store.end_lease(sandbox, EndedWhy::Asked, "");
        assert!(ended.await.unwrap());
    }

    let soon = Utc::now() + TimeDelta::seconds(60);
    let early = store.forget_runs(Utc::now() - TimeDelta::days(1), 10).await;
    assert_eq!(early.unwrap(), 0, "it has only just ended");
    let mut batches = Vec::new();
    loop {
        match store.forget_runs(soon, 2).await.unwrap() {
            0 => break,
            forgotten => batches.push(forgotten),
        }
    }
    // Five executions and two sandboxes, of each no more than two at once.
    assert_eq!(batches.iter().sum::<u64>(), 7, "{batches:?}");
    assert!(batches.iter().all(|batch| *batch <= 4), "{batches:?}");
    assert!(store.lease(plain).await.unwrap().is_none());
    assert!(
        store.lease(saved).await.unwrap().is_some(),
        "a file is of it"
    );
    assert!(store.artifact(new.id).await.unwrap().is_some());
    for (execution, sandbox) in ran.iter().zip([plain, plain, plain, saved, saved, young]) {
        let is_there = store
            .execution(sandbox, *execution)
            .await
            .unwrap()
            .is_some();
        let events = store.events(*execution, 0, 9).await.unwrap().len();
        let expected = match *execution {
            execution if execution == ran[3] => (true, 0),
            execution if execution == ran[5] => (true, 1),
            _ => (false, 0),
        };
        assert_eq!((is_there, events), expected);
    }
}

async fn sessions_and_attempts_are_forgotten_when_their_time_is_over(database: Database) {
    let store = &database.store;
    let ada = person(store, "ada").await;
    let now = Utc::now();
    let mut changes = store.begin().await.unwrap();
    for hours in [-3, -2, -1, 1] {
        let token = Token::random("").unwrap();
        changes
            .create_session(&NewSession {
                user_id: ada.user,
                token: token.hash(),
                address: "127.0.0.1".into(),
                user_agent: "a browser".into(),
                expires_at: now + TimeDelta::hours(hours),
            })
            .await
            .unwrap();
    }
    changes.commit().await.unwrap();
    let long_ago = now - TimeDelta::days(1);
    for subject in ["email:ada", "address:127.0.0.1"] {
        let noted = store.note_sign_in(AttemptId::new(), subject, long_ago);
        assert_eq!(noted.await.unwrap(), 1);
    }
    let mut sessions = Vec::new();
    for _ in 0..3 {
        sessions.push(store.forget_sessions(now, 2).await.unwrap());
    }
    assert_eq!(sessions, [2, 1, 0]);
    assert_eq!(store.sessions_of(ada.user).await.unwrap().len(), 1);
    assert_eq!(
        store
            .forget_sign_ins(now - TimeDelta::hours(1), 9)
            .await
            .unwrap(),
        0
    );
    let later = now + TimeDelta::hours(1);
    assert_eq!(store.forget_sign_ins(later, 9).await.unwrap(), 2);
}
