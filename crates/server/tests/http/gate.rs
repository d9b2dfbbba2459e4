//! The gate: each level has its name, in its order, and quotas hold.

use futures_util::future::join_all;
use glovebox_protocol::agent_config::Start;
use glovebox_protocol::ids::WorkspaceId;
use glovebox_store::{KeyScope, ProfileState, Role};
use serde_json::{Value, json};

use crate::stage::Stage;
use crate::wire::Who;

async fn ask(stage: &Stage, who: &Who, workspace: WorkspaceId) -> (u16, String) {
    let body = json!({ "workspace_id": workspace });
    let answer = stage.call(who, "POST", "/api/v1/sandboxes", &body).await;
    if answer.status >= 400 {
        let error = answer.json();
        for field in ["message", "fix", "request_id"] {
            assert_ne!(error[field].as_str().unwrap_or_default(), "", "{error}");
        }
    }
    (answer.status, answer.code())
}

fn named(name: &str) -> (u16, String) {
    let status = if name.starts_with("quota:") { 429 } else { 403 };
    (status, name.into())
}

#[tokio::test]
async fn each_level_refuses_by_its_name_until_all_are_open() {
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    let (_, editor) = stage.member(workspace, "editor", Role::Editor).await;
    let (_, viewer) = stage.member(workspace, "viewer", Role::Viewer).await;
    let set = async |deployment: Value| {
        let mut changes = stage.store().begin().await.unwrap();
        changes.set("deployment", &deployment).await.unwrap();
        changes.commit().await.unwrap();
    };
    let profile = stage.store().profiles().await.unwrap().remove(0);
    let move_to = async |state| {
        let mut row = stage.store().profile(profile.id).await.unwrap().unwrap();
        row.state = state;
        // The runtime that plays one has no template.
        row.settings.start = Start::Fresh;
        let mut changes = stage.store().begin().await.unwrap();
        changes.update_profile(&row).await.unwrap();
        changes.commit().await.unwrap();
    };
    assert_eq!(ask(&stage, &editor, workspace).await, named("deployment"));
    let on = json!({ "code_execution": true, "default_profile": profile.id });
    set(on.clone()).await;
    // On, and its default profile is not active.
    assert_eq!(ask(&stage, &editor, workspace).await, named("deployment"));
    move_to(ProfileState::Active).await;
    set(json!({ "code_execution": true, "default_profile": null })).await;
    assert_eq!(ask(&stage, &editor, workspace).await, named("deployment"));
    set(on).await;

    // A profile of the workspace's own that is not active is no way around to the default.
    let mut changes = stage.store().begin().await.unwrap();
    let own = changes.create_profile("embedded", "Own").await.unwrap();
    let mut row = changes.hold_workspace(workspace).await.unwrap().unwrap();
    row.profile_id = Some(own);
    changes.update_workspace(&row).await.unwrap();
    changes.commit().await.unwrap();
    assert_eq!(ask(&stage, &editor, workspace).await, named("profile"));
    let mut changes = stage.store().begin().await.unwrap();
    let mut row = changes.hold_workspace(workspace).await.unwrap().unwrap();
    row.profile_id = None;
    changes.update_workspace(&row).await.unwrap();
    changes.commit().await.unwrap();

    assert_eq!(ask(&stage, &viewer, workspace).await, named("workspace"));
    let mut row = stage.store().workspace(workspace).await.unwrap().unwrap();
    row.code_execution = true;
    let mut changes = stage.store().begin().await.unwrap();
    changes.update_workspace(&row).await.unwrap();
    changes.commit().await.unwrap();
    assert_eq!(ask(&stage, &viewer, workspace).await, named("role"));
    assert_eq!(ask(&stage, &editor, workspace).await, (201, String::new()));

    let admin = stage.user("system", true).await.1;
    let path = format!("/api/v1/workspaces/{workspace}/code-execution");
    let seen = stage.get(&admin, &path).await.ok();
    let names: Vec<_> = seen["denials"]
        .as_array()
        .unwrap()
        .iter()
        .map(|denial| denial["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "role",
            "workspace",
            "profile",
            "deployment",
            "deployment",
            "deployment"
        ]
    );
}

#[tokio::test]
async fn fifty_at_once_get_two_sandboxes() {
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    stage.open(workspace).await;
    let (_, editor) = stage.member(workspace, "editor", Role::Editor).await;
    let asked = join_all((0..50).map(|_| ask(&stage, &editor, workspace))).await;
    let made = asked.iter().filter(|(status, _)| *status == 201).count();
    let refused = asked
        .iter()
        .filter(|one| **one == named("quota:max_concurrent"));
    assert_eq!((made, refused.count()), (2, 48));
}

#[tokio::test]
async fn quotas_have_their_names() {
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    stage.open(workspace).await;
    let (_, editor) = stage.member(workspace, "editor", Role::Editor).await;
    let large = json!({ "workspace_id": workspace, "class": "LARGE" });
    let refused = stage
        .call(&editor, "POST", "/api/v1/sandboxes", &large)
        .await;
    assert_eq!(
        (refused.status, refused.code()),
        named("quota:max_resource_class")
    );
    let mut row = stage.store().workspace(workspace).await.unwrap().unwrap();
    row.quotas.max_jobs_per_hour = 1;
    let mut changes = stage.store().begin().await.unwrap();
    changes.update_workspace(&row).await.unwrap();
    changes.commit().await.unwrap();
    let body = json!({ "workspace_id": workspace });
    let made = stage
        .call(&editor, "POST", "/api/v1/sandboxes", &body)
        .await
        .ok();
    let path = format!("/api/v1/sandboxes/{}", made["id"].as_str().unwrap());
    let ended = stage
        .call(&editor, "DELETE", &path, &Value::Null)
        .await
        .ok();
    assert_eq!(ended["ended_why"], "asked");
    assert_eq!(
        ask(&stage, &editor, workspace).await,
        named("quota:max_jobs_per_hour")
    );
}

#[tokio::test]
async fn what_the_environment_forces_stands_over_the_console() {
    let stage = Stage::told(|config| {
        config.sandbox_enabled = false;
        config.sandbox_gui_config = false;
    })
    .await;
    let workspace = stage.workspace("Main").await;
    stage.open(workspace).await;
    let (_, editor) = stage.member(workspace, "editor", Role::Editor).await;
    assert_eq!(ask(&stage, &editor, workspace).await, named("deployment"));
    let (_, admin) = stage.user("system", true).await;
    let seen = stage.get(&admin, "/api/v1/admin/sandbox").await.ok();
    assert_eq!(seen["is_forced_off"], true);
    assert_eq!(seen["denial"]["name"], "deployment");
    let profile = stage.store().profiles().await.unwrap()[0].id;
    let one = format!("/api/v1/admin/profiles/{profile}");
    for (method, path) in [
        ("PATCH", "/api/v1/admin/sandbox".to_owned()),
        ("PATCH", one.clone()),
        ("POST", format!("{one}/test")),
        ("POST", format!("{one}/canary")),
        ("PUT", format!("{one}/acknowledgements/shared_kernel")),
        ("POST", format!("{one}/activate")),
        ("POST", format!("{one}/disable")),
    ] {
        let body = json!({ "version": 1 });
        let body = if path.ends_with("/sandbox") {
            json!({})
        } else {
            body
        };
        let refused = stage.call(&admin, method, &path, &body).await;
        assert_eq!(
            (refused.status, refused.code()),
            (403, "gui_config_locked".into()),
            "{method} {path}"
        );
    }
}

#[tokio::test]
async fn a_key_runs_code_only_with_its_scope() {
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    stage.open(workspace).await;
    let without = stage.key(workspace, None, &[KeyScope::FilesRead]).await;
    let with = stage
        .key(workspace, None, &[KeyScope::CodeExecutionRun])
        .await;
    let ask = async |who| {
        let answer = stage
            .call(who, "POST", "/api/v1/sandboxes", &json!({}))
            .await;
        (answer.status, answer.code())
    };
    assert_eq!(ask(&without).await, named("role"));
    assert_eq!(ask(&with).await, (201, String::new()));
}

#[tokio::test]
async fn files_are_fetched_without_the_scope_to_run_code_and_when_that_is_off() {
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    stage.open(workspace).await;
    let (ada, session) = stage.member(workspace, "ada", Role::Editor).await;
    let body = json!({ "workspace_id": workspace });
    let made = stage
        .call(&session, "POST", "/api/v1/sandboxes", &body)
        .await
        .ok();
    let files = format!("/api/v1/sandboxes/{}/files", made["id"].as_str().unwrap());
    let reader = stage
        .key(workspace, Some(ada), &[KeyScope::FilesRead])
        .await;
    let status = async |who: &Who, method: &str| {
        let path = format!("{files}/a.txt");
        stage.call(who, method, &path, &json!({})).await.status
    };
    assert_eq!(status(&session, "PUT").await, 200);
    assert_eq!(status(&reader, "PUT").await, 403);
    assert_eq!(status(&reader, "GET").await, 200);
    let mut row = stage.store().workspace(workspace).await.unwrap().unwrap();
    row.code_execution = false;
    let mut changes = stage.store().begin().await.unwrap();
    changes.update_workspace(&row).await.unwrap();
    changes.commit().await.unwrap();
    assert_eq!(status(&reader, "GET").await, 200);
    assert_eq!(stage.get(&reader, &files).await.status, 200);
}

/// One makes a profile the default while another disables it: each may win, and never both.
#[tokio::test]
async fn a_profile_is_never_the_default_and_disabled() {
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    let first = stage.open(workspace).await;
    let (_, root) = stage.user("root", true).await;
    let mut changes = stage.store().begin().await.unwrap();
    let other = changes.create_profile("embedded", "Other").await.unwrap();
    changes.commit().await.unwrap();
    let set_default = async |id| {
        let body = json!({ "default_profile_id": id });
        let answer = stage.call(&root, "PATCH", "/api/v1/admin/sandbox", &body);
        answer.await.status
    };
    let disable = async || {
        let path = format!("/api/v1/admin/profiles/{other}/disable");
        stage.call(&root, "POST", &path, &json!({})).await.status
    };
    for _ in 0..10 {
        let mut profile = stage.store().profile(other).await.unwrap().unwrap();
        profile.state = ProfileState::Active;
        let mut changes = stage.store().begin().await.unwrap();
        changes.update_profile(&profile).await.unwrap();
        changes.commit().await.unwrap();
        let (set, disabled, again) = tokio::join!(set_default(other), disable(), disable());
        let settings = stage.get(&root, "/api/v1/admin/sandbox").await.ok();
        let is_default = settings["default_profile_id"] == other.to_string();
        let profile = stage.store().profile(other).await.unwrap().unwrap();
        let is_disabled = profile.state == ProfileState::Disabled;
        assert!(
            is_default != is_disabled,
            "{set} {disabled} {again} {settings}"
        );
        assert_eq!(set == 200, is_default);
        assert_eq!(disabled == 200 || again == 200, is_disabled);
        assert_eq!(set_default(first).await, 200);
    }
}
