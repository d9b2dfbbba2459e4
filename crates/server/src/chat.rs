//! Chat: what answers a message.
//!
//! [`turn`] is what a reply can do, and its only way to a thread, its sandbox and its files.

pub(crate) mod turn;
