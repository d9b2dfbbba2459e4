//! The test of a model: from its address to a call of a tool, step by step.

use std::time::Duration;

use glovebox_protocol::gateway::CheckStatus;
use glovebox_protocol::ids::ModelId;
use glovebox_store::Actor;
use serde_json::json;
use tokio::time::Instant;

use super::App;
use super::models::{ModelAdminError, entry};
use crate::chat::model::{
    ChatMessage, ChatRequest, ModelEndpoint, ModelError, Said, Tool, ToolUse,
};

/// How long somebody who waits at a button waits for one answer at most.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a test of a model has found.
#[derive(Debug, Clone)]
pub struct ModelTest {
    /// Its steps, in order; those after a failure are not there.
    pub steps: Vec<TestStep>,
    /// The models that the endpoint has; nothing where it does not list them.
    pub models: Option<Vec<String>>,
    /// Milliseconds until the first word of an answer.
    pub latency_ms: Option<u64>,
}

/// One step of a test.
#[derive(Debug, Clone)]
pub struct TestStep {
    /// A stable word for it.
    pub id: &'static str,
    /// What it is about.
    pub title: &'static str,
    /// What came of it.
    pub status: CheckStatus,
    /// What was seen.
    pub message: String,
    /// What to do, where something is to be done.
    pub fix: Option<String>,
}

impl ModelTest {
    /// Whether chat can work with the model.
    #[must_use]
    pub fn is_passed(&self) -> bool {
        let is_failed = |step: &TestStep| step.status == CheckStatus::Fail;
        !self.steps.is_empty() && !self.steps.iter().any(is_failed)
    }
}

impl App {
    /// Asks a model as chat would. That something does not work is a result.
    ///
    /// # Errors
    /// When there is no such model, or its key cannot be opened.
    pub async fn test_model(
        &self,
        actor: &Actor,
        id: ModelId,
    ) -> Result<ModelTest, ModelAdminError> {
        let found = self.store().model(id).await?;
        let model = found.ok_or(ModelAdminError::NotFound)?;
        let mut endpoint = self.endpoint(&model).await?;
        endpoint.silence_timeout = endpoint.silence_timeout.min(PATIENCE);
        let test = Looking::new(&endpoint).look().await;
        let mut changes = self.store().begin().await?;
        let entry = entry("model.test", id, &model.settings.name, &[]);
        changes.record(actor, entry).await?;
        changes.commit().await?;
        Ok(test)
    }
}

/// A test on its way.
struct Looking<'a> {
    endpoint: &'a ModelEndpoint,
    seen: ModelTest,
}

/// A step has failed: those after it make no sense.
struct Failed;

impl<'a> Looking<'a> {
    fn new(endpoint: &'a ModelEndpoint) -> Self {
        Self {
            endpoint,
            seen: ModelTest {
                steps: Vec::new(),
                models: None,
                latency_ms: None,
            },
        }
    }

    async fn look(mut self) -> ModelTest {
        // What stopped it stands in its steps.
        let _ = self.steps().await;
        self.seen
    }

    async fn steps(&mut self) -> Result<(), Failed> {
        self.address().await?;
        self.connection().await?;
        self.key().await?;
        self.answer().await?;
        self.tool_call().await
    }

    fn step(
        &mut self,
        (id, title): (&'static str, &'static str),
        status: CheckStatus,
        message: impl Into<String>,
        fix: Option<&str>,
    ) {
        self.seen.steps.push(TestStep {
            id,
            title,
            status,
            message: message.into(),
            fix: fix.map(String::from),
        });
    }

    fn pass(&mut self, step: (&'static str, &'static str), message: impl Into<String>) {
        self.step(step, CheckStatus::Pass, message, None);
    }

    fn fail(&mut self, step: (&'static str, &'static str), error: &ModelError) -> Failed {
        self.step(step, CheckStatus::Fail, error.message(), Some(error.fix()));
        Failed
    }

    async fn address(&mut self) -> Result<(), Failed> {
        let step = ("address", "Address");
        let base_url = &self.endpoint.base_url;
        let patience = self.endpoint.connect_timeout;
        let found = tokio::time::timeout(patience, base_url.resolve()).await;
        let found = found.unwrap_or_else(|_| {
            Err(ModelError::ConnectTimeout {
                place: base_url.place(),
                seconds: patience.as_secs(),
            })
        });
        let addresses = match found {
            Ok(addresses) => addresses,
            Err(error) => return Err(self.fail(step, &error)),
        };
        let list: Vec<_> = addresses.iter().map(|one| one.ip().to_string()).collect();
        let message = format!("{} is {}", base_url.host(), list.join(", "));
        let is_near = addresses.iter().all(|one| is_near(one.ip()));
        if base_url.is_encrypted() || is_near {
            self.pass(step, message);
        } else {
            self.step(
                step,
                CheckStatus::Warn,
                format!("{message}, and what is sent there travels readable"),
                Some("use an https:// address"),
            );
        }
        Ok(())
    }

    async fn connection(&mut self) -> Result<(), Failed> {
        let step = ("connection", "Connection");
        let begun = Instant::now();
        if let Err(error) = self.endpoint.client.try_connect(self.endpoint).await {
            return Err(self.fail(step, &error));
        }
        let how = if self.endpoint.base_url.is_encrypted() {
            "secure connection"
        } else {
            "connection"
        };
        let place = self.endpoint.base_url.place();
        self.pass(step, format!("{how} to {place} in {} ms", ms(begun)));
        Ok(())
    }

    /// Asks for the list of models, which needs the key and costs nothing.
    async fn key(&mut self) -> Result<(), Failed> {
        let step = ("key", "API key");
        match self.endpoint.client.models(self.endpoint).await {
            Ok(models) => {
                let message = match (&self.endpoint.api_key, &models) {
                    (_, None) => "the endpoint does not list its models; the key is tried next",
                    (Some(_), Some(_)) => "the endpoint takes the key",
                    (None, Some(_)) => "the endpoint wants no key",
                };
                self.seen.models = models;
                self.pass(step, message);
                Ok(())
            }
            Err(error) => {
                let is_bare = self.endpoint.api_key.is_none() && error.code() == "model_key";
                if !is_bare {
                    return Err(self.fail(step, &error));
                }
                self.step(
                    step,
                    CheckStatus::Fail,
                    "the endpoint wants an API key",
                    Some("enter the key that its provider has given"),
                );
                Err(Failed)
            }
        }
    }

    async fn answer(&mut self) -> Result<(), Failed> {
        let (step, streams) = (("model", "Model"), ("stream", "Streaming"));
        let messages = [ChatMessage::User {
            text: "Reply with the word: ready".into(),
        }];
        let begun = Instant::now();
        let request = ChatRequest {
            messages: &messages,
            tools: &[],
            tool_use: ToolUse::Free,
        };
        let (said, is_stream) = match self.ask(&request, begun).await {
            Ok(answered) => answered,
            Err(error) => {
                let is_unknown = error.code() == "model_not_found";
                let failed = self.fail(step, &error);
                if is_unknown && let Some(last) = self.seen.steps.last_mut() {
                    last.fix = Some(self.seen.models.as_ref().map_or_else(
                        || "look at the model's name and at the base URL".into(),
                        |models| format!("choose one that it has: {}", first_few(models)),
                    ));
                }
                return Err(failed);
            }
        };
        let model = &self.endpoint.model;
        if said.text.trim().is_empty() {
            self.step(
                step,
                CheckStatus::Warn,
                format!("`{model}` answers, with nothing that can be read"),
                Some("look whether the endpoint keeps the answer for itself, as thinking"),
            );
        } else {
            self.pass(step, format!("`{model}` answers"));
        }
        if is_stream {
            self.pass(streams, "answers come as they are made");
        } else {
            self.step(
                streams,
                CheckStatus::Warn,
                "answers come in one piece, at their end",
                Some("switch streaming on at the endpoint, so that people see replies grow"),
            );
        }
        Ok(())
    }

    async fn tool_call(&mut self) -> Result<(), Failed> {
        let step = ("tool_call", "Tool call");
        let messages = [ChatMessage::User {
            text: "Call the tool `report` with the word: ready".into(),
        }];
        let tools = [Tool {
            name: "report",
            description: "Reports a word.",
            parameters: json!({
                "type": "object",
                "properties": { "word": { "type": "string", "description": "The word." } },
                "required": ["word"],
                "additionalProperties": false
            }),
        }];
        let request = ChatRequest {
            messages: &messages,
            tools: &tools,
            tool_use: ToolUse::Free,
        };
        let said = match self.ask(&request, Instant::now()).await {
            Ok((said, _)) => said,
            Err(error) => return Err(self.fail(step, &error)),
        };
        let is_good = said.calls.iter().any(|call| {
            let arguments = serde_json::from_str::<serde_json::Value>(&call.arguments);
            call.name == "report" && arguments.is_ok_and(|given| given["word"].is_string())
        });
        if is_good {
            self.pass(step, "the model calls a tool when it is asked to");
            return Ok(());
        }
        self.step(
            step,
            CheckStatus::Fail,
            "the model called no tool when it was asked to, so that chat could not run code",
            Some("choose a model that calls tools, and switch that on at the endpoint"),
        );
        Err(Failed)
    }

    /// Asks once and reads all of the answer; with it, whether it came as a stream.
    async fn ask(
        &mut self,
        request: &ChatRequest<'_>,
        begun: Instant,
    ) -> Result<(Said, bool), ModelError> {
        let mut answer = self
            .endpoint
            .client
            .ask_once(self.endpoint, request)
            .await?;
        let late = || ModelError::TooSlow {
            seconds: PATIENCE.as_secs(),
        };
        let reading = async {
            while answer.next().await?.is_some() {
                self.seen.latency_ms.get_or_insert_with(|| ms(begun));
            }
            Ok::<_, ModelError>(())
        };
        tokio::time::timeout(PATIENCE, reading)
            .await
            .map_err(|_| late())??;
        self.seen.latency_ms.get_or_insert_with(|| ms(begun));
        let is_stream = answer.is_stream();
        Ok((answer.said(), is_stream))
    }
}

fn ms(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)
}

fn first_few(models: &[String]) -> String {
    let mut list = models.iter().take(10).cloned().collect::<Vec<_>>();
    if models.len() > list.len() {
        list.push("…".into());
    }
    list.join(", ")
}

/// Whether an address is on this machine or the own network.
fn is_near(address: std::net::IpAddr) -> bool {
    match address {
        std::net::IpAddr::V4(address) => address.is_loopback() || address.is_private(),
        std::net::IpAddr::V6(address) => address.is_loopback() || address.is_unique_local(),
    }
}
