//! Which files a process in a box may use, as a second wall behind the mounts, and that it can
//! neither speak to abstract sockets nor use TCP.
//!
//! The rules are an allow-list: a folder that came to be mounted by mistake stays closed. What
//! the kernel's Landlock does not have yet is left out; which version it is stands in the pod's
//! facts.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, PathBeneath,
    PathFd, Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetStatus,
    Scope,
};
use rustix::io::Errno;

use crate::sys::landlock_abi::landlock_abi;

/// The newest interface whose rights we have thought about.
const KNOWN: ABI = ABI::V6;

/// Folders in which programs and their data lie; absent ones are passed over.
const PROGRAMS: [&str; 8] = [
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/usr",
    "/opt/glovebox/lib",
];

/// Folders that are read and hold no programs.
const DATA: [&str; 4] = [
    "/etc",
    "/proc",
    "/opt/glovebox/share",
    // Without it the first program that lists fonts reads them all.
    "/var/cache/fontconfig",
];

/// Folders that are the sandbox's own.
const OWN: [&str; 3] = ["/workspace", "/tmp", "/dev/shm"];

/// The folder with software of the root tree, except our own.
const SOFTWARE: &str = "/opt";
const OURS: &str = "glovebox";

/// The rules could not be made or did not take hold.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LandlockError {
    /// The kernel refused a rule.
    #[error("landlock rules")]
    Rules(#[source] landlock::RulesetError),
    /// The kernel has Landlock and it did not take hold.
    #[error("landlock rules did not take hold")]
    NotEnforced,
}

impl From<LandlockError> for std::io::Error {
    /// Keeps to a number, because that is what goes through the report of a box's first process.
    fn from(_: LandlockError) -> Self {
        Errno::OPNOTSUPP.into()
    }
}

/// Puts a workload under its rules: the programs, its own folders, the devices, and signals to
/// nobody but the processes of its own call.
pub(crate) fn restrict_workload() -> Result<(), LandlockError> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let mut ruleset = begin(Scope::AbstractUnixSocket | Scope::Signal)?;
    // Listing is allowed everywhere, so that `ls /` works; reading is not.
    ruleset = allow(ruleset, Path::new("/"), AccessFs::ReadDir.into())?;
    for folder in PROGRAMS.map(PathBuf::from).into_iter().chain(software()) {
        ruleset = allow(ruleset, &folder, read | AccessFs::Execute)?;
    }
    for folder in DATA {
        ruleset = allow(ruleset, Path::new(folder), read)?;
    }
    finish(own_folders(ruleset)?)
}

/// Puts the agent under its rules: everything that is there may be read and executed, its own
/// folders written. Signals are free, because it has to end workloads.
pub(crate) fn restrict_agent() -> Result<(), LandlockError> {
    let mut ruleset = begin(Scope::AbstractUnixSocket.into())?;
    let read = AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::Execute;
    ruleset = allow(ruleset, Path::new("/"), read)?;
    finish(own_folders(ruleset)?)
}

/// Cuts a template off from the processes around it: it can trace none that is not a copy of its
/// own, and from Linux 6.12 on signal none. Copies inherit this, so it takes nothing from them that
/// a workload has: it handles block devices, which nobody in a box can make, and TCP, which no
/// workload has.
pub(crate) fn restrict_template() -> Result<(), LandlockError> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::MakeBlock)
        .and_then(|ruleset| ruleset.handle_access(AccessNet::from_all(KNOWN)))
        .and_then(|ruleset| ruleset.scope(Scope::Signal))
        .and_then(Ruleset::create)
        .map_err(LandlockError::Rules)?;
    finish(ruleset)
}

fn own_folders(mut ruleset: RulesetCreated) -> Result<RulesetCreated, LandlockError> {
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::ReadDir;
    ruleset = allow(ruleset, Path::new("/dev"), device)?;
    for folder in OWN {
        let everything = AccessFs::from_all(KNOWN) & !BitFlags::from(AccessFs::IoctlDev);
        ruleset = allow(ruleset, Path::new(folder), everything)?;
    }
    Ok(ruleset)
}

/// What lies in the folder for software, our own programs left out.
fn software() -> Vec<PathBuf> {
    fs_err::read_dir(SOFTWARE)
        .map(|entries| {
            entries
                .flatten()
                .filter(|entry| entry.file_name() != OURS)
                .map(|entry| entry.path())
                .collect()
        })
        .unwrap_or_default()
}

fn begin(scopes: BitFlags<Scope>) -> Result<RulesetCreated, LandlockError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(KNOWN))
        .and_then(|ruleset| ruleset.handle_access(AccessNet::from_all(KNOWN)))
        .and_then(|ruleset| ruleset.scope(scopes))
        .and_then(Ruleset::create)
        .map_err(LandlockError::Rules)
}

fn allow(
    ruleset: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, LandlockError> {
    // What is not there needs no rule.
    let Ok(folder) = PathFd::new(path) else {
        return Ok(ruleset);
    };
    ruleset
        .add_rule(PathBeneath::new(folder, access))
        .map_err(LandlockError::Rules)
}

fn finish(ruleset: RulesetCreated) -> Result<(), LandlockError> {
    let status = ruleset.restrict_self().map_err(LandlockError::Rules)?;
    // The launcher refuses to start without Landlock, unless that was accepted by name.
    if status.ruleset == RulesetStatus::NotEnforced && landlock_abi() > 0 {
        return Err(LandlockError::NotEnforced);
    }
    Ok(())
}
