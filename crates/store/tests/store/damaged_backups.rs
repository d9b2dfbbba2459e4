//! Backups that were cut, altered or made up, and databases that are not empty: nothing is
//! restored, and nothing is lost.

use glovebox_store::{BackedUpFile, Backup, BackupError};

use crate::furnished::{Files, back_up, furnish, restore, rows, sha256};
use crate::support::{Database, on_both, person};

on_both! {
    a_database_with_rows_is_left_as_it_is
    a_file_that_was_cut_or_altered_restores_nothing
    a_file_that_was_made_up_restores_nothing
    an_object_that_is_there_already_is_never_replaced_or_taken_away
}

/// A furnished backup, as bytes.
async fn sound() -> Vec<u8> {
    let (source, files) = (Database::sqlite().await, Files::new());
    furnish(&source.store, &files).await;
    back_up(&source.store, &files).await.0
}

/// The same with other words in it, and a last line that is right for them.
fn altered(sound: &[u8], from: &str, to: &str) -> Vec<u8> {
    let text = String::from_utf8(sound.to_vec()).unwrap();
    let (text, end) = text.trim_end().rsplit_once('\n').unwrap();
    let (text, old) = (format!("{text}\n"), sha256(format!("{text}\n").as_bytes()));
    assert!(text.contains(from) || end.contains(from), "no {from}");
    let text = text.replacen(from, to, 1);
    let end = end
        .replacen(from, to, 1)
        .replace(&old, &sha256(text.as_bytes()));
    format!("{text}{end}\n").into_bytes()
}

async fn a_database_with_rows_is_left_as_it_is(database: Database) {
    person(&database.store, "eve").await;
    let before = rows(&database).await;
    let files = Files::new();
    let refused = restore(&database.store, &files, &sound().await).await;
    let refused = refused.unwrap_err();
    assert!(
        matches!(refused, BackupError::NotEmpty { table: "users" }),
        "{refused}"
    );
    assert!(refused.fix().unwrap().contains("--database"));
    assert_eq!(rows(&database).await, before);
    assert_eq!(files.count(), 0);
}

async fn a_file_that_was_cut_or_altered_restores_nothing(database: Database) {
    let (sound, files) = (sound().await, Files::new());
    let bare = match database.address.starts_with("sqlite") {
        true => Database::bare_sqlite().await,
        false => Database::bare_postgres().await,
    };
    let first = 1 + sound.iter().position(|byte| *byte == b'\n').unwrap();
    // Objects are most of it, rows are behind them.
    let all = (0..sound.len()).step_by(9_973);
    let rows = (sound.len() - 8_000..sound.len()).step_by(211);
    for at in all.chain(rows).chain([first, sound.len() - 1]) {
        let refused = restore(&bare.store, &files, &sound[..at]).await;
        let refused = refused.expect_err("it was cut");
        let is_told = match at {
            at if at < first => matches!(refused, BackupError::NoBackup),
            _ => matches!(refused, BackupError::Cut { at: told } if told == at as u64),
        };
        assert!(is_told, "cut at {at}: {refused}");
        let mut bytes = sound.clone();
        bytes[at] ^= 1;
        let refused = restore(&bare.store, &files, &bytes).await;
        refused.expect_err("it was altered");
    }
    let longer = [&sound[..], b"\n"].concat();
    let refused = restore(&bare.store, &files, &longer).await.unwrap_err();
    assert!(matches!(refused, BackupError::Damaged { .. }), "{refused}");
    assert_eq!(files.count(), 0);
    assert_eq!(bare.store.version().await.unwrap(), 0);
    // As it was made it is good.
    restore(&bare.store, &files, &sound).await.unwrap();
}

async fn a_file_that_was_made_up_restores_nothing(database: Database) {
    let (sound, files) = (sound().await, Files::new());
    let text = String::from_utf8_lossy(&sound);
    let object = text.split("{\"object\":{\"id\":\"").nth(1).unwrap();
    let object = &object[..36];
    let other = "00000000-0000-7000-8000-000000000000";
    let of_object = format!("{{\"object\":{{\"id\":\"{object}\"");
    for (from, to, told) in [
        (object, "../../../../etc/passwd", "a line has another form"),
        (
            of_object.as_str(),
            &of_object.replace(object, other),
            "not those of its rows",
        ),
        (
            "\"table\":{\"name\":\"users\"",
            "\"table\":{\"name\":\"schema_versions\"",
            "its tables",
        ),
        (
            "[\"name\",\"sealed\"",
            "[\"name) VALUES (1); --\",\"sealed\"",
            "its tables",
        ),
        (
            "\"sealed\",\"changed_at\"]",
            "\"changed_at\",\"sealed\"]",
            "its tables",
        ),
        (
            "{\"end\":{\"objects\":5",
            "{\"end\":{\"objects\":4",
            "more or less",
        ),
        (
            "\"embedded\",\"This machine\",",
            "\"embedded\",7,",
            "does not fit",
        ),
        (
            "\"embedded\",\"This machine\",",
            "\"embedded\",",
            "does not fit",
        ),
        (
            "\"embedded\",\"This machine\",",
            "\"embedded\",null,",
            "the table profiles",
        ),
        (",\"a.csv\",1,", ",\"a.csv\",1.5,", "does not fit"),
        (",\"a.csv\",1,", ",\"a.csv\",2,", "the table artifacts"),
        ("\"text/csv\",", "{\"not\": \"text\"},", "does not fit"),
    ] {
        let refused = restore(&database.store, &files, &altered(&sound, from, to)).await;
        let refused = refused.expect_err("it was made up").to_string();
        assert!(refused.contains(told), "{to}: {refused}");
        assert_eq!(files.count(), 0, "{to}");
    }
    assert!(rows(&database).await["settings"].is_empty());
    restore(&database.store, &files, &sound).await.unwrap();
}

async fn an_object_that_is_there_already_is_never_replaced_or_taken_away(database: Database) {
    let (source, files) = (Database::sqlite().await, Files::new());
    let furnished = furnish(&source.store, &files).await;
    let (sound, _) = back_up(&source.store, &files).await;
    let cut = restore(&database.store, &files, &sound[..sound.len() - 1]).await;
    cut.unwrap_err();
    assert_eq!(files.count(), 5, "a failed restore took objects away");
    let (id, _) = furnished.artifacts[2];
    files.write(id, b"something else").await;
    let refused = restore(&database.store, &files, &sound).await.unwrap_err();
    assert!(
        matches!(refused, BackupError::ObjectTaken { id: told } if told == BackedUpFile::Artifact(id)),
        "{refused}"
    );
    assert_eq!(files.read(id).await, b"something else");
    assert_eq!(files.count(), 5);
}

#[test]
fn what_is_no_backup_is_told_at_its_first_line() {
    let open = |bytes: &[u8]| Backup::open(bytes).err().expect("it is no backup");
    let long = vec![b'x'; 1 << 20];
    for other in [
        b"".as_slice(),
        b"\n",
        b"PK\x03\x04",
        b"{}\n",
        b"[]\n",
        &long,
    ] {
        assert!(matches!(open(other), BackupError::NoBackup));
    }
    let line = |format: u32, tables: i64| {
        format!(
            "{{\"glovebox_backup\":{format},\"tables\":{tables},\
             \"made_at\":\"2026-01-02T03:04:05Z\"}}\n"
        )
    };
    let newer = open(line(2, 1).as_bytes());
    assert!(matches!(newer, BackupError::Format { found: 2, known: 1 }));
    let newer = open(line(1, 99).as_bytes());
    assert!(matches!(newer, BackupError::Newer { found: 99, .. }));
    assert!(newer.fix().unwrap().contains("newer"));
    for tables in [0, -1] {
        let odd = open(line(1, tables).as_bytes());
        assert!(matches!(odd, BackupError::Damaged { .. }));
    }
    assert!(Backup::open(line(1, 1).as_bytes()).is_ok());
}
