//! Stands in for the agent in the tests of the box: says what it sees, and runs what it is told
//! to, for anyone who connects. It knows nothing of signatures and is part of no build that is
//! shipped.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a stand-in that cannot go on says so and ends"
)]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, Stdio};

use glovebox_protocol::agent_config::AgentConfig;
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
enum Order {
    /// Say what can be seen of this process.
    Posture,
    /// Run a program and say how it ended.
    Run {
        argv: Vec<String>,
        #[serde(default)]
        environment: BTreeMap<String, String>,
        #[serde(default)]
        stdin: String,
    },
    /// Say what the count of kills for want of memory is.
    Kills,
    /// End with this status.
    Exit { code: u8 },
    /// Use up memory.
    Eat { mib: usize },
}

#[derive(Serialize)]
struct Ran {
    code: Option<i32>,
    signal: Option<i32>,
    stdout: String,
    stderr: String,
}

fn main() -> ExitCode {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).unwrap();
    let config: AgentConfig = serde_json::from_str(&text).unwrap();
    eprintln!("stand-in agent of {}", config.claim.unwrap().sandbox);
    let listener = UnixListener::from(inherited(config.fds.listener));
    let kills = config.fds.oom_events.map(|events| inherited(events.fd));
    listener.set_nonblocking(false).unwrap();
    for stream in listener.incoming() {
        if let Some(code) = serve(stream.unwrap(), &text, kills.as_ref()) {
            return ExitCode::from(code);
        }
    }
    ExitCode::SUCCESS
}

#[expect(unsafe_code, reason = "descriptors are inherited by number")]
fn inherited(number: i32) -> OwnedFd {
    // SAFETY: the launcher has opened this descriptor for us, and each is taken once.
    unsafe { OwnedFd::from_raw_fd(number) }
}

fn serve(mut stream: UnixStream, config: &str, kills: Option<&OwnedFd>) -> Option<u8> {
    let mut order = String::new();
    stream.read_to_string(&mut order).unwrap();
    let answer = match serde_json::from_str(&order).unwrap() {
        Order::Posture => posture(config),
        Order::Run {
            argv,
            environment,
            stdin,
        } => run(&argv, &environment, &stdin),
        Order::Kills => {
            let mut text = vec![0; 4096];
            let count = rustix::io::pread(kills.unwrap(), &mut text, 0).unwrap();
            String::from_utf8_lossy(&text[..count]).into_owned()
        }
        Order::Exit { code } => return Some(code),
        Order::Eat { mib } => {
            let eaten = vec![1_u8; mib * 1024 * 1024];
            format!("{}", eaten.iter().map(|byte| u64::from(*byte)).sum::<u64>())
        }
    };
    // A test that has seen enough may have hung up.
    let _ = stream.write_all(answer.as_bytes());
    None
}

fn run(argv: &[String], environment: &BTreeMap<String, String>, stdin: &str) -> String {
    let child = Command::new(&argv[0])
        .args(&argv[1..])
        .env_clear()
        .envs(environment)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let ran = match child {
        Ok(mut child) => {
            // Fails when the program does not read; that is its affair.
            let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
            let output = child.wait_with_output().unwrap();
            Ran {
                code: output.status.code(),
                signal: output.status.signal(),
                stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
                stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            }
        }
        Err(error) => Ran {
            code: None,
            signal: None,
            stdout: String::new(),
            stderr: error.to_string(),
        },
    };
    serde_json::to_string(&ran).unwrap()
}

fn posture(config: &str) -> String {
    let mut seen = BTreeMap::new();
    let mut see = |name: &str, value: String| {
        seen.insert(name.to_owned(), value);
    };
    for file in [
        "status",
        "mountinfo",
        "uid_map",
        "gid_map",
        "setgroups",
        "cgroup",
        "limits",
        "environ",
        "cmdline",
        "attr/current",
    ] {
        let text = fs_err::read(format!("/proc/self/{file}")).map_or_else(
            |error| format!("error: {error}"),
            |bytes| String::from_utf8_lossy(&bytes).into_owned(),
        );
        see(file, text);
    }
    for space in ["user", "pid", "mnt", "net", "ipc", "uts", "cgroup"] {
        see(
            &format!("ns/{space}"),
            link(format!("/proc/self/ns/{space}")),
        );
    }
    see("cwd", link("/proc/self/cwd"));
    see("root", link("/proc/self/root"));
    let mut fds: Vec<_> = fs_err::read_dir("/proc/self/fd")
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| format!("{} {}", path.file_name().unwrap().display(), link(&path)))
        .collect();
    fds.sort();
    see("fds", fds.join("\n"));
    for folder in ["/", "/dev", "/proc"] {
        let mut names: Vec<_> = fs_err::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().display().to_string())
            .collect();
        names.sort();
        see(&format!("ls {folder}"), names.join("\n"));
    }
    let uname = rustix::system::uname();
    see("hostname", uname.nodename().to_string_lossy().into_owned());
    see(
        "domainname",
        uname.domainname().to_string_lossy().into_owned(),
    );
    see("pid", std::process::id().to_string());
    see("config", config.to_owned());
    let bits = rustix::thread::capabilities_secure_bits().unwrap();
    see("securebits", format!("{:#x}", bits.bits()));
    serde_json::to_string(&seen).unwrap()
}

fn link(path: impl AsRef<std::path::Path>) -> String {
    fs_err::read_link(path.as_ref()).map_or_else(|e| e.to_string(), |to| to.display().to_string())
}
