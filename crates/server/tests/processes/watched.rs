//! What can be known of a process from outside: its metrics, also where its log cannot be written.

use hyper::body::Bytes;

use crate::process::{on_sqlite, until};
use crate::wire::{Answer, Who, send};

async fn get(address: std::net::SocketAddr, path: &str) -> Answer {
    send(address, &Who::Nobody, "GET", path, &[], Bytes::new()).await
}

/// The value of a series.
fn series(text: &str, name: &str) -> Option<f64> {
    let mut lines = text.lines().filter_map(|line| line.rsplit_once(' '));
    lines.find(|(series, _)| *series == name)?.1.parse().ok()
}

#[tokio::test]
async fn a_server_whose_log_cannot_be_written_goes_on_and_counts_what_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let (_process, address, metrics) = on_sqlite(folder.path()).serve_without_log();
    let mut lost = 0.0;
    until(async || {
        let text = get(metrics, "/metrics").await.text();
        lost = series(&text, "glovebox_log_lines_lost_total").unwrap();
        lost > 0.0
    })
    .await;
    assert_eq!(get(address, "/api/v1/setup").await.status, 200);
    let text = get(metrics, "/metrics").await.text();
    assert!(series(&text, "glovebox_log_lines_lost_total").unwrap() >= lost);
}

#[tokio::test]
async fn a_worker_tells_how_it_is_at_an_address_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let place = on_sqlite(folder.path());
    let _server = place.serve(&["--queues", "none"]);
    let _worker = place.work_with(&["--metrics-listen", "127.0.0.1:0"]);
    let mut metrics = None;
    until(async || {
        let log = fs_err::read_to_string(folder.path().join("worker.log"));
        metrics = log.unwrap_or_default().lines().find_map(address_in);
        metrics.is_some()
    })
    .await;
    let metrics = metrics.unwrap();
    until(async || {
        let text = get(metrics, "/metrics").await.text();
        series(&text, r#"glovebox_worker_sweeps_total{outcome="done"}"#) > Some(0.0)
    })
    .await;
    assert_eq!(get(metrics, "/api/v1/setup").await.status, 404);
}

/// Where the metrics are, as the log says it.
fn address_in(line: &str) -> Option<std::net::SocketAddr> {
    let line: serde_json::Value = serde_json::from_str(line).ok()?;
    line["fields"]["metrics"].as_str()?.parse().ok()
}
