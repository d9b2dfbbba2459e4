//! The runtime of container engines does what every runtime has to do, on real Docker.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::sync::Arc;

use glovebox_runtime::conformance::Subject;
use glovebox_runtime::{Capability, RuntimeError, Start};
use glovebox_runtime_engine::EngineRuntime;

async fn subject() -> Subject {
    let options = support::options();
    let installation = options.installation;
    let cleaner = support::Cleaner(installation);
    let runtime = Arc::new(EngineRuntime::start(options).await.unwrap());
    Subject::new(runtime, installation, support::PYTHON).finished_by(async move || drop(cleaner))
}

glovebox_runtime::conformance_tests!(crate::subject());

#[tokio::test]
async fn what_containers_cannot_do_is_not_claimed_and_refused() {
    let subject = subject().await;
    for lacking in [
        Capability::TemplateStart,
        Capability::SeparateIds,
        Capability::SecondKernel,
        Capability::KeepsWorkspace,
    ] {
        assert!(!subject.can(lacking), "{lacking:?}");
    }
    let mut spec = subject.spec();
    spec.start = Start::Template;
    let refused = subject.runtime.create(spec.validate().unwrap()).await;
    assert!(
        matches!(&refused, Err(RuntimeError::Unsupported { what, .. }) if what == "template_start"),
        "{refused:?}"
    );
}
