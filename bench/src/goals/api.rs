//! The server: what its API takes beside what it asks for.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use chrono::{TimeDelta, Utc};
use glovebox_protocol::class::ResourceClass;
use glovebox_protocol::ids::SandboxId;
use glovebox_store::{NewLease, Store};
use serde_json::Value;

use super::Repeats;
use super::first_result::{READY, gap};
use crate::figures::Figure;
use crate::server::{Client, Server};
use crate::stage::{Stage, milliseconds};
use crate::statistics::Samples;

/// How many ask at once.
const CLIENTS: usize = 50;

/// How many leases are listed.
const LEASES: usize = 1000;

pub(super) async fn measure(stage: &Stage, repeats: Repeats) -> Result<Vec<Figure>> {
    let on = async |server: &Server| measure_on(server, repeats).await;
    stage.on_server("none", on).await
}

async fn measure_on(server: &Server, repeats: Repeats) -> Result<Vec<Figure>> {
    let mut client = server.client().await?;
    // The first sandbox of all waits for the template.
    let warm = client.sandbox().await?;
    client.execute(&warm, "1+1").await?;

    let mut figures = Vec::new();
    figures.extend(both(
        "G3",
        "api",
        &round_trips(&mut client, &warm, repeats).await?,
    )?);
    figures.extend(both(
        "G1",
        "api",
        &first_results(&mut client, repeats).await?,
    )?);
    let reads = reads(server, &warm, repeats).await?;
    figures.extend(both("API", "read_at_50_clients", &reads)?);
    figures.push(list(server, &mut client, repeats).await?);
    client.bytes("DELETE", &warm, &Value::Null).await?;
    Ok(figures)
}

fn both(goal: &'static str, name: &str, row: &[f64]) -> Result<[Figure; 2]> {
    let row = Samples::new(row.to_vec())?;
    Ok([
        Figure::new(goal, &format!("{name}_p50_ms"), row.median(), row.count()),
        Figure::new(
            goal,
            &format!("{name}_p99_ms"),
            row.percentile(99),
            row.count(),
        ),
    ])
}

/// `1+1`, from sending it to the last of its events: two requests.
async fn round_trips(client: &mut Client, sandbox: &str, repeats: Repeats) -> Result<Vec<f64>> {
    let mut row = Vec::new();
    for _ in 0..repeats.of(20, 500) {
        let begun = Instant::now();
        client.execute(sandbox, "1+1").await?;
        row.push(milliseconds(begun));
    }
    Ok(row)
}

/// From asking for a sandbox to the last event of code that finds its libraries ready.
async fn first_results(client: &mut Client, repeats: Repeats) -> Result<Vec<f64>> {
    let mut row = Vec::new();
    for _ in 0..repeats.of(20, 200) {
        gap().await;
        let begun = Instant::now();
        let sandbox = client.sandbox().await?;
        client.execute(&sandbox, READY).await?;
        row.push(milliseconds(begun));
        client.bytes("DELETE", &sandbox, &Value::Null).await?;
    }
    Ok(row)
}

/// One object, read by many at once.
async fn reads(server: &Server, sandbox: &str, repeats: Repeats) -> Result<Vec<f64>> {
    let each = repeats.of(20, 200);
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(server.client().await?);
    }
    let rows = clients
        .into_iter()
        .map(async |mut client| -> Result<Vec<f64>> {
            let mut row = Vec::with_capacity(each);
            for _ in 0..each {
                let begun = Instant::now();
                client.bytes("GET", sandbox, &Value::Null).await?;
                row.push(milliseconds(begun));
            }
            Ok(row)
        });
    let rows = futures_util::future::join_all(rows).await;
    Ok(rows.into_iter().collect::<Result<Vec<_>>>()?.concat())
}

/// All pages of a list of many.
async fn list(server: &Server, client: &mut Client, repeats: Repeats) -> Result<Figure> {
    make_leases(server).await.context("making leases")?;
    let mut row = Vec::new();
    for _ in 0..repeats.of(3, 20) {
        let begun = Instant::now();
        let (mut seen, mut after) = (0, String::new());
        loop {
            let path = format!("/api/v1/sandboxes?limit=200{after}");
            let page = client.ask("GET", &path, &Value::Null).await?;
            seen += page["items"].as_array().map_or(0, Vec::len);
            match page["next_cursor"].as_str() {
                Some(cursor) => after = format!("&cursor={cursor}"),
                None => break,
            }
        }
        row.push(milliseconds(begun));
        ensure!(seen >= LEASES, "only {seen} leases are listed");
    }
    let row = Samples::new(row)?;
    Ok(Figure::median("API", "list_1000_leases_ms", &row))
}

/// Puts leases of the client's own into the database, for which there are no sandboxes: nobody looks
/// for them, as the server works on no queue.
async fn make_leases(server: &Server) -> Result<()> {
    let store = Store::open(&format!("sqlite://{}", server.database().display())).await?;
    let (user, workspace) = (server.user.parse()?, server.workspace.parse()?);
    let access = store.access_of_user(user, workspace).await?;
    let access = access.context("the administrator is no member")?;
    let profiles = store.profiles().await?;
    let profile = profiles.first().context("there is no profile")?;
    let mut changes = store.begin().await?;
    let row = changes.hold_workspace(workspace).await?;
    let mut quotas = row.context("there is no workspace")?.quotas;
    // One sandbox is there already, and no more than these can be given to a workspace.
    quotas.max_concurrent = u32::MAX;
    for _ in 0..LEASES {
        let lease = NewLease {
            id: SandboxId::new(),
            profile_id: profile.id,
            thread_id: None,
            class: ResourceClass::Small,
            idle_limit_ms: 600_000,
            hard_deadline: Utc::now() + TimeDelta::hours(1),
        };
        let placed = changes.create_lease(&access, &quotas, &lease).await?;
        ensure!(placed.is_ok(), "a quota is reached: {placed:?}");
    }
    changes.commit().await?;
    store.close().await;
    Ok(())
}
