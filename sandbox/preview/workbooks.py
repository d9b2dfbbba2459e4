"""Workbooks: a table for each sheet, values as the sheet shows them."""

import os
import re
import zipfile

import archives
import markup
import number_format
import office
from tables import CHARACTERS, COLUMNS, ROWS, columns, shortened
from trouble import PROTECTED, Trouble, damaged

SHEETS = 30
SECONDS = 90

# Larger sheets are read row by row and without what spans cells.
WHOLE_BYTES = 24 << 20

# A cell with a formula and no value, as programs write it that do not calculate. A value in XML holds no
# `<`: what has many of them takes no longer to look through.
UNCALCULATED = re.compile(rb"</f>\s*(?:</c>|<v\s*/>|<v>\s*</v>)|<f[^<>]*/>\s*(?:</c>|<v\s*/>|<v>\s*</v>)")
CALCULATE_ON_LOAD = re.compile(rb"<calcPr\b[^<>]*fullCalcOnLoad=\"(?:1|true)\"")
HAS_FORMULA = re.compile(rb"<f[ >]")

ALIGNMENTS = {"left": "left", "center": "center", "right": "right", "centerContinuous": "center"}


def make(form, path, out):
    folder = os.path.dirname(path)
    note = None
    if form == "xlsx":
        archives.check(path, "workbook")
        if wants_calculation(path):
            if office.is_here():
                into = os.path.join(folder, ".calculated")
                os.makedirs(into, exist_ok=True)
                path = office.convert(path, "xlsx", into, SECONDS) or path
            else:
                note = "formulas without a stored value are empty here: there is no LibreOffice"
    else:
        check_older(form, path)
        if not office.is_here():
            return without_office(form, path, out)
        made = office.convert(path, "xlsx", folder, SECONDS)
        if made is None:
            raise damaged("workbook")
        path = made
    try:
        return read(path, out, note)
    except Unreadable:
        # A library that is strict, and a program that is not.
        into = os.path.join(folder, ".mended")
        os.makedirs(into, exist_ok=True)
        made = office.convert(path, "xlsx", into, SECONDS) if office.is_here() else None
        if made is None:
            raise damaged("workbook") from None
        return read(made, out, note)


class Unreadable(Trouble):
    pass


def check_older(form, path):
    if form == "ods":
        archives.check(path, "workbook", is_office=False)
        with zipfile.ZipFile(path) as archive:
            if "META-INF/manifest.xml" in archive.namelist():
                manifest = archives.read(archive, "META-INF/manifest.xml", 16 << 20)
                if b"encryption-data" in manifest:
                    raise PROTECTED
    elif archives.is_compound(path):
        if archives.is_encrypted_compound(path):
            raise PROTECTED
    elif zipfile.is_zipfile(path):
        # A newer one under an older name.
        archives.check(path, "workbook")
    else:
        # Programs save XML under this name, too.
        markup.check_file(path)


def wants_calculation(path):
    """Whether values are missing that a program would have to calculate first."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        if "xl/workbook.xml" in names and CALCULATE_ON_LOAD.search(
            archives.read(archive, "xl/workbook.xml", 64 << 20)
        ):
            wanted = HAS_FORMULA
        else:
            wanted = UNCALCULATED
        sheets = [name for name in names if name.startswith("xl/worksheets/") and name.endswith(".xml")]
        return any(occurs(wanted, archive, name) for name in sheets)


def occurs(pattern, archive, name):
    before = b""
    with archive.open(name) as file:
        while part := file.read(1 << 20):
            if pattern.search(before + part):
                return True
            before = part[-4096:]
    return False


def read(path, out, note):
    import openpyxl

    with zipfile.ZipFile(path) as archive:
        size = sum(
            entry.file_size
            for entry in archive.infolist()
            if entry.filename.startswith(("xl/worksheets/", "xl/sharedStrings"))
        )
    is_whole = size <= WHOLE_BYTES
    try:
        book = openpyxl.load_workbook(path, data_only=True, read_only=not is_whole, keep_links=False)
    except (MemoryError, RecursionError):
        raise
    except Exception:
        raise Unreadable(str(damaged("workbook"))) from None
    shown = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"] or book.worksheets
    if not shown:
        raise Trouble("it has no sheets with cells")
    out.tell(pages=min(len(shown), SHEETS))
    sheets = []
    for number, sheet in enumerate(shown[:SHEETS], 1):
        view, is_cut = one(sheet, is_whole)
        out.document(f"sheet-{number}.json", view)
        sheets.append(
            {
                "number": number,
                "name": view["name"],
                "rows": len(view["rows"]),
                "columns": len(view["columns"]),
                "is_cut": is_cut,
            }
        )
        out.tell(sheet=sheets[-1])
    cuts = [] if note is None else [note]
    if len(shown) > SHEETS:
        cuts.append(f"the first {SHEETS} of {len(shown)} sheets are shown")
    if any(sheet["is_cut"] for sheet in sheets):
        cuts.append(f"the first {ROWS} rows and {COLUMNS} columns of each sheet are shown")
    return {"sheets": sheets, "cut": "; ".join(cuts) or None}


def one(sheet, is_whole):
    rows, width, is_cut, characters = [], 0, False, 0
    # Asked for once: reading cells that are not there makes them.
    last_row, last_column = sheet.max_row or 0, sheet.max_column or 0
    if is_whole:
        bounds = {"max_row": min(last_row, ROWS + 1), "max_col": min(last_column, COLUMNS + 1)}
    else:
        bounds = {"max_row": ROWS + 1, "max_col": COLUMNS + 1}
    for at, cells in enumerate(sheet.iter_rows(**bounds)):
        if characters > CHARACTERS:
            is_cut = True
            break
        if at == ROWS:
            is_cut = is_cut or any(cell.value is not None for cell in cells)
            break
        row = []
        for place, cell in enumerate(cells):
            if place == COLUMNS:
                is_cut = is_cut or cell.value is not None
                break
            row.append(shown(cell))
        while row and row[-1] is None:
            row.pop()
        width = max(width, len(row))
        characters += sum(len(cell["v"]) for cell in row if cell)
        rows.append(row)
    while rows and not rows[-1]:
        rows.pop()
    merges = merged(sheet, len(rows), width) if is_whole else []
    for _, _, last_row, last_column in merges:
        while len(rows) <= last_row:
            rows.append([])
        width = max(width, last_column + 1)
    view = {
        "name": str(sheet.title)[:200],
        "columns": columns(width),
        "widths": widths(sheet, width) if is_whole else [],
        "rows": rows,
        "merges": merges,
        "first_row_is_header": is_header(rows),
    }
    return view, is_cut


def shown(cell):
    value = cell.value
    if value is None:
        return None
    if isinstance(value, str) and getattr(cell, "data_type", "s") == "e":
        return {"v": value[:100], "t": "e"}
    value = plain(value)
    try:
        text, is_date = number_format.show(value, getattr(cell, "number_format", "General"))
    except (ArithmeticError, ValueError):
        text, is_date = str(value), False
    if isinstance(value, bool):
        kind = "b"
    elif is_date:
        kind = "d"
    elif isinstance(value, (int, float)):
        kind = "n"
    else:
        kind = "s"
    found = {"v": shortened(text), "t": kind}
    alignment = getattr(cell, "alignment", None)
    align = ALIGNMENTS.get(getattr(alignment, "horizontal", None))
    if align:
        found["a"] = align
    return found


def plain(value):
    """Texts of several styles and whatever else is no plain value become text."""
    import datetime

    kinds = (str, bool, int, float, datetime.datetime, datetime.date, datetime.time, datetime.timedelta)
    return value if isinstance(value, kinds) else str(value)


def merged(sheet, rows, width):
    found = []
    for area in list(sheet.merged_cells.ranges)[:2000]:
        if area.min_row > max(rows, 1) or area.min_col > max(width, 1):
            continue
        last = [min(area.max_row, ROWS) - 1, min(area.max_col, COLUMNS) - 1]
        if area.min_row - 1 <= last[0] and area.min_col - 1 <= last[1]:
            found.append([area.min_row - 1, area.min_col - 1, *last])
    return found


def widths(sheet, width):
    from openpyxl.utils import get_column_letter

    found = []
    for number in range(1, width + 1):
        size = sheet.column_dimensions[get_column_letter(number)].width if number else None
        # In characters; about seven pixels each, and five of room.
        found.append(max(24, min(int((size or 8.43) * 7 + 5), 600)))
    return found


def is_header(rows):
    """Whether the first row names columns: texts only, and below it is something else than texts."""
    if len(rows) < 2 or not rows[0]:
        return False
    first = rows[0]
    if any(cell is None or cell["t"] != "s" or not cell["v"].strip() for cell in first):
        return False
    return any(cell is not None and cell["t"] in "ndb" for row in rows[1:6] for cell in row)


def without_office(form, path, out):
    if form != "xls":
        raise Trouble(office.MISSING, "ask a system admin to install LibreOffice where sandboxes run")
    import datetime

    import xlrd

    try:
        book = xlrd.open_workbook(path, on_demand=True)
    except xlrd.XLRDError as error:
        raise (PROTECTED if "encrypted" in str(error).lower() else damaged("workbook")) from None
    sheets = []
    for number, sheet in enumerate(book.sheets()[:SHEETS], 1):
        rows = []
        for at in range(min(sheet.nrows, ROWS)):
            row = []
            for cell in sheet.row(at)[:COLUMNS]:
                if cell.ctype == xlrd.XL_CELL_DATE:
                    value = xlrd.xldate.xldate_as_datetime(cell.value, book.datemode)
                    is_day = value.time() == datetime.time()
                    row.append({"v": f"{value:%Y-%m-%d}" if is_day else str(value), "t": "d"})
                elif cell.ctype == xlrd.XL_CELL_NUMBER:
                    row.append({"v": number_format.general(cell.value), "t": "n"})
                elif cell.ctype == xlrd.XL_CELL_BOOLEAN:
                    row.append({"v": "TRUE" if cell.value else "FALSE", "t": "b"})
                else:
                    row.append({"v": shortened(str(cell.value)), "t": "s"} if cell.value != "" else None)
            rows.append(row)
        is_cut = sheet.nrows > ROWS or sheet.ncols > COLUMNS
        width = min(sheet.ncols, COLUMNS)
        out.document(
            f"sheet-{number}.json",
            {
                "name": sheet.name[:200],
                "columns": columns(width),
                "widths": [],
                "rows": rows,
                "merges": [],
                "first_row_is_header": is_header(rows),
            },
        )
        size = {"rows": len(rows), "columns": width, "is_cut": is_cut}
        sheets.append({"number": number, "name": sheet.name[:200], **size})
    cut = f"the first {ROWS} rows and {COLUMNS} columns are shown"
    return {"sheets": sheets, "cut": cut if any(sheet["is_cut"] for sheet in sheets) else None}
