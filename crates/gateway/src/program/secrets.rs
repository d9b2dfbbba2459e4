//! Following the file of credentials: a new one takes effect while the gateway runs.

use std::time::Duration;

use serde_json::json;
use tokio::signal::unix::Signal;

use crate::config::{CredentialSource, Stamp};
use crate::error::chain;
use crate::{Gateway, Journal, system_clock};

/// How often the file is looked at.
const EVERY: Duration = Duration::from_secs(1);

/// Loads the credentials anew whenever the file is another than `stamp` says, or SIGHUP comes. A file that cannot be
/// used changes nothing, and is told once.
pub(super) async fn follow(
    (source, mut stamp): (&CredentialSource, Option<Stamp>),
    mut hangup: Signal,
    gateway: &Gateway,
    journal: &Journal,
) {
    let mut tick = tokio::time::interval(EVERY);
    loop {
        let is_told = tokio::select! {
            _ = tick.tick() => false,
            Some(()) = hangup.recv() => true,
        };
        let present = source.stamp();
        if present == stamp && !is_told {
            continue;
        }
        stamp = present;
        let now_ms = (system_clock())();
        match source.load() {
            Ok(credentials) => {
                let ids: Vec<_> = credentials.0.iter().map(|one| one.id()).collect();
                gateway.set_credentials(credentials);
                journal.tell(now_ms, "credentials_loaded", json!({ "credentials": ids }));
            }
            Err(error) => {
                let message = chain("loading the credentials anew; the old ones stay", &error);
                let facts = json!({ "message": message });
                journal.tell(now_ms, "credentials_not_loaded", facts);
            }
        }
    }
}
