"""Small work with each library, so that what it imports and keeps on first use is there.

Everything here must leave no trace that code could find: no open figure, no changed setting, no
file, nothing drawn from a random generator.
"""

import io
from importlib import import_module
from typing import Any

FIRST_CELLS = [
    "1 + 1",
    "x = 1\nprint(x, end='')",
    "display(1)",
    """import pandas as pd
df = pd.DataFrame({"kind": ["a", "b"], "number": [1, 2]})
df.groupby("kind")["number"].sum()""",
    'df["number"].sum(), df["number"].mean(), df[df["number"] > 1]',
    "df",
]
"""What people run first."""

CELLS = [*FIRST_CELLS, "1 / 0"]
"""And what they run often."""

ONLY_LOADED = (
    "asyncio",
    "concurrent.futures.process",
    "importlib.metadata",
    "multiprocessing.pool",
    "numpy.fft",
    "pptx.chart.data",
    "statistics",
    "IPython.core.magics.execution",
    "IPython.core.magics.namespace",
    "IPython.utils.timing",
    "PIL.ImageDraw",
    "PIL.ImageFont",
    "glovebox_kernel.commands",
    "glovebox_kernel.scripts",
)
"""Modules that are often wanted, cost little, and that nothing above loads."""

TIMES = 10
"""How often each of them is run: the interpreter looks at code some times before it adapts it."""


def warm() -> None:
    """Imports the libraries that people ask for and uses each of them once.

    Not here: scipy and seaborn, which would cost every copy 1.5 ms and the template 60 MiB, and
    pypdf, which loads a generator that nothing can seed (`generators.py`).
    """
    _tables()
    _workbook(_frame())
    _figure()
    _deck()
    _document()
    _pdf()
    _picture()
    for name in ONLY_LOADED:
        import_module(name)


def _frame() -> Any:
    import pandas

    return pandas.DataFrame(
        {
            "kind": ["a", "b", "a", "c"],
            "number": [1, 2, 3, 4],
            "share": [0.5, 1.5, float("nan"), 2.0],
            "day": pandas.to_datetime(["2024-01-31", "2024-02-29", "2024-03-31", "2024-04-30"]),
        }
    )


def _tables() -> None:
    """What a first look at a table does."""
    import pandas

    frame = _frame()
    frame.groupby("kind")["number"].sum()
    frame.groupby("kind").agg({"number": "mean", "share": "max"}).reset_index()
    frame.sort_values("number").head(2).merge(frame, on="kind")
    frame.describe()
    frame.info(buf=io.StringIO())
    repr(frame)
    frame._repr_html_()
    repr(frame["number"])
    pandas.read_csv(io.StringIO(frame.to_csv(index=False)), parse_dates=["day"])
    frame.pivot_table(index="kind", values="number", aggfunc="sum")
    frame.isna().sum(), frame["number"] * 2, frame[frame["number"] > 2], frame.loc[0], frame.iloc[0]


def _workbook(frame: Any) -> None:
    """A workbook, written and read."""
    import pandas

    for engine in ("openpyxl", "xlsxwriter"):
        workbook = io.BytesIO()
        frame.to_excel(workbook, index=False, engine=engine)
    pandas.read_excel(workbook, engine="openpyxl")


def _figure() -> None:
    """A figure as PNG. The backend is not chosen yet: that happens with a first figure."""
    import matplotlib.pyplot  # noqa: F401
    from IPython.core.pylabtools import print_figure
    from matplotlib.figure import Figure
    from matplotlib_inline import backend_inline, config  # noqa: F401

    figure = Figure()
    left, right = figure.subplots(1, 2)
    left.plot([1, 2, 3], label="line")
    left.bar(["a", "b"], [1, 2])
    left.set_title("title")
    left.legend()
    right.scatter([1, 2], [2, 1])
    right.hist([1, 2, 2, 3])
    print_figure(figure)


def _deck() -> None:
    from pptx import Presentation
    from pptx.util import Inches

    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "title"
    slide.shapes.add_textbox(Inches(1), Inches(1), Inches(1), Inches(1)).text_frame.text = "text"
    deck.save(io.BytesIO())


def _document() -> None:
    from docx import Document

    document = Document()
    document.add_heading("title")
    document.add_paragraph("text")
    document.add_table(1, 1)
    document.save(io.BytesIO())


def _pdf() -> None:
    from reportlab import rl_config
    from reportlab.lib import colors
    from reportlab.lib.pagesizes import A4
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import Paragraph, SimpleDocTemplate, Table

    table = Table([["a", "b"]], style=[("GRID", (0, 0), (-1, -1), 1, colors.black)])
    text = Paragraph("<b>text</b>", getSampleStyleSheet()["Normal"])
    SimpleDocTemplate(io.BytesIO(), pagesize=A4).build([text, table])
    rl_config._reset()  # forgets the fonts that were used


def _picture() -> None:
    from PIL import Image

    picture = io.BytesIO()
    Image.new("RGB", (2, 2)).save(picture, "PNG")
    Image.open(picture).load()
