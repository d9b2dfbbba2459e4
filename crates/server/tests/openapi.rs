//! The document of the API is committed, so that a change of the API is seen as one.

use std::path::Path;

/// Set to write the document anew instead of comparing it.
const WRITE: &str = "GLOVEBOX_WRITE_OPENAPI";

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a test has no other way to be told"
)]
fn the_committed_document_is_that_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/openapi.json");
    let document = serde_json::to_string_pretty(&glovebox_server::http::document())
        .expect("the document is JSON");
    let document = format!("{document}\n");
    if std::env::var_os(WRITE).is_some() {
        fs_err::write(&path, document).expect("the document can be written");
        return;
    }
    let committed = fs_err::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == document,
        "docs/reference/openapi.json is not what the code says; run `make openapi`"
    );
}
