//! Plays one answer.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until};

use super::script::{Call, Play, Style};
use super::wire::{Asked, Reply, read};
use super::{Seen, Stage};

/// Answers the one request of a connection.
pub(super) async fn serve(mut stream: TcpStream, stage: &Stage) {
    let Some(asked) = read(&mut stream).await else {
        return;
    };
    if asked.path == "/requests" {
        let seen = json!(*stage.seen.borrow());
        let _ = Reply::document(&seen).send(&mut stream).await;
        return;
    }
    let number = stage.note(Seen {
        method: asked.method.clone(),
        path: asked.path.clone(),
        headers: asked.headers.clone(),
        body: asked.body.clone(),
        is_dropped: false,
    });
    let played = match chosen(&asked, stage) {
        Ok(play) => perform(&mut stream, &play, &asked.body).await,
        Err(reply) => reply.send(&mut stream).await,
    };
    if played.is_err() {
        stage.note_dropped(number);
    }
}

/// What is to be played, or what stands in the way.
fn chosen(asked: &Asked, stage: &Stage) -> Result<Play, Reply> {
    let script = &stage.script;
    if let Some(key) = &script.api_key
        && asked.headers.get("authorization") != Some(&format!("Bearer {key}"))
    {
        // As a careless endpoint does, with what it was sent.
        let sent = asked
            .headers
            .get("authorization")
            .cloned()
            .unwrap_or_default();
        let text = format!("Incorrect API key provided: {sent}");
        return Err(Reply::failure(401, &text, "invalid_api_key"));
    }
    if asked.path.ends_with("/models") && !script.models.is_empty() {
        let models: Vec<Value> = script.models.iter().map(|id| json!({ "id": id })).collect();
        return Err(Reply::document(
            &json!({ "object": "list", "data": models }),
        ));
    }
    if !asked.path.ends_with("/chat/completions") {
        return Err(Reply::failure(404, "no such route", "not_found"));
    }
    let is_known = |model: &String| asked.body["model"] == model.as_str();
    if !script.models.is_empty() && !script.models.iter().any(is_known) {
        let text = format!("the model {} does not exist", asked.body["model"]);
        return Err(Reply::failure(404, &text, "model_not_found"));
    }
    match stage.rule(&asked.body) {
        Some(rule) => Ok(rule.then.clone()),
        None => Err(Reply::failure(
            400,
            "the script has no rule for this",
            "no_rule",
        )),
    }
}

async fn wait(ms: u64) {
    if ms > 0 {
        sleep_until(Instant::now() + Duration::from_millis(ms)).await;
    }
}

async fn perform(stream: &mut TcpStream, play: &Play, question: &Value) -> std::io::Result<()> {
    wait(play.wait_ms).await;
    let kind = if play.omits("content_type") {
        "application/octet-stream"
    } else if play.stream && play.status == 200 {
        "text/event-stream"
    } else {
        "application/json"
    };
    let reply = Reply::begin(stream, play.status, kind, &play.headers).await?;
    let pieces = match &play.body {
        Some(body) => vec![body.clone(); play.repeat],
        None if play.stream => events(play, question),
        None => vec![whole(play, question).to_string()],
    };
    let mut left = play.cut.unwrap_or(usize::MAX);
    for piece in pieces {
        wait(play.pause_ms).await;
        let piece = &piece.as_bytes()[..piece.len().min(left)];
        left -= piece.len();
        for part in piece.chunks(play.shred.unwrap_or(usize::MAX)) {
            reply.part(stream, part).await?;
        }
        if left == 0 {
            break;
        }
    }
    if play.hang {
        // Ends when whoever asked is gone: nothing more is to come from there.
        let _ = stream.read(&mut [0]).await;
        return Err(std::io::ErrorKind::ConnectionAborted.into());
    }
    if play.cut.is_some() {
        return Ok(());
    }
    reply.end(stream).await
}

/// The events of an answer.
fn events(play: &Play, question: &Value) -> Vec<String> {
    let mut deltas = Vec::new();
    if !play.omits("role") {
        deltas.push(json!({ "role": "assistant", "content": null }));
    }
    let characters: Vec<char> = play.text.chars().collect();
    for piece in characters.chunks(play.piece.max(1)) {
        deltas.push(json!({ "content": piece.iter().collect::<String>() }));
    }
    for (index, call) in play.calls.iter().enumerate() {
        deltas.extend(call_deltas(play, index, call));
    }
    let end = if play.crlf { "\r\n" } else { "\n" };
    let mut events = Vec::new();
    let mut event = |data: &str| {
        if play.comments {
            events.push(format!(": still here{end}{end}"));
        }
        events.push(format!("data: {data}{end}{end}"));
    };
    for delta in deltas {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": null });
        event(&document(play, question, &choice).to_string());
    }
    if !play.omits("finish") {
        let choice = json!({ "index": 0, "delta": {}, "finish_reason": finish(play) });
        event(&document(play, question, &choice).to_string());
    }
    if !play.omits("usage") {
        let usage = json!({ "prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2 });
        event(&json!({ "choices": [], "usage": usage }).to_string());
    }
    if !play.omits("done") {
        event("[DONE]");
    }
    events
}

fn call_deltas(play: &Play, index: usize, call: &Call) -> Vec<Value> {
    let arguments = match &call.arguments {
        Value::String(text) => text.clone(),
        Value::Null => "{}".into(),
        value => value.to_string(),
    };
    if play.style == Style::Legacy {
        let name = json!({ "function_call": { "name": call.name, "arguments": "" } });
        let rest = json!({ "function_call": { "arguments": arguments } });
        return vec![name, rest];
    }
    if play.style != Style::Fragments {
        return vec![json!({ "tool_calls": [whole_call(play, index, call)] })];
    }
    let mut first = whole_call(play, index, call);
    first["function"]["arguments"] = "".into();
    let mut deltas = vec![json!({ "tool_calls": [first] })];
    let characters: Vec<char> = arguments.chars().collect();
    for piece in characters.chunks(play.piece.max(1)) {
        let piece: String = piece.iter().collect();
        let mut fragment = json!({ "function": { "arguments": piece } });
        if !play.omits("index") {
            fragment["index"] = index.into();
        }
        deltas.push(json!({ "tool_calls": [fragment] }));
    }
    deltas
}

fn whole_call(play: &Play, index: usize, call: &Call) -> Value {
    let arguments = match &call.arguments {
        value if play.style == Style::Objects => value.clone(),
        Value::String(text) => text.as_str().into(),
        Value::Null => "{}".into(),
        value => value.to_string().into(),
    };
    let mut whole = json!({ "function": { "name": call.name, "arguments": arguments } });
    if !play.omits("index") {
        whole["index"] = index.into();
    }
    if !play.omits("id") {
        whole["id"] = format!("call_{index}").into();
    }
    if !play.omits("type") {
        whole["type"] = "function".into();
    }
    whole
}

fn finish(play: &Play) -> &str {
    let usual = if play.calls.is_empty() {
        "stop"
    } else {
        "tool_calls"
    };
    play.finish.as_deref().unwrap_or(usual)
}

fn document(play: &Play, question: &Value, choice: &Value) -> Value {
    let mut document = json!({ "object": "chat.completion.chunk", "choices": [choice] });
    if !play.omits("id") {
        document["id"] = "chatcmpl-1".into();
        document["model"] = question["model"].clone();
    }
    document
}

/// The answer in one document.
fn whole(play: &Play, question: &Value) -> Value {
    let calls: Vec<Value> = play
        .calls
        .iter()
        .enumerate()
        .map(|(index, call)| whole_call(play, index, call))
        .collect();
    let mut message = json!({ "role": "assistant", "content": play.text });
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let choice = json!({ "index": 0, "message": message, "finish_reason": finish(play) });
    document(play, question, &choice)
}
