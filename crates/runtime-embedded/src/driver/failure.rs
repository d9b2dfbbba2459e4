//! What a failure of the launcher, or of the line to it, is to whoever asked.

use glovebox_box::control::FaultKind;
use glovebox_runtime::RuntimeError;

use crate::link::LinkError;

pub(super) fn from_link(doing: &str, error: LinkError) -> RuntimeError {
    match error {
        LinkError::Fault(fault) => {
            let fix = fault.fix.clone();
            match &fault.kind {
                FaultKind::Weaker { weakness } => RuntimeError::Unsupported {
                    what: weakness.name().into(),
                    fix,
                    cause: Some(Box::new(fault)),
                },
                FaultKind::Exhausted => RuntimeError::Exhausted(Box::new(fault)),
                FaultKind::Invalid => RuntimeError::Invalid(Box::new(fault)),
                FaultKind::Held | FaultKind::Failed => RuntimeError::Unavailable {
                    doing: doing.into(),
                    fix,
                    cause: Box::new(fault),
                },
            }
        }
        other => RuntimeError::Unavailable {
            doing: doing.into(),
            fix: matches!(other, LinkError::Busy { .. }).then(|| {
                "end the gateway that has it, or give this one an installation of its own".into()
            }),
            cause: Box::new(other),
        },
    }
}
