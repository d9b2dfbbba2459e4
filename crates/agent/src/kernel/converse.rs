//! The conversation of one call: what is said and written, in the order in which it happened.

use std::time::Duration;

use glovebox_protocol::event::EventBody;
use glovebox_protocol::frame::HEADER;
use glovebox_protocol::ids::ExecutionId;
use rustix::event::{PollFd, PollFlags};
use serde::Serialize;
use tokio::sync::watch;
use tokio::task::consume_budget;
use tokio::time::timeout;

use super::call::Call;
use super::late::Late;
use super::live::{KernelEnd, Live, end_of};
use super::message::{FromKernel, Status, count};
use super::pipes::{CallPipes, which_have_more};
use super::wire::{WireFault, frame};
use crate::process::{KERNEL_GRACE, Pipe, Taken};

/// How long the beginning of an answer is held back at most, so that it goes out with the end of a
/// short call and costs nobody a turn of its own.
const HELD_BACK: Duration = Duration::from_millis(1);

/// Messages that are taken before others get their turn.
const MESSAGES_A_TURN: u32 = 64;

/// How the conversation with the kernel ended.
pub(super) enum CallEnd {
    Reply(CallReply),
    Died(KernelEnd),
    Broken(WireFault),
}

/// The kernel's answer to a call.
pub(super) struct CallReply {
    pub(super) status: Status,
    pub(super) count: u32,
    /// The class of the first exception that reached the top.
    pub(super) last_error: Option<String>,
    /// Whether the kernel has ended after it.
    ending: bool,
}

/// The call as the kernel gets it.
#[derive(Serialize)]
#[serde(tag = "type", rename = "execute")]
struct ExecuteFrame<'a> {
    id: ExecutionId,
    code: &'a str,
    silent: bool,
}

/// What is known of a call while it runs.
pub(super) struct Conversation<'a> {
    call: &'a Call<'a>,
    code: String,
    pipes: CallPipes,
    last_error: Option<String>,
    /// Up to which reading of the socket the pipes were emptied.
    emptied_at: Option<u64>,
}

impl<'a> Conversation<'a> {
    pub(super) const fn new(call: &'a Call<'a>, code: String, pipes: CallPipes) -> Self {
        Self {
            call,
            code,
            pipes,
            last_error: None,
            emptied_at: None,
        }
    }

    /// Sends the code and takes what comes until the kernel has answered, or cannot any more.
    pub(super) async fn run(mut self, kernel: &mut Live, late: &mut Late) -> CallEnd {
        self.send(kernel).await;
        let sink = self.call.sink;
        let end = {
            let listening = self.listen(kernel, late);
            tokio::pin!(listening);
            // Short code has ended by then, and all that it says is one write with the beginning.
            match timeout(HELD_BACK, &mut listening).await {
                Ok(end) => end,
                Err(_) => {
                    sink.begin_answer();
                    listening.await
                }
            }
        };
        // What comes next may be more than can wait for a reader.
        sink.begin_answer();
        match end {
            // All that was written before the answer has been passed on already.
            CallEnd::Reply(CallReply { ending: false, .. }) => {}
            _ => self.empty_pipes().await,
        }
        if matches!(end, CallEnd::Reply { .. }) {
            let CallPipes { stdout, stderr, .. } = self.pipes;
            late.listen(sink.log().clone(), [stdout, stderr]);
        }
        end
    }

    async fn send(&mut self, kernel: &mut Live) {
        let request = self.call.request;
        let frame = frame(&ExecuteFrame {
            id: request.execution,
            code: &self.code,
            silent: request.silent,
        });
        // It may be long, and the call too.
        self.code = String::new();
        let mut ended = kernel.ended.clone();
        let theirs = self.pipes.theirs.as_ref().map_or(&[][..], |pair| pair);
        tokio::select! {
            biased;
            // A failure to send means that it is ending, which shows when listening.
            _ = kernel.wire.send_execute(&frame, theirs) => {}
            _ = ended.wait_for(Option::is_some) => {}
        }
        // Or the pipes would never end.
        self.pipes.theirs = None;
    }

    async fn listen(&mut self, kernel: &mut Live, late: &Late) -> CallEnd {
        let mut ended = kernel.ended.clone();
        let (mut out_open, mut err_open) = (true, true);
        let mut turns = 0_u32;
        loop {
            turns = turns.wrapping_add(1);
            if turns.is_multiple_of(MESSAGES_A_TURN) {
                // Messages that are here already are taken without a wait, and a flood of them
                // would leave nobody else their turn: neither the clock nor other requests.
                tokio::task::yield_now().await;
            }
            let CallPipes { stdout, stderr, .. } = &mut self.pipes;
            let message = tokio::select! {
                biased;
                message = kernel.wire.next() => message,
                () = stdout.readable(), if out_open => {
                    out_open = carry(self.call, stdout).await;
                    continue;
                }
                () = stderr.readable(), if err_open => {
                    err_open = carry(self.call, stderr).await;
                    continue;
                }
                end = end_of(&mut ended) => return self.last_words(kernel, late, end).await,
            };
            // What was written before the message goes out before it. What was written before
            // messages that came with it is in the pipes too by then.
            if self.emptied_at.replace(kernel.wire.readings()) != Some(kernel.wire.readings()) {
                self.empty_pipes().await;
            }
            let end = match message {
                Ok(Some(message)) => self.take(kernel, late, message).await,
                Ok(None) => Some(silence(&mut ended).await),
                Err(fault) => Some(CallEnd::Broken(fault)),
            };
            if let Some(end) = end {
                return end;
            }
        }
    }

    /// What the kernel had said and nobody had read when it ended.
    async fn last_words(&mut self, kernel: &mut Live, late: &Late, end: KernelEnd) -> CallEnd {
        self.empty_pipes().await;
        let mut left = kernel.wire.bytes_here();
        while let Ok(Some(message)) = kernel.wire.next_here(&mut left) {
            if let Some(end) = self.take(kernel, late, message).await {
                return end;
            }
        }
        CallEnd::Died(end)
    }

    /// Deals with one message. Returns how the call ended, if that is what it says.
    async fn take(
        &mut self,
        kernel: &mut Live,
        late: &Late,
        message: FromKernel,
    ) -> Option<CallEnd> {
        let seq = message.seq();
        let execution = message.execution();
        let own = execution == Some(self.call.request.execution);
        match message {
            FromKernel::Reply {
                status,
                execution_count,
                ending,
                ..
            } if own => {
                if ending {
                    // So that the next call finds a fresh kernel and not a dying one. One that
                    // does not go after all is found out by the next call.
                    let _ = timeout(KERNEL_GRACE, end_of(&mut kernel.ended)).await;
                }
                return Some(CallEnd::Reply(CallReply {
                    status,
                    count: count(&execution_count),
                    last_error: self.last_error.take(),
                    ending,
                }));
            }
            FromKernel::Ready { .. } | FromKernel::Reply { .. } => {
                return Some(CallEnd::Broken(WireFault::OutOfPlace));
            }
            message if own => self.show(message).await,
            message => show_late(late, execution, message),
        }
        if let Some(seq) = seq {
            kernel.wire.acknowledge(seq);
        }
        None
    }

    async fn show(&mut self, message: FromKernel) {
        let sink = self.call.sink;
        match message.into_event() {
            // How a call failed is told whatever was printed before.
            Some(event @ EventBody::Error { .. }) if self.last_error.is_none() => {
                sink.event(&event).await;
                if let EventBody::Error { name, .. } = event {
                    self.last_error = Some(name);
                }
            }
            Some(event) => sink.counted_event(&event).await,
            None => {}
        }
    }

    /// Carries what is in the pipes at this moment.
    async fn empty_pipes(&mut self) {
        let CallPipes { stdout, stderr, .. } = &mut self.pipes;
        let more = which_have_more(
            [&*stdout, &*stderr]
                .into_iter()
                .map(|pipe| PollFd::new(pipe, PollFlags::IN)),
        );
        for (pipe, has_more) in [stdout, stderr].into_iter().zip(more) {
            let mut left = if has_more { pipe.fill() } else { 0 };
            while left > 0 {
                // What is over the budget for output is dropped without a wait.
                consume_budget().await;
                match pipe.take_at_once() {
                    Taken::Chunk(chunk) => {
                        left = left.saturating_sub(chunk.len() - HEADER);
                        self.call.sink.output(pipe.kind, chunk).await;
                    }
                    Taken::Nothing | Taken::End => break,
                }
            }
        }
    }
}

/// Carries one chunk. Says whether more can come.
async fn carry(call: &Call<'_>, pipe: &mut Pipe) -> bool {
    match pipe.take() {
        Taken::Chunk(chunk) => {
            call.sink.output(pipe.kind, chunk).await;
            true
        }
        Taken::Nothing => true,
        Taken::End => false,
    }
}

/// Waits for the end of a kernel that has closed its socket; one that lives on without is broken.
async fn silence(ended: &mut watch::Receiver<Option<KernelEnd>>) -> CallEnd {
    match timeout(KERNEL_GRACE, end_of(ended)).await {
        Ok(end) => CallEnd::Died(end),
        Err(_) => CallEnd::Broken(WireFault::Closed),
    }
}

/// Of what an earlier call shows only text is kept.
fn show_late(late: &Late, execution: Option<ExecutionId>, message: FromKernel) {
    let (FromKernel::Display { shown, .. } | FromKernel::Result { shown, .. }) = message else {
        return;
    };
    if let (Some(execution), Some(text)) = (execution, shown.text()) {
        late.show(execution, text);
    }
}
