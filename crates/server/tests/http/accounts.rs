//! Signing in and out, sessions, passwords, keys.

use glovebox_store::Role;
use hyper::body::Bytes;
use serde_json::{Value, json};

use crate::stage::Stage;
use crate::wire::session_of;
use crate::wire::{Who, send};

const PASSWORD: &str = "correct horse battery";

/// A system admin with a password.
async fn with_password(stage: &Stage) -> Who {
    let token = stage.app.new_setup_link().await.unwrap().unwrap();
    let token = token.split_once("#token=").unwrap().1;
    let body = json!({
        "token": token, "email": "ada@example.com", "name": "Ada", "password": PASSWORD
    });
    let done = stage
        .call(&Who::Nobody, "POST", "/api/v1/setup", &body)
        .await;
    session_of(&done)
}

fn credentials(email: &str, password: &str) -> Value {
    json!({ "email": email, "password": password })
}

#[tokio::test]
async fn a_password_signs_in_and_a_session_can_be_ended() {
    let stage = Stage::start().await;
    let first = with_password(&stage).await;
    let sign_in = async |body| {
        stage
            .call(&Who::Nobody, "POST", "/api/v1/session", &body)
            .await
    };
    let done = sign_in(credentials(" ADA@example.com", PASSWORD)).await;
    let second = session_of(&done);
    assert_eq!(done.status, 200);
    let sessions = stage.get(&second, "/api/v1/account/sessions").await.ok();
    let items = sessions["items"].as_array().unwrap();
    assert_eq!(items.len(), 2);
    let other = items.iter().find(|item| item["is_this"] == false).unwrap();
    let path = format!("/api/v1/account/sessions/{}", other["id"].as_str().unwrap());
    let ended = stage.call(&second, "DELETE", &path, &Value::Null).await;
    assert_eq!(ended.status, 204);
    assert_eq!(stage.get(&first, "/api/v1/session").await.status, 401);
    let out = stage
        .call(&second, "DELETE", "/api/v1/session", &Value::Null)
        .await;
    assert_eq!(out.status, 204);
    assert!(
        out.headers["set-cookie"]
            .to_str()
            .unwrap()
            .contains("Max-Age=0")
    );
    assert_eq!(stage.get(&second, "/api/v1/session").await.status, 401);
}

#[tokio::test]
async fn after_ten_wrong_passwords_the_right_one_is_refused_too() {
    let stage = Stage::start().await;
    with_password(&stage).await;
    let sign_in = async |email: &str, password: &str| {
        let body = credentials(email, password);
        let done = stage
            .call(&Who::Nobody, "POST", "/api/v1/session", &body)
            .await;
        (done.status, done.code())
    };
    for _ in 0..10 {
        let refused = sign_in("ada@example.com", "wrong password").await;
        assert_eq!(refused, (401, "wrong_credentials".into()));
    }
    let refused = sign_in("ada@example.com", PASSWORD).await;
    assert_eq!(refused, (429, "too_many_attempts".into()));
    // From the same address nobody else gets in either.
    let other = sign_in("bob@example.com", PASSWORD).await;
    assert_eq!(other, (429, "too_many_attempts".into()));
}

#[tokio::test]
async fn of_wrong_passwords_sent_at_once_no_more_are_looked_at() {
    let stage = Stage::start().await;
    with_password(&stage).await;
    let body = credentials("ada@example.com", "wrong password");
    let attempt = || stage.call(&Who::Nobody, "POST", "/api/v1/session", &body);
    let answers = futures_util::future::join_all((0..40).map(|_| attempt())).await;
    let looked_at = answers.iter().filter(|answer| answer.status == 401).count();
    assert!((1..=10).contains(&looked_at), "{looked_at}");
    assert!(
        answers
            .iter()
            .all(|answer| matches!(answer.status, 401 | 429))
    );
}

#[tokio::test]
async fn a_password_that_is_changed_is_guessed_ten_times_at_most() {
    let stage = Stage::start().await;
    let me = with_password(&stage).await;
    let change = async |present: &str| {
        let body = json!({ "present": present, "new": "another good password" });
        let done = stage
            .call(&me, "POST", "/api/v1/account/password", &body)
            .await;
        done.code()
    };
    for _ in 0..10 {
        assert_eq!(change("not the password").await, "wrong_password");
    }
    assert_eq!(change(PASSWORD).await, "too_many_attempts");
}

#[tokio::test]
async fn a_new_password_ends_the_other_sessions() {
    let stage = Stage::start().await;
    let first = with_password(&stage).await;
    let done = stage
        .call(
            &Who::Nobody,
            "POST",
            "/api/v1/session",
            &credentials("ada@example.com", PASSWORD),
        )
        .await;
    let second = session_of(&done);
    let change = async |present: &str, new: &str| {
        let body = json!({ "present": present, "new": new });
        let done = stage
            .call(&second, "POST", "/api/v1/account/password", &body)
            .await;
        (done.status, done.code())
    };
    let wrong = change("not the password", "another good password").await;
    assert_eq!(wrong, (403, "wrong_password".into()));
    assert_eq!(change(PASSWORD, "short").await.0, 400);
    assert_eq!(change(PASSWORD, "another good password").await.0, 204);
    assert_eq!(stage.get(&first, "/api/v1/session").await.status, 401);
    assert_eq!(stage.get(&second, "/api/v1/session").await.status, 200);
}

#[tokio::test]
async fn a_key_is_shown_once_and_its_own_alone() {
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    let (_, editor) = stage.member(workspace, "editor", Role::Editor).await;
    let (_, other) = stage.member(workspace, "other", Role::Editor).await;
    let (_, admin) = stage.member(workspace, "admin", Role::Admin).await;
    let (_, viewer) = stage.member(workspace, "viewer", Role::Viewer).await;
    let path = format!("/api/v1/workspaces/{workspace}/api-keys");
    let wanted = json!({ "name": "script", "scopes": ["artifacts:read"] });
    let refused = stage.call(&viewer, "POST", &path, &wanted).await;
    assert_eq!((refused.status, refused.code()), (403, "forbidden".into()));
    for bad in [
        json!({ "name": "", "scopes": ["files:read"] }),
        json!({ "name": "x", "scopes": [] }),
        json!({ "name": "x", "scopes": ["everything"] }),
    ] {
        assert_eq!(stage.call(&editor, "POST", &path, &bad).await.status, 400);
    }
    let made = stage.call(&editor, "POST", &path, &wanted).await;
    assert_eq!(made.status, 201);
    let made = made.json();
    let token = made["token"].as_str().unwrap().to_owned();
    let list = async |who| {
        let listed = stage.get(who, &path).await;
        assert!(!listed.text().contains(&token));
        listed.ok()["items"].as_array().unwrap().len()
    };
    assert_eq!(list(&editor).await, 1);
    assert_eq!(list(&other).await, 0);
    assert_eq!(list(&admin).await, 1);
    let one = format!("{path}/{}", made["id"].as_str().unwrap());
    let delete = async |who| stage.call(who, "DELETE", &one, &Value::Null).await.status;
    assert_eq!(delete(&other).await, 404);
    let key = Who::Key(token.clone());
    assert_eq!(stage.get(&key, "/api/v1/artifacts").await.status, 200);
    // A key looks after nothing.
    assert_eq!(stage.get(&key, &path).await.status, 401);
    assert_eq!(delete(&admin).await, 204);
    assert_eq!(stage.get(&key, "/api/v1/artifacts").await.status, 401);
}

#[tokio::test]
async fn what_a_key_is_for_has_to_be_known() {
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    let (_, editor) = stage.member(workspace, "editor", Role::Editor).await;
    let path = format!("/api/v1/workspaces/{workspace}/api-keys");
    for (wanted, said) in [
        (json!({ "name": "x" }), "a key needs at least one scope"),
        (
            json!({ "name": "x", "scopes": [] }),
            "a key needs at least one scope",
        ),
        (
            json!({ "name": "x", "scopes": ["files:read", "all\n"] }),
            "there is no scope `all\\u{a}`",
        ),
    ] {
        let refused = stage.call(&editor, "POST", &path, &wanted).await;
        assert_eq!((refused.status, refused.code()), (400, "invalid".into()));
        let body = refused.json();
        assert_eq!(body["message"], said);
        let fix = body["fix"].as_str().unwrap();
        assert!(fix.contains("code_execution:run, files:read"), "{fix}");
    }
    let twice = json!({ "name": "x", "scopes": ["files:read", "files:read"] });
    stage.call(&editor, "POST", &path, &twice).await.ok();
    let listed = stage.get(&editor, &path).await.ok();
    assert_eq!(listed["items"][0]["scopes"], json!(["files:read"]));
}

#[tokio::test]
async fn the_keys_of_a_member_who_comes_back_stay_revoked() {
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    let (_, owner) = stage.member(workspace, "owner", Role::Owner).await;
    let (editor_id, editor) = stage.member(workspace, "editor", Role::Editor).await;
    let path = format!("/api/v1/workspaces/{workspace}/api-keys");
    let wanted = json!({ "name": "script", "scopes": ["artifacts:read"] });
    let made = stage.call(&editor, "POST", &path, &wanted).await.ok();
    let key = Who::Key(made["token"].as_str().unwrap().to_owned());
    let status = async || stage.get(&key, "/api/v1/artifacts").await.status;
    assert_eq!(status().await, 200);

    let members = format!("/api/v1/workspaces/{workspace}/members");
    let one = format!("{members}/{editor_id}");
    let removed = stage.call(&owner, "DELETE", &one, &Value::Null).await;
    assert_eq!((removed.status, status().await), (204, 401));
    let back = json!({ "email": "editor@example.com", "role": "editor" });
    assert_eq!(
        stage.call(&owner, "POST", &members, &back).await.status,
        204
    );
    assert_eq!(status().await, 401);
    let listed = stage.get(&editor, &path).await.ok();
    assert_eq!(listed["items"], json!([]));

    let (_, system) = stage.user("system", true).await;
    let log = stage
        .get(&system, "/api/v1/admin/audit?action=api_key.")
        .await
        .ok();
    let entry = &log["items"][0];
    assert_eq!(
        (&entry["action"], &entry["object_id"], &entry["actor"]),
        (
            &json!("api_key.revoke"),
            &made["id"],
            &json!("owner@example.com")
        )
    );
}

#[tokio::test]
async fn a_page_of_another_site_changes_nothing() {
    let stage = Stage::start().await;
    let (_, ada) = stage.user("ada", true).await;
    let forged = [
        ("content-type", "application/json"),
        ("sec-fetch-site", "cross-site"),
    ];
    let body = Bytes::from(json!({ "code_execution": false }).to_string());
    let path = "/api/v1/admin/sandbox";
    let refused = send(stage.address, &ada, "PATCH", path, &forged, body.clone()).await;
    assert_eq!((refused.status, refused.code()), (403, "cross_site".into()));
    let own = [
        ("content-type", "application/json"),
        ("sec-fetch-site", "same-origin"),
    ];
    let done = send(stage.address, &ada, "PATCH", path, &own, body).await;
    assert_eq!(done.status, 200);
}

#[tokio::test]
async fn two_system_admins_who_take_it_from_each_other_at_once_leave_one() {
    let stage = Stage::start().await;
    let (ada, ada_signs) = stage.user("ada", true).await;
    let (bob, bob_signs) = stage.user("bob", true).await;
    let demote = async |who: &Who, whom: glovebox_protocol::ids::UserId| {
        let path = format!("/api/v1/admin/users/{whom}");
        let body = json!({ "is_system_admin": false });
        stage.call(who, "PATCH", &path, &body).await.status
    };
    let (first, second) = tokio::join!(demote(&ada_signs, bob), demote(&bob_signs, ada));
    let mut both = [first, second];
    both.sort_unstable();
    // The second is refused as the last one, or does not look after anything any more.
    assert!(both[0] == 200 && matches!(both[1], 404 | 409), "{both:?}");
    assert_eq!(stage.store().count_system_admins().await.unwrap(), 1);
}
