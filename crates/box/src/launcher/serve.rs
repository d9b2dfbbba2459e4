//! The launcher's loop: one thread that waits for the runtime, for the ends of boxes and for
//! deadlines, and does one thing at a time.

use std::os::fd::OwnedFd;
use std::time::Duration;

use glovebox_protocol::ids::SandboxId;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::boxes::Boxes;
use super::line::{Line, Peer};
use crate::control::{BoxEnd, Fault, FromLauncher, ToLauncher};

/// The longest wait. Deadlines are times of day, and the clock may be set meanwhile.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Serves until the runtime or the outer process is gone; then removes every box.
///
/// # Errors
/// When something could not be taken away.
pub(super) fn until_closed(
    line: &mut Line,
    lifeline: &OwnedFd,
    mut boxes: Boxes,
) -> Result<(), Fault> {
    let served = serve(line, lifeline, &mut boxes);
    let removed = boxes.remove_all();
    served
        .map_err(|error| Fault::failed("serving the runtime", error))
        .and(removed)
}

fn serve(line: &mut Line, lifeline: &OwnedFd, boxes: &mut Boxes) -> std::io::Result<()> {
    loop {
        while let Some(text) = line.next() {
            let answer = answer(&text, boxes);
            line.send(&answer)?;
        }
        let ready = wait(line, lifeline, boxes)?;
        for sandbox in ready.spoken {
            boxes.pass_on_words(sandbox);
        }
        for sandbox in ready.ended {
            if let Some(end) = boxes.reap(sandbox) {
                line.send(&FromLauncher::Ended { sandbox, end })?;
            }
        }
        for sandbox in boxes.end_overdue() {
            let end = BoxEnd::DeadlineReached;
            line.send(&FromLauncher::Ended { sandbox, end })?;
        }
        line.flush()?;
        if ready.outer_gone || line.receive()? == Peer::Closed {
            return Ok(());
        }
    }
}

fn answer(text: &[u8], boxes: &mut Boxes) -> FromLauncher {
    let request: ToLauncher = match serde_json::from_slice(text) {
        Ok(request) => request,
        Err(error) => {
            return FromLauncher::Failed {
                id: id_of(text),
                fault: Fault::invalid("reading a request of the runtime", error),
            };
        }
    };
    let (id, result) = match request {
        ToLauncher::Create { id, spec } => {
            let created = boxes.create(&spec);
            (id, created.map(|facts| FromLauncher::Created { id, facts }))
        }
        ToLauncher::Remove { id, sandbox } => {
            let removed = boxes.remove(sandbox);
            (id, removed.map(|()| FromLauncher::Removed { id }))
        }
        ToLauncher::KeepReady { id, .. } => (
            id,
            Err(Fault::invalid("keeping boxes ready", "not built yet")),
        ),
        ToLauncher::Measure { id } => (
            id,
            Ok(FromLauncher::Measured {
                id,
                pools: Vec::new(),
                templates: Vec::new(),
            }),
        ),
        ToLauncher::List { id } => {
            let boxes = boxes.list();
            (id, Ok(FromLauncher::Listed { id, boxes }))
        }
    };
    result.unwrap_or_else(|fault| FromLauncher::Failed { id, fault })
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

/// What a wait has found.
struct Ready {
    spoken: Vec<SandboxId>,
    ended: Vec<SandboxId>,
    outer_gone: bool,
}

fn wait(line: &Line, lifeline: &OwnedFd, boxes: &Boxes) -> std::io::Result<Ready> {
    let timeout = boxes
        .until_deadline()
        .map_or(LONGEST_WAIT, |left| left.min(LONGEST_WAIT));
    let timeout = Timespec::try_from(timeout).map_err(std::io::Error::other)?;
    let mut fds = vec![
        PollFd::new(line, line.interest()),
        PollFd::new(lifeline, PollFlags::IN),
    ];
    let mut whose = Vec::new();
    for (sandbox, live) in boxes.live() {
        whose.push((sandbox, Sign::Ended));
        fds.push(PollFd::new(live.process(), PollFlags::IN));
        if let Some(words) = live.words() {
            whose.push((sandbox, Sign::Spoken));
            fds.push(PollFd::new(words, PollFlags::IN));
        }
    }
    match poll(&mut fds, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let seen = |wanted: Sign| {
        whose
            .iter()
            .zip(&fds[2..])
            .filter(|((_, sign), fd)| *sign == wanted && !fd.revents().is_empty())
            .map(|((sandbox, _), _)| *sandbox)
            .collect()
    };
    Ok(Ready {
        spoken: seen(Sign::Spoken),
        ended: seen(Sign::Ended),
        outer_gone: !fds[1].revents().is_empty(),
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Ended,
    Spoken,
}
