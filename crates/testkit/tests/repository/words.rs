//! Words that do not belong into the repository: paths of somebody's machine, and addresses of
//! package registries, which come from each user's own settings.

use anyhow::Result;

use crate::tracked::{TextFile, text_files};

/// Files that other programs write.
const GENERATED: [&str; 2] = ["Cargo.lock", "package-lock.json"];

/// Put together here, or this file would find itself.
fn hosts() -> [String; 5] {
    [
        ["pypi", "org"].join("."),
        ["pythonhosted", "org"].join("."),
        ["static.crates", "io"].join("."),
        ["registry.npmjs", "org"].join("."),
        ["deb.debian", "org"].join("."),
    ]
}

fn machine_paths() -> [String; 2] {
    ["work", "root"].map(|folder| format!("/{folder}/"))
}

/// Whether the path begins in this line, and not in the middle of another path.
fn names_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        !line[..at]
            .chars()
            .next_back()
            .is_some_and(|before| before.is_alphanumeric() || "._-/}*~>)".contains(before))
    })
}

fn findings_in(file: &TextFile) -> Vec<String> {
    let mut findings = Vec::new();
    for (number, line) in file.numbered() {
        let paths = machine_paths()
            .into_iter()
            .filter(|path| names_path(line, path));
        let hosts = hosts()
            .into_iter()
            .filter(|host| line.contains(host.as_str()));
        findings.extend(
            paths
                .chain(hosts)
                .map(|word| format!("{}:{number}: {word}", file.path.display())),
        );
    }
    findings
}

#[test]
fn no_file_names_a_machine_or_a_registry() -> Result<()> {
    let findings: Vec<_> = text_files()?
        .iter()
        .filter(|file| !GENERATED.iter().any(|name| file.path.ends_with(name)))
        .flat_map(findings_in)
        .collect();
    crate::none("words that do not belong", &findings)
}
