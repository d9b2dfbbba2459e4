//! A notebook runs cell by cell, and comes out with its outputs.

use serde_json::{Value, json};

use crate::support::{Place, with_sandbox};

fn notebook(place: &Place, name: &str, cells: &[&str]) {
    let cells: Vec<_> = cells
        .iter()
        .map(|source| match source.strip_prefix("raises: ") {
            Some(source) => (source, json!({"tags": ["raises-exception"]})),
            None => (*source, json!({})),
        })
        .map(|(source, metadata)| {
            json!({"cell_type": "code", "source": source, "metadata": metadata,
                   "outputs": [], "execution_count": null})
        })
        .collect();
    let document =
        json!({"nbformat": 4, "nbformat_minor": 4, "metadata": {"mine": 1}, "cells": cells});
    place.file(name, document.to_string());
}

/// Count and outputs of each cell of an executed notebook.
fn outputs(place: &Place, name: &str) -> Vec<(Value, Value)> {
    let document: Value = serde_json::from_str(&place.read(name)).unwrap();
    assert_eq!(document["metadata"]["mine"], 1);
    let cells = document["cells"].as_array().unwrap();
    cells
        .iter()
        .map(|cell| (cell["execution_count"].clone(), cell["outputs"].clone()))
        .collect()
}

#[test]
fn outputs_stand_where_jupyter_puts_them() {
    let place = with_sandbox();
    place.file("in.csv", "a\n1\n");
    let cells = [
        "import pandas as pd\nprint('read')\npd.read_csv('in.csv')",
        "from IPython.display import display, clear_output\nbar = display('50 %', display_id='bar')",
        "for i in range(3):\n  clear_output(wait=True)\n  print(i)\n_ = display('100 %', display_id='bar', update=True)",
        "!echo from the shell",
        "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()",
    ];
    notebook(&place, "n.ipynb", &cells);
    let said = place.glovebox(["run", "n.ipynb", "in.csv"]);
    assert_eq!(said.status, 0, "{said}");
    let outputs = outputs(&place, "results/n.ipynb");
    assert_eq!(outputs[0].0, 1);
    assert_eq!(
        outputs[0].1[0],
        json!({"output_type": "stream", "name": "stdout", "text": ["read\n"]})
    );
    assert!(
        outputs[0].1[1]["data"]["text/html"][0]
            .as_str()
            .unwrap()
            .starts_with("<div>")
    );
    assert_eq!(outputs[1].1[0]["data"]["text/plain"], json!(["'100 %'"]));
    assert_eq!(
        outputs[2].1,
        json!([{"output_type": "stream", "name": "stdout", "text": ["2\n"]}])
    );
    assert_eq!(outputs[3].1[0]["text"], json!(["from the shell\n"]));
    assert!(
        outputs[4].1[0]["data"]["image/png"]
            .as_str()
            .unwrap()
            .starts_with("iVBOR")
    );
}

#[test]
fn it_stops_at_the_first_error_and_is_written_all_the_same() {
    let place = with_sandbox();
    notebook(
        &place,
        "n.ipynb",
        &[
            "raises: 1 / 0",
            "open('a.csv', 'w').write('1')",
            "nobody()",
            "print('never')",
        ],
    );
    let said = place.glovebox(["run", "n.ipynb"]);
    assert_eq!(said.status, 1, "{said}");
    assert_eq!(said.out, "");
    assert!(
        said.err.contains("ZeroDivisionError") && said.err.contains("NameError"),
        "{said}"
    );
    assert!(
        !said.err.contains('\x1b'),
        "colours without a terminal\n{said}"
    );
    let outputs = outputs(&place, "results/n.ipynb");
    assert_eq!(outputs[2].1[0]["ename"], "NameError");
    assert_eq!(outputs[3], (Value::Null, json!([])));
    assert_eq!(place.listed("results"), ["a.csv", "n.ipynb"]);
    let said = place.glovebox(["run", "n.ipynb", "--out", "."]);
    assert!(
        said.err.contains("saved ./n-2.ipynb"),
        "the notebook itself is never replaced\n{said}"
    );
}

#[test]
fn its_time_limit_is_for_all_cells_together() {
    let place = with_sandbox();
    notebook(
        &place,
        "n.ipynb",
        &["import time; time.sleep(0.3)", "time.sleep(100)"],
    );
    let said = place.glovebox(["run", "n.ipynb", "--timeout", "3s"]);
    assert_eq!(said.status, 124, "{said}");
    assert!(
        said.err.contains("n.ipynb reached the time limit of 3 s"),
        "{said}"
    );
    assert_eq!(outputs(&place, "results/n.ipynb")[0].0, 1);
}

#[test]
fn the_death_of_its_kernel_is_named() {
    let place = with_sandbox();
    notebook(&place, "n.ipynb", &["x = bytearray(b'1') * (2000 << 20)"]);
    let said = place.glovebox(["run", "n.ipynb", "--memory", "256M", "--disk", "16M"]);
    assert_eq!(said.status, 137, "{said}");
    assert!(
        said.err
            .contains("n.ipynb lost its kernel, which ran out of memory (limit 256 MiB)"),
        "{said}"
    );
    assert_eq!(place.listed("results"), ["n.ipynb"]);
}

#[test]
fn variables_are_set_in_its_kernel() {
    let place = with_sandbox();
    notebook(&place, "n.ipynb", &["import os; print(os.environ['A'])"]);
    let said = place.glovebox(["run", "n.ipynb", "--env", "A=it's \"ü\" \\n"]);
    assert_eq!(
        (said.status, said.out.as_str()),
        (0, "it's \"ü\" \\n\n"),
        "{said}"
    );
}

#[test]
fn variables_are_there_before_the_kernel_and_checked_like_those_of_scripts() {
    let place = with_sandbox();
    notebook(
        &place,
        "n.ipynb",
        &["import os; print(os.environ['OPENBLAS_NUM_THREADS'])"],
    );
    let said = place.glovebox(["run", "n.ipynb", "-q", "--env", "OPENBLAS_NUM_THREADS=7"]);
    assert_eq!((said.status, said.out.as_str()), (0, "7\n"), "{said}");
    for name in ["PATH", "LD_PRELOAD", "GLOVEBOX_DATA"] {
        let said = place.glovebox(["run", "n.ipynb", "-q", "--env", &format!("{name}=x")]);
        assert_eq!(
            said.to_string(),
            format!(
                "status 125\n-- err\nerror: starting the kernel: the variable `{name}` cannot be \
                 set from outside\n"
            )
        );
    }
}

#[test]
fn outputs_without_end_are_told_once_and_the_notebook_keeps_what_fits() {
    let place = with_sandbox();
    let flood = "print('\\n' * (9 << 20))";
    let amplified = "from IPython.display import display, update_display\n\
                     for _ in range(1000): display('', display_id='d')\n\
                     update_display('x' * (6 << 20), display_id='d')";
    let cells = [amplified, flood, flood, "open('a.txt', 'w').write('a')"];
    notebook(&place, "n.ipynb", &cells);
    let said = place.glovebox(["run", "n.ipynb"]);
    assert_eq!(said.status, 0, "{}", said.err);
    let note = "warning: the notebook's outputs are over 64 MiB; it keeps no more of them\n";
    assert_eq!(said.err.matches(note).count(), 1, "{}", said.err);
    assert_eq!(place.listed("results"), ["a.txt", "n.ipynb"]);
    assert!(place.read("results/n.ipynb").len() < 65 << 20);
}
