//! K19: where a feature of the kernel is missing the start is refused by its name, and never
//! silently weaker.
//!
//! The launcher is started by a program (`without.py`) that first takes a feature away from
//! itself: a filter answers for the kernel as one without the feature would.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use glovebox_box::weakness::Weakness;
use glovebox_runtime::{Runtime as _, RuntimeError};
use glovebox_runtime_embedded::EmbeddedRuntime;
use glovebox_testkit::escape::Lab;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use tempfile::TempDir;

use crate::lab::{self, Embedded};

const WITHOUT: &str = include_str!("without.py");

/// A program that runs the launcher without a feature.
fn launcher_without(feature: &str, folder: &Path) -> Result<PathBuf> {
    let launcher = glovebox_testkit::program("glovebox-launcher")?;
    let path = folder.join(format!("launcher-without-{feature}"));
    let text = WITHOUT
        .replace("@PYTHON@", &python()?)
        .replace("@FEATURE@", feature)
        .replace("@LAUNCHER@", launcher.to_str().context("an odd path")?);
    fs_err::write(&path, text)?;
    fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
    Ok(path)
}

/// The whole path of Python: the launcher is started without an environment to look it up with.
fn python() -> Result<String> {
    let output = std::process::Command::new("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .output()
        .context("looking for python3")?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// The error of a start, or of the first sandbox, without a feature.
async fn refusal(feature: &str, accept: &[Weakness]) -> Result<Option<RuntimeError>> {
    let folder = tempfile::tempdir()?;
    let run = lab::run_folder()?;
    let mut options = lab::options(&run)?;
    options.launcher = launcher_without(feature, folder.path())?;
    options.accept_weaker = accept.to_vec();
    let installation = options.installation;
    let runtime = match EmbeddedRuntime::start(options).await {
        Ok(runtime) => runtime,
        Err(error) => return Ok(Some(error)),
    };
    let embedded = Embedded::of(runtime, installation, run)?;
    let made = embedded.lab.bare_subject(Lab::small_limits()).await;
    let error = match made {
        Ok(subject) => {
            subject.remove().await?;
            None
        }
        Err(error) => Some(error.downcast::<RuntimeError>()?),
    };
    embedded.finish().await?;
    Ok(error)
}

fn is_root() -> Result<bool> {
    Ok(fs_err::metadata("/proc/self")?.uid() == 0)
}

/// Everything an error says, causes included.
fn whole(error: &RuntimeError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

async fn is_refused_by_name(feature: &str, names: &[&str]) -> Result<()> {
    if !is_root()? {
        // Taking a feature away takes rights that an ordinary user has only for a price: set-id
        // programs, which map the ids of the pod, do nothing any more, and nothing starts for
        // that reason already.
        let refused = refusal(feature, &[]).await?;
        ensure!(refused.is_some(), "without {feature} a sandbox was made");
        return Ok(());
    }
    let Some(error) = refusal(feature, &[]).await? else {
        bail!("without {feature} a sandbox was made");
    };
    let text = whole(&error);
    ensure!(
        names.iter().any(|name| text.contains(name)),
        "without {feature} the refusal says: {text}"
    );
    Ok(())
}

#[tokio::test]
async fn with_everything_there_a_sandbox_is_made() -> Result<()> {
    // The control: taking nothing away changes nothing. What this machine lacks of its own is
    // refused by name here too, one by one.
    let mut accepted = Vec::new();
    loop {
        match refusal("nothing", &accepted).await? {
            None => return Ok(()),
            Some(RuntimeError::Unsupported { what, .. }) => {
                let weakness: Weakness = what.parse()?;
                ensure!(
                    !accepted.contains(&weakness),
                    "{weakness} was accepted and refused again"
                );
                accepted.push(weakness);
            }
            Some(error) => bail!("{}", whole(&error)),
        }
    }
}

#[tokio::test]
async fn without_user_namespaces_nothing_starts() -> Result<()> {
    is_refused_by_name("user-namespaces", &["namespace"]).await
}

#[tokio::test]
async fn without_filters_of_system_calls_nothing_starts() -> Result<()> {
    is_refused_by_name("seccomp", &["seccomp", "filter", "system call"]).await
}

#[tokio::test]
async fn without_control_groups_nothing_starts_unless_accepted() -> Result<()> {
    is_refused_by_name(
        "control-groups",
        &["memory-limit", "memory limit", "control group"],
    )
    .await
}

#[tokio::test]
async fn without_landlock_nothing_starts_unless_accepted() -> Result<()> {
    if !is_root()? {
        return is_refused_by_name("landlock", &[]).await;
    }
    let Some(RuntimeError::Unsupported { what, fix, .. }) = refusal("landlock", &[]).await? else {
        bail!("without Landlock the start was not refused as unsupported");
    };
    ensure!(what == "landlock", "the refusal names `{what}`");
    ensure!(fix.is_some(), "the refusal does not say what to do");
    accepted_is_shown("landlock", Weakness::Landlock).await
}

/// What was accepted is there, and is said to be missing.
async fn accepted_is_shown(feature: &str, weakness: Weakness) -> Result<()> {
    let folder = TempDir::new()?;
    let run = lab::run_folder()?;
    let mut options = lab::options(&run)?;
    options.launcher = launcher_without(feature, folder.path())?;
    options.accept_weaker = Weakness::ALL.to_vec();
    let installation = options.installation;
    let runtime = EmbeddedRuntime::start(options).await?;
    ensure!(
        runtime.facts().weaker.contains(&weakness),
        "{weakness} is not shown"
    );
    let described = runtime.describe();
    ensure!(described.name == "embedded");
    let embedded = Embedded::of(runtime, installation, run)?;
    let subject = embedded.lab.subject(Lab::small_limits()).await?;
    subject.still_works().await?;
    subject.remove().await?;
    embedded.finish().await
}
