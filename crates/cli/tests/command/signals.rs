//! Ctrl-C and its kin.

use std::io::Read as _;
use std::process::{Child, Command};

use crate::support::{Place, said, with_sandbox};

/// Begins a script and waits until it says that it is ready.
fn started(place: &Place, script: &str) -> Child {
    place.file("s.py", script);
    let mut child = place.command(["run", "s.py"]).spawn().unwrap();
    let mut ready = [0; 6];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut ready)
        .unwrap();
    assert_eq!(&ready, b"ready\n");
    child
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill")
        .args(["-s", name, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
}

/// Ignores interrupts and says of each that it came.
const STUBBORN: &str = "
import signal, time
signal.signal(signal.SIGINT, lambda *_: print('ouch', flush=True))
open('saved.csv', 'w').write('1')
print('ready', flush=True)
while True: time.sleep(1)
";

#[test]
fn the_first_interrupt_goes_to_the_program() {
    let place = with_sandbox();
    let child = started(
        &place,
        "import sys, time\ntry: print('ready', flush=True); time.sleep(100)\nexcept KeyboardInterrupt:\n  \
         open('saved.csv', 'w').write('1'); print('tidied up'); sys.exit(7)\n",
    );
    signal(&child, "INT");
    insta::assert_snapshot!(said(child).to_string(), @r"
    status 7
    -- out
    tidied up
    -- err
    saved results/saved.csv (1 byte)
    ");
}

#[test]
fn the_second_interrupt_kills() {
    let place = with_sandbox();
    let mut child = started(&place, STUBBORN);
    signal(&child, "INT");
    let mut ouch = [0; 5];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut ouch)
        .unwrap();
    signal(&child, "INT");
    insta::assert_snapshot!(said(child).to_string(), @r"
    status 137
    -- err
    saved results/saved.csv (1 byte)
    s.py was killed on request
    ");
}

#[test]
fn termination_ends_everything_at_once() {
    for (name, status) in [("TERM", 143), ("HUP", 129)] {
        let place = with_sandbox();
        let child = started(&place, STUBBORN);
        signal(&child, name);
        let said = said(child);
        let expected = format!(
            "status {status}\n-- err\nerror: stopped by SIG{name} while running the program\n"
        );
        assert_eq!(said.to_string(), expected);
        assert!(place.listed("results").is_empty());
    }
}
