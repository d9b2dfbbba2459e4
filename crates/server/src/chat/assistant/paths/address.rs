//! What a path of a sandbox is, and what people and models are shown in its place.

/// Folders of a sandbox, or of what models remember from elsewhere.
pub(super) const FOLDERS: [&str; 4] = ["/workspace", "/mnt/data", "/mnt/user-data", TEMPORARY];

/// The one of them that is not the working folder: every machine has it.
const TEMPORARY: &str = "/tmp";

/// What stands before a path that is written as an address.
pub(super) const SCHEMES: [&str; 3] = ["sandbox:", "file:", "attachment:"];

/// What a folder of the sandbox is called where no file is named.
pub(super) const THE_FOLDER: &str = "the working folder";

/// Longest ending of a file, in characters.
const LONGEST_ENDING: usize = 8;

/// The name at the end of a path of a sandbox; nothing where it is none.
pub(super) fn whole_path(text: &str) -> Option<String> {
    let scheme = SCHEMES.into_iter().find(|scheme| begins_with(text, scheme));
    let path = match scheme {
        // `file:///a`, `sandbox:/a`, `sandbox:a`.
        Some(scheme) => text[scheme.len()..].trim_start_matches('/'),
        None => {
            let folder = FOLDERS
                .into_iter()
                .find(|folder| begins_with(text, folder))?;
            let rest = &text[folder.len()..];
            if !rest.is_empty() && !rest.starts_with('/') {
                return None;
            }
            rest
        }
    };
    if scheme.is_some() && path.is_empty() {
        return None;
    }
    let is_folder = |path: &str| {
        let path = format!("/{}", path.trim_matches('/'));
        FOLDERS.contains(&path.as_str())
    };
    let name = path
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or_default();
    // What is said of a folder that every machine has is not said of this one.
    if scheme.is_none() && name.is_empty() && begins_with(text, TEMPORARY) {
        return None;
    }
    if name.is_empty() || scheme.is_some() && is_folder(path) {
        return Some(THE_FOLDER.into());
    }
    Some(if scheme.is_some() {
        decoded(name)
    } else {
        name.into()
    })
}

/// Whether a path is all that a text has: no command, and no pattern of several.
pub(super) fn is_plain_path(text: &str) -> bool {
    !text.contains(|c: char| "*?[]{}()<>|&;$\"'=\\\n".contains(c))
}

/// Whether an address may be the name of a file: one part, with an ending.
pub(super) fn is_file_name(address: &str) -> bool {
    let is_of_one_part = !address.contains(|c: char| "/:#?,()\"'".contains(c));
    let is_ending = |ending: &str| {
        (1..=LONGEST_ENDING).contains(&ending.len())
            && ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && ending.bytes().any(|byte| byte.is_ascii_alphabetic())
    };
    let parts = address.rsplit_once('.');
    is_of_one_part && parts.is_some_and(|(stem, ending)| !stem.is_empty() && is_ending(ending))
}

/// What code has said, with the names of files in the working folder as they are within it: in code they
/// mean the same. Nothing else is changed, or it would be other code and other output.
pub(in crate::chat::assistant) fn relative(text: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '~');
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('/') {
        let (before, path) = rest.split_at(at);
        shown.push_str(before);
        let goes_on = shown
            .chars()
            .next_back()
            .is_some_and(|c| is_part(c) || c == '/');
        let working = FOLDERS.into_iter().filter(|folder| *folder != TEMPORARY);
        let folder = working.filter(|_| !goes_on).find(|folder| {
            let after = path
                .strip_prefix(folder)
                .and_then(|after| after.chars().next());
            path.starts_with(folder) && !after.is_some_and(is_part)
        });
        let Some(folder) = folder else {
            shown.push('/');
            rest = &path[1..];
            continue;
        };
        let after = &path[folder.len()..];
        let below = after.strip_prefix('/');
        match below.filter(|below| below.starts_with(is_part)) {
            Some(below) => rest = below,
            None => {
                shown.push('.');
                rest = after;
            }
        }
    }
    shown.push_str(rest);
    shown
}

pub(super) fn begins_with(text: &str, start: &str) -> bool {
    let part = text.as_bytes().get(..start.len());
    part.is_some_and(|part| part.eq_ignore_ascii_case(start.as_bytes()))
}

/// An address with its percent signs read.
pub(super) fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte.filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}
