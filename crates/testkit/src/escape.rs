//! The escape suite: attacks from inside a sandbox, the same on every runtime.
//!
//! Probes (Python, in `probes/`) run inside and say what they saw; what they have to see is
//! written down here. Each probe that has to fail has a control: outside, or beside it, the same
//! thing succeeds, so that a missing tool cannot pass for a protection.
//!
//! Nothing here decides whether a test passes: every check returns what it found wrong, so that
//! the mutation run can demand that something is found.

pub mod attacks;
pub mod batch;
pub mod checks;
pub mod containers;
pub mod control;
pub mod expect;
mod expectations;
pub mod lab;
pub mod outside;
pub mod posture;
mod replay;
pub mod report;
mod run;
pub mod siblings;
pub mod template;

pub use lab::{Lab, Subject};
pub use report::{Red, Report};
pub use run::{Ran, Running};

/// The probes, as name below `probes/` and text.
pub const PROBES: [(&str, &str); 17] = [
    ("copies.py", include_str!("../probes/copies.py")),
    ("hostile.py", include_str!("../probes/hostile.py")),
    (
        "hostile_attack.py",
        include_str!("../probes/hostile_attack.py"),
    ),
    (
        "hostile_files.py",
        include_str!("../probes/hostile_files.py"),
    ),
    (
        "hostile_memory.py",
        include_str!("../probes/hostile_memory.py"),
    ),
    ("probe_batch.py", include_str!("../probes/probe_batch.py")),
    (
        "probe_control.py",
        include_str!("../probes/probe_control.py"),
    ),
    ("probe_files.py", include_str!("../probes/probe_files.py")),
    ("probe_kernel.py", include_str!("../probes/probe_kernel.py")),
    (
        "probe_network.py",
        include_str!("../probes/probe_network.py"),
    ),
    (
        "probe_posture.py",
        include_str!("../probes/probe_posture.py"),
    ),
    ("probe_raw.py", include_str!("../probes/probe_raw.py")),
    ("probe_report.py", include_str!("../probes/probe_report.py")),
    (
        "probe_resources.py",
        include_str!("../probes/probe_resources.py"),
    ),
    (
        "probe_secrets.py",
        include_str!("../probes/probe_secrets.py"),
    ),
    ("probe_views.py", include_str!("../probes/probe_views.py")),
    ("sibling.py", include_str!("../probes/sibling.py")),
];
