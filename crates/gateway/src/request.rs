//! What a request for a sandbox must be like before anything is made.

use glovebox_protocol::agent_config::Start;
use glovebox_protocol::gateway::CreateSandbox;
use glovebox_runtime::{Capability, ValidatedSpec};

use crate::error::ApiError;
use crate::lifecycle;
use crate::state::Shared;

/// Longest time for making a sandbox, in milliseconds.
const MAX_START_LIMIT_MS: u64 = 600_000;

/// How far ahead the end of a sandbox may be, in milliseconds: seven days. Nothing is kept for ever
/// because somebody forgot it.
const MAX_LIFE_MS: i64 = 7 * 24 * 60 * 60 * 1000;

/// Longest trust domain, in bytes.
pub(crate) const MAX_TRUST_DOMAIN: usize = 256;

/// Checks everything that can be known in advance, and gives the spec.
pub(crate) fn check(shared: &Shared, asked: &CreateSandbox) -> Result<ValidatedSpec, ApiError> {
    if asked.installation != shared.rules.installation {
        return Err(ApiError::wrong_installation());
    }
    check_image(shared, asked.image.as_deref())?;
    if !(1..=MAX_START_LIMIT_MS).contains(&asked.start_limit_ms) {
        return Err(ApiError::invalid(format!(
            "`start_limit_ms` is {}; it must be 1 to {MAX_START_LIMIT_MS}",
            asked.start_limit_ms
        )));
    }
    let life_ms = asked.hard_deadline_ms.saturating_sub(shared.now_ms());
    if life_ms <= 0 {
        return Err(ApiError::invalid("`hard_deadline_ms` is in the past"));
    }
    if life_ms > MAX_LIFE_MS {
        return Err(ApiError::invalid(
            "`hard_deadline_ms` is more than seven days ahead",
        ));
    }
    if asked.trust_domain.len() > MAX_TRUST_DOMAIN {
        return Err(ApiError::invalid(format!(
            "`trust_domain` is longer than {MAX_TRUST_DOMAIN} bytes"
        )));
    }
    let capabilities = shared.runtime.describe().capabilities;
    if asked.start == Start::Template && !capabilities.has(Capability::TemplateStart) {
        return Err(ApiError::capability_missing(
            "a kernel from a template (template_start)",
            "ask for a start of `fresh`",
        ));
    }
    let spec = lifecycle::spec(shared, asked).validate();
    spec.map_err(|fault| ApiError::invalid(fault.to_string()))
}

fn check_image(shared: &Shared, image: Option<&str>) -> Result<(), ApiError> {
    match image {
        None => Ok(()),
        Some(image) if !shared.runtime.has_images() => Err(ApiError::no_images(image)),
        Some(image) if shared.rules.images.allow(image) => Ok(()),
        Some(image) => Err(ApiError::image_not_allowed(
            image.get(..256).unwrap_or(image),
            &shared.rules.images.to_string(),
        )),
    }
}
