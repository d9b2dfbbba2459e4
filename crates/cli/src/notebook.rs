//! Notebooks in nbformat 4: reading one, and writing it with the outputs of its run.
//!
//! Only what a run needs is looked at; every other field is kept as it is. Nothing is executed
//! here.

mod outputs;

pub(crate) use outputs::Outputs;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use serde::ser::{Serialize, SerializeSeq as _, Serializer};
use serde_json::{Map, Value};

use crate::failure::{Failure, shown, unreadable};
use crate::quantity::size;

/// Largest notebook that is read, in bytes; as large as any other input may be.
const MAX_BYTES: u64 = 25 * 1024 * 1024;

/// How much of a notebook is put together before it is written, in bytes.
const WRITTEN_AT_ONCE: usize = 64 * 1024;

/// A notebook.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Notebook {
    document: Map<String, Value>,
    cells: Vec<Map<String, Value>>,
}

/// A cell that is to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CodeCell {
    /// Its place among all cells, from 0.
    pub(crate) index: usize,
    /// The code.
    pub(crate) source: String,
    /// Whether an error in it does not stop the notebook (tag `raises-exception`).
    pub(crate) may_raise: bool,
}

/// Why a file is no notebook that can be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BrokenNotebook {
    #[error("it is no JSON: {0}")]
    NotJson(String),
    #[error("{place}: {problem}")]
    Shape { place: String, problem: String },
    #[error("its format is {0}; 4.0 to 4.5 can be run")]
    Version(String),
    #[error("its language is {0}; only Python notebooks can be run")]
    Language(String),
}

impl BrokenNotebook {
    fn shape(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Shape {
            place: place.into(),
            problem: problem.into(),
        }
    }
}

impl Notebook {
    /// Reads a file.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let bytes = fs_err::metadata(path)
            .map_err(|error| unreadable(path, &error))?
            .len();
        if bytes > MAX_BYTES {
            return Err(Failure::bad_input(format!(
                "{} has {}; a notebook may have {} at most",
                shown(path),
                size(bytes),
                size(MAX_BYTES)
            )));
        }
        let text = fs_err::read(path).map_err(|error| unreadable(path, &error))?;
        Self::parse(&text).map_err(|error| Failure::Input {
            problem: format!("cannot run {}", shown(path)),
            fix: match &error {
                BrokenNotebook::Version(_) => {
                    Some("convert it with `jupyter nbconvert --to notebook --nbformat 4`".into())
                }
                _ => None,
            },
            cause: Some(error.into()),
        })
    }

    /// Reads a notebook's text.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, BrokenNotebook> {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        if text.iter().all(u8::is_ascii_whitespace) {
            return Err(BrokenNotebook::NotJson("the file is empty".into()));
        }
        let value: Value = serde_json::from_slice(text)
            .map_err(|error| BrokenNotebook::NotJson(error.to_string()))?;
        let Value::Object(mut document) = value else {
            return Err(BrokenNotebook::shape("the document", "it is no object"));
        };
        check_version(&document)?;
        check_language(&document)?;
        let Some(Value::Array(cells)) = document.remove("cells") else {
            return Err(BrokenNotebook::shape(
                "the document",
                "there is no list `cells`",
            ));
        };
        let cells = cells
            .into_iter()
            .enumerate()
            .map(|(index, cell)| checked_cell(index, cell))
            .collect::<Result<_, _>>()?;
        Ok(Self { document, cells })
    }

    /// The cells that are to be run: code that is not blank and not tagged `skip-execution`.
    pub(crate) fn code_cells(&self) -> Vec<CodeCell> {
        let runs = |(index, cell): (usize, &Map<String, Value>)| {
            let source = joined(cell.get("source")).unwrap_or_default();
            let is_code = cell.get("cell_type").and_then(Value::as_str) == Some("code");
            let is_wanted =
                is_code && !source.trim().is_empty() && !has_tag(cell, "skip-execution");
            is_wanted.then(|| CodeCell {
                index,
                source,
                may_raise: has_tag(cell, "raises-exception"),
            })
        };
        self.cells.iter().enumerate().filter_map(runs).collect()
    }

    /// Writes the notebook with the outputs of a run in place of those it came with.
    ///
    /// A cell that was not reached has none: what stands in the notebook is of one run.
    ///
    /// # Errors
    /// When it cannot be written there.
    pub(crate) fn write_with(
        &self,
        outputs: &Outputs,
        to: impl Write,
    ) -> Result<(), std::io::Error> {
        let mut to = std::io::BufWriter::with_capacity(WRITTEN_AT_ONCE, to);
        let fields = self.document.iter();
        let mut document: BTreeMap<_, _> = fields
            .map(|(name, value)| (&**name, Field::Same(value)))
            .collect();
        document.insert("cells", Field::Cells(&self.cells, outputs));
        write_json(&mut to, &document)?;
        to.write_all(b"\n")?;
        to.flush()
    }
}

/// Writes JSON as Jupyter does, with one space: another form would make every diff unreadable.
fn write_json(to: impl Write, value: &impl Serialize) -> Result<(), std::io::Error> {
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b" ");
    let mut serializer = serde_json::Serializer::with_formatter(to, formatter);
    Ok(value.serialize(&mut serializer)?)
}

/// A field of the document or of a cell on its way into the file.
enum Field<'a> {
    /// As it was.
    Same(&'a Value),
    Cells(&'a [Map<String, Value>], &'a Outputs),
    Count(Option<u32>),
    Outputs(outputs::CellOutputsOf<'a>),
}

impl Serialize for Field<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Same(value) => value.serialize(serializer),
            Self::Count(count) => count.serialize(serializer),
            Self::Outputs(outputs) => outputs.serialize(serializer),
            Self::Cells(cells, outputs) => {
                let mut list = serializer.serialize_seq(Some(cells.len()))?;
                for (index, cell) in cells.iter().enumerate() {
                    let fields = cell.iter();
                    let mut fields: BTreeMap<_, _> = fields
                        .map(|(name, value)| (&**name, Self::Same(value)))
                        .collect();
                    if cell.get("cell_type").and_then(Value::as_str) == Some("code") {
                        fields.insert("execution_count", Self::Count(outputs.count_of(index)));
                        fields.insert("outputs", Self::Outputs(outputs.of_cell(index)));
                    }
                    list.serialize_element(&fields)?;
                }
                list.end()
            }
        }
    }
}

fn check_version(document: &Map<String, Value>) -> Result<(), BrokenNotebook> {
    let number = |field: &str| match document.get(field) {
        None => Err(BrokenNotebook::shape(
            "the document",
            format!("there is no `{field}`"),
        )),
        Some(value) => value.as_u64().ok_or_else(|| {
            BrokenNotebook::shape("the document", format!("`{field}` is no whole number"))
        }),
    };
    let major = number("nbformat")?;
    let minor = if major == 4 {
        number("nbformat_minor")?
    } else {
        0
    };
    match (major, minor) {
        (4, 0..=5) => Ok(()),
        (4, minor) => Err(BrokenNotebook::Version(format!("4.{minor}"))),
        (major, _) => Err(BrokenNotebook::Version(major.to_string())),
    }
}

fn check_language(document: &Map<String, Value>) -> Result<(), BrokenNotebook> {
    let metadata = document.get("metadata");
    let named = |group: &str, field: &str| metadata?.get(group)?.get(field)?.as_str();
    let language = named("kernelspec", "language").or_else(|| named("language_info", "name"));
    match language {
        Some(language) if !language.to_ascii_lowercase().contains("python") => Err(
            BrokenNotebook::Language(language.chars().take(40).collect()),
        ),
        _ => Ok(()),
    }
}

fn checked_cell(index: usize, cell: Value) -> Result<Map<String, Value>, BrokenNotebook> {
    let broken = |problem: &str| BrokenNotebook::shape(format!("cell {}", index + 1), problem);
    let Value::Object(cell) = cell else {
        return Err(broken("it is no object"));
    };
    if !cell.get("cell_type").is_some_and(Value::is_string) {
        return Err(broken("there is no `cell_type`"));
    }
    if joined(cell.get("source")).is_none() {
        return Err(broken("`source` is neither text nor a list of lines"));
    }
    Ok(cell)
}

/// Text that stands as a string or as a list of lines.
fn joined(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) => Some(text.clone()),
        Value::Array(lines) => lines.iter().map(Value::as_str).collect(),
        _ => None,
    }
}

fn has_tag(cell: &Map<String, Value>, tag: &str) -> bool {
    let tags = cell
        .get("metadata")
        .and_then(|metadata| metadata.get("tags"))
        .and_then(Value::as_array);
    tags.is_some_and(|tags| tags.iter().any(|one| one.as_str() == Some(tag)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        Notebook::parse(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn a_broken_notebook_is_refused_with_the_place() {
        insta::assert_snapshot!([
            "",
            "{\n \"cells\": [\n",
            "[]",
            "{}",
            r#"{"nbformat": 3, "worksheets": []}"#,
            r#"{"nbformat": 4, "nbformat_minor": 6, "cells": []}"#,
            r#"{"nbformat": 4, "nbformat_minor": 5}"#,
            r#"{"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": {"language": "R"}}, "cells": []}"#,
            r#"{"nbformat": 4, "nbformat_minor": 5, "cells": [{"cell_type": "raw", "source": []}, {"cell_type": "code", "source": [1]}]}"#,
        ].map(refusal).join("\n"), @r"
        it is no JSON: the file is empty
        it is no JSON: EOF while parsing a list at line 3 column 0
        the document: it is no object
        the document: there is no `nbformat`
        its format is 3; 4.0 to 4.5 can be run
        its format is 4.6; 4.0 to 4.5 can be run
        the document: there is no list `cells`
        its language is R; only Python notebooks can be run
        cell 2: `source` is neither text nor a list of lines
        ");
    }

    #[test]
    fn only_code_runs_and_everything_else_stays() {
        let text = r##"{
 "cells": [
  {
   "attachments": {},
   "cell_type": "markdown",
   "id": "a",
   "metadata": {},
   "source": [
    "# Title"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 7,
   "id": "b",
   "metadata": {
    "tags": [
     "raises-exception"
    ]
   },
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": "old"
    }
   ],
   "source": "a = 1\na"
  },
  {
   "cell_type": "code",
   "execution_count": null,
   "id": "c",
   "metadata": {},
   "outputs": [],
   "source": []
  }
 ],
 "metadata": {
  "of_somebody_else": 1.0
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
"##;
        let notebook = Notebook::parse(text.as_bytes()).unwrap();
        let expected = CodeCell {
            index: 1,
            source: "a = 1\na".into(),
            may_raise: true,
        };
        assert_eq!(notebook.code_cells(), [expected]);
        let mut written = Vec::new();
        notebook
            .write_with(&Outputs::default(), &mut written)
            .unwrap();
        let written = String::from_utf8(written).unwrap();
        let unrun = text.replace("\"execution_count\": 7", "\"execution_count\": null");
        let (before, rest) = unrun.split_once("[\n    {\n     \"name\"").unwrap();
        let (_, after) = rest.split_once("}\n   ]").unwrap();
        assert_eq!(written, format!("{before}[]{after}"));
    }
}
