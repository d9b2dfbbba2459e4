//! Embeds the Python side of the kernel, so that the program needs no files beside it.

use std::path::{Path, PathBuf};
use std::{env, io};

use fs_err as fs;

#[expect(
    clippy::disallowed_methods,
    reason = "cargo tells a build script by a variable where to write"
)]
fn main() -> io::Result<()> {
    let kernel = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sandbox/kernel");
    println!("cargo::rerun-if-changed={}", kernel.display());
    let mut files = Vec::new();
    collect(&kernel, &mut files)?;
    files.sort();

    let mut code = String::from(
        "/// Path below `/opt/glovebox/lib`, and content.\nconst EMBEDDED: &[(&str, &str)] = &[\n",
    );
    for file in files {
        let name = file.strip_prefix(&kernel).map_err(io::Error::other)?;
        let file = fs::canonicalize(&file)?;
        code.push_str(&format!("    ({name:?}, include_str!({file:?})),\n"));
    }
    code.push_str("];\n");
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?;
    fs::write(PathBuf::from(out).join("embedded_python.rs"), code)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            // What tools leave behind is no part of the kernel.
            continue;
        }
        if path.is_dir() && !path.ends_with("__pycache__") && !path.ends_with("tests") {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "py") {
            files.push(path);
        }
    }
    Ok(())
}
