//! What is given out is what was stored; names in addresses are bytes.

use glovebox_protocol::ids::{ArtifactId, ExecutionId};
use glovebox_store::{KeyScope, NewArtifact, NewExecution, ObjectKey, Role};
use hyper::body::Bytes;
use serde_json::json;

use crate::stage::Stage;
use crate::talk::Talk;
use crate::visitor::Visitor;
use crate::wire::{Who, send};

/// The SHA-256 of `hello`.
const HELLO: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

async fn store(stage: &Stage, key: impl Into<ObjectKey>, bytes: &[u8]) {
    let mut upload = stage.app.objects().create(key).await.unwrap();
    upload.write(bytes).await.unwrap();
    upload.finish().await.unwrap();
}

/// Somebody's artifact that holds `hello`.
async fn artifact(stage: &Stage) -> (Who, ArtifactId) {
    let workspace = stage.workspace("Main").await;
    stage.open(workspace).await;
    let (ada, who) = stage.member(workspace, "ada", Role::Owner).await;
    let access = stage.store().access_of_user(ada, workspace).await.unwrap();
    let lease = stage
        .app
        .create_sandbox(&access.unwrap(), None)
        .await
        .unwrap();
    let (execution, artifact) = (ExecutionId::new(), ArtifactId::new());
    let mut changes = stage.store().begin().await.unwrap();
    changes
        .place_execution(&NewExecution {
            id: execution,
            lease_id: lease.id,
            workspace_id: workspace,
            idempotency_key: None,
            request_hash: String::new(),
        })
        .await
        .unwrap();
    changes
        .create_artifact(&NewArtifact {
            id: artifact,
            workspace_id: workspace,
            lease_id: lease.id,
            execution_id: execution,
            name: "hello.txt".into(),
            bytes: 5,
            sha256: HELLO.into(),
            media_type: "text/plain".into(),
        })
        .await
        .unwrap();
    changes.commit().await.unwrap();
    store(stage, artifact, b"hello").await;
    (who, artifact)
}

#[tokio::test]
async fn an_artifact_that_was_altered_or_lost_is_not_given_out() {
    let stage = Stage::start().await;
    let (ada, artifact) = artifact(&stage).await;
    let path = format!("/api/v1/artifacts/{artifact}/content");
    let whole = stage.get(&ada, &path).await;
    assert_eq!((whole.status, whole.text()), (200, "hello".into()));

    for altered in [&b"hallo"[..], b"hell", b"hello!", b""] {
        store(&stage, artifact, altered).await;
        let refused = stage.get(&ada, &path).await;
        assert_eq!(
            (refused.status, refused.code()),
            (500, "file_altered".into())
        );
        assert_ne!(refused.json()["fix"], "");
    }
    stage.app.objects().delete(artifact).await.unwrap();
    let refused = stage.get(&ada, &path).await;
    assert_eq!((refused.status, refused.code()), (500, "file_lost".into()));
}

#[tokio::test]
async fn attachments_and_knowledge_that_were_altered_are_not_given_out() {
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    let (_, owner) = stage.member(workspace, "owner", Role::Owner).await;
    let visitor = Visitor {
        address: stage.address,
    };
    let talk = Talk::begin(visitor, &owner, &workspace.to_string(), false).await;
    let attachment = talk.upload("a.txt", b"hello").await;
    let knowledge = talk.try_upload("knowledge", "k.txt", b"hello").await.ok();
    let knowledge = knowledge["id"].as_str().unwrap().to_owned();
    let keys = [
        (
            format!("/api/v1/attachments/{attachment}/content"),
            ObjectKey::Attachment(attachment.parse().unwrap()),
        ),
        (
            format!("/api/v1/knowledge/{knowledge}/content"),
            ObjectKey::KnowledgeFile(knowledge.parse().unwrap()),
        ),
    ];
    for (path, key) in keys {
        assert_eq!(stage.get(&owner, &path).await.text(), "hello");
        store(&stage, key.clone(), b"hallo").await;
        assert_eq!(stage.get(&owner, &path).await.code(), "file_altered");
        stage.app.objects().delete(key).await.unwrap();
        assert_eq!(stage.get(&owner, &path).await.code(), "file_lost");
    }
}

/// Whatever stands in an address: bytes that are no text name nothing, and are told so in the form of
/// every error.
#[tokio::test]
async fn an_address_that_is_no_text_is_refused_in_the_form_of_every_error() {
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    let (_, admin) = stage.user("system", true).await;
    let (user, _) = stage.member(workspace, "owner", Role::Owner).await;
    let key = stage.key(workspace, Some(user), KeyScope::ALL).await;
    let document = serde_json::to_value(glovebox_server::http::document()).unwrap();
    let mut looked_at = 0;
    for (pattern, item) in document["paths"].as_object().unwrap() {
        let Some((before, after)) = pattern.split_once('{') else {
            continue;
        };
        let mut path = format!("{before}%FF%E9{}", after.split_once('}').unwrap().1);
        while let Some((before, after)) = path.clone().split_once('{') {
            path = format!("{before}%FF{}", after.split_once('}').unwrap().1);
        }
        for method in item.as_object().unwrap().keys() {
            for who in [&admin, &key] {
                let method = method.to_uppercase();
                let answer = stage.call(who, &method, &path, &json!({})).await;
                let told = format!("{method} {path}: {} {}", answer.status, answer.text());
                assert!((400..500).contains(&answer.status), "{told}");
                for field in ["code", "message", "fix", "request_id"] {
                    assert!(
                        !answer.json()[field].as_str().unwrap_or("").is_empty(),
                        "{told}"
                    );
                }
                looked_at += 1;
            }
        }
    }
    assert!(looked_at > 50, "{looked_at}");
}

#[tokio::test]
async fn a_file_whose_name_is_no_text_goes_in_and_out() {
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    stage.open(workspace).await;
    let (_, editor) = stage.member(workspace, "editor", Role::Editor).await;
    let wanted = json!({ "workspace_id": workspace });
    let made = stage
        .call(&editor, "POST", "/api/v1/sandboxes", &wanted)
        .await
        .ok();
    let files = format!("/api/v1/sandboxes/{}/files", made["id"].as_str().unwrap());
    let path = format!("{files}/caf%E9.txt");
    let body = Bytes::from_static(b"hello");
    let put = send(stage.address, &editor, "PUT", &path, &[], body).await;
    assert_eq!(put.status, 200, "{}", put.text());
    let listed = stage.get(&editor, &files).await.ok();
    let named = listed["items"].as_array().unwrap().iter();
    let named: Vec<_> = named.map(|file| file["path"].as_str().unwrap()).collect();
    assert!(named.contains(&"caf%E9.txt"), "{named:?}");
    let got = stage.get(&editor, &path).await;
    assert_eq!((got.status, got.text()), (200, "hello".into()));
    let gone = stage.call(&editor, "DELETE", &path, &json!(null)).await;
    assert_eq!(gone.status, 204, "{}", gone.text());
}
