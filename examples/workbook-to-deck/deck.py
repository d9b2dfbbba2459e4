"""Turns a workbook with a sheet per sector into a deck with a chart per sector.

    glovebox run examples/workbook-to-deck/deck.py examples/workbook-to-deck/employment.xlsx

The charts are PowerPoint's own: their data can be edited in the deck.
"""

import datetime
import sys

import openpyxl
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.dml.color import RGBColor
from pptx.enum.chart import XL_CHART_TYPE, XL_LABEL_POSITION, XL_TICK_LABEL_POSITION
from pptx.enum.shapes import MSO_SHAPE
from pptx.util import Inches, Pt

INK = RGBColor(0x22, 0x31, 0x3F)
MUTED = RGBColor(0x6B, 0x7A, 0x88)
BLUE = RGBColor(0x2A, 0x6F, 0xA8)
RED = RGBColor(0xC4, 0x4E, 0x3B)
LIGHT = RGBColor(0xE4, 0xE8, 0xEC)


def read_workbook(path):
    """The rows that hold a date and a number; titles and notes around them are passed over."""
    book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    sectors = {}
    for sheet in book.worksheets:
        rows = [
            (month.date(), jobs)
            for month, jobs in sheet.iter_rows(max_col=2, values_only=True)
            if isinstance(month, datetime.datetime) and isinstance(jobs, (int, float))
        ]
        if rows:
            sectors[sheet.title] = sorted(rows)
            print(f"read {len(rows)} months of {sheet.title}")
        else:
            print(f"passed over the sheet {sheet.title}: it holds no dates with numbers", file=sys.stderr)
    return sectors


def change(rows):
    """From the first month to the last, as a fraction."""
    return rows[-1][1] / rows[0][1] - 1


def lowest(rows):
    return min(rows, key=lambda row: row[1])


def add_text(slide, text, place, size, colour=INK, bold=False):
    left, top, width, height = (Inches(value) for value in place)
    frame = slide.shapes.add_textbox(left, top, width, height).text_frame
    frame.word_wrap = True
    run = frame.paragraphs[0].add_run()
    run.text = text
    run.font.size, run.font.bold, run.font.color.rgb = Pt(size), bold, colour


def new_slide(deck, title, source):
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    mark = slide.shapes.add_shape(MSO_SHAPE.RECTANGLE, 0, 0, Inches(0.22), deck.slide_height)
    mark.fill.solid()
    mark.fill.fore_color.rgb = BLUE
    mark.line.fill.background()
    add_text(slide, title, (0.8, 0.45, 11.8, 0.9), 30, bold=True)
    add_text(slide, source, (0.8, 6.95, 11.8, 0.4), 12, MUTED)
    return slide


def add_overview(deck, sectors, source):
    first, last = (next(iter(sectors.values()))[place][0] for place in (0, -1))
    slide = new_slide(deck, f"Jobs by sector, {first:%b %Y} to {last:%b %Y}", source)
    # A bar chart has its first category at the bottom.
    ranked = sorted(sectors.items(), key=lambda item: change(item[1]))
    data = CategoryChartData(number_format="0.0%")
    data.categories = [name for name, _ in ranked]
    data.add_series("Change in jobs", [change(rows) for _, rows in ranked])
    place = (Inches(value) for value in (0.8, 1.4, 11.8, 5.4))
    chart = slide.shapes.add_chart(XL_CHART_TYPE.BAR_CLUSTERED, *place, data).chart
    chart.has_legend = False
    chart.has_title = False
    chart.font.size, chart.font.color.rgb = Pt(14), INK
    # Room for the labels at both ends of the bars.
    chart.value_axis.minimum_scale = min(change(rows) for _, rows in ranked) - 0.1
    chart.value_axis.maximum_scale = max(change(rows) for _, rows in ranked) + 0.05
    chart.value_axis.visible = False
    chart.value_axis.has_major_gridlines = False
    chart.category_axis.tick_label_position = XL_TICK_LABEL_POSITION.LOW
    chart.category_axis.format.line.color.rgb = LIGHT
    plot = chart.plots[0]
    plot.gap_width = 45
    plot.has_data_labels = True
    plot.data_labels.number_format = "+0.0%;-0.0%"
    plot.data_labels.number_format_is_linked = False
    plot.data_labels.position = XL_LABEL_POSITION.OUTSIDE_END
    series = plot.series[0]
    series.invert_if_negative = False
    for index, (_, rows) in enumerate(ranked):
        fill = series.points[index].format.fill
        fill.solid()
        fill.fore_color.rgb = BLUE if change(rows) >= 0 else RED


def add_sector(deck, name, rows, source):
    month, jobs = lowest(rows)
    total = change(rows)
    slide = new_slide(deck, f"{name}: {total:+.1%} in {len(rows) // 12} years", source)
    facts = f"{rows[0][1]:,.0f} to {rows[-1][1]:,.0f} thousand jobs"
    if month != rows[0][0]:
        facts += f"; fewest in {month:%b %Y}: {jobs:,.0f} thousand"
    add_text(slide, facts, (0.8, 1.25, 11.8, 0.6), 16, MUTED)
    data = CategoryChartData(number_format="#,##0")
    data.categories = [month for month, _ in rows]
    data.add_series("Jobs (thousands)", [jobs for _, jobs in rows])
    place = (Inches(value) for value in (0.8, 1.95, 11.8, 4.9))
    chart = slide.shapes.add_chart(XL_CHART_TYPE.LINE, *place, data).chart
    chart.has_legend = False
    chart.has_title = False
    chart.font.size, chart.font.color.rgb = Pt(13), MUTED
    line = chart.plots[0].series[0]
    line.smooth = False
    line.format.line.width = Pt(3)
    line.format.line.color.rgb = BLUE if total >= 0 else RED
    low, high = min(jobs for _, jobs in rows), max(jobs for _, jobs in rows)
    margin = (high - low) * 0.1
    step = 10 ** (len(str(int(high - low))) - 1)
    chart.value_axis.minimum_scale = int((low - margin) // step * step)
    chart.value_axis.maximum_scale = int(-(-(high + margin) // step) * step)
    chart.value_axis.tick_labels.number_format = "#,##0"
    chart.value_axis.tick_labels.number_format_is_linked = False
    chart.value_axis.has_title = True
    chart.value_axis.axis_title.text_frame.text = "Jobs (thousands)"
    title = chart.value_axis.axis_title.text_frame.paragraphs[0].runs[0].font
    title.size, title.bold, title.color.rgb = Pt(13), False, MUTED
    chart.value_axis.major_gridlines.format.line.color.rgb = LIGHT
    chart.value_axis.format.line.fill.background()
    dates = chart.category_axis
    dates.tick_labels.number_format = "yyyy"
    dates.tick_labels.number_format_is_linked = False
    set_date_units(dates)


def set_date_units(axis):
    """One label a year; python-pptx has no call for it."""
    element = axis._element
    for tag, value in (("c:baseTimeUnit", "months"), ("c:majorUnit", "1"), ("c:majorTimeUnit", "years")):
        for old in element.findall(f"{{{element.nsmap['c']}}}{tag[2:]}"):
            element.remove(old)
        unit = element.makeelement(f"{{{element.nsmap['c']}}}{tag[2:]}", {"val": value})
        element.append(unit)


def main():
    sectors = read_workbook("employment.xlsx")
    if not sectors:
        sys.exit("employment.xlsx has no sheet with dates and numbers")
    source = "Source: U.S. Bureau of Labor Statistics, seasonally adjusted; value axes do not begin at zero"
    deck = Presentation()
    deck.slide_width, deck.slide_height = Inches(13.333), Inches(7.5)
    add_overview(deck, sectors, source.split(";")[0])
    for name, rows in sectors.items():
        add_sector(deck, name, rows, source)
    deck.save("employment.pptx")
    print(f"wrote employment.pptx with {len(sectors) + 1} slides")


if __name__ == "__main__":
    main()
