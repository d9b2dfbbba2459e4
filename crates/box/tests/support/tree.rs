//! A small data folder: one layer with the programs under test, one with a shell and what it
//! needs, copied from the host.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// The layers, topmost first.
pub(crate) const LAYERS: [&str; 2] = ["layers/runtime-test", "trees/root-test"];

/// Programs of the host that the tree has.
const PROGRAMS: [&str; 20] = [
    "bash", "sh", "cat", "ls", "id", "sleep", "mkdir", "dd", "true", "env", "grep", "head", "kill",
    "cp", "mv", "chmod", "mkfifo", "ln", "truncate", "rm",
];

/// Folders on which something is mounted or that programs expect.
const FOLDERS: [&str; 9] = [
    "workspace",
    "tmp",
    "dev",
    "proc",
    "mnt",
    "etc",
    "usr/bin",
    "opt/glovebox/bin",
    "home",
];

/// Makes a data folder that everyone can read.
pub(crate) fn data() -> TempDir {
    let data = tempfile::Builder::new()
        .prefix("box-")
        .permissions(std::fs::Permissions::from_mode(0o755))
        .tempdir()
        .unwrap();
    let root = data.path().join(LAYERS[1]);
    fs_err::create_dir_all(root.parent().unwrap()).unwrap();
    fs_err::os::unix::fs::symlink(shared_root(), &root).unwrap();
    let programs = data.path().join(LAYERS[0]).join("opt/glovebox/bin");
    fs_err::create_dir_all(&programs).unwrap();
    install(&stand_in_agent(), &programs.join("glovebox-agent"), 0o755);
    install(
        Path::new(env!("CARGO_BIN_EXE_glovebox-exec")),
        &programs.join("glovebox-exec"),
        0o755,
    );
    template(&data.path().join(LAYERS[0]), &programs);
    data
}

/// The library of templates, and a stand-in for the Python that loads it.
fn template(layer: &Path, programs: &Path) {
    let name = "libglovebox_template.so";
    let library = Path::new(env!("CARGO_BIN_EXE_glovebox-exec")).with_file_name(name);
    assert!(
        library.exists(),
        "{} is missing: build it with `make build`",
        library.display()
    );
    install(&library, &programs.join(name), 0o755);
    copy_libraries(layer, &library);
    let module = layer.join(python_library()).join("glovebox_kernel");
    fs_err::create_dir_all(&module).unwrap();
    fs_err::write(module.join("__init__.py"), "").unwrap();
    fs_err::write(module.join("template.py"), include_str!("template.py")).unwrap();
    // What it is told, if anything.
    fs_err::create_dir_all(layer.join("opt/glovebox/share")).unwrap();
}

/// The folder of Python's modules in a box, relative to its root.
fn python_library() -> PathBuf {
    let libraries = shared_root().join("opt/python/lib");
    let entries = fs_err::read_dir(libraries).unwrap().flatten();
    let mut names = entries.map(|entry| entry.file_name());
    let name = names.find(|name| name.to_string_lossy().starts_with("python3."));
    Path::new("opt/python/lib").join(name.unwrap())
}

/// The tree with shell and Python, which all tests share: made once per boot of the machine, or
/// when this file changes.
fn shared_root() -> PathBuf {
    let version = {
        let mut hasher = std::hash::DefaultHasher::new();
        std::hash::Hash::hash(include_str!("tree.rs"), &mut hasher);
        std::hash::Hasher::finish(&hasher)
    };
    let boot = fs_err::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let root = super::scratch(&format!("root-{version:x}-{}", boot.trim()));
    let lock = fs_err::File::create(super::scratch("root.lock")).unwrap();
    lock.lock().unwrap();
    if root.exists() {
        return root;
    }
    let unfinished = root.with_extension("unfinished");
    for folder in FOLDERS {
        fs_err::create_dir_all(unfinished.join(folder)).unwrap();
    }
    for name in PROGRAMS {
        let to = unfinished.join("usr/bin").join(name);
        copy_program(&unfinished, &find(name), &to);
    }
    let bin = unfinished.join("bin");
    if !bin.is_symlink() {
        fs_err::os::unix::fs::symlink("usr/bin", bin).unwrap();
    }
    python(&unfinished);
    fs_err::rename(unfinished, &root).unwrap();
    root
}

/// The example beside this test program.
fn stand_in_agent() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let built = own.parent().unwrap().parent().unwrap();
    let path = built.join("examples/stand_in_agent");
    assert!(
        path.exists(),
        "{} is missing: build it with `cargo build -p glovebox-box --examples`",
        path.display()
    );
    path
}

fn install(from: &Path, to: &Path, mode: u32) {
    fs_err::copy(from, to).unwrap();
    fs_err::set_permissions(to, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn find(name: &str) -> PathBuf {
    ["/usr/bin", "/bin"]
        .map(|folder| Path::new(folder).join(name))
        .into_iter()
        .find(|path| path.exists())
        .unwrap_or_else(|| panic!("the host has no {name}"))
}

/// Copies a program and the libraries that it is linked with.
pub(crate) fn copy_program(root: &Path, from: &Path, to: &Path) {
    install(&fs_err::canonicalize(from).unwrap(), to, 0o755);
    copy_libraries(root, from);
}

fn copy_libraries(root: &Path, program: &Path) {
    let output = Command::new("ldd").arg(program).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let libraries: BTreeSet<_> = text
        .split_whitespace()
        .filter(|word| word.starts_with('/') && Path::new(word).is_file())
        .collect();
    for library in libraries {
        let to = root.join(library.trim_start_matches('/'));
        if !to.exists() {
            fs_err::create_dir_all(to.parent().unwrap()).unwrap();
            install(&fs_err::canonicalize(library).unwrap(), &to, 0o755);
        }
    }
}

/// A Python with its standard library and nothing else.
fn python(root: &Path) {
    let ask = "import sys, sysconfig; print(sys.executable); print(sysconfig.get_path('stdlib')); print('%d.%d' % sys.version_info[:2])";
    let output = Command::new("/usr/bin/python3")
        .args(["-I", "-c", ask])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines();
    let (program, library, version) = (
        lines.next().unwrap(),
        lines.next().unwrap(),
        lines.next().unwrap(),
    );
    let home = root.join("opt/python");
    fs_err::create_dir_all(home.join("bin")).unwrap();
    fs_err::create_dir_all(home.join("lib")).unwrap();
    copy_program(root, Path::new(program), &home.join("bin/python3"));
    let target = home.join(format!("lib/python{version}"));
    let copied = Command::new("cp")
        .args(["-rL", "--no-preserve=ownership"])
        .arg(library)
        .arg(&target)
        .status()
        .unwrap();
    assert!(copied.success(), "copying the standard library failed");
    for entry in fs_err::read_dir(target.join("lib-dynload")).unwrap() {
        copy_libraries(root, &entry.unwrap().path());
    }
}
