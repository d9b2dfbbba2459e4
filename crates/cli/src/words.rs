//! Words on their way to a terminal: the one place that makes them harmless.
//!
//! Whatever is said may hold words of a sandbox or its agent (a reason, a message, a name), so
//! every line of this command's own goes through here. A program's output does not: it is the
//! program's, and passed on as it is. Neither does what goes to programs as JSON.

use glovebox_protocol::file::escape_for_display;

/// Longest text that is said at once, in bytes; more than any message of ours has.
const MAX_BYTES: usize = 8 * 1024;

/// What stands in front of a second line, so that it cannot pass for a line of its own.
const CONTINUED: &str = "    ";

/// One line for a terminal: without control characters, not too long, further lines indented.
pub(crate) fn for_terminal(text: &str) -> String {
    let text = text.trim_end();
    let kept = &text[..text.floor_char_boundary(MAX_BYTES)];
    let lines: Vec<_> = kept
        .split('\n')
        .map(|line| escape_for_display(line.as_bytes()))
        .collect();
    let mut said = lines.join(&format!("\n{CONTINUED}"));
    if kept.len() < text.len() {
        said.push_str(&format!(" … ({} bytes more)", text.len() - kept.len()));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_comes_through() {
        assert_eq!(
            for_terminal("a \u{1b}[2J\u{9b}1m\rb\u{202e}\nerror: forged\n\n"),
            "a \\u{1b}[2J\\u{9b}1m\\u{d}b\\u{202e}\n    error: forged"
        );
    }

    #[test]
    fn what_is_very_long_is_clipped_between_characters() {
        let said = for_terminal(&"€".repeat(100_000));
        assert!(
            said.ends_with("€ … (291810 bytes more)"),
            "{}",
            &said[8000..]
        );
        assert!(said.len() < MAX_BYTES + 100);
    }
}
