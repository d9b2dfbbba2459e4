//! Records of attached streams: what was sent arrives as it was, behind any noise and however it is
//! cut; noise alone ends nobody, and no record is over its limit.

#![no_main]

use glovebox_fuzz::{Bytes, pieces};
use glovebox_protocol::record::{
    FromAgentDecoder, FromGateway, FromGatewayDecoder, Kind, MAX_PAYLOAD, Magic, Nonce, encode,
    hello,
};
use libfuzzer_sys::fuzz_target;

/// What a gateway accepts from an agent after the acknowledgement.
const OF_AGENTS: [Kind; 4] = [Kind::Desync, Kind::Ready, Kind::Refused, Kind::Data];

/// What either side may send.
const ALL: [Kind; 7] = [
    Kind::Ack,
    Kind::Desync,
    Kind::Config,
    Kind::Ready,
    Kind::Refused,
    Kind::Data,
    Kind::Alive,
];

fn records<'a>(bytes: &mut Bytes<'a>, kinds: &[Kind]) -> Vec<(Kind, &'a [u8])> {
    let mut records = Vec::new();
    for _ in 0..bytes.byte() % 8 {
        let kind = kinds[usize::from(bytes.byte()) % kinds.len()];
        records.push((kind, bytes.few()));
    }
    records
}

/// What an agent makes of its input, piece by piece.
fn agent_takes(magic: Magic, wire: &[u8], cuts: &[u8]) -> Vec<FromGateway> {
    let mut decoder = FromGatewayDecoder::new(magic);
    let mut seen = Vec::new();
    for piece in pieces(wire, cuts) {
        decoder.push(piece);
        while let Some(one) = decoder.take() {
            if let FromGateway::Record(_, payload) = &one {
                assert!(payload.len() <= MAX_PAYLOAD);
            }
            seen.push(one);
        }
    }
    seen
}

/// What a gateway makes of an agent's output, piece by piece, until it is at fault.
fn gateway_takes(nonce: Nonce, wire: &[u8], cuts: &[u8]) -> (Vec<(Kind, Vec<u8>)>, bool) {
    let mut decoder = FromAgentDecoder::new(nonce);
    let mut seen = Vec::new();
    for piece in pieces(wire, cuts) {
        decoder.push(piece);
        loop {
            match decoder.take() {
                Ok(Some((kind, payload))) => {
                    assert!(OF_AGENTS.contains(&kind) && payload.len() <= MAX_PAYLOAD);
                    assert!(decoder.has_begun());
                    seen.push((kind, payload));
                }
                Ok(None) => break,
                Err(_) => return (seen, true),
            }
        }
    }
    (seen, false)
}

fn holds(bytes: &[u8], pattern: &[u8]) -> bool {
    bytes.windows(pattern.len()).any(|part| part == pattern)
}

fn to_an_agent(bytes: &mut Bytes<'_>, cuts: &[u8]) {
    let (magic, nonce) = (Magic::new(bytes.array()), Nonce(bytes.array()));
    let noise = bytes.few();
    let sent = records(bytes, &ALL);
    let mut wire = noise.to_vec();
    wire.extend(hello(&magic, &nonce));
    for (kind, payload) in &sent {
        wire.extend(encode(nonce.tag(), *kind, payload).expect("a short payload"));
    }
    // A magic is drawn at random and known to nobody who writes what is sent: where the fuzzer
    // has made one a second time, by its zeros for instance, other rules hold.
    let announced = &hello(&magic, &nonce)[..16];
    let mut places = wire.windows(16).filter(|part| *part == announced);
    if places.nth(1).is_some() {
        return;
    }
    let mut expected = vec![FromGateway::Hello(nonce)];
    let records = sent.iter();
    expected.extend(records.map(|(kind, payload)| FromGateway::Record(*kind, payload.to_vec())));
    assert_eq!(agent_takes(magic, &wire, cuts), expected);
}

fn from_an_agent(bytes: &mut Bytes<'_>, cuts: &[u8]) {
    let nonce = Nonce(bytes.array());
    let noise = bytes.few();
    let sent = records(bytes, &OF_AGENTS);
    let acknowledged = encode(nonce.tag(), Kind::Ack, &nonce.0).expect("a short payload");
    let mut wire = noise.to_vec();
    wire.extend(&acknowledged);
    // The first one counts; noise that holds one, or the beginning of it, is none.
    let begins_early = holds(&wire[..wire.len() - 1], &acknowledged);
    for (kind, payload) in &sent {
        wire.extend(encode(nonce.tag(), *kind, payload).expect("a short payload"));
        // An agent repeats it for every hello that it hears.
        wire.extend(&acknowledged);
    }
    if begins_early {
        return;
    }
    let (seen, is_at_fault) = gateway_takes(nonce, &wire, cuts);
    let expected = sent.iter().map(|(kind, payload)| (*kind, payload.to_vec()));
    assert_eq!((seen, is_at_fault), (expected.collect(), false));
}

fn anything(bytes: &mut Bytes<'_>, cuts: &[u8]) {
    let (magic, nonce) = (Magic::new(bytes.array()), Nonce(bytes.array()));
    let begun = bytes.byte() < 128;
    let rest = bytes.rest();
    let mut to_agent = Vec::new();
    let mut from_agent = Vec::new();
    if begun {
        to_agent.extend(hello(&magic, &nonce));
        from_agent.extend(encode(nonce.tag(), Kind::Ack, &nonce.0).expect("a short payload"));
    }
    to_agent.extend(rest);
    from_agent.extend(rest);
    agent_takes(magic, &to_agent, cuts);
    // Where nothing but the end of a record is looked for, cuts change nothing.
    let (cut, whole) = (
        gateway_takes(nonce, &from_agent, cuts),
        gateway_takes(nonce, &from_agent, &[]),
    );
    assert_eq!(cut, whole, "cut and whole");
}

fuzz_target!(|data: &[u8]| {
    let mut bytes = Bytes::new(data);
    let way = bytes.byte();
    let cuts = bytes.few();
    match way % 3 {
        0 => to_an_agent(&mut bytes, cuts),
        1 => from_an_agent(&mut bytes, cuts),
        _ => anything(&mut bytes, cuts),
    }
});
