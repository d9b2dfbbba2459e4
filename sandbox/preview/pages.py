"""Pages of a PDF: pictures of them, small pictures, and their text."""

import io
import os
import re
import shutil
import subprocess

from trouble import PROTECTED, Trouble, damaged

# How many pages are drawn, the longer side of each in pixels, and that of a small picture.
PAGES = 100
SIDE = 1600
SMALL_SIDE = 240

# Pages that are drawn by one start of the program: the first alone, so that it is there early.
AT_ONCE = 8

SECONDS_FOR_A_PAGE = 20
TEXT_CHARACTERS = 20_000


def make(path, out):
    if shutil.which("pdftoppm") is None:
        return only_text(path, out)
    count = count_pages(path)
    shown = min(count, PAGES)
    out.tell(pages=shown)
    made = []
    first = 1
    while first <= shown:
        last = first if first == 1 else min(first + AT_ONCE - 1, shown)
        words = words_of(path, first, last)
        for number, picture in draw(path, first, last, out.folder):
            made.append(one(number, picture, words[number - first], out))
            shown_now = {name: made[-1][name] for name in ("number", "width", "height")}
            out.tell(page=shown_now)
        first = last + 1
    cut = None if count == shown else f"the first {shown} of {count} pages are shown"
    return {"pages": made, "count": count, "cut": cut}


def count_pages(path):
    if os.path.getsize(path) == 0:
        raise damaged("PDF")
    with open(path, "rb") as file:
        if b"%PDF-" not in file.read(1024):
            raise damaged("PDF")
    info = run(["pdfinfo", path], 30)
    if b"Incorrect password" in info.stderr:
        raise PROTECTED
    found = re.search(rb"^Pages:\s+(\d+)$", info.stdout, re.MULTILINE)
    if info.returncode != 0 or not found:
        raise damaged("PDF")
    count = int(found.group(1))
    if count == 0:
        raise Trouble("it has no pages")
    return count


def draw(path, first, last, folder):
    """Draws some pages; gives those that came about."""
    begin = os.path.join(folder, ".drawn")
    command = ["pdftoppm", "-f", str(first), "-l", str(last), "-scale-to", str(SIDE), path, begin]
    run(command, SECONDS_FOR_A_PAGE * (last - first + 1))
    drawn = {}
    for name in os.listdir(folder):
        found = re.fullmatch(r"\.drawn-0*(\d+)\.ppm", name)
        if found:
            drawn[int(found.group(1))] = os.path.join(folder, name)
    for number in range(first, last + 1):
        yield number, drawn.get(number)


def one(number, picture, words, out):
    from PIL import Image

    if picture is None:
        image = Image.new("RGB", (SIDE * 3 // 4, SIDE), "white")
    else:
        with Image.open(picture) as opened:
            image = opened.convert("RGB")
        os.unlink(picture)
    save(image, f"page-{number}.png", out)
    small = image.copy()
    small.thumbnail((SMALL_SIDE, SMALL_SIDE))
    save(small, f"thumbnail-{number}.png", out)
    return {
        "number": number,
        "width": image.width,
        "height": image.height,
        "text": words if picture else "This page could not be drawn.",
    }


def save(image, name, out):
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=4)
    out.bytes(name, buffer.getvalue())


def words_of(path, first, last):
    """The text of some pages, each with its columns kept apart."""
    command = ["pdftotext", "-f", str(first), "-l", str(last), "-layout", "-enc", "UTF-8", path, "-"]
    found = run(command, SECONDS_FOR_A_PAGE).stdout.decode("utf-8", "replace")
    parts = [tidied(part) for part in found.split("\f")]
    return parts + [""] * (last - first + 1 - len(parts))


def tidied(text):
    lines = [re.sub(r"[ \t]{3,}", "  ", line.rstrip()) for line in text.split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()[:TEXT_CHARACTERS]


def run(command, seconds):
    try:
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        if command[0] == "pdfinfo":
            raise Trouble("reading it takes too long") from None
        return subprocess.CompletedProcess(command, 1, b"", b"")


def only_text(path, out):
    """The words of a PDF, where there is no poppler to draw it."""
    import pypdf
    from pypdf.errors import PdfReadError

    try:
        reader = pypdf.PdfReader(path)
        if reader.is_encrypted:
            raise PROTECTED
        count = len(reader.pages)
        parts = [page.extract_text() for page in reader.pages[:PAGES]]
    except PdfReadError:
        raise damaged("PDF") from None
    out.bytes("text.txt", "\n\n".join(parts)[:200_000].encode("utf-8", "replace"))
    cut = None if count <= PAGES else f"the text of the first {PAGES} of {count} pages is shown"
    return {"text": True, "is_without_office": True, "cut": cut}
