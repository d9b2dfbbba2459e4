//! Who may depend on whom: the table in `ARCHITECTURE.md` is the rule, cargo tells the facts.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use glovebox_testkit::repository;
use serde_json::Value;

/// Crate to the crates that it may depend on, all by their folder's names.
fn allowed() -> Result<BTreeMap<String, BTreeSet<String>>> {
    let text = fs_err::read_to_string(repository().join("ARCHITECTURE.md"))?;
    let mut table = BTreeMap::new();
    for line in text.lines() {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let [_, name, _, arrows, _] = cells[..] else {
            continue;
        };
        let Some(name) = name
            .strip_prefix("`crates/")
            .and_then(|n| n.strip_suffix('`'))
        else {
            continue;
        };
        let arrows = arrows.split(',').map(|arrow| arrow.trim().to_owned());
        table.insert(
            name.to_owned(),
            arrows.filter(|arrow| arrow != "—").collect(),
        );
    }
    Ok(table)
}

/// Crate to its normal and build dependencies among our own crates. What only tests use is free.
fn actual() -> Result<BTreeMap<String, BTreeSet<String>>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(repository())
        .output()
        .context("running cargo metadata")?;
    ensure!(
        output.status.success(),
        "cargo metadata: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().context("no packages")?;
    let folder = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let crates_folder = repository().join("crates").display().to_string();
    let mut crates = BTreeMap::new();
    for package in packages {
        let manifest = package["manifest_path"].as_str().unwrap_or_default();
        let home = manifest.trim_end_matches("/Cargo.toml");
        // What measures the product from outside may use all of it.
        if !home.starts_with(&crates_folder) {
            continue;
        }
        let name = folder(home);
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        let ours = dependencies
            .filter(|dependency| dependency["kind"] != "dev")
            .filter_map(|dependency| dependency["path"].as_str().map(folder))
            .collect();
        crates.insert(name, ours);
    }
    Ok(crates)
}

#[test]
fn crates_depend_only_on_what_the_architecture_allows() -> Result<()> {
    let allowed = allowed()?;
    let mut findings = Vec::new();
    for (name, dependencies) in actual()? {
        let Some(may) = allowed.get(&name) else {
            findings.push(format!(
                "crates/{name} is not in the table of ARCHITECTURE.md"
            ));
            continue;
        };
        findings.extend(
            dependencies
                .difference(may)
                .map(|other| format!("crates/{name} depends on crates/{other}")),
        );
    }
    crate::none("arrows that the architecture does not have", &findings)
}
