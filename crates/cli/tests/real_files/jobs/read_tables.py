"""Reads the same days from every kind of table, and compares them with the CSV file."""

import openpyxl
import pandas as pd
from pandas.testing import assert_frame_equal

days = pd.read_csv("seattle-weather.csv", parse_dates=["date"])
januaries = days[days["date"].dt.month == 1]


def check(name, table, expected):
    table = table.reset_index(drop=True)
    # Workbooks know neither whole numbers nor how exact a time is.
    for column in ("precipitation", "temp_max", "temp_min", "wind"):
        table[column] = table[column].astype(float)
    table["date"] = table["date"].astype("datetime64[us]")
    table["weather"] = table["weather"].astype(str)
    expected = expected.reset_index(drop=True).assign(
        date=expected["date"].to_numpy().astype("datetime64[us]"),
        weather=expected["weather"].astype(str).to_numpy(),
    )
    assert_frame_equal(table, expected, check_dtype=False)
    print(f"{name}: {len(table)} rows as in the CSV file")


for name in ("weather.xlsx", "weather.xls"):
    sheets = pd.read_excel(name, sheet_name=None)
    for year, table in sheets.items():
        check(f"{name} {year}", table, januaries[januaries["date"].dt.year == int(year)])

check("weather.parquet", pd.read_parquet("weather.parquet"), days)

sheet = openpyxl.load_workbook("weather.xlsx", read_only=True)["2013"]
print("openpyxl:", *next(sheet.iter_rows(min_row=2, max_col=1, values_only=True)))

few = pd.read_csv("wetter.csv", sep=";", decimal=",", parse_dates=["date"], dayfirst=True)
print("wetter.csv:", list(few.columns), repr(few["weather"][0]), few["temp_max"].sum().round(1))
same = pd.read_csv("wetter.tsv", sep="\t", encoding="utf-16", parse_dates=["date"])
assert_frame_equal(same, few, check_dtype=False)

few.to_csv("weather-again.csv", index=False)
few.to_csv("weather-again.tsv", sep="\t", index=False)
