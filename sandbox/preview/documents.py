"""Decks and letters: pages by way of PDF, or only their text where there is no LibreOffice."""

import os
import zipfile

import archives
import office
import pages
from trouble import PROTECTED, Trouble, damaged

SECONDS = 120

WHAT = {
    "pptx": "presentation",
    "ppt": "presentation",
    "odp": "presentation",
    "docx": "document",
    "doc": "document",
    "odt": "document",
    "rtf": "document",
}

TEXT_CHARACTERS = 200_000


def make(form, path, out):
    what = WHAT[form]
    check(form, path, what)
    if not office.is_here():
        return only_text(form, path, out)
    made = office.convert(path, "pdf", os.path.dirname(path), SECONDS)
    if made is None:
        raise damaged(what)
    return pages.make(made, out)


def check(form, path, what):
    if form in ("pptx", "docx"):
        archives.check(path, what)
    elif form in ("odp", "odt"):
        archives.check(path, what, is_office=False)
        with zipfile.ZipFile(path) as archive:
            if "META-INF/manifest.xml" in archive.namelist():
                manifest = archives.read(archive, "META-INF/manifest.xml", 16 << 20)
                if b"encryption-data" in manifest:
                    raise PROTECTED
    elif form in ("doc", "ppt"):
        if not archives.is_compound(path):
            raise damaged(what)
        if archives.is_encrypted_compound(path):
            raise PROTECTED
    elif form == "rtf":
        with open(path, "rb") as file:
            if not file.read(5) == b"{\\rtf":
                raise damaged(what)


def only_text(form, path, out):
    """The words of a file, where nothing can draw its pages."""
    if form == "pptx":
        words = words_of_slides(path)
    elif form == "docx":
        words = words_of_letter(path)
    else:
        raise Trouble(office.MISSING, "ask a system admin to install LibreOffice where sandboxes run")
    text = ""
    is_cut = False
    for part in words:
        if len(text) + len(part) > TEXT_CHARACTERS:
            is_cut = True
            break
        text += part
    out.bytes("text.txt", text.encode("utf-8", "replace"))
    return {
        "text": True,
        "is_without_office": True,
        "cut": "only the first part of its text is shown" if is_cut else None,
    }


def words_of_slides(path):
    import pptx

    for number, slide in enumerate(pptx.Presentation(path).slides, 1):
        yield f"Slide {number}\n"
        for shape in slide.shapes:
            if shape.has_text_frame:
                yield shape.text_frame.text + "\n"
            elif getattr(shape, "has_table", False) and shape.has_table:
                for row in shape.table.rows:
                    yield "\t".join(cell.text for cell in row.cells) + "\n"
        yield "\n"


def words_of_letter(path):
    import docx

    for block in docx.Document(path).iter_inner_content():
        if hasattr(block, "rows"):
            for row in block.rows:
                yield "\t".join(cell.text for cell in row.cells) + "\n"
        else:
            yield block.text + "\n"
