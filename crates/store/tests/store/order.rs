//! The order of a thread's messages, which no server's clock settles.

use glovebox_protocol::ids::{MessageId, ThreadId};
use glovebox_store::PlacedMessage;

use crate::furnished::{Files, back_up, restore, rows, sha256};
use crate::support::{Database, on_both, person};
use crate::threads::{end, send, thread};

on_both! {
    messages_are_in_the_order_in_which_they_were_kept
    messages_of_before_get_the_numbers_of_their_ids
    a_reply_comes_back_whose_id_is_smaller_than_that_of_what_it_answers
    so_it_does_from_a_file_that_has_it_first
}

/// Gives all messages of a thread ids as a server would whose clock is far ahead, or far behind; of what
/// is answered they are always those of one that is ahead.
async fn made_by_another_clock(database: &Database, thread: ThreadId, replies: &str) {
    let raw = database.raw().await;
    let insert = "INSERT INTO messages (id, thread_id, user_id, reply_to, role, kind, body, turns, \
         state, request_hash, created_at, driven_until, ended_at, seq) \
         SELECT CASE WHEN reply_to IS NULL THEN 'ffffffff' ELSE $2 END || SUBSTR(id, 9), thread_id, \
         user_id, 'ffffffff' || SUBSTR(reply_to, 9), role, kind, body, turns, state, request_hash, \
         created_at, driven_until, ended_at, seq FROM messages WHERE thread_id = $1 ORDER BY seq";
    let own =
        "DELETE FROM messages WHERE thread_id = $1 AND SUBSTR(id, 1, 8) NOT IN ('ffffffff', $2)";
    let replies_of_before = format!("{own} AND reply_to IS NOT NULL");
    for statement in [insert, &replies_of_before, own] {
        sqlx::query(sqlx::AssertSqlSafe(statement.to_owned()))
            .bind(thread.to_string())
            .bind(replies.to_owned())
            .execute(&raw)
            .await
            .unwrap();
    }
}

async fn messages_are_in_the_order_in_which_they_were_kept(database: Database) {
    let store = &database.store;
    let ada = person(store, "ada").await;
    let id = thread(store, &ada.access, false).await;
    let (_, reply) = send(store, &ada.access, id, "first", &[]).await;
    end(store, id, reply).await;
    made_by_another_clock(&database, id, "fffffffe").await;
    let (second, reply) = send(store, &ada.access, id, "second", &[]).await;
    end(store, id, reply).await;

    let messages = store.messages(id, 99).await.unwrap();
    let told: Vec<_> = messages.iter().map(|one| one.body.as_str()).collect();
    assert_eq!(told, ["first", "", "second", ""]);
    assert_eq!(messages[3].id, reply);
    let newest = store.messages(id, 2).await.unwrap();
    assert_eq!(newest[0].id, second);
    let retry = async |message: MessageId| {
        let mut changes = store.begin().await.unwrap();
        let held = changes.hold_thread(id).await.unwrap().unwrap();
        changes
            .place_retry(&ada.access, &held, message)
            .await
            .unwrap()
    };
    assert_eq!(retry(messages[0].id).await, PlacedMessage::NotNewest);
    assert!(matches!(retry(second).await, PlacedMessage::New { .. }));
}

async fn messages_of_before_get_the_numbers_of_their_ids(database: Database) {
    let store = &database.store;
    let ada = person(store, "ada").await;
    let [one, other] = [
        thread(store, &ada.access, false).await,
        thread(store, &ada.access, false).await,
    ];
    for id in [one, other, one] {
        let (_, reply) = send(store, &ada.access, id, "said", &[]).await;
        end(store, id, reply).await;
    }
    let ids = async |id| {
        let messages = store.messages(id, 99).await.unwrap();
        messages.iter().map(|one| one.id).collect::<Vec<_>>()
    };
    let before = [ids(one).await, ids(other).await];
    // As they were before there were numbers.
    let raw = database.raw().await;
    for statement in [
        "DROP INDEX messages_of_thread",
        "ALTER TABLE messages DROP COLUMN seq",
        "CREATE INDEX messages_of_thread ON messages (thread_id, created_at)",
        include_str!("../../migrations/0007-order.sql"),
    ] {
        sqlx::raw_sql(statement).execute(&raw).await.unwrap();
    }
    assert_eq!([ids(one).await, ids(other).await], before);
    assert_eq!([before[0].len(), before[1].len()], [4, 2]);
    let (said, reply) = send(store, &ada.access, one, "said", &[]).await;
    assert_eq!(ids(one).await[4..], [said, reply]);
}

async fn a_reply_comes_back_whose_id_is_smaller_than_that_of_what_it_answers(database: Database) {
    let store = &database.store;
    let ada = person(store, "ada").await;
    let id = thread(store, &ada.access, false).await;
    let (_, reply) = send(store, &ada.access, id, "first", &[]).await;
    end(store, id, reply).await;
    made_by_another_clock(&database, id, "00000000").await;
    let (file, _) = back_up(store, &Files::new()).await;
    for target in [
        Database::bare_sqlite().await,
        Database::bare_postgres().await,
    ] {
        restore(&target.store, &Files::new(), &file).await.unwrap();
        let (here, there) = (rows(&database).await, rows(&target).await);
        assert_eq!(here["messages"], there["messages"]);
        assert_eq!(there["messages"].len(), 2);
    }
}

/// A backup with the first two messages the other way round: in the order of their keys, as earlier versions
/// made it.
fn in_the_order_of_keys(file: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(file).unwrap();
    let mut lines: Vec<_> = text.lines().collect();
    let table = "{\"table\":{\"name\":\"messages\"";
    let at = lines.iter().position(|line| line.starts_with(table));
    let at = at.unwrap();
    lines.swap(at + 1, at + 2);
    let end = lines.pop().unwrap();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let (head, _) = end.split_once("\"sha256\":").unwrap();
    let hash = sha256(text.as_bytes());
    format!("{text}{head}\"sha256\":\"{hash}\"}}}}\n").into_bytes()
}

async fn so_it_does_from_a_file_that_has_it_first(database: Database) {
    let store = &database.store;
    let ada = person(store, "ada").await;
    let id = thread(store, &ada.access, false).await;
    let (_, reply) = send(store, &ada.access, id, "first", &[]).await;
    end(store, id, reply).await;
    made_by_another_clock(&database, id, "00000000").await;
    let (file, _) = back_up(store, &Files::new()).await;
    let file = in_the_order_of_keys(&file);
    let target = Database::bare_sqlite().await;
    restore(&target.store, &Files::new(), &file).await.unwrap();
    assert_eq!(
        rows(&database).await["messages"],
        rows(&target).await["messages"]
    );
}
