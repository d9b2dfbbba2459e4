//! The server as a program of its own, set up as its first administrator does it, and one client
//! that keeps its connection.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::net::TcpStream;

/// Sandboxes at once, and new ones in an hour: the most that a workspace can be given, so that
/// nothing that is measured meets a quota.
const QUOTAS: (u64, u64) = (1_000, 100_000);

/// Bytes of artifacts in a day, for the same reason.
const ARTIFACT_BYTES: u64 = 1 << 40;

/// How long its gateway may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that answers, with code execution on.
pub(crate) struct Server {
    child: Child,
    address: SocketAddr,
    key: String,
    /// Who set it up.
    admin: Option<(&'static str, String)>,
    /// Its workspace.
    pub(crate) workspace: String,
    /// Whose key it is.
    pub(crate) user: String,
    folder: tempfile::TempDir,
}

impl Server {
    /// Starts one on SQLite, on trees that are set up, and sets it up. It works on these `queues`;
    /// on `none`, nothing happens but what is asked for.
    ///
    /// # Errors
    /// When it does not start, or refuses what its administrator asks for.
    pub(crate) async fn start(programs: &Path, data: &Path, queues: &str) -> Result<Self> {
        let folder = tempfile::tempdir().context("making a folder for the server")?;
        let mut child = Command::new(programs.join("glovebox"))
            .args(["serve", "--listen", "127.0.0.1:0", "--queues", queues])
            .args(["--log", "error", "--data"])
            .arg(data)
            .arg("--server-data")
            .arg(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting glovebox serve")?;
        let stdout = child.stdout.take().context("it has no standard output")?;
        let mut lines = BufReader::new(stdout).lines();
        let mut next = || {
            lines
                .next()
                .context("it ended before it listened")?
                .context("reading")
        };
        let address = next()?
            .strip_prefix("Glovebox is at http://")
            .context("it does not say where it is")?
            .parse()?;
        let link = {
            next()?;
            next()?
        };
        let token = link
            .split_once("#token=")
            .context("the link has no token")?
            .1;
        let mut server = Self {
            child,
            address,
            key: String::new(),
            admin: None,
            workspace: String::new(),
            user: String::new(),
            folder,
        };
        server
            .set_up(token.trim())
            .await
            .context("setting the server up")?;
        Ok(server)
    }

    async fn set_up(&mut self, token: &str) -> Result<()> {
        let mut client = Client::connect(self.address, None).await?;
        let who = json!({ "token": token, "email": "bench@example.com", "name": "Bench",
            "password": "correct horse battery" });
        let me = client.ask("POST", "/api/v1/setup", &who).await?;
        self.workspace = text(&me["memberships"][0]["workspace_id"])?;
        self.user = text(&me["user"]["id"])?;
        let profiles = client
            .ask("GET", "/api/v1/admin/profiles", &Value::Null)
            .await?;
        let profile = text(&profiles["items"][0]["profile"]["id"])?;
        let one = format!("/api/v1/admin/profiles/{profile}");
        // The gateway may still be starting.
        let deadline = Instant::now() + PATIENCE;
        loop {
            let path = format!("{one}/test");
            let tested = client.ask("POST", &path, &json!({})).await?;
            if tested["test"]["is_passed"] == true {
                break;
            }
            ensure!(Instant::now() < deadline, "the test fails: {tested}");
        }
        for (method, what) in [
            ("POST", "canary"),
            ("PUT", "acknowledgements/shared_kernel"),
            ("POST", "activate"),
        ] {
            client
                .ask(method, &format!("{one}/{what}"), &json!({}))
                .await?;
        }
        let on = json!({ "code_execution": true, "default_profile_id": profile });
        client.ask("PATCH", "/api/v1/admin/sandbox", &on).await?;
        let all = client
            .ask("GET", "/api/v1/admin/workspaces", &Value::Null)
            .await?;
        let mut quotas = all["items"][0]["quotas"].clone();
        quotas["max_concurrent"] = json!(QUOTAS.0);
        quotas["max_jobs_per_hour"] = json!(QUOTAS.1);
        quotas["max_artifact_bytes_per_day"] = json!(ARTIFACT_BYTES);
        let on = json!({ "version": all["items"][0]["version"], "code_execution": true,
            "quotas": quotas });
        let path = format!("/api/v1/admin/workspaces/{}", self.workspace);
        client.ask("PATCH", &path, &on).await?;
        let path = format!("/api/v1/workspaces/{}/api-keys", self.workspace);
        let wanted = json!({ "name": "bench",
            "scopes": ["code_execution:run", "artifacts:read", "threads:read", "threads:write"] });
        self.key = text(&client.ask("POST", &path, &wanted).await?["token"])?;
        self.admin = client.who;
        Ok(())
    }

    /// Sets the model that chat asks.
    ///
    /// # Errors
    /// When it is refused.
    pub(crate) async fn set_model(&self, base_url: &str) -> Result<()> {
        let mut client = Client::connect(self.address, None).await?;
        client.who.clone_from(&self.admin);
        let wanted = json!({ "name": "Scripted", "base_url": base_url, "model": "scripted" });
        client.ask("POST", "/api/v1/admin/models", &wanted).await?;
        Ok(())
    }

    /// The file of its database.
    pub(crate) fn database(&self) -> PathBuf {
        self.folder.path().join("glovebox.db")
    }

    /// A client with a key and a connection of its own.
    ///
    /// # Errors
    /// When it cannot connect.
    pub(crate) async fn client(&self) -> Result<Client> {
        Client::connect(self.address, Some(&self.key)).await
    }

    /// Ends it and waits for its end.
    ///
    /// # Errors
    /// When it does not end well.
    pub(crate) fn close(mut self) -> Result<()> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.context("it has no id")?, Signal::TERM)?;
        let status = self.child.wait()?;
        ensure!(status.success(), "the server ended with {status}");
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Closed, it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One connection.
pub(crate) struct Client {
    sender: SendRequest<Full<Bytes>>,
    host: String,
    /// The name and the value of the header that says who asks.
    who: Option<(&'static str, String)>,
}

impl Client {
    /// A connection to a place, with a key where it wants one.
    ///
    /// # Errors
    /// When nobody listens there.
    pub(crate) async fn connect(address: SocketAddr, key: Option<&str>) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        // What goes wrong with it is told by the request that meets it.
        tokio::spawn(connection);
        Ok(Self {
            sender,
            host: address.to_string(),
            who: key.map(|key| ("authorization", format!("Bearer {key}"))),
        })
    }

    /// One request; its document. A session that an answer begins is kept.
    ///
    /// # Errors
    /// When it is not answered, or refused.
    pub(crate) async fn ask(&mut self, method: &str, path: &str, body: &Value) -> Result<Value> {
        let bytes = self.bytes(method, path, body).await?;
        serde_json::from_slice(&bytes)
            .with_context(|| format!("reading the answer to {method} {path}"))
    }

    /// The same, without looking into the answer.
    pub(crate) async fn bytes(&mut self, method: &str, path: &str, body: &Value) -> Result<Bytes> {
        let answer = self.send(method, path, body).await?;
        let status = answer.status();
        if let Some(cookie) = answer.headers().get("set-cookie") {
            let cookie = cookie.to_str()?.split(';').next().unwrap_or_default();
            self.who = Some(("cookie", cookie.to_owned()));
        }
        let bytes = answer.into_body().collect().await?.to_bytes();
        let said = || String::from_utf8_lossy(&bytes).into_owned();
        ensure!(status.is_success(), "{method} {path}: {status} {}", said());
        Ok(bytes)
    }

    /// Reads the lines of an answer as they come, until `is_last` says that one is the last. The
    /// connection may not be used again.
    ///
    /// # Errors
    /// When it is refused, or ends before.
    pub(crate) async fn stream(
        &mut self,
        method: &str,
        path: &str,
        body: &Value,
        mut is_last: impl FnMut(&str) -> bool,
    ) -> Result<()> {
        let answer = self.send(method, path, body).await?;
        ensure!(
            answer.status().is_success(),
            "{method} {path}: {}",
            answer.status()
        );
        let (mut body, mut text) = (answer.into_body(), Vec::new());
        loop {
            let frame = body
                .frame()
                .await
                .context("the answer ended before its end")??;
            text.extend_from_slice(frame.data_ref().map_or(&[][..], |data| &data[..]));
            while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = text.drain(..=end).collect();
                if is_last(String::from_utf8_lossy(&line).trim_end()) {
                    return Ok(());
                }
            }
        }
    }

    async fn send(
        &mut self,
        method: &str,
        path: &str,
        body: &Value,
    ) -> Result<hyper::Response<hyper::body::Incoming>> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", &self.host)
            .header("content-type", "application/json");
        if let Some((name, value)) = &self.who {
            request = request.header(*name, value);
        }
        let body = match body {
            Value::Null => Bytes::new(),
            body => body.to_string().into(),
        };
        self.sender.ready().await?;
        let sent = self.sender.send_request(request.body(Full::new(body))?);
        Ok(sent.await?)
    }

    /// A sandbox; its path.
    pub(crate) async fn sandbox(&mut self) -> Result<String> {
        let made = self.ask("POST", "/api/v1/sandboxes", &json!({})).await?;
        Ok(format!("/api/v1/sandboxes/{}", text(&made["id"])?))
    }

    /// Runs code to its end; all of its events, as they are sent.
    pub(crate) async fn execute(&mut self, sandbox: &str, code: &str) -> Result<Bytes> {
        let path = format!("{sandbox}/executions");
        let accepted = self.ask("POST", &path, &json!({ "code": code })).await?;
        let path = format!("{path}/{}/events", text(&accepted["id"])?);
        let events = self.bytes("GET", &path, &Value::Null).await?;
        let ended = String::from_utf8_lossy(&events).contains(r#""how":"succeeded""#);
        ensure!(
            ended,
            "the code did not succeed: {}",
            String::from_utf8_lossy(&events)
        );
        Ok(events)
    }
}

fn text(value: &Value) -> Result<String> {
    Ok(value
        .as_str()
        .context("the answer lacks a text")?
        .to_owned())
}
