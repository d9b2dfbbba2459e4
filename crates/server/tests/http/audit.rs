//! The audit log: what stands in it, and that it is exported whole.

use glovebox_store::{Actor, Entry};
use serde_json::{Value, json};

use crate::stage::Stage;
use crate::wire::Who;

/// More than two pages of what an export reads at once.
const MANY: usize = 1_001;

async fn actions(stage: &Stage, who: &Who) -> Vec<(String, Value)> {
    let log = stage.get(who, "/api/v1/admin/audit").await.ok();
    let items = log["items"].as_array().unwrap();
    items
        .iter()
        .map(|entry| {
            let action = entry["action"].as_str().unwrap().to_owned();
            (action, entry["workspace_id"].clone())
        })
        .collect()
}

#[tokio::test]
async fn whoever_is_made_a_member_on_the_way_stands_in_it() {
    let stage = Stage::start().await;
    let (_, admin) = stage.user("system", true).await;
    let workspace = stage.workspace("Team").await;
    let body = json!({
        "email": "ada@example.com", "name": "Ada", "password": "correct horse battery",
        "workspace_id": workspace, "role": "viewer"
    });
    let made = stage
        .call(&admin, "POST", "/api/v1/admin/users", &body)
        .await;
    assert_eq!(made.status, 201, "{}", made.text());
    assert_eq!(
        actions(&stage, &admin).await,
        [
            ("member.add".to_owned(), json!(workspace)),
            ("user.create".to_owned(), Value::Null),
            ("profile.create".to_owned(), Value::Null),
        ]
    );
    // A workspace that is not there makes nobody.
    let body = json!({
        "email": "bob@example.com", "name": "Bob", "password": "correct horse battery",
        "workspace_id": glovebox_protocol::ids::WorkspaceId::new()
    });
    let refused = stage
        .call(&admin, "POST", "/api/v1/admin/users", &body)
        .await;
    assert_eq!(refused.status, 404, "{}", refused.text());
    assert_eq!(actions(&stage, &admin).await.len(), 3);
}

#[tokio::test]
async fn the_workspace_of_the_first_run_stands_in_it() {
    let stage = Stage::start().await;
    let link = stage.app.new_setup_link().await.unwrap().unwrap();
    let body = json!({
        "token": link.split_once("#token=").unwrap().1,
        "email": "ada@example.com", "name": "Ada", "password": "correct horse battery"
    });
    let done = stage
        .call(&Who::Nobody, "POST", "/api/v1/setup", &body)
        .await;
    let ada = crate::wire::session_of(&done);
    let workspace = done.ok()["memberships"][0]["workspace_id"].clone();
    let log = actions(&stage, &ada).await;
    assert!(
        log.contains(&("workspace.create".to_owned(), workspace)),
        "{log:?}"
    );
}

#[tokio::test]
async fn an_export_is_whole_however_long_it_is() {
    let stage = Stage::start().await;
    let (_, admin) = stage.user("system", true).await;
    let mut changes = stage.store().begin().await.unwrap();
    for number in 0..MANY {
        let object = format!("number {number}");
        let entry = Entry {
            action: "thing.make",
            object_kind: "thing",
            object_id: None,
            object: &object,
            workspace: None,
            fields: &["name"],
        };
        let actor = Actor::command_line("=cmd;@x");
        changes.record(&actor, entry).await.unwrap();
    }
    changes.commit().await.unwrap();
    let path = |form: &str| format!("/api/v1/admin/audit/export/{form}?action=thing.");

    let exported = stage.get(&admin, &path("json")).await.ok();
    let numbers: Vec<_> = exported
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["object"].as_str().unwrap().to_owned())
        .collect();
    let newest_first: Vec<_> = (0..MANY)
        .rev()
        .map(|number| format!("number {number}"))
        .collect();
    assert_eq!(numbers, newest_first);

    let csv = stage.get(&admin, &path("csv")).await;
    assert_eq!(csv.headers["content-type"], "text/csv; charset=utf-8");
    let text = csv.text();
    assert_eq!(text.lines().count(), MANY + 1);
    assert!(text.starts_with("at,actor_kind,actor,"));
    assert!(
        text.contains(",\"'=cmd;'@x\","),
        "{}",
        text.lines().nth(1).unwrap()
    );

    let none = "/api/v1/admin/audit/export/json?action=nothing.";
    assert_eq!(stage.get(&admin, none).await.ok(), json!([]));
}

#[tokio::test]
async fn what_a_list_is_searched_for_is_bounded() {
    let stage = Stage::start().await;
    let (_, admin) = stage.user("system", true).await;
    let workspace = stage.workspace("Main").await;
    let (_, owner) = stage
        .member(workspace, "owner", glovebox_store::Role::Owner)
        .await;
    let threads = format!("/api/v1/threads?workspace_id={workspace}&q=");
    for (who, path) in [
        (&admin, "/api/v1/admin/audit?actor="),
        (&admin, "/api/v1/admin/audit?action="),
        (&admin, "/api/v1/admin/audit/export/csv?actor="),
        (&owner, threads.as_str()),
    ] {
        for bad in ["x".repeat(60_000), "x".repeat(201), "%00".into()] {
            let refused = stage.get(who, &format!("{path}{bad}")).await;
            assert_eq!(
                (refused.status, refused.code()),
                (400, "invalid".into()),
                "{path}"
            );
            let said = refused.json()["message"].as_str().unwrap().to_owned();
            assert!(said.contains("at most 200 characters"), "{said}");
        }
        let longest = stage.get(who, &format!("{path}{}", "x".repeat(200))).await;
        assert_eq!(longest.status, 200, "{}", longest.text());
    }
}
