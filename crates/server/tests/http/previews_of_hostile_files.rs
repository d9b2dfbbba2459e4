//! Files that are meant to do harm, or are broken: each ends in one clear line, and the next preview
//! is made as if nothing had been.

use serde_json::{Value, json};

use crate::previewed::Previewed;

/// Makes files in a sandbox that no program of people's makes.
const MAKE: &str = r#"
import io, os, zipfile
import docx, openpyxl, pptx, pypdf
from PIL import Image
from reportlab.pdfgen import canvas

def pdf(pages):
    out = io.BytesIO()
    drawn = canvas.Canvas(out, pagesize=(200, 100))
    for number in range(pages):
        drawn.drawString(20, 50, f'page {number + 1}')
        drawn.showPage()
    drawn.save()
    return out.getvalue()

open('many.pdf', 'wb').write(pdf(10_000))
open('cut.pdf', 'wb').write(pdf(3)[:900])
writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf(1)))
writer.encrypt('secret', algorithm='AES-256')
writer.write('locked.pdf')

deck = pptx.Presentation()
deck.slides.add_slide(deck.slide_layouts[0]).shapes.title.text = 'T'
deck.save('whole.pptx')
content = open('whole.pptx', 'rb').read()
open('cut.pptx', 'wb').write(content[: len(content) // 2])

book = openpyxl.Workbook()
book.active['A1'] = 1
book.save('whole.xlsx')
with zipfile.ZipFile('bomb.xlsx', 'w', zipfile.ZIP_DEFLATED) as bomb:
    with zipfile.ZipFile('whole.xlsx') as whole:
        for name in whole.namelist():
            if name != 'xl/worksheets/sheet1.xml':
                bomb.writestr(name, whole.read(name))
    with bomb.open('xl/worksheets/sheet1.xml', 'w') as sheet:
        for _ in range(700):
            sheet.write(b' ' * (1 << 20))

# Says of itself that it is small.
lie = bytearray(open('bomb.xlsx', 'rb').read())
at = lie.rfind(b'PK\x01\x02')
lie[at + 24 : at + 28] = (1000).to_bytes(4, 'little')
open('lie.xlsx', 'wb').write(lie)

letter = docx.Document()
letter.add_paragraph('x')
letter.save('whole.docx')
with zipfile.ZipFile('whole.docx') as whole, zipfile.ZipFile('laughs.docx', 'w') as laughs:
    for name in whole.namelist():
        text = whole.read(name)
        if name == 'word/document.xml':
            entities = ''.join(f'<!ENTITY l{n} "{"&l%d;" % (n - 1) * 10}">' for n in range(1, 12))
            text = (f'<!DOCTYPE w [<!ENTITY l0 "lol">{entities}]><w:document xmlns:w='
                '"http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r>'
                '<w:t>&l11;</w:t></w:r></w:p></w:body></w:document>').encode()
        laughs.writestr(name, text)

# Of entities that unpack to more than any memory holds, in one part of a workbook each.
laughs = ('<!DOCTYPE x [<!ENTITY l0 "lol">'
    + ''.join(f'<!ENTITY l{n} "{"&l%d;" % (n - 1) * 10}">' for n in range(1, 12)) + ']>')
book.active['A1'] = 'a word'
book.save('words.xlsx')
for made, part, root in [('sheet.xlsx', 'xl/worksheets/sheet1.xml', '<worksheet'),
        ('parts.xlsx', 'xl/workbook.xml', '<workbook')]:
    with zipfile.ZipFile('words.xlsx') as whole, zipfile.ZipFile(made, 'w', zipfile.ZIP_DEFLATED) as bomb:
        for name in whole.namelist():
            text = whole.read(name).decode()
            if name == part:
                text = laughs + text[text.index(root):].replace('>a word<', '>&l11;<')
            bomb.writestr(name, text)
with zipfile.ZipFile('whole.pptx') as whole, zipfile.ZipFile('laughs.pptx', 'w') as bomb:
    for name in whole.namelist():
        text = whole.read(name)
        if name == 'ppt/slides/slide1.xml':
            text = laughs.encode() + text[text.index(b'<p:sld'):].replace(b'>T<', b'>&l11;<')
        bomb.writestr(name, text)

Image.new('1', (30_000, 30_000)).save('huge.png')
open('svg.svg', 'w').write('<!DOCTYPE svg [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
    '<svg xmlns="http://www.w3.org/2000/svg"><text>&a;</text></svg')
sorted(os.listdir('.'))
"#;

fn said(view: &Value) -> &str {
    assert_eq!(view["state"], "failed", "{view}");
    view["message"].as_str().unwrap()
}

#[tokio::test]
async fn each_hostile_file_ends_in_one_clear_line() {
    let place = Previewed::start().await;
    place.finish_execution().await;
    let sandbox = place.sandbox();
    let events = place.server.run(&place.ada, &sandbox, MAKE).await;
    assert!(
        events.iter().any(|event| event["type"] == "result"),
        "{events:?}"
    );

    for (name, line) in [
        ("cut.pptx", "the file is damaged, or no presentation"),
        ("cut.pdf", "the file is damaged, or no PDF"),
        ("locked.pdf", "the file is protected by a password"),
        (
            "bomb.xlsx",
            "the file unpacks to more than a preview may read",
        ),
        (
            "huge.png",
            "the picture has 30000 × 30000 pixels, more than a preview shows",
        ),
    ] {
        let bytes = place.made(name).await;
        let view = place.preview(name, &bytes).await;
        assert_eq!(said(&view), line, "{name}");
    }
    for name in [
        "sheet.xlsx",
        "parts.xlsx",
        "laughs.docx",
        "laughs.pptx",
        "svg.svg",
    ] {
        let bytes = place.made(name).await;
        let id = place.artifact(name, &bytes).await;
        let view = place.preview_of(id).await;
        let line = said(&view);
        assert!(
            line.starts_with("this file cannot be previewed: its XML declares entities"),
            "{name}: {line}"
        );
        let whole = format!("/api/v1/artifacts/{id}/content");
        let whole = place.server.get(&place.ada, &whole).await;
        assert_eq!((whole.status, whole.bytes.as_ref()), (200, &bytes[..]));
    }
    // Of this it is not said here what is told, only that something is.
    let bytes = place.made("lie.xlsx").await;
    let view = place.preview("lie.xlsx", &bytes).await;
    let is_told = view["message"]
        .as_str()
        .is_some_and(|line| line.len() < 200);
    assert!(is_told || view["state"] == "ready", "{view}");
    let many = place.made("many.pdf").await;
    let id = place.artifact("many.pdf", &many).await;
    // The first page is seen while the others are drawn.
    let begun = place
        .view_when(id, |view| view["pages"][0].is_object())
        .await;
    assert_eq!(begun["state"], "making", "{begun}");
    assert_eq!(begun["progress"]["of"], 100);
    assert_eq!(place.part(&begun, "pages/1").await.status, 200);
    let view = place.preview_of(id).await;
    assert_eq!(view["page_count"], 10_000, "{view}");
    assert_eq!(view["pages"].as_array().unwrap().len(), 100);
    assert_eq!(
        view["cut_message"],
        "the first 100 of 10000 pages are shown"
    );
    assert_eq!(view["pages"][99]["text"], "page 100");
    place.end().await;
}

#[tokio::test]
async fn what_is_not_what_its_name_says_is_told() {
    let place = Previewed::start().await;
    for (name, bytes, line) in [
        (
            "a.pptx",
            &b""[..],
            "the file is damaged, or no presentation",
        ),
        (
            "a.docx",
            b"PK\x03\x04 and so on",
            "the file is damaged, or no document",
        ),
        (
            "a.xlsx",
            b"<html></html>",
            "the file is damaged, or no workbook",
        ),
        (
            "a.pdf",
            b"%PDF-1.7\n%%EOF",
            "the file is damaged, or no PDF",
        ),
        (
            "a.png",
            b"\x89PNG\r\n\x1a\nno",
            "the file is damaged, or no picture",
        ),
        ("a.svg", b"<html/>", "the file is damaged, or no drawing"),
        (
            "a.csv",
            b"a,b\n\0\0\0,1\n",
            "it is no text: there are NUL bytes in it",
        ),
        (
            "a.txt",
            b"\0\0\0",
            "it is no text: there are NUL bytes in it",
        ),
        (
            "a.xlsx",
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 E\0n\0c\0r\0y\0p\0t\0e\0d\0P\0a\0c\0k\0a\0g\0e\0",
            "the file is protected by a password",
        ),
    ] {
        let view = place.preview(name, bytes).await;
        assert_eq!(said(&view), line, "{name}");
    }
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let view = place.preview("deep.json", deep.as_bytes()).await;
    assert_eq!(
        (&view["state"], &view["text_media"]),
        (&json!("ready"), &json!("text"))
    );
    let wide = "x,".repeat(200_000);
    let view = place.preview("wide.csv", wide.as_bytes()).await;
    assert_eq!(
        (&view["sheets"][0]["columns"], &view["is_cut"]),
        (&json!(100), &json!(true))
    );
    let view = place.preview("a.csv", b"").await;
    assert_eq!(
        (&view["state"], &view["sheets"][0]["rows"]),
        (&json!("ready"), &json!(0))
    );
    place.end().await;
}
