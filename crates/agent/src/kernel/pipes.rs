//! The two pipes of a call: its standard output and error, from the kernel to here.

use std::os::fd::OwnedFd;

use glovebox_protocol::frame::FrameKind;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::lock::Locked;
use crate::process::{Pipe, pipe};

/// The pipes of one call, with the ends that the kernel is given.
pub(super) struct CallPipes {
    pub(super) stdout: Pipe,
    pub(super) stderr: Pipe,
    /// Gone once the kernel has them.
    pub(super) theirs: Option<[OwnedFd; 2]>,
}

impl CallPipes {
    fn new() -> std::io::Result<Self> {
        let (stdout, stdout_write) = pipe(FrameKind::Stdout)?;
        let (stderr, stderr_write) = pipe(FrameKind::Stderr)?;
        Ok(Self {
            stdout,
            stderr,
            theirs: Some([stdout_write, stderr_write]),
        })
    }
}

/// The pipes of the next call, made while nobody waits for them.
#[derive(Default)]
pub(super) struct SparePipes(Locked<Option<CallPipes>>);

impl SparePipes {
    /// Takes the pipes, or makes them where none are ready.
    pub(super) fn take(&self) -> std::io::Result<CallPipes> {
        match self.0.with(Option::take) {
            Some(pipes) => Ok(pipes),
            None => CallPipes::new(),
        }
    }

    /// Makes the next ones. Where that fails now, the call that needs them tries again.
    pub(super) fn prepare(&self) {
        let pipes = CallPipes::new().ok();
        self.0.with(|spare| *spare = pipes);
    }
}

/// Which of some pipes have something to be read, whether or not the event loop has heard of it:
/// one system call for all of them.
pub(super) fn which_have_more<'a>(pipes: impl Iterator<Item = PollFd<'a>>) -> Vec<bool> {
    let mut pipes: Vec<_> = pipes.collect();
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    if pipes.is_empty() || poll(&mut pipes, Some(&at_once)).is_err() {
        // Then each is looked at on its own.
        return vec![true; pipes.len()];
    }
    pipes
        .iter()
        .map(|pipe| pipe.revents().contains(PollFlags::IN))
        .collect()
}
