//! One line that says what is being done now, on standard error and only on a terminal.
//!
//! It is never mixed into output: whoever writes to the terminal hides the line first, and it
//! comes back only when the output has ended a line and been quiet for a moment.

use std::io::IsTerminal as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How often the line is to be drawn anew.
pub(crate) const TICK: Duration = Duration::from_millis(120);

/// How long something has to take before it is worth a line.
const PATIENCE: Duration = Duration::from_millis(150);

/// How long output has to be quiet before the line comes back.
const QUIET: Duration = Duration::from_millis(400);

/// The line.
pub(crate) struct Progress(Option<Mutex<State>>);

struct State {
    bar: Option<ProgressBar>,
    phase: Option<Phase>,
    /// Whether what was written last did not end a line.
    mid_line: bool,
    quiet_since: Option<Instant>,
}

struct Phase {
    text: String,
    since: Instant,
    /// Bytes done and in all, where they are counted.
    bytes: Option<(u64, u64)>,
}

impl Progress {
    /// The line, where standard error is a terminal and `wanted`.
    pub(crate) fn new(wanted: bool) -> Self {
        let shows = wanted && std::io::stderr().is_terminal();
        Self(shows.then(|| {
            Mutex::new(State {
                bar: None,
                phase: None,
                mid_line: false,
                quiet_since: None,
            })
        }))
    }

    fn state(&self) -> Option<MutexGuard<'_, State>> {
        let state = self.0.as_ref()?;
        Some(state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Something else is being done now; time counts from here.
    pub(crate) fn phase(&self, text: impl Into<String>) {
        self.begin(text.into(), None);
    }

    /// The same, where bytes are counted.
    pub(crate) fn phase_of_bytes(&self, text: impl Into<String>, total: u64) {
        self.begin(text.into(), Some((0, total)));
    }

    fn begin(&self, text: String, bytes: Option<(u64, u64)>) {
        if let Some(mut state) = self.state() {
            state.hide();
            state.phase = Some(Phase {
                text,
                since: Instant::now(),
                bytes,
            });
        }
    }

    /// Other words for what is being done; time goes on.
    pub(crate) fn say(&self, text: impl Into<String>) {
        if let Some(mut state) = self.state()
            && let Some(phase) = &mut state.phase
        {
            phase.text = text.into();
        }
    }

    /// More bytes are done.
    pub(crate) fn add_bytes(&self, count: u64) {
        if let Some(mut state) = self.state()
            && let Some(Phase {
                bytes: Some((done, _)),
                ..
            }) = &mut state.phase
        {
            *done += count;
        }
    }

    /// Draws the line anew; to be called every [`TICK`].
    pub(crate) fn tick(&self) {
        if let Some(mut state) = self.state() {
            state.draw();
        }
    }

    /// Nothing is being done any more.
    pub(crate) fn done(&self) {
        if let Some(mut state) = self.state() {
            state.hide();
            state.phase = None;
        }
    }

    /// Output is about to be written.
    pub(crate) fn before_output(&self) {
        if let Some(mut state) = self.state() {
            state.hide();
        }
    }

    /// Output was written.
    pub(crate) fn after_output(&self, ends_line: bool) {
        if let Some(mut state) = self.state() {
            state.mid_line = !ends_line;
            state.quiet_since = Some(Instant::now());
        }
    }

    /// Whether a line of ours would be glued to an unfinished one.
    pub(crate) fn is_mid_line(&self) -> bool {
        self.state().is_some_and(|state| state.mid_line)
    }
}

impl State {
    fn hide(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    fn draw(&mut self) {
        let is_quiet = self
            .quiet_since
            .is_none_or(|since| since.elapsed() >= QUIET);
        let Some(phase) = self.phase.as_ref().filter(|_| is_quiet && !self.mid_line) else {
            return;
        };
        if phase.since.elapsed() < PATIENCE {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| new_bar(phase));
        if bar.message() != phase.text {
            bar.set_message(phase.text.clone());
        }
        if let Some((done, _)) = phase.bytes {
            bar.set_position(done);
        }
        bar.tick();
    }
}

fn new_bar(phase: &Phase) -> ProgressBar {
    let (template, length) = match phase.bytes {
        Some((_, total)) => (
            "{spinner} {msg} {binary_bytes} of {binary_total_bytes}",
            Some(total),
        ),
        None => ("{spinner} {msg} {elapsed}", None),
    };
    // A template that does not parse is a mistake of this file; the usual one serves then.
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr());
    bar.set_style(style);
    bar.with_elapsed(phase.since.elapsed())
}
