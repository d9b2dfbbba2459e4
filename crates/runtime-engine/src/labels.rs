//! What is written on a container, and all that the next process knows of a sandbox.

use std::collections::HashMap;

use glovebox_protocol::PROTOCOL_VERSION;
use glovebox_protocol::ids::{InstallationId, SandboxId};
use glovebox_protocol::record::Magic;

pub(crate) const INSTALLATION: &str = "glovebox.installation";
const ID: &str = "glovebox.id";
const HARD_DEADLINE: &str = "glovebox.hard_deadline_ms";
/// Of a container and of an image.
pub(crate) const PROTOCOL: &str = "glovebox.protocol";
/// Of an image: the version of the agent in it.
pub(crate) const AGENT: &str = "glovebox.agent";
/// What announces a hello to the agent. Whoever reads labels can attach as well, and do more.
const CHANNEL: &str = "glovebox.channel";

/// One sandbox as its labels tell it.
#[derive(Debug, Clone)]
pub(crate) struct Labels {
    pub(crate) installation: InstallationId,
    pub(crate) id: SandboxId,
    pub(crate) hard_deadline_ms: Option<i64>,
    pub(crate) magic: Magic,
}

impl Labels {
    pub(crate) fn to_map(&self) -> HashMap<String, String> {
        let mut map = HashMap::from([
            (INSTALLATION.into(), self.installation.to_string()),
            (ID.into(), self.id.to_string()),
            (PROTOCOL.into(), PROTOCOL_VERSION.to_string()),
            (CHANNEL.into(), self.magic.to_hex()),
        ]);
        if let Some(deadline) = self.hard_deadline_ms {
            map.insert(HARD_DEADLINE.into(), deadline.to_string());
        }
        map
    }

    /// Reads them again; nothing where one is missing or malformed.
    pub(crate) fn from_map(map: &HashMap<String, String>) -> Option<Self> {
        let deadline = match map.get(HARD_DEADLINE) {
            Some(text) => Some(text.parse().ok()?),
            None => None,
        };
        Some(Self {
            installation: map.get(INSTALLATION)?.parse().ok()?,
            id: map.get(ID)?.parse().ok()?,
            hard_deadline_ms: deadline,
            magic: Magic::from_hex(map.get(CHANNEL)?)?,
        })
    }
}

/// The name of a sandbox's container: an engine takes each name once.
pub(crate) fn container_name(id: SandboxId) -> String {
    format!("glovebox-{id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_down_is_read_again() {
        let labels = Labels {
            installation: InstallationId::new(),
            id: SandboxId::new(),
            hard_deadline_ms: Some(7),
            magic: Magic::new([3; 16]),
        };
        let mut map = labels.to_map();
        let again = Labels::from_map(&map).unwrap();
        assert_eq!(again.to_map(), map);
        map.insert(HARD_DEADLINE.into(), "soon".into());
        assert!(Labels::from_map(&map).is_none());
    }
}
