//! The engine's API, with a time limit on every call and its failures in our words.

use std::collections::HashMap;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use bollard::container::{AttachContainerResults, LogOutput};
use bollard::errors::Error;
use bollard::models::{
    ContainerCreateBody, ContainerInspectResponse, ContainerSummary, ImageInspect, SystemInfo,
};
use bollard::query_parameters::{
    AttachContainerOptions, CreateContainerOptions, KillContainerOptions, ListContainersOptions,
    RemoveContainerOptions, WaitContainerOptions,
};
use bollard::{API_DEFAULT_VERSION, Docker};
use futures_util::{Stream, StreamExt as _};
use glovebox_runtime::RuntimeError;
use tokio::io::AsyncWrite;

/// What an engine did not do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EngineError {
    /// There is no such container or image.
    #[error("the engine knows no such thing")]
    Missing(#[source] Error),
    /// Something with this name is there, or is in a state in which this cannot be done.
    #[error("the engine finds it in the way")]
    Conflict(#[source] Error),
    /// It cannot be reached, is not done in time, or has failed.
    #[error("the engine cannot be asked")]
    Failed(#[source] Error),
}

impl From<Error> for EngineError {
    fn from(error: Error) -> Self {
        match &error {
            Error::DockerResponseServerError { status_code, .. } => match status_code {
                404 => Self::Missing(error),
                409 => Self::Conflict(error),
                _ => Self::Failed(error),
            },
            _ => Self::Failed(error),
        }
    }
}

impl EngineError {
    /// The failure of whoever wanted this done.
    pub(crate) fn while_doing(self, doing: impl Into<String>) -> RuntimeError {
        RuntimeError::Unavailable {
            doing: doing.into(),
            fix: Some(
                "see on the runtime's host whether the container engine runs and answers \
                 (docker version)"
                    .into(),
            ),
            cause: self.into(),
        }
    }
}

/// The standard streams of a container.
pub(crate) struct Attached {
    pub(crate) output: Pin<Box<dyn Stream<Item = Result<LogOutput, Error>> + Send>>,
    pub(crate) input: Pin<Box<dyn AsyncWrite + Send>>,
}

/// A container engine.
#[derive(Debug, Clone)]
pub(crate) struct Engine {
    docker: Docker,
}

type Result<T, E = EngineError> = std::result::Result<T, E>;

impl Engine {
    /// Takes up the engine behind a socket; `patience` is how long one call may take.
    pub(crate) async fn connect(socket: &Path, patience: Duration) -> Result<Self> {
        let path = socket.to_string_lossy();
        let docker =
            Docker::connect_with_unix(&path, patience.as_secs().max(1), API_DEFAULT_VERSION)?;
        let docker = docker.negotiate_version().await?;
        Ok(Self { docker })
    }

    pub(crate) async fn info(&self) -> Result<SystemInfo> {
        Ok(self.docker.info().await?)
    }

    pub(crate) async fn image(&self, image: &str) -> Result<ImageInspect> {
        Ok(self.docker.inspect_image(image).await?)
    }

    /// Makes a container and gives its id.
    pub(crate) async fn create(&self, name: &str, body: ContainerCreateBody) -> Result<String> {
        let options = CreateContainerOptions {
            name: Some(name.into()),
            ..Default::default()
        };
        Ok(self.docker.create_container(Some(options), body).await?.id)
    }

    pub(crate) async fn inspect(&self, container: &str) -> Result<ContainerInspectResponse> {
        Ok(self.docker.inspect_container(container, None).await?)
    }

    /// Joins us to a container's standard streams; also before it is started, so that nothing is
    /// lost. Keys that detach are switched off.
    pub(crate) async fn attach(&self, container: &str) -> Result<Attached> {
        let options = AttachContainerOptions {
            detach_keys: Some(String::new()),
            stream: true,
            stdin: true,
            stdout: true,
            ..Default::default()
        };
        let AttachContainerResults { output, input } = self
            .docker
            .attach_container(container, Some(options))
            .await?;
        Ok(Attached { output, input })
    }

    pub(crate) async fn start(&self, container: &str) -> Result<()> {
        Ok(self.docker.start_container(container, None).await?)
    }

    /// Kills a container and waits until it has ended. One that has ended, or is not there, is as
    /// good. Whoever is attached has to have let go: an engine hangs where output is not read.
    pub(crate) async fn kill(&self, container: &str) -> Result<()> {
        let options = KillContainerOptions {
            signal: "SIGKILL".into(),
        };
        match self
            .docker
            .kill_container(container, Some(options))
            .await
            .map_err(Into::into)
        {
            Ok(()) | Err(EngineError::Conflict(_)) => {}
            Err(EngineError::Missing(_)) => return Ok(()),
            Err(error) => return Err(error),
        }
        let options = WaitContainerOptions {
            condition: "not-running".into(),
        };
        let mut ended = self.docker.wait_container(container, Some(options));
        match ended.next().await {
            // That it ended with something else than 0 is no failure of ours.
            None | Some(Ok(_) | Err(Error::DockerContainerWaitError { .. })) => Ok(()),
            Some(Err(error)) => match error.into() {
                EngineError::Missing(_) => Ok(()),
                error => Err(error),
            },
        }
    }

    /// Ends and removes a container with all that is its own. One that is not there is as good.
    pub(crate) async fn remove(&self, container: &str) -> Result<()> {
        let options = RemoveContainerOptions {
            v: true,
            force: true,
            link: false,
        };
        match self
            .docker
            .remove_container(container, Some(options))
            .await
            .map_err(Into::into)
        {
            Ok(()) | Err(EngineError::Missing(_)) => Ok(()),
            // Somebody else is removing it.
            Err(EngineError::Conflict(_)) => self.until_gone(container).await,
            Err(error) => Err(error),
        }
    }

    async fn until_gone(&self, container: &str) -> Result<()> {
        let options = WaitContainerOptions {
            condition: "removed".into(),
        };
        let mut gone = self.docker.wait_container(container, Some(options));
        match gone.next().await {
            None | Some(Ok(_) | Err(Error::DockerContainerWaitError { .. })) => Ok(()),
            Some(Err(error)) => match error.into() {
                EngineError::Missing(_) => Ok(()),
                error => Err(error),
            },
        }
    }

    /// Every container that has this label, running or not.
    pub(crate) async fn list(&self, label: &str) -> Result<Vec<ContainerSummary>> {
        let options = ListContainersOptions {
            all: true,
            filters: Some(HashMap::from([("label".into(), vec![label.into()])])),
            ..Default::default()
        };
        Ok(self.docker.list_containers(Some(options)).await?)
    }
}
