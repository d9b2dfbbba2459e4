//! The way to agents: what is signed for one is passed on as it is, and its answer comes back as it
//! comes. The gateway can neither make nor alter such a request; it looks at nothing in it.

mod first;
mod request;

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use glovebox_client::Unanswered;
use glovebox_protocol::ids::SandboxId;
use glovebox_protocol::sign::names;
use glovebox_runtime::{AgentStream, RuntimeError, SandboxState};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Request, Response};

use crate::body::{Fault, Progress, SignedBody};
use crate::error::{ApiError, chain};
use crate::reply::{Reply, ReplyBody};
use crate::state::Shared;
use crate::table::Phase;
pub(crate) use first::health;
use request::AgentRequest;

/// A connection to an agent.
type Channel = glovebox_client::Channel<AgentRequest>;

/// The idle connections to one agent.
pub(crate) type Pool = glovebox_client::Idle<AgentRequest>;

/// Room for writing and reading on one connection, in bytes.
const BUFFER_BYTES: usize = 64 * 1024;

/// How often, and how many times, the runtime is asked why an agent does not answer any more.
const ASK_EVERY: Duration = Duration::from_millis(50);
const ASK_TIMES: u32 = 20;

/// How long an agent may take to begin an answer, from the last byte of the request that it has
/// taken. Nothing that an agent is asked for takes nearly as long: most answers begin at once, and a
/// kernel has 90 seconds to start where nobody asks for more.
const HEAD_PATIENCE: Duration = Duration::from_secs(15 * 60);

/// Passes a request on to the agent of a sandbox. `target` is the agent's own path with its query.
pub(crate) async fn relay(
    shared: &Arc<Shared>,
    id: SandboxId,
    (parts, target): (&Parts, &str),
    body: &mut Option<SignedBody>,
) -> Reply {
    let pool = pool_of(shared, id)?;
    let Some(body) = body.take() else {
        return Err(ApiError::invalid("the body was read already"));
    };
    let mark = Mark {
        fault: body.fault(),
        progress: body.progress(),
    };
    let mut request = Request::builder()
        .method(parts.method.clone())
        .uri(target)
        .body(AgentRequest(Some(body)))
        .map_err(|error| ApiError::internal("putting a request to an agent together", &error))?;
    let names = names::ALL.iter().copied().chain([CONTENT_TYPE.as_str()]);
    copy(names, &parts.headers, request.headers_mut());
    request
        .headers_mut()
        .insert(HOST, HeaderValue::from_static("agent"));
    send(shared, id, pool, request, &mark).await
}

/// What is known of a body that is on its way.
struct Mark {
    fault: Fault,
    progress: Progress,
}

/// Sends a request, on a connection that is kept if there is one, and waits for an answer to begin.
async fn send(
    shared: &Arc<Shared>,
    id: SandboxId,
    pool: Arc<Pool>,
    request: Request<AgentRequest>,
    mark: &Mark,
) -> Reply {
    let sent = tokio::select! {
        sent = pool.send(request, connect(shared, id)) => sent,
        () = mark.progress.until_still_for(HEAD_PATIENCE) => {
            return Err(ApiError::unavailable(format!(
                "the agent of the sandbox {id} does not answer"
            )));
        }
    };
    match sent {
        Ok((response, channel)) => answer(response, channel, pool).await,
        Err(Unanswered::Connect(error)) => Err(error),
        Err(Unanswered::Transport(error)) => Err(match mark.fault.get() {
            Some(fault) => fault.into(),
            None => lost(shared, id, &error).await,
        }),
    }
}

fn pool_of(shared: &Shared, id: SandboxId) -> Result<Arc<Pool>, ApiError> {
    let found = shared.table.with(id, |entry| match &entry.phase {
        Phase::Running => Ok(Arc::clone(&entry.pool)),
        Phase::Starting(_) => Err(ApiError::unavailable(format!(
            "the sandbox {id} is still being made"
        ))),
        Phase::Ended { reason, at_ms } => Err(ApiError::gone(id, reason, *at_ms)),
    });
    found.unwrap_or_else(|| Err(ApiError::no_sandbox(id)))
}

async fn open(stream: Box<dyn AgentStream>) -> hyper::Result<Channel> {
    Channel::open(Box::new(stream), BUFFER_BYTES).await
}

async fn connect(shared: &Shared, id: SandboxId) -> Result<Channel, ApiError> {
    match shared.runtime.connect(id).await {
        Ok(stream) => match open(stream).await {
            Ok(channel) => Ok(channel),
            Err(error) => Err(lost(shared, id, &error).await),
        },
        Err(error @ RuntimeError::NotFound { .. }) => Err(lost(shared, id, &error).await),
        Err(error) => Err(ApiError::from_runtime(&error)),
    }
}

/// Why an agent does not answer: its sandbox has ended, which the runtime may know a moment later,
/// or something else is wrong.
async fn lost(shared: &Shared, id: SandboxId, cause: &(dyn std::error::Error + Sync)) -> ApiError {
    let cause = chain(&format!("talking to the agent of the sandbox {id}"), cause);
    let mut ask = tokio::time::interval(ASK_EVERY);
    for _ in 0..ASK_TIMES {
        ask.tick().await;
        let reason = match shared.runtime.inspect(id).await {
            Ok(sandbox) => match sandbox.state {
                SandboxState::Running => continue,
                SandboxState::Ended { reason } => reason,
            },
            Err(RuntimeError::NotFound { reason, .. }) => {
                reason.unwrap_or_else(|| "the runtime has no such sandbox any more".into())
            }
            Err(_) => break,
        };
        shared.table.ended(id, &reason, shared.now_ms());
        return pool_of(shared, id)
            .err()
            .unwrap_or_else(|| ApiError::unavailable(cause));
    }
    ApiError::unavailable(cause)
}

/// What comes back to the sender: of the agent's headers only those that it has to know. An agent
/// cannot pass for the gateway.
async fn answer(response: Response<Incoming>, channel: Channel, pool: Arc<Pool>) -> Reply {
    let (parts, incoming) = response.into_parts();
    // Others would change what the connection to the caller is.
    if !(200..600).contains(&parts.status.as_u16()) {
        let what = "the agent has answered with something that is no answer";
        return Err(ApiError::unavailable(what));
    }
    let mut body = AgentBody {
        incoming,
        channel: Some(channel),
        pool,
    };
    poll_fn(|context| {
        body.give_back_if_done(context);
        Poll::Ready(())
    })
    .await;
    let mut response = Response::new(ReplyBody::Agent(Box::new(body)));
    *response.status_mut() = parts.status;
    let names = [CONTENT_TYPE.as_str(), CACHE_CONTROL.as_str(), names::EPOCH];
    copy(names.into_iter(), &parts.headers, response.headers_mut());
    Ok(response)
}

fn copy(names: impl Iterator<Item = &'static str>, from: &HeaderMap, to: &mut HeaderMap) {
    for name in names {
        // All of them: that there are two is for the receiver to refuse.
        for value in from.get_all(name) {
            to.append(HeaderName::from_static(name), value.clone());
        }
    }
}

/// The body of an agent's answer. Dropped early it closes the connection to the agent, and so tells
/// it that nobody reads.
pub(crate) struct AgentBody {
    incoming: Incoming,
    channel: Option<Channel>,
    pool: Arc<Pool>,
}

impl AgentBody {
    /// Gives the connection back with the last byte: whoever sends an answer of known length does
    /// not ask for more.
    fn give_back_if_done(&mut self, context: &mut Context<'_>) {
        if self.incoming.is_end_stream() {
            self.give_back(context);
        }
    }

    fn give_back(&mut self, context: &mut Context<'_>) {
        if let Some(mut channel) = self.channel.take() {
            channel.settle(context);
            if channel.is_usable() {
                self.pool.put(channel);
            }
        }
    }
}

impl Body for AgentBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        let this = self.get_mut();
        let Some(channel) = &mut this.channel else {
            return Poll::Ready(None);
        };
        match channel.poll_frame(&mut this.incoming, context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(Ok(frame))) => {
                this.give_back_if_done(context);
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => {
                this.channel = None;
                Poll::Ready(Some(Err(std::io::Error::other(error))))
            }
            Poll::Ready(None) => {
                this.give_back(context);
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.channel.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
