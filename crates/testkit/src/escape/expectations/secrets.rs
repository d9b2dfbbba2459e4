//! Group S, the part that one sandbox sees alone.

use serde_json::Value;

use crate::escape::expect::Control::{Beside, Itself, OutsideAsRoot, Test};
use crate::escape::expect::{Expectation, Facts, REFUSED, flag, judged, list, seen};

const GONE: &[&str] = &["ENOENT", "EACCES", "EPERM", "ESRCH"];
const PLANTED: &str = "the same search finds a canary that was planted for it";

/// Every variable that a program finds, and nothing besides.
const ENVIRONMENT: [&str; 15] = [
    "HOME",
    "LANG",
    "LOGNAME",
    "MPLBACKEND",
    "MPLCONFIGDIR",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "PATH",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONUNBUFFERED",
    "SHELL",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
];

pub(super) const EXPECTED: &[Expectation] = &[
    judged("S1/names", exactly_the_fixed_ones, Itself),
    list("S1/secret names", &[], Itself),
    seen("S2//proc/1/*", GONE, Beside("S2/own environ")),
    seen("S2/own environ", &["ok"], Itself),
    seen(
        "S2/agent's program",
        &["EACCES", "ENOENT"],
        Beside("S2/own environ"),
    ),
    list("S3/places", &[], Test(PLANTED)),
    flag("S3/looked at", true, Itself),
    seen("S4/a crash", &["killed by SIGSEGV"], Itself),
    list("S4/core files", &[], Beside("S4/a crash")),
    seen("S5/kernel log", REFUSED, OutsideAsRoot),
    seen("S5/read the kernel log", REFUSED, OutsideAsRoot),
    seen("S5//*", GONE, Beside("K18/write to null")),
    list("S11/places", &[], Test(PLANTED)),
    list("S11/own memory", &[], Test(PLANTED)),
];

fn exactly_the_fixed_ones(seen: &Value, _: &Facts) -> Result<(), String> {
    let names: Vec<_> = seen
        .as_array()
        .ok_or("no environment was seen")?
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let expected = ENVIRONMENT.to_vec();
    if names == expected {
        Ok(())
    } else {
        Err(format!(
            "the environment is {names:?}, should be {expected:?}"
        ))
    }
}
