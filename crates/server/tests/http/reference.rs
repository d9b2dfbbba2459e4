//! The reference of the API that every server has: a page for people, the document for programs.

use serde_json::Value;

use crate::stage::Stage;
use crate::wire::Who;

#[tokio::test]
async fn the_page_is_under_the_policy_of_all_pages_and_reads_the_document() {
    let stage = Stage::start().await;
    let page = stage.get(&Who::Nobody, "/api/v1/docs").await;
    assert_eq!(page.status, 200, "{}", page.text());
    assert_eq!(page.headers["content-type"], "text/html; charset=utf-8");
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    let rules: Vec<_> = policy.split(';').map(str::trim).collect();
    for rule in [
        "default-src 'none'",
        "script-src 'self'",
        "connect-src 'self'",
    ] {
        assert!(rules.contains(&rule), "{policy}");
    }

    let served = stage.get(&Who::Nobody, "/api/v1/openapi.json").await.ok();
    let document = serde_json::to_value(glovebox_server::http::document()).unwrap();
    assert_eq!(served, document);
    let beside = stage.get(&Who::Nobody, "/api/v1/docs/more").await;
    assert_eq!(
        (beside.status, beside.json()["code"].clone()),
        (404, Value::from("not_found"))
    );
}

#[tokio::test]
async fn a_server_whose_database_does_not_answer_is_not_ready() {
    let stage = Stage::start().await;
    assert_eq!(stage.get(&Who::Nobody, "/readyz").await.status, 200);
    stage.store().close().await;
    let refused = stage.get(&Who::Nobody, "/readyz").await;
    assert_eq!(
        (refused.status, refused.code()),
        (503, "database_unavailable".into())
    );
    assert_eq!(stage.get(&Who::Nobody, "/healthz").await.status, 200);
}
