//! What is measured beside us: the kernel gateway through `bench/peers/measure.py`, and bubblewrap.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::statistics::Samples;

/// How the peers are started.
#[derive(Debug, Clone)]
pub(crate) struct Peers {
    /// A Python that has the packages of `bench/peers/requirements.txt`.
    pub(crate) python: PathBuf,
    /// The folder with `measure.py`.
    pub(crate) scripts: PathBuf,
}

/// What the kernel gateway was measured to do.
#[derive(Debug, Deserialize)]
pub(crate) struct Measured {
    /// Its name and version.
    pub(crate) peer: String,
    figures: BTreeMap<String, Vec<f64>>,
}

impl Peers {
    /// Measures one goal on the kernel gateway; takes seconds to minutes.
    ///
    /// # Errors
    /// When the script fails; what it said goes to standard error.
    pub(crate) fn measure(&self, goal: &str, runs: usize) -> Result<Measured> {
        self.run(goal, &[&runs.to_string()])
    }

    /// Measures a goal with code of ours.
    ///
    /// # Errors
    /// As for [`Self::measure`].
    pub(crate) fn measure_code(&self, goal: &str, runs: usize, code: &str) -> Result<Measured> {
        self.run(goal, &[&runs.to_string(), code])
    }

    fn run(&self, goal: &str, arguments: &[&str]) -> Result<Measured> {
        let output = Command::new(&self.python)
            .arg(self.scripts.join("measure.py"))
            .arg(goal)
            .args(arguments)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("starting {}", self.python.display()))?;
        ensure!(
            output.status.success(),
            "measuring {goal} on the kernel gateway failed"
        );
        serde_json::from_slice(&output.stdout)
            .with_context(|| format!("reading the kernel gateway's figures for {goal}"))
    }
}

impl Measured {
    /// The measurements of one name.
    ///
    /// # Errors
    /// When the script has none.
    pub(crate) fn samples(&self, name: &str) -> Result<Samples> {
        let samples = self
            .figures
            .get(name)
            .with_context(|| format!("the kernel gateway has no figure {name}"))?;
        Samples::new(samples.clone())
    }
}

/// Bubblewrap on our own root tree: a sandbox without agent, limits or filters, which is close to
/// the least that a start can cost.
#[derive(Debug)]
pub(crate) struct Bubblewrap {
    arguments: Vec<String>,
    /// Its name and version.
    pub(crate) peer: String,
}

impl Bubblewrap {
    /// Prepares to run Python in the root tree at `tree`.
    ///
    /// # Errors
    /// When there is no `bwrap`, or no tree.
    pub(crate) fn on(tree: &Path) -> Result<Self> {
        let version = Command::new("bwrap")
            .arg("--version")
            .output()
            .context("starting bwrap")?;
        let version = String::from_utf8_lossy(&version.stdout);
        let mut arguments: Vec<String> = ["--unshare-all", "--die-with-parent", "--clearenv"]
            .map(String::from)
            .into();
        arguments.extend(["--ro-bind".into(), tree.display().to_string(), "/".into()]);
        for pair in [["--proc", "/proc"], ["--dev", "/dev"], ["--tmpfs", "/tmp"]] {
            arguments.extend(pair.map(String::from));
        }
        for (name, value) in [
            ("PATH", "/opt/python/bin:/usr/bin:/bin"),
            ("HOME", "/tmp"),
            ("LANG", "C.UTF-8"),
            ("PYTHONDONTWRITEBYTECODE", "1"),
            ("MPLCONFIGDIR", "/tmp/matplotlib"),
            ("MPLBACKEND", "agg"),
            ("OPENBLAS_NUM_THREADS", "1"),
        ] {
            arguments.extend(["--setenv", name, value].map(String::from));
        }
        // Without the list of fonts matplotlib would make one, for seconds.
        for entry in fs_err::read_dir(tree.join("opt/glovebox/share/matplotlib"))? {
            let entry = entry?;
            arguments.extend([
                "--ro-bind".into(),
                entry.path().display().to_string(),
                format!("/tmp/matplotlib/{}", entry.file_name().to_string_lossy()),
            ]);
        }
        Ok(Self {
            arguments,
            peer: format!("{} + python", version.trim()),
        })
    }

    /// Milliseconds from nothing to the first output of a program.
    ///
    /// # Errors
    /// When it cannot be started or says nothing.
    pub(crate) fn first_output_ms(&self, code: &str) -> Result<f64> {
        let begun = Instant::now();
        let mut child = Command::new("bwrap")
            .args(&self.arguments)
            .args(["/opt/python/bin/python3", "-c", code])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting bwrap")?;
        let mut first = [0];
        let read = child
            .stdout
            .as_mut()
            .map(|stdout| stdout.read_exact(&mut first));
        let taken = begun.elapsed().as_secs_f64() * 1000.0;
        let status = child.wait()?;
        ensure!(
            status.success() && matches!(read, Some(Ok(()))),
            "python in bwrap ended with {status}"
        );
        Ok(taken)
    }
}
