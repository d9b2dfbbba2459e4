//! The mutation run: each protection is left out once, and at least one of the checks that are
//! mapped to it has to notice.
//!
//! The launcher and the exec helper are built once more for it, with the feature `mutations` and
//! in a target folder of their own, so that no program that is shipped can leave anything out. The
//! launcher reads what to leave out from a file beside it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use glovebox_box::mutation::Mutation;
use glovebox_box::weakness::Weakness;
use glovebox_protocol::kernel::StartKernel;
use glovebox_runtime::Start;
use glovebox_runtime_embedded::tree::{LOCK, Programs, Setup, Silent};
use glovebox_runtime_embedded::{EmbeddedRuntime, Options};
use glovebox_testkit::escape::attacks::{files, host, limits, memory, processes, time};
use glovebox_testkit::escape::batch::{self, Position};
use glovebox_testkit::escape::template::identity;
use glovebox_testkit::escape::{Lab, Red, posture, report, siblings};
use glovebox_testkit::{cargo_target, program, programs, repository, test_data};
use tempfile::TempDir;

use crate::lab::{self, Embedded};
use crate::{impostor, posture::DOCUMENT};

/// A check of the suite, small enough to run alone.
#[derive(Debug, Clone, Copy)]
enum Check {
    /// These checks of the batch, in the first program.
    Batch(&'static [&'static str]),
    /// K25.
    Posture,
    /// K2, K3 and K4 as the host sees them.
    Sealed,
    /// K9 for the agent.
    AgentDescriptors,
    /// R1, R2 and R8 as the host has them written down.
    ControlGroups,
    /// K2 for two sandboxes.
    IdsDiffer,
    /// K20.
    Executions,
    /// What an agent that was taken over could do.
    Impostor,
    /// No sandbox can be made: the launcher cannot do without.
    CannotBeMade,
    /// No program can be run: the exec helper looks for itself, and refuses.
    CannotRun,
    /// R1.
    Bomb,
    /// R2.
    Memory,
    /// R8.
    Spin,
    /// F3.
    Disk,
    /// F4.
    Inodes,
    /// R7.
    UserLimits,
    /// These checks of the batch, in a kernel that is a copy of a template.
    InCopy(&'static [&'static str]),
    /// K25 for such a kernel.
    CopyPosture,
    /// No such kernel can be had: the copy looks for itself, and refuses.
    CannotCopy,
    /// Z2.
    Generators,
    /// Z1.
    Domains,
}

/// Which checks have to notice that a protection is missing.
type Map = fn(Mutation) -> &'static [Check];

/// The checks that have to notice that a protection is missing from a sandbox and its programs.
fn mapped(mutation: Mutation) -> &'static [Check] {
    use Check as C;
    match mutation.name() {
        "root-flags" | "workspace-flags" | "tmp-flags" => &[C::Batch(&["K5", "F2"])],
        "shm-flags" => &[C::Batch(&["F2", "F10"])],
        "dev-flags" | "proc-flags" => &[C::Batch(&["F2"])],
        "proc-hidepid" | "proc-subset" => &[C::Batch(&["K17"])],
        "old-root" => &[C::Batch(&["F2", "K5"])],
        "seccomp-workload" => &[C::Batch(&["K15"])],
        "seccomp-families" => &[C::Batch(&["K13", "N10"])],
        "seccomp-answers" => &[C::Batch(&["R3"])],
        "seccomp-agent" => &[C::Sealed, C::Impostor],
        "landlock-workload" => &[C::Executions, C::Batch(&["K20"])],
        "landlock-agent" => &[C::Impostor],
        "bounding-set" => &[C::Impostor, C::CannotRun],
        "capabilities" => &[C::Batch(&["K3"])],
        "securebits" => &[C::Posture],
        "no-new-privileges" => &[C::Batch(&["K4"]), C::Sealed],
        "network-namespace" => &[C::Batch(&["K1", "N11"])],
        "process-namespace" => &[C::CannotBeMade],
        "ipc-namespace" | "uts-namespace" | "cgroup-namespace" => &[C::Batch(&["K1"])],
        "unique-ids" => &[C::IdsDiffer],
        "setgroups" => &[C::Batch(&["K2"])],
        "memory-limit" => &[C::ControlGroups, C::Memory],
        "swap-limit" => &[C::ControlGroups],
        "work-cgroup" => &[C::CannotRun],
        "process-limit" => &[C::ControlGroups, C::Bomb],
        "cpu-limit" => &[C::ControlGroups, C::Spin],
        "workspace-size" => &[C::Disk],
        "workspace-inodes" => &[C::Inodes],
        "close-descriptors" => &[C::AgentDescriptors, C::Impostor],
        "close-workload-descriptors" => &[C::Impostor],
        "resource-limits" | "core-limit" => &[C::Batch(&["R20"])],
        "user-counts" => &[C::UserLimits],
        "session" => &[C::Batch(&["K16"])],
        // Whoever adds a protection adds here what notices that it is missing.
        _ => &[],
    }
}

/// The checks that have to notice that a protection is missing from a kernel that is a copy of a
/// template. What belongs to the sandbox around it is not here.
fn mapped_to_copies(mutation: Mutation) -> &'static [Check] {
    use Check as C;
    match mutation.name() {
        "reseed" => &[C::Generators],
        "trust-domain" => &[C::Domains],
        "seccomp-workload" => &[C::InCopy(&["K15"])],
        "seccomp-families" => &[C::InCopy(&["K13", "N10"])],
        "seccomp-answers" => &[C::InCopy(&["R3"])],
        "landlock-workload" => &[C::InCopy(&["K20"])],
        "bounding-set" | "capabilities" => &[C::InCopy(&["K3"]), C::CannotCopy],
        "securebits" | "seccomp-agent" | "work-cgroup" => &[C::CopyPosture, C::CannotCopy],
        "no-new-privileges" => &[C::InCopy(&["K4"]), C::CannotCopy],
        "close-workload-descriptors" => &[C::InCopy(&["K9"])],
        "resource-limits" | "core-limit" => &[C::InCopy(&["R20"])],
        "session" => &[C::InCopy(&["K16"])],
        _ => &[],
    }
}

impl Check {
    async fn run(self, embedded: &Embedded) -> Result<Vec<Red>> {
        let lab = &embedded.lab;
        let copies = &lab.starting(Start::Template);
        match self {
            Self::Batch(only) => batch::run_checks(lab, Position::First, only).await,
            Self::Posture => {
                let document = serde_json::from_str(DOCUMENT)?;
                let seen = posture::take(lab, posture::Process::Program).await?;
                posture::compare(&document, &embedded.headings(), &seen)
            }
            Self::Sealed => host::every_process_is_sealed(lab).await,
            Self::AgentDescriptors => limits::agent_descriptors(lab).await,
            Self::ControlGroups => limits::control_groups(lab).await,
            Self::IdsDiffer => limits::ids_differ(lab).await,
            Self::Executions => siblings::executions(lab, embedded.scoped()).await,
            Self::Impostor => bail!("it makes a runtime of its own"),
            Self::CannotBeMade => Ok(match lab.bare_subject(Lab::small_limits()).await {
                Ok(_) => Vec::new(),
                Err(error) => vec![Red::new("K19", format!("{error:#}"))],
            }),
            Self::CannotRun => {
                let subject = lab.bare_subject(Lab::small_limits()).await?;
                let works = subject.still_works().await;
                subject.remove().await?;
                Ok(match works {
                    Ok(()) => Vec::new(),
                    Err(error) => vec![Red::new("K19", format!("{error:#}"))],
                })
            }
            Self::Bomb => processes::bomb(lab, "fork").await,
            Self::Memory => memory::take(lab, "private").await,
            Self::Spin => time::spin(lab).await,
            Self::Disk => files::full_disk(lab).await,
            Self::Inodes => files::full_of_files(lab).await,
            Self::UserLimits => siblings::user_limits(lab).await,
            Self::InCopy(only) => batch::run_checks(copies, Position::Kernel, only).await,
            Self::CopyPosture => {
                let document = serde_json::from_str(DOCUMENT)?;
                let mut headings = vec!["kernel", "copied kernel"];
                headings.extend(embedded.headings());
                let seen = posture::take(copies, posture::Process::Kernel).await?;
                posture::compare(&document, &headings, &seen)
            }
            Self::CannotCopy => {
                let subject = copies.bare_subject(Lab::small_limits()).await?;
                let started = subject.client.start_kernel(&StartKernel::default()).await;
                subject.remove().await?;
                Ok(match started?.start {
                    Some(Start::Template) => Vec::new(),
                    other => vec![Red::new("K19", format!("the kernel started as {other:?}"))],
                })
            }
            Self::Generators => identity::generators_differ(copies).await,
            Self::Domains => identity::domains_share_nothing(copies).await,
        }
    }
}

/// The folder with the programs that can leave something out.
fn mutable_programs() -> Result<PathBuf> {
    let target = cargo_target()?.join("mutations");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--locked", "-p", "glovebox-box"])
        .args(["--features", "mutations", "--target-dir"])
        .arg(&target)
        .current_dir(repository())
        // The settings of the cargo that runs this test are not for this one.
        .env_remove("CARGO_TARGET_DIR")
        .status()
        .context("building the programs that can leave something out")?;
    ensure!(
        status.success(),
        "building the programs that can leave something out failed"
    );
    let folder = program("glovebox-launcher")?;
    let profile: PathBuf = folder
        .parent()
        .context("a program without a folder")?
        .strip_prefix(cargo_target()?)?
        .to_owned();
    let built = target.join(profile);
    let library = Command::new(repository().join("scripts/template-library"))
        .arg(&built)
        .args(["--features", "mutations", "--target-dir"])
        // Where what it is made of has been built already.
        .arg(programs()?.join("template-library"))
        .status()
        .context("building the library that can leave something out")?;
    ensure!(
        library.success(),
        "building the library that can leave something out failed"
    );
    Ok(built)
}

/// A data folder of its own, with the trees of the tests' and with a layer of these programs.
fn layers(built: &Path) -> Result<(PathBuf, Vec<String>)> {
    let data = cargo_target()?.join("mutations/data");
    fs_err::create_dir_all(&data)?;
    let trees = data.join("trees");
    let wanted = test_data()?.join("trees");
    if !fs_err::read_link(&trees).is_ok_and(|leads_to| leads_to == wanted) {
        // One of a run on another data folder may be there.
        if trees.is_symlink() {
            fs_err::remove_file(&trees)?;
        }
        std::os::unix::fs::symlink(wanted, &trees)?;
    }
    let setup = Setup {
        data: data.clone(),
        programs: Programs {
            agent: program("glovebox-agent")?,
            ..Programs::in_folder(built)
        },
        python: None,
        search: Vec::new(),
        lock: LOCK.into(),
        office: true,
    };
    let trees = setup
        .ensure(&mut Silent)
        .context("making a layer of these programs")?;
    Ok((data, trees.layers))
}

/// What mutated runtimes are made of.
pub(crate) struct Workshop {
    /// Holds the launcher and, beside it, what it leaves out.
    folder: TempDir,
    data: PathBuf,
    layers: Vec<String>,
    /// What this machine lacks.
    accepted: Vec<Weakness>,
}

impl Workshop {
    pub(crate) async fn open() -> Result<Self> {
        let built = mutable_programs()?;
        let launcher = built.join("glovebox-launcher");
        let (data, layers) = layers(&built)?;
        let folder = tempfile::tempdir()?;
        fs_err::copy(&launcher, folder.path().join(LAUNCHER))?;
        let plain = Embedded::start().await?;
        let accepted = plain.accepted();
        plain.finish().await?;
        Ok(Self {
            folder,
            data,
            layers,
            accepted,
        })
    }

    /// The options of a runtime that leaves something out.
    fn options(&self, mutation: Option<Mutation>, run: &TempDir) -> Result<Options> {
        let named = mutation.map(Mutation::name).unwrap_or_default();
        let beside = self.folder.path().join(format!("{LAUNCHER}.mutations"));
        fs_err::write(beside, named)?;
        let mut options = lab::options(run)?;
        options.launcher = self.folder.path().join(LAUNCHER);
        options.data.clone_from(&self.data);
        options.layers.clone_from(&self.layers);
        options.accept_weaker.clone_from(&self.accepted);
        Ok(options)
    }

    pub(crate) async fn runtime(&self, mutation: Option<Mutation>) -> Result<Embedded> {
        let run = lab::run_folder()?;
        let options = self.options(mutation, &run)?;
        let installation = options.installation;
        Embedded::of(EmbeddedRuntime::start(options).await?, installation, run)
    }

    /// What a check finds on a runtime that leaves something out.
    async fn run(&self, check: Check, mutation: Option<Mutation>) -> Result<Vec<Red>> {
        let _forgotten = lab::forgotten_descriptor()?;
        if let Check::Impostor = check {
            let run = lab::run_folder()?;
            return impostor::findings(self.options(mutation, &run)?, run).await;
        }
        let embedded = self.runtime(mutation).await?;
        let found = check.run(&embedded).await;
        let finished = embedded.finish().await;
        let reds = found?;
        finished?;
        Ok(reds)
    }
}

const LAUNCHER: &str = "glovebox-launcher";

/// What each mapped check finds with nothing left out, by the check's name. Nothing, unless
/// something is wrong already; that must not pass for noticing.
async fn with_nothing_left_out(
    workshop: &Workshop,
    map: Map,
) -> Result<BTreeMap<String, Vec<Red>>> {
    let mut found = BTreeMap::new();
    for check in Mutation::ALL.iter().flat_map(|mutation| map(*mutation)) {
        let name = format!("{check:?}");
        if let Entry::Vacant(place) = found.entry(name.clone()) {
            let reds = workshop
                .run(*check, None)
                .await
                .with_context(|| name.clone())?;
            place.insert(reds);
        }
    }
    Ok(found)
}

/// What checks newly find when something is left out, as their names.
async fn turned_red(
    workshop: &Workshop,
    before: &BTreeMap<String, Vec<Red>>,
    mutation: Mutation,
    checks: &[Check],
) -> BTreeSet<String> {
    let mut turned_red = BTreeSet::new();
    for check in checks {
        match workshop.run(*check, Some(mutation)).await {
            Ok(reds) => {
                let known = &before[&format!("{check:?}")];
                let new = reds.into_iter().filter(|red| !known.contains(red));
                turned_red.extend(new.map(|red| red.check));
            }
            // A sandbox that cannot be used does not tell which protection it lacks.
            Err(error) => println!("{}: {check:?} could not run: {error:#}", mutation.name()),
        }
    }
    turned_red
}

/// Leaves out one protection after the other, and demands that a check notices each.
async fn all_are_noticed(map: Map) -> Result<()> {
    let workshop = Workshop::open().await?;
    let before = with_nothing_left_out(&workshop, map).await?;
    let mut unnoticed = Vec::new();
    for mutation in Mutation::ALL.iter().copied() {
        let checks = map(mutation);
        if checks.is_empty() {
            continue;
        }
        let found = turned_red(&workshop, &before, mutation, checks).await;
        let found: Vec<_> = found.into_iter().collect();
        println!("{}: {}", mutation.name(), found.join(" "));
        if found.is_empty() {
            unnoticed.push(mutation.name());
        }
    }
    // The control: with nothing left out the same programs pass every check that is mapped.
    let known: Vec<_> = before.into_values().flatten().collect();
    report::none(&known)?;
    if !unnoticed.is_empty() {
        bail!("nothing noticed that these were left out: {unnoticed:?}");
    }
    Ok(())
}

#[tokio::test]
async fn every_protection_that_is_left_out_is_noticed() -> Result<()> {
    all_are_noticed(mapped).await
}

#[tokio::test]
async fn every_protection_that_is_left_out_of_a_copied_kernel_is_noticed() -> Result<()> {
    all_are_noticed(mapped_to_copies).await
}

#[test]
fn every_protection_has_a_check_that_is_to_notice() {
    for mutation in Mutation::ALL.iter().copied() {
        let checks = mapped(mutation).len() + mapped_to_copies(mutation).len();
        assert!(
            checks > 0,
            "nothing is to notice without {}",
            mutation.name()
        );
    }
}
