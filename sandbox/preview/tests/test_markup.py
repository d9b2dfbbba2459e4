"""XML that declares entities is refused, wherever it stands and however it is written."""

import gzip
import io
import os
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


class Markup(Place):
    def is_refused(self, make, *arguments):
        with self.assertRaises(Trouble) as caught:
            make(*arguments)
        self.assertTrue(str(caught.exception).startswith(LINE), str(caught.exception))

    def test_entities_are_seen_in_every_encoding_and_behind_whatever_stands_before(self):
        for content in [
            LAUGHS.encode(),
            LAUGHS.encode("utf-16"),
            f'<?xml version="1.0" encoding="utf-16"?>{LAUGHS}'.encode("utf-16-le"),
            f'<?xml version="1.0" encoding="windows-1252"?>{LAUGHS}'.encode("windows-1252"),
            f'<?xml version="1.0" encoding="nobody-knows"?>{LAUGHS}'.encode(),
            f"<!--{'x' * 100_000}-->{LAUGHS}".encode(),
            b"<!--" + b"x" * (2 << 20),
        ]:
            for is_office in (True, False):
                self.is_refused(markup.check, io.BytesIO(content), is_office)

    def test_what_declares_nothing_is_let_through(self):
        for content in [
            b"<w/>",
            b"\x89PNG\r\n",
            b"",
            b"<w",
            b'<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "svg11.dtd"><svg/>',
            b"<!DOCTYPE html><p>x",
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
