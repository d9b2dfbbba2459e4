//! Turns the events of a run into the outputs that stand in a notebook.

use std::collections::{BTreeMap, HashMap};

use glovebox_protocol::event::{EventBody, Shown};
use serde_json::{Value, json};

/// Where an output stands: the cell's index and its place among the cell's outputs.
type Place = (usize, usize);

/// The outputs of all cells that have run.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    cells: BTreeMap<usize, CellOutputs>,
    /// Displays that can still be updated, by their id, wherever they stand.
    displays: HashMap<String, Vec<Place>>,
    /// The cell that runs.
    current: usize,
}

#[derive(Debug, Default)]
struct CellOutputs {
    execution_count: Option<u32>,
    shown: Vec<Value>,
    /// The end of a stream's bytes that is no whole character yet.
    partial: Vec<u8>,
    clear_at_next: bool,
}

impl Outputs {
    /// A cell begins.
    pub(crate) fn begin(&mut self, cell: usize) {
        self.current = cell;
        self.cells.insert(cell, CellOutputs::default());
    }

    /// The count and the outputs of one cell, as they stand in a notebook.
    pub(super) fn of_cell(&self, cell: usize) -> (Option<u32>, Vec<Value>) {
        match self.cells.get(&cell) {
            Some(outputs) => (
                outputs.execution_count,
                outputs.shown.iter().map(split_lines).collect(),
            ),
            None => (None, Vec::new()),
        }
    }

    /// Takes in one event of the cell that runs.
    pub(crate) fn take(&mut self, event: &EventBody) {
        match event {
            EventBody::Stdout(bytes) => self.add_stream("stdout", &bytes.0),
            EventBody::Stderr(bytes) => self.add_stream("stderr", &bytes.0),
            EventBody::Display(shown) => {
                let output = json!({
                    "output_type": "display_data",
                    "data": shown.data,
                    "metadata": shown.metadata,
                });
                self.add_shown(output, shown.display_id.as_ref());
            }
            EventBody::Result {
                execution_count,
                shown,
            } => {
                let output = json!({
                    "output_type": "execute_result",
                    "execution_count": execution_count,
                    "data": shown.data,
                    "metadata": shown.metadata,
                });
                self.add_shown(output, shown.display_id.as_ref());
            }
            EventBody::Error {
                name,
                value,
                traceback,
            } => {
                self.add(json!({
                    "output_type": "error",
                    "ename": name,
                    "evalue": value,
                    "traceback": traceback,
                }));
            }
            EventBody::UpdateDisplay(shown) => self.update(shown),
            EventBody::ClearOutput { wait: true } => {
                self.cells.entry(self.current).or_default().clear_at_next = true;
            }
            EventBody::ClearOutput { wait: false } => self.clear(),
            _ => {}
        }
    }

    /// Adds output of an earlier cell that came after the cell's end.
    pub(crate) fn take_late(&mut self, cell: usize, bytes: &[u8]) {
        let present = std::mem::replace(&mut self.current, cell);
        self.add_stream("stdout", bytes);
        self.current = present;
    }

    /// The number in `In[n]`.
    pub(crate) fn set_count(&mut self, execution_count: u32) {
        self.cells.entry(self.current).or_default().execution_count = Some(execution_count);
    }

    /// Adds a line of Glovebox's own to the errors of the cell, such as that output was dropped.
    pub(crate) fn add_note(&mut self, note: &str) {
        self.add_stream("stderr", format!("{note}\n").as_bytes());
    }

    fn add_stream(&mut self, name: &str, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.clear_if_due();
        let cell = self.cells.entry(self.current).or_default();
        let last = cell
            .shown
            .last_mut()
            .filter(|output| output["output_type"] == "stream" && output["name"] == name);
        match last.and_then(|output| output.get_mut("text")) {
            Some(Value::String(text)) => {
                cell.partial.extend_from_slice(bytes);
                text.push_str(&take_text(&mut cell.partial));
            }
            _ => {
                cell.partial = bytes.to_vec();
                let text = take_text(&mut cell.partial);
                cell.shown
                    .push(json!({"output_type": "stream", "name": name, "text": text}));
            }
        }
    }

    fn add_shown(&mut self, output: Value, display_id: Option<&String>) {
        let place = self.add(output);
        if let Some(id) = display_id {
            self.displays.entry(id.clone()).or_default().push(place);
        }
    }

    fn add(&mut self, output: Value) -> Place {
        self.clear_if_due();
        let cell = self.cells.entry(self.current).or_default();
        cell.shown.push(output);
        (self.current, cell.shown.len() - 1)
    }

    /// An update changes every output with that id, in earlier cells too.
    fn update(&mut self, shown: &Shown) {
        let places = shown
            .display_id
            .as_ref()
            .and_then(|id| self.displays.get(id));
        for (cell, place) in places.into_iter().flatten() {
            let output = self
                .cells
                .get_mut(cell)
                .and_then(|cell| cell.shown.get_mut(*place));
            if let Some(output) = output {
                output["data"] = json!(shown.data);
                output["metadata"] = json!(shown.metadata);
            }
        }
    }

    fn clear_if_due(&mut self) {
        if self
            .cells
            .get(&self.current)
            .is_some_and(|cell| cell.clear_at_next)
        {
            self.clear();
        }
    }

    fn clear(&mut self) {
        let cell = self.cells.entry(self.current).or_default();
        cell.shown.clear();
        cell.partial.clear();
        cell.clear_at_next = false;
        for places in self.displays.values_mut() {
            places.retain(|(cell, _)| *cell != self.current);
        }
    }
}

/// Takes the text out of bytes that may end in the middle of a character; what is no text
/// becomes the replacement character.
fn take_text(bytes: &mut Vec<u8>) -> String {
    let mut text = String::new();
    let mut rest = bytes.as_slice();
    loop {
        match std::str::from_utf8(rest) {
            Ok(valid) => {
                text.push_str(valid);
                rest = &[];
                break;
            }
            Err(error) => {
                let (valid, after) = rest.split_at(error.valid_up_to());
                text.push_str(&String::from_utf8_lossy(valid));
                rest = after;
                match error.error_len() {
                    Some(length) => {
                        text.push(char::REPLACEMENT_CHARACTER);
                        rest = &rest[length..];
                    }
                    None => break,
                }
            }
        }
    }
    *bytes = rest.to_vec();
    text
}

/// Jupyter keeps text as a list of lines, so that a notebook can be compared line by line.
fn split_lines(output: &Value) -> Value {
    let mut output = output.clone();
    if let Some(text) = output.get_mut("text") {
        split(text);
    }
    if let Some(Value::Object(data)) = output.get_mut("data") {
        for (media_type, content) in data {
            let is_text = media_type.starts_with("text/")
                || media_type.ends_with("+xml")
                || media_type == "application/javascript";
            if is_text {
                split(content);
            }
        }
    }
    output
}

fn split(value: &mut Value) {
    if let Value::String(text) = value {
        *value = text.split_inclusive('\n').map(Value::from).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use glovebox_protocol::event::Output;

    fn stdout(bytes: &'static [u8]) -> EventBody {
        EventBody::Stdout(Output(Bytes::from_static(bytes)))
    }

    fn shown(text: &str, id: Option<&str>) -> Shown {
        Shown {
            data: serde_json::from_value(json!({"text/plain": text})).unwrap(),
            metadata: serde_json::Map::new(),
            display_id: id.map(String::from),
        }
    }

    fn of(outputs: &Outputs, cell: usize) -> Value {
        Value::Array(outputs.of_cell(cell).1)
    }

    #[test]
    fn output_of_one_stream_is_one_output_even_where_a_character_was_cut() {
        let mut outputs = Outputs::default();
        outputs.begin(3);
        for bytes in [&b"a\n\xe2\x82"[..], b"\xac b\xff", b"\n"] {
            outputs.take(&stdout(bytes));
        }
        outputs.take(&EventBody::Stderr(Output(Bytes::from_static(b"e"))));
        outputs.take(&stdout(b"c"));
        assert_eq!(
            of(&outputs, 3),
            json!([
                {"output_type": "stream", "name": "stdout", "text": ["a\n", "€ b\u{fffd}\n"]},
                {"output_type": "stream", "name": "stderr", "text": ["e"]},
                {"output_type": "stream", "name": "stdout", "text": ["c"]},
            ])
        );
    }

    #[test]
    fn an_update_changes_the_display_of_an_earlier_cell() {
        let mut outputs = Outputs::default();
        outputs.begin(0);
        outputs.take(&EventBody::Display(shown("50 %", Some("bar"))));
        outputs.begin(1);
        outputs.take(&EventBody::UpdateDisplay(shown("100 %", Some("bar"))));
        outputs.take(&EventBody::UpdateDisplay(shown("nobody", Some("other"))));
        assert_eq!(
            of(&outputs, 0),
            json!([{"output_type": "display_data", "data": {"text/plain": ["100 %"]}, "metadata": {}}])
        );
        assert_eq!(of(&outputs, 1), json!([]));
    }

    #[test]
    fn clearing_waits_for_the_next_output_when_asked_to() {
        let mut outputs = Outputs::default();
        outputs.begin(0);
        outputs.take(&EventBody::Display(shown("old", Some("x"))));
        outputs.take(&EventBody::ClearOutput { wait: true });
        assert_eq!(of(&outputs, 0)[0]["data"]["text/plain"], json!(["old"]));
        outputs.take(&stdout(b"new"));
        outputs.take(&EventBody::UpdateDisplay(shown("gone", Some("x"))));
        assert_eq!(
            of(&outputs, 0),
            json!([{"output_type": "stream", "name": "stdout", "text": ["new"]}])
        );
        outputs.take(&EventBody::ClearOutput { wait: false });
        assert_eq!(of(&outputs, 0), json!([]));
    }

    #[test]
    fn a_result_and_an_error_stand_as_jupyter_has_them() {
        let mut outputs = Outputs::default();
        outputs.begin(0);
        outputs.take(&EventBody::Result {
            execution_count: 4,
            shown: shown("1\n2", None),
        });
        outputs.take(&EventBody::Error {
            name: "ValueError".into(),
            value: "no".into(),
            traceback: vec!["t".into()],
        });
        outputs.set_count(4);
        assert_eq!(outputs.of_cell(0).0, Some(4));
        assert_eq!(
            of(&outputs, 0),
            json!([
                {"output_type": "execute_result", "execution_count": 4, "metadata": {},
                 "data": {"text/plain": ["1\n", "2"]}},
                {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": ["t"]},
            ])
        );
    }
}
