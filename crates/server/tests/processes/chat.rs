//! Replies of chat when processes are killed, and through more than one server.

use serde_json::json;

use crate::process::{Place, on_sqlite};
use crate::talk::{ENDLESS, Talk, code_of_failure, end_sandboxes, has_begun, outcome, value};

#[tokio::test]
async fn a_reply_whose_server_is_killed_is_ended_and_can_be_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let place = on_sqlite(folder.path());
    let server = place.serve(&[]);
    let (ada, workspace) = server.begin().await;
    let talk = Talk::begin(server.visitor, &ada, &workspace, false).await;
    assert_eq!(value(&talk.run("kept = 7; kept").await), "7");
    let mut reader = talk.listen(0).await;
    let once = format!(
        "import os\nif os.path.exists('again'): kept\nelse:\n    open('again', 'w')\n{}",
        {
            let lines: Vec<_> = ENDLESS.lines().map(|line| format!("    {line}")).collect();
            lines.join("\n")
        }
    );
    let file = talk.upload("in.txt", b"brought").await;
    let sent = talk.try_send("code", &once, &[&file]).await.ok();
    while !has_begun(&reader.next().await.unwrap()) {}
    drop(reader);
    server.process.kill();

    let server = place.serve(&[]);
    let talk = Talk {
        visitor: server.visitor,
        ..talk
    };
    let mut reader = talk.listen(0).await;
    reader.until("reply_ended").await;
    let events = reader.until("reply_ended").await;
    assert_eq!(code_of_failure(&events), "server_ended");
    // The sandbox is there with all that was in it.
    let events = talk.retry(&sent["message_id"]).await;
    assert_eq!(outcome(&events), "done", "{events:?}");
    let events = talk.run("kept, open('in.txt').read()").await;
    assert_eq!(value(&events), "(7, 'brought')");
    end_sandboxes(&talk).await;
}

#[tokio::test]
async fn a_gateway_that_is_killed_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let server = on_sqlite(folder.path()).serve(&[]);
    let (ada, workspace) = server.begin().await;
    let talk = Talk::begin(server.visitor, &ada, &workspace, false).await;
    assert_eq!(value(&talk.run("kept = 7; kept").await), "7");
    let mut reader = talk
        .listen(talk.show().await["last_seq"].as_u64().unwrap())
        .await;
    assert_eq!(talk.try_send("code", ENDLESS, &[]).await.status, 202);
    while !has_begun(&reader.next().await.unwrap()) {}
    server.process.kill_child("glovebox-gateway");
    // What ran is over, however far it came; what comes next runs, and finds everything.
    let events = reader.until("reply_ended").await;
    if outcome(&events) == "failed" {
        assert_eq!(code_of_failure(&events), "runtime_unavailable");
    }
    assert_eq!(value(&talk.run("kept").await), "7");
    end_sandboxes(&talk).await;
}

#[tokio::test]
async fn a_reply_is_read_and_stopped_through_another_server() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place {
        folder: folder.path().to_owned(),
        database: Some(glovebox_testkit::postgres_database().unwrap()),
    };
    place.migrate();
    let first = place.serve(&[]);
    let second = place.serve(&[]);
    let (ada, workspace) = second.begin().await;
    let talk = Talk::begin(first.visitor, &ada, &workspace, false).await;
    let there = Talk {
        visitor: second.visitor,
        ..talk.of(&ada)
    };
    let mut reader = there.listen(0).await;
    assert_eq!(talk.try_send("code", ENDLESS, &[]).await.status, 202);
    while !has_begun(&reader.next().await.unwrap()) {}
    let busy = there.try_send("code", "1", &[]).await;
    assert_eq!((busy.status, busy.code()), (409, "busy".into()));
    let stopped = there.post("/stop", &json!({})).await.ok();
    assert_eq!(stopped["was_running"], true);
    assert_eq!(outcome(&reader.until("reply_ended").await), "stopped");
    assert_eq!(value(&there.run("1 + 1").await), "2");
    end_sandboxes(&talk).await;
}
