"""Tries to read files that are empty or cut short, and says what each library makes of them."""

import pathlib

import docx
import pandas as pd
import pypdf
from PIL import Image

READERS = {
    ".csv": pd.read_csv,
    ".xlsx": pd.read_excel,
    ".parquet": pd.read_parquet,
    ".docx": docx.Document,
    ".pdf": pypdf.PdfReader,
    ".png": Image.open,
}

for path in sorted(pathlib.Path().rglob("*")):
    if path.is_dir() or path.suffix == ".py":
        continue
    try:
        READERS[path.suffix](path)
    except Exception as error:
        print(f"{path.name}: {type(error).__name__}")
    else:
        print(f"{path.name}: was read")
