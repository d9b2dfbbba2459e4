//! Gateways from the command line: keys, a gateway of this machine, a run through it, its canary.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Child;

use crate::support::{Place, Said};

/// A gateway that was started from the command line, at a socket in a place.
struct Gateway {
    child: Child,
    url: String,
}

impl Gateway {
    /// Makes keys in the place, starts a gateway that knows them, and waits until it listens.
    fn start(place: &Place) -> Self {
        let key = fine(place, &["key", "new", "--out", "key"]);
        fine(place, &["credential", "new", "--out", "credential"]);
        let url = format!("unix:{}", place.path().join("gateway.sock").display());
        let mut child = place
            .command(["gateway"])
            .env("GATEWAY_RUNTIME", "embedded")
            .env("GATEWAY_LISTEN", &url)
            .env(
                "GATEWAY_INSTALLATION_ID",
                "0192f0c1-2b3a-7c4d-8e5f-60718293a4b5",
            )
            .env("GATEWAY_AGENT_KEYS", key.out.trim())
            .env("GATEWAY_CREDENTIALS_FILE", place.path().join("credential"))
            .env("GATEWAY_STATE_DIR", place.path().join("state"))
            .env("GLOVEBOX_RUN", run_folder())
            .spawn()
            .unwrap();
        let mut told = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("\"listening\"") {
            line.clear();
            assert!(
                told.read_line(&mut line).unwrap() > 0,
                "the gateway has ended"
            );
        }
        std::thread::spawn(move || std::io::copy(&mut told, &mut std::io::sink()));
        Self { child, url }
    }

    /// Its options for a run.
    fn run<'a>(&'a self, program: &[&'a str]) -> Vec<&'a str> {
        let mut words = vec!["run"];
        words.extend(program);
        words.extend(["--gateway", &self.url, "--credential-file", "credential"]);
        words.extend(["--signing-key", "key"]);
        words
    }

    fn stop(mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let mut out = String::new();
        let mut stdout = self.child.stdout.take().unwrap();
        stdout.read_to_string(&mut out).unwrap();
        assert!(self.child.wait().unwrap().success(), "{out}");
    }
}

fn run_folder() -> String {
    let user = rustix::process::geteuid();
    if user.is_root() {
        "/run/glovebox-test".into()
    } else {
        format!("/tmp/glovebox-test-{}", user.as_raw())
    }
}

fn fine(place: &Place, arguments: &[&str]) -> Said {
    let said = place.glovebox(arguments);
    assert_eq!(said.status, 0, "{}", said.err);
    said
}

#[test]
fn a_run_through_a_gateway_is_as_one_on_this_machine_and_its_canary_reaches_nothing() {
    let place = Place::new();
    let gateway = Gateway::start(&place);
    place.file(
        "a.py",
        "print(open('in.txt').read()); open('out.txt', 'w').write('made')",
    );
    place.file("in.txt", "hello");
    let ran = fine(&place, &gateway.run(&["a.py", "in.txt"]));
    assert_eq!(ran.out, "hello\n");
    assert_eq!(place.read("results/out.txt"), "made");
    let failed = place.glovebox(gateway.run(&["-c", "raise SystemExit(7)"]));
    assert_eq!(failed.status, 7, "{}", failed.err);

    let ask = [gateway.url.as_str(), "--credential-file", "credential"];
    let info = fine(&place, &[&["gateway", "info"], &ask[..]].concat());
    assert!(info.out.contains("(yours)"), "{}", info.out);
    fine(&place, &[&["gateway", "preflight"], &ask[..]].concat());
    let canary = [&["gateway", "canary"], &ask[..], &["--signing-key", "key"]].concat();
    let canary = fine(&place, &canary);
    assert!(
        canary.out.contains("OPEN    positive_control"),
        "{}",
        canary.out
    );
    assert!(canary.out.contains("nothing got out"), "{}", canary.out);
    gateway.stop();
}

#[test]
fn a_key_is_made_once_and_only_its_owner_can_use_it() {
    let place = Place::new();
    let made = fine(&place, &["key", "new", "--out", "key"]);
    let mode = fs_err::metadata(place.path().join("key")).unwrap();
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    assert_eq!(made.out.trim().len(), 64);
    assert_eq!(fine(&place, &["key", "show", "key"]).out, made.out);
    let again = place.glovebox(["key", "new", "--out", "key"]);
    insta::assert_snapshot!(again, @r"
    status 125
    -- err
    error: cannot write key: File exists
      fix: name another file: a secret is never written over
    ");
    let open = std::fs::Permissions::from_mode(0o644);
    fs_err::set_permissions(place.path().join("key"), open).unwrap();
    insta::assert_snapshot!(place.glovebox(["key", "show", "key"]), @r"
    status 125
    -- err
    error: key is a secret that others can read
      fix: chmod 600 key
    ");
    place.file("torn", "gbs_0123");
    let closed = std::fs::Permissions::from_mode(0o600);
    fs_err::set_permissions(place.path().join("torn"), closed).unwrap();
    insta::assert_snapshot!(place.glovebox(["key", "show", "torn"]), @r"
    status 125
    -- err
    error: cannot use torn: not a signing key: one is `gbs_` and 64 lowercase hexadecimal digits
    ");
}

#[test]
fn what_makes_a_gateway_trusted_is_asked_for_before_anything_is_sent() {
    let place = Place::new();
    fine(&place, &["key", "new", "--out", "key"]);
    fine(&place, &["credential", "new", "--out", "credential"]);
    let run = |more: &[&str]| {
        let mut words = vec!["run", "-c", "1"];
        words.extend(more);
        place.glovebox(words)
    };
    let keys = ["--credential-file", "credential", "--signing-key", "key"];
    let through = |url: &'static str, more: &[&'static str]| {
        run(&[&["--gateway", url], &keys[..], more].concat())
    };
    insta::assert_snapshot!(run(&["--same-host"]), @r"
    status 2
    -- err
    error: --same-host goes with --gateway
      fix: `glovebox run --help` says what can be asked for
    ");
    insta::assert_snapshot!(through("https://127.0.0.1:1", &[]), @r"
    status 2
    -- err
    error: nothing says how the gateway at https://127.0.0.1:1 is known for the right one; give --pin FINGERPRINT, which `glovebox gateway fingerprint` prints on its machine
      fix: `glovebox run --help` says what can be asked for
    ");
    insta::assert_snapshot!(through("http://127.0.0.1:1", &[]), @r"
    status 2
    -- err
    error: `http://127.0.0.1:1` has no TLS and is not said to be on this machine; use https://, or --same-host if it is on this machine
      fix: `glovebox run --help` says what can be asked for
    ");
    insta::assert_snapshot!(through("127.0.0.1:1", &[]), @r"
    status 2
    -- err
    error: `127.0.0.1:1` is no address of a gateway: one is https://HOST[:PORT] or unix:/PATH
      fix: `glovebox run --help` says what can be asked for
    ");
    let pin = "0000000000000000000000000000000000000000000000000000000000000000";
    insta::assert_snapshot!(through("https://127.0.0.1:1", &["--pin", pin]), @r"
    status 125
    -- err
    error: asking the gateway: connecting: the gateway at https://127.0.0.1:1: Connection refused (os error 111)
    ");
}
