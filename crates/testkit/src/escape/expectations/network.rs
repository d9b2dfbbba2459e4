//! Groups N1 to N11, the part that one sandbox sees alone.

use serde_json::Value;

use crate::escape::expect::Control::{Itself, Outside, Test};
use crate::escape::expect::{Expectation, Facts, REFUSED, judged, list, seen};

const NO_FAMILY: &[&str] = &["EAFNOSUPPORT"];
/// The listener's name is not to be found here, or not to be reached.
const NOBODY: &[&str] = &["ECONNREFUSED", "EPERM", "EACCES", "ENOENT"];
/// The tests open listeners outside, see that the host itself reaches them, and that they hear
/// nothing from inside.
const LISTENERS: &str = "nothing_outside_hears_from_a_sandbox";

pub(super) const EXPECTED: &[Expectation] = &[
    seen("N1/*", NO_FAMILY, Test(LISTENERS)),
    list("N2/v4", NO_FAMILY, Test(LISTENERS)),
    list("N2/v6", NO_FAMILY, Test(LISTENERS)),
    seen("N2/name", &["not resolved"], Test(LISTENERS)),
    seen("N3/resolve *", &["not resolved"], Test(LISTENERS)),
    seen("N3/udp 53", NO_FAMILY, Test(LISTENERS)),
    seen("N3/tcp 53", NO_FAMILY, Test(LISTENERS)),
    seen("N3/dns over tls", NO_FAMILY, Test(LISTENERS)),
    seen("N3/multicast dns", NO_FAMILY, Test(LISTENERS)),
    seen("N3/link-local names", NO_FAMILY, Test(LISTENERS)),
    seen("N3/nscd", NOBODY, Test("walk/F9/sockets")),
    list("N3/resolvers", &[], Itself),
    list("N4/addresses", NO_FAMILY, Test(LISTENERS)),
    seen("N4/loopback v6", NO_FAMILY, Test(LISTENERS)),
    seen("N4/resolve *", &["not resolved"], Test(LISTENERS)),
    seen("N4/a listener of the host", NO_FAMILY, Test(LISTENERS)),
    seen(
        "N8/of the host",
        NOBODY,
        Test("an abstract socket of the host cannot be reached"),
    ),
    seen(
        "N8/of a desktop",
        NOBODY,
        Test("an abstract socket of the host cannot be reached"),
    ),
    judged("N8/listed", none_is_listed, Itself),
    list("N10/AF_*", NO_FAMILY, Itself),
    list("N10/AF_INET", NO_FAMILY, Outside),
    seen("N10/queue a socket in io_uring", REFUSED, Outside),
    judged("N11/addresses", nothing_is_up, Itself),
    judged("N11/devices", loopback_alone, Itself),
    judged("N11/routes", no_route, Itself),
    seen("N11/bind and connect", NO_FAMILY, Test(LISTENERS)),
];

/// Where the file is not to be seen its answer is a word.
fn hidden(seen: &Value) -> bool {
    seen.as_str()
        .is_some_and(|word| ["ENOENT", "EACCES", "EPERM"].contains(&word))
}

fn none_is_listed(seen: &Value, _: &Facts) -> Result<(), String> {
    if hidden(seen) || *seen == serde_json::json!([]) {
        Ok(())
    } else {
        Err(format!("abstract sockets are seen: {seen}"))
    }
}

fn nothing_is_up(seen: &Value, _: &Facts) -> Result<(), String> {
    if hidden(seen) || *seen == serde_json::json!([]) {
        Ok(())
    } else {
        Err(format!("devices with addresses: {seen}"))
    }
}

fn loopback_alone(seen: &Value, _: &Facts) -> Result<(), String> {
    if hidden(seen) || *seen == serde_json::json!(["lo"]) {
        Ok(())
    } else {
        Err(format!("network devices: {seen}, should be `lo` alone"))
    }
}

fn no_route(seen: &Value, _: &Facts) -> Result<(), String> {
    // An empty table has no line, not even a heading, in a namespace whose devices are down.
    if hidden(seen) || seen.as_i64().is_some_and(|routes| routes <= 0) {
        Ok(())
    } else {
        Err(format!("routes: {seen}"))
    }
}
