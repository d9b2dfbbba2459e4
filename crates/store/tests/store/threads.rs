//! Threads: who reads and writes them, their events and messages.

use futures_util::future::join_all;
use glovebox_protocol::ids::{AttachmentId, MessageId, ThreadId};
use glovebox_protocol::thread::{MessageKind, ReplyOutcome, ThreadEventBody};
use glovebox_store::{
    Access, KeyScope, MessageState, NewApiKey, NewMessage, NewThread, PlacedMessage, Role, Store,
    StoreError, Token,
};

use crate::support::{Database, Person, new_user, on_both, person};

on_both! {
    events_are_numbered_without_gaps_however_many_tell
    a_private_thread_is_its_owners_and_a_shared_one_everybodys
    what_a_service_began_is_its_own_and_seen_by_whoever_manages
    events_are_read_in_pages_that_are_bounded_in_bytes
    threads_come_in_pages_the_last_active_first
    a_title_is_found_in_the_letters_of_every_script
    one_reply_runs_at_a_time_and_a_request_is_sent_once
    the_first_message_names_a_thread_that_nobody_has_named
    the_newest_message_is_answered_again
    a_reply_ends_once_and_one_that_nobody_drives_is_found
    of_a_long_past_no_more_is_read_than_a_model_could
    access_is_looked_at_anew
}

/// Makes a thread.
pub(crate) async fn thread(store: &Store, access: &Access, is_shared: bool) -> ThreadId {
    let new = NewThread {
        id: ThreadId::new(),
        title: None,
        is_shared,
    };
    let mut changes = store.begin().await.unwrap();
    changes.create_thread(access, &new).await.unwrap();
    changes.commit().await.unwrap();
    new.id
}

pub(crate) fn message(text: &str, attachments: &[AttachmentId]) -> NewMessage {
    NewMessage {
        kind: MessageKind::Text,
        text: text.into(),
        attachments: attachments.to_vec(),
        idempotency_key: None,
        request_hash: text.into(),
    }
}

pub(crate) async fn place(
    store: &Store,
    access: &Access,
    thread: ThreadId,
    new: &NewMessage,
) -> PlacedMessage {
    let mut changes = store.begin().await.unwrap();
    let held = changes.hold_thread(thread).await.unwrap().unwrap();
    let placed = changes.place_message(access, &held, new).await.unwrap();
    if matches!(placed, PlacedMessage::New { .. }) {
        changes.commit().await.unwrap();
    }
    placed
}

/// Sends a message and gives it with its reply, which runs.
pub(crate) async fn send(
    store: &Store,
    access: &Access,
    thread: ThreadId,
    text: &str,
    attachments: &[AttachmentId],
) -> (MessageId, MessageId) {
    match place(store, access, thread, &message(text, attachments)).await {
        PlacedMessage::New { message, reply, .. } => (message, reply),
        other => panic!("it was not sent: {other:?}"),
    }
}

pub(crate) async fn end(store: &Store, thread: ThreadId, reply: MessageId) {
    let reply = store.message(thread, reply).await.unwrap().unwrap();
    let ended = store.end_reply(&reply, ReplyOutcome::Done, None, 0).await;
    assert!(ended.unwrap().is_some());
}

/// Somebody else of the same workspace.
pub(crate) async fn member(store: &Store, of: &Person, name: &str, role: Role) -> Access {
    let mut changes = store.begin().await.unwrap();
    let user = changes.create_user(&new_user(name)).await.unwrap();
    changes.add_member(of.workspace, user, role).await.unwrap();
    changes.commit().await.unwrap();
    let access = store.access_of_user(user, of.workspace).await;
    access.unwrap().unwrap()
}

pub(crate) async fn service(store: &Store, of: &Person) -> Access {
    let token = Token::random("gbk_").unwrap();
    let mut changes = store.begin().await.unwrap();
    let new = NewApiKey {
        workspace_id: of.workspace,
        user_id: None,
        name: "a service".into(),
        token: token.hash(),
        scopes: KeyScope::ALL.to_vec(),
    };
    changes.create_api_key(&new).await.unwrap();
    changes.commit().await.unwrap();
    store.access_of_key(&token.hash()).await.unwrap().unwrap()
}

fn said(text: &str) -> ThreadEventBody {
    ThreadEventBody::Text {
        reply: MessageId::new(),
        text: text.into(),
    }
}

async fn events_are_numbered_without_gaps_however_many_tell(database: Database) {
    let store = &database.store;
    let ada = person(store, "ada").await;
    let thread = thread(store, &ada.access, false).await;
    let telling = (0..40).map(|n| {
        let bodies = vec![said(&format!("{n}")); 1 + n % 3];
        async move { store.tell(thread, &bodies).await.unwrap() }
    });
    // Whoever reads meanwhile, from where they have read to, misses none.
    let reading = async {
        let mut seen = Vec::new();
        while seen.len() < 79 {
            let after = seen.last().copied().unwrap_or(0);
            let events = store.thread_events(thread, after, 7).await.unwrap();
            seen.extend(events.iter().map(|event| event.seq));
        }
        seen
    };
    let (last, seen) = tokio::join!(join_all(telling), reading);
    assert_eq!(last.into_iter().max(), Some(79));
    assert_eq!(seen, (1..=79).collect::<Vec<_>>());
    let found = store.thread(thread).await.unwrap().unwrap();
    assert_eq!(found.last_seq, 79);
}

async fn a_private_thread_is_its_owners_and_a_shared_one_everybodys(database: Database) {
    let store = &database.store;
    let (ada, eve) = (person(store, "ada").await, person(store, "eve").await);
    let admin = member(store, &ada, "admin", Role::Admin).await;
    let viewer = member(store, &ada, "viewer", Role::Viewer).await;
    let private = thread(store, &ada.access, false).await;
    let shared = thread(store, &ada.access, true).await;
    for (who, reads_private, reads_shared, writes_shared) in [
        (&ada.access, true, true, true),
        (&admin, false, true, true),
        (&viewer, false, true, false),
        (&eve.access, false, false, false),
    ] {
        let one = store.thread_of(who, private).await.unwrap();
        assert_eq!(one.is_some(), reads_private, "{}", who.name());
        let other = store.thread_of(who, shared).await.unwrap();
        assert_eq!(other.is_some(), reads_shared, "{}", who.name());
        let writes = other.as_ref().is_some_and(|thread| thread.may_write(who));
        assert_eq!(writes, writes_shared, "{}", who.name());
        let changes = other.is_some_and(|thread| thread.may_change(who));
        assert_eq!(changes, who.user() == ada.access.user(), "{}", who.name());
        let listed = store.threads_of(who, None, "", 9).await.unwrap();
        let expected = usize::from(reads_private) + usize::from(reads_shared);
        assert_eq!(listed.len(), expected, "{}", who.name());
    }
}

async fn what_a_service_began_is_its_own_and_seen_by_whoever_manages(database: Database) {
    let store = &database.store;
    let ada = person(store, "ada").await;
    let editor = member(store, &ada, "editor", Role::Editor).await;
    let (one, other) = (service(store, &ada).await, service(store, &ada).await);
    let private = thread(store, &one, false).await;
    for (who, reads, writes) in [
        (&one, true, true),
        (&other, false, false),
        (&ada.access, true, false),
        (&editor, false, false),
    ] {
        let found = store.thread_of(who, private).await.unwrap();
        assert_eq!(found.is_some(), reads, "{}", who.name());
        let may_write = found.as_ref().is_some_and(|thread| thread.may_write(who));
        assert_eq!(may_write, writes, "{}", who.name());
        // Whoever manages looks after it.
        assert_eq!(found.is_some_and(|thread| thread.may_change(who)), reads);
    }
}

async fn threads_come_in_pages_the_last_active_first(database: Database) {
    let store = &database.store;
    let ada = person(store, "ada").await;
    let mut ids = Vec::new();
    for n in 0..5 {
        let new = NewThread {
            id: ThreadId::new(),
            title: Some(format!("Talk {n} about 100% of_it!")),
            is_shared: false,
        };
        let mut changes = store.begin().await.unwrap();
        changes.create_thread(&ada.access, &new).await.unwrap();
        changes.commit().await.unwrap();
        ids.push(new.id);
    }
    // Times of the same millisecond are told apart by the ids.
    let mut seen = Vec::new();
    let mut place = None;
    loop {
        let page = store.threads_of(&ada.access, place, "", 2).await.unwrap();
        let Some(last) = page.last() else { break };
        place = Some(last.place());
        seen.extend(page.iter().map(|thread| thread.id));
    }
    ids.reverse();
    assert_eq!(seen, ids);
    for (part, found) in [
        ("TALK 3", 1),
        ("100%", 5),
        ("of_it!", 5),
        ("ofxit", 0),
        ("%%", 0),
    ] {
        let listed = store.threads_of(&ada.access, None, part, 9).await.unwrap();
        assert_eq!(listed.len(), found, "{part}");
    }
}

async fn events_are_read_in_pages_that_are_bounded_in_bytes(database: Database) {
    let store = &database.store;
    let ada = person(store, "ada").await;
    let thread = thread(store, &ada.access, false).await;
    // Pictures, say: a run may show ten of them.
    let mebibyte = "ä".repeat(1 << 19);
    for _ in 0..10 {
        store.tell(thread, &[said(&mebibyte)]).await.unwrap();
    }
    store
        .tell(thread, &[said(&"x".repeat(6 << 20))])
        .await
        .unwrap();
    let small: Vec<_> = (0..20).map(|n| said(&format!("{n}"))).collect();
    store.tell(thread, &small).await.unwrap();
    let (mut seen, mut pages) = (Vec::new(), Vec::new());
    loop {
        let after = seen.last().copied().unwrap_or(0);
        let events = store.thread_events(thread, after, 500).await.unwrap();
        if events.is_empty() {
            break;
        }
        pages.push(events.len());
        seen.extend(events.iter().map(|event| event.seq));
    }
    assert_eq!(seen, (1..=31).collect::<Vec<_>>());
    // With what is around the text each has a little more than a mebibyte.
    assert_eq!(pages, [4, 4, 3, 20]);
    let few = store.thread_events(thread, 11, 7).await.unwrap();
    assert_eq!(few.len(), 7);
}

async fn a_title_is_found_in_the_letters_of_every_script(database: Database) {
    let store = &database.store;
    let ada = person(store, "ada").await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(thread(store, &ada.access, false).await);
    }
    // Named when it is made, by its first message, and by somebody.
    let new = NewThread {
        id: ThreadId::new(),
        title: Some("Übersicht".into()),
        is_shared: false,
    };
    let mut changes = store.begin().await.unwrap();
    changes.create_thread(&ada.access, &new).await.unwrap();
    changes.commit().await.unwrap();
    send(store, &ada.access, ids[0], "ОТЧЁТ за год", &[]).await;
    let mut named = store.thread(ids[1]).await.unwrap().unwrap();
    // As some systems write it: a letter and its dots.
    named.title = "U\u{308}ber uns".into();
    let mut changes = store.begin().await.unwrap();
    changes.update_thread(&named).await.unwrap();
    changes.commit().await.unwrap();
    for (part, expected) in [
        ("Übersicht", vec![new.id]),
        ("ÜBERS", vec![new.id]),
        ("Отчёт", vec![ids[0]]),
        ("отчёт За", vec![ids[0]]),
        ("über", vec![ids[1], new.id]),
        ("new THREAD", vec![ids[2]]),
    ] {
        let listed = store.threads_of(&ada.access, None, part, 9).await.unwrap();
        let mut found: Vec<_> = listed.iter().map(|thread| thread.id).collect();
        found.sort();
        let mut expected = expected;
        expected.sort();
        assert_eq!(found, expected, "{part}");
    }
}

async fn one_reply_runs_at_a_time_and_a_request_is_sent_once(database: Database) {
    let store = &database.store;
    let ada = person(store, "ada").await;
    let thread = thread(store, &ada.access, false).await;
    let named = |key: &str, text: &str| NewMessage {
        idempotency_key: Some(key.into()),
        ..message(text, &[])
    };
    let first = place(store, &ada.access, thread, &named("a", "1")).await;
    let PlacedMessage::New { message, reply, .. } = first else {
        panic!("it was not sent: {first:?}");
    };
    let again = async |key: &str, text: &str| {
        let named = named(key, text);
        place(store, &ada.access, thread, &named).await
    };
    assert_eq!(
        again("a", "1").await,
        PlacedMessage::Repeated { message, reply }
    );
    assert_eq!(again("a", "2").await, PlacedMessage::KeyIsTaken);
    assert_eq!(again("b", "2").await, PlacedMessage::Busy(reply));
    end(store, thread, reply).await;
    assert_eq!(
        again("a", "1").await,
        PlacedMessage::Repeated { message, reply }
    );

    // A key is its author's: what another one sends under the same is not lost.
    let bob = person(store, "bob").await;
    let theirs = place(store, &bob.access, thread, &named("a", "1")).await;
    let PlacedMessage::New { reply, .. } = theirs else {
        panic!("it was not sent: {theirs:?}");
    };
    end(store, thread, reply).await;

    // Of many at once one is sent.
    let one = named("c", "x");
    let all = (0..12).map(|_| place(store, &ada.access, thread, &one));
    let placed = join_all(all).await;
    let new = placed
        .iter()
        .filter(|placed| matches!(placed, PlacedMessage::New { .. }));
    assert_eq!(new.count(), 1, "{placed:?}");
}

async fn the_first_message_names_a_thread_that_nobody_has_named(database: Database) {
    let store = &database.store;
    let ada = person(store, "ada").await;
    let id = thread(store, &ada.access, false).await;
    let (_, reply) = send(store, &ada.access, id, "What is in it?\nmore", &[]).await;
    let found = store.thread(id).await.unwrap().unwrap();
    assert_eq!(found.title, "What is in it?");
    assert_eq!(found.running_reply, Some(reply));
    end(store, id, reply).await;
    send(store, &ada.access, id, "And then?", &[]).await;
    let mut found = store.thread(id).await.unwrap().unwrap();
    assert_eq!(found.title, "What is in it?");
    let events = store.thread_events(id, 0, 99).await.unwrap();
    let named = |body: &ThreadEventBody| matches!(body, ThreadEventBody::ThreadChanged { .. });
    assert_eq!(events.iter().filter(|event| named(&event.body)).count(), 1);

    found.title = "Renamed".into();
    found.is_shared = true;
    let mut changes = store.begin().await.unwrap();
    changes.update_thread(&found).await.unwrap();
    changes.commit().await.unwrap();
    let mut changes = store.begin().await.unwrap();
    let late = changes.update_thread(&found).await.unwrap_err();
    assert!(matches!(late, StoreError::Conflict { .. }), "{late}");
}

async fn the_newest_message_is_answered_again(database: Database) {
    let store = &database.store;
    let ada = person(store, "ada").await;
    let id = thread(store, &ada.access, false).await;
    let (first, reply) = send(store, &ada.access, id, "1", &[]).await;
    let retry = async |message| {
        let mut changes = store.begin().await.unwrap();
        let held = changes.hold_thread(id).await.unwrap().unwrap();
        let placed = changes.place_retry(&ada.access, &held, message).await;
        changes.commit().await.unwrap();
        placed.unwrap()
    };
    assert_eq!(retry(first).await, PlacedMessage::Busy(reply));
    end(store, id, reply).await;
    let PlacedMessage::New { reply, .. } = retry(first).await else {
        panic!("it was not tried again");
    };
    end(store, id, reply).await;
    let (second, reply) = send(store, &ada.access, id, "2", &[]).await;
    end(store, id, reply).await;
    assert_eq!(retry(first).await, PlacedMessage::NotNewest);
    assert!(matches!(retry(second).await, PlacedMessage::New { .. }));
    let messages = store.messages(id, 99).await.unwrap();
    assert_eq!(messages.len(), 6);
    assert_eq!(messages[0].author, "ada");
}

async fn a_reply_ends_once_and_one_that_nobody_drives_is_found(database: Database) {
    let store = &database.store;
    let ada = person(store, "ada").await;
    let id = thread(store, &ada.access, false).await;
    let (_, reply) = send(store, &ada.access, id, "1", &[]).await;
    assert!(store.undriven_replies().await.unwrap().is_empty());
    store.mark_reply_driven(reply, -1).await.unwrap();
    assert_eq!(store.undriven_replies().await.unwrap()[0].id, reply);
    assert!(store.is_to_go_on(reply).await.unwrap());
    let other = Some(MessageId::new());
    assert_eq!(store.ask_to_stop(id, other).await.unwrap(), None);
    assert!(store.is_to_go_on(reply).await.unwrap());
    let only = Some(reply);
    assert_eq!(store.ask_to_stop(id, only).await.unwrap(), only);
    assert_eq!(store.ask_to_stop(id, None).await.unwrap(), only);
    assert!(!store.is_to_go_on(reply).await.unwrap());
    end(store, id, reply).await;
    let ended = store.message(id, reply).await.unwrap().unwrap();
    assert_eq!(ended.state, MessageState::Done);
    let again = store.end_reply(&ended, ReplyOutcome::Failed, None, 0).await;
    assert!(again.unwrap().is_none());
    assert!(store.undriven_replies().await.unwrap().is_empty());
    assert_eq!(store.ask_to_stop(id, None).await.unwrap(), None);
    let last = store.thread_events(id, 0, 99).await.unwrap().pop().unwrap();
    assert!(matches!(
        last.body,
        ThreadEventBody::ReplyEnded {
            outcome: ReplyOutcome::Done,
            ..
        }
    ));
}

async fn of_a_long_past_no_more_is_read_than_a_model_could(database: Database) {
    let store = &database.store;
    let ada = person(store, "ada").await;
    let id = thread(store, &ada.access, false).await;
    let mut replies = Vec::new();
    for n in 0..6 {
        let (_, reply) = send(store, &ada.access, id, &format!("{n}"), &[]).await;
        let turns = serde_json::json!("t".repeat(1 << 19));
        let said = "ä".repeat(1 << 18);
        store.keep_reply(reply, &turns, &said).await.unwrap();
        end(store, id, reply).await;
        replies.push(reply);
    }
    let read = store.messages(id, 400).await.unwrap();
    let found: Vec<_> = read.iter().map(|one| one.id).collect();
    assert!(found.contains(&replies[5]) && found.contains(&replies[2]));
    assert!(!found.contains(&replies[1]), "{}", found.len());
    assert!(found.is_sorted());
    assert_eq!(store.messages(id, 3).await.unwrap().len(), 3);
}

async fn access_is_looked_at_anew(database: Database) {
    let store = &database.store;
    let ada = person(store, "ada").await;
    let bob = member(store, &ada, "bob", Role::Editor).await;
    let key = service(store, &ada).await;
    for access in [&bob, &key] {
        let now = store.present_access(access).await.unwrap().unwrap();
        assert_eq!(now.role(), Role::Editor);
    }
    let mut changes = store.begin().await.unwrap();
    changes
        .remove_member(ada.workspace, bob.user().unwrap())
        .await
        .unwrap();
    changes
        .revoke_api_key(ada.workspace, key.api_key().unwrap())
        .await
        .unwrap();
    changes.commit().await.unwrap();
    for access in [&bob, &key] {
        assert!(store.present_access(access).await.unwrap().is_none());
    }
}
