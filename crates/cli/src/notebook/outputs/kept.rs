//! One output as it is held until the notebook is written, and how it is written.
//!
//! What came as JSON is held as its text, which is an eighth of what its values would take, and
//! read again while it is written, one output at a time. Lines are only split while writing.

use std::rc::Rc;

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::{Map, Value};

/// What an output takes beside its text, in bytes.
pub(super) const OVERHEAD: u64 = 256;

/// How deep an output lies in the document: in the list of outputs of a cell in a list.
const INDENT: u64 = 5;

/// What the end of one line and the start of the next take: quotes, a comma, the indentation.
const PER_LINE: u64 = 4 + INDENT + 1;

/// The forms of a value and hints for them, as JSON text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Content {
    data: Box<str>,
    metadata: Box<str>,
}

impl Content {
    pub(super) fn of(data: &Map<String, Value>, metadata: &Map<String, Value>) -> Rc<Self> {
        // Values can always be written to memory.
        let text = |map| serde_json::to_string(map).unwrap_or_else(|_| "{}".into());
        Rc::new(Self {
            data: text(data).into(),
            metadata: text(metadata).into(),
        })
    }
}

/// An output.
#[derive(Debug)]
pub(super) enum Kept {
    /// Text of a stream.
    Stream { name: &'static str, text: String },
    /// A display, or a result where it has a count.
    Shown {
        execution_count: Option<u32>,
        content: Rc<Content>,
    },
    /// An exception.
    Error {
        name: Box<str>,
        value: Box<str>,
        /// A list of strings, as JSON text.
        traceback: Box<str>,
    },
}

impl Kept {
    /// An exception.
    pub(super) fn error(name: &str, value: &str, traceback: &[String]) -> Self {
        Self::Error {
            name: name.into(),
            value: value.into(),
            traceback: serde_json::to_string(traceback)
                .unwrap_or_else(|_| "[]".into())
                .into(),
        }
    }

    /// How many bytes it takes in the notebook, which is never less than it takes here.
    pub(super) fn cost(&self) -> u64 {
        written_bytes(&Written {
            kept: self,
            content: None,
        }) + OVERHEAD
    }

    /// The same with other content.
    pub(super) fn cost_with(content: &Rc<Content>) -> u64 {
        Self::Shown {
            execution_count: None,
            content: Rc::clone(content),
        }
        .cost()
    }
}

/// How many bytes text takes in the notebook, split into lines and escaped.
pub(super) fn text_cost(text: &str) -> u64 {
    let cost = |byte| match byte {
        b'\n' => 2 + PER_LINE,
        b'"' | b'\\' => 2,
        0..0x20 => 6,
        _ => 1,
    };
    text.bytes().map(cost).sum()
}

/// An output on its way into the notebook.
pub(super) struct Written<'a> {
    pub(super) kept: &'a Kept,
    /// What an update has put in its place.
    pub(super) content: Option<&'a Content>,
}

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Sorted, as everything else in the notebook is.
        let mut map = serializer.serialize_map(None)?;
        match self.kept {
            Kept::Stream { name, text } => {
                map.serialize_entry("name", name)?;
                map.serialize_entry("output_type", "stream")?;
                map.serialize_entry("text", &Lines(text))?;
            }
            Kept::Shown {
                execution_count,
                content,
            } => {
                let content = self.content.unwrap_or(content);
                map.serialize_entry("data", &Data(object(&content.data)))?;
                if let Some(count) = execution_count {
                    map.serialize_entry("execution_count", count)?;
                }
                map.serialize_entry("metadata", &object(&content.metadata))?;
                let kind = match execution_count {
                    Some(_) => "execute_result",
                    None => "display_data",
                };
                map.serialize_entry("output_type", kind)?;
            }
            Kept::Error {
                name,
                value,
                traceback,
            } => {
                map.serialize_entry("ename", name)?;
                map.serialize_entry("evalue", value)?;
                map.serialize_entry("output_type", "error")?;
                let traceback: Vec<String> = serde_json::from_str(traceback).unwrap_or_default();
                map.serialize_entry("traceback", &traceback)?;
            }
        }
        map.end()
    }
}

/// It was written by [`Content::of`], so it can be read.
fn object(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap_or_default()
}

/// Jupyter keeps text as a list of lines, so that a notebook can be compared line by line.
struct Lines<'a>(&'a str);

impl Serialize for Lines<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.split_inclusive('\n'))
    }
}

/// The forms of a value, those that are text in lines.
struct Data(Map<String, Value>);

impl Serialize for Data {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (media_type, content) in &self.0 {
            match content {
                Value::String(text) if is_text(media_type) => {
                    map.serialize_entry(media_type, &Lines(text))?;
                }
                content => map.serialize_entry(media_type, content)?,
            }
        }
        map.end()
    }
}

fn is_text(media_type: &str) -> bool {
    media_type.starts_with("text/")
        || media_type.ends_with("+xml")
        || media_type == "application/javascript"
}

/// Counts what an output takes in the document, its indentation included.
fn written_bytes(output: &Written<'_>) -> u64 {
    struct Counter(u64);
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // As deep as it will lie in the notebook. A counter cannot fail.
    let _ = super::super::write_json(&mut counter, &[[[[output]]]]);
    counter.0
}
