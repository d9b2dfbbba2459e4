//! What a small execute costs, counted: system calls, processes, writes and bytes. Times depend on
//! the machine, these do not. The bounds are a little above what there is; whoever gets over one
//! has put something on the way of every call.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::io::{IoSlice, IoSliceMut, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use glovebox_client::{AgentClient, ByteStream, Identity};
use glovebox_protocol::ids::{InstallationId, SandboxId};
use glovebox_protocol::launcher_line::{FromAgent, ToAgent};
use glovebox_protocol::sign::SigningKey;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use support::launcher::agent_with_launcher;
use support::{eval, kernel_env, python, results, tracer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Calls that are counted together.
const CALLS: u64 = 100;

/// An agent in a process of its own.
struct AgentProcess {
    process: Child,
    client: AgentClient,
    traffic: Arc<Traffic>,
    _folder: tempfile::TempDir,
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
    }
}

async fn agent_process() -> AgentProcess {
    let folder = tempfile::tempdir().unwrap();
    let identity = Identity {
        key: Arc::new(SigningKey::generate().unwrap()),
        installation: InstallationId::new(),
        sandbox: SandboxId::new(),
    };
    let mut config = support::config(&identity);
    config.python = python();
    let program = glovebox_testkit::programs()
        .unwrap()
        .join("examples/direct_agent");
    let socket = folder.path().join("agent.sock");
    let workspace = folder.path().join("workspace");
    fs_err::create_dir(&workspace).unwrap();
    let libraries = glovebox_testkit::toolbox_libraries().unwrap();
    let mut process = Command::new(&program)
        .args([&socket, &workspace])
        .arg(format!("LD_LIBRARY_PATH={}", libraries.display()))
        .args(
            kernel_env()
                .iter()
                .map(|(name, value)| format!("{name}={value}")),
        )
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("starting {}: {error}", program.display()));
    let json = serde_json::to_vec(&config).unwrap();
    process.stdin.take().unwrap().write_all(&json).unwrap();
    // It says so when it listens.
    let mut word = [0; 1];
    std::io::Read::read_exact(process.stdout.as_mut().unwrap(), &mut word).unwrap();
    let traffic: Arc<Traffic> = Arc::default();
    let counted = Arc::clone(&traffic);
    let client = AgentClient::new(identity, move || {
        let (socket, traffic) = (socket.clone(), Arc::clone(&counted));
        async move {
            let stream = tokio::net::UnixStream::connect(socket).await?;
            traffic.connections.fetch_add(1, Ordering::SeqCst);
            Ok(Box::new(Counted { stream, traffic }) as Box<dyn ByteStream>)
        }
    });
    AgentProcess {
        process,
        client,
        traffic,
        _folder: folder,
    }
}

/// What went over the client's connections.
#[derive(Default)]
struct Traffic {
    connections: AtomicU64,
    writes: AtomicU64,
    written: AtomicU64,
    read: AtomicU64,
}

struct Counted {
    stream: tokio::net::UnixStream,
    traffic: Arc<Traffic>,
}

impl Counted {
    fn count(&self, written: &Poll<std::io::Result<usize>>) {
        if let Poll::Ready(Ok(bytes)) = written {
            self.traffic.writes.fetch_add(1, Ordering::SeqCst);
            self.traffic
                .written
                .fetch_add(*bytes as u64, Ordering::SeqCst);
        }
    }
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let bytes = (buffer.filled().len() - before) as u64;
        self.traffic.read.fetch_add(bytes, Ordering::SeqCst);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.count(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.count(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// The one child of a process.
fn child_of(parent: u32) -> u32 {
    let children = fs_err::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    children.unwrap().trim().parse().unwrap()
}

#[tokio::test]
async fn a_small_execute_makes_few_system_calls_and_starts_nothing() {
    let agent = agent_process().await;
    for _ in 0..20 {
        assert_eq!(results(&eval(&agent.client, "1+1").await), ["2"]);
    }
    let agent_pid = agent.process.id();
    let counts = tracer::watch(&[agent_pid, child_of(agent_pid)]);
    let before: Vec<u64> = counts.iter().map(|count| count.calls()).collect();
    for _ in 0..CALLS {
        eval(&agent.client, "1+1").await;
    }
    let calls = |process: usize| (counts[process].calls() - before[process]) as f64 / CALLS as f64;
    let (of_agent, of_kernel) = (calls(0), calls(1));
    println!("system calls for 1+1: agent {of_agent}, kernel {of_kernel}");
    assert!(of_agent < 33.0, "the agent makes {of_agent} system calls");
    assert!(
        of_kernel < 14.0,
        "the kernel makes {of_kernel} system calls"
    );
    assert!(of_agent > 5.0 && of_kernel > 3.0, "nothing was counted");
    assert_eq!(counts[0].started() + counts[1].started(), 0);
}

#[tokio::test]
async fn a_small_execute_is_one_write_and_few_bytes_over_one_connection() {
    let agent = agent_process().await;
    eval(&agent.client, "1+1").await;
    let traffic = &agent.traffic;
    let figures = || {
        [&traffic.writes, &traffic.written, &traffic.read]
            .map(|figure| figure.load(Ordering::SeqCst))
    };
    let before = figures();
    for _ in 0..CALLS {
        eval(&agent.client, "1+1").await;
    }
    let after = figures();
    let [writes, written, read] = [0, 1, 2].map(|which| (after[which] - before[which]) / CALLS);
    println!("for 1+1: {writes} writes, {written} bytes there, {read} back");
    assert_eq!(after[0] - before[0], CALLS, "head and body are one write");
    assert!(written < 700, "a request has {written} bytes");
    assert!(read < 700, "an answer has {read} bytes");
    assert_eq!(traffic.connections.load(Ordering::SeqCst), 1);
}

/// Passes on what comes from one socket to the other, descriptors too, and counts the bytes.
fn relay(from: &UnixStream, to: &UnixStream, bytes: &AtomicU64) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let slices = &mut [IoSliceMut::new(&mut buffer)];
        let Ok(received) = recvmsg(from, slices, &mut ancillary, RecvFlags::CMSG_CLOEXEC) else {
            return;
        };
        if received.bytes == 0 {
            return;
        }
        let descriptors: Vec<OwnedFd> = ancillary
            .drain()
            .filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
                _ => None,
            })
            .flatten()
            .collect();
        let borrowed: Vec<_> = descriptors.iter().map(|fd| fd.as_fd()).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !borrowed.is_empty() {
            assert!(ancillary.push(SendAncillaryMessage::ScmRights(&borrowed)));
        }
        bytes.fetch_add(received.bytes as u64, Ordering::SeqCst);
        let slices = [IoSlice::new(&buffer[..received.bytes])];
        if sendmsg(to, &slices, &mut ancillary, SendFlags::NOSIGNAL).is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn a_small_execute_is_few_bytes_between_agent_and_kernel() {
    let (test, launcher) = agent_with_launcher(|_| {}).await;
    let (pid, kernel) = launcher.start_kernel();
    let kernel = UnixStream::from(kernel);
    let (ours, theirs) = UnixStream::pair().unwrap();
    let counts: [Arc<AtomicU64>; 2] = Default::default();
    for (from, to, count) in [(&ours, &kernel, 0), (&kernel, &ours, 1)] {
        let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
        let bytes = Arc::clone(&counts[count]);
        std::thread::spawn(move || {
            relay(&from, &to, &bytes);
            // The other side hears of an end by it.
            let _ = to.shutdown(std::net::Shutdown::Both);
        });
    }
    launcher.send(&ToAgent::Kernel { pid }, Some(theirs.into()));
    assert!(matches!(
        launcher.hear().await,
        FromAgent::KernelReady { .. }
    ));
    eval(&test.client, "1+1").await;
    let figures = || counts.each_ref().map(|count| count.load(Ordering::SeqCst));
    let before = figures();
    for _ in 0..CALLS {
        eval(&test.client, "1+1").await;
    }
    let after = figures();
    let [there, back] = [0, 1].map(|which| (after[which] - before[which]) / CALLS);
    println!("for 1+1: {there} bytes to the kernel, {back} back");
    assert!(there < 110, "{there} bytes to the kernel");
    assert!(back < 260, "{back} bytes from the kernel");
}
