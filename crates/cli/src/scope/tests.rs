use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::PermissionsExt as _;

use super::*;

/// Debian 12 as it is installed.
const TWO: &str = "29 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
const ONE: &str = "30 29 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
const SHELL: &str = "0::/user.slice/user-1000.slice/session-3.scope\n";

fn facts() -> Facts<'static> {
    Facts {
        user_id: 1000,
        pid: 77,
        mountinfo: TWO,
        own_group: SHELL,
        asked: false,
        systemd_run: Some("/usr/bin/systemd-run".into()),
        manager: Some("/run/user/1000".into()),
    }
}

#[test]
fn an_ordinary_user_on_version_two_gets_a_scope_of_its_own() {
    let Decision::Enter {
        program,
        arguments,
        runtime_dir,
    } = decide(&facts())
    else {
        panic!("no scope")
    };
    assert_eq!(program, Path::new("/usr/bin/systemd-run"));
    assert_eq!(
        arguments.join(OsStr::new(" ")),
        "--user --scope --quiet --unit=glovebox-77.scope -p Delegate=yes --"
    );
    assert_eq!(runtime_dir, Path::new("/run/user/1000"));
}

#[test]
fn whoever_needs_no_scope_stays_where_it_is() {
    let hybrid = format!("{TWO}{ONE}");
    let in_scope = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/glovebox-77.scope\n";
    let moved = "0::/user.slice/user@1000.service/app.slice/glovebox-77.scope/supervisor\n";
    let once_asked = Facts {
        own_group: in_scope,
        asked: true,
        ..facts()
    };
    for facts in [
        Facts {
            user_id: 0,
            ..facts()
        },
        Facts {
            mountinfo: &hybrid,
            ..facts()
        },
        Facts {
            mountinfo: "",
            ..facts()
        },
        Facts {
            own_group: in_scope,
            ..facts()
        },
        Facts {
            own_group: moved,
            ..facts()
        },
        once_asked,
    ] {
        assert_eq!(decide(&facts), Decision::Stay, "{facts:?}");
    }
}

#[test]
fn a_scope_of_somebody_else_is_none_of_ours() {
    for name in [
        "glovebox-.scope",
        "glovebox-x.scope",
        "my-glovebox-1.scope",
        "glovebox-1.slice",
    ] {
        let own_group = format!("0::/user.slice/{name}\n");
        let facts = Facts {
            own_group: &own_group,
            ..facts()
        };
        assert!(matches!(decide(&facts), Decision::Enter { .. }), "{name}");
    }
}

#[test]
fn it_is_asked_for_once_and_what_is_missing_is_named() {
    let lacking = [
        (
            Facts {
                asked: true,
                ..facts()
            },
            Lack::NotEntered,
        ),
        (
            Facts {
                systemd_run: None,
                ..facts()
            },
            Lack::Program,
        ),
        (
            Facts {
                manager: None,
                ..facts()
            },
            Lack::Manager,
        ),
    ];
    for (facts, lack) in lacking {
        assert_eq!(decide(&facts), Decision::Lacking(lack));
    }
    let refusal = Lack::Manager.refusal(&[Weakness::MemoryLimit]).unwrap();
    insta::assert_snapshot!(refusal.for_person(), @"
    error: getting a control group, without which nothing limits a sandbox: no systemd runs for this user
      fix: log in as this user, on a terminal or by ssh, or let its systemd always run with `sudo loginctl enable-linger USER`; or go without limits: --accept-weaker=memory-limit --accept-weaker=cpu-limit --accept-weaker=process-limit
    ");
    assert_eq!(refusal.exit_status(), 125);
    assert!(Lack::Manager.refusal(&Weakness::ALL).is_none());
}

#[test]
fn the_command_starts_again_with_all_that_it_was_given() {
    let folder = tempfile::tempdir().unwrap();
    let stand_in = folder.path().join("systemd-run");
    // As the real one: it starts the command in its own place.
    let script = "#!/bin/sh\n[ \"$7\" = -- ] || exit 99\nshift 7\necho $$ $GLOVEBOX_SCOPE $XDG_RUNTIME_DIR\nexec \"$@\"\n";
    fs_err::write(&stand_in, script).unwrap();
    fs_err::set_permissions(&stand_in, std::fs::Permissions::from_mode(0o755)).unwrap();
    let found = find_program("systemd-run", folder.path().as_os_str()).unwrap();
    assert_eq!(found, stand_in);
    let facts = Facts {
        systemd_run: Some(found),
        ..facts()
    };
    let Decision::Enter {
        program,
        arguments,
        runtime_dir,
    } = decide(&facts)
    else {
        panic!("no scope")
    };
    let own = Path::new("/usr/bin/printf");
    let own_arguments = [
        "%s|".into(),
        "--".into(),
        "a b".into(),
        OsString::from_vec(vec![0xff]),
    ];
    let mut command = again((&program, &arguments), &runtime_dir, own, own_arguments, 77);
    let child = command
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let mut expected = format!("{pid} 77 /run/user/1000\n--|a b|").into_bytes();
    expected.extend(b"\xff|");
    assert_eq!(output.stdout, expected);
}
