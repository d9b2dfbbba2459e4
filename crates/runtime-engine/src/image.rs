//! The image that sandboxes are made of: which one exactly, and whether its agent is ours.

use bollard::models::ImageInspect;
use glovebox_protocol::PROTOCOL_VERSION;
use glovebox_runtime::RuntimeError;

use crate::engine::{Engine, EngineError};
use crate::labels::{AGENT, PROTOCOL};

/// What to do about an image that is not there, or not ours.
pub(crate) const FIX: &str = "build it on the runtime's host with scripts/image sandbox";

/// The image holds another agent than this driver is for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the image {image} holds agent {its_agent} with protocol {its_protocol}; this is {our_agent} \
     with protocol {our_protocol}"
)]
pub(crate) struct Mismatch {
    image: String,
    its_agent: String,
    its_protocol: String,
    our_agent: &'static str,
    our_protocol: u32,
}

/// The id of an image whose agent is of our version: a name can come to mean another image, an id
/// cannot.
pub(crate) async fn resolve(engine: &Engine, image: &str) -> Result<String, RuntimeError> {
    let doing = format!("looking for the image {image}");
    let found = match engine.image(image).await {
        Ok(found) => found,
        Err(EngineError::Missing(source)) => {
            return Err(RuntimeError::Unavailable {
                doing,
                fix: Some(FIX.into()),
                cause: source.into(),
            });
        }
        Err(error) => return Err(error.while_doing(doing)),
    };
    check(image, &found).map_err(|mismatch| RuntimeError::Unsupported {
        what: "image".into(),
        fix: Some(FIX.into()),
        cause: Some(mismatch.into()),
    })?;
    found.id.ok_or_else(|| RuntimeError::Internal {
        doing,
        cause: "the engine names no id of it".into(),
    })
}

/// The number of the protocol that an image says its agent speaks.
pub(crate) fn protocol(found: &ImageInspect) -> Option<u32> {
    let labels = found.config.as_ref()?.labels.as_ref()?;
    labels.get(PROTOCOL)?.parse().ok()
}

/// Whether an image holds an agent of our version.
pub(crate) fn check(image: &str, found: &ImageInspect) -> Result<(), Mismatch> {
    let labels = found
        .config
        .as_ref()
        .and_then(|config| config.labels.as_ref());
    let label = |name| {
        let value = labels.and_then(|labels| labels.get(name));
        value.cloned().unwrap_or_else(|| "none".into())
    };
    let mismatch = Mismatch {
        image: image.into(),
        its_agent: label(AGENT),
        its_protocol: label(PROTOCOL),
        our_agent: env!("CARGO_PKG_VERSION"),
        our_protocol: PROTOCOL_VERSION,
    };
    let same = mismatch.its_agent == mismatch.our_agent
        && mismatch.its_protocol == PROTOCOL_VERSION.to_string();
    if same { Ok(()) } else { Err(mismatch) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(labels: &[(&str, &str)]) -> ImageInspect {
        let labels = labels
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()));
        ImageInspect {
            config: Some(bollard::models::ImageConfig {
                labels: Some(labels.collect()),
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    #[test]
    fn another_agent_is_refused_with_both_named() {
        let ours = (AGENT, env!("CARGO_PKG_VERSION"));
        assert_eq!(check("x", &image(&[ours, (PROTOCOL, "1")])), Ok(()));
        let old = check("x", &image(&[(AGENT, "0.0.9"), (PROTOCOL, "1")])).unwrap_err();
        let text = old.to_string();
        assert!(text.contains("0.0.9") && text.contains(ours.1), "{text}");
        let new = check("x", &image(&[ours, (PROTOCOL, "99")])).unwrap_err();
        assert!(new.to_string().contains("protocol 99"), "{new}");
        assert!(
            check("x", &image(&[]))
                .unwrap_err()
                .to_string()
                .contains("none")
        );
    }
}
