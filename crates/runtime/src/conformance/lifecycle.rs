//! Making, finding and ending sandboxes.

use std::time::{Duration, SystemTime};

use glovebox_protocol::ids::SandboxId;

use super::Subject;
use crate::{RuntimeError, SandboxState};

pub async fn a_created_sandbox_answers(subject: &Subject) {
    let guest = subject.create().await;
    let status = guest.client.status().await.unwrap();
    assert_eq!(status.sandbox_id, guest.id);
    let at_rest = guest.processes_at_rest().await;
    assert_eq!(guest.client.status().await.unwrap().processes, at_rest);
    guest.remove().await;
}

pub async fn an_id_is_used_once(subject: &Subject) {
    let spec = subject.spec();
    let guest = subject.create_as(spec.clone()).await;
    let again = subject.runtime.create(spec.validate().unwrap()).await;
    assert!(
        matches!(again, Err(RuntimeError::AlreadyExists { id }) if id == guest.id),
        "{again:?}"
    );
    assert!(
        guest.client.status().await.is_ok(),
        "the first one suffered"
    );
    guest.remove().await;
}

pub async fn an_unknown_sandbox_is_not_found(subject: &Subject) {
    let id = SandboxId::new();
    let inspected = subject.runtime.inspect(id).await;
    assert!(
        matches!(inspected, Err(RuntimeError::NotFound { .. })),
        "{inspected:?}"
    );
    let connected = subject.runtime.connect(id).await.map(|_| ());
    assert!(
        matches!(connected, Err(RuntimeError::NotFound { .. })),
        "{connected:?}"
    );
    subject.runtime.stop(id).await.unwrap();
    subject.runtime.remove(id).await.unwrap();
}

pub async fn stopping_keeps_the_record_and_may_be_repeated(subject: &Subject) {
    let guest = subject.create().await;
    for _ in 0..2 {
        subject.runtime.stop(guest.id).await.unwrap();
        let sandbox = subject.runtime.inspect(guest.id).await.unwrap();
        assert!(
            matches!(sandbox.state, SandboxState::Ended { .. }),
            "{sandbox:?}"
        );
    }
    let connected = subject.runtime.connect(guest.id).await.map(|_| ());
    assert!(
        matches!(connected, Err(RuntimeError::NotFound { .. })),
        "{connected:?}"
    );
    guest.remove().await;
}

pub async fn removing_forgets_and_may_be_repeated(subject: &Subject) {
    let guest = subject.create().await;
    let id = guest.id;
    for _ in 0..2 {
        subject.runtime.remove(id).await.unwrap();
        let inspected = subject.runtime.inspect(id).await;
        assert!(
            matches!(inspected, Err(RuntimeError::NotFound { .. })),
            "{inspected:?}"
        );
    }
    assert!(
        guest.client.status().await.is_err(),
        "a removed sandbox answers"
    );
}

pub async fn all_sandboxes_are_listed(subject: &Subject) {
    let guests = [subject.create().await, subject.create().await];
    let mut listed: Vec<_> = subject
        .runtime
        .list()
        .await
        .unwrap()
        .iter()
        .map(|s| s.id)
        .collect();
    listed.sort();
    let mut made = guests.each_ref().map(|guest| guest.id);
    made.sort();
    assert_eq!(listed, made);
    for guest in guests {
        guest.remove().await;
    }
    assert!(subject.runtime.list().await.unwrap().is_empty());
}

pub async fn many_are_made_at_once(subject: &Subject) {
    let specs: Vec<_> = (0..10).map(|_| subject.spec()).collect();
    let mut making = tokio::task::JoinSet::new();
    for spec in &specs {
        let (runtime, spec) = (subject.runtime.clone(), spec.clone());
        making.spawn(async move { runtime.create(spec.validate().unwrap()).await });
    }
    while let Some(made) = making.join_next().await {
        made.unwrap().unwrap();
    }
    for spec in specs {
        let client = subject.client(spec.id, subject.key.clone());
        assert_eq!(client.status().await.unwrap().sandbox_id, spec.id);
        subject.runtime.remove(spec.id).await.unwrap();
    }
}

pub async fn the_hard_deadline_ends_a_sandbox(subject: &Subject) {
    let mut spec = subject.spec();
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap();
    let deadline = now + Duration::from_millis(1500);
    spec.hard_deadline_ms = Some(i64::try_from(deadline.as_millis()).unwrap());
    let guest = subject.create_as(spec).await;
    // A program without end: that its stream is cut is how the end of the sandbox shows.
    let mut execution = guest
        .client
        .run(&guest.script("while True: pass"))
        .await
        .unwrap();
    let ended = async { while let Ok(Some(_)) = execution.next().await {} };
    tokio::time::timeout(Duration::from_secs(30), ended)
        .await
        .expect("the sandbox runs past its deadline");
    // The agent's end shows a moment before the runtime has cleaned up after it.
    let told = async {
        let mut look = tokio::time::interval(Duration::from_millis(20));
        while subject.runtime.inspect(guest.id).await.unwrap().state == SandboxState::Running {
            look.tick().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), told)
        .await
        .expect("the runtime takes the sandbox for running");
    guest.remove().await;
}

pub async fn a_create_that_nobody_waits_for_leaves_nothing(subject: &Subject) {
    let spec = subject.spec();
    let id = spec.id;
    let mut making = subject.runtime.create(spec.validate().unwrap());
    // Until the runtime knows of it: from there on it is half made, or whole.
    let known = async {
        while subject.runtime.inspect(id).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    let still_making = tokio::select! {
        biased;
        made = &mut making => {
            made.unwrap();
            false
        }
        () = known => true,
    };
    drop(making);
    if !still_making {
        // It was too quick to be dropped in the middle.
        subject.runtime.remove(id).await.unwrap();
    }
    let gone = async {
        let mut look = tokio::time::interval(Duration::from_millis(20));
        while !subject.runtime.list().await.unwrap().is_empty() {
            look.tick().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), gone)
        .await
        .expect("a sandbox stays that nobody waited for");
}
