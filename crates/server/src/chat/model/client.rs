//! Asks endpoints.

use std::time::Duration;

use bytes::Bytes;
use chrono::Utc;
use glovebox_client::Channel;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::Value;
use tokio::time::{Instant, sleep_until, timeout};

use super::ModelEndpoint;
use super::answer::{Answer, Begun, broken};
use super::connect::{Believed, connect};
use super::error::{ModelError, Refusal, said};
use super::request::ChatRequest;
use super::retry::{pause, retry_after};

/// Room for reading and writing on one connection, in bytes.
const ROOM: usize = 64 * 1024;

/// Most bytes of an answer that says no, and of a list of models.
const MAX_ASIDE: u64 = 1024 * 1024;

/// Most models of a list that are of interest.
const MAX_MODELS: usize = 500;

/// Asks model endpoints. Clones share what is known of certificates.
#[derive(Debug, Clone, Default)]
pub struct ModelClient {
    believed: Believed,
}

impl ModelClient {
    /// A client that nobody but who is certified by these can answer.
    #[cfg(test)]
    pub(super) fn believing(roots: rustls::RootCertStore) -> Self {
        Self {
            believed: Believed::by(roots),
        }
    }

    /// Asks a question; more than once where it helps and nothing has come yet.
    ///
    /// # Errors
    /// When there is no answer, with the reason of the last attempt.
    pub async fn ask(
        &self,
        endpoint: &ModelEndpoint,
        request: &ChatRequest<'_>,
    ) -> Result<Answer, ModelError> {
        let mut attempt = 1;
        loop {
            let error = match self.ask_once(endpoint, request).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let Some(pause) = pause(&error, attempt, jitter()) else {
                return Err(error);
            };
            tracing::info!(
                code = error.code(),
                attempt,
                pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX),
                "a model gave no answer and is asked again"
            );
            sleep_until(Instant::now() + pause).await;
            attempt += 1;
        }
    }

    /// Asks a question once.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn ask_once(
        &self,
        endpoint: &ModelEndpoint,
        request: &ChatRequest<'_>,
    ) -> Result<Answer, ModelError> {
        let body = request.body(&endpoint.model).to_string();
        let call = Call {
            method: Method::POST,
            call: "/chat/completions",
            accept: "text/event-stream, application/json",
            body: body.into(),
        };
        let (response, channel) = self.send(endpoint, call).await?;
        let kind = response.headers().get(CONTENT_TYPE);
        let is_stream = kind
            .and_then(|kind| kind.to_str().ok())
            .is_some_and(|kind| kind.starts_with("text/event-stream"));
        Answer::begin(Begun {
            channel,
            body: response.into_body(),
            is_stream,
            silence: endpoint.silence_timeout,
            model: endpoint.model.clone(),
            key: endpoint.api_key.clone(),
        })
        .await
    }

    /// The names of the models that an endpoint has; nothing where it does not list them.
    ///
    /// # Errors
    /// When there is no answer, or it does not take the key.
    pub async fn models(
        &self,
        endpoint: &ModelEndpoint,
    ) -> Result<Option<Vec<String>>, ModelError> {
        let call = Call {
            method: Method::GET,
            call: "/models",
            accept: "application/json",
            body: Bytes::new(),
        };
        let (response, mut channel) = match self.send(endpoint, call).await {
            Ok(sent) => sent,
            // It has no such list.
            Err(ModelError::Refused(refusal))
                if matches!(refusal.status.as_u16(), 400 | 404 | 405 | 501) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let mut body = response.into_body();
        let whole = timeout(
            endpoint.silence_timeout,
            channel.whole(&mut body, MAX_ASIDE),
        );
        let whole = whole.await.map_err(|_| silent(endpoint.silence_timeout))?;
        let whole = whole.map_err(broken)?;
        Ok(serde_json::from_slice(&whole).ok().as_ref().and_then(names))
    }

    /// Connects and says no word.
    ///
    /// # Errors
    /// When nobody takes the connection.
    pub async fn try_connect(&self, endpoint: &ModelEndpoint) -> Result<(), ModelError> {
        let patience = endpoint.connect_timeout;
        connect(&endpoint.base_url, patience, &self.believed)
            .await
            .map(drop)
    }

    /// Sends a call and waits for the head of a good answer.
    async fn send(
        &self,
        endpoint: &ModelEndpoint,
        call: Call,
    ) -> Result<(Response<Incoming>, Channel<Full<Bytes>>), ModelError> {
        let request = call.request(endpoint)?;
        let patience = endpoint.connect_timeout;
        let stream = connect(&endpoint.base_url, patience, &self.believed).await?;
        let broke = |error: hyper::Error| ModelError::Broken(Box::new(error));
        let mut channel = Channel::open(stream, ROOM).await.map_err(broke)?;
        let silence = endpoint.silence_timeout;
        let sent = timeout(silence, channel.send(request)).await;
        let response = sent
            .map_err(|_| silent(silence))?
            .map_err(|failed| broke(failed.into_error()))?;
        if response.status() == StatusCode::OK {
            return Ok((response, channel));
        }
        Err(refused(endpoint, response, channel).await)
    }
}

/// One call of an endpoint.
struct Call {
    method: Method,
    call: &'static str,
    accept: &'static str,
    body: Bytes,
}

impl Call {
    fn request(self, endpoint: &ModelEndpoint) -> Result<Request<Full<Bytes>>, ModelError> {
        let unusable = || ModelError::Malformed {
            what: "no way to ask: its key or address has characters that cannot be sent",
        };
        let mut headers = HeaderMap::new();
        let host = HeaderValue::from_str(&endpoint.base_url.place()).map_err(|_| unusable())?;
        headers.insert(HOST, host);
        headers.insert(ACCEPT, HeaderValue::from_static(self.accept));
        headers.insert(USER_AGENT, HeaderValue::from_static("glovebox"));
        if !self.body.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(key) = &endpoint.api_key {
            let text = zeroize::Zeroizing::new(format!("Bearer {}", key.as_str()));
            let mut value = HeaderValue::from_str(&text).map_err(|_| unusable())?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let mut request = Request::builder()
            .method(self.method)
            .uri(endpoint.base_url.target(self.call))
            .body(Full::new(self.body))
            .map_err(|_| unusable())?;
        *request.headers_mut() = headers;
        Ok(request)
    }
}

/// What an endpoint says instead of an answer.
async fn refused(
    endpoint: &ModelEndpoint,
    response: Response<Incoming>,
    mut channel: Channel<Full<Bytes>>,
) -> ModelError {
    let (head, mut body) = response.into_parts();
    let whole = timeout(
        endpoint.connect_timeout,
        channel.whole(&mut body, MAX_ASIDE),
    );
    // That it says no is what counts; its words are an addition.
    let whole = whole.await.ok().and_then(Result::ok).unwrap_or_default();
    let key = endpoint.api_key.as_ref().map(|key| key.as_str());
    ModelError::Refused(Box::new(Refusal {
        status: head.status,
        model: endpoint.model.clone(),
        said: said(&whole, key),
        retry_after: retry_after(&head.headers, Utc::now()),
    }))
}

/// The names in a list of models, in each form that there is.
fn names(document: &Value) -> Option<Vec<String>> {
    let list = [document.get("data"), document.get("models"), Some(document)]
        .into_iter()
        .flatten()
        .find_map(Value::as_array)?;
    let name = |model: &Value| {
        let name = model.get("id").or_else(|| model.get("name"));
        Some(name.unwrap_or(model).as_str()?.chars().take(200).collect())
    };
    Some(list.iter().filter_map(name).take(MAX_MODELS).collect())
}

fn silent(limit: Duration) -> ModelError {
    ModelError::Silent {
        seconds: limit.as_secs(),
    }
}

fn jitter() -> u8 {
    let mut byte = [0];
    // Without randomness pauses are equal, which is no harm.
    let _ = SystemRandom::new().fill(&mut byte);
    byte[0]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_of_models_is_read_in_each_form() {
        for list in [
            json!({ "object": "list", "data": [{ "id": "a" }, { "id": "b" }, { "x": 1 }] }),
            json!({ "models": [{ "name": "a" }, { "name": "b" }] }),
            json!([{ "id": "a" }, "b"]),
        ] {
            assert_eq!(names(&list).unwrap(), ["a", "b"], "{list}");
        }
        assert_eq!(names(&json!({ "error": 1 })), None);
    }
}
