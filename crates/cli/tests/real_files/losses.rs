//! What goes wrong on the way is named in a line, and nothing of the person's is lost.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::{Command, Stdio};

use crate::support::{Place, Said, said};
use crate::{data, with_sandbox};

/// Runs `glovebox` as somebody who is not root, whoever runs the tests.
fn as_ordinary_user(place: &Place, arguments: &[&str]) -> Said {
    let program = place.path().join("glovebox");
    if !program.exists() {
        fs_err::copy(env!("CARGO_BIN_EXE_glovebox"), &program).unwrap();
        mode(place, ".", 0o755);
    }
    let mut command = if rustix::process::geteuid().is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.arg(&program);
        command
    } else {
        Command::new(&program)
    };
    command
        .args(arguments)
        .current_dir(place.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    said(command.spawn().unwrap())
}

fn mode(place: &Place, name: &str, mode: u32) {
    let permissions = std::fs::Permissions::from_mode(mode);
    fs_err::set_permissions(place.path().join(name), permissions).unwrap();
}

#[test]
fn what_a_user_may_not_read_is_named() {
    let place = Place::new();
    place
        .file("fine.py", "")
        .file("secret.py", "")
        .file("secret.csv", "")
        .file("folder/closed/a.csv", "");
    for name in ["secret.py", "secret.csv", "folder/closed"] {
        mode(&place, name, 0);
    }
    for (arguments, named) in [
        (["secret.py", "fine.py"], "secret.py"),
        (["fine.py", "secret.csv"], "secret.csv"),
        (["fine.py", "folder"], "folder/closed"),
    ] {
        let said = as_ordinary_user(&place, &["run", arguments[0], arguments[1]]);
        assert_eq!(
            said.to_string(),
            format!("status 125\n-- err\nerror: cannot read {named}: Permission denied\n")
        );
    }
    // So that it can be removed.
    mode(&place, "folder/closed", 0o755);
}

#[test]
fn a_results_folder_that_a_user_may_not_write_to_is_named() {
    let place = Place::new();
    place.file("a.py", "").file("locked/old.csv", "old");
    mode(&place, "locked", 0o555);
    for out in ["locked", "locked/below/it"] {
        let said = as_ordinary_user(&place, &["run", "a.py", "--out", out]);
        assert_eq!(
            said.to_string(),
            format!(
                "status 125\n-- err\nerror: cannot save results in {out}: Permission denied\n  \
                 fix: make that folder writable, or name another with --out\n"
            )
        );
    }
    mode(&place, "locked", 0o755);
    assert_eq!(place.listed("locked"), ["old.csv"]);
}

#[test]
fn a_workbook_that_the_disk_was_too_small_for_is_not_taken_for_a_whole_one() {
    let place = with_sandbox();
    let code = "
import pandas as pd, numpy as np
pd.DataFrame({'n': [1]}).to_csv('small.csv')
pd.DataFrame(np.random.default_rng(1).random((30_000, 8))).to_excel('large.xlsx')
";
    let arguments = ["run", "-c", code, "--disk", "2M", "--env", "TMPDIR=/tmp"];
    let said = place.glovebox(arguments);
    assert_eq!(said.status, 1, "{said}");
    assert!(said.err.contains("No space left on device"), "{said}");
    assert!(
        said.err
            .contains("warning: the workspace is full (limit 2 MiB"),
        "{said}"
    );
    assert!(said.err.contains("left out large.xlsx: "), "{said}");
    assert_eq!(place.listed("results"), ["small.csv"]);
}

#[test]
fn a_workspace_can_be_full_of_files() {
    let place = with_sandbox();
    let code = "
import errno, os
open('before.csv', 'w').write('1')
try:
    os.mkdir('many')
    for n in range(10_000_000): open(f'many/{n}.tmp', 'x').close()
except OSError as error:
    print(errno.errorcode[error.errno])
raise SystemExit(3)
";
    let said = place.glovebox(["run", "-c", code, "--disk", "2M"]);
    assert_eq!((said.status, said.out.as_str()), (3, "ENOSPC\n"), "{said}");
    assert_eq!(place.listed("results"), ["before.csv"]);
    assert!(
        said.err.contains("warning: the workspace is full"),
        "{said}"
    );
    assert!(said.err.lines().count() < 25, "{said}");
}

#[test]
fn an_input_that_the_program_changes_is_a_result_and_the_original_stays() {
    let place = with_sandbox();
    for name in [
        "changed.csv",
        "removed.csv",
        "renamed.csv",
        "results/changed.csv",
    ] {
        place.file(name, "old");
    }
    let code = "
import os
open('changed.csv', 'a').write(' and new')
os.remove('removed.csv')
os.rename('renamed.csv', 'other.csv')
";
    let said = place.glovebox([
        "run",
        "-c",
        code,
        "changed.csv",
        "removed.csv",
        "renamed.csv",
    ]);
    assert_eq!(said.status, 0, "{said}");
    for name in [
        "changed.csv",
        "removed.csv",
        "renamed.csv",
        "results/changed.csv",
    ] {
        assert_eq!(place.read(name), "old", "{name}");
    }
    assert_eq!(place.read("results/changed-2.csv"), "old and new");
    assert_eq!(place.read("results/other.csv"), "old");
}

#[test]
fn hostile_names_never_leave_the_results_folder() {
    let place = with_sandbox();
    place
        .file("elsewhere/mine.csv", "mine")
        .file("results/taken", "a file");
    symlink("../elsewhere", place.path().join("results/charts")).unwrap();
    symlink(
        "/tmp/nowhere/at/all",
        place.path().join("results/dangling.csv"),
    )
    .unwrap();
    let code = r"
import os
for name in ['charts/mine.csv', 'taken/a.csv', 'dangling.csv', '..\\..\\up.csv', '%2e%2e%2fup.csv',
             '... /a.csv', 'a\nb.csv', 'a\u202evsc.csv', '~root.csv', '$HOME.csv', 'con.csv', '-.csv']:
    os.makedirs(os.path.dirname(name) or '.', exist_ok=True)
    open(name, 'w').write('theirs')
";
    let said = place.glovebox(["run", "-c", code]);
    assert_eq!(said.status, 0, "{said}");
    assert!(
        said.err
            .chars()
            .all(|c| c == '\n' || !c.is_control() && c != '\u{202e}'),
        "{said}"
    );
    assert_eq!(place.read("elsewhere/mine.csv"), "mine");
    assert_eq!(place.listed("elsewhere"), ["mine.csv"]);
    insta::assert_snapshot!(place.listed("results").join("\n"), @r"
    $HOME.csv
    %2e%2e%2fup.csv
    -.csv
    _con.csv
    a_b.csv
    a_vsc.csv
    charts
    charts-mine.csv
    dangling-2.csv
    dangling.csv
    taken
    taken-a.csv
    ~root.csv
    ");
}

#[test]
fn inputs_are_as_they_were_after_all_kinds_of_ends() {
    let place = with_sandbox();
    let original = fs_err::read(data("weather.xlsx")).unwrap();
    place.file("weather.xlsx", &original);
    for (code, status) in [
        ("import os; os.truncate('weather.xlsx', 0); os.abort()", 134),
        ("open('weather.xlsx', 'wb').write(bytes(50 << 20))", 1),
        (
            "import shutil; shutil.rmtree('/workspace', ignore_errors=True); raise SystemExit(4)",
            4,
        ),
    ] {
        let said = place.glovebox(["run", "-c", code, "weather.xlsx", "--disk", "8M"]);
        assert_eq!(said.status, status, "{said}");
        assert!(fs_err::read(place.path().join("weather.xlsx")).unwrap() == original);
    }
}
