//! `glovebox doctor`

use serde_json::Value;

use crate::support::with_sandbox;

#[test]
fn where_sandboxes_can_be_made_it_says_so() {
    let place = with_sandbox();
    let said = place.glovebox(["doctor"]);
    assert_eq!((said.status, said.err.as_str()), (0, ""), "{said}");
    assert!(
        said.out.ends_with("\n\nSandboxes can be made here.\n"),
        "{said}"
    );
    let words = said.out.lines().take_while(|line| !line.is_empty());
    for line in words.filter(|line| !line.starts_with("      ")) {
        assert!(
            line.starts_with("pass  ") || line.starts_with("warn  "),
            "{line}"
        );
    }
}

#[test]
fn for_programs_it_is_one_document() {
    let place = with_sandbox();
    let said = place.glovebox(["doctor", "--json"]);
    let report: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(report["can_make_sandboxes"], said.status == 0);
    let checks = report["checks"].as_array().unwrap();
    assert!(checks.len() > 5);
    for check in checks {
        assert!(
            check["id"].is_string() && check["message"].is_string(),
            "{check}"
        );
    }
}

#[test]
fn a_user_that_there_is_not_is_named() {
    let place = with_sandbox();
    let said = place.glovebox(["doctor", "--fix", "--user", "nobody-of-this-name"]);
    assert_eq!(said.status, 125);
    assert!(
        said.err
            .starts_with("error: looking up the user nobody-of-this-name: ")
            || said
                .err
                .starts_with("error: preparing this machine needs root"),
        "{said}"
    );
}
