//! Group K.

use serde_json::Value;

use crate::escape::expect::Control::{
    Beside, Itself, Outside, OutsideAsRoot, OutsideIfKnown, Test,
};
use crate::escape::expect::{Expectation, Facts, REFUSED, flag, judged, list, refused, seen};

/// Refused, or there is no such id, file or right.
const NO_SUCH_ID: &[&str] = &["EPERM", "EINVAL", "ENOSYS"];
/// The name is not there.
const ABSENT: &[&str] = &["ENOENT", "ENXIO", "EACCES", "EPERM"];

pub(super) const EXPECTED: &[Expectation] = &[
    judged("K1/namespaces", seven_new_namespaces, Itself),
    judged("K2/uid", is_workload, Itself),
    judged("K2/gid", is_workload, Itself),
    list("K2/groups", &[], Itself),
    judged("K2/uid_map", maps_our_ids_only, Itself),
    judged("K2/gid_map", maps_our_ids_only, Itself),
    flag("K2/uid_map holds id 0", false, Itself),
    flag("K2/gid_map holds id 0", false, Itself),
    seen("K2/setgroups", &["deny"], Itself),
    seen("K2/setuid 0", NO_SUCH_ID, Test("K3/threads")),
    seen("K2/setgid 0", NO_SUCH_ID, Test("K3/threads")),
    seen("K2/set groups", REFUSED, Test("K3/threads")),
    judged("K3/threads", all_sets_are_empty, Outside),
    seen("K3/capset", REFUSED, Outside),
    judged("K4/threads", sealed_threads, Outside),
    list("K4/after exec", &["1", "2"], Outside),
    // Whether the bits stay is the file system's business; that they do nothing is ours.
    seen(
        "K5/mode of one's own set-id file",
        &["0o6755", "0o755"],
        Itself,
    ),
    flag(
        "K5/set-id gains nothing",
        true,
        Test("walk/K5 and the mount flags"),
    ),
    list("K5/mounts without nosuid", &[], Outside),
    seen(
        "K5/file capabilities",
        &["EPERM", "ENOSYS", "EACCES", "ENOTSUP", "EOPNOTSUPP"],
        Outside,
    ),
    refused("K6/unshare user"),
    refused("K6/unshare pid"),
    refused("K6/unshare mnt"),
    refused("K6/unshare net"),
    refused("K6/unshare ipc"),
    refused("K6/unshare uts"),
    refused("K6/unshare cgroup"),
    seen("K6/unshare time", REFUSED, OutsideIfKnown),
    refused("K6/clone user"),
    refused("K6/clone pid"),
    refused("K6/clone mnt"),
    refused("K6/clone net"),
    refused("K6/clone ipc"),
    refused("K6/clone uts"),
    refused("K6/clone cgroup"),
    refused("K6/setns"),
    refused("K6/setns by pidfd"),
    // Exactly this, or the C library would not fall back to the older call.
    seen("K6/clone3", &["ENOSYS"], Outside),
    seen("K6/clone without flags", &["ok"], Itself),
    refused("K7/mount"),
    refused("K7/remount"),
    refused("K7/umount2"),
    refused("K7/pivot_root"),
    refused("K7/chroot"),
    refused("K7/fsopen"),
    refused("K7/fspick"),
    refused("K7/fsmount"),
    refused("K7/open_tree"),
    refused("K7/move_mount"),
    refused("K7/mount_setattr"),
    refused("K8/ptrace traceme"),
    refused("K8/ptrace seize a child"),
    refused("K8/read a child's memory"),
    refused("K8/write a child's memory"),
    seen(
        "K8/open a child's memory file",
        &["EROFS", "EPERM", "EACCES"],
        Outside,
    ),
    refused("K8/take a child's descriptor"),
    seen("K8/compare with a child", REFUSED, OutsideIfKnown),
    seen("K8/advise a child's memory", REFUSED, OutsideAsRoot),
    refused("K8/read the agent's memory"),
    refused("K8/ptrace seize the agent"),
    refused("K8/agent by pidfd"),
    seen("K8/own child is seen", &["ok"], Itself),
    judged("K9/open", declared_descriptors, Itself),
    seen("K10/getcwd", &["/workspace"], Itself),
    seen("K10/cwd", &["/workspace"], Itself),
    seen("K10/root", &["/"], Itself),
    flag("K10/above root is root", true, Itself),
    seen("K11/*", REFUSED, OutsideIfKnown),
    seen("K11/acct", REFUSED, OutsideAsRoot),
    seen("K11/swapon", REFUSED, OutsideAsRoot),
    seen("K11/swapoff", REFUSED, OutsideAsRoot),
    seen("K11/settimeofday", REFUSED, OutsideAsRoot),
    seen("K11/syslog", REFUSED, OutsideAsRoot),
    seen("K11/make a character device", REFUSED, OutsideAsRoot),
    seen("K11/make a block device", REFUSED, OutsideAsRoot),
    seen(
        "K12/32-bit call",
        &["killed by SIGSYS", "not on this machine"],
        OutsideIfKnown,
    ),
    seen(
        "K12/x32 call",
        &["ENOSYS", "EPERM", "killed by SIGSYS", "not on this machine"],
        Test("kernels are built without it as a rule; the filter's own test has the number"),
    ),
    judged("K13/families", only_unix, Outside),
    list("K13/answers for others", &["EAFNOSUPPORT"], Outside),
    seen("K13/unix pair", &["ok"], Itself),
    seen("K13/internet pair", &["EAFNOSUPPORT"], Outside),
    seen(
        "K13/family behind high bits",
        &["EAFNOSUPPORT", "EPERM", "ENOSYS"],
        Outside,
    ),
    seen("K14/splice", &["ENOSYS"], Outside),
    seen("K14/vmsplice", &["ENOSYS"], Outside),
    seen("K14/tee", &["ENOSYS"], Outside),
    seen("K14/copy a file", &["ok"], Itself),
    seen("K15/unknown call", &["ENOSYS"], Itself),
    seen("K15/negative call", &["ENOSYS", "killed by SIGSYS"], Itself),
    seen("K15/own limits", &["ok"], Itself),
    refused("K15/another's limits"),
    refused("K15/files flag with a namespace"),
    seen("K16/query personality", &["ok"], Itself),
    refused("K16/no address randomisation"),
    refused("K16/read implies execute"),
    refused("K16/push terminal input"),
    refused("K16/push terminal input behind high bits"),
    refused("K16/console control"),
    seen("K16/another ioctl", &["ENOTTY", "EACCES"], Itself),
    seen("K16/open the terminal", ABSENT, Beside("K18/write to null")),
    list("K16/terminals among 0, 1, 2", &[], Itself),
    flag("K16/session is one's own", true, Itself),
    list(
        "K17/entries besides processes",
        &["self", "thread-self"],
        Itself,
    ),
    flag("K17/processes of others", false, Beside("K17/own process")),
    flag("K17/own process", true, Itself),
    list("K17/kernel files", &[], Beside("K17/own process")),
    flag("K17/highest process id", true, Itself),
    list("K18/sys", &[], Beside("K18/write to null")),
    list(
        "K18/dev",
        &[
            "fd", "full", "null", "random", "shm", "stderr", "stdin", "stdout", "urandom", "zero",
        ],
        Itself,
    ),
    seen("K18/write to null", &["ok"], Itself),
    seen("K18/read zeros", &["00000000"], Itself),
    seen("K18/full is full", &["ENOSPC"], Itself),
    judged("K20/an ioctl of a device", closed_by_landlock, Itself),
    // Landlock has no rule for them, and the mounts would let them be read and run.
    judged("K20/read *", closed_if_any, Beside("K10/root")),
    judged("K20/run *", closed_if_any, Beside("F10/from /tmp")),
    seen("K21/cachestat", REFUSED, OutsideAsRoot),
    judged("K23/node name", gives_nothing_away, Itself),
    judged("K23/host name", gives_nothing_away, Itself),
    judged("K23/domain name", gives_nothing_away, Itself),
    judged("K23/texts", gives_nothing_away, Itself),
    judged("K23/cgroup", gives_nothing_away, Itself),
    judged("K24/merged", not_merged, Itself),
    seen(
        "K24/ask for merging",
        &["EPERM", "ENOSYS", "EACCES", "EINVAL"],
        OutsideAsRoot,
    ),
    judged("K24/advise merging", harmless_advice, Itself),
];

fn seven_new_namespaces(seen: &Value, facts: &Facts) -> Result<(), String> {
    for name in ["user", "pid", "mnt", "net", "ipc", "uts", "cgroup"] {
        let inside = seen[name]
            .as_u64()
            .ok_or(format!("no {name} namespace was seen"))?;
        if facts.host_namespaces.get(name) == Some(&inside) {
            return Err(format!("the {name} namespace is the host's"));
        }
    }
    Ok(())
}

fn is_workload(seen: &Value, _: &Facts) -> Result<(), String> {
    if *seen == serde_json::json!([1000, 1000, 1000]) {
        Ok(())
    } else {
        Err(format!("the ids are {seen}, should be 1000 three times"))
    }
}

fn maps_our_ids_only(seen: &Value, facts: &Facts) -> Result<(), String> {
    let rows = seen.as_array().ok_or("no map was seen")?;
    let first_ids: Vec<_> = rows.iter().filter_map(|row| row[0].as_u64()).collect();
    let expected: &[u64] = if facts.two_ids { &[999, 1000] } else { &[1000] };
    let single = rows.iter().all(|row| row[2].as_u64() == Some(1));
    if first_ids == expected && single {
        Ok(())
    } else {
        Err(format!(
            "the map is {seen}, should hold {expected:?}, one by one"
        ))
    }
}

fn all_sets_are_empty(seen: &Value, _: &Facts) -> Result<(), String> {
    let none = "0000000000000000";
    if *seen == serde_json::json!([[none, none, none, none, none]]) {
        Ok(())
    } else {
        Err(format!(
            "saw {seen}, should be five empty sets on every thread"
        ))
    }
}

fn sealed_threads(seen: &Value, _: &Facts) -> Result<(), String> {
    if *seen == serde_json::json!([["1", "2"]]) {
        Ok(())
    } else {
        Err(format!("saw {seen}, should be 1 and 2 on every thread"))
    }
}

/// From this number on lie descriptors of the kernel's own.
const KERNELS_OWN: u32 = 240;

fn declared_descriptors(seen: &Value, facts: &Facts) -> Result<(), String> {
    let open = seen.as_object().ok_or("no descriptors were seen")?;
    if !facts.in_kernel {
        let expected = serde_json::json!({"0": "device 1:3", "1": "pipe", "2": "pipe"});
        return if *seen == expected {
            Ok(())
        } else {
            Err(format!("open are {seen}, should be {expected}"))
        };
    }
    // The kernel has its line to the agent besides, descriptors that it keeps in reserve, and the
    // pipes of a cell of which something still runs.
    let mut lines = 0;
    for (number, kind) in open {
        let kind = kind.as_str().unwrap_or_default();
        lines += u32::from(kind == "socket");
        let declared = match kind {
            "device 1:3" | "socket" => true,
            "pipe" => matches!(number.parse(), Ok(1 | 2 | KERNELS_OWN..)),
            _ => false,
        };
        if !declared {
            return Err(format!("descriptor {number} is a {kind}"));
        }
    }
    if lines > 1 {
        return Err(format!("{lines} sockets are open: {seen}"));
    }
    Ok(())
}

fn only_unix(seen: &Value, _: &Facts) -> Result<(), String> {
    if *seen == serde_json::json!([1]) {
        Ok(())
    } else {
        Err(format!(
            "sockets of the families {seen} could be made, should be 1 alone"
        ))
    }
}

fn gives_nothing_away(seen: &Value, facts: &Facts) -> Result<(), String> {
    let text = seen.to_string();
    match facts.host_words.iter().find(|word| text.contains(*word)) {
        None => Ok(()),
        Some(word) => {
            let at = text.find(word).unwrap_or(0);
            let from = text[..at]
                .char_indices()
                .rev()
                .nth(80)
                .map_or(0, |(index, _)| index);
            Err(format!(
                "the host's word `{word}` is seen: …{}",
                &text[from..at + word.len()]
            ))
        }
    }
}

/// The fifth version of Landlock closes devices that no rule opens for it.
fn closed_by_landlock(seen: &Value, facts: &Facts) -> Result<(), String> {
    let expected = if facts.landlock_abi >= 5 {
        "EACCES"
    } else {
        "ENOTTY"
    };
    if seen == expected {
        Ok(())
    } else {
        Err(format!("it gave {seen}, should be {expected}"))
    }
}

fn closed_if_any(seen: &Value, facts: &Facts) -> Result<(), String> {
    let closed = seen == "EACCES" || seen == "EPERM" || seen == "ENOENT";
    if closed || facts.landlock_abi == 0 {
        Ok(())
    } else {
        Err(format!("it gave {seen}, and nothing allows it"))
    }
}

fn not_merged(seen: &Value, _: &Facts) -> Result<(), String> {
    match seen {
        Value::Number(number) if number.as_u64() == Some(0) => Ok(()),
        // The call is not there, and so nobody can have asked for it.
        Value::String(error) if REFUSED.contains(&error.as_str()) || error == "EINVAL" => Ok(()),
        other => Err(format!("merging of memory is {other}")),
    }
}

fn harmless_advice(seen: &Value, facts: &Facts) -> Result<(), String> {
    if facts.merges_memory && seen == "ok" {
        return Err("memory can be offered for merging, and the host's kernel merges".into());
    }
    Ok(())
}
