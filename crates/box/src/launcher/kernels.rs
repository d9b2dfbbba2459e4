//! Kernels from templates: who waits for one, and which template is started for whom.
//!
//! Every change (a box that wants a kernel, a template that has something to say or has ended, a
//! moment that has come) leads to [`Pod::see_to_kernels`], which does whatever can be done now.
//! How a template copies itself is in `copying`, how one comes to its end in `renewing`.

use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Instant;

use glovebox_protocol::launcher_line::ToAgent;

use super::boxes::{BoxKey, Wish};
use super::events::Source;
use super::pod::Pod;
use super::renewing::START_PATIENCE;
use super::templates::{Held, Origin, State, TemplateKey, WatchedTemplate};
use super::timers::Due;
use crate::control::Fault;
use crate::mutation::Mutation;
use crate::template::process::Template;

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
        let template = match Template::start(&self.surroundings, &name, &origin.layers) {
            Ok(template) => template,
            Err(fault) => {
                self.take_down_failure(origin, now, fault.to_string());
                return None;
            }
        };
        let (watched, fault) = match self.watch(key, &template) {
            Ok(watched) => (watched, None),
            Err(fault) => (WatchedTemplate::default(), Some(fault)),
        };
        let held = Held {
            origin: Rc::clone(origin),
            template,
            state: State::Starts,
            started: now,
            used: now,
            kernels: 0,
            watched,
        };
        self.templates.all.insert(key, held);
        if let Some(fault) = fault {
            // It is taken away like any other.
            self.take_down_failure(origin, now, fault.to_string());
            self.end_template(key);
            return None;
        }
        self.timers.at(now + self.renewal.template(), Due::Kernels);
        self.timers.at(now + START_PATIENCE, Due::Kernels);
        Some(key)
    }

    /// Copies of its descriptors are what is waited for: they belong to the list alone.
    fn watch(&self, key: TemplateKey, template: &Template) -> Result<WatchedTemplate, Fault> {
        let copy = |fd: &OwnedFd, source| {
            let copied = fd
                .try_clone()
                .map_err(|error| Fault::exhausted("watching a template", error))?;
            let watched = self.events.watch(copied, source);
            watched.map(Some).map_err(|(_, fault)| fault)
        };
        Ok(WatchedTemplate {
            line: copy(template.line(), Source::TemplateLine(key))?,
            process: copy(template.process(), Source::TemplateProcess(key))?,
        })
    }
}
