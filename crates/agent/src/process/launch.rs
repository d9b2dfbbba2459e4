//! How a process comes into being: through the exec helper in a box, plainly outside one.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use glovebox_protocol::agent_config::AgentConfig;
use glovebox_protocol::environment::{MATPLOTLIB_BACKEND, workload_environment};

/// What is said of a workload to the out-of-memory killer where agent and workload share one
/// control group: take it first.
const OOM_SCORE_ADJUSTMENT: &str = "800";

/// How the agent starts processes.
#[derive(Debug, Clone)]
pub enum Spawner {
    /// As process 1 of a sandbox, through the exec helper that the configuration names.
    Sealed,
    /// As plain child processes with the agent's own rights: no isolation at all. For a runtime
    /// that only plays one.
    Direct {
        /// Variables on top of the fixed environment, such as where Python finds modules.
        env: BTreeMap<String, String>,
    },
}

impl Spawner {
    /// Whether the agent is process 1 of a sandbox.
    #[must_use]
    pub const fn is_sealed(&self) -> bool {
        matches!(self, Self::Sealed)
    }
}

/// Makes commands.
pub(crate) struct Launcher {
    spawner: Spawner,
    workspace: PathBuf,
    /// The exec helper with everything that stands in front of the program.
    helper: Vec<OsString>,
    env: BTreeMap<String, String>,
}

/// One process to be.
pub(crate) struct Launch<'a> {
    pub(crate) argv: &'a [&'a OsStr],
    pub(crate) env: &'a BTreeMap<String, String>,
    pub(crate) stdin: Stdio,
    pub(crate) stdout: Stdio,
    pub(crate) stderr: Stdio,
}

impl Launcher {
    pub(crate) fn new(config: &AgentConfig, spawner: Spawner, workspace: &Path) -> Self {
        let mut env: BTreeMap<String, String> =
            workload_environment(config.limits.library_threads())
                .into_iter()
                .map(|(name, value)| (name.into(), value))
                .collect();
        if let Spawner::Direct { env: more } = &spawner {
            env.remove(MATPLOTLIB_BACKEND);
            env.extend(more.clone());
        }
        Self {
            helper: helper(config, workspace),
            spawner,
            workspace: workspace.into(),
            env,
        }
    }

    pub(crate) const fn is_sealed(&self) -> bool {
        self.spawner.is_sealed()
    }

    /// The command that starts `launch`. Everything that it does not name is closed or empty.
    pub(crate) fn command(&self, launch: Launch<'_>) -> Command {
        let mut argv = launch.argv.iter().copied();
        let mut command = match self.spawner {
            Spawner::Sealed => {
                let mut helper = self.helper.iter();
                let mut command = Command::new(helper.next().map_or(OsStr::new(""), |path| path));
                command.args(helper);
                command
            }
            Spawner::Direct { .. } => {
                let mut command = Command::new(argv.next().unwrap_or_default());
                command.process_group(0);
                command
            }
        };
        command
            .args(argv)
            .env_clear()
            .envs(&self.env)
            .current_dir(match self.spawner {
                // The helper goes to the workspace itself, after it has taken the ids.
                Spawner::Sealed => Path::new("/"),
                Spawner::Direct { .. } => &self.workspace,
            })
            .stdin(launch.stdin)
            .stdout(launch.stdout)
            .stderr(launch.stderr)
            .envs(launch.env);
        command
    }
}

/// The exec helper's own arguments, up to the `--` in front of the program.
fn helper(config: &AgentConfig, workspace: &Path) -> Vec<OsString> {
    let id = config.ids.workload.to_string();
    let mut argv: Vec<OsString> = vec![
        config.exec_helper.clone().into(),
        "--uid".into(),
        id.clone().into(),
        "--gid".into(),
        id.into(),
        "--cwd".into(),
        workspace.into(),
    ];
    for fd in &config.fds.workload_cgroups {
        argv.extend(["--cgroup".into(), fd.to_string().into()]);
    }
    argv.extend([
        "--open-files".into(),
        config.limits.open_files.to_string().into(),
        "--file-size".into(),
        config.limits.file_size_bytes.to_string().into(),
    ]);
    // Where nothing counts kills, nothing limits memory either, and there is no one to choose.
    if config.fds.workload_cgroups.is_empty() && config.fds.oom_events.is_some() {
        argv.extend(["--oom-score-adj".into(), OOM_SCORE_ADJUSTMENT.into()]);
    }
    argv.push("--".into());
    argv
}

/// Says what is wrong with variables that a caller wants to add.
pub(crate) fn check_env(env: &BTreeMap<String, String>) -> Result<(), String> {
    for (name, value) in env {
        let mut bytes = name.bytes();
        let plain = bytes
            .next()
            .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let shown = glovebox_protocol::file::escape_for_display(name.as_bytes());
        if !plain {
            return Err(format!("`{shown}` cannot be the name of a variable"));
        }
        if name == "PATH" || name.starts_with("LD_") || name.starts_with("GLOVEBOX_") {
            return Err(format!("the variable `{shown}` cannot be set from outside"));
        }
        if value.contains('\0') {
            return Err(format!("the variable `{shown}` holds a NUL byte"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loader_and_sandbox_variables_are_refused() {
        for (name, value) in [
            ("LD_PRELOAD", "x"),
            ("LD_LIBRARY_PATH", "x"),
            ("GLOVEBOX_DATA", "x"),
            ("PATH", "/tmp"),
            ("", "x"),
            ("1A", "x"),
            ("A=B", "x"),
            ("A B", "x"),
            ("A\0", "x"),
            ("\u{c4}", "x"),
            ("A", "\0"),
        ] {
            let env = BTreeMap::from([(name.to_owned(), value.to_owned())]);
            assert!(check_env(&env).is_err(), "{name:?}={value:?} was accepted");
        }
        let env = BTreeMap::from([("_my_VAR1".to_owned(), "\u{1f427} =".to_owned())]);
        assert_eq!(check_env(&env), Ok(()));
    }
}
