//! What a set-up does when it is killed, repeated, raced or meddled with.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;

use fs_err as fs;
use glovebox_runtime_embedded::tree::{LOCK, Programs, Progress, Setup, SetupError, Step, Trees};

/// Set in the process that a test starts to kill it: where to set up.
const KILLED: &str = "GLOVEBOX_TEST_KILLED_SET_UP";

#[expect(
    clippy::disallowed_methods,
    reason = "tests have no command line to take values from"
)]
fn variable(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name)
}

/// The folders of `PATH`.
pub(crate) fn search_path() -> Vec<PathBuf> {
    std::env::split_paths(&variable("PATH").unwrap_or_default()).collect()
}

/// The part of the lock for one package.
fn lock_of(package: &str) -> String {
    let from = LOCK.find(&format!("\n{package}==")).unwrap() + 1;
    let lines: Vec<&str> = LOCK[from..].lines().collect();
    let hashes = lines[1..]
        .iter()
        .take_while(|line| line.starts_with("    --hash="))
        .count();
    lines[..=hashes].join("\n") + "\n"
}

pub(crate) fn set_up(data: &Path, package: &str) -> Setup {
    fs::create_dir_all(data).unwrap();
    let office = crate::office::commands(data);
    let programs = Programs::in_folder(data);
    for path in [&programs.agent, &programs.exec, &programs.library] {
        if !path.exists() {
            fs::write(path, "program").unwrap();
        }
    }
    Setup {
        data: data.into(),
        programs,
        python: None,
        office: office.is_dir(),
        search: [office].into_iter().chain(search_path()).collect(),
        lock: lock_of(package),
    }
}

#[derive(Default)]
struct Steps(Vec<Step>);

impl Progress for Steps {
    fn begins(&mut self, step: Step) {
        self.0.push(step);
    }
    fn advances(&mut self, _done: usize, _total: usize) {}
    fn notes(&mut self, _note: &str) {}
}

pub(crate) fn ensure(setup: &Setup) -> (Result<Trees, SetupError>, Vec<Step>) {
    let mut steps = Steps::default();
    (setup.ensure(&mut steps), steps.0)
}

pub(crate) fn entries(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn a_tree_is_built_once_and_a_changed_file_is_named() {
    let data = tempfile::tempdir().unwrap();
    let setup = set_up(data.path(), "tabulate");
    let (trees, steps) = ensure(&setup);
    let trees = trees.unwrap();
    assert!(steps.contains(&Step::CopyPython));
    let (again, steps) = ensure(&setup);
    assert_eq!(again.unwrap(), trees);
    assert_eq!(steps, [], "nothing was to be done");

    let root = data.path().join(trees.layers.last().unwrap());
    let hosts = root.join("etc/hosts");
    let content = fs::read(&hosts).unwrap();
    fs::write(&hosts, &content).unwrap();
    let (again, steps) = ensure(&setup);
    assert_eq!(again.unwrap(), trees);
    assert_eq!(steps, [Step::Verify], "a touched tree is compared");
    assert_eq!(ensure(&setup).1, [], "and sealed again");

    fs::write(&hosts, content.to_ascii_uppercase()).unwrap();
    let error = ensure(&setup).0.unwrap_err();
    assert!(
        error.to_string().ends_with("etc/hosts has been changed"),
        "{error}"
    );
    assert!(
        error.fix().contains(root.to_str().unwrap()),
        "{}",
        error.fix()
    );

    // What the fix says helps.
    fs::remove_dir_all(&root).unwrap();
    assert_eq!(ensure(&setup).0.unwrap(), trees);
}

#[test]
fn another_lock_makes_another_tree() {
    let data = tempfile::tempdir().unwrap();
    let first = ensure(&set_up(data.path(), "tabulate")).0.unwrap();
    let second = ensure(&set_up(data.path(), "xlrd")).0.unwrap();
    assert_ne!(first.layers.last(), second.layers.last());
    first.verify_full(data.path()).unwrap();
}

#[test]
fn of_two_set_ups_at_once_one_builds_and_the_other_waits() {
    let data = tempfile::tempdir().unwrap();
    let setup = set_up(data.path(), "tabulate");
    let (first, second) = std::thread::scope(|scope| {
        let other = scope.spawn(|| ensure(&setup));
        (ensure(&setup), other.join().unwrap())
    });
    assert_eq!(first.0.unwrap(), second.0.unwrap());
    let built = [&first.1, &second.1]
        .iter()
        .filter(|steps| steps.contains(&Step::CopyPython))
        .count();
    assert_eq!(built, 1, "{:?} {:?}", first.1, second.1);
}

#[test]
fn a_package_that_is_not_the_locked_one_is_refused() {
    let data = tempfile::tempdir().unwrap();
    let mut setup = set_up(data.path(), "tabulate");
    let hash = setup.lock.find("sha256:").unwrap() + "sha256:".len();
    setup.lock.replace_range(hash..hash + 64, &"0".repeat(64));
    let error = ensure(&setup).0.unwrap_err();
    assert!(matches!(error, SetupError::Packages { .. }), "{error}");
    assert!(
        error.fix().contains("other files than the locked ones"),
        "{error}\n{}",
        error.fix()
    );
    assert!(
        entries(&data.path().join("trees"))
            .iter()
            .all(|name| name == ".lock")
    );
}

/// Tells its steps on standard output, for the test below to kill it at one of them.
struct Told;

impl Progress for Told {
    fn begins(&mut self, step: Step) {
        let mut out = std::io::stdout().lock();
        writeln!(out, "\nstep {step:?}").unwrap();
        out.flush().unwrap();
    }
    fn advances(&mut self, _done: usize, _total: usize) {}
    fn notes(&mut self, _note: &str) {}
}

/// Starts this very test in a process of its own, which only sets up, and kills it when a step
/// begins.
pub(crate) fn kill_at(step: Step, data: &Path) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "small::a_killed_set_up_leaves_no_half_tree",
            "--nocapture",
        ])
        .env(KILLED, data)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (tell, told) = mpsc::channel();
    let stdout = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let _ = tell.send(line);
        }
    });
    let wanted = format!("step {step:?}");
    let reached = told.iter().any(|line| line == wanted);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(reached, "the set-up ended before {wanted}");
    drop(told);
    reader.join().unwrap();
}

#[test]
fn a_killed_set_up_leaves_no_half_tree() {
    if let Some(data) = variable(KILLED) {
        set_up(Path::new(&data), "tabulate")
            .ensure(&mut Told)
            .unwrap();
        return;
    }
    let data = tempfile::tempdir().unwrap();
    let trees = data.path().join("trees");
    for step in [Step::Packages, Step::TryOut, Step::Manifest] {
        kill_at(step, data.path());
        let left: Vec<String> = entries(&trees)
            .into_iter()
            .filter(|name| name != ".lock" && !name.starts_with(".building-"))
            .collect();
        assert_eq!(left, Vec::<String>::new(), "after a kill at {step:?}");
    }
    let setup = set_up(data.path(), "tabulate");
    let finished = ensure(&setup).0.unwrap();
    finished.verify_full(data.path()).unwrap();
    let left: Vec<String> = entries(&trees)
        .into_iter()
        .filter(|name| name.starts_with(".building-"))
        .collect();
    assert_eq!(left, Vec::<String>::new(), "leftovers are removed");
}
