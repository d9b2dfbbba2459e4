//! The whole machine before a test and after it.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use glovebox_runtime::conformance::Subject;
use glovebox_runtime::{Runtime, Start};
use glovebox_runtime_embedded::EmbeddedRuntime;
use glovebox_testkit::HostSnapshot;

/// Other programs of the machine use some of Linux's own memory too: by this much it may have grown
/// after a test, in KiB. It is a few KiB for each sandbox of the full count.
const LINUX_SLACK_KIB: i64 = 64 * 1024;

/// A runtime of its own, whose kernels are copies of a template.
pub(crate) struct Alone {
    pub(crate) subject: Subject,
    pub(crate) runtime: Arc<EmbeddedRuntime>,
}

/// Runs a test on a runtime of its own, and compares the machine afterwards with what it was.
pub(crate) async fn alone(test: impl AsyncFnOnce(&Alone)) {
    let options = crate::support::options();
    let folders = [options.data.join("layers"), options.run.clone()];
    // What the first launcher on a machine makes for all that follow, it leaves there.
    let first = EmbeddedRuntime::start(options.clone()).await.unwrap();
    first.shut_down().await.unwrap();
    let before = Machine::look(&folders.each_ref().map(std::path::PathBuf::as_path));

    let installation = options.installation;
    let runtime = Arc::new(EmbeddedRuntime::start(options).await.unwrap());
    let driven: Arc<dyn Runtime> = Arc::<EmbeddedRuntime>::clone(&runtime);
    let subject =
        Subject::new(driven, installation, crate::support::PYTHON).starting(Start::Template);
    let alone = Alone { subject, runtime };
    test(&alone).await;
    let Alone { subject, runtime } = alone;
    subject.finish().await;
    Arc::into_inner(runtime).unwrap().shut_down().await.unwrap();

    before
        .assert_unchanged(&folders.each_ref().map(std::path::PathBuf::as_path))
        .await;
}

/// What a sandbox could leave behind.
pub(crate) struct Machine {
    host: HostSnapshot,
    linux_kib: i64,
}

impl Machine {
    pub(crate) fn look(folders: &[&Path]) -> Self {
        Self {
            host: HostSnapshot::take(folders).unwrap(),
            linux_kib: linux_kib(),
        }
    }

    /// Fails if something is left, or Linux does not give back its memory in a while: it frees
    /// some objects only later.
    pub(crate) async fn assert_unchanged(&self, folders: &[&Path]) {
        let after = Self::look(folders);
        assert_eq!(self.host.changes_until(&after.host), Vec::<String>::new());
        let patience = Instant::now() + Duration::from_secs(60);
        let mut look = tokio::time::interval(Duration::from_millis(200));
        loop {
            look.tick().await;
            let grown = linux_kib() - self.linux_kib;
            if grown < LINUX_SLACK_KIB {
                return;
            }
            assert!(
                Instant::now() < patience,
                "Linux keeps {grown} KiB more than before"
            );
        }
    }
}

/// What Linux holds itself and cannot give back: its objects, and what it keeps for each
/// processor. What it holds for each process goes with the process.
fn linux_kib() -> i64 {
    let text = fs_err::read_to_string("/proc/meminfo").unwrap();
    text.lines()
        .filter(|line| line.starts_with("SUnreclaim:") || line.starts_with("Percpu:"))
        .filter_map(|line| line.split_whitespace().nth(1)?.parse::<i64>().ok())
        .sum()
}
