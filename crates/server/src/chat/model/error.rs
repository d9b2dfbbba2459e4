//! Why a model gave no answer, named plainly.

use std::time::Duration;

use http::StatusCode;
use serde_json::Value;

/// Most characters of what an endpoint says of its failure.
const MAX_SAID: usize = 300;

/// Why a model gave no answer, or no whole one.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The name stands for nothing that may be asked.
    #[error("{host} is {why}, which is never asked")]
    AddressRefused {
        /// The host of the endpoint.
        host: String,
        /// What it is.
        why: &'static str,
    },
    /// The name stands for nothing.
    #[error("the host {host} was not found")]
    Resolve {
        /// The host of the endpoint.
        host: String,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// Nobody listens there, or there is no way.
    #[error("no connection to the model at {place}")]
    Connect {
        /// Host and port.
        place: String,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// It took too long to connect.
    #[error("the model at {place} did not take a connection within {seconds} s")]
    ConnectTimeout {
        /// Host and port.
        place: String,
        /// The limit.
        seconds: u64,
    },
    /// There is somebody, who cannot prove to be the one that is meant.
    #[error("no secure connection to the model at {place}")]
    Tls {
        /// Host and port.
        place: String,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// Nothing came for too long.
    #[error("nothing came from the model for {seconds} s")]
    Silent {
        /// The limit.
        seconds: u64,
    },
    /// It goes on and on.
    #[error("the model's answer took longer than {seconds} s")]
    TooSlow {
        /// The limit.
        seconds: u64,
    },
    /// It is longer than anything that is read.
    #[error("the model's answer is longer than {limit_bytes} bytes")]
    TooLong {
        /// The limit.
        limit_bytes: usize,
    },
    /// It wants more tools at once than makes sense.
    #[error("the model's answer calls more than {limit} tools at once")]
    TooManyCalls {
        /// The limit.
        limit: usize,
    },
    /// The connection broke.
    #[error("the connection to the model broke")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The answer ended before its end.
    #[error("the model's answer was cut off")]
    Cut,
    /// The answer is not of the form that is known.
    #[error("the endpoint answered with {what}")]
    Malformed {
        /// What came instead.
        what: &'static str,
    },
    /// The endpoint said no.
    #[error("{}", .0.message())]
    Refused(Box<Refusal>),
}

/// What an endpoint said instead of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The status; that of a good answer where the failure came within one.
    pub status: StatusCode,
    /// The model that was asked for.
    pub model: String,
    /// What it said, cut and without the key.
    pub said: Option<String>,
    /// How long it asks us to wait.
    pub retry_after: Option<Duration>,
}

impl Refusal {
    /// Whether question and answer do not fit the model.
    #[must_use]
    pub fn is_context(&self) -> bool {
        const WORDS: [&str; 11] = [
            "context length",
            "context_length",
            "context window",
            "context size",
            "maximum context",
            "too many tokens",
            "prompt is too long",
            "input is too long",
            "too large for model",
            "exceeds the available context",
            "reduce the length",
        ];
        let is_about_size = matches!(self.status.as_u16(), 200 | 400 | 413 | 422 | 500);
        is_about_size && self.says(&WORDS)
    }

    fn is_used_up(&self) -> bool {
        self.status == StatusCode::PAYMENT_REQUIRED
            || self.says(&[
                "insufficient_quota",
                "exceeded your current quota",
                "billing",
            ])
    }

    fn says(&self, words: &[&str]) -> bool {
        let said = self.said.as_deref().unwrap_or_default().to_lowercase();
        words.iter().any(|word| said.contains(word))
    }

    fn message(&self) -> String {
        let plain = match self.status.as_u16() {
            _ if self.is_context() => "the conversation is longer than the model can read".into(),
            // Many endpoints repeat a part of the key here, so that their words are left out.
            401 => return "the model's endpoint does not accept the API key".into(),
            _ if self.is_used_up() => "the account at the model's endpoint is used up".into(),
            403 => "the model's endpoint does not allow this".into(),
            404 => format!(
                "the endpoint knows no model `{}`, or its address is another one",
                self.model
            ),
            429 => "the model's endpoint has too many requests just now".into(),
            300..=399 => "the endpoint sends us to another address, which is not followed".into(),
            200..300 => "the model's endpoint broke off with an error".into(),
            500.. => format!(
                "the model's endpoint failed (status {})",
                self.status.as_u16()
            ),
            status => format!("the model's endpoint refused the request (status {status})"),
        };
        match &self.said {
            Some(said) => format!("{plain}: {said}"),
            None => plain,
        }
    }

    fn code(&self) -> &'static str {
        match self.status.as_u16() {
            _ if self.is_context() => "model_context",
            401 => "model_key",
            _ if self.is_used_up() => "model_used_up",
            403 => "model_forbidden",
            404 => "model_not_found",
            429 => "model_busy",
            408 | 500.. => "model_failed",
            200..300 => "model_failed",
            _ => "model_refused",
        }
    }

    fn fix(&self) -> &'static str {
        match self.code() {
            "model_context" => {
                "begin a new thread, or ask a system admin whether the model's context size is set \
                 as the endpoint has it"
            }
            "model_key" => "a system admin enters the key anew at Admin → System → Models",
            "model_used_up" => "whoever pays for the model's endpoint raises its limit",
            "model_not_found" | "model_forbidden" | "model_refused" => {
                "a system admin looks at the model at Admin → System → Models and tests it"
            }
            _ => "try again in a moment",
        }
    }
}

impl ModelError {
    /// A stable word for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Refused(refusal) => refusal.code(),
            Self::AddressRefused { .. } => "model_address",
            Self::Resolve { .. }
            | Self::Connect { .. }
            | Self::ConnectTimeout { .. }
            | Self::Tls { .. } => "model_unreachable",
            Self::Silent { .. } | Self::TooSlow { .. } => "model_silent",
            Self::Broken(_) | Self::Cut => "model_cut",
            Self::TooLong { .. } | Self::TooManyCalls { .. } | Self::Malformed { .. } => {
                "model_malformed"
            }
        }
    }

    /// What went wrong, in a sentence, without what only an administrator understands.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Connect { source, .. } => format!("{self}: {}", plain(source)),
            Self::Tls { source, .. } => format!("{self}: {source}"),
            _ => self.to_string(),
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn fix(&self) -> &'static str {
        match self {
            Self::Refused(refusal) => refusal.fix(),
            Self::AddressRefused { .. } | Self::Resolve { .. } | Self::Tls { .. } => {
                "a system admin looks at the model's address at Admin → System → Models"
            }
            Self::Malformed { .. } => {
                "a system admin looks at the model's address at Admin → System → Models and tests it"
            }
            Self::Connect { .. } | Self::ConnectTimeout { .. } => {
                "try again; when it stays so, a system admin looks whether the model is running"
            }
            Self::Silent { .. } | Self::TooSlow { .. } | Self::Broken(_) | Self::Cut => {
                "try again; what was said so far is kept"
            }
            Self::TooLong { .. } | Self::TooManyCalls { .. } => "ask for less at once",
        }
    }

    /// Whether the conversation does not fit the model.
    #[must_use]
    pub fn is_context(&self) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.is_context())
    }
}

fn plain(error: &std::io::Error) -> String {
    use std::io::ErrorKind as Kind;
    match error.kind() {
        Kind::ConnectionRefused => "nobody listens there".into(),
        Kind::ConnectionReset => "it was closed at once".into(),
        Kind::HostUnreachable | Kind::NetworkUnreachable => "there is no way to it".into(),
        _ => error.to_string(),
    }
}

/// What an endpoint says of its failure, in whatever form: in one line, cut, without the key and
/// without characters that do something on a screen.
pub(super) fn said(body: &[u8], key: Option<&str>) -> Option<String> {
    let value: Value = serde_json::from_slice(body).ok()?;
    said_in(&value, key)
}

/// The same of a document.
pub(super) fn said_in(value: &Value, key: Option<&str>) -> Option<String> {
    // Some put the document into a list.
    let value = value.get(0).unwrap_or(value);
    let error = value.get("error").unwrap_or(value);
    let text = [error.as_str(), text_of(error), text_of(value)]
        .into_iter()
        .flatten()
        .find(|text| !text.trim().is_empty())?;
    let mut text = text.to_owned();
    // Its stable word says more than some sentences do.
    if let Some(word) = error.get("code").and_then(Value::as_str)
        && !text.contains(word)
    {
        text = format!("{text} ({word})");
    }
    if let Some(key) = key.filter(|key| !key.is_empty()) {
        text = text.replace(key, "…");
    }
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut text: String = text.chars().filter(|c| !c.is_control()).collect();
    if let Some((at, _)) = text.char_indices().nth(MAX_SAID) {
        text.truncate(at);
        text.push('…');
    }
    Some(text)
}

fn text_of(value: &Value) -> Option<&str> {
    ["message", "detail", "error_description", "msg"]
        .into_iter()
        .find_map(|name| value.get(name)?.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refusal(status: u16, said: Option<&str>) -> Refusal {
        Refusal {
            status: StatusCode::from_u16(status).unwrap(),
            model: "small-1".into(),
            said: said.map(String::from),
            retry_after: None,
        }
    }

    #[test]
    fn every_refusal_has_a_plain_name() {
        for (status, said, code, part) in [
            (
                401,
                Some("Incorrect API key: sk-ab***yz"),
                "model_key",
                "does not accept the API key",
            ),
            (402, None, "model_used_up", "used up"),
            (
                403,
                Some("region"),
                "model_forbidden",
                "does not allow this: region",
            ),
            (404, None, "model_not_found", "knows no model `small-1`"),
            (429, None, "model_busy", "too many requests"),
            (
                429,
                Some("You exceeded your current quota"),
                "model_used_up",
                "used up",
            ),
            (
                400,
                Some("maximum context length is 8192"),
                "model_context",
                "longer than the model",
            ),
            (
                413,
                Some("prompt is too long"),
                "model_context",
                "longer than the model",
            ),
            (
                400,
                Some("bad field"),
                "model_refused",
                "refused the request (status 400): bad field",
            ),
            (302, None, "model_refused", "not followed"),
            (500, None, "model_failed", "failed (status 500)"),
            (503, Some("overloaded"), "model_failed", "overloaded"),
            (200, Some("overloaded"), "model_failed", "broke off"),
        ] {
            let error = ModelError::Refused(Box::new(refusal(status, said)));
            assert_eq!(error.code(), code, "{status} {said:?}");
            assert!(error.message().contains(part), "{}", error.message());
            assert!(!error.fix().is_empty());
            assert!(!error.message().contains("sk-ab"), "{}", error.message());
        }
    }

    #[test]
    fn what_an_endpoint_says_is_found_in_whatever_form() {
        for (body, expected) in [
            (
                json!({ "error": { "message": "no", "code": "bad" } }),
                "no (bad)",
            ),
            (json!({ "error": "no" }), "no"),
            (json!({ "error": { "message": "no", "code": 404 } }), "no"),
            (json!([{ "error": { "message": "no" } }]), "no"),
            (json!({ "object": "error", "message": "no" }), "no"),
            (json!({ "detail": "no" }), "no"),
            (json!({ "message": "line\n one\u{1b}[31m" }), "line one[31m"),
            (
                json!({ "error": { "message": "the key gbk_x is bad" } }),
                "the key … is bad",
            ),
        ] {
            let found = said(body.to_string().as_bytes(), Some("gbk_x"));
            assert_eq!(found.as_deref(), Some(expected), "{body}");
        }
        assert_eq!(said(b"<html>502</html>", None), None);
        assert_eq!(said(b"{}", None), None);
        let long = json!({ "error": "x".repeat(9_000) }).to_string();
        assert_eq!(said(long.as_bytes(), None).unwrap().chars().count(), 301);
    }
}
