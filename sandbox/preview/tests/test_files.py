"""Whole files through the makers of previews, where there is no LibreOffice."""

import json
import os
import zipfile

import documents
import pages
import tables
import workbooks
from place import Place
from trouble import Trouble

DATA = os.path.join(os.path.dirname(__file__), "../../../crates/cli/tests/real_files/data")


class Files(Place):
    def sheet(self, number=1):
        with open(self.out.path(f"sheet-{number}.json")) as file:
            return json.load(file)

    def text(self):
        with open(self.out.path("text.txt"), encoding="utf-8") as file:
            return file.read()

    def test_without_libreoffice_a_deck_and_a_letter_are_their_text(self):
        for name, words in [("deck.pptx", "Regen in Zürich"), ("letter.docx", "2012-01-02\t10.9")]:
            made = documents.make(name[-4:], os.path.join(DATA, name), self.out)
            self.assertTrue(made["text"] and made["is_without_office"])
            self.assertIn(words, self.text())
        made = pages.make(os.path.join(DATA, "letter.pdf"), self.out)
        self.assertTrue(made["is_without_office"])
        self.assertIn("The second page.", self.text())

    def test_without_libreoffice_an_old_workbook_is_read_all_the_same(self):
        made = workbooks.make("xls", os.path.join(DATA, "weather.xls"), self.out)
        self.assertEqual([sheet["name"] for sheet in made["sheets"]], ["2012", "2013", "2014", "2015"])
        self.assertEqual(self.sheet(2)["rows"][1][0], {"v": "2013-01-01", "t": "d"})

    def test_what_only_libreoffice_reads_says_what_would_help(self):
        rtf = self.write("a.rtf", b"{\\rtf1 x}")
        with self.assertRaises(Trouble) as caught:
            documents.make("rtf", rtf, self.out)
        self.assertIn("install LibreOffice", caught.exception.fix)

    def test_encodings_and_delimiters_are_found(self):
        for content, cells in [
            (b"a;b\n1,5;2\n", ["a", "b"]),
            (b"a,b\n1,2\n", ["a", "b"]),
            (b"a\tb\n1\t2\n", ["a", "b"]),
            (b"a|b\n1|2\n", ["a", "b"]),
            ("ä;b\n1;2\n".encode("latin-1"), ["ä", "b"]),
            ("\ufeffä,b\n1,2\n".encode(), ["ä", "b"]),
            ("ä,b\n1,2\n".encode("utf-16"), ["ä", "b"]),
            ("ä,b\n1,2\n".encode("utf-16-le"), ["ä", "b"]),
            (b'"a,\n",b\n1,2\n', ["a,\n", "b"]),
            (b"one\ntwo\n", ["one"]),
        ]:
            tables.make("csv", self.write("a.csv", content), self.out)
            found = [cell["v"] for cell in self.sheet()["rows"][0]]
            self.assertEqual(found, cells, content)

    def test_letters_of_columns_count_on(self):
        self.assertEqual(tables.columns(28)[24:], ["Y", "Z", "AA", "AB"])

    def test_beginnings_of_formulas_that_do_not_end_are_read_once(self):
        # Looked through from each of them to the end, these would take days.
        for pattern in (workbooks.UNCALCULATED, workbooks.CALCULATE_ON_LOAD):
            self.assertIsNone(pattern.search(b"<f" * (1 << 20)))
            self.assertIsNone(pattern.search(b"<calcPr " * (1 << 18)))
        self.assertTrue(workbooks.UNCALCULATED.search(b'<c r="A1"><f t="shared" si="0"/></c>'))

    def test_a_newer_workbook_under_an_older_name_is_looked_into(self):
        sheet = b'<!DOCTYPE x [<!ENTITY e "ha">]><worksheet/>'
        path = self.write("a.xls", b"")
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("xl/worksheets/sheet1.xml", sheet)
        with self.assertRaisesRegex(Trouble, "declares entities"):
            workbooks.check_older("xls", path)
