"""Takes the tables and the text out of a PDF: one CSV file for all tables, one text file.

glovebox run examples/pdf-to-csv/extract.py examples/pdf-to-csv/stock-report.pdf
"""

import csv
import re
from pathlib import Path

import pdfplumber


def number(text):
    """`1,234.50` as 1234.5; what is no number stays text."""
    plain = text.replace(",", "")
    if re.fullmatch(r"-?\d+", plain):
        return int(plain)
    if re.fullmatch(r"-?\d+\.\d+", plain):
        return float(plain)
    return text


def main():
    rows, pages = [], []
    with pdfplumber.open("stock-report.pdf") as document:
        for page in document.pages:
            text = page.extract_text()
            pages.append(text)
            site = re.search(r"at the site (\w+)", text)
            for table in page.extract_tables():
                head, *body = table
                for cells in body:
                    row = {name: number(cell or "") for name, cell in zip(head, cells, strict=True)}
                    rows.append({"Site": site.group(1) if site else "", **row})
            print(f"page {page.page_number}: {len(rows)} rows so far")

    with open("stock.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    Path("stock-report.txt").write_text("\n\n".join(pages) + "\n", encoding="utf-8")

    print("\nto be ordered:")
    for row in rows:
        if row["In stock"] < row["Minimum"]:
            print(f"  {row['Site']:6} {row['Item']:20} {row['In stock']:>4} of at least {row['Minimum']}")


if __name__ == "__main__":
    main()
