//! `glovebox version` and the help.

use crate::support::Place;

#[test]
fn it_says_its_version_and_protocol() {
    let said = Place::new().glovebox(["version"]);
    let expected = format!("glovebox {} (protocol 1)\n", env!("CARGO_PKG_VERSION"));
    assert_eq!((said.status, said.out), (0, expected));
}

#[test]
fn help_says_what_can_be_asked_for() {
    insta::assert_snapshot!("help_of_run", Place::new().glovebox(["run", "--help"]).out);
    insta::assert_snapshot!("help", Place::new().glovebox(["--help"]).out);
}
