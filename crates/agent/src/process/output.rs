//! Pipes that programs write to.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use glovebox_protocol::frame::{self, FrameKind};
use rustix::buffer::spare_capacity;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::ioctl_fionread;
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use tokio::net::unix::pipe::Receiver;

/// Bytes read at once.
const READ_BYTES: usize = 64 * 1024;

/// Bytes that a pipe holds before its writer waits, once it was seen full. The kernel gives less to
/// a user who has many.
const PIPE_BYTES: usize = 256 * 1024;

/// A read of so many bytes means that the pipe was full, or nearly.
const FULL_READ: usize = 32 * 1024;

/// A read smaller than this is copied into a buffer of its own size, so that a program that
/// writes byte by byte does not fill memory with nearly empty buffers.
const SMALL_READ: usize = 16 * 1024;

/// A pipe: the end that is read here, and the end for the program.
pub(crate) fn pipe(kind: FrameKind) -> std::io::Result<(Pipe, OwnedFd)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    // A program waits until its output is taken; here nobody waits in a read.
    fcntl_setfl(&write, OFlags::empty())?;
    let receiver = Receiver::from_owned_fd_unchecked(read)?;
    let pipe = Pipe {
        receiver,
        kind,
        is_large: false,
        buffer: Vec::new(),
    };
    Ok((pipe, write))
}

/// The end of a pipe that is read here.
pub(crate) struct Pipe {
    receiver: Receiver,
    pub(crate) kind: FrameKind,
    is_large: bool,
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

impl AsFd for Pipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.receiver.as_fd()
    }
}

impl Pipe {
    /// One that has something to be read now and never runs empty, however fast it is read.
    #[cfg(test)]
    pub(crate) async fn endless(kind: FrameKind) -> Self {
        use rustix::fs::{Mode, open};
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let bytes = open("/dev/random", flags, Mode::empty()).unwrap();
        let pipe = Self {
            receiver: Receiver::from_owned_fd_unchecked(bytes).unwrap(),
            kind,
            is_large: false,
            buffer: Vec::new(),
        };
        pipe.readable().await;
        pipe
    }

    /// The end itself, for a reader of its own.
    pub(crate) fn into_receiver(self) -> Receiver {
        self.receiver
    }

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

    /// Takes what there is, up to a chunk, after [`Self::readable`] has returned.
    pub(crate) fn take(&mut self) -> Taken {
        self.prepare();
        let read = self.receiver.try_read_buf(&mut self.buffer);
        self.taken(read)
    }

    /// Takes what there is, up to a chunk, whether or not the event loop has heard of it yet.
    pub(crate) fn take_at_once(&mut self) -> Taken {
        self.prepare();
        let read = rustix::io::read(&self.receiver, spare_capacity(&mut self.buffer));
        self.taken(read.map_err(std::io::Error::from))
    }

    /// A buffer that has room for one chunk, and no more, behind the room for a header.
    fn prepare(&mut self) {
        if self.buffer.capacity() == 0 {
            self.buffer.reserve_exact(frame::HEADER + READ_BYTES);
        }
        self.buffer.clear();
        self.buffer.extend_from_slice(&[0; frame::HEADER]);
    }

    fn taken(&mut self, read: std::io::Result<usize>) -> Taken {
        if !self.is_large && matches!(read, Ok(FULL_READ..)) {
            self.is_large = true;
            // A smaller pipe works as well.
            let _ = fcntl_setpipe_size(&self.receiver, PIPE_BYTES);
        }
        match read {
            Ok(0) => Taken::End,
            Ok(read) if read < SMALL_READ => Taken::Chunk(self.buffer.clone()),
            Ok(_) => Taken::Chunk(std::mem::take(&mut self.buffer)),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Taken::Nothing,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => Taken::Nothing,
            Err(_) => Taken::End,
        }
    }
}
