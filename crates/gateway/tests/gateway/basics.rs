//! The routes that are the gateway's own.

use glovebox_protocol::agent_config::Start;
use glovebox_protocol::gateway::{
    CreateSandbox, Info, KeepReady, KeptKind, KeptReady, SandboxList, SandboxState, SandboxView,
};
use glovebox_protocol::ids::{InstallationId, SandboxId};
use hyper::StatusCode;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::rig::{Rig, now_ms};

#[tokio::test]
async fn health_is_told_without_a_credential_and_nothing_else_is() {
    let rig = Rig::start().await;
    let mut wire = rig.wire().await;
    let healthy = wire.send("GET", "/healthz", &[], b"").await.unwrap();
    assert_eq!(&healthy.body[..], br#"{"status":"ok"}"#);
    for (method, target) in [
        ("GET", "/v1/info"),
        ("POST", "/healthz"),
        ("GET", "/healthz?x"),
        ("GET", "/"),
        ("GET", "/v1/preflight"),
        ("POST", "/v1/canary"),
        ("PUT", "/v1/ready"),
        ("GET", "/v1/sandboxes"),
        ("POST", "/v1/sandboxes"),
        ("DELETE", &format!("/v1/sandboxes/{}", SandboxId::new())),
        (
            "GET",
            &format!("/v1/sandboxes/{}/agent/v1/health", SandboxId::new()),
        ),
    ] {
        let refused = wire.send(method, target, &[], b"").await.unwrap();
        assert_eq!(
            refused.status,
            StatusCode::UNAUTHORIZED,
            "{method} {target}"
        );
        assert_eq!(refused.code(), "auth_missing");
        let gateway = rig.rules.gateway.to_string();
        assert_eq!(refused.header("x-glovebox-gateway"), Some(&*gateway));
        let epoch = rig.gateway.epoch().to_string();
        assert_eq!(refused.header("x-glovebox-gateway-epoch"), Some(&*epoch));
    }
}

#[tokio::test]
async fn a_gateway_says_what_it_is_to_those_who_hold_a_credential() {
    let rig = Rig::start().await;
    let mut wire = rig.wire().await;
    let info: Info = rig.get(&mut wire, "/v1/info").await.document();
    assert_eq!(info.protocol, glovebox_protocol::PROTOCOL_VERSION);
    assert_eq!(info.gateway, rig.rules.gateway);
    assert_eq!(info.installation, rig.rules.installation);
    assert_eq!(info.runtime, "fake");
    assert_eq!(info.agent_keys, [rig.key.id()]);
    assert_eq!(info.credentials.len(), 1);
    assert!(info.credentials[0].is_yours);
    assert_eq!(info.budget.sandboxes, 0);
}

#[tokio::test]
async fn a_sandbox_is_made_shown_listed_and_ended() {
    let rig = Rig::start().await;
    let mut wire = rig.wire().await;
    let asked = rig.create_request();
    let made: SandboxView = rig.create(&mut wire, &asked).await.document();
    assert_eq!(made.id, asked.id);
    assert_eq!(made.state, SandboxState::Running);
    assert_eq!(made.hard_deadline_ms, Some(asked.hard_deadline_ms));
    assert!(made.agent_epoch.is_some());

    let target = format!("/v1/sandboxes/{}", asked.id);
    let shown: SandboxView = rig.get(&mut wire, &target).await.document();
    assert_eq!(shown, made);
    let list: SandboxList = rig.get(&mut wire, "/v1/sandboxes").await.document();
    assert_eq!(list.items, [made]);

    for _ in 0..2 {
        let ended: SandboxView = rig.ask(&mut wire, "DELETE", &target, b"").await.document();
        let SandboxState::Ended { reason, at_ms } = ended.state else {
            panic!("{ended:?}");
        };
        assert_eq!(reason, "it was deleted");
        assert!((now_ms() - at_ms).abs() < 60_000);
    }
    assert!(rig.runtime.list().await.unwrap().is_empty());
    let gone = rig.create(&mut wire, &asked).await;
    assert_eq!(
        (gone.status, &*gone.code()),
        (StatusCode::GONE, "sandbox_gone")
    );
    assert_eq!(gone.error().details["reason"], "it was deleted");

    let target = format!("/v1/sandboxes/{}", SandboxId::new());
    for method in ["GET", "DELETE"] {
        let unknown = rig.ask(&mut wire, method, &target, b"").await;
        assert_eq!(unknown.code(), "not_found");
        assert!(unknown.header("x-glovebox-gateway").is_some());
    }
}

#[tokio::test]
async fn the_same_request_twice_is_one_sandbox_and_another_of_the_same_id_is_refused() {
    let rig = Rig::start().await;
    let (mut one, mut other) = (rig.wire().await, rig.wire().await);
    let asked = rig.create_request();
    let (first, second) =
        tokio::join!(rig.create(&mut one, &asked), rig.create(&mut other, &asked));
    let first: SandboxView = first.document();
    assert_eq!(first, second.document());
    assert_eq!(rig.runtime.list().await.unwrap().len(), 1);
    let mut changed = asked.clone();
    changed.limits.processes += 1;
    let refused = rig.create(&mut one, &changed).await;
    assert_eq!(
        (refused.status, &*refused.code()),
        (StatusCode::CONFLICT, "conflict")
    );
}

#[tokio::test]
async fn a_list_goes_on_after_an_id() {
    let rig = Rig::start().await;
    let mut wire = rig.wire().await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(rig.make(&mut wire).await.0);
    }
    let target = format!("/v1/sandboxes?after={}", ids[0]);
    let list: SandboxList = rig.get(&mut wire, &target).await.document();
    let listed: Vec<_> = list.items.iter().map(|view| view.id).collect();
    assert_eq!(listed, ids[1..]);
    assert_eq!(list.next_cursor, None);
    for query in ["after=x", "before=1", "after", "after=&after="] {
        let refused = rig.get(&mut wire, &format!("/v1/sandboxes?{query}")).await;
        assert_eq!(refused.code(), "invalid", "{query}");
    }
}

#[tokio::test]
async fn what_cannot_be_made_is_refused_by_name_and_nothing_is_made() {
    let rig = Rig::start().await;
    let mut wire = rig.wire().await;
    let asked = rig.create_request();
    let mut other = asked.clone();
    other.installation = InstallationId::new();
    assert_eq!(
        rig.create(&mut wire, &other).await.code(),
        "wrong_installation"
    );
    let mut other = asked.clone();
    other.image = Some("evil".into());
    let refused = rig.create(&mut wire, &other).await;
    assert_eq!(
        (refused.status, &*refused.code()),
        (StatusCode::FORBIDDEN, "image_not_allowed")
    );
    let mut other = asked.clone();
    other.start = glovebox_protocol::agent_config::Start::Template;
    assert_eq!(
        rig.create(&mut wire, &other).await.code(),
        "capability_missing"
    );
    let changes: [fn(&mut CreateSandbox); 7] = [
        |asked| asked.hard_deadline_ms = 1,
        |asked| asked.hard_deadline_ms += 7 * 24 * 3_600_000,
        |asked| asked.start_limit_ms = 0,
        |asked| asked.start_limit_ms = u64::MAX,
        |asked| asked.trust_domain = String::new(),
        |asked| asked.trust_domain = "x".repeat(300),
        |asked| asked.limits.memory_bytes = 1,
    ];
    for change in changes {
        let mut other = asked.clone();
        change(&mut other);
        assert_eq!(
            rig.create(&mut wire, &other).await.code(),
            "invalid",
            "{other:?}"
        );
    }
    let mut text = serde_json::to_value(&asked).unwrap();
    text["mounts"] = serde_json::json!(["/"]);
    let body = serde_json::to_vec(&text).unwrap();
    let refused = rig.ask(&mut wire, "POST", "/v1/sandboxes", &body).await;
    assert_eq!(refused.code(), "invalid");
    assert!(rig.runtime.list().await.unwrap().is_empty());
}

#[tokio::test]
async fn only_the_newest_tls_is_spoken() {
    // The control is every other test here: they all speak version 1.3.
    let rig = Rig::start().await;
    let mut hello = vec![3, 3];
    hello.extend([7; 32]);
    hello.extend([0, 0, 4, 0xc0, 0x2b, 0xc0, 0x2f, 1, 0]);
    // Groups and signatures that the gateway would have; no extension that names version 1.3.
    let extensions = [
        0, 10, 0, 4, 0, 2, 0, 23, 0, 13, 0, 4, 0, 2, 4, 3, 0, 11, 0, 2, 1, 0,
    ];
    hello.extend([0, u8::try_from(extensions.len()).unwrap()]);
    hello.extend(extensions);
    let length = u8::try_from(hello.len()).unwrap();
    let mut record = vec![22, 3, 1, 0, length + 4, 1, 0, 0, length];
    record.extend(hello);
    let mut stream = tokio::net::TcpStream::connect(rig.address).await.unwrap();
    stream.write_all(&record).await.unwrap();
    let mut said = Vec::new();
    stream.read_to_end(&mut said).await.unwrap();
    // A fatal alert, and it is that of the version.
    assert_eq!((said[0], said[5], said[6]), (21, 2, 70), "{said:?}");
}

#[tokio::test]
async fn what_cannot_be_kept_ready_is_refused_with_the_reason() {
    let rig = Rig::start().await;
    let mut wire = rig.wire().await;
    let of = |kinds: Vec<KeptKind>| serde_json::to_vec(&KeepReady { kinds }).unwrap();
    let kind = KeptKind {
        trust_domain: "acme".into(),
        limits: rig.create_request().limits,
        start: Start::Fresh,
        count: 1,
    };
    let nothing = rig
        .ask(&mut wire, "PUT", "/v1/ready", &of(Vec::new()))
        .await;
    assert_eq!(nothing.document::<KeptReady>(), KeptReady { count: 0 });
    let mut small = kind.clone();
    small.limits.memory_bytes = 1;
    let changed = |change: &dyn Fn(&mut KeptKind)| {
        let mut changed = kind.clone();
        change(&mut changed);
        vec![changed]
    };
    for (kinds, code, word) in [
        (vec![kind.clone(), kind.clone()], "invalid", "twice"),
        (changed(&|kind| kind.count = 0), "invalid", "`count`"),
        (
            changed(&|kind| kind.count = u32::MAX),
            "invalid",
            "more than",
        ),
        (
            changed(&|kind| kind.trust_domain.clear()),
            "invalid",
            "`trust_domain`",
        ),
        (vec![small], "invalid", "`memory_bytes`"),
        (
            changed(&|kind| kind.start = Start::Template),
            "capability_missing",
            "template",
        ),
        // This runtime keeps none.
        (vec![kind.clone()], "capability_missing", "kept ready"),
    ] {
        let refused = rig.ask(&mut wire, "PUT", "/v1/ready", &of(kinds)).await;
        assert_eq!(refused.code(), code);
        let said = refused.error().message;
        assert!(said.contains(word), "{said}");
    }
}
