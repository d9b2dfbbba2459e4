//! Children: started, signalled and waited for in one place.
//!
//! As process 1 the agent inherits every orphan of the sandbox, so one loop waits for all
//! children, hands each exit to whoever asked for it, and lets orphans go. Outside a box it waits
//! only for its own children by number, so that other parts of the same program keep theirs.

use std::collections::{HashMap, HashSet};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::sys::signal::Signal as NixSignal;
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, kill_process, kill_process_group,
    wait, waitid, waitpid,
};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::lock::Locked;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Code(i32),
    Signal(i32),
}

/// How a process ended of which nobody can say it.
const KILLED: Exit = Exit::Signal(NixSignal::SIGKILL as i32);

impl Exit {
    fn from_status(status: WaitStatus) -> Option<Self> {
        status
            .exit_status()
            .map(Self::Code)
            .or_else(|| status.terminating_signal().map(Self::Signal))
    }
}

/// A process that was started here, by its number and its exit. Its process group is its own.
#[derive(Debug, Clone)]
pub(crate) struct Child {
    pid: Pid,
    exit: watch::Receiver<Option<Exit>>,
}

impl Child {
    pub(crate) const fn pid(&self) -> Pid {
        self.pid
    }

    /// Waits until it has ended. It is no zombie any more by then.
    pub(crate) async fn wait(&self) -> Exit {
        let mut exit = self.exit.clone();
        match exit.wait_for(Option::is_some).await {
            Ok(found) => found.unwrap_or(KILLED),
            // The loop that reaps is gone, and with it whoever could tell: the agent is ending.
            Err(_) => KILLED,
        }
    }

    /// Its exit, if it has ended.
    pub(crate) fn exit(&self) -> Option<Exit> {
        *self.exit.borrow()
    }

    /// Sends a signal to its process group.
    pub(crate) fn signal(&self, signal: Signal) {
        if kill_process_group(self.pid, signal) == Err(Errno::SRCH) && self.exit().is_none() {
            // It was started a moment ago and has not made its own group yet. While it is not
            // waited for its number cannot belong to another.
            let _ = kill_process(self.pid, signal);
        }
    }
}

/// Starts, signals and reaps.
pub(crate) struct Reaper {
    /// Whether this is process 1 of a sandbox, to which everything in it comes back.
    whole: bool,
    children: Locked<HashMap<Pid, watch::Sender<Option<Exit>>>>,
    /// Changes whenever something may have been reaped.
    rounds: watch::Sender<u64>,
    reaped: AtomicU64,
}

impl Reaper {
    /// Begins to watch for ended children. The handle stops that.
    pub(crate) fn start(whole: bool) -> std::io::Result<(Arc<Self>, AbortHandle)> {
        let mut ended = signal(SignalKind::child())?;
        let reaper = Arc::new(Self {
            whole,
            children: Locked::default(),
            rounds: watch::Sender::new(0),
            reaped: AtomicU64::new(0),
        });
        let task = tokio::spawn({
            let reaper = Arc::clone(&reaper);
            async move {
                while ended.recv().await.is_some() {
                    reaper.reap();
                    reaper.rounds.send_modify(|number| *number += 1);
                }
            }
        });
        Ok((reaper, task.abort_handle()))
    }

    /// Starts a process.
    pub(crate) fn spawn(&self, command: &mut Command) -> std::io::Result<Child> {
        // Under the lock, or a child that ends at once could be taken for an orphan.
        self.children.with(|children| {
            let pid = Pid::from_child(&command.spawn()?);
            let (sender, exit) = watch::channel(None);
            children.insert(pid, sender);
            Ok(Child { pid, exit })
        })
    }

    /// Takes over a child of this process that was not started here. How one ended that is gone
    /// already cannot be known any more: it counts as killed.
    pub(crate) fn adopt(&self, pid: Pid) -> Child {
        let child = self.children.with(|children| {
            // Under the lock, or it could end and be let go as an orphan in between.
            let there = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            let gone = matches!(waitid(WaitId::Pid(pid), there), Err(Errno::CHILD));
            let (sender, exit) = watch::channel(gone.then_some(KILLED));
            if !gone {
                children.insert(pid, sender);
            }
            Child { pid, exit }
        });
        // Its end may have been told of before anybody knew that it is one of ours.
        self.reap();
        child
    }

    /// Takes every child that has ended. Says whether none is left.
    fn reap(&self) -> bool {
        self.children.with(|children| {
            let (reaped, none_left) = if self.whole {
                reap_all(children)
            } else {
                reap_own(children)
            };
            self.reaped.fetch_add(reaped, Ordering::Relaxed);
            none_left
        })
    }

    /// Kills everything in the sandbox but the agent, without waiting. Outside a box: the process
    /// groups of all own children.
    pub(crate) fn kill_all(&self) {
        if self.whole {
            // Nothing there to be killed is as good.
            let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(-1), NixSignal::SIGKILL);
        } else {
            self.children.with(|children| {
                for pid in children.keys() {
                    let _ = kill_process_group(*pid, Signal::KILL);
                }
            });
        }
    }

    /// Processes taken back since the start.
    pub(crate) fn reaped(&self) -> u64 {
        self.reap();
        self.reaped.load(Ordering::Relaxed)
    }

    /// Changes whenever something may have been taken back.
    pub(crate) fn rounds(&self) -> watch::Receiver<u64> {
        self.rounds.subscribe()
    }

    /// Own children that have not ended.
    pub(crate) fn children(&self) -> HashSet<Pid> {
        self.children
            .with(|children| children.keys().copied().collect())
    }

    /// Calls `kill`, which kills everything, until nothing is left. `false` when `kill` says that
    /// everything may not be killed, because something was started meanwhile.
    pub(crate) async fn end_all(&self, kill: impl Fn() -> bool) -> bool {
        let mut rounds = self.rounds.subscribe();
        loop {
            // Whatever ends from here on changes `rounds` again.
            rounds.mark_unchanged();
            if !kill() {
                return false;
            }
            if self.reap() || rounds.changed().await.is_err() {
                return true;
            }
        }
    }
}

/// How many were taken, and whether none is left.
fn reap_all(children: &mut HashMap<Pid, watch::Sender<Option<Exit>>>) -> (u64, bool) {
    let mut reaped = 0;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => {
                if let Some(exit) = Exit::from_status(status) {
                    reaped += 1;
                    if let Some(waiting) = children.remove(&pid) {
                        waiting.send_replace(Some(exit));
                    }
                }
            }
            Ok(None) => return (reaped, false),
            Err(Errno::INTR) => {}
            Err(_) => return (reaped, true),
        }
    }
}

/// As [`reap_all`], for own children only.
fn reap_own(children: &mut HashMap<Pid, watch::Sender<Option<Exit>>>) -> (u64, bool) {
    let before = children.len();
    children.retain(
        |pid, waiting| match waitpid(Some(*pid), WaitOptions::NOHANG) {
            Ok(Some((_, status))) => match Exit::from_status(status) {
                Some(exit) => {
                    waiting.send_replace(Some(exit));
                    false
                }
                None => true,
            },
            Ok(None) | Err(Errno::INTR) => true,
            // Somebody else has waited for it: how it ended is lost, not that it did.
            Err(_) => {
                waiting.send_replace(Some(KILLED));
                false
            }
        },
    );
    ((before - children.len()) as u64, children.is_empty())
}
