//! Taking away what is found a batch at a time.

/// How far one has come with what is taken away in batches. What cannot be taken away is found again,
/// before all others: it is skipped, so that it keeps no other from its end, and is tried again the
/// next time.
#[derive(Debug)]
pub(super) struct Batches {
    at_once: u32,
    left: u32,
    left_before: u32,
}

impl Batches {
    /// Nothing was looked at yet.
    pub(super) fn of(at_once: u32) -> Self {
        Self {
            at_once,
            left: 0,
            left_before: 0,
        }
    }

    /// How many are skipped at the beginning of what is found, and how many are looked for behind
    /// them.
    pub(super) fn next(&mut self) -> (u32, u32) {
        self.left_before = self.left;
        (self.left, self.at_once)
    }

    /// One of this batch cannot be taken away.
    pub(super) fn leave(&mut self) {
        self.left += 1;
    }

    /// Whether nothing is behind a batch of so many that has to be looked at in this go: where all
    /// of a batch went, the next go takes the rest.
    pub(super) fn is_enough(&self, found: usize) -> bool {
        self.left == self.left_before || found < self.at_once as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes even numbers away in one go, and gives what is left.
    fn one_go(mut there: Vec<u32>) -> Vec<u32> {
        let mut batches = Batches::of(100);
        loop {
            let (skipped, limit) = batches.next();
            let found: Vec<u32> = there
                .iter()
                .copied()
                .skip(skipped as usize)
                .take(limit as usize)
                .collect();
            for one in &found {
                if one % 2 == 0 {
                    there.retain(|other| other != one);
                } else {
                    batches.leave();
                }
            }
            if batches.is_enough(found.len()) {
                return there;
            }
        }
    }

    #[test]
    fn what_stays_keeps_nothing_else_from_its_end() {
        let stays: Vec<u32> = (0..250).map(|n| 2 * n + 1).collect();
        let goes: Vec<u32> = (0..30).map(|n| 2 * n).collect();
        assert_eq!(one_go([stays.clone(), goes].concat()), stays);
        assert_eq!(one_go(stays.clone()), stays);
        assert_eq!(one_go(Vec::new()), Vec::<u32>::new());
        // One go is bounded where all goes well.
        assert_eq!(one_go((0..250).map(|n| 2 * n).collect()).len(), 150);
    }
}
