//! What a set-up does with an office suite that changes, goes, or is being copied when it is killed.
//! The suite is one of a test's own: folders and links as distributions have them, programs that are
//! none of LibreOffice's.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use fs_err as fs;
use glovebox_runtime_embedded::tree::{Office, Step};

use crate::small::{ensure, entries, kill_at, set_up};

/// Where the command of a suite of a test's own is.
pub(crate) fn commands(data: &Path) -> PathBuf {
    data.join("host/bin")
}

fn install(data: &Path) -> PathBuf {
    let host = data.join("host");
    let program = host.join("office/program");
    fs::create_dir_all(&program).unwrap();
    for name in ["soffice.bin", "libsdlo.so", "libsclo.so", "libswlo.so"] {
        fs::copy("/bin/true", program.join(name)).unwrap();
    }
    for (name, mode) in [("soffice", 0o755), ("versionrc", 0o600), ("helper", 0o4755)] {
        fs::write(program.join(name), name).unwrap();
        fs::set_permissions(program.join(name), PermissionsExt::from_mode(mode)).unwrap();
    }
    // As Debian has them: the registry elsewhere, and linked to by its full path.
    fs::create_dir_all(host.join("registry")).unwrap();
    fs::write(host.join("registry/main.xcd"), "x").unwrap();
    fs::create_dir_all(host.join("office/share/gallery")).unwrap();
    fs::write(host.join("office/share/gallery/picture.png"), "x").unwrap();
    symlink(host.join("registry"), host.join("office/share/registry")).unwrap();
    fs::create_dir_all(commands(data)).unwrap();
    symlink("../office/program/soffice", commands(data).join("soffice")).unwrap();
    fs::canonicalize(host.join("office")).unwrap()
}

#[test]
fn an_office_tree_follows_the_suite_of_the_machine_and_outlives_it() {
    let data = tempfile::tempdir().unwrap();
    let home = install(data.path());
    // One that was killed leaves nothing that counts.
    kill_at(Step::CopyOffice, data.path());
    let trees = entries(&data.path().join("trees"));
    let half = |name: &&String| name.starts_with("office");
    assert_eq!(trees.iter().find(half), None, "{trees:?}");

    let setup = set_up(data.path(), "tabulate");
    let (first, steps) = ensure(&setup);
    let first = first.unwrap();
    assert!(steps.contains(&Step::CopyOffice) && !steps.contains(&Step::Packages));
    assert_eq!(first.office, Some(Office::Present));
    assert_eq!(first.layers.len(), 3, "{:?}", first.layers);
    let tree = data.path().join(&first.layers[1]);
    let inside = tree.join(home.strip_prefix("/").unwrap());
    assert_eq!(
        fs::read_to_string(inside.join("share/registry/main.xcd")).unwrap(),
        "x"
    );
    assert!(!inside.join("share/gallery").exists());
    let mode = |name: &str| {
        let path = inside.join("program").join(name);
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    };
    assert_eq!(
        (mode("helper"), mode("versionrc"), mode("soffice")),
        (0o755, 0o644, 0o755)
    );
    assert!(tree.join("usr/bin/soffice").is_file());
    assert_eq!(ensure(&setup).1, [], "nothing was to be done");
    first.verify_full(data.path()).unwrap();

    // Another version of the suite.
    fs::write(home.join("program/libsclo.so"), "newer").unwrap();
    let (second, steps) = ensure(&setup);
    let second = second.unwrap();
    assert!(steps.contains(&Step::CopyOffice));
    assert_ne!(first.layers[1], second.layers[1]);
    assert_eq!(first.layers[2], second.layers[2]);

    // It goes from the machine; sandboxes keep what they have.
    fs::remove_dir_all(data.path().join("host/office")).unwrap();
    assert_eq!(ensure(&setup).0.unwrap(), second);

    // What was changed is named.
    let tree = data.path().join(&second.layers[1]);
    fs::write(tree.join("usr/bin/added"), "").unwrap();
    let error = ensure(&setup).0.unwrap_err();
    assert!(
        error.to_string().ends_with("usr/bin/added has been added"),
        "{error}"
    );
}
