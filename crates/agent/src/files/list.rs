//! `GET /v1/list`: what is in the workspace, in order, in bounded memory.

use std::collections::BinaryHeap;

use glovebox_protocol::file::{FileKind, FileName, Listing};

use super::workspace::describe;
use super::{Entry, Workspace};

/// Most entries of one answer.
const MAX_ENTRIES: usize = 10_000;

/// Most bytes of folder names that may wait to be looked into. A program that makes more has its
/// listing cut, and the agent keeps its memory.
const MAX_WAITING_BYTES: usize = 4 * 1024 * 1024;

/// Lists the names after `after`, the first 10 000 of them.
pub(crate) fn list(workspace: &Workspace, after: Option<&FileName>) -> Listing {
    // The greatest of the kept names is on top, to be pushed out by a smaller one.
    let mut kept = BinaryHeap::with_capacity(MAX_ENTRIES + 1);
    let mut truncated = false;
    let complete = walk(
        workspace,
        |_| true,
        |entry| {
            if after.is_none_or(|after| entry.name > *after) {
                kept.push(entry.name);
                if kept.len() > MAX_ENTRIES {
                    kept.pop();
                    truncated = true;
                }
            }
        },
    );
    let entries = kept
        .into_sorted_vec()
        .into_iter()
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

/// Looks at everything below the workspace, in no order. `enter` says whether to look into a
/// folder. Returns whether nothing had to be left out for want of memory.
pub(crate) fn walk(
    workspace: &Workspace,
    mut enter: impl FnMut(&FileName) -> bool,
    mut visit: impl FnMut(Entry),
) -> bool {
    let mut complete = true;
    let mut waiting: Vec<FileName> = Vec::new();
    let mut waiting_bytes = 0;
    let mut folder = None;
    loop {
        // A folder that cannot be opened has no entries that anyone could fetch.
        if let Ok(entries) = workspace.entries(folder.as_ref()) {
            for entry in entries {
                if entry.kind == FileKind::Folder && enter(&entry.name) {
                    let bytes = entry.name.as_bytes().len();
                    if waiting_bytes + bytes > MAX_WAITING_BYTES {
                        complete = false;
                    } else {
                        waiting_bytes += bytes;
                        waiting.push(entry.name.clone());
                    }
                }
                visit(entry);
            }
        }
        folder = waiting.pop();
        match &folder {
            Some(folder) => waiting_bytes -= folder.as_bytes().len(),
            None => return complete,
        }
    }
}
