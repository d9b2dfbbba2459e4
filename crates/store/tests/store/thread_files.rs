//! Files of threads: what people attach, what code saved, what a knowledge base holds, and what goes
//! with a thread that is deleted.

use chrono::{TimeDelta, Utc};
use glovebox_protocol::ids::{
    ArtifactId, AttachmentId, ExecutionId, KnowledgeFileId, SandboxId, ThreadId,
};
use glovebox_protocol::thread::ThreadEventBody;
use glovebox_store::{
    Access, ArtifactFilter, EndedWhy, LeasePurpose, NewArtifact, NewAttachment, NewExecution,
    NewKnowledgeFile, PlacedMessage, Quotas, Role, Staged, Store, StoreError, UploadedName,
};

use crate::support::{Database, Person, new_lease, on_both, person, profile};
use crate::threads::{end, member, message, place, send, thread};

on_both! {
    files_get_names_of_their_own_in_a_thread
    only_ones_own_unsent_files_can_be_sent
    versions_go_on_when_a_sandbox_is_replaced_and_old_ones_come_back
    a_name_that_only_the_sandbox_has_is_taken
    a_deleted_thread_is_gone_with_all_that_is_in_it
    sandboxes_for_previews_count_for_nothing
    nothing_is_kept_of_a_preview_whose_sandbox_could_not_be_made
    a_name_is_there_once_in_a_knowledge_base
}

async fn upload(store: &Store, access: &Access, name: &str) -> AttachmentId {
    let new = NewAttachment {
        id: AttachmentId::new(),
        name: UploadedName::of(name),
        bytes: 10,
        sha256: "0".into(),
        media_type: "text/plain".into(),
    };
    let mut changes = store.begin().await.unwrap();
    changes.create_attachment(access, &new).await.unwrap();
    changes.commit().await.unwrap();
    new.id
}

async fn files_get_names_of_their_own_in_a_thread(database: Database) {
    let store = &database.store;
    let ada = person(store, "ada").await;
    let (one, other) = (
        thread(store, &ada.access, false).await,
        thread(store, &ada.access, false).await,
    );
    let mut files = Vec::new();
    for _ in 0..4 {
        files.push(upload(store, &ada.access, "report.xlsx").await);
    }
    let (_, reply) = send(store, &ada.access, one, "", &files[..2]).await;
    end(store, one, reply).await;
    send(store, &ada.access, one, "x", &files[2..3]).await;
    send(store, &ada.access, other, "x", &files[3..]).await;
    let names = async |thread| {
        let files = store.attachments_of_thread(thread).await.unwrap();
        let mut names: Vec<_> = files.into_iter().map(|file| file.name).collect();
        names.sort();
        names
    };
    assert_eq!(
        names(one).await,
        ["report (2).xlsx", "report (3).xlsx", "report.xlsx"]
    );
    assert_eq!(names(other).await, ["report.xlsx"]);
    let events = store.thread_events(one, 0, 1).await.unwrap();
    let ThreadEventBody::MessageSent { attachments, .. } = &events[0].body else {
        panic!("{events:?}");
    };
    assert_eq!(attachments[0].uploaded_as, None);
    assert_eq!(attachments[1].uploaded_as.as_deref(), Some("report.xlsx"));
    let found = store.thread(one).await.unwrap().unwrap();
    assert_eq!(found.title, "report.xlsx");
}

async fn only_ones_own_unsent_files_can_be_sent(database: Database) {
    let store = &database.store;
    let ada = person(store, "ada").await;
    let bob = member(store, &ada, "bob", Role::Editor).await;
    let shared = thread(store, &ada.access, true).await;
    let (of_ada, of_bob) = (
        upload(store, &ada.access, "a").await,
        upload(store, &bob, "b").await,
    );
    let refused = place(store, &ada.access, shared, &message("x", &[of_ada, of_bob])).await;
    assert_eq!(refused, PlacedMessage::NoAttachment(of_bob));
    // Nothing of that has happened.
    assert!(store.messages(shared, 9).await.unwrap().is_empty());
    assert!(store.attachment_of(&bob, of_ada).await.unwrap().is_none());
    assert_eq!(store.unsent(&ada.access).await.unwrap(), (1, 10));
    let (_, reply) = send(store, &ada.access, shared, "x", &[of_ada]).await;
    end(store, shared, reply).await;
    assert!(store.attachment_of(&bob, of_ada).await.unwrap().is_some());
    let twice = place(store, &ada.access, shared, &message("x", &[of_ada])).await;
    assert_eq!(twice, PlacedMessage::NoAttachment(of_ada));
    let mut changes = store.begin().await.unwrap();
    assert!(!changes.delete_unsent(of_ada).await.unwrap());
    drop(changes);
    let later = Utc::now() + TimeDelta::hours(1);
    let waiting = store.unsent_before(later, 0, 9).await.unwrap();
    assert_eq!(
        waiting.iter().map(|file| file.id).collect::<Vec<_>>(),
        [of_bob]
    );
    let behind = store.unsent_before(later, 1, 9).await.unwrap();
    assert!(behind.is_empty(), "{behind:?}");
    let mut changes = store.begin().await.unwrap();
    assert!(changes.delete_unsent(of_bob).await.unwrap());
    changes.commit().await.unwrap();
}

/// Makes a sandbox of a thread with an execution in it.
async fn sandbox(store: &Store, ada: &Person, thread: ThreadId) -> (SandboxId, ExecutionId) {
    let mut new = new_lease(store.profiles().await.unwrap()[0].id);
    new.thread_id = Some(thread);
    let execution = NewExecution {
        id: ExecutionId::new(),
        lease_id: new.id,
        workspace_id: ada.workspace,
        idempotency_key: None,
        request_hash: String::new(),
    };
    let mut changes = store.begin().await.unwrap();
    changes.hold_workspace(ada.workspace).await.unwrap();
    let quotas = Quotas::default();
    let placed = changes.create_lease(&ada.access, &quotas, &new);
    placed.await.unwrap().unwrap();
    changes.place_execution(&execution).await.unwrap();
    changes.commit().await.unwrap();
    (new.id, execution.id)
}

async fn save(store: &Store, ada: &Person, from: (SandboxId, ExecutionId)) -> (ArtifactId, i64) {
    let new = NewArtifact {
        id: ArtifactId::new(),
        workspace_id: ada.workspace,
        lease_id: from.0,
        execution_id: from.1,
        name: "out/a%20b.csv".into(),
        bytes: 7,
        sha256: "0".into(),
        media_type: "text/csv".into(),
    };
    let mut changes = store.begin().await.unwrap();
    let version = changes.create_artifact(&new).await.unwrap();
    changes.commit().await.unwrap();
    (new.id, version)
}

async fn versions_go_on_when_a_sandbox_is_replaced_and_old_ones_come_back(database: Database) {
    let store = &database.store;
    let ada = person(store, "ada").await;
    profile(store).await;
    let bob = member(store, &ada, "bob", Role::Viewer).await;
    let id = thread(store, &ada.access, true).await;
    let first = sandbox(store, &ada, id).await;
    let (one, version) = save(store, &ada, first).await;
    assert_eq!(version, 1);
    store
        .end_lease(first.0, EndedWhy::Asked, "x")
        .await
        .unwrap();
    let second = sandbox(store, &ada, id).await;
    assert_eq!(
        store.lease_of_thread(id).await.unwrap().unwrap().id,
        second.0
    );
    let (two, version) = save(store, &ada, second).await;
    assert_eq!(version, 2);
    // Whoever reads the thread reads its artifacts, and not the sandbox itself.
    assert!(store.lease_of(&bob, second.0).await.unwrap().is_none());
    let old = store.artifact_of(&bob, one).await.unwrap().unwrap();
    assert!(!old.is_newest);
    let mut changes = store.begin().await.unwrap();
    changes.hold_thread(id).await.unwrap();
    let (three, four) = (ArtifactId::new(), ArtifactId::new());
    assert_eq!(changes.restore_artifact(three, &old).await.unwrap(), 3);
    changes.commit().await.unwrap();
    let newest = store.newest_of_thread(id).await.unwrap();
    assert_eq!(newest.len(), 1);
    assert_eq!((newest[0].id, newest[0].bytes_of), (three, Some(one)));
    let mut changes = store.begin().await.unwrap();
    let again = changes.restore_artifact(four, &newest[0]).await;
    assert_eq!(again.unwrap(), 4);
    changes.commit().await.unwrap();
    let versions = store.versions_of(&newest[0], None, 9).await.unwrap();
    let seen: Vec<_> = versions.iter().map(|found| found.bytes_id()).collect();
    assert_eq!(seen, [one, one, two, one]);
    let filter = ArtifactFilter {
        thread: Some(id),
        is_newest: true,
        ..ArtifactFilter::default()
    };
    let listed = store.artifacts_of(&bob, filter, None, 9).await.unwrap();
    assert_eq!(listed.iter().map(|a| a.id).collect::<Vec<_>>(), [four]);
    assert_eq!(listed[0].thread_title.as_deref(), Some("New thread"));
    // What was restored is charged like any other version.
    let meters = store.meters(ada.workspace).await.unwrap();
    assert_eq!(meters.artifact_bytes_today, 4 * 7);
    // A name that code has taken is not given to a file that is sent.
    let file = upload(store, &ada.access, "b.csv").await;
    send(store, &ada.access, id, "x", &[file]).await;
    let sent = store.attachment(file).await.unwrap().unwrap();
    assert_eq!(sent.name, "b.csv");
}

async fn a_name_that_only_the_sandbox_has_is_taken(database: Database) {
    let store = &database.store;
    let ada = person(store, "ada").await;
    profile(store).await;
    let id = thread(store, &ada.access, true).await;
    let first = sandbox(store, &ada, id).await;
    save(store, &ada, first).await;
    let ended = store.end_lease(first.0, EndedWhy::Asked, "x");
    assert!(ended.await.unwrap());
    let second = sandbox(store, &ada, id).await;
    // As those of the knowledge base lie there.
    let staged = |name: &str| Staged {
        source: KnowledgeFileId::new().to_string(),
        name: name.into(),
        bytes: 1,
    };
    store
        .keep_staged(first.0, &staged("old.csv"))
        .await
        .unwrap();
    store
        .keep_staged(second.0, &staged("known.csv"))
        .await
        .unwrap();
    let (known, old) = (
        upload(store, &ada.access, "known.csv").await,
        upload(store, &ada.access, "old.csv").await,
    );
    send(store, &ada.access, id, "x", &[known, old]).await;
    let sent = store.attachment(known).await.unwrap().unwrap();
    assert_eq!(sent.name, "known (2).csv");
    let sent = store.attachment(old).await.unwrap().unwrap();
    assert_eq!(sent.name, "old.csv", "that sandbox has ended");
    let taken = store.names_of_thread(id).await.unwrap();
    let all = ["known (2).csv", "known.csv", "old.csv", "out/a b.csv"];
    assert_eq!(taken, all.map(|name| name.as_bytes().to_vec()).into());
}

async fn a_deleted_thread_is_gone_with_all_that_is_in_it(database: Database) {
    let store = &database.store;
    let ada = person(store, "ada").await;
    profile(store).await;
    let id = thread(store, &ada.access, false).await;
    let from = sandbox(store, &ada, id).await;
    let (artifact, _) = save(store, &ada, from).await;
    let file = upload(store, &ada.access, "a").await;
    send(store, &ada.access, id, "x", &[file]).await;
    let there = async || {
        [
            store.thread_of(&ada.access, id).await.unwrap().is_some(),
            store.workspace_of_thread(id).await.unwrap().is_some(),
            store
                .artifact_of(&ada.access, artifact)
                .await
                .unwrap()
                .is_some(),
            store
                .attachment_of(&ada.access, file)
                .await
                .unwrap()
                .is_some(),
            store.lease_of(&ada.access, from.0).await.unwrap().is_some(),
            !store
                .leases_of(&ada.access, None, 9)
                .await
                .unwrap()
                .is_empty(),
            !store
                .threads_of(&ada.access, None, "", 9)
                .await
                .unwrap()
                .is_empty(),
            !store
                .artifacts_of(&ada.access, ArtifactFilter::default(), None, 9)
                .await
                .unwrap()
                .is_empty(),
        ]
    };
    assert_eq!(there().await, [true; 8]);
    let mut changes = store.begin().await.unwrap();
    assert!(changes.delete_thread(id).await.unwrap());
    assert!(!changes.delete_thread(id).await.unwrap());
    changes.commit().await.unwrap();
    assert_eq!(there().await, [false; 8]);
    purged(store, id, from.0, artifact, file).await;
}

/// What was deleted is taken away for good once nothing runs in it any more.
async fn purged(
    store: &Store,
    id: ThreadId,
    lease: SandboxId,
    artifact: ArtifactId,
    file: AttachmentId,
) {
    let later = Utc::now() + TimeDelta::hours(1);
    let found = store.threads_deleted_before(later, 0, 9).await.unwrap();
    assert!(found.is_empty(), "a reply runs");
    let reply = store.ask_to_stop(id, None).await.unwrap().unwrap();
    end(store, id, reply).await;
    store.end_lease(lease, EndedWhy::Asked, "").await.unwrap();
    let early = Utc::now() - TimeDelta::hours(1);
    assert!(
        store
            .threads_deleted_before(early, 0, 9)
            .await
            .unwrap()
            .is_empty()
    );
    let found = store.threads_deleted_before(later, 0, 9).await.unwrap();
    assert_eq!(found, [id]);
    let old = store.artifact(artifact).await.unwrap().unwrap();
    let mut changes = store.begin().await.unwrap();
    let restored = changes.restore_artifact(ArtifactId::new(), &old).await;
    restored.unwrap();
    changes.commit().await.unwrap();
    let objects = store.objects_of_thread(id).await.unwrap();
    assert_eq!(objects, [artifact.into(), file.into()]);
    store.purge_thread(id).await.unwrap();
    assert!(store.artifact(artifact).await.unwrap().is_none());
    assert!(store.attachment(file).await.unwrap().is_none());
    assert!(store.messages(id, 9).await.unwrap().is_empty());
    assert!(store.thread_events(id, 0, 9).await.unwrap().is_empty());
    // The sandbox has been, and counts.
    assert!(
        store
            .lease(lease)
            .await
            .unwrap()
            .unwrap()
            .thread_id
            .is_none()
    );
}

async fn sandboxes_for_previews_count_for_nothing(database: Database) {
    let store = &database.store;
    let (ada, profile) = (person(store, "ada").await, profile(store).await);
    let new = new_lease(profile);
    let mut changes = store.begin().await.unwrap();
    changes
        .create_preview_lease(ada.workspace, &new)
        .await
        .unwrap();
    changes.commit().await.unwrap();
    let meters = store.meters(ada.workspace).await.unwrap();
    assert_eq!((meters.concurrent, meters.started_last_hour), (0, 0));
    // Not even those who manage the workspace see it; the worker does.
    assert!(store.lease_of(&ada.access, new.id).await.unwrap().is_none());
    assert!(
        store
            .leases_of(&ada.access, None, 9)
            .await
            .unwrap()
            .is_empty()
    );
    // System admins see what is there, and what for.
    let listed = store.live_leases_with_names().await.unwrap();
    let [(lease, names)] = listed.as_slice() else {
        panic!("{listed:?}")
    };
    assert_eq!((lease.id, lease.purpose), (new.id, LeasePurpose::Preview));
    assert_eq!(names.user_email, None);
    let live = store.live_leases().await.unwrap();
    assert_eq!(live[0].purpose, LeasePurpose::Preview);
    let staged = Staged {
        source: "x".into(),
        name: "x".into(),
        bytes: 3,
    };
    store.keep_staged(new.id, &staged).await.unwrap();
    store.keep_staged(new.id, &staged).await.unwrap();
    assert_eq!(store.staged(new.id).await.unwrap(), [staged]);
}

async fn nothing_is_kept_of_a_preview_whose_sandbox_could_not_be_made(database: Database) {
    let store = &database.store;
    let (ada, profile) = (person(store, "ada").await, profile(store).await);
    let mut kept = Vec::new();
    for why in [EndedWhy::StartFailed, EndedWhy::Asked] {
        let new = new_lease(profile);
        let mut changes = store.begin().await.unwrap();
        changes
            .create_preview_lease(ada.workspace, &new)
            .await
            .unwrap();
        changes.commit().await.unwrap();
        // One that is still there is not forgotten.
        store.forget_start(new.id).await.unwrap();
        assert!(store.lease(new.id).await.unwrap().is_some());
        store.end_lease(new.id, why, "no room").await.unwrap();
        store.forget_start(new.id).await.unwrap();
        kept.push(store.lease(new.id).await.unwrap().is_some());
    }
    assert_eq!(kept, [false, true]);
}

async fn a_name_is_there_once_in_a_knowledge_base(database: Database) {
    let store = &database.store;
    let (ada, bob) = (person(store, "ada").await, person(store, "bob").await);
    let add = |access: &Access| {
        let access = access.clone();
        let new = NewKnowledgeFile {
            id: KnowledgeFileId::new(),
            name: UploadedName::of("prices.csv"),
            bytes: 1,
            sha256: "0".into(),
            media_type: "text/csv".into(),
        };
        async move {
            let mut changes = store.begin().await.unwrap();
            changes.create_knowledge_file(&access, &new).await?;
            changes.commit().await.map(|()| new.id)
        }
    };
    let id = add(&ada.access).await.unwrap();
    let taken = add(&ada.access).await.unwrap_err();
    assert!(matches!(taken, StoreError::Taken { .. }), "{taken}");
    add(&bob.access).await.unwrap();
    let found = store.knowledge_file_named(&ada.access, "prices.csv").await;
    let found = found.unwrap().unwrap();
    assert_eq!((found.id, found.added_by.as_str()), (id, "ada"));
    assert!(
        store
            .knowledge_file_of(&bob.access, id)
            .await
            .unwrap()
            .is_none()
    );
    let mut changes = store.begin().await.unwrap();
    assert!(
        !changes
            .delete_knowledge_file(&bob.access, id)
            .await
            .unwrap()
    );
    assert!(
        changes
            .delete_knowledge_file(&ada.access, id)
            .await
            .unwrap()
    );
    changes.commit().await.unwrap();
    let listed = store.knowledge_of(&ada.access, None, 9).await.unwrap();
    assert!(listed.is_empty());
}
