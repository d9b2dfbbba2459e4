//! The expectations of the batch, a file for each group of checks.

mod files;
mod kernel;
mod network;
mod resources;
mod secrets;

use super::expect::Expectation;

/// All that the batch has to see, or what of it belongs to some checks.
pub(crate) fn of_checks(only: &[&str]) -> Vec<&'static Expectation> {
    let groups: [&'static [Expectation]; 5] = [
        kernel::EXPECTED,
        files::EXPECTED,
        network::EXPECTED,
        resources::EXPECTED,
        secrets::EXPECTED,
    ];
    groups
        .into_iter()
        .flatten()
        .filter(|expectation| !expectation.id.starts_with("walk/"))
        .filter(|expectation| only.is_empty() || only.contains(&expectation.check()))
        .collect()
}

/// What the probes have to see that walk the whole tree.
pub(crate) fn of_walks() -> Vec<&'static Expectation> {
    files::EXPECTED
        .iter()
        .filter(|expectation| expectation.id.starts_with("walk/"))
        .collect()
}
