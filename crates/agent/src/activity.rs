//! Whether the sandbox is in use, and since when it is not.
//!
//! It is in use while a request is being answered, while a program or a kernel's call runs, and
//! while a kernel is being made. What is done about it is decided elsewhere.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::lock::Locked;

/// Counts what uses the sandbox. To begin and end a use costs no system call.
pub(crate) struct Activity {
    state: Locked<State>,
    changed: Notify,
}

struct State {
    uses: u32,
    /// When the last use ended.
    since: Instant,
    /// Whether somebody wants to be told when the last use ends, or the first begins.
    watched: bool,
}

/// One use, as long as this lives.
pub(crate) struct Use(Arc<Activity>);

impl Activity {
    pub(crate) fn new() -> Self {
        Self {
            state: Locked::new(State {
                uses: 0,
                since: Instant::now(),
                watched: false,
            }),
            changed: Notify::new(),
        }
    }

    /// Begins a use.
    pub(crate) fn begin(self: &Arc<Self>) -> Use {
        self.change(|state| {
            state.uses += 1;
            state.uses == 1
        });
        Use(Arc::clone(self))
    }

    /// Whether it is in use at this moment.
    pub(crate) fn is_in_use(&self) -> bool {
        self.unused_since().is_none()
    }

    /// Since when it has not been in use; now, while it is.
    pub(crate) fn last_use(&self) -> Instant {
        self.unused_since().unwrap_or_else(Instant::now)
    }

    /// Returns when it has not been in use for so long, with the moment since when.
    pub(crate) async fn unused_for(&self, limit: Duration) -> Instant {
        loop {
            match self.unused_since() {
                Some(since) if since.elapsed() >= limit => return since,
                // Uses in between do not touch the timer: it is looked at when it has run out.
                Some(since) => sleep_until(since + limit).await,
                None => self.wait_while(|state| state.uses > 0).await,
            }
        }
    }

    /// Returns when it has been used after `since`, or is in use.
    pub(crate) async fn used_after(&self, since: Instant) {
        self.wait_while(|state| state.uses == 0 && state.since == since)
            .await;
    }

    fn unused_since(&self) -> Option<Instant> {
        self.state
            .with(|state| (state.uses == 0).then_some(state.since))
    }

    async fn wait_while(&self, still: impl Fn(&State) -> bool) {
        loop {
            let changed = self.changed.notified();
            let waits = self.state.with(|state| {
                state.watched = still(state);
                state.watched
            });
            if !waits {
                return;
            }
            changed.await;
        }
    }

    /// Makes a change. Says so to whoever waits for it, if it is the first or the last use.
    fn change(&self, make: impl FnOnce(&mut State) -> bool) {
        let tell = self
            .state
            .with(|state| make(state) && std::mem::take(&mut state.watched));
        if tell {
            self.changed.notify_one();
        }
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        self.0.change(|state| {
            state.uses -= 1;
            state.since = Instant::now();
            state.uses == 0
        });
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::{Context, Poll, Wake, Waker};

    use super::*;

    /// Somebody who waits, and how often they were woken.
    struct Waiting<F> {
        future: Pin<Box<F>>,
        wakes: Arc<Wakes>,
    }

    #[derive(Default)]
    struct Wakes(AtomicU32);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl<F: Future> Waiting<F> {
        fn new(future: F) -> Self {
            let mut waiting = Self {
                future: Box::pin(future),
                wakes: Arc::default(),
            };
            assert!(waiting.poll().is_pending());
            waiting
        }

        fn poll(&mut self) -> Poll<F::Output> {
            let waker = Waker::from(Arc::clone(&self.wakes));
            self.future.as_mut().poll(&mut Context::from_waker(&waker))
        }

        fn wakes(&self) -> u32 {
            self.wakes.0.load(Ordering::Relaxed)
        }
    }

    const LIMIT: Duration = Duration::from_secs(900);

    #[tokio::test(start_paused = true)]
    async fn a_use_that_goes_on_holds_the_end_off_and_the_count_begins_at_its_end() {
        let activity = Arc::new(Activity::new());
        let began = Instant::now();
        let one = activity.begin();
        let other = activity.begin();
        let uses = async {
            sleep_until(began + LIMIT * 3).await;
            drop(one);
            sleep_until(began + LIMIT * 5).await;
            drop(other);
        };
        let (since, ()) = tokio::join!(activity.unused_for(LIMIT), uses);
        assert_eq!(since, began + LIMIT * 5);
        assert_eq!(Instant::now(), began + LIMIT * 6);
    }

    #[tokio::test(start_paused = true)]
    async fn short_uses_put_the_end_off_and_wake_nobody() {
        let activity = Arc::new(Activity::new());
        let mut waiting = Waiting::new(activity.unused_for(LIMIT));
        for _ in 0..800 {
            tokio::time::advance(Duration::from_secs(1)).await;
            drop(activity.begin());
        }
        let last = Instant::now();
        assert_eq!(waiting.wakes(), 0);
        tokio::time::advance(Duration::from_secs(200)).await;
        assert_eq!(waiting.wakes(), 1);
        assert!(waiting.poll().is_pending());
        tokio::time::advance(LIMIT).await;
        assert_eq!(waiting.wakes(), 2);
        assert_eq!(waiting.poll(), Poll::Ready(last));
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_use_is_told_of_even_when_it_was_short() {
        let activity = Arc::new(Activity::new());
        let since = activity.unused_for(LIMIT).await;
        let mut waiting = Waiting::new(activity.used_after(since));
        tokio::time::advance(LIMIT * 10).await;
        assert_eq!(waiting.wakes(), 0);
        drop(activity.begin());
        assert_eq!(waiting.wakes(), 1);
        assert!(waiting.poll().is_ready());
    }
}
