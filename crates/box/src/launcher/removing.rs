//! Taking boxes away: asked to, or because they have ended by themselves.

use std::os::fd::AsFd as _;

use glovebox_protocol::ids::SandboxId;
use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, waitid};

use super::boxes::{BoxKey, Running, Stage};
use super::ending::{Body, Ending, Notice, Step};
use super::outer::say;
use super::pod::Pod;
use super::timers::Due;
use crate::control::{BoxEnd, Fault, FromLauncher};
use crate::create::process::kill;

impl Pod {
    /// Removes a box that was asked to be removed, if there is one. One that is being made is
    /// given up, and whoever asked for it is told first.
    pub(super) fn remove(&mut self, id: u64, sandbox: SandboxId) {
        let Some(key) = self.boxes.of_sandbox(sandbox) else {
            self.answers.push(FromLauncher::Removed { id });
            return;
        };
        let set_up = self.boxes.running(key).and_then(|box_| box_.set_up.take());
        let mut notices = Vec::new();
        if let Some(create) = set_up.and_then(|set_up| set_up.request) {
            let fault = Fault::failed(
                format!("making the box {sandbox}"),
                "it was removed before it was made",
            );
            notices.push(Notice::NotMade { id: create, fault });
        }
        notices.push(Notice::Removed { id });
        self.end(key, notices);
    }

    /// Ends a box and sees to it that nothing is left of it. Those who are to be told are, once
    /// that is so.
    pub(super) fn end(&mut self, key: BoxKey, notices: Vec<Notice>) {
        self.forget_in_advance(key);
        self.boxes.set_hard_deadline(key, None);
        self.pass_on_words(key);
        let Some(entry) = self.boxes.get_mut(key) else {
            return;
        };
        entry.stage = match std::mem::replace(&mut entry.stage, Stage::Stays(Body::default())) {
            Stage::Runs(running) => {
                let Running {
                    process, remains, ..
                } = *running;
                let process = Some(process);
                Stage::Ends(Ending::begin(Body { process, remains }, notices))
            }
            Stage::Stays(body) => Stage::Ends(Ending::begin(body, notices)),
            Stage::Ends(mut ending) => {
                ending.notices.extend(notices);
                Stage::Ends(ending)
            }
        };
        self.take_away(key);
    }

    /// Kills a box, whose end is then noticed as any other.
    pub(super) fn kill_box(&mut self, key: BoxKey) {
        if let Some(running) = self.boxes.running(key) {
            // One that has ended meanwhile is what we want.
            let _ = kill(running.process.get());
        }
    }

    /// Ends a box whose time has come. Where the runtime knows of it, it is told.
    pub(super) fn end_by_itself(&mut self, key: BoxKey, end: BoxEnd) {
        let Some(entry) = self.boxes.get_mut(key) else {
            return;
        };
        let notices = match entry.sandbox {
            Some(sandbox) => vec![Notice::Ended { sandbox, end }],
            None => {
                say(format_args!("a box in advance, {}: {end}", entry.name));
                Vec::new()
            }
        };
        self.end(key, notices);
    }

    /// The first process of a box has ended: because it was to, because it could not set itself
    /// up, or because the agent has.
    pub(super) fn process_ended(&mut self, key: BoxKey) {
        if let Some(running) = self.boxes.running(key) {
            running.remains.inside = None;
            if let Some(set_up) = &mut running.set_up {
                set_up.progress.end();
            }
        }
        // What it said last decides which.
        self.reported(key);
        let Some(running) = self.boxes.running(key) else {
            // One that was given up goes on to be taken away, too.
            return self.end(key, Vec::new());
        };
        if running.set_up.is_some() {
            let fault = Fault::failed(
                "waiting for the box to set itself up",
                "its first process has ended",
            );
            return self.give_up_making(key, fault);
        }
        if let Some(end) = how_it_ended(running) {
            self.end_by_itself(key, end);
        }
    }

    /// Goes on with taking a box away.
    pub(super) fn take_away(&mut self, key: BoxKey) {
        let Some(entry) = self.boxes.get_mut(key) else {
            return;
        };
        let Stage::Ends(ending) = &mut entry.stage else {
            return;
        };
        match ending.step(&mut self.slots, &self.surroundings.run_folder) {
            Step::Wait(until) => self.timers.at(until, Due::Box(key)),
            Step::Gone => {
                if let Some(entry) = self.boxes.take_off(key)
                    && let Stage::Ends(ending) = entry.stage
                {
                    let (_, notices) = ending.into_parts();
                    self.tell(notices, Ok(()));
                }
            }
            Step::Stays(fault) => {
                let stays = Stage::Stays(Body::default());
                if let Stage::Ends(ending) = std::mem::replace(&mut entry.stage, stays) {
                    let (body, notices) = ending.into_parts();
                    entry.stage = Stage::Stays(body);
                    say(format_args!("not all of {} is gone: {fault}", entry.name));
                    self.left.get_or_insert_with(|| fault.clone());
                    self.tell(notices, Err(fault));
                }
            }
        }
    }

    fn tell(&mut self, notices: Vec<Notice>, result: Result<(), Fault>) {
        for notice in notices {
            let answer = match (notice, &result) {
                (Notice::Removed { id }, Ok(())) => FromLauncher::Removed { id },
                (Notice::Removed { id }, Err(fault)) => FromLauncher::Failed {
                    id,
                    fault: fault.clone(),
                },
                (Notice::NotMade { id, fault }, result) => FromLauncher::Failed {
                    id,
                    fault: fault.and_then(result.clone()),
                },
                // What is left of it is tried again when it is asked for, or at the end.
                (Notice::Ended { sandbox, end }, _) => FromLauncher::Ended { sandbox, end },
            };
            self.answers.push(answer);
        }
    }

    /// Begins to end everything.
    pub(super) fn end_all(&mut self) {
        self.left = None;
        self.pools.clear();
        self.remove_spare_groups();
        for key in self.boxes.keys() {
            self.end(key, Vec::new());
        }
        for key in self.templates.keys() {
            self.end_template(key);
        }
    }
}

/// How an agent has come to its end, if it has. Its status is left to be taken.
fn how_it_ended(running: &Running) -> Option<BoxEnd> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match waitid(WaitId::PidFd(running.process.get().as_fd()), options) {
        Ok(None) | Err(Errno::INTR) => None,
        Ok(Some(status)) => Some(match status.exit_status() {
            Some(code) => BoxEnd::AgentExited { code },
            None => BoxEnd::AgentKilled {
                signal: status.terminating_signal().unwrap_or(0),
                out_of_memory: running.remains.agent_ran_out_of_memory(),
            },
        }),
        Err(_) => Some(BoxEnd::AgentKilled {
            signal: 0,
            out_of_memory: false,
        }),
    }
}
