//! `GET /v1/list`: what is in the workspace, in order, in bounded memory.

use std::collections::BTreeMap;

use glovebox_protocol::file::{FileKind, FileName, Listing};

use super::workspace::describe;
use super::{Entry, Workspace};

/// Most entries of one answer.
const MAX_ENTRIES: usize = 10_000;

/// Most bytes of names that are kept at once. Where names are very long an answer has fewer
/// entries than it might.
const MAX_NAME_BYTES: usize = 2 * 1024 * 1024;

/// Most steps of one walk: a name that is read is one, and a folder that is opened one for each
/// part of its name. A workspace as large as any takes fewer; a program that moves folders on
/// ahead of the walk shows it as many as it likes.
const MAX_STEPS: usize = 4_000_000;

/// Lists the names after `after`, the first 10 000 of them.
pub(crate) fn list(workspace: &Workspace, after: Option<&FileName>) -> Listing {
    let mut kept = FirstNames::new(MAX_ENTRIES);
    let mut truncated = false;
    let complete = walk(
        workspace,
        |_| true,
        |sight| match sight {
            Sight::Entry(entry) if after.is_none_or(|after| entry.name > *after) => {
                truncated |= kept.insert(entry.name, ()).is_some();
            }
            // A folder that cannot be looked into is listed itself.
            Sight::Entry(_) | Sight::Closed(_) => {}
        },
    );
    let entries = kept
        .names
        .into_keys()
        // What has gone since it was seen is not there.
        .filter_map(|name| {
            let stat = workspace.stat(&name).ok()?;
            Some(describe(name, &stat))
        })
        .collect();
    Listing {
        entries,
        truncated: truncated || !complete,
    }
}

/// The first of many names, so that the answer is the same in whatever order they come.
pub(crate) struct FirstNames<T> {
    pub(crate) names: BTreeMap<FileName, T>,
    bytes: usize,
    limit: usize,
}

impl<T> FirstNames<T> {
    pub(crate) const fn new(limit: usize) -> Self {
        Self {
            names: BTreeMap::new(),
            bytes: 0,
            limit,
        }
    }

    /// Takes a name in, and gives back one that there is no room for any more.
    pub(crate) fn insert(&mut self, name: FileName, value: T) -> Option<FileName> {
        self.bytes += name.as_bytes().len();
        self.names.insert(name, value);
        if self.names.len() <= self.limit && self.bytes <= MAX_NAME_BYTES {
            return None;
        }
        let (last, _) = self.names.pop_last()?;
        self.bytes -= last.as_bytes().len();
        Some(last)
    }
}

/// What a walk comes upon.
pub(crate) enum Sight {
    /// Something with a name.
    Entry(Entry),
    /// A folder that cannot be looked into. It came before as an entry.
    Closed(FileName),
}

/// Looks at everything below the workspace, in no order. `enter` says whether to look into a
/// folder. Returns whether nothing had to be left out for want of memory or of time.
pub(crate) fn walk(
    workspace: &Workspace,
    enter: impl FnMut(&FileName) -> bool,
    visit: impl FnMut(Sight),
) -> bool {
    walk_within(MAX_STEPS, workspace, enter, visit)
}

/// As [`walk`], in at most so many steps.
fn walk_within(
    mut steps: usize,
    workspace: &Workspace,
    mut enter: impl FnMut(&FileName) -> bool,
    mut visit: impl FnMut(Sight),
) -> bool {
    let mut complete = true;
    let mut waiting: Vec<FileName> = Vec::new();
    let mut waiting_bytes = 0;
    let mut folder = None;
    loop {
        let entries = workspace.entries(folder.as_ref());
        if entries.is_err()
            && let Some(folder) = folder.clone()
        {
            visit(Sight::Closed(folder));
        }
        if let Ok(entries) = entries {
            for entry in entries {
                let Some(left) = steps.checked_sub(1) else {
                    return false;
                };
                steps = left;
                if entry.kind == FileKind::Folder && enter(&entry.name) {
                    let bytes = entry.name.as_bytes().len();
                    if waiting_bytes + bytes > MAX_NAME_BYTES {
                        complete = false;
                    } else {
                        waiting_bytes += bytes;
                        waiting.push(entry.name.clone());
                    }
                }
                visit(Sight::Entry(entry));
            }
        }
        folder = waiting.pop();
        let Some(folder) = &folder else {
            return complete;
        };
        waiting_bytes -= folder.as_bytes().len();
        let Some(left) = steps.checked_sub(parts(folder)) else {
            return false;
        };
        steps = left;
    }
}

fn parts(folder: &FileName) -> usize {
    folder.as_bytes().split(|byte| *byte == b'/').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_that_finds_ever_more_ends_after_its_steps_and_says_that_it_is_not_all() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(folder.path()).unwrap();
        let grow = |below: &std::path::Path| {
            for name in ["a", "b"] {
                fs_err::create_dir(below.join(name)).unwrap();
            }
        };
        grow(folder.path());
        let mut seen = 0;
        let complete = walk_within(
            1000,
            &workspace,
            |_| true,
            |sight| {
                // Each folder has folders by the time that it is looked into.
                if let Sight::Entry(entry) = sight {
                    seen += 1;
                    grow(&folder.path().join(entry.name.to_string()));
                }
            },
        );
        assert!(!complete);
        assert!((10..1000).contains(&seen), "{seen}");
    }

    #[test]
    fn names_and_the_parts_of_folders_are_steps() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(folder.path()).unwrap();
        fs_err::create_dir_all(folder.path().join("one/two")).unwrap();
        fs_err::write(folder.path().join("one/two/file"), "").unwrap();
        // Three names, one folder of one part, and one of two.
        let is_complete = |steps| walk_within(steps, &workspace, |_| true, |_| {});
        assert!(is_complete(6));
        assert!((0..6).all(|steps| !is_complete(steps)));
    }
}
