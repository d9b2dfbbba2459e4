"""The matplotlib backend in programs: show saves, nothing else does."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from harness import KERNEL_FOLDER

START = "import matplotlib.pyplot as plt\n"


class SavingBackend(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="backend-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def run_program(self, code: str, status: int = 0) -> list[str]:
        """Runs a program; it must print nothing. Returns the files it left."""
        done = subprocess.run(
            [sys.executable, "-c", START + code],
            cwd=self.folder,
            env={
                "PATH": os.environ["PATH"],
                "LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", ""),
                "PYTHONPATH": str(KERNEL_FOLDER),
                "MPLBACKEND": "module://glovebox_backend",
                "MPLCONFIGDIR": os.environ.get(
                    "GLOVEBOX_TEST_MPLCONFIGDIR", tempfile.gettempdir() + "/kernel-test-mpl"
                ),
            },
            capture_output=True,
            text=True,
            timeout=120,
        )
        self.assertEqual(done.returncode, status, done.stderr)
        if status == 0:
            self.assertEqual((done.stdout, done.stderr), ("", ""))
        return sorted(os.listdir(self.folder))

    def test_show_saves_every_open_figure_once(self):
        files = self.run_program(
            "plt.plot([1]); plt.figure(); plt.plot([2]); plt.show(); plt.show()\n"
            "assert plt.get_fignums() == []\nplt.plot([3]); plt.show(block=False)"
        )
        self.assertEqual(files, ["figure-1.png", "figure-2.png", "figure-3.png"])
        with open(self.folder + "/figure-1.png", "rb") as file:
            self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")

    def test_existing_files_are_kept(self):
        for name in ("figure-1.png", "figure-3.png"):
            with open(f"{self.folder}/{name}", "w", encoding="ascii") as file:
                file.write("mine")
        os.symlink("/nowhere/at/all", self.folder + "/figure-2.png")
        files = self.run_program("plt.plot([1]); plt.show()")
        self.assertEqual(files, [f"figure-{n}.png" for n in range(1, 5)])
        with open(self.folder + "/figure-1.png", encoding="ascii") as file:
            self.assertEqual(file.read(), "mine")

    def test_a_figure_shown_by_itself_is_saved(self):
        self.assertEqual(
            self.run_program("f = plt.figure(); plt.figure(); f.show(); plt.show()"),
            ["figure-1.png", "figure-2.png"],
        )

    def test_nothing_is_saved_unasked(self):
        self.assertEqual(self.run_program("plt.plot([1])"), [])
        self.assertEqual(self.run_program("plt.plot([1]); plt.savefig('own.png')"), ["own.png"])
        self.assertEqual(
            self.run_program("import matplotlib; matplotlib.use('agg'); plt.plot([1])"), ["own.png"]
        )

    def test_a_folder_that_cannot_be_written_is_an_error(self):
        files = self.run_program(
            "import os; os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')\nplt.plot([1]); plt.show()",
            status=1,
        )
        self.assertEqual(files, [])

    def test_pause_and_interactive_mode_do_not_fail(self):
        self.assertEqual(
            self.run_program("plt.ion(); plt.plot([1]); plt.pause(0.01); plt.close()"), []
        )


if __name__ == "__main__":
    unittest.main()
