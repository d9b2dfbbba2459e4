//! The client against an endpoint that plays what endpoints do, over real connections.

use std::time::Duration;

use glovebox_testkit::ScriptedModel;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use zeroize::Zeroizing;

use super::*;

const KEY: &str = "sk-planted-0123456789";

fn endpoint(base_url: &str) -> ModelEndpoint {
    ModelEndpoint {
        client: ModelClient::default(),
        base_url: BaseUrl::parse(base_url).unwrap(),
        model: "scripted".into(),
        context_tokens: 8_192,
        connect_timeout: Duration::from_secs(10),
        silence_timeout: Duration::from_secs(30),
        reply_timeout: Duration::from_secs(1_800),
        api_key: Some(Zeroizing::new(KEY.into())),
    }
}

fn messages() -> Vec<ChatMessage> {
    vec![ChatMessage::User { text: "hi".into() }]
}

fn request(messages: &[ChatMessage]) -> ChatRequest<'_> {
    ChatRequest {
        messages,
        tools: &[],
        tool_use: ToolUse::Free,
    }
}

/// Asks an endpoint and reads its whole answer.
async fn ask(endpoint: &ModelEndpoint) -> Result<(String, Said), ModelError> {
    let messages = messages();
    let client = ModelClient::default();
    let mut answer = client.ask(endpoint, &request(&messages)).await?;
    let mut heard = String::new();
    while let Some(text) = answer.next().await? {
        heard.push_str(&text);
    }
    Ok((heard, answer.said()))
}

/// The same of an endpoint that plays one answer always.
async fn play(then: Value) -> Result<(String, Said), ModelError> {
    let model = ScriptedModel::play(json!({ "rules": [{ "then": then }] })).await;
    ask(&endpoint(&model.unwrap().base_url())).await
}

#[tokio::test]
async fn an_answer_is_the_same_in_whatever_form_it_comes() {
    let text = "Grüße, 世界 🙂: two\nlines";
    let calls = json!([
        { "name": "run", "arguments": { "code": "print('ü')" } },
        { "name": "list" }
    ]);
    let all = [
        "id",
        "type",
        "role",
        "finish",
        "usage",
        "done",
        "content_type",
    ];
    let mut forms = vec![
        json!({}),
        json!({ "stream": false }),
        json!({ "stream": false, "omit": ["content_type", "id", "finish"] }),
        json!({ "style": "whole" }),
        json!({ "style": "objects" }),
        json!({ "style": "objects", "stream": false }),
        json!({ "crlf": true, "comments": true, "shred": 3 }),
        json!({ "shred": 1 }),
        json!({ "omit": all }),
        json!({ "omit": ["index"], "style": "whole" }),
        json!({ "omit": ["index"], "piece": 4 }),
    ];
    for form in &mut forms {
        form["text"] = text.into();
        form["calls"] = calls.clone();
        let (heard, said) = play(form.clone()).await.unwrap();
        assert_eq!((heard.as_str(), said.text.as_str()), (text, text), "{form}");
        let called: Vec<_> = said
            .calls
            .iter()
            .map(|call| (call.name.as_str(), call.arguments.as_str()))
            .collect();
        let expected = [("run", "{\"code\":\"print('ü')\"}"), ("list", "{}")];
        assert_eq!(called, expected, "{form}");
        assert!(said.calls.iter().all(|call| !call.id.is_empty()));
        let is_unmarked = form["omit"] == json!(all);
        let expected = if is_unmarked {
            Finish::Unmarked
        } else {
            Finish::Stopped
        };
        assert_eq!(said.finish, expected, "{form}");
    }
    let legacy = json!({ "style": "legacy", "calls": [calls[0]] });
    let (_, said) = play(legacy).await.unwrap();
    assert!(said.calls[0].is_legacy);
    assert_eq!(said.calls[0].arguments, "{\"code\":\"print('ü')\"}");
}

#[tokio::test]
async fn what_is_no_answer_has_a_plain_name() {
    let stream = |body: &str| json!({ "body": body });
    for (then, code, part) in [
        (
            stream("data: {\"choices\": [}\n\n"),
            "model_malformed",
            "no JSON",
        ),
        (
            stream("data: {\"error\": {\"message\": \"overloaded\"}}\n\n"),
            "model_failed",
            "overloaded",
        ),
        (stream(": nothing\n\n"), "model_cut", "cut off"),
        (stream(""), "model_cut", "cut off"),
        (stream("data: [DONE]\n\n"), "ok", ""),
        (
            json!({ "body": "<html>hello</html>", "omit": ["content_type"] }),
            "model_malformed",
            "a web page",
        ),
        (
            json!({ "body": "{\"choices\": [", "stream": false }),
            "model_cut",
            "cut off",
        ),
        (
            json!({ "body": "x".repeat(1024), "repeat": 2048 }),
            "model_malformed",
            "longer than",
        ),
        (
            json!({ "status": 404, "body": "{\"error\":{\"message\":\"no model\"}}" }),
            "model_not_found",
            "knows no model `scripted`",
        ),
        (
            json!({ "status": 400, "body": "{\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"x\"}}" }),
            "model_context",
            "longer than the model can read",
        ),
        (
            json!({ "status": 302, "headers": { "location": "http://169.254.169.254/" } }),
            "model_refused",
            "not followed",
        ),
        (
            json!({ "status": 401, "body": format!("{{\"error\":\"bad {KEY}\"}}") }),
            "model_key",
            "does not accept the API key",
        ),
        (
            json!({ "status": 403, "body": format!("{{\"error\":\"bad {KEY}\"}}") }),
            "model_forbidden",
            "bad …",
        ),
        (
            json!({ "status": 429, "headers": { "retry-after": "999" } }),
            "model_busy",
            "too many requests",
        ),
    ] {
        match play(then.clone()).await {
            Ok(_) => assert_eq!(code, "ok", "{then}"),
            Err(error) => {
                assert_eq!(error.code(), code, "{then}: {error}");
                assert!(error.message().contains(part), "{}", error.message());
                assert!(
                    !format!("{error:?} {}", error.message()).contains(KEY),
                    "{then}"
                );
            }
        }
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_gives_what_came() {
    let model = ScriptedModel::play(json!({ "rules": [
        { "then": { "text": "one two three four five six", "piece": 4, "cut": 400 } }
    ] }))
    .await
    .unwrap();
    let endpoint = endpoint(&model.base_url());
    let messages = messages();
    let client = ModelClient::default();
    let mut answer = client.ask(&endpoint, &request(&messages)).await.unwrap();
    let mut heard = String::new();
    let error = loop {
        match answer.next().await {
            Ok(text) => heard.push_str(&text.expect("it breaks off before its end")),
            Err(error) => break error,
        }
    };
    assert_eq!(error.code(), "model_cut");
    assert!("one two three four five six".starts_with(&heard) && !heard.is_empty());
    assert_eq!(answer.said().text, heard);
    // What was said once is not asked for again.
    assert_eq!(model.questions().len(), 1);
}

#[tokio::test]
async fn what_may_pass_is_asked_again_until_an_answer_begins() {
    let failure = |status: u16| json!({ "times": 1, "then": { "status": status, "body": "{}" } });
    let model = ScriptedModel::play(json!({ "rules": [
        failure(503),
        { "times": 1, "then": { "body": "", "cut": 0 } },
        { "then": { "text": "here" } }
    ] }))
    .await
    .unwrap();
    let (heard, _) = ask(&endpoint(&model.base_url())).await.unwrap();
    assert_eq!(heard, "here");
    assert_eq!(model.questions().len(), 3);
    // What does not pass is asked once, what goes on failing three times.
    for (status, times) in [(401, 1), (500, 3)] {
        let script = json!({ "rules": [{ "then": { "status": status, "body": "{}" } }] });
        let model = ScriptedModel::play(script).await.unwrap();
        assert!(ask(&endpoint(&model.base_url())).await.is_err());
        assert_eq!(model.questions().len(), times, "{status}");
    }
}

#[tokio::test]
async fn who_is_not_there_or_says_nothing_is_told_apart() {
    // A port that nobody listens at: it was somebody's a moment ago.
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let client = ModelClient::default();
    let nobody = endpoint(&format!("http://{address}/v1"));
    let error = client.try_connect(&nobody).await.unwrap_err();
    assert_eq!(error.code(), "model_unreachable");
    assert!(
        error.message().contains("nobody listens there"),
        "{}",
        error.message()
    );
    let unknown = endpoint("http://no-such-host.invalid/v1");
    let error = client.try_connect(&unknown).await.unwrap_err();
    assert!(matches!(error, ModelError::Resolve { .. }), "{error}");

    for then in [
        json!({ "text": "one two three", "cut": 200, "hang": true }),
        json!({ "wait_ms": 60_000 }),
    ] {
        let model = ScriptedModel::play(json!({ "rules": [{ "then": then }] })).await;
        let model = model.unwrap();
        let mut endpoint = endpoint(&model.base_url());
        endpoint.silence_timeout = Duration::from_secs(1);
        let error = ask(&endpoint).await.unwrap_err();
        assert_eq!(error.code(), "model_silent", "{error}");
    }
}

#[tokio::test]
async fn a_dropped_answer_ends_the_connection() {
    let model = ScriptedModel::play(json!({ "rules": [
        { "then": { "text": "one two three", "omit": ["finish", "done"], "hang": true } }
    ] }))
    .await
    .unwrap();
    let endpoint = endpoint(&model.base_url());
    let messages = messages();
    let client = ModelClient::default();
    let mut answer = client.ask(&endpoint, &request(&messages)).await.unwrap();
    assert!(answer.next().await.unwrap().is_some());
    assert!(!model.seen()[0].is_dropped);
    drop(answer);
    model.until(|seen| seen[0].is_dropped).await;
}

#[tokio::test]
async fn the_key_is_sent_to_its_place_and_shown_nowhere() {
    let script = json!({ "api_key": KEY, "models": ["scripted", "other"],
        "rules": [{ "then": { "text": "here" } }] });
    let model = ScriptedModel::play(script).await.unwrap();
    let endpoint = endpoint(&model.base_url());
    ask(&endpoint).await.unwrap();
    let models = ModelClient::default().models(&endpoint).await.unwrap();
    assert_eq!(models.unwrap(), ["scripted", "other"]);
    for seen in model.seen() {
        assert_eq!(seen.headers["authorization"], format!("Bearer {KEY}"));
        assert!(!seen.path.contains(KEY) && !seen.body.to_string().contains(KEY));
    }
    assert!(!format!("{endpoint:?}").contains(KEY));
    let mut wrong = endpoint.clone();
    wrong.api_key = Some(Zeroizing::new("sk-another-key".into()));
    let error = ask(&wrong).await.unwrap_err();
    let shown = format!("{error:?} {error} {}", error.message());
    assert!(!shown.contains("sk-another-key"), "{shown}");
    let bare = ModelEndpoint {
        api_key: None,
        ..endpoint
    };
    assert_eq!(ask(&bare).await.unwrap_err().code(), "model_key");
    assert!(
        !model
            .seen()
            .last()
            .unwrap()
            .headers
            .contains_key("authorization")
    );
}

#[tokio::test]
async fn a_name_that_stands_for_this_machine_is_fine() {
    let script = json!({ "rules": [{ "then": { "text": "here" } }] });
    let model = ScriptedModel::play(script).await.unwrap();
    let port = model.address().port();
    let (heard, _) = ask(&endpoint(&format!("http://localhost:{port}/v1")))
        .await
        .unwrap();
    assert_eq!(heard, "here");
    assert_eq!(model.seen()[0].headers["host"], format!("localhost:{port}"));
}

#[tokio::test]
async fn tls_is_believed_for_the_name_that_stands_in_the_address_only() {
    let authority_key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certified = authority.self_signed(&authority_key).unwrap();
    let issuer = rcgen::Issuer::new(authority, authority_key);
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".into()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(std::sync::Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            let mut asked = vec![0; 4096];
            let _ = stream.read(&mut asked).await;
            let body = "{\"data\":[{\"id\":\"scripted\"}]}";
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
            let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certified.der().clone()).unwrap();
    let believing = ModelClient::believing(roots);
    let right = endpoint(&format!("https://localhost:{port}/v1"));
    assert_eq!(
        believing.models(&right).await.unwrap().unwrap(),
        ["scripted"]
    );
    let other = endpoint(&format!("https://127.0.0.1:{port}/v1"));
    let error = believing.models(&other).await.unwrap_err();
    assert!(matches!(error, ModelError::Tls { .. }), "{error}");
    let error = ModelClient::default().models(&right).await.unwrap_err();
    assert!(
        error.message().contains("no secure connection"),
        "{}",
        error.message()
    );
}
