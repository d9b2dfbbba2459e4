//! Group R, the part that can be looked at without reaching a limit.

use serde_json::Value;

use crate::escape::expect::Control::{Beside, Itself, OutsideAsRoot, Test};
use crate::escape::expect::{Expectation, Facts, flag, judged, list, seen};

const ABSENT: &[&str] = &["ENOENT", "EACCES", "EPERM"];
const NOT_ALLOWED: &[&str] = &["EPERM", "EACCES", "ENOSYS"];
/// A root of few capabilities cannot do it either.
const ROOT_MAY: &str = "outside it takes a capability that not every root has";

pub(super) const EXPECTED: &[Expectation] = &[
    seen(
        "R3/an access control list",
        &["ENOTSUP", "EOPNOTSUPP"],
        Test("file systems in memory have taken them since they exist"),
    ),
    // The name cannot be seen by a filter, so the harmless ones go too.
    seen(
        "R3/an attribute",
        &["ENOTSUP", "EOPNOTSUPP"],
        Test("file systems in memory have taken them since Linux 6.6"),
    ),
    seen(
        "R3/a lock of bytes as another process sees it",
        &["none"],
        Test("without the filter that answers in the kernel's place it is there"),
    ),
    seen("R3/copying with attributes", &["ok"], Itself),
    seen("R7/an inotify instance", &["ok"], Itself),
    judged("R14/SIG*", cannot_harm, Beside("R14/a signal to oneself")),
    judged(
        "R14/a signal by thread",
        cannot_harm,
        Beside("R14/a signal to oneself"),
    ),
    judged(
        "R14/a signal by pidfd",
        cannot_harm,
        Beside("R14/a signal to oneself"),
    ),
    judged(
        "R14/a queued signal",
        cannot_harm,
        Beside("R14/a signal to oneself"),
    ),
    seen("R14/a signal to oneself", &["ok"], Itself),
    seen("R15/*", ABSENT, Beside("R15/threads of one's own")),
    flag("R15/threads of one's own", true, Itself),
    seen(
        "R16/lower the oom score",
        &["EACCES", "EPERM", "EROFS"],
        Test(ROOT_MAY),
    ),
    // Harmless: it only makes oneself the first to go.
    seen(
        "R16/raise the oom score",
        &["ok", "EROFS", "EACCES"],
        Itself,
    ),
    seen("R16/higher priority", NOT_ALLOWED, OutsideAsRoot),
    seen("R16/lower priority", &["ok"], Itself),
    seen(
        "R16/the agent's priority",
        &["EPERM", "EACCES", "ESRCH", "ENOSYS"],
        OutsideAsRoot,
    ),
    seen("R16/real time *", NOT_ALLOWED, OutsideAsRoot),
    seen(
        "R16/lock all memory",
        &["EPERM", "ENOMEM", "ENOSYS", "EAGAIN"],
        OutsideAsRoot,
    ),
    list("R17/mounted", &[], Itself),
    seen("R17//sys/*", ABSENT, Beside("F9/a path that is there")),
    list("R17/seen from outside the root", &[], Itself),
    list("R20/raisable", &[], Itself),
    judged("R20/core", no_cores, Itself),
    judged("R20/open files", as_asked_for, Itself),
    judged("R20/file size", as_asked_for, Itself),
    seen("R20/raise *", &["EPERM"], Test(ROOT_MAY)),
    seen("R20/lower one's own", &["ok"], Itself),
];

fn cannot_harm(seen: &Value, facts: &Facts) -> Result<(), String> {
    let word = seen.as_str().unwrap_or_default();
    // With one id the signal may be sent; the first process of a namespace ignores it.
    if ["EPERM", "ESRCH", "ENOSYS", "EACCES"].contains(&word) || (word == "ok" && !facts.two_ids) {
        Ok(())
    } else {
        Err(format!("signalling the agent gave {seen}"))
    }
}

fn no_cores(seen: &Value, _: &Facts) -> Result<(), String> {
    // 1 is too little for a file, and keeps the kernel from starting a handler as well.
    if *seen == serde_json::json!([0, 0]) || *seen == serde_json::json!([1, 1]) {
        Ok(())
    } else {
        Err(format!("the limit of core files is {seen}"))
    }
}

fn as_asked_for(seen: &Value, facts: &Facts) -> Result<(), String> {
    let limits = &facts.limits;
    let pair = |value: u64| serde_json::json!([value, value]);
    if *seen == pair(limits.open_files) || *seen == pair(limits.file_size_bytes) {
        Ok(())
    } else {
        Err(format!(
            "the limit is {seen}, should be as the sandbox was made"
        ))
    }
}
