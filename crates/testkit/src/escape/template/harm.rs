//! Z8: a kernel that kills, stops, traces, floods or exhausts harms its own sandbox alone.

use anyhow::Result;

use crate::escape::lab::{Lab, Subject};
use crate::escape::report::{Red, demand};

/// What is done in a kernel, as words of `hostile.py`, and what it reports when it has really been
/// done.
const ATTACKS: [(&[&str], &str); 14] = [
    (&["kill-everything"], "control"),
    (&["reach-every-number"], "reached"),
    (&["bomb", "fork", "200"], "made"),
    (&["bomb", "vfork", "200"], "made"),
    (&["bomb", "thread", "200"], "made"),
    (&["memory", "private", "512"], "control"),
    (&["memory", "memfd", "512"], "control"),
    (&["memory", "deleted", "512"], "control"),
    (&["descriptors", "pipe", "4096"], "opened"),
    (&["stop-all"], "control"),
    (&["wait-for", "stubborn"], "control"),
    (&["crash", "segv"], "control"),
    (&["crash", "sigkill"], "control"),
    (&["close-everything"], "control"),
];

/// How long one of them may go on.
const TIME_LIMIT_MS: u64 = 3_000;

/// A sandbox beside the one that attacks, whose kernel remembers a word.
struct Sibling(Subject);

impl Sibling {
    const WORD: &str = "what the sibling remembers";

    async fn of(lab: &Lab) -> Result<Self> {
        let subject = lab.bare_subject(Lab::small_limits()).await?;
        subject.kernel(&format!("word = '{}'", Self::WORD)).await?;
        Ok(Self(subject))
    }

    async fn remembers(&self) -> Result<bool> {
        let ran = self.0.kernel("print(word)").await?;
        Ok(String::from_utf8_lossy(&ran.stdout).trim() == Self::WORD)
    }
}

/// Z8: does each attack in a kernel of a sandbox of its own. `template` gives the process that the
/// lab's kernels are copied from, where there is one.
///
/// # Errors
/// When a sandbox cannot be made, or the sibling does not play along.
pub async fn stays_in_its_sandbox(
    lab: &Lab,
    template: impl AsyncFn() -> Result<Option<i32>>,
) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let sibling = Sibling::of(lab).await?;
    let before = template().await?;
    for (words, proof) in ATTACKS {
        let subject = lab.subject(Lab::small_limits()).await?;
        let running = subject.attack_in_kernel(words, TIME_LIMIT_MS).await?;
        let ran = running.to_end().await?;
        let done = ran.observed(proof);
        demand(&mut reds, "Z8", done.is_ok(), || {
            format!("the control of {words:?} failed: {done:?}")
        });
        demand(&mut reds, "Z8", sibling.remembers().await?, || {
            format!("after {words:?} another sandbox has lost its variables")
        });
        let now = template().await?;
        demand(&mut reds, "Z8", now == before, || {
            format!("after {words:?} the template is {now:?} and was {before:?}")
        });
        // Its own harm can be undone: the next kernel is as good as the first.
        subject.client.restart_kernel().await?;
        let again = subject.kernel("print(6 * 7)").await?;
        demand(&mut reds, "Z8", again.stdout == b"42\n", || {
            format!("after {words:?} the next kernel does not work: {again:?}")
        });
        subject.remove().await?;
        // And so is one for somebody new.
        let next = Sibling::of(lab).await?;
        demand(&mut reds, "Z8", next.remembers().await?, || {
            format!("after {words:?} a new sandbox does not work")
        });
        next.0.remove().await?;
    }
    sibling.0.remove().await?;
    Ok(reds)
}
