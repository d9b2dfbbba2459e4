//! A mutex that is held for one closure, so that it can neither be held across a wait nor
//! poisoned into a panic elsewhere.

use std::sync::{Mutex, PoisonError};

#[derive(Debug, Default)]
pub(crate) struct Locked<T>(Mutex<T>);

impl<T> Locked<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Runs `work` on the value. A panic in an earlier closure does not spread: every closure in
    /// this crate leaves the value whole.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
