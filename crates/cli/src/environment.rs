//! The environment of the command: the only place that reads it.
//!
//! Everything is read once, at the start, and handed on as values.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What the command takes from its environment.
#[derive(Debug, Clone)]
pub(crate) struct Environment {
    /// `GLOVEBOX_DATA`: where the root tree lives.
    data: Option<PathBuf>,
    /// `GLOVEBOX_RUN`: where sockets live.
    run: Option<PathBuf>,
    data_home: Option<PathBuf>,
    runtime_dir: Option<PathBuf>,
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
            sudo_user: std::env::var("SUDO_USER")
                .ok()
                .filter(|name| !name.is_empty()),
            user_id: rustix::process::geteuid().as_raw(),
        }
    }

    /// The data folder: as given, else `GLOVEBOX_DATA`, else the usual place.
    pub(crate) fn data_folder(&self, given: Option<&Path>) -> PathBuf {
        if let Some(data) = given.or(self.data.as_deref()) {
            return data.to_owned();
        }
        if self.user_id == 0 {
            return PathBuf::from("/var/lib/glovebox");
        }
        match (&self.data_home, &self.home) {
            (Some(data_home), _) => data_home.join("glovebox"),
            (None, Some(home)) => home.join(".local/share/glovebox"),
            (None, None) => std::env::temp_dir().join(format!("glovebox-data-{}", self.user_id)),
        }
    }

    /// The folder for sockets: `GLOVEBOX_RUN`, else the usual place.
    pub(crate) fn run_folder(&self) -> PathBuf {
        if let Some(run) = &self.run {
            return run.clone();
        }
        if self.user_id == 0 {
            return PathBuf::from("/run/glovebox");
        }
        match &self.runtime_dir {
            Some(folder) => folder.join("glovebox"),
            None => PathBuf::from(format!("/tmp/glovebox-{}", self.user_id)),
        }
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
            home: Some("/home/ada".into()),
            path: OsString::new(),
            sudo_user: None,
            user_id,
        }
    }

    #[test]
    fn root_and_a_user_have_different_folders() {
        assert_eq!(of_user(0).data_folder(None), Path::new("/var/lib/glovebox"));
        assert_eq!(of_user(0).run_folder(), Path::new("/run/glovebox"));
        assert_eq!(
            of_user(1000).data_folder(None),
            Path::new("/home/ada/.local/share/glovebox")
        );
        assert_eq!(of_user(1000).run_folder(), Path::new("/tmp/glovebox-1000"));
    }

    #[test]
    fn what_is_named_on_the_command_line_wins() {
        let mut environment = of_user(1000);
        environment.data = Some("/from/environment".into());
        assert_eq!(
            environment.data_folder(None),
            Path::new("/from/environment")
        );
        assert_eq!(
            environment.data_folder(Some(Path::new("/given"))),
            Path::new("/given")
        );
    }
}
