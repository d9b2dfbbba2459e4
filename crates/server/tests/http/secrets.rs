//! No secret comes back in an answer or stands in the audit log.

use serde_json::json;

use crate::stage::Stage;
use crate::wire::Who;
use crate::wire::session_of;

#[tokio::test]
async fn what_is_secret_is_in_no_answer_and_in_no_entry() {
    let stage = Stage::start().await;
    let link = stage.app.new_setup_link().await.unwrap().unwrap();
    let setup = link.split_once("#token=").unwrap().1.to_owned();
    let password = "a very secret password";
    let body = json!({
        "token": setup, "email": "ada@example.com", "name": "Ada", "password": password
    });
    let done = stage
        .call(&Who::Nobody, "POST", "/api/v1/setup", &body)
        .await;
    let ada = session_of(&done);
    let Who::Session(session) = &ada else {
        panic!("not a session")
    };
    let me = stage.get(&ada, "/api/v1/session").await.ok();
    let workspace = me["memberships"][0]["workspace_id"].as_str().unwrap();
    let keys = format!("/api/v1/workspaces/{workspace}/api-keys");
    let wanted = json!({ "name": "script", "scopes": ["files:read"] });
    let made = stage.call(&ada, "POST", &keys, &wanted).await.ok();
    let token = made["token"].as_str().unwrap().to_owned();
    let planted = [
        setup.as_str(),
        password,
        session.as_str(),
        token.as_str(),
        "$argon2id$",
    ];

    let document = serde_json::to_value(glovebox_server::http::document()).unwrap();
    let profile = stage.store().profiles().await.unwrap()[0].id.to_string();
    let mut looked_at = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        if item.get("get").is_none() {
            continue;
        }
        let path = path
            .replace("{workspace}", workspace)
            .replace("{profile}", &profile)
            .replace("{form}", "csv");
        let query = if path == "/api/v1/sandboxes" || path == "/api/v1/artifacts" {
            format!("?workspace_id={workspace}")
        } else {
            String::new()
        };
        let answer = stage.get(&ada, &format!("{path}{query}")).await;
        let text = format!("{:?} {}", answer.headers, answer.text());
        for secret in planted {
            assert!(!text.contains(secret), "{path} tells a secret");
        }
        looked_at += 1;
    }
    assert!(looked_at > 15, "{looked_at}");
    let log = stage.get(&ada, "/api/v1/admin/audit").await.text();
    assert!(log.contains("api_key.create") && log.contains("user.create"));
}
