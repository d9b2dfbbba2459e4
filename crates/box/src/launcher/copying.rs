//! Letting templates copy themselves into boxes: orders, and what comes of them.

use std::os::fd::{AsFd as _, OwnedFd};
use std::rc::Rc;
use std::time::Instant;

use glovebox_protocol::launcher_line::ToAgent;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::boxes::{BoxKey, Wish};
use super::pod::Pod;
use super::renewing::COPY_PATIENCE;
use super::templates::{Copying, Held, Origin, State, TemplateKey};
use super::timers::Due;
use crate::cgroup::group::WorkDoors;
use crate::control::Fault;
use crate::fault::chain;
use crate::template::namespaces::Namespaces;
use crate::template::order::Answer;
use crate::template::process::Wanted;

impl Pod {
    /// Lets a template copy itself into the box that has waited for longest.
    pub(super) fn order(&mut self, origin: &Rc<Origin>, key: TemplateKey) {
        let Some(for_box) = self
            .templates
            .supplies
            .get_mut(origin)
            .and_then(|supply| supply.queue.pop_front())
        else {
            return;
        };
        let prepared = self.prepare_order(for_box);
        let Some(held) = self.templates.all.get_mut(&key) else {
            return;
        };
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(fault) => {
                self.timers.at(Instant::now(), Due::Kernels);
                return self.refuse_kernel(for_box, fault.to_string());
            }
        };
        let in_advance = self.boxes.is_nobodys(for_box);
        let Some(running) = self.boxes.running(for_box) else {
            return;
        };
        let wanted = Wanted {
            id: for_box.number(),
            ids: running.facts.ids,
            limits: &running.kind.limits,
            namespaces: &prepared.namespaces,
            wire: prepared.kernels_end.as_fd(),
            in_advance,
            doors: &prepared.doors,
            omissions: &running.omissions,
        };
        let ordered = held.template.order(&wanted);
        let now = Instant::now();
        if let Wish::Waits(since) = running.wish {
            running.waited += now - since;
        }
        running.wish = Wish::Copied;
        running.attempts += 1;
        held.state = State::Copies(Copying {
            for_box,
            wire: prepared.agents_end,
            since: now,
            given_up: false,
        });
        self.timers.at(now + COPY_PATIENCE, Due::Kernels);
        if let Err(fault) = ordered {
            self.template_failed(key, fault.to_string());
        }
    }

    fn prepare_order(&mut self, for_box: BoxKey) -> Result<Prepared, Fault> {
        let gone = || Fault::failed("making a kernel", "the box has ended");
        let running = self.boxes.running(for_box).ok_or_else(gone)?;
        let doors = match &running.remains.groups {
            Some(groups) => groups
                .template_doors(&running.omissions)
                .map_err(|error| Fault::failed("opening the box's groups", chain(&error)))?,
            None => WorkDoors::Doors(Vec::new()),
        };
        let (agents_end, kernels_end) = socketpair(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(|error| Fault::exhausted("making the wire to a kernel", error))?;
        Ok(Prepared {
            namespaces: Namespaces::of(running.facts.pid)?,
            doors,
            agents_end,
            kernels_end,
        })
    }

    pub(super) fn answered(&mut self, key: TemplateKey, answer: Answer) {
        let Some(held) = self.templates.all.get_mut(&key) else {
            return;
        };
        match answer {
            Answer::Ready if matches!(held.state, State::Starts) => {
                held.state = State::Waits;
                self.takes_over(key);
            }
            Answer::Failed { cause, .. } => return self.template_failed(key, cause),
            Answer::Forked { id, pid } if copies_for(&held.state, id) => {
                if let Some(copying) = held.end_copying() {
                    held.kernels += 1;
                    let origin = Rc::clone(&held.origin);
                    let started = held.started;
                    self.templates.supply(&origin).1.succeeded(started);
                    self.hand_over(key, copying, pid);
                }
                self.retire_if_replaced(key);
            }
            Answer::Refused { id, cause } if copies_for(&held.state, id) => {
                if let Some(copying) = held.end_copying() {
                    self.refuse_kernel(copying.for_box, cause);
                }
                self.retire_if_replaced(key);
            }
            _ => {
                let what = "the template has answered what nobody has asked".to_owned();
                return self.template_failed(key, what);
            }
        }
        self.see_to_kernels();
    }

    /// Gives a kernel to the agent of its box.
    fn hand_over(&mut self, key: TemplateKey, copying: Copying, pid: i32) {
        let Some(running) = self.boxes.running(copying.for_box) else {
            return;
        };
        running.wish = Wish::None;
        running.attempts = 0;
        running.template = Some(key);
        // If the agent does not listen any more, the kernel sees its wire close, and ends.
        let beside = Some(copying.wire.as_fd());
        let _ = running.line.tell(&ToAgent::Kernel { pid }, beside);
    }
}

/// What goes beside an order.
struct Prepared {
    namespaces: Namespaces,
    doors: WorkDoors,
    agents_end: OwnedFd,
    kernels_end: OwnedFd,
}

/// Whether that is what the template was told to do.
fn copies_for(state: &State, id: u64) -> bool {
    matches!(state, State::Copies(copying) if copying.for_box.number() == id)
}

impl Held {
    /// Waits for orders again.
    pub(super) fn end_copying(&mut self) -> Option<Copying> {
        if !matches!(self.state, State::Copies(_)) {
            return None;
        }
        self.used = Instant::now();
        match std::mem::replace(&mut self.state, State::Waits) {
            State::Copies(copying) => Some(copying),
            _ => None,
        }
    }
}
