//! The lives of templates: taking over, failing, ending, and being taken away.

use std::rc::Rc;
use std::time::{Duration, Instant};

use super::boxes::Wish;
use super::outer::say;
use super::pod::Pod;
use super::templates::{Copying, Origin, State, TemplateKey};
use super::timers::Due;
use crate::create::remains::Stays;

/// How long a template is given to load everything.
pub(super) const START_PATIENCE: Duration = Duration::from_secs(60);

/// How long it is given to copy itself into a box. Then the box is ended, because code of the box
/// may be what keeps it; and a while later the template, because it is not.
pub(super) const COPY_PATIENCE: Duration = Duration::from_secs(10);

/// How long a killed one is given to go away.
const END_PATIENCE: Duration = Duration::from_secs(10);

/// How soon it is tried again to take away what has stayed.
const PAUSE: Duration = Duration::from_millis(2);

/// The same for what has stayed for longer than it is given.
const STAYS_PAUSE: Duration = Duration::from_secs(30);

/// How often one box may be what a template is busy with when it ends.
const ATTEMPTS: u32 = 2;

impl Pod {
    /// A template has said something, or has ended.
    pub(super) fn template_spoke(&mut self, key: TemplateKey, has_ended: bool) {
        loop {
            let Some(held) = self.templates.all.get_mut(&key) else {
                return;
            };
            match held.state {
                State::Ends { .. } => return self.take_away_template(key),
                State::Stays => {
                    // It ends after all, and what is left of it goes away in its time.
                    held.state = ends(Instant::now());
                    return self.take_away_template(key);
                }
                State::Starts | State::Waits | State::Copies(_) => {}
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

    /// A template that was started to take over serves from now on. One that another has replaced
    /// while it was still starting is of no use any more.
    pub(super) fn takes_over(&mut self, key: TemplateKey) {
        let Some(origin) = self.origin_of(key) else {
            return;
        };
        let (_, supply) = self.templates.supply(&origin);
        if supply.next != Some(key) {
            return self.retire_if_replaced(key);
        }
        supply.next = None;
        if let Some(before) = supply.current.replace(key) {
            self.retire_if_replaced(before);
        }
    }

    /// Ends a template that no supply knows any more, unless it is busy.
    pub(super) fn retire_if_replaced(&mut self, key: TemplateKey) {
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

    pub(super) fn take_down_failure(&mut self, origin: &Rc<Origin>, now: Instant, reason: String) {
        say(format_args!("a template has failed: {reason}"));
        let (_, supply) = self.templates.supply(origin);
        supply.failed(now, reason);
        self.timers.at(now, Due::Kernels);
    }

    /// A template has ended by itself, or has to be ended because it does not do what it is for.
    pub(super) fn template_failed(&mut self, key: TemplateKey, reason: String) {
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
        held.watched.line = None;
        held.state = ends(Instant::now());
        let origin = Rc::clone(&held.origin);
        let (_, supply) = self.templates.supply(&origin);
        for place in [&mut supply.current, &mut supply.next] {
            if *place == Some(key) {
                *place = None;
            }
        }
        self.take_away_template(key);
    }

    /// Takes away what is left of a template that was killed, as far as that can be done now.
    pub(super) fn take_away_template(&mut self, key: TemplateKey) {
        let Some(held) = self.templates.all.get_mut(&key) else {
            return;
        };
        if !matches!(held.state, State::Ends { .. } | State::Stays) {
            return;
        }
        let now = Instant::now();
        let taken = held.template.take_away();
        if held.template.has_ended() {
            held.watched.process = None;
        }
        match (taken, &mut held.state) {
            (Ok(()), _) => {
                self.templates.all.remove(&key);
                self.timers.at(now, Due::Kernels);
            }
            (Err(Stays::ForNow(_)), State::Ends { deadline, again }) if now < *deadline => {
                if again.is_none_or(|again| again <= now) {
                    *again = Some(now + PAUSE);
                    self.timers.at(now + PAUSE, Due::Template(key));
                }
            }
            (Err(Stays::ForNow(fault) | Stays::ForGood(fault)), State::Ends { .. }) => {
                held.state = State::Stays;
                self.timers.at(now + STAYS_PAUSE, Due::Template(key));
                say(format_args!("not all of a template is gone: {fault}"));
                self.left.get_or_insert(fault);
            }
            (Err(_), _) => self.timers.at(now + STAYS_PAUSE, Due::Template(key)),
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

fn ends(now: Instant) -> State {
    State::Ends {
        deadline: now + END_PATIENCE,
        again: None,
    }
}
