//! A signal at any moment of a run ends everything that the run has made on this machine.
//!
//! Signals go to the whole process group, as a terminal sends them. What the program gets of
//! them is tested with the command.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ChildStdout};
use std::sync::mpsc;
use std::time::Duration;

use glovebox_testkit::HostSnapshot;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};

use crate::support::Place;
use crate::with_sandbox;

/// How long everything may take to end.
const ENDED: Duration = Duration::from_secs(60);

/// Starts a daemon, ignores what can be ignored, says of each interrupt that it came, and goes on
/// for ever.
const STUBBORN: &str = "
import os, signal
for number in (signal.SIGTERM, signal.SIGHUP): signal.signal(number, signal.SIG_IGN)
# Waited for and never handled: a handler could be due just before a pause that nothing ends.
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True: signal.pause()
    # Or it would say `ready` too.
    os._exit(0)
# One write each: `print` writes its newline by itself, which is an event of its own.
os.write(1, b'ready\\n')
while signal.sigwait([signal.SIGINT]): os.write(1, b'ouch\\n')
";

/// A run that tells its events, in a process group of its own.
struct Run {
    child: Child,
    events: BufReader<ChildStdout>,
}

impl Run {
    fn start(place: &Place, arguments: &[&str]) -> Self {
        let mut child = place
            .command(["run", "--json"].iter().chain(arguments))
            .env("GLOVEBOX_RUN", place.path().join("run"))
            .process_group(0)
            .spawn()
            .unwrap();
        let events = BufReader::new(child.stdout.take().unwrap());
        Self { child, events }
    }

    /// Waits until an event of this type is told.
    fn until(&mut self, kind: &str) {
        let kind = format!("\"type\":\"{kind}\"");
        let mut line = String::new();
        while !line.contains(&kind) {
            line.clear();
            let bytes = self.events.read_line(&mut line).unwrap();
            assert_ne!(bytes, 0, "the run ended before {kind}");
        }
    }

    fn signal(&self, signal: Signal) {
        let group = Pid::from_child(&self.child);
        match rustix::process::kill_process_group(group, signal) {
            // It has ended by itself.
            Ok(()) | Err(Errno::SRCH) => {}
            Err(error) => panic!("signalling the run: {error}"),
        }
    }

    /// Waits for the end of the command; its exit status as shells have it, and its last words.
    fn end(mut self) -> (i32, String) {
        let mut rest = Vec::new();
        std::io::Read::read_to_end(&mut self.events, &mut rest).unwrap();
        let output = self.child.wait_with_output().unwrap();
        let status = output.status;
        let status = status.code().or(status.signal().map(|s| 128 + s)).unwrap();
        (status, String::from_utf8(output.stderr).unwrap())
    }
}

/// Does something with runs, waits until all that they started has ended, and compares the
/// machine with what it was. Whatever a killed command leaves becomes a child of this test.
fn leaving_nothing(place: &Place, work: impl FnOnce()) {
    let mount_point = glovebox_testkit::test_data().unwrap().join("mount-point");
    // The folder for sockets is made by the first run, and stays.
    let run = place.path().join("run");
    fs_err::create_dir_all(&run).unwrap();
    fs_err::set_permissions(&run, std::fs::Permissions::from_mode(0o711)).unwrap();
    let folders = [place.path(), mount_point.as_path()];
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
    let before = HostSnapshot::take(&folders).unwrap();
    work();
    let (all_ended, ended) = mpsc::channel();
    std::thread::spawn(move || {
        while !matches!(
            rustix::process::wait(WaitOptions::empty()),
            Err(Errno::CHILD)
        ) {}
        all_ended.send(()).unwrap();
    });
    let in_time = ended.recv_timeout(ENDED).is_ok();
    let changes = before.changes_until(&HostSnapshot::take(&folders).unwrap());
    assert!(changes.is_empty() && in_time, "left behind: {changes:#?}");
}

#[test]
fn a_signal_while_the_sandbox_starts_leaves_the_host_as_it_was() {
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::KILL, 137)] {
        let place = with_sandbox();
        leaving_nothing(&place, || {
            let mut run = Run::start(&place, &["-c", "import signal; signal.pause()"]);
            run.until("sandbox_starting");
            run.signal(signal);
            assert_eq!(run.end().0, status, "after {signal:?}");
        });
    }
}

#[test]
fn a_signal_while_files_are_copied_in_leaves_the_host_as_it_was() {
    for (signal, status) in [(Signal::INT, 130), (Signal::HUP, 129), (Signal::KILL, 137)] {
        let place = with_sandbox();
        let mut arguments = vec!["-c", "import signal; signal.pause()"];
        let names = ["0.bin", "1.bin", "2.bin", "3.bin", "4.bin", "5.bin"];
        for name in names {
            place.sparse(name, 25 << 20);
            arguments.push(name);
        }
        leaving_nothing(&place, || {
            let mut run = Run::start(&place, &arguments);
            run.until("input_staged");
            run.signal(signal);
            assert_eq!(run.end().0, status, "after {signal:?}");
        });
    }
}

#[test]
fn a_signal_while_the_program_runs_leaves_the_host_as_it_was() {
    let place = with_sandbox();
    let stopped = "error: stopped by SIGTERM while running the program\n";
    for (signals, status, words) in [
        (&[Signal::INT; 2][..], 137, ""),
        (&[Signal::INT, Signal::TERM], 143, stopped),
        (&[Signal::TERM], 143, stopped),
        (&[Signal::INT, Signal::KILL], 137, ""),
        (&[Signal::KILL], 137, ""),
    ] {
        leaving_nothing(&place, || {
            let mut run = Run::start(&place, &["-c", STUBBORN]);
            for signal in signals {
                // Signals of one kind that come at once are one: each has to have been heard.
                run.until("stdout");
                run.signal(*signal);
            }
            let (ended, said) = run.end();
            assert_eq!((ended, said.as_str()), (status, words), "after {signals:?}");
        });
    }
}

#[test]
fn a_signal_while_a_notebook_runs_leaves_the_host_as_it_was() {
    let place = with_sandbox();
    let cell = serde_json::json!({"cell_type": "code", "source": STUBBORN, "metadata": {},
                                  "outputs": [], "execution_count": null});
    let notebook = serde_json::json!({"nbformat": 4, "nbformat_minor": 4, "metadata": {},
                                      "cells": [cell]});
    place.file("n.ipynb", notebook.to_string());
    for (signal, status) in [(Signal::TERM, 143), (Signal::KILL, 137)] {
        leaving_nothing(&place, || {
            let mut run = Run::start(&place, &["n.ipynb"]);
            run.until("stdout");
            run.signal(signal);
            assert_eq!(run.end().0, status, "after {signal:?}");
        });
    }
}

#[test]
fn a_signal_while_results_are_collected_leaves_whole_files_and_leaves_the_host_as_it_was() {
    const BYTES: usize = 4 << 20;
    let code =
        format!("for n in range(24): open(f'{{n:02}}.txt', 'w').write(chr(97 + n) * {BYTES})");
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::KILL, 137)] {
        let place = with_sandbox();
        let saved = tempfile::tempdir().unwrap();
        leaving_nothing(&place, || {
            let out = saved.path().to_str().unwrap();
            let mut run = Run::start(&place, &["-c", &code, "--out", out]);
            run.until("artifact");
            run.signal(signal);
            let (ended, _) = run.end();
            // All may have come out before the signal went in.
            assert!(ended == status || ended == 0, "{ended} after {signal:?}");
        });
        for entry in fs_err::read_dir(saved.path()).unwrap() {
            let path = entry.unwrap().path();
            let bytes = fs_err::read(&path).unwrap();
            let whole = bytes.len() == BYTES && bytes.iter().all(|byte| *byte == bytes[0]);
            assert!(whole, "{} was cut short", path.display());
        }
    }
}
