//! The line between launcher and agent, with an agent that is under somebody else's control.
#![cfg(test)]

mod support;

use glovebox_box::control::BoxFacts;
use support::launcher::{Launcher, order, posture, spec};
use support::tree;

/// Lets the agent of a box send the launcher a packet.
fn say(facts: &BoxFacts, packet: &str, descriptor: bool) -> String {
    let text = serde_json::json!({"do": "say", "packet": packet, "descriptor": descriptor});
    order(facts, &text.to_string())
}

/// Whether the launcher still listens to the agent of a box.
fn is_listened_to(facts: &BoxFacts) -> bool {
    say(facts, r#"{"is":"kernel_ready"}"#, false) == "sent"
}

#[test]
fn an_agent_that_breaks_the_rules_is_not_listened_to_and_harms_nobody() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let good = launcher.create(spec()).unwrap();
    let long = "x".repeat(257);
    for (packet, descriptor) in [
        ("no word", false),
        (r#"{"is":"something"}"#, false),
        ("\u{0}\u{1}", false),
        (long.as_str(), false),
        (r#"{"is":"kernel_ready"}"#, true),
    ] {
        let bad = launcher.create(spec()).unwrap();
        assert_eq!(say(&bad, packet, descriptor), "sent");
        // The launcher answers only after it has heard that.
        launcher.list();
        assert!(!is_listened_to(&bad), "{packet}");
        // It lives on, until somebody takes it away.
        assert_eq!(posture(&bad)["pid"], "1");
        launcher.remove(bad.sandbox);
    }
    assert!(is_listened_to(&good));
    assert!(launcher.close().success());
}
