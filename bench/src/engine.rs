//! Docker as people use it without us: its programs, and its interface over the socket.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use glovebox_protocol::limits::Limits;
use serde_json::{Value, json};

/// Where the engine listens, as the gateway is told nothing else.
const SOCKET: &str = "/var/run/docker.sock";

/// The image of sandboxes, which `make images` builds.
const IMAGE: &str = "glovebox-sandbox";

/// How long the engine may take to one answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A Docker engine that answers and has the image of sandboxes.
#[derive(Debug)]
pub(crate) struct Engine {
    /// Its name and version.
    pub(crate) peer: String,
}

impl Engine {
    /// The one of this machine; or why nothing can be measured, in words.
    pub(crate) fn find() -> Result<Self, String> {
        let version = ask("GET", "/version", None)
            .map_err(|_| "no engine answers; start one with scripts/engine".to_owned())?;
        ask("GET", &format!("/images/{IMAGE}/json"), None)
            .map_err(|_| format!("the engine has no image {IMAGE}; make one with `make images`"))?;
        let version = version["Version"].as_str().unwrap_or("?");
        Ok(Self {
            peer: format!("docker {version}"),
        })
    }

    /// Makes and starts a container that does nothing, limited as a sandbox is.
    ///
    /// # Errors
    /// When the engine refuses.
    pub(crate) fn start(&self, limits: &Limits) -> Result<Container> {
        let memory = limits.sandbox_memory_bytes();
        let body = json!({
            "Image": IMAGE,
            "Cmd": ["sleep", "600"],
            "HostConfig": {
                "NetworkMode": "none",
                "ReadonlyRootfs": true,
                "CapDrop": ["ALL"],
                "SecurityOpt": ["no-new-privileges"],
                "PidsLimit": limits.processes,
                "Memory": memory,
                "MemorySwap": memory,
                "NanoCpus": u64::from(limits.cpu_millis) * 1_000_000,
                "Tmpfs": { "/workspace": format!("size={}", limits.workspace_bytes), "/tmp": "" },
                "LogConfig": { "Type": "none" },
            },
        });
        let made = ask("POST", "/containers/create", Some(&body))?;
        let id = made["Id"].as_str().context("the engine names no id")?;
        let container = Container(id.into());
        ask("POST", &format!("/containers/{id}/start"), None)?;
        Ok(container)
    }

    /// Milliseconds from nothing to the first output of `docker run IMAGE python3 -c CODE`.
    ///
    /// # Errors
    /// When it fails.
    pub(crate) fn run_ms(&self, code: &str) -> Result<f64> {
        let arguments = ["run", "--rm", "--network", "none", IMAGE];
        first_output_ms(&arguments, code)
    }
}

/// A container, removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Container(String);

impl Container {
    /// Milliseconds from nothing to the first output of `docker exec … python3 -c CODE`.
    ///
    /// # Errors
    /// When it fails.
    pub(crate) fn exec_ms(&self, code: &str) -> Result<f64> {
        first_output_ms(&["exec", &self.0], code)
    }

    /// Ends and removes it.
    ///
    /// # Errors
    /// When the engine refuses.
    pub(crate) fn remove(self) -> Result<()> {
        self.take_away()
    }

    fn take_away(&self) -> Result<()> {
        ask("DELETE", &format!("/containers/{}?force=1", self.0), None).map(drop)
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // After `remove` there is none.
        let _ = self.take_away();
    }
}

fn first_output_ms(arguments: &[&str], code: &str) -> Result<f64> {
    let begun = Instant::now();
    let mut child = Command::new("docker")
        .args(arguments)
        .args(["python3", "-c", code])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("starting docker")?;
    let mut first = [0];
    let stdout = child.stdout.as_mut();
    let read = stdout.map(|stdout| stdout.read_exact(&mut first));
    let taken = begun.elapsed().as_secs_f64() * 1000.0;
    let status = child.wait()?;
    ensure!(
        status.success() && matches!(read, Some(Ok(()))),
        "`docker {}` ended with {status}",
        arguments[0]
    );
    Ok(taken)
}

/// One request over a connection of its own, which the engine closes after its answer.
fn ask(method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
    let mut stream = UnixStream::connect(SOCKET).context("connecting to the Docker engine")?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let body = body.map(Value::to_string).unwrap_or_default();
    let kind = if body.is_empty() {
        ""
    } else {
        "Content-Type: application/json\r\n"
    };
    write!(
        stream,
        "{method} {path} HTTP/1.0\r\nHost: docker\r\n{kind}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .context("the engine's answer has no end of its head")?;
    let status = head.split(' ').nth(1).unwrap_or_default();
    ensure!(
        status.starts_with('2'),
        "the engine answers {method} {path} with {status}: {}",
        body.trim()
    );
    Ok(serde_json::from_str(body).unwrap_or_default())
}
