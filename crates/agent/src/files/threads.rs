//! The threads that touch the workspace.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use nix::unistd::{Gid, Uid, setfsgid, setfsuid};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use tokio::sync::oneshot;

use super::{FileError, Workspace};

/// How many there are at most: one may be busy with a long listing or sweep while files move. Most
/// sandboxes never have work for a second one, and each costs memory and Linux some work.
const MOST_THREADS: usize = 3;

/// Room on each stack; nothing on these threads recurses.
const STACK_BYTES: usize = 512 * 1024;

type Job = Box<dyn FnOnce(&Workspace) + Send>;

/// When threads are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hiring {
    /// With the work, where the agent's threads count for the agent alone.
    WithTheWork,
    /// All at once, where they are counted together with the workload's: else it would make as many
    /// more, and the agent could have none when it needs them.
    AtOnce,
}

/// Runs file work on threads of their own.
#[derive(Clone)]
pub(crate) struct FileThreads {
    jobs: Sender<Job>,
    crew: Arc<Crew>,
}

/// What the threads share.
struct Crew {
    queue: Mutex<Receiver<Job>>,
    workspace: PathBuf,
    fs_id: Option<u32>,
    /// How many threads there are.
    threads: AtomicUsize,
    /// How many jobs wait or are worked on.
    jobs: AtomicUsize,
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
    /// The process cannot be closed to others again.
    #[error("hiding the agent's memory from other processes")]
    Hide(#[source] Errno),
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
    /// Starts the first thread, or all, and waits until they are ready. With `fs_id` each takes that
    /// user and group id for its file work.
    pub(crate) fn start(
        workspace: &Path,
        fs_id: Option<u32>,
        hiring: Hiring,
    ) -> Result<Self, ThreadsError> {
        let (jobs, queue) = channel();
        let crew = Arc::new(Crew {
            queue: Mutex::new(queue),
            workspace: workspace.to_owned(),
            fs_id,
            threads: AtomicUsize::new(0),
            jobs: AtomicUsize::new(0),
        });
        let first = match hiring {
            Hiring::WithTheWork => 1,
            Hiring::AtOnce => MOST_THREADS,
        };
        let (ready, results) = channel();
        for _ in 0..first {
            crew.hire(ready.clone())?;
        }
        drop(ready);
        for _ in 0..first {
            results.recv().map_err(|_| ThreadsError::Ended)??;
        }
        Ok(Self { jobs, crew })
    }

    /// Runs `job` on one of the threads and waits for what it gives.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Workspace) -> T + Send + 'static,
    ) -> Result<T, FileError> {
        let (done, result) = oneshot::channel();
        self.give(move |workspace, open| {
            let result = job(workspace);
            drop(open);
            // Nobody may be waiting any more, and then nobody needs the result.
            let _ = done.send(result);
        })?;
        result.await.map_err(|_| FileError::ThreadsEnded)
    }

    /// Runs `job` some time, unless the threads have ended.
    pub(crate) fn run_later(&self, job: impl FnOnce(&Workspace) + Send + 'static) {
        let _ = self.give(|workspace, _open| job(workspace));
    }

    fn give(&self, job: impl FnOnce(&Workspace, Open) + Send + 'static) -> Result<(), FileError> {
        let crew = &self.crew;
        let others = crew.jobs.fetch_add(1, Ordering::Relaxed);
        let open = Open(Arc::clone(crew));
        let threads = crew.threads.load(Ordering::Relaxed);
        if others >= threads && threads < MOST_THREADS {
            // Where it does not come, those that are there do the work.
            let _ = crew.hire(channel().0);
        }
        self.jobs
            .send(Box::new(move |workspace| job(workspace, open)))
            .map_err(|_| FileError::ThreadsEnded)
    }
}

/// A job that waits or is worked on. Gone before anybody hears of its end, so that whoever asks for
/// one after the other needs one thread.
struct Open(Arc<Crew>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.jobs.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Crew {
    /// Starts a thread, which says on `ready` whether it can work.
    fn hire(self: &Arc<Self>, ready: Sender<Result<(), ThreadsError>>) -> Result<(), ThreadsError> {
        let number = self.threads.fetch_add(1, Ordering::Relaxed);
        let crew = Arc::clone(self);
        let started = std::thread::Builder::new()
            .name(format!("files-{number}"))
            .stack_size(STACK_BYTES)
            .spawn(move || match prepare(&crew.workspace, crew.fs_id) {
                Ok(workspace) => {
                    // Only for the first one does anybody wait for this.
                    let _ = ready.send(Ok(()));
                    drop(ready);
                    crew.work(&workspace);
                }
                Err(error) => {
                    crew.threads.fetch_sub(1, Ordering::Relaxed);
                    let _ = ready.send(Err(error));
                }
            });
        match started {
            Ok(_) => Ok(()),
            Err(error) => {
                self.threads.fetch_sub(1, Ordering::Relaxed);
                Err(ThreadsError::Start(error))
            }
        }
    }

    /// Takes one job after the other until all senders are gone.
    fn work(&self, workspace: &Workspace) {
        loop {
            let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            let Ok(job) = queue.recv() else { return };
            drop(queue);
            // A job that panics ends by dropping its result, which its caller sees; the thread goes
            // on. A job shares nothing that it could leave half changed.
            let _ = catch_unwind(AssertUnwindSafe(|| job(workspace)));
        }
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
        // The change has opened the process to others, where the host is set up to debug programs
        // that change ids.
        set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(ThreadsError::Hide)?;
    }
    Workspace::open(workspace).map_err(|cause| ThreadsError::Open {
        path: workspace.into(),
        cause,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use tokio::task::JoinSet;

    use super::*;

    #[tokio::test]
    async fn threads_come_with_the_work_and_no_more_than_there_may_be() {
        let folder = tempfile::tempdir().unwrap();
        let files = FileThreads::start(folder.path(), None, Hiring::WithTheWork).unwrap();
        for _ in 0..10 {
            files.run(|_| ()).await.unwrap();
        }
        // What has been done one after the other has needed one.
        let count = || files.crew.threads.load(Ordering::Relaxed);
        assert_eq!(count(), 1);
        // Each of these waits for the others: they end only when there is a thread for each.
        let all = Arc::new(Barrier::new(MOST_THREADS));
        let mut together = JoinSet::new();
        for _ in 0..MOST_THREADS {
            let (files, all) = (files.clone(), Arc::clone(&all));
            together
                .spawn(async move { files.run(move |_| all.wait().is_leader()).await.unwrap() });
        }
        let led = together.join_all().await;
        assert_eq!(led.into_iter().filter(|led| *led).count(), 1);
        let mut many = JoinSet::new();
        for number in 0..50 {
            let files = files.clone();
            many.spawn(async move { files.run(move |_| number).await.unwrap() });
        }
        let sum: i32 = many.join_all().await.into_iter().sum();
        assert_eq!((sum, count()), ((0..50).sum(), MOST_THREADS));
    }
}
