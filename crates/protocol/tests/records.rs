//! Records survive whatever an earlier connection left in the way, and garbage costs nothing.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use glovebox_protocol::record::{
    FromAgentDecoder, FromGateway, FromGatewayDecoder, HEADER, Kind, MAX_PAYLOAD, Magic, Nonce,
    encode, hello,
};
use proptest::prelude::*;

const MAGIC: Magic = Magic::new(*b"0123456789abcdef");

fn nonce() -> impl Strategy<Value = Nonce> {
    any::<[u8; 32]>().prop_map(Nonce)
}

fn payloads() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..12)
}

/// Pushes in pieces of these lengths, over and over.
fn in_pieces(bytes: &[u8], cuts: &[usize], mut push: impl FnMut(&[u8])) {
    let mut left = bytes;
    let mut cuts = cuts.iter().cycle();
    while !left.is_empty() {
        let (piece, rest) = left.split_at((*cuts.next().unwrap()).min(left.len()));
        push(piece);
        left = rest;
    }
}

fn agent_hears(decoder: &mut FromGatewayDecoder, bytes: &[u8], cuts: &[usize]) -> Vec<FromGateway> {
    let mut heard = Vec::new();
    in_pieces(bytes, cuts, |piece| {
        decoder.push(piece);
        while let Some(next) = decoder.take() {
            heard.push(next);
        }
    });
    heard
}

proptest! {
    #[test]
    fn a_session_arrives_whole_behind_anything(
        before in prop::collection::vec(any::<u8>(), 0..400),
        nonce in nonce(),
        repeats in 1..4_usize,
        payloads in payloads(),
        cuts in prop::collection::vec(1..97_usize, 1..8),
    ) {
        let mut bytes = before;
        for _ in 0..repeats {
            bytes.extend(hello(&MAGIC, &nonce));
        }
        for payload in &payloads {
            bytes.extend(encode(nonce.tag(), Kind::Data, payload).unwrap());
        }
        let heard = agent_hears(&mut FromGatewayDecoder::new(MAGIC), &bytes, &cuts);
        let records: Vec<_> = heard.iter().filter_map(|heard| match heard {
            FromGateway::Record(Kind::Data, payload) => Some(payload.clone()),
            _ => None,
        }).collect();
        prop_assert!(heard.contains(&FromGateway::Hello(nonce)));
        prop_assert_eq!(records, payloads);
    }

    #[test]
    fn a_hello_in_the_middle_of_a_cut_record_is_heard(
        first in nonce(),
        second in nonce(),
        payload in prop::collection::vec(any::<u8>(), 60..500),
        cut in 0..500_usize,
        cuts in prop::collection::vec(1..97_usize, 1..8),
    ) {
        prop_assume!(first.tag() != second.tag());
        let record = encode(first.tag(), Kind::Data, &payload).unwrap();
        let mut bytes = hello(&MAGIC, &first).to_vec();
        bytes.extend(&record[..cut.min(record.len())]);
        bytes.extend(hello(&MAGIC, &second));
        bytes.extend(encode(second.tag(), Kind::Data, b"next").unwrap());
        let heard = agent_hears(&mut FromGatewayDecoder::new(MAGIC), &bytes, &cuts);
        let tail = &heard[heard.len() - 2..];
        prop_assert_eq!(
            tail,
            &[FromGateway::Hello(second), FromGateway::Record(Kind::Data, b"next".to_vec())]
        );
    }

    #[test]
    fn what_an_agent_said_before_is_discarded(
        old in nonce(),
        new in nonce(),
        stale in payloads(),
        cut in 0..4000_usize,
        payloads in payloads(),
        cuts in prop::collection::vec(1..97_usize, 1..8),
    ) {
        prop_assume!(old.tag() != new.tag());
        let mut bytes: Vec<u8> = stale
            .iter()
            .flat_map(|payload| encode(old.tag(), Kind::Data, payload).unwrap())
            .collect();
        bytes.truncate(cut);
        let ack = encode(new.tag(), Kind::Ack, &new.0).unwrap();
        bytes.extend(&ack);
        for payload in &payloads {
            bytes.extend(encode(new.tag(), Kind::Data, payload).unwrap());
            bytes.extend(&ack);
        }
        let mut decoder = FromAgentDecoder::new(new);
        let mut got = Vec::new();
        in_pieces(&bytes, &cuts, |piece| {
            decoder.push(piece);
            while let Some((kind, payload)) = decoder.take().unwrap() {
                assert_eq!(kind, Kind::Data);
                got.push(payload);
            }
        });
        prop_assert_eq!(got, payloads);
    }

    #[test]
    fn garbage_is_never_taken_for_anything(
        garbage in prop::collection::vec(any::<u8>(), 0..4000),
        nonce in nonce(),
        cuts in prop::collection::vec(1..97_usize, 1..8),
    ) {
        prop_assume!(!garbage.windows(16).any(|window| window == b"0123456789abcdef"));
        let mut agent = FromGatewayDecoder::new(MAGIC);
        prop_assert_eq!(agent_hears(&mut agent, &garbage, &cuts), vec![]);
        // In the middle of a session it ends the session, once.
        let heard = agent_hears(&mut agent, &hello(&MAGIC, &nonce), &cuts);
        prop_assert_eq!(heard, vec![FromGateway::Hello(nonce)]);
        prop_assume!(!garbage.starts_with(&nonce.0[..1]) && !garbage.is_empty());
        let heard = agent_hears(&mut agent, &garbage, &cuts);
        prop_assert_eq!(heard, vec![FromGateway::OutOfStep]);
        let mut gateway = FromAgentDecoder::new(nonce);
        gateway.push(&garbage);
        prop_assert_eq!(gateway.take(), Ok(None));
        prop_assert!(!gateway.has_begun());
    }

    #[test]
    fn a_magic_written_down_is_read_again(bytes in any::<[u8; 16]>()) {
        let magic = Magic::new(bytes);
        prop_assert_eq!(Magic::from_hex(&magic.to_hex()), Some(magic));
    }
}

#[test]
fn a_length_over_the_limit_is_not_believed() {
    let nonce = Nonce([7; 32]);
    let mut record = encode(nonce.tag(), Kind::Data, b"").unwrap();
    record[HEADER - 4..].copy_from_slice(&u32::MAX.to_be_bytes());
    let mut agent = FromGatewayDecoder::new(MAGIC);
    agent.push(&hello(&MAGIC, &nonce));
    agent.push(&record);
    assert_eq!(agent.take(), Some(FromGateway::Hello(nonce)));
    assert_eq!(agent.take(), Some(FromGateway::OutOfStep));
    let mut gateway = FromAgentDecoder::new(nonce);
    gateway.push(&encode(nonce.tag(), Kind::Ack, &nonce.0).unwrap());
    gateway.push(&record);
    assert!(gateway.take().is_err());
    assert!(encode(nonce.tag(), Kind::Data, &vec![0; MAX_PAYLOAD + 1]).is_err());
    assert!(encode(nonce.tag(), Kind::Data, &vec![0; MAX_PAYLOAD]).is_ok());
}

#[test]
fn a_hello_of_everybody_has_no_effect_once_there_is_another() {
    let nonce = Nonce([7; 32]);
    let mut agent = FromGatewayDecoder::new(Magic::FIRST);
    agent.push(&hello(&Magic::FIRST, &nonce));
    assert_eq!(agent.take(), Some(FromGateway::Hello(nonce)));
    agent.set_magic(MAGIC);
    agent.end_session();
    agent.push(&hello(&Magic::FIRST, &Nonce([8; 32])));
    assert_eq!(agent.take(), None);
}
