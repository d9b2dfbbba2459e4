//! What the gateway sees of its own network namespace, looked at as a sandbox looks at its own.
//! Nothing where it cannot look.

use std::os::unix::fs::MetadataExt as _;

/// What the loopback is called in every network namespace.
const LOOPBACK: &str = "lo";

fn rows(name: &str) -> Option<Vec<Vec<String>>> {
    let text = fs_err::read_to_string(format!("/proc/self/net/{name}")).ok()?;
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
    Some(text.lines().map(words).collect())
}

/// Whether there is an interface beside the loopback.
pub(super) fn interfaces() -> Option<bool> {
    let own = crate::config::interfaces().ok()?;
    Some(own.iter().any(|one| !one.address.is_loopback()))
}

/// Whether a route leads elsewhere than to the loopback.
pub(super) fn routes() -> Option<bool> {
    let leads_away = |row: &Vec<String>, place: usize| {
        row.get(place)
            .is_some_and(|interface| interface != LOOPBACK)
    };
    let four = rows("route")?;
    let six = rows("ipv6_route").unwrap_or_default();
    let four = four.iter().skip(1).any(|row| leads_away(row, 0));
    Some(four || six.iter().any(|row| leads_away(row, 9)))
}

/// Whether a socket that listens at this port is listed.
pub(super) fn lists(port: u16) -> Option<bool> {
    let end = format!(":{port:04X}");
    let listens = |row: &Vec<String>| {
        let at = |place: usize| row.get(place).map_or("", String::as_str);
        at(3) == "0A" && at(1).ends_with(&end)
    };
    Some(rows("tcp")?.iter().skip(1).any(listens))
}

/// The number of the network namespace.
pub(super) fn namespace() -> Option<u64> {
    let namespace = fs_err::metadata("/proc/self/ns/net").ok()?;
    Some(namespace.ino())
}
