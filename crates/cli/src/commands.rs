//! One file for each thing that `glovebox` can do.

pub(crate) mod doctor;
pub(crate) mod gateway;
pub(crate) mod keys;
pub(crate) mod run;
pub(crate) mod setup;
pub(crate) mod version;
