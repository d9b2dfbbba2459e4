//! A script runs as `python script.py` would.

use std::io::Read as _;

use crate::support::{said, with_sandbox};

#[test]
fn it_is_main_and_has_its_arguments_and_its_status() {
    let place = with_sandbox();
    place.file(
        "s.py",
        "import sys\nprint(__name__, sys.argv)\nprint('to stderr', file=sys.stderr)\nsys.exit(3)\n",
    );
    let said = place.glovebox(["run", "s.py", "--", "-x", "a b", "--"]);
    insta::assert_snapshot!(said.to_string(), @r"
    status 3
    -- out
    __main__ ['s.py', '-x', 'a b', '--']
    -- err
    to stderr
    ");
}

#[test]
fn code_and_standard_input_are_scripts_too() {
    let place = with_sandbox();
    let said = place.glovebox(["run", "-c", "import sys; print(sys.argv)", "--", "a"]);
    assert_eq!((said.status, said.out.as_str()), (0, "['-c', 'a']\n"));
    let said = place.glovebox_reads(["run", "-", "--", "a"], b"import sys\nprint(sys.argv)\n");
    assert_eq!((said.status, said.out.as_str()), (0, "['-', 'a']\n"));
}

#[test]
fn an_empty_script_does_nothing() {
    let place = with_sandbox();
    place.file("empty.py", "");
    let said = place.glovebox(["run", "empty.py"]);
    assert_eq!(said.to_string(), "status 0\n");
    assert!(place.listed("results").is_empty());
}

#[test]
fn standard_input_reaches_the_program() {
    let place = with_sandbox();
    let input: Vec<u8> = (0..3_000_000u32).flat_map(u32::to_le_bytes).collect();
    let code = "import sys, hashlib; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())";
    let said = place.glovebox_reads(["run", "-c", code], &input);
    let digest = ring::digest::digest(&ring::digest::SHA256, &input);
    let hex: String = digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!((said.status, said.out.trim()), (0, hex.as_str()));
}

#[test]
fn a_program_need_not_read_its_input() {
    let place = with_sandbox();
    let said = place.glovebox_reads(["run", "-c", "print('done')"], &vec![b'x'; 5_000_000]);
    assert_eq!((said.status, said.out.as_str()), (0, "done\n"));
}

#[test]
fn output_passes_through_byte_for_byte() {
    let place = with_sandbox();
    let code = "import os\nfor i in range(64): os.write(1, bytes(range(256)) * 4096)";
    let mut child = place.command(["run", "-c", code]).spawn().unwrap();
    let mut bytes = Vec::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_end(&mut bytes)
        .unwrap();
    assert_eq!(said(child).status, 0);
    let expected: Vec<u8> = (0..64 * 4096).flat_map(|_| 0..=255u8).collect();
    assert!(
        bytes == expected,
        "{} bytes came, not as they were written",
        bytes.len()
    );
}

#[test]
fn output_comes_as_it_is_written() {
    let place = with_sandbox();
    // The program waits for an answer to what it has written.
    let code = "print('question', flush=True)\nprint('answer:', input())";
    let mut child = place
        .command(["run", "-c", code])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 9];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut first)
        .unwrap();
    assert_eq!(&first, b"question\n");
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, b"yes\n").unwrap();
    drop(stdin);
    assert_eq!(said(child).out, "answer: yes\n");
}

#[test]
fn variables_can_be_set() {
    let place = with_sandbox();
    let code = "import os; print(repr(os.environ['A']), os.environ['B'])";
    let said = place.glovebox(["run", "-c", code, "--env", "A=b=c \"d\"", "--env", "B=ü"]);
    assert_eq!((said.status, said.out.as_str()), (0, "'b=c \"d\"' ü\n"));
    let said = place.glovebox(["run", "-c", "1", "--env", "LD_PRELOAD=/x"]);
    assert_eq!(said.status, 125);
    assert!(
        said.err.contains("the variable `LD_PRELOAD` cannot be set"),
        "{said}"
    );
}

#[test]
fn processes_of_its_own_work() {
    let place = with_sandbox();
    place.file(
        "pool.py",
        "from multiprocessing import Pool\n\
         def square(n): return n * n\n\
         if __name__ == '__main__':\n\
         \x20   with Pool(2) as pool: print(sum(pool.map(square, range(100))))\n",
    );
    let said = place.glovebox(["run", "pool.py"]);
    assert_eq!(said.to_string(), "status 0\n-- out\n328350\n");
}

#[test]
fn a_figure_that_is_shown_is_saved() {
    let place = with_sandbox();
    let code = "import matplotlib.pyplot as plt; plt.plot([1, 3, 2]); plt.show()";
    let said = place.glovebox(["run", "-c", code, "--quiet"]);
    assert_eq!(said.to_string(), "status 0\n");
    assert_eq!(place.listed("results"), ["figure-1.png"]);
}
