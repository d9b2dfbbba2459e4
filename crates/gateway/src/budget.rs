//! How much of the host sandboxes take, and whether there is room for one more.
//!
//! Memory is counted on what is used, where the runtime can tell, plus a reserve for each sandbox;
//! not on limits, which hardly anybody reaches. Where the runtime cannot tell, the reserve counts
//! alone.

use std::sync::atomic::Ordering;

use glovebox_protocol::limits::Limits;

use crate::error::{ApiError, chain};
use crate::state::{Rules, Shared};
use crate::table::Taken;

/// Memory that is set aside for one sandbox, in bytes, unless its limit is lower.
const RESERVE_BYTES: u64 = 256 * 1024 * 1024;

/// What is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) sandboxes: u32,
    pub(crate) memory_bytes: u64,
}

/// What is set aside for a sandbox with these limits; without limits, for one that was adopted.
pub(crate) fn reserve(limits: Option<&Limits>) -> u64 {
    limits.map_or(RESERVE_BYTES, |limits| {
        limits.sandbox_memory_bytes().min(RESERVE_BYTES)
    })
}

/// Looks how much memory all sandboxes use, as far as the runtime can tell. What is made until the
/// next look is covered by its reserve.
pub(crate) async fn measure(shared: &Shared) {
    match shared.runtime.memory_used().await {
        Ok(used) => shared
            .memory_bytes
            .store(used.unwrap_or(0), Ordering::Relaxed),
        // What was seen last goes on counting; that the runtime does not answer shows elsewhere.
        Err(error) => {
            let message = chain("asking the runtime how much memory is used", &error);
            let facts = serde_json::json!({ "message": message });
            shared.journal.tell(shared.now_ms(), "not_measured", facts);
        }
    }
}

/// What is taken now.
pub(crate) fn load(shared: &Shared) -> Load {
    let measured = shared.memory_bytes.load(Ordering::Relaxed);
    let taken = shared.table.taken();
    Load {
        sandboxes: taken.sandboxes,
        memory_bytes: taken.reserve_bytes.saturating_add(measured),
    }
}

/// Whether there is room for one more.
pub(crate) fn room(
    rules: &Rules,
    taken: Taken,
    measured: u64,
    reserve_bytes: u64,
) -> Result<(), ApiError> {
    let details = |budget: &str, used: u64, limit: u64| serde_json::json!({ "budget": budget, "used": used, "limit": limit });
    if taken.sandboxes >= rules.max_sandboxes {
        let (used, limit) = (taken.sandboxes.into(), rules.max_sandboxes.into());
        return Err(ApiError::exhausted(
            format!("there are {used} sandboxes, and GATEWAY_MAX_SANDBOXES is {limit}"),
            details("sandboxes", used, limit),
        ));
    }
    let used = taken.reserve_bytes.saturating_add(measured);
    if used.saturating_add(reserve_bytes) > rules.max_memory_bytes {
        let limit = rules.max_memory_bytes;
        return Err(ApiError::exhausted(
            format!(
                "{used} bytes of memory are used or set aside, another sandbox needs {reserve_bytes}, and GATEWAY_MAX_MEMORY is {limit}"
            ),
            details("memory", used, limit),
        ));
    }
    Ok(())
}
