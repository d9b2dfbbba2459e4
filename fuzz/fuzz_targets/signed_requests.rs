//! Signed requests: headers have one spelling, and no two different requests have one form.

#![no_main]

use glovebox_fuzz::Bytes;
use glovebox_protocol::ids::InstallationId;
use glovebox_protocol::sign::{
    BodyDigest, Envelope, Epoch, KeyId, Nonce, Signature, SignedHeaders,
};
use libfuzzer_sys::fuzz_target;

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Headers that are taken are those that would be sent, byte for byte.
fn headers<S: Signature>(bytes: &mut Bytes<'_>) {
    let names: Vec<_> = S::NAMES
        .into_iter()
        .chain(["x-glovebox-content-sha256"])
        .collect();
    let mut given: Vec<(&str, Vec<u8>)> = Vec::new();
    for (index, name) in names.iter().enumerate() {
        // A right one to begin with, or nothing would ever be taken.
        let right = match (index, *name) {
            (0, _) => hexadecimal(&bytes.array::<8>()),
            (2, _) => u32::from_be_bytes(bytes.array()).to_string(),
            (4, _) => hexadecimal(&bytes.array::<64>()[..size_of::<S>()]),
            (5, _) => hexadecimal(&bytes.array::<32>()),
            _ => hexadecimal(&bytes.array::<16>()),
        };
        given.push((name, right.into_bytes()));
    }
    while !bytes.is_empty() {
        let place = usize::from(bytes.byte()) % given.len();
        match bytes.byte() % 4 {
            0 => {
                given.remove(place);
            }
            1 => given.push((given[place].0, bytes.few().to_vec())),
            2 => given[place].1 = bytes.few().to_vec(),
            _ => {
                let value = &mut given[place].1;
                let at = usize::from(bytes.byte()) % (value.len() + 1);
                value.insert(at, bytes.byte());
            }
        }
        if given.is_empty() {
            break;
        }
    }
    let values = |name: &'static str| {
        let all = given.iter();
        all.filter(move |(given, _)| *given == name)
            .map(|(_, value)| value.as_slice())
    };
    let Ok(taken) = SignedHeaders::<S>::parse(values) else {
        return;
    };
    assert_eq!(
        given.len(),
        names.len(),
        "one stands there twice or not at all"
    );
    for (name, value) in taken.to_pairs() {
        assert_eq!(values(name).next(), Some(value.as_bytes()), "{name}");
    }
}

/// What an envelope is made of.
#[derive(Clone, PartialEq, Eq)]
struct Fields {
    installation: InstallationId,
    epoch: [u8; 16],
    nonce: [u8; 16],
    key: [u8; 8],
    body: [u8; 32],
    numbers: (u64, i64),
    words: [String; 3],
}

impl Fields {
    fn take(bytes: &mut Bytes<'_>) -> Self {
        let digits = hexadecimal(&bytes.array::<16>());
        let id = [
            &digits[..8],
            &digits[8..12],
            &digits[12..16],
            &digits[16..20],
            &digits[20..],
        ];
        let mut word = || String::from_utf8_lossy(bytes.few()).into_owned();
        let words = [word(), word(), word()];
        Self {
            installation: id.join("-").parse().unwrap_or_default(),
            epoch: bytes.array(),
            nonce: bytes.array(),
            key: bytes.array(),
            body: bytes.array(),
            numbers: (
                u64::from_be_bytes(bytes.array()),
                i64::from_be_bytes(bytes.array()),
            ),
            words,
        }
    }

    /// Another one that differs in a place where fields meet, if at all.
    fn near(&self, bytes: &mut Bytes<'_>) -> Self {
        let mut near = self.clone();
        match bytes.byte() % 6 {
            0 => return Self::take(bytes),
            1 => {
                // A character that changes sides.
                let from = usize::from(bytes.byte()) % 3;
                if let Some(last) = near.words[from].pop() {
                    near.words[(from + 1) % 3].insert(0, last);
                }
            }
            2 => near.words.rotate_left(1),
            3 => std::mem::swap(&mut near.epoch, &mut near.nonce),
            4 => near.numbers.0 ^= 1 << (bytes.byte() % 64),
            _ => near.body[usize::from(bytes.byte() % 32)] ^= 1,
        }
        near
    }

    fn forms(&self) -> [Vec<u8>; 2] {
        let token = |bytes: &[u8; 16]| hexadecimal(bytes);
        let envelope = Envelope {
            installation: self.installation,
            audience: &self.words[0],
            epoch: token(&self.epoch).parse::<Epoch>().expect("16 bytes"),
            method: &self.words[1],
            path_and_query: &self.words[2],
            content_length: self.numbers.0,
            body: BodyDigest::from_bytes(self.body),
            unix_ms: self.numbers.1,
            nonce: token(&self.nonce).parse::<Nonce>().expect("16 bytes"),
            key: hexadecimal(&self.key).parse::<KeyId>().expect("8 bytes"),
        };
        [envelope.canonical(), envelope.canonical_for_gateway()]
    }
}

fn forms(bytes: &mut Bytes<'_>) {
    let one = Fields::take(bytes);
    let other = one.near(bytes);
    let [for_agent, for_gateway] = one.forms();
    assert_ne!(for_agent, for_gateway);
    let others = other.forms();
    assert_eq!(
        one == other,
        others == [for_agent.clone(), for_gateway.clone()]
    );
    if one != other {
        for form in others {
            assert!(form != for_agent && form != for_gateway);
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let mut bytes = Bytes::new(data);
    match bytes.byte() % 3 {
        0 => headers::<[u8; 64]>(&mut bytes),
        1 => headers::<[u8; 32]>(&mut bytes),
        _ => forms(&mut bytes),
    }
});
