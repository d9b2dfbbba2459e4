//! The launcher's loop: one thread that waits for everything at once, and never for one thing
//! alone.

use std::os::fd::OwnedFd;
use std::time::Instant;

use super::events::Source;
use super::line::{Line, Peer};
use super::pod::Pod;
use crate::control::{Fault, FromLauncher, ToLauncher};

/// Serves until the runtime or the outer process is gone; then removes every box.
///
/// # Errors
/// When something could not be taken away.
pub(super) fn until_closed(line: &mut Line, lifeline: &OwnedFd, mut pod: Pod) -> Result<(), Fault> {
    let failed = |error| Fault::failed("serving the runtime", error);
    let served = serve(line, lifeline, &mut pod).map_err(failed);
    served.and(end_all(&mut pod).map_err(failed)?)
}

fn serve(line: &mut Line, lifeline: &OwnedFd, pod: &mut Pod) -> std::io::Result<()> {
    pod.events.watch_for_good(&*line, Source::Runtime)?;
    pod.events.watch_for_good(lifeline, Source::Outer)?;
    let mut wants_room = false;
    loop {
        // One request at a time, so that many at once do not keep everything else waiting.
        let request = line.next();
        let until = if request.is_some() {
            Instant::now()
        } else {
            pod.next_moment()
        };
        if let Some(text) = request {
            answer(&text, pod);
        }
        let mut peer = Peer::Open;
        for source in pod.events.wait(until)? {
            match source {
                Source::Outer => return Ok(()),
                Source::Runtime => peer = line.receive()?,
                other => pod.happened(other),
            }
        }
        pod.look_at_what_is_due();
        for answer in std::mem::take(&mut pod.answers) {
            line.send(&answer)?;
        }
        line.flush()?;
        if peer == Peer::Closed {
            return Ok(());
        }
        if line.waits_for_room() != wants_room {
            wants_room = line.waits_for_room();
            let source = Source::Runtime;
            pod.events.also_for_room(&*line, source, wants_room)?;
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
        }),
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
