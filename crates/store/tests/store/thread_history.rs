//! What has happened in a thread, read from its end.

use glovebox_protocol::ids::MessageId;
use glovebox_protocol::thread::ThreadEventBody;
use glovebox_store::Store;

use crate::support::{Database, on_both, person};
use crate::threads::{end, send, thread};

on_both! {
    a_thread_is_read_from_its_end_in_pages_that_begin_with_a_message
    a_page_is_bounded_in_bytes
}

fn said(text: &str) -> ThreadEventBody {
    ThreadEventBody::Text {
        reply: MessageId::new(),
        text: text.into(),
    }
}

/// All pages of a thread, the newest first: the numbers of their events.
async fn pages(store: &Store, id: glovebox_protocol::ids::ThreadId, limit: u32) -> Vec<Vec<u64>> {
    let (mut before, mut pages) = (None, Vec::new());
    loop {
        let events = store.thread_events_before(id, before, limit).await.unwrap();
        let Some(first) = events.first() else {
            return pages;
        };
        before = Some(first.seq);
        pages.push(events.iter().map(|event| event.seq).collect());
    }
}

async fn a_thread_is_read_from_its_end_in_pages_that_begin_with_a_message(database: Database) {
    let store = &database.store;
    let ada = person(store, "ada").await;
    let id = thread(store, &ada.access, false).await;
    assert!(pages(store, id, 5).await.is_empty());
    // Each exchange has four events, and the first one the thread's title too.
    for n in 0..3 {
        let (_, reply) = send(store, &ada.access, id, "hello", &[]).await;
        store.tell(id, &[said(&format!("{n}"))]).await.unwrap();
        end(store, id, reply).await;
    }
    let all: Vec<u64> = (1..=13).collect();
    assert_eq!(pages(store, id, 500).await, [all]);
    // Of an exchange that is longer than a page every event is there, too.
    assert_eq!(
        pages(store, id, 5).await,
        [
            (10..=13).collect::<Vec<_>>(),
            (6..=9).collect(),
            (1..=5).collect()
        ]
    );
    let short = pages(store, id, 3).await;
    assert_eq!(short[0], [11, 12, 13]);
    assert_eq!(short[1], [10]);
    let mut seen = short.concat();
    seen.sort_unstable();
    assert_eq!(seen, (1..=13).collect::<Vec<_>>());
    let other = thread(store, &ada.access, false).await;
    assert!(pages(store, other, 5).await.is_empty());
}

async fn a_page_is_bounded_in_bytes(database: Database) {
    let store = &database.store;
    let ada = person(store, "ada").await;
    let id = thread(store, &ada.access, false).await;
    let mebibyte = "ä".repeat(1 << 19);
    for _ in 0..6 {
        store.tell(id, &[said(&mebibyte)]).await.unwrap();
    }
    let large = "x".repeat(6 << 20);
    store.tell(id, &[said(&large)]).await.unwrap();
    let sizes: Vec<_> = pages(store, id, 500).await.iter().map(Vec::len).collect();
    assert_eq!(sizes, [1, 4, 2]);
}
