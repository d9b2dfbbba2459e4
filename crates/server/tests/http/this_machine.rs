//! Profiles of the runtimes that a server's own gateway drives, and those that it does not.

use glovebox_protocol::agent_config::Start;
use glovebox_server::MachineRuntime;
use glovebox_store::{CheckKind, ProfileSettings, ProfileState};
use serde_json::{Value, json};

use crate::stage::Stage;

#[tokio::test]
async fn a_server_over_docker_has_a_profile_of_docker() {
    let stage = Stage::told(|config| {
        config.gateway.runtime = MachineRuntime::Docker { socket: None };
    })
    .await;
    let profiles = stage.store().profiles().await.unwrap();
    assert_eq!(profiles.len(), 1);
    let profile = &profiles[0];
    assert_eq!(
        (profile.runtime.as_str(), profile.name.as_str()),
        ("docker", "This machine (Docker)")
    );
    assert_eq!(profile.state, ProfileState::Draft);
    assert_eq!(profile.settings.start, Start::Fresh, "it has no templates");
    stage.app.ensure_this_machine().await.unwrap();
    assert_eq!(stage.store().profiles().await.unwrap().len(), 1);
}

#[tokio::test]
async fn what_was_proven_of_another_runtime_counts_for_nothing() {
    let stage = Stage::start().await;
    let (_, ada) = stage.user("ada", true).await;
    let store = stage.store();
    let mut changes = store.begin().await.unwrap();
    let id = changes
        .create_profile("docker", "Docker", &ProfileSettings::default())
        .await
        .unwrap();
    changes.commit().await.unwrap();
    let mut profile = store.profile(id).await.unwrap().unwrap();
    profile.state = ProfileState::Active;
    let mut changes = store.begin().await.unwrap();
    changes.update_profile(&profile).await.unwrap();
    for kind in [CheckKind::Test, CheckKind::Canary] {
        changes
            .keep_check(id, kind, true, &json!({}))
            .await
            .unwrap();
    }
    changes.commit().await.unwrap();

    // The server starts, and drives the embedded runtime.
    stage.app.ensure_this_machine().await.unwrap();
    let profile = store.profile(id).await.unwrap().unwrap();
    assert_eq!(profile.state, ProfileState::Disabled);
    let log = store.audit(&Default::default(), 1).await.unwrap();
    assert_eq!(
        (log[0].action.as_str(), log[0].object.as_str()),
        ("profile.disable", "Docker")
    );
    let path = format!("/api/v1/admin/profiles/{id}");
    let call = async |method: &str, below: &str| {
        let path = format!("{path}/{below}");
        stage.call(&ada, method, &path, &json!({})).await
    };
    call("PUT", "acknowledgements/shared_kernel").await.ok();
    let blocked = call("POST", "activate").await;
    assert_eq!(
        (blocked.status, blocked.code()),
        (409, "activation_blocked".into())
    );
    let text = blocked.text();
    assert!(
        text.contains("no_recent_test") && text.contains("no_recent_canary"),
        "{text}"
    );
    let tested: Value = call("POST", "test").await.ok();
    assert_eq!(tested["test"]["is_passed"], false, "{tested}");
    assert!(tested.to_string().contains("--runtime docker"), "{tested}");
}
