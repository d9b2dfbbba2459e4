//! What a kernel writes before it takes code: kept to explain a start that fails.

use std::convert::Infallible;

use glovebox_protocol::file::escape_for_display;
use glovebox_protocol::frame::HEADER;
use tokio::task::{consume_budget, yield_now};

use crate::process::{Pipe, Taken};

/// How much is kept, in bytes: the last of it.
const KEPT_BYTES: usize = 4 * 1024;

/// Reads before others get their turn.
const READS_A_TURN: u32 = 64;

/// The pipes that a kernel writes to, and the last of what came out of them.
pub(crate) struct StartLog {
    stdout: Option<Pipe>,
    stderr: Option<Pipe>,
    kept: Vec<u8>,
}

impl StartLog {
    pub(crate) const fn new(stdout: Pipe, stderr: Pipe) -> Self {
        Self {
            stdout: Some(stdout),
            stderr: Some(stderr),
            kept: Vec::new(),
        }
    }

    /// Of a kernel that writes to nowhere.
    pub(crate) const fn empty() -> Self {
        Self {
            stdout: None,
            stderr: None,
            kept: Vec::new(),
        }
    }

    /// Reads what comes. Dropping the future loses nothing.
    pub(crate) async fn read(&mut self) -> Infallible {
        let Self {
            stdout,
            stderr,
            kept,
        } = self;
        let mut turns = 0_u32;
        loop {
            turns = turns.wrapping_add(1);
            if turns.is_multiple_of(READS_A_TURN) {
                // Of a pipe that never runs empty each look finds something, without a wait. The
                // budget of the task stays for what is awaited beside this, such as the end of the
                // process that writes.
                yield_now().await;
            }
            let pipe = tokio::select! {
                biased;
                () = readable(stdout) => &mut *stdout,
                () = readable(stderr) => &mut *stderr,
            };
            match pipe.as_mut().map(Pipe::take) {
                Some(Taken::Chunk(chunk)) => keep(&chunk[HEADER..], kept),
                Some(Taken::Nothing) => {}
                Some(Taken::End) | None => *pipe = None,
            }
        }
    }

    /// Reads what the event loop may not have heard of: the last words on standard error.
    pub(crate) fn read_last(&mut self) {
        if let Some(Taken::Chunk(chunk)) = self.stderr.as_mut().map(Pipe::take_at_once) {
            keep(&chunk[HEADER..], &mut self.kept);
        }
    }

    /// The text, fit to be shown.
    pub(crate) fn text(&self) -> String {
        escape_for_display(&self.kept)
    }

    /// Goes on reading, so that no writer waits, and keeps nothing more.
    pub(crate) fn ignore(self) {
        for pipe in [self.stdout, self.stderr].into_iter().flatten() {
            tokio::spawn(ignore(pipe));
        }
    }
}

async fn readable(pipe: &Option<Pipe>) {
    match pipe {
        Some(pipe) => pipe.readable().await,
        None => std::future::pending().await,
    }
}

fn keep(bytes: &[u8], kept: &mut Vec<u8>) {
    kept.extend_from_slice(bytes);
    let superfluous = kept.len().saturating_sub(KEPT_BYTES);
    kept.drain(..superfluous);
}

async fn ignore(mut pipe: Pipe) {
    loop {
        consume_budget().await;
        pipe.readable().await;
        if matches!(pipe.take(), Taken::End) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use glovebox_protocol::frame::FrameKind;

    use super::*;

    async fn endless() -> StartLog {
        let stdout = Pipe::endless(FrameKind::Stdout).await;
        StartLog::new(stdout, Pipe::endless(FrameKind::Stderr).await)
    }

    #[tokio::test]
    async fn others_have_their_turn_beside_a_start_that_never_stops_writing() {
        let mut log = endless().await;
        let others = async {
            for _ in 0..10 {
                yield_now().await;
            }
        };
        tokio::select! {
            biased;
            never = log.read() => match never {},
            () = others => {}
        }
        assert!(!log.text().is_empty());
    }

    #[tokio::test]
    async fn others_have_their_turn_beside_what_is_ignored() {
        endless().await.ignore();
        for _ in 0..10 {
            yield_now().await;
        }
    }
}
