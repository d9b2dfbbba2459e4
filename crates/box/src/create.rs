//! Making one box: the order of its steps, on both sides of the clone.
//!
//! [`parent`] works in the pod, [`child`] in the box that is coming into being. What the child
//! does in each step stands in [`mounts`], [`counts`], [`privileges`] and [`descriptors`].

pub(crate) mod child;
pub(crate) mod counts;
pub(crate) mod descriptors;
pub(crate) mod explain;
pub(crate) mod mounts;
pub(crate) mod parent;
pub(crate) mod preparation;
pub(crate) mod privileges;
pub(crate) mod process;
pub(crate) mod remains;
pub(crate) mod report;
pub(crate) mod stages;
pub(crate) mod step;
