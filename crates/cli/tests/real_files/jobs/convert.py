"""What people do with LibreOffice and poppler: a deck becomes a PDF, and that pictures and text."""

import subprocess

subprocess.run(["soffice", "--headless", "--convert-to", "pdf", "deck.pptx"], check=True, stdout=subprocess.DEVNULL)
subprocess.run(["pdftoppm", "-png", "-r", "50", "deck.pdf", "slide"], check=True)
said = subprocess.run(["pdftotext", "deck.pdf", "-"], check=True, capture_output=True, text=True)
print(" ".join(said.stdout.split()))
