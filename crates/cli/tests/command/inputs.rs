//! Files go in under their names, whatever those are.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use crate::support::with_sandbox;

/// Prints every file below the working folder: its bytes as a Python literal, and its size.
const LIST: &str = "
import os
for folder, _, names in sorted(os.walk(b'.')):
    for name in sorted(names):
        path = os.path.join(folder, name)
        print(path[2:], len(open(path, 'rb').read()))
";

#[test]
fn awkward_names_arrive_as_they_are() {
    let place = with_sandbox();
    let long = "n".repeat(251) + ".csv";
    let names = [
        OsStr::new("with space.csv"),
        OsStr::new("it's \"quoted\".csv"),
        OsStr::new("😀.csv"),
        OsStr::new("-rf"),
        OsStr::new(&long),
        OsStr::from_bytes(b"caf\xe9.csv"),
    ];
    let mut arguments: Vec<OsString> = ["run", "-q", "-c", LIST].map(OsString::from).to_vec();
    for (number, name) in names.iter().enumerate() {
        place.file(name, vec![b'x'; number]);
        let mut path = OsString::from("./");
        path.push(name);
        arguments.push(path);
    }
    let said = place.glovebox(arguments);
    assert_eq!(
        said.out,
        format!(
            "b'-rf' 3\nb'caf\\xe9.csv' 5\nb'it\\'s \"quoted\".csv' 1\nb'{long}' 4\n\
             b'with space.csv' 0\nb'\\xf0\\x9f\\x98\\x80.csv' 2\n"
        ),
        "{said}"
    );
    assert!(
        place.listed("results").is_empty(),
        "inputs that did not change are no results"
    );
}

#[test]
fn a_script_may_have_an_awkward_name() {
    let place = with_sandbox();
    place
        .file("-c", "import sys; print(sys.argv)")
        .file("it's ü.py", "import sys; print(sys.argv)");
    let said = place.glovebox(["run", "./-c"]);
    assert_eq!((said.status, said.out.as_str()), (0, "['./-c']\n"));
    let said = place.glovebox(["run", "it's ü.py"]);
    assert_eq!((said.status, said.out.as_str()), (0, "[\"it's ü.py\"]\n"));
}

#[test]
fn of_a_folder_everything_goes_in_but_links() {
    let place = with_sandbox();
    place
        .file("data/a.csv", "1")
        .file("data/deep/er/b.csv", "22")
        .file("c.csv", "333");
    std::os::unix::fs::symlink("/etc/passwd", place.path().join("data/link.csv")).unwrap();
    let said = place.glovebox(["run", "-c", LIST, "data", "c.csv"]);
    insta::assert_snapshot!(said.to_string(), @r"
    status 0
    -- out
    b'c.csv' 3
    b'data/a.csv' 1
    b'data/deep/er/b.csv' 2
    -- err
    left outside data/link.csv: it is a link or no regular file
    ");
}

#[test]
fn the_present_folder_is_laid_where_the_code_runs() {
    let place = with_sandbox();
    place.file("list.py", LIST).file("a.csv", "1");
    let said = place.glovebox(["run", "list.py", "."]);
    assert_eq!(
        said.out,
        format!("b'a.csv' 1\nb'list.py' {}\n", LIST.len()),
        "{said}"
    );
}

#[test]
fn a_file_of_the_largest_size_and_an_empty_one_go_in() {
    let place = with_sandbox();
    place
        .sparse("large.bin", 25 * 1024 * 1024)
        .file("empty.csv", "");
    let said = place.glovebox(["run", "-q", "-c", LIST, "large.bin", "empty.csv"]);
    assert_eq!(
        said.out, "b'empty.csv' 0\nb'large.bin' 26214400\n",
        "{said}"
    );
}

#[test]
fn nothing_else_of_this_machine_is_there() {
    let place = with_sandbox();
    place.file("mine.csv", "").file("secret.csv", "");
    let code = "import os; print(os.listdir(), os.getcwd(), os.path.exists('/home/root'))";
    let said = place.glovebox(["run", "-c", code, "mine.csv"]);
    assert_eq!(said.out, "['mine.csv'] /workspace False\n", "{said}");
}
