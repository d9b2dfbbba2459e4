//! The reference of all settings is written from the command line's definitions and committed, so
//! that it says what is true and a change of it is seen.

use std::fmt::Write as _;
use std::path::Path;

use clap::Arg;

use super::file::Kind;
use super::{FILE, key, settings};

/// Set to write the reference anew instead of comparing it.
const WRITE: &str = "GLOVEBOX_WRITE_SETTINGS";

const HEAD: &str = "\
# Settings

<!-- Written by `make settings` from the definitions of the command line. -->

What `glovebox serve`, `glovebox migrate` and `glovebox admin` can be told; each takes of it what \
it needs. The same setting can be an option, a variable of the environment, or a line of a file; \
an option wins over a variable, a variable over the file, the file over the default.

The file is TOML. `--config FILE` names it, or the variable `GLOVEBOX_CONFIG`; there is none \
unless one is named. A name that is no setting, and a value of another kind, is refused with its \
line. Paths in it are relative to where the command is started. It may hold a database's \
password: let nobody else read it then.

```toml
listen = \"127.0.0.1:9000\"
public_url = \"https://glovebox.example.com\"
trusted_proxies = [\"10.0.0.2\"]
sandbox_gui_config = false
```

| in a file | option | variable | is | default | what it does |
|---|---|---|---|---|---|
";

fn row(arg: &Arg) -> String {
    let text = |words: Option<String>| words.unwrap_or_default();
    let defaults: Vec<_> = arg
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy())
        .filter(|value| !value.is_empty())
        .map(|value| format!("`{value}`"))
        .collect();
    let kind = Kind::of(arg);
    let default = match (kind, defaults.is_empty()) {
        (Kind::Boolean, true) => "`false`".into(),
        _ => defaults.join(", "),
    };
    format!(
        "| `{}` | `--{}` | `{}` | {} | {default} | {} |",
        key(arg),
        arg.get_long().unwrap_or_default(),
        text(
            arg.get_env()
                .map(|name| name.to_string_lossy().into_owned())
        ),
        kind.words(),
        text(arg.get_help().map(ToString::to_string)).replace('|', "\\|"),
    )
}

fn reference() -> String {
    let mut text = HEAD.to_owned();
    for arg in settings() {
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "{}", row(&arg));
    }
    text
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a test has no other way to be told"
)]
fn the_committed_reference_is_that_of_the_command_line() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/settings.md");
    let reference = reference();
    if std::env::var_os(WRITE).is_some() {
        fs_err::write(&path, reference).expect("the reference can be written");
        return;
    }
    let committed = fs_err::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == reference,
        "docs/reference/settings.md is not what the command line says; run `make settings`"
    );
    assert!(settings().iter().all(|arg| key(arg) != FILE));
}
