//! Copies the fonts that sandboxes draw with: Latin, Greek and Cyrillic, Chinese, Japanese and
//! Korean, and emoji; and the configuration of fontconfig for programs that use it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fs_err as fs;

use super::copy;
use super::error::{SetupError, file};
use super::libraries::in_tree;

const DOING: &str = "copying fonts";

/// Where machines keep fonts.
const FOLDERS: [&str; 2] = ["/usr/share/fonts", "/usr/local/share/fonts"];

/// A font file that every sandbox has, by the names it goes by, and the Debian package that holds it.
const REQUIRED: [(&[&str], &str); 10] = [
    (&["DejaVuSans.ttf"], "fonts-dejavu-core"),
    (&["DejaVuSans-Bold.ttf"], "fonts-dejavu-core"),
    (&["DejaVuSansMono.ttf"], "fonts-dejavu-core"),
    (&["DejaVuSansMono-Bold.ttf"], "fonts-dejavu-core"),
    (&["DejaVuSerif.ttf"], "fonts-dejavu-core"),
    (&["NotoSansCJK-Regular.ttc"], "fonts-noto-cjk"),
    (&["NotoSansCJK-Bold.ttc"], "fonts-noto-cjk"),
    (&["NotoColorEmoji.ttf"], "fonts-noto-color-emoji"),
    // Outlines, for what cannot draw bitmaps (matplotlib).
    (
        &["Symbola_hint.ttf", "Symbola.ttf", "Symbola.otf"],
        "fonts-symbola",
    ),
    // TrueType outlines, for what cannot embed others (reportlab).
    (
        &["DroidSansFallbackFull.ttf", "DroidSansFallback.ttf"],
        "fonts-droid-fallback",
    ),
];

/// Emoji as outlines, for what cannot draw bitmaps (matplotlib).
const OUTLINE_EMOJI: [&str; 3] = ["Symbola_hint.ttf", "Symbola.ttf", "Symbola.otf"];

/// Copied where the machine has them.
const OPTIONAL: [&str; 6] = [
    "DejaVuSerif-Bold.ttf",
    "DejaVuSans-Oblique.ttf",
    "DejaVuSans-BoldOblique.ttf",
    "DejaVuSerif-Italic.ttf",
    // The only TrueType outlines of Korean: the fallback font has none.
    "NanumGothic.ttf",
    "NanumGothicBold.ttf",
];

/// Copies the fonts, each to the path it has on the host.
pub(crate) fn install(tree: &Path) -> Result<(), SetupError> {
    install_from(&FOLDERS, tree)
}

fn install_from(folders: &[&str], tree: &Path) -> Result<(), SetupError> {
    let mut present = HashMap::new();
    for folder in folders {
        list(Path::new(folder), &mut present);
    }
    let mut missing: (Vec<String>, Vec<String>) = Default::default();
    for (names, package) in REQUIRED {
        match names.iter().find_map(|name| present.get(*name)) {
            Some(path) => copy_font(path, tree)?,
            None => {
                missing.0.push(names[0].to_owned());
                if !missing.1.iter().any(|known| known == package) {
                    missing.1.push(package.to_owned());
                }
            }
        }
    }
    if !missing.0.is_empty() {
        return Err(SetupError::NoFonts {
            files: missing.0,
            packages: missing.1,
        });
    }
    if let Some(path) = OUTLINE_EMOJI.iter().find_map(|name| present.get(*name)) {
        drop_glyph_names(&in_tree(tree, path))?;
    }
    for path in OPTIONAL.iter().filter_map(|name| present.get(*name)) {
        copy_font(path, tree)?;
    }
    configure(tree, &[])
}

/// Writes the configuration of fontconfig: which of some families, in their order, stand in for each
/// one that documents name.
pub(crate) fn configure(tree: &Path, stand_ins: &[(&str, &str)]) -> Result<(), SetupError> {
    // Before the rule that gives every family a general one.
    const BEFORE: &str = "  <match target=\"pattern\">";
    let aliases: String = stand_ins
        .iter()
        .map(|(name, others)| {
            let families: String = others
                .split(", ")
                .map(|other| format!("<family>{other}</family>"))
                .collect();
            format!(
                "  <alias binding=\"same\"><family>{name}</family><accept>{families}</accept></alias>\n"
            )
        })
        .collect();
    let text = include_str!("fonts.conf").replacen(BEFORE, &format!("{aliases}{BEFORE}"), 1);
    copy::text(&tree.join("etc/fonts/fonts.conf"), &text).map_err(file(DOING))
}

/// Copies the fonts whose file names begin with one of `names` into a folder, where the machine has
/// any.
pub(crate) fn install_beginning(names: &[&str], to: &Path) -> Result<(), SetupError> {
    let mut present = HashMap::new();
    for folder in FOLDERS {
        list(Path::new(folder), &mut present);
    }
    for (name, path) in &present {
        let is_font = [".ttf", ".otf"].iter().any(|end| name.ends_with(end));
        if is_font && names.iter().any(|begin| name.starts_with(begin)) {
            let at = to.join(name);
            copy::file(path, &at)
                .and_then(|()| copy::set_mode(&at, 0o644))
                .map_err(file(DOING))?;
        }
    }
    Ok(())
}

/// Makes fontconfig's cache where this machine can; without it the first program to list fonts
/// reads them all. Called when the font folders no longer change, as it records their times.
pub(crate) fn make_cache(tree: &Path) {
    let made = Command::new("fc-cache")
        .arg("--sysroot")
        .arg(tree)
        .arg("--force")
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !made.is_ok_and(|status| status.success()) {
        // Not there, or too old for `--sysroot`: nothing but the time of a first listing is lost.
        let _ = fs::remove_dir_all(tree.join("var/cache/fontconfig"));
    }
}

fn list(folder: &Path, present: &mut HashMap<String, PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            list(&path, present);
        } else if path.is_file() {
            present
                .entry(entry.file_name().to_string_lossy().into_owned())
                .or_insert(path);
        }
    }
}

fn copy_font(path: &Path, tree: &Path) -> Result<(), SetupError> {
    let at = in_tree(tree, path);
    copy::file(path, &at)
        .and_then(|()| copy::set_mode(&at, 0o644))
        .map_err(file(DOING))
}

/// Marks a font as one without glyph names. Symbola's are all empty, and matplotlib, which tells
/// glyphs apart by name in PDF, would draw one emoji for all.
fn drop_glyph_names(path: &Path) -> Result<(), SetupError> {
    let failed = file(DOING);
    let mut content = fs::read(path).map_err(&failed)?;
    if let Some(version) = names_version(&mut content) {
        version.copy_from_slice(&[0, 3, 0, 0]);
        fs::write(path, content).map_err(&failed)?;
    }
    Ok(())
}

/// The version of the table `post`, which says whether glyph names follow.
/// See <https://learn.microsoft.com/typography/opentype/spec/post>.
fn names_version(font: &mut [u8]) -> Option<&mut [u8]> {
    let count = usize::from(u16::from_be_bytes(font.get(4..6)?.try_into().ok()?));
    let tables = font.get(12..12 + 16 * count)?;
    let post = tables
        .chunks_exact(16)
        .find(|table| table.starts_with(b"post"))?;
    let offset = usize::try_from(u32::from_be_bytes(post[8..12].try_into().ok()?)).ok()?;
    font.get_mut(offset..offset + 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_fonts_are_named_with_the_packages_that_hold_them() {
        let folder = tempfile::tempdir().unwrap();
        let tree = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("DejaVuSans.ttf"), "").unwrap();
        let error = install_from(&[folder.path().to_str().unwrap()], tree.path()).unwrap_err();
        assert!(
            error.to_string().contains("NotoSansCJK-Regular.ttc"),
            "{error}"
        );
        assert!(!error.to_string().contains("DejaVuSans.ttf"), "{error}");
        assert_eq!(
            error.fix(),
            "On Debian and Ubuntu: `apt-get install fonts-dejavu-core fonts-noto-cjk \
             fonts-noto-color-emoji fonts-symbola fonts-droid-fallback`."
        );
    }

    #[test]
    fn stand_ins_come_before_the_general_families() {
        let tree = tempfile::tempdir().unwrap();
        configure(tree.path(), &[("Calibri", "Carlito, Liberation Sans")]).unwrap();
        let text = fs::read_to_string(tree.path().join("etc/fonts/fonts.conf")).unwrap();
        let alias = "<family>Calibri</family><accept><family>Carlito</family>\
                     <family>Liberation Sans</family></accept>";
        let at = text.find(alias).unwrap();
        assert!(at < text.find("<match target").unwrap());
        configure(tree.path(), &[]).unwrap();
        let text = fs::read_to_string(tree.path().join("etc/fonts/fonts.conf")).unwrap();
        assert_eq!(text, include_str!("fonts.conf"));
    }

    #[test]
    fn the_version_of_glyph_names_is_found_by_the_table_list() {
        let mut font = vec![0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0];
        font.extend_from_slice(b"cmap\0\0\0\0\0\0\0\x30\0\0\0\x04");
        font.extend_from_slice(b"post\0\0\0\0\0\0\0\x2c\0\0\0\x04");
        font.extend_from_slice(&[0, 2, 0, 0]);
        assert_eq!(names_version(&mut font).unwrap(), [0, 2, 0, 0]);
        assert!(names_version(&mut font[..20]).is_none());
    }
}
