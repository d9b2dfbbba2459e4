"""Saves one file of every type that may leave a sandbox, each with text of many scripts in it."""

import json
import pathlib

import docx
import matplotlib.pyplot as plt
import openpyxl
import pandas as pd
import pptx
from PIL import Image
from reportlab.lib.pagesizes import A5
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

WORDS = "Straße 東京の雨 漢字 한국어 дождь"
table = pd.DataFrame({"名前": ["雨", "雪"], "Größe": [1.5, 2.5]})

letter = docx.Document()
letter.add_heading(WORDS, 1)
letter.add_page_break()
letter.add_paragraph("第二頁")
letter.save("letter.docx")

deck = pptx.Presentation()
for text in (WORDS, "第二", "第三"):
    deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text = text
deck.save("deck.pptx")

book = openpyxl.Workbook()
book.active.append([WORDS, 1])
book.create_sheet("第二").append([2, "=A1*2"])
book.save("book.xlsx")

pdfmetrics.registerFont(TTFont("Droid", "/usr/share/fonts/truetype/droid/DroidSansFallbackFull.ttf"))
page = Canvas("page.pdf", pagesize=A5)
for text in ("東京の雨 漢字", "第二頁"):
    page.setFont("Droid", 32)
    page.drawString(40, 400, text)
    page.showPage()
page.save()

table.to_csv("table.csv", index=False)
table.to_csv("table.tsv", sep="\t", index=False)
table.to_html("table.html")
table.to_markdown("table.md")
pathlib.Path("table.json").write_text(json.dumps(table.to_dict(), ensure_ascii=False))
pathlib.Path("table.txt").write_text(table.to_string())

plt.figure(figsize=(4, 3))
plt.plot([1, 3, 2])
plt.title(WORDS)
plt.savefig("chart.png", dpi=100)
plt.savefig("chart.svg")
picture = Image.open("chart.png").convert("RGB")
for name in ("chart.jpg", "chart.jpeg", "chart.gif", "chart.webp"):
    picture.save(name)
