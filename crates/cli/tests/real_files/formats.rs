//! Files as people bring them, written by other programs, are read by the libraries in the sandbox.

use crate::{data, example, job, with_sandbox};

#[test]
fn tables_of_every_kind_are_read() {
    let place = with_sandbox();
    let said = place.glovebox([
        "run".into(),
        job("read_tables.py"),
        example("csv-summary/seattle-weather.csv"),
        data("weather.xlsx"),
        data("weather.xls"),
        data("weather.parquet"),
        data("wetter.csv"),
        data("wetter.tsv"),
    ]);
    assert_eq!(said.status, 0, "{said}");
    insta::assert_snapshot!(said.out, @r##"
    weather.xlsx 2012: 31 rows as in the CSV file
    weather.xlsx 2013: 31 rows as in the CSV file
    weather.xlsx 2014: 31 rows as in the CSV file
    weather.xlsx 2015: 31 rows as in the CSV file
    weather.xls 2012: 31 rows as in the CSV file
    weather.xls 2013: 31 rows as in the CSV file
    weather.xls 2014: 31 rows as in the CSV file
    weather.xls 2015: 31 rows as in the CSV file
    weather.parquet: 1461 rows as in the CSV file
    openpyxl: 2013-01-01 00:00:00
    wetter.csv: ['date', 'precipitation', 'temp_max', 'temp_min', 'wind', 'weather'] 'Nieseln, "leicht"\nund grau' 218.7
    "##);
    assert_eq!(
        place.listed("results"),
        ["weather-again.csv", "weather-again.tsv"]
    );
    let lines = |name: &str| place.read(name).lines().count();
    // A head, 31 days, and two texts that run over two lines.
    assert_eq!(lines("results/weather-again.csv"), 34);
    assert_eq!(lines("results/weather-again.tsv"), 34);
}

#[test]
fn documents_and_pictures_are_read() {
    let place = with_sandbox();
    let said = place.glovebox([
        "run".into(),
        job("read_documents.py"),
        data("letter.docx"),
        data("letter.pdf"),
        data("deck.pptx"),
        data("deck.png"),
    ]);
    insta::assert_snapshot!(said.to_string(), @r"
    status 0
    -- out
    docx: ['Rain in January', 'Regen in Zürich, 東京の雨, дождь', 'The second page.']
    docx table: [['2012-01-01', '0.0'], ['2012-01-02', '10.9']]
    docx pictures: 1
    pypdf: ['Rain in January', 'The second page.']
    pdfplumber: Rain 1
    pptx: Rain in January ['PLACEHOLDER', 'PICTURE']
    pptx: Regen in Zürich, 東京の雨, дождь ['PLACEHOLDER', 'PICTURE']
    png: (960, 720) RGBA (255, 255, 255, 255)
    -- err
    saved results/small.jpg (1.3 KiB)
    ");
}

#[test]
fn code_converts_documents_itself() {
    let place = with_sandbox();
    let said = place.glovebox(["run".into(), job("convert.py"), data("deck.pptx")]);
    assert_eq!(said.status, 0, "{said}");
    assert!(said.out.contains("Regen in Zürich"), "{said}");
    assert_eq!(
        place.listed("results"),
        ["deck.pdf", "slide-1.png", "slide-2.png"]
    );
}

#[test]
fn a_file_that_is_not_what_its_name_says_fails_in_the_library_and_nothing_else_does() {
    let place = with_sandbox();
    for name in [
        "empty.csv",
        "empty.xlsx",
        "empty.pdf",
        "empty.docx",
        "empty.png",
        "empty.parquet",
    ] {
        place.file(name, "");
    }
    place.file(
        "cut.xlsx",
        &fs_err::read(data("weather.xlsx")).unwrap()[..5000],
    );
    let said = place.glovebox(["run".into(), job("read_broken.py"), place.path().to_owned()]);
    assert_eq!(said.status, 0, "{said}");
    insta::assert_snapshot!(said.out, @r"
    cut.xlsx: BadZipFile
    empty.csv: EmptyDataError
    empty.docx: BadZipFile
    empty.parquet: OSError
    empty.pdf: EmptyFileError
    empty.png: UnidentifiedImageError
    empty.xlsx: ValueError
    ");
}

#[test]
fn a_program_from_standard_input_reads_a_workbook() {
    let place = with_sandbox();
    let program =
        b"import pandas as pd\nprint(sorted(pd.read_excel('weather.xlsx', sheet_name=None)))\n";
    let arguments = ["run".into(), "-".into(), data("weather.xlsx")];
    let said = place.glovebox_reads(arguments, program);
    assert_eq!(
        said.to_string(),
        "status 0\n-- out\n['2012', '2013', '2014', '2015']\n"
    );
}
