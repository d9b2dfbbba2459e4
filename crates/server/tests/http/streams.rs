//! How many streams there may be, and what a thread is read by where there is none.

use std::time::{Duration, Instant};

use glovebox_server::StreamLimits;
use glovebox_store::Role;
use serde_json::{Value, json};

use crate::stage::Stage;
use crate::talk::Talk;
use crate::visitor::Visitor;
use crate::wire::{Who, try_listen};

/// How long something may take that is bound to come.
const PATIENCE: Duration = Duration::from_secs(60);

async fn begin(stage: &Stage, who: &Who, workspace: &str) -> Talk {
    let visitor = Visitor {
        address: stage.address,
    };
    Talk::begin(visitor, who, workspace, true).await
}

/// What is told to whoever asks for one stream too many.
async fn refused(talk: &Talk) -> Value {
    let answer = talk
        .visitor
        .get(&talk.who, &talk.path("/events?after=0"))
        .await;
    assert_eq!(answer.status, 429, "{}", answer.text());
    answer.json()
}

/// Opens a stream as soon as there may be one more.
async fn opened(talk: &Talk) -> crate::wire::Listening {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(listening) = try_listen(
            talk.visitor.address,
            &talk.who,
            &talk.path("/events?after=0"),
        )
        .await
        {
            return listening;
        }
        assert!(Instant::now() < deadline, "the place does not come back");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn streams_are_counted_and_come_back_when_their_callers_go() {
    let stage = Stage::told(|config| {
        config.streams = StreamLimits {
            per_caller: 2,
            in_all: 3,
        };
    })
    .await;
    let workspace = stage.workspace("Main").await;
    let (_, ada) = stage.member(workspace, "ada", Role::Editor).await;
    let (_, bob) = stage.member(workspace, "bob", Role::Editor).await;
    let talk = begin(&stage, &ada, &workspace.to_string()).await;
    let bobs = talk.of(&bob);
    let first = talk.listen(0).await;
    let _second = talk.listen(0).await;
    let own = refused(&talk).await;
    assert_eq!(own["code"], "too_many_streams");
    assert_eq!(
        own["message"],
        "you have 2 streams of events open, as many as one caller may have (max_caller_streams)"
    );
    assert_eq!(own["details"], json!({ "limit": 2 }));
    assert!(own["fix"].as_str().unwrap().contains("`history`"), "{own}");
    let third = bobs.listen(0).await;
    let all = refused(&bobs).await;
    assert_eq!(
        all["message"],
        "3 streams of events are open, as many as this server gives (max_streams)"
    );
    // Whoever goes away, without a word, makes room.
    drop(first);
    let again = opened(&talk).await;
    drop((again, third));
    let _bobs = opened(&bobs).await;
}

#[tokio::test]
async fn a_thread_is_read_page_by_page_and_on_from_there() {
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    let (_, ada) = stage.member(workspace, "ada", Role::Editor).await;
    let (_, eve) = stage
        .member(stage.workspace("Other").await, "eve", Role::Owner)
        .await;
    let talk = begin(&stage, &ada, &workspace.to_string()).await;
    let page = async |query: &str| {
        let path = talk.path(&format!("/history{query}"));
        stage.get(&ada, &path).await.ok()
    };
    assert_eq!(page("").await, json!({ "items": [], "next_cursor": null }));
    let mut told = Vec::new();
    for text in ["one", "two", "three"] {
        told.extend(talk.say("text", text, &[]).await);
    }
    let newest = page("?limit=4").await;
    let seqs = |page: &Value| -> Vec<u64> {
        let items = page["items"].as_array().unwrap().iter();
        items.map(|event| event["seq"].as_u64().unwrap()).collect()
    };
    let items = newest["items"].as_array().unwrap();
    assert_eq!(items[0]["data"]["text"], "three", "{newest}");
    let last = talk.show().await["last_seq"].as_u64().unwrap();
    assert_eq!(seqs(&newest).last(), Some(&last));
    // Every event, as the stream tells it.
    let (mut all, mut at) = (items.clone(), newest["next_cursor"].clone());
    while let Some(cursor) = at.as_str() {
        let older = page(&format!("?limit=4&cursor={cursor}")).await;
        assert_eq!(older["items"][0]["type"], "message_sent", "{older}");
        all = [older["items"].as_array().unwrap().clone(), all].concat();
        at = older["next_cursor"].clone();
    }
    assert_eq!(all, told);
    let since = page(&format!("?after={}", last - 1)).await;
    assert_eq!(
        (seqs(&since), &since["next_cursor"]),
        (vec![last], &Value::Null)
    );
    for query in ["?cursor=3&after=1", "?cursor=x", "?limit=501"] {
        let path = talk.path(&format!("/history{query}"));
        assert_eq!(stage.get(&ada, &path).await.status, 400, "{query}");
    }
    assert_eq!(stage.get(&eve, &talk.path("/history")).await.status, 404);
}
