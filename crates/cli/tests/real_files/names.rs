//! Names at the edge of what a file system takes, through real libraries, in and out.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use crate::support::Place;
use crate::{job, with_sandbox};

/// Runs `sum_each.py` with files of these names, each with its own number in it.
fn summed(place: &Place, names: &[&OsStr]) -> String {
    let mut arguments: Vec<OsString> = vec!["run".into(), job("sum_each.py").into()];
    for (number, name) in (1..).zip(names) {
        place.file(name, format!("n\n{number}\n{number}\n"));
        let mut path = OsString::from("./");
        path.push(name);
        arguments.push(path);
    }
    let said = place.glovebox(arguments);
    assert_eq!(said.status, 0, "{said}");
    said.err
}

#[test]
fn awkward_names_are_read_and_written_by_libraries() {
    let place = with_sandbox();
    let names = [
        "sales 2024 (final).csv",
        "it's \"new\" & `odd` $HOME;.csv",
        "日本語 😀 👩‍👩‍👧.csv",
        "-rf --help.csv",
        "%41%00.csv",
        "~.csv",
        "*?[a].csv",
    ];
    summed(&place, &names.map(OsStr::new));
    let mut expected = names.map(str::to_owned);
    expected.sort();
    assert_eq!(place.listed("results/sums"), expected);
    for (number, name) in (1..).zip(names) {
        let sum = place.read(&format!("results/sums/{name}"));
        assert_eq!(sum, format!("sum\n{}\n", 2 * number), "{name}");
    }
}

#[test]
fn the_longest_name_goes_in_and_comes_out() {
    let place = with_sandbox();
    let names = ["n".repeat(251) + ".csv", "字".repeat(83) + "é.csv"];
    let names: Vec<_> = names.iter().map(|name| &name[..]).collect();
    assert!(names.iter().all(|name| name.len() == 255));
    let os: Vec<_> = names.iter().map(OsStr::new).collect();
    summed(&place, &os);
    assert_eq!(place.listed("results/sums"), names);
    // The same again is no new version; something else of that name is one, and fits.
    summed(&place, &os);
    assert_eq!(place.listed("results/sums"), names);
    let swapped: Vec<_> = os.iter().rev().copied().collect();
    let told = summed(&place, &swapped);
    assert_eq!(place.listed("results/sums").len(), 4, "{told}");
    for name in place.listed("results/sums") {
        assert!(name.len() <= 255 && name.ends_with(".csv"), "{name}");
    }
}

#[test]
fn a_name_that_is_no_text_comes_out_as_text() {
    let place = with_sandbox();
    let told = summed(&place, &[OsStr::from_bytes(b"caf\xe9 \xff.csv")]);
    assert_eq!(place.listed("results/sums"), ["caf_ _.csv"]);
    assert!(
        told.contains(r"caf\xe9 \xff.csv") && !told.contains("was taken"),
        "{told}"
    );
}
