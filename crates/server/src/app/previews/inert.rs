//! A page that people look at leads to no other one.
//!
//! What a policy forbids to load, it forbids only when the browser is about to ask for it. For a page
//! within a page, and for one that a link leads to, that is too late: Chromium looks its host up and
//! connects beforehand, and what code writes into the name of a host leaves the machine with that. A
//! hint to look up a host or to connect to it (`link`) it takes without asking the policy at all.

/// How the names of elements begin that a browser may load another document for, that have it look
/// up a host, or that give a link another address later on (`set`, `animate`). In MathML any element
/// can be a link.
const LOADING: [&str; 12] = [
    "iframe",
    "frame",
    "object",
    "embed",
    "applet",
    "portal",
    "fencedframe",
    "form",
    "link",
    "set",
    "animate",
    "math",
];

/// The names of elements that lead to another document where somebody clicks on them.
const LEADING: [&str; 2] = ["a", "area"];

/// How a link begins that leads to a place in the page itself. Of several addresses the first counts.
const WITHIN: &str = " href=\"#";

/// The same page with elements of no meaning in the places of those that lead out of it.
///
/// An element begins where `<` stands before its name, in either case, and nowhere else: neither
/// character can be written in another way there. So they are looked for in all of the text, whatever
/// a browser would take it for; in a script or in a comment nobody misses them.
pub(crate) fn inert(page: &str) -> String {
    let mut inert = String::with_capacity(page.len());
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        let (before, after) = rest.split_at(at + 1);
        inert.push_str(before);
        if LOADING.iter().any(|name| after_name(after, name).is_some()) || leads_out(after) {
            inert.push_str("x-");
        }
        rest = after;
    }
    inert.push_str(rest);
    inert
}

fn leads_out(element: &str) -> bool {
    LEADING.iter().any(|name| {
        after_name(element, name).is_some_and(|rest| {
            let is_whole =
                !rest.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '-');
            is_whole && !rest.starts_with(WITHIN)
        })
    })
}

/// What follows a name, where the text begins with it.
fn after_name<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (beginning, rest) = text.split_at_checked(name.len())?;
    beginning.eq_ignore_ascii_case(name).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_that_leads_out() {
        for (page, expected) in [
            ("<iframe src=x>", "<x-iframe src=x>"),
            (
                "<IFrame\nsrcdoc='<iframe src=x>'>",
                "<x-IFrame\nsrcdoc='<x-iframe src=x>'>",
            ),
            ("<frameset><frame src=x>", "<x-frameset><x-frame src=x>"),
            ("<<object data=x><embed>", "<<x-object data=x><x-embed>"),
            ("<p title='<iframe'>é</p>", "<p title='<x-iframe'>é</p>"),
            ("<form action=x>", "<x-form action=x>"),
            ("<a href=\"https://x\">", "<x-a href=\"https://x\">"),
            ("<A/href='x'>", "<x-A/href='x'>"),
            ("<a target=b href=\"#c\">", "<x-a target=b href=\"#c\">"),
            ("<a>", "<x-a>"),
            ("<area\thref=x>", "<x-area\thref=x>"),
            (
                "<link rel=dns-prefetch href=//x>",
                "<x-link rel=dns-prefetch href=//x>",
            ),
            (
                "<svg><a href=\"#x\"><set attributeName=href to=//x></a><animateTransform>",
                "<svg><a href=\"#x\"><x-set attributeName=href to=//x></a><x-animateTransform>",
            ),
            ("<math><mi href=//x>", "<x-math><mi href=//x>"),
        ] {
            assert_eq!(inert(page), expected);
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
            "<article><aside><abbr><a-b>",
            "<a href=\"#below\" class=x>below</a>",
        ] {
            assert_eq!(inert(page), page);
        }
    }
}
