//! Copies an interpreter with its standard library to `/opt/python` of a tree.
//!
//! The copy finds its folders by landmark (`lib/python3.X/os.py` above the program), so it need
//! not know where it was installed. It does not copy packages; `wheels` installs those.

use std::path::{Path, PathBuf};

use fs_err as fs;

use super::copy;
use super::error::{SetupError, file};
use super::prefix::Origin;
use super::python::Python;

const DOING: &str = "copying Python";

/// Parts of the standard library that a sandbox has no use for: tests, what needs a screen, what
/// installs packages, what only builds need.
const LEFT_OUT: [&str; 14] = [
    "test",
    "lib2to3",
    "idlelib",
    "tkinter",
    "turtledemo",
    "turtle.py",
    "ensurepip",
    "venv",
    "site-packages",
    "dist-packages",
    "sitecustomize.py",
    "usercustomize.py",
    "EXTERNALLY-MANAGED",
    "lib-dynload",
];

/// Beginnings of compiled modules that are left out: for tests, for a screen, or deprecated and
/// tied to network services.
const MODULES_LEFT_OUT: [&str; 6] = [
    "_tkinter",
    "_test",
    "_ctypes_test",
    "xx",
    "nis",
    "ossaudiodev",
];

/// Copies the interpreter and gives the folder of its standard library in the tree.
pub(crate) fn install(python: &Python, tree: &Path) -> Result<PathBuf, SetupError> {
    let failed = file(DOING);
    let home = tree.join("opt/python");
    let bin = home.join("bin");
    let name = python.name();
    copy::file(&python.executable, &bin.join(&name)).map_err(&failed)?;
    copy::set_mode(&bin.join(&name), 0o755).map_err(&failed)?;
    copy::link(&name, &bin.join("python3")).map_err(&failed)?;
    copy::link(&name, &bin.join("python")).map_err(&failed)?;

    let library = home.join("lib").join(&name);
    copy::tree(&python.stdlib, &library, &|path| wanted(path)).map_err(&failed)?;
    for folder in &python.dynload {
        copy::tree(folder, &library.join("lib-dynload"), &|path| {
            module_wanted(path)
        })
        .map_err(&failed)?;
    }
    fs::create_dir_all(library.join("lib-dynload")).map_err(&failed)?;
    fs::create_dir_all(library.join("site-packages")).map_err(&failed)?;
    // Debian's interpreter looks here and not in its own site-packages.
    copy::link(
        &format!("../{name}/site-packages"),
        &home.join("lib/python3/dist-packages"),
    )
    .map_err(&failed)?;
    write_build_variables(python, &library)?;
    forget_origin(python, tree)?;
    Ok(library)
}

fn wanted(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let top = path.components().count() == 1;
    let left_out = top
        && (LEFT_OUT.contains(&&*name)
            || name.starts_with("config-")
            || name.starts_with("_sysconfigdata"));
    let tests = matches!(&*name, "tests" | "test" | "idle_test");
    let built = name == "__pycache__"
        || name.ends_with(".pyc")
        || name.ends_with(".a")
        || name.ends_with(".o");
    !left_out && !tests && !built
}

fn module_wanted(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".so") && !MODULES_LEFT_OUT.iter().any(|start| name.starts_with(start))
}

/// Writes what `sysconfig` knows of the build, without the folders it was built in.
fn write_build_variables(python: &Python, library: &Path) -> Result<(), SetupError> {
    // A JSON object of strings and numbers reads the same in Python.
    let variables =
        serde_json::to_string_pretty(&python.sysconfig).map_err(|source| SetupError::Answer {
            doing: DOING,
            source,
        })?;
    let content =
        format!("# What holds of this interpreter in a sandbox.\nbuild_time_vars = {variables}\n");
    copy::text(
        &library.join(format!("{}.py", python.sysconfig_module)),
        &content,
    )
    .map_err(file(DOING))
}

/// Replaces the folder that the interpreter was installed to in all that was copied.
fn forget_origin(python: &Python, tree: &Path) -> Result<(), SetupError> {
    let Some(origin) = Origin::of(&python.base_prefix) else {
        return Ok(());
    };
    if let Some((at, target)) = origin.link() {
        copy::link(target, &tree.join(at)).map_err(file(DOING))?;
    }
    rewrite_below(&tree.join("opt/python"), origin)
}

fn rewrite_below(folder: &Path, origin: Origin<'_>) -> Result<(), SetupError> {
    let failed = file(DOING);
    for entry in fs::read_dir(folder).map_err(&failed)? {
        let entry = entry.map_err(&failed)?;
        let kind = entry.file_type().map_err(&failed)?;
        if kind.is_dir() {
            rewrite_below(&entry.path(), origin)?;
        } else if kind.is_file() {
            origin.rewrite_file(&entry.path()).map_err(&failed)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_sandbox_has_no_use_for_is_left_out() {
        for path in [
            "test",
            "idlelib",
            "unittest/test",
            "json/__pycache__",
            "config-3.11-x86_64-linux-gnu",
            "sitecustomize.py",
            "_sysconfigdata__linux_x86_64-linux-gnu.py",
        ] {
            assert!(!wanted(Path::new(path)), "{path}");
        }
        for path in [
            "os.py",
            "unittest/case.py",
            "encodings",
            "json/tool.py",
            "doctest.py",
        ] {
            assert!(wanted(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn modules_that_need_a_screen_are_left_out() {
        assert!(!module_wanted(Path::new(
            "_tkinter.cpython-311-x86_64-linux-gnu.so"
        )));
        assert!(module_wanted(Path::new(
            "_ssl.cpython-311-x86_64-linux-gnu.so"
        )));
    }
}
