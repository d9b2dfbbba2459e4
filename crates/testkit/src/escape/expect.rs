//! What probes have to see, and how it is judged.

use std::collections::BTreeMap;

use serde_json::Value;

use super::report::{Red, Report};

/// The answers that mean that the kernel said no.
pub const REFUSED: &[&str] = &["EPERM", "ENOSYS", "EACCES"];

/// What is known of the sandbox and the host beside what a probe sees.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Agent and workload have ids of their own.
    pub two_ids: bool,
    /// The probes run in the kernel, or in a forked copy of it.
    pub in_kernel: bool,
    /// The controls ran with the host's own capabilities.
    pub root: bool,
    /// The version of Landlock that the sandbox is under; 0 where there is none.
    pub landlock_abi: u32,
    /// The host's kernel merges equal pages of different processes.
    pub merges_memory: bool,
    /// The host's namespaces, by name.
    pub host_namespaces: BTreeMap<String, u64>,
    /// Words that would give the host away.
    pub host_words: Vec<String>,
    /// The limits that the sandbox was made with.
    pub limits: glovebox_protocol::limits::Limits,
}

impl Facts {
    /// What this machine is; of the sandbox only the limits.
    ///
    /// # Errors
    /// When the machine cannot be read.
    pub fn of_host(limits: glovebox_protocol::limits::Limits) -> anyhow::Result<Self> {
        let mut host_namespaces = BTreeMap::new();
        for name in ["user", "pid", "mnt", "net", "ipc", "uts", "cgroup"] {
            let facts = fs_err::metadata(format!("/proc/self/ns/{name}"))?;
            host_namespaces.insert(name.into(), std::os::unix::fs::MetadataExt::ino(&facts));
        }
        let merging = fs_err::read_to_string("/sys/kernel/mm/ksm/run");
        let own = fs_err::metadata("/proc/self")?;
        Ok(Self {
            two_ids: true,
            landlock_abi: 0,
            in_kernel: false,
            root: std::os::unix::fs::MetadataExt::uid(&own) == 0,
            merges_memory: merging.is_ok_and(|text| text.trim() == "1"),
            host_namespaces,
            host_words: host_words(),
            limits,
        })
    }
}

/// Words that only this machine has. Short ones are left out: they would be found anywhere.
fn host_words() -> Vec<String> {
    let mut words = Vec::new();
    for path in [
        "/proc/sys/kernel/hostname",
        "/etc/machine-id",
        "/proc/sys/kernel/random/boot_id",
    ] {
        words.extend(fs_err::read_to_string(path).map(|text| text.trim().to_owned()));
    }
    words.extend(crate::repository().to_str().map(str::to_owned));
    words.extend(
        crate::cargo_target()
            .ok()
            .and_then(|path| path.to_str().map(str::to_owned)),
    );
    words.retain(|word| word.len() > 3 && !["localhost", "(none)"].contains(&word.as_str()));
    words
}

/// A judgement that needs more than a comparison: what is wrong, if anything.
pub type Judge = fn(&Value, &Facts) -> Result<(), String>;

/// What has to be seen.
#[derive(Clone, Copy)]
pub enum Rule {
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Exactly these words, in this order.
    List(&'static [&'static str]),
    /// This truth.
    Flag(bool),
    /// Whatever this accepts.
    Judged(Judge),
}

impl Rule {
    fn judge(&self, seen: &Value, facts: &Facts) -> Result<(), String> {
        let wanted = match self {
            Self::OneOf(words) => {
                if seen.as_str().is_some_and(|word| words.contains(&word)) {
                    return Ok(());
                }
                words.join(" or ")
            }
            Self::List(words) => {
                if *seen == serde_json::json!(words) {
                    return Ok(());
                }
                format!("{words:?}")
            }
            Self::Flag(truth) => {
                if *seen == Value::Bool(*truth) {
                    return Ok(());
                }
                truth.to_string()
            }
            Self::Judged(judge) => return judge(seen, facts),
        };
        Err(format!("saw {}, should be {wanted}", shortened(seen)))
    }
}

fn shortened(seen: &Value) -> String {
    let text = seen.to_string();
    match text.char_indices().nth(600) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// What shows that a probe would notice if the protection were not there.
#[derive(Clone, Copy)]
pub enum Control {
    /// Outside of a sandbox the same probe sees something that the rule does not accept.
    Outside,
    /// The same, if the kernel has the call at all.
    OutsideIfKnown,
    /// The same, for which outside one has to be root.
    OutsideAsRoot,
    /// Another probe of the batch, this one, which has its own rule and sees that a thing of the
    /// same kind works.
    Beside(&'static str),
    /// It is itself a control, or what it sees is a plain fact about the sandbox.
    Itself,
    /// Another test shows it: which.
    Test(&'static str),
}

/// What one probe has to see.
#[derive(Clone, Copy)]
pub struct Expectation {
    /// The probe's id; with `*` at the end, all that begin so, at least one.
    pub id: &'static str,
    /// What has to be seen in a sandbox.
    pub rule: Rule,
    /// What shows that the probe can see something else.
    pub control: Control,
}

impl Expectation {
    /// The check it belongs to, such as `K7`.
    #[must_use]
    pub fn check(&self) -> &'static str {
        let id = self.id.strip_prefix("walk/").unwrap_or(self.id);
        id.split_once('/').map_or(id, |(check, _)| check)
    }

    fn matches(&self, id: &str) -> bool {
        match self.id.strip_suffix('*') {
            Some(prefix) => id.starts_with(prefix),
            None => id == self.id,
        }
    }
}

/// An expectation that a call is refused, which outside it is not.
pub(crate) const fn refused(id: &'static str) -> Expectation {
    seen(id, REFUSED, Control::Outside)
}

/// An expectation of one of some words.
pub(crate) const fn seen(
    id: &'static str,
    words: &'static [&'static str],
    control: Control,
) -> Expectation {
    Expectation {
        id,
        rule: Rule::OneOf(words),
        control,
    }
}

/// An expectation of a list.
pub(crate) const fn list(
    id: &'static str,
    words: &'static [&'static str],
    control: Control,
) -> Expectation {
    Expectation {
        id,
        rule: Rule::List(words),
        control,
    }
}

/// An expectation of a truth.
pub(crate) const fn flag(id: &'static str, truth: bool, control: Control) -> Expectation {
    Expectation {
        id,
        rule: Rule::Flag(truth),
        control,
    }
}

/// An expectation that a function judges.
pub(crate) const fn judged(id: &'static str, judge: Judge, control: Control) -> Expectation {
    Expectation {
        id,
        rule: Rule::Judged(judge),
        control,
    }
}

/// Finds the expectation of a report: the exact one, else the one with the longest beginning.
fn expectation_of<'t>(table: &[&'t Expectation], id: &str) -> Option<&'t Expectation> {
    table
        .iter()
        .filter(|expectation| expectation.matches(id))
        .max_by_key(|expectation| (!expectation.id.ends_with('*'), expectation.id.len()))
        .copied()
}

/// Judges everything that a batch reported. What is expected and was not reported, and what was
/// reported and is not expected, is wrong too.
#[must_use]
pub fn judge(table: &[&Expectation], reports: &[Report], facts: &Facts) -> Vec<Red> {
    let mut reds = Vec::new();
    let mut seen: Vec<&'static str> = Vec::new();
    let mut ended = false;
    for report in reports {
        if report.id == "end" {
            ended = true;
            continue;
        }
        let Some(expectation) = expectation_of(table, &report.id) else {
            reds.push(Red::new(
                check_of(&report.id),
                format!(
                    "`{}` was not expected: {}",
                    report.id,
                    shortened(&report.observed)
                ) + &told(report),
            ));
            continue;
        };
        seen.push(expectation.id);
        if let Err(why) = expectation.rule.judge(&report.observed, facts) {
            reds.push(Red::new(
                expectation.check(),
                format!("`{}` {why}{}", report.id, told(report)),
            ));
        }
    }
    for expectation in table {
        if !seen.contains(&expectation.id) {
            reds.push(Red::new(
                expectation.check(),
                format!("`{}` was not reported", expectation.id),
            ));
        }
    }
    if !ended {
        reds.push(Red::new("batch", "the batch did not come to its end"));
    }
    reds
}

fn told(report: &Report) -> String {
    if report.detail.is_empty() {
        String::new()
    } else {
        format!(" ({})", report.detail)
    }
}

/// The check in a probe's id.
fn check_of(id: &str) -> &str {
    let id = id.strip_prefix("walk/").unwrap_or(id);
    id.split_once('/').map_or(id, |(check, _)| check)
}

/// Judges the controls: outside, each probe that has one has to see what its rule refuses.
#[must_use]
pub fn judge_controls(table: &[&Expectation], outside: &[Report], facts: &Facts) -> Vec<Red> {
    let mut reds = Vec::new();
    for expectation in table {
        let possible = match expectation.control {
            Control::Outside => true,
            Control::OutsideIfKnown | Control::OutsideAsRoot => false,
            Control::Beside(id) => {
                if !table.iter().any(|other| other.id == id) {
                    reds.push(Red::new(
                        expectation.check(),
                        format!("the control `{id}` of `{}` is not there", expectation.id),
                    ));
                }
                continue;
            }
            Control::Itself | Control::Test(_) => continue,
        };
        // A probe that has a line of its own in the table has that line's control.
        let is_named = |id: &str| table.iter().any(|other| other.id == id);
        let found: Vec<_> = outside
            .iter()
            .filter(|report| expectation.matches(&report.id))
            .filter(|report| expectation.id == report.id || !is_named(&report.id))
            .collect();
        if found.is_empty() {
            reds.push(Red::new(
                expectation.check(),
                format!("`{}` has no control outside", expectation.id),
            ));
        }
        for report in found {
            let same = expectation.rule.judge(&report.observed, facts).is_ok();
            let unknown = report.observed == "ENOSYS" || report.observed == "not on this machine";
            let excused = !possible
                && match expectation.control {
                    Control::OutsideAsRoot => !facts.root,
                    _ => unknown,
                };
            if same && !excused {
                reds.push(Red::new(
                    expectation.check(),
                    format!(
                        "the control `{}` saw the same outside: {}",
                        report.id,
                        shortened(&report.observed)
                    ),
                ));
            }
        }
    }
    reds
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts::of_host(super::super::Lab::small_limits()).unwrap()
    }

    fn report(id: &str, observed: Value) -> Report {
        Report {
            id: id.into(),
            observed,
            detail: String::new(),
        }
    }

    #[test]
    fn what_is_missing_or_unknown_is_wrong_too() {
        let expected = refused("K7/mount");
        let reports = [
            report("K7/umount", "EPERM".into()),
            report("end", "end".into()),
        ];
        let reds = judge(&[&expected], &reports, &facts());
        assert_eq!(reds.len(), 2, "{reds:?}");
    }

    #[test]
    fn a_batch_without_its_end_is_wrong() {
        let expected = refused("K7/mount");
        let reports = [report("K7/mount", "EPERM".into())];
        assert_eq!(judge(&[&expected], &reports, &facts()).len(), 1);
    }

    #[test]
    fn a_control_that_fails_as_well_proves_nothing() {
        let expected = refused("K7/mount");
        let outside = [report("K7/mount", "EPERM".into())];
        assert_eq!(judge_controls(&[&expected], &outside, &facts()).len(), 1);
        let outside = [report("K7/mount", "ENOENT".into())];
        assert!(judge_controls(&[&expected], &outside, &facts()).is_empty());
    }

    #[test]
    fn the_exact_expectation_goes_before_the_general_one() {
        let general = seen("F1/create in *", &["EROFS"], Control::Itself);
        let exact = seen("F1/create in /tmp", &["ok"], Control::Itself);
        let table = [&general, &exact];
        assert_eq!(
            expectation_of(&table, "F1/create in /tmp").unwrap().id,
            exact.id
        );
        assert_eq!(
            expectation_of(&table, "F1/create in /etc").unwrap().id,
            general.id
        );
    }
}
