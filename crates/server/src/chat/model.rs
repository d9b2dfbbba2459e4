//! The client of model endpoints: OpenAI-compatible chat completions, streamed.
//!
//! An endpoint is hostile input like everything else: where it may be is checked after its name
//! was resolved, no redirect is followed, the key goes to its own host only, and every answer is
//! bounded in bytes and time. What compatible servers leave out is put up with. Nothing here knows
//! of threads or sandboxes.

mod address;
mod answer;
mod client;
mod connect;
mod error;
mod fragments;
mod request;
mod retry;
mod sse;
#[cfg(test)]
mod tests;

pub use address::{BaseUrl, InvalidBaseUrl};
pub use answer::{Answer, Finish, Said};
pub use client::ModelClient;
pub use error::{ModelError, Refusal};
pub use request::{ChatMessage, ChatRequest, Tool, ToolCall, ToolUse};

use std::time::Duration;

use zeroize::Zeroizing;

/// One endpoint and the model that is asked for there, ready to be used.
#[derive(Clone)]
pub struct ModelEndpoint {
    /// What asks it.
    pub client: ModelClient,
    /// Where it is.
    pub base_url: BaseUrl,
    /// The model, as the endpoint calls it.
    pub model: String,
    /// How many tokens question and answer may have together.
    pub context_tokens: u32,
    /// How long it may take to connect.
    pub connect_timeout: Duration,
    /// How long nothing may come before an answer is given up.
    pub silence_timeout: Duration,
    /// How long a whole reply may take, code and all.
    pub reply_timeout: Duration,
    /// What proves to the endpoint who asks.
    pub api_key: Option<Zeroizing<String>>,
}

impl std::fmt::Debug for ModelEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelEndpoint")
            .field("base_url", &self.base_url.as_str())
            .field("model", &self.model)
            .field("has_api_key", &self.api_key.is_some())
            .finish_non_exhaustive()
    }
}
