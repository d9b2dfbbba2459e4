//! What a gateway is told by its environment: read once, checked as a whole, all faults told
//! together.

mod fault;
mod limits;
mod listen;
mod ready;
mod secrets;

use std::ffi::OsString;
use std::path::PathBuf;

use glovebox_protocol::ids::InstallationId;
use glovebox_protocol::sign::PublicKey;

use crate::images::AllowedImages;
pub use fault::Fault;
use fault::Faults;
pub use limits::host_memory_bytes;
pub(crate) use listen::containers_reach;
pub use listen::{Interface, Listen, Transport, interfaces};
pub use ready::KeptReady;
pub use secrets::{CredentialSource, SecretsError, Stamp};

/// Where a gateway keeps its identity when nobody says otherwise.
const STATE_FOLDER: &str = "/var/lib/glovebox-gateway";

/// Sandboxes that may exist at once when nobody says otherwise.
const MAX_SANDBOXES: u32 = 50;

/// Which runtime makes the sandboxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuntimeKind {
    /// Boxes of this machine's own.
    Embedded,
    /// A Docker engine.
    Docker,
}

/// Everything that the environment says.
#[derive(Debug, Clone)]
pub struct Config {
    /// `GATEWAY_RUNTIME`.
    pub runtime: RuntimeKind,
    /// `GATEWAY_LISTEN` and `GATEWAY_INSECURE_HTTP`.
    pub listen: Listen,
    /// `GATEWAY_CREDENTIALS` or `GATEWAY_CREDENTIALS_FILE`.
    pub credentials: CredentialSource,
    /// `GATEWAY_AGENT_KEYS`.
    pub agent_keys: Vec<PublicKey>,
    /// `GATEWAY_INSTALLATION_ID`.
    pub installation: InstallationId,
    /// `GATEWAY_ALLOWED_IMAGES`.
    pub images: AllowedImages,
    /// `GATEWAY_STATE_DIR`.
    pub state: PathBuf,
    /// `GATEWAY_MAX_SANDBOXES`.
    pub max_sandboxes: u32,
    /// `GATEWAY_MAX_MEMORY`, in bytes.
    pub max_memory_bytes: u64,
    /// `GATEWAY_KEEP_READY`.
    pub keep_ready: Vec<KeptReady>,
}

/// What is known of the machine when the environment is read.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Its network interfaces.
    pub interfaces: Vec<Interface>,
    /// Its memory, in bytes.
    pub memory_bytes: u64,
}

/// The variables that a gateway reads, each with its value.
pub(crate) struct Variables<'a> {
    read: &'a dyn Fn(&str) -> Option<OsString>,
    pub(crate) faults: Faults,
}

impl Config {
    /// Reads and checks everything. `read` gives the value of a variable.
    ///
    /// # Errors
    /// Everything that is wrong, each with what to do.
    pub fn read(
        read: &dyn Fn(&str) -> Option<OsString>,
        machine: &Machine,
    ) -> Result<Self, Vec<Fault>> {
        let mut variables = Variables {
            read,
            faults: Faults::default(),
        };
        let runtime = runtime(&mut variables);
        let listen = listen::read(&mut variables, &machine.interfaces);
        let credentials = secrets::read(&mut variables);
        let agent_keys = agent_keys(&mut variables);
        let installation = installation(&mut variables);
        let images = images(&mut variables);
        let state = state_folder(&mut variables);
        let max_sandboxes = limits::sandboxes(&mut variables, MAX_SANDBOXES);
        let max_memory_bytes = limits::memory(&mut variables, machine.memory_bytes);
        let keep_ready = ready::read(&mut variables, runtime);
        let faults = variables.faults.into_list();
        match (
            runtime,
            listen,
            credentials,
            agent_keys,
            installation,
            images,
            state,
        ) {
            (
                Some(runtime),
                Some(listen),
                Some(credentials),
                Some(agent_keys),
                Some(installation),
                Some(images),
                Some(state),
            ) if faults.is_empty() => Ok(Self {
                runtime,
                listen,
                credentials,
                agent_keys,
                installation,
                images,
                state,
                max_sandboxes,
                max_memory_bytes,
                keep_ready,
            }),
            _ => Err(faults),
        }
    }

    /// Reads where the state folder is, and nothing else.
    ///
    /// # Errors
    /// When the variable is no path.
    pub fn read_state_folder(
        read: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<PathBuf, Vec<Fault>> {
        let mut variables = Variables {
            read,
            faults: Faults::default(),
        };
        let state = state_folder(&mut variables);
        state.ok_or_else(|| variables.faults.into_list())
    }
}

impl Variables<'_> {
    /// The value of a variable as text; nothing where it is empty or absent.
    pub(crate) fn text(&mut self, name: &'static str) -> Option<String> {
        let value = (self.read)(name).filter(|value| !value.is_empty())?;
        match value.into_string() {
            Ok(text) => Some(text),
            Err(_) => {
                self.faults
                    .add(name, "is not UTF-8", "give it as plain text");
                None
            }
        }
    }

    /// The same, of one that has to be there.
    fn required(&mut self, name: &'static str, fix: &str) -> Option<String> {
        let is_there = (self.read)(name).is_some_and(|value| !value.is_empty());
        if !is_there {
            self.faults.add(name, "is not set", fix);
        }
        self.text(name)
    }
}

fn runtime(variables: &mut Variables<'_>) -> Option<RuntimeKind> {
    let name = "GATEWAY_RUNTIME";
    let fix = "set it to `embedded` or `docker`";
    match variables.required(name, fix)?.as_str() {
        "embedded" => Some(RuntimeKind::Embedded),
        "docker" => Some(RuntimeKind::Docker),
        _ => {
            variables
                .faults
                .add(name, "names no runtime that there is", fix);
            None
        }
    }
}

fn agent_keys(variables: &mut Variables<'_>) -> Option<Vec<PublicKey>> {
    let name = "GATEWAY_AGENT_KEYS";
    let fix = "give one public key, or two during a rotation with a comma in between; `glovebox key new` prints one";
    let text = variables.required(name, fix)?;
    let keys: Result<Vec<PublicKey>, _> = text.split(',').map(|key| key.trim().parse()).collect();
    match keys {
        Ok(keys) if keys.iter().any(PublicKey::is_weak) => {
            let what = "holds a key for which anybody can sign";
            variables.faults.add(name, what, fix);
            None
        }
        Ok(keys) if keys.len() == 2 && keys[0] == keys[1] => {
            variables.faults.add(name, "holds the same key twice", fix);
            None
        }
        Ok(keys) if matches!(keys.len(), 1 | 2) => Some(keys),
        Ok(keys) => {
            variables
                .faults
                .add(name, format!("holds {} keys", keys.len()), fix);
            None
        }
        Err(_) => {
            let what = "holds something that is no public key (64 lowercase hexadecimal digits)";
            variables.faults.add(name, what, fix);
            None
        }
    }
}

fn installation(variables: &mut Variables<'_>) -> Option<InstallationId> {
    let name = "GATEWAY_INSTALLATION_ID";
    let fix = "set it to the id of the installation that the gateway belongs to";
    match variables.required(name, fix)?.parse() {
        Ok(id) => Some(id),
        Err(error) => {
            variables
                .faults
                .add(name, format!("is no id: {error}"), fix);
            None
        }
    }
}

fn images(variables: &mut Variables<'_>) -> Option<AllowedImages> {
    let name = "GATEWAY_ALLOWED_IMAGES";
    let text = variables.text(name);
    match text.as_deref().unwrap_or(AllowedImages::DEFAULT).parse() {
        Ok(images) => Some(images),
        Err(error) => {
            let fix = "list repositories without tag and digest, with commas in between";
            variables.faults.add(name, error.to_string(), fix);
            None
        }
    }
}

fn state_folder(variables: &mut Variables<'_>) -> Option<PathBuf> {
    let name = "GATEWAY_STATE_DIR";
    let given = (variables.read)(name).filter(|value| !value.is_empty());
    let path = given.map_or_else(|| PathBuf::from(STATE_FOLDER), PathBuf::from);
    if path.is_absolute() {
        Some(path)
    } else {
        variables.faults.add(
            name,
            "is no absolute path",
            "name a folder that only the gateway's user can read",
        );
        None
    }
}

#[cfg(test)]
mod tests;
