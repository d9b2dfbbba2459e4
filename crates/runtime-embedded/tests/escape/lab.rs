//! An embedded runtime of this build, on the tests' data, in folders of its own.

use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use glovebox_box::control::DEFAULT_ROOT_RANGE_START;
use glovebox_box::weakness::Weakness;
use glovebox_protocol::ids::InstallationId;
use glovebox_runtime::{Capability, RuntimeError};
use glovebox_runtime_embedded::tree::{LOCK, Programs, Setup, Silent};
use glovebox_runtime_embedded::{Afterwards, EmbeddedRuntime, Options};
use glovebox_testkit::escape::{Lab, Red, posture, report};
use glovebox_testkit::{program, test_data};
use rustix::fs::{Mode, OFlags};
use tempfile::TempDir;

/// A running embedded runtime under attack.
pub(crate) struct Embedded {
    pub(crate) lab: Lab,
    runtime: Arc<EmbeddedRuntime>,
    run: TempDir,
}

impl Embedded {
    /// Starts one. What this machine cannot enforce is refused first, by name, and only then
    /// accepted: nothing is weaker in silence.
    pub(crate) async fn start() -> Result<Self> {
        let run = run_folder()?;
        let mut options = options(&run)?;
        loop {
            match EmbeddedRuntime::start(options.clone()).await {
                Ok(runtime) => return Self::of(runtime, options.installation, run),
                Err(RuntimeError::Unsupported { what, .. }) => {
                    let weakness: Weakness = what.parse()?;
                    ensure!(
                        !options.accept_weaker.contains(&weakness),
                        "{weakness} was accepted and refused again"
                    );
                    println!("refused without `{weakness}`, which this test accepts");
                    options.accept_weaker.push(weakness);
                }
                Err(error) => return Err(error).context("starting the embedded runtime"),
            }
        }
    }

    /// Wraps one that runs already.
    pub(crate) fn of(
        runtime: EmbeddedRuntime,
        installation: InstallationId,
        run: TempDir,
    ) -> Result<Self> {
        let runtime = Arc::new(runtime);
        let abi = runtime.facts().landlock_abi;
        let lab = Lab::new(Arc::clone(&runtime) as _, installation)?.with_landlock(abi);
        Ok(Self { lab, runtime, run })
    }

    /// The headings of the posture document that hold on this machine.
    pub(crate) fn headings(&self) -> Vec<&'static str> {
        let facts = self.runtime.facts();
        posture::headings(facts.two_ids, facts.cgroup_version)
    }

    /// The runtime itself, for what not every runtime has.
    pub(crate) fn runtime(&self) -> &EmbeddedRuntime {
        &self.runtime
    }

    /// What had to be accepted to start it.
    pub(crate) fn accepted(&self) -> Vec<Weakness> {
        self.runtime.facts().weaker.clone()
    }

    /// Whether Landlock keeps executions apart on this machine.
    pub(crate) fn scoped(&self) -> bool {
        self.runtime.facts().landlock_abi >= 6
    }

    /// Where its sockets are.
    pub(crate) fn run_folder(&self) -> PathBuf {
        self.run.path().to_owned()
    }

    /// Ends it and sees that its folder is empty.
    pub(crate) async fn finish(self) -> Result<()> {
        drop(self.lab);
        // A client that a test keeps would keep the runtime, which ends with the test then.
        if let Some(runtime) = Arc::into_inner(self.runtime) {
            runtime.shut_down().await?;
            let left = fs_err::read_dir(self.run.path())?.count();
            ensure!(
                left == 0,
                "{left} entries are left in the folder for sockets"
            );
        }
        Ok(())
    }
}

/// A folder for sockets, on a short path, that ids of sandboxes may pass.
pub(crate) fn run_folder() -> Result<TempDir> {
    let run = tempfile::Builder::new().prefix("gbx").tempdir_in("/tmp")?;
    fs_err::set_permissions(run.path(), std::fs::Permissions::from_mode(0o711))?;
    Ok(run)
}

/// A folder that the launching process has open and forgot to close: programs that it starts have
/// it open too, unless they close what they were not given.
pub(crate) fn forgotten_descriptor() -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    Ok(rustix::fs::open("/", flags, Mode::empty())?)
}

/// What an embedded runtime on the tests' data needs to know.
pub(crate) fn options(run: &TempDir) -> Result<Options> {
    let data = test_data()?;
    let setup = Setup {
        data: data.clone(),
        programs: Programs::found(program)?,
        python: None,
        search: Vec::new(),
        lock: LOCK.into(),
        office: true,
    };
    let trees = setup
        .ensure(&mut Silent)
        .context("looking at the root tree")?;
    Ok(Options {
        launcher: program("glovebox-launcher")?,
        data,
        run: run.path().to_owned(),
        layers: trees.layers,
        installation: InstallationId::new(),
        root_range_start: DEFAULT_ROOT_RANGE_START,
        accept_weaker: Vec::new(),
        afterwards: Afterwards::TheyEnd,
    })
}

/// Runs a check on a runtime of its own and fails with what it found.
pub(crate) async fn holds(check: impl AsyncFnOnce(&Lab) -> Result<Vec<Red>>) -> Result<()> {
    let embedded = Embedded::start().await?;
    let reds = check(&embedded.lab).await;
    let finished = embedded.finish().await;
    report::none(&reds?)?;
    finished
}

/// Runs a check of something that not every machine can enforce. Where it cannot, the runtime
/// must not claim it; that a start without acceptance is refused has been seen by then.
pub(crate) async fn holds_with(
    capability: Capability,
    check: impl AsyncFnOnce(&Lab) -> Result<Vec<Red>>,
) -> Result<()> {
    let embedded = Embedded::start().await?;
    if !embedded.lab.runtime.describe().capabilities.has(capability) {
        let weaker = embedded.runtime.facts().weaker.clone();
        if weaker.is_empty() {
            bail!("{capability:?} is not claimed, and nothing was accepted");
        }
        println!("{capability:?} is not claimed here: {weaker:?}");
        return embedded.finish().await;
    }
    let reds = check(&embedded.lab).await;
    let finished = embedded.finish().await;
    report::none(&reds?)?;
    finished
}
