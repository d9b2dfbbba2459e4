//! Forms that no call takes, tried on every call that the document has.

use serde_json::{Value, json};

use crate::stage::Stage;
use crate::wire::Who;

/// Method, path with something in the place of each name, and what the document says of the call.
fn calls() -> Vec<(String, String, Value)> {
    let document = serde_json::to_value(glovebox_server::http::document()).unwrap();
    let mut calls = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let parts = path.split('/').map(|part| match part {
            "{form}" => "json",
            part if part.starts_with('{') => "0",
            part => part,
        });
        let path = parts.collect::<Vec<_>>().join("/");
        for (method, call) in item.as_object().unwrap() {
            calls.push((method.to_uppercase(), path.clone(), call.clone()));
        }
    }
    calls
}

#[tokio::test]
async fn an_array_in_the_place_of_an_object_is_refused() {
    let stage = Stage::start().await;
    let (_, admin) = stage.user("system", true).await;
    let mut tried = 0;
    for (method, path, call) in calls() {
        if call["requestBody"]["content"]["application/json"].is_null() {
            continue;
        }
        for body in [json!([]), json!([true]), json!(["a", "b", "c", "d"])] {
            let answer = stage.call(&admin, &method, &path, &body).await;
            let said = (answer.status, answer.code());
            assert_eq!(said, (400, "invalid".into()), "{method} {path} {body}");
        }
        tried += 1;
    }
    assert!(tried > 12, "{tried}");
}

#[tokio::test]
async fn a_page_of_a_size_that_none_has_is_refused() {
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    let (_, admin) = stage.user("system", true).await;
    let (_, member) = stage
        .member(workspace, "member", glovebox_store::Role::Owner)
        .await;
    let mut tried = 0;
    for (_, path, call) in calls() {
        let parameters = call["parameters"].as_array().into_iter().flatten();
        let names: Vec<_> = parameters
            .map(|one| one["name"].as_str().unwrap())
            .collect();
        if !names.contains(&"limit") {
            continue;
        }
        let is_admins = path.contains("/admin/");
        let who: &Who = if is_admins { &admin } else { &member };
        let place = if names.contains(&"workspace_id") {
            format!("&workspace_id={workspace}")
        } else {
            String::new()
        };
        // A list of something that is not there has no pages.
        let good = if path.contains("/0/") { 404 } else { 200 };
        for (limit, status) in [
            ("0", 400),
            ("501", 400),
            ("-1", 400),
            ("1", good),
            ("500", good),
        ] {
            let path = format!("{path}?limit={limit}{place}");
            let answer = stage.get(who, &path).await;
            assert_eq!(answer.status, status, "{path} {}", answer.text());
        }
        tried += 1;
    }
    assert!(tried > 4, "{tried}");
}
