//! Ranges of subordinate ids: reading `/etc/subuid` and `/etc/subgid`.

use std::path::PathBuf;

/// Consecutive ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    /// The first.
    pub(crate) start: u32,
    /// How many.
    pub(crate) count: u32,
}

impl Range {
    /// Whether the two have an id in common.
    #[must_use]
    pub(crate) const fn overlaps(self, other: Self) -> bool {
        (self.start as u64) < other.start as u64 + other.count as u64
            && (other.start as u64) < self.start as u64 + self.count as u64
    }
}

/// The files with ranges could not be used.
#[derive(Debug, thiserror::Error)]
#[error("reading {}", path.display())]
pub(crate) struct SubordinateError {
    path: PathBuf,
    #[source]
    source: std::io::Error,
}

/// Every range in a file of subordinate ids, with its owner's name or number.
pub(crate) fn parse(text: &str) -> impl Iterator<Item = (&str, Range)> {
    text.lines().filter_map(|line| {
        let mut fields = line.trim().split(':');
        let owner = fields.next().filter(|owner| !owner.is_empty())?;
        let start = fields.next()?.parse().ok()?;
        let count = fields.next()?.parse().ok()?;
        Some((owner, Range { start, count }))
    })
}

/// The largest range of a user in a file of subordinate ids.
pub(crate) fn largest(text: &str, uid: u32, name: Option<&str>) -> Option<Range> {
    let number = uid.to_string();
    parse(text)
        .filter(|(owner, _)| *owner == number || Some(*owner) == name)
        .map(|(_, range)| range)
        .filter(|range| range.count > 0 && range.start > 0)
        .max_by_key(|range| range.count)
}

/// A user's name in a file of passwords.
pub(crate) fn name_of(passwd: &str, uid: u32) -> Option<&str> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then_some(name)
    })
}

/// The ranges of the user `uid`: one for user ids, one for group ids. `None` when either is
/// missing.
///
/// # Errors
/// When a file exists and cannot be read.
pub(crate) fn of_user(uid: u32) -> Result<Option<(Range, Range)>, SubordinateError> {
    let passwd = read("/etc/passwd")?;
    let name = name_of(&passwd, uid);
    let users = read("/etc/subuid")?;
    let groups = read("/etc/subgid")?;
    Ok(largest(&users, uid, name).zip(largest(&groups, uid, name)))
}

/// The first entry of the host's files that has an id in common with `range`.
///
/// # Errors
/// When a file exists and cannot be read.
pub(crate) fn overlap(range: Range) -> Result<Option<String>, SubordinateError> {
    for path in ["/etc/subuid", "/etc/subgid"] {
        let text = read(path)?;
        let found = parse(&text).find(|(_, taken)| taken.overlaps(range));
        if let Some((owner, taken)) = found {
            return Ok(Some(format!(
                "{path} gives {} to {} to `{owner}`",
                taken.start,
                u64::from(taken.start) + u64::from(taken.count) - 1
            )));
        }
    }
    Ok(None)
}

fn read(path: &str) -> Result<String, SubordinateError> {
    match fs_err::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(source) => Err(SubordinateError {
            path: path.into(),
            source,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUBUID: &str = "anna:100000:65536\n\n1001:165536:1000\nbroken:line\n1001:900000:70000\n";

    #[test]
    fn a_user_gets_the_largest_range_under_name_or_number() {
        let anna = Range {
            start: 100_000,
            count: 65_536,
        };
        assert_eq!(largest(SUBUID, 1000, Some("anna")), Some(anna));
        assert_eq!(
            largest(SUBUID, 1001, None),
            Some(Range {
                start: 900_000,
                count: 70_000
            })
        );
        assert_eq!(largest(SUBUID, 1002, Some("ann")), None);
        assert_eq!(largest("root:0:10", 0, Some("root")), None);
    }

    #[test]
    fn overlap_is_seen_at_the_edges() {
        let range = |start, count| Range { start, count };
        assert!(range(0, 10).overlaps(range(9, 1)));
        assert!(!range(0, 10).overlaps(range(10, 1)));
        assert!(range(u32::MAX, 1).overlaps(range(4_000_000_000, u32::MAX)));
    }

    #[test]
    fn a_name_is_found_by_its_number() {
        let passwd = "root:x:0:0::/root:/bin/sh\nanna:x:1000:1000::/home/anna:/bin/sh\n";
        assert_eq!(name_of(passwd, 1000), Some("anna"));
        assert_eq!(name_of(passwd, 100), None);
    }
}
