//! How a program can end, the exit status and the words for it.

use std::io::Read as _;

use crate::support::{said, with_sandbox};

#[test]
fn at_its_time_limit() {
    let place = with_sandbox();
    let code = "open('half.csv', 'w').write('1')\nimport time\ntime.sleep(100)";
    let said = place.glovebox(["run", "-q", "-c", code, "--timeout", "2s"]);
    assert_eq!(said.status, 124, "{said}");
    assert!(
        said.err.ends_with(
            "the code reached the time limit of 2 s and was interrupted; give it longer with --timeout\n"
        ),
        "{said}"
    );
    assert_eq!(place.listed("results"), ["half.csv"]);
}

#[test]
fn at_its_memory_limit() {
    let place = with_sandbox();
    let code = "x = bytearray(b'1') * (2000 << 20)";
    let said = place.glovebox(["run", "-c", code, "--memory", "128M", "--disk", "16M"]);
    insta::assert_snapshot!(said.to_string(), @r"
    status 137
    -- err
    the code ran out of memory (limit 128 MiB); give it more with --memory or --class
    ");
}

#[test]
fn by_a_signal() {
    let place = with_sandbox();
    let said = place.glovebox(["run", "-c", "import os; os.kill(os.getpid(), 11)"]);
    assert_eq!(
        said.to_string(),
        "status 139\n-- err\nthe code was ended by SIGSEGV\n"
    );
}

#[test]
fn with_a_full_workspace() {
    let place = with_sandbox();
    place.file("fill.py", "open('a.csv', 'w').write('1')\nfor i in range(99):\n  open(f'{i}.bin', 'wb').write(bytes(1 << 20))\n");
    let said = place.glovebox(["run", "fill.py", "--disk", "8M"]);
    assert_eq!(said.status, 1, "{said}");
    assert!(said.err.contains("No space left on device"), "{said}");
    assert!(
        said.err
            .contains("warning: the workspace is full (limit 8 MiB"),
        "{said}"
    );
    assert_eq!(place.listed("results"), ["a.csv"]);
}

#[test]
fn when_nobody_reads_its_output() {
    let place = with_sandbox();
    let code = "for i in range(10_000_000): print(i)";
    for json in [&[][..], &["--json"]] {
        let mut child = place
            .command(["run", "-c", code].iter().chain(json))
            .spawn()
            .unwrap();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut [0; 100]).unwrap();
        drop(stdout);
        let said = said(child);
        assert_eq!(said.to_string(), "status 141\n");
    }
}

#[test]
fn a_limit_out_of_range_is_refused_by_its_option() {
    let place = with_sandbox();
    let said = place.glovebox(["run", "-c", "1", "--memory", "1M"]);
    insta::assert_snapshot!(said.to_string(), @r"
    status 2
    -- err
    error: --memory must be 64 MiB to 1 TiB
      fix: `glovebox run --help` says what can be asked for
    ");
}

#[test]
fn when_its_output_cannot_be_written() {
    let place = with_sandbox();
    let full = fs_err::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let child = place
        .command(["run", "-c", "print(1)"])
        .stdout(full.into_file())
        .spawn()
        .unwrap();
    insta::assert_snapshot!(said(child).to_string(), @r"
    status 125
    -- err
    error: writing the output: No space left on device
    ");
}
