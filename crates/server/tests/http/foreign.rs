//! What belongs to somebody else is not there: whatever is asked of it, and by whatever id.

use glovebox_protocol::ids::{ArtifactId, ExecutionId};
use glovebox_store::{
    KeyScope, NewArtifact, NewExecution, ObjectKey, PreviewPart, PreviewSource, Role,
};
use serde_json::{Value, json};

use crate::stage::Stage;
use crate::wire::Who;

#[tokio::test]
#[expect(
    clippy::too_many_lines,
    reason = "one list of everything that there is to ask"
)]
async fn nothing_of_another_workspace_or_another_person_is_there() {
    let stage = Stage::start().await;
    let (mine, theirs) = (
        stage.workspace("Mine").await,
        stage.workspace("Theirs").await,
    );
    stage.open(theirs).await;
    let (ada, _) = stage.member(theirs, "ada", Role::Owner).await;
    let access = stage
        .store()
        .access_of_user(ada, theirs)
        .await
        .unwrap()
        .unwrap();
    let lease = stage.app.create_sandbox(&access, None).await.unwrap();
    let (execution, artifact) = (ExecutionId::new(), ArtifactId::new());
    let mut changes = stage.store().begin().await.unwrap();
    changes
        .place_execution(&NewExecution {
            id: execution,
            lease_id: lease.id,
            workspace_id: theirs,
            idempotency_key: None,
            request_hash: String::new(),
        })
        .await
        .unwrap();
    changes
        .create_artifact(&NewArtifact {
            id: artifact,
            workspace_id: theirs,
            lease_id: lease.id,
            execution_id: execution,
            name: "secret.csv".into(),
            bytes: 1,
            sha256: String::new(),
            media_type: "text/csv".into(),
        })
        .await
        .unwrap();
    changes.commit().await.unwrap();
    let seen = stage
        .app
        .preview_of(&access, PreviewSource::Artifact(artifact))
        .await
        .unwrap()
        .unwrap();
    for name in ["page-1.png", "text", "html"] {
        let key = ObjectKey::PreviewPart(seen.id, name.into());
        let upload = stage.app.objects().create(key).await.unwrap();
        upload.finish().await.unwrap();
        let part = PreviewPart {
            name: name.into(),
            bytes: 0,
            media_type: "text/plain".into(),
        };
        let kept = stage.store().keep_preview_part(seen.id, &part).await;
        kept.unwrap();
    }
    let preview = format!("/api/v1/previews/{}", seen.id);
    let sandbox = format!("/api/v1/sandboxes/{}", lease.id);
    let run = format!("{sandbox}/executions/{execution}");
    let file = format!("/api/v1/artifacts/{artifact}");
    let workspace = format!("/api/v1/workspaces/{theirs}");
    let of_sandbox: Vec<(&str, String, Value)> = vec![
        ("GET", sandbox.clone(), Value::Null),
        ("DELETE", sandbox.clone(), Value::Null),
        (
            "POST",
            format!("{sandbox}/executions"),
            json!({ "code": "1" }),
        ),
        ("GET", run.clone(), Value::Null),
        ("GET", format!("{run}/events"), Value::Null),
        ("POST", format!("{run}/interrupt"), json!({})),
        ("GET", format!("{sandbox}/files"), Value::Null),
        ("GET", format!("{sandbox}/files/a"), Value::Null),
        ("PUT", format!("{sandbox}/files/a"), json!({})),
        ("DELETE", format!("{sandbox}/files/a"), Value::Null),
        ("GET", file.clone(), Value::Null),
        ("GET", format!("{file}/content"), Value::Null),
        ("GET", format!("{file}/preview"), Value::Null),
        ("GET", format!("{preview}/pages/1"), Value::Null),
        ("GET", format!("{preview}/text"), Value::Null),
        ("GET", format!("{preview}/html"), Value::Null),
    ];
    let of_workspace: Vec<(&str, String, Value)> = vec![
        ("GET", format!("{workspace}/members"), Value::Null),
        ("GET", format!("{workspace}/code-execution"), Value::Null),
        ("GET", format!("{workspace}/api-keys"), Value::Null),
        (
            "GET",
            format!("/api/v1/sandboxes?workspace_id={theirs}"),
            Value::Null,
        ),
        (
            "GET",
            format!("/api/v1/artifacts?workspace_id={theirs}"),
            Value::Null,
        ),
        (
            "POST",
            "/api/v1/sandboxes".into(),
            json!({ "workspace_id": theirs }),
        ),
    ];

    // It is there for whoever may see it.
    let key = stage.key(theirs, Some(ada), KeyScope::ALL).await;
    let own = stage.get(&key, &format!("{preview}/pages/1")).await;
    assert_eq!(own.status, 200, "{}", own.text());

    // Nor is it told to a viewer of the same workspace, who may not see it.
    let (_, viewer) = stage.member(theirs, "viewer", Role::Viewer).await;
    for method in ["PUT", "DELETE"] {
        let path = format!("{sandbox}/files/a");
        let answer = stage.call(&viewer, method, &path, &json!({})).await;
        assert_eq!(answer.status, 404, "{method}: {}", answer.text());
    }

    // Somebody of another workspace, with a session and with a key.
    let (bob, bob_session) = stage.member(mine, "bob", Role::Owner).await;
    let bob_key = stage.key(mine, Some(bob), KeyScope::ALL).await;
    // Others of the same workspace, and a service of it.
    let (_, admin) = stage.member(theirs, "admin", Role::Admin).await;
    let service = stage.key(theirs, None, KeyScope::ALL).await;
    // Who looks after everything is not a member either.
    let (_, system_admin) = stage.user("system", true).await;
    let gone = async |who: &Who, (method, path, body): &(&str, String, Value)| {
        let answer = stage.call(who, method, path, body).await;
        assert_eq!(answer.status, 404, "{method} {path}: {}", answer.text());
    };
    for who in [&bob_session, &bob_key, &admin, &service, &system_admin] {
        for call in &of_sandbox {
            gone(who, call).await;
        }
    }
    for call in &of_workspace {
        gone(&bob_session, call).await;
    }
    let lease = stage.store().lease(lease.id).await.unwrap().unwrap();
    assert!(lease.ended_at.is_none());
}

#[tokio::test]
async fn what_a_service_made_is_seen_by_it_and_by_whoever_manages() {
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    stage.open(workspace).await;
    let service = stage.key(workspace, None, KeyScope::ALL).await;
    let another = stage.key(workspace, None, KeyScope::ALL).await;
    let (_, editor) = stage.member(workspace, "editor", Role::Editor).await;
    let (_, admin) = stage.member(workspace, "admin", Role::Admin).await;
    let made = stage
        .call(&service, "POST", "/api/v1/sandboxes", &json!({}))
        .await
        .ok();
    assert_eq!(made["user_id"], Value::Null);
    let path = format!("/api/v1/sandboxes/{}", made["id"].as_str().unwrap());
    let status = async |who| stage.get(who, &path).await.status;
    assert_eq!(status(&service).await, 200);
    assert_eq!(status(&admin).await, 200);
    assert_eq!(status(&another).await, 404);
    assert_eq!(status(&editor).await, 404);
}
