//! Copies the shared libraries that a tree's programs and modules need, and what those need.
//!
//! A library comes to the same path as on the host, so that the loader finds it without a cache;
//! one from an unusual folder comes to the folder of the C library. It does not find what a
//! program opens by itself while it runs, but for the few named here.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use fs_err as fs;

use super::copy;
use super::elf;
use super::error::{SetupError, file};
use super::prefix::{Origin, PREFIX};

const DOING: &str = "copying shared libraries";

/// Opened by the C library itself: to end threads, and, before glibc 2.34, to read /etc/passwd.
const OPENED: [&str; 2] = ["libgcc_s.so.1", "libnss_files.so.2"];

/// Opened by the library that LibreOffice counts hashes with, without which it writes no PDF. Some
/// distributions keep them in a folder of their own.
const OPENED_BY_OFFICE: [&str; 3] = ["libsoftokn3.so", "libfreebl3.so", "libfreeblpriv3.so"];
const FOLDER_OF_OPENED: &str = "nss";

/// Copies libraries into one tree.
pub(crate) struct Libraries<'a> {
    tree: &'a Path,
    /// Where `/opt/python` of the tree lies on the host.
    origin: &'a Path,
    /// A tree that lies under this one: what it has alike is not copied a second time.
    below: Option<&'a Path>,
    folders: Vec<PathBuf>,
    kind: [u8; 4],
    /// Where the C library lies, which the loader searches always.
    main: PathBuf,
    /// Names of libraries anywhere in the tree, such as those that wheels bring.
    present: HashSet<String>,
    found: HashMap<String, Option<PathBuf>>,
}

impl<'a> Libraries<'a> {
    /// Prepares for a tree whose interpreter is in place at `program`.
    pub(crate) fn new(
        tree: &'a Path,
        origin: &'a Path,
        program: &Path,
        multiarch: &str,
    ) -> Result<Self, SetupError> {
        let kind = elf::kind(program)
            .map_err(file(DOING))?
            .ok_or(SetupError::NoLibrary {
                library: "the loader".into(),
                object: program.to_path_buf(),
            })?;
        let mut libraries = Self {
            tree,
            origin,
            below: None,
            folders: search_folders(multiarch),
            kind,
            main: PathBuf::new(),
            present: HashSet::new(),
            found: HashMap::new(),
        };
        let main = libraries
            .on_host("libc.so.6")
            .and_then(|path| path.parent().map(Path::to_path_buf));
        libraries.main = main.ok_or_else(|| missing("libc.so.6", program))?;
        Ok(libraries)
    }

    /// Prepares for a tree that lies over another one. `None` where the C library of the machine is
    /// not that of the tree below: the two would not go together.
    pub(crate) fn above(
        tree: &'a Path,
        below: &'a Path,
        program: &Path,
    ) -> Result<Option<Self>, SetupError> {
        // No interpreter is part of it, so there is no folder of one to look in.
        let mut libraries = Self::new(tree, Path::new("/usr"), program, "")?;
        libraries.below = Some(below);
        let name = "libc.so.6";
        let there = in_tree(below, &libraries.main).join(name);
        let is_same = is_alike(&there, &libraries.main.join(name)).map_err(file(DOING))?;
        Ok(is_same.then_some(libraries))
    }

    /// Copies all that is missing.
    pub(crate) fn complete(mut self) -> Result<(), SetupError> {
        let mut objects = Vec::new();
        self.collect(self.tree, &mut objects)?;
        let by_office = self.below.map_or(&[][..], |_| &OPENED_BY_OFFICE);
        for name in OPENED.iter().chain(by_office) {
            let apart = format!("{FOLDER_OF_OPENED}/{name}");
            if let Some(path) = self.on_host(name).or_else(|| self.on_host(&apart)) {
                objects.extend(self.bring(name, &path)?);
            }
        }
        while let Some(object) = objects.pop() {
            let Some(needs) = elf::needs(&object).map_err(file(DOING))? else {
                continue;
            };
            if let Some(loader) = &needs.loader {
                self.bring_loader(loader)?;
            }
            for library in &needs.libraries {
                match self.resolve(library, &object, &needs.folders) {
                    Resolved::Present => {}
                    Resolved::Host(path) => objects.extend(self.bring(library, &path)?),
                    // It could not be loaded on the host either.
                    Resolved::Missing if is_standard_module(&object) || self.below.is_some() => {
                        fs::remove_file(&object).map_err(file(DOING))?;
                        break;
                    }
                    Resolved::Missing => {
                        return Err(missing(
                            library,
                            object.strip_prefix(self.tree).unwrap_or(&object),
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// Lists the objects below a folder of the tree.
    fn collect(&mut self, folder: &Path, objects: &mut Vec<PathBuf>) -> Result<(), SetupError> {
        let failed = file(DOING);
        for entry in fs::read_dir(folder).map_err(&failed)? {
            let entry = entry.map_err(&failed)?;
            let kind = entry.file_type().map_err(&failed)?;
            if kind.is_dir() {
                self.collect(&entry.path(), objects)?;
            } else if kind.is_file() && elf::is_elf(&entry.path()).map_err(&failed)? {
                self.present
                    .insert(entry.file_name().to_string_lossy().into_owned());
                objects.push(entry.path());
            }
        }
        Ok(())
    }

    fn resolve(&mut self, library: &str, object: &Path, own: &[String]) -> Resolved {
        let inside = object.parent().unwrap_or(object);
        // The same folder on the host, for an interpreter that keeps libraries beside itself.
        let outside = inside
            .strip_prefix(self.tree.join("opt/python"))
            .ok()
            .map(|rest| self.origin.join(rest));
        for folder in own {
            let at = |origin: &Path| {
                PathBuf::from(
                    folder
                        .replace("$ORIGIN", &origin.to_string_lossy())
                        .replace("${ORIGIN}", &origin.to_string_lossy()),
                )
            };
            let in_tree = at(inside);
            let in_tree = if in_tree.starts_with(self.tree) {
                in_tree
            } else {
                self.tree
                    .join(in_tree.strip_prefix("/").unwrap_or(&in_tree))
            };
            if in_tree.join(library).exists() {
                return Resolved::Present;
            }
            let origin = Origin::of(self.origin);
            let on_host = origin
                .and_then(|origin| origin.on_host(Path::new(folder)))
                .unwrap_or_else(|| at(outside.as_deref().unwrap_or(inside)));
            let candidate = on_host.join(library);
            if !candidate.starts_with(self.tree) && self.fits(&candidate) {
                return Resolved::Host(candidate);
            }
        }
        if self.present.contains(library) {
            return Resolved::Present;
        }
        self.on_host(library)
            .map_or(Resolved::Missing, Resolved::Host)
    }

    /// Finds a library in the folders that the host's loader searches.
    fn on_host(&mut self, library: &str) -> Option<PathBuf> {
        if let Some(found) = self.found.get(library) {
            return found.clone();
        }
        let found = self
            .folders
            .iter()
            .map(|folder| folder.join(library))
            .find(|path| self.fits(path));
        self.found.insert(library.to_owned(), found.clone());
        found
    }

    fn fits(&self, path: &Path) -> bool {
        path.is_file() && elf::kind(path).is_ok_and(|kind| kind == Some(self.kind))
    }

    /// Copies one library and gives its place in the tree, if it was not there.
    fn bring(&mut self, name: &str, path: &Path) -> Result<Option<PathBuf>, SetupError> {
        let usual = ["/lib", "/lib64", "/usr/lib", "/usr/lib64"]
            .iter()
            .any(|root| path.starts_with(root))
            && self
                .folders
                .iter()
                .any(|folder| path.parent() == Some(folder));
        let origin = Origin::of(self.origin);
        let folder = match path.strip_prefix(self.origin) {
            Ok(rest) if origin.is_some() => Path::new(PREFIX).join(rest.parent().unwrap_or(rest)),
            _ if usual => path.parent().unwrap_or(&self.main).to_path_buf(),
            _ => self.main.clone(),
        };
        let at = in_tree(self.tree, &folder).join(name);
        self.present.insert(name.to_owned());
        if at.exists() {
            return Ok(None);
        }
        if let Some(below) = self.below
            && is_alike(&in_tree(below, &folder).join(name), path).map_err(file(DOING))?
        {
            return Ok(None);
        }
        copy::file(path, &at).map_err(file(DOING))?;
        if let Some(origin) = origin {
            origin.rewrite_file(&at).map_err(file(DOING))?;
        }
        Ok(Some(at))
    }

    fn bring_loader(&self, loader: &Path) -> Result<(), SetupError> {
        let at = in_tree(self.tree, loader);
        let is_below = self
            .below
            .is_some_and(|below| in_tree(below, loader).exists());
        if at.exists() || is_below {
            return Ok(());
        }
        copy::file(loader, &at).map_err(file(DOING))?;
        copy::set_mode(&at, 0o755).map_err(file(DOING))
    }
}

enum Resolved {
    Present,
    Host(PathBuf),
    Missing,
}

/// The place in a tree of a path of the host. Trees have one `/usr` for both, as systems do now.
pub(crate) fn in_tree(tree: &Path, path: &Path) -> PathBuf {
    let relative = path.strip_prefix("/").unwrap_or(path);
    let split = ["bin", "sbin", "lib", "lib64"]
        .iter()
        .any(|top| relative.starts_with(top));
    if split {
        tree.join("usr").join(relative)
    } else {
        tree.join(relative)
    }
}

/// Whether two files are there and have the same content.
fn is_alike(one: &Path, other: &Path) -> std::io::Result<bool> {
    if !one.is_file() || fs::metadata(one)?.len() != fs::metadata(other)?.len() {
        return Ok(false);
    }
    Ok(fs::read(one)? == fs::read(other)?)
}

fn missing(library: &str, object: &Path) -> SetupError {
    SetupError::NoLibrary {
        library: library.to_owned(),
        object: object.to_path_buf(),
    }
}

fn is_standard_module(object: &Path) -> bool {
    object
        .parent()
        .is_some_and(|folder| folder.ends_with("lib-dynload"))
}

/// The folders that the loader searches by itself first, then those of its configuration.
fn search_folders(multiarch: &str) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    if !multiarch.is_empty() {
        folders.extend(
            [format!("/usr/lib/{multiarch}"), format!("/lib/{multiarch}")].map(PathBuf::from),
        );
    }
    folders.extend(["/usr/lib64", "/lib64", "/usr/lib", "/lib"].map(PathBuf::from));
    let mut files = vec![PathBuf::from("/etc/ld.so.conf")];
    if let Ok(entries) = fs::read_dir("/etc/ld.so.conf.d") {
        files.extend(entries.filter_map(Result::ok).map(|entry| entry.path()));
    }
    for path in files {
        let Ok(text) = fs::read_to_string(path) else {
            continue;
        };
        folders.extend(
            text.lines()
                .map(str::trim)
                .filter(|line| line.starts_with('/'))
                .map(PathBuf::from),
        );
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_folders_come_together_under_usr() {
        let tree = Path::new("/t");
        assert_eq!(
            in_tree(tree, Path::new("/lib64/ld.so")),
            Path::new("/t/usr/lib64/ld.so")
        );
        assert_eq!(
            in_tree(tree, Path::new("/usr/lib/x.so")),
            Path::new("/t/usr/lib/x.so")
        );
        assert_eq!(in_tree(tree, Path::new("/opt/x")), Path::new("/t/opt/x"));
    }
}
