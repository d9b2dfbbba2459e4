//! A model endpoint that plays a script: real HTTP on loopback, OpenAI-compatible, with whole
//! conversations and with all that goes wrong with endpoints. What it was asked is kept.
//!
//! Which answer it plays depends on the question alone, so that many conversations may be played
//! at once.

mod play;
mod script;
mod wire;

pub use script::{Call, Play, Rule, Script, Style, When};

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use serde::Serialize;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// An endpoint that answers. Dropped it answers no more.
#[derive(Debug)]
pub struct ScriptedModel {
    address: SocketAddr,
    stage: Arc<Stage>,
    serving: AbortHandle,
}

/// One request that came.
#[derive(Debug, Clone, Serialize)]
pub struct Seen {
    /// Its method.
    pub method: String,
    /// Its path with query.
    pub path: String,
    /// Its headers, by their names in lower case.
    pub headers: BTreeMap<String, String>,
    /// Its body; null where it had none.
    pub body: Value,
    /// Whether whoever asked has gone before the answer was at its end.
    pub is_dropped: bool,
}

/// What connections share.
#[derive(Debug)]
struct Stage {
    script: Script,
    /// How often each rule was played.
    played: Mutex<Vec<usize>>,
    seen: watch::Sender<Vec<Seen>>,
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl ScriptedModel {
    /// Begins to play a script at a port of its own.
    ///
    /// # Errors
    /// When there is no port.
    pub async fn start(script: Script) -> Result<Self> {
        Self::listen(script, ([127, 0, 0, 1], 0).into()).await
    }

    /// The same, of a script as it stands in a file.
    ///
    /// # Errors
    /// When it is no script, or there is no port.
    pub async fn play(script: Value) -> Result<Self> {
        Self::start(serde_json::from_value(script).context("reading the script")?).await
    }

    /// The same at this address.
    ///
    /// # Errors
    /// When it is taken.
    pub async fn listen(script: Script, address: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind(address).await;
        let listener = listener.with_context(|| format!("listening at {address}"))?;
        let address = listener.local_addr()?;
        let stage = Arc::new(Stage {
            played: Mutex::new(vec![0; script.rules.len()]),
            script,
            seen: watch::Sender::new(Vec::new()),
        });
        let shared = Arc::clone(&stage);
        let serving = tokio::spawn(async move {
            // Connections end with the endpoint.
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let stage = Arc::clone(&shared);
                connections.spawn(async move { play::serve(stream, &stage).await });
                while connections.try_join_next().is_some() {}
            }
        });
        Ok(Self {
            address,
            stage,
            serving: serving.abort_handle(),
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What a system admin enters as its address.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// What was asked so far, in order.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        self.stage.seen.borrow().clone()
    }

    /// What was asked for chat so far: the bodies, in order.
    #[must_use]
    pub fn questions(&self) -> Vec<Value> {
        let chat = |seen: &Seen| seen.path.ends_with("/chat/completions");
        let seen = self.stage.seen.borrow();
        seen.iter()
            .filter(|seen| chat(seen))
            .map(|seen| seen.body.clone())
            .collect()
    }

    /// Waits until what was asked is as it has to be.
    pub async fn until(&self, is_so: impl FnMut(&Vec<Seen>) -> bool) {
        // The sender lives as long as this.
        let _ = self.stage.seen.subscribe().wait_for(is_so).await;
    }
}

impl Stage {
    /// Keeps a request and gives its number.
    fn note(&self, seen: Seen) -> usize {
        let mut number = 0;
        self.seen.send_modify(|all| {
            number = all.len();
            all.push(seen);
        });
        number
    }

    fn note_dropped(&self, number: usize) {
        self.seen.send_modify(|all| {
            if let Some(seen) = all.get_mut(number) {
                seen.is_dropped = true;
            }
        });
    }

    /// The first rule that fits a question and is not used up.
    fn rule(&self, question: &Value) -> Option<&Rule> {
        let mut played = self.played.lock().unwrap_or_else(PoisonError::into_inner);
        let rules = self.script.rules.iter().zip(played.iter_mut());
        for (rule, count) in rules {
            if rule.times.is_none_or(|times| *count < times) && rule.when.fits(question) {
                *count += 1;
                return Some(rule);
            }
        }
        None
    }
}
