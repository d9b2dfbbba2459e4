//! What is checked of runtimes, checked of sandboxes behind a gateway: over TLS, with every request
//! signed twice. What may be different between runtimes is a capability, or stands in
//! `docs/security/containers.md`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod capabilities;
mod container;
#[path = "../../../runtime-embedded/tests/support/mod.rs"]
mod embedded;
#[path = "../../../runtime-engine/tests/support/mod.rs"]
mod engine;
mod escape;
mod stage;
mod trouble;

mod conformance_on_embedded {
    glovebox_runtime::conformance_tests!(crate::stage::Stage::subject(
        crate::stage::Kind::Embedded
    ));
}

mod conformance_on_docker {
    glovebox_runtime::conformance_tests!(crate::stage::Stage::subject(crate::stage::Kind::Docker));
}
