//! How many refusals of those without a credential are told: whoever reaches the port can cause
//! them, and must not fill the journal.

use std::sync::{Mutex, PoisonError};

/// Refusals that are told in one minute, one by one.
const A_MINUTE: u32 = 60;

/// Milliseconds of a minute.
const MINUTE_MS: i64 = 60_000;

/// Counts refusals of strangers.
#[derive(Debug, Default)]
pub(crate) struct Strangers(Mutex<Count>);

#[derive(Debug, Default)]
struct Count {
    minute: i64,
    told: u32,
    untold: u64,
}

/// What is to be told of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Telling {
    /// Whether it is told itself.
    pub(crate) this: bool,
    /// How many of an earlier minute were not; zero where that has been told.
    pub(crate) earlier: u64,
}

impl Strangers {
    /// Counts one more.
    pub(crate) fn refused(&self, now_ms: i64) -> Telling {
        let mut count = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let minute = now_ms.div_euclid(MINUTE_MS);
        let mut earlier = 0;
        if count.minute != minute {
            earlier = std::mem::take(&mut count.untold);
            count.minute = minute;
            count.told = 0;
        }
        let this = count.told < A_MINUTE;
        if this {
            count.told += 1;
        } else {
            count.untold += 1;
        }
        Telling { this, earlier }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_told_as_a_number_in_the_next_minute() {
        let strangers = Strangers::default();
        let told = |at_ms| {
            let all = (0..1_000).map(|_| strangers.refused(at_ms));
            all.filter(|telling| telling.this).count()
        };
        assert_eq!(told(5), 60);
        let next = strangers.refused(MINUTE_MS + 5);
        assert_eq!(
            next,
            Telling {
                this: true,
                earlier: 940
            }
        );
        assert_eq!(strangers.refused(MINUTE_MS + 6).earlier, 0);
    }
}
