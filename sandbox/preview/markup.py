"""Refuses XML that declares entities, before anything reads it: a few lines of them unpack to more
than any memory holds, and what a reader leaves of them is not what the file says."""

import gzip
import zlib
from xml.parsers import expat
from zipfile import BadZipFile

from trouble import Trouble

# Where no element has begun by then, nobody sees what is declared.
PROLOG_BYTES = 1 << 20
PIECE = 1 << 16

# What drawings and pages say of themselves, also inside of office files.
PLAIN = ("svg", "html")

UNREADABLE = (BadZipFile, EOFError, NotImplementedError, OSError, RuntimeError, zlib.error)


class Declares(Exception):
    pass


class Begun(Exception):
    pass


def refused():
    return Trouble(
        "this file cannot be previewed: its XML declares entities or a document type of its own, which may "
        "unpack to anything",
        "save it anew with the program that it is for",
    )


def check_file(path):
    """Refuses a file of XML; what is no XML is looked at by others."""
    with open(path, "rb") as file:
        is_packed = file.read(2) == b"\x1f\x8b"
    with (gzip.open if is_packed else open)(path, "rb") as file:
        check(file, is_office=False)


def check(file, is_office):
    """Refuses what declares anything. Parts of Office's own forms have no document type at all."""
    parser = expat.ParserCreate()

    def document_type(name, _system, _public, has_declarations):
        if has_declarations or (is_office and name.lower() not in PLAIN):
            raise Declares

    def element(_name, _attributes):
        raise Begun

    parser.StartDoctypeDeclHandler = document_type
    parser.StartElementHandler = element
    head, read = b"", 0
    try:
        while piece := file.read(PIECE):
            head, read = head or piece, read + len(piece)
            parser.Parse(piece, False)
            if read >= PROLOG_BYTES:
                raise Declares
    except Declares:
        raise refused() from None
    except Begun:
        return
    except (expat.ExpatError, LookupError, ValueError):
        # No XML, or none that this parser reads: another one might, in an encoding of its own.
        if looks_declared(head):
            raise refused() from None
    except UNREADABLE:
        # Whoever reads it says what is the matter.
        return


def looks_declared(head):
    plain = head.replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n")
    return plain.startswith(b"<") and b"<!ENTITY" in plain
