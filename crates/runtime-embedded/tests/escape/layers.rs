//! F6 and F7: layers in which a link lies where a folder is to be mounted.

use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Result, bail, ensure};
use glovebox_runtime_embedded::EmbeddedRuntime;
use glovebox_testkit::HostSnapshot;
use glovebox_testkit::escape::{Lab, Red, report};

use crate::lab::{self, Embedded};

/// Folders that a box mounts something on.
const TARGETS: [&str; 5] = ["workspace", "tmp", "dev", "proc", "mnt"];

/// A layer of the agent's programs over empty folders: enough for a sandbox that runs nothing.
fn plain_tree(tree: &Path) -> Result<()> {
    for folder in TARGETS {
        fs_err::create_dir_all(tree.join(folder))?;
    }
    let programs = tree.join("opt/glovebox/bin");
    fs_err::create_dir_all(&programs)?;
    for name in ["glovebox-agent", "glovebox-exec"] {
        fs_err::copy(glovebox_testkit::program(name)?, programs.join(name))?;
    }
    Ok(())
}

/// Whether a sandbox can be made of a data folder with this layer on top of a plain tree.
async fn starts(prepare: impl FnOnce(&Path) -> Result<()>) -> Result<bool> {
    use std::os::unix::fs::PermissionsExt as _;
    let data = tempfile::Builder::new().prefix("gbd").tempdir_in("/tmp")?;
    fs_err::set_permissions(data.path(), std::fs::Permissions::from_mode(0o755))?;
    let (plain, top) = (
        data.path().join("trees/plain"),
        data.path().join("layers/top"),
    );
    plain_tree(&plain)?;
    fs_err::create_dir_all(&top)?;
    prepare(&top)?;
    let run = lab::run_folder()?;
    let mut options = lab::options(&run)?;
    options.data = data.path().to_owned();
    options.layers = vec!["layers/top".into(), "trees/plain".into()];
    options.accept_weaker = glovebox_box::weakness::Weakness::ALL.to_vec();
    let installation = options.installation;
    let runtime = EmbeddedRuntime::start(options).await?;
    let embedded = Embedded::of(runtime, installation, run)?;
    let before = HostSnapshot::take(&[&plain, &top])?;
    let made = embedded.lab.bare_subject(Lab::small_limits()).await;
    let started = match made {
        Ok(subject) => {
            subject.remove().await?;
            true
        }
        Err(_) => false,
    };
    let after = HostSnapshot::take(&[&plain, &top])?;
    let files: Vec<_> = before
        .changes_until(&after)
        .into_iter()
        .filter(|change| change.contains(" file "))
        .collect();
    embedded.finish().await?;
    ensure!(files.is_empty(), "the layers changed: {files:?}");
    Ok(started)
}

#[tokio::test]
async fn a_link_where_a_folder_is_mounted_refuses_the_start() -> Result<()> {
    if !starts(|_| Ok(())).await? {
        bail!("the control failed: no sandbox could be made of plain folders");
    }
    let mut reds = Vec::new();
    for target in ["workspace", "tmp", "dev", "proc"] {
        for leads_to in ["/", "..", "../../../../../../../../tmp", "/nonexistent"] {
            let started = starts(|top| Ok(symlink(leads_to, top.join(target))?)).await?;
            if started {
                let link = format!("{target} -> {leads_to}");
                reds.push(Red::new(
                    "F7",
                    format!("a sandbox was made of a layer with {link}"),
                ));
            }
        }
    }
    report::none(&reds)
}

#[tokio::test]
async fn a_file_where_a_folder_is_mounted_refuses_the_start() -> Result<()> {
    let mut reds = Vec::new();
    for target in ["workspace", "tmp", "dev", "proc"] {
        if starts(|top| Ok(fs_err::write(top.join(target), "")?)).await? {
            reds.push(Red::new(
                "F6",
                format!("a sandbox was made with a file as /{target}"),
            ));
        }
    }
    report::none(&reds)
}
