//! The same system calls in the form that container engines take: what agent and exec helper may
//! call, and so everything in the container.
//!
//! An engine's filter cannot say "any but these values" of an argument. Where the tables do, as
//! of `ioctl`, the call is allowed here and looked at by the filters that the exec helper loads
//! before it becomes a workload.

use serde_json::{Value, json};

use super::syscalls::{
    AGENT, CLONE_NEW, FLAGS_REFUSED, PERSONALITY_QUERY, WORKLOAD, WORKLOAD_OLDER,
};

/// Calls that are allowed with some arguments only.
const FAMILIES: [&str; 2] = ["socket", "socketpair"];

/// The profile for an engine's `seccomp` option, as JSON: what is not on it does not exist.
#[must_use]
pub fn container_profile() -> String {
    let flags: Vec<(&str, Value)> = FLAGS_REFUSED
        .iter()
        .map(|(call, argument, flag, _)| (name(*call), without(*argument, *flag)))
        .collect();
    let conditional = |call: &str| {
        FAMILIES.contains(&call) || flags.iter().any(|(conditional, _)| *conditional == call)
    };
    let always: Vec<&str> = [WORKLOAD, WORKLOAD_OLDER, AGENT]
        .concat()
        .iter()
        .map(|allowed| call(allowed.name))
        .chain(["ioctl"])
        .filter(|call| !conditional(call))
        .collect();
    let local = i64::from(libc::AF_UNIX);
    let mut rules = vec![
        json!({"names": always, "action": "SCMP_ACT_ALLOW"}),
        json!({
            "names": FAMILIES,
            "action": "SCMP_ACT_ALLOW",
            "args": [{"index": 0, "value": local, "op": "SCMP_CMP_EQ"}],
        }),
        json!({
            "names": ["clone"],
            "action": "SCMP_ACT_ALLOW",
            "args": [without(0, CLONE_NEW)],
        }),
        json!({
            "names": ["personality"],
            "action": "SCMP_ACT_ALLOW",
            "args": [{"index": 0, "value": PERSONALITY_QUERY, "op": "SCMP_CMP_EQ"}],
        }),
        // Older engines know no answer for what is not listed but "forbidden", and of this call
        // the C library has to hear that it does not exist.
        json!({
            "names": ["clone3"],
            "action": "SCMP_ACT_ERRNO",
            "errnoRet": libc::ENOSYS,
        }),
    ];
    rules.extend(flags.iter().map(|(call, condition)| {
        json!({"names": [call], "action": "SCMP_ACT_ALLOW", "args": [condition]})
    }));
    json!({
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": libc::ENOSYS,
        "archMap": [{"architecture": ARCHITECTURE, "subArchitectures": []}],
        "syscalls": rules,
    })
    .to_string()
}

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: &str = "SCMP_ARCH_X86_64";
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: &str = "SCMP_ARCH_AARCH64";

/// The call of a name in a table.
fn call(name: &'static str) -> &'static str {
    name.trim_start_matches("SYS_")
}

/// The name of a call that a table names by number.
fn name(number: libc::c_long) -> &'static str {
    match number {
        libc::SYS_mmap => "mmap",
        libc::SYS_memfd_create => "memfd_create",
        libc::SYS_sendto => "sendto",
        libc::SYS_recvfrom => "recvfrom",
        libc::SYS_sendmsg => "sendmsg",
        libc::SYS_recvmsg => "recvmsg",
        libc::SYS_sendmmsg => "sendmmsg",
        libc::SYS_recvmmsg => "recvmmsg",
        // No call has this name, so the profile would be refused; a test looks for it.
        _ => "unnamed",
    }
}

fn without(argument: u8, flags: u64) -> Value {
    json!({"index": argument, "value": flags, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"})
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Each call with the number of rules that name it.
    fn rules() -> BTreeMap<String, usize> {
        let profile: Value = serde_json::from_str(&container_profile()).unwrap();
        let mut rules = BTreeMap::new();
        for rule in profile["syscalls"].as_array().unwrap() {
            for name in rule["names"].as_array().unwrap() {
                *rules.entry(name.as_str().unwrap().to_owned()).or_default() += 1;
            }
        }
        rules
    }

    #[test]
    fn every_call_of_the_tables_is_named_once_and_no_other() {
        let rules = rules();
        for allowed in WORKLOAD.iter().chain(WORKLOAD_OLDER).chain(AGENT) {
            assert_eq!(rules.get(call(allowed.name)), Some(&1), "{}", allowed.name);
        }
        let beside = ["clone", "clone3", "ioctl", "personality"];
        let flagged = FLAGS_REFUSED.iter().map(|(number, ..)| name(*number));
        let tables = WORKLOAD.iter().chain(WORKLOAD_OLDER).chain(AGENT);
        let known: Vec<_> = tables
            .map(|allowed| call(allowed.name))
            .chain(beside)
            .chain(flagged)
            .collect();
        for name in rules.keys() {
            assert!(known.contains(&name.as_str()), "{name} stands in no table");
        }
        assert!(!rules.contains_key("unnamed"));
    }
}
