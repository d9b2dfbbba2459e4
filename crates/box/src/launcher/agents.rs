//! What agents say to the launcher, and what is done about it.

use std::time::{Duration, Instant};

use glovebox_protocol::agent_config::Start;
use glovebox_protocol::launcher_line::FromAgent;

use super::agent_line::Heard;
use super::boxes::{BoxKey, Wish};
use super::outer::say;
use super::pod::Pod;
use super::timers::Due;

/// How long a box waits at least from one kernel that it wants to the next. One that is told to
/// ask for as many as it can takes little from the others of its trust domain.
const WISH_PAUSE: Duration = Duration::from_millis(100);

/// How often an agent may say in vain what it has said already.
const REPETITIONS: u32 = 64;

impl Pod {
    /// Listens to what an agent says to us.
    pub(super) fn agent_spoke(&mut self, key: BoxKey) {
        let Some(running) = self.boxes.running(key) else {
            return;
        };
        match running.line.hear() {
            Heard::Word(FromAgent::KernelWanted) => self.wish(key),
            Heard::Word(FromAgent::KernelReady { epoch }) => {
                running.facts.agent_epoch = Some(epoch);
                if std::mem::replace(&mut running.said_ready, true) {
                    self.agent_repeats_itself(key);
                } else {
                    self.kernel_is_ready(key);
                    self.make_spare_groups(key);
                }
            }
            Heard::Nothing => {}
            Heard::Breach(what) => self.agent_broke_the_rules(key, what),
        }
    }

    fn agent_broke_the_rules(&mut self, key: BoxKey, what: &str) {
        if let Some(running) = self.boxes.running(key) {
            running.line.close();
            let name = running.facts.sandbox;
            say(format_args!(
                "the agent of {name} has sent {what}: it is not listened to any more"
            ));
        }
    }

    /// An agent has said what it need not say. That is passed over, but not for ever.
    fn agent_repeats_itself(&mut self, key: BoxKey) {
        if let Some(running) = self.boxes.running(key) {
            running.repetitions += 1;
            if running.repetitions > REPETITIONS {
                self.agent_broke_the_rules(key, "the same again and again");
            }
        }
    }

    /// A box wants a kernel of a template.
    pub(super) fn wish(&mut self, key: BoxKey) {
        let Some(running) = self.boxes.running(key) else {
            return;
        };
        if running.wish != Wish::None {
            return self.agent_repeats_itself(key);
        }
        let now = Instant::now();
        let next = running.wished.map(|last| last + WISH_PAUSE);
        // From when it is looked at, not from when it was said: or every second one came at once.
        running.wished = next.max(Some(now));
        if running.kind.start == Start::Fresh {
            let reason = "this sandbox is to start its kernels itself".to_owned();
            self.refuse_kernel(key, reason);
            // An agent that knows its configuration does not ask, and this answer has no pause.
            self.agent_repeats_itself(key);
        } else if let Some(next) = next.filter(|next| *next > now) {
            running.wish = Wish::Later(next);
            self.timers.at(next, Due::Box(key));
        } else {
            self.want_kernel(key);
        }
    }

    /// Looks whether a box has waited long enough to want another kernel.
    pub(super) fn look_at_wish(&mut self, key: BoxKey) {
        let wish = self.boxes.running(key).map(|running| running.wish);
        if matches!(wish, Some(Wish::Later(moment)) if moment <= Instant::now()) {
            self.want_kernel(key);
        }
    }
}
