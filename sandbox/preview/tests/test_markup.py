"""XML that declares entities is refused, wherever it stands and however it is written."""

import gzip
import io
import unittest
import zipfile

import documents
import drawings
import markup
import workbooks
from place import Place
from trouble import Trouble

LAUGHS = '<!DOCTYPE w [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><w>&b;</w>'
LINE = "this file cannot be previewed: its XML declares entities"
ENCODED = "this file cannot be previewed: its XML is neither UTF-8 nor UTF-16"
LONG = f"<!--{'x' * 100_000}-->"


def in_encoding(name, as_bytes=None):
    """The laughs behind more than is read at once, in an encoding that is named."""
    text = f'<?xml version="1.0" encoding="{name}"?>{LONG}{LAUGHS}'
    return text.encode(as_bytes or name)


class Markup(Place):
    def is_refused(self, make, *arguments, line=LINE):
        with self.assertRaises(Trouble) as caught:
            make(*arguments)
        self.assertTrue(str(caught.exception).startswith(line), str(caught.exception))

    def test_entities_are_seen_in_every_encoding_and_behind_whatever_stands_before(self):
        for content in [
            LAUGHS.encode(),
            LAUGHS.encode("utf-16"),
            f'<?xml version="1.0" encoding="utf-16"?>{LAUGHS}'.encode("utf-16-le"),
            f"{LONG}{LAUGHS}".encode(),
            b"<!--" + b"x" * (2 << 20),
            # Named as what it is not: who goes by the mark reads it.
            b"\xef\xbb\xbf" + in_encoding("utf-16", "utf-8"),
            in_encoding("utf-16", "utf-8"),
            in_encoding("utf-8", "utf-16"),
        ]:
            for is_office in (True, False):
                self.is_refused(markup.check, io.BytesIO(content), is_office)

    def test_office_files_are_in_utf_8_or_utf_16_and_in_nothing_else(self):
        directly = LAUGHS.replace("<!", "+ADwAIQ-")
        utf_7 = f'<?xml version="1.0" encoding="UTF-7"?>{directly}'.encode()
        for content in [
            utf_7,
            in_encoding("utf-7"),
            in_encoding("gb18030"),
            in_encoding("shift_jis"),
            in_encoding("iso-8859-1"),
            in_encoding("windows-1252"),
            in_encoding("nobody-knows", "ascii"),
            in_encoding("utf-32"),
            in_encoding("utf-32-le"),
            in_encoding("utf-32-be"),
            f"{LONG}{LAUGHS}".encode("utf-32"),
            f"{LONG}{LAUGHS}".encode("utf-32-le"),
            f"{LONG}{LAUGHS}".encode("utf-32-be"),
            in_encoding("cp037"),
            # Nothing is declared here, and nobody has to find out.
            b'<?xml version="1.0" encoding="gb18030"?><w/>',
        ]:
            self.is_refused(markup.check, io.BytesIO(content), True, line=ENCODED)
        for name in ("UTF-8", "utf-16"):
            content = f'<?xml version="1.0" encoding="{name}"?><w/>'.encode(name)
            markup.check(io.BytesIO(content), True)

    def test_elsewhere_what_the_parser_does_not_read_is_looked_at_as_it_is_written(self):
        directly = LAUGHS.replace("<!", "+ADwAIQ-")
        for content in [
            f'<?xml version="1.0" encoding="UTF-7"?>{directly}'.encode(),
            in_encoding("utf-7"),
            in_encoding("gb18030"),
            in_encoding("shift_jis"),
            in_encoding("windows-1252"),
            in_encoding("nobody-knows", "ascii"),
            b'<?xml version="1.0" encoding="gb18030"?><!--' + b"x" * (2 << 20),
        ]:
            self.is_refused(markup.check, io.BytesIO(content), False)
        for name in ("gb18030", "shift_jis", "nobody-knows"):
            content = f'<?xml version="1.0" encoding="{name}"?>{LONG}<w/>'.encode()
            markup.check(io.BytesIO(content), False)

    def test_what_declares_nothing_is_let_through(self):
        for content in [
            b"<w/>",
            b"\x89PNG\r\n",
            b"",
            b"<w",
            b'<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "svg11.dtd"><svg/>',
            b"<!DOCTYPE html><p>x",
            # The beginning of a film, of a font and of nothing.
            b"\0\0\0\x20ftypisom\0\0\2\0",
            b"\0\1\0\0\0\x0c\0\x80",
            b"\0" * 64,
        ]:
            markup.check(io.BytesIO(content), True)
        named = b'<!DOCTYPE w SYSTEM "w.dtd"><w/>'
        markup.check(io.BytesIO(named), False)
        self.is_refused(markup.check, io.BytesIO(named), True)

    def test_every_part_of_an_office_file_is_looked_at(self):
        for form in ("xlsx", "ods", "docx", "pptx", "odt", "odp"):
            for part in ("xl/worksheets/sheet1.xml", "xl/sharedStrings.xml", "any/where.bin"):
                content = io.BytesIO()
                with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
                    archive.writestr("[Content_Types].xml", "<Types/>")
                    archive.writestr(part, LAUGHS)
                path = self.write(f"a.{form}", content.getvalue())
                make = workbooks.make if form in ("xlsx", "ods") else documents.make
                self.is_refused(make, form, path, self.out)

    def test_so_are_drawings_and_workbooks_that_are_one_file_of_xml(self):
        self.is_refused(workbooks.make, "xls", self.write("a.xls", LAUGHS.encode()), self.out)
        drawing = LAUGHS.replace("<w>", "<svg xmlns='http://www.w3.org/2000/svg'>").replace("</w>", "</svg>")
        for content in (drawing.encode(), gzip.compress(drawing.encode())):
            self.is_refused(drawings.make, self.write("a.svg", content), self.out)


if __name__ == "__main__":
    unittest.main()
