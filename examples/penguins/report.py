"""Turns the Palmer penguins into a workbook, a slide deck and a chart.

glovebox run examples/penguins/report.py examples/penguins/penguins.csv --out results/
"""

import matplotlib.pyplot as plt
import pandas as pd
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.dml.color import RGBColor
from pptx.enum.chart import XL_CHART_TYPE, XL_LEGEND_POSITION
from pptx.enum.shapes import MSO_SHAPE
from pptx.enum.text import MSO_ANCHOR, PP_ALIGN
from pptx.util import Emu, Inches, Pt

COLOURS = {"Adelie": "#E07B39", "Chinstrap": "#8E5EA2", "Gentoo": "#2A7F8E"}
INK = "#22313F"
MUTED = "#6B7A88"

MEASURES = {
    "bill_length_mm": "Bill length (mm)",
    "bill_depth_mm": "Bill depth (mm)",
    "flipper_length_mm": "Flipper length (mm)",
    "body_mass_g": "Body mass (g)",
}


def read_penguins(path):
    penguins = pd.read_csv(path)
    print(f"read {len(penguins)} penguins from {path}")
    measured = penguins.dropna(subset=list(MEASURES))
    print(f"{len(penguins) - len(measured)} of them were not measured and are left out")
    return measured


def summarise(penguins):
    groups = penguins.groupby("species")
    summary = groups[list(MEASURES)].mean().round(1)
    summary.insert(0, "count", groups.size())
    return summary


def draw_chart(penguins, path):
    plt.rcParams.update({"font.size": 11, "axes.edgecolor": MUTED, "axes.labelcolor": INK})
    figure, axes = plt.subplots(figsize=(9, 5.6), layout="constrained")
    for species, group in penguins.groupby("species"):
        axes.scatter(
            group["flipper_length_mm"],
            group["body_mass_g"] / 1000,
            s=42,
            color=COLOURS[species],
            alpha=0.75,
            edgecolor="white",
            linewidth=0.6,
            label=f"{species} ({len(group)})",
        )
    axes.set_title(
        "The longer the flipper, the heavier the penguin",
        loc="left",
        fontsize=15,
        fontweight="bold",
        color=INK,
        pad=14,
    )
    axes.set_xlabel("Flipper length (mm)")
    axes.set_ylabel("Body mass (kg)")
    axes.grid(color="#E4E8EC", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(title="Species (birds)", frameon=False, loc="upper left")
    figure.savefig(path, dpi=160)
    plt.close(figure)
    print(f"drew {path}")


def write_workbook(penguins, summary, path):
    with pd.ExcelWriter(path, engine="xlsxwriter") as writer:
        book = writer.book
        title = book.add_format({"bold": True, "font_size": 16, "font_color": INK})
        note = book.add_format({"italic": True, "font_color": MUTED})
        head_style = {
            "bold": True,
            "font_color": "white",
            "bg_color": INK,
            "text_wrap": True,
            "valign": "vcenter",
        }
        head = book.add_format(head_style)
        number_head = book.add_format({**head_style, "align": "right"})
        text = book.add_format({"indent": 1})
        one_decimal = book.add_format({"num_format": "#,##0.0"})
        whole = book.add_format({"num_format": "#,##0"})

        sheet = book.add_worksheet("Summary")
        sheet.hide_gridlines(2)
        sheet.write(0, 0, "Palmer penguins: means by species", title)
        sheet.write(1, 0, "Palmer Station, Antarctica, 2007 to 2009. Measured birds only.", note)
        sheet.write(3, 0, "Species", head)
        sheet.write_row(3, 1, ["Birds", *MEASURES.values()], number_head)
        sheet.set_row(3, 32)
        for row, (species, values) in enumerate(summary.iterrows(), start=4):
            sheet.write(row, 0, species)
            sheet.write(row, 1, int(values["count"]), whole)
            for column, measure in enumerate(MEASURES, start=2):
                decimals = whole if measure == "body_mass_g" else one_decimal
                sheet.write(row, column, values[measure], decimals)
        sheet.set_column(0, 0, 14)
        sheet.set_column(1, len(MEASURES) + 1, 12)
        add_mass_chart(book, sheet, summary)
        sheet.set_landscape()
        sheet.fit_to_pages(1, 1)

        for species, group in penguins.groupby("species"):
            table = group.drop(columns="species").rename(columns=MEASURES)
            table.columns = [name[:1].upper() + name[1:] for name in table.columns]
            table.to_excel(writer, sheet_name=species, index=False, startrow=1, header=False)
            sheet = writer.sheets[species]
            for column, name in enumerate(table.columns):
                is_number = pd.api.types.is_numeric_dtype(table[name])
                sheet.write(0, column, name, number_head if is_number else head)
                sheet.set_column(column, column, 13, None if is_number else text)
            sheet.set_row(0, 32)
            sheet.freeze_panes(1, 0)
            sheet.autofilter(0, 0, len(table), len(table.columns) - 1)
            sheet.repeat_rows(0)
            sheet.fit_to_pages(1, 0)
            sheet.set_tab_color(COLOURS[species])
    print(f"wrote {path}")


def add_mass_chart(book, sheet, summary):
    first, last = 4, 3 + len(summary)
    column = 2 + list(MEASURES).index("body_mass_g")
    chart = book.add_chart({"type": "bar"})
    chart.add_series(
        {
            "name": "Mean body mass",
            "categories": ["Summary", first, 0, last, 0],
            "values": ["Summary", first, column, last, column],
            "points": [{"fill": {"color": COLOURS[species]}} for species in summary.index],
            "data_labels": {"value": True, "num_format": '#,##0 "g"'},
            "gap": 60,
        }
    )
    chart.set_title({"name": "Mean body mass (g)", "name_font": {"size": 13, "color": INK}, "overlay": False})
    chart.set_legend({"none": True})
    chart.set_x_axis({"visible": False, "min": 0, "major_gridlines": {"visible": False}})
    chart.set_y_axis({"reverse": True, "line": {"none": True}, "num_font": {"size": 11}})
    chart.set_size({"width": 680, "height": 280})
    sheet.insert_chart(last + 2, 0, chart)


def write_deck(penguins, summary, picture, path):
    deck = Presentation()
    deck.slide_width, deck.slide_height = Inches(13.333), Inches(7.5)

    slide = new_slide(deck, "Three species of Palmer penguins")
    years = f"{penguins['year'].min()} to {penguins['year'].max()}"
    islands = penguins["island"].nunique()
    add_text(slide, f"{len(penguins)} birds measured on {islands} islands, {years}", 1.25, 20)
    for place, (species, values) in enumerate(summary.iterrows()):
        add_card(slide, place, species, values)
    add_text(slide, "Data: Palmer Station LTER and Dr. Kristen Gorman, CC0", 6.8, 13)

    slide = new_slide(deck, "Body mass follows flipper length")
    height = Inches(5.6)
    image = slide.shapes.add_picture(picture, 0, Inches(1.55), height=height)
    image.left = Emu((deck.slide_width - image.width) // 2)

    slide = new_slide(deck, "Gentoo bills are long and slim")
    data = CategoryChartData(number_format="0.0")
    data.categories = list(summary.index)
    for measure in ("bill_length_mm", "bill_depth_mm"):
        data.add_series(MEASURES[measure], summary[measure])
    frame = slide.shapes.add_chart(
        XL_CHART_TYPE.COLUMN_CLUSTERED, Inches(1), Inches(1.6), Inches(11.3), Inches(5.4), data
    )
    chart = frame.chart
    chart.has_legend = True
    chart.legend.position = XL_LEGEND_POSITION.BOTTOM
    chart.legend.include_in_layout = False
    chart.font.size = Pt(14)
    chart.value_axis.visible = False
    chart.value_axis.has_major_gridlines = False
    plot = chart.plots[0]
    plot.gap_width = 70
    plot.has_data_labels = True
    plot.data_labels.number_format = '0.0" mm"'
    plot.data_labels.number_format_is_linked = False
    for series, colour in zip(plot.series, (COLOURS["Gentoo"], COLOURS["Adelie"]), strict=True):
        series.format.fill.solid()
        series.format.fill.fore_color.rgb = RGBColor.from_string(colour[1:])

    deck.save(path)
    print(f"wrote {path}")


def new_slide(deck, title):
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    add_text(slide, title, 0.5, 32, INK, bold=True)
    return slide


def add_text(slide, text, top, size, colour=MUTED, bold=False):
    box = slide.shapes.add_textbox(Inches(0.8), Inches(top), Inches(11.7), Inches(0.7))
    box.text_frame.word_wrap = True
    add_run(box.text_frame.paragraphs[0], text, size, colour, bold)


def add_run(paragraph, text, size, colour, bold=False):
    run = paragraph.add_run()
    run.text = text
    run.font.size, run.font.bold = Pt(size), bold
    run.font.color.rgb = RGBColor.from_string(colour[1:])


def add_card(slide, place, species, values):
    left, width = Inches(0.9 + place * 3.95), Inches(3.6)
    card = slide.shapes.add_shape(MSO_SHAPE.ROUNDED_RECTANGLE, left, Inches(2.4), width, Inches(3.7))
    card.adjustments[0] = 0.06
    card.fill.solid()
    card.fill.fore_color.rgb = RGBColor.from_string(COLOURS[species][1:])
    card.line.fill.background()
    frame = card.text_frame
    frame.vertical_anchor = MSO_ANCHOR.MIDDLE
    lines = [
        (species, 26, True),
        (f"{values['body_mass_g'] / 1000:.1f} kg", 54, True),
        ("mean body mass", 16, False),
        (f"{int(values['count'])} birds", 20, False),
    ]
    for number, (text, size, bold) in enumerate(lines):
        paragraph = frame.paragraphs[0] if number == 0 else frame.add_paragraph()
        paragraph.alignment = PP_ALIGN.CENTER
        paragraph.space_after = Pt(8)
        add_run(paragraph, text, size, "#FFFFFF", bold)


def main():
    penguins = read_penguins("penguins.csv")
    summary = summarise(penguins)
    print(summary.to_string())
    draw_chart(penguins, "penguins-chart.png")
    write_workbook(penguins, summary, "penguins-report.xlsx")
    write_deck(penguins, summary, "penguins-chart.png", "penguins-deck.pptx")


if __name__ == "__main__":
    main()
