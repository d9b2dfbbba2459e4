//! Pages that people look at hold no other page.
//!
//! What a policy forbids to load, it forbids only when the browser is about to ask for it. For a page
//! within a page that is too late: Chromium looks its host up and connects beforehand, and what code
//! writes into the name of a host leaves the machine with that.

/// How the names of elements begin that a browser may load another document for.
const NAMES: [&str; 7] = [
    "iframe",
    "frame",
    "object",
    "embed",
    "applet",
    "portal",
    "fencedframe",
];

/// The same page with elements of no meaning in their places.
///
/// An element begins where `<` stands before its name, in either case, and nowhere else: neither
/// character can be written in another way there. So they are looked for in all of the text, whatever
/// a browser would take it for; in a script or in a comment nobody misses them.
pub(crate) fn without_frames(page: &str) -> String {
    let mut inert = String::with_capacity(page.len());
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        let (before, after) = rest.split_at(at + 1);
        inert.push_str(before);
        if NAMES.iter().any(|name| begins_with(after, name)) {
            inert.push_str("x-");
        }
        rest = after;
    }
    inert.push_str(rest);
    inert
}

fn begins_with(text: &str, name: &str) -> bool {
    let beginning = text.as_bytes().get(..name.len());
    beginning.is_some_and(|bytes| bytes.eq_ignore_ascii_case(name.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_element_that_loads_a_page_is_left() {
        for (page, inert) in [
            ("<iframe src=x>", "<x-iframe src=x>"),
            (
                "<IFrame\nsrcdoc='<iframe src=x>'>",
                "<x-IFrame\nsrcdoc='<x-iframe src=x>'>",
            ),
            ("<frameset><frame src=x>", "<x-frameset><x-frame src=x>"),
            ("<<object data=x><embed>", "<<x-object data=x><x-embed>"),
            ("<p title='<iframe'>é</p>", "<p title='<x-iframe'>é</p>"),
        ] {
            assert_eq!(without_frames(page), inert);
        }
    }

    #[test]
    fn everything_else_is_as_it_was() {
        for page in [
            "",
            "<",
            "<p>1 < 2 frames</p>",
            "a &lt;iframe&gt;",
            "</iframe>",
            "< iframe>",
            "<främe>",
        ] {
            assert_eq!(without_frames(page), page);
        }
    }
}
