//! `glovebox run --json`: events, one a line.

use serde_json::Value;

use crate::support::with_sandbox;

fn events(out: &str) -> Vec<Value> {
    out.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn types(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect()
}

#[test]
fn a_run_is_told_from_beginning_to_end() {
    let place = with_sandbox();
    place.file("in.csv", "1");
    let code = "import sys; print('hi'); sys.stdout.buffer.write(b'\\xff\\n'); open('out.csv', 'w').write('22')";
    let said = place.glovebox(["run", "--json", "-c", code, "in.csv"]);
    assert_eq!((said.status, said.err.as_str()), (0, ""), "{said}");
    let events = events(&said.out);
    let mut told = types(&events);
    told.dedup();
    assert_eq!(
        told,
        [
            "sandbox_starting",
            "sandbox_ready",
            "input_staged",
            "execution_started",
            "stdout",
            "execution_ended",
            "artifact",
            "left_out",
        ]
    );
    for (number, event) in (1..).zip(&events) {
        assert_eq!(event["seq"], number);
    }
    let artifact = &events[events.len() - 2]["data"];
    assert_eq!(artifact["name"], "out.csv");
    assert_eq!(artifact["saved_as"], "results/out.csv");
    assert_eq!(artifact["bytes"], 2);
    assert_eq!(artifact["media_type"], "text/csv");
    assert_eq!(
        events[events.len() - 1]["data"]["reason"],
        "unchanged_input"
    );
}

#[test]
fn a_failure_is_the_last_event_and_a_line_for_people() {
    let place = with_sandbox();
    let said = place.glovebox(["run", "--json", "-c", "1", "--env", "LD_PRELOAD=x"]);
    assert_eq!(said.status, 125);
    let events = events(&said.out);
    let last = events.last().unwrap();
    assert_eq!(last["type"], "failed");
    assert_eq!(last["data"]["code"], "invalid");
    assert!(said.err.starts_with("error: starting the code: "), "{said}");
}
