"""Reads text, tables and pictures out of documents."""

import docx
import pdfplumber
import pptx
import pypdf
from PIL import Image

letter = docx.Document("letter.docx")
print("docx:", [paragraph.text for paragraph in letter.paragraphs if paragraph.text.strip()])
print("docx table:", [[cell.text for cell in row.cells] for row in letter.tables[0].rows][:2])
print("docx pictures:", len(letter.inline_shapes))

pages = pypdf.PdfReader("letter.pdf").pages
print("pypdf:", [page.extract_text().split("\n")[0].strip() for page in pages])
with pdfplumber.open("letter.pdf") as document:
    print("pdfplumber:", document.pages[0].extract_words()[0]["text"], len(document.pages[0].images))

deck = pptx.Presentation("deck.pptx")
for slide in deck.slides:
    print("pptx:", slide.shapes.title.text, [shape.shape_type.name for shape in slide.shapes])

with Image.open("deck.png") as picture:
    print("png:", picture.size, picture.mode, picture.getpixel((0, 0)))
    picture.convert("RGB").resize((96, 72)).save("small.jpg")
