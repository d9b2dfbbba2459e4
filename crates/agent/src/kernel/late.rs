//! Output of earlier calls that comes after their end.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use glovebox_protocol::event::{EventBody, Output};
use glovebox_protocol::ids::ExecutionId;
use rustix::event::{PollFd, PollFlags};
use rustix::io::ioctl_fionread;
use tokio::io::{Interest, Ready};
use tokio::net::unix::pipe::Receiver;
use tokio::task::{AbortHandle, consume_budget};

use super::pipes::which_have_more;
use crate::lock::Locked;
use crate::logs::Recorder;
use crate::process::Pipe;

/// How much of each call's late output is kept, in bytes: the last of it.
const KEPT_BYTES: usize = 64 * 1024;

/// How many calls are listened to at once. The pipes of the oldest are closed beyond that.
const MAX_CALLS: usize = 64;

/// Bytes read at once.
const READ_BYTES: usize = 4 * 1024;

/// The calls that may still be written to.
#[derive(Default)]
pub(crate) struct Late {
    calls: VecDeque<Call>,
}

struct Call {
    log: Recorder,
    tail: Arc<Locked<Tail>>,
    pipes: Vec<Listener>,
}

/// A pipe that is read by a task of its own.
struct Listener {
    /// Gone with the task.
    receiver: Weak<Receiver>,
    task: AbortHandle,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Default)]
struct Tail {
    bytes: VecDeque<u8>,
    dropped: u64,
}

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        // Never more than is kept, or one long text would leave its capacity behind.
        let kept = &bytes[bytes.len().saturating_sub(KEPT_BYTES)..];
        let superfluous = (self.bytes.len() + kept.len()).saturating_sub(KEPT_BYTES);
        self.bytes.drain(..superfluous);
        self.bytes.extend(kept);
        self.dropped += (superfluous + bytes.len() - kept.len()) as u64;
    }
}

impl Late {
    /// Goes on listening to the pipes of a call that has ended.
    pub(crate) fn listen(&mut self, log: Recorder, pipes: [Pipe; 2]) {
        let tail = Arc::new(Locked::default());
        let pipes = pipes
            .into_iter()
            .map(|pipe| {
                let receiver = Arc::new(pipe.into_receiver());
                let weak = Arc::downgrade(&receiver);
                let task = tokio::spawn(listen(receiver, Arc::clone(&tail), log.clone()));
                Listener {
                    receiver: weak,
                    task: task.abort_handle(),
                }
            })
            .collect();
        self.calls.push_back(Call { log, tail, pipes });
        if self.calls.len() > MAX_CALLS {
            self.calls.pop_front();
        }
    }

    /// Adds what an earlier call showed otherwise than by writing. Of a call that nobody listens
    /// to any more it is dropped.
    pub(crate) fn show(&self, execution: ExecutionId, text: &str) {
        if let Some(call) = self
            .calls
            .iter()
            .find(|call| call.log.execution() == execution)
        {
            call.tail.with(|tail| {
                tail.push(text.as_bytes());
                tail.push(b"\n");
            });
        }
    }

    /// Everything that came since the last time, oldest call first. Calls that nobody can write
    /// to any more are forgotten.
    pub(crate) fn collect(&mut self) -> Vec<EventBody> {
        self.take_what_is_there();
        let mut events = Vec::new();
        self.calls.retain_mut(|call| {
            // A task that has ended has seen the end of its pipe.
            call.pipes.retain(|pipe| !pipe.task.is_finished());
            let (bytes, dropped_bytes) = call.tail.with(|tail| {
                (
                    std::mem::take(&mut tail.bytes),
                    std::mem::take(&mut tail.dropped),
                )
            });
            if !bytes.is_empty() {
                events.push(EventBody::LateOutput {
                    execution: call.log.execution(),
                    output: Output(Vec::from(bytes).into()),
                    dropped_bytes,
                });
            }
            !call.pipes.is_empty()
        });
        events
    }

    /// Reads what the tasks have not had their turn for.
    fn take_what_is_there(&self) {
        let open: Vec<_> = self
            .calls
            .iter()
            .flat_map(|call| call.pipes.iter().map(move |pipe| (call, pipe)))
            .filter_map(|(call, pipe)| Some((call, pipe.receiver.upgrade()?)))
            .collect();
        let more = which_have_more(
            open.iter()
                .map(|(_, receiver)| PollFd::new(receiver, PollFlags::IN)),
        );
        for ((call, receiver), _) in open.iter().zip(more).filter(|(_, more)| *more) {
            take_what_is_there(receiver, &call.tail, &call.log);
        }
    }
}

async fn listen(receiver: Arc<Receiver>, tail: Arc<Locked<Tail>>, log: Recorder) {
    loop {
        // Of a pipe that never runs empty each look finds something, without a wait.
        consume_budget().await;
        match receiver.ready(Interest::READABLE).await {
            // Empty, and nobody left to write.
            Ok(ready) if (ready & Ready::READABLE).is_empty() => return,
            Ok(_) => {}
            Err(_) => return,
        }
        let mut buffer = [0; READ_BYTES];
        match receiver.try_read(&mut buffer) {
            Ok(0) => return,
            Ok(read) => {
                log.output(&buffer[..read]);
                tail.with(|tail| tail.push(&buffer[..read]));
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

/// Reads past the event loop, which may not have heard of what is there.
fn take_what_is_there(receiver: &Receiver, tail: &Locked<Tail>, log: &Recorder) {
    let mut buffer = [0; READ_BYTES];
    let mut left = ioctl_fionread(receiver).unwrap_or(0);
    while left > 0 {
        match rustix::io::read(receiver, &mut buffer) {
            Ok(read) if read > 0 => {
                log.output(&buffer[..read]);
                tail.with(|tail| tail.push(&buffer[..read]));
                left = left.saturating_sub(read as u64);
            }
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use glovebox_protocol::frame::FrameKind;
    use tokio::task::yield_now;

    use super::*;
    use crate::logs::Logs;

    #[tokio::test]
    async fn others_have_their_turn_beside_a_pipe_that_never_runs_empty() {
        let log = Arc::new(Logs::new()).begin(ExecutionId::new());
        let mut late = Late::default();
        let stdout = Pipe::endless(FrameKind::Stdout).await;
        let stderr = Pipe::endless(FrameKind::Stderr).await;
        late.listen(log, [stdout, stderr]);
        loop {
            yield_now().await;
            if let Some(EventBody::LateOutput { dropped_bytes, .. }) = late.collect().first() {
                assert!(*dropped_bytes > 0, "it was read more than once");
                break;
            }
        }
    }

    #[test]
    fn only_the_end_of_much_output_is_kept() {
        let mut tail = Tail::default();
        tail.push(&[b'a'; KEPT_BYTES]);
        tail.push(b"bc");
        assert_eq!(tail.bytes.len(), KEPT_BYTES);
        assert_eq!(tail.dropped, 2);
        assert_eq!(tail.bytes.back(), Some(&b'c'));
        tail.push(&vec![b'd'; 10 * KEPT_BYTES]);
        assert_eq!(tail.dropped, 2 + 10 * KEPT_BYTES as u64);
        assert_eq!(tail.bytes.len(), KEPT_BYTES);
        assert!(tail.bytes.capacity() < 4 * KEPT_BYTES);
    }
}
