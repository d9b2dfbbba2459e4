//! The program that makes previews in a sandbox: our own Python, pushed in with each file.

/// Where it comes to lie, below the workspace folder.
pub(crate) const FOLDER: &str = "preview";

/// Its first file.
pub(crate) const MAIN: &str = "/workspace/preview/main.py";

/// All files, with their names.
pub(crate) const FILES: [(&str, &str); 12] = [
    (
        "main.py",
        include_str!("../../../../../sandbox/preview/main.py"),
    ),
    (
        "trouble.py",
        include_str!("../../../../../sandbox/preview/trouble.py"),
    ),
    (
        "archives.py",
        include_str!("../../../../../sandbox/preview/archives.py"),
    ),
    (
        "markup.py",
        include_str!("../../../../../sandbox/preview/markup.py"),
    ),
    (
        "office.py",
        include_str!("../../../../../sandbox/preview/office.py"),
    ),
    (
        "documents.py",
        include_str!("../../../../../sandbox/preview/documents.py"),
    ),
    (
        "pages.py",
        include_str!("../../../../../sandbox/preview/pages.py"),
    ),
    (
        "workbooks.py",
        include_str!("../../../../../sandbox/preview/workbooks.py"),
    ),
    (
        "tables.py",
        include_str!("../../../../../sandbox/preview/tables.py"),
    ),
    (
        "number_format.py",
        include_str!("../../../../../sandbox/preview/number_format.py"),
    ),
    (
        "images.py",
        include_str!("../../../../../sandbox/preview/images.py"),
    ),
    (
        "drawings.py",
        include_str!("../../../../../sandbox/preview/drawings.py"),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_file_of_the_folder_comes_along() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sandbox/preview");
        let there: BTreeSet<String> = fs_err::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".py"))
            .collect();
        let pushed: BTreeSet<String> = FILES.iter().map(|(name, _)| (*name).into()).collect();
        assert_eq!(there, pushed);
    }
}
