//! `docs/benchmarks.md`: the part between two marks is written here, the rest by people.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::figures::{Figure, TITLES};
use crate::machine::Machine;

const BEGIN: &str = "<!-- Written by `make bench` from here on. -->";
const END: &str = "<!-- Written by people again. -->";

/// Stands where people are to write why a goal is missed; what they write is kept by the next run
/// that misses it too.
const NO_REASON: &str = "(why is not known yet)";

/// What each goal is about, in the order of the document.
const GOALS: [(&str, &str); 14] = [
    ("G1", "From asking to the first result, libraries ready"),
    ("G2", "From nothing, without template or pool"),
    ("G3", "A small execute in a kernel that is there"),
    ("G4", "Memory of an idle sandbox"),
    ("G5", "Made, used and removed, sustained"),
    ("G6", "Files in and out"),
    ("G7", "Output"),
    ("G8", "Docker, beside what it takes by itself"),
    ("G9", "A thousand at once"),
    ("G10", "Death, lack of memory, time limit: until it is told"),
    ("API", "The server's API"),
    ("CHAT", "Replies of chat, beyond what the model takes"),
    ("PREVIEW", "From opening a file to what is seen of it"),
    (
        "ARTIFACT",
        "Files that code has saved, stored and had again",
    ),
];

/// When and of what the figures are.
#[derive(Debug)]
pub(crate) struct Origin {
    /// The day.
    pub(crate) date: String,
    /// The commit that was measured.
    pub(crate) commit: String,
}

/// Writes machine and figures between the marks of a document.
///
/// # Errors
/// When it cannot be read or written, or the marks are not in it.
pub(crate) fn write(
    path: &Path,
    origin: &Origin,
    machine: &Machine,
    figures: &[Figure],
) -> Result<()> {
    let old = fs_err::read_to_string(path)?;
    let new = between(&old, &part(origin, machine, figures, &old)).with_context(|| {
        format!(
            "{} has lost its marks `{BEGIN}` and `{END}`",
            path.display()
        )
    })?;
    fs_err::write(path, new)?;
    Ok(())
}

fn between(old: &str, part: &str) -> Option<String> {
    let (before, rest) = old.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{part}\n{END}{after}"))
}

fn part(origin: &Origin, machine: &Machine, figures: &[Figure], old: &str) -> String {
    let mut text = String::from("## Where these were measured\n\n");
    let peers: BTreeSet<_> = figures.iter().filter_map(Figure::peer).collect();
    let peers = peers.into_iter().collect::<Vec<_>>().join("; ");
    let commit = format!("`{}`", origin.commit);
    let mut rows = vec![("day", &*origin.date), ("commit", &*commit)];
    rows.extend(machine.rows());
    rows.push(("measured beside", &peers));
    text.push_str("| | |\n|---|---|\n");
    for (title, what) in rows {
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "| {title} | {what} |");
    }
    for (goal, about) in GOALS {
        let of_goal: Vec<_> = figures.iter().filter(|one| one.goal() == goal).collect();
        if of_goal.is_empty() {
            continue;
        }
        let _ = writeln!(text, "\n## {goal}: {about}\n");
        let _ = writeln!(text, "| {} |", TITLES.join(" | "));
        let _ = writeln!(text, "|---|---:|---:|---|---:|---:|---|");
        for figure in &of_goal {
            let mut cells = figure.cells();
            cells[0] = format!("`{}`", cells[0]);
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        }
        let mut gap = "\n";
        for figure in of_goal.iter().filter(|one| one.is_met() == Some(false)) {
            let begin = missed(figure);
            let reason = reason(old, &begin).unwrap_or(NO_REASON);
            let _ = writeln!(text, "{gap}{begin}{reason}");
            gap = "";
        }
    }
    text
}

/// What stands before the reason why a figure does not reach its goal.
fn missed(figure: &Figure) -> String {
    format!("- `{}` misses its goal: ", figure.name())
}

/// The reason that people gave for it in the document before.
fn reason<'a>(old: &'a str, begin: &str) -> Option<&'a str> {
    old.lines().find_map(|line| line.strip_prefix(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_is_written() {
        let old = format!("# Above\n\n{BEGIN}\n\nold\n{END}\n\nbelow\n");
        let new = between(&old, "new\n").unwrap();
        assert_eq!(
            new,
            format!("# Above\n\n{BEGIN}\n\nnew\n\n{END}\n\nbelow\n")
        );
        assert_eq!(between(&new, "new\n").as_deref(), Some(&*new));
        assert_eq!(between("no marks", "new"), None);
    }

    #[test]
    fn every_goal_has_a_table_of_its_figures() {
        let origin = Origin {
            date: "2026-01-01".into(),
            commit: "abc".into(),
        };
        let figures = [
            Figure::new("G3", "a_ms", 0.25, 9)
                .beside("peer 1", 1.0)
                .at_most(0.5),
            Figure::new("G5", "b_per_s", 90.0, 9).at_least(100.0),
        ];
        let text = part(&origin, &Machine::look(), &figures, "");
        assert!(text.contains("| commit | `abc` |"), "{text}");
        assert!(text.contains("| measured beside | peer 1 |"), "{text}");
        let row = "| `G3.a_ms` | 0.250 | ≤ 0.500 | yes | 4.00× | 9 | 1.00 (peer 1) |";
        assert!(text.contains(row), "{text}");
        assert!(text.contains("## G5: Made"), "{text}");
        assert!(!text.contains("## G1"), "{text}");
        let missed = "- `G5.b_per_s` misses its goal: ";
        assert!(text.contains(&format!("{missed}{NO_REASON}\n")), "{text}");
        assert!(!text.contains("`G3.a_ms` misses"), "{text}");
        // What people wrote there stays as long as it is missed.
        let old = text.replace(NO_REASON, "one core only.");
        let text = part(&origin, &Machine::look(), &figures, &old);
        assert!(
            text.contains(&format!("{missed}one core only.\n")),
            "{text}"
        );
    }
}
