"""How a template comes to serve, or does not."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

from copies import TemplateProcess, start_template
from harness import Kernel, kernel_environment

FRAME = """
import pandas as pd
df = pd.DataFrame({'a': ['x', 'y', 'x', 'z'] * 25, 'b': range(100)})
df.groupby('a').b.sum()
"""


FIRST_STEPS = [
    FRAME,
    "df",
    "df.describe(); df.sort_values('b').merge(df, on='b').pivot_table(index='b', values='a_x', aggfunc='count')",
    "df.to_csv('t.csv'); pd.read_csv('t.csv')",
    "df.to_excel('t.xlsx'); df.to_excel('t.xlsx', engine='openpyxl'); pd.read_excel('t.xlsx')",
    "import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.title('x'); plt.legend(['a']); plt.savefig('t.png')",
    "fig, axes = plt.subplots(2, 2); axes[0, 0].scatter([1], [2]); axes[0, 1].pie([1, 2]); axes[1, 0].hist([1])",
    "from docx import Document\nd = Document(); d.add_heading('x'); d.add_picture('t.png'); d.save('t.docx')",
    "from pptx import Presentation\np = Presentation(); s = p.slides.add_slide(p.slide_layouts[0]); s.shapes.add_picture('t.png', 0, 0); p.save('t.pptx')",
    "from reportlab.pdfgen import canvas\nc = canvas.Canvas('t.pdf'); c.drawString(1, 1, 'x'); c.save()",
    "from PIL import Image, ImageDraw\ni = Image.open('t.png').resize((9, 9)).convert('RGB'); ImageDraw.Draw(i).line((0, 0, 9, 9)); i",
    "import asyncio; await asyncio.sleep(0)",
    "!echo x",
    "%%bash\necho x",
    "%timeit -n1 -r1 1",
    "import subprocess, threading; subprocess.run('true'); threading.Thread(target=print).start()",
    "1 / 0",
]


class Start(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="kernel-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def test_without_its_library_it_says_so_and_ends(self):
        line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(line.close)
        process = start_template(["-m", "glovebox_kernel.template"], self.folder, theirs)
        answer = json.loads(line.recv(4096))
        self.assertEqual(answer["is"], "failed")
        self.assertIn("libglovebox_template.so", answer["cause"])
        self.assertEqual(process.wait(60), 1)

    def refusal(self, code: str) -> str:
        """What the last look says of a process that did something before."""
        done = subprocess.run(
            [sys.executable, "-P", "-c", f"from glovebox_kernel.template import traces\n{code}"],
            input="",
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=kernel_environment(self.folder),
            timeout=60,
        )
        return done.stderr.strip().rpartition("\n")[2]

    def test_what_copies_must_not_share_keeps_it_from_serving(self):
        look = "\ntraces.check({0, 1, 2})"
        self.assertEqual(self.refusal(look), "")
        for code, why in (
            ("import random; mine = random.Random(5)", "nothing would reseed a random.Random"),
            (
                "import numpy; mine = numpy.random.default_rng()",
                "a numpy.random._generator.Generator",
            ),
            ("import sqlite3", "nothing would reseed the library sqlite3"),
            ("f = open('/dev/zero')", "descriptor 3 is open: /dev/zero"),
            (
                "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()",
                "2 threads run",
            ),
        ):
            with self.subTest(code):
                self.assertIn(why, self.refusal(code + look))


class Copies(unittest.TestCase):
    template: TemplateProcess

    @classmethod
    def setUpClass(cls) -> None:
        cls.template = TemplateProcess()
        cls.addClassCleanup(cls.template.stop)

    def kernel(self, **order: object) -> Kernel:
        folder = tempfile.mkdtemp(prefix="kernel-test-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        kernel = self.template.kernel(folder, **order)
        self.addCleanup(kernel.stop)
        return kernel

    def test_a_copy_has_little_memory_of_its_own(self):
        kernel = self.kernel()
        self.assertLess(kernel.private_kib(), 6 * 1024)
        self.assertEqual(kernel.run(FRAME).status, "ok")
        self.assertLess(kernel.private_kib(), 12 * 1024)

    def test_one_made_in_advance_has_the_pages_of_first_work_already(self):
        count = "__import__('resource').getrusage(0).ru_minflt"
        faults = []
        for in_advance in (0, 1):
            kernel = self.kernel(in_advance=in_advance)
            self.assertLess(kernel.private_kib(), (6 + 4 * in_advance) * 1024)
            outcome = kernel.run(f"before = {count}{FRAME}print({count} - before)")
            faults.append(int(outcome.stdout))
        self.assertLess(faults[1] * 3, faults[0])

    def test_what_people_do_first_has_nothing_to_load(self):
        kernel = self.kernel()
        modules = "print(*__import__('sys').modules)"
        before = set(kernel.run(modules).stdout.split())
        for code in FIRST_STEPS:
            with self.subTest(code):
                self.assertEqual(kernel.run(code).status, "error" if "/ 0" in code else "ok")
                after = set(kernel.run(modules).stdout.split())
                self.assertLessEqual(after - before, {"glovebox_backend"})
                before = after

    def test_copies_see_nothing_of_each_other(self):
        one, other = self.kernel(), self.kernel()
        one.run(
            "import numpy, os, sys, builtins\nsecret = 5; builtins.secret = 5; numpy.secret = 5\n"
            "os.environ['SECRET'] = '5'; sys.path.append('secret'); open('secret', 'w').close()"
        )
        for kernel in (other, self.kernel()):
            seen = kernel.run(
                "import numpy, os, sys, builtins\n'secret' in globals(), hasattr(builtins, 'secret'), "
                "hasattr(numpy, 'secret'), 'SECRET' in os.environ, 'secret' in sys.path, os.listdir(), len(In)"
            )
            self.assertEqual(
                seen.result["data"]["text/plain"], "(False, False, False, False, False, [], 2)"
            )

    def test_the_end_of_a_copy_is_of_no_concern_to_others(self):
        one, other = self.kernel(), self.kernel()
        os.kill(one.process.pid, 9)
        self.assertEqual(one.process.wait(10), -9)
        self.assertEqual(other.run("1 + 1").result["data"]["text/plain"], "2")
        self.assertEqual(self.kernel().run("1 + 1").result["data"]["text/plain"], "2")

    def test_linear_algebra_uses_the_threads_it_is_given(self):
        code = (
            "import os, numpy as np\na = np.ones((500, 500)); a @ a\n"
            "len(os.listdir('/proc/self/task')), os.environ['OMP_NUM_THREADS'], os.environ['OPENBLAS_NUM_THREADS']"
        )
        for threads in (1, 2, 3):
            kernel = self.kernel(threads=threads)
            seen = kernel.run(code).result["data"]["text/plain"]
            self.assertEqual(seen, f"({threads}, '{threads}', '{threads}')")
            product = "float((a @ a)[0, 0]), float(np.linalg.solve(a + np.eye(500), a)[0, 0]) < 1"
            outcome = kernel.run(product)
            self.assertEqual(outcome.result["data"]["text/plain"], "(500.0, True)")

    def test_threads_for_linear_algebra_come_with_its_first_work(self):
        kernel = self.kernel(threads=3)
        code = "len(os.listdir('/proc/self/task'))"
        self.assertEqual(kernel.run(f"import os; {code}").result["data"]["text/plain"], "1")
        kernel.run(FRAME)
        self.assertEqual(kernel.run(code).result["data"]["text/plain"], "1")
        kernel.run("import numpy as np; a = np.ones((500, 500)); a @ a")
        self.assertEqual(kernel.run(code).result["data"]["text/plain"], "3")
        # And again in a child, which has none of them.
        child = kernel.run(
            "r, w = os.pipe()\nif os.fork() == 0:\n    a @ a\n"
            f"    os.write(w, str({code}).encode()); os._exit(0)\nos.wait(); os.read(r, 9)"
        )
        self.assertEqual(child.result["data"]["text/plain"], "b'3'")

    def test_a_copy_of_a_copy_is_a_child_of_code(self):
        kernel = self.kernel()
        outcome = kernel.run(
            "import os, random\nr, w = os.pipe()\n"
            "if os.fork() == 0:\n    os.write(w, str(random.random()).encode()); os._exit(0)\n"
            "os.wait(); float(os.read(r, 99)) != random.random()"
        )
        self.assertEqual(outcome.result["data"]["text/plain"], "True")


if __name__ == "__main__":
    unittest.main()
