//! Templates: processes from which kernels are copied.
//!
//! A template is a Python that has loaded everything a kernel needs and runs nobody's code. The
//! launcher starts it ([`process`]) and gives it orders ([`order`]). It speaks through a dynamic
//! library, which Python loads and which is built from this crate with the feature
//! `template-library`: that copies the process into a box and seals the copy.

#[cfg(feature = "template-library")]
mod copy;
#[cfg(feature = "template-library")]
mod fork;
#[cfg(feature = "template-library")]
mod memory;
pub(crate) mod namespaces;
pub(crate) mod order;
pub(crate) mod process;
#[cfg(feature = "template-library")]
pub(crate) mod serve;
mod start;
