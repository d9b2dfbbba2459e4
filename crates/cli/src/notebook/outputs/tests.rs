use super::*;
use bytes::Bytes;
use glovebox_protocol::event::Output;
use serde_json::{Value, json};

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
    let mut text = Vec::new();
    super::super::write_json(&mut text, &outputs.of_cell(cell)).unwrap();
    serde_json::from_slice(&text).unwrap()
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
    assert_eq!(outputs.count_of(0), Some(4));
    assert_eq!(
        of(&outputs, 0),
        json!([
            {"output_type": "execute_result", "execution_count": 4, "metadata": {},
             "data": {"text/plain": ["1\n", "2"]}},
            {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": ["t"]},
        ])
    );
}

/// The size of one cell's outputs in the notebook.
fn written(outputs: &Outputs, cell: usize) -> u64 {
    struct Count(u64);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    super::super::write_json(&mut count, &[[[outputs.of_cell(cell)]]]).unwrap();
    count.0
}

#[test]
fn an_update_of_very_many_displays_is_held_once_and_counted_for_each() {
    let mut outputs = Outputs::default();
    outputs.begin(0);
    for _ in 0..100_000 {
        assert_eq!(
            outputs.take(&EventBody::Display(shown("", Some("d")))),
            None
        );
    }
    outputs.begin(1);
    // Nine gigabytes of text, were each display to have it.
    let large = EventBody::UpdateDisplay(shown(&"x".repeat(9 << 20), Some("d")));
    let note = outputs.take(&large).unwrap();
    assert_eq!(
        note,
        "warning: the notebook's outputs are over 64 MiB; it keeps no more of them"
    );
    assert_eq!(outputs.take(&large), None, "it is told once");
    assert_eq!(
        of(&outputs, 1),
        json!([{"output_type": "stream", "name": "stderr", "text": [format!("{note}\n")]}])
    );
    assert!(written(&outputs, 0) < BUDGET);
}

#[test]
fn the_outputs_of_all_cells_together_have_one_budget() {
    let mut outputs = Outputs::with_budget(100_000);
    let mut notes = Vec::new();
    for cell in 0..4 {
        outputs.begin(cell);
        for _ in 0..30 {
            // A line takes ten times its room in the notebook.
            notes.extend(outputs.take(&EventBody::Stdout(Output("\n".repeat(100).into()))));
        }
    }
    assert_eq!(notes.len(), 1);
    let all: u64 = (0..4).map(|cell| written(&outputs, cell)).sum();
    assert!((70_000..=101_000).contains(&all), "{all}");
    // Why the notebook stopped is kept in any case.
    let error = EventBody::Error {
        name: "MemoryError".into(),
        value: String::new(),
        traceback: Vec::new(),
    };
    assert_eq!(outputs.take(&error), None);
    assert_eq!(of(&outputs, 3)[0]["ename"], "MemoryError");
}

#[test]
fn what_is_cleared_gives_its_room_back() {
    let mut outputs = Outputs::with_budget(10_000);
    outputs.begin(0);
    let bar = |n: u32| shown(&format!("{n} of 1000 {}", "#".repeat(1000)), Some("bar"));
    outputs.take(&EventBody::Display(bar(0)));
    for n in 1..=1000 {
        assert_eq!(outputs.take(&EventBody::UpdateDisplay(bar(n))), None);
    }
    assert_eq!(
        of(&outputs, 0)[0]["data"]["text/plain"][0]
            .as_str()
            .unwrap()
            .get(..4),
        Some("1000")
    );
    for n in 0..1000 {
        assert_eq!(outputs.take(&EventBody::ClearOutput { wait: true }), None);
        assert_eq!(outputs.take(&EventBody::Display(bar(n))), None);
        assert_eq!(outputs.take(&EventBody::UpdateDisplay(bar(n))), None);
        assert_eq!(outputs.take(&stdout(b"\xe2\x82")), None);
    }
    outputs.take(&EventBody::ClearOutput { wait: false });
    // Only the id is remembered.
    assert!(outputs.used < 2 * OVERHEAD, "{}", outputs.used);
}

#[test]
fn what_is_counted_is_what_is_written() {
    let mut outputs = Outputs::default();
    outputs.begin(0);
    let deep: Value =
        serde_json::from_str(&format!("{}1{}", "[".repeat(60), "]".repeat(60))).unwrap();
    let mut many = shown("a\n\"b\"\n\u{1}", None);
    many.data
        .insert("application/json".into(), json!([deep, [0, 0, {"a": []}]]));
    outputs.take(&EventBody::Display(many));
    outputs.take(&stdout(b"a\n\tb\x00\n\n"));
    let all = written(&outputs, 0);
    assert!(
        all <= outputs.used && outputs.used < all + 3 * OVERHEAD,
        "{all} {}",
        outputs.used
    );
}
