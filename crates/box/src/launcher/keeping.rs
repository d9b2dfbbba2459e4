//! Keeping boxes ready: making them in advance, giving them away, and ending those that have
//! become too old.

use std::rc::Rc;
use std::time::{Duration, Instant};

use glovebox_protocol::agent_config::Start;
use glovebox_protocol::ids::SandboxId;
use glovebox_protocol::launcher_line::ToAgent;

use super::boxes::BoxKey;
use super::making::Wanted;
use super::outer::say;
use super::pod::Pod;
use super::templates::TemplateKey;
use super::timers::Due;
use crate::control::{BoxKind, BoxSpec, Fault, FromLauncher};
use crate::create::parent::Design;
use crate::create::preparation::check_layers;

/// How long a box is given to have a kernel that takes code, from its first step on.
const READY_PATIENCE: Duration = Duration::from_secs(180);

impl Pod {
    /// Keeps boxes of one kind ready from now on.
    pub(super) fn keep_ready(&mut self, id: u64, kind: BoxKind, count: u32) {
        let doing = "keeping boxes ready";
        let checked = if kind.trust_domain.is_empty() {
            Err(Fault::invalid(doing, "their trust domain has no name"))
        } else {
            check_layers(&kind.layers).map(drop)
        };
        if let Err(fault) = checked {
            self.answers.push(FromLauncher::Failed { id, fault });
            return;
        }
        for key in self.pools.keep(kind, count) {
            self.end(key, Vec::new());
        }
        self.answers.push(FromLauncher::Kept { id });
        self.refill();
    }

    /// Gives a box away that is ready, if there is one of that kind. It is in no pool any more
    /// before anybody is told of it; one that cannot be told itself is ended, and the next taken.
    pub(super) fn give_away(&mut self, id: u64, spec: &BoxSpec) -> bool {
        let now = Instant::now();
        let claim = self.claim(spec);
        while let Some(key) = self.pools.take(&spec.kind) {
            let Some(running) = self.boxes.running(key) else {
                continue;
            };
            let claim = claim.clone();
            if let Err(error) = running.line.tell(&ToAgent::Claim { claim }, None) {
                say(format_args!("a box in advance takes no claim: {error}"));
                self.end(key, Vec::new());
                continue;
            }
            running.facts.sandbox = spec.sandbox;
            running.facts.hard_deadline_ms = spec.hard_deadline_ms;
            running.facts.was_ready = true;
            let facts = running.facts.clone();
            self.boxes.becomes(key, facts.clone());
            self.boxes.set_hard_deadline(key, spec.hard_deadline_ms);
            self.answers.push(FromLauncher::Created { id, facts });
            self.pools.count(&spec.kind, true, now);
            self.timers.at(now, Due::Pools);
            return true;
        }
        self.pools.count(&spec.kind, false, now);
        false
    }

    /// Makes a box in advance, if one is lacking and it is time.
    pub(super) fn refill(&mut self) {
        let now = Instant::now();
        let kind = match self.pools.lacks(now) {
            Ok(kind) => kind,
            Err(None) => return,
            Err(Some(until)) => return self.timers.at(until, Due::Pools),
        };
        let design = Design {
            // Nobody's: whoever gets it, it is known to nobody by this name.
            name: SandboxId::new(),
            kind: Rc::clone(&kind),
            claim: None,
            omissions: self.surroundings.omissions.clone(),
        };
        let key = self.begin(design, Wanted::in_advance());
        self.pools.begin(kind, key, now);
        self.timers.at(now + READY_PATIENCE, Due::Pools);
        if self.boxes.running(key).is_none() {
            self.pools.failed(now);
            self.timers.at(now, Due::Pools);
        }
    }

    /// A box in advance has become the agent's. One whose kernel does not come from a template
    /// has to be told to start it.
    pub(super) fn prepare_in_advance(&mut self, key: BoxKey) {
        if self.pools.refill().is_none_or(|refill| refill.key != key) {
            return;
        }
        if let Some(running) = self.boxes.running(key)
            && running.kind.start == Start::Fresh
        {
            // An agent that is gone is noticed by its end.
            let _ = running.line.tell(&ToAgent::PrepareKernel, None);
        }
    }

    /// The first kernel of a box takes code.
    pub(super) fn kernel_is_ready(&mut self, key: BoxKey) {
        let waited = self.boxes.running(key).map(|running| running.waited);
        if self.pools.refill().is_none_or(|refill| refill.key != key) {
            return;
        }
        let now = Instant::now();
        if let Some(unwanted) = self.pools.became_ready(now, waited.unwrap_or_default()) {
            self.end(unwanted, Vec::new());
        }
        self.timers.at(now + self.renewal.ready(), Due::Pools);
        self.refill();
    }

    /// Ends the boxes in advance that have become too old, or take too long, and makes new ones.
    pub(super) fn look_at_pools(&mut self) {
        let now = Instant::now();
        let late = self.pools.refill();
        let late = late.filter(|refill| now >= refill.began + READY_PATIENCE);
        let mut ended: Vec<_> = late.map(|refill| refill.key).into_iter().collect();
        if let Some(moment) = now.checked_sub(self.renewal.ready()) {
            ended.extend(self.pools.take_older_than(moment));
        }
        for key in ended {
            self.end(key, Vec::new());
        }
        self.refill();
    }

    /// A box is about to be taken away. If it was one in advance, another one is to be made.
    pub(super) fn forget_in_advance(&mut self, key: BoxKey) {
        let now = Instant::now();
        if self.pools.forget(key, now) {
            self.timers.at(now, Due::Pools);
        }
    }

    /// Ends the boxes in advance whose kernels were copied from a template that is renewed, also
    /// one that is not ready yet.
    pub(super) fn age_out_copies_of(&mut self, template: TemplateKey) {
        let copies: Vec<_> = self.pools.boxes().collect();
        let boxes = &mut self.boxes;
        let copies: Vec<_> = copies
            .into_iter()
            .filter(|key| {
                let running = boxes.running(*key);
                running.is_some_and(|running| running.template == Some(template))
            })
            .collect();
        for key in self.pools.age_out_these(&copies) {
            self.end(key, Vec::new());
        }
        self.timers.at(Instant::now(), Due::Pools);
    }
}
