//! How long a file may be.

use anyhow::Result;

use crate::tracked::{TextFile, text_files};

const LOOK_AGAIN: usize = 400;
const TOO_LONG: usize = 800;

/// Endings of files that people write and read line by line.
const SOURCES: [&str; 6] = ["rs", "py", "ts", "tsx", "sh", "css"];

/// Written by a program, and read by none but programs: the console's types of the API.
const GENERATED: [&str; 1] = ["console/src/api/schema.d.ts"];

#[test]
fn no_source_file_is_over_800_lines() -> Result<()> {
    let mut findings = Vec::new();
    let is_written = |file: &TextFile| {
        let is_generated = GENERATED.iter().any(|path| file.path.ends_with(path));
        file.is_a(&SOURCES) && !is_generated
    };
    for file in text_files()?.iter().filter(|file| is_written(file)) {
        let lines = file.text.lines().count();
        let finding = format!("{} has {lines} lines", file.path.display());
        if lines > TOO_LONG {
            findings.push(finding);
        } else if lines > LOOK_AGAIN {
            println!("{finding}: look whether it is two files");
        }
    }
    crate::none("files that are too long", &findings)
}

#[test]
fn the_architecture_is_read_in_one_sitting() -> Result<()> {
    let findings: Vec<_> = text_files()?
        .iter()
        .filter(|file| file.path.ends_with("ARCHITECTURE.md"))
        .filter(|file| file.text.lines().count() > 150)
        .map(|file| format!("{} is over 150 lines", file.path.display()))
        .collect();
    crate::none("documents that are too long", &findings)
}
