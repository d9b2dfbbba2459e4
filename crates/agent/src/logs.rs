//! The logs of executions: what they wrote, kept in the agent's own memory, where nothing that
//! runs in the sandbox can reach it.
//!
//! A log is the beginning of an output: once a part of it was dropped, nothing that comes after
//! that part is kept. When there is no room left the oldest logs give it up, each from its end.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use glovebox_protocol::frame::{self, FrameKind};
use glovebox_protocol::ids::ExecutionId;
use glovebox_protocol::log::{Logged, MAX_LOG_BYTES};
use ring::digest::{Context, SHA256};
use tokio::sync::mpsc::Sender;

use crate::error::ApiError;
use crate::files::digest;
use crate::lock::Locked;
use crate::reply::{self, Reply};

/// How many logs are kept, however short they are.
const MAX_LOGS: usize = 1024;

/// Largest piece of memory that a log is made of: large enough to go back to the operating system
/// when it is given up, small enough to be given up for little.
const PIECE_BYTES: usize = 256 * 1024;

/// Smallest piece.
const LEAST_BYTES: usize = 64;

/// Bytes sent at once.
const CHUNK_BYTES: usize = 64 * 1024;

/// All logs of one sandbox.
pub(crate) struct Logs {
    state: Locked<State>,
}

struct State {
    limit: usize,
    /// Memory of all pieces together, used or not.
    taken: usize,
    /// Oldest first.
    logs: VecDeque<Log>,
}

struct Log {
    execution: ExecutionId,
    /// Full, all but the last.
    pieces: Vec<Vec<u8>>,
    kept: usize,
    dropped: u64,
}

/// Writes one log.
#[derive(Clone)]
pub(crate) struct Recorder {
    logs: Arc<Logs>,
    execution: ExecutionId,
}

impl Recorder {
    /// Adds what the execution has written.
    pub(crate) fn output(&self, bytes: &[u8]) {
        self.logs
            .state
            .with(|state| state.append(self.execution, bytes));
    }

    pub(crate) const fn execution(&self) -> ExecutionId {
        self.execution
    }
}

impl Logs {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self::with_limit(usize::try_from(MAX_LOG_BYTES).unwrap_or(usize::MAX))
    }

    fn with_limit(limit: usize) -> Self {
        Self {
            state: Locked::new(State {
                limit,
                taken: 0,
                logs: VecDeque::new(),
            }),
        }
    }

    /// Begins the log of an execution.
    pub(crate) fn begin(self: &Arc<Self>, execution: ExecutionId) -> Recorder {
        self.state.with(|state| {
            if state.logs.len() == MAX_LOGS {
                state.remove(0);
            }
            state.logs.push_back(Log {
                execution,
                pieces: Vec::new(),
                kept: 0,
                dropped: 0,
            });
        });
        Recorder {
            logs: Arc::clone(self),
            execution,
        }
    }

    /// `GET /v1/executions/ID/log`: what was written so far, as it is kept.
    pub(crate) fn get(self: &Arc<Self>, execution: ExecutionId) -> Reply {
        let (kept, dropped) = self
            .state
            .with(|state| state.find(execution).map(|log| (log.kept, log.dropped)))
            .ok_or_else(|| {
                ApiError::not_found(format!(
                    "there is no log of the execution {execution}: it did not run here, or its log made room for later ones"
                ))
            })?;
        let (frames, response) = reply::frames();
        tokio::spawn(send(Arc::clone(self), execution, (kept, dropped), frames));
        Ok(response)
    }

    /// At most a chunk of a log from some byte on, behind room for the header of a frame. Nothing
    /// where it has no more.
    fn chunk(&self, execution: ExecutionId, from: usize, to: usize) -> Option<Vec<u8>> {
        self.state.with(|state| {
            let log = state.find(execution)?;
            let to = to.min(log.kept).min(from + CHUNK_BYTES);
            let mut chunk = Vec::with_capacity(frame::HEADER + CHUNK_BYTES);
            chunk.extend_from_slice(&[0; frame::HEADER]);
            let mut begins = 0;
            for piece in &log.pieces {
                let ends = begins + piece.len();
                if from < ends && begins < to {
                    let part = from.max(begins) - begins..to.min(ends) - begins;
                    chunk.extend_from_slice(&piece[part]);
                }
                begins = ends;
            }
            (chunk.len() > frame::HEADER).then_some(chunk)
        })
    }
}

impl State {
    fn find(&mut self, execution: ExecutionId) -> Option<&mut Log> {
        // Who writes is at the end as a rule.
        self.logs
            .iter_mut()
            .rev()
            .find(|log| log.execution == execution)
    }

    fn append(&mut self, execution: ExecutionId, mut bytes: &[u8]) {
        loop {
            let Some(log) = self.find(execution) else {
                return;
            };
            bytes = log.fill(bytes);
            if bytes.is_empty() {
                return;
            }
            let wanted = log.next_piece(bytes.len());
            let granted = self.make_room(execution, wanted);
            let Some(log) = self.find(execution) else {
                return;
            };
            if granted == 0 {
                log.dropped += bytes.len() as u64;
                return;
            }
            let piece = Vec::with_capacity(granted);
            let taken = piece.capacity();
            log.pieces.push(piece);
            self.taken += taken;
        }
    }

    /// Room for a piece of one log, at the expense of those before it. Says how much there is.
    fn make_room(&mut self, execution: ExecutionId, wanted: usize) -> usize {
        while self.taken + wanted > self.limit {
            let oldest = self
                .logs
                .iter()
                .position(|log| !log.pieces.is_empty() && log.execution != execution);
            let Some(oldest) = oldest else {
                return self.limit.saturating_sub(self.taken);
            };
            let log = &mut self.logs[oldest];
            if let Some(piece) = log.pieces.pop() {
                self.taken -= piece.capacity();
                log.kept -= piece.len();
                log.dropped += piece.len() as u64;
            }
            if log.pieces.is_empty() {
                self.remove(oldest);
            }
        }
        wanted
    }

    fn remove(&mut self, number: usize) {
        if let Some(log) = self.logs.remove(number) {
            self.taken -= log.pieces.iter().map(Vec::capacity).sum::<usize>();
        }
    }
}

impl Log {
    /// Fills what is left of the last piece, and gives what does not fit. Of a log that has lost
    /// its end nothing is left to fill.
    fn fill<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        if self.dropped > 0 {
            self.dropped += bytes.len() as u64;
            return &[];
        }
        let Some(piece) = self.pieces.last_mut() else {
            return bytes;
        };
        let room = (piece.capacity() - piece.len()).min(bytes.len());
        piece.extend_from_slice(&bytes[..room]);
        self.kept += room;
        &bytes[room..]
    }

    /// How large a piece comes next, for so many bytes: as large as all so far, so that they are
    /// few, and at least half of the memory is used.
    fn next_piece(&self, bytes: usize) -> usize {
        bytes.max(self.kept).clamp(LEAST_BYTES, PIECE_BYTES)
    }
}

async fn send(
    logs: Arc<Logs>,
    execution: ExecutionId,
    (kept, dropped): (usize, u64),
    frames: Sender<Bytes>,
) {
    let mut hash = Context::new(&SHA256);
    let mut sent = 0;
    while let Some(mut chunk) = logs.chunk(execution, sent, kept) {
        let bytes = chunk.len() - frame::HEADER;
        hash.update(&chunk[frame::HEADER..]);
        let Ok(header) = frame::header(FrameKind::Data, bytes) else {
            return;
        };
        chunk[..frame::HEADER].copy_from_slice(&header);
        if frames.send(chunk.into()).await.is_err() {
            return;
        }
        sent += bytes;
    }
    let logged = Logged {
        execution,
        bytes: sent as u64,
        sha256: digest(hash),
        // What was given up meanwhile is as little in there.
        dropped_bytes: dropped + (kept - sent) as u64,
    };
    if let Ok(json) = serde_json::to_vec(&logged)
        && let Ok(frame) = frame::encode(FrameKind::Event, &json)
    {
        // The reader may have gone; then nothing is lost.
        let _ = frames.send(frame).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All that is kept of a log, and how much is not.
    fn read(logs: &Logs, recorder: &Recorder) -> Option<(Vec<u8>, u64)> {
        let id = recorder.execution();
        let (kept, dropped) = logs
            .state
            .with(|state| state.find(id).map(|log| (log.kept, log.dropped)))?;
        let mut all = Vec::new();
        while let Some(chunk) = logs.chunk(id, all.len(), kept) {
            all.extend_from_slice(&chunk[frame::HEADER..]);
        }
        assert_eq!(all.len(), kept);
        Some((all, dropped))
    }

    #[test]
    fn one_log_alone_keeps_its_beginning() {
        let logs = Arc::new(Logs::with_limit(1_000_000));
        let log = logs.begin(ExecutionId::new());
        for byte in 0..20 {
            log.output(&[byte; 70_000]);
        }
        let (all, dropped) = read(&logs, &log).unwrap();
        assert_eq!((all.len(), dropped), (1_000_000, 400_000));
        assert!(
            all.iter()
                .zip(0_usize..)
                .all(|(b, at)| usize::from(*b) == at / 70_000)
        );
    }

    #[test]
    fn the_oldest_gives_room_up_from_its_end_and_goes_on_with_nothing() {
        let logs = Arc::new(Logs::with_limit(1_000_000));
        let first = logs.begin(ExecutionId::new());
        let quiet = logs.begin(ExecutionId::new());
        first.output(&[1; 1_000_000]);
        let second = logs.begin(ExecutionId::new());
        second.output(b"a few bytes");
        let (all, dropped) = read(&logs, &first).unwrap();
        assert!(
            all.len() > 700_000 && all.len() < 1_000_000,
            "{}",
            all.len()
        );
        assert_eq!(all.len() as u64 + dropped, 1_000_000);
        first.output(b"more");
        let more = read(&logs, &first).unwrap();
        assert_eq!(more, (all, dropped + 4));
        second.output(&[2; 2_000_000]);
        assert_eq!(read(&logs, &first), None);
        first.output(b"more");
        assert_eq!(read(&logs, &quiet), Some((Vec::new(), 0)));
    }

    #[test]
    fn short_logs_are_kept_up_to_a_number() {
        let logs = Arc::new(Logs::new());
        let all: Vec<_> = (0..=MAX_LOGS)
            .map(|_| {
                let log = logs.begin(ExecutionId::new());
                log.output(b"x");
                log
            })
            .collect();
        assert_eq!(read(&logs, &all[0]), None);
        assert_eq!(read(&logs, &all[1]), Some((b"x".to_vec(), 0)));
    }

    proptest! {
        #[test]
        fn every_log_is_a_beginning_and_the_memory_stays_within_its_limit(
            writes in proptest::collection::vec((0..4_usize, 0..20_000_usize), 1..40),
        ) {
            let limit = 50_000;
            let logs = Arc::new(Logs::with_limit(limit));
            let recorders: Vec<_> = (0..4).map(|_| logs.begin(ExecutionId::new())).collect();
            let mut written = vec![Vec::new(); 4];
            for (which, length) in writes {
                let bytes: Vec<u8> = (0..251).cycle().skip(written[which].len() % 251).take(length).collect();
                recorders[which].output(&bytes);
                written[which].extend_from_slice(&bytes);
                let taken = logs.state.with(|state| {
                    let sum = state.logs.iter().flat_map(|log| &log.pieces).map(Vec::capacity);
                    assert_eq!(state.taken, sum.sum::<usize>());
                    state.taken
                });
                prop_assert!(taken <= limit, "{taken}");
            }
            for (recorder, written) in recorders.iter().zip(&written) {
                if let Some((all, dropped)) = read(&logs, recorder) {
                    prop_assert_eq!(all.len() as u64 + dropped, written.len() as u64);
                    prop_assert!(written.starts_with(&all));
                }
            }
        }
    }
}
