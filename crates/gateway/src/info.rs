//! What a gateway says of itself to those who hold a credential.

use std::time::Duration;

use glovebox_protocol::gateway::{Budget, ImageInfo, Info};
use glovebox_protocol::sign::KeyId;
use tokio::time::timeout;

use crate::state::Shared;

/// How long the runtime may take to tell of its images: a gateway says what it is without it too.
const LOOK_LIMIT: Duration = Duration::from_secs(5);

/// Everything, for a caller that has signed with the credential `yours`.
pub(crate) async fn info(shared: &Shared, yours: KeyId) -> Info {
    let runtime = shared.runtime.describe();
    Info {
        protocol: glovebox_protocol::PROTOCOL_VERSION,
        version: env!("CARGO_PKG_VERSION").into(),
        gateway: shared.rules.gateway,
        installation: shared.rules.installation,
        runtime: runtime.name.into(),
        capabilities: runtime.capabilities,
        images: images(shared).await,
        credentials: shared.credentials(yours),
        agent_keys: shared.rules.agent_keys.iter().map(|key| key.id()).collect(),
        budget: budget(shared).await,
        time_ms: shared.now_ms(),
    }
}

/// The allowed images, as far as they are present.
async fn images(shared: &Shared) -> Vec<ImageInfo> {
    if !shared.runtime.has_images() {
        return Vec::new();
    }
    let allowed: Vec<String> = shared.rules.images.iter().map(Into::into).collect();
    // That the runtime does not answer is told by preflight.
    let looking = timeout(LOOK_LIMIT, shared.runtime.examine(&allowed)).await;
    let mut images = match looking {
        Ok(Ok(examined)) => examined.images,
        Ok(Err(_)) | Err(_) => Vec::new(),
    };
    for name in allowed {
        let is_there = images.iter().any(|image| {
            image.reference == name || image.reference.starts_with(&format!("{name}:"))
        });
        if !is_there {
            images.push(ImageInfo {
                reference: name,
                digest: None,
                protocol: None,
            });
        }
    }
    images
}

async fn budget(shared: &Shared) -> Budget {
    let load = crate::budget::load(shared);
    Budget {
        sandboxes: load.sandboxes,
        max_sandboxes: shared.rules.max_sandboxes,
        memory_bytes: load.memory_bytes,
        max_memory_bytes: shared.rules.max_memory_bytes,
    }
}
