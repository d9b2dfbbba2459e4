//! Backups: what is in them, and the way back into either database.

use glovebox_protocol::ids::{ArtifactId, OrganizationId};
use glovebox_store::{ArtifactFilter, BackedUpFile, KeyScope, Permission, Store, StoreError};

use crate::furnished::{
    Files, Furnished, PLANTED, back_up, furnish, record, restore, rows, sha256, tables,
};
use crate::support::{Database, on_both, person};

on_both! {
    everything_comes_back_in_either_database_and_goes_on
    a_backup_has_every_table
    a_backup_that_is_made_while_others_write_is_of_one_moment
    no_secret_can_be_read_in_a_backup
    an_object_that_is_gone_is_told_and_does_not_keep_the_rest
    a_restore_beside_the_objects_uses_them
}

/// What is of a moment, or the tables' own.
const NOT_KEPT: [&str; 6] = [
    "schema_versions",
    "sessions",
    "sign_in_attempts",
    "previews",
    "preview_parts",
    "task_turns",
];

/// The version of the tables that this program wants.
const VERSION: usize = 7;

/// Rows of tables that nothing here makes.
async fn add_rows(database: &Database) {
    let raw = database.raw().await;
    for insert in [
        "INSERT INTO organizations (id, name, created_at) VALUES ($1, 'all', 1)",
        "INSERT INTO models (id, name, base_url, model, context_tokens, connect_timeout_seconds, \
         silence_timeout_seconds, created_at) VALUES ($1, 'all', 'http://x', 'x', 1, 1, 1, 1)",
    ] {
        let id = OrganizationId::new().to_string();
        sqlx::query(insert).bind(id).execute(&raw).await.unwrap();
    }
}

async fn everything_comes_back_in_either_database_and_goes_on(database: Database) {
    let files = Files::new();
    let furnished = furnish(&database.store, &files).await;
    add_rows(&database).await;
    let (file, made) = back_up(&database.store, &files).await;
    assert_eq!((made.objects, made.missing.len()), (5, 0));
    let mut before = rows(&database).await;
    let kept = before
        .iter()
        .filter(|(name, _)| !NOT_KEPT.contains(&name.as_str()));
    for (table, rows) in kept {
        assert!(!rows.is_empty(), "nothing is in {table}");
    }
    before.retain(|name, _| !NOT_KEPT.contains(&name.as_str()));
    let count: usize = before.values().map(Vec::len).sum();
    assert_eq!(made.rows, count as u64);

    for target in [
        Database::bare_sqlite().await,
        Database::postgres().await,
        Database::bare_postgres().await,
    ] {
        let there = Files::new();
        let restored = restore(&target.store, &there, &file).await.unwrap();
        assert_eq!((restored.rows, restored.objects), (made.rows, 5));
        assert_eq!(restored.replaced, 0);
        let mut after = rows(&target).await;
        assert_eq!(after["schema_versions"].len(), VERSION);
        for passing in &NOT_KEPT[1..] {
            assert!(after[*passing].is_empty(), "{passing}");
        }
        after.retain(|name, _| !NOT_KEPT.contains(&name.as_str()));
        assert_eq!(after, before);
        goes_on(&target.store, &there, &furnished).await;

        // And the way back, with what is new.
        let (file, made) = back_up(&target.store, &there).await;
        let back = match target.address.starts_with("sqlite") {
            true => Database::bare_postgres().await,
            false => Database::bare_sqlite().await,
        };
        let restored = restore(&back.store, &Files::new(), &file).await.unwrap();
        assert_eq!((restored.rows, restored.objects), (made.rows, 5));
        let (mut one, mut other) = (rows(&target).await, rows(&back).await);
        one.remove("schema_versions");
        other.remove("schema_versions");
        assert_eq!(one, other);
    }
}

/// What was made before is there as it was, and new things can be made.
async fn goes_on(store: &Store, files: &Files, furnished: &Furnished) {
    store.check_version().await.unwrap();
    let access = store.access_of_key(&furnished.key.hash()).await.unwrap();
    let access = access.expect("the key still opens");
    assert!(access.may(Permission::RunCode) && access.has_scope(KeyScope::CodeExecutionRun));
    let session = store.session(&furnished.session.hash()).await.unwrap();
    assert!(session.is_none(), "a session came back");
    store.adopt_master_key(&furnished.master).await.unwrap();
    let secret = store.secret(&furnished.master, "a").await.unwrap();
    assert_eq!(&**secret.unwrap(), PLANTED.as_bytes());
    for (id, bytes) in &furnished.artifacts {
        assert_eq!(files.read(*id).await, *bytes);
    }
    assert_eq!(files.read(furnished.attachment).await, b"attached");
    assert_eq!(files.read(furnished.knowledge).await, b"known");
    let listed = store
        .artifacts_of(&furnished.ada.access, ArtifactFilter::default(), None, 9)
        .await;
    assert_eq!(listed.unwrap().len(), 4);
    person(store, "bob").await;
    let mut changes = store.begin().await.unwrap();
    record(&mut changes).await;
    changes.commit().await.unwrap();
    let log = store.audit(&Default::default(), 9).await.unwrap();
    assert_eq!(log.len(), 2);
}

async fn a_backup_has_every_table(database: Database) {
    let (file, _) = back_up(&database.store, &Files::new()).await;
    let text = String::from_utf8(file).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let mut named: Vec<_> = lines
        .filter_map(|line: serde_json::Value| Some(line["table"]["name"].as_str()?.to_owned()))
        .collect();
    named.extend(NOT_KEPT.map(String::from));
    named.sort();
    assert_eq!(named, tables(&database).await);
    if database.address.starts_with("postgres") {
        // Whoever adds one has to set it forward after a restore.
        let count = "SELECT COUNT(*) FROM information_schema.sequences \
                     WHERE sequence_schema = current_schema()";
        let raw = database.raw().await;
        let count = sqlx::query_scalar::<_, i64>(count).fetch_one(&raw).await;
        assert_eq!(count.unwrap(), 0);
    }
}

async fn a_backup_that_is_made_while_others_write_is_of_one_moment(database: Database) {
    let store = &database.store;
    let files = Files::new();
    furnish(store, &files).await;
    let writing = async {
        for n in 0..60 {
            person(store, &format!("person-{n}")).await;
        }
    };
    let backing_up = async {
        let mut made = Vec::new();
        for _ in 0..5 {
            made.push(back_up(store, &files).await);
        }
        made
    };
    let ((), made) = tokio::join!(writing, backing_up);
    let mut seen = Vec::new();
    for (file, _) in made {
        let target = Database::bare_sqlite().await;
        restore(&target.store, &Files::new(), &file).await.unwrap();
        let rows = rows(&target).await;
        // One of each for everybody, or what was seen was half of a change.
        let (users, owned) = (rows["users"].len(), rows["workspaces"].len());
        assert_eq!((users, owned), (owned, rows["memberships"].len()));
        seen.push(users);
    }
    assert!(seen[4] > seen[0], "nothing was written meanwhile: {seen:?}");
}

async fn no_secret_can_be_read_in_a_backup(database: Database) {
    let files = Files::new();
    let furnished = furnish(&database.store, &files).await;
    let (file, _) = back_up(&database.store, &files).await;
    let text = String::from_utf8(file).unwrap();
    let key = furnished.master.to_text();
    for secret in [
        PLANTED,
        &key,
        furnished.key.reveal(),
        furnished.session.reveal(),
        furnished.session.hash().as_str(),
    ] {
        assert!(!text.contains(secret), "the backup tells a secret");
    }
    // The look would find them.
    assert!(text.contains(furnished.key.hash().as_str()));
}

async fn an_object_that_is_gone_is_told_and_does_not_keep_the_rest(database: Database) {
    let files = Files::new();
    let furnished = furnish(&database.store, &files).await;
    let ids: Vec<ArtifactId> = furnished.artifacts.iter().map(|(id, _)| *id).collect();
    files.objects.delete(ids[1]).await.unwrap();
    files.write(ids[2], b"altered").await;
    files.objects.delete(furnished.knowledge).await.unwrap();
    let gone = vec![
        BackedUpFile::Artifact(ids[1]),
        BackedUpFile::Artifact(ids[2]),
        BackedUpFile::KnowledgeFile(furnished.knowledge),
    ];
    let (file, made) = back_up(&database.store, &files).await;
    assert_eq!((made.objects, &made.missing), (2, &gone));
    let (target, there) = (Database::bare_sqlite().await, Files::new());
    let restored = restore(&target.store, &there, &file).await.unwrap();
    assert_eq!((restored.objects, &restored.missing), (2, &gone));
    assert_eq!(there.count(), 2);
    let listed =
        target
            .store
            .artifacts_of(&furnished.ada.access, ArtifactFilter::default(), None, 9);
    assert_eq!(listed.await.unwrap().len(), 4);
}

async fn a_restore_beside_the_objects_uses_them(database: Database) {
    let files = Files::new();
    let furnished = furnish(&database.store, &files).await;
    let (file, _) = back_up(&database.store, &files).await;
    let target = Database::bare_sqlite().await;
    restore(&target.store, &files, &file).await.unwrap();
    for (id, bytes) in &furnished.artifacts {
        assert_eq!(files.read(*id).await, *bytes);
    }
}

#[tokio::test]
async fn a_character_that_postgres_cannot_store_is_replaced_and_counted() {
    let (source, files) = (Database::sqlite().await, Files::new());
    let ada = person(&source.store, "ada").await;
    let odd = source.store.keep_denial(ada.workspace, "role", "a\0b");
    odd.await.unwrap();
    let (file, _) = back_up(&source.store, &files).await;
    for (target, replaced, actor) in [
        (Database::bare_postgres().await, 1, "a\u{fffd}b"),
        (Database::bare_sqlite().await, 0, "a\0b"),
    ] {
        let restored = restore(&target.store, &files, &file).await.unwrap();
        assert_eq!(restored.replaced, replaced);
        let denials = target.store.denials(ada.workspace, 9).await.unwrap();
        assert_eq!(denials[0].actor, actor);
    }
}

#[tokio::test]
async fn tables_of_another_version_are_not_backed_up() {
    let bare = Database::bare_sqlite().await;
    let refused = bare.store.back_up(&Files::new().objects, Vec::new()).await;
    let refused = refused.unwrap_err();
    assert!(
        matches!(
            refused,
            glovebox_store::BackupError::Store(StoreError::Version { found: 0, .. })
        ),
        "{refused}"
    );
}

/// A backup as the first version made it: without what came later, of which it has no rows.
fn as_of_version_1(file: &[u8]) -> Vec<u8> {
    const LATER: [&str; 7] = [
        "models",
        "threads",
        "messages",
        "thread_events",
        "attachments",
        "knowledge_files",
        "staged_files",
    ];
    let text = std::str::from_utf8(file).unwrap();
    let (text, end) = text.trim_end().rsplit_once('\n').unwrap();
    let text: String = text
        .lines()
        .filter(|line| {
            let is_of = |table| line.starts_with(&format!("{{\"table\":{{\"name\":\"{table}\""));
            !LATER.into_iter().any(is_of)
        })
        .map(|line| format!("{line}\n"))
        .collect();
    let text = text
        .replacen("\"tables\":7", "\"tables\":1", 1)
        .replacen(
            ",\"thread_id\",\"purpose\",\"is_quiet\",\"last_collected_at\",\"forgotten_at\"]",
            "]",
            1,
        )
        .replacen(",\"thread_id\",\"bytes_of\"]", "]", 1)
        .replacen(",\"share\"]", "]", 1);
    let (head, _) = end.split_once("\"sha256\":").unwrap();
    let hash = sha256(text.as_bytes());
    format!("{text}{head}\"sha256\":\"{hash}\"}}}}\n").into_bytes()
}

#[tokio::test]
async fn a_backup_of_an_older_version_is_brought_to_this_one() {
    let (source, files) = (Database::sqlite().await, Files::new());
    let ada = person(&source.store, "ada").await;
    let (file, made) = back_up(&source.store, &files).await;
    for target in [
        Database::bare_sqlite().await,
        Database::bare_postgres().await,
    ] {
        let old = as_of_version_1(&file);
        let restored = restore(&target.store, &files, &old).await.unwrap();
        assert_eq!(restored.rows, made.rows);
        target.store.check_version().await.unwrap();
        let access = target.store.access_of_user(ada.user, ada.workspace).await;
        assert!(access.unwrap().is_some());
    }
}
