//! What a runtime finds when it looks at its host.

use glovebox_protocol::gateway::{Check, ImageInfo};

/// What a runtime finds when it looks at its host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Examined {
    /// What was looked at and how it stands. Ids are stable; the deployment guide lists all.
    pub checks: Vec<Check>,
    /// Images that are present. Empty where the runtime has none.
    pub images: Vec<ImageInfo>,
}
