//! An executed notebook is a notebook of format 4, as its schema has it, and loses nothing that
//! was in it.

use serde_json::{Map, Value, json};

use crate::support::Place;
use crate::{example, with_sandbox};

/// Fails where a notebook is not what the schema of format 4 asks for. Only what a program that
/// writes notebooks can get wrong is checked.
fn check_form(notebook: &Value) {
    assert_eq!(notebook["nbformat"], 4);
    let minor = notebook["nbformat_minor"].as_u64().unwrap();
    assert!(minor <= 5, "{minor}");
    only(
        notebook,
        &["cells", "metadata", "nbformat", "nbformat_minor"],
    );
    object(&notebook["metadata"]);
    let mut ids = Vec::new();
    for cell in notebook["cells"].as_array().unwrap() {
        check_text(&cell["source"]);
        object(&cell["metadata"]);
        let id = cell["id"].as_str();
        assert_eq!(id.is_some(), minor >= 5, "ids came with 4.5: {cell}");
        ids.extend(id);
        let common = ["cell_type", "id", "metadata", "source"];
        if cell["cell_type"] == "code" {
            only(
                cell,
                &[&common[..], &["execution_count", "outputs"]].concat(),
            );
            let count = &cell["execution_count"];
            assert!(count.is_null() || count.is_u64(), "{cell}");
            cell["outputs"]
                .as_array()
                .unwrap()
                .iter()
                .for_each(check_output);
        } else {
            assert!(["markdown", "raw"].contains(&cell["cell_type"].as_str().unwrap()));
            only(cell, &[&common[..], &["attachments"]].concat());
        }
    }
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "an id stands twice");
}

fn check_output(output: &Value) {
    match output["output_type"].as_str().unwrap() {
        "stream" => {
            only(output, &["name", "output_type", "text"]);
            assert!(["stdout", "stderr"].contains(&output["name"].as_str().unwrap()));
            check_text(&output["text"]);
        }
        "error" => {
            only(output, &["ename", "evalue", "output_type", "traceback"]);
            assert!(output["ename"].is_string() && output["evalue"].is_string());
            let lines = output["traceback"].as_array().unwrap();
            assert!(lines.iter().all(Value::is_string));
        }
        kind => {
            let count = (kind == "execute_result").then_some("execution_count");
            assert!(count.is_some() || kind == "display_data", "{kind}");
            let keys = ["data", "metadata", "output_type"];
            only(output, &[&keys[..], count.as_slice()].concat());
            assert_eq!(output["execution_count"].is_u64(), count.is_some());
            object(&output["metadata"]);
            for (media_type, data) in object(&output["data"]) {
                // JSON stands as it is; all else is text, in one piece or in lines.
                if media_type != "application/json" && !media_type.ends_with("+json") {
                    check_text(data);
                }
            }
        }
    }
}

fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().unwrap()
}

fn only(value: &Value, keys: &[&str]) {
    for key in object(value).keys() {
        assert!(
            keys.contains(&key.as_str()),
            "{key} does not belong in {value}"
        );
    }
}

fn check_text(value: &Value) {
    let is_text = value.is_string()
        || value
            .as_array()
            .is_some_and(|lines| lines.iter().all(Value::is_string));
    assert!(is_text, "{value} is neither a text nor its lines");
}

fn executed(place: &Place, name: &str) -> Value {
    let notebook = serde_json::from_str(&place.read(&format!("results/{name}"))).unwrap();
    check_form(&notebook);
    notebook
}

#[test]
fn the_example_comes_out_as_a_notebook_with_outputs() {
    let place = with_sandbox();
    let said = place.glovebox([
        "run".into(),
        example("notebook/weather.ipynb"),
        example("csv-summary/seattle-weather.csv"),
    ]);
    assert_eq!(said.status, 0, "{said}");
    let notebook = executed(&place, "weather.ipynb");
    let original = fs_err::read(example("notebook/weather.ipynb")).unwrap();
    let original: Value = serde_json::from_slice(&original).unwrap();
    let cells = notebook["cells"].as_array().unwrap();
    assert_eq!(cells.len(), original["cells"].as_array().unwrap().len());
    for (cell, before) in cells.iter().zip(original["cells"].as_array().unwrap()) {
        assert_eq!(cell["source"], before["source"]);
    }
    let has_outputs = |cell: &&Value| cell["outputs"].as_array().is_some_and(|o| !o.is_empty());
    assert!(cells.iter().filter(has_outputs).count() >= 3);
}

#[test]
fn every_kind_of_output_and_cell_keeps_the_form() {
    let place = with_sandbox();
    let code = |id: &str, source: &str| {
        json!({"cell_type": "code", "id": id, "source": source, "execution_count": 7,
               "metadata": {"tags": ["raises-exception"], "mine": {"deep": [1, null]}},
               "outputs": [{"output_type": "stream", "name": "stdout", "text": "from before"}]})
    };
    let display = "
from IPython.display import *
display(HTML('<b>ü</b>'), Markdown('# m'), Latex('$x$'), SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>'))
display(JSON({'a': [1, None]}), Math('x'), Javascript('1'))
display({'application/x.mine+json': {'k': 1}, 'text/plain': 'p'}, raw=True, metadata={'isolated': True})
";
    let cells = json!([
        {"cell_type": "markdown", "id": "m", "metadata": {}, "source": ["# Ü\n", "b"],
         "attachments": {"a.png": {"image/png": "aGk="}}},
        {"cell_type": "raw", "id": "r", "metadata": {"format": "text/x-rst"}, "source": "raw"},
        code("both", "import sys\nprint('o\\r\\n\u{1f600}')\nprint('e', file=sys.stderr)\n1, 2"),
        code("display", display),
        code("error", "def f(): raise ValueError('wrong \\x1b[31m ü')\nf()"),
        code("syntax", "this is wrong"),
        code("empty", ""),
        code("quiet", "x = 1"),
        code("bytes", "import os\nos.write(1, bytes(range(256)))\nNone"),
    ]);
    let metadata = json!({"kernelspec": {"name": "python3", "display_name": "P", "language": "python"},
                          "mine": [1, 2.5, "ü"]});
    let notebook =
        json!({"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": cells});
    place.file("all.ipynb", notebook.to_string());
    let said = place.glovebox(["run", "-q", "all.ipynb"]);
    assert_eq!(said.status, 0, "{said}");
    let executed = executed(&place, "all.ipynb");
    assert_eq!(executed["metadata"]["mine"], metadata["mine"]);
    let kinds = |index: usize| {
        let outputs = executed["cells"][index]["outputs"].as_array().unwrap();
        let kind = |output: &Value| output["output_type"].as_str().unwrap().to_owned();
        outputs.iter().map(kind).collect::<Vec<_>>().join(" ")
    };
    for unchanged in [0, 1] {
        assert_eq!(executed["cells"][unchanged], cells[unchanged]);
    }
    assert_eq!(kinds(2), "stream stream execute_result");
    assert_eq!(kinds(3), ["display_data"; 8].join(" "));
    assert_eq!((kinds(4), kinds(5)), ("error".into(), "error".into()));
    assert_eq!((kinds(6), kinds(7)), (String::new(), String::new()));
    assert_eq!(kinds(8), "stream");
    assert_eq!(executed["cells"][7]["metadata"]["mine"]["deep"][0], 1);
}
