//! Where `unsafe` may stand: in `crates/box/src/sys`, and nowhere else. Everywhere but in that
//! crate the compiler forbids it as well; this check keeps it from spreading within the crate.

use anyhow::Result;

use crate::tracked::text_files;

const HOMES: [&str; 3] = [
    "crates/box/src/sys.rs",
    "crates/box/src/sys",
    // Plays the agent in tests of the box: takes over descriptors by number.
    "crates/box/examples/stand_in_agent.rs",
];

fn holds_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    // A word with a hyphen, as in policies of content, is none of Rust's.
    code.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-'))
        .any(|word| word == "unsafe")
}

#[test]
fn unsafe_code_stands_only_in_the_sys_module_of_the_box() -> Result<()> {
    let mut findings = Vec::new();
    let me = file!().rsplit('/').next().unwrap_or_default();
    for file in text_files()?.iter().filter(|file| file.is_a(&["rs"])) {
        if HOMES.iter().any(|home| file.is_below(home)) || file.path.ends_with(me) {
            continue;
        }
        findings.extend(
            file.numbered()
                .filter(|(_, line)| holds_unsafe(line))
                .map(|(number, line)| format!("{}:{number}: {}", file.path.display(), line.trim())),
        );
    }
    crate::none(
        "lines with `unsafe` outside of crates/box/src/sys",
        &findings,
    )
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() -> Result<()> {
    let findings: Vec<_> = text_files()?
        .iter()
        .filter(|file| file.is_below("crates") && file.path.ends_with("Cargo.toml"))
        // The home of `unsafe` has its own list, in which it is denied and not forbidden.
        .filter(|file| !file.is_below("crates/box"))
        .filter(|file| !file.text.contains("[lints]\nworkspace = true"))
        .map(|file| file.path.display().to_string())
        .collect();
    crate::none("crates without the lints of the workspace", &findings)
}
