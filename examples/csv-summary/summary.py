"""Summarises daily records in a CSV file as a workbook with a chart of Excel's own.

glovebox run examples/csv-summary/summary.py examples/csv-summary/seattle-weather.csv
"""

import pandas as pd

INK = "#22313F"
MUTED = "#6B7A88"
RAIN = "#2A7F8E"
WARM = "#E07B39"

COLUMNS = {
    "days": ("Days", 8, "#,##0"),
    "precipitation": ("Rain and snow (mm)", 12, "#,##0.0"),
    "wet_days": ("Wet days", 10, "#,##0"),
    "temp_max": ("Mean daily high (°C)", 12, "0.0"),
    "temp_min": ("Mean daily low (°C)", 12, "0.0"),
    "hottest": ("Hottest (°C)", 10, "0.0"),
    "coldest": ("Coldest (°C)", 10, "0.0"),
    "wind": ("Mean wind (m/s)", 10, "0.0"),
}


def summarise(days, by):
    groups = days.groupby(by)
    return pd.DataFrame(
        {
            "days": groups.size(),
            "precipitation": groups["precipitation"].sum(),
            "wet_days": groups["precipitation"].agg(lambda amounts: (amounts > 0).sum()),
            "temp_max": groups["temp_max"].mean(),
            "temp_min": groups["temp_min"].mean(),
            "hottest": groups["temp_max"].max(),
            "coldest": groups["temp_min"].min(),
            "wind": groups["wind"].mean(),
        }
    )


class Workbook:
    """A workbook with one look for all of its tables."""

    def __init__(self, writer):
        self.writer = writer
        self.book = writer.book
        style = {"bold": True, "font_color": "white", "bg_color": INK, "valign": "vcenter", "text_wrap": True}
        self.head = self.book.add_format(style)
        self.number_head = self.book.add_format({**style, "align": "right"})
        self.title = self.book.add_format({"bold": True, "font_size": 16, "font_color": INK})
        self.note = self.book.add_format({"italic": True, "font_color": MUTED})
        self.label = self.book.add_format(
            {"bold": True, "bottom": 1, "bottom_color": "#D5DBE0", "align": "left"}
        )

    def number(self, form):
        return self.book.add_format({"num_format": form, "bottom": 1, "bottom_color": "#D5DBE0"})

    def add_table(self, name, title, note, table, label):
        sheet = self.book.add_worksheet(name)
        sheet.hide_gridlines(2)
        sheet.write(0, 0, title, self.title)
        sheet.write(1, 0, note, self.note)
        sheet.set_row(3, 32)
        sheet.write(3, 0, label, self.head)
        sheet.set_column(0, 0, 13)
        for column, (key, (head, width, form)) in enumerate(COLUMNS.items(), start=1):
            sheet.write(3, column, head, self.number_head)
            sheet.set_column(column, column, width)
            sheet.write_column(4, column, table[key], self.number(form))
        sheet.write_column(4, 0, table.index, self.label)
        sheet.set_landscape()
        sheet.set_paper(9)
        sheet.fit_to_pages(1, 1)
        return sheet

    def add_climate_chart(self, sheet, name, rows):
        columns = {key: place for place, key in enumerate(COLUMNS, start=1)}

        def series(key, title, **more):
            values = [name, 4, columns[key], 3 + rows, columns[key]]
            return {"name": title, "categories": [name, 4, 0, 3 + rows, 0], "values": values, **more}

        rain = self.book.add_chart({"type": "column"})
        rain.add_series(series("precipitation", "Rain and snow", fill={"color": RAIN}, gap=60))
        heat = self.book.add_chart({"type": "line"})
        for key, title, colour in (("temp_max", "Mean high", WARM), ("temp_min", "Mean low", "#F2B184")):
            line = {"color": colour, "width": 2.5}
            heat.add_series(series(key, title, line=line, y2_axis=True))
        rain.combine(heat)
        rain.set_title({"name": "Wet winters, dry summers", "name_font": {"size": 14, "color": INK}})
        rain.set_x_axis({"num_font": {"color": MUTED}})
        grid = {"visible": True, "line": {"color": "#E4E8EC"}}
        rain.set_y_axis({"name": "Rain and snow (mm, mean of a month)", "major_gridlines": grid, "min": 0})
        heat.set_y2_axis({"name": "Temperature (°C)", "min": 0})
        rain.set_legend({"position": "bottom"})
        rain.set_size({"width": 800, "height": 380})
        sheet.insert_chart(rows + 5, 0, rain)


def main():
    days = pd.read_csv("seattle-weather.csv", parse_dates=["date"])
    first, last = days["date"].min(), days["date"].max()
    print(f"read {len(days)} days, {first:%d %b %Y} to {last:%d %b %Y}")
    years = days["date"].dt.year.nunique()

    by_month = summarise(days, days["date"].dt.month)
    by_month.index = [pd.Timestamp(2000, month, 1).strftime("%B") for month in by_month.index]
    # Sums over all years become those of one usual year.
    by_month[["precipitation", "wet_days"]] /= years
    by_year = summarise(days, days["date"].dt.year)

    source = "Daily records of NOAA, public domain."
    with pd.ExcelWriter("weather-summary.xlsx", engine="xlsxwriter") as writer:
        workbook = Workbook(writer)
        note = f"Means of {years} years, {first.year} to {last.year}. {source}"
        sheet = workbook.add_table("By month", "Seattle weather by month", note, by_month, "Month")
        workbook.add_climate_chart(sheet, "By month", len(by_month))
        sheet = workbook.add_table("By year", "Seattle weather by year", source, by_year, "Year")
        scale = {"type": "data_bar", "bar_color": "#9CCBD3", "bar_solid": True}
        sheet.conditional_format(4, 2, 3 + len(by_year), 2, scale)
    print(by_year[["precipitation", "wet_days", "hottest", "coldest"]].round(1).to_string())
    print("wrote weather-summary.xlsx")


if __name__ == "__main__":
    main()
