//! What files look like, made by a worker in real sandboxes.

use glovebox_store::Role;
use glovebox_testkit::repository;
use serde_json::{Value, json};

use crate::previewed::{Previewed, png_size};
use crate::stage::Stage;
use crate::talk::Talk;
use crate::visitor::{Visitor, types};

fn file(name: &str) -> Vec<u8> {
    fs_err::read(
        repository()
            .join("crates/cli/tests/real_files/data")
            .join(name),
    )
    .unwrap()
}

#[tokio::test]
async fn decks_and_letters_are_seen_page_by_page() {
    let place = Previewed::start().await;
    for (name, width, height, words) in [
        ("deck.pptx", 1600, 1200, "дождь"),
        ("letter.docx", 1237, 1600, "Regen in Zürich"),
        ("letter.pdf", 1237, 1600, "東京の雨"),
    ] {
        let view = place.preview(name, &file(name)).await;
        assert_eq!(view["state"], "ready", "{view}");
        assert_eq!(
            (&view["page_count"], &view["is_cut"]),
            (&json!(2), &json!(false))
        );
        let pages = view["pages"].as_array().unwrap();
        assert_eq!(pages.len(), 2, "{view}");
        for (number, page) in (1..).zip(pages) {
            assert_eq!(page["number"], number);
            assert_eq!(
                (&page["width"], &page["height"]),
                (&json!(width), &json!(height)),
                "{name}"
            );
            let picture = place.part(&view, &format!("pages/{number}")).await;
            assert_eq!(picture.headers["content-type"], "image/png");
            assert_eq!(picture.headers["x-content-type-options"], "nosniff");
            assert_eq!(png_size(&picture.bytes), (width, height));
            let small = place.part(&view, &format!("thumbnails/{number}")).await;
            let (width, height) = png_size(&small.bytes);
            assert_eq!(width.max(height), 240);
        }
        assert!(view.to_string().contains(words), "{view}");
        assert_eq!(place.part(&view, "pages/3").await.status, 404);
        assert_eq!(place.part(&view, "html").await.status, 404);
    }
    let live = place.server.app.store().live_leases().await.unwrap();
    assert_eq!(live.len(), 1, "the sandboxes of previews are gone");
    place.end().await;
}

#[tokio::test]
async fn tables_are_seen_as_their_sheets_show_them() {
    let place = Previewed::start().await;
    for name in ["weather.xlsx", "weather.xls"] {
        let view = place.preview(name, &file(name)).await;
        assert_eq!(view["state"], "ready", "{view}");
        let names: Vec<_> = view["sheets"]
            .as_array()
            .unwrap()
            .iter()
            .map(|sheet| sheet["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["2012", "2013", "2014", "2015"], "{name}");
        let rows = place.shown(&view, 2).await;
        assert_eq!(rows.len(), 32);
        assert_eq!(rows[0][0], "date");
        assert_eq!(rows[1][0], "2013-01-01", "{:?}", rows[1]);
    }
    for name in ["wetter.csv", "wetter.tsv"] {
        let view = place.preview(name, &file(name)).await;
        assert_eq!(view["sheets"][0]["columns"], 6, "{view}");
        let rows = place.shown(&view, 1).await;
        assert!(
            rows.iter()
                .flatten()
                .any(|cell| cell.contains("\"leicht\"\nund grau"))
        );
    }
    let long: String = (0..3000).map(|row| format!("{row};ä\n")).collect();
    let latin: Vec<u8> = long.chars().map(|letter| letter as u8).collect();
    let view = place.preview("long.csv", &latin).await;
    assert_eq!(view["is_cut"], true, "{view}");
    assert_eq!(
        view["cut_message"],
        "the first 1000 rows and at most 100 columns are shown"
    );
    let rows = place.shown(&view, 1).await;
    assert_eq!(
        (rows.len(), &rows[999][..]),
        (1000, &["999".to_owned(), "ä".into()][..])
    );
    place.end().await;
}

/// Makes a workbook in a sandbox, as people's code does: formulas that nobody has calculated, cells
/// made one, formats.
const WORKBOOK: &str = "
import datetime, openpyxl
from openpyxl.styles import Alignment
book = openpyxl.Workbook()
sheet = book.active
sheet.title = 'Formats'
for value, form in [(1234.5, '#,##0.00'), (0.256, '0.0%'), (-3, '0;(0)'), (1e6, '#,##0 \"kg\"'),
        (datetime.datetime(2024, 2, 29, 13, 5), 'd. mmm yyyy h:mm AM/PM'), (45000.75, 'yyyy-mm-dd hh:mm'),
        (1.5, '[h]:mm'), (0.75, '# ?/?'), (12345678, '0.00E+00'), (True, 'General'), (19.9, '[$€-407] 0.00'),
        (3, 'General'), (0.1 + 0.2, 'General')]:
    sheet.append([value])
    sheet.cell(sheet.max_row, 1).number_format = form
sheet['B1'] = 'one of three'
sheet['B1'].alignment = Alignment(horizontal='center')
sheet.merge_cells('B1:D1')
sums = book.create_sheet('Sums')
sums.append([2, 3])
sums['C1'] = '=A1*B1'
sums['C2'] = '=SUM(Formats!A12, C1)'
hidden = book.create_sheet('Hidden')
hidden.sheet_state = 'hidden'
book.save('book.xlsx')
";

#[tokio::test]
async fn a_workbook_shows_formats_merged_cells_and_what_formulas_come_to() {
    let place = Previewed::start().await;
    let (ada, server) = (&place.ada, &place.server);
    let sandbox = place.sandbox();
    place.finish_execution().await;
    let events = server.run(ada, &sandbox, WORKBOOK).await;
    let artifact = events.iter().find(|event| event["type"] == "artifact");
    let id = artifact.unwrap_or_else(|| panic!("{events:?}"))["data"]["saved_as"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let view = place.preview_of(id).await;
    assert_eq!(view["sheets"].as_array().map(Vec::len), Some(2), "{view}");
    let formats = place.part(&view, "sheets/1").await.ok();
    let shown: Vec<_> = formats["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row[0]["v"].as_str().unwrap())
        .collect();
    assert_eq!(
        shown,
        [
            "1,234.50",
            "25.6%",
            "(3)",
            "1,000,000 kg",
            "29. Feb 2024 1:05 PM",
            "2023-03-15 18:00",
            "36:00",
            "3/4",
            "1.23E+07",
            "TRUE",
            "€ 19.90",
            "3",
            "0.3",
        ]
    );
    assert_eq!(formats["merges"], json!([[0, 1, 0, 3]]));
    assert_eq!(
        formats["rows"][0][1],
        json!({ "v": "one of three", "t": "s", "a": "center" })
    );
    let sums = place.shown(&view, 2).await;
    assert_eq!(sums[0], ["2", "3", "6"]);
    assert_eq!(sums[1][2], "9");
    place.end().await;
}

#[tokio::test]
async fn pictures_are_shown_and_drawings_are_drawn() {
    let place = Previewed::start().await;
    let view = place.preview("deck.png", &file("deck.png")).await;
    assert_eq!(
        view["image"],
        json!({ "width": 960, "height": 720 }),
        "{view}"
    );
    let picture = place.part(&view, "image").await;
    assert_eq!(picture.headers["content-type"], "image/png");
    assert_eq!(png_size(&picture.bytes), (960, 720));

    let drawing = b"<svg xmlns='http://www.w3.org/2000/svg' width='200' height='100'>\
        <script>alert(1)</script><rect width='200' height='100' fill='#c00'/></svg>";
    let view = place.preview("a.svg", drawing).await;
    assert_eq!(view["state"], "ready", "{view}");
    let picture = place.part(&view, "image").await;
    let (width, height) = png_size(&picture.bytes);
    assert!(width.abs_diff(height * 2) <= 2, "{width} x {height}");

    let gif = b"GIF89a\x01\0\x01\0\x80\0\0\xff\xff\xff\0\0\0!\xf9\x04\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";
    let view = place.preview("dot.gif", gif).await;
    assert_eq!(view["image"], json!({ "width": 1, "height": 1 }), "{view}");
    place.end().await;
}

#[tokio::test]
async fn text_is_read_and_a_page_is_locked_in_its_frame() {
    let place = Previewed::start().await;
    let view = place.preview("a.json", br#"{"b":[1,2],"a":"x"}"#).await;
    assert_eq!(view["text_media"], "json", "{view}");
    let text = place.part(&view, "text").await;
    assert_eq!(text.headers["content-type"], "text/plain; charset=utf-8");
    assert_eq!(text.headers["content-disposition"], "attachment");
    assert_eq!(
        text.text(),
        "{\n  \"b\": [\n    1,\n    2\n  ],\n  \"a\": \"x\"\n}"
    );

    let view = place.preview("a.txt", "caf\u{e9}".as_bytes()).await;
    assert_eq!(place.part(&view, "text").await.text(), "café");

    let view = place
        .preview("a.md", b"# T\n\n<script>x</script> *y*")
        .await;
    assert_eq!(view["text_media"], "markdown", "{view}");
    let html = place.part(&view, "markdown").await.ok();
    let html = html["html"].as_str().unwrap();
    assert!(
        html.contains("<h1>T</h1>") && !html.contains("<script"),
        "{html}"
    );

    let page = b"<!doctype html><title>t</title><script>fetch('/api/v1/session')</script>\
        <img src=http://example.com/x.png><form action=/api/v1/session><a target=_top href=/>x</a>";
    let view = place.preview("a.html", page).await;
    assert_eq!(view["text_media"], "html", "{view}");
    let shown = place.part(&view, "html").await;
    // As it was written, but for what would leave the frame.
    let shut = String::from_utf8_lossy(page)
        .replace("<form ", "<x-form ")
        .replace("<a ", "<x-a ");
    assert_eq!(shown.text(), shut);
    for (name, value) in [
        ("content-type", "text/html; charset=utf-8"),
        (
            "content-security-policy",
            "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox",
        ),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "SAMEORIGIN"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cache-control", "no-store"),
    ] {
        assert_eq!(shown.headers[name], value, "{name}");
    }
    // Nothing else is a page, whatever its name says.
    let text = place.part(&view, "text").await;
    assert_eq!(text.headers["content-type"], "text/plain; charset=utf-8");
    assert_eq!(text.headers["x-frame-options"], "DENY");

    let view = place.preview("a.bin", b"\0\x01").await;
    assert_eq!(
        (&view["state"], &view["message"]),
        (
            &json!("failed"),
            &json!("there is no preview of this type of file")
        )
    );
    place.end().await;
}

#[tokio::test]
async fn a_preview_is_made_once_for_the_same_bytes() {
    let place = Previewed::start().await;
    let first = place.preview("a.csv", b"a,b\n1,2\n").await;
    let again = place.preview("another.csv", b"a,b\n1,2\n").await;
    assert_eq!(first["id"], again["id"]);
    let other = place.preview("a.tsv", b"a,b\n1,2\n").await;
    assert_ne!(first["id"], other["id"], "read as something else");
    // What comes into being in between is seen: many ask at once, and one makes it.
    let id = place.artifact("deck.pptx", &file("deck.pptx")).await;
    let path = format!("/api/v1/artifacts/{id}/preview");
    let all =
        futures_util::future::join_all((0..8).map(|_| place.server.get(&place.ada, &path))).await;
    let ids: Vec<Value> = all
        .into_iter()
        .map(|answer| answer.ok()["id"].clone())
        .collect();
    assert!(ids.iter().all(|id| *id == ids[0]));
    assert_eq!(place.preview_of(id).await["state"], "ready");
    let meters = place
        .server
        .app
        .store()
        .meters(place.workspace())
        .await
        .unwrap();
    assert_eq!(
        (meters.concurrent, meters.started_last_hour),
        (1, 1),
        "sandboxes of previews never count"
    );
    place.end().await;
}

#[tokio::test]
async fn other_bytes_are_not_shown_for_those_that_somebody_else_has() {
    let place = Previewed::start().await;
    let drawing = |colour: &str| {
        format!(
            "<svg xmlns='http://www.w3.org/2000/svg' width='200' height='100'>\
             <rect width='200' height='100' fill='{colour}'/></svg>"
        )
    };
    for (name, other, own) in [
        ("a.txt", "Buy!".to_owned(), "Sell".to_owned()),
        ("a.svg", drawing("#c00"), drawing("#00c")),
    ] {
        let (other, own) = (other.as_bytes(), own.as_bytes());
        let planted = place.artifact_said_to_be(name, other, own).await;
        let view = place.preview_of(planted).await;
        assert_eq!(view["state"], "failed", "{view}");
        let message = view["message"].as_str().unwrap();
        assert!(message.contains("not those that were saved"), "{message}");
        // Whoever has the bytes sees them all the same: it is tried again with theirs.
        let id = place.artifact(name, own).await;
        let view = place.view_when(id, |view| view["state"] == "ready").await;
        if name == "a.txt" {
            assert_eq!(place.part(&view, "text").await.text(), "Sell");
        }
    }
    place.end().await;
}

#[tokio::test]
async fn older_and_open_forms_of_documents_are_seen_too() {
    let place = Previewed::start().await;
    place.finish_execution().await;
    let sandbox = place.sandbox();
    for (name, endings) in [
        ("letter.docx", ["odt", "doc", "rtf"].as_slice()),
        ("deck.pptx", &["odp", "ppt"]),
        ("weather.xlsx", &["ods"]),
    ] {
        place.put(name, &file(name)).await;
        for ending in endings {
            let code = format!(
                "import subprocess\n\
                 subprocess.run(['soffice', '--headless', '--convert-to', '{ending}', '{name}'], check=True)"
            );
            let events = place.server.run(&place.ada, &sandbox, &code).await;
            assert!(!types(&events).contains(&"error"), "{events:?}");
            let stem = name.split('.').next().unwrap();
            let made = place.made(&format!("{stem}.{ending}")).await;
            let view = place.preview(&format!("a.{ending}"), &made).await;
            assert_eq!(view["state"], "ready", "{ending}: {view}");
            let parts = if stem == "weather" { "sheets" } else { "pages" };
            assert!(
                view[parts].as_array().unwrap().len() >= 2,
                "{ending}: {view}"
            );
        }
    }
    place.end().await;
}

#[tokio::test]
async fn a_preview_of_text_waits_for_none_that_needs_a_sandbox() {
    // Nobody works here: what was asked for waits.
    let stage = Stage::start().await;
    let workspace = stage.workspace("Main").await;
    let (_, ada) = stage.member(workspace, "ada", Role::Editor).await;
    let visitor = Visitor {
        address: stage.address,
    };
    let talk = Talk::begin(visitor, &ada, &workspace.to_string(), false).await;
    let mut asked = Vec::new();
    for (name, bytes) in [("a.csv", "a,b\n1,2\n"), ("a.md", "# T"), ("a.html", "<p>x")] {
        let file = talk.upload(name, bytes.as_bytes()).await;
        let path = format!("/api/v1/attachments/{file}/preview");
        let view = stage.get(&ada, &path).await.ok();
        assert_eq!(view["state"], "waiting", "{view}");
        asked.push(view["id"].as_str().unwrap().to_owned());
    }
    let waiting = async |queue: &str| {
        let mut subjects = Vec::new();
        while let Some(task) = stage.store().take_task(queue, 60_000).await.unwrap() {
            subjects.push(task.subject);
        }
        subjects
    };
    assert_eq!(waiting("preview").await, asked[..1]);
    assert_eq!(waiting("preview_text").await, asked[1..]);
}
