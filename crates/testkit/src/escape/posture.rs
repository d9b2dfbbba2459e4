//! K25: everything that a fresh sandbox is, held against a document in the repository; and two
//! sandboxes held against each other.
//!
//! What differs from machine to machine is named here and replaced by a word, and what differs
//! between the ways in which a machine can isolate stands in the document under its own heading.
//! Nothing else may differ.

use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value, json};

use super::batch::{self, Position};
use super::lab::{Lab, PROBE_FOLDER};
use super::report::Red;

/// Stands for what is the machine's own.
const HOST: &str = "<the machine's own>";

/// Whose posture is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Process {
    /// The first program of a fresh sandbox.
    Program,
    /// The kernel of a fresh sandbox, in its first cell.
    Kernel,
}

/// Takes the posture of a process of a fresh sandbox with the limits of a small one, with all that
/// is the machine's own.
///
/// # Errors
/// When the sandbox cannot be made or does not play along.
pub async fn take_raw(lab: &Lab, process: Process) -> Result<Value> {
    let limits =
        glovebox_protocol::limits::Limits::of(glovebox_protocol::class::ResourceClass::Small);
    let subject = lab.subject(limits).await?;
    let (ran, position) = match process {
        Process::Program => (
            subject.probe("probe_posture.py", &[]).await?,
            Position::First,
        ),
        Process::Kernel => {
            let code = format!(
                "import sys\n\
                 sys.path.insert(0, '{PROBE_FOLDER}')\n\
                 import probe_posture\n\
                 probe_posture.main()"
            );
            (subject.kernel(&code).await?, Position::Kernel)
        }
    };
    let facts = batch::facts(lab, &subject, position)?;
    subject.remove().await?;
    let mut posture: Value = serde_json::from_slice(&ran.stdout).with_context(|| {
        format!(
            "the program {}: {}{}",
            ran.outcome,
            ran.raised.as_deref().unwrap_or_default(),
            String::from_utf8_lossy(&ran.stderr)
        )
    })?;
    namespaces(&mut posture, &facts.host_namespaces);
    maps(&mut posture)?;
    mounts(&mut posture)?;
    cgroups(&mut posture)?;
    Ok(posture)
}

/// Takes the posture of a process of a fresh sandbox, without what is the machine's own.
///
/// # Errors
/// When the sandbox cannot be made or does not play along.
pub async fn take(lab: &Lab, process: Process) -> Result<Value> {
    let mut posture = take_raw(lab, process).await?;
    user_limits(&mut posture)?;
    machines_own(&mut posture)?;
    interpreter(&mut posture);
    Ok(posture)
}

/// What differs between two postures, but for the fields that are excepted, by their pointers. A
/// field that is excepted and does not differ is a finding too: the list is to stay short.
#[must_use]
pub fn differences(one: &Value, other: &Value, excepted: &[&str]) -> Vec<Red> {
    let mut lines = Vec::new();
    difference("", one, other, &mut lines);
    let is_below = |line: &str, pointer: &str| {
        line.strip_prefix(pointer)
            .is_some_and(|rest| rest.starts_with([' ', '/']))
    };
    let mut reds: Vec<_> = lines
        .iter()
        .filter(|line| !excepted.iter().any(|pointer| is_below(line, pointer)))
        .map(|line| Red::new("K25", line))
        .collect();
    for pointer in excepted {
        if !lines.iter().any(|line| is_below(line, pointer)) {
            reds.push(Red::new("K25", format!("{pointer} does not differ")));
        }
    }
    reds
}

/// Each namespace is a number that is different each time: what counts is whose it is.
fn namespaces(posture: &mut Value, host: &std::collections::BTreeMap<String, u64>) {
    let Some(seen) = posture["namespaces"].as_object_mut() else {
        return;
    };
    for (name, inode) in seen.iter_mut() {
        let is_host = host
            .get(name)
            .is_some_and(|number| inode.as_u64() == Some(*number));
        *inode = if name == "time" {
            // Time is not made new: the clock is everybody's.
            json!(HOST)
        } else if is_host {
            json!("the host's")
        } else {
            json!("its own")
        };
    }
}

/// The outer id is another one for each sandbox.
fn maps(posture: &mut Value) -> Result<()> {
    for name in ["uid_map", "gid_map"] {
        let words = posture[name].as_array_mut().context("no map")?;
        for row in words.chunks_mut(3) {
            if let [_, outer, _] = row {
                *outer = json!(HOST);
            }
        }
    }
    Ok(())
}

/// How many processes and waiting signals a user may have follows from the machine's memory; a
/// sandbox is limited by its control group, and by an id of its own.
fn user_limits(posture: &mut Value) -> Result<()> {
    let limits = posture["limits"].as_object_mut().context("no limits")?;
    for name in ["RLIMIT_NPROC", "RLIMIT_SIGPENDING"] {
        let pair = limits.get_mut(name).context("a limit is missing")?;
        let fixed = pair[0] == pair[1];
        *pair = if fixed {
            json!(HOST)
        } else {
            json!("raisable")
        };
    }
    Ok(())
}

/// What a process has from the machine, or from the session of whoever launched it.
fn machines_own(posture: &mut Value) -> Result<()> {
    const OWN: [(&str, &[&str]); 2] = [
        (
            "status",
            &[
                "CoreDumping",
                "Cpus_allowed",
                "Mems_allowed",
                "SpeculationIndirectBranch",
                "Speculation_Store_Bypass",
                "THP_enabled",
            ],
        ),
        (
            "session",
            &[
                "clock",
                "label",
                "login",
                "login session",
                "memory that is written and run",
            ],
        ),
    ];
    for (part, names) in OWN {
        for name in names {
            *posture[part]
                .get_mut(*name)
                .with_context(|| format!("`{name}` is missing"))? = json!(HOST);
        }
    }
    Ok(())
}

/// Which version of Python a root tree has follows from the machine that it was made on.
fn interpreter(value: &mut Value) {
    match value {
        Value::String(text) => {
            // As in `python3.11` and `python311.zip`.
            if let Some((before, after)) = text.split_once("python3") {
                let is_digit = |c: char| c.is_ascii_digit();
                let minor = after
                    .strip_prefix('.')
                    .filter(|rest| rest.starts_with(is_digit));
                let rest = minor.unwrap_or(after).trim_start_matches(is_digit);
                *text = format!("{before}python3{rest}");
            }
        }
        Value::Array(values) => values.iter_mut().for_each(interpreter),
        Value::Object(fields) => fields.values_mut().for_each(interpreter),
        _ => {}
    }
}

/// Names of layers hold a digest of their content, and device nodes lie on the host's own `/dev`.
fn mounts(posture: &mut Value) -> Result<()> {
    for mount in posture["mounts"].as_array_mut().context("no mounts")? {
        let point = mount["point"].as_str().unwrap_or_default();
        let is_device = point.starts_with("/dev/") && point != "/dev/shm";
        if is_device {
            for field in ["kind", "source", "options", "root"] {
                mount[field] = json!(HOST);
            }
            // The times of a device are the host's choice.
            drop_atime(&mut mount["flags"]);
            continue;
        }
        for option in mount["options"].as_array_mut().context("no options")? {
            let text = option.as_str().unwrap_or_default();
            if let Some(layers) = text.strip_prefix("lowerdir=") {
                *option = json!(format!("lowerdir={}", without_digests(layers)));
            } else if let Some((name @ ("uid" | "gid"), _)) = text.split_once('=') {
                // The kernel shows owners by their ids on the host.
                *option = json!(format!("{name}={HOST}"));
            }
        }
        drop_newer_options(&mut mount["options"]);
    }
    Ok(())
}

fn drop_atime(flags: &mut Value) {
    if let Some(flags) = flags.as_array_mut() {
        flags.retain(|flag| !flag.as_str().is_some_and(|flag| flag.ends_with("atime")));
    }
}

/// Options that only newer kernels show, and that follow from others.
fn drop_newer_options(options: &mut Value) {
    const NEWER: [&str; 6] = [
        "inode64",
        "inode32",
        "redirect_dir=nofollow",
        "uuid=null",
        "noswap",
        "xino=off",
    ];
    if let Some(options) = options.as_array_mut() {
        options.retain(|option| {
            !option
                .as_str()
                .is_some_and(|option| NEWER.contains(&option))
        });
    }
}

/// Layers by their names alone. The one with LibreOffice is only there where the machine has it.
fn without_digests(layers: &str) -> String {
    let layers: Vec<_> = layers
        .split(':')
        .filter(|layer| !layer.starts_with("trees/office-"))
        .map(|layer| match layer.rsplit_once('-') {
            Some((name, digest))
                if digest.len() >= 8 && digest.chars().all(|c| c.is_ascii_hexdigit()) =>
            {
                format!("{name}-<digest>")
            }
            _ => layer.to_owned(),
        })
        .collect();
    layers.join(":")
}

/// Hierarchies are numbered as the host likes, and there are as many as it likes.
fn cgroups(posture: &mut Value) -> Result<()> {
    let mut places: Vec<String> = posture["cgroup"]
        .as_array()
        .context("no control groups")?
        .iter()
        .filter_map(|line| line.as_str()?.splitn(3, ':').nth(2).map(str::to_owned))
        .collect();
    places.sort();
    places.dedup();
    posture["cgroup"] = json!(places);
    Ok(())
}

/// The headings of the document that hold on a machine with so many ids and these control groups.
#[must_use]
pub fn headings(two_ids: bool, cgroup_version: u8) -> Vec<&'static str> {
    let mut headings = Vec::new();
    if !two_ids {
        headings.push("one id");
    }
    match cgroup_version {
        0 => headings.push("no control groups"),
        2 => headings.push("cgroups version 2"),
        _ => {}
    }
    headings
}

/// Holds a posture against the document: `common`, then what stands under each of `headings`.
///
/// # Errors
/// When the document has not the form that it has to have.
pub fn compare(document: &Value, headings: &[&str], seen: &Value) -> Result<Vec<Red>> {
    let mut expected = document["common"].clone();
    for heading in headings {
        let Some(changes) = document.get(*heading) else {
            bail!("the document has no heading `{heading}`");
        };
        for (pointer, value) in changes.as_object().context("a heading that is no object")? {
            let place = expected
                .pointer_mut(pointer)
                .with_context(|| format!("`{pointer}` of `{heading}` is not in `common`"))?;
            *place = value.clone();
        }
    }
    let mut differences = Vec::new();
    difference("", &expected, seen, &mut differences);
    Ok(differences
        .into_iter()
        .map(|line| Red::new("K25", line))
        .collect())
}

/// Names each field that differs, by its path.
fn difference(path: &str, expected: &Value, seen: &Value, lines: &mut Vec<String>) {
    match (expected, seen) {
        (Value::Object(wanted), Value::Object(have)) => {
            for (name, value) in wanted {
                match have.get(name) {
                    Some(other) => difference(&format!("{path}/{name}"), value, other, lines),
                    None => lines.push(format!("{path}/{name} is missing")),
                }
            }
            new_fields(path, wanted, have, lines);
        }
        (Value::Array(wanted), Value::Array(have)) if wanted.len() == have.len() => {
            for (index, (value, other)) in wanted.iter().zip(have).enumerate() {
                difference(&format!("{path}/{index}"), value, other, lines);
            }
        }
        _ if expected == seen => {}
        _ => lines.push(format!("{path} is {seen}, should be {expected}")),
    }
}

fn new_fields(
    path: &str,
    wanted: &Map<String, Value>,
    have: &Map<String, Value>,
    lines: &mut Vec<String>,
) {
    for (name, value) in have {
        if !wanted.contains_key(name) {
            lines.push(format!("{path}/{name} is new: {value}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_differs_is_named() {
        let document = json!({
            "common": {"a": {"b": 1, "c": [1, 2]}, "d": "x"},
            "one id": {"/d": "y"},
        });
        let seen = json!({"a": {"b": 2, "c": [1, 2], "new": 0}, "d": "y"});
        let reds = compare(&document, &["one id"], &seen).unwrap();
        let why: Vec<_> = reds.iter().map(|red| red.why.as_str()).collect();
        assert_eq!(why, ["/a/b is 2, should be 1", "/a/new is new: 0"]);
    }

    #[test]
    fn a_change_of_a_field_that_is_not_there_is_a_fault_of_the_document() {
        let document = json!({"common": {"a": 1}, "one id": {"/b": 2}});
        assert!(compare(&document, &["one id"], &json!({"a": 1})).is_err());
    }

    #[test]
    fn a_difference_is_named_unless_it_is_excepted() {
        let one = json!({"a": {"b": 1, "c": 2}, "ab": 1});
        let other = json!({"a": {"b": 2, "c": 3}, "ab": 2});
        let reds = differences(&one, &other, &["/a/b", "/d"]);
        let why: Vec<_> = reds.iter().map(|red| red.why.as_str()).collect();
        let expected = [
            "/a/c is 3, should be 2",
            "/ab is 2, should be 1",
            "/d does not differ",
        ];
        assert_eq!(why, expected);
    }

    #[test]
    fn digests_are_left_out() {
        assert_eq!(
            without_digests("layers/runtime-0123456789ab:trees/root-fedcba9876543210"),
            "layers/runtime-<digest>:trees/root-<digest>"
        );
        assert_eq!(
            without_digests(
                "layers/runtime-0123456789ab:trees/office-01234567:trees/root-89abcdef"
            ),
            "layers/runtime-<digest>:trees/root-<digest>"
        );
    }
}
