//! One attach: from the hello until the engine, the agent or we end it.
//!
//! Everything that the engine delivers is read at once, whatever else goes on: an engine hangs
//! over a container whose output an attached client does not read. The multiplexer gives each
//! stream a window, so what waits here is bounded all the same.

use std::future::poll_fn;
use std::io;
use std::task::Poll;
use std::time::Duration;

use bollard::container::LogOutput;
use futures_util::StreamExt as _;
use glovebox_protocol::record::{
    AttachedConfig, FromAgentDecoder, Kind, MAX_PAYLOAD, Magic, Nonce, OutOfStep, encode, hello,
};
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::compat::{Compat, FuturesAsyncReadCompatExt as _, TokioAsyncReadCompatExt as _};
use yamux::{Config, Connection, Mode};

use crate::engine::Attached;

/// How often the agent is told that we are there. It gives a session up after four times that.
const ALIVE_EVERY: Duration = Duration::from_secs(5);

/// How long an acknowledgement may take before the hello is said again.
const HELLO_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Room between records and multiplexer, in bytes.
const BUFFER: usize = 256 * 1024;

/// Streams to one agent at once, and what may be under way on all of them together.
const MAX_STREAMS: usize = 64;
const MAX_WINDOWS: usize = MAX_STREAMS * 256 * 1024;

/// A stream to an agent.
pub(crate) type AgentSide = Compat<yamux::Stream>;

/// Why a session ended, or never began.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkError {
    /// The container has ended, or the engine has.
    #[error("the container's streams have ended")]
    Ended,
    /// Nothing could be sent.
    #[error("sending to the agent")]
    Send(#[source] io::Error),
    /// What came is no record.
    #[error(transparent)]
    OutOfStep(#[from] OutOfStep),
    /// The agent has given the session up.
    #[error("the agent has lost the session")]
    Desync,
    /// The agent says why it cannot start.
    #[error("the agent refuses to start: {0}")]
    Refused(String),
    /// The configuration is too long, or cannot be written down.
    #[error("the agent's configuration cannot be sent")]
    Config,
    /// The multiplexer found a fault.
    #[error("the multiplexed connection is broken")]
    Mux,
    /// There are no random bytes.
    #[error("drawing random bytes")]
    Random,
}

/// Bytes that nobody can guess.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], LinkError> {
    let mut bytes = [0; N];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map(|()| bytes).map_err(|_| LinkError::Random)
}

/// An attach whose agent has answered our hello.
pub(crate) struct Session {
    attached: Attached,
    nonce: Nonce,
    decoder: FromAgentDecoder,
}

impl Session {
    /// Says hello until it is acknowledged. Whoever calls limits the time.
    pub(crate) async fn begin(mut attached: Attached, magic: Magic) -> Result<Self, LinkError> {
        let nonce = Nonce(random()?);
        let mut decoder = FromAgentDecoder::new(nonce);
        loop {
            let hello = hello(&magic, &nonce);
            attached
                .input
                .write_all(&hello)
                .await
                .map_err(LinkError::Send)?;
            attached.input.flush().await.map_err(LinkError::Send)?;
            let acknowledged = async {
                while !decoder.has_begun() {
                    decoder.push(&next_bytes(&mut attached).await?);
                    // What comes right behind the acknowledgement waits for its turn.
                    decoder.begin();
                }
                Ok::<_, LinkError>(())
            };
            match timeout(HELLO_AGAIN_AFTER, acknowledged).await {
                Ok(Ok(())) => break,
                Ok(Err(error)) => return Err(error),
                Err(_) => {}
            }
        }
        Ok(Self {
            attached,
            nonce,
            decoder,
        })
    }

    /// Gives a fresh agent its configuration and waits until it serves.
    pub(crate) async fn configure(&mut self, config: &AttachedConfig) -> Result<(), LinkError> {
        let json = serde_json::to_vec(config).map_err(|_| LinkError::Config)?;
        let record =
            encode(self.nonce.tag(), Kind::Config, &json).map_err(|_| LinkError::Config)?;
        let input = &mut self.attached.input;
        input.write_all(&record).await.map_err(LinkError::Send)?;
        input.flush().await.map_err(LinkError::Send)?;
        loop {
            match self.decoder.take()? {
                Some((Kind::Ready, _)) => return Ok(()),
                Some((Kind::Refused, why)) => {
                    let why = glovebox_protocol::file::escape_for_display(&why).to_string();
                    return Err(LinkError::Refused(why));
                }
                Some(_) => return Err(LinkError::OutOfStep(OutOfStep)),
                None => self.decoder.push(&next_bytes(&mut self.attached).await?),
            }
        }
    }

    /// Carries the session until it ends. Whoever wants a stream asks through `requests`.
    pub(crate) async fn carry(self, requests: &mut Requests) -> LinkError {
        let Self {
            attached: Attached { mut output, input },
            nonce,
            mut decoder,
        } = self;
        let (near, far) = tokio::io::duplex(BUFFER);
        let (from_mux, mut to_mux) = tokio::io::split(near);
        let reading = async {
            loop {
                match records(&mut decoder, &mut to_mux).await {
                    Ok(()) => {}
                    Err(error) => return error,
                }
                match output.next().await {
                    Some(Ok(output)) => decoder.push(&of_stdout(output)),
                    Some(Err(_)) | None => return LinkError::Ended,
                }
            }
        };
        tokio::select! {
            error = reading => error,
            error = write(input, from_mux, nonce) => error,
            error = multiplex(far, requests) => error,
        }
    }
}

async fn next_bytes(attached: &mut Attached) -> Result<bytes::Bytes, LinkError> {
    match attached.output.next().await {
        Some(Ok(output)) => Ok(of_stdout(output)),
        Some(Err(_)) | None => Err(LinkError::Ended),
    }
}

/// Nothing is attached but standard output.
fn of_stdout(output: LogOutput) -> bytes::Bytes {
    match output {
        LogOutput::StdOut { message } | LogOutput::Console { message } => message,
        LogOutput::StdErr { .. } | LogOutput::StdIn { .. } => bytes::Bytes::new(),
    }
}

/// Hands on every record that is whole.
async fn records(
    decoder: &mut FromAgentDecoder,
    to_mux: &mut WriteHalf<DuplexStream>,
) -> Result<(), LinkError> {
    while let Some((kind, payload)) = decoder.take()? {
        match kind {
            Kind::Data => to_mux
                .write_all(&payload)
                .await
                .map_err(|_| LinkError::Mux)?,
            Kind::Desync => return Err(LinkError::Desync),
            Kind::Refused => {
                let why = glovebox_protocol::file::escape_for_display(&payload).to_string();
                return Err(LinkError::Refused(why));
            }
            _ => return Err(LinkError::OutOfStep(OutOfStep)),
        }
    }
    Ok(())
}

async fn write(
    mut input: std::pin::Pin<Box<dyn tokio::io::AsyncWrite + Send>>,
    mut from_mux: ReadHalf<DuplexStream>,
    nonce: Nonce,
) -> LinkError {
    let mut alive = interval(ALIVE_EVERY);
    alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut chunk = vec![0; MAX_PAYLOAD];
    loop {
        let (kind, length) = tokio::select! {
            biased;
            read = from_mux.read(&mut chunk) => match read {
                Ok(length @ 1..) => (Kind::Data, length),
                _ => return LinkError::Mux,
            },
            _ = alive.tick() => (Kind::Alive, 0),
        };
        let Ok(record) = encode(nonce.tag(), kind, &chunk[..length]) else {
            return LinkError::Mux;
        };
        let sent = async {
            input.write_all(&record).await?;
            input.flush().await
        };
        if let Err(error) = sent.await {
            return LinkError::Send(error);
        }
    }
}

/// Asks for streams.
pub(crate) type Wanted = oneshot::Sender<io::Result<AgentSide>>;
pub(crate) type Requests = mpsc::Receiver<Wanted>;

/// Opens streams as they are asked for. The agent opens none; one that does is shut out.
async fn multiplex(far: DuplexStream, requests: &mut Requests) -> LinkError {
    let mut config = Config::default();
    config
        .set_max_num_streams(MAX_STREAMS)
        .set_max_connection_receive_window(Some(MAX_WINDOWS));
    let mut connection = Connection::new(far.compat(), config, Mode::Client);
    let mut wanted: Option<Wanted> = None;
    poll_fn(|context| {
        loop {
            match connection.poll_next_inbound(context) {
                Poll::Ready(_) => return Poll::Ready(LinkError::Mux),
                Poll::Pending => {}
            }
            if wanted.is_none() {
                match requests.poll_recv(context) {
                    Poll::Ready(Some(next)) => wanted = Some(next),
                    // Whoever could ask is gone, and drops this.
                    Poll::Ready(None) | Poll::Pending => return Poll::Pending,
                }
            }
            match connection.poll_new_outbound(context) {
                Poll::Ready(opened) => {
                    if let Some(wanted) = wanted.take() {
                        let opened = opened.map(|stream| stream.compat());
                        // Whoever asked may have gone away.
                        let _ = wanted.send(opened.map_err(io::Error::other));
                    }
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    })
    .await
}
