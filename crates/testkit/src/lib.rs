//! What tests share: how often to do a thing, where the built programs and the test data are,
//! and how to tell that the host is after a test as it was before.
//!
//! The escape suite is here too, for every runtime, and a model endpoint that plays a script. For tests only; nothing here knows how a
//! sandbox is made.

pub mod escape;
mod gateway;
mod host;
mod model;
mod paths;
mod postgres;

pub use gateway::GatewayRuntime;
pub use host::HostSnapshot;
pub use model::{Call, Play, Rule, Script, ScriptedModel, Seen, Style, When};
pub use paths::{
    cargo_target, program, programs, repository, test_data, toolbox_libraries, toolbox_python,
};
pub use postgres::postgres_database;

/// How often a test does what it does: `ci` times for each change, `soak` times when
/// `GLOVEBOX_SOAK` is set, as `make soak` does.
///
/// ```
/// for _ in 0..glovebox_testkit::count(3, 10_000) {
///     // create, use, destroy
/// }
/// ```
#[must_use]
pub fn count(ci: usize, soak: usize) -> usize {
    if is_soak() { soak } else { ci }
}

/// Whether this is a run with the full counts.
#[must_use]
pub fn is_soak() -> bool {
    paths::variable("GLOVEBOX_SOAK").is_some()
}
