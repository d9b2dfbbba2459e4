//! A server whose master key is lost: it says so, secrets are made anew, and it goes on.

use std::path::Path;

use chrono::{TimeDelta, Utc};
use glovebox_protocol::class::ResourceClass;
use glovebox_protocol::ids::SandboxId;
use glovebox_server::Config;
use glovebox_server::program::{Server, objects, open_existing, open_to_fill};
use glovebox_server::reset::{ResetError, reset_secrets};
use glovebox_server::secrets::{KeyState, key_state};
use glovebox_store::{
    Actor, AuditFilter, Backup, EndedWhy, LeaseState, MasterKey, NewLease, Store,
};
use zeroize::Zeroizing;

use crate::stage::config;

const PASSWORD: &str = "correct horse battery";

fn admin() -> Actor {
    Actor::command_line("user id 7")
}

async fn open(config: &Config) -> Result<Server, String> {
    let opened = Server::open(config.clone()).await;
    opened.map_err(|error| error.to_string())
}

/// A server's data with an administrator, a credential that people gave, and a live lease.
async fn furnished(folder: &Path) -> (Config, SandboxId) {
    let config = config(folder);
    let server = open(&config).await.unwrap();
    let app = server.app();
    let password = Zeroizing::new(PASSWORD.to_owned());
    app.create_system_admin(&admin(), "ada@example.com", "Ada", password)
        .await
        .unwrap();
    let mut changes = app.store().begin().await.unwrap();
    changes
        .put_secret(app.master(), "profile/other/credential", b"given")
        .await
        .unwrap();
    changes.commit().await.unwrap();
    let lease = lease(app.store()).await;
    app.store().close().await;
    (config, lease)
}

/// A live lease, as a server makes one.
async fn lease(store: &Store) -> SandboxId {
    let ada = store.user_by_email("ada@example.com").await.unwrap();
    let workspace = store.workspace_by_name("Main").await.unwrap().unwrap();
    let access = store.access_of_user(ada.unwrap().id, workspace.id).await;
    let new = NewLease {
        id: SandboxId::new(),
        profile_id: store.profiles().await.unwrap()[0].id,
        thread_id: None,
        class: ResourceClass::Small,
        idle_limit_ms: 600_000,
        hard_deadline: Utc::now() + TimeDelta::hours(1),
    };
    let mut changes = store.begin().await.unwrap();
    let access = access.unwrap().unwrap();
    let placed = changes.create_lease(&access, &workspace.quotas, &new).await;
    placed.unwrap().unwrap();
    changes.commit().await.unwrap();
    new.id
}

async fn signs_in(server: &Server) {
    let password = Zeroizing::new(PASSWORD.to_owned());
    let signed_in = server
        .app()
        .sign_in(admin(), "ada@example.com", password, "test");
    signed_in.await.unwrap();
}

#[tokio::test]
async fn a_server_goes_on_from_a_backup_with_its_master_key_or_with_new_secrets() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (old, lease) = furnished(old.path()).await;
    let new = config(new.path());
    let mut file = Vec::new();
    let store = open_existing(&old).await.unwrap();
    let made = store.back_up(&objects(&old).unwrap(), &mut file).await;
    made.unwrap();
    let target = open_to_fill(&new).await.unwrap();
    let backup = Backup::open(&file[..]).unwrap();
    let restored = target.restore(&objects(&new).unwrap(), backup).await;
    restored.unwrap();

    assert_eq!(
        key_state(&target, &new.data).await.unwrap(),
        KeyState::Missing
    );
    let refused = open(&new).await.err().unwrap();
    assert!(refused.contains("master.key"), "{refused}");
    MasterKey::random()
        .unwrap()
        .write(&new.data.join("master.key"))
        .unwrap();
    assert_eq!(
        key_state(&target, &new.data).await.unwrap(),
        KeyState::Other
    );
    let refused = open(&new).await.err().unwrap();
    assert!(refused.contains("cannot be opened"), "{refused}");
    fs_err::copy(old.data.join("master.key"), new.data.join("master.key")).unwrap();
    assert_eq!(key_state(&target, &new.data).await.unwrap(), KeyState::Fits);
    let server = open(&new).await.unwrap();
    signs_in(&server).await;
    let kept = target.lease(lease).await.unwrap().unwrap();
    assert_eq!(
        kept.state,
        LeaseState::Starting,
        "the same key still reaches it"
    );
    drop(server);

    fs_err::remove_file(new.data.join("master.key")).unwrap();
    let reset = reset_secrets(&new, &admin(), false).await.unwrap();
    assert_eq!(reset.forgotten, ["profile/other/credential"]);
    assert_eq!((reset.ended, reset.key_before), (1, None));
    let server = open(&new).await.unwrap();
    signs_in(&server).await;
    let ended = target.lease(lease).await.unwrap().unwrap();
    assert_eq!(ended.ended_why, Some(EndedWhy::Admin));
    let log = target.audit(&AuditFilter::default(), 50).await.unwrap();
    let entry = log.iter().find(|entry| entry.action == "secrets.reset");
    let entry = entry.unwrap();
    assert_eq!(entry.actor.name, "user id 7");
    assert_eq!(
        entry.fields,
        [
            "master_key",
            "signing_key",
            "profile/embedded/credential",
            "profile/other/credential"
        ]
    );
}

#[tokio::test]
async fn secrets_that_open_are_kept_and_only_reset_when_that_is_certain() {
    let folder = tempfile::tempdir().unwrap();
    let (config, lease) = furnished(folder.path()).await;
    let path = config.data.join("master.key");
    let before = MasterKey::read(&path).unwrap();
    let refused = reset_secrets(&config, &admin(), false).await.unwrap_err();
    assert!(matches!(refused, ResetError::NotNeeded { .. }), "{refused}");
    assert_eq!(MasterKey::read(&path).unwrap().to_text(), before.to_text());
    let store = open_existing(&config).await.unwrap();
    assert!(
        store
            .lease(lease)
            .await
            .unwrap()
            .unwrap()
            .ended_at
            .is_none()
    );

    let reset = reset_secrets(&config, &admin(), true).await.unwrap();
    assert!(reset.forgotten.is_empty());
    let aside = MasterKey::read(&reset.key_before.unwrap()).unwrap();
    assert_eq!(aside.to_text(), before.to_text());
    let key = MasterKey::read(&path).unwrap();
    let kept = store.secret(&key, "profile/other/credential").await;
    assert_eq!(&**kept.unwrap().unwrap(), b"given");
    assert!(store.secret(&before, "signing_key").await.is_err());
}

#[tokio::test]
async fn a_master_key_that_cannot_be_read_is_not_taken_for_lost() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let (config, _) = furnished(folder.path()).await;
    let path = config.data.join("master.key");
    let open = std::fs::Permissions::from_mode(0o644);
    fs_err::set_permissions(&path, open).unwrap();
    let refused = reset_secrets(&config, &admin(), false).await.unwrap_err();
    assert!(refused.to_string().contains("chmod 600"), "{refused}");
    reset_secrets(&config, &admin(), true).await.unwrap();
    open_existing(&config).await.unwrap();
}

#[tokio::test]
async fn sandboxes_that_a_running_server_made_meanwhile_end_at_its_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let (config, _) = furnished(folder.path()).await;
    reset_secrets(&config, &admin(), true).await.unwrap();
    let store = open_existing(&config).await.unwrap();
    let meanwhile = lease(&store).await;
    open(&config).await.unwrap();
    let found = store.lease(meanwhile).await.unwrap().unwrap();
    assert_eq!(found.ended_why, Some(EndedWhy::Admin));
    // What is made from then on obeys the new key.
    let later = lease(&store).await;
    open(&config).await.unwrap();
    let found = store.lease(later).await.unwrap().unwrap();
    assert_eq!(found.ended_why, None);
}
