//! `glovebox backup`, `glovebox restore` and `glovebox admin reset-secrets`.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::support::{Place, Said};

const PASSWORD: &str = "correct horse battery";

/// A command on the data of a server in a folder of the place.
fn on(place: &Place, server: &str, words: &[&str]) -> Said {
    place.glovebox([words, &["--server-data", server]].concat())
}

fn fine(place: &Place, server: &str, words: &[&str]) -> Said {
    let said = on(place, server, words);
    assert_eq!(said.status, 0, "{said}");
    said
}

/// A server's data in the folder `one`: an administrator, and a key.
fn furnished() -> (Place, String) {
    let place = Place::new();
    let words = "admin create-admin --email ada@example.com --password-stdin --server-data one";
    let made = place.glovebox_reads(words.split(' '), PASSWORD.as_bytes());
    assert_eq!(made.status, 0, "{made}");
    let key = fine(&place, "one", &NEW_KEY);
    (place, key.out.trim().to_owned())
}

const NEW_KEY: [&str; 7] = [
    "admin",
    "api-key",
    "create",
    "--workspace",
    "Main",
    "--name",
    "nightly",
];

#[test]
fn a_server_moves_in_a_file_and_its_master_key_apart_from_it() {
    let (place, key) = furnished();
    let said = fine(&place, "one", &["backup", "--out", "backup"]);
    assert!(said.out.contains(" rows and 0 files, "), "{said}");
    assert!(
        said.out
            .contains("the master key is not in it: keep a copy of one/master.key"),
        "{said}"
    );
    let mode = fs_err::metadata(place.path().join("backup")).unwrap();
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    let text = place.read("backup");
    let master = place.read("one/master.key");
    for secret in [PASSWORD, &key, master.trim()] {
        assert!(!text.contains(secret), "the backup tells a secret");
    }
    assert!(text.contains("ada@example.com") && text.contains("$argon2id$"));
    assert_eq!(
        place
            .listed("")
            .iter()
            .filter(|name| !name.contains('/'))
            .count(),
        1
    );

    fs_err::create_dir(place.path().join("two")).unwrap();
    fs_err::copy(
        place.path().join("one/master.key"),
        place.path().join("two/master.key"),
    )
    .unwrap();
    let said = fine(&place, "two", &["restore", "--from", "backup", "--json"]);
    let told: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(
        (&told["master_key_fits"], &told["objects"]),
        (&true.into(), &0.into())
    );
    let key = fine(&place, "two", &[&NEW_KEY[..], &["--json"]].concat());
    assert!(key.out.contains("gbk_"), "{key}");
    // What was restored is backed up again, with what is new.
    let said = fine(&place, "two", &["backup", "--out", "again", "--json"]);
    let again: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(again["has_master_key"], false);
    assert!(
        again["rows"].as_u64() > told["rows"].as_u64(),
        "{again} {told}"
    );
}

#[test]
fn without_the_master_key_secrets_are_made_anew() {
    let (place, _) = furnished();
    fine(&place, "one", &["backup", "--out", "backup"]);
    let said = fine(&place, "two", &["restore", "--from", "backup"]);
    assert!(
        said.out
            .contains("put the master key of the server that was backed up at two/master.key"),
        "{said}"
    );
    insta::assert_snapshot!(on(&place, "two", &NEW_KEY), @r"
    status 125
    -- err
    error: running the server: the master key in two/master.key: it is not there
      fix: put the master key that belongs to this database there; where it is lost, run `glovebox admin reset-secrets`
    ");
    let said = fine(&place, "two", &["admin", "reset-secrets"]);
    insta::assert_snapshot!(said, @r"
    status 0
    -- out
    a new master key is in two/master.key; keep a copy of it in another place
    nothing has to be entered again
    0 sandboxes have ended, for their agents obey the key before
    start the server anew now, if it runs: it knows only what was before
    ");
    fine(&place, "two", &NEW_KEY);
    insta::assert_snapshot!(on(&place, "two", &["admin", "reset-secrets"]), @r"
    status 125
    -- err
    error: making secrets anew: the master key at two/master.key opens every secret, so that nothing is lost
      fix: say --yes where it has to be another one all the same
    ");
    let said = fine(
        &place,
        "two",
        &["admin", "reset-secrets", "--yes", "--json"],
    );
    let told: Value = serde_json::from_str(&said.out).unwrap();
    let before = told["master_key_before"].as_str().unwrap();
    assert!(before.starts_with("two/master.key.before-"), "{said}");
    assert_ne!(place.read(before), place.read("two/master.key"));
    fine(&place, "two", &NEW_KEY);
}

#[test]
fn nothing_is_written_over() {
    let (place, _) = furnished();
    place.file("backup", "mine");
    insta::assert_snapshot!(on(&place, "one", &["backup", "--out", "backup"]), @r"
    status 125
    -- err
    error: backup is there already
      fix: name another file: a backup is never written over
    ");
    assert_eq!(place.read("backup"), "mine");
    insta::assert_snapshot!(on(&place, "one", &["backup", "--out", "no/such"]), @r"
    status 125
    -- err
    error: cannot write no/such: No such file or directory
    ");
    insta::assert_snapshot!(on(&place, "none", &["backup", "--out", "b"]), @r"
    status 125
    -- err
    error: making a backup: there is no database at none/glovebox.db
      fix: name a server's data with --data, --server-data or --database
    ");
    assert!(!place.path().join("none").exists());
    insta::assert_snapshot!(on(&place, "two", &["restore", "--from", "backup"]), @r"
    status 125
    -- err
    error: nothing was restored from backup: it is no backup that `glovebox backup` made
      fix: name a file that `glovebox backup` has written
    ");
    insta::assert_snapshot!(on(&place, "two", &["restore", "--from", "none"]), @r"
    status 125
    -- err
    error: cannot read none: No such file or directory
    ");
    assert!(!place.path().join("two").exists());

    fine(&place, "one", &["backup", "--out", "sound"]);
    let sound = fs_err::read(place.path().join("sound")).unwrap();
    insta::assert_snapshot!(on(&place, "one", &["restore", "--from", "sound"]), @r"
    status 125
    -- err
    error: nothing was restored from sound: the database is not empty: there are rows in the table settings
      fix: name an empty one with --database, or another folder with --server-data; nothing is ever restored over data
    ");
    place.file("cut", &sound[..1000]);
    insta::assert_snapshot!(on(&place, "two", &["restore", "--from", "cut"]), @r"
    status 125
    -- err
    error: nothing was restored from cut: the backup is cut off at byte 1000
      fix: copy it once more from where it was kept, or take another one
    ");
    let mut altered = sound;
    altered[1000] ^= 1;
    place.file("altered", altered);
    let said = on(&place, "two", &["restore", "--from", "altered"]);
    assert_eq!(said.status, 125, "{said}");
    assert!(
        said.err.contains("nothing was restored from altered: "),
        "{said}"
    );
}
