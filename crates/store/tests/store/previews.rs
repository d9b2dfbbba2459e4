//! Previews: made once for a workspace and content, read by whoever may read a file with it.

use glovebox_protocol::ids::{ArtifactId, AttachmentId, ExecutionId, KnowledgeFileId, ThreadId};
use glovebox_store::{
    Access, NewArtifact, NewAttachment, NewExecution, NewKnowledgeFile, NewPreview, NewTask,
    PreviewPart, PreviewSource, PreviewState, Quotas, Role, Store, UploadedName,
};
use serde_json::{Value, json};

use crate::support::{Database, Person, lease, new_user, on_both, person, profile};
use crate::threads::thread;

on_both! {
    a_preview_is_there_once_and_keeps_its_parts
    it_is_seen_by_whoever_may_read_a_file_with_its_bytes
    what_nobody_can_see_any_more_is_forgotten
    a_task_is_held_until_it_is_somebody_elses
    those_that_wait_take_turns
    how_a_task_stands_is_known
}

/// An artifact of a sandbox of its own.
async fn artifact(store: &Store, whose: &Person, sha256: &str) -> ArtifactId {
    let profile = profile(store).await;
    let lease = lease(store, &whose.access, profile, &Quotas::default())
        .await
        .unwrap();
    let (id, execution) = (ArtifactId::new(), ExecutionId::new());
    let mut changes = store.begin().await.unwrap();
    changes
        .place_execution(&NewExecution {
            id: execution,
            lease_id: lease,
            workspace_id: whose.workspace,
            idempotency_key: None,
            request_hash: String::new(),
        })
        .await
        .unwrap();
    let new = NewArtifact {
        id,
        workspace_id: whose.workspace,
        lease_id: lease,
        execution_id: execution,
        name: "deck.pptx".into(),
        bytes: 20,
        sha256: sha256.into(),
        media_type: "application/octet-stream".into(),
    };
    changes.create_artifact(&new).await.unwrap();
    changes.commit().await.unwrap();
    id
}

async fn ask(store: &Store, access: &Access, source: PreviewSource) -> glovebox_store::Preview {
    let file = store.previewable(access, source).await.unwrap().unwrap();
    let mut changes = store.begin().await.unwrap();
    let placed = changes
        .place_preview(&NewPreview {
            workspace_id: access.workspace(),
            file: &file,
            format: "pptx",
            renderer: 1,
        })
        .await
        .unwrap();
    changes.commit().await.unwrap();
    placed
}

async fn a_preview_is_there_once_and_keeps_its_parts(database: Database) {
    let store = &database.store;
    let ada = person(store, "ada").await;
    let id = artifact(store, &ada, "ab").await;
    let source = PreviewSource::Artifact(id);
    let first = ask(store, &ada.access, source).await;
    assert_eq!((first.state, first.bytes), (PreviewState::Waiting, 20));
    assert_eq!(first.source, source);
    let contents = json!({ "page_count": 3 });
    let noted = store.note_preview(first.id, PreviewState::Ready, &contents);
    noted.await.unwrap();
    let again = ask(store, &ada.access, source).await;
    assert_eq!((again.id, again.state), (first.id, PreviewState::Ready));
    assert_eq!(again.contents, contents);
    assert!(again.made_at.is_some());

    let mut part = PreviewPart {
        name: "page-1.png".into(),
        bytes: 7,
        media_type: "image/png".into(),
    };
    store.keep_preview_part(first.id, &part).await.unwrap();
    part.bytes = 9;
    store.keep_preview_part(first.id, &part).await.unwrap();
    let found = store.preview_part(first.id, "page-1.png").await.unwrap();
    assert_eq!(found, Some(part));
    let none = store.preview_part(first.id, "page-2.png").await.unwrap();
    assert_eq!(none, None);

    let mut changes = store.begin().await.unwrap();
    changes.restart_preview(first.id).await.unwrap();
    changes.commit().await.unwrap();
    let again = store.preview(first.id).await.unwrap().unwrap();
    assert_eq!((again.state, again.made_at), (PreviewState::Waiting, None));
}

async fn it_is_seen_by_whoever_may_read_a_file_with_its_bytes(database: Database) {
    let store = &database.store;
    let (ada, bob) = (person(store, "ada").await, person(store, "bob").await);
    let mut changes = store.begin().await.unwrap();
    let eve = changes.create_user(&new_user("eve")).await.unwrap();
    let added = changes.add_member(ada.workspace, eve, Role::Admin);
    added.await.unwrap();
    changes.commit().await.unwrap();
    let eve = store.access_of_user(eve, ada.workspace).await;
    let eve = eve.unwrap().unwrap();
    let sees = async |access: &Access, id| store.preview_of(access, id).await.unwrap().is_some();

    // An artifact of a sandbox is that of its owner.
    let own = artifact(store, &ada, "01").await;
    let own = ask(store, &ada.access, PreviewSource::Artifact(own))
        .await
        .id;
    assert!(sees(&ada.access, own).await);
    assert!(!sees(&eve, own).await);
    assert!(!sees(&bob.access, own).await);

    // What is not sent is its uploader's; what is sent into a thread, its readers'.
    let new = NewAttachment {
        id: AttachmentId::new(),
        name: UploadedName::of("a.pptx"),
        bytes: 20,
        sha256: "02".into(),
        media_type: String::new(),
    };
    let mut changes = store.begin().await.unwrap();
    changes.create_attachment(&ada.access, &new).await.unwrap();
    changes.commit().await.unwrap();
    let source = PreviewSource::Attachment(new.id);
    let unsent = ask(store, &ada.access, source).await.id;
    assert!(sees(&ada.access, unsent).await);
    assert!(!sees(&eve, unsent).await);
    assert!(store.previewable(&eve, source).await.unwrap().is_none());
    let raw = database.raw().await;
    let into = async |thread: ThreadId| {
        sqlx::query("UPDATE attachments SET thread_id = $1")
            .bind(thread.to_string())
            .execute(&raw)
            .await
            .unwrap();
    };
    into(thread(store, &ada.access, false).await).await;
    assert!(!sees(&eve, unsent).await, "its thread is private");
    into(thread(store, &ada.access, true).await).await;
    assert!(sees(&eve, unsent).await, "its thread is shared");
    assert!(!sees(&bob.access, unsent).await);

    // Knowledge is every member's.
    let new = NewKnowledgeFile {
        id: KnowledgeFileId::new(),
        name: UploadedName::of("k.pptx"),
        bytes: 20,
        sha256: "03".into(),
        media_type: String::new(),
    };
    let mut changes = store.begin().await.unwrap();
    let made = changes.create_knowledge_file(&ada.access, &new);
    made.await.unwrap();
    changes.commit().await.unwrap();
    let source = PreviewSource::KnowledgeFile(new.id);
    let known = ask(store, &eve, source).await.id;
    assert!(sees(&eve, known).await);
    assert!(!sees(&bob.access, known).await);
    assert_eq!(
        store.workspace_of_source(source).await.unwrap(),
        Some(ada.workspace)
    );
}

async fn what_nobody_can_see_any_more_is_forgotten(database: Database) {
    let store = &database.store;
    let ada = person(store, "ada").await;
    let kept = artifact(store, &ada, "01").await;
    let kept = ask(store, &ada.access, PreviewSource::Artifact(kept))
        .await
        .id;
    let new = NewAttachment {
        id: AttachmentId::new(),
        name: UploadedName::of("a.pptx"),
        bytes: 20,
        sha256: "02".into(),
        media_type: String::new(),
    };
    let mut changes = store.begin().await.unwrap();
    changes.create_attachment(&ada.access, &new).await.unwrap();
    changes.commit().await.unwrap();
    let source = PreviewSource::Attachment(new.id);
    let going = ask(store, &ada.access, source).await.id;
    let part = PreviewPart {
        name: "text".into(),
        bytes: 1,
        media_type: "text/plain".into(),
    };
    store.keep_preview_part(going, &part).await.unwrap();
    assert!(store.forgotten_previews(1, 0, 9).await.unwrap().is_empty());
    let raw = database.raw().await;
    let delete = sqlx::query("DELETE FROM attachments").execute(&raw);
    delete.await.unwrap();
    assert_eq!(store.forgotten_previews(1, 0, 9).await.unwrap(), [going]);
    assert_eq!(store.preview_parts(going).await.unwrap(), ["text"]);
    // Not while a part is known, whose bytes would be nobody's.
    store.forget_preview(going).await.unwrap_err();
    store.forget_preview_part(going, "text").await.unwrap();
    store.forget_preview(going).await.unwrap();
    assert!(store.preview(going).await.unwrap().is_none());
    assert!(store.preview(kept).await.unwrap().is_some());
    // A better one is made anew.
    assert_eq!(store.forgotten_previews(2, 0, 9).await.unwrap(), [kept]);
}

/// A task that somebody waits for.
fn task<'a>(share: &'a str, subject: &'a str) -> NewTask<'a> {
    NewTask {
        queue: "preview",
        kind: "make",
        subject,
        share,
        payload: &Value::Null,
        due: chrono::Utc::now(),
    }
}

async fn those_that_wait_take_turns(database: Database) {
    let store = &database.store;
    let mut changes = store.begin().await.unwrap();
    // One has brought many files before the others came.
    for (share, count) in [("busy", 4), ("", 1), ("quiet", 2), ("late", 1)] {
        for number in 0..count {
            let subject = format!("{share} {number}");
            changes.enqueue_new(&task(share, &subject)).await.unwrap();
        }
    }
    changes.commit().await.unwrap();
    let take = async || {
        let task = store.take_task("preview", 60_000).await.unwrap().unwrap();
        task.subject.split(' ').next().unwrap().to_owned()
    };
    let mut first: Vec<String> = Vec::new();
    for _ in 0..4 {
        first.push(take().await);
    }
    first.sort();
    assert_eq!(first, ["", "busy", "late", "quiet"], "each of them once");
    let second = [take().await, take().await];
    assert!(
        second.contains(&"busy".into()) && second.contains(&"quiet".into()),
        "{second:?}"
    );
    assert_eq!([take().await, take().await], ["busy", "busy"]);
    assert!(store.take_task("preview", 1).await.unwrap().is_none());
}

async fn how_a_task_stands_is_known(database: Database) {
    let store = &database.store;
    let now = chrono::Utc::now();
    let mut changes = store.begin().await.unwrap();
    for subject in ["1", "2"] {
        changes.enqueue_new(&task("w", subject)).await.unwrap();
    }
    changes.commit().await.unwrap();
    let stands = async |subject: &str| {
        let found = store.task_standing("preview", "make", subject).await;
        found.unwrap().unwrap()
    };
    let before = stands("1").await;
    assert!(!before.is_taken && !before.others_are_taken && before.last_error.is_none());
    let task = store.take_task("preview", 60_000).await.unwrap().unwrap();
    let other = if task.subject == "1" { "2" } else { "1" };
    let (own, others) = (stands(&task.subject).await, stands(other).await);
    assert!(own.is_taken && !own.others_are_taken);
    assert!(!others.is_taken && others.others_are_taken);
    store.retry_task(task.id, now, "no room").await.unwrap();
    assert_eq!(
        stands(&task.subject).await.last_error.as_deref(),
        Some("no room")
    );
    store.finish_task(task.id).await.unwrap();
    let gone = store.task_standing("preview", "make", &task.subject).await;
    assert!(gone.unwrap().is_none());
}

async fn a_task_is_held_until_it_is_somebody_elses(database: Database) {
    let store = &database.store;
    let mut changes = store.begin().await.unwrap();
    let now = chrono::Utc::now();
    let payload = json!({});
    let put = changes.enqueue("preview", "make", "1", &payload, now);
    put.await.unwrap();
    changes.commit().await.unwrap();
    let first = store.take_task("preview", 60_000).await.unwrap().unwrap();
    assert!(store.take_task("preview", 60_000).await.unwrap().is_none());
    assert!(store.hold_task(&first, 0).await.unwrap());
    let second = store.take_task("preview", 60_000).await.unwrap().unwrap();
    assert_eq!((second.id, second.attempts), (first.id, 2));
    assert!(!store.hold_task(&first, 60_000).await.unwrap());
    assert!(store.hold_task(&second, 60_000).await.unwrap());
}
