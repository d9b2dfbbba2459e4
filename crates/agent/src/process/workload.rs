//! Everything that runs in the sandbox besides the agent: started here, ended here.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use glovebox_protocol::event::{Note, Outcome};
use glovebox_protocol::limits::Limits;
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::timeout;

use super::proc::processes;
use super::{Child, Exit, Launch, Launcher, OomCounter, Reaper};
use crate::files::FileThreads;
use crate::lock::Locked;

/// A workspace with less room than this, in bytes, counts as full.
const FULL_BELOW: u64 = 64 * 1024;

/// How long to wait for killed processes to be gone.
const CLEAR_LIMIT: Duration = Duration::from_secs(5);

/// How long the end of an execution waits to learn whether the workspace is full. The threads for
/// files may be busy for longer, and what became of the execution is known without it.
const USAGE_LIMIT: Duration = Duration::from_secs(1);

/// The workload of one sandbox.
pub(crate) struct Workload {
    pub(crate) launcher: Launcher,
    pub(crate) limits: Limits,
    reaper: Arc<Reaper>,
    oom: OomCounter,
    files: FileThreads,
    /// Programs and kernels that run. Everything may be killed for one of them only while there
    /// is no other.
    tenants: Locked<u32>,
}

/// One running program or kernel, as long as this lives.
pub(crate) struct Tenant(Arc<Workload>);

impl Drop for Tenant {
    fn drop(&mut self) {
        self.0.tenants.with(|tenants| *tenants -= 1);
    }
}

impl Workload {
    pub(crate) fn new(
        launcher: Launcher,
        limits: Limits,
        reaper: Arc<Reaper>,
        oom: OomCounter,
        files: FileThreads,
    ) -> Self {
        Self {
            launcher,
            limits,
            reaper,
            oom,
            files,
            tenants: Locked::default(),
        }
    }

    /// Starts a process; it may run until the tenant is dropped.
    pub(crate) fn start(self: &Arc<Self>, launch: Launch<'_>) -> std::io::Result<(Child, Tenant)> {
        let tenant = self.tenant();
        let child = self.reaper.spawn(&mut self.launcher.command(launch))?;
        Ok((child, tenant))
    }

    /// Says that there is, or is about to be, one more that may run.
    pub(crate) fn tenant(self: &Arc<Self>) -> Tenant {
        self.tenants.with(|tenants| *tenants += 1);
        Tenant(Arc::clone(self))
    }

    /// Takes over a process that others have put into the sandbox, as a child of the agent's and
    /// at the head of a process group of its own. To be called by whoever has a tenant for it.
    pub(crate) fn adopt(&self, pid: i32) -> std::io::Result<Child> {
        // 1 is the agent itself.
        let pid = Some(pid).filter(|pid| *pid > 1).and_then(Pid::from_raw);
        let pid = pid.ok_or(std::io::ErrorKind::InvalidData)?;
        Ok(self.reaper.adopt(pid))
    }

    /// Kills a program or kernel with everything that it started, without waiting. Where another
    /// runs beside it, what left its process group is found by [`Self::clear`].
    pub(crate) fn kill(&self, child: &Child) {
        if child.exit().is_some() {
            // What it left is being cleared; whoever is alone by now is somebody else.
            return;
        }
        child.signal(Signal::KILL);
        self.kill_all_for_last_tenant();
    }

    fn kill_all_for_last_tenant(&self) -> bool {
        self.tenants.with(|tenants| {
            let alone = self.launcher.is_sealed() && *tenants <= 1;
            if alone {
                self.reaper.kill_all();
            }
            alone
        })
    }

    /// Ends what a program or kernel that has ended left running, and says how many processes
    /// that was.
    pub(crate) async fn clear(&self, child: &Child) -> u32 {
        let before = self.reaper.reaped();
        let clearing = self.reaper.end_all(|| self.kill_all_for_last_tenant());
        // One that the kernel does not let go is left to the end of the sandbox.
        if !matches!(timeout(CLEAR_LIMIT, clearing).await, Ok(false)) {
            return u32::try_from(self.reaper.reaped() - before).unwrap_or(u32::MAX);
        }
        let mut killed = HashSet::new();
        let ending = self.end_group(child.pid(), &mut killed);
        // The same: what stays is left to the end of the sandbox.
        let _ = timeout(CLEAR_LIMIT, ending).await;
        u32::try_from(killed.len()).unwrap_or(u32::MAX)
    }

    /// Kills what is left of a group and session of processes until nothing is.
    async fn end_group(&self, main: Pid, killed: &mut HashSet<Pid>) {
        let main = main.as_raw_nonzero().get();
        let mut rounds = self.reaper.rounds();
        loop {
            // Whatever ends from here on changes `rounds` again.
            rounds.mark_unchanged();
            let mut left = processes().await;
            left.retain(|process| process.group == main || process.session == main);
            for process in &left {
                killed.insert(process.pid);
                // Gone already is as good.
                let _ = kill_process(process.pid, Signal::KILL);
            }
            if left.is_empty() || rounds.changed().await.is_err() {
                return;
            }
        }
    }

    /// Kills everything and returns when nothing is left, with how many processes that was.
    pub(crate) async fn end(&self) -> u32 {
        let before = self.reaper.reaped();
        let everything = || {
            self.reaper.kill_all();
            true
        };
        self.reaper.end_all(everything).await;
        u32::try_from(self.reaper.reaped() - before).unwrap_or(u32::MAX)
    }

    /// Processes that are alive.
    pub(crate) async fn count(&self) -> u32 {
        let mut alive = self.reaper.children();
        if self.launcher.is_sealed() {
            alive.extend(processes().await.iter().map(|process| process.pid));
        }
        u32::try_from(alive.len()).unwrap_or(u32::MAX)
    }

    /// How often memory has run out so far.
    pub(crate) fn oom_kills(&self) -> u64 {
        self.oom.read()
    }

    /// What an exit means that nobody asked for, given how often memory ran out meanwhile.
    pub(crate) fn outcome(&self, exit: Exit, oom_kills: u64) -> (Outcome, Vec<Note>) {
        let limit_bytes = self.limits.memory_bytes;
        let (outcome, others) = match exit {
            Exit::Signal(signal) if signal == Signal::KILL.as_raw() && oom_kills > 0 => {
                (Outcome::OutOfMemory { limit_bytes }, oom_kills - 1)
            }
            Exit::Signal(signal) => (Outcome::Signaled { signal }, oom_kills),
            Exit::Code(code) => (Outcome::Exited { code }, oom_kills),
        };
        let note = (others > 0).then_some(Note::ChildOutOfMemory {
            killed: others,
            limit_bytes,
        });
        (outcome, note.into_iter().collect())
    }

    /// A note where the workspace has no room left and that is soon found out.
    pub(crate) async fn disk_note(&self) -> Option<Note> {
        let asking = self.files.run(|workspace| workspace.usage());
        let usage = timeout(USAGE_LIMIT, asking).await.ok()?.ok()?.ok()?;
        let free = usage.f_bavail.saturating_mul(usage.f_frsize);
        let full = free < FULL_BELOW || (usage.f_files > 0 && usage.f_favail == 0);
        full.then_some(Note::DiskFull {
            limit_bytes: self.limits.workspace_bytes,
            limit_inodes: self.limits.workspace_inodes,
        })
    }
}
