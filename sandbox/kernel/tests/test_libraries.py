"""What people do with the libraries, in memory, in files and in other processes."""

import unittest

from support import KernelCase


class Libraries(KernelCase):
    def value(self, code: str) -> str:
        return self.ok(code).result["data"]["text/plain"]

    def test_databases(self):
        self.assertEqual(
            self.value(
                "import sqlite3\nwith sqlite3.connect('notes.db') as db:\n"
                "    db.execute('create table t (x)'); db.execute('insert into t values (5)')\n"
                "sqlite3.connect('notes.db').execute('select x from t').fetchall()"
            ),
            "[(5,)]",
        )
        self.assertEqual(
            self.value(
                "import pandas as pd\npd.read_sql('select x from t', sqlite3.connect('notes.db')).x.sum().item()"
            ),
            "5",
        )

    def test_office_documents_and_pictures(self):
        self.ok(
            "import pandas as pd\ndf = pd.DataFrame({'a': [1, 2]})\ndf.to_excel('t.xlsx')\n"
            "assert pd.read_excel('t.xlsx', index_col=0).equals(df)"
        )
        self.ok(
            "from docx import Document\nd = Document(); d.add_paragraph('x'); d.save('t.docx')\n"
            "assert Document('t.docx').paragraphs[0].text == 'x'"
        )
        self.ok(
            "from pptx import Presentation\np = Presentation(); p.slides.add_slide(p.slide_layouts[0]); p.save('t.pptx')\n"
            "assert len(Presentation('t.pptx').slides) == 1"
        )
        self.ok(
            "from reportlab.pdfgen.canvas import Canvas\nc = Canvas('t.pdf'); c.drawString(99, 99, 'words'); c.save()\n"
            "import pypdf\nassert 'words' in pypdf.PdfReader('t.pdf').pages[0].extract_text()"
        )
        self.ok(
            "from PIL import Image, ImageDraw, ImageFont\ni = Image.new('RGB', (40, 40)); ImageDraw.Draw(i).text((1, 1), 'x', font=ImageFont.load_default(12))\n"
            "i.save('t.png'); assert Image.open('t.png').size == (40, 40)"
        )

    def test_figures_in_files(self):
        self.ok(
            "import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.title('Größe $x^2$')\n"
            "for kind in ('png', 'svg', 'pdf'): plt.savefig('t.' + kind)\nplt.close()"
        )
        self.assertEqual(
            self.value("open('t.pdf', 'rb').read(5), open('t.svg').read(5)"), "(b'%PDF-', '<?xml')"
        )

    def test_shared_memory_locks_and_queues(self):
        self.assertEqual(
            self.value(
                "import multiprocessing as mp, numpy as np\nfrom multiprocessing import shared_memory\n"
                "fork = mp.get_context('fork')\nlock, queue = fork.Lock(), fork.Queue()\n"
                "memory = shared_memory.SharedMemory(create=True, size=80)\n"
                "numbers = np.ndarray(10, dtype=np.int64, buffer=memory.buf); numbers[:] = 0\n"
                "def work(n):\n    with lock: numbers[n] = n\n    queue.put(n)\n"
                "workers = [fork.Process(target=work, args=(n,)) for n in range(3)]\n"
                "for w in workers: w.start()\nfor w in workers: w.join()\n"
                "got = sorted(queue.get() for _ in workers), numbers.tolist()\n"
                "del numbers; memory.close(); memory.unlink()\ngot"
            ),
            "([0, 1, 2], [0, 1, 2, 0, 0, 0, 0, 0, 0, 0])",
        )
        self.still_in_step()

    def test_linear_algebra(self):
        self.assertEqual(
            self.value("import numpy as np\nfloat(np.linalg.inv(np.eye(500) * 2).trace())"), "250.0"
        )

    def test_asynchronous_programs(self):
        self.assertEqual(
            self.value(
                "import asyncio\nawait asyncio.sleep(0)\n"
                "process = await asyncio.create_subprocess_shell('echo from a shell', stdout=-1)\n"
                "(await process.communicate())[0], asyncio.current_task().get_name()"
            ),
            "(b'from a shell\\n', 'Task-1')",
        )

    def test_variables_that_come_before_the_first_call(self):
        kernel = self.fresh()
        kernel.send(
            {
                "type": "environment",
                "variables": {"TZ": "Asia/Tokyo", "NAME": "a b", "MPLBACKEND": "agg"},
            }
        )
        outcome = kernel.run(
            "import os, subprocess, time\nimport matplotlib.pyplot as plt\nplt.plot([1]);\n"
            "(os.environ['NAME'], subprocess.run('echo $NAME', shell=True, capture_output=True, text=True).stdout,"
            " time.localtime(0).tm_hour, plt.get_backend())"
        )
        self.assertEqual(
            outcome.result["data"]["text/plain"], "('a b', 'a b\\n', 9, 'agg')", outcome.events
        )
        self.assertEqual(outcome.all("display"), [])


if __name__ == "__main__":
    unittest.main()
