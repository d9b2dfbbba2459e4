//! Sandboxes that are made before anybody asks for them.

use glovebox_protocol::agent_config::Start;
use glovebox_protocol::gateway::{KeepReady, KeptKind, KeptReady};
use glovebox_runtime::{Capability, ReadyKind, check_limits};

use crate::error::ApiError;
use crate::request::MAX_TRUST_DOMAIN;
use crate::state::Shared;

/// Keeps ready what is asked for, and nothing else.
///
/// They take room beside the budget of sandboxes that exist, and may not be more than those.
pub(crate) async fn keep(shared: &Shared, asked: KeepReady) -> Result<KeptReady, ApiError> {
    let most = shared.rules.max_sandboxes;
    let mut count = 0_u32;
    for (at, kind) in asked.kinds.iter().enumerate() {
        check(shared, kind)?;
        if asked.kinds[..at].iter().any(|other| is_same(other, kind)) {
            return Err(ApiError::invalid("`kinds` names one twice"));
        }
        count = count.saturating_add(kind.count);
    }
    if count > most {
        return Err(ApiError::invalid(format!(
            "`kinds` are {count} sandboxes, more than the {most} that this gateway may have"
        )));
    }
    let wanted = asked.kinds.into_iter().map(|kind| {
        let KeptKind {
            trust_domain,
            limits,
            start,
            count,
        } = kind;
        let kind = ReadyKind {
            trust_domain,
            start,
            limits,
        };
        (kind, count)
    });
    let kept = shared.runtime.keep_only_ready(wanted.collect()).await;
    kept.map_err(|error| ApiError::from_runtime(&error))?;
    Ok(KeptReady { count })
}

fn check(shared: &Shared, kind: &KeptKind) -> Result<(), ApiError> {
    if !(1..=MAX_TRUST_DOMAIN).contains(&kind.trust_domain.len()) {
        return Err(ApiError::invalid(format!(
            "`trust_domain` has to be 1 to {MAX_TRUST_DOMAIN} bytes long"
        )));
    }
    if kind.count == 0 {
        return Err(ApiError::invalid(
            "`count` is 0; leave out what is not to be kept ready",
        ));
    }
    let capabilities = shared.runtime.describe().capabilities;
    if kind.start == Start::Template && !capabilities.has(Capability::TemplateStart) {
        return Err(ApiError::capability_missing(
            "a kernel from a template (template_start)",
            "ask for a start of `fresh`",
        ));
    }
    check_limits(&kind.limits).map_err(|fault| ApiError::invalid(fault.to_string()))
}

fn is_same(one: &KeptKind, other: &KeptKind) -> bool {
    (&one.trust_domain, &one.limits, one.start) == (&other.trust_domain, &other.limits, other.start)
}
