//! Sandboxes in containers of a Docker engine, of the first image that is allowed.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use glovebox_runtime_engine::{EngineRuntime, Options};

use super::{ProgramError, from_runtime};
use crate::config::{Config, Fault};

const NAME: &str = "docker";

/// Where Docker listens unless it was told otherwise.
const SOCKET: &str = "/var/run/docker.sock";

/// How long one call of the engine may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Takes up the engine and the sandboxes that it has of this installation.
pub(super) async fn start(
    config: &Config,
    read: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Arc<EngineRuntime>, ProgramError> {
    let given = read("GATEWAY_DOCKER_SOCKET").filter(|value| !value.is_empty());
    let Some(image) = config.images.iter().next() else {
        return Err(ProgramError::Config(vec![Fault {
            variable: "GATEWAY_ALLOWED_IMAGES",
            what: "is empty".into(),
            fix: "name the image that sandboxes are made of".into(),
        }]));
    };
    let options = Options {
        socket: given.map_or_else(|| SOCKET.into(), PathBuf::from),
        image: image.into(),
        runtime: None,
        installation: config.installation,
        state: config.state.clone(),
        patience: PATIENCE,
    };
    let runtime = EngineRuntime::start(options).await;
    Ok(Arc::new(
        runtime.map_err(|error| from_runtime(NAME, error))?,
    ))
}
