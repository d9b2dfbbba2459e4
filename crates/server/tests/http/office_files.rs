//! Public files of other people's programs, pinned by their hashes, through the previewer: each ends
//! in a preview or in a clear line, and those of the second kind stand in a list that is committed.

use std::path::PathBuf;
use std::process::Command;

use glovebox_testkit::repository;
use serde::Deserialize;

use crate::previewed::Previewed;

#[derive(Deserialize)]
struct Listed {
    title: String,
    path: PathBuf,
}

/// Whether all files are wanted, and not only those of each change.
#[expect(
    clippy::disallowed_methods,
    reason = "a test has no other way to be told"
)]
fn is_soak() -> bool {
    std::env::var_os("GLOVEBOX_SOAK").is_some()
}

/// Where fetched files are kept between runs.
#[expect(
    clippy::disallowed_methods,
    reason = "a test has no other way to be told"
)]
fn kept() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache");
    cache.unwrap_or_else(home).join("glovebox/office-files")
}

fn files() -> Vec<Listed> {
    let mut command = Command::new(repository().join("scripts/office-files"));
    command.arg(kept());
    if is_soak() {
        command.arg("--all");
    }
    let said = command.output().unwrap();
    let complaint = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{complaint}");
    String::from_utf8(said.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test]
async fn each_public_file_ends_in_a_preview_or_a_clear_line() {
    let files = files();
    assert!(files.len() >= if is_soak() { 200 } else { 30 });
    let place = Previewed::start().await;
    let mut lines = Vec::new();
    for Listed { title, path } in &files {
        let name = path.file_name().unwrap().to_str().unwrap();
        let view = place.preview(name, &fs_err::read(path).unwrap()).await;
        let is_seen = ["pages", "sheets"]
            .iter()
            .any(|what| view[what].as_array().is_some_and(|all| !all.is_empty()));
        if view["state"] == "ready" {
            assert!(is_seen, "{title}: {view}");
        } else {
            let line = view["message"].as_str().unwrap();
            assert!(!line.is_empty() && line.len() < 120, "{title}: {line}");
            lines.push(format!("{title}: {line}"));
        }
    }
    place.end().await;
    let mut pictures = insta::Settings::clone_current();
    pictures.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/office_files"));
    pictures.set_prepend_module_to_snapshot(false);
    let name = if is_soak() {
        "without_a_preview_in_soak"
    } else {
        "without_a_preview"
    };
    pictures.bind(|| insta::assert_snapshot!(name, lines.join("\n")));
}
