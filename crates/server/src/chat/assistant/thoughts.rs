//! Leaves out what a model thinks aloud before it answers: some endpoints send it as part of the
//! answer, between `<think>` and `</think>`.

const BEGIN: &str = "<think>";
const END: &str = "</think>";

/// Leaves thoughts out of one answer that comes in pieces.
#[derive(Debug, Default)]
pub(super) struct WithoutThoughts {
    state: State,
}

#[derive(Debug)]
enum State {
    /// It is not known yet whether the answer begins with thoughts.
    Begin(String),
    /// The end of the thoughts is looked for; the last characters may be its beginning.
    Inside(String),
    /// The answer itself.
    Over,
}

impl Default for State {
    fn default() -> Self {
        Self::Begin(String::new())
    }
}

/// Leaves thoughts out of a whole answer.
pub(super) fn without_thoughts(text: &str) -> String {
    let mut filter = WithoutThoughts::default();
    let mut clean = filter.push(text);
    clean.push_str(&filter.end());
    clean
}

impl WithoutThoughts {
    /// Takes a piece and gives what belongs to the answer.
    pub(super) fn push(&mut self, piece: &str) -> String {
        match &mut self.state {
            State::Over => piece.to_owned(),
            State::Begin(held) => {
                held.push_str(piece);
                let begun = held.trim_start();
                if let Some(inside) = begun.strip_prefix(BEGIN) {
                    let inside = inside.to_owned();
                    self.state = State::Inside(String::new());
                    return self.push(&inside);
                }
                if BEGIN.starts_with(begun) {
                    return String::new();
                }
                let answer = std::mem::take(held);
                self.state = State::Over;
                answer
            }
            State::Inside(tail) => {
                tail.push_str(piece);
                if let Some(at) = tail.find(END) {
                    let answer = tail[at + END.len()..].trim_start().to_owned();
                    // What follows may begin with more empty lines, which do no harm.
                    self.state = State::Over;
                    return answer;
                }
                let keep = tail.len().saturating_sub(END.len());
                let keep = (keep..=tail.len()).find(|at| tail.is_char_boundary(*at));
                tail.drain(..keep.unwrap_or_default());
                String::new()
            }
        }
    }

    /// Gives what was held back and is none.
    pub(super) fn end(&mut self) -> String {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Begin(held) => held,
            State::Inside(_) | State::Over => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thoughts_at_the_beginning_are_left_out_however_they_are_cut() {
        for (said, shown) in [
            ("<think>hm 世</think>\n\nYes.", "Yes."),
            ("\n<think></think>Yes.", "Yes."),
            ("<think>for ever", ""),
            ("Yes <think>no</think>", "Yes <think>no</think>"),
            ("<thin", "<thin"),
            ("<b>x</b>", "<b>x</b>"),
            ("", ""),
        ] {
            assert_eq!(without_thoughts(said), shown);
            for (at, _) in said.char_indices() {
                let mut filter = WithoutThoughts::default();
                let mut clean = filter.push(&said[..at]);
                clean.push_str(&filter.push(&said[at..]));
                clean.push_str(&filter.end());
                assert_eq!(clean.trim_start(), shown, "{said} cut at {at}");
            }
        }
    }
}
