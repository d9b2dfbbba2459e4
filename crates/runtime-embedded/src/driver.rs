//! The driver: [`Runtime`] on top of a launcher.

mod examine;
mod failure;
mod launch;
mod making;
mod ready;
mod table;

use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use glovebox_box::control::{FromLauncher, LauncherConfig, PodFacts, Renewal, ToLauncher};
use glovebox_box::weakness::Weakness;
use glovebox_protocol::ids::{InstallationId, SandboxId};
use glovebox_runtime::{
    AgentStream, Capabilities, Capability, Description, Examined, Reply, Runtime, RuntimeError,
    Sandbox, ValidatedSpec, make_to_the_end,
};

use crate::link::LinkError;
pub use examine::CHECKS;
use examine::Host;
use failure::from_link;
pub use glovebox_runtime::ReadyKind;
use launch::Launch;
use making::Inner;
pub use ready::{Made, Measured, Pool, Template};
use table::Table;
use tokio::sync::RwLock;

/// What an embedded runtime needs to know.
#[derive(Debug, Clone)]
pub struct Options {
    /// The launcher program.
    pub launcher: PathBuf,
    /// The data folder, which holds the layers.
    pub data: PathBuf,
    /// A folder for sockets, on a path short enough for them; made if absent.
    pub run: PathBuf,
    /// Layers of a box's root, topmost first, relative to the data folder.
    pub layers: Vec<String>,
    /// Which installation the boxes belong to.
    pub installation: InstallationId,
    /// The first host id that root gives to the pod.
    pub root_range_start: u32,
    /// Protections whose lack was accepted by name.
    pub accept_weaker: Vec<Weakness>,
    /// What becomes of the sandboxes when this runtime is gone.
    pub afterwards: Afterwards,
}

/// What becomes of sandboxes when their runtime is dropped, or its process is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Afterwards {
    /// They end.
    TheyEnd,
    /// They go on, and the next runtime that is started with the same options takes them over.
    TheyGoOn,
}

/// Sandboxes on this machine.
#[derive(Debug)]
pub struct EmbeddedRuntime {
    inner: Arc<Inner>,
    facts: PodFacts,
    host: Host,
}

impl EmbeddedRuntime {
    /// Starts the launcher.
    ///
    /// # Errors
    /// [`RuntimeError::Unsupported`] with the name of the protection that cannot be had here;
    /// [`RuntimeError::Unavailable`] for anything else.
    pub async fn start(options: Options) -> Result<Self, RuntimeError> {
        let stays = options.afterwards == Afterwards::TheyGoOn;
        let run = run_folder_below(&options.run, stays.then_some(options.installation));
        let run = run.map_err(|source| RuntimeError::Unavailable {
            doing: format!(
                "making a folder for sockets below {}",
                options.run.display()
            ),
            fix: Some("choose a folder of yours with GLOVEBOX_RUN".into()),
            cause: source.into(),
        })?;
        let host = Host {
            launcher: options.launcher.clone(),
            data: options.data.clone(),
            root_range_start: options.root_range_start,
        };
        let config = LauncherConfig {
            data: options.data,
            run,
            installation: options.installation,
            root_range_start: options.root_range_start,
            accept_weaker: options.accept_weaker,
            renewal: Renewal::default(),
            stays,
        };
        let launch = Launch {
            program: options.launcher,
            config,
        };
        let table = Table::default();
        let (link, facts) = launch.find_or_start(&table).await?;
        let inner = Inner {
            launch,
            link: RwLock::new(Arc::new(link)),
            table,
            layers: options.layers,
            installation: options.installation,
        };
        if stays {
            inner.adopt().await?;
        }
        Ok(Self {
            inner: Arc::new(inner),
            facts,
            host,
        })
    }

    /// What is true of every box made here.
    #[must_use]
    pub const fn facts(&self) -> &PodFacts {
        &self.facts
    }

    /// Keeps sandboxes of one kind ready, each with a kernel in it that takes code, so that a
    /// `create` of that kind is answered at once. 0 ends those that are ready. Returns when the
    /// launcher has begun; [`EmbeddedRuntime::measure`] tells how far it is.
    ///
    /// They are made one after the other, with pauses that leave the processor to people's code.
    /// Each is given away once at most, and ended unused when it has become too old. Until it is
    /// given away it is nobody's: it is not listed, obeys no key, and holds a kernel that ran
    /// nobody's code. It takes room like any other.
    ///
    /// # Errors
    /// When the launcher refuses, or is gone.
    pub async fn keep_ready(&self, kind: ReadyKind, count: u32) -> Result<(), RuntimeError> {
        let doing = format!(
            "keeping {count} sandboxes of trust domain {} ready",
            kind.trust_domain
        );
        let kind = ready::on(kind, self.inner.layers.clone());
        let link = self.inner.link().await;
        let answer = link
            .ask(|id| ToLauncher::KeepReady { id, kind, count })
            .await;
        match answer {
            Ok(FromLauncher::Kept { .. }) => Ok(()),
            Ok(_) => Err(from_link(&doing, LinkError::Mismatched)),
            Err(error) => Err(from_link(&doing, error)),
        }
    }

    /// Says how the sandboxes that are kept ready do, and the templates that kernels come from.
    ///
    /// # Errors
    /// When the launcher is gone.
    pub async fn measure(&self) -> Result<Measured, RuntimeError> {
        let doing = "asking the launcher for its figures";
        let link = self.inner.link().await;
        match link.ask(|id| ToLauncher::Measure { id }).await {
            Ok(FromLauncher::Measured {
                pools,
                templates,
                memory_bytes,
                ..
            }) => Ok(Measured {
                pools: pools.into_iter().map(Pool::from).collect(),
                templates: templates.into_iter().map(Template::from).collect(),
                memory_bytes,
            }),
            Ok(_) => Err(from_link(doing, LinkError::Mismatched)),
            Err(error) => Err(from_link(doing, error)),
        }
    }

    /// Says how a sandbox was made, and how long each step of it took the launcher.
    #[must_use]
    pub fn made(&self, id: SandboxId) -> Option<Made> {
        self.inner.table.made(id)
    }

    /// Ends every sandbox and the launcher, and waits until nothing is left of them.
    ///
    /// # Errors
    /// When the launcher could not clean up.
    pub async fn shut_down(&self) -> Result<(), RuntimeError> {
        let doing = "ending the launcher of the embedded runtime";
        let unavailable = |cause: glovebox_runtime::Cause| RuntimeError::Unavailable {
            doing: doing.into(),
            fix: None,
            cause,
        };
        let link = self.inner.link().await;
        let status = link
            .close()
            .await
            .map_err(|source| unavailable(source.into()))?;
        match status {
            Some(status) if !status.success() => {
                Err(unavailable(format!("it ended with {status}").into()))
            }
            _ => Ok(()),
        }
    }
}

impl Runtime for EmbeddedRuntime {
    fn describe(&self) -> Description {
        use Capability as C;
        let lacks = |weakness| self.facts.weaker.contains(&weakness);
        let memory = !lacks(Weakness::MemoryLimit) && !lacks(Weakness::SwapLimit);
        let conditional = [
            (C::MemoryLimit, memory),
            (C::CpuLimit, !lacks(Weakness::CpuLimit)),
            (C::ProcessLimit, !lacks(Weakness::ProcessLimit)),
            (C::SeparateIds, self.facts.two_ids),
        ];
        let always = [
            C::WorkspaceBytes,
            C::WorkspaceInodes,
            C::NoNetwork,
            C::EndsSingleExecution,
            C::TemplateStart,
        ];
        Description {
            name: "embedded",
            capabilities: conditional
                .into_iter()
                .filter_map(|(capability, holds)| holds.then_some(capability))
                .chain(always)
                .collect::<Capabilities>(),
        }
    }

    fn create(&self, spec: ValidatedSpec) -> Reply<'_, Sandbox> {
        make_to_the_end(Arc::clone(&self.inner), spec)
    }

    fn inspect(&self, id: SandboxId) -> Reply<'_, Sandbox> {
        Box::pin(async move {
            let found = self.inner.table.view(id);
            found.ok_or(RuntimeError::NotFound { id, reason: None })
        })
    }

    fn list(&self) -> Reply<'_, Vec<Sandbox>> {
        Box::pin(async move {
            self.inner.revive().await?;
            Ok(self.inner.table.view_all())
        })
    }

    /// The launcher may have been told of others by the process before this one.
    fn keep_only_ready(&self, wanted: Vec<(ReadyKind, u32)>) -> Reply<'_, ()> {
        Box::pin(async move {
            for old in self.measure().await?.pools {
                if !wanted.iter().any(|(kind, _)| *kind == old.kind) {
                    self.keep_ready(old.kind, 0).await?;
                }
            }
            for (kind, count) in wanted {
                self.keep_ready(kind, count).await?;
            }
            Ok(())
        })
    }

    fn memory_used(&self) -> Reply<'_, Option<u64>> {
        Box::pin(async move { Ok(self.measure().await?.memory_bytes) })
    }

    fn connect(&self, id: SandboxId) -> Reply<'_, Box<dyn AgentStream>> {
        Box::pin(self.inner.open(id))
    }

    fn stop(&self, id: SandboxId) -> Reply<'_, ()> {
        Box::pin(self.inner.stop(id))
    }

    fn remove(&self, id: SandboxId) -> Reply<'_, ()> {
        Box::pin(self.inner.remove(id))
    }

    fn examine<'a>(&'a self, _images: &'a [String]) -> Reply<'a, Examined> {
        Box::pin(self.host.examine(&self.facts.weaker))
    }
}

/// Where one launcher is to make its folder: in the same place for each of an installation, where
/// it is to be found again. The folder above it must be ours alone: whoever could rename the
/// launcher's could put a socket of their own in its place.
fn run_folder_below(base: &Path, installation: Option<InstallationId>) -> std::io::Result<PathBuf> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o711).create(base)?;
    let metadata = fs_err::symlink_metadata(base)?;
    let is_ours = metadata.is_dir()
        && metadata.uid() == rustix::process::geteuid().as_raw()
        && metadata.mode() & 0o022 == 0;
    if !is_ours {
        return Err(std::io::Error::other(
            "others can write to it, or it is no folder of yours",
        ));
    }
    // The id's random half is enough, and leaves room for socket names.
    let id = installation.map_or_else(
        || SandboxId::new().to_string(),
        |installation| installation.to_string(),
    );
    Ok(base.join(id.rsplit('-').next().unwrap_or(&id)))
}
