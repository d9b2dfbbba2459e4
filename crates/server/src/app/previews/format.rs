//! As what a file is read.

/// A type of file that there are previews of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Format {
    word: &'static str,
    way: Way,
}

/// What makes a preview of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Our script in a sandbox, which is told the word.
    Sandbox,
    /// This program: it is text.
    Text,
    /// Nothing: there is no preview of it.
    Nothing,
}

const NONE: Format = Format {
    word: "other",
    way: Way::Nothing,
};

/// Endings of names, the word of each, and what reads it. The script in the sandbox knows the words.
const ENDINGS: [(&str, &str, Way); 39] = [
    ("pptx", "pptx", Way::Sandbox),
    ("ppt", "ppt", Way::Sandbox),
    ("odp", "odp", Way::Sandbox),
    ("docx", "docx", Way::Sandbox),
    ("doc", "doc", Way::Sandbox),
    ("odt", "odt", Way::Sandbox),
    ("rtf", "rtf", Way::Sandbox),
    ("pdf", "pdf", Way::Sandbox),
    ("xlsx", "xlsx", Way::Sandbox),
    ("xlsm", "xlsx", Way::Sandbox),
    ("xls", "xls", Way::Sandbox),
    ("ods", "ods", Way::Sandbox),
    ("csv", "csv", Way::Sandbox),
    ("tsv", "tsv", Way::Sandbox),
    ("tab", "tsv", Way::Sandbox),
    ("png", "png", Way::Sandbox),
    ("jpg", "jpeg", Way::Sandbox),
    ("jpeg", "jpeg", Way::Sandbox),
    ("gif", "gif", Way::Sandbox),
    ("webp", "webp", Way::Sandbox),
    ("svg", "svg", Way::Sandbox),
    ("json", "json", Way::Text),
    ("md", "markdown", Way::Text),
    ("markdown", "markdown", Way::Text),
    ("html", "html", Way::Text),
    ("htm", "html", Way::Text),
    ("txt", "text", Way::Text),
    ("log", "text", Way::Text),
    ("py", "text", Way::Text),
    ("xml", "text", Way::Text),
    ("yaml", "text", Way::Text),
    ("yml", "text", Way::Text),
    ("toml", "text", Way::Text),
    ("ini", "text", Way::Text),
    ("sql", "text", Way::Text),
    ("js", "text", Way::Text),
    ("css", "text", Way::Text),
    ("sh", "text", Way::Text),
    ("ipynb", "json", Way::Text),
];

impl Format {
    /// By the ending of a name, else by the media type.
    pub(crate) fn of(name: &str, media_type: &str) -> Self {
        // Letters and points stand for themselves in an encoded name.
        let name = name.to_lowercase();
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
        let by_ending = |wanted: &str| {
            let found = ENDINGS.iter().find(|(ending, ..)| *ending == wanted);
            found.map(|&(_, word, way)| Self { word, way })
        };
        let media_type = media_type.split(';').next().unwrap_or_default().trim();
        let of_media_type = match media_type {
            "application/pdf" => "pdf",
            "text/csv" => "csv",
            "text/tab-separated-values" => "tsv",
            "application/json" => "json",
            "text/markdown" => "md",
            "text/html" => "html",
            "image/png" => "png",
            "image/jpeg" => "jpeg",
            "image/gif" => "gif",
            "image/webp" => "webp",
            "image/svg+xml" => "svg",
            other if other.ends_with("presentationml.presentation") => "pptx",
            other if other.ends_with("wordprocessingml.document") => "docx",
            other if other.ends_with("spreadsheetml.sheet") => "xlsx",
            other if other.starts_with("text/") => "txt",
            _ => "",
        };
        by_ending(ending)
            .or_else(|| by_ending(of_media_type))
            .unwrap_or(NONE)
    }

    /// The format that was stored as this word.
    pub(crate) fn of_word(word: &str) -> Self {
        let found = ENDINGS.iter().find(|(_, known, _)| *known == word);
        found.map_or(NONE, |&(_, word, way)| Self { word, way })
    }

    /// Its word: in rows, in the API, and for the script, which gets a file of this ending.
    pub(crate) const fn word(self) -> &'static str {
        self.word
    }

    pub(crate) const fn way(self) -> Way {
        self.way
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_more_than_a_media_type() {
        for (name, media_type, word) in [
            ("Report.PPTX", "application/octet-stream", "pptx"),
            ("a.b.jpg", "", "jpeg"),
            ("q%C3%A4.md", "text/plain", "markdown"),
            ("README", "text/plain; charset=utf-8", "text"),
            ("letter", "application/pdf", "pdf"),
            ("song.mp3", "audio/mpeg", "other"),
            ("pptx", "", "other"),
        ] {
            assert_eq!(Format::of(name, media_type).word(), word, "{name}");
        }
    }

    #[test]
    fn a_stored_word_leads_back() {
        for (ending, ..) in ENDINGS {
            let format = Format::of(&format!("a.{ending}"), "");
            assert_eq!(Format::of_word(format.word()), format);
        }
        assert_eq!(Format::of_word("other").way(), Way::Nothing);
    }
}
