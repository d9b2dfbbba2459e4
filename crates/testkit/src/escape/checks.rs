//! The table of checks in `docs/security/checks.md`, and whether it tells the truth.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::expectations;
use super::report::{Red, demand};

/// Every check of the groups that exist, by group letter and number.
const GROUPS: [(char, u32); 7] = [
    ('K', 25),
    ('F', 15),
    ('N', 11),
    ('R', 24),
    ('S', 11),
    ('A', 22),
    ('Z', 9),
];

/// Checks that need parts which are not built yet.
const LATER: [&str; 6] = ["R23", "S6", "S8", "A16", "A17", "A20"];

/// Checks of which a half needs such parts.
const HALF_LATER: [&str; 2] = ["N5", "N6"];

/// One row of the table.
#[derive(Debug, Clone)]
pub struct Check {
    /// Such as `K7`.
    pub id: String,
    /// `holds`, `later` or `not promised`, and after a colon why.
    pub status: String,
    /// The tests that show it, as `path::name`.
    pub tests: Vec<String>,
}

/// Reads the table.
///
/// # Errors
/// When the document cannot be read.
pub fn read(repository: &Path) -> Result<Vec<Check>> {
    let text = fs_err::read_to_string(repository.join("docs/security/checks.md"))?;
    Ok(text.lines().filter_map(row).collect())
}

fn row(line: &str) -> Option<Check> {
    let cells: Vec<_> = line.split('|').map(str::trim).collect();
    let [_, id, _, status, tests, _] = cells[..] else {
        return None;
    };
    let is_id = id.starts_with(|c: char| GROUPS.iter().any(|(group, _)| *group == c))
        && id[1..].bytes().all(|byte| byte.is_ascii_digit())
        && id.len() > 1;
    is_id.then(|| Check {
        id: id.into(),
        status: status.into(),
        tests: tests
            .split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect(),
    })
}

/// Holds the table against the list of checks, the tests in the source, and the batch.
///
/// # Errors
/// When a document or a source file cannot be read.
pub fn judge(repository: &Path) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let table = read(repository)?;
    let mut rows: BTreeMap<&str, u32> = BTreeMap::new();
    for check in &table {
        *rows.entry(&check.id).or_default() += 1;
    }
    for (group, last) in GROUPS {
        for number in 1..=last {
            let id = format!("{group}{number}");
            let count = rows.remove(id.as_str()).unwrap_or(0);
            demand(&mut reds, &id, count == 1, || {
                format!("stands {count} times in the table")
            });
        }
    }
    for id in rows.keys() {
        reds.push(Red::new(*id, "is in the table and no check"));
    }
    for check in &table {
        status(&mut reds, check);
        for test in &check.tests {
            if let Err(error) = exists(repository, test) {
                reds.push(Red::new(&check.id, format!("{error:#}")));
            }
        }
    }
    batch_is_in_the_table(&mut reds, &table);
    Ok(reds)
}

fn status(reds: &mut Vec<Red>, check: &Check) {
    let id = check.id.as_str();
    let (word, why) = check.status.split_once(':').unwrap_or((&check.status, ""));
    demand(
        reds,
        id,
        ["holds", "later", "not promised"].contains(&word),
        || format!("has the status `{word}`"),
    );
    demand(reds, id, (word == "later") == LATER.contains(&id), || {
        format!("has the status `{word}`, and later are {LATER:?}")
    });
    demand(reds, id, word == "holds" || !why.trim().is_empty(), || {
        format!("is `{word}` and does not say why")
    });
    demand(
        reds,
        id,
        !HALF_LATER.contains(&id) || why.contains("later"),
        || "does not say that a half of it comes later".into(),
    );
    demand(
        reds,
        id,
        (word == "holds") != check.tests.is_empty(),
        || format!("is `{word}` with {} tests", check.tests.len()),
    );
}

/// Looks the test up in the source.
fn exists(repository: &Path, test: &str) -> Result<()> {
    let (path, name) = test
        .split_once("::")
        .with_context(|| format!("`{test}` is no test: it has to be `path::name`"))?;
    let text = fs_err::read_to_string(repository.join(path))
        .with_context(|| format!("looking for the test `{name}`"))?;
    let found = text.match_indices(&format!("fn {name}(")).any(|(at, _)| {
        // A function of that name that is no test would not run.
        let above = text[..at].rfind('\n').map_or("", |end| &text[..end]);
        above
            .lines()
            .rev()
            .take_while(|line| line.trim_start().starts_with("#["))
            .any(|line| line.contains("test]") || line.contains("test("))
    });
    anyhow::ensure!(found, "there is no test `{name}` in {path}");
    Ok(())
}

/// What the batch looks at has to be said to hold.
fn batch_is_in_the_table(reds: &mut Vec<Red>, table: &[Check]) {
    for expectation in expectations::of_checks(&[]) {
        let id = expectation.check();
        let holds = table
            .iter()
            .any(|check| check.id == id && check.status.starts_with("holds"));
        if !holds && !reds.iter().any(|red| red.check == id) {
            reds.push(Red::new(id, "is checked by the batch and not said to hold"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read() {
        let line = "| K7 | no mounts | holds | `a/b.rs::it_holds`, `c.rs::so_does_this` |";
        let check = row(line).unwrap();
        assert_eq!(check.id, "K7");
        assert_eq!(check.tests, ["a/b.rs::it_holds", "c.rs::so_does_this"]);
        assert!(row("| id | what | status | where tested |").is_none());
        assert!(row("|---|---|---|---|").is_none());
    }
}
