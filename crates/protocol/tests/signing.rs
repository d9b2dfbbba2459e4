//! What a signature promises, tried from outside.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::time::{Duration, Instant};

use glovebox_protocol::ids::InstallationId;
use glovebox_protocol::sign::{
    BodyDigest, Credential, Credentials, Envelope, Epoch, HeaderFault, Nonce, Now, Refusal,
    SignedHeaders, SigningKey, Verifier, WINDOW_MS, names,
};
use proptest::prelude::*;

const NOW: i64 = 1_800_000_000_000;

/// A receiver that has just been started, at a time of its clock.
fn at(unix_ms: i64) -> Now {
    Now {
        unix_ms,
        steady: Instant::now(),
    }
}
const PATH: &str = "/v1/files/a.csv?x=1";

struct Sender {
    installation: InstallationId,
    key: SigningKey,
    epoch: Epoch,
}

impl Sender {
    fn new() -> Self {
        Self {
            installation: InstallationId::new(),
            key: SigningKey::generate().unwrap(),
            epoch: Epoch::random().unwrap(),
        }
    }

    fn receiver(&self, audience: &str) -> Verifier {
        Verifier::new(
            self.installation,
            audience.into(),
            self.epoch,
            vec![self.key.public()],
        )
    }

    fn sign(
        &self,
        audience: &str,
        method: &str,
        path: &str,
        body: &[u8],
        at: i64,
    ) -> SignedHeaders {
        let envelope = Envelope {
            installation: self.installation,
            audience,
            epoch: self.epoch,
            method,
            path_and_query: path,
            content_length: body.len() as u64,
            body: BodyDigest::of(body),
            unix_ms: at,
            nonce: Nonce::random().unwrap(),
            key: self.key.id(),
        };
        SignedHeaders {
            key: envelope.key,
            epoch: envelope.epoch,
            unix_ms: at,
            nonce: envelope.nonce,
            body: envelope.body,
            signature: self.key.sign(&envelope),
        }
    }
}

#[test]
fn a_request_is_good_once() {
    let sender = Sender::new();
    let mut receiver = sender.receiver("box");
    let headers = sender.sign("box", "PUT", PATH, b"body", NOW);
    assert!(receiver.verify("PUT", PATH, 4, &headers, at(NOW)).is_ok());
    assert_eq!(
        receiver.verify("PUT", PATH, 4, &headers, at(NOW)),
        Err(Refusal::Replayed)
    );
}

#[test]
fn every_signed_part_is_bound() {
    let sender = Sender::new();
    let headers = sender.sign("box", "PUT", PATH, b"body", NOW);
    let refused =
        |audience: &str, method: &str, path: &str, length: u64, headers: &SignedHeaders| {
            sender
                .receiver(audience)
                .verify(method, path, length, headers, at(NOW))
        };
    for (audience, method, path, length) in [
        ("another box", "PUT", PATH, 4),
        ("box", "GET", PATH, 4),
        ("box", "put", PATH, 4),
        ("box", "PUT", "/v1/files/a.csv?x=2", 4),
        ("box", "PUT", "/v1/files/a.csv", 4),
        ("box", "PUT", "/v1//files/a.csv?x=1", 4),
        ("box", "PUT", "/v1/files/%61.csv?x=1", 4),
        ("box", "PUT", PATH, 5),
    ] {
        assert_eq!(
            refused(audience, method, path, length, &headers),
            Err(Refusal::Rejected),
            "{audience} {method} {path} {length}"
        );
    }
    for change in [
        |h: &mut SignedHeaders| h.body = BodyDigest::of(b"bodx"),
        |h: &mut SignedHeaders| h.unix_ms += 1,
        |h: &mut SignedHeaders| h.nonce = Nonce::random().unwrap(),
        |h: &mut SignedHeaders| h.epoch = Epoch::random().unwrap(),
        |h: &mut SignedHeaders| h.key = SigningKey::generate().unwrap().id(),
        |h: &mut SignedHeaders| h.signature[0] ^= 1,
    ] {
        let mut changed = headers;
        change(&mut changed);
        assert_eq!(
            refused("box", "PUT", PATH, 4, &changed),
            Err(Refusal::Rejected)
        );
    }
}

#[test]
fn another_installations_request_is_refused() {
    let sender = Sender::new();
    let headers = sender.sign("box", "GET", "/v1/list", b"", NOW);
    let mut receiver = Verifier::new(
        InstallationId::new(),
        "box".into(),
        sender.epoch,
        vec![sender.key.public()],
    );
    assert_eq!(
        receiver.verify("GET", "/v1/list", 0, &headers, at(NOW)),
        Err(Refusal::Rejected)
    );
}

#[test]
fn the_window_is_exactly_a_minute_either_way() {
    let sender = Sender::new();
    for (off, accepted) in [
        (0, true),
        (WINDOW_MS - 1_000, true),
        (WINDOW_MS, true),
        (WINDOW_MS + 1, false),
        (-WINDOW_MS, true),
        (-WINDOW_MS - 1, false),
        (NOW, false),
        (-NOW, false),
    ] {
        let headers = sender.sign("box", "GET", "/v1/list", b"", NOW + off);
        let verdict = sender
            .receiver("box")
            .verify("GET", "/v1/list", 0, &headers, at(NOW));
        assert_eq!(verdict.is_ok(), accepted, "{off} ms off: {verdict:?}");
        if !accepted {
            assert_eq!(verdict, Err(Refusal::ClockSkew { off_ms: off }));
        }
    }
}

/// A receiver's clocks some milliseconds after `began`: the one that can be set, which says what
/// somebody has set it to, and the other.
fn after(began: Instant, set_ms: i64, steady_ms: i64) -> Now {
    Now {
        unix_ms: NOW + set_ms,
        steady: began + Duration::from_millis(steady_ms.unsigned_abs()),
    }
}

#[test]
fn a_nonce_is_remembered_for_as_long_as_its_request_is_valid() {
    let sender = Sender::new();
    let mut receiver = sender.receiver("box");
    let began = Instant::now();
    let early = sender.sign("box", "GET", "/v1/list", b"", NOW + WINDOW_MS);
    let now = after(began, 0, 0);
    assert!(receiver.verify("GET", "/v1/list", 0, &early, now).is_ok());
    for later in [0, WINDOW_MS, 2 * WINDOW_MS] {
        // A stream of other requests makes the receiver forget what it may forget.
        let other = sender.sign("box", "GET", "/v1/list", b"", NOW + later);
        let now = after(began, later, later);
        assert!(receiver.verify("GET", "/v1/list", 0, &other, now).is_ok());
        assert_eq!(
            receiver.verify("GET", "/v1/list", 0, &early, now),
            Err(Refusal::Replayed),
            "{later} ms later"
        );
    }
}

#[test]
fn a_nonce_is_remembered_though_a_clock_is_set() {
    for leap_ms in [3_600_000, -3_600_000] {
        let sender = Sender::new();
        let mut receiver = sender.receiver("box");
        let began = Instant::now();
        let first = sender.sign("box", "GET", "/v1/list", b"", NOW);
        let now = after(began, 0, 0);
        assert!(receiver.verify("GET", "/v1/list", 0, &first, now).is_ok());
        // Requests of whoever goes by the same clock make the receiver forget what it may forget:
        // a moment after a leap forwards, and an hour after one back.
        let later = if leap_ms > 0 { 1_000 } else { -leap_ms };
        for (set_ms, steady_ms) in [(leap_ms, 1_000), (leap_ms + later, later)] {
            let other = sender.sign("box", "GET", "/v1/list", b"", NOW + set_ms);
            let now = after(began, set_ms, steady_ms);
            assert!(receiver.verify("GET", "/v1/list", 0, &other, now).is_ok());
        }
        assert_eq!(
            receiver.verify("GET", "/v1/list", 0, &first, after(began, 0, later)),
            Err(Refusal::Replayed),
            "{leap_ms} ms"
        );
    }
}

#[test]
fn both_keys_of_a_rotation_are_obeyed() {
    let old = Sender::new();
    let new = Sender {
        installation: old.installation,
        key: SigningKey::generate().unwrap(),
        epoch: old.epoch,
    };
    let mut receiver = Verifier::new(
        old.installation,
        "box".into(),
        old.epoch,
        vec![new.key.public(), old.key.public()],
    );
    for sender in [&old, &new] {
        let headers = sender.sign("box", "GET", "/v1/list", b"", NOW);
        assert!(
            receiver
                .verify("GET", "/v1/list", 0, &headers, at(NOW))
                .is_ok()
        );
    }
}

fn parse(pairs: &[(&'static str, String)]) -> Result<SignedHeaders, HeaderFault> {
    SignedHeaders::parse(|name| {
        pairs
            .iter()
            .filter(move |(key, _)| *key == name)
            .map(|(_, value)| value.as_bytes())
    })
}

#[test]
fn headers_have_one_spelling_each() {
    let sender = Sender::new();
    let headers = sender.sign("box", "GET", "/v1/list", b"", NOW);
    let good = headers.to_pairs();
    assert!(parse(&good).is_ok());

    for absent in names::ALL {
        let pairs: Vec<_> = good.iter().filter(|(k, _)| *k != absent).cloned().collect();
        assert_eq!(parse(&pairs).unwrap_err(), HeaderFault::Missing(absent));
        let mut doubled = good.to_vec();
        let again = good.iter().find(|(k, _)| *k == absent).unwrap().clone();
        doubled.push(again);
        assert_eq!(parse(&doubled).unwrap_err(), HeaderFault::Doubled(absent));
    }

    let time = NOW.to_string();
    for (name, bad) in [
        (names::TIME, format!("+{time}")),
        (names::TIME, format!("0{time}")),
        (names::TIME, format!("{time}.0")),
        (names::TIME, format!("-{time}")),
        (names::TIME, format!(" {time}")),
        (names::TIME, "99999999999999999999".into()),
        (names::TIME, String::new()),
        (names::NONCE, "00".into()),
        (
            names::CONTENT_SHA256,
            headers.body.to_string().to_uppercase(),
        ),
        (names::SIGNATURE, "zz".repeat(64)),
        (names::KEY, String::new()),
        (names::EPOCH, "é".repeat(16)),
    ] {
        let pairs: Vec<_> = good
            .iter()
            .map(|(k, v)| (*k, if *k == name { bad.clone() } else { v.clone() }))
            .collect();
        assert_eq!(
            parse(&pairs).unwrap_err(),
            HeaderFault::Malformed(name),
            "{name}: {bad}"
        );
    }
}

fn fields() -> impl Strategy<Value = (String, String, String, u64, i64, u8)> {
    (
        "[a-c/]{0,6}",
        "[A-C/]{0,6}",
        "[a-c/?A-C]{0,8}",
        0u64..4,
        0i64..4,
        0u8..3,
    )
}

proptest! {
    /// Length prefixes keep neighbouring fields apart, whatever is moved from one to the next.
    #[test]
    fn no_two_different_requests_share_a_form(left in fields(), right in fields()) {
        let sender = Sender::new();
        let nonce = Nonce::random().unwrap();
        let form = |f: &(String, String, String, u64, i64, u8)| Envelope {
            installation: sender.installation,
            audience: &f.0,
            epoch: sender.epoch,
            method: &f.1,
            path_and_query: &f.2,
            content_length: f.3,
            body: BodyDigest::from_bytes([f.5; 32]),
            unix_ms: f.4,
            nonce,
            key: sender.key.id(),
        }.canonical();
        prop_assert_eq!(left == right, form(&left) == form(&right));
    }
}

/// Forged requests are refused whatever they are made of, and leave nothing in memory: a genuine
/// request with a nonce that a forger used is still good.
#[test]
fn forged_requests_have_no_effect() {
    let sender = Sender::new();
    let mut receiver = sender.receiver("box");
    let genuine = sender.sign("box", "GET", "/v1/list", b"", NOW);
    let forger = Sender::new();
    let mut forged = genuine;
    for _ in 0..1_000 {
        forged.signature = forger.sign("box", "GET", "/v1/list", b"", NOW).signature;
        assert_eq!(
            receiver.verify("GET", "/v1/list", 0, &forged, at(NOW)),
            Err(Refusal::Rejected)
        );
    }
    assert!(
        receiver
            .verify("GET", "/v1/list", 0, &genuine, at(NOW))
            .is_ok()
    );
}

#[test]
fn a_signing_key_does_not_show_itself() {
    let seed = [7; 32];
    let key = SigningKey::from_seed(&seed).unwrap();
    let shown = format!("{key:?}");
    assert_eq!(shown, format!("SigningKey({})", key.id()));
}

fn envelope<'a>(sender: &Sender, key: glovebox_protocol::sign::KeyId) -> Envelope<'a> {
    Envelope {
        installation: sender.installation,
        audience: "gateway",
        epoch: sender.epoch,
        method: "GET",
        path_and_query: PATH,
        content_length: 0,
        body: BodyDigest::of(b""),
        unix_ms: NOW,
        nonce: Nonce::random().unwrap(),
        key,
    }
}

#[test]
fn a_gateway_believes_both_credentials_of_a_rotation_and_no_other() {
    let sender = Sender::new();
    let (new, text) = Credential::generate().unwrap();
    let (old, _) = Credential::generate().unwrap();
    let (other, _) = Credential::generate().unwrap();
    assert_eq!(text.parse::<Credential>().unwrap().id(), new.id());
    let mut verifier = Verifier::new(
        sender.installation,
        "gateway".into(),
        sender.epoch,
        Credentials(vec![new.clone(), old.clone()]),
    );
    let mut verify = |credential: &Credential, alter: &dyn Fn(&mut SignedHeaders<[u8; 32]>)| {
        let envelope = envelope(&sender, credential.id());
        let mut headers = SignedHeaders {
            key: envelope.key,
            epoch: envelope.epoch,
            unix_ms: envelope.unix_ms,
            nonce: envelope.nonce,
            body: envelope.body,
            signature: credential.sign(&envelope),
        };
        alter(&mut headers);
        verifier.verify("GET", PATH, 0, &headers, at(NOW))
    };
    assert!(verify(&new, &|_| {}).is_ok());
    assert!(verify(&old, &|_| {}).is_ok());
    assert_eq!(verify(&other, &|_| {}), Err(Refusal::Rejected));
    let as_another = |headers: &mut SignedHeaders<[u8; 32]>| headers.key = new.id();
    assert_eq!(verify(&other, &as_another), Err(Refusal::Rejected));
    let altered = |headers: &mut SignedHeaders<[u8; 32]>| headers.signature[0] ^= 1;
    assert_eq!(verify(&new, &altered), Err(Refusal::Rejected));
}

#[test]
fn what_is_signed_for_a_gateway_and_for_an_agent_has_two_forms() {
    let sender = Sender::new();
    let envelope = envelope(&sender, sender.key.id());
    assert_ne!(envelope.canonical(), envelope.canonical_for_gateway());
}

#[test]
fn a_credential_is_not_shown_and_has_one_spelling() {
    let (credential, text) = Credential::generate().unwrap();
    assert!(!format!("{credential:?}").contains(&text[4..20]));
    for slip in [
        text.to_uppercase(),
        text[4..].to_owned(),
        format!("{text} "),
        text.replace("gbg_", "gbg-"),
    ] {
        assert!(slip.parse::<Credential>().is_err(), "{slip}");
    }
}

#[test]
fn a_signing_key_is_read_as_it_was_written() {
    let (key, text) = SigningKey::generate_written().unwrap();
    assert_eq!(text.parse::<SigningKey>().unwrap().public(), key.public());
    assert!(!format!("{key:?}").contains(&text[4..20]));
    assert!(text[4..].parse::<SigningKey>().is_err());
}

/// That the list is right shows in what it lists: with each of them on one side of the equation,
/// some message of a few has a signature that nobody made.
#[test]
fn a_key_for_which_anybody_can_sign_is_known_as_one() {
    let sender = Sender::new();
    assert!(!sender.key.public().is_weak());
    let identity = {
        let mut signature = [0; 64];
        signature[0] = 1;
        signature
    };
    for weak in [
        "0100000000000000000000000000000000000000000000000000000000000000",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    ] {
        let key: glovebox_protocol::sign::PublicKey = weak.parse().unwrap();
        assert!(key.is_weak(), "{weak}");
        let is_forged = (0..200).any(|_| key.has_signed(&envelope(&sender, key.id()), &identity));
        assert!(is_forged, "{weak} is no weak key");
    }
}
