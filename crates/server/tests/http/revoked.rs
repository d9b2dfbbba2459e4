//! What somebody runs ends with the right to run it.

use glovebox_protocol::ids::{SandboxId, UserId};
use glovebox_store::{EndedWhy, LeaseState, Role};
use glovebox_testkit::ScriptedModel;
use serde_json::{Value, json};

use crate::stage::Stage;
use crate::talk::{Talk, find, outcome};
use crate::visitor::Visitor;
use crate::wire::Who;

/// Somebody at work in a workspace: an endless reply, and a sandbox.
struct AtWork {
    who: UserId,
    talk: Talk,
    sandbox: SandboxId,
}

/// A server with an owner and a model that never comes to an end.
async fn opened(model: &ScriptedModel) -> (Stage, glovebox_protocol::ids::WorkspaceId, Who, Who) {
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    stage.open(workspace).await;
    let mut row = stage.store().workspace(workspace).await.unwrap().unwrap();
    row.quotas.max_concurrent = 10;
    let mut changes = stage.store().begin().await.unwrap();
    changes.update_workspace(&row).await.unwrap();
    changes.commit().await.unwrap();
    let (_, admin) = stage.user("admin", true).await;
    let (_, owner) = stage.member(workspace, "owner", Role::Owner).await;
    let wanted = json!({ "name": "Endless", "base_url": model.base_url(), "model": "scripted" });
    let made = stage.call(&admin, "POST", "/api/v1/admin/models", &wanted);
    made.await.ok();
    (stage, workspace, admin, owner)
}

async fn at_work(
    stage: &Stage,
    workspace: glovebox_protocol::ids::WorkspaceId,
    name: &str,
) -> AtWork {
    let (user, who) = stage.member(workspace, name, Role::Editor).await;
    let visitor = Visitor {
        address: stage.address,
    };
    let talk = Talk::begin(visitor, &who, &workspace.to_string(), true).await;
    talk.try_send("text", "Talk, please", &[]).await.ok();
    talk.listen(0).await.until("text").await;
    let access = stage.store().access_of_user(user, workspace).await.unwrap();
    let made = stage.app.create_sandbox(&access.unwrap(), None).await;
    AtWork {
        who: user,
        talk,
        sandbox: made.unwrap().id,
    }
}

/// What was at work has come to its end, as somebody sees it who still may look.
async fn assert_ended(stage: &Stage, work: &AtWork, reader: &Who) {
    let mut listening = work.talk.of(reader).listen(0).await;
    let events = listening.until("reply_ended").await;
    assert_eq!(outcome(&events), "stopped", "{events:?}");
    assert_eq!(find(&events, "reply_ended")["error"], Value::Null);
    let lease = stage.store().lease(work.sandbox).await.unwrap().unwrap();
    assert_eq!(lease.state, LeaseState::Ended);
    assert_eq!(lease.ended_why, Some(EndedWhy::Admin));
    let there = stage.app.gateway().sandboxes(None).await.unwrap();
    assert!(there.items.iter().all(|view| {
        view.id != work.sandbox
            || matches!(
                view.state,
                glovebox_protocol::gateway::SandboxState::Ended { .. }
            )
    }));
}

async fn assert_at_work(stage: &Stage, work: &AtWork) {
    let id = work.talk.id.parse().unwrap();
    let thread = stage.store().thread(id).await.unwrap().unwrap();
    let reply = thread.running_reply.unwrap();
    assert!(stage.store().is_to_go_on(reply).await.unwrap());
    let lease = stage.store().lease(work.sandbox).await.unwrap().unwrap();
    assert_eq!(lease.state, LeaseState::Ready);
}

#[tokio::test]
async fn what_somebody_runs_ends_with_the_right_to_run_it() {
    // It talks for as long as anybody listens.
    let words = "word ".repeat(100_000);
    let model = ScriptedModel::play(json!({ "rules": [
        { "then": { "text": words, "piece": 100, "pause_ms": 100, "hang": true } }
    ] }))
    .await
    .unwrap();
    let (stage, workspace, admin, owner) = opened(&model).await;
    let disabled = at_work(&stage, workspace, "disabled").await;
    let demoted = at_work(&stage, workspace, "demoted").await;
    let removed = at_work(&stage, workspace, "removed").await;
    let stays = at_work(&stage, workspace, "stays").await;

    let path = format!("/api/v1/admin/users/{}", disabled.who);
    let change = json!({ "is_disabled": true });
    stage.call(&admin, "PATCH", &path, &change).await.ok();
    assert_ended(&stage, &disabled, &owner).await;
    assert_at_work(&stage, &demoted).await;

    let member = |work: &AtWork| format!("/api/v1/workspaces/{workspace}/members/{}", work.who);
    let viewer = json!({ "role": "viewer" });
    let changed = stage
        .call(&owner, "PATCH", &member(&demoted), &viewer)
        .await;
    assert!(changed.status < 300, "{}", changed.text());
    assert_ended(&stage, &demoted, &owner).await;

    let nothing = json!({});
    let gone = stage
        .call(&owner, "DELETE", &member(&removed), &nothing)
        .await;
    assert!(gone.status < 300, "{}", gone.text());
    assert_ended(&stage, &removed, &owner).await;

    // Who gets more, or another name, goes on; so does everybody else.
    let more = json!({ "role": "admin" });
    let changed = stage.call(&owner, "PATCH", &member(&stays), &more).await;
    assert!(changed.status < 300, "{}", changed.text());
    let path = format!("/api/v1/admin/users/{}", stays.who);
    let change = json!({ "name": "Another" });
    stage.call(&admin, "PATCH", &path, &change).await.ok();
    assert_at_work(&stage, &stays).await;
}
