//! The templates of one launcher, and which of them serves whom.
//!
//! A template serves one trust domain and one set of layers, never two. At most so many are alive;
//! the one that was idle for longest makes room. Each is renewed after a number of kernels or a
//! time, and when it has ended by itself. What is done about all that is in `kernels`,
//! `copying` and `renewing`.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::boxes::BoxKey;
use super::events::Watched;
use crate::control::{BoxKind, Renewal, TemplateFacts};
use crate::template::process::Template;

/// Templates that may be alive at a time.
pub(super) const MOST: usize = 8;

/// How long after a failure the next one is started: after the first, the second, and all
/// further failures in a row. Meanwhile, and only after the last of these, whoever wants a kernel
/// is told that there is none.
const PAUSES: [Duration; 3] = [
    Duration::from_millis(100),
    Duration::from_millis(500),
    Duration::from_secs(30),
];

/// Names a template for as long as the launcher lives. Never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TemplateKey(u64);

impl TemplateKey {
    pub(super) const fn number(self) -> u64 {
        self.0
    }

    pub(super) const fn of_number(number: u64) -> Self {
        Self(number)
    }
}

/// Who may share a template.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Origin {
    trust_domain: String,
    pub(super) layers: Vec<String>,
}

impl Origin {
    /// Where the kernels of a kind of boxes come from.
    pub(super) fn of(kind: &BoxKind) -> Self {
        Self {
            trust_domain: kind.trust_domain.clone(),
            layers: kind.layers.clone(),
        }
    }

    /// The same for everybody, which a test build does to see that a check notices.
    pub(super) fn of_everybody(kind: &BoxKind) -> Self {
        Self {
            trust_domain: "everybody".into(),
            layers: kind.layers.clone(),
        }
    }
}

/// A template.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) origin: Rc<Origin>,
    pub(super) template: Template,
    pub(super) state: State,
    pub(super) started: Instant,
    /// When it copied itself last.
    pub(super) used: Instant,
    /// How often it has.
    pub(super) kernels: u64,
    /// Copies of its descriptors, as long as they are waited for. What has been heard would be
    /// heard again and again.
    pub(super) watched: WatchedTemplate,
}

/// What is waited for of a template.
#[derive(Debug, Default)]
pub(super) struct WatchedTemplate {
    /// What it says, until it is to end.
    pub(super) line: Option<Watched<OwnedFd>>,
    /// Its end, until that has come.
    pub(super) process: Option<Watched<OwnedFd>>,
}

/// What a template does.
#[derive(Debug)]
pub(super) enum State {
    /// It loads what kernels need.
    Starts,
    /// It waits for orders.
    Waits,
    /// It copies itself.
    Copies(Copying),
    /// It was killed, and is being taken away.
    Ends {
        deadline: Instant,
        /// When it is looked at again, so that there is one such moment at a time.
        again: Option<Instant>,
    },
    /// Not all of it could be taken away in time. It is tried again now and then.
    Stays,
}

/// An order that a template was given.
#[derive(Debug)]
pub(super) struct Copying {
    pub(super) for_box: BoxKey,
    /// The agent's end of the wire.
    pub(super) wire: OwnedFd,
    pub(super) since: Instant,
    /// Whether the box was ended because the copy does not come.
    pub(super) given_up: bool,
}

/// Where the kernels of one origin come from.
#[derive(Debug, Default)]
pub(super) struct Supply {
    /// The one that serves, or will as soon as it has started.
    pub(super) current: Option<TemplateKey>,
    /// The one that is started to take its place.
    pub(super) next: Option<TemplateKey>,
    /// Boxes that wait for a kernel.
    pub(super) queue: VecDeque<BoxKey>,
    /// Failures in a row.
    failures: usize,
    /// When the next one may be started.
    not_before: Option<Instant>,
    /// When the last failure was, and what.
    failed: Option<Instant>,
    reason: String,
}

impl Supply {
    /// Takes down a failure.
    pub(super) fn failed(&mut self, now: Instant, reason: String) {
        let pause = PAUSES[self.failures.min(PAUSES.len() - 1)];
        self.failures += 1;
        self.failed = Some(now);
        self.not_before = Some(now + pause);
        self.reason = reason;
    }

    /// Takes down a success of a template that was started then. What an older one can do says
    /// nothing of those that failed to take its place.
    pub(super) fn succeeded(&mut self, started: Instant) {
        if self.failed.is_none_or(|failed| started > failed) {
            self.failures = 0;
            self.not_before = None;
        }
    }

    /// When a template may be started; `None` for now.
    pub(super) fn pause(&self, now: Instant) -> Option<Instant> {
        self.not_before.filter(|moment| *moment > now)
    }

    /// Why there will be no kernel for a while.
    pub(super) fn refusal(&self, now: Instant) -> Option<&str> {
        let refuses = self.failures >= PAUSES.len() && self.pause(now).is_some();
        refuses.then_some(self.reason.as_str())
    }

    fn is_forgettable(&self, now: Instant) -> bool {
        let nothing = self.current.is_none() && self.next.is_none() && self.queue.is_empty();
        nothing && self.pause(now).is_none()
    }
}

/// All templates.
#[derive(Debug, Default)]
pub(super) struct Templates {
    last: u64,
    pub(super) all: BTreeMap<TemplateKey, Held>,
    pub(super) supplies: BTreeMap<Rc<Origin>, Supply>,
}

impl Templates {
    /// A name for the next template.
    pub(super) const fn next_key(&mut self) -> TemplateKey {
        self.last += 1;
        TemplateKey(self.last)
    }

    /// Where the kernels of an origin come from.
    pub(super) fn supply(&mut self, origin: &Origin) -> (Rc<Origin>, &mut Supply) {
        let known = self.supplies.get_key_value(origin).map(|(key, _)| key);
        let origin = known.map_or_else(|| Rc::new(origin.clone()), Rc::clone);
        let supply = self.supplies.entry(Rc::clone(&origin)).or_default();
        (origin, supply)
    }

    /// Whether another one may be started now.
    pub(super) fn have_room(&self) -> bool {
        self.all.len() < MOST
    }

    pub(super) fn keys(&self) -> Vec<TemplateKey> {
        self.all.keys().copied().collect()
    }

    /// The one that has been idle for longest and that nobody waits for.
    pub(super) fn idlest(&self) -> Option<TemplateKey> {
        let idle = self.all.iter().filter(|(_, held)| {
            let supply = self.supplies.get(&held.origin);
            matches!(held.state, State::Waits)
                && supply.is_none_or(|supply| supply.queue.is_empty() && supply.next.is_none())
        });
        idle.min_by_key(|(_, held)| held.used).map(|(key, _)| *key)
    }

    /// Whether one of them makes room already.
    pub(super) fn some_end(&self) -> bool {
        let mut all = self.all.values();
        all.any(|held| matches!(held.state, State::Ends { .. }))
    }

    /// Forgets supplies that nobody wants anything of.
    pub(super) fn tidy(&mut self, now: Instant) {
        self.supplies
            .retain(|_, supply| !supply.is_forgettable(now));
    }

    /// What is told of them.
    pub(super) fn facts(&self) -> Vec<TemplateFacts> {
        let alive = self
            .all
            .values()
            .filter(|held| !matches!(held.state, State::Ends { .. } | State::Stays));
        alive
            .map(|held| TemplateFacts {
                trust_domain: held.origin.trust_domain.clone(),
                ready: !matches!(held.state, State::Starts),
                kernels: held.kernels,
                age_ms: u64::try_from(held.started.elapsed().as_millis()).unwrap_or(u64::MAX),
                pid: held.template.host_pid(),
            })
            .collect()
    }
}

impl Held {
    /// Whether it has to be renewed.
    pub(super) fn is_worn(&self, now: Instant, renewal: &Renewal) -> bool {
        self.kernels >= renewal.template_kernels || now >= self.started + renewal.template()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_three_failures_in_a_row_there_is_none_for_a_while() {
        let mut supply = Supply::default();
        let mut now = Instant::now();
        for _ in 0..2 {
            supply.failed(now, "it broke".into());
            assert!(supply.pause(now).is_some());
            assert_eq!(supply.refusal(now), None);
            now = supply.pause(now).unwrap();
            assert_eq!(supply.pause(now), None);
        }
        supply.failed(now, "it broke again".into());
        assert_eq!(supply.refusal(now), Some("it broke again"));
        now = supply.pause(now).unwrap();
        // One more is tried, and if that fails too, it is as before.
        assert_eq!(supply.refusal(now), None);
        supply.failed(now, "and again".into());
        assert_eq!(supply.refusal(now), Some("and again"));
        supply.succeeded(now);
        assert!(supply.refusal(now).is_some(), "an older one has succeeded");
        let later = now + Duration::from_millis(1);
        supply.succeeded(later);
        assert_eq!(supply.refusal(later), None);
        assert!(supply.is_forgettable(later));
    }

    #[test]
    fn two_trust_domains_or_two_sets_of_layers_have_two_supplies() {
        let mut templates = Templates::default();
        let origin = |domain: &str, layer: &str| Origin {
            trust_domain: domain.into(),
            layers: vec![layer.into()],
        };
        let key = BoxKey::of_number(1);
        templates.supply(&origin("a", "x")).1.queue.push_back(key);
        assert_eq!(templates.supply(&origin("a", "x")).1.queue.len(), 1);
        assert!(templates.supply(&origin("b", "x")).1.queue.is_empty());
        assert!(templates.supply(&origin("a", "y")).1.queue.is_empty());
        templates.tidy(Instant::now());
        assert_eq!(templates.supplies.len(), 1);
    }
}
