//! One session: from a hello to the next, or to silence.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use glovebox_protocol::record::{MAX_PAYLOAD, Nonce};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio_util::compat::{FuturesAsyncReadCompatExt as _, TokioAsyncReadCompatExt as _};
use yamux::{Config, Connection, Mode};

use super::attached::Attached;
use super::output::Output;
use crate::agent::Agent;

/// Streams of one session at once. A gateway needs a handful.
const MAX_STREAMS: usize = 64;

/// What may be under way to us on all streams together. It leaves each stream the window that it
/// begins with.
const MAX_WINDOWS: usize = MAX_STREAMS * 256 * 1024;

/// Input that may wait for the multiplexer: what the windows allow, and as much again for what is
/// not data. A gateway that keeps to the windows never gets there.
const MAX_WAITING: usize = 2 * MAX_WINDOWS;

/// Room between the multiplexer and the streams.
const BUFFER: usize = 256 * 1024;

/// A session. Dropped it is over: its streams are cut, and what runs goes on.
pub(super) struct Session {
    pub(super) nonce: Nonce,
    input: mpsc::UnboundedSender<Vec<u8>>,
    waiting: Arc<AtomicUsize>,
    over: watch::Sender<bool>,
    tasks: [AbortHandle; 3],
}

impl Session {
    /// Begins one. To be called within a Tokio runtime.
    pub(super) fn begin(nonce: Nonce, agent: &Agent, output: &Arc<Output>) -> Self {
        let (near, far) = tokio::io::duplex(BUFFER);
        let (from_mux, to_mux) = tokio::io::split(near);
        let (input, incoming) = mpsc::unbounded_channel();
        let (over, told) = watch::channel(false);
        let waiting = Arc::new(AtomicUsize::new(0));
        let tasks = [
            tokio::spawn(carry_in(incoming, to_mux, Arc::clone(&waiting))),
            tokio::spawn(carry_out(from_mux, nonce, Arc::clone(output))),
            tokio::spawn(serve_streams(far, agent.clone(), told)),
        ];
        Self {
            nonce,
            input,
            waiting,
            over,
            tasks: tasks.map(|task| task.abort_handle()),
        }
    }

    /// Takes bytes in, without waiting. Says whether the session can go on.
    pub(super) fn take(&self, bytes: Vec<u8>) -> bool {
        let length = bytes.len();
        self.waiting.fetch_add(length, Ordering::Relaxed) + length <= MAX_WAITING
            && self.input.send(bytes).is_ok()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Before the streams are cut, so that they know why.
        self.over.send_replace(true);
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

async fn carry_in(
    mut incoming: mpsc::UnboundedReceiver<Vec<u8>>,
    mut to_mux: WriteHalf<DuplexStream>,
    waiting: Arc<AtomicUsize>,
) {
    while let Some(bytes) = incoming.recv().await {
        let written = to_mux.write_all(&bytes).await;
        waiting.fetch_sub(bytes.len(), Ordering::Relaxed);
        if written.is_err() {
            return;
        }
    }
}

async fn carry_out(mut from_mux: ReadHalf<DuplexStream>, nonce: Nonce, output: Arc<Output>) {
    let mut chunk = vec![0; MAX_PAYLOAD];
    while let Ok(length @ 1..) = from_mux.read(&mut chunk).await {
        if !output.data(nonce.tag(), &chunk[..length]).await {
            return;
        }
    }
}

async fn serve_streams(far: DuplexStream, agent: Agent, over: watch::Receiver<bool>) {
    let mut config = Config::default();
    config
        .set_max_num_streams(MAX_STREAMS)
        .set_max_connection_receive_window(Some(MAX_WINDOWS));
    let mut connection = Connection::new(far.compat(), config, Mode::Server);
    while let Some(Ok(stream)) = poll_fn(|context| connection.poll_next_inbound(context)).await {
        let agent = agent.clone();
        let stream = Attached::new(stream.compat(), over.clone());
        let mut over = over.clone();
        tokio::spawn(async move {
            let told = async move {
                // One that is gone without a word has been dropped with the agent.
                let _ = over.wait_for(|over| *over).await;
            };
            agent.serve_connection_until(stream, told).await;
        });
    }
}
