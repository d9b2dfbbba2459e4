//! What may leave a sandbox.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod support;

use std::collections::BTreeMap;

use glovebox_protocol::artifact::{LeftOutReason, Sweep, Swept};
use glovebox_protocol::error::ErrorCode;
use glovebox_protocol::file::FileName;
use support::{TestAgent, name, program, run};

fn reasons(swept: &Swept) -> BTreeMap<String, LeftOutReason> {
    let named = swept
        .left_out
        .iter()
        .map(|left| (left.name.for_display(), left.reason));
    named.collect()
}

fn names(swept: &Swept) -> Vec<String> {
    swept
        .artifacts
        .iter()
        .map(|artifact| artifact.name.for_display())
        .collect()
}

async fn python(test: &TestAgent, script: &str) {
    let python = glovebox_testkit::toolbox_python().unwrap();
    let done = run(
        &test.client,
        &program(&[python.to_str().unwrap(), "-c", script]),
    )
    .await
    .unwrap();
    assert!(done.ended().outcome.is_success(), "{}", done.errors());
}

#[tokio::test]
async fn real_files_of_every_type_leave() {
    let test = TestAgent::start().await;
    python(
        &test,
        r#"
import openpyxl, xlsxwriter, docx, pptx, json, io
from PIL import Image
from reportlab.pdfgen import canvas
openpyxl.Workbook().save('a.xlsx')
w = xlsxwriter.Workbook('b.xlsx'); w.add_worksheet().write(0, 0, 1); w.close()
docx.Document().save('c.docx')
pptx.Presentation().save('d.pptx')
c = canvas.Canvas('e.pdf'); c.drawString(9, 9, 'x'); c.save()
image = Image.new('RGB', (4, 4))
for ending in ['png', 'jpg', 'jpeg', 'gif', 'webp']: image.save('f.' + ending)
open('g.svg', 'w').write('<svg xmlns="http://www.w3.org/2000/svg"/>')
open('h.csv', 'w', encoding='utf-16').write('a,b\n')
for ending in ['csv', 'tsv', 'json', 'txt', 'md', 'html', 'TXT']: open('deep-' + ending + '.' + ending, 'w').write('[1]')
import os; os.makedirs('x/y'); open('x/y/z \N{PENGUIN}.txt', 'w').write('')
"#,
    )
    .await;
    let swept = test.client.sweep(&Sweep::default()).await.unwrap();
    assert_eq!(swept.left_out, [], "{:?}", names(&swept));
    assert_eq!(swept.artifacts.len(), 20);
    assert!(swept.artifacts.is_sorted_by(|a, b| a.name < b.name));
    for artifact in &swept.artifacts {
        let mut bytes = Vec::new();
        let got = test
            .client
            .get(&artifact.name, &mut bytes, 1 << 30)
            .await
            .unwrap();
        assert_eq!((got.bytes, got.sha256), (artifact.bytes, artifact.sha256));
    }
    assert_eq!(
        swept.artifacts[0].media_type,
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    );
}

#[tokio::test]
async fn what_is_not_what_it_says_stays() {
    let test = TestAgent::start().await;
    let put = |path: &str, bytes: &[u8]| fs_err::write(test.workspace.join(path), bytes).unwrap();
    put("page.png", b"<html>");
    put("zip.xlsx", b"PK\x03\x04 and no more");
    put("latin.csv", b"caf\xe9");
    put("binary.txt", b"a\0b");
    put("program.sh", b"#!/bin/sh");
    put("no ending", b"");
    put(".hidden.txt", b"");
    put("ok.txt", b"");
    fs_err::create_dir(test.workspace.join(".cache")).unwrap();
    put(".cache/inner.txt", b"");
    fs_err::os::unix::fs::symlink("ok.txt", test.workspace.join("link.txt")).unwrap();
    fs_err::os::unix::fs::symlink("/etc", test.workspace.join("etc")).unwrap();
    fs_err::os::unix::fs::symlink("/proc/self/environ", test.workspace.join("env.txt")).unwrap();
    put("one.txt", b"");
    fs_err::hard_link(
        test.workspace.join("one.txt"),
        test.workspace.join("two.txt"),
    )
    .unwrap();
    let fifo = test.workspace.join("fifo.txt");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(test.workspace.join("s.txt")).unwrap();
    let swept = test.client.sweep(&Sweep::default()).await.unwrap();
    assert_eq!(names(&swept), ["ok.txt"]);
    use LeftOutReason as R;
    let expected = [
        (".cache", R::Hidden),
        (".hidden.txt", R::Hidden),
        ("binary.txt", R::ContentMismatch),
        ("env.txt", R::Symlink),
        ("etc", R::Symlink),
        ("fifo.txt", R::Special),
        ("latin.csv", R::ContentMismatch),
        ("link.txt", R::Symlink),
        ("no ending", R::TypeNotAllowed),
        ("one.txt", R::HardLink),
        ("page.png", R::ContentMismatch),
        ("program.sh", R::TypeNotAllowed),
        ("s.txt", R::Special),
        ("two.txt", R::HardLink),
        ("zip.xlsx", R::ContentMismatch),
    ];
    let expected: BTreeMap<_, _> = expected
        .map(|(name, reason)| (name.to_owned(), reason))
        .into();
    assert_eq!(reasons(&swept), expected);
    assert!(swept.left_out.iter().all(|left| !left.message.is_empty()));
}

#[tokio::test]
async fn inputs_leave_only_when_they_changed() {
    let test = TestAgent::start().await;
    for file in ["same.csv", "changed.csv", "copied.csv", "rewritten.csv"] {
        test.client
            .put_bytes(&name(file), "a,b\n".into())
            .await
            .unwrap();
    }
    fs_err::write(test.workspace.join("changed.csv"), "a,c\n").unwrap();
    fs_err::copy(
        test.workspace.join("copied.csv"),
        test.workspace.join("copy.csv"),
    )
    .unwrap();
    fs_err::write(test.workspace.join("rewritten.csv"), "a,b\n").unwrap();
    test.client
        .put_bytes(&name("changed.py"), "1".into())
        .await
        .unwrap();
    test.client
        .put_bytes(&name("same.py"), "1".into())
        .await
        .unwrap();
    fs_err::write(test.workspace.join("changed.py"), "2").unwrap();
    let swept = test.client.sweep(&Sweep::default()).await.unwrap();
    assert_eq!(names(&swept), ["changed.csv", "copy.csv"]);
    assert_eq!(reasons(&swept)["same.py"], LeftOutReason::UnchangedInput);
    assert_eq!(reasons(&swept)["changed.py"], LeftOutReason::TypeNotAllowed);
    fs_err::remove_file(test.workspace.join("changed.py")).unwrap();
    let swept = test.client.sweep(&Sweep::default()).await.unwrap();
    assert!(
        swept
            .left_out
            .iter()
            .all(|left| left.reason == LeftOutReason::UnchangedInput)
    );
    // Inputs that did not change take no place from what was made.
    let one = Sweep {
        max_files: 1,
        ..Sweep::default()
    };
    let swept = test.client.sweep(&one).await.unwrap();
    assert_eq!(names(&swept), ["changed.csv"]);
    assert_eq!(reasons(&swept)["same.csv"], LeftOutReason::UnchangedInput);
    assert_eq!(reasons(&swept)["copy.csv"], LeftOutReason::TooManyFiles);
}

#[tokio::test]
async fn limits_are_kept_and_the_answer_is_always_the_same() {
    let test = TestAgent::start().await;
    for number in 0..40 {
        fs_err::write(test.workspace.join(format!("{number:02}.txt")), [b'x'; 100]).unwrap();
    }
    let first = test.client.sweep(&Sweep::default()).await.unwrap();
    assert_eq!(first.artifacts.len(), 25);
    assert_eq!(names(&first)[24], "24.txt");
    assert!(
        first
            .left_out
            .iter()
            .all(|left| left.reason == LeftOutReason::TooManyFiles)
    );
    assert!(first.left_out[0].message.contains("25 files"));
    assert_eq!(test.client.sweep(&Sweep::default()).await.unwrap(), first);

    fs_err::write(test.workspace.join("00.txt"), [b'x'; 1000]).unwrap();
    let small = Sweep {
        max_bytes: 950,
        ..Sweep::default()
    };
    let swept = test.client.sweep(&small).await.unwrap();
    assert_eq!(names(&swept)[..2], ["01.txt", "02.txt"]);
    assert_eq!(swept.artifacts.len(), 9);
    assert_eq!(reasons(&swept)["00.txt"], LeftOutReason::TooManyBytes);
}

#[tokio::test]
async fn only_types_that_can_be_told_apart_may_be_asked_for() {
    let test = TestAgent::start().await;
    fs_err::write(test.workspace.join("a.txt"), "").unwrap();
    fs_err::write(test.workspace.join("a.csv"), "").unwrap();
    let only = |types: &[&str]| Sweep {
        types: types.iter().map(|name| (*name).into()).collect(),
        ..Sweep::default()
    };
    let swept = test.client.sweep(&only(&["csv"])).await.unwrap();
    assert_eq!(names(&swept), ["a.csv"]);
    let error = test.client.sweep(&only(&["csv", "exe"])).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::Invalid));
}

#[tokio::test]
async fn a_flood_of_files_costs_bounded_time_and_a_bounded_answer() {
    let test = TestAgent::start().await;
    python(
        &test,
        "import os\nfor folder in range(20):\n    os.mkdir(str(folder))\n    for n in range(1500): open(f'{folder}/{n}.txt', 'w').close()",
    )
    .await;
    let swept = test.client.sweep(&Sweep::default()).await.unwrap();
    assert_eq!(swept.artifacts.len(), 25);
    assert_eq!(swept.left_out.len(), 1000);
    assert_eq!(swept.more_left_out, 30_000 - 1025);
    let mut after = None;
    let mut seen = 0;
    loop {
        let listing = test.client.list(after.as_ref()).await.unwrap();
        seen += listing.entries.len();
        after = listing.entries.last().map(|entry| entry.name.clone());
        if !listing.truncated {
            break;
        }
    }
    assert_eq!(seen, 30_020);
}

#[tokio::test]
async fn a_sparse_giant_is_not_read() {
    let test = TestAgent::start().await;
    for file in ["giant.txt", "giant.xlsx"] {
        let file = fs_err::File::create(test.workspace.join(file)).unwrap();
        file.set_len(1 << 40).unwrap();
    }
    let swept = test.client.sweep(&Sweep::default()).await.unwrap();
    assert!(
        swept
            .left_out
            .iter()
            .all(|left| left.reason == LeftOutReason::TooManyBytes)
    );
    assert_eq!(swept.left_out.len(), 2);
    let giant = FileName::from_bytes(&b"giant.txt"[..]).unwrap();
    let error = test.client.get_bytes(&giant, u64::MAX).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::Conflict));
}
