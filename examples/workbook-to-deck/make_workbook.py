"""Makes employment.xlsx, the input of deck.py, from us-employment.csv.

    glovebox run make_workbook.py us-employment.csv --out .

One sheet for each sector, with a date and the number of jobs in each row, as such workbooks
come from statistics offices: a title above the table, a note below it.
"""

import datetime

import pandas as pd

SECTORS = {
    "construction": "Construction",
    "manufacturing": "Manufacturing",
    "retail_trade": "Retail trade",
    "financial_activities": "Financial activities",
    "education_and_health_services": "Education and health",
    "leisure_and_hospitality": "Leisure and hospitality",
    "government": "Government",
}
NOTE = "Thousands of jobs, seasonally adjusted. Source: U.S. Bureau of Labor Statistics."

jobs = pd.read_csv("us-employment.csv", parse_dates=["month"])
with pd.ExcelWriter("employment.xlsx", engine="xlsxwriter") as writer:
    book = writer.book
    # A fixed date, so that the same data give the same file.
    book.set_properties({"created": datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)})
    bold = book.add_format({"bold": True, "font_size": 14})
    head = book.add_format({"bold": True, "bottom": 1})
    date = book.add_format({"num_format": "mmm yyyy", "align": "left"})
    number = book.add_format({"num_format": "#,##0"})
    for column, name in SECTORS.items():
        sheet = book.add_worksheet(name)
        sheet.write(0, 0, name, bold)
        sheet.write_row(2, 0, ["Month", "Jobs (thousands)"], head)
        for row, (month, count) in enumerate(zip(jobs["month"], jobs[column], strict=True), start=3):
            sheet.write_datetime(row, 0, month.to_pydatetime(), date)
            sheet.write_number(row, 1, count, number)
        sheet.write(len(jobs) + 4, 0, NOTE)
        sheet.set_column(0, 0, 12)
        sheet.set_column(1, 1, 18)
        sheet.freeze_panes(3, 0)
print(f"wrote employment.xlsx with {len(SECTORS)} sheets of {len(jobs)} months")
