//! Settings from a file: what the environment can say to `serve` and to the commands beside it,
//! a file can say too.
//!
//! The command line's own definitions are the one source: names, kinds, and what is taken. What a
//! file says takes the place of a default, so that argument and environment win over it.

mod file;
#[cfg(test)]
mod reference;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgMatches, Command, CommandFactory as _, FromArgMatches as _};

use crate::arguments::Arguments;
use crate::failure::{Failure, unreadable};

/// The commands that take settings.
const COMMANDS: [&str; 6] = ["serve", "worker", "migrate", "backup", "restore", "admin"];

/// The option that names the file, and so is no setting in it.
const FILE: &str = "config";

/// What a file says: the long name of an option, and its values.
type Given = BTreeMap<String, Vec<String>>;

/// Why there are no arguments.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The command line or the environment is not what it has to be, or help was asked for.
    CommandLine(clap::Error),
    /// The file is not.
    File(Failure),
}

impl From<clap::Error> for Refused {
    fn from(error: clap::Error) -> Self {
        Self::CommandLine(error)
    }
}

/// Reads the command line, the environment, and the file that they name.
///
/// # Errors
/// See [`Refused`].
pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Arguments, Refused> {
    let words: Vec<_> = words.into_iter().collect();
    let mut matches = Arguments::command().try_get_matches_from(&words)?;
    if let Some(path) = named_file(&matches) {
        let given = fs_err::read_to_string(&path)
            .map_err(|error| unreadable(&path, &error))
            .and_then(|text| file::read(&path, &text, &settings()))
            .map_err(Refused::File)?;
        matches = with_defaults(Arguments::command(), &given).try_get_matches_from(&words)?;
    }
    Ok(Arguments::from_arg_matches(&matches)?)
}

/// The file that holds the settings of the command that is asked for.
fn named_file(matches: &ArgMatches) -> Option<PathBuf> {
    let (name, mut innermost) = matches.subcommand()?;
    if !COMMANDS.contains(&name) {
        return None;
    }
    while let Some((_, inner)) = innermost.subcommand() {
        innermost = inner;
    }
    // A command of a later day may do without one.
    innermost.try_get_one(FILE).ok().flatten().cloned()
}

/// All settings, each once, in the order of the commands.
fn settings() -> Vec<Arg> {
    fn collect(command: &Command, found: &mut Vec<Arg>) {
        for arg in command.get_arguments().filter(|arg| is_setting(arg)) {
            if !found.iter().any(|before| before.get_id() == arg.get_id()) {
                found.push(arg.clone());
            }
        }
        for inner in command.get_subcommands() {
            collect(inner, found);
        }
    }
    let all = Arguments::command();
    let mut found = Vec::new();
    for command in COMMANDS.iter().filter_map(|name| all.find_subcommand(name)) {
        collect(command, &mut found);
    }
    found
}

/// Whether a file can hold it: what is about one call only has no variable either.
fn is_setting(arg: &Arg) -> bool {
    arg.get_env().is_some() && arg.get_long().is_some_and(|long| long != FILE)
}

/// The name of a setting in a file.
fn key(arg: &Arg) -> String {
    arg.get_long().unwrap_or_default().replace('-', "_")
}

/// The command line with what a file says as defaults.
fn with_defaults(command: Command, given: &Given) -> Command {
    fn set(command: Command, given: &Given) -> Command {
        command
            .mut_args(|arg| match given.get(&key(&arg)) {
                Some(values) if is_setting(&arg) => arg.default_values(values.clone()),
                _ => arg,
            })
            .mut_subcommands(|inner| set(inner, given))
    }
    COMMANDS.iter().fold(command, |command, name| {
        command.mut_subcommand(name, |inner| set(inner, given))
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::arguments::{AdminCommand, Command, ServeArguments};

    fn parsed(text: &str, words: &[&str]) -> Result<Arguments, Refused> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("glovebox.toml");
        fs_err::write(&path, text).unwrap();
        let mut all: Vec<OsString> = vec!["glovebox".into()];
        all.extend(words.iter().map(OsString::from));
        all.extend(["--config".into(), path.into_os_string()]);
        parse(all)
    }

    fn serve(text: &str, words: &[&str]) -> ServeArguments {
        let words: Vec<_> = std::iter::once("serve")
            .chain(words.iter().copied())
            .collect();
        match parsed(text, &words) {
            Ok(Arguments {
                command: Command::Serve(arguments),
            }) => *arguments,
            other => panic!("{other:?}"),
        }
    }

    const ALL: &str = r#"
        # What everybody who serves from this machine has to know.
        listen = "127.0.0.1:9000"
        tls_cert = "/cert.pem"
        tls_key = "/key.pem"
        public_url = "https://gb.example.com"
        trusted_proxies = ["10.0.0.1", "10.0.0.2"]
        max_caller_streams = 10
        max_streams = 200
        insecure_http = true
        sandbox_enabled = false
        sandbox_gui_config = false
        runtime = "docker"
        docker_socket = "/run/docker.sock"
        max_sandboxes = 100
        max_memory = "8G"
        accept_weaker = "cgroups"
        queues = ["sandbox"]
        log = "debug"
        metrics_listen = "127.0.0.1:9464"
        history_days = 30
        data = "/data"
        server_data = "/data/mine"
        database = "postgres://gb@db/gb"
    "#;

    #[test]
    fn a_file_can_say_everything() {
        let arguments = serve(ALL, &[]);
        assert_eq!(arguments.listen.port(), 9000);
        assert_eq!(arguments.trusted_proxies.len(), 2);
        assert!(arguments.insecure_http && !arguments.work.sandbox_enabled);
        assert_eq!(arguments.work.log, "debug");
        assert_eq!(
            (arguments.max_caller_streams, arguments.max_streams),
            (10, 200)
        );
        assert_eq!(arguments.work.history_days, 30);
        assert_eq!(arguments.place.data.as_deref(), Some(Path::new("/data")));
        let said = ALL.lines().filter(|line| line.contains('=')).count();
        assert_eq!(said, settings().len(), "a setting is missing in this test");
    }

    #[test]
    fn what_is_given_on_the_command_line_wins_over_the_file_and_that_over_defaults() {
        let listen = serve("listen = '127.0.0.1:9000'", &["--listen", "127.0.0.1:1"]).listen;
        assert_eq!(listen.port(), 1);
        let proxies = serve(ALL, &["--trusted-proxies", "10.0.0.9"]).trusted_proxies;
        assert_eq!(proxies.len(), 1);
        let arguments = serve("log = 'warn'", &[]);
        assert_eq!(
            (arguments.work.log.as_str(), arguments.listen.port()),
            ("warn", 8080)
        );
        assert!(!serve("insecure_http = false", &[]).insecure_http);
    }

    #[test]
    fn commands_beside_the_server_read_the_same_file() {
        let words = [
            "admin",
            "reset-password",
            "--email",
            "a@b",
            "--password-stdin",
        ];
        let Ok(Arguments {
            command: Command::Admin(admin),
        }) = parsed(ALL, &words)
        else {
            panic!("not admin");
        };
        let AdminCommand::ResetPassword { common, .. } = admin.command else {
            panic!("not a password");
        };
        assert_eq!(
            common.place.database.as_deref(),
            Some("postgres://gb@db/gb")
        );
    }

    #[test]
    fn a_command_without_settings_has_no_file() {
        assert!(matches!(
            parsed("", &["version"]),
            Err(Refused::CommandLine(_))
        ));
    }
}
