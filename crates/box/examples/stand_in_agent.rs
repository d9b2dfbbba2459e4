//! Stands in for the agent in the tests of the box: says what it sees, and runs what it is told
//! to, for anyone who connects. It knows nothing of signatures and is part of no build that is
//! shipped.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a stand-in that cannot go on says so and ends"
)]

use std::collections::{BTreeMap, VecDeque};
use std::io::{IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, Condvar, Mutex};

use glovebox_protocol::agent_config::AgentConfig;
use glovebox_protocol::launcher_line::{FromAgent, MAX_TO_AGENT, ToAgent};
use glovebox_protocol::sign::Epoch;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::process::{Pid, WaitOptions};
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
    /// Wait for a kernel of the launcher's, asking for one first where it does not come unasked.
    Kernel { ask: bool },
    /// Ask for a kernel, and end before it can come.
    AskAndExit,
    /// Let a kernel run code, and say what it printed.
    Tell { pid: i32, code: String },
    /// Hang up on a kernel, and say how it ended.
    HangUp { pid: i32 },
    /// Wait until so many packets have come from the launcher, and say which.
    Heard { count: usize },
    /// Send the launcher one packet, with a descriptor beside it or without.
    Say {
        packet: String,
        #[serde(default)]
        descriptor: bool,
    },
    /// Take nothing more from the launcher.
    Deafen,
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
    match &config.claim {
        Some(claim) => eprintln!("stand-in agent of {}", claim.sandbox),
        None => eprintln!("stand-in agent of nobody"),
    }
    let listener = UnixListener::from(inherited(config.fds.listener));
    let kills = config.fds.oom_events.map(|events| inherited(events.fd));
    let mut kernels = Kernels {
        line: Line::take(&config),
        wires: BTreeMap::new(),
    };
    listener.set_nonblocking(false).unwrap();
    for stream in listener.incoming() {
        if let Some(code) = serve(stream.unwrap(), &text, kills.as_ref(), &mut kernels) {
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

fn serve(
    mut stream: UnixStream,
    config: &str,
    kills: Option<&OwnedFd>,
    kernels: &mut Kernels,
) -> Option<u8> {
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
        Order::Kernel { ask } => {
            if ask {
                kernels.ask();
            }
            kernels.receive()
        }
        Order::AskAndExit => {
            kernels.ask();
            return Some(0);
        }
        Order::Tell { pid, code } => kernels.tell(pid, &code),
        Order::HangUp { pid } => kernels.hang_up(pid),
        Order::Heard { count } => kernels.line.heard(count),
        Order::Say { packet, descriptor } => kernels.line.say(packet.as_bytes(), descriptor),
        Order::Deafen => {
            let socket = &kernels.line.socket;
            rustix::net::shutdown(socket, rustix::net::Shutdown::Read).unwrap();
            String::new()
        }
    };
    // A test that has seen enough may have hung up.
    let _ = stream.write_all(answer.as_bytes());
    None
}

/// A packet, and the descriptor that came with it.
type Packet = (ToAgent, Option<OwnedFd>);

/// The line to the launcher.
struct Line {
    socket: Arc<OwnedFd>,
    inbox: Arc<(Mutex<Inbox>, Condvar)>,
}

/// What came over it.
#[derive(Default)]
struct Inbox {
    /// Everything.
    heard: Vec<ToAgent>,
    /// The answers to a wish for a kernel.
    kernels: VecDeque<Packet>,
}

impl Line {
    /// Listens from now on. In a box that is nobody's yet, a kernel that comes or is to be started
    /// is said to take code at once.
    fn take(config: &AgentConfig) -> Self {
        let socket = Arc::new(inherited(config.fds.launcher.unwrap()));
        rustix::io::fcntl_setfd(&*socket, rustix::io::FdFlags::CLOEXEC).unwrap();
        let line = Self {
            socket: Arc::clone(&socket),
            inbox: Arc::default(),
        };
        let (inbox, mut in_advance) = (Arc::clone(&line.inbox), config.claim.is_none());
        std::thread::spawn(move || {
            while let Some((packet, descriptor)) = receive(&socket) {
                let is_claim = matches!(packet, ToAgent::Claim { .. });
                let mut held = inbox.0.lock().unwrap();
                held.heard.push(packet.clone());
                if matches!(packet, ToAgent::Kernel { .. } | ToAgent::NoKernel { .. }) {
                    held.kernels.push_back((packet, descriptor));
                }
                inbox.1.notify_all();
                drop(held);
                if in_advance && !is_claim {
                    in_advance = false;
                    let ready = serde_json::to_vec(&FromAgent::KernelReady {
                        epoch: Epoch::random().unwrap(),
                    })
                    .unwrap();
                    rustix::io::write(&*socket, &ready).unwrap();
                }
            }
        });
        line
    }

    fn heard(&self, count: usize) -> String {
        let inbox = self.inbox.0.lock().unwrap();
        let enough = |inbox: &mut Inbox| inbox.heard.len() < count;
        let inbox = self.inbox.1.wait_while(inbox, enough).unwrap();
        serde_json::to_string(&inbox.heard).unwrap()
    }

    fn next_kernel(&self) -> Packet {
        let inbox = self.inbox.0.lock().unwrap();
        let none = |inbox: &mut Inbox| inbox.kernels.is_empty();
        let mut inbox = self.inbox.1.wait_while(inbox, none).unwrap();
        inbox.kernels.pop_front().unwrap()
    }

    fn say(&self, packet: &[u8], descriptor: bool) -> String {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        let descriptors = [self.socket.as_fd()];
        if descriptor {
            assert!(beside.push(SendAncillaryMessage::ScmRights(&descriptors)));
        }
        let parts = [IoSlice::new(packet)];
        match sendmsg(&*self.socket, &parts, &mut beside, SendFlags::NOSIGNAL) {
            Ok(_) => "sent".into(),
            Err(error) => error.to_string(),
        }
    }
}

fn receive(socket: &OwnedFd) -> Option<Packet> {
    let mut packet = vec![0; MAX_TO_AGENT];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut packet)];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(socket, &mut parts, &mut beside, flags).unwrap();
    let descriptor = beside.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    let packet = &packet[..received.bytes];
    (!packet.is_empty()).then(|| (serde_json::from_slice(packet).unwrap(), descriptor))
}

/// Kernels of the launcher's.
struct Kernels {
    line: Line,
    /// By their process ids.
    wires: BTreeMap<i32, UnixStream>,
}

impl Kernels {
    fn ask(&self) {
        let text = serde_json::to_vec(&FromAgent::KernelWanted).unwrap();
        self.line.say(&text, false);
    }

    /// The next answer to a wish for a kernel.
    fn receive(&mut self) -> String {
        let (packet, wire) = self.line.next_kernel();
        if let ToAgent::Kernel { pid } = packet {
            self.wires.insert(pid, wire.unwrap().into());
        }
        serde_json::to_string(&packet).unwrap()
    }

    fn tell(&mut self, pid: i32, code: &str) -> String {
        let wire = self.wires.get_mut(&pid).unwrap();
        // One that is gone says nothing, which is the answer then.
        let _ = wire.write_all(format!("{code}\0").as_bytes());
        let answer: Vec<_> = std::io::BufReader::new(wire)
            .bytes()
            .map_while(Result::ok)
            .take_while(|byte| *byte != 0)
            .collect();
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn hang_up(&mut self, pid: i32) -> String {
        self.wires.remove(&pid);
        let ended = rustix::process::waitpid(Pid::from_raw(pid), WaitOptions::empty());
        format!(
            "{:?}",
            ended.unwrap().map(|(_, status)| status.exit_status())
        )
    }
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
