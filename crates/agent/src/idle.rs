//! What happens in a sandbox that nobody uses: what runs is ended, the workspace stays.

use std::sync::Weak;
use std::time::Duration;

use crate::shared::Shared;

/// Ends the kernel, and with it everything that it started, each time the sandbox has not been
/// used for so long. A program that runs is a use, so there is nothing else to end.
pub(crate) async fn watch(limit: Duration, shared: Weak<Shared>) {
    loop {
        let Some(activity) = shared.upgrade().map(|shared| shared.activity.clone()) else {
            return;
        };
        let since = activity.unused_for(limit).await;
        if let Some(shared) = shared.upgrade() {
            shared.kernel.end_unused(limit).await;
        }
        activity.used_after(since).await;
    }
}
