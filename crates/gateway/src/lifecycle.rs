//! Making sandboxes, looking at them and ending them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use glovebox_protocol::gateway::{CreateSandbox, SandboxList, SandboxView};
use glovebox_protocol::ids::SandboxId;
use glovebox_protocol::sign::Epoch;
use glovebox_runtime::{RuntimeError, SandboxSpec, ValidatedSpec};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use crate::budget;
use crate::error::{ApiError, chain};
use crate::relay::{self, Pool};
use crate::request;
use crate::state::Shared;
use crate::table::{Entry, Making, Phase, There};

/// Most sandboxes in one answer.
const PAGE: usize = 1000;

/// What is found in the place of a new sandbox.
enum Other {
    /// The same one, being made.
    Making(Making),
    /// The same one, made.
    Made,
    /// Something that stands in the way.
    Refused(ApiError),
}

/// Makes a sandbox and waits until its agent answers. The same request twice is one sandbox.
pub(crate) async fn create(
    shared: &Arc<Shared>,
    asked: CreateSandbox,
) -> Result<SandboxView, ApiError> {
    let id = asked.id;
    let limit_ms = asked.start_limit_ms;
    let spec = request::check(shared, &asked)?;
    let measured = shared.memory_bytes.load(Ordering::Relaxed);
    let (sender, outcome) = watch::channel(None);
    let making = Making {
        cancel: Arc::new(Notify::new()),
        outcome,
    };
    let reserve_bytes = budget::reserve(Some(&asked.limits));
    let entry = Entry {
        hard_deadline_ms: Some(asked.hard_deadline_ms),
        asked: Some(Box::new(asked.clone())),
        phase: Phase::Starting(making.clone()),
        agent_epoch: None,
        reserve_bytes,
        pool: Arc::new(Pool::default()),
    };
    let inserted = shared.table.insert(
        id,
        entry,
        |there| match there {
            There::Entry(other) => compare(id, &asked, other),
            There::Unborn => {
                let reason = "it was deleted before it was made";
                Other::Refused(ApiError::gone(id, reason, shared.now_ms()))
            }
        },
        |taken| budget::room(&shared.rules, taken, measured, reserve_bytes).map_err(Other::Refused),
    );
    let mut making = match inserted {
        Ok(()) => {
            let cancel = Arc::clone(&making.cancel);
            // Not a part of this request: whoever asked may go, and ask again.
            tokio::spawn(make(Arc::clone(shared), spec, limit_ms, cancel, sender));
            making
        }
        Err(Other::Making(making)) => making,
        Err(Other::Made) => return view(shared, id),
        Err(Other::Refused(error)) => return Err(error),
    };
    let outcome = making.outcome.wait_for(Option::is_some).await;
    match outcome.as_deref() {
        Ok(Some(Ok(()))) => view(shared, id),
        Ok(Some(Err(error))) => Err(error.clone()),
        Ok(None) | Err(_) => Err(ApiError::unavailable(format!(
            "making the sandbox {id} was broken off"
        ))),
    }
}

/// What an earlier sandbox of this id is to a request.
fn compare(id: SandboxId, asked: &CreateSandbox, other: &Entry) -> Other {
    // Of one that was adopted, and of one that has ended, only the deadline is known.
    let is_same = match &other.asked {
        Some(earlier) => **earlier == *asked,
        None => other.hard_deadline_ms == Some(asked.hard_deadline_ms),
    };
    match &other.phase {
        _ if !is_same => Other::Refused(ApiError::conflict(format!(
            "there is another sandbox of the id {id}, which was asked for in another way"
        ))),
        Phase::Starting(making) => Other::Making(making.clone()),
        Phase::Running => Other::Made,
        Phase::Ended { reason, at_ms } => Other::Refused(ApiError::gone(id, reason, *at_ms)),
    }
}

/// Makes one, and takes back what there is of it when that fails, takes too long or is called off.
async fn make(
    shared: Arc<Shared>,
    spec: ValidatedSpec,
    limit_ms: u64,
    cancel: Arc<Notify>,
    outcome: watch::Sender<Option<Result<(), ApiError>>>,
) {
    let id = spec.get().id;
    let result = tokio::select! {
        made = timeout(Duration::from_millis(limit_ms), start(&shared, spec)) => match made {
            Ok(Ok(epoch)) => Ok(epoch),
            Ok(Err(error)) => Err((error, None)),
            Err(_) => Err((ApiError::start_timeout(id, limit_ms), None)),
        },
        () = cancel.notified() => {
            let reason = "it was deleted while it was being made";
            Err((ApiError::gone(id, reason, shared.now_ms()), Some(reason)))
        }
    };
    let now_ms = shared.now_ms();
    let facts = |message: Option<&str>| serde_json::json!({ "sandbox": id, "message": message });
    let result = match result {
        Ok(epoch) => {
            shared.table.runs(id, Some(epoch));
            shared.journal.tell(now_ms, "sandbox_created", facts(None));
            Ok(())
        }
        Err((error, ended)) => {
            take_back(&shared, id).await;
            match ended {
                Some(reason) => {
                    shared.table.ended(id, reason, now_ms);
                }
                None => shared.table.forget(id),
            }
            let message = error.body.message.as_str();
            shared
                .journal
                .tell(now_ms, "sandbox_not_created", facts(Some(message)));
            Err(error)
        }
    };
    // Nobody may be waiting any more.
    let _ = outcome.send(Some(result));
}

async fn start(shared: &Shared, spec: ValidatedSpec) -> Result<Epoch, ApiError> {
    let id = spec.get().id;
    let from_runtime = |error: RuntimeError| ApiError::from_runtime(&error);
    let made = shared.runtime.create(spec).await.map_err(from_runtime)?;
    if let Some(epoch) = made.agent_epoch {
        // Its runtime has heard it, and with it that the agent speaks our protocol.
        return Ok(epoch);
    }
    let stream = shared.runtime.connect(id).await.map_err(from_runtime)?;
    let pool = shared.table.with(id, |entry| Arc::clone(&entry.pool));
    let health = relay::health(stream, &pool.unwrap_or_default()).await;
    let health = health.map_err(|error| {
        let doing = format!("asking the agent of the sandbox {id} for its health");
        ApiError::unavailable(chain(&doing, &*error))
    })?;
    if health.protocol != glovebox_protocol::PROTOCOL_VERSION {
        return Err(ApiError::agent_protocol(id, health.protocol));
    }
    Ok(health.epoch)
}

async fn take_back(shared: &Shared, id: SandboxId) {
    if let Err(error) = shared.runtime.remove(id).await {
        // The next look at the runtime finds it again.
        let message = chain("taking back what there is of a sandbox", &error);
        let facts = serde_json::json!({ "sandbox": id, "message": message });
        shared.journal.tell(shared.now_ms(), "not_removed", facts);
    }
}

/// One sandbox, as it stands.
pub(crate) fn view(shared: &Shared, id: SandboxId) -> Result<SandboxView, ApiError> {
    let (now_ms, window_ms) = (shared.now_ms(), shared.rules.ending_window_ms);
    let view = shared
        .table
        .with(id, |entry| entry.view(id, now_ms, window_ms));
    view.ok_or_else(|| ApiError::no_sandbox(id))
}

/// Those after `after`, in order.
pub(crate) fn list(shared: &Shared, after: Option<SandboxId>) -> Result<SandboxList, ApiError> {
    let (now_ms, window_ms) = (shared.now_ms(), shared.rules.ending_window_ms);
    let look = |id, entry: &Entry| entry.view(id, now_ms, window_ms);
    let mut items = shared.table.page(after, PAGE + 1, look);
    let is_more = items.len() > PAGE;
    items.truncate(PAGE);
    let last = items.last().filter(|_| is_more);
    let next_cursor = last.map(|view| view.id.to_string());
    Ok(SandboxList { items, next_cursor })
}

/// Ends a sandbox and everything in it. May be repeated, and may come before the create of the same
/// id: once both are answered, nothing is left.
pub(crate) async fn delete(shared: &Arc<Shared>, id: SandboxId) -> Result<SandboxView, ApiError> {
    loop {
        let phase = shared.table.phase_to_end(id);
        match phase.ok_or_else(|| ApiError::no_sandbox(id))? {
            Phase::Ended { .. } => return view(shared, id),
            Phase::Starting(mut making) => {
                making.cancel.notify_one();
                // It may have been made a moment ago: then it is looked at again.
                let _ = making.outcome.wait_for(Option::is_some).await;
            }
            Phase::Running => {
                let removed = shared.runtime.remove(id).await;
                removed.map_err(|error| ApiError::from_runtime(&error))?;
                let now_ms = shared.now_ms();
                if shared.table.ended(id, "it was deleted", now_ms) {
                    let facts = serde_json::json!({ "sandbox": id, "message": "it was deleted" });
                    shared.journal.tell(now_ms, "sandbox_ended", facts);
                }
            }
        }
    }
}

/// The spec of what was asked for.
pub(crate) fn spec(shared: &Shared, asked: &CreateSandbox) -> SandboxSpec {
    SandboxSpec {
        id: asked.id,
        installation: asked.installation,
        // From the installation's own configuration, never from a request.
        keys: shared.rules.agent_keys.clone(),
        image: asked.image.clone(),
        limits: asked.limits.clone(),
        input_limits: asked.input_limits,
        trust_domain: asked.trust_domain.clone(),
        start: asked.start,
        idle_limit_ms: asked.idle_limit_ms,
        is_unclaimed: asked.is_unclaimed,
        hard_deadline_ms: Some(asked.hard_deadline_ms),
    }
}
