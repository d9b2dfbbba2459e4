//! The same tests by an ordinary user. Root runs this very program again as users that exist for
//! it alone; whoever is no root is the ordinary user already and has run them.

use std::path::PathBuf;
use std::process::Stdio;

use glovebox_testkit::program;

use crate::alone::Machine;
use crate::support::options_with;
use crate::user::{self, Account};

/// What is started from the folder of this program.
const PROGRAMS: [&str; 4] = [
    "glovebox-launcher",
    "glovebox-agent",
    "glovebox-exec",
    "libglovebox_template.so",
];

#[tokio::test]
async fn the_same_by_a_user_with_subordinate_ids_leaves_the_host_as_it_was() {
    if user::is_root() {
        run_all_as(&user::with_range()).await;
    }
}

#[tokio::test]
async fn the_same_by_a_user_without_subordinate_ids_leaves_the_host_as_it_was() {
    if let Some(user) = user::without_range()
        && user::is_root()
    {
        run_all_as(&user).await;
    }
}

async fn run_all_as(user: &Account) {
    let place = tempfile::tempdir().unwrap();
    let me = copies_for_all(place.path());
    // The user cannot set up what root's boxes stand on.
    let data = options_with(place.path()).data;
    let layers = data.join("layers");
    let before = Machine::look(&[&layers]);
    let mut command = user.command(me.to_str().unwrap());
    let ran = command
        .args(["--test-threads=1", "--skip", "the_same_by"])
        .env("GLOVEBOX_TEST_DATA", &data)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(
        ran.status.success() && said.contains("test result: ok."),
        "{said}{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    before.assert_unchanged(&[&layers]).await;
}

/// This program and those that it starts, where every user can run them: the folder that they were
/// built in may be closed to all but its owner. They lie beside each other as cargo leaves them.
fn copies_for_all(place: &std::path::Path) -> PathBuf {
    let open = || std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs_err::set_permissions(place, open()).unwrap();
    fs_err::create_dir(place.join("deps")).unwrap();
    for name in PROGRAMS {
        fs_err::copy(program(name).unwrap(), place.join(name)).unwrap();
    }
    let me = place.join("deps").join("endurance");
    fs_err::copy(std::env::current_exe().unwrap(), &me).unwrap();
    me
}
