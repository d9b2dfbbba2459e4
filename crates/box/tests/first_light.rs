//! A box is made, its agent answers, it is removed.

mod support;

use support::launcher::{Launcher, posture, spec};
use support::tree;

#[test]
fn a_box_is_made_and_removed() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let facts = launcher.create(spec()).unwrap();
    assert_eq!(posture(&facts)["pid"], "1");
    assert_eq!(launcher.list(), vec![facts.clone()]);
    launcher.remove(facts.sandbox);
    assert!(!facts.socket.exists());
    assert!(launcher.close().success());
}
