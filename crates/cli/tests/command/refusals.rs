//! What `glovebox run` refuses before anything is started: one clear line each, nothing left.

use std::os::unix::ffi::OsStrExt as _;

use crate::support::Place;

const MIB: u64 = 1024 * 1024;

fn refused(place: &Place, arguments: &[&str]) -> String {
    let before = place.listed(".");
    let said = place.glovebox(std::iter::once("run").chain(arguments.iter().copied()));
    assert_eq!(place.listed("."), before, "something was left behind");
    said.to_string()
}

#[test]
fn a_script_that_is_not_there() {
    insta::assert_snapshot!(refused(&Place::new(), &["report.py"]), @r"
    status 125
    -- err
    error: cannot read report.py: No such file or directory
    ");
}

#[test]
fn a_folder_as_script() {
    let place = Place::new();
    place.file("data/a.csv", "");
    insta::assert_snapshot!(refused(&place, &["data"]), @r"
    status 125
    -- err
    error: cannot run data: it is a folder
      fix: name the script first, then the files and folders it works on
    ");
}

#[test]
fn inputs_that_cannot_go_in() {
    let place = Place::new();
    place
        .file("a.py", "")
        .file("1/a.csv", "1")
        .file("2/a.csv", "2");
    place.file("a/b/a.py", "");
    insta::assert_snapshot!(refused(&place, &["a.py", "missing.csv"]), @r"
    status 125
    -- err
    error: cannot read missing.csv: No such file or directory
    ");
    insta::assert_snapshot!(refused(&place, &["a.py", "1/a.csv", "2/a.csv"]), @r"
    status 125
    -- err
    error: 1/a.csv and 2/a.csv would both be a.csv in the sandbox
      fix: rename one, or put them into folders and name the folders
    ");
    insta::assert_snapshot!(refused(&place, &["a.py", "a/b/a.py"]), @r"
    status 125
    -- err
    error: a.py and a/b/a.py would both be a.py in the sandbox
      fix: rename one, or put them into folders and name the folders
    ");
    insta::assert_snapshot!(refused(&place, &["a.py", "/dev/null"]), @r"
    status 125
    -- err
    error: cannot take in /dev/null: it is neither a file nor a folder
    ");
}

#[test]
fn inputs_that_are_too_large() {
    let place = Place::new();
    place.file("a.py", "").sparse("huge.csv", 25 * MIB + 1);
    for number in 0..11 {
        place.sparse(&format!("{number}.csv"), 24 * MIB + number);
    }
    insta::assert_snapshot!(refused(&place, &["a.py", "huge.csv"]), @r"
    status 125
    -- err
    error: huge.csv has 26214401 bytes; one input may have 25 MiB at most
    ");
    let all: Vec<_> = (0..11).map(|number| format!("{number}.csv")).collect();
    let arguments: Vec<_> = std::iter::once("a.py")
        .chain(all.iter().map(String::as_str))
        .collect();
    insta::assert_snapshot!(refused(&place, &arguments), @r"
    status 125
    -- err
    error: the inputs have 264 MiB together; there may be 256 MiB at most (the largest is 10.csv, 24 MiB)
    ");
    insta::assert_snapshot!(refused(&place, &["--disk", "10M", "a.py", "0.csv"]), @r"
    status 125
    -- err
    error: the inputs have 24 MiB together; the workspace has 10 MiB
      fix: make more room with --disk
    ");
}

#[test]
fn a_results_folder_that_cannot_be_one() {
    let place = Place::new();
    place.file("a.py", "").file("taken", "");
    insta::assert_snapshot!(refused(&place, &["a.py", "--out", "taken"]), @r"
    status 125
    -- err
    error: cannot save results in taken: taken is not a folder
    ");
    insta::assert_snapshot!(refused(&place, &["a.py", "--out", "taken/below"]), @r"
    status 125
    -- err
    error: cannot save results in taken/below: Not a directory
      fix: make that folder writable, or name another with --out
    ");
    // Who is not root is told another reason.
    let told = refused(&place, &["a.py", "--out", "/proc/results"]);
    let told = told.replace("Permission denied", "No such file or directory");
    insta::assert_snapshot!(told, @r"
    status 125
    -- err
    error: cannot save results in /proc/results: No such file or directory
      fix: make that folder writable, or name another with --out
    ");
}

#[test]
fn a_broken_notebook() {
    let place = Place::new();
    place
        .file("empty.ipynb", "")
        .file("cut.ipynb", "{\n \"cells\": [\n")
        .file("old.ipynb", r#"{"nbformat": 3, "worksheets": []}"#)
        .file(
            "fine.ipynb",
            r#"{"nbformat": 4, "nbformat_minor": 5, "cells": []}"#,
        );
    insta::assert_snapshot!(refused(&place, &["empty.ipynb"]), @r"
    status 125
    -- err
    error: cannot run empty.ipynb: it is no JSON: the file is empty
    ");
    insta::assert_snapshot!(refused(&place, &["cut.ipynb"]), @r"
    status 125
    -- err
    error: cannot run cut.ipynb: it is no JSON: EOF while parsing a list at line 3 column 0
    ");
    insta::assert_snapshot!(refused(&place, &["old.ipynb"]), @r"
    status 125
    -- err
    error: cannot run old.ipynb: its format is 3; 4.0 to 4.5 can be run
      fix: convert it with `jupyter nbconvert --to notebook --nbformat 4`
    ");
    insta::assert_snapshot!(refused(&place, &["fine.ipynb", "--", "-x"]), @r"
    status 2
    -- err
    error: a notebook takes no arguments after `--`
      fix: `glovebox run --help` says what can be asked for
    ");
}

#[test]
fn options_that_there_are_not() {
    let place = Place::new();
    place.file("a.py", "");
    insta::assert_snapshot!(refused(&place, &["a.py", "--network"]), @r"
    status 2
    -- err
    error: unexpected argument '--network' found

      tip: to pass '--network' as a value, use '-- --network'

    Usage: glovebox run [OPTIONS] SCRIPT [FILES]... [-- ARGS]...
           glovebox run [OPTIONS] NOTEBOOK.ipynb [FILES]...
           glovebox run [OPTIONS] - [FILES]... [-- ARGS]...
           glovebox run [OPTIONS] -c CODE [FILES]... [-- ARGS]...

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(refused(&place, &["a.py", "--timeout", "0"]), @r"
    status 2
    -- err
    error: invalid value '0' for '--timeout <TIME>': a time limit of 0 would end the program before it begins

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(refused(&place, &["a.py", "--class", "HUGE"]), @r"
    status 2
    -- err
    error: invalid value 'HUGE' for '--class <CLASS>': `HUGE` is no resource class; there are SMALL, MEDIUM and LARGE

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(refused(&place, &["a.py", "--accept-weaker", "everything"]), @r"
    status 2
    -- err
    error: invalid value 'everything' for '--accept-weaker <NAME>': `everything` is no protection that can be gone without; there are memory-limit, swap-limit, cpu-limit, process-limit, landlock, old-kernel

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(refused(&place, &[]), @r"
    status 2
    -- err
    error: the following required arguments were not provided:
      <SCRIPT|NOTEBOOK|->...

    Usage: glovebox run [OPTIONS] SCRIPT [FILES]... [-- ARGS]...
           glovebox run [OPTIONS] NOTEBOOK.ipynb [FILES]...
           glovebox run [OPTIONS] - [FILES]... [-- ARGS]...
           glovebox run [OPTIONS] -c CODE [FILES]... [-- ARGS]...

    For more information, try '--help'.
    ");
}

#[test]
fn a_hostile_name_cannot_act_on_the_terminal() {
    let place = Place::new();
    let name = std::ffi::OsStr::from_bytes(b"a\x1b[2J\xff.py");
    let said = place.glovebox([std::ffi::OsStr::new("run"), name]);
    insta::assert_snapshot!(said.to_string(), @r"
    status 125
    -- err
    error: cannot read a\u{1b}[2J\xff.py: No such file or directory
    ");
}

#[test]
fn a_failure_is_an_event_for_programs() {
    let said = Place::new().glovebox(["run", "--json", "missing.py"]);
    assert_eq!(said.status, 125);
    let event: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(event["seq"], 1);
    assert_eq!(event["type"], "failed");
    assert_eq!(event["data"]["code"], "invalid");
    assert_eq!(
        event["data"]["message"],
        "cannot read missing.py: No such file or directory"
    );
}
