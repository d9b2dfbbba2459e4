//! Where the output of one execution goes: frames to the caller, within a budget, in order, with
//! a bounded number waiting.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use glovebox_protocol::error::{ErrorBody, ErrorCode};
use glovebox_protocol::event::{Ended, EventBody, Outcome};
use glovebox_protocol::frame::{self, FrameKind};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use crate::lock::Locked;
use crate::logs::Recorder;

/// How long a reader may take no frame after the execution has ended before it is given up.
const LAST_PATIENCE: Duration = Duration::from_secs(60);

/// Most bytes that wait for the reader while [`Pace::Hurry`] holds.
const MAX_WAITING: usize = 1024 * 1024;

/// How a slow reader is dealt with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// The program waits for the reader.
    Patient,
    /// The program was interrupted and must get to its end whatever the reader does: what does
    /// not fit is dropped and counted.
    Hurry,
    /// The program has ended; the reader may take its time, but not for ever.
    Ended,
}

/// The stream of one execution.
pub(crate) struct Sink {
    frames: mpsc::Sender<Bytes>,
    pace: watch::Sender<Pace>,
    limit: Option<u64>,
    log: Recorder,
    /// Told when the answer is to begin, where it waits for that.
    answer: Locked<Option<oneshot::Sender<()>>>,
    state: Locked<State>,
}

#[derive(Default)]
struct State {
    spent: u64,
    dropped: u64,
    waiting: VecDeque<Bytes>,
    waiting_bytes: usize,
}

impl State {
    /// Takes up to `bytes` out of the budget and says how many there were.
    fn spend(&mut self, bytes: usize, limit: Option<u64>) -> usize {
        let Some(limit) = limit else { return bytes };
        let left = limit.saturating_sub(self.spent);
        let granted = usize::try_from(left).map_or(bytes, |left| left.min(bytes));
        self.spent += granted as u64;
        self.dropped += (bytes - granted) as u64;
        granted
    }
}

impl Sink {
    /// A sink with a budget in bytes; without one nothing is dropped. The log gets all output.
    pub(crate) fn new(frames: mpsc::Sender<Bytes>, limit: Option<u64>, log: Recorder) -> Self {
        Self {
            frames,
            pace: watch::Sender::new(Pace::Patient),
            limit,
            log,
            answer: Locked::default(),
            state: Locked::default(),
        }
    }

    /// Holds the answer back, head and all: it begins when what is returned says so, or when the
    /// sink is dropped. What comes until then costs one write.
    pub(crate) fn hold_answer(&self) -> oneshot::Receiver<()> {
        let (begin, begun) = oneshot::channel();
        self.answer.with(|answer| *answer = Some(begin));
        begun
    }

    /// Lets the answer begin.
    pub(crate) fn begin_answer(&self) {
        self.answer.with(Option::take);
    }

    /// The log of the same execution.
    pub(crate) const fn log(&self) -> &Recorder {
        &self.log
    }

    /// Changes how a slow reader is dealt with.
    pub(crate) fn set_pace(&self, pace: Pace) {
        self.pace.send_replace(pace);
    }

    /// Returns when nobody reads any more.
    pub(crate) async fn closed(&self) {
        self.frames.closed().await;
    }

    /// Sends program output. `chunk` begins with room for the header of a frame.
    pub(crate) async fn output(&self, kind: FrameKind, mut chunk: Vec<u8>) {
        self.log.output(&chunk[frame::HEADER..]);
        let bytes = chunk.len() - frame::HEADER;
        let granted = self.state.with(|state| state.spend(bytes, self.limit));
        if granted == 0 {
            return;
        }
        chunk.truncate(frame::HEADER + granted);
        if let Ok(header) = frame::header(kind, granted) {
            chunk[..frame::HEADER].copy_from_slice(&header);
            self.send(chunk.into()).await;
        }
    }

    /// Sends an event that costs nothing of the budget. One too large for a frame is dropped and
    /// counted.
    pub(crate) async fn event(&self, event: &EventBody) {
        if let Some(frame) = self.encode(event) {
            self.send(frame).await;
        }
    }

    /// Sends an event whose size counts against the budget, whole or not at all.
    pub(crate) async fn counted_event(&self, event: &EventBody) {
        let Some(frame) = self.encode(event) else {
            return;
        };
        let fits = self.state.with(|state| {
            let left = self
                .limit
                .map_or(u64::MAX, |limit| limit.saturating_sub(state.spent));
            let fits = frame.len() as u64 <= left;
            if fits {
                state.spent += frame.len() as u64;
            } else {
                state.dropped += frame.len() as u64;
            }
            fits
        });
        if fits {
            self.send(frame).await;
        }
    }

    /// Says what was dropped, sends the last event and everything that still waits.
    pub(crate) async fn finish(&self, last: &EventBody) {
        self.set_pace(Pace::Ended);
        let dropped_bytes = self.state.with(|state| state.dropped);
        if dropped_bytes > 0 {
            let limit_bytes = self.limit.unwrap_or(MAX_WAITING as u64);
            self.event(&EventBody::OutputDropped {
                dropped_bytes,
                limit_bytes,
            })
            .await;
        }
        match self.encode(last) {
            Some(frame) => self.send(frame).await,
            // It must come, or the whole stream looks cut: then without the words in it.
            None => self.event(&without_words(last)).await,
        }
    }

    fn encode(&self, event: &EventBody) -> Option<Bytes> {
        let json = serde_json::to_vec(event).ok()?;
        let frame = frame::encode(FrameKind::Event, &json).ok();
        if frame.is_none() {
            self.state.with(|state| state.dropped += json.len() as u64);
        }
        frame
    }

    async fn send(&self, frame: Bytes) {
        let mut pace = self.pace.subscribe();
        let now = *pace.borrow_and_update();
        match now {
            Pace::Patient => tokio::select! {
                biased;
                permit = self.frames.reserve() => if let Ok(permit) = permit {
                    permit.send(frame);
                },
                _ = pace.changed() => Box::pin(self.send(frame)).await,
            },
            Pace::Hurry => self.keep(frame),
            Pace::Ended => {
                let waiting = self.state.with(|state| std::mem::take(&mut state.waiting));
                for frame in waiting.into_iter().chain([frame]) {
                    match timeout(LAST_PATIENCE, self.frames.send(frame)).await {
                        Ok(Ok(())) => {}
                        // Nobody reads, or nobody takes anything.
                        Ok(Err(_)) | Err(_) => return,
                    }
                }
            }
        }
    }

    /// Puts a frame behind those that wait; what is too much is dropped and counted.
    fn keep(&self, frame: Bytes) {
        self.state.with(|state| {
            if state.waiting_bytes + frame.len() > MAX_WAITING {
                state.dropped += frame.len() as u64;
                return;
            }
            state.waiting_bytes += frame.len();
            state.waiting.push_back(frame);
        });
    }
}

/// A last event in few words, for one that fits no frame.
fn without_words(last: &EventBody) -> EventBody {
    match last {
        EventBody::ExecutionEnded(ended) => EventBody::ExecutionEnded(Ended {
            outcome: Outcome::KernelBroken {
                what: "ended in more words than can be passed on".into(),
            },
            notes: Vec::new(),
            ..ended.clone()
        }),
        _ => EventBody::Failed(ErrorBody::new(
            ErrorCode::Internal,
            "what went wrong takes more words than can be passed on",
        )),
    }
}
