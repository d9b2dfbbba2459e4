//! The embedded runtime does what every runtime has to do.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod support;

use std::sync::Arc;

use glovebox_runtime::conformance::Subject;

async fn subject() -> Subject {
    let (runtime, installation) = support::runtime().await;
    let runtime = Arc::new(runtime);
    let kept = Arc::clone(&runtime);
    Subject::new(runtime, installation, support::PYTHON).finished_by(async move || {
        let runtime = Arc::into_inner(kept).unwrap();
        runtime.shut_down().await.unwrap();
    })
}

glovebox_runtime::conformance_tests!(crate::subject);
