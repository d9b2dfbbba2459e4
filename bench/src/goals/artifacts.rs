//! Artifacts: how fast a file that code has saved is collected and stored, and how fast it is had
//! again through the API.

use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::Value;

use super::Repeats;
use super::previews::artifact;
use crate::figures::Figure;
use crate::server::{Client, Server};
use crate::stage::{Stage, milliseconds};
use crate::statistics::Samples;

/// How large the file is, in bytes: all that one collection takes is a little more.
const BYTES: usize = 64 << 20;

pub(super) async fn measure(stage: &Stage, repeats: Repeats) -> Result<Vec<Figure>> {
    let on = async |server: &Server| measure_on(server, repeats).await;
    stage.on_server("none", on).await
}

async fn measure_on(server: &Server, repeats: Repeats) -> Result<Vec<Figure>> {
    let mut client = server.client().await?;
    let sandbox = client.sandbox().await?;
    let (mut stored, mut fetched) = (Vec::new(), Vec::new());
    for number in 0..repeats.of(2, 10) {
        let (took, id) = store(&mut client, &sandbox, number).await?;
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

/// Has code save a file. What it took from asking for code that only gives it its name to the last
/// event, and its id: it is looked through in the sandbox, fetched, hashed, stored and noted.
async fn store(client: &mut Client, sandbox: &str, number: usize) -> Result<(f64, String)> {
    // No two have the same content, which would be stored once.
    let written = format!(
        "import os\nwith open('big.bin', 'wb') as file:\n    file.write(b'%PDF-1.7 {number:06}\\n')\n    \
         file.write(os.urandom({BYTES} - 16))"
    );
    client.execute(sandbox, &written).await?;
    let begun = Instant::now();
    let named = "os.replace('big.bin', 'big.pdf')";
    let events = client.execute(sandbox, named).await?;
    Ok((milliseconds(begun), artifact(&events, "big.pdf")?))
}
