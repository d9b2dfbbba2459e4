//! What a gateway tells those who run it: one line of JSON for each event, as a rule on the
//! standard error, which a service manager keeps.
//!
//! No secret, no code and no file content is ever told; what comes from a request is a bounded id
//! or an escaped name.

use std::io::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};

/// Where lines go.
#[derive(Clone)]
pub struct Journal(Arc<dyn Fn(&Value) + Send + Sync>);

impl Journal {
    /// Hands every line to a function.
    pub fn new(take: impl Fn(&Value) + Send + Sync + 'static) -> Self {
        Self(Arc::new(take))
    }

    /// The standard error.
    #[must_use]
    pub fn to_standard_error() -> Self {
        Self::new(|line| {
            let mut text = line.to_string();
            text.push('\n');
            // There is nowhere to tell that nothing can be told.
            let _ = std::io::stderr().lock().write_all(text.as_bytes());
        })
    }

    /// Tells that something happened. `facts` is an object.
    pub(crate) fn tell(&self, now_ms: i64, event: &str, facts: Value) {
        let mut line = json!({ "at_ms": now_ms, "event": event });
        if let (Value::Object(line), Value::Object(facts)) = (&mut line, facts) {
            line.extend(facts);
        }
        (self.0)(&line);
    }
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Journal")
    }
}
