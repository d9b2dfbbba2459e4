//! A server's data with something in every table, and looking at all of it.

use std::collections::BTreeMap;
use std::path::Path;

use chrono::{TimeDelta, Utc};
use futures_util::TryStreamExt as _;
use glovebox_protocol::event::{Event, EventBody, Output};
use glovebox_protocol::ids::{
    ArtifactId, AttachmentId, AttemptId, ExecutionId, KnowledgeFileId, ProfileId, SandboxId,
};
use glovebox_store::{
    Actor, BackedUp, Backup, BackupError, CheckKind, Entry, KeyScope, MasterKey, NewApiKey,
    NewArtifact, NewAttachment, NewExecution, NewKnowledgeFile, NewSession, ObjectKey, Objects,
    Quotas, Restored, Staged, Store, Token, UploadedName,
};
use serde_json::json;
use sqlx::{Column as _, Row as _};

use crate::support::{Database, Person, lease, new_lease, person, profile};
use crate::threads::{send, thread};

/// What nobody may find in a backup.
pub(crate) const PLANTED: &str = "a planted credential";

/// Files of a test's own.
pub(crate) struct Files {
    pub(crate) objects: Objects,
    pub(crate) folder: tempfile::TempDir,
}

impl Files {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            objects: Objects::in_folder(folder.path()).unwrap(),
            folder,
        }
    }

    /// How many files there are.
    pub(crate) fn count(&self) -> usize {
        fn below(folder: &Path) -> usize {
            let entries = fs_err::read_dir(folder).unwrap().map(Result::unwrap);
            entries
                .map(|entry| match entry.file_type().unwrap().is_dir() {
                    true => below(&entry.path()),
                    false => 1,
                })
                .sum()
        }
        below(self.folder.path())
    }

    pub(crate) async fn write(&self, id: impl Into<ObjectKey>, bytes: &[u8]) {
        let mut upload = self.objects.create(id).await.unwrap();
        upload.write(bytes).await.unwrap();
        upload.finish().await.unwrap();
    }

    pub(crate) async fn read(&self, id: impl Into<ObjectKey>) -> Vec<u8> {
        let parts = self.objects.read(id).await.unwrap();
        let parts: Vec<_> = parts.try_collect().await.unwrap();
        parts.concat()
    }
}

/// A server's data.
pub(crate) struct Furnished {
    pub(crate) ada: Person,
    pub(crate) key: Token,
    pub(crate) session: Token,
    pub(crate) master: MasterKey,
    pub(crate) artifacts: Vec<(ArtifactId, Vec<u8>)>,
    pub(crate) attachment: AttachmentId,
    pub(crate) knowledge: KnowledgeFileId,
}

/// Puts something into every table.
pub(crate) async fn furnish(store: &Store, files: &Files) -> Furnished {
    let (ada, profile) = (person(store, "ada").await, profile(store).await);
    let id = lease(store, &ada.access, profile, &Quotas::default()).await;
    let (key, session) = let_in(store, &ada).await;
    let master = MasterKey::random().unwrap();
    store.adopt_master_key(&master).await.unwrap();
    let mut changes = store.begin().await.unwrap();
    changes.set("installation", &"here").await.unwrap();
    let secret = changes.put_secret(&master, "a", PLANTED.as_bytes());
    secret.await.unwrap();
    let report = json!({ "checks": [1, null, "ä"] });
    let check = changes.keep_check(profile, CheckKind::Test, true, &report);
    check.await.unwrap();
    let read = changes.acknowledge(profile, "shared_kernel", ada.user);
    read.await.unwrap();
    let task = json!({});
    let task = changes.enqueue("parsing", "parse", "x", &task, Utc::now());
    task.await.unwrap();
    record(&mut changes).await;
    changes.commit().await.unwrap();
    let artifacts = run(store, files, &ada, id.unwrap()).await;
    // A version that has the bytes of an older one.
    let old = store.artifact(artifacts[0].0).await.unwrap().unwrap();
    let mut changes = store.begin().await.unwrap();
    let restored = changes.restore_artifact(ArtifactId::new(), &old).await;
    assert_eq!(restored.unwrap(), 4);
    changes.commit().await.unwrap();
    let (attachment, knowledge) = talk(store, files, &ada, profile).await;
    Furnished {
        ada,
        key,
        session,
        master,
        artifacts,
        attachment,
        knowledge,
    }
}

/// A thread in which a file was sent, with a sandbox of its own; and a knowledge base.
async fn talk(
    store: &Store,
    files: &Files,
    ada: &Person,
    profile: ProfileId,
) -> (AttachmentId, KnowledgeFileId) {
    let (attachment, knowledge) = (AttachmentId::new(), KnowledgeFileId::new());
    files.write(attachment, b"attached").await;
    files.write(knowledge, b"known").await;
    let new = NewAttachment {
        id: attachment,
        name: UploadedName::of("a.txt"),
        bytes: 8,
        sha256: sha256(b"attached"),
        media_type: "text/plain".into(),
    };
    let mut changes = store.begin().await.unwrap();
    changes.create_attachment(&ada.access, &new).await.unwrap();
    changes.commit().await.unwrap();
    let thread = thread(store, &ada.access, false).await;
    send(store, &ada.access, thread, "Hello", &[attachment]).await;
    let mut lease = new_lease(profile);
    lease.thread_id = Some(thread);
    let mut changes = store.begin().await.unwrap();
    let new = NewKnowledgeFile {
        id: knowledge,
        name: UploadedName::of("k.txt"),
        bytes: 5,
        sha256: sha256(b"known"),
        media_type: "text/plain".into(),
    };
    let made = changes.create_knowledge_file(&ada.access, &new);
    made.await.unwrap();
    let quotas = Quotas::default();
    let placed = changes.create_lease(&ada.access, &quotas, &lease);
    placed.await.unwrap().unwrap();
    changes.commit().await.unwrap();
    let staged = Staged {
        source: attachment.to_string(),
        name: "a.txt".into(),
        bytes: 8,
    };
    store.keep_staged(lease.id, &staged).await.unwrap();
    (attachment, knowledge)
}

/// Gives somebody a key and a session, and has others refused.
async fn let_in(store: &Store, ada: &Person) -> (Token, Token) {
    let (key, session) = (Token::random("gbk_"), Token::random("gbsn_"));
    let (key, session) = (key.unwrap(), session.unwrap());
    let new_session = NewSession {
        user_id: ada.user,
        token: session.hash(),
        address: "127.0.0.1".into(),
        user_agent: "a browser".into(),
        expires_at: Utc::now() + TimeDelta::hours(1),
    };
    let new_key = NewApiKey {
        workspace_id: ada.workspace,
        user_id: Some(ada.user),
        name: "script".into(),
        token: key.hash(),
        scopes: vec![KeyScope::CodeExecutionRun],
    };
    let mut changes = store.begin().await.unwrap();
    changes.create_session(&new_session).await.unwrap();
    changes.create_api_key(&new_key).await.unwrap();
    changes.commit().await.unwrap();
    let (attempt, since) = (AttemptId::new(), Utc::now() - TimeDelta::hours(1));
    let noted = store.note_sign_in(attempt, "email:ada", since).await;
    noted.unwrap();
    let odd = "Zoë, \u{1f9e4} of \"7\" \\ 9\n";
    let denied = store.keep_denial(ada.workspace, "role", odd);
    denied.await.unwrap();
    (key, session)
}

/// Lets code run that says something and makes files.
async fn run(
    store: &Store,
    files: &Files,
    ada: &Person,
    lease_id: SandboxId,
) -> Vec<(ArtifactId, Vec<u8>)> {
    let execution_id = ExecutionId::new();
    let execution = NewExecution {
        id: execution_id,
        lease_id,
        workspace_id: ada.workspace,
        idempotency_key: None,
        request_hash: "1".into(),
    };
    let mut changes = store.begin().await.unwrap();
    changes.place_execution(&execution).await.unwrap();
    let mut artifacts = Vec::new();
    for bytes in [Vec::new(), b"a,b\n1,2\n".to_vec(), vec![b'\n'; 200_000]] {
        let new = NewArtifact {
            id: ArtifactId::new(),
            workspace_id: ada.workspace,
            lease_id,
            execution_id,
            name: "a.csv".into(),
            bytes: bytes.len() as u64,
            sha256: sha256(&bytes),
            media_type: "text/csv".into(),
        };
        files.write(new.id, &bytes).await;
        changes.create_artifact(&new).await.unwrap();
        artifacts.push((new.id, bytes));
    }
    changes.commit().await.unwrap();
    let body = EventBody::Stdout(Output(b"\x00\xff said".to_vec().into()));
    let at = Utc::now();
    let events = [Event { seq: 1, at, body }];
    store.keep_events(execution_id, &events).await.unwrap();
    artifacts
}

/// Writes something into the audit log.
pub(crate) async fn record(changes: &mut glovebox_store::Transaction) {
    let entry = Entry {
        action: "thing.make",
        object_kind: "thing",
        object_id: None,
        object: "it",
        workspace: None,
        fields: &["name"],
    };
    let actor = Actor::command_line("ada");
    changes.record(&actor, entry).await.unwrap();
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    let digits = digest.as_ref().iter().map(|byte| format!("{byte:02x}"));
    digits.collect()
}

pub(crate) async fn back_up(store: &Store, files: &Files) -> (Vec<u8>, BackedUp) {
    let mut file = Vec::new();
    let made = store.back_up(&files.objects, &mut file).await.unwrap();
    assert_eq!(made.bytes, file.len() as u64);
    (file, made)
}

pub(crate) async fn restore(
    store: &Store,
    files: &Files,
    file: &[u8],
) -> Result<Restored, BackupError> {
    let backup = Backup::open(file)?;
    store.restore(&files.objects, backup).await
}

/// The names of all tables of a database.
pub(crate) async fn tables(database: &Database) -> Vec<String> {
    let select = match database.address.starts_with("sqlite") {
        true => "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name",
        false => {
            "SELECT CAST(tablename AS TEXT) AS name FROM pg_tables \
             WHERE schemaname = current_schema() ORDER BY name"
        }
    };
    let rows = sqlx::query(select).fetch_all(&database.raw().await).await;
    rows.unwrap().iter().map(|row| row.get("name")).collect()
}

/// All rows of all tables, as text, in an order of their own.
pub(crate) async fn rows(database: &Database) -> BTreeMap<String, Vec<String>> {
    let raw = database.raw().await;
    let mut all = BTreeMap::new();
    for table in tables(database).await {
        let select = sqlx::AssertSqlSafe(format!("SELECT * FROM {table}"));
        let found = sqlx::query(select).fetch_all(&raw).await.unwrap();
        let mut rows: Vec<_> = found
            .iter()
            .map(|row| {
                let cells = row.columns().iter().map(|column| {
                    let at = column.ordinal();
                    let text = row.try_get::<Option<String>, _>(at).map(|v| json!(v));
                    let cell =
                        text.or_else(|_| row.try_get::<Option<i64>, _>(at).map(|v| json!(v)));
                    format!("{}={}", column.name(), cell.unwrap())
                });
                cells.collect::<Vec<_>>().join(" ")
            })
            .collect();
        rows.sort();
        all.insert(table, rows);
    }
    all
}
