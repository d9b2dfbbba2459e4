//! The environment of the command: the only place that reads it.
//!
//! Everything is read once, at the start, and handed on as values.

use std::ffi::OsString;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use glovebox_protocol::error::ErrorCode;

use crate::failure::Failure;

/// What the command takes from its environment.
#[derive(Debug, Clone)]
pub(crate) struct Environment {
    /// `GLOVEBOX_DATA`: where the root tree lives.
    data: Option<PathBuf>,
    /// `GLOVEBOX_RUN`: where sockets live.
    run: Option<PathBuf>,
    data_home: Option<PathBuf>,
    /// `XDG_RUNTIME_DIR`.
    pub(crate) runtime_dir: Option<PathBuf>,
    /// `GLOVEBOX_SCOPE`: the process that has asked for a control group.
    pub(crate) asked_for_scope: Option<u32>,
    home: Option<PathBuf>,
    /// `PATH`, for set-up, which looks for a Python.
    pub(crate) path: OsString,
    /// `SUDO_USER`: for whom `sudo glovebox doctor --fix` prepares the machine.
    pub(crate) sudo_user: Option<String>,
    /// The effective user id.
    pub(crate) user_id: u32,
}

impl Environment {
    /// Reads it.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the environment"
    )]
    pub(crate) fn read() -> Self {
        let path = |name| {
            std::env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        // The base directory specification says that relative values are to be ignored.
        let absolute = |name| path(name).filter(|value: &PathBuf| value.is_absolute());
        Self {
            data: path("GLOVEBOX_DATA"),
            run: path("GLOVEBOX_RUN"),
            data_home: absolute("XDG_DATA_HOME"),
            runtime_dir: absolute("XDG_RUNTIME_DIR"),
            home: absolute("HOME"),
            path: std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into()),
            asked_for_scope: std::env::var(crate::scope::ASKED)
                .ok()
                .and_then(|pid| pid.parse().ok()),
            sudo_user: std::env::var("SUDO_USER")
                .ok()
                .filter(|name| !name.is_empty()),
            user_id: rustix::process::geteuid().as_raw(),
        }
    }

    /// The data folder: as given, else `GLOVEBOX_DATA`, else the usual place. Never one in a
    /// folder that others can write to: what lies there is run.
    pub(crate) fn data_folder(&self, given: Option<&Path>) -> Result<PathBuf, Failure> {
        if let Some(data) = given.or(self.data.as_deref()) {
            return Ok(data.to_owned());
        }
        if self.user_id == 0 {
            return Ok(PathBuf::from("/var/lib/glovebox"));
        }
        match (&self.data_home, &self.home) {
            (Some(data_home), _) => Ok(data_home.join("glovebox")),
            (None, Some(home)) => Ok(home.join(".local/share/glovebox")),
            (None, None) => Err(Failure::Machine {
                doing: "finding a place for the data: HOME is not set".into(),
                fix: Some("name a folder with --data or GLOVEBOX_DATA".into()),
                code: ErrorCode::Invalid,
                cause: None,
            }),
        }
    }

    /// The folder for sockets: `GLOVEBOX_RUN`, else the usual place. Where that is below `/tmp`,
    /// it is made here, and refused when somebody else has made it before.
    pub(crate) fn run_folder(&self) -> Result<PathBuf, Failure> {
        if let Some(run) = &self.run {
            return Ok(run.clone());
        }
        if self.user_id == 0 {
            return Ok(PathBuf::from("/run/glovebox"));
        }
        if let Some(folder) = &self.runtime_dir {
            return Ok(folder.join("glovebox"));
        }
        let folder = PathBuf::from(format!("/tmp/glovebox-{}", self.user_id));
        own_folder(&folder, self.user_id).map_err(|error| Failure::Machine {
            doing: format!("making {} for sockets", folder.display()),
            fix: Some("name a folder that is yours alone with GLOVEBOX_RUN".into()),
            code: ErrorCode::RuntimeUnavailable,
            cause: Some(error.into()),
        })?;
        Ok(folder)
    }
}

/// Makes a folder that only `user_id` can use, or makes sure that the one there is such.
fn own_folder(folder: &Path, user_id: u32) -> std::io::Result<()> {
    match std::fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let metadata = fs_err::symlink_metadata(folder)?;
    let is_own = metadata.is_dir() && metadata.uid() == user_id && metadata.mode() & 0o022 == 0;
    if is_own {
        Ok(())
    } else {
        Err(std::io::Error::other(
            "others can write to it, or it is no folder of yours",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_user(user_id: u32) -> Environment {
        Environment {
            data: None,
            run: None,
            data_home: None,
            runtime_dir: None,
            asked_for_scope: None,
            home: Some("/home/ada".into()),
            path: OsString::new(),
            sudo_user: None,
            user_id,
        }
    }

    #[test]
    fn root_and_a_user_have_different_folders() {
        let data = |environment: Environment| environment.data_folder(None).unwrap();
        assert_eq!(data(of_user(0)), Path::new("/var/lib/glovebox"));
        assert_eq!(of_user(0).run_folder().unwrap(), Path::new("/run/glovebox"));
        assert_eq!(
            data(of_user(1000)),
            Path::new("/home/ada/.local/share/glovebox")
        );
    }

    #[test]
    fn what_is_named_on_the_command_line_wins() {
        let mut environment = of_user(1000);
        environment.data = Some("/from/environment".into());
        let data = |given| environment.data_folder(given).unwrap();
        assert_eq!(data(None), Path::new("/from/environment"));
        assert_eq!(data(Some(Path::new("/given"))), Path::new("/given"));
    }

    #[test]
    fn without_a_home_data_are_put_nowhere() {
        let mut environment = of_user(1000);
        environment.home = None;
        assert!(environment.data_folder(None).is_err());
    }

    #[test]
    fn a_folder_that_others_could_have_made_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let me = rustix::process::geteuid().as_raw();
        let folder = place.path().join("mine");
        own_folder(&folder, me).unwrap();
        own_folder(&folder, me).unwrap();
        assert!(own_folder(&folder, me + 1).is_err());
        let link = place.path().join("link");
        std::os::unix::fs::symlink(&folder, &link).unwrap();
        assert!(own_folder(&link, me).is_err());
    }
}
