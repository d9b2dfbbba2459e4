//! Everything that lives in the pod, and what is done when something happens to it.
//!
//! Nothing here waits. What takes time is begun, and gone on with when its descriptor or its
//! moment comes: see `making` and `removing`.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::boxes::{BoxKey, Boxes, Stage};
use super::events::{Events, Source};
use super::pools::Pools;
use super::spare::SpareGroups;
use super::templates::Templates;
use super::timers::{Due, Timers};
use crate::control::{BoxEnd, Fault, FromLauncher, Renewal};
use crate::create::parent::Surroundings;
use crate::ids::pod::PodIds;
use crate::ids::slots::Slots;

/// The longest wait. Hard deadlines are times of day, and the clock may be set meanwhile.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The pod.
pub(super) struct Pod {
    pub(super) surroundings: Surroundings,
    pub(super) slots: Slots,
    pub(super) ids: PodIds,
    pub(super) events: Events,
    pub(super) timers: Timers,
    pub(super) boxes: Boxes,
    pub(super) templates: Templates,
    pub(super) pools: Pools,
    pub(super) spare_groups: Option<SpareGroups>,
    pub(super) renewal: Renewal,
    /// What the runtime is to be told.
    pub(super) answers: Vec<FromLauncher>,
    /// Whether the runtime wants everything to end.
    pub(super) is_to_end: bool,
    /// Why not all of a box could be taken away, while everything ends.
    pub(super) left: Option<Fault>,
}

impl Pod {
    /// An empty one.
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub(super) fn new(
        surroundings: Surroundings,
        slots: Slots,
        ids: PodIds,
        renewal: Renewal,
    ) -> Result<Self, Fault> {
        Ok(Self {
            surroundings,
            slots,
            ids,
            events: Events::new()
                .map_err(|error| Fault::exhausted("settling in the pod", error))?,
            timers: Timers::default(),
            boxes: Boxes::default(),
            templates: Templates::default(),
            pools: Pools::default(),
            spare_groups: None,
            renewal,
            answers: Vec::new(),
            is_to_end: false,
            left: None,
        })
    }

    /// When something has to be looked at, whatever happens before.
    pub(super) fn next_moment(&self) -> Instant {
        let now = Instant::now();
        let mut next = now + LONGEST_WAIT;
        if let Some(timer) = self.timers.next() {
            next = next.min(timer);
        }
        if let Some((at_ms, _)) = self.boxes.next_hard_deadline() {
            let left = at_ms.saturating_sub(now_ms()).max(0).unsigned_abs();
            next = next.min(now + Duration::from_millis(left.min(1_000_000)));
        }
        next
    }

    /// Goes on with whatever a descriptor belongs to.
    pub(super) fn happened(&mut self, source: Source) {
        match source {
            // These are the loop's own.
            Source::Runtime | Source::Door | Source::Outer => {}
            Source::Process(key) => self.process_ended(key),
            Source::Report(key) => self.reported(key),
            Source::Words(key) => self.pass_on_words(key),
            Source::AgentLine(key) => self.agent_spoke(key),
            Source::TemplateLine(key) => self.template_spoke(key, false),
            Source::TemplateProcess(key) => self.template_spoke(key, true),
        }
    }

    /// Goes on with whatever has its moment now.
    pub(super) fn look_at_what_is_due(&mut self) {
        let now = Instant::now();
        while let Some(due) = self.timers.due(now) {
            match due {
                Due::Box(key) => self.go_on_with(key),
                Due::Kernels => self.look_at_templates(),
                Due::Pools => self.look_at_pools(),
                Due::Template(key) => self.take_away_template(key),
            }
        }
        while let Some((at_ms, key)) = self.boxes.next_hard_deadline() {
            if at_ms > now_ms() {
                break;
            }
            self.boxes.set_hard_deadline(key, None);
            self.end_by_itself(key, BoxEnd::DeadlineReached);
        }
    }

    /// Whether something is just being taken away.
    pub(super) fn something_ends(&self) -> bool {
        self.boxes.some_end() || self.templates.some_end()
    }

    fn go_on_with(&mut self, key: BoxKey) {
        match self.boxes.get_mut(key).map(|entry| &entry.stage) {
            Some(Stage::Runs(_)) => {
                self.look_at_set_up(key);
                self.look_at_wish(key);
            }
            Some(Stage::Ends(_)) => self.take_away(key),
            Some(Stage::Stays(_)) | None => {}
        }
    }

    pub(super) fn pass_on_words(&mut self, key: BoxKey) {
        if let Some(entry) = self.boxes.get_mut(key)
            && let Stage::Runs(running) = &mut entry.stage
        {
            running.words.pass_on(entry.sandbox.unwrap_or(entry.name));
        }
    }
}

/// The time of day, in milliseconds since 1970.
fn now_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| i64::try_from(since.as_millis()).ok())
        .unwrap_or(i64::MAX)
}
