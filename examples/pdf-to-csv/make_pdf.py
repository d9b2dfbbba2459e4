"""Makes stock-report.pdf, the input of extract.py: two pages with text and a table each.

    glovebox run examples/pdf-to-csv/make_pdf.py --out examples/pdf-to-csv

The numbers are made up. This file and what it makes are CC0.
"""

import random

from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.lib.units import cm
from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate, Spacer, Table, TableStyle

STYLES = getSampleStyleSheet()
ITEMS = [
    "Beaker 250 ml", "Burette 50 ml", "Centrifuge tube", "Cover glass", "Filter paper", "Funnel",
    "Glove, size M", "Glove, size L", "Graduated cylinder", "Magnetic stirrer", "Microscope slide",
    "Petri dish", "Pipette tip 200 µl", "Safety goggles", "Test tube rack", "Thermometer",
]  # fmt: skip


def table_of(site, seed):
    numbers = random.Random(seed)
    rows = [["Item", "Unit", "In stock", "Minimum", "Price (EUR)"]]
    for item in ITEMS:
        unit = "box" if "Glove" in item or "tip" in item or "slide" in item else "piece"
        price = f"{numbers.randrange(90, 48_000) / 100:,.2f}"
        rows.append([item, unit, str(numbers.randrange(0, 400)), str(numbers.randrange(1, 9) * 10), price])
    table = Table(rows, colWidths=[6 * cm, 2.2 * cm, 2.6 * cm, 2.6 * cm, 3 * cm], repeatRows=1)
    table.setStyle(
        TableStyle(
            [
                ("BACKGROUND", (0, 0), (-1, 0), colors.HexColor("#22313F")),
                ("TEXTCOLOR", (0, 0), (-1, 0), colors.white),
                ("FONTNAME", (0, 0), (-1, 0), "Helvetica-Bold"),
                ("ALIGN", (2, 0), (-1, -1), "RIGHT"),
                ("GRID", (0, 0), (-1, -1), 0.4, colors.HexColor("#B8C1C9")),
                ("ROWBACKGROUNDS", (0, 1), (-1, -1), [colors.white, colors.HexColor("#F4F6F8")]),
            ]
        )
    )
    return [
        Paragraph(f"Stock report: {site}", STYLES["Title"]),
        Paragraph(
            f"Counted on 30 September 2025 at the site {site}. Prices are net, for one unit. "
            "What lies below its minimum is to be ordered.",
            STYLES["BodyText"],
        ),
        Spacer(1, 0.6 * cm),
        table,
    ]


document = SimpleDocTemplate("stock-report.pdf", pagesize=A4, title="Stock report", invariant=1)
document.build([*table_of("North", 1), PageBreak(), *table_of("South", 2)])
print("wrote stock-report.pdf")
