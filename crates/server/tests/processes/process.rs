//! Starting `glovebox serve` and `glovebox worker`, and killing them.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use glovebox_testkit::{program, test_data};
use serde_json::{Value, json};

use crate::visitor::Visitor;
use crate::wire::Who;

/// How long something may take that is bound to come.
const PATIENCE: Duration = Duration::from_secs(90);

/// A process of ours. Dropped, it is killed.
pub(crate) struct Process {
    child: Child,
}

impl Drop for Process {
    fn drop(&mut self) {
        // Where a test has killed it there is nothing left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Process {
    /// Ends it as `kill -9` does.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends the child of this name as `kill -9` does.
    pub(crate) fn kill_child(&self, name: &str) {
        let own = self.child.id().to_string();
        let children = fs_err::read_dir("/proc").unwrap().flatten();
        let killed = children
            .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
            .filter(|pid| {
                let stat = fs_err::read_to_string(format!("/proc/{pid}/stat"));
                let stat = stat.unwrap_or_default();
                let Some((head, tail)) = stat.rsplit_once(") ") else {
                    return false;
                };
                // The name is cut by Linux.
                head.split_once('(')
                    .is_some_and(|(_, comm)| name.starts_with(comm))
                    && tail.split(' ').nth(1) == Some(&own)
            })
            .map(|pid| {
                let killed = Command::new("kill").args(["-9", &pid.to_string()]).status();
                assert!(killed.unwrap().success());
            });
        assert_eq!(killed.count(), 1, "there is one {name}");
    }
}

/// A server that answers.
pub(crate) struct Server {
    pub(crate) process: Process,
    pub(crate) visitor: Visitor,
    /// For the first run, while nobody looks after it.
    pub(crate) link: Option<String>,
}

/// Where a server's data are.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) folder: PathBuf,
    pub(crate) database: Option<String>,
}

impl Place {
    fn command(&self, what: &str) -> Command {
        let mut command = Command::new(program("glovebox").unwrap());
        command.arg(what).arg("--data").arg(test_data().unwrap());
        command.arg("--server-data").arg(&self.folder);
        if let Some(database) = &self.database {
            command.arg("--database").arg(database);
        }
        command
    }

    /// Starts a server and waits until it says where it is.
    pub(crate) fn serve(&self, more: &[&str]) -> Server {
        let mut child = self
            .command("serve")
            .args(["--listen", "127.0.0.1:0"])
            .args(more)
            .stdout(Stdio::piped())
            .stderr(self.log("server"))
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let process = Process { child };
        let first = lines.next().expect("it says where it is").unwrap();
        let address: SocketAddr = first
            .strip_prefix("Glovebox is at http://")
            .unwrap_or_else(|| panic!("it said {first}"))
            .parse()
            .unwrap();
        let link = first_run_link(address, &mut lines);
        Server {
            process,
            visitor: Visitor { address },
            link,
        }
    }

    /// Starts a server whose log cannot be written, and reads where it and its metrics are.
    pub(crate) fn serve_without_log(&self) -> (Process, SocketAddr, SocketAddr) {
        let full = fs_err::OpenOptions::new().write(true).open("/dev/full");
        let mut child = self
            .command("serve")
            .args(["--listen", "127.0.0.1:0"])
            .args(["--metrics-listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(full.unwrap().into_parts().0)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let process = Process { child };
        let mut next = |before: &str, behind: &str| -> SocketAddr {
            let line = lines.next().expect("it says where it is").unwrap();
            let rest = line.strip_prefix(before);
            let address = rest.and_then(|rest| rest.strip_suffix(behind));
            let address = address.unwrap_or_else(|| panic!("it said {line}"));
            address.parse().unwrap()
        };
        let address = next("Glovebox is at http://", "");
        let metrics = next("Its metrics are at http://", "/metrics");
        (process, address, metrics)
    }

    /// Starts a worker.
    pub(crate) fn work(&self) -> Process {
        self.work_with(&[])
    }

    /// Starts a worker that is told more.
    pub(crate) fn work_with(&self, more: &[&str]) -> Process {
        let child = self
            .command("worker")
            .args(more)
            .stdout(Stdio::null())
            .stderr(self.log("worker"))
            .spawn()
            .unwrap();
        Process { child }
    }

    /// Brings the database to this version.
    pub(crate) fn migrate(&self) {
        let migrated = self.command("migrate").output().unwrap();
        let complaint = String::from_utf8_lossy(&migrated.stderr);
        assert!(migrated.status.success(), "{complaint}");
    }

    /// What processes say goes to a file, which a person may look into when a test fails.
    fn log(&self, who: &str) -> Stdio {
        let path = self.folder.join(format!("{who}.log"));
        let file = fs_err::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path);
        file.unwrap().into_parts().0.into()
    }
}

/// The link of the first run. Of a server that somebody looks after there is none, and to wait for
/// it would be to wait for the server's end.
fn first_run_link(
    address: SocketAddr,
    lines: &mut impl Iterator<Item = std::io::Result<String>>,
) -> Option<String> {
    is_new(address).then(|| {
        lines
            .nth(1)
            .expect("it gives a link")
            .unwrap()
            .trim()
            .to_owned()
    })
}

fn is_new(address: SocketAddr) -> bool {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let request =
        format!("GET /api/v1/setup HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.contains(r#""needs_setup":true"#)
}

impl Server {
    /// What the first administrator does, once the gateway answers. Gives the session and the
    /// workspace.
    pub(crate) async fn begin(&self) -> (Who, String) {
        let link = self.link.as_deref().expect("it is a first run");
        self.visitor.open(link).await
    }

    /// Ends every sandbox of a workspace: they would outlive the test.
    pub(crate) async fn end_sandboxes(&self, who: &Who, workspace: &str) {
        let path = format!("/api/v1/sandboxes?workspace_id={workspace}");
        let listed = self.visitor.get(who, &path).await.ok();
        for sandbox in listed["items"].as_array().unwrap() {
            let path = format!("/api/v1/sandboxes/{}", sandbox["id"].as_str().unwrap());
            self.visitor
                .call(who, "DELETE", &path, &json!({}))
                .await
                .ok();
        }
    }

    /// Makes a sandbox.
    pub(crate) async fn sandbox(&self, who: &Who, workspace: &str) -> String {
        let wanted = json!({ "workspace_id": workspace });
        let made = self
            .visitor
            .call(who, "POST", "/api/v1/sandboxes", &wanted)
            .await
            .ok();
        made["id"].as_str().unwrap().to_owned()
    }

    /// Begins code and gives the path of its execution, once the code has made this file.
    pub(crate) async fn begin_code(
        &self,
        who: &Who,
        sandbox: &str,
        code: &str,
        file: &str,
    ) -> String {
        let path = format!("/api/v1/sandboxes/{sandbox}");
        let executions = format!("{path}/executions");
        let body = json!({ "code": code, "time_limit_seconds": 600 });
        let accepted = self
            .visitor
            .call(who, "POST", &executions, &body)
            .await
            .ok();
        let file = format!("{path}/files/{file}");
        until(async || self.visitor.get(who, &file).await.status == 200).await;
        format!("{executions}/{}", accepted["id"].as_str().unwrap())
    }

    /// The value of an expression, once there is a gateway to ask.
    pub(crate) async fn value(&self, who: &Who, sandbox: &str, code: &str) -> Value {
        let path = format!("/api/v1/sandboxes/{sandbox}/executions");
        let body = json!({ "code": code });
        let mut id = String::new();
        until(async || {
            let accepted = self.visitor.call(who, "POST", &path, &body).await;
            if accepted.status != 202 {
                return false;
            }
            accepted.json()["id"].as_str().unwrap().clone_into(&mut id);
            true
        })
        .await;
        let path = format!("{path}/{id}/events");
        value_of(&self.visitor.events(who, &path).await)
    }
}

/// The value that code ended with.
pub(crate) fn value_of(events: &[Value]) -> Value {
    events
        .iter()
        .find_map(|event| event["data"]["data"].get("text/plain").cloned())
        .unwrap_or_else(|| panic!("no value: {events:?}"))
}

/// Waits until something is so.
pub(crate) async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so().await {
        assert!(Instant::now() < deadline, "it has not come to be so");
        tokio::task::yield_now().await;
    }
}

/// A folder for a server's data, and a database in it.
pub(crate) fn on_sqlite(folder: &Path) -> Place {
    Place {
        folder: folder.to_owned(),
        database: None,
    }
}
