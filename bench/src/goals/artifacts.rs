//! Artifacts: how fast a file that code has saved is collected and stored, and how fast it is had
//! again through the API.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::Repeats;
use super::previews::artifact;
use crate::figures::Figure;
use crate::server::{Client, Server};
use crate::stage::{Stage, milliseconds};
use crate::statistics::Samples;

/// How large the file is, in bytes: all that one collection takes is a little more.
const BYTES: usize = 64 << 20;

pub(super) async fn measure(stage: &Stage, repeats: Repeats) -> Result<Vec<Figure>> {
    let server = stage.server("none").await?;
    let taken = measure_on(&server, repeats).await;
    let closed = server.close();
    // What went wrong first is what has to be known.
    let figures = taken?;
    closed?;
    Ok(figures)
}

async fn measure_on(server: &Server, repeats: Repeats) -> Result<Vec<Figure>> {
    let mut client = server.client().await?;
    let sandbox = client.sandbox().await?;
    let (mut stored, mut fetched) = (Vec::new(), Vec::new());
    for number in 0..repeats.of(2, 10) {
        let (took, id) = store(server, &mut client, &sandbox, number).await?;
        stored.push(speed(took));
        let begun = Instant::now();
        let path = format!("/api/v1/artifacts/{id}/content");
        let bytes = client.bytes("GET", &path, &Value::Null).await?;
        fetched.push(speed(milliseconds(begun)));
        ensure!(
            bytes.len() == BYTES,
            "{} of {BYTES} bytes came",
            bytes.len()
        );
    }
    client.bytes("DELETE", &sandbox, &Value::Null).await?;
    let of = |name: &str, row| -> Result<Figure> {
        Ok(Figure::median("ARTIFACT", name, &Samples::new(row)?))
    };
    Ok(vec![
        of("store_mb_per_s", stored)?,
        of("fetch_mb_per_s", fetched)?,
    ])
}

fn speed(took_ms: f64) -> f64 {
    BYTES as f64 / 1000.0 / took_ms
}

/// Has code save a file. What it took, from the code's last word to the event that the file is stored,
/// and its id: it is looked through in the sandbox, fetched, hashed, stored and noted.
async fn store(
    server: &Server,
    client: &mut Client,
    sandbox: &str,
    number: usize,
) -> Result<(f64, String)> {
    // No two have the same content, which would be stored once.
    let code = format!(
        "import os\nwith open('big.pdf', 'wb') as file:\n    file.write(b'%PDF-1.7 {number:06}\\n')\n    \
         file.write(os.urandom({BYTES} - 16))\nprint('it is written')"
    );
    let path = format!("{sandbox}/executions");
    let accepted = client.ask("POST", &path, &json!({ "code": code })).await?;
    let id = accepted["id"].as_str().context("an execution has no id")?;
    let path = format!("{path}/{id}/events");
    let (mut written, mut stored, mut lines) = (None, None, String::new());
    let mut listening = server.client().await?;
    listening
        .stream("GET", &path, &Value::Null, |line| {
            if line.contains("it is written") {
                written = Some(Instant::now());
            }
            if line.contains(r#""type":"artifact""#) {
                stored = Some(Instant::now());
                lines.push_str(line);
            }
            line.starts_with("data: ") && line.contains(r#""type":"execution_ended""#)
        })
        .await?;
    let (written, stored) = (
        written.context("it printed nothing")?,
        stored.context("nothing was stored")?,
    );
    let took = stored.saturating_duration_since(written).as_secs_f64() * 1000.0;
    ensure!(took > 0.0, "it was stored before it was written");
    Ok((took, artifact(lines.as_bytes(), "big.pdf")?))
}
