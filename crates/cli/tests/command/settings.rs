//! Where settings come from, as commands see it: argument, environment, file, default.

use crate::support::Place;

/// Into which folder `migrate` puts its database.
fn migrated(argument: bool, variable: bool) -> Vec<String> {
    let place = Place::new();
    for folder in ["argument", "variable", "file"] {
        fs_err::create_dir(place.path().join(folder)).unwrap();
    }
    let folder = |name: &str| place.path().join(name).display().to_string();
    place.file("gb.toml", format!("server_data = '{}'\n", folder("file")));
    let mut words = vec!["migrate".to_owned()];
    if argument {
        words.extend(["--server-data".into(), folder("argument")]);
    }
    let mut command = place.command(words);
    command.env("GLOVEBOX_CONFIG", "gb.toml");
    if variable {
        command.env("GLOVEBOX_SERVER_DATA", folder("variable"));
    }
    let said = crate::support::said(command.spawn().unwrap());
    assert_eq!(said.status, 0, "{said}");
    let databases = place.listed(".").into_iter();
    databases
        .filter(|name| name.ends_with("/glovebox.db"))
        .collect()
}

#[test]
fn an_argument_wins_over_the_environment_and_that_over_the_file() {
    assert_eq!(migrated(true, true), ["argument/glovebox.db"]);
    assert_eq!(migrated(false, true), ["variable/glovebox.db"]);
    assert_eq!(migrated(false, false), ["file/glovebox.db"]);
}

#[test]
fn a_file_that_is_no_good_keeps_the_command_from_doing_anything() {
    let place = Place::new();
    place.file("gb.toml", "# Ours\nlisten = 8080\n");
    let refused = |words: &[&str]| place.glovebox(words.iter().copied()).to_string();
    insta::assert_snapshot!(refused(&["serve", "--config", "gb.toml"]), @r#"
    status 125
    -- err
    error: reading settings: gb.toml:2: `listen` has to be a text, not integer
      fix: write it as listen = "ADDRESS"
    "#);
    insta::assert_snapshot!(refused(&["migrate", "--config", "missing.toml"]), @"
    status 125
    -- err
    error: cannot read missing.toml: No such file or directory
    ");
}
