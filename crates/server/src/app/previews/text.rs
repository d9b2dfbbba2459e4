//! Files that are text: read here, as nothing in them is run or unpacked.

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

/// How much of a text is shown, in bytes.
pub(crate) const SHOWN_BYTES: usize = 1 << 20;

/// The largest page for a frame, in bytes: half of one is none.
pub(crate) const MAX_HTML_BYTES: u64 = 16 << 20;

/// How deep JSON is indented at most.
const MAX_INDENT: usize = 20;

/// How long it may become by that, in bytes.
const MAX_LAID_OUT_BYTES: usize = 8 << 20;

/// How deep quotations and lists of markdown nest at most; the console shows no more.
const MAX_NESTING: usize = 60;

/// What bytes 0x80 to 0x9f are in Windows-1252; where it has nothing, the mark of what cannot be read.
const WINDOWS: [char; 32] = [
    '€', '\u{fffd}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{fffd}', 'Ž',
    '\u{fffd}', '\u{fffd}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{fffd}',
    'ž', 'Ÿ',
];

/// The text of bytes: UTF-8, UTF-16 with its mark, else Windows-1252. `is_cut` where the last
/// character may not be whole. Nothing where they are no text.
pub(crate) fn decode(bytes: &[u8], is_cut: bool) -> Option<String> {
    let units = |make: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes[2..]
            .chunks_exact(2)
            .map(|pair| make([pair[0], pair[1]]))
            .collect();
        String::from_utf16_lossy(&units)
    };
    let text = match bytes {
        [0xff, 0xfe, ..] => units(u16::from_le_bytes),
        [0xfe, 0xff, ..] => units(u16::from_be_bytes),
        _ => {
            let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
            if bytes.contains(&0) {
                return None;
            }
            match std::str::from_utf8(bytes) {
                Ok(text) => text.into(),
                Err(error) if is_cut && error.error_len().is_none() => {
                    String::from_utf8_lossy(&bytes[..error.valid_up_to()]).into_owned()
                }
                Err(_) => bytes.iter().map(|byte| of_windows(*byte)).collect(),
            }
        }
    };
    Some(text)
}

fn of_windows(byte: u8) -> char {
    match byte {
        0x80..=0x9f => WINDOWS[usize::from(byte - 0x80)],
        other => char::from(other),
    }
}

/// JSON with a line for each member and the same values, or nothing where it is no JSON or becomes
/// too long.
pub(crate) fn laid_out(text: &str) -> Option<String> {
    serde_json::from_str::<serde::de::IgnoredAny>(text).ok()?;
    let mut shown = String::with_capacity(text.len() * 2);
    let (mut depth, mut in_string, mut is_escaped) = (0_usize, false, false);
    let mut before = ' ';
    let new_line = |shown: &mut String, depth: usize| {
        shown.push('\n');
        shown.extend(std::iter::repeat_n("  ", depth.min(MAX_INDENT)));
    };
    for letter in text.chars() {
        if shown.len() > MAX_LAID_OUT_BYTES {
            return None;
        }
        if in_string {
            shown.push(letter);
            in_string = letter != '"' || is_escaped;
            is_escaped = letter == '\\' && !is_escaped;
            continue;
        }
        if letter.is_ascii_whitespace() {
            continue;
        }
        let is_end = matches!(letter, '}' | ']');
        if is_end {
            depth = depth.saturating_sub(1);
        }
        let is_empty = is_end && matches!(before, '{' | '[');
        if (is_end || matches!(before, '{' | '[' | ',')) && !is_empty {
            new_line(&mut shown, depth);
        }
        shown.push(letter);
        match letter {
            '{' | '[' => depth += 1,
            ':' => shown.push(' '),
            '"' => in_string = true,
            _ => {}
        }
        before = letter;
    }
    Some(shown)
}

/// Markdown as HTML that is safe to put into a page: made of tags of ours alone. What was written
/// as HTML is shown as what was written; links lead to web pages and addresses for mail; pictures
/// are named, not fetched.
pub(crate) fn markdown(text: &str) -> String {
    // No footnotes: their names would become ids in the page around it.
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let (mut open_links, mut nesting) = (Vec::new(), 0_usize);
    let events = Parser::new_ext(text, options).filter_map(move |event| match event {
        Event::Html(written) | Event::InlineHtml(written) => Some(Event::Text(written)),
        // A block of what was written as HTML is a paragraph of it.
        Event::Start(Tag::HtmlBlock) => Some(Event::Start(Tag::Paragraph)),
        Event::End(TagEnd::HtmlBlock) => Some(Event::End(TagEnd::Paragraph)),
        // Each level is some tags around what is in it: a small text could become a large page.
        Event::Start(Tag::BlockQuote(_) | Tag::List(_) | Tag::Item) => {
            nesting += 1;
            (nesting <= MAX_NESTING).then_some(event)
        }
        Event::End(TagEnd::BlockQuote(_) | TagEnd::List(_) | TagEnd::Item) => {
            let is_shown = nesting <= MAX_NESTING;
            nesting = nesting.saturating_sub(1);
            is_shown.then_some(event)
        }
        Event::Start(Tag::Link { dest_url, .. }) => {
            let is_good = is_outward(&dest_url);
            open_links.push(is_good);
            is_good.then(|| Event::InlineHtml(link(&dest_url).into()))
        }
        Event::End(TagEnd::Link) => open_links
            .pop()
            .unwrap_or_default()
            .then_some(Event::InlineHtml(CowStr::Borrowed("</a>"))),
        Event::Start(Tag::Image { .. }) => Some(Event::Text(CowStr::Borrowed("[picture: "))),
        Event::End(TagEnd::Image) => Some(Event::Text(CowStr::Borrowed("]"))),
        other => Some(other),
    });
    let mut shown = String::with_capacity(text.len() * 3 / 2);
    html::push_html(&mut shown, events);
    shown
}

fn is_outward(address: &str) -> bool {
    let address = address.trim_start().to_ascii_lowercase();
    ["https://", "http://", "mailto:"]
        .iter()
        .any(|scheme| address.starts_with(scheme))
}

fn link(address: &str) -> String {
    let mut tag = String::from("<a href=\"");
    for letter in address.trim_start().chars() {
        match letter {
            '&' => tag.push_str("&amp;"),
            '"' => tag.push_str("&quot;"),
            '\'' => tag.push_str("&#39;"),
            '<' => tag.push_str("&lt;"),
            '>' => tag.push_str("&gt;"),
            letter if letter.is_control() => {}
            letter => tag.push(letter),
        }
    }
    tag.push_str("\" rel=\"noopener noreferrer nofollow\" target=\"_blank\">");
    tag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_as_the_text_that_they_are() {
        assert_eq!(decode("\u{feff}é".as_bytes(), false).unwrap(), "é");
        assert_eq!(decode(b"\xff\xfea\0", false).unwrap(), "a");
        assert_eq!(decode(b"\xfe\xff\0a", false).unwrap(), "a");
        assert_eq!(decode(b"caf\xe9 \x80", false).unwrap(), "café €");
        assert_eq!(decode(b"caf\xc3", true).unwrap(), "caf");
        assert_eq!(decode(b"caf\xc3", false).unwrap(), "cafÃ");
        assert_eq!(decode(b"a\0b", false), None);
    }

    #[test]
    fn json_is_laid_out_and_stays_what_it_was() {
        let text = r#"{"b":[1,2.50,{}],"a":{"x":"{\"[,\\"},"e":[]}"#;
        let shown = laid_out(text).unwrap();
        insta::assert_snapshot!(shown, @r#"
        {
          "b": [
            1,
            2.50,
            {}
          ],
          "a": {
            "x": "{\"[,\\"
          },
          "e": []
        }
        "#);
        let same = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(same(&shown), same(text));
        assert_eq!(laid_out("{"), None);
        assert_eq!(laid_out(&"[".repeat(1_000_000)), None);
    }

    #[test]
    fn markdown_nests_no_deeper_than_is_shown() {
        let shown = markdown(&format!("{}x", ">".repeat(100_000)));
        assert_eq!(shown.matches("<blockquote>").count(), MAX_NESTING);
        assert_eq!(shown.matches("</blockquote>").count(), MAX_NESTING);
        assert!(shown.contains('x'), "the text stays");
        let shown = markdown("> - a\n>   - b\n\n> c");
        assert_eq!(shown.matches("<li>").count(), 2, "{shown}");
        assert_eq!(shown.matches("<blockquote>").count(), 2, "{shown}");
    }

    #[test]
    fn nothing_of_what_was_written_becomes_a_tag() {
        let shown = markdown(
            "# A\n\n<script>alert(1)</script>\n\nb <img src=x onerror=alert(1)> c\n\n\
             [go](javascript:alert(1)) [web](https://a.b/?x=\"y\"&z) ![p](http://evil/x.png)\n\n\
             <https://c.d> [data](data:text/html,x) [rel](../x)\n\n| a |\n|---|\n| 1 |\n",
        );
        for tag in ["<script", "<img", "javascript:", "evil", "data:", "../x"] {
            assert!(!shown.contains(tag), "{tag} in {shown}");
        }
        assert!(
            shown.contains("&lt;script&gt;alert(1)&lt;/script&gt;"),
            "{shown}"
        );
        assert!(
            shown.contains("<a href=\"https://a.b/?x=%22y%22&amp;z\"")
                || shown.contains("<a href=\"https://a.b/?x=&quot;y&quot;&amp;z\""),
            "{shown}"
        );
        assert!(shown.contains("[picture: p]"), "{shown}");
        assert!(shown.contains("<table>"), "{shown}");
    }

    #[test]
    fn marks_within_code_stay_letters() {
        let shown =
            markdown("`<b>`\n\n```html\n<script>x</script>\n```\n\n```\"><script>\ny\n```\n");
        assert!(!shown.contains("<script"), "{shown}");
        assert!(!shown.contains("<b>"), "{shown}");
    }
}
