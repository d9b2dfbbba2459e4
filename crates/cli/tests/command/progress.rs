//! The progress line: on a terminal, and never in the way of output.

use std::process::Stdio;

use crate::support::{Place, with_sandbox};

const CODE: &str =
    "import time; time.sleep(1); print('one'); time.sleep(1.5); print('two', end='')";

/// Runs the code on a terminal (that of `script`) with `redirected` behind the command, and
/// returns what the terminal was sent.
fn on_a_terminal(place: &Place, redirected: &str) -> String {
    let command = place.command::<_, &str>([]);
    let glovebox = command.get_program().to_str().unwrap().to_owned();
    let line = format!("{glovebox} run -c \"{CODE}\" {redirected}");
    let mut script = std::process::Command::new("script");
    let data = command
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    let output = script
        .args(["-qec", &line, "/dev/null"])
        .envs(data)
        .env("TERM", "xterm")
        .current_dir(place.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// What is left on the screen: a line that is begun anew is gone.
fn on_screen(sent: &str) -> String {
    let lines = sent
        .split("\r\n")
        .map(|line| match line.rsplit_once("\x1b[2K") {
            Some((_, last)) => last,
            None => line,
        });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn it_is_shown_between_lines_of_output_and_wiped_away() {
    let place = with_sandbox();
    let sent = on_a_terminal(&place, "");
    assert!(
        sent.contains("running the code 0s") && sent.contains("running the code 2s"),
        "{sent}"
    );
    assert_eq!(on_screen(&sent), "one\ntwo");
}

#[test]
fn output_in_a_file_is_output_and_nothing_else() {
    let place = with_sandbox();
    let sent = on_a_terminal(&place, "> out");
    assert!(sent.contains("running the code 0s"), "{sent}");
    assert_eq!(on_screen(&sent), "");
    assert_eq!(place.read("out"), "one\ntwo");
}

#[test]
fn without_a_terminal_there_is_none() {
    let place = with_sandbox();
    let said = place.glovebox(["run", "-c", CODE]);
    assert_eq!(said.to_string(), "status 0\n-- out\none\ntwo");
}
