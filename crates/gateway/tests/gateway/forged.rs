//! Requests that nobody with a credential has made.

use glovebox_protocol::sign::{Credential, Credentials, Nonce};
use hyper::StatusCode;

use crate::rig::Rig;
use crate::wire::{Answer, Pairs};

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap()
    }
}

/// Another digit in the place of one of them.
fn change_digit(text: &mut String, dice: &mut Dice) {
    let place = dice.roll(text.len());
    let old = text.as_bytes()[place];
    let digits = b"0123456789abcdef";
    let new = loop {
        let new = digits[dice.roll(16)];
        if new != old {
            break new;
        }
    };
    text.replace_range(place..=place, std::str::from_utf8(&[new]).unwrap());
}

/// Changes a request that is rightly signed in one way.
fn forge(
    dice: &mut Dice,
    pairs: &mut Pairs,
    (method, target, body): (&mut String, &mut String, &mut Vec<u8>),
) {
    match dice.roll(12) {
        0 => *method = ["POST", "PUT", "DELETE", "PATCH"][dice.roll(4)].into(),
        1 => target.push(['?', '/', '0', '%'][dice.roll(4)]),
        2 => body.push(b' '),
        3 => {
            let place = dice.roll(body.len());
            body[place] ^= 1 << dice.roll(7);
        }
        4 => {
            let place = dice.roll(pairs.len());
            pairs.remove(place);
        }
        5 => {
            let place = dice.roll(pairs.len());
            let (name, mut value) = pairs[place].clone();
            change_digit(&mut value, dice);
            pairs.push((name, value));
        }
        6 => {
            let place = dice.roll(pairs.len());
            let value = pairs[place].1.to_uppercase();
            if value == pairs[place].1 {
                pairs[place].1.push('0');
            } else {
                pairs[place].1 = value;
            }
        }
        7 => {
            let place = dice.roll(pairs.len());
            pairs[place].1 = ["", "0", "-1", "\u{a0}", "null"][dice.roll(5)].into();
        }
        _ => {
            let place = dice.roll(pairs.len());
            change_digit(&mut pairs[place].1, dice);
        }
    }
}

fn is_refused(answer: &Answer) -> bool {
    matches!(
        answer.status,
        StatusCode::UNAUTHORIZED | StatusCode::BAD_REQUEST
    )
}

#[tokio::test]
async fn no_forged_request_is_obeyed() {
    let rig = Rig::start().await;
    let mut wire = rig.wire().await;
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut number = 0;
    while number < glovebox_testkit::count(50_000, 1_000_000) {
        let asked = rig.create_request();
        let mut body = serde_json::to_vec(&asked).unwrap();
        let (mut method, mut target) = ("POST".to_owned(), "/v1/sandboxes".to_owned());
        let mut pairs = rig.outer(&method, &target, &body);
        let signed = (method.clone(), target.clone(), body.clone(), pairs.clone());
        forge(&mut dice, &mut pairs, (&mut method, &mut target, &mut body));
        // A method that was rolled may be the one that was signed.
        if signed == (method.clone(), target.clone(), body.clone(), pairs.clone()) {
            continue;
        }
        number += 1;
        match wire.send(&method, &target, &pairs, &body).await {
            Ok(answer) => assert!(
                is_refused(&answer),
                "{number}: {method} {target} {pairs:?}: {}",
                answer.status
            ),
            // Refused, and the connection closed behind it.
            Err(_) => wire = rig.wire().await,
        }
        if !wire.is_open() {
            wire = rig.wire().await;
        }
    }
    assert!(rig.runtime.list().await.unwrap().is_empty());
    // The control: the same requests without a change are obeyed.
    rig.make(&mut wire).await;
}

#[tokio::test]
async fn a_request_is_obeyed_once() {
    let rig = Rig::start().await;
    let mut wire = rig.wire().await;
    let pairs = rig.outer("GET", "/v1/info", b"");
    let first = wire.send("GET", "/v1/info", &pairs, b"").await.unwrap();
    assert_eq!(first.status, StatusCode::OK);
    let mut other = rig.wire().await;
    let again = other.send("GET", "/v1/info", &pairs, b"").await.unwrap();
    assert_eq!(
        (again.status, &*again.code()),
        (StatusCode::UNAUTHORIZED, "replayed")
    );
}

#[tokio::test]
async fn a_request_for_another_life_or_another_gateway_is_refused() {
    let rig = Rig::start().await;
    let other = Rig::over(crate::rig::fake(), |rules| {
        rules.installation = rig.rules.installation;
    })
    .await;
    other
        .gateway
        .set_credentials(Credentials(vec![rig.credential.clone()]));
    let pairs = rig.outer("GET", "/v1/info", b"");
    let mut wire = other.wire().await;
    let refused = wire.send("GET", "/v1/info", &pairs, b"").await.unwrap();
    assert_eq!(refused.code(), "auth_rejected");
    let mut wire = rig.wire().await;
    let taken = wire.send("GET", "/v1/info", &pairs, b"").await.unwrap();
    assert_eq!(taken.status, StatusCode::OK);
}

#[tokio::test]
async fn clocks_may_differ_by_a_minute_and_a_sender_is_warned_before() {
    let rig = Rig::start().await;
    let mut wire = rig.wire().await;
    for (ahead_ms, status, is_warned) in [
        (0, StatusCode::OK, false),
        (25_000, StatusCode::OK, false),
        (-25_000, StatusCode::OK, false),
        (45_000, StatusCode::OK, true),
        (-45_000, StatusCode::OK, true),
        (90_000, StatusCode::UNAUTHORIZED, false),
        (-90_000, StatusCode::UNAUTHORIZED, false),
    ] {
        rig.ahead_ms
            .store(ahead_ms, std::sync::atomic::Ordering::Relaxed);
        let answer = rig.get(&mut wire, "/v1/info").await;
        assert_eq!(answer.status, status, "{ahead_ms}");
        let warning = answer.header("x-glovebox-clock-off-ms");
        assert_eq!(warning.is_some(), is_warned, "{ahead_ms}");
        if status == StatusCode::UNAUTHORIZED {
            let error = answer.error();
            assert_eq!(answer.code(), "clock_skew");
            let off_ms = error.details["off_ms"].as_i64().unwrap();
            assert!((off_ms + ahead_ms).abs() < 20_000, "{off_ms}");
        }
    }
}

#[tokio::test]
async fn another_installation_and_another_protocol_are_told_by_name() {
    let rig = Rig::start().await;
    let mut wire = rig.wire().await;
    let mut ask = async |name: &'static str, value: String| {
        let mut pairs = rig.outer("GET", "/v1/info", b"");
        pairs.push((name, value));
        wire.send("GET", "/v1/info", &pairs, b"").await.unwrap()
    };
    let own = rig.rules.installation.to_string();
    let right = ask("x-glovebox-installation", own).await;
    assert_eq!(right.status, StatusCode::OK);
    let right = ask("x-glovebox-protocol", "1".into()).await;
    assert_eq!(right.status, StatusCode::OK);
    for (name, value) in [
        (
            "x-glovebox-installation",
            rig.rules.installation.to_string(),
        ),
        ("x-glovebox-protocol", "1".into()),
    ] {
        let mut pairs = rig.outer("GET", "/v1/info", b"");
        pairs.extend([(name, value.clone()), (name, value)]);
        let twice = rig.wire().await.send("GET", "/v1/info", &pairs, b"").await;
        let twice = twice.unwrap();
        assert_eq!(
            (twice.status, &*twice.code()),
            (StatusCode::BAD_REQUEST, "invalid"),
            "{name}"
        );
    }
    let other = glovebox_protocol::ids::InstallationId::new().to_string();
    let wrong = ask("x-glovebox-installation", other).await;
    assert_eq!(
        (wrong.status, &*wrong.code()),
        (StatusCode::UNAUTHORIZED, "wrong_installation")
    );
    assert!(
        wrong
            .error()
            .message
            .contains("belongs to a different installation")
    );
    let wrong = ask("x-glovebox-protocol", "7".into()).await;
    assert_eq!(
        (wrong.status, &*wrong.code()),
        (StatusCode::BAD_REQUEST, "protocol_mismatch")
    );
    let message = wrong.error().message;
    assert_eq!(
        message,
        "the gateway speaks protocol 1; this server speaks 7"
    );
}

#[tokio::test]
async fn two_credentials_are_accepted_during_a_rotation_and_then_one() {
    let mut rig = Rig::start().await;
    let mut wire = rig.wire().await;
    let old = rig.credential.clone();
    let (new, _) = Credential::generate().unwrap();
    let both = Credentials(vec![new.clone(), old.clone()]);
    rig.gateway.set_credentials(both);
    for (credential, warns) in [
        (&old, "still uses the old"),
        (&new, "old credential is still"),
    ] {
        rig.credential = credential.clone();
        let preflight = rig.get(&mut wire, "/v1/preflight").await;
        let text = String::from_utf8_lossy(&preflight.body);
        assert!(text.contains(warns), "{text}");
    }
    // What was seen with the old one stays seen.
    let pairs = rig.outer("GET", "/v1/info", b"");
    wire.send("GET", "/v1/info", &pairs, b"").await.unwrap();
    rig.gateway.set_credentials(Credentials(vec![new.clone()]));
    let again = wire.send("GET", "/v1/info", &pairs, b"").await.unwrap();
    assert_eq!(again.code(), "replayed");
    rig.credential = old;
    assert_eq!(rig.get(&mut wire, "/v1/info").await.code(), "auth_rejected");
    rig.credential = new;
    assert_eq!(rig.get(&mut wire, "/v1/info").await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_body_that_is_not_the_signed_one_has_no_effect() {
    let rig = Rig::start().await;
    let mut wire = rig.wire().await;
    let asked = serde_json::to_vec(&rig.create_request()).unwrap();
    let other = serde_json::to_vec(&rig.create_request()).unwrap();
    assert_eq!(asked.len(), other.len());
    let pairs = rig.outer("POST", "/v1/sandboxes", &asked);
    let refused = wire
        .send("POST", "/v1/sandboxes", &pairs, &other)
        .await
        .unwrap();
    assert_eq!(
        (refused.status, &*refused.code()),
        (StatusCode::UNAUTHORIZED, "body_mismatch")
    );
    let mut pairs = rig.outer("GET", "/v1/info", b"");
    pairs.retain(|(name, _)| *name != "x-glovebox-gateway-nonce");
    pairs.push((
        "x-glovebox-gateway-nonce",
        Nonce::random().unwrap().to_string(),
    ));
    let refused = wire.send("GET", "/v1/info", &pairs, b"").await.unwrap();
    assert_eq!(refused.code(), "auth_rejected");
    assert!(rig.runtime.list().await.unwrap().is_empty());
}
