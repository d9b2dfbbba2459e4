//! Reading a file of settings: TOML, one line for each, everything else refused with its line.

use std::any::TypeId;
use std::error::Error as _;
use std::ops::Range;
use std::path::Path;

use clap::{Arg, ArgAction, Command};
use toml::de::{DeTable, DeValue};

use super::{Given, key};
use crate::failure::{Cause, Failure, shown};

/// What a setting is in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Boolean,
    Number,
    Text,
    List,
}

impl Kind {
    pub(super) fn of(arg: &Arg) -> Self {
        let held = arg.get_value_parser().type_id();
        let numbers = [
            TypeId::of::<u16>(),
            TypeId::of::<u32>(),
            TypeId::of::<u64>(),
            TypeId::of::<usize>(),
        ];
        if held == TypeId::of::<bool>() {
            Self::Boolean
        } else if matches!(arg.get_action(), ArgAction::Append) {
            Self::List
        } else if is_size(arg) {
            Self::Text
        } else if numbers.into_iter().any(|number| held == number) {
            Self::Number
        } else {
            Self::Text
        }
    }

    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Boolean => "true or false",
            Self::Number => "a number",
            Self::Text => "a text",
            Self::List => "a list of texts",
        }
    }

    /// How one is written.
    fn example(self, arg: &Arg) -> String {
        let name = arg.get_value_names().and_then(|names| names.first());
        let name = name.map_or("VALUE", |name| name.as_str());
        let value = match self {
            Self::Boolean => "true".into(),
            Self::Number => "1".into(),
            Self::Text => format!("\"{name}\""),
            Self::List => format!("[\"{name}\"]"),
        };
        format!("{} = {value}", key(arg))
    }

    /// The values that a file gives, if they are of this kind.
    fn values(self, value: &DeValue<'_>) -> Option<Vec<String>> {
        let text = |value: &DeValue<'_>| value.as_str().map(str::to_owned);
        match self {
            Self::Boolean => value.as_bool().map(|value| vec![value.to_string()]),
            Self::Number => value.as_integer().map(|value| vec![value.to_string()]),
            Self::Text => text(value).map(|value| vec![value]),
            Self::List => {
                let items = value.as_array()?.iter();
                items.map(|item| text(item.get_ref())).collect()
            }
        }
    }
}

/// A place in a file, as people and editors know it.
struct Place<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Place<'_> {
    fn refused(
        &self,
        at: Option<Range<usize>>,
        what: &str,
        fix: String,
        cause: Option<Cause>,
    ) -> Failure {
        let before = at.and_then(|at| self.text.get(..at.start)).unwrap_or("");
        let line = before.matches('\n').count() + 1;
        Failure::Input {
            problem: format!("reading settings: {}:{line}: {what}", shown(self.path)),
            fix: Some(fix),
            cause,
        }
    }
}

/// A size is a number too, but is written with M or G behind it.
fn is_size(arg: &Arg) -> bool {
    let names = arg.get_value_names().unwrap_or_default();
    names.iter().any(|name| name == "SIZE")
}

/// Reads the text of a file.
///
/// # Errors
/// When it is no TOML, or has a name or a value that is no setting's.
pub(super) fn read(path: &Path, text: &str, settings: &[Arg]) -> Result<Given, Failure> {
    let place = Place { path, text };
    let table = DeTable::parse(text).map_err(|error| {
        let fix = "write each setting as NAME = VALUE, texts in quotation marks".into();
        let cause = Some(error.message().to_owned().into());
        place.refused(error.span(), "this is no TOML", fix, cause)
    })?;
    let mut given = Given::new();
    for (name, value) in table.get_ref() {
        let Some(arg) = settings.iter().find(|arg| key(arg) == *name.get_ref()) else {
            let what = format!("there is no setting `{}`", name.get_ref());
            let fix = instead(name.get_ref(), settings);
            return Err(place.refused(Some(name.span()), &what, fix, None));
        };
        let kind = Kind::of(arg);
        let Some(values) = kind.values(value.get_ref()) else {
            let found = value.get_ref().type_str();
            let what = format!("`{}` has to be {}, not {found}", key(arg), kind.words());
            let fix = format!("write it as {}", kind.example(arg));
            return Err(place.refused(Some(value.span()), &what, fix, None));
        };
        for value_text in &values {
            if let Err(cause) = check(arg, kind, value_text) {
                let what = format!("`{}` cannot be `{value_text}`", key(arg));
                let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
                let fix = format!("{}: {help}", kind.example(arg));
                return Err(place.refused(Some(value.span()), &what, fix, Some(cause)));
            }
        }
        given.insert(key(arg), values);
    }
    Ok(given)
}

/// What somebody may have meant.
fn instead(name: &str, settings: &[Arg]) -> String {
    let plain = |name: &str| name.replace(['-', '_'], "").to_lowercase();
    let meant = settings.iter().find(|arg| {
        let variable = arg.get_env().and_then(|variable| variable.to_str());
        plain(&key(arg)) == plain(name) || variable == Some(name)
    });
    match meant {
        Some(arg) => format!("write it as {}", Kind::of(arg).example(arg)),
        None => {
            let all: Vec<_> = settings.iter().map(key).collect();
            format!("the settings are {}", all.join(", "))
        }
    }
}

/// Whether the command line would take the value, asked of its own parser.
fn check(arg: &Arg, kind: Kind, value: &str) -> Result<(), Cause> {
    if kind == Kind::Boolean {
        return Ok(());
    }
    let asked = Arg::new("value")
        .value_parser(arg.get_value_parser().clone())
        .allow_hyphen_values(true);
    let taken = Command::new("settings")
        .no_binary_name(true)
        .disable_help_flag(true)
        .arg(asked)
        .try_get_matches_from([value]);
    taken.map(|_| ()).map_err(|error| match error.source() {
        Some(source) => source.to_string().into(),
        None => error.kind().to_string().into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::settings;

    fn refused(text: &str) -> String {
        let refused = read(Path::new("gb.toml"), text, &settings());
        refused.unwrap_err().for_person()
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line_and_what_is_meant() {
        insta::assert_snapshot!(refused("log = 'info'\npublic-url = 'https://a.b'\n"), @r#"
        error: reading settings: gb.toml:2: there is no setting `public-url`
          fix: write it as public_url = "URL"
        "#);
        insta::assert_snapshot!(refused("GLOVEBOX_LISTEN = '127.0.0.1:1'"), @r#"
        error: reading settings: gb.toml:1: there is no setting `GLOVEBOX_LISTEN`
          fix: write it as listen = "ADDRESS"
        "#);
        insta::assert_snapshot!(refused("\n[server]\nlisten = '127.0.0.1:1'"), @"
        error: reading settings: gb.toml:2: there is no setting `server`
          fix: the settings are listen, tls_cert, tls_key, public_url, trusted_proxies, max_caller_streams, max_streams, insecure_http, sandbox_gui_config, runtime, docker_socket, max_sandboxes, max_memory, accept_weaker, queues, sandbox_enabled, log, metrics_listen, history_days, data, server_data, database
        ");
        insta::assert_snapshot!(refused("log = 'info'\n\nlisten = 8080"), @r#"
        error: reading settings: gb.toml:3: `listen` has to be a text, not integer
          fix: write it as listen = "ADDRESS"
        "#);
        insta::assert_snapshot!(refused("insecure_http = 'yes'"), @"
        error: reading settings: gb.toml:1: `insecure_http` has to be true or false, not string
          fix: write it as insecure_http = true
        ");
        insta::assert_snapshot!(refused("trusted_proxies = '10.0.0.1'"), @r#"
        error: reading settings: gb.toml:1: `trusted_proxies` has to be a list of texts, not string
          fix: write it as trusted_proxies = ["ADDRESS"]
        "#);
        insta::assert_snapshot!(refused("listen = 'localhost'"), @r#"
        error: reading settings: gb.toml:1: `listen` cannot be `localhost`: invalid socket address syntax
          fix: listen = "ADDRESS": Where to listen
        "#);
        insta::assert_snapshot!(refused("trusted_proxies = ['10.0.0.1', '-x']"), @r#"
        error: reading settings: gb.toml:1: `trusted_proxies` cannot be `-x`: invalid IP address syntax
          fix: trusted_proxies = ["ADDRESS"]: Addresses of programs in front whose word about the caller's address is taken
        "#);
        insta::assert_snapshot!(refused("log = info"), @"
        error: reading settings: gb.toml:1: this is no TOML: invalid float, expected `inf`
          fix: write each setting as NAME = VALUE, texts in quotation marks
        ");
        insta::assert_snapshot!(refused("log = 'a'\nlog = 'b'"), @"
        error: reading settings: gb.toml:2: this is no TOML: duplicate key
          fix: write each setting as NAME = VALUE, texts in quotation marks
        ");
    }

    #[test]
    fn an_empty_file_says_nothing() {
        let read = |text| read(Path::new("gb.toml"), text, &settings()).unwrap();
        assert!(read("").is_empty());
        assert!(read("# only a remark\n").is_empty());
    }
}
