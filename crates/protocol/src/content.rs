//! Telling file types by their content: what leaves a sandbox, and what people bring.

mod archive;

pub use archive::Archive;

/// Bytes at the beginning that tell most types.
const HEAD_BYTES: usize = 64 * 1024;

/// A type of file that is known by its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileType {
    /// A deck of slides.
    Pptx,
    /// A workbook.
    Xlsx,
    /// A document.
    Docx,
    /// A PDF.
    Pdf,
    /// A table with commas.
    Csv,
    /// A table with tabs.
    Tsv,
    /// JSON.
    Json,
    /// Text.
    Txt,
    /// Markdown.
    Md,
    /// HTML.
    Html,
    /// A PNG picture.
    Png,
    /// A JPEG picture.
    Jpeg,
    /// A GIF picture.
    Gif,
    /// A WebP picture.
    Webp,
    /// An SVG picture.
    Svg,
}

impl FileType {
    /// The type that an ending stands for: lowercase, without the dot.
    #[must_use]
    pub fn of(ending: &str) -> Option<Self> {
        Some(match ending {
            "pptx" => Self::Pptx,
            "xlsx" => Self::Xlsx,
            "docx" => Self::Docx,
            "pdf" => Self::Pdf,
            "csv" => Self::Csv,
            "tsv" => Self::Tsv,
            "json" => Self::Json,
            "txt" => Self::Txt,
            "md" => Self::Md,
            "html" => Self::Html,
            "png" => Self::Png,
            "jpg" | "jpeg" => Self::Jpeg,
            "gif" => Self::Gif,
            "webp" => Self::Webp,
            "svg" => Self::Svg,
            _ => return None,
        })
    }

    /// Its media type.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Pptx => {
                "application/vnd.openxmlformats-officedocument.presentationml.presentation"
            }
            Self::Xlsx => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            Self::Docx => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            Self::Pdf => "application/pdf",
            Self::Csv => "text/csv",
            Self::Tsv => "text/tab-separated-values",
            Self::Json => "application/json",
            Self::Txt => "text/plain",
            Self::Md => "text/markdown",
            Self::Html => "text/html",
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
            Self::Svg => "image/svg+xml",
        }
    }

    const fn is_office(self) -> bool {
        matches!(self, Self::Pptx | Self::Xlsx | Self::Docx)
    }

    const fn is_text(self) -> bool {
        matches!(
            self,
            Self::Csv | Self::Tsv | Self::Json | Self::Txt | Self::Md | Self::Html | Self::Svg
        )
    }

    /// Whether a file of this type can begin like this.
    fn begins(self, head: &[u8]) -> bool {
        match self {
            Self::Pdf => head.starts_with(b"%PDF-"),
            Self::Png => head.starts_with(b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR"),
            Self::Jpeg => head.starts_with(b"\xff\xd8\xff"),
            Self::Gif => head.starts_with(b"GIF87a") || head.starts_with(b"GIF89a"),
            Self::Webp => head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP"),
            Self::Svg => head.windows(4).any(|window| window == b"<svg"),
            _ => true,
        }
    }
}

/// Checks the content of one file, as it is read.
#[derive(Debug)]
pub struct Check {
    file_type: FileType,
    head: Vec<u8>,
    text: Option<Text>,
    archive: Option<Archive>,
}

impl Check {
    /// Begins to check whether a file is of a type.
    #[must_use]
    pub fn new(file_type: FileType) -> Self {
        let text = file_type.is_text().then(|| Text::Begins(Vec::new()));
        Self {
            file_type,
            head: Vec::new(),
            text,
            archive: file_type.is_office().then(Archive::default),
        }
    }

    /// Takes the next bytes. Says whether the content can still be right.
    pub fn update(&mut self, bytes: &[u8]) -> bool {
        if self.head.len() < HEAD_BYTES {
            let room = HEAD_BYTES - self.head.len();
            self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
        if let Some(archive) = &mut self.archive {
            archive.update(bytes);
        }
        self.text.as_mut().is_none_or(|text| text.update(bytes))
    }

    /// Whether the whole content was right.
    #[must_use]
    pub fn finish(self) -> bool {
        let file_type = self.file_type;
        file_type.begins(&self.head)
            && self.text.is_none_or(Text::finish)
            && self
                .archive
                .is_none_or(|archive| archive.is_office(file_type))
    }
}

/// Text in UTF-8, or in UTF-16 with a mark in front; without NULs.
#[derive(Debug)]
enum Text {
    /// Fewer than two bytes have come.
    Begins(Vec<u8>),
    /// The bytes of a character that is not whole yet.
    Utf8(Vec<u8>),
    Utf16 {
        big_endian: bool,
        /// The first byte of a unit of two.
        half: Option<u8>,
        /// Whether the second unit of a pair has to come.
        in_pair: bool,
    },
}

impl Text {
    fn update(&mut self, bytes: &[u8]) -> bool {
        match self {
            Self::Begins(begun) => {
                begun.extend_from_slice(bytes);
                if begun.len() < 2 {
                    return true;
                }
                let begun = std::mem::take(begun);
                let big_endian = match begun[..2] {
                    [0xfe, 0xff] => Some(true),
                    [0xff, 0xfe] => Some(false),
                    _ => None,
                };
                *self = match big_endian {
                    Some(big_endian) => Self::Utf16 {
                        big_endian,
                        half: None,
                        in_pair: false,
                    },
                    None => Self::Utf8(Vec::new()),
                };
                self.update(&begun)
            }
            Self::Utf8(pending) => utf8(pending, bytes),
            Self::Utf16 {
                big_endian,
                half,
                in_pair,
            } => bytes.iter().all(|byte| match half.take() {
                None => {
                    *half = Some(*byte);
                    true
                }
                Some(first) => {
                    let unit = [first, *byte];
                    let unit = if *big_endian {
                        u16::from_be_bytes(unit)
                    } else {
                        u16::from_le_bytes(unit)
                    };
                    match unit {
                        0 => false,
                        0xd800..=0xdbff => !std::mem::replace(in_pair, true),
                        0xdc00..=0xdfff => std::mem::replace(in_pair, false),
                        _ => !*in_pair,
                    }
                }
            }),
        }
    }

    fn finish(self) -> bool {
        match self {
            Self::Begins(begun) => !begun.contains(&0) && std::str::from_utf8(&begun).is_ok(),
            Self::Utf8(pending) => pending.is_empty(),
            Self::Utf16 { half, in_pair, .. } => half.is_none() && !in_pair,
        }
    }
}

/// Takes bytes of UTF-8 that may end within a character, whose beginning is kept for the next.
fn utf8(pending: &mut Vec<u8>, bytes: &[u8]) -> bool {
    if bytes.contains(&0) {
        return false;
    }
    let joined;
    let bytes = if pending.is_empty() {
        bytes
    } else {
        joined = [&std::mem::take(pending), bytes].concat();
        &joined[..]
    };
    match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) if error.error_len().is_none() => {
            *pending = bytes[error.valid_up_to()..].to_vec();
            true
        }
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn is(ending: &str, bytes: &[u8], cut: usize) -> bool {
        let mut check = Check::new(FileType::of(ending).unwrap());
        bytes.chunks(cut).all(|chunk| check.update(chunk)) && check.finish()
    }

    #[test]
    fn text_is_told_from_what_is_none() {
        let utf16 = |text: &str, bytes: fn(u16) -> [u8; 2]| {
            let text = format!("\u{feff}{text}");
            text.encode_utf16().flat_map(bytes).collect::<Vec<_>>()
        };
        let good: [&[u8]; 7] = [
            b"",
            b"a",
            "\u{e9}\u{1f427}\n".as_bytes(),
            "\u{feff}a,b".as_bytes(),
            &utf16("a\u{1f427}b", u16::to_le_bytes),
            &utf16("a\u{1f427}b", u16::to_be_bytes),
            b"\x1b[31mred",
        ];
        let bad: [&[u8]; 9] = [
            b"a\0",
            b"\0",
            b"\xff",
            b"caf\xe9",
            b"caf\xc3",
            b"\xff\xfea",
            b"\xff\xfea\0\0\0",
            b"\xff\xfe\x3d\xd8",
            b"\xff\xfe\x27\xdc",
        ];
        for cut in [1, 2, 3, 1000] {
            for bytes in good {
                assert!(
                    is("csv", bytes, cut),
                    "{bytes:?} cut into {cut} was refused"
                );
            }
            for bytes in bad {
                assert!(!is("csv", bytes, cut), "{bytes:?} cut into {cut} passed");
            }
        }
    }

    #[test]
    fn a_picture_has_to_begin_like_one() {
        assert!(is("png", b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR....", 3));
        assert!(is("jpeg", b"\xff\xd8\xff\xe0", 1));
        assert!(is("webp", b"RIFF....WEBPVP8 ", 5));
        assert!(is("svg", b"<?xml version='1.0'?>\n<svg/>", 4));
        for ending in ["png", "jpg", "gif", "webp", "svg", "pdf", "xlsx"] {
            for bytes in [&b""[..], b"<html>", b"\x7fELF"] {
                assert!(!is(ending, bytes, 2), "{bytes:?} passed as {ending}");
            }
        }
    }

    proptest! {
        #[test]
        fn text_is_judged_alike_however_it_is_cut(text in any::<String>(), cut in 1usize..9) {
            prop_assert_eq!(is("txt", text.as_bytes(), cut), !text.contains('\0'));
        }

        #[test]
        fn bytes_are_judged_alike_however_they_are_cut(
            bytes in proptest::collection::vec(any::<u8>(), 0..64),
            cut in 1usize..9,
        ) {
            prop_assert_eq!(is("txt", &bytes, cut), is("txt", &bytes, 64));
        }
    }
}
