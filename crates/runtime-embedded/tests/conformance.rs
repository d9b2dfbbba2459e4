//! The embedded runtime does what every runtime has to do.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod support;

use std::sync::Arc;

use glovebox_protocol::artifact::{LeftOutReason, Sweep};
use glovebox_runtime::conformance::Subject;
use glovebox_runtime::{Capability, Start};
use glovebox_runtime_embedded::EmbeddedRuntime;

async fn subject(start: Start) -> Subject {
    let options = support::options();
    let installation = options.installation;
    let runtime = Arc::new(EmbeddedRuntime::start(options).await.unwrap());
    let kept = Arc::clone(&runtime);
    Subject::new(runtime, installation, support::PYTHON)
        .finished_by(async move || {
            let runtime = Arc::into_inner(kept).unwrap();
            runtime.shut_down().await.unwrap();
        })
        .starting(start)
}

mod fresh {
    glovebox_runtime::conformance_tests!(crate::subject(glovebox_runtime::Start::Fresh));
}

mod template {
    glovebox_runtime::conformance_tests!(crate::subject(glovebox_runtime::Start::Template));
}

#[tokio::test]
async fn both_ways_of_starting_a_kernel_are_claimed() {
    let subject = subject(Start::Template).await;
    assert!(subject.can(Capability::TemplateStart));
    subject.finish().await;
}

/// Beyond what runtimes have to do alike: here the agent sees files with the workload's rights.
#[tokio::test]
async fn results_behind_closed_folders_are_collected_or_named() {
    let subject = subject(Start::Fresh).await;
    let guest = subject.create().await;
    guest
        .python(
            "import os\n\
             open('here.txt','w').write('x')\n\
             os.mkdir('closed'); open('closed/in.txt','w').write('x')\n\
             os.chmod('closed', 0); os.chmod('.', 0)",
        )
        .await;
    let swept = guest.client.sweep(&Sweep::default()).await.unwrap();
    let collected: Vec<_> = swept.artifacts.iter().map(|a| a.name.to_string()).collect();
    assert_eq!(collected, ["here.txt"]);
    let left: Vec<_> = swept
        .left_out
        .iter()
        .map(|l| (l.name.to_string(), l.reason))
        .collect();
    assert_eq!(left, [("closed".into(), LeftOutReason::Unreadable)]);
    guest.remove().await;
    subject.finish().await;
}
