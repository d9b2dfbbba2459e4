//! Group F.

use serde_json::Value;

use crate::escape::expect::Control::{Beside, Itself, Test};
use crate::escape::expect::{Expectation, Facts, REFUSED, flag, judged, list, seen};

/// What a file system says that cannot be written, or a folder that is not ours.
const READ_ONLY: &[&str] = &["EROFS", "EACCES", "EPERM"];
const GONE: &[&str] = &["ENOENT", "EACCES", "EPERM"];
const DEVICES: &[&str] = &[
    "/dev/full",
    "/dev/null",
    "/dev/random",
    "/dev/urandom",
    "/dev/zero",
];

pub(super) const EXPECTED: &[Expectation] = &[
    seen(
        "F1/create in *",
        READ_ONLY,
        Beside("F1/create in /workspace"),
    ),
    // A folder of processes answers that nothing can have a name in it.
    seen(
        "F1/create in /proc*",
        &["EROFS", "EACCES", "ENOENT"],
        Beside("F1/create in /tmp"),
    ),
    seen("F1/create in /workspace", &["ok"], Itself),
    seen("F1/create in /tmp", &["ok"], Itself),
    seen("F1/create in /dev/shm", &["ok"], Itself),
    seen(
        "F1/open for writing *",
        READ_ONLY,
        Beside("F1/open for writing one's own file"),
    ),
    seen("F1/open for writing one's own file", &["ok"], Itself),
    seen(
        "F1/truncate *",
        READ_ONLY,
        Beside("F1/truncate one's own file"),
    ),
    seen("F1/truncate one's own file", &["ok"], Itself),
    seen("F1/chmod *", READ_ONLY, Beside("F1/chmod one's own file")),
    seen("F1/chmod one's own file", &["ok"], Itself),
    // Even where it changes nothing an id that is not mapped cannot be given.
    judged("F1/chown *", not_ok, Beside("F1/chown one's own file")),
    seen("F1/chown one's own file", &["ok"], Itself),
    seen(
        "F1/set times of *",
        READ_ONLY,
        Beside("F1/set times of one's own file"),
    ),
    seen("F1/set times of one's own file", &["ok"], Itself),
    seen(
        "F1/remove an attribute of *",
        READ_ONLY,
        Beside("F1/remove an attribute of one's own file"),
    ),
    seen(
        "F1/remove an attribute of one's own file",
        &["ENODATA", "ENOTSUP", "EOPNOTSUPP"],
        Itself,
    ),
    seen("F1/rename *", READ_ONLY, Beside("F1/rename one's own file")),
    seen("F1/rename one's own file", &["ok"], Itself),
    list(
        "F1/other mounts that take a new file",
        &[],
        Beside("F1/create in /workspace"),
    ),
    list(
        "F2/mounts without ro",
        &["/dev/shm", "/tmp", "/workspace"],
        Itself,
    ),
    list("F2/mounts without nosuid", &[], Itself),
    list("F2/mounts without nodev", DEVICES, Itself),
    list("F2/device nodes", DEVICES, Itself),
    seen("F8/*", &["root"], Itself),
    seen("F8//proc/1/*", GONE, Beside("F8//proc/self/root")),
    seen("F8//proc/self/root", &["root"], Itself),
    seen("F8/open by handle", REFUSED, Test("K11/open_by_handle_at")),
    list("F9/host paths", &[], Beside("F9/a path that is there")),
    list("F9/variables", &[], Itself),
    flag("F9/a path that is there", true, Itself),
    seen("F10/from /workspace", &["ok"], Itself),
    seen("F10/from /tmp", &["ok"], Itself),
    seen("F10/from /dev/shm", &["EACCES"], Beside("F10/from /tmp")),
    flag("F10/preload reaches one's own child", true, Itself),
    flag("F10/preload in one's own environment", false, Itself),
    list("F15/mounts that share", &[], Itself),
    list("walk/K5/set-id files", &[], Beside("walk/K5/files seen")),
    list(
        "walk/K5/files with capabilities",
        &[],
        Beside("walk/K5/files seen"),
    ),
    flag("walk/K5/files seen", true, Itself),
    list(
        "walk/F1/writable folders",
        &[],
        Beside("walk/K5/files seen"),
    ),
    list("walk/F9/sockets", &[], Beside("walk/K5/files seen")),
    list("walk/K18/devices", DEVICES, Itself),
    list("walk/S7/secrets", &[], Beside("walk/K5/files seen")),
];

fn not_ok(seen: &Value, _: &Facts) -> Result<(), String> {
    if seen == "ok" {
        Err("the owner could be set".into())
    } else {
        Ok(())
    }
}
