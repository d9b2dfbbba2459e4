//! A server whose disk is full: what is said of it, and that everything goes on once there is room.

use std::io::Write as _;
use std::path::Path;

use glovebox_testkit::ScriptedModel;
use serde_json::json;

use crate::process::{on_sqlite, until};
use crate::talk::{Talk, code_of_failure, find, outcome};
use crate::wire::{Who, session_of};

/// Fills the disk that a folder is on to its last byte; the file that does it.
fn fill(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("filler");
    let mut file = fs_err::File::create(&path).unwrap();
    let block = [7; 4096];
    loop {
        match file.write_all(&block) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::StorageFull => return path,
            Err(error) => panic!("filling the disk: {error}"),
        }
    }
}

#[tokio::test]
async fn a_reply_that_cannot_be_kept_says_so_as_soon_as_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let server = on_sqlite(folder.path()).serve_on_a_disk_of(24);
    // It talks for as long as anybody listens.
    let words = "word ".repeat(150_000);
    let model = ScriptedModel::play(json!({ "rules": [
        { "times": 1, "then": { "text": words, "piece": 500, "pause_ms": 5, "hang": true } },
        { "then": { "text": "It is said." } }
    ] }))
    .await
    .unwrap();
    let link = server.link.as_deref().unwrap();
    let who = json!({ "token": link.split_once("#token=").unwrap().1, "name": "Ada",
        "email": "ada@example.com", "password": "correct horse battery" });
    let visitor = server.visitor;
    let done = visitor.call(&Who::Nobody, "POST", "/api/v1/setup", &who);
    let done = done.await;
    let ada = session_of(&done);
    let workspace = done.ok()["memberships"][0]["workspace_id"].clone();
    let wanted = json!({ "name": "Scripted", "base_url": model.base_url(), "model": "scripted" });
    let made = visitor.call(&ada, "POST", "/api/v1/admin/models", &wanted);
    made.await.ok();
    let talk = Talk::begin(visitor, &ada, workspace.as_str().unwrap(), false).await;
    let sent = talk.try_send("text", "Talk, please", &[]).await.ok();
    talk.listen(0).await.until("text").await;

    let filler = fill(&server.process.sees(folder.path()));
    // Whoever asks for something to be kept is told what is in the way.
    let wanted = json!({ "workspace_id": talk.workspace });
    until(async || {
        let refused = visitor.call(&ada, "POST", "/api/v1/threads", &wanted).await;
        refused.status != 201 && {
            assert_eq!((refused.status, refused.code()), (507, "disk_full".into()));
            assert!(
                refused.text().contains("disk is full"),
                "{}",
                refused.text()
            );
            true
        }
    })
    .await;
    // The reply has noticed as well, and its end cannot be kept either.
    model.until(|seen| seen[0].is_dropped).await;

    fs_err::remove_file(filler).unwrap();
    let events = talk.listen(0).await.until("reply_ended").await;
    assert_eq!(code_of_failure(&events), "disk_full");
    let error = &find(&events, "reply_ended")["error"];
    assert!(
        error["message"].as_str().unwrap().contains("disk is full"),
        "{error}"
    );
    let events = talk.retry(&sent["message_id"]).await;
    assert_eq!(outcome(&events), "done", "{events:?}");
}

#[tokio::test]
async fn files_of_people_leave_room_to_sign_in_and_to_delete() {
    let folder = tempfile::tempdir().unwrap();
    let server = on_sqlite(folder.path()).serve_on_a_disk_of(24);
    let link = server.link.as_deref().unwrap();
    let password = "correct horse battery";
    let who = json!({ "token": link.split_once("#token=").unwrap().1, "name": "Ada",
        "email": "ada@example.com", "password": password });
    let visitor = server.visitor;
    let done = visitor.call(&Who::Nobody, "POST", "/api/v1/setup", &who);
    let done = done.await;
    let ada = session_of(&done);
    let workspace = done.ok()["memberships"][0]["workspace_id"].clone();
    let talk = Talk::begin(visitor, &ada, workspace.as_str().unwrap(), false).await;
    let ready = async || visitor.get(&Who::Nobody, "/readyz").await;
    assert_eq!(ready().await.status, 200);

    let piece = vec![7; 1 << 20];
    let mut files = Vec::new();
    let refused = loop {
        let name = format!("{}.bin", files.len());
        let answer = talk.try_upload("attachments", &name, &piece).await;
        if answer.status != 201 {
            break answer;
        }
        files.push(answer.ok()["id"].as_str().unwrap().to_owned());
    };
    assert_eq!((refused.status, refused.code()), (507, "disk_full".into()));
    assert!(files.len() > 10, "{}", files.len());

    // Where something else takes of what is left, that is said, and people come in all the same.
    let taken = server.process.sees(folder.path()).join("taken");
    fs_err::write(&taken, vec![7; 3 << 19]).unwrap();
    let unready = ready().await;
    assert_eq!((unready.status, unready.code()), (507, "disk_full".into()));
    let person = json!({ "email": "ada@example.com", "password": password });
    let signed_in = visitor.call(&Who::Nobody, "POST", "/api/v1/session", &person);
    let ada = session_of(&signed_in.await);
    let nothing = json!({});
    for file in &files[..5] {
        let path = format!("/api/v1/attachments/{file}");
        let deleted = visitor.call(&ada, "DELETE", &path, &nothing).await;
        assert_eq!(deleted.status, 204, "{}", deleted.text());
    }
    assert_eq!(ready().await.status, 200);
    talk.upload("again.bin", &piece).await;
}
