//! The threads that touch the workspace.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use nix::unistd::{Gid, Uid, setfsgid, setfsuid};
use rustix::io::Errno;
use tokio::sync::oneshot;

use super::{FileError, Workspace};

/// How many there are: one may be busy with a long listing or sweep while files move.
const THREADS: usize = 3;

/// Room on each stack; nothing on these threads recurses.
const STACK_BYTES: usize = 512 * 1024;

type Job = Box<dyn FnOnce(&Workspace) + Send>;

/// Runs file work on threads of their own.
#[derive(Clone)]
pub(crate) struct FileThreads {
    jobs: Sender<Job>,
}

/// The threads could not be made ready.
#[derive(Debug, thiserror::Error)]
pub enum ThreadsError {
    /// The operating system gave no thread.
    #[error("starting a thread for files")]
    Start(#[source] std::io::Error),
    /// The ids for file access did not change.
    #[error("taking the file-system id {0} of the workload was refused")]
    Ids(u32),
    /// The workspace cannot be opened.
    #[error("opening the workspace `{}`", path.display())]
    Open {
        /// Where it should be.
        path: PathBuf,
        /// Why it failed.
        #[source]
        cause: Errno,
    },
    /// A thread ended before it was ready.
    #[error("a thread for files ended before it was ready")]
    Ended,
}

impl FileThreads {
    /// Starts the threads and waits until each is ready. With `fs_id` each takes that user and
    /// group id for its file work.
    pub(crate) fn start(workspace: &Path, fs_id: Option<u32>) -> Result<Self, ThreadsError> {
        let (jobs, queue) = channel();
        let queue = Arc::new(Mutex::new(queue));
        let (ready, results) = channel();
        for number in 0..THREADS {
            let (queue, ready, path) = (Arc::clone(&queue), ready.clone(), workspace.to_owned());
            std::thread::Builder::new()
                .name(format!("files-{number}"))
                .stack_size(STACK_BYTES)
                .spawn(move || match prepare(&path, fs_id) {
                    Ok(workspace) => {
                        // The starter waits for this message, so it is there to take it.
                        let _ = ready.send(Ok(()));
                        drop(ready);
                        work(&queue, &workspace);
                    }
                    Err(error) => {
                        let _ = ready.send(Err(error));
                    }
                })
                .map_err(ThreadsError::Start)?;
        }
        drop(ready);
        for _ in 0..THREADS {
            results.recv().map_err(|_| ThreadsError::Ended)??;
        }
        Ok(Self { jobs })
    }

    /// Runs `job` on one of the threads and waits for what it gives.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Workspace) -> T + Send + 'static,
    ) -> Result<T, FileError> {
        let (done, result) = oneshot::channel();
        let job: Job = Box::new(move |workspace| {
            // Nobody may be waiting any more, and then nobody needs the result.
            let _ = done.send(job(workspace));
        });
        self.jobs.send(job).map_err(|_| FileError::ThreadsEnded)?;
        result.await.map_err(|_| FileError::ThreadsEnded)
    }

    /// Runs `job` some time, unless the threads have ended.
    pub(crate) fn run_later(&self, job: impl FnOnce(&Workspace) + Send + 'static) {
        let _ = self.jobs.send(Box::new(job));
    }
}

fn prepare(workspace: &Path, fs_id: Option<u32>) -> Result<Workspace, ThreadsError> {
    if let Some(id) = fs_id {
        // The group first: the user id may not be allowed to change it any more. Both calls
        // only tell the former id, so a second one shows whether the first had effect.
        setfsgid(Gid::from_raw(id));
        setfsuid(Uid::from_raw(id));
        if setfsgid(Gid::from_raw(id)).as_raw() != id || setfsuid(Uid::from_raw(id)).as_raw() != id
        {
            return Err(ThreadsError::Ids(id));
        }
    }
    Workspace::open(workspace).map_err(|cause| ThreadsError::Open {
        path: workspace.into(),
        cause,
    })
}

/// Takes one job after the other until all senders are gone.
fn work(queue: &Mutex<Receiver<Job>>, workspace: &Workspace) {
    loop {
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        // A job that panics ends by dropping its result, which its caller sees; the thread goes
        // on. A job shares nothing that it could leave half changed.
        let _ = catch_unwind(AssertUnwindSafe(|| job(workspace)));
    }
}
