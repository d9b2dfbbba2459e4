//! The launcher's loop: one thread that waits for everything at once, and never for one thing
//! alone.

use std::os::fd::OwnedFd;
use std::time::Instant;

use super::caller::Caller;
use super::events::Source;
use super::pod::Pod;
use crate::control::{Fault, FromLauncher, ToLauncher};

/// Serves until nobody asks for anything any more, or the outer process is gone; then removes
/// every box.
///
/// # Errors
/// When something could not be taken away.
pub(super) fn until_closed(
    mut caller: Caller<'_>,
    lifeline: &OwnedFd,
    mut pod: Pod,
) -> Result<(), Fault> {
    let failed = |error| Fault::failed("serving the runtime", error);
    let served = serve(&mut caller, lifeline, &mut pod).map_err(failed);
    served.and(end_all(&mut pod).map_err(failed)?)
}

fn serve(caller: &mut Caller<'_>, lifeline: &OwnedFd, pod: &mut Pod) -> std::io::Result<()> {
    caller.watch(&pod.events)?;
    pod.events.watch_for_good(lifeline, Source::Outer)?;
    loop {
        // One request at a time, so that many at once do not keep everything else waiting.
        let request = caller.next_request(&pod.events)?;
        let until = match (&request, caller.patience()) {
            (Some(_), _) => Instant::now(),
            (None, Some(patience)) => patience.min(pod.next_moment()),
            (None, None) => pod.next_moment(),
        };
        if let Some(text) = request {
            answer(&text, pod);
        }
        for source in pod.events.wait(until)? {
            match source {
                Source::Outer => return Ok(()),
                Source::Runtime => caller.receive(&pod.events)?,
                Source::Door => caller.open_door(&pod.events)?,
                other => pod.happened(other),
            }
        }
        pod.look_at_what_is_due();
        caller.look_at_greeting(&pod.events)?;
        let answers = std::mem::take(&mut pod.answers);
        caller.tell(&pod.events, answers)?;
        if pod.is_to_end || caller.is_done(pod.boxes.no_sandbox_is_left()) {
            return Ok(());
        }
    }
}

/// Ends everything, and waits until it is gone or cannot be taken away.
fn end_all(pod: &mut Pod) -> std::io::Result<Result<(), Fault>> {
    pod.end_all();
    while pod.something_ends() {
        for source in pod.events.wait(pod.next_moment())? {
            pod.happened(source);
        }
        pod.look_at_what_is_due();
    }
    Ok(pod.left.take().map_or(Ok(()), Err))
}

fn answer(text: &[u8], pod: &mut Pod) {
    let request: ToLauncher = match serde_json::from_slice(text) {
        Ok(request) => request,
        Err(error) => {
            pod.answers.push(FromLauncher::Failed {
                id: id_of(text),
                fault: Fault::invalid("reading a request of the runtime", error),
            });
            return;
        }
    };
    match request {
        ToLauncher::Create { id, spec } => pod.create(id, *spec),
        ToLauncher::Remove { id, sandbox } => pod.remove(id, sandbox),
        ToLauncher::List { id } => {
            let boxes = pod.boxes.told();
            pod.answers.push(FromLauncher::Listed { id, boxes });
        }
        ToLauncher::KeepReady { id, kind, count } => pod.keep_ready(id, kind, count),
        ToLauncher::Measure { id } => pod.answers.push(FromLauncher::Measured {
            id,
            pools: pod.pools.facts(Instant::now()),
            templates: pod.templates.facts(),
            memory_bytes: pod.surroundings.pod.memory_bytes(),
        }),
        ToLauncher::End => pod.is_to_end = true,
    }
}

/// The id of a request that is otherwise not understood, so that whoever waits for an answer
/// gets one.
fn id_of(text: &[u8]) -> u64 {
    #[derive(serde::Deserialize)]
    struct OnlyId {
        id: u64,
    }
    serde_json::from_slice(text).map_or(0, |OnlyId { id }| id)
}
