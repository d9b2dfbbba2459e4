//! The embedded runtime: its programs are found beside this one, its data where the command keeps
//! them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use glovebox_box::control::DEFAULT_ROOT_RANGE_START;
use glovebox_box::weakness::Weakness;
use glovebox_protocol::limits::Limits;
use glovebox_runtime::{ReadyKind, Runtime as _, Start};
use glovebox_runtime_embedded::tree::{LOCK, Programs, Setup, Silent};
use glovebox_runtime_embedded::{Afterwards, EmbeddedRuntime, Options};

use super::{ProgramError, from_runtime};
use crate::config::{Config, Fault, KeptReady};

const NAME: &str = "embedded";

/// Makes sure of the tree that sandboxes stand on, starts the launcher or finds the one that is
/// there, and has it keep ready what the configuration says.
pub(super) async fn start(
    config: &Config,
    read: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Arc<EmbeddedRuntime>, ProgramError> {
    let find = |name: &str| find(name);
    let launcher = find("glovebox-launcher")?;
    let programs = Programs::found(find)?;
    let (data, run) = folders(read)?;
    let accept_weaker = accepted(read)?;
    let search = read("PATH").unwrap_or_default();
    let setup = Setup {
        data: data.clone(),
        programs,
        python: None,
        search: std::env::split_paths(&search).collect(),
        lock: LOCK.into(),
        office: true,
    };
    let trees = setup
        .ensure(&mut Silent)
        .map_err(|error| ProgramError::Runtime {
            name: NAME,
            source: error.into(),
        })?;
    let options = Options {
        launcher,
        data,
        run,
        layers: trees.layers,
        installation: config.installation,
        root_range_start: DEFAULT_ROOT_RANGE_START,
        accept_weaker,
        afterwards: Afterwards::TheyGoOn,
    };
    let runtime = EmbeddedRuntime::start(options).await;
    let runtime = runtime.map_err(|error| from_runtime(NAME, error))?;
    let kept = runtime.keep_only_ready(kinds(&config.keep_ready)).await;
    kept.map_err(|error| from_runtime(NAME, error))?;
    Ok(Arc::new(runtime))
}

/// Where the root tree and the sockets are: as told, else where the command `glovebox` has them.
/// Sockets of a gateway lie apart, as its launcher outlives it.
fn folders(read: &dyn Fn(&str) -> Option<OsString>) -> Result<(PathBuf, PathBuf), ProgramError> {
    let given = |name: &str| {
        let given = read(name).filter(|value| !value.is_empty());
        given.map(PathBuf::from)
    };
    let absolute = |name: &str| given(name).filter(|path| path.is_absolute());
    let (base_of_data, base_of_run) = if rustix::process::geteuid().is_root() {
        (Some("/var/lib".into()), Some("/run".into()))
    } else {
        let home = || Some(absolute("HOME")?.join(".local/share"));
        let data = absolute("XDG_DATA_HOME").or_else(home);
        (data, absolute("XDG_RUNTIME_DIR"))
    };
    let choose = |name: &'static str, base: Option<PathBuf>, below: &str| {
        let usual = || base.map(|base| base.join(below));
        given(name).or_else(usual).ok_or_else(|| {
            let fix = "name a folder that is the gateway's user's alone";
            fault(name, "is not set, and there is no usual place", fix)
        })
    };
    Ok((
        choose("GLOVEBOX_DATA", base_of_data, "glovebox")?,
        choose("GLOVEBOX_RUN", base_of_run, "glovebox-gateway")?,
    ))
}

/// The kinds that the configuration names, and how many of each.
fn kinds(kept: &[KeptReady]) -> Vec<(ReadyKind, u32)> {
    let kind = |one: &KeptReady| ReadyKind {
        trust_domain: one.trust_domain.clone(),
        start: Start::Template,
        limits: Limits::of(one.class),
    };
    kept.iter().map(|one| (kind(one), one.count)).collect()
}

/// `GATEWAY_ACCEPT_WEAKER`: protections whose lack is accepted by name.
fn accepted(read: &dyn Fn(&str) -> Option<OsString>) -> Result<Vec<Weakness>, ProgramError> {
    let name = "GATEWAY_ACCEPT_WEAKER";
    let text = read(name).unwrap_or_default();
    let text = text.to_string_lossy();
    let words = text
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty());
    words
        .map(str::parse)
        .collect::<Result<_, _>>()
        .map_err(|_| {
            let fix = "list names that `glovebox doctor` gives after --accept-weaker";
            fault(name, "names no protection that there is", fix)
        })
}

/// One of our programs: beside this one, else in `../libexec/glovebox`.
fn find(name: &str) -> Result<PathBuf, ProgramError> {
    let failed = |source| ProgramError::Runtime { name: NAME, source };
    let own = std::env::current_exe().map_err(|error| failed(error.into()))?;
    let beside = own.parent().unwrap_or(Path::new("/"));
    let places = [
        beside.join(name),
        beside.join("../libexec/glovebox").join(name),
    ];
    let found = places.iter().find(|path| path.is_file()).cloned();
    found.ok_or_else(|| {
        failed(
            format!(
                "{name} is neither {} nor {}; install Glovebox anew",
                places[0].display(),
                places[1].display()
            )
            .into(),
        )
    })
}

fn fault(variable: &'static str, what: &str, fix: &str) -> ProgramError {
    ProgramError::Config(vec![Fault {
        variable,
        what: what.into(),
        fix: fix.into(),
    }])
}
