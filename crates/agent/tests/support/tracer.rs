//! Counts the system calls of processes, as a debugger sees them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};

use nix::sys::ptrace::{self, Options};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// What `PTRACE_GET_SYSCALL_INFO` calls the beginning of a system call.
const ENTRY: u8 = 1;

/// The event of a stop that was asked for, `PTRACE_EVENT_STOP`.
const STOP: i32 = 128;

/// What was counted of one process.
#[derive(Default)]
pub(crate) struct Counts {
    calls: AtomicU64,
    started: AtomicU64,
}

impl Counts {
    /// System calls begun so far, of all its threads.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    /// Processes and threads started, and programs put in the place of others.
    pub(crate) fn started(&self) -> u64 {
        self.started.load(Ordering::SeqCst)
    }
}

/// Begins to count; everything that is watched ends with the test.
pub(crate) fn watch(processes: &[u32]) -> Vec<Arc<Counts>> {
    let counts: Vec<Arc<Counts>> = processes.iter().map(|_| Arc::default()).collect();
    let threads = processes
        .iter()
        .zip(&counts)
        .flat_map(|(process, counts)| {
            let threads = fs_err::read_dir(format!("/proc/{process}/task")).unwrap();
            threads.map(move |thread| {
                let name = thread.unwrap().file_name();
                let thread = name.to_str().unwrap().parse().unwrap();
                (Pid::from_raw(thread), Arc::clone(counts))
            })
        })
        .collect();
    let (ready, is_ready) = channel();
    // All requests have to come from the one thread that has begun to trace.
    std::thread::spawn(move || trace(threads, &ready));
    is_ready.recv().unwrap();
    counts
}

fn trace(threads: HashMap<Pid, Arc<Counts>>, ready: &Sender<()>) {
    let options = Options::PTRACE_O_TRACESYSGOOD
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_EXITKILL;
    for thread in threads.keys() {
        ptrace::seize(*thread, options).unwrap();
        ptrace::interrupt(*thread).unwrap();
    }
    let mut waiting = threads.len();
    while let Ok(status) = waitpid(None, Some(WaitPidFlag::__WALL)) {
        let (pid, signal) = match status {
            WaitStatus::PtraceSyscall(pid) => {
                let began = ptrace::syscall_info(pid).is_ok_and(|info| info.op == ENTRY);
                if let Some(counts) = threads.get(&pid).filter(|_| began) {
                    counts.calls.fetch_add(1, Ordering::SeqCst);
                }
                (pid, None)
            }
            WaitStatus::PtraceEvent(pid, _, event) if event == STOP => {
                if waiting > 0 {
                    waiting -= 1;
                    if waiting == 0 {
                        ready.send(()).unwrap();
                    }
                }
                (pid, None)
            }
            WaitStatus::PtraceEvent(pid, ..) => {
                if let Some(counts) = threads.get(&pid) {
                    counts.started.fetch_add(1, Ordering::SeqCst);
                }
                (pid, None)
            }
            WaitStatus::Stopped(pid, signal) => (pid, Some(signal)),
            _ => continue,
        };
        // One that has been killed meanwhile is told of next.
        let _ = ptrace::syscall(pid, signal);
    }
}
