//! Text of every script is drawn, not boxed.

use crate::office::png_size;
use crate::{job, with_sandbox};

#[test]
fn a_figure_shows_latin_chinese_japanese_korean_and_emoji() {
    let place = with_sandbox();
    let said = place.glovebox(["run".into(), "-q".into(), job("draw_words.py")]);
    insta::assert_snapshot!(said.to_string(), @r"
    status 0
    -- out
    unassigned: Glyph 888
    figures: 7 scripts drawn
    emoji in colour: True
    ");
    assert_eq!(
        png_size(&place.path().join("results/figure-1.png")),
        (600, 400)
    );
}

#[test]
fn a_notebook_shows_them_too() {
    let place = with_sandbox();
    let source = "import matplotlib.pyplot as plt\nplt.title('Zürich 東京 서울 😀')\nplt.show()";
    let cell = serde_json::json!({"cell_type": "code", "source": source, "metadata": {},
                                  "outputs": [], "execution_count": null});
    let notebook = serde_json::json!({"nbformat": 4, "nbformat_minor": 4, "metadata": {},
                                      "cells": [cell]});
    place.file("n.ipynb", notebook.to_string());
    let said = place.glovebox(["run", "-q", "n.ipynb"]);
    assert_eq!((said.status, said.err.as_str()), (0, ""), "{said}");
    let notebook: serde_json::Value = serde_json::from_str(&place.read("results/n.ipynb")).unwrap();
    let outputs = notebook["cells"][0]["outputs"].as_array().unwrap();
    // No warning of a missing glyph beside the picture.
    assert_eq!(outputs.len(), 1, "{outputs:?}");
    assert!(outputs[0]["data"]["image/png"].is_string(), "{outputs:?}");
}
