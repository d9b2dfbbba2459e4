//! The time limit of a call, and what is done when it is over or nobody reads.

use std::convert::Infallible;
use std::pin::Pin;
use std::time::Duration;

use rustix::process::Signal;
use tokio::time::{Instant, Sleep, sleep_until};

use super::call::Call;
use crate::lock::Locked;
use crate::process::{Asked, Child, KERNEL_GRACE, Pace};

/// An interrupt within this time of a call's start may have come before the kernel began.
const EARLY: Duration = Duration::from_millis(500);

/// The time limit came first; it had to be killed, or not.
pub(super) type OverTime = Locked<Option<bool>>;

/// Wakes at a deadline. It is kept from call to call: to set a timer costs a system call when it
/// is the next to run out, and one that is set for an earlier call runs out early enough.
pub(super) struct Alarm(Option<Pin<Box<Sleep>>>);

impl Alarm {
    pub(super) const fn new() -> Self {
        Self(None)
    }

    /// Returns at the deadline.
    async fn wait_until(&mut self, deadline: Instant) {
        let sleep = self
            .0
            .get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        while Instant::now() < deadline {
            if sleep.is_elapsed() || sleep.deadline() > deadline {
                sleep.as_mut().reset(deadline);
            }
            sleep.as_mut().await;
        }
    }
}

impl Call<'_> {
    /// Interrupts the code when its time is over or nobody reads, and kills the kernel when that
    /// does not help. Runs beside the conversation, which may be waiting for a slow reader.
    pub(super) async fn enforce(
        &self,
        child: &Child,
        alarm: &mut Alarm,
        over_time: &OverTime,
    ) -> Infallible {
        let is_over = self.until_unwanted(child, alarm).await;
        if is_over {
            over_time.with(|over| *over = Some(false));
        } else {
            self.facts
                .with(|facts| facts.asked = Asked::Interrupt.max(facts.asked));
        }
        self.sink.set_pace(Pace::Hurry);
        let kill_at = Instant::now() + KERNEL_GRACE;
        child.signal(Signal::INT);
        sleep_until(Instant::now() + EARLY).await;
        if self.began.elapsed() < EARLY * 2 {
            child.signal(Signal::INT);
        }
        sleep_until(kill_at).await;
        let limit_ms = self.request.time_limit_ms;
        self.facts.with(|facts| {
            facts.end_reason = Some(if is_over {
                format!("the kernel did not end a call within its {limit_ms} ms and was killed")
            } else {
                facts.asked = Asked::Kill;
                "the kernel did not end a call that nobody waited for and was killed".into()
            });
        });
        if is_over {
            over_time.with(|over| *over = Some(true));
        }
        self.workload.kill(child);
        std::future::pending().await
    }

    /// Returns when the call has to end: whether because its time is over. A kernel passes
    /// interrupts over between calls, so one that comes early in a call is sent again.
    async fn until_unwanted(&self, child: &Child, alarm: &mut Alarm) -> bool {
        let limit = Duration::from_millis(self.request.time_limit_ms);
        let deadline = self.began.checked_add(limit).unwrap_or_else(far_away);
        // One that came just before this began to listen may have met a kernel between two calls.
        let is_asked = self.facts.with(|facts| facts.asked) != Asked::Nothing;
        let mut again_at = is_asked.then(|| Instant::now() + EARLY);
        loop {
            tokio::select! {
                biased;
                () = alarm.wait_until(deadline) => return true,
                () = self.sink.closed() => return false,
                () = self.interrupted.notified() => {
                    let early = self.began.elapsed() < EARLY;
                    again_at = early.then(|| Instant::now() + EARLY);
                }
                () = sleep_until(again_at.unwrap_or(deadline)), if again_at.is_some() => {
                    child.signal(Signal::INT);
                    again_at = None;
                }
            }
        }
    }
}

fn far_away() -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    Instant::now() + YEAR
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_alarm_rings_at_each_deadline_whatever_it_was_set_for_before() {
        let mut alarm = Alarm::new();
        for seconds in [60, 1, 60, 60, 5, 3600] {
            let deadline = Instant::now() + Duration::from_secs(seconds);
            alarm.wait_until(deadline).await;
            assert_eq!(Instant::now(), deadline);
        }
        // Most calls end long before.
        let early = alarm.wait_until(Instant::now() + Duration::from_secs(60));
        tokio::time::timeout(Duration::from_secs(1), early)
            .await
            .unwrap_err();
        let deadline = Instant::now() + Duration::from_secs(600);
        alarm.wait_until(deadline).await;
        assert_eq!(Instant::now(), deadline);
    }
}
