//! Results of every type come out whole, and other programs open them.

use crate::office::{greys, pages, png_size, text, to_pdf};
use crate::{data, example, job, with_sandbox};

#[test]
fn a_file_of_every_type_comes_out_and_is_opened() {
    let place = with_sandbox();
    let said = place.glovebox(["run".into(), job("write_all.py")]);
    assert_eq!(said.status, 0, "{said}");
    assert!(
        said.err.lines().all(|line| line.starts_with("saved ")),
        "{said}"
    );
    assert_eq!(
        place.listed("results"),
        [
            "book.xlsx",
            "chart.gif",
            "chart.jpeg",
            "chart.jpg",
            "chart.png",
            "chart.svg",
            "chart.webp",
            "deck.pptx",
            "letter.docx",
            "page.pdf",
            "table.csv",
            "table.html",
            "table.json",
            "table.md",
            "table.tsv",
            "table.txt",
        ]
    );
    let results = place.path().join("results");
    assert_eq!(png_size(&results.join("chart.png")), (400, 300));

    let pdfs = place.path().join("pdf");
    let opened = ["letter.docx", "deck.pptx", "book.xlsx"];
    to_pdf(&opened.map(|name| results.join(name)), &pdfs);
    to_pdf(&[results.join("table.csv")], &pdfs);
    for (name, expected, word) in [
        ("letter.pdf", 2, "東京の雨"),
        ("deck.pdf", 3, "第三"),
        ("book.pdf", 2, "漢字"),
        ("table.pdf", 1, "Größe"),
    ] {
        let pdf = pdfs.join(name);
        assert_eq!(pages(&pdf), expected, "pages of {name}");
        assert!(
            text(&pdf).contains(word),
            "{name} lacks {word}: {}",
            text(&pdf)
        );
        assert!(greys(&pdf) > 2, "{name} is blank");
    }
    let page = results.join("page.pdf");
    assert_eq!(pages(&page), 2);
    assert!(text(&page).contains("東京の雨 漢字"), "{}", text(&page));
    assert!(greys(&page) > 2);
}

#[test]
fn a_result_goes_back_in_and_comes_out_the_same() {
    let place = with_sandbox();
    let code =
        "import shutil, glob\nfor name in glob.glob('*.*'): shutil.copy(name, 'copy-of-' + name)";
    let names = [
        "letter.docx",
        "letter.pdf",
        "deck.pptx",
        "deck.png",
        "weather.xlsx",
        "wetter.csv",
        "wetter.tsv",
    ];
    let mut arguments = vec!["run".into(), "-c".into(), code.into()];
    arguments.extend(names.map(data));
    let said = place.glovebox(arguments);
    assert_eq!(said.status, 0, "{said}");
    for name in names {
        let copy = place.path().join(format!("results/copy-of-{name}"));
        assert!(
            fs_err::read(copy).unwrap() == fs_err::read(data(name)).unwrap(),
            "{name} is not what it was"
        );
    }
    assert_eq!(place.listed("results").len(), names.len());
}

#[test]
fn the_chart_of_the_penguins_is_a_picture() {
    let place = with_sandbox();
    let said = place.glovebox([
        "run".into(),
        example("penguins/report.py"),
        example("penguins/penguins.csv"),
    ]);
    assert_eq!(said.status, 0, "{said}");
    // 9 by 5.6 inches of 160 points each.
    let chart = place.path().join("results/penguins-chart.png");
    assert_eq!(png_size(&chart), (1440, 896));
}
