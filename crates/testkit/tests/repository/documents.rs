//! Whether the documents name what is there: paths in backticks and in examples, and links with
//! their headings.

use std::path::{Path, PathBuf};

use anyhow::Result;
use glovebox_testkit::repository;

use crate::tracked::{TextFile, text_files};

/// Folders at the root. A word that begins with one of them is a path.
const FOLDERS: [&str; 14] = [
    ".cargo", ".ci", ".config", "bench", "clients", "console", "crates", "deploy", "docs", "e2e",
    "examples", "fuzz", "sandbox", "scripts",
];

/// Endings of files at the root.
const ENDINGS: [&str; 2] = [".md", ".toml"];

fn documents() -> Result<Vec<TextFile>> {
    Ok(text_files()?
        .into_iter()
        .filter(|file| file.is_a(&["md"]))
        .collect())
}

/// The path that a word of a document names, if it names one.
fn as_path(word: &str) -> Option<&str> {
    let word = word.trim_end_matches(['.', ',', ':', ';']);
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.-/".contains(c);
    if word.is_empty() || !word.chars().all(plain) {
        return None;
    }
    let is_path = match word.split_once('/') {
        Some((first, _)) => FOLDERS.contains(&first),
        None => {
            word == "Makefile"
                || ENDINGS
                    .iter()
                    .any(|end| word.len() > end.len() && word.ends_with(end))
        }
    };
    is_path.then_some(word)
}

/// Words in backticks, and every word of a fenced block, with the numbers of their lines.
fn quoted(file: &TextFile) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut fenced = false;
    for (number, line) in file.numbered() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if fenced {
            words.extend(line.split_whitespace().map(|word| (number, word)));
        } else {
            words.extend(
                line.split('`')
                    .skip(1)
                    .step_by(2)
                    .map(|word| (number, word)),
            );
        }
    }
    words
}

/// Targets of `[text](target)` and `src="target"`, with the numbers of their lines.
fn links(file: &TextFile) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (number, line) in file.numbered() {
        for (open, close) in [("](", ')'), ("src=\"", '"')] {
            let starts = line
                .match_indices(open)
                .map(|(at, _)| &line[at + open.len()..]);
            found.extend(starts.filter_map(|rest| Some((number, rest.split_once(close)?.0))));
        }
    }
    found
}

/// How a heading is addressed: lowercase, spaces as dashes, nothing but letters and digits.
fn anchor(heading: &str) -> String {
    heading
        .trim()
        .to_lowercase()
        .chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
            _ => None,
        })
        .collect()
}

fn has_heading(document: &Path, wanted: &str) -> bool {
    fs_err::read_to_string(document).is_ok_and(|text| {
        text.lines()
            .filter_map(|line| line.strip_prefix('#'))
            .any(|line| anchor(line.trim_start_matches('#')) == wanted)
    })
}

/// Where a relative link leads, or what is wrong with it.
fn follow(from: &Path, link: &str) -> Result<(), String> {
    let (path, heading) = link.split_once('#').unwrap_or((link, ""));
    let beside = from.parent().unwrap_or(Path::new(""));
    let target: PathBuf = match path {
        "" => from.to_path_buf(),
        path => beside.join(path),
    };
    let target = repository().join(target);
    if !target.exists() {
        return Err("leads nowhere".into());
    }
    if !heading.is_empty() && !has_heading(&target, heading) {
        return Err("there is no such heading".into());
    }
    Ok(())
}

#[test]
fn every_path_that_a_document_names_is_there() -> Result<()> {
    let root = repository();
    let mut findings = Vec::new();
    for file in documents()? {
        let beside = root.join(file.path.parent().unwrap_or(Path::new("")));
        for (number, word) in quoted(&file) {
            let Some(path) = as_path(word) else { continue };
            if !root.join(path).exists() && !beside.join(path).exists() {
                findings.push(format!("{}:{number}: {path}", file.path.display()));
            }
        }
    }
    crate::none("paths that are not there", &findings)
}

#[test]
fn every_link_between_documents_leads_somewhere() -> Result<()> {
    let mut findings = Vec::new();
    for file in documents()? {
        for (number, link) in links(&file) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            if let Err(what) = follow(&file.path, link) {
                findings.push(format!("{}:{number}: {link}: {what}", file.path.display()));
            }
        }
    }
    crate::none("broken links", &findings)
}
