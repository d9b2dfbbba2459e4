"""What tests of whole files begin with: a folder, and a sandbox without LibreOffice."""

import os
import tempfile
import unittest
from unittest import mock

import main


class Place(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.out = main.Out(os.path.join(self.folder.name, "out"))
        self.out.tell = lambda **_: None
        without = mock.patch("shutil.which", lambda _: None)
        without.start()
        self.addCleanup(without.stop)

    def write(self, name, content):
        path = os.path.join(self.folder.name, name)
        with open(path, "wb") as file:
            file.write(content)
        return path
