//! Lays out what is neither Python nor tool: the folders of a tree, its mount points and aliases,
//! an `/etc` that is invented and says nothing of the host, time zones and the locale.

use std::path::Path;

use fs_err as fs;

use super::copy;
use super::error::{SetupError, file};
use super::libraries::in_tree;

/// Folders that a box mounts something on; they stay empty. There is no `/sys`.
pub(crate) const MOUNT_POINTS: [&str; 4] = ["proc", "dev", "workspace", "tmp"];

/// Links of a tree's root, all relative, so that they lead nowhere else when seen from outside.
const LINKS: [(&str, &str); 9] = [
    ("bin", "usr/bin"),
    ("sbin", "usr/sbin"),
    ("lib", "usr/lib"),
    ("lib64", "usr/lib64"),
    // Where other products keep the files of a conversation; models write these paths.
    ("mnt/data", "../workspace"),
    ("home/user", "../workspace"),
    ("var/tmp", "../tmp"),
    ("etc/localtime", "../usr/share/zoneinfo/UTC"),
    ("etc/mtab", "../proc/self/mounts"),
];

const ETC: [(&str, &str); 8] = [
    (
        "passwd",
        "agent:x:999:999:Glovebox agent:/:/usr/sbin/nologin\n\
         sandbox:x:1000:1000:Sandbox:/tmp:/bin/bash\n\
         nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
    ),
    ("group", "agent:x:999:\nsandbox:x:1000:\nnogroup:x:65534:\n"),
    ("hosts", "127.0.0.1 localhost\n::1 localhost\n"),
    ("hostname", "glovebox\n"),
    (
        "nsswitch.conf",
        "passwd: files\ngroup: files\nshadow: files\nhosts: files\n",
    ),
    ("timezone", "Etc/UTC\n"),
    ("host.conf", "multi on\n"),
    (
        "os-release",
        "NAME=\"Glovebox\"\nID=glovebox\nPRETTY_NAME=\"Glovebox sandbox\"\n",
    ),
];

/// Makes the folders and links that everything else goes into; the first step of a tree.
pub(crate) fn lay_out(tree: &Path) -> Result<(), SetupError> {
    let failed = file("laying out the tree");
    let folders = [
        "usr/bin",
        "usr/sbin",
        "usr/lib",
        "usr/lib64",
        "usr/share",
        "usr/local/lib",
        "opt/glovebox/bin",
        "opt/glovebox/lib",
        "opt/glovebox/share",
        "var/cache",
        "etc",
        "home",
        "mnt",
    ];
    for name in folders.iter().chain(&MOUNT_POINTS) {
        fs::create_dir_all(tree.join(name)).map_err(&failed)?;
    }
    for (at, target) in LINKS {
        copy::link(target, &tree.join(at)).map_err(&failed)?;
    }
    for (name, content) in ETC {
        copy::text(&tree.join("etc").join(name), content).map_err(&failed)?;
    }
    Ok(())
}

/// Copies time zones and the locale that sandboxes run in.
pub(crate) fn install(tree: &Path) -> Result<(), SetupError> {
    let zones = Path::new("/usr/share/zoneinfo");
    if !zones.join("UTC").is_file() {
        return Err(SetupError::NoZoneinfo);
    }
    // Other forms of the same zones, and the host's own zone.
    let left_out = [
        "right",
        "posix",
        "localtime",
        "posixrules",
        "leapseconds",
        "leap-seconds.list",
    ];
    copy::tree(zones, &tree.join("usr/share/zoneinfo"), &|path| {
        !left_out.iter().any(|name| path == Path::new(name))
    })
    .map_err(file("copying time zone information"))?;
    // Built into glibc since 2.35; Debian has it as a folder.
    for name in ["C.utf8", "C.UTF-8"] {
        let locale = Path::new("/usr/lib/locale").join(name);
        if locale.is_dir() {
            copy::tree(&locale, &in_tree(tree, &locale), &|_| true)
                .map_err(file("copying the locale"))?;
        }
    }
    Ok(())
}
