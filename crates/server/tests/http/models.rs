//! Admin → System → Models: what system admins set, change and test; keys go in and stay in.

use glovebox_testkit::ScriptedModel;
use serde_json::{Value, json};

use crate::stage::Stage;
use crate::wire::Who;

const MODELS: &str = "/api/v1/admin/models";
const KEY: &str = "sk-planted-model-key-0123456789";

async fn admin(stage: &Stage) -> Who {
    stage.user("ada", true).await.1
}

/// An endpoint that can all that chat wants.
async fn good_model() -> ScriptedModel {
    ScriptedModel::play(
        json!({ "api_key": KEY, "models": ["small-1", "large-2"], "rules": [
        { "when": { "tool": "report" },
          "then": { "calls": [{ "name": "report", "arguments": { "word": "ready" } }] } },
        { "then": { "text": "ready" } }
    ] }),
    )
    .await
    .unwrap()
}

fn wanted(base_url: &str) -> Value {
    json!({ "name": "Small", "base_url": base_url, "model": "small-1", "api_key": KEY })
}

/// The steps of a test, with what came of each.
fn steps(test: &Value) -> Vec<String> {
    let steps = test["steps"].as_array().unwrap();
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    steps
        .iter()
        .map(|step| format!("{} {}", word(&step["id"]), word(&step["status"])))
        .collect()
}

#[tokio::test]
async fn a_model_is_set_changed_and_deleted() {
    let stage = Stage::start().await;
    let ada = admin(&stage).await;
    let made = stage
        .call(&ada, "POST", MODELS, &wanted("http://127.0.0.1:9/v1/"))
        .await;
    assert_eq!(made.status, 201, "{}", made.text());
    let model = made.json();
    assert_eq!(model["base_url"], "http://127.0.0.1:9/v1");
    assert_eq!(
        (&model["is_default"], &model["has_api_key"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(model["context_tokens"], 32_768);
    let path = format!("{MODELS}/{}", model["id"].as_str().unwrap());
    let change = async |body: Value| stage.call(&ada, "PATCH", &path, &body).await;

    let changed = change(json!({ "version": 1, "context_tokens": 8_192 }))
        .await
        .ok();
    assert_eq!(
        (&changed["version"], &changed["notice"]),
        (&json!(2), &Value::Null)
    );
    assert_eq!(changed["has_api_key"], true);
    let late = change(json!({ "version": 1, "name": "Late" })).await;
    assert_eq!(
        (late.status, late.code()),
        (409, "changed_meanwhile".into())
    );
    // The key stays with its place, and does not go to another.
    let moved = json!({ "version": 2, "base_url": "http://127.0.0.1:9/v2" });
    assert_eq!(change(moved).await.ok()["has_api_key"], true);
    let moved = json!({ "version": 3, "base_url": "http://127.0.0.2:9/v2" });
    let changed = change(moved).await.ok();
    assert_eq!(changed["has_api_key"], false);
    assert!(
        changed["notice"].as_str().unwrap().contains("dropped"),
        "{changed}"
    );
    let moved = json!({ "version": 4, "base_url": "http://127.0.0.3:9", "api_key": "another" });
    assert_eq!(change(moved).await.ok()["has_api_key"], true);
    let bare = change(json!({ "version": 5, "api_key": null })).await.ok();
    assert_eq!(
        (&bare["has_api_key"], &bare["notice"]),
        (&json!(false), &Value::Null)
    );

    let second = json!({ "name": "Second", "base_url": "https://b.example.com", "model": "b" });
    let second = stage.call(&ada, "POST", MODELS, &second).await.ok();
    assert_eq!(second["is_default"], false);
    let refused = stage.call(&ada, "DELETE", &path, &Value::Null).await;
    assert_eq!(
        (refused.status, refused.code()),
        (409, "is_default_model".into())
    );
    let other = format!("{MODELS}/{}", second["id"].as_str().unwrap());
    let body = json!({ "version": 1, "is_default": true });
    let second = stage.call(&ada, "PATCH", &other, &body).await.ok();
    assert_eq!(second["is_default"], true);
    let gone = stage.call(&ada, "DELETE", &path, &Value::Null).await;
    assert_eq!(gone.status, 204, "{}", gone.text());
    let listed = stage.get(&ada, MODELS).await.ok();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    assert_eq!(
        stage.call(&ada, "DELETE", &path, &Value::Null).await.status,
        404
    );

    let log = stage
        .get(&ada, "/api/v1/admin/audit?action=model.")
        .await
        .ok();
    let entries = log["items"].as_array().unwrap();
    let line = |entry: &Value| format!("{} {}", entry["action"], entry["fields"]);
    let lines: Vec<_> = entries.iter().rev().map(line).collect();
    assert_eq!(lines.len(), 9, "{lines:?}");
    assert!(lines[0].contains("model.create") && lines[0].contains("\"api_key\""));
    assert_eq!(lines[1], "\"model.update\" [\"context_tokens\"]");
    assert_eq!(lines[3], "\"model.update\" [\"base_url\",\"api_key\"]");
    assert_eq!(lines[8], "\"model.delete\" []");
}

#[tokio::test]
async fn what_no_model_can_be_is_refused() {
    let stage = Stage::start().await;
    let ada = admin(&stage).await;
    let bad = |field: &str, value: Value| {
        let mut body = wanted("https://a.example.com/v1");
        body[field] = value;
        body
    };
    for body in [
        bad("base_url", json!("http://169.254.169.254/v1")),
        bad("base_url", json!("http://[::ffff:a9fe:a9fe]/v1")),
        bad("base_url", json!("http://metadata@a/v1")),
        bad("base_url", json!("a.example.com")),
        bad("name", json!("  ")),
        bad("name", json!("x".repeat(81))),
        bad("model", json!("a\nb")),
        bad("context_tokens", json!(10)),
        bad("connect_timeout_seconds", json!(0)),
        bad("silence_timeout_seconds", json!(601)),
        bad("reply_timeout_seconds", json!(0)),
        bad("reply_timeout_seconds", json!(86_401)),
        bad("api_key", json!("with a space")),
        bad("api_key", json!("")),
        bad("token", json!("x")),
    ] {
        let refused = stage.call(&ada, "POST", MODELS, &body).await;
        assert_eq!(
            (refused.status, refused.code()),
            (400, "invalid".into()),
            "{body}"
        );
        assert!(!refused.text().contains(KEY), "{}", refused.text());
    }
    let listed = stage.get(&ada, MODELS).await.ok();
    assert_eq!(listed["items"], json!([]));
    let made = stage
        .call(&ada, "POST", MODELS, &wanted("https://a.example.com"))
        .await;
    assert_eq!(made.status, 201);
    let again = stage
        .call(&ada, "POST", MODELS, &wanted("https://b.example.com"))
        .await;
    assert_eq!((again.status, again.code()), (409, "taken".into()));
}

#[tokio::test]
async fn a_test_goes_as_far_as_the_model_does() {
    let stage = Stage::start().await;
    let ada = admin(&stage).await;
    let model = good_model().await;
    let made = stage
        .call(&ada, "POST", MODELS, &wanted(&model.base_url()))
        .await
        .ok();
    let path = format!("{MODELS}/{}", made["id"].as_str().unwrap());
    let test = async |changes: Value| {
        let version = stage.get(&ada, MODELS).await.ok()["items"][0]["version"].clone();
        let mut body = changes;
        body["version"] = version;
        stage.call(&ada, "PATCH", &path, &body).await.ok();
        let path = format!("{path}/test");
        stage.call(&ada, "POST", &path, &json!({})).await.ok()
    };
    let seen = test(json!({})).await;
    let all = [
        "address",
        "connection",
        "key",
        "model",
        "stream",
        "tool_call",
    ];
    assert_eq!(steps(&seen), all.map(|id| format!("{id} pass")), "{seen}");
    assert_eq!(
        (&seen["is_passed"], &seen["models"]),
        (&json!(true), &json!(["small-1", "large-2"]))
    );
    assert!(seen["latency_ms"].is_u64());

    let seen = test(json!({ "model": "none" })).await;
    assert_eq!(steps(&seen).last().unwrap(), "model fail");
    let fix = seen["steps"][3]["fix"].as_str().unwrap();
    assert!(fix.contains("small-1, large-2"), "{fix}");
    let seen = test(json!({ "model": "small-1", "api_key": "sk-wrong" })).await;
    assert_eq!(steps(&seen).last().unwrap(), "key fail");
    assert!(!seen.to_string().contains("sk-wrong"), "{seen}");
    let seen = test(json!({ "api_key": null })).await;
    assert_eq!(seen["steps"][2]["message"], "the endpoint wants an API key");

    let without_tools = ScriptedModel::play(json!({ "rules": [
        { "then": { "text": "I cannot", "stream": false } }
    ] }))
    .await
    .unwrap();
    let seen = test(json!({ "base_url": without_tools.base_url() })).await;
    let expected = [
        "address pass",
        "connection pass",
        "key pass",
        "model pass",
        "stream warn",
    ];
    assert_eq!(steps(&seen)[..5], expected, "{seen}");
    assert_eq!(
        (steps(&seen)[5].as_str(), &seen["is_passed"]),
        ("tool_call fail", &json!(false))
    );
    let address = without_tools.address();
    drop(without_tools);
    let seen = test(json!({ "base_url": format!("http://{address}") })).await;
    assert_eq!(steps(&seen), ["address pass", "connection fail"], "{seen}");
    assert_eq!(seen["is_passed"], false);
}

#[tokio::test]
async fn a_models_key_is_in_no_answer_and_in_no_entry() {
    let stage = Stage::start().await;
    let ada = admin(&stage).await;
    let model = good_model().await;
    let made = stage
        .call(&ada, "POST", MODELS, &wanted(&model.base_url()))
        .await;
    let mut told = made.text();
    let path = format!("{MODELS}/{}", made.json()["id"].as_str().unwrap());
    told += &stage
        .call(&ada, "POST", &format!("{path}/test"), &json!({}))
        .await
        .text();
    // As careless endpoints do, this one sends back what it was sent.
    let careless = ScriptedModel::play(json!({ "rules": [
        { "then": { "status": 400, "body": format!("{{\"error\":\"you sent {KEY}\"}}") } }
    ] }))
    .await
    .unwrap();
    let moved = json!({ "version": 1, "base_url": careless.base_url(), "api_key": KEY });
    told += &stage.call(&ada, "PATCH", &path, &moved).await.text();
    told += &stage
        .call(&ada, "POST", &format!("{path}/test"), &json!({}))
        .await
        .text();
    assert!(
        careless
            .seen()
            .iter()
            .any(|seen| seen.headers["authorization"].contains(KEY))
    );
    assert!(told.contains("you sent …"), "{told}");
    for path in [
        MODELS,
        "/api/v1/admin/audit",
        "/api/v1/admin/audit/export/csv",
    ] {
        told += &stage.get(&ada, path).await.text();
    }
    assert!(!told.contains(KEY), "{told}");
    // Nor does it stand readable in the database.
    let file = stage.app.config().data.join("gb.db");
    for name in [file.clone(), file.with_extension("db-wal")] {
        if let Ok(bytes) = fs_err::read(&name) {
            let is_there = bytes.windows(KEY.len()).any(|part| part == KEY.as_bytes());
            assert!(!is_there, "the key stands in {}", name.display());
        }
    }
}
