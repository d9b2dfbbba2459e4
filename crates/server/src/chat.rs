//! Chat: what answers a message.
//!
//! [`model`] asks a model endpoint and reads what it says, whatever it is.

pub mod model;
