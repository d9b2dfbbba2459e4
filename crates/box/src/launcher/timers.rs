//! Moments at which something has to be looked at again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use super::boxes::BoxKey;
use super::templates::TemplateKey;

/// What is to be looked at. Looking too early or once too often does no harm: whoever is looked
/// at knows by itself whether its time has come, so nothing is ever taken off the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// A box that is being made or taken away.
    Box(BoxKey),
    /// Templates, and those who wait for them.
    Kernels,
    /// Boxes that are kept ready.
    Pools,
    /// A template that is being taken away.
    Template(TemplateKey),
}

/// All moments to come.
#[derive(Debug, Default)]
pub(super) struct Timers(BinaryHeap<Reverse<(Instant, Due)>>);

impl Timers {
    /// Sees to it that something is looked at then.
    pub(super) fn at(&mut self, when: Instant, what: Due) {
        self.0.push(Reverse((when, what)));
    }

    /// The next moment.
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.peek().map(|Reverse((when, _))| *when)
    }

    /// Takes something off whose moment has come.
    pub(super) fn due(&mut self, now: Instant) -> Option<Due> {
        if self.next()? > now {
            return None;
        }
        self.0.pop().map(|Reverse((_, what))| what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn moments_come_in_their_order() {
        let mut timers = Timers::default();
        let start = Instant::now();
        let boxes = [1, 2, 3].map(|number| Due::Box(BoxKey::of_number(number)));
        timers.at(start + Duration::from_secs(2), boxes[1]);
        timers.at(start + Duration::from_secs(3), boxes[2]);
        timers.at(start + Duration::from_secs(1), boxes[0]);
        assert_eq!(timers.due(start), None);
        let later = start + Duration::from_secs(2);
        assert_eq!(timers.due(later), Some(boxes[0]));
        assert_eq!(timers.due(later), Some(boxes[1]));
        assert_eq!(timers.due(later), None);
        assert_eq!(timers.next(), Some(start + Duration::from_secs(3)));
    }
}
