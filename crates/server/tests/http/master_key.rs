//! The master key where several servers begin at once, and where a reset was broken off.

use std::path::Path;

use futures_util::future::join_all;
use glovebox_server::program::{ProgramError, Server, open_existing};
use glovebox_server::reset::reset_secrets;
use glovebox_server::secrets::{KeyState, key_state, master_key, master_key_path, next_key_path};
use glovebox_store::{Actor, MasterKey, Store};

use crate::stage::config;

const SERVERS: usize = 8;

/// A database with tables and nothing in them.
async fn database(folder: &Path) -> String {
    let address = crate::database::address(folder);
    let store = Store::open(&address).await.unwrap();
    store.migrate().await.unwrap();
    store.close().await;
    address
}

#[tokio::test]
async fn servers_of_one_folder_that_begin_at_once_have_one_key() {
    let folder = tempfile::tempdir().unwrap();
    let address = database(folder.path()).await;
    let starting = (0..SERVERS).map(async |_| {
        let store = Store::open(&address).await.unwrap();
        master_key(&store, folder.path()).await.unwrap().to_text()
    });
    let keys = join_all(starting).await;
    let written = MasterKey::read(&master_key_path(folder.path())).unwrap();
    for key in keys {
        assert_eq!(key, written.to_text());
    }
    let left: Vec<_> = fs_err::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("master.key"))
        .collect();
    assert_eq!(left, ["master.key"]);
}

#[tokio::test]
async fn of_servers_of_many_folders_that_begin_at_once_one_has_the_key() {
    let folders: Vec<_> = (0..SERVERS).map(|_| tempfile::tempdir().unwrap()).collect();
    let address = database(folders[0].path()).await;
    let starting = folders.iter().map(async |folder| {
        let store = Store::open(&address).await.unwrap();
        master_key(&store, folder.path()).await
    });
    let begun = join_all(starting).await;
    assert_eq!(begun.iter().filter(|one| one.is_ok()).count(), 1);
    let winner = begun.iter().position(Result::is_ok).unwrap();
    let store = Store::open(&address).await.unwrap();
    for (at, (one, folder)) in begun.iter().zip(&folders).enumerate() {
        let path = master_key_path(folder.path());
        assert_eq!(path.exists(), at == winner);
        if let Err(error) = one {
            assert!(error.to_string().contains("it is not there"), "{error}");
            // With a copy of the key it goes on.
            fs_err::copy(master_key_path(folders[winner].path()), &path).unwrap();
            master_key(&store, folder.path()).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_reset_that_was_broken_off_after_the_database_took_the_key_is_ended_by_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    drop(Server::open(config.clone()).await.unwrap());
    let (path, next) = (master_key_path(&config.data), next_key_path(&config.data));
    let (before, new) = (
        MasterKey::read(&path).unwrap(),
        MasterKey::random().unwrap(),
    );
    let store = open_existing(&config).await.unwrap();
    let mut changes = store.begin().await.unwrap();
    changes
        .change_master_key(Some(&before), &new)
        .await
        .unwrap();
    new.write(&next).unwrap();
    changes.commit().await.unwrap();

    assert_eq!(
        key_state(&store, &config.data).await.unwrap(),
        KeyState::Fits
    );
    drop(Server::open(config.clone()).await.unwrap());
    assert_eq!(MasterKey::read(&path).unwrap().to_text(), new.to_text());
    assert!(!next.exists());
    // The one before stays, for backups.
    let kept = fs_err::read_dir(&config.data).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.starts_with("master.key.before-")
            && MasterKey::read(&path).unwrap().to_text() == before.to_text()
    });
    assert!(kept);
}

#[tokio::test]
async fn a_reset_that_was_broken_off_before_leaves_everything_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    drop(Server::open(config.clone()).await.unwrap());
    let (path, next) = (master_key_path(&config.data), next_key_path(&config.data));
    let before = MasterKey::read(&path).unwrap();
    MasterKey::random().unwrap().write(&next).unwrap();
    drop(Server::open(config.clone()).await.unwrap());
    assert_eq!(MasterKey::read(&path).unwrap().to_text(), before.to_text());
    assert!(!next.exists());

    // Where the present one is lost too, what is left over is put aside and in nobody's way.
    MasterKey::random().unwrap().write(&next).unwrap();
    fs_err::remove_file(&path).unwrap();
    let actor = Actor::command_line("user id 7");
    let reset = reset_secrets(&config, &actor, false).await.unwrap();
    assert_eq!((reset.key, reset.key_before), (path, None));
    assert!(!next.exists());
    drop(Server::open(config.clone()).await.unwrap());
}

#[tokio::test]
async fn a_second_server_with_the_same_file_of_sqlite_says_that_another_runs() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    config.database = format!("sqlite://{}", folder.path().join("own.db").display());
    let first = Server::open(config.clone()).await.unwrap();
    let refused = Server::open(config.clone()).await.err().unwrap();
    assert!(matches!(refused, ProgramError::Running { .. }), "{refused}");
    assert!(refused.to_string().contains("own.db"), "{refused}");
    drop(first);
    Server::open(config).await.unwrap();
}
