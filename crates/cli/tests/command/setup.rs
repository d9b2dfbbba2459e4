//! `glovebox setup`

use crate::support::with_sandbox;

#[test]
fn a_tree_that_is_there_is_compared_with_its_manifest() {
    let place = with_sandbox();
    // The first call may have to build it.
    assert_eq!(
        place.glovebox(["setup", "--quiet"]).to_string(),
        "status 0\n"
    );
    let said = place.glovebox(["setup"]);
    assert_eq!(said.status, 0, "{said}");
    assert!(
        said.err.ends_with(": the tree is as it was built\n"),
        "{said}"
    );
}
