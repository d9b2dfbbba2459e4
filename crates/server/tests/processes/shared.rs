//! Two servers with one database and one folder.

use serde_json::json;

use crate::process::{Place, Server, on_sqlite, until};
use crate::wire::Who;

/// How many are asked for at once.
const AT_ONCE: usize = 50;

/// The status of the answer to whoever asks for a sandbox.
async fn start(server: &Server, who: &Who, workspace: &str) -> u16 {
    let wanted = json!({ "workspace_id": workspace });
    let path = "/api/v1/sandboxes";
    server.visitor.call(who, "POST", path, &wanted).await.status
}

#[tokio::test]
async fn two_servers_are_one_to_whoever_asks() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place {
        folder: folder.path().to_owned(),
        database: Some(glovebox_testkit::postgres_database().unwrap()),
    };
    place.migrate();
    let first = place.serve(&[]);
    let second = place.serve(&[]);
    // Each start makes the link anew, until there is an administrator.
    let (ada, workspace) = second.begin().await;

    // What the one is told holds for the other with the next request.
    let switch = async |on: bool| {
        let body = json!({ "code_execution": on });
        first
            .visitor
            .call(&ada, "PATCH", "/api/v1/admin/sandbox", &body)
            .await
            .ok();
    };
    switch(false).await;
    assert_eq!(start(&second, &ada, &workspace).await, 403);
    switch(true).await;

    // Fifty at once, at both: no more come than may be.
    let asked = (0..AT_ONCE).map(|number| {
        let server = if number % 2 == 0 { &first } else { &second };
        start(server, &ada, &workspace)
    });
    let answers = futures_util::future::join_all(asked).await;
    let made = answers.iter().filter(|status| **status == 201).count();
    let refused = answers.iter().filter(|status| **status == 429).count();
    assert_eq!((made, refused), (2, AT_ONCE - 2), "{answers:?}");

    // A key that the one has made is good for the other, and either runs code in a sandbox that
    // the other has made.
    let keys = format!("/api/v1/workspaces/{workspace}/api-keys");
    let wanted = json!({ "name": "script", "scopes": ["code_execution:run"] });
    let made = first.visitor.call(&ada, "POST", &keys, &wanted).await.ok();
    let key = Who::Key(made["token"].as_str().unwrap().to_owned());
    let listed = second
        .visitor
        .get(&ada, &format!("/api/v1/sandboxes?workspace_id={workspace}"))
        .await
        .ok();
    let sandbox = listed["items"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(first.value(&ada, &sandbox, "kept = 7; kept").await, "7");
    assert_eq!(second.value(&key, &sandbox, "kept").await, "7");

    // The gateway was the first one's; when that is killed the second looks after it.
    first.process.kill();
    until(async || {
        let path = format!("/api/v1/sandboxes/{sandbox}/executions");
        let body = json!({ "code": "1" });
        second.visitor.call(&ada, "POST", &path, &body).await.status == 202
    })
    .await;
    assert_eq!(second.value(&ada, &sandbox, "kept").await, "7");
    second.end_sandboxes(&ada, &workspace).await;
}

#[tokio::test]
async fn a_file_of_sqlite_has_one_server_and_the_next_one_when_that_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let place = on_sqlite(folder.path());
    let first = place.serve(&[]);
    let refused = place.refusal();
    assert!(
        refused.contains("another server runs with the database"),
        "{refused}"
    );
    assert!(refused.contains("fix: end that one first"), "{refused}");
    // The first one goes on, and workers beside it are welcome.
    assert_eq!(first.visitor.get(&Who::Nobody, "/readyz").await.status, 200);
    let _worker = place.work();
    first.process.kill();
    let next = place.serve(&[]);
    assert_eq!(next.visitor.get(&Who::Nobody, "/readyz").await.status, 200);
}
