//! Pipes that programs write to.

use std::os::fd::{AsFd as _, OwnedFd};

use bytes::BufMut as _;
use glovebox_protocol::frame::{self, FrameKind};
use rustix::io::ioctl_fionread;
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use tokio::net::unix::pipe::Receiver;

/// Bytes read at once.
pub(crate) const READ_BYTES: usize = 64 * 1024;

/// Bytes that a pipe holds before its writer waits. The kernel gives less to a user who has many.
const PIPE_BYTES: usize = 256 * 1024;

/// A read smaller than this is copied into a buffer of its own size, so that a program that
/// writes byte by byte does not fill memory with nearly empty buffers.
const SMALL_READ: usize = 16 * 1024;

/// A pipe: the end that is read here, and the end for the program.
pub(crate) fn pipe(kind: FrameKind) -> std::io::Result<(Pipe, OwnedFd)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    // A smaller pipe works as well.
    let _ = fcntl_setpipe_size(&write, PIPE_BYTES);
    let receiver = Receiver::from_owned_fd(read)?;
    let pipe = Pipe {
        receiver,
        kind,
        buffer: Vec::new(),
    };
    Ok((pipe, write))
}

/// The end of a pipe that is read here.
pub(crate) struct Pipe {
    receiver: Receiver,
    pub(crate) kind: FrameKind,
    /// Empty, or with room for [`READ_BYTES`] behind room for the header of a frame.
    buffer: Vec<u8>,
}

/// What a read gave.
pub(crate) enum Taken {
    /// Bytes, behind room for the header of a frame.
    Chunk(Vec<u8>),
    /// Nothing at the moment.
    Nothing,
    /// Nothing ever again: every writer is gone.
    End,
}

impl Pipe {
    /// Waits until there is something to take, or the end.
    pub(crate) async fn readable(&self) {
        // An error shows in the read that follows.
        let _ = self.receiver.readable().await;
    }

    /// Bytes in the pipe at this moment.
    pub(crate) fn fill(&self) -> usize {
        ioctl_fionread(self.receiver.as_fd())
            .ok()
            .and_then(|bytes| usize::try_from(bytes).ok())
            .unwrap_or(0)
    }

    /// Takes at most `most` bytes, without waiting.
    pub(crate) fn take(&mut self, most: usize) -> Taken {
        if self.buffer.capacity() == 0 {
            self.buffer.reserve_exact(frame::HEADER + READ_BYTES);
        }
        self.buffer.clear();
        self.buffer.extend_from_slice(&[0; frame::HEADER]);
        let mut room = (&mut self.buffer).limit(most.min(READ_BYTES));
        match self.receiver.try_read_buf(&mut room) {
            Ok(0) => Taken::End,
            Ok(read) if read < SMALL_READ => Taken::Chunk(self.buffer.as_slice().to_vec()),
            Ok(_) => Taken::Chunk(std::mem::take(&mut self.buffer)),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Taken::Nothing,
            Err(_) => Taken::End,
        }
    }
}
