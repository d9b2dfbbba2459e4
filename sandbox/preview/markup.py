"""Refuses XML that declares entities, before anything reads it: a few lines of them unpack to more
than any memory holds, and what a reader leaves of them is not what the file says.

Others read it afterwards, and more encodings than the parser here. What that cannot read is therefore not
let through, but looked at as it is written."""

import gzip
import re
import zlib
from xml.parsers import expat
from zipfile import BadZipFile

from trouble import Trouble

# Where no element has begun by then, nobody sees what is declared.
PROLOG_BYTES = 1 << 20
PIECE = 1 << 16

# What drawings and pages say of themselves, also inside of office files.
PLAIN = ("svg", "html")

# What Office's own forms may be written in. Each reader knows these.
OFFICE_ENCODINGS = ("utf-8", "utf-16")

UNREADABLE = (BadZipFile, EOFError, NotImplementedError, OSError, RuntimeError, zlib.error)

# A `<` and what follows it in four bytes each, in whichever order, with or without a mark before it; and the
# beginning of XML in EBCDIC.
WIDE = re.compile(
    rb"\xff\xfe\0\0[<\s]\0\0\0|\0\0\xfe\xff\0\0\0[<\s]"
    rb"|<\0\0\0[^\0]..\0|\0\0\0<\0..[^\0]|\0<\0\0.[^\0]|\0\0<\0..[^\0]|\x4c\x6f\xa7\x94",
    re.DOTALL,
)

# What may stand before a document type and before the first element, apart from each other.
BETWEEN = re.compile(r"(?:\s+|<\?.*?\?>|<!--.*?-->)*", re.DOTALL)
DOCUMENT_TYPE = re.compile(r"<!DOCTYPE\s+([^\s\[>]*)")
DECLARED = re.compile(r"<\?xml\s[^>]*?\bencoding\s*=\s*[\"']([^\"']+)")


class Declares(Exception):
    pass


class Begun(Exception):
    pass


class Foreign(Exception):
    pass


def refused():
    return Trouble(
        "this file cannot be previewed: its XML declares entities or a document type of its own, which may "
        "unpack to anything",
        "save it anew with the program that it is for",
    )


def foreign():
    return Trouble(
        "this file cannot be previewed: its XML is neither UTF-8 nor UTF-16, as office files have to be",
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
    head = b""
    try:
        while piece := file.read(PIECE):
            head += piece
            if len(head) == len(piece):
                parser = parser_of(is_office)
                if WIDE.match(head):
                    raise Foreign
            parser.Parse(piece, False)
            if len(head) >= PROLOG_BYTES:
                raise Declares
    except Declares:
        raise refused() from None
    except Foreign:
        raise foreign() from None
    except Begun:
        return
    except (expat.ExpatError, LookupError, ValueError):
        # No XML, or none that this parser reads: another one might.
        check_as_written(head, file, is_office)
    except UNREADABLE:
        # Whoever reads it says what is the matter.
        return


def parser_of(is_office):
    """Reads until something is clear."""
    parser = expat.ParserCreate()

    def declaration(_version, encoding, _standalone):
        if is_office and encoding and encoding.lower() not in OFFICE_ENCODINGS:
            raise Foreign

    def document_type(name, _system, _public, has_declarations):
        if has_declarations or (is_office and name.lower() not in PLAIN):
            raise Declares

    def element(_name, _attributes):
        raise Begun

    parser.XmlDeclHandler = declaration
    parser.StartDoctypeDeclHandler = document_type
    parser.StartElementHandler = element
    return parser


def check_as_written(head, file, is_office):
    """Looks at all that stands before the first element, without a parser."""
    if not plain(head[:64]).startswith("<"):
        return
    try:
        while len(head) < PROLOG_BYTES and (piece := file.read(PIECE)):
            head += piece
    except UNREADABLE:
        pass
    is_cut = len(head) >= PROLOG_BYTES
    texts = [plain(head)]
    if encoding := DECLARED.match(texts[0]):
        try:
            texts.append(head.decode(encoding[1], "replace").lstrip("\ufeff \t\r\n"))
        except (LookupError, ValueError):
            # Nobody here knows it.
            pass
    if any(declares(text, is_office, is_cut) for text in texts):
        raise refused()


def plain(content):
    """What is plain of it, in whichever encoding that has plain letters."""
    return content.replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n").decode("latin-1")


def declares(text, is_office, is_cut):
    rest = text[BETWEEN.match(text).end() :]
    if is_cut and (not rest or rest.startswith(("<!--", "<?"))):
        return True
    named = DOCUMENT_TYPE.match(rest)
    return "<!ENTITY" in text or bool(named and is_office and named[1].lower() not in PLAIN)
