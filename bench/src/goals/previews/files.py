# Makes a file of each kind as people's code does, none like that of another seed: what was seen once
# is not made again.
import io
import random

import docx
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import openpyxl
import pandas as pd
import pptx
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen import canvas


def make(seed):
    chance = random.Random(seed)
    figures = np.random.default_rng(seed).normal(100, 20, (2000, 6)).round(2)
    table = pd.DataFrame(figures, columns=["north", "south", "east", "west", "here", "there"])
    words = "revenue grew in every region while costs stayed where they had been before".split()

    def sentence():
        return " ".join(chance.choices(words, k=14)).capitalize() + f", {chance.randrange(10**9)}."

    figure, axes = plt.subplots(figsize=(8, 5))
    table.head(60).plot(ax=axes)
    axes.set_title(f"Run {seed}")
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=120)
    plt.close(figure)
    open("image.png", "wb").write(picture.getvalue())

    deck = pptx.Presentation()
    for number in range(12):
        slide = deck.slides.add_slide(deck.slide_layouts[1 if number % 3 else 5])
        slide.shapes.title.text = f"Quarter {number + 1} of run {seed}"
        if number % 3:
            slide.placeholders[1].text = "\n".join(sentence() for _ in range(5))
        elif number % 2:
            data = CategoryChartData()
            data.categories = list(table.columns)
            data.add_series("figures", [float(value) for value in figures[number]])
            place = (Inches(1), Inches(2), Inches(8), Inches(4.5))
            slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *place, data)
        else:
            picture.seek(0)
            slide.shapes.add_picture(picture, Inches(1), Inches(2), Inches(8))
    deck.save("deck.pptx")

    letter = docx.Document()
    letter.add_heading(f"Report {seed}", 0)
    for number in range(40):
        if number % 8 == 0:
            letter.add_heading(f"Part {number // 8 + 1}", 1)
        letter.add_paragraph(" ".join(sentence() for _ in range(4)))
    letter.save("letter.docx")

    page = canvas.Canvas("paper.pdf", pagesize=A4)
    for _ in range(10):
        page.setFont("Helvetica", 11)
        for row in range(45):
            page.drawString(50, 800 - 16 * row, sentence())
        page.showPage()
    page.save()

    table.to_excel("book.xlsx", index=False)
    book = openpyxl.load_workbook("book.xlsx")
    sheet = book.active
    for row in range(2, 202):
        sheet.cell(row, 8).value = f"=SUM(A{row}:F{row})"
    book.save("formulas.xlsx")
    table.to_csv("table.csv", index=False)
    with open("notes.md", "w") as notes:
        notes.write(f"# Run {seed}\n\n" + "\n\n".join(f"## {n}\n\n- {sentence()}" for n in range(100)))
