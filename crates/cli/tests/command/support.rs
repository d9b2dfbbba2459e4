//! Runs `glovebox` as a person would, in a folder of its own.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A folder in which `glovebox` is run.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

/// What a command printed and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file, with the folders above it.
    pub(crate) fn file(&self, name: impl AsRef<OsStr>, content: impl AsRef<[u8]>) -> &Self {
        let path = self.path().join(name.as_ref());
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, content).unwrap();
        self
    }

    /// A file of `bytes` bytes that takes no room.
    pub(crate) fn sparse(&self, name: &str, bytes: u64) -> &Self {
        let file = fs_err::File::create(self.path().join(name)).unwrap();
        file.set_len(bytes).unwrap();
        self
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs_err::read_to_string(self.path().join(name)).unwrap()
    }

    /// Everything below a folder of this place, sorted; nothing where it is not there.
    pub(crate) fn listed(&self, folder: &str) -> Vec<String> {
        fn below(folder: &Path, prefix: &str, names: &mut Vec<String>) {
            let Ok(entries) = fs_err::read_dir(folder) else {
                return;
            };
            for entry in entries.map(Result::unwrap) {
                let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
                if entry.file_type().unwrap().is_dir() {
                    below(&entry.path(), &format!("{name}/"), names);
                } else {
                    names.push(name);
                }
            }
        }
        let mut names = Vec::new();
        below(&self.path().join(folder), "", &mut names);
        names.sort();
        names
    }

    /// `glovebox` with these arguments, not started yet.
    pub(crate) fn command<I, S>(&self, arguments: I) -> Command
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let mut command = Command::new(env!("CARGO_BIN_EXE_glovebox"));
        command
            .args(arguments)
            .current_dir(self.path())
            .env("GLOVEBOX_DATA", data_folder())
            // Help is as wide as it is everywhere.
            .env_remove("COLUMNS")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs `glovebox` to its end.
    pub(crate) fn glovebox<I, S>(&self, arguments: I) -> Said
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        said(self.command(arguments).spawn().unwrap())
    }

    /// The same with something on standard input.
    pub(crate) fn glovebox_reads<I, S>(&self, arguments: I, input: &[u8]) -> Said
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        let writer = std::thread::spawn(move || {
            // The program need not read it all.
            let _ = stdin.write_all(&input);
        });
        let said = said(child);
        writer.join().unwrap();
        said
    }
}

/// Waits for a command's end.
pub(crate) fn said(child: Child) -> Said {
    let output = child.wait_with_output().unwrap();
    let status = match output.status.code() {
        Some(code) => code,
        None => panic!("glovebox was ended by a signal: {}", output.status),
    };
    Said {
        status,
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

impl std::fmt::Display for Said {
    /// For snapshots.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "status {}", self.status)?;
        for (name, text) in [("out", &self.out), ("err", &self.err)] {
            if !text.is_empty() {
                write!(f, "-- {name}\n{text}")?;
            }
        }
        Ok(())
    }
}

/// The data folder of all tests: kept, so that the tree is built once.
fn data_folder() -> PathBuf {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests are told by make where the data are"
    )]
    let given = std::env::var_os("GLOVEBOX_TEST_DATA");
    given.map_or_else(
        || Path::new(env!("CARGO_TARGET_TMPDIR")).join("../test-data"),
        PathBuf::from,
    )
}

/// A place for tests that make sandboxes. The tree they stand on is made by the command itself
/// where it is not there.
pub(crate) fn with_sandbox() -> Place {
    let beside = Path::new(env!("CARGO_BIN_EXE_glovebox")).parent().unwrap();
    for program in [
        "glovebox-launcher",
        "glovebox-exec",
        "glovebox-agent",
        "libglovebox_template.so",
    ] {
        assert!(
            beside.join(program).is_file(),
            "{program} is not built; run `make build` first"
        );
    }
    Place::new()
}
