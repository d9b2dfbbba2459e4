//! Collecting: which files of the workspace may leave, and why the others stay.
//!
//! The answer is the same for the same files, in whatever order they lie, and the work for it is
//! bounded whatever a program made: in names kept, in bytes read, in answers given. Nothing
//! leaves here; the caller fetches each file and compares it with what was found.

mod scan;

use std::collections::HashMap;

use glovebox_protocol::artifact::{Artifact, LeftOut, LeftOutReason, Sweep, Swept};
use glovebox_protocol::content::FileType;
use glovebox_protocol::event::mebibytes;
use glovebox_protocol::file::{FileKind, FileName, escape_for_display};
use glovebox_protocol::sign::BodyDigest;

use self::scan::{Found, scan};
use crate::error::ApiError;
use crate::files::{Entry, FirstNames, SPOOL_PREFIX, Sight, Workspace, walk};

/// Files that are looked into at most: the first ones by name.
const MAX_CANDIDATES: usize = 10_000;

/// Files that are listed as left out at most: the first ones by name.
const MAX_LEFT_OUT: usize = 1000;

/// How many times the bytes that may leave are read at most, to find out which may.
const READ_FACTOR: u64 = 4;

/// Says what is wrong with a request.
pub(crate) fn check(request: &Sweep) -> Result<(), ApiError> {
    match request
        .types
        .iter()
        .find(|name| FileType::of(name).is_none())
    {
        None => Ok(()),
        Some(name) => Err(ApiError::invalid(format!(
            "files of type `{}` cannot be collected: nothing here can tell them by their content",
            escape_for_display(name.as_bytes())
        ))),
    }
}

/// Decides on every file of the workspace. `inputs` are the files that were pushed in.
pub(crate) fn sweep(
    workspace: &Workspace,
    request: &Sweep,
    inputs: &HashMap<FileName, BodyDigest>,
) -> Swept {
    let mut sorting = Sorting {
        request,
        artifacts: Vec::new(),
        bytes: 0,
        may_read: request.max_bytes.saturating_mul(READ_FACTOR),
        left_out: FirstNames::new(MAX_LEFT_OUT),
        more_left_out: 0,
    };
    for (name, seen) in sorting.candidates(workspace, inputs) {
        let input = inputs.get(&name).copied();
        match sorting.look_into(workspace, &name, seen, input) {
            Ok((file_type, found)) => {
                sorting.bytes += found.bytes;
                sorting.artifacts.push(Artifact {
                    name,
                    bytes: found.bytes,
                    sha256: found.sha256,
                    media_type: file_type.media_type().into(),
                });
            }
            Err(reason) => sorting.leave_out(name, reason),
        }
    }
    let left_out = std::mem::take(&mut sorting.left_out.names);
    Swept {
        left_out: left_out
            .into_iter()
            .map(|(name, reason)| LeftOut {
                message: sorting.message(&name, reason),
                name,
                reason,
            })
            .collect(),
        artifacts: sorting.artifacts,
        more_left_out: sorting.more_left_out,
    }
}

/// What a file is by its name, or why it stays if nothing else keeps it.
type Seen = Result<FileType, LeftOutReason>;

struct Sorting<'a> {
    request: &'a Sweep,
    artifacts: Vec<Artifact>,
    /// Bytes of the artifacts so far.
    bytes: u64,
    /// Bytes that may still be read.
    may_read: u64,
    left_out: FirstNames<LeftOutReason>,
    more_left_out: u64,
}

impl Sorting<'_> {
    /// The files that can be told from outside to be worth a look, in order. The others are left
    /// out at once.
    fn candidates(
        &mut self,
        workspace: &Workspace,
        inputs: &HashMap<FileName, BodyDigest>,
    ) -> impl Iterator<Item = (FileName, Seen)> + use<> {
        // A program may have closed its own working folder; what it saved is wanted all the same.
        workspace.open_to_owner();
        let mut candidates = FirstNames::new(MAX_CANDIDATES);
        let complete = walk(
            workspace,
            |folder| !folder.is_hidden(),
            |sight| {
                let entry = match sight {
                    Sight::Entry(entry) => entry,
                    Sight::Closed(folder) => {
                        return self.leave_out(folder, LeftOutReason::Unreadable);
                    }
                };
                let is_input = entry.kind == FileKind::File && inputs.contains_key(&entry.name);
                let seen = match self.seen_from_outside(&entry) {
                    Ok(None) => return,
                    Ok(Some(file_type)) => Ok(file_type),
                    // Of what was pushed in it is worth knowing whether it changed.
                    Err(reason) if is_input => Err(reason),
                    Err(reason) => return self.leave_out(entry.name, reason),
                };
                if let Some(name) = candidates.insert(entry.name, seen) {
                    self.leave_out(name, LeftOutReason::TooManyFiles);
                }
            },
        );
        if !complete {
            // There are folders that were not looked into; with how many files nobody knows.
            self.more_left_out += 1;
        }
        candidates.names.into_iter()
    }

    /// What an entry seems to be; nothing for a folder, whose files speak for themselves.
    fn seen_from_outside(&self, entry: &Entry) -> Result<Option<FileType>, LeftOutReason> {
        let name = &entry.name;
        if name.as_bytes().starts_with(SPOOL_PREFIX.as_bytes()) {
            return Ok(None);
        }
        if name.is_hidden() {
            return Err(LeftOutReason::Hidden);
        }
        match entry.kind {
            FileKind::Folder => return Ok(None),
            FileKind::Symlink => return Err(LeftOutReason::Symlink),
            FileKind::Special => return Err(LeftOutReason::Special),
            FileKind::File => {}
        }
        let ending = ending(name).ok_or(LeftOutReason::TypeNotAllowed)?;
        let allowed = self.request.types.contains(&ending);
        let file_type = FileType::of(&ending).filter(|_| allowed);
        file_type.map(Some).ok_or(LeftOutReason::TypeNotAllowed)
    }

    /// Whether a file may leave, by what is in it.
    fn look_into(
        &mut self,
        workspace: &Workspace,
        name: &FileName,
        seen: Seen,
        input: Option<BodyDigest>,
    ) -> Result<(FileType, Found), LeftOutReason> {
        let (file, stat) = scan::open(workspace, name)?;
        let bytes = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
        let fault = if let Err(reason) = seen {
            Some(reason)
        } else if self.artifacts.len() >= self.request.max_files as usize {
            Some(LeftOutReason::TooManyFiles)
        } else if self.bytes.saturating_add(bytes) > self.request.max_bytes {
            Some(LeftOutReason::TooManyBytes)
        } else {
            None
        };
        if let Some(reason) = fault
            && input.is_none()
        {
            return Err(reason);
        }
        if bytes > self.may_read {
            return Err(LeftOutReason::TooManyBytes);
        }
        self.may_read -= bytes;
        let found = scan(&file, &stat, seen.ok(), input.is_some())?;
        if input == Some(found.sha256) {
            return Err(LeftOutReason::UnchangedInput);
        }
        match (fault, seen) {
            (Some(reason), _) | (None, Err(reason)) => Err(reason),
            (None, Ok(_)) if !found.agrees => Err(LeftOutReason::ContentMismatch),
            (None, Ok(file_type)) => Ok((file_type, found)),
        }
    }

    fn leave_out(&mut self, name: FileName, reason: LeftOutReason) {
        if self.left_out.insert(name, reason).is_some() {
            self.more_left_out += 1;
        }
    }

    /// A reason in words, with the limit that was met.
    fn message(&self, name: &FileName, reason: LeftOutReason) -> String {
        let ending = ending(name).map(|ending| escape_for_display(ending.as_bytes()));
        match (reason, ending.as_deref()) {
            (LeftOutReason::TypeNotAllowed, Some(ending)) => {
                format!("files ending in .{ending} are not collected")
            }
            (LeftOutReason::TypeNotAllowed, None) => {
                "files without an ending are not collected".into()
            }
            (
                LeftOutReason::ContentMismatch,
                Some("csv" | "tsv" | "txt" | "md" | "json" | "html"),
            ) => "it is no text in UTF-8 or UTF-16".into(),
            (LeftOutReason::ContentMismatch, ending) => {
                format!(
                    "its content is not that of a .{} file",
                    ending.unwrap_or_default()
                )
            }
            (LeftOutReason::Symlink, _) => "it is a link; links are not followed".into(),
            (LeftOutReason::HardLink, _) => "it has more than one name".into(),
            (LeftOutReason::Special, _) => "it is no regular file".into(),
            (LeftOutReason::Hidden, _) => "it is hidden: its name begins with a dot".into(),
            (LeftOutReason::UnchangedInput, _) => "it was pushed in and did not change".into(),
            (LeftOutReason::TooManyFiles, _) => {
                format!(
                    "a collection takes at most {} files",
                    self.request.max_files
                )
            }
            (LeftOutReason::TooManyBytes, _) => {
                format!(
                    "a collection takes at most {}",
                    mebibytes(self.request.max_bytes)
                )
            }
            (LeftOutReason::Unreadable, _) => "it could not be read".into(),
            (LeftOutReason::Changed, _) => "it changed while it was read".into(),
        }
    }
}

/// The ending of a name, lowercase, without the dot. Only the ending has to be text.
fn ending(name: &FileName) -> Option<String> {
    let base = name.base();
    let dot = base.iter().rposition(|byte| *byte == b'.')?;
    let ending = std::str::from_utf8(&base[dot + 1..]).ok()?;
    (dot > 0 && !ending.is_empty()).then(|| ending.to_ascii_lowercase())
}
