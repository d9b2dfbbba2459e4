//! What holds of the tree with the whole toolbox.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use fs_err as fs;
use glovebox_runtime_embedded::tree::{LOCK, Office, Programs, Setup, Silent};
use glovebox_testkit::{program, test_data};

use crate::small::search_path;

/// The data folder that tests share, and the root tree in it.
fn root_tree() -> (Setup, PathBuf) {
    let setup = Setup {
        data: test_data().unwrap(),
        programs: Programs::found(program).unwrap(),
        python: None,
        search: search_path(),
        lock: LOCK.into(),
        office: true,
    };
    let trees = setup.ensure(&mut Silent).unwrap();
    let root = setup.data.join(trees.layers.last().unwrap());
    (setup, root)
}

fn every_entry(folder: &Path, see: &mut dyn FnMut(&Path)) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        see(&entry.path());
        if entry.file_type().unwrap().is_dir() {
            every_entry(&entry.path(), see);
        }
    }
}

#[test]
fn everything_in_the_tree_is_plain_and_readable_by_all() {
    let (_, root) = root_tree();
    assert!(is_plain(&root) > 5_000);
}

#[test]
fn everything_in_the_office_tree_is_too_and_nothing_is_there_twice() {
    let (setup, root) = root_tree();
    let trees = setup.ensure(&mut Silent).unwrap();
    assert_eq!(
        trees.office,
        Some(Office::Present),
        "the tests want LibreOffice and poppler; run `make test`"
    );
    let office = setup.data.join(&trees.layers[1]);
    assert!(is_plain(&office) > 1_000);
    for name in ["soffice", "pdftoppm", "pdftotext", "pdfinfo"] {
        let program = fs::canonicalize(office.join("usr/bin").join(name)).unwrap();
        assert!(program.starts_with(&office), "{}", program.display());
    }
    let mut twice = Vec::new();
    every_entry(&office, &mut |path| {
        let inside = path.strip_prefix(&office).unwrap();
        let below = root.join(inside);
        if path.is_file() && below.is_file() && fs::read(path).unwrap() == fs::read(below).unwrap()
        {
            twice.push(inside.to_path_buf());
        }
    });
    assert_eq!(twice, Vec::<PathBuf>::new());
}

/// Looks at every entry, and counts them.
fn is_plain(root: &Path) -> usize {
    let owner = fs::metadata(root).unwrap().uid();
    let mut count = 0;
    every_entry(root, &mut |path| {
        count += 1;
        let metadata = fs::symlink_metadata(path).unwrap();
        let mode = metadata.permissions().mode() & 0o7777;
        let shown = path.display();
        assert_eq!(metadata.uid(), owner, "{shown}");
        if metadata.is_symlink() {
            let target = fs::read_link(path).unwrap();
            assert!(
                target.is_relative(),
                "{shown} leads to {}",
                target.display()
            );
            let real = fs::canonicalize(path).unwrap_or_else(|_| root.to_path_buf());
            assert!(
                real.starts_with(root),
                "{shown} leads to {}",
                real.display()
            );
        } else if metadata.is_dir() {
            assert_eq!(mode, 0o755, "{shown}");
        } else {
            assert!(
                metadata.is_file(),
                "{shown} is neither file, folder nor link"
            );
            assert!(matches!(mode, 0o644 | 0o755), "{shown} has mode {mode:o}");
        }
    });
    count
}

#[test]
fn no_file_in_the_tree_names_where_it_was_built_or_installed_from() {
    let (setup, root) = root_tree();
    let python = Command::new("python3")
        .args(["-I", "-S", "-c", "import sys; print(sys.base_prefix)"])
        .output()
        .unwrap();
    let prefix = String::from_utf8(python.stdout).unwrap().trim().to_owned();
    let data = fs::canonicalize(&setup.data).unwrap();
    let mut places = vec![data.to_str().unwrap().to_owned()];
    if !matches!(&*prefix, "/usr" | "/usr/local") {
        places.push(prefix);
    }
    for place in places {
        let found = Command::new("grep")
            .args(["-rlF", &place])
            .arg(&root)
            .output()
            .unwrap();
        let found = String::from_utf8_lossy(&found.stdout).into_owned();
        assert_eq!(found, "", "these name {place}");
    }
}

#[test]
fn mount_points_are_empty_and_there_is_no_sys() {
    let (_, root) = root_tree();
    for name in ["proc", "dev", "workspace", "tmp"] {
        assert_eq!(fs::read_dir(root.join(name)).unwrap().count(), 0, "{name}");
    }
    assert!(!root.join("sys").exists());
    assert!(!root.join("etc/resolv.conf").exists());
    assert_eq!(
        fs::read_link(root.join("mnt/data")).unwrap(),
        Path::new("../workspace")
    );
    assert_eq!(
        fs::read_link(root.join("home/user")).unwrap(),
        Path::new("../workspace")
    );
}

#[test]
fn every_promised_package_is_there_in_its_locked_version() {
    let (_, root) = root_tree();
    let mut installed = Vec::new();
    every_entry(&root.join("opt/python/lib"), &mut |path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if let Some(name) = name.strip_suffix(".dist-info") {
            installed.push(name.to_lowercase().replace(['_', '.'], "-"));
        }
    });
    for line in LOCK.lines().filter(|line| line.contains("==")) {
        let (name, version) = line.trim_end_matches(" \\").split_once("==").unwrap();
        let wanted = format!("{name}-{version}")
            .to_lowercase()
            .replace(['_', '.'], "-");
        assert!(
            installed.contains(&wanted),
            "{wanted} is not among {installed:?}"
        );
    }
    for promised in [
        "pandas",
        "numpy",
        "matplotlib",
        "scipy",
        "openpyxl",
        "xlsxwriter",
        "python-pptx",
        "python-docx",
        "reportlab",
        "pypdf",
        "pillow",
        "lxml",
    ] {
        assert!(
            LOCK.lines()
                .any(|line| line.starts_with(&format!("{promised}=="))),
            "{promised}"
        );
    }
}

#[test]
fn the_font_cache_names_fonts_by_their_place_in_a_sandbox() {
    let (_, root) = root_tree();
    let folder = root.join("opt/glovebox/share/matplotlib");
    let files: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let cache: serde_json::Value = serde_json::from_slice(&fs::read(&files[0]).unwrap()).unwrap();
    let fonts = cache["ttflist"].as_array().unwrap();
    for family in [
        "DejaVu Sans",
        "Noto Sans CJK SC",
        "Noto Sans CJK JP",
        "Symbola",
        "SimHei",
    ] {
        let font = fonts.iter().find(|font| font["name"] == family);
        let place = font.unwrap_or_else(|| panic!("no {family}"))["fname"]
            .as_str()
            .unwrap();
        if let Some(inside) = place.strip_prefix('/') {
            assert!(
                root.join(inside).is_file(),
                "{family} is said to be at {place}"
            );
        }
    }
}

#[test]
fn the_whole_tree_is_as_its_manifest_says() {
    let (setup, _) = root_tree();
    setup
        .ensure(&mut Silent)
        .unwrap()
        .verify_full(&setup.data)
        .unwrap();
}
