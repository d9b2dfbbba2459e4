//! The programs that people open results with: LibreOffice and poppler.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Lets LibreOffice make a PDF of each file, into `folder`, with a profile of its own.
pub(crate) fn to_pdf(files: &[PathBuf], folder: &Path) {
    let profile = folder.join("profile");
    let profile = format!("-env:UserInstallation=file://{}", profile.display());
    let mut command = Command::new("soffice");
    command.args([&profile, "--headless", "--convert-to", "pdf", "--outdir"]);
    command.arg(folder);
    if files
        .iter()
        .all(|file| file.extension() == Some("csv".as_ref()))
    {
        // What a person is asked about such a file: commas, quotes, UTF-8.
        command.arg("--infilter=Text - txt - csv (StarCalc):44,34,76");
    }
    said(command.args(files));
}

/// How many pages a PDF has.
pub(crate) fn pages(pdf: &Path) -> usize {
    let facts = said(Command::new("pdfinfo").arg(pdf));
    let line = facts.lines().find_map(|line| line.strip_prefix("Pages:"));
    line.unwrap().trim().parse().unwrap()
}

/// The text of a PDF.
pub(crate) fn text(pdf: &Path) -> String {
    said(Command::new("pdftotext").arg(pdf).arg("-"))
}

/// How many different grey values the first page shows; 1 when it is blank.
pub(crate) fn greys(pdf: &Path) -> usize {
    let command = &mut Command::new("pdftoppm");
    command.args(["-singlefile", "-gray", "-r", "40"]).arg(pdf);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    // A head of three lines, then a byte for each point.
    let points = output
        .stdout
        .splitn(4, |byte| *byte == b'\n')
        .last()
        .unwrap();
    points
        .iter()
        .collect::<std::collections::BTreeSet<_>>()
        .len()
}

/// Width and height of a PNG, as its head has them.
pub(crate) fn png_size(png: &Path) -> (u32, u32) {
    let bytes = fs_err::read(png).unwrap();
    assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR"));
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}

fn said(command: &mut Command) -> String {
    let name = command.get_program().to_owned();
    let output = command.output().unwrap_or_else(|error| {
        panic!("results are opened with {name:?}, from libreoffice and poppler-utils: {error}")
    });
    assert!(output.status.success(), "{name:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}
