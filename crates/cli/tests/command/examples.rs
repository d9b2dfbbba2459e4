//! The examples do what their README says, and other programs open what they make.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Place, with_sandbox};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// Runs the command that the README names, with the paths as they are there.
fn run(place: &Place, program: &str, input: &str) {
    let said = place.glovebox([
        "run".as_ref(),
        examples().join(program).as_os_str(),
        examples().join(input).as_os_str(),
    ]);
    assert_eq!(said.status, 0, "{said}");
}

/// Lets LibreOffice make a PDF of a result, and counts its pages.
fn pages(place: &Place, name: &str) -> usize {
    let profile = format!(
        "-env:UserInstallation=file://{}/profile",
        place.path().display()
    );
    let converted = Command::new("soffice")
        .args([
            &profile,
            "--headless",
            "--convert-to",
            "pdf",
            "--outdir",
            "pdf",
        ])
        .arg(place.path().join("results").join(name))
        .current_dir(place.path())
        .output()
        .expect("the examples are checked with LibreOffice: apt-get install libreoffice");
    assert!(converted.status.success());
    let stem = Path::new(name).file_stem().unwrap().to_str().unwrap();
    let pdf = fs_err::read(place.path().join(format!("pdf/{stem}.pdf"))).unwrap();
    let text = String::from_utf8_lossy(&pdf);
    text.matches("/Type/Page").count() - text.matches("/Type/Pages").count()
}

#[test]
fn penguins_become_a_workbook_a_deck_and_a_chart() {
    let place = with_sandbox();
    run(&place, "penguins/report.py", "penguins/penguins.csv");
    assert_eq!(
        place.listed("results"),
        [
            "penguins-chart.png",
            "penguins-deck.pptx",
            "penguins-report.xlsx"
        ]
    );
    assert_eq!(pages(&place, "penguins-deck.pptx"), 3);
    assert_eq!(pages(&place, "penguins-report.xlsx"), 9);
}

#[test]
fn a_workbook_becomes_a_deck_with_a_chart_for_each_sheet() {
    let place = with_sandbox();
    run(
        &place,
        "workbook-to-deck/deck.py",
        "workbook-to-deck/employment.xlsx",
    );
    assert_eq!(place.listed("results"), ["employment.pptx"]);
    assert_eq!(pages(&place, "employment.pptx"), 8);
}

#[test]
fn daily_records_become_a_summary() {
    let place = with_sandbox();
    run(
        &place,
        "csv-summary/summary.py",
        "csv-summary/seattle-weather.csv",
    );
    assert_eq!(place.listed("results"), ["weather-summary.xlsx"]);
    assert_eq!(pages(&place, "weather-summary.xlsx"), 2);
}

#[test]
fn a_pdf_becomes_a_table_and_text() {
    let place = with_sandbox();
    run(
        &place,
        "pdf-to-csv/extract.py",
        "pdf-to-csv/stock-report.pdf",
    );
    assert_eq!(place.listed("results"), ["stock-report.txt", "stock.csv"]);
    let table = place.read("results/stock.csv");
    assert_eq!(table.lines().count(), 33);
    assert!(
        table.contains("North,Beaker 250 ml,piece,291,20,88.95"),
        "{table}"
    );
}

#[test]
fn a_notebook_comes_out_with_its_plots() {
    let place = with_sandbox();
    run(
        &place,
        "notebook/weather.ipynb",
        "csv-summary/seattle-weather.csv",
    );
    assert_eq!(
        place.listed("results"),
        ["weather.ipynb", "wet-and-dry-days.csv"]
    );
    let notebook = place.read("results/weather.ipynb");
    assert_eq!(notebook.matches("\"image/png\": \"iVBOR").count(), 2);
}

#[test]
fn what_is_committed_is_what_its_maker_makes() {
    let place = with_sandbox();
    run(
        &place,
        "workbook-to-deck/make_workbook.py",
        "workbook-to-deck/us-employment.csv",
    );
    let maker = examples().join("pdf-to-csv/make_pdf.py");
    let said = place.glovebox(["run".as_ref(), maker.as_os_str()]);
    assert_eq!(said.status, 0, "{said}");
    for (made, committed) in [
        ("employment.xlsx", "workbook-to-deck/employment.xlsx"),
        ("stock-report.pdf", "pdf-to-csv/stock-report.pdf"),
    ] {
        let made = fs_err::read(place.path().join("results").join(made)).unwrap();
        let committed = fs_err::read(examples().join(committed)).unwrap();
        assert!(
            made == committed,
            "a made file differs from the committed one"
        );
    }
}
