//! How long each step of making a box took.

use std::time::{Duration, Instant};

/// Measures steps.
#[derive(Debug)]
pub(crate) struct Stages {
    last: Instant,
    stages: Vec<(String, u64)>,
}

impl Stages {
    pub(crate) fn start() -> Self {
        Self {
            last: Instant::now(),
            stages: Vec::new(),
        }
    }

    /// Notes how long the step took that has just come to its end.
    pub(crate) fn mark(&mut self, stage: &str) {
        let now = Instant::now();
        self.stages.push((stage.into(), micros(now - self.last)));
        self.last = now;
    }

    /// Adds steps that somebody else has measured.
    pub(crate) fn add(&mut self, stages: impl IntoIterator<Item = (String, u64)>) {
        self.stages.extend(stages);
    }

    /// All of them, in order.
    pub(crate) fn into_list(self) -> Vec<(String, u64)> {
        self.stages
    }
}

/// Whole microseconds.
pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
