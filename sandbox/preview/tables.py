"""Tables in text: encoding and delimiter are found out."""

import csv
import io
import re

from trouble import Trouble

ROWS = 1000
COLUMNS = 100
CELL_CHARACTERS = 2000

# Of one table: more makes a page slow that shows it.
CHARACTERS = 4_000_000

# As much as 1 000 wide rows have; the rest of a long file is not read.
READ_BYTES = 16 << 20

DELIMITERS = ",;\t|"
NUMBER = re.compile(r"\s*[-+]?(\d{1,3}([., ]\d{3})+|\d+)([.,]\d+)?([eE][-+]?\d+)?\s*%?\s*")


def make(form, path, out):
    with open(path, "rb") as file:
        content = file.read(READ_BYTES + 1)
    is_cut = len(content) > READ_BYTES
    text = decode(content[:READ_BYTES], is_cut)
    delimiter = "\t" if form == "tsv" else find_delimiter(text)
    csv.field_size_limit(1 << 20)
    rows, width, characters = [], 0, 0
    try:
        for cells in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            if len(rows) == ROWS or characters > CHARACTERS:
                is_cut = True
                break
            is_cut = is_cut or len(cells) > COLUMNS
            row = [cell(value) for value in cells[:COLUMNS]]
            characters += sum(len(one["v"]) for one in row if one)
            width = max(width, len(row))
            rows.append(row)
    except csv.Error:
        raise Trouble("it has a field that is too long to be one of a table") from None
    from workbooks import is_header

    view = {
        "name": "Table",
        "columns": columns(width),
        "widths": [],
        "rows": rows,
        "merges": [],
        "first_row_is_header": is_header(rows) or names_columns(rows),
    }
    out.document("sheet-1.json", view)
    cut = f"the first {len(rows)} rows and at most {COLUMNS} columns are shown" if is_cut else None
    sheet = {"number": 1, "name": "Table", "rows": len(rows), "columns": width, "is_cut": is_cut}
    return {"sheets": [sheet], "cut": cut}


def decode(content, is_cut):
    for mark, encoding in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if content.startswith(mark):
            return content.decode(encoding, "replace").replace("\0", "\ufffd")
    if b"\0" in content[:4096]:
        # UTF-16 without its mark has NULs in every other place.
        head = content[:4096]
        for encoding, place in (("utf-16-le", 1), ("utf-16-be", 0)):
            if head[place::2].count(0) > 0.4 * len(head[place::2]) and head[1 - place :: 2].count(0) == 0:
                return content[: len(content) // 2 * 2].decode(encoding, "replace")
        raise Trouble("it is no text: there are NUL bytes in it")
    try:
        return content.decode("utf-8").replace("\0", "\ufffd")
    except UnicodeDecodeError as error:
        if is_cut and error.start > len(content) - 4:
            return content[: error.start].decode("utf-8")
        return content.decode("cp1252", "replace").replace("\0", "\ufffd")


def find_delimiter(text):
    """The one that gives the most lines the same number of fields, and more than one."""
    sample = text[:64_000]
    best, score = ",", 0
    for delimiter in DELIMITERS:
        try:
            counts = [len(row) for row in csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter)][:50]
        except csv.Error:
            continue
        counts = [count for count in counts[:-1] or counts if count]
        if not counts:
            continue
        usual = max(set(counts), key=counts.count)
        if usual > 1 and (found := counts.count(usual) / len(counts) + usual / 10_000) > score:
            best, score = delimiter, found
    return best


def cell(value):
    if value == "":
        return None
    kind = "n" if len(value) < 40 and NUMBER.fullmatch(value) else "s"
    return {"v": shortened(value), "t": kind}


def names_columns(rows):
    """Where all is text: names are short, and no two alike."""
    if len(rows) < 2 or not rows[0]:
        return False
    names = [cell["v"] if cell and cell["t"] == "s" else "" for cell in rows[0]]
    return all(0 < len(name) <= 60 for name in names) and len(set(names)) == len(names) and len(names) > 1


def shortened(text):
    text = "".join(letter if letter >= " " or letter in "\n\t" else "\ufffd" for letter in text)
    return text if len(text) <= CELL_CHARACTERS else text[: CELL_CHARACTERS - 1] + "…"


def columns(count):
    """A, B, …, Z, AA, …"""
    found = []
    for number in range(1, count + 1):
        letters = ""
        while number:
            number, rest = divmod(number - 1, 26)
            letters = chr(65 + rest) + letters
        found.append(letters)
    return found
