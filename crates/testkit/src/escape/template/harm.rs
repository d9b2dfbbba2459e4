//! Z8: a kernel that kills, stops, traces, floods or exhausts harms its own sandbox alone.

use anyhow::Result;
use glovebox_protocol::process::Cancel;

use crate::escape::lab::{Lab, Subject};
use crate::escape::report::{Red, demand};
use crate::escape::run::Ran;

/// How an attack comes to its end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// By itself, or because it has killed itself.
    OfItself,
    /// When it has reported what it did and its kernel is killed for it.
    Killed,
    /// At its time limit.
    AtLimit,
}

/// What is done in a kernel, as words of `hostile.py`; what it reports when it has really been
/// done, or is about to be; and how it ends.
const ATTACKS: [(&[&str], &str, End); 15] = [
    (&["kill-everything"], "control", End::OfItself),
    (&["reach-every-number"], "reached", End::OfItself),
    (&["bomb", "fork", "200"], "made", End::Killed),
    (&["bomb", "vfork", "200"], "made", End::Killed),
    (&["bomb", "thread", "200"], "made", End::Killed),
    (&["memory", "private", "512"], "control", End::OfItself),
    (&["memory", "memfd", "512"], "control", End::OfItself),
    (&["memory", "deleted", "512"], "control", End::OfItself),
    (&["descriptors", "pipe", "4096"], "opened", End::Killed),
    (&["flood-both", "64"], "control", End::OfItself),
    (&["stop-all"], "control", End::AtLimit),
    (&["wait-for", "stubborn"], "control", End::AtLimit),
    (&["crash", "segv"], "control", End::OfItself),
    (&["crash", "sigkill"], "control", End::OfItself),
    (&["close-everything"], "control", End::OfItself),
];

/// The time limit of those that end at it, and of the others.
const SHORT_MS: u64 = 4_000;
const LONG_MS: u64 = 120_000;

/// Does one attack to its end.
async fn attack(subject: &Subject, words: &[&str], proof: &str, end: End) -> Result<Ran> {
    let limit_ms = if end == End::AtLimit {
        SHORT_MS
    } else {
        LONG_MS
    };
    let mut running = subject.attack_in_kernel(words, limit_ms).await?;
    if end == End::Killed {
        running.until(proof).await?;
        subject.client.interrupt_kernel(Cancel::Kill).await?;
    }
    running.to_end().await
}

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
    for (words, proof, end) in ATTACKS {
        let subject = lab.subject(Lab::small_limits()).await?;
        let ran = attack(&subject, words, proof, end).await?;
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
