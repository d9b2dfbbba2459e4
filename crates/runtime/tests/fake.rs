//! The fake runtime does what every runtime has to do, and plays the failures asked of it.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::sync::Arc;

use glovebox_protocol::ids::InstallationId;
use glovebox_runtime::conformance::Subject;
use glovebox_runtime::{Capability, FakeRuntime, Fault, Runtime as _, RuntimeError, Start};

fn fake() -> FakeRuntime {
    let python = glovebox_testkit::toolbox_python().unwrap();
    let kernel = glovebox_testkit::repository().join("sandbox/kernel");
    let path = kernel.to_str().unwrap().to_owned();
    let libraries = glovebox_testkit::toolbox_libraries().unwrap();
    let libraries = libraries.to_str().unwrap().to_owned();
    let env = [
        ("PYTHONPATH", path),
        ("LD_LIBRARY_PATH", libraries),
        ("MPLBACKEND", "module://glovebox_backend".into()),
    ];
    FakeRuntime::new(python, env.map(|(k, v)| (k.into(), v)).into())
}

async fn subject() -> Subject {
    let python = glovebox_testkit::toolbox_python().unwrap();
    Subject::new(
        Arc::new(fake()),
        InstallationId::new(),
        python.to_str().unwrap(),
    )
}

glovebox_runtime::conformance_tests!(crate::subject());

#[tokio::test]
async fn a_failure_that_was_asked_for_comes_once_and_leaves_nothing() {
    let fake = Arc::new(fake());
    let subject = Subject::new(fake.clone(), InstallationId::new(), "python3");
    fake.fail_next(Fault::Exhausted);
    fake.fail_next(Fault::Unavailable);
    let spec = subject.spec();
    let create = || fake.create(spec.clone().validate().unwrap());
    let first = create().await;
    assert!(
        matches!(first, Err(RuntimeError::Exhausted(_))),
        "{first:?}"
    );
    let second = create().await;
    assert!(
        matches!(second, Err(RuntimeError::Unavailable { .. })),
        "{second:?}"
    );
    assert!(fake.list().await.unwrap().is_empty());
    assert!(create().await.is_ok());
}

#[tokio::test]
async fn a_start_from_a_template_is_refused_because_there_is_none() {
    let subject = subject().await;
    assert!(!subject.can(Capability::TemplateStart));
    let mut spec = subject.spec();
    spec.start = Start::Template;
    let refused = subject.runtime.create(spec.validate().unwrap()).await;
    assert!(
        matches!(&refused, Err(RuntimeError::Unsupported { what, .. }) if what == "template_start"),
        "{refused:?}"
    );
    assert!(subject.runtime.list().await.unwrap().is_empty());
}
