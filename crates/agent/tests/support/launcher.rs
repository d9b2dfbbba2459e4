//! The launcher's side of an agent's line, played by a test. Kernels "from a template" are
//! ordinary ones that the test starts: as with an agent in a box, the process that the agent
//! lives in is their parent.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use glovebox_agent::Options;
use glovebox_protocol::agent_config::{AgentConfig, Start};
use glovebox_protocol::launcher_line::{FromAgent, MAX_FROM_AGENT, ToAgent};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
    sendmsg, socketpair,
};
use tokio::net::UnixDatagram;

use super::{TestAgent, kernel_env, python};

/// The launcher's end of the line, and what the agent says for people.
pub(crate) struct TestLauncher {
    line: UnixDatagram,
    workspace: PathBuf,
    words: Arc<Mutex<Vec<String>>>,
}

/// An agent that is listening to a launcher.
pub(crate) async fn agent_with_launcher(
    change: impl FnOnce(&mut AgentConfig),
) -> (TestAgent, TestLauncher) {
    let (theirs, ours) = socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )
    .unwrap();
    let words: Arc<Mutex<Vec<String>>> = Arc::default();
    let said = Arc::clone(&words);
    let surround = move |options: &mut Options| {
        options.launcher = Some(theirs);
        options.words = Arc::new(move |words: &str| said.lock().unwrap().push(words.into()));
    };
    let change = |config: &mut AgentConfig| {
        config.python = python();
        config.start = Start::Template;
        change(config);
    };
    let agent = TestAgent::start_in(change, kernel_env(), surround).await;
    let launcher = TestLauncher {
        line: UnixDatagram::from_std(ours.into()).unwrap(),
        workspace: agent.workspace.clone(),
        words,
    };
    (agent, launcher)
}

impl TestLauncher {
    /// Sends a packet, with a descriptor or without.
    pub(crate) fn send(&self, message: &ToAgent, descriptor: Option<OwnedFd>) {
        let packet = serde_json::to_vec(message).unwrap();
        let descriptors: Vec<_> = descriptor.iter().map(|fd| fd.as_fd()).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            assert!(ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)));
        }
        let slices = [IoSlice::new(&packet)];
        sendmsg(&self.line, &slices, &mut ancillary, SendFlags::empty()).unwrap();
    }

    /// Sends a packet that may be none of those that there are.
    pub(crate) fn send_bytes(&self, packet: &[u8]) {
        rustix::net::send(&self.line, packet, SendFlags::empty()).unwrap();
    }

    /// What the agent says next.
    pub(crate) async fn hear(&self) -> FromAgent {
        let mut packet = [0; MAX_FROM_AGENT];
        let length = self.line.recv(&mut packet).await.unwrap();
        serde_json::from_slice(&packet[..length]).unwrap()
    }

    /// Whether the agent has said something that was not heard yet.
    pub(crate) fn has_more(&self) -> bool {
        self.line.try_recv(&mut [0; MAX_FROM_AGENT]).is_ok()
    }

    /// Starts a kernel beside the agent and gives its number and the agent's end of its socket.
    /// Whoever adopts it waits for it.
    #[expect(clippy::zombie_processes, reason = "the agent is to wait for it")]
    pub(crate) fn start_kernel(&self) -> (i32, OwnedFd) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut command = Command::new(python());
        command
            .args(["-P", "-m", "glovebox_kernel"])
            .envs(kernel_env())
            .env(
                "LD_LIBRARY_PATH",
                glovebox_testkit::toolbox_libraries().unwrap(),
            )
            .current_dir(&self.workspace)
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        let child = command.spawn().unwrap();
        (i32::try_from(child.id()).unwrap(), ours.into())
    }

    /// Gives the agent a kernel, as if it came from a template.
    pub(crate) fn give_kernel(&self) {
        let (pid, wire) = self.start_kernel();
        self.send(&ToAgent::Kernel { pid }, Some(wire));
    }

    /// The sentences that the agent has said so far.
    pub(crate) fn words(&self) -> Vec<String> {
        self.words.lock().unwrap().clone()
    }
}
