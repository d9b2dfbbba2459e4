//! Builds the office tree: what makes pages of documents, LibreOffice and poppler's tools, of what
//! this machine has of them.
//!
//! It is a layer over one root tree: it holds the files of its own programs, and of libraries
//! those that the root tree does not have. It is optional. A machine without LibreOffice has
//! sandboxes all the same, and they have no previews of decks and letters.

use std::path::{Path, PathBuf};

use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::error::{SetupError, file};
use super::libraries::{Libraries, in_tree};
use super::progress::{Progress, Step};
use super::store::{FileIdentity, Locked, Store};
use super::{copy, fonts, manifest, settle, tools};

const DOING: &str = "copying LibreOffice";

/// Raised whenever this code makes another tree of the same ingredients.
const BUILDER: u32 = 1;

const RECORD: &str = "office.json";

/// Parts of LibreOffice that have to be there, and the Debian package that brings each.
const MODULES: [(&str, &str); 4] = [
    ("program/soffice.bin", "libreoffice-impress"),
    ("program/libsdlo.so", "libreoffice-impress"),
    ("program/libsclo.so", "libreoffice-calc"),
    ("program/libswlo.so", "libreoffice-writer"),
];

/// Poppler's tools.
const TOOLS: [&str; 4] = ["pdftoppm", "pdftotext", "pdfinfo", "pdftocairo"];
const TOOLS_PACKAGE: &str = "poppler-utils";

/// What of LibreOffice's folder stays behind: windows, help, examples, Java and Python.
const LEFT_OUT: [&str; 16] = [
    "CREDITS.fodt",
    "LICENSE.html",
    "help",
    "program/classes",
    "program/opencl",
    "program/wizards",
    "program/python-core",
    "share/Scripts",
    "share/emojiconfig",
    "share/gallery",
    "share/prereg",
    "share/template",
    "share/tipoftheday",
    "share/uno_packages",
    "share/wizards",
    "share/xdg",
];

/// The same by what a file's name has in it: pictures of buttons in other styles, windows of
/// desktops, sound and video, Python.
const LEFT_OUT_NAMES: [&str; 11] = [
    "_svg.zip",
    "_dark.zip",
    "images_helpimg",
    "libvclplug_gtk",
    "libvclplug_qt",
    "libvclplug_kf",
    "libvclplug_gen",
    "libavmedia",
    "pyuno",
    "intro",
    ".py",
];

/// Data beside LibreOffice's folder, copied where the machine has it.
const BESIDE: [&str; 3] = [
    "/etc/libreoffice",
    "/usr/share/liblangtag",
    "/usr/share/poppler",
];

/// Takes the place of LibreOffice's own starter, which refuses to start without a `/proc` that shows
/// the whole system. No sandbox has such a one, nor a screen.
const STARTER: &str = r#"#!/bin/sh
export SAL_USE_VCLPLUGIN=svp
program="$(dirname -- "$(readlink -f -- "$0")")/soffice.bin"
"$program" "$@"
code=$?
# So it ends when it has set itself up for a new user, and wants to be started again.
[ "$code" = 81 ] || [ "$code" = 79 ] || exit "$code"
exec "$program" "$@"
"#;

/// Fonts of the measures that documents are laid out with, copied where the machine has them: by
/// the beginnings of their file names.
const FONTS: [&str; 4] = ["Liberation", "Carlito", "Caladea", "opens___"];

/// Not where the root tree has its fonts: the times of those folders tell whether the cache of
/// fonts is good, and a layer that changes a folder changes its time.
const FONT_FOLDER: &str = "usr/local/share/fonts/office";

/// Fonts that documents name and no such machine has, and what stands in for them: of the same
/// measures where there is one, else narrower than what fontconfig takes for an unknown one.
const STAND_INS: [(&str, &str); 9] = [
    ("Calibri", "Carlito, Liberation Sans"),
    ("Cambria", "Caladea, Liberation Serif"),
    ("Arial", "Liberation Sans"),
    ("Helvetica", "Liberation Sans"),
    ("Segoe UI", "Liberation Sans"),
    ("Aptos", "Carlito, Liberation Sans"),
    ("Times New Roman", "Liberation Serif"),
    ("Georgia", "Liberation Serif"),
    ("Courier New", "Liberation Mono"),
];

/// Whether sandboxes can make pages of documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Office {
    /// They have LibreOffice and poppler.
    Present,
    /// They have not.
    Absent {
        /// Why not, in a sentence without a full stop.
        why: String,
        /// What to do.
        fix: String,
    },
}

/// What of it this machine has.
struct Found {
    /// LibreOffice's own folder.
    home: PathBuf,
    /// Files whose change means another tree.
    parts: Vec<FileIdentity>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Record {
    builder: u32,
    /// The root tree that it is a layer over.
    root: String,
    parts: Vec<FileIdentity>,
    tree: String,
}

/// What an office tree is made from.
pub(crate) struct Ingredients<'a> {
    pub(crate) search: &'a [PathBuf],
    /// The name of the root tree.
    pub(crate) root: &'a str,
}

impl Office {
    fn absent(why: impl Into<String>, packages: &[&str]) -> Self {
        Self::Absent {
            why: why.into(),
            fix: format!(
                "on Debian and Ubuntu: `apt-get install --no-install-recommends {}`, then \
                 `glovebox setup`",
                packages.join(" ")
            ),
        }
    }
}

/// What this machine has to make an office tree of, or what it lacks. Starts no program.
#[must_use]
pub fn office_of_this_machine(search: &[PathBuf]) -> Office {
    match find(search) {
        Ok(_) => Office::Present,
        Err(absent) => absent,
    }
}

impl Ingredients<'_> {
    /// Makes sure of the tree, where this machine has what it is made of. Gives its name.
    pub(crate) fn ensure(
        &self,
        store: &Store,
        progress: &mut dyn Progress,
    ) -> Result<(Option<String>, Office), SetupError> {
        if let Some(tree) = self.made_before(store) {
            let place = store.tree(&tree);
            if !place.looks_untouched()? {
                progress.begins(Step::Verify);
                place.verify()?;
                let _lock = store.lock(progress)?;
                place.seal()?;
            }
            return Ok((Some(tree), Office::Present));
        }
        let found = match find(self.search) {
            Ok(found) => found,
            Err(absent) => return Ok((None, absent)),
        };
        let lock = store.lock(progress)?;
        let tree = self.name(&found)?;
        let place = store.tree(&tree);
        if place.exists() {
            if !place.looks_untouched()? {
                progress.begins(Step::Verify);
                place.verify()?;
                place.seal()?;
            }
        } else if let Err(absent) = self.build(&found, &tree, (store, &lock), progress)? {
            return Ok((None, absent));
        }
        let record = Record {
            builder: BUILDER,
            root: self.root.into(),
            parts: found.parts,
            tree: tree.clone(),
        };
        store.remember(RECORD, &record, &lock)?;
        Ok((Some(tree), Office::Present))
    }

    /// The tree that was made last, if it is still what would be made now. One whose LibreOffice
    /// has gone from the machine stays.
    fn made_before(&self, store: &Store) -> Option<String> {
        let record: Record = store.recall(RECORD)?;
        let is_same = record.builder == BUILDER
            && record.root == self.root
            && !record.parts.iter().any(FileIdentity::is_replaced)
            && store.tree(&record.tree).exists();
        is_same.then_some(record.tree)
    }

    fn name(&self, found: &Found) -> Result<String, SetupError> {
        let all = serde_json::to_string(&(BUILDER, self.root, &found.parts)).map_err(|source| {
            SetupError::Answer {
                doing: DOING,
                source,
            }
        })?;
        Ok(format!(
            "office-{}",
            &manifest::hash_bytes(all.as_bytes())[..16]
        ))
    }

    fn build(
        &self,
        found: &Found,
        name: &str,
        (store, lock): (&Store, &Locked),
        progress: &mut dyn Progress,
    ) -> Result<Result<(), Office>, SetupError> {
        progress.begins(Step::CopyOffice);
        let unfinished = store.begin(name, lock)?;
        let tree = &*unfinished.path;
        for folder in BESIDE.map(Path::new) {
            if folder.is_dir() {
                copy::tree(folder, &in_tree(tree, folder), &|_| true).map_err(file(DOING))?;
            }
        }
        copy_home(&found.home, tree)?;
        for tool in TOOLS {
            tools::copy_tool(tool, tree)?;
        }
        fonts::install_beginning(&FONTS, &tree.join(FONT_FOLDER))?;
        fonts::configure(tree, &STAND_INS)?;

        progress.begins(Step::Libraries);
        let root = store.tree(self.root).tree;
        let program = tree
            .join(found.home.strip_prefix("/").unwrap_or(&found.home))
            .join("program/soffice.bin");
        let Some(libraries) = Libraries::above(tree, &root, &program)? else {
            return Ok(Err(Office::Absent {
                why: "the C library of this machine is another one than when the root tree was \
                      made"
                    .into(),
                fix: format!(
                    "remove the folder {} and run `glovebox setup`; it is then built anew",
                    root.display()
                ),
            }));
        };
        libraries.complete()?;
        // A library that was not found takes what needs it along.
        if let Err(absent) = has_all_modules(&in_tree(tree, &found.home)) {
            return Ok(Err(absent));
        }
        settle::everything(tree)?;

        progress.begins(Step::Manifest);
        store.finish(unfinished, name, lock).map(Ok)
    }
}

fn find(search: &[PathBuf]) -> Result<Found, Office> {
    let home = search
        .iter()
        .flat_map(|folder| ["soffice", "libreoffice"].map(|name| folder.join(name)))
        .filter_map(|path| fs::canonicalize(path).ok())
        .find_map(|real| {
            let home = real.parent()?.parent()?;
            home.join(MODULES[0].0)
                .is_file()
                .then(|| home.to_path_buf())
        });
    let mut all: Vec<&str> = MODULES
        .iter()
        .skip(1)
        .map(|(_, package)| *package)
        .collect();
    all.push(TOOLS_PACKAGE);
    let Some(home) = home else {
        return Err(Office::absent("this machine has no LibreOffice", &all));
    };
    has_all_modules(&home)?;
    let tools: Option<Vec<PathBuf>> = TOOLS.iter().map(|name| tools::on_host(name)).collect();
    let Some(tools) = tools else {
        let why = "this machine has no poppler, whose tools draw the pages of a PDF";
        return Err(Office::absent(why, &[TOOLS_PACKAGE]));
    };
    let modules = MODULES.iter().map(|(path, _)| home.join(path));
    // Its name for the very build, which a later one of the same size and time has not.
    let build = [home.join("program/versionrc")];
    let parts = modules
        .chain(build.into_iter().filter(|path| path.is_file()))
        .chain(tools)
        .map(|path| FileIdentity::of(&path))
        .collect::<Result<_, _>>()
        .map_err(|error| Office::absent(format!("LibreOffice cannot be read: {error}"), &all))?;
    Ok(Found { home, parts })
}

fn has_all_modules(home: &Path) -> Result<(), Office> {
    let mut packages: Vec<&str> = MODULES
        .iter()
        .filter(|(path, _)| !home.join(path).is_file())
        .map(|(_, package)| *package)
        .collect();
    packages.dedup();
    if packages.is_empty() {
        return Ok(());
    }
    let why = format!(
        "the LibreOffice of this machine has not all of its parts: {} is missing",
        packages.join(", ")
    );
    Err(Office::absent(why, &packages))
}

/// Copies LibreOffice's own folder to the path that it has on the host, and makes it a command.
fn copy_home(home: &Path, tree: &Path) -> Result<(), SetupError> {
    let failed = file(DOING);
    let to = in_tree(tree, home);
    copy::tree(home, &to, &|path| is_wanted(path)).map_err(&failed)?;
    Linked {
        home,
        to: &to,
        tree,
    }
    .copy(Path::new(""))?;
    let starter = to.join("program/soffice");
    copy::text(&starter, STARTER)
        .and_then(|()| copy::set_mode(&starter, 0o755))
        .map_err(&failed)?;
    let inside = starter.strip_prefix(tree).unwrap_or(&starter);
    for name in ["soffice", "libreoffice"] {
        let target = copy::relative_to(Path::new("usr/bin"), inside);
        let at = tree.join("usr/bin").join(name);
        copy::link(&target.to_string_lossy(), &at).map_err(&failed)?;
    }
    Ok(())
}

/// Folders that a distribution keeps elsewhere and links to, as its registry in `/etc`.
struct Linked<'a> {
    home: &'a Path,
    /// Where that folder is in the tree.
    to: &'a Path,
    tree: &'a Path,
}

impl Linked<'_> {
    /// They come to where they are linked from, or are linked to where they are in the tree.
    fn copy(&self, relative: &Path) -> Result<(), SetupError> {
        let failed = file(DOING);
        for entry in fs::read_dir(self.home.join(relative)).map_err(&failed)? {
            let entry = entry.map_err(&failed)?;
            let relative = relative.join(entry.file_name());
            let to = self.to.join(&relative);
            let kind = entry.file_type().map_err(&failed)?;
            if !is_wanted(&relative) {
                continue;
            }
            if kind.is_dir() {
                self.copy(&relative)?;
            } else if kind.is_symlink() && entry.path().is_dir() && !to.exists() {
                let real = fs::canonicalize(entry.path()).map_err(&failed)?;
                let there = in_tree(self.tree, &real);
                if there.is_dir() {
                    let inside =
                        |path: &Path| path.strip_prefix(self.tree).unwrap_or(path).to_path_buf();
                    let folder = inside(to.parent().unwrap_or(&to));
                    let target = copy::relative_to(&folder, &inside(&there));
                    copy::link(&target.to_string_lossy(), &to).map_err(&failed)?;
                } else {
                    copy::tree(&real, &to, &|_| true).map_err(&failed)?;
                }
            }
        }
        Ok(())
    }
}

fn is_wanted(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    !LEFT_OUT.iter().any(|left| path == Path::new(left))
        && !LEFT_OUT_NAMES.iter().any(|left| name.contains(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_it_is_told_the_packages() {
        let folder = tempfile::tempdir().unwrap();
        let Office::Absent { why, fix } = office_of_this_machine(&[folder.path().into()]) else {
            panic!("nothing is there");
        };
        assert_eq!(why, "this machine has no LibreOffice");
        assert_eq!(
            fix,
            "on Debian and Ubuntu: `apt-get install --no-install-recommends libreoffice-impress \
             libreoffice-calc libreoffice-writer poppler-utils`, then `glovebox setup`"
        );
    }

    #[test]
    fn a_part_that_is_missing_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("office/program");
        fs::create_dir_all(&program).unwrap();
        for name in ["soffice.bin", "soffice", "libsdlo.so", "libswlo.so"] {
            fs::write(program.join(name), "").unwrap();
        }
        std::os::unix::fs::symlink("office/program/soffice", folder.path().join("soffice"))
            .unwrap();
        let Office::Absent { why, .. } = office_of_this_machine(&[folder.path().into()]) else {
            panic!("a part is missing");
        };
        assert!(why.ends_with("libreoffice-calc is missing"), "{why}");
    }

    #[test]
    fn windows_and_examples_stay_behind() {
        assert!(is_wanted(Path::new("program/libsdlo.so")));
        assert!(is_wanted(Path::new("share/registry")));
        for left in [
            "share/gallery",
            "program/libvclplug_gtk3lo.so",
            "share/config/images_colibre_svg.zip",
            "program/mailmerge.py",
        ] {
            assert!(!is_wanted(Path::new(left)), "{left}");
        }
    }
}
