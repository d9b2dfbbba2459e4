use std::os::unix::fs::symlink;

use super::*;

fn name(text: &str) -> FileName {
    FileName::from_bytes(text).unwrap()
}

fn save(results: &Results, name: &FileName, bytes: &[u8]) -> Result<Saved, Failure> {
    let mut draft = results.draft()?;
    draft.add(bytes)?;
    draft.publish(name)
}

fn listed(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs_err::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_file_that_is_there_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("new/out");
    let results = Results::at(&out).unwrap();
    assert!(!out.exists());
    let report = name("report.xlsx");
    let saved = [&b"one"[..], b"two", b"two", b"one", b"three"]
        .map(|bytes| save(&results, &report, bytes).unwrap());
    let told: Vec<_> = saved
        .iter()
        .map(|saved| {
            (
                saved.path.file_name().unwrap().to_str().unwrap(),
                &saved.how,
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("report.xlsx", &How::New),
            ("report-2.xlsx", &How::Renamed),
            ("report-2.xlsx", &How::Unchanged),
            ("report.xlsx", &How::Unchanged),
            ("report-3.xlsx", &How::Renamed),
        ]
    );
    assert_eq!(fs_err::read(out.join("report.xlsx")).unwrap(), b"one");
    assert_eq!(
        listed(&out),
        ["report-2.xlsx", "report-3.xlsx", "report.xlsx"]
    );
}

#[test]
fn links_in_the_folder_are_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (out, elsewhere) = (folder.path().join("out"), folder.path().join("elsewhere"));
    fs_err::create_dir_all(&out).unwrap();
    fs_err::create_dir_all(&elsewhere).unwrap();
    symlink(&elsewhere, out.join("charts")).unwrap();
    symlink(elsewhere.join("victim.csv"), out.join("data.csv")).unwrap();
    let results = Results::at(&out).unwrap();
    let chart = save(&results, &name("charts/a.png"), b"png").unwrap();
    assert_eq!(chart.path, out.join("charts-a.png"));
    assert_eq!(chart.how, How::Renamed);
    let data = save(&results, &name("data.csv"), b"csv").unwrap();
    assert_eq!(data.path, out.join("data-2.csv"));
    assert!(listed(&elsewhere).is_empty());
}

#[test]
fn a_draft_that_is_dropped_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let results = Results::at(folder.path()).unwrap();
    let mut draft = results.draft().unwrap();
    draft.add(b"half").unwrap();
    drop(draft);
    assert!(listed(folder.path()).is_empty());
}

#[test]
fn a_hidden_temporary_file_serves_where_there_are_no_unnamed_ones() {
    let folder = tempfile::tempdir().unwrap();
    let results = Results::at(folder.path()).unwrap();
    for (bytes, expected) in [
        (&b"one"[..], How::New),
        (b"two", How::Renamed),
        (b"one", How::Unchanged),
    ] {
        let mut draft = results.draft().unwrap();
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR;
        let part = rustix::fs::openat(&draft.folder, ".part", flags, Mode::from_raw_mode(0o600));
        draft.file = part.unwrap().into();
        draft.temporary = Some(".part".into());
        draft.add(bytes).unwrap();
        assert_eq!(draft.publish(&name("a.csv")).unwrap().how, expected);
    }
    assert_eq!(listed(folder.path()), ["a-2.csv", "a.csv"]);
}

#[test]
fn a_file_is_no_results_folder() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let below = file.path().join("out");
    for path in [file.path(), below.as_path()] {
        let failure = Results::at(path).unwrap_err();
        assert!(
            failure.sentence().starts_with("cannot save results in "),
            "{failure}"
        );
        assert_eq!(failure.exit_status(), 125);
    }
}

#[test]
fn folders_are_made_as_the_program_had_them() {
    let folder = tempfile::tempdir().unwrap();
    let results = Results::at(folder.path()).unwrap();
    let saved = save(&results, &name("charts/2024/a.png"), b"png").unwrap();
    assert_eq!(saved.path, folder.path().join("charts/2024/a.png"));
    assert_eq!(saved.how, How::New);
}
