//! The first administrator, and nobody else by the same link.

use serde_json::{Value, json};

use crate::stage::Stage;
use crate::wire::{Answer, Who, session_of};

const PASSWORD: &str = "correct horse battery";

async fn link(stage: &Stage) -> String {
    let link = stage.app.new_setup_link().await.unwrap().unwrap();
    link.split_once("#token=").unwrap().1.to_owned()
}

async fn set_up(stage: &Stage, token: &str, email: &str) -> Answer {
    let body = json!({ "token": token, "email": email, "name": "Ada", "password": PASSWORD });
    stage
        .call(&Who::Nobody, "POST", "/api/v1/setup", &body)
        .await
}

#[tokio::test]
async fn the_link_makes_one_administrator_and_signs_it_in() {
    let stage = Stage::start().await;
    let needs = async || stage.get(&Who::Nobody, "/api/v1/setup").await.ok();
    assert_eq!(needs().await, json!({ "needs_setup": true }));
    let old = link(&stage).await;
    let token = link(&stage).await;
    for wrong in [old.as_str(), "", "x"] {
        let refused = set_up(&stage, wrong, "ada@example.com").await;
        assert_eq!((refused.status, refused.code()), (403, "setup_link".into()));
    }
    let done = set_up(&stage, &token, "Ada@Example.com").await;
    let ada = session_of(&done);
    let me = done.ok();
    assert_eq!(me["user"]["email"], "ada@example.com");
    assert_eq!(me["user"]["is_system_admin"], true);
    assert_eq!(me["memberships"][0]["name"], "Main");
    assert_eq!(me["memberships"][0]["role"], "owner");
    assert_eq!(stage.get(&ada, "/api/v1/session").await.ok(), me);
    assert_eq!(needs().await, json!({ "needs_setup": false }));
    let again = set_up(&stage, &token, "eve@example.com").await;
    assert_eq!((again.status, again.code()), (403, "setup_link".into()));
    assert!(stage.app.new_setup_link().await.unwrap().is_none());
}

#[tokio::test]
async fn two_with_the_same_link_make_one_administrator() {
    let stage = Stage::start().await;
    let token = link(&stage).await;
    let (one, other) = tokio::join!(
        set_up(&stage, &token, "ada@example.com"),
        set_up(&stage, &token, "eve@example.com")
    );
    let mut statuses = [one.status, other.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 403]);
    assert_eq!(stage.store().count_system_admins().await.unwrap(), 1);
}

#[tokio::test]
async fn what_cannot_be_used_is_said_and_leaves_the_link_good() {
    let stage = Stage::start().await;
    let token = link(&stage).await;
    let with = |email: &str, name: &str, password: &str| json!({ "token": token, "email": email, "name": name, "password": password });
    for bad in [
        with("ada", "Ada", PASSWORD),
        with("ada@example.com", " ", PASSWORD),
        with("ada@example.com", "Ada", "short"),
    ] {
        let refused = stage
            .call(&Who::Nobody, "POST", "/api/v1/setup", &bad)
            .await;
        assert_eq!((refused.status, refused.code()), (400, "invalid".into()));
    }
    let no_json = stage
        .call(&Who::Nobody, "POST", "/api/v1/setup", &Value::Null)
        .await;
    assert_eq!((no_json.status, no_json.code()), (400, "invalid".into()));
    set_up(&stage, &token, "ada@example.com").await.ok();
}

/// A password is not even looked at for somebody without the link: to hash one takes long.
#[tokio::test]
async fn the_link_is_looked_at_before_the_password() {
    let stage = Stage::start().await;
    let token = link(&stage).await;
    let asked = async |token: &str| {
        let short = json!({ "token": token, "email": "ada@example.com", "name": "Ada", "password": "short" });
        let refused = stage
            .call(&Who::Nobody, "POST", "/api/v1/setup", &short)
            .await;
        (refused.status, refused.code())
    };
    assert_eq!(asked("x").await, (403, "setup_link".into()));
    assert_eq!(asked(&token).await, (400, "invalid".into()));
}
