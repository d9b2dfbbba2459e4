//! One process at a time owns the sandboxes of an installation: an engine joins everybody who
//! attaches to the same streams, and two would speak over each other.

use std::fs::File;
use std::path::Path;

use glovebox_protocol::ids::InstallationId;
use glovebox_runtime::RuntimeError;

/// The ownership, as long as this lives.
#[derive(Debug)]
pub(crate) struct Owner(#[expect(dead_code, reason = "closing it gives the lock back")] File);

impl Owner {
    /// Takes it, or says that another process has it.
    pub(crate) fn take(folder: &Path, installation: InstallationId) -> Result<Self, RuntimeError> {
        let path = folder.join(format!("engine-{installation}.lock"));
        let unavailable = |fix: &str, cause: std::io::Error| RuntimeError::Unavailable {
            doing: format!("taking the lock {}", path.display()),
            fix: Some(fix.into()),
            cause: cause.into(),
        };
        let file = fs_err::create_dir_all(folder)
            .and_then(|()| fs_err::File::create(&path))
            .map_err(|cause| unavailable("choose a folder that can be written to", cause))?
            .into_parts()
            .0;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(error) => Err(unavailable(
                "another process drives the sandboxes of this installation; end it first",
                error.into(),
            )),
        }
    }
}
