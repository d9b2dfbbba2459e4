//! What the program saves comes out, and nothing that was there is lost.

use crate::support::with_sandbox;

fn saving(content: &str) -> String {
    format!("open('report.csv', 'w').write({content:?})")
}

#[test]
fn a_file_that_is_there_is_never_overwritten() {
    let place = with_sandbox();
    let mut told = String::new();
    for content in ["a\n", "bb\n", "bb\n", "a\n"] {
        told += &place.glovebox(["run", "-c", &saving(content)]).to_string();
    }
    insta::assert_snapshot!(told, @r"
    status 0
    -- err
    saved results/report.csv (2 bytes)
    status 0
    -- err
    saved results/report-2.csv (3 bytes); report.csv was taken
    status 0
    -- err
    unchanged results/report-2.csv (3 bytes)
    status 0
    -- err
    unchanged results/report.csv (2 bytes)
    ");
    assert_eq!(place.listed("results"), ["report-2.csv", "report.csv"]);
    assert_eq!(place.read("results/report.csv"), "a\n");
}

#[test]
fn what_stays_is_named_with_the_reason() {
    let place = with_sandbox();
    place.file("in.csv", "1");
    let code = "
import os
os.makedirs('charts/deep'); open('charts/deep/a.csv', 'w').write('1')
open('program.exe', 'w').write('x')
open('.hidden.csv', 'w').write('x')
open('picture.png', 'w').write('no picture')
os.symlink('/etc/passwd', 'link.csv')
os.link('charts/deep/a.csv', 'hard.csv')
os.mkfifo('pipe.csv')
";
    let said = place.glovebox(["run", "-c", code, "in.csv"]);
    assert_eq!(said.status, 0, "{said}");
    for (name, why) in [
        (".hidden.csv", "hidden"),
        ("link.csv", "link"),
        ("hard.csv", "name"),
        ("picture.png", "content"),
        ("pipe.csv", ""),
        ("program.exe", ".exe"),
    ] {
        let line = said
            .err
            .lines()
            .find(|line| line.starts_with(&format!("left out {name}: ")));
        assert!(
            line.is_some_and(|line| line.contains(why)),
            "{name} is not named\n{said}"
        );
    }
    assert!(!said.err.contains("in.csv"), "{said}");
    assert!(place.listed("results").is_empty());
}

#[test]
fn folders_and_awkward_names_come_out() {
    let place = with_sandbox();
    let code = "
import os
os.makedirs('charts/2024')
for name in [b'charts/2024/a b.csv', '😀 \"q\".csv'.encode(), b'-rf.csv', b'caf\\xe9.csv', b'a\\x1b[2J.csv']:
    open(name, 'w').write('1')
";
    let said = place.glovebox(["run", "-c", code]);
    assert_eq!(said.status, 0, "{said}");
    assert_eq!(
        place.listed("results"),
        [
            "-rf.csv",
            "a_[2J.csv",
            "caf_.csv",
            "charts/2024/a b.csv",
            "😀 \"q\".csv"
        ]
    );
    assert!(!said.err.contains('\x1b'), "{said}");
}

#[test]
fn what_a_failed_program_saved_is_collected_too() {
    let place = with_sandbox();
    let code = format!("{}; raise SystemExit(9)", saving("1"));
    let said = place.glovebox(["run", "-c", &code, "--out", "new/folder"]);
    assert_eq!(said.status, 9, "{said}");
    assert_eq!(place.listed("new/folder"), ["report.csv"]);
}

#[test]
fn a_link_in_the_results_folder_is_not_followed() {
    let place = with_sandbox();
    place.file("victim.csv", "precious").file("results/x", "");
    std::os::unix::fs::symlink("../victim.csv", place.path().join("results/report.csv")).unwrap();
    let said = place.glovebox(["run", "-c", &saving("1")]);
    assert!(said.err.contains("saved results/report-2.csv"), "{said}");
    assert_eq!(place.read("victim.csv"), "precious");
}

#[test]
fn quiet_means_quiet() {
    let place = with_sandbox();
    let said = place.glovebox(["run", "-q", "-c", &saving("1")]);
    assert_eq!(said.to_string(), "status 0\n");
    assert_eq!(place.listed("results"), ["report.csv"]);
}
