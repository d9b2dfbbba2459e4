//! The gateway of this machine, as a child of the server: started, watched, started again.
//!
//! It listens at a Unix socket that only this user can connect to, and ends when the server does:
//! its standard input is a pipe that the server holds. Sandboxes outlive both; the next gateway
//! finds them.
//!
//! Servers that share a data folder share its gateway: one of them starts it and holds a lock for as
//! long as it lives, the others use it, and one of them takes its place when it ends.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use glovebox_protocol::ids::InstallationId;
use glovebox_protocol::sign::PublicKey;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::Instant;
use zeroize::Zeroizing;

use crate::config::{GatewayProgram, MachineRuntime};
use crate::failure::chain;
use crate::lock;

/// How long the next start waits after one that ended at once, at first.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// How long it waits at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// After how long a gateway that ended counts as one that had worked.
const WORKED: Duration = Duration::from_secs(30);

/// How often a server that has no gateway of its own looks whether it is to start one.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What the child is started with.
#[derive(Debug, Clone)]
pub(crate) struct Supervised {
    pub(crate) program: GatewayProgram,
    pub(crate) state: PathBuf,
    pub(crate) socket: PathBuf,
    pub(crate) credential: Zeroizing<String>,
    pub(crate) agent_key: PublicKey,
    pub(crate) installation: InstallationId,
}

impl Supervised {
    /// Starts the gateway, unless another server has, and starts it again whenever it ends. Never
    /// returns; dropped, it ends the gateway.
    pub(crate) async fn run(self) {
        let _lock = self.turn().await;
        let mut pause = FIRST_PAUSE;
        loop {
            let begun = Instant::now();
            match self.start() {
                Ok(mut child) => {
                    let said = follow(&mut child).await;
                    match child.wait().await {
                        Ok(status) => {
                            tracing::warn!(%status, said, "the gateway of this machine ended");
                        }
                        Err(error) => {
                            tracing::error!(error = chain(&error), "waiting for the gateway");
                        }
                    }
                }
                Err(error) => {
                    tracing::error!(
                        program = %self.program.program.display(),
                        error = chain(&error),
                        "the gateway of this machine does not start"
                    );
                }
            }
            if begun.elapsed() > WORKED {
                pause = FIRST_PAUSE;
            }
            tokio::time::sleep_until(Instant::now() + pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Waits until no other server looks after the gateway of this folder.
    async fn turn(&self) -> File {
        let path = self.program.run.join("gateway.lock");
        let mut ticks = tokio::time::interval(LOOK_EVERY);
        let mut has_told = false;
        loop {
            ticks.tick().await;
            match lock::take(&path) {
                Ok(Some(lock)) => return lock,
                Ok(None) if has_told => {}
                Ok(None) => {
                    has_told = true;
                    tracing::info!("another server looks after the gateway of this machine");
                }
                Err(error) => {
                    tracing::error!(path = %path.display(), error = chain(&error), "locking");
                }
            }
        }
    }

    fn start(&self) -> std::io::Result<Child> {
        let limits = [
            (
                "GATEWAY_MAX_SANDBOXES",
                self.program.max_sandboxes.map(u64::from),
            ),
            ("GATEWAY_MAX_MEMORY", self.program.max_memory),
        ];
        let limits = limits
            .into_iter()
            .filter_map(|(name, limit)| Some((name, limit?.to_string())));
        let socket = match &self.program.runtime {
            MachineRuntime::Docker { socket } => socket.as_ref(),
            MachineRuntime::Embedded => None,
        };
        Command::new(&self.program.program)
            .env_clear()
            .envs(limits)
            .envs(socket.map(|path| ("GATEWAY_DOCKER_SOCKET", path)))
            .env("PATH", &self.program.search)
            .env("GATEWAY_RUNTIME", self.program.runtime.name())
            .env("GATEWAY_LISTEN", format!("unix:{}", self.socket.display()))
            .env("GATEWAY_CREDENTIALS", self.credential.as_str())
            .env("GATEWAY_AGENT_KEYS", self.agent_key.to_string())
            .env("GATEWAY_INSTALLATION_ID", self.installation.to_string())
            .env("GATEWAY_STATE_DIR", &self.state)
            .env("GATEWAY_ACCEPT_WEAKER", &self.program.accept_weaker)
            .env("GATEWAY_END_WITH_INPUT", "1")
            .env("GLOVEBOX_DATA", &self.program.tree)
            .env("GLOVEBOX_RUN", self.program.run.join("gateway"))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
    }
}

/// Passes the gateway's journal on into the server's, until it ends. Gives its last line: of one that
/// could not go on, that says why.
async fn follow(child: &mut Child) -> Option<String> {
    let mut lines = BufReader::new(child.stderr.take()?).lines();
    let mut last = None;
    while let Ok(Some(line)) = lines.next_line().await {
        tracing::info!(gateway = line, "the gateway of this machine says");
        last = Some(line);
    }
    last
}

/// Where the socket lies.
pub(crate) fn socket(run: &Path) -> PathBuf {
    run.join("gateway.sock")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_thing_that_a_gateway_said_is_kept_as_the_reason_of_its_end() {
        let mut child = Command::new("sh")
            .args(["-c", "echo listening >&2; echo no such socket >&2; exit 1"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let said = follow(&mut child).await;
        assert_eq!(said.as_deref(), Some("no such socket"));
        child.wait().await.unwrap();
    }
}
