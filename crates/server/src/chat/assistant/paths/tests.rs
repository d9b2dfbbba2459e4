//! What is taken out, and what is left alone.

use super::*;

const CASES: [(&str, &str); 58] = [
    ("Saved as /workspace/deck.pptx.", "Saved as deck.pptx."),
    ("See `/workspace/out/a b.csv`!", "See `a b.csv`!"),
    ("(/workspace/a.csv, /tmp/b.csv)", "(a.csv, b.csv)"),
    ("**/workspace/ä.xlsx**", "**ä.xlsx**"),
    ("sandbox:/mnt/data/x.pdf is there", "x.pdf is there"),
    ("file:///workspace/My%20Report.docx", "My Report.docx"),
    ("FILE:///workspace/x.csv", "x.csv"),
    (
        "[Download the deck](sandbox:/workspace/deck.pptx)",
        "Download the deck (deck.pptx)",
    ),
    (
        "[deck.pptx](sandbox:/workspace/deck.pptx) is ready",
        "deck.pptx is ready",
    ),
    ("[Get deck.pptx](/workspace/deck.pptx)", "Get deck.pptx"),
    ("![chart](/workspace/chart.png)\n", "chart (chart.png)\n"),
    ("![](sandbox:/workspace/chart.png)", "chart.png"),
    ("[a](</workspace/my file.csv>)", "a (my file.csv)"),
    ("[a](/workspace/x.csv \"title\")", "a (x.csv)"),
    ("[deck](deck.pptx)", "deck (deck.pptx)"),
    ("[`/workspace/x.csv`](/workspace/x.csv)", "x.csv"),
    ("in /workspace", "in the working folder"),
    ("in /workspace/ now", "in the working folder now"),
    ("[here](sandbox:/workspace/)", "here"),
    ("/mnt/data/sub/dir/y.json: done", "y.json: done"),
    // What is no path of a sandbox stays.
    (
        "https://example.com/workspace/a.csv",
        "https://example.com/workspace/a.csv",
    ),
    (
        "[docs](https://example.com/tmp/x)",
        "[docs](https://example.com/tmp/x)",
    ),
    ("a/workspace/b", "a/workspace/b"),
    ("/workspaces/a", "/workspaces/a"),
    (
        "df[['a', 'b']] and [x] and [y](",
        "df[['a', 'b']] and [x] and [y](",
    ),
    ("[1]: note\n[2] more", "[1]: note\n[2] more"),
    ("- [ ] to do\n- [x] done", "- [ ] to do\n- [x] done"),
    (
        "profile: fine, sandbox: fine",
        "profile: fine, sandbox: fine",
    ),
    ("either/or and 1/2 and /tm", "either/or and 1/2 and /tm"),
    ("wow! great!", "wow! great!"),
    (
        "[jump](#part) [mail](mailto:a@b)",
        "[jump](#part) [mail](mailto:a@b)",
    ),
    ("the file: x.csv", "the file: x.csv"),
    ("100 % of /workspace/100%.csv", "100 % of 100%.csv"),
    ("世界 /workspace/世界.csv 🙂", "世界 世界.csv 🙂"),
    // Code is no link, and a machine of somebody's own has folders, too.
    ("handlers[name](event)", "handlers[name](event)"),
    ("rows[0](1) f()[0](a.csv)", "rows[0](1) f()[0](a.csv)"),
    ("[](auto x) { return x; }", "[](auto x) { return x; }"),
    ("[x](1.5) [y](z) [](a.csv)", "[x](1.5) [y](z) [](a.csv)"),
    ("rm -rf /tmp/* or /tmp", "rm -rf /tmp/* or /tmp"),
    ("rm -rf /workspace/* now", "rm -rf /workspace/* now"),
    ("**/workspace/**", "**the working folder**"),
    ("open('/tmp/a')", "open('/tmp/a')"),
    ("path=\"/tmp/a\" in /tmp/a", "path=\"/tmp/a\" in a"),
    ("run `rm -rf /tmp/x`", "run `rm -rf /tmp/x`"),
    (
        "`open('/workspace/a.csv')` in `/workspace`",
        "`open('/workspace/a.csv')` in the working folder",
    ),
    ("`/workspace/*.csv` `/tmp`", "`/workspace/*.csv` `/tmp`"),
    ("`` a ` /workspace/b `` c", "`` a ` /workspace/b `` c"),
    ("`a[b](c.csv)`", "`a[b](c.csv)`"),
    ("a ` b /workspace/c.csv", "a ` b c.csv"),
    ("a ` b\n\n/workspace/c` d", "a ` b\n\nc` d"),
    ("```/workspace/a.csv``` is it", "```a.csv``` is it"),
    (
        "```python\nf[a](b.csv)\nopen('/workspace/a')\n```\n/workspace/a",
        "```python\nf[a](b.csv)\nopen('/workspace/a')\n```\na",
    ),
    (
        "- so:\n  ```sh\n  ls /workspace/x `\n  ```\n/workspace/x",
        "- so:\n  ```sh\n  ls /workspace/x `\n  ```\nx",
    ),
    (
        "````\n```\n/tmp/a\n```\n````\n/tmp/a",
        "````\n```\n/tmp/a\n```\n````\na",
    ),
    ("~~~\n/tmp/a\n~~~\n/tmp/a", "~~~\n/tmp/a\n~~~\na"),
    (
        "```\n/workspace/a\n```b\n/tmp/c",
        "```\n/workspace/a\n```b\n/tmp/c",
    ),
    ("~5 of ~/workspace/a", "~5 of ~/workspace/a"),
    ("```sh", "```sh"),
];

#[test]
fn what_code_has_said_stays_code() {
    for (said, shown) in [
        ("open('/workspace/out/a.csv')", "open('out/a.csv')"),
        ("os.chdir('/workspace')", "os.chdir('.')"),
        ("rm -rf /workspace/* /workspace/", "rm -rf ./* ./"),
        ("open('/mnt/data/.x')", "open('.x')"),
        ("/tmp/a /workspaces/b", "/tmp/a /workspaces/b"),
        (
            "https://a.b/workspace/c //workspace/d",
            "https://a.b/workspace/c //workspace/d",
        ),
        (
            "table[key](/tmp/x) `[a](b.csv)`",
            "table[key](/tmp/x) `[a](b.csv)`",
        ),
        (
            "File \"/workspace/ä b.py\", line 1",
            "File \"ä b.py\", line 1",
        ),
        ("", ""),
    ] {
        assert_eq!(relative(said), shown, "{said}");
    }
}

#[test]
fn paths_become_names_and_nothing_else_changes() {
    for (said, shown) in CASES {
        assert_eq!(without_paths(said), shown, "{said}");
    }
}

#[test]
fn it_does_not_matter_where_the_pieces_are_cut() {
    for (said, shown) in CASES {
        let places: Vec<_> = said.char_indices().map(|(at, _)| at).collect();
        for at in &places {
            let mut filter = WithoutPaths::default();
            let mut clean = filter.push(&said[..*at]);
            clean.push_str(&filter.push(&said[*at..]));
            clean.push_str(&filter.end());
            assert_eq!(clean, shown, "{said} cut at {at}");
        }
        let mut filter = WithoutPaths::default();
        let mut clean = String::new();
        for c in said.chars() {
            clean.push_str(&filter.push(&c.to_string()));
        }
        clean.push_str(&filter.end());
        assert_eq!(clean, shown, "{said} letter by letter");
    }
}

#[test]
fn what_never_ends_is_not_held_for_ever() {
    let mut filter = WithoutPaths::default();
    let mut out = 0;
    for _ in 0..100 {
        out += filter.push(&format!("[{}", "x".repeat(99))).len();
    }
    assert!(out > 100 * 100 - 2 * MAX_HELD, "{out}");
    let mut filter = WithoutPaths::default();
    let long = format!("/workspace/{}", "x".repeat(3 * MAX_HELD));
    assert!(!filter.push(&long).contains("workspace"));
}
