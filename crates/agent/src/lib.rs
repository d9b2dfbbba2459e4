//! The agent: the process that runs first in a sandbox and obeys only signed requests.
//!
//! It moves files, runs programs and a kernel, and collects what they saved. It makes no
//! sandbox: the place it runs in was sealed before it started, and every workload is sealed once
//! more by the exec helper that it is started through. Everything that workloads say, write or
//! name is hostile input.

mod activity;
mod agent;
mod auth;
mod body;
pub mod boot;
mod claimed;
mod error;
mod files;
mod http;
mod idle;
mod kernel;
mod line;
mod lock;
mod logs;
mod orders;
mod process;
mod rehearsal;
mod reply;
mod routes;
mod shared;
pub mod stdio;
mod sweep;
mod words;

pub use agent::{Agent, Clock, Options, StartError};
pub use files::ThreadsError;
pub use process::Spawner;
pub use words::Words;
