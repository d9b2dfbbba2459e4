//! What the host's own files say about it.

use std::path::{Path, PathBuf};

/// The host's file system, below a root that tests can choose.
#[derive(Debug, Clone)]
pub struct Host {
    root: PathBuf,
}

impl Host {
    /// This machine.
    #[must_use]
    pub fn this() -> Self {
        Self::below("/")
    }

    /// A tree that stands for a machine.
    #[must_use]
    pub fn below(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The words of a small file; `None` when it is absent or cannot be read.
    pub(super) fn read(&self, path: &str) -> Option<String> {
        let path = self.root.join(path.trim_start_matches('/'));
        fs_err::read_to_string(path)
            .ok()
            .map(|text| text.trim().to_owned())
    }

    /// Whether there is such a file.
    pub(super) fn has(&self, path: &str) -> bool {
        self.root
            .join(Path::new(path.trim_start_matches('/')))
            .exists()
    }
}
