//! The server: who may run code, on what; its API and its worker.
//!
//! `http/` has the routes, `app/` the use cases, `worker` what happens in the background,
//! [`program`] puts them together. Nothing here reads the environment or the command line.

pub mod app;
mod auth;
pub mod chat;
pub mod config;
mod failure;
mod gateway;
pub mod http;
mod leftovers;
mod lock;
mod metrics;
pub mod program;
pub mod reset;
pub mod secrets;
mod serving;
mod tls;
mod worker;

pub use auth::PasswordError;
pub use config::{
    Config, GatewayProgram, InvalidSetting, LostLines, MachineRuntime, PublicUrl, StreamLimits,
};
pub use tls::{TlsError, TlsFiles};
pub use worker::{Queue, UnknownQueue};
