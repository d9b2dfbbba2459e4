//! Kernels from templates: who waits for one, who makes it, and what is done when that fails.
//!
//! Every change (a box that wants a kernel, a template that has something to say or has ended, a
//! moment that has come) leads to [`Pod::see_to_kernels`], which does whatever can be done now.

use std::os::fd::{AsFd as _, OwnedFd};
use std::rc::Rc;
use std::time::{Duration, Instant};

use glovebox_protocol::launcher_line::ToAgent;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::boxes::{BoxKey, Wish};
use super::events::{Source, Watched};
use super::outer::say;
use super::pod::Pod;
use super::templates::{Copying, Held, Origin, State, TemplateKey};
use super::timers::Due;
use crate::cgroup::group::WorkDoors;
use crate::control::Fault;
use crate::create::remains::Stays;
use crate::fault::chain;
use crate::mutation::Mutation;
use crate::template::namespaces::Namespaces;
use crate::template::order::Answer;
use crate::template::process::{Template, Wanted};

/// How long a template is given to load everything.
const START_PATIENCE: Duration = Duration::from_secs(60);

/// How long it is given to copy itself into a box. Then the box is ended, because code of the box
/// may be what keeps it; and a while later the template, because it is not.
const COPY_PATIENCE: Duration = Duration::from_secs(10);

/// How long a killed one is given to go away.
const END_PATIENCE: Duration = Duration::from_secs(10);

/// How soon it is tried again to take away what has stayed.
const PAUSE: Duration = Duration::from_millis(2);

/// How often one box may be what a template is busy with when it ends.
const ATTEMPTS: u32 = 2;

impl Pod {
    /// Lets a box wait for a kernel.
    pub(super) fn want_kernel(&mut self, key: BoxKey) {
        let Some(running) = self.boxes.running(key) else {
            return;
        };
        running.wish = Wish::Waits(Instant::now());
        let origin = if running.omissions.omits(Mutation::TrustDomain) {
            Origin::of_everybody(&running.kind)
        } else {
            Origin::of(&running.kind)
        };
        self.templates.supply(&origin).1.queue.push_back(key);
        self.see_to_kernels();
    }

    /// Tells a box that it gets no kernel.
    pub(super) fn refuse_kernel(&mut self, key: BoxKey, reason: String) {
        if let Some(running) = self.boxes.running(key) {
            running.wish = Wish::None;
            // An agent that is gone is noticed by its end.
            let _ = running.line.tell(&ToAgent::NoKernel { reason }, None);
        }
    }

    /// Does whatever can be done now for those who wait for a kernel.
    pub(super) fn see_to_kernels(&mut self) {
        let now = Instant::now();
        let origins: Vec<_> = self.templates.supplies.keys().cloned().collect();
        for origin in origins {
            self.see_to(&origin, now);
        }
        self.templates.tidy(now);
    }

    fn see_to(&mut self, origin: &Rc<Origin>, now: Instant) {
        self.drop_gone(origin);
        let Some(supply) = self.templates.supplies.get(origin) else {
            return;
        };
        let (waiting, pause) = (!supply.queue.is_empty(), supply.pause(now));
        let current = supply
            .current
            .and_then(|key| Some((key, self.templates.all.get(&key)?)));
        match current {
            None if !waiting => {}
            None => match (supply.refusal(now).map(str::to_owned), pause) {
                (Some(reason), _) => self.refuse_all(origin, &reason),
                (None, Some(until)) => self.timers.at(until, Due::Kernels),
                (None, None) => self.start_current(origin, now),
            },
            Some((key, held)) => {
                let renew =
                    held.is_worn(now, &self.renewal) && supply.next.is_none() && pause.is_none();
                let idle = matches!(held.state, State::Waits);
                if renew && self.templates.have_room() {
                    self.start_next(origin, now);
                } else if renew && idle {
                    self.age_out_copies_of(key);
                    return self.end_template(key);
                }
                if waiting && idle {
                    self.order(origin, key);
                }
            }
        }
    }

    /// Takes boxes off the queue that need no kernel any more.
    fn drop_gone(&mut self, origin: &Rc<Origin>) {
        let Some(supply) = self.templates.supplies.get_mut(origin) else {
            return;
        };
        let boxes = &mut self.boxes;
        supply.queue.retain(|key| boxes.running(*key).is_some());
    }

    fn refuse_all(&mut self, origin: &Rc<Origin>, reason: &str) {
        while let Some(key) = self
            .templates
            .supplies
            .get_mut(origin)
            .and_then(|supply| supply.queue.pop_front())
        {
            self.refuse_kernel(key, reason.to_owned());
        }
    }

    fn start_current(&mut self, origin: &Rc<Origin>, now: Instant) {
        if !self.templates.have_room() {
            if !self.templates.some_end()
                && let Some(key) = self.templates.idlest()
            {
                self.end_template(key);
            }
            // Whatever changes next is looked at again.
            return;
        }
        let started = self.start(origin, now);
        if let Some(supply) = self.templates.supplies.get_mut(origin) {
            supply.current = started;
        }
    }

    fn start_next(&mut self, origin: &Rc<Origin>, now: Instant) {
        let started = self.start(origin, now);
        if let Some(supply) = self.templates.supplies.get_mut(origin) {
            supply.next = started;
        }
    }

    fn start(&mut self, origin: &Rc<Origin>, now: Instant) -> Option<TemplateKey> {
        let key = self.templates.next_key();
        let name = format!("template-{}", key.number());
        let started =
            Template::start(&self.surroundings, &name, &origin.layers).and_then(|template| {
                match self.watch(key, &template) {
                    Ok(watched) => Ok((watched, template)),
                    Err(fault) => Err(fault.and_then(template.kill())),
                }
            });
        match started {
            Ok((watched, template)) => {
                let held = Held {
                    origin: Rc::clone(origin),
                    template,
                    state: State::Starts,
                    started: now,
                    used: now,
                    kernels: 0,
                    _watched: watched,
                };
                self.timers.at(now + self.renewal.template(), Due::Kernels);
                self.templates.all.insert(key, held);
                self.timers.at(now + START_PATIENCE, Due::Kernels);
                Some(key)
            }
            Err(fault) => {
                self.take_down_failure(origin, now, fault.to_string());
                None
            }
        }
    }

    /// Copies of its descriptors are what is waited for: they belong to the list alone.
    fn watch(&self, key: TemplateKey, template: &Template) -> Result<[Watched<OwnedFd>; 2], Fault> {
        let copy = |fd: &OwnedFd, source| {
            let copied = fd
                .try_clone()
                .map_err(|error| Fault::exhausted("watching a template", error))?;
            self.events
                .watch(copied, source)
                .map_err(|(_, fault)| fault)
        };
        Ok([
            copy(template.line(), Source::TemplateLine(key))?,
            copy(template.process(), Source::TemplateProcess(key))?,
        ])
    }

    fn take_down_failure(&mut self, origin: &Rc<Origin>, now: Instant, reason: String) {
        say(format_args!("a template has failed: {reason}"));
        let (_, supply) = self.templates.supply(origin);
        supply.failed(now, reason);
        self.timers.at(now, Due::Kernels);
    }

    /// Lets a template copy itself into the box that has waited for longest.
    fn order(&mut self, origin: &Rc<Origin>, key: TemplateKey) {
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
        let Some(running) = self.boxes.running(for_box) else {
            return;
        };
        let wanted = Wanted {
            id: for_box.number(),
            ids: running.facts.ids,
            limits: &running.kind.limits,
            namespaces: &prepared.namespaces,
            wire: prepared.kernels_end.as_fd(),
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

    /// A template has said something, or has ended.
    pub(super) fn template_spoke(&mut self, key: TemplateKey, has_ended: bool) {
        loop {
            let Some(held) = self.templates.all.get(&key) else {
                return;
            };
            if matches!(held.state, State::Ends { .. } | State::Stays) {
                return self.take_away_template(key);
            }
            match held.template.receive() {
                Ok(Some(answer)) => self.answered(key, answer),
                Ok(None) if has_ended => {
                    return self.template_failed(key, "the template has ended".into());
                }
                Ok(None) => return,
                Err(gone) => return self.template_failed(key, gone.to_string()),
            }
        }
    }

    fn answered(&mut self, key: TemplateKey, answer: Answer) {
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
                    self.templates.supply(&origin).1.succeeded();
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

    /// A new template serves from now on.
    fn takes_over(&mut self, key: TemplateKey) {
        let Some(origin) = self.origin_of(key) else {
            return;
        };
        let (_, supply) = self.templates.supply(&origin);
        if supply.next != Some(key) {
            return;
        }
        supply.next = None;
        if let Some(before) = supply.current.replace(key) {
            self.retire_if_replaced(before);
        }
    }

    /// Ends a template that no supply knows any more, unless it is busy.
    fn retire_if_replaced(&mut self, key: TemplateKey) {
        let Some(origin) = self.origin_of(key) else {
            return;
        };
        let (_, supply) = self.templates.supply(&origin);
        let known = supply.current == Some(key) || supply.next == Some(key);
        let held = self.templates.all.get(&key);
        let idle = held.is_some_and(|held| matches!(held.state, State::Waits));
        if !known && idle {
            self.age_out_copies_of(key);
            self.end_template(key);
        }
    }

    fn origin_of(&self, key: TemplateKey) -> Option<Rc<Origin>> {
        let held = self.templates.all.get(&key)?;
        Some(Rc::clone(&held.origin))
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

    /// A template has ended by itself, or has to be ended because it does not do what it is for.
    fn template_failed(&mut self, key: TemplateKey, reason: String) {
        let Some(held) = self.templates.all.get_mut(&key) else {
            return;
        };
        let origin = Rc::clone(&held.origin);
        let copying = held.end_copying();
        let now = Instant::now();
        if let Some(Copying { for_box, .. }) = copying
            && let Some(running) = self.boxes.running(for_box)
        {
            if running.attempts < ATTEMPTS {
                running.wish = Wish::Waits(now);
                self.templates.supply(&origin).1.queue.push_front(for_box);
            } else {
                self.refuse_kernel(for_box, reason.clone());
            }
        }
        self.take_down_failure(&origin, now, reason);
        self.age_out_copies_of(key);
        self.end_template(key);
    }

    /// Kills a template. Whoever waits for a kernel of it waits for the next.
    pub(super) fn end_template(&mut self, key: TemplateKey) {
        let Some(held) = self.templates.all.get_mut(&key) else {
            return;
        };
        // If it cannot be killed it does not end in time either, and that is told.
        let _ = held.template.kill();
        held.state = State::Ends {
            deadline: Instant::now() + END_PATIENCE,
        };
        let origin = Rc::clone(&held.origin);
        let (_, supply) = self.templates.supply(&origin);
        for place in [&mut supply.current, &mut supply.next] {
            if *place == Some(key) {
                *place = None;
            }
        }
        self.take_away_template(key);
    }

    pub(super) fn take_away_template(&mut self, key: TemplateKey) {
        let Some(held) = self.templates.all.get_mut(&key) else {
            return;
        };
        let State::Ends { deadline } = held.state else {
            return;
        };
        let now = Instant::now();
        match held.template.take_away() {
            Ok(()) => {
                self.templates.all.remove(&key);
                self.timers.at(now, Due::Kernels);
            }
            Err(Stays::ForNow(_)) if now < deadline => {
                self.timers.at(now + PAUSE, Due::Template(key));
            }
            Err(Stays::ForNow(fault) | Stays::ForGood(fault)) => {
                held.state = State::Stays;
                say(format_args!("not all of a template is gone: {fault}"));
                self.left.get_or_insert(fault);
            }
        }
    }

    /// Looks whether a template takes too long.
    pub(super) fn look_at_templates(&mut self) {
        let now = Instant::now();
        for key in self.templates.keys() {
            let Some(held) = self.templates.all.get_mut(&key) else {
                continue;
            };
            match &mut held.state {
                State::Starts if now >= held.started + START_PATIENCE => {
                    let limit = START_PATIENCE.as_secs();
                    self.template_failed(key, format!("it has not started after {limit} s"));
                }
                State::Copies(copying) if now >= copying.since + 2 * COPY_PATIENCE => {
                    let limit = 2 * COPY_PATIENCE.as_secs();
                    self.template_failed(key, format!("it has made no copy after {limit} s"));
                }
                State::Copies(copying)
                    if now >= copying.since + COPY_PATIENCE && !copying.given_up =>
                {
                    copying.given_up = true;
                    let (for_box, again) = (copying.for_box, copying.since + 2 * COPY_PATIENCE);
                    self.timers.at(again, Due::Kernels);
                    self.kill_box(for_box);
                }
                _ => {}
            }
        }
        self.see_to_kernels();
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
    fn end_copying(&mut self) -> Option<Copying> {
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
