"""Displays, their order, their limits, and matplotlib inline."""

import base64
import unittest

from support import KernelCase

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()


class Displays(KernelCase):
    def data(self, code: str) -> dict[str, object]:
        displays = self.ok(code).all("display")
        self.assertEqual(len(displays), 1, code)
        return displays[0]["data"]

    def test_output_and_displays_keep_their_order(self):
        outcome = self.ok("for i in range(3):\n    print(i)\n    display(i)")
        self.assertEqual([kind for kind, _ in outcome.events], ["stdout", "display"] * 3)
        self.assertEqual([v for k, v in outcome.events if k == "stdout"], [b"0\n", b"1\n", b"2\n"])

    def test_subprocess_output_keeps_its_order_with_displays(self):
        outcome = self.ok("!echo one\ndisplay(2)\n!echo three")
        self.assertEqual([kind for kind, _ in outcome.events], ["stdout", "display", "stdout"])

    def test_unfinished_lines_come_before_the_display_too(self):
        outcome = self.ok("print('no newline', end='')\ndisplay(1)")
        self.assertEqual([kind for kind, _ in outcome.events], ["stdout", "display"])

    def test_each_message_names_its_call_and_counts_up(self):
        outcome = self.ok("display(1); display(2)")
        first, second = outcome.all("display")
        self.assertEqual(first["id"], outcome.reply["id"])
        self.assertEqual(second["seq"], first["seq"] + 1)

    def test_display_ids_and_updates(self):
        outcome = self.ok("h = display('a', display_id='spot')\nh.update('b')")
        self.assertEqual(outcome.all("display")[0]["transient"], {"display_id": "spot"})
        update = outcome.all("update_display")[0]
        self.assertEqual(
            (update["transient"], update["data"]), ({"display_id": "spot"}, {"text/plain": "'b'"})
        )

    def test_clear_output(self):
        outcome = self.ok(
            "from IPython.display import clear_output\nprint(1)\nclear_output(wait=True)\nprint(2)"
        )
        self.assertEqual([kind for kind, _ in outcome.events], ["stdout", "clear_output", "stdout"])
        self.assertIs(outcome.all("clear_output")[0]["wait"], True)

    def test_the_usual_kinds_of_display(self):
        self.ok("from IPython.display import *")
        self.assertEqual(self.data("display(HTML('<b>x</b>'))")["text/html"], "<b>x</b>")
        self.assertEqual(self.data("display(Markdown('*x*'))")["text/markdown"], "*x*")
        self.assertEqual(self.data("display(Latex('$x$'))")["text/latex"], "$x$")
        self.assertEqual(
            self.data("display(JSON({'a': [1, None]}))")["application/json"], {"a": [1, None]}
        )
        self.assertIn(
            "<svg",
            self.data("display(SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>'))")[
                "image/svg+xml"
            ],
        )
        self.assertEqual(
            self.data(f"import base64; display(Image(base64.b64decode('{PNG}'), format='png'))")[
                "image/png"
            ],
            PNG,
        )
        self.assertIn(
            "audio", self.data("display(Audio([0.0, 0.5] * 100, rate=8000))")["text/html"]
        )
        self.assertEqual(
            self.data("%%javascript\nalert(1)")["application/javascript"], "alert(1)\n"
        )
        self.assertEqual(self.data("%%html\n<i>y</i>")["text/html"], "<i>y</i>\n")
        self.assertEqual(self.data("%%latex\n$y$")["text/latex"], "$y$\n")

    def test_a_raw_bundle_with_bytes_is_sent_as_base64(self):
        data = self.data(
            "display({'image/png': b'\\x89PNG\\r\\n\\x1a\\n', 'text/plain': 'p'}, raw=True)"
        )
        self.assertEqual(data, {"image/png": PNG, "text/plain": "p"})
        self.ok("class Picture:\n    def _repr_png_(self): return b'\\x89PNG\\r\\n\\x1a\\n'")
        self.assertEqual(self.ok("Picture()").result["data"]["image/png"], PNG)

    def test_data_that_is_not_json_becomes_text(self):
        data = self.data(
            "display({'application/json': {1: {2, 2}, 'n': float('nan'), 'o': object, 'big': 10 ** 5000, "
            "'b': b'x', 's': '\\ud800'}}, raw=True)"
        )
        self.assertEqual(data["application/json"]["n"], None)
        self.assertEqual(data["application/json"]["1"], [2])
        self.assertEqual(data["application/json"]["s"], "?")
        self.ok("loop = []; loop.append(loop); display({'application/json': loop}, raw=True)")
        self.ok(
            "import numpy as np; display({'application/json': [np.int64(3), np.float64(1.5), np.arange(2)]}, raw=True)"
        )
        self.still_in_step()

    def test_a_broken_representation_is_shown_and_does_not_end_the_cell(self):
        outcome = self.kernel.run(
            "class Half:\n    def _repr_html_(self): return 1 / 0\n    def __repr__(self): return 'half'\nHalf()"
        )
        self.assertEqual(outcome.result["data"], {"text/plain": "half"})
        self.assertEqual(outcome.error["ename"], "ZeroDivisionError")
        self.kernel.run("class Broken:\n    def __repr__(self): return 1 / 0\nBroken()")
        self.kernel.run("class Wrong:\n    def __repr__(self): return 5\nWrong()")
        self.kernel.run("class Ends:\n    def __repr__(self): raise SystemExit\nEnds()")
        self.still_in_step()

    def test_plain_values_are_shown_as_user_code_says(self):
        kernel = self.fresh()
        kernel.run(
            "f = get_ipython().display_formatter.formatters\nf['text/html'].for_type(int, lambda n: f'<b>{n}</b>')"
        )
        self.assertEqual(
            kernel.run("5").result["data"], {"text/html": "<b>5</b>", "text/plain": "5"}
        )
        kernel.run("f['text/plain'].for_type(float, lambda x, p, c: p.text('about one'))")
        self.assertEqual(kernel.run("1.1").result["data"], {"text/plain": "about one"})
        kernel = self.fresh()
        kernel.run("%precision 2")
        self.assertEqual(kernel.run("2.3456").result["data"]["text/plain"], "2.35")

    def test_a_display_over_the_budget_becomes_a_note(self):
        note = self.ok("'x' * 20_000_000").result["data"]
        self.assertEqual(list(note), ["text/plain"])
        self.assertIn("left out", note["text/plain"])
        self.assertLess(len(note["text/plain"]), 1000)
        data = self.data("display({'text/plain': 'small', 'text/html': 'y' * 9_000_000}, raw=True)")
        self.assertTrue(data["text/plain"].startswith("small\n[left out: text/html of 8.6 MiB"))
        self.assertEqual(list(data), ["text/plain"])
        self.data("display({'application/json': list(range(3_000_000))}, raw=True)")
        self.ok("display(1, metadata={'m': 'z' * 20_000_000})")
        self.still_in_step()

    def test_control_characters_within_the_budget_stay_within_a_frame(self):
        self.ok("display({'text/plain': '\\x01' * 8_000_000}, raw=True)")

    def test_a_table_is_html(self):
        data = self.ok("import pandas as pd\npd.DataFrame({'a': [1, 2]})").result["data"]
        self.assertIn("<table", data["text/html"])
        self.assertIn("a", data["text/plain"])


class Matplotlib(KernelCase):
    def pictures(self, code: str) -> list[str]:
        outcome = self.ok(code)
        found = [d["data"]["image/png"] for d in outcome.all("display")]
        for picture in found:
            self.assertTrue(base64.b64decode(picture).startswith(b"\x89PNG"))
        return found

    def test_a_bare_kernel_has_not_imported_it(self):
        kernel = self.fresh()
        outcome = kernel.run(
            "import sys\n[m for m in ('matplotlib', 'numpy', 'asyncio', 'jedi', 'sqlite3', 'pdb') if m in sys.modules]"
        )
        self.assertEqual(outcome.result["data"]["text/plain"], "[]")

    def test_figures_are_shown_at_the_end_of_the_cell_once(self):
        self.assertEqual(
            len(
                self.pictures(
                    "import matplotlib.pyplot as plt\nplt.plot([1, 2]);\nplt.figure(); plt.plot([2, 1]);"
                )
            ),
            2,
        )
        self.assertEqual(self.pictures("1"), [])
        self.assertEqual(self.ok("plt.get_fignums()").result["data"]["text/plain"], "[]")

    def test_figures_are_shown_where_show_is_called(self):
        outcome = self.ok(
            "import matplotlib.pyplot as plt\nprint('a'); plt.plot([1]); plt.show(); print('b')"
        )
        self.assertEqual([kind for kind, _ in outcome.events], ["stdout", "display", "stdout"])

    def test_a_closed_figure_is_not_shown(self):
        self.assertEqual(
            self.pictures("import matplotlib.pyplot as plt\nplt.plot([1]); plt.close()"), []
        )

    def test_a_figure_as_the_value_is_shown_with_its_picture(self):
        outcome = self.ok("import matplotlib.pyplot as plt\nfig, ax = plt.subplots()\nfig")
        self.assertIn("image/png", outcome.result["data"])

    def test_the_magic_changes_nothing_and_windows_are_replaced(self):
        self.assertEqual(
            len(
                self.pictures("%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1]);")
            ),
            1,
        )
        outcome = self.ok("%matplotlib qt\nplt.plot([1]);")
        self.assertIn("no display", outcome.stderr)
        self.assertEqual(len(outcome.all("display")), 1)

    def test_svg_can_be_asked_for(self):
        kernel = self.fresh()
        outcome = kernel.run(
            "import matplotlib.pyplot as plt\n%config InlineBackend.figure_formats = ['svg']\nplt.plot([1]);"
        )
        self.assertIn("image/svg+xml", outcome.all("display")[0]["data"])

    def test_nothing_is_saved_and_child_programs_still_save(self):
        self.ok("import matplotlib.pyplot as plt, glob\nplt.plot([1]); plt.show()")
        self.assertEqual(self.ok("glob.glob('figure-*')").result["data"]["text/plain"], "[]")
        self.ok(
            "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import matplotlib.pyplot as plt; plt.plot([1]); plt.show()'], check=True)"
        )
        self.assertEqual(
            self.ok("glob.glob('figure-*')").result["data"]["text/plain"], "['figure-1.png']"
        )

    def test_pandas_plots_are_figures(self):
        self.assertEqual(len(self.pictures("import pandas as pd\npd.Series([1, 2]).plot();")), 1)


if __name__ == "__main__":
    unittest.main()
