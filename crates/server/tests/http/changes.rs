//! Changes of what is there: what a change leaves out stays, and what it may not be is said in a line.

use glovebox_protocol::ids::ProfileId;
use serde_json::{Value, json};

use crate::stage::Stage;
use crate::wire::{Answer, Who};

/// A system admin who changes the profile of this machine.
struct Admin {
    stage: Stage,
    who: Who,
    profile: ProfileId,
}

impl Admin {
    async fn start() -> Self {
        let stage = Stage::start().await;
        let (_, who) = stage.user("system", true).await;
        let profile = stage.store().profiles().await.unwrap()[0].id;
        Self {
            stage,
            who,
            profile,
        }
    }

    async fn profile(&self) -> Value {
        let path = format!("/api/v1/admin/profiles/{}", self.profile);
        self.stage.get(&self.who, &path).await.ok()["profile"].clone()
    }

    async fn set(&self, settings: Value) -> Answer {
        let version = self.profile().await["version"].clone();
        let body = json!({ "version": version, "settings": settings });
        let path = format!("/api/v1/admin/profiles/{}", self.profile);
        self.stage.call(&self.who, "PATCH", &path, &body).await
    }
}

#[tokio::test]
async fn settings_that_a_change_leaves_out_stay() {
    let admin = Admin::start().await;
    let first = json!({
        "idle_seconds": 700, "class": "MEDIUM", "start": "fresh", "artifact_types": ["pdf"],
        "max_input_file_bytes": 1000, "jobs": true
    });
    let before = admin.set(first.clone()).await.ok()["profile"]["settings"].clone();
    let after = admin
        .set(json!({ "warm_pool": 2, "jobs": null }))
        .await
        .ok();
    let mut expected = before.clone();
    expected["warm_pool"] = json!(2);
    assert_eq!(after["profile"]["settings"], expected);
    for (name, value) in first.as_object().unwrap() {
        assert_eq!(&expected[name], value, "{name}");
    }
    // Nothing was changed, and so there is no new version.
    let unchanged = admin.set(json!({ "warm_pool": 2 })).await.ok();
    assert_eq!(unchanged["profile"]["version"], after["profile"]["version"]);
    let log = admin
        .stage
        .get(&admin.who, "/api/v1/admin/audit")
        .await
        .ok();
    assert_eq!(log["items"][0]["fields"], json!(["settings.warm_pool"]));
}

#[tokio::test]
async fn a_setting_out_of_its_bounds_is_named_in_a_line() {
    let admin = Admin::start().await;
    let before = admin.profile().await;
    for (settings, said) in [
        (json!({ "warm_pool": 101 }), "warm_pool is at most 100"),
        (
            json!({ "max_output_characters": 10_000_001 }),
            "max_output_characters is at most 10000000",
        ),
        (
            json!({ "max_artifact_bytes": (16_u64 << 30) + 1 }),
            "max_artifact_bytes is at most 17179869184",
        ),
        (
            json!({ "max_job_seconds": 604_801 }),
            "max_job_seconds is from 1 to 604800",
        ),
        (
            json!({ "max_job_seconds": 0 }),
            "max_job_seconds is from 1 to 604800",
        ),
        (
            json!({ "max_input_total_bytes": (16_u64 << 30) + 1 }),
            "max_input_total_bytes is at most 17179869184",
        ),
        (
            json!({ "max_input_file_bytes": 1 << 30 }),
            "max_input_file_bytes is no more than max_input_total_bytes",
        ),
        (
            json!({ "execution_seconds": 61, "max_execution_seconds": 60 }),
            "execution_seconds is from 1 to max_execution_seconds",
        ),
        (
            json!({ "hard_seconds": 60 }),
            "hard_seconds is no less than idle_seconds",
        ),
        (
            json!({ "artifact_types": ["pdf", "pdf"] }),
            "artifact_types hold each type once",
        ),
    ] {
        let refused = admin.set(settings).await;
        assert_eq!((refused.status, refused.code()), (400, "invalid".into()));
        assert_eq!(refused.json()["message"], said);
    }
    for unknown in [
        json!({ "warm_pol": 1 }),
        json!({ "warm_pool": "1" }),
        json!([1]),
    ] {
        let refused = admin.set(unknown).await;
        assert_eq!(refused.status, 400, "{}", refused.text());
    }
    assert_eq!(admin.profile().await, before);
}

#[tokio::test]
async fn quotas_and_a_profile_that_a_change_leaves_out_stay() {
    let admin = Admin::start().await;
    let workspace = admin.stage.workspace("Main").await;
    let path = format!("/api/v1/admin/workspaces/{workspace}");
    let change = async |mut body: Value| {
        let row = admin.stage.store().workspace(workspace).await.unwrap();
        body["version"] = row.unwrap().version.into();
        admin.stage.call(&admin.who, "PATCH", &path, &body).await
    };
    let given = json!({
        "profile_id": admin.profile,
        "quotas": { "max_concurrent": 7, "max_resource_class": "LARGE" }
    });
    let before = change(given).await.ok();
    assert_eq!(before["profile_id"], json!(admin.profile));
    let after = change(json!({ "quotas": { "max_jobs_per_hour": 9 } }))
        .await
        .ok();
    let mut expected = before["quotas"].clone();
    expected["max_jobs_per_hour"] = json!(9);
    assert_eq!(after["quotas"], expected);
    assert_eq!(expected["max_concurrent"], 7);
    assert_eq!(after["profile_id"], before["profile_id"]);

    let refused = change(json!({ "profile_id": "" })).await;
    assert_eq!((refused.status, refused.code()), (400, "invalid".into()));
    let refused = change(json!({ "quotas": { "max_concurrent": 1001 } })).await;
    assert_eq!(refused.json()["message"], "max_concurrent is at most 1000");
    let none = change(json!({ "profile_id": null })).await.ok();
    assert_eq!(
        (&none["profile_id"], &none["quotas"]),
        (&Value::Null, &expected)
    );
}

#[tokio::test]
async fn a_default_that_cannot_be_and_a_member_twice_are_told_in_their_own_words() {
    let admin = Admin::start().await;
    let patch = async |body: Value| {
        let path = "/api/v1/admin/sandbox";
        admin.stage.call(&admin.who, "PATCH", path, &body).await
    };
    let refused = patch(json!({ "code_execution": true })).await;
    assert_eq!(
        (refused.status, refused.code()),
        (409, "no_default_profile".into())
    );
    let refused = patch(json!({ "default_profile_id": admin.profile })).await;
    assert_eq!(
        (refused.status, refused.code()),
        (409, "profile_not_active".into())
    );

    let workspace = admin.stage.workspace("Main").await;
    let (_, owner) = admin
        .stage
        .member(workspace, "owner", glovebox_store::Role::Owner)
        .await;
    let path = format!("/api/v1/workspaces/{workspace}/members");
    let twice = json!({ "email": "owner@example.com", "role": "viewer" });
    let refused = admin.stage.call(&owner, "POST", &path, &twice).await;
    assert_eq!((refused.status, refused.code()), (409, "is_member".into()));
    assert!(
        refused.text().contains("owner@example.com"),
        "{}",
        refused.text()
    );
}
