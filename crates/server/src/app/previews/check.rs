//! What comes out of a sandbox, looked at before it is kept: a file that was read there may have
//! taken over what made it. Every document has to be of a strict form, every number and length
//! within its bounds, every picture what it says.

use serde::{Deserialize, Serialize};

use super::contents::{Page, Sheet};

/// How many pages are shown.
pub(crate) const MAX_PAGES: u32 = 100;

/// How many sheets are shown.
pub(crate) const MAX_SHEETS: u32 = 30;

/// The longest side of a picture, in pixels.
const MAX_SIDE: u32 = 4096;

/// The largest picture of a page, in bytes.
pub(crate) const MAX_PAGE_BYTES: u64 = 12 << 20;

/// The largest picture, in bytes.
pub(crate) const MAX_IMAGE_BYTES: u64 = 40 << 20;

/// The largest document of a sheet, in bytes.
pub(crate) const MAX_SHEET_BYTES: u64 = 24 << 20;

/// The largest outcome, in bytes: mostly the text of pages.
pub(crate) const MAX_OUTCOME_BYTES: u64 = 24 << 20;

/// The longest extracted text, in bytes.
pub(crate) const MAX_TEXT_BYTES: u64 = 2 << 20;

/// All parts of one preview, in bytes.
pub(crate) const MAX_TOTAL_BYTES: u64 = 160 << 20;

const MAX_ROWS: u32 = 1000;
const MAX_COLUMNS: u32 = 100;
const MAX_MERGES: usize = 2000;
const MAX_CELL_CHARACTERS: usize = 2000;
const MAX_PAGE_CHARACTERS: usize = 20_000;
const MAX_NAME_CHARACTERS: usize = 200;
const MAX_LINE_CHARACTERS: usize = 300;

/// One line of what the script says while it works.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Line {
    /// How many pages or sheets there will be.
    pub(crate) pages: Option<u32>,
    /// A page that is there.
    pub(crate) page: Option<Page>,
    /// A sheet that is there.
    pub(crate) sheet: Option<Sheet>,
    /// The outcome is there.
    #[serde(default)]
    pub(crate) done: bool,
}

/// What the script says in the end.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Outcome {
    /// Why there is no preview.
    pub(crate) failed: Option<String>,
    /// What to do about that.
    pub(crate) fix: Option<String>,
    /// What is not shown.
    pub(crate) cut: Option<String>,
    pub(crate) pages: Option<Vec<Page>>,
    /// How many pages the file has.
    pub(crate) count: Option<u32>,
    pub(crate) sheets: Option<Vec<Sheet>>,
    pub(crate) image: Option<MadeImage>,
    /// Whether there is a text.
    pub(crate) text: bool,
    /// Whether that is for want of LibreOffice or poppler.
    pub(crate) is_without_office: bool,
}

/// A picture that the script made.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MadeImage {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) media: String,
}

/// A sheet as it is shown.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SheetView {
    /// Its name.
    pub(crate) name: String,
    /// The letters of its columns.
    pub(crate) columns: Vec<String>,
    /// How wide they are, in pixels; empty where nothing is known of it.
    pub(crate) widths: Vec<u32>,
    /// Cells by rows; rows may be shorter than there are columns.
    pub(crate) rows: Vec<Vec<Option<Cell>>>,
    /// Cells that were made one: first row, first column, last row, last column, from 0.
    #[schema(value_type = Vec<Vec<u32>>)]
    pub(crate) merges: Vec<[u32; 4]>,
    /// Whether the first row names the columns.
    pub(crate) first_row_is_header: bool,
}

/// A cell that is not empty.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cell {
    /// What it shows.
    pub(crate) v: String,
    /// What that is.
    pub(crate) t: CellKind,
    /// How it is aligned, where its sheet says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) a: Option<Align>,
}

/// What a cell holds: text, a number, a date, a truth, an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CellKind {
    S,
    N,
    D,
    B,
    E,
}

/// How a cell is aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Align {
    Left,
    Center,
    Right,
}

/// What came is not what was agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not as agreed")]
pub(crate) struct NotAsAgreed(pub(crate) &'static str);

/// A line for a person, of bounded length and without anything that is no letter.
pub(crate) fn line(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .take(MAX_LINE_CHARACTERS)
        .collect()
}

impl Page {
    /// Within its bounds, apart from its picture.
    pub(crate) fn check(&self) -> Result<(), NotAsAgreed> {
        let is_good = (1..=MAX_PAGES).contains(&self.number)
            && (1..=MAX_SIDE).contains(&self.width)
            && (1..=MAX_SIDE).contains(&self.height)
            && self.text.chars().count() <= MAX_PAGE_CHARACTERS;
        is_good.then_some(()).ok_or(NotAsAgreed("a page"))
    }
}

impl Sheet {
    /// Within its bounds.
    pub(crate) fn check(&self) -> Result<(), NotAsAgreed> {
        let is_good = (1..=MAX_SHEETS).contains(&self.number)
            && self.name.chars().count() <= MAX_NAME_CHARACTERS
            && self.rows <= MAX_ROWS
            && self.columns <= MAX_COLUMNS;
        is_good.then_some(()).ok_or(NotAsAgreed("a sheet"))
    }
}

impl MadeImage {
    /// Within its bounds, and of a type that is shown.
    pub(crate) fn check(&self, bytes: &[u8]) -> Result<(), NotAsAgreed> {
        let (width, height) = (self.width, self.height);
        let is_like_it = match self.media.as_str() {
            "image/png" => png_size(bytes) == Some((width, height)),
            "image/jpeg" => bytes.starts_with(b"\xff\xd8\xff"),
            "image/gif" => gif_size(bytes) == Some((width, height)),
            "image/webp" => bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP"),
            _ => false,
        };
        // One that moves is not made smaller; how large it is says its own head.
        let is_small = width > 0 && height > 0 && width.max(height) <= 4 * MAX_SIDE;
        (is_like_it && is_small)
            .then_some(())
            .ok_or(NotAsAgreed("a picture"))
    }
}

/// Reads a sheet, and gives it as it is kept: in the words of this program.
pub(crate) fn sheet(bytes: &[u8]) -> Result<Vec<u8>, NotAsAgreed> {
    const WRONG: NotAsAgreed = NotAsAgreed("a sheet");
    let sheet: SheetView = serde_json::from_slice(bytes).map_err(|_| WRONG)?;
    let columns = sheet.columns.len();
    let is_good = sheet.name.chars().count() <= MAX_NAME_CHARACTERS
        && columns <= MAX_COLUMNS as usize
        && sheet.columns.iter().all(|name| is_letters(name))
        && (sheet.widths.is_empty() || sheet.widths.len() == columns)
        && sheet.widths.iter().all(|width| *width <= 2000)
        && sheet.rows.len() <= MAX_ROWS as usize
        && sheet.rows.iter().all(|row| {
            let cells = || row.iter().flatten();
            row.len() <= columns
                && cells().all(|cell| cell.v.chars().count() <= MAX_CELL_CHARACTERS)
        })
        && sheet.merges.len() <= MAX_MERGES
        && sheet.merges.iter().all(|[first, left, last, right]| {
            first <= last && left <= right && *last < MAX_ROWS && *right < MAX_COLUMNS
        });
    if !is_good {
        return Err(WRONG);
    }
    serde_json::to_vec(&sheet).map_err(|_| WRONG)
}

fn is_letters(name: &str) -> bool {
    (1..=3).contains(&name.len()) && name.bytes().all(|letter| letter.is_ascii_uppercase())
}

/// Whether bytes are a PNG of this size: its head says so, and nothing but chunks follows.
pub(crate) fn is_png(bytes: &[u8], width: u32, height: u32) -> bool {
    png_size(bytes) == Some((width, height)) && is_chunks(&bytes[8..])
}

/// Whether bytes are a PNG as small as those of thumbnails.
pub(crate) fn is_small_png(bytes: &[u8]) -> bool {
    let is_small =
        |(width, height): (u32, u32)| (1..=512).contains(&width) && (1..=512).contains(&height);
    png_size(bytes).is_some_and(is_small) && is_chunks(&bytes[8..])
}

fn png_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let head = bytes.strip_prefix(b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR")?;
    let number = |at: usize| Some(u32::from_be_bytes(head.get(at..at + 4)?.try_into().ok()?));
    Some((number(0)?, number(4)?))
}

/// Whether PNG chunks follow each other to the last one, and nothing after it.
fn is_chunks(mut rest: &[u8]) -> bool {
    loop {
        let Some((head, _)) = rest.split_at_checked(8) else {
            return false;
        };
        let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let is_last = &head[4..] == b"IEND";
        let Some(after) = length.checked_add(12).and_then(|end| rest.get(end..)) else {
            return false;
        };
        if is_last {
            return after.is_empty();
        }
        rest = after;
    }
}

fn gif_size(bytes: &[u8]) -> Option<(u32, u32)> {
    if !(bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a")) {
        return None;
    }
    let number = |at: usize| {
        let pair: [u8; 2] = bytes.get(at..at + 2)?.try_into().ok()?;
        Some(u32::from(u16::from_le_bytes(pair)))
    };
    Some((number(6)?, number(8)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn table() -> Value {
        json!({ "name": "Q1", "columns": ["A", "AB"], "widths": [64, 80],
            "rows": [[{ "v": "1.50", "t": "n", "a": "right" }, null], [null]],
            "merges": [[0, 0, 1, 1]], "first_row_is_header": true })
    }

    fn is_taken(table: &Value) -> bool {
        sheet(table.to_string().as_bytes()).is_ok()
    }

    #[test]
    fn a_sheet_is_kept_in_our_own_words() {
        let kept = sheet(table().to_string().as_bytes()).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&kept).unwrap(), table());
    }

    #[test]
    fn a_sheet_outside_of_its_bounds_is_refused() {
        for (path, value) in [
            ("/columns", json!(["A", "<b>"])),
            ("/columns", json!(["A"])),
            ("/columns", json!(vec!["A"; 101])),
            ("/widths", json!([1])),
            ("/widths", json!([1, -1])),
            ("/rows", json!(vec![json!([]); 1001])),
            ("/rows/0/0/v", json!("x".repeat(2001))),
            ("/rows/0/0/t", json!("script")),
            ("/rows/0/0/a", json!("up")),
            ("/rows/0/0", json!({ "v": "1", "t": "n", "href": "x" })),
            ("/merges/0", json!([0, 0, 1000, 1])),
            ("/merges/0", json!([1, 0, 0, 1])),
            ("/name", json!("x".repeat(201))),
        ] {
            let mut table = table();
            *table.pointer_mut(path).unwrap() = value.clone();
            assert!(!is_taken(&table), "{path} {value} was taken");
        }
        assert!(sheet(b"[").is_err());
        assert!(sheet("[".repeat(100_000).as_bytes()).is_err());
    }

    #[test]
    fn a_picture_is_what_its_head_and_its_length_say() {
        let mut png =
            b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x02\0\0\0\x03\x08\x02\0\0\0CRC_".to_vec();
        png.extend_from_slice(b"\0\0\0\x01IDATxCRC_\0\0\0\0IENDCRC_");
        assert!(is_png(&png, 2, 3));
        assert!(!is_png(&png, 3, 2));
        for end in 0..png.len() {
            assert!(!is_png(&png[..end], 2, 3), "cut at {end}");
        }
        png.extend_from_slice(b"<script>");
        assert!(!is_png(&png, 2, 3), "something follows");
    }

    #[test]
    fn a_line_is_one_and_short() {
        assert_eq!(line("a\nb\u{1b}[31m"), "a b [31m");
        assert_eq!(line(&"x".repeat(1000)).len(), 300);
    }
}
