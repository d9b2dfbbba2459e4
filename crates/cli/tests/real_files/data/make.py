"""Makes the files beside it: the formats that people bring, written by the programs they use.

    python make.py ../../../../../examples/csv-summary/seattle-weather.csv

The numbers are those of the example (NOAA, public domain); the words are made up.

Needs LibreOffice (`soffice`) and, from PyPI, pandas, pyarrow, openpyxl, python-docx, python-pptx
and matplotlib. Nothing of it runs in the tests: what it made is committed, because a sandbox
must read what other programs wrote, and the toolbox writes neither XLS nor ODF.
"""

import pathlib
import subprocess
import sys
import tempfile

import docx
import matplotlib.pyplot as plt
import pandas as pd
import pptx
import pyarrow as pa
import pyarrow.parquet as pq
from pptx.util import Inches

HERE = pathlib.Path(__file__).resolve().parent
WORDS = "Regen in Zürich, 東京の雨, дождь"


def januaries(days):
    """A table for each year: the days of its January."""
    days = days[days["date"].dt.month == 1]
    return {str(year): table for year, table in days.groupby(days["date"].dt.year)}


def convert(source, form, folder=HERE):
    """Lets LibreOffice write `source` anew in another form."""
    with tempfile.TemporaryDirectory() as profile:
        command = ["soffice", f"-env:UserInstallation=file://{profile}", "--headless"]
        subprocess.run([*command, "--convert-to", form, "--outdir", folder, source], check=True)


def write_tables(days, folder):
    with pd.ExcelWriter(folder / "weather.xlsx", datetime_format="yyyy-mm-dd") as writer:
        for year, table in januaries(days).items():
            table.to_excel(writer, sheet_name=year, index=False)
    (folder / "rewritten").mkdir()
    convert(folder / "weather.xlsx", "xlsx", folder / "rewritten")
    convert(folder / "rewritten/weather.xlsx", "xls")
    (folder / "rewritten/weather.xlsx").rename(HERE / "weather.xlsx")

    table = pa.Table.from_pandas(days, preserve_index=False)
    place = table.schema.get_field_index("weather")
    table = table.set_column(place, "weather", table["weather"].dictionary_encode())
    pq.write_table(table, HERE / "weather.parquet", compression="snappy")

    # As spreadsheets of Central Europe write it: a mark in front, semicolons, commas as points.
    few = days.head(31).copy()
    few["weather"] = few["weather"].replace({"drizzle": 'Nieseln, "leicht"\nund grau', "snow": "Schneefälle"})
    few.to_csv(
        HERE / "wetter.csv", sep=";", decimal=",", encoding="utf-8-sig", lineterminator="\r\n", index=False,
        date_format="%d.%m.%Y",
    )  # fmt: skip
    few.to_csv(HERE / "wetter.tsv", sep="\t", encoding="utf-16", index=False)


def write_documents(days, folder):
    picture = folder / "rain.png"
    figure, axes = plt.subplots(figsize=(4, 2.5))
    january = days[days["date"].dt.month == 1]
    axes.bar(range(4), january.groupby(january["date"].dt.year)["precipitation"].sum())
    figure.savefig(picture, dpi=60)

    rows = [(str(day.date.date()), str(day.precipitation)) for day in days.head(5).itertuples()]
    letter = docx.Document()
    letter.add_heading("Rain in January", 1)
    letter.add_paragraph(WORDS)
    table = letter.add_table(rows=0, cols=2)
    for row in rows:
        for cell, text in zip(table.add_row().cells, row, strict=True):
            cell.text = text
    letter.add_picture(str(picture), width=Inches(4))
    letter.add_page_break()
    letter.add_paragraph("The second page.")
    letter.save(folder / "letter.docx")

    deck = pptx.Presentation()
    for title in ("Rain in January", WORDS):
        slide = deck.slides.add_slide(deck.slide_layouts[5])
        slide.shapes.title.text = title
        slide.shapes.add_picture(str(picture), Inches(2), Inches(2.5))
    deck.save(folder / "deck.pptx")

    (folder / "rewritten").mkdir(exist_ok=True)
    for name in ("letter.docx", "deck.pptx"):
        convert(folder / name, name.rsplit(".", 1)[1], folder / "rewritten")
        (folder / "rewritten" / name).rename(HERE / name)
    convert(HERE / "letter.docx", "pdf")
    convert(HERE / "deck.pptx", "png")


def main():
    days = pd.read_csv(sys.argv[1], parse_dates=["date"])
    with tempfile.TemporaryDirectory() as folder:
        write_tables(days, pathlib.Path(folder))
        write_documents(days, pathlib.Path(folder))


if __name__ == "__main__":
    main()
