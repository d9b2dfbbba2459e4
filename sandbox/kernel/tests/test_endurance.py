"""Memory and descriptors over many calls, and floods of output.

`GLOVEBOX_KERNEL_CALLS` sets how many calls; 2 000 by default, 10 000 for the full count.
"""

import os
import re
import unittest

from support import KernelCase

CALLS = int(os.environ.get("GLOVEBOX_KERNEL_CALLS", "2000"))


class Endurance(KernelCase):
    def test_memory_is_flat_over_many_calls(self):
        kernel = self.fresh()
        for _ in range(1200):  # fills the bounded caches
            kernel.run("1+1")
        before = kernel.memory_kib()
        for number in range(CALLS):
            self.assertEqual(kernel.run("1+1").result["data"]["text/plain"], "2", number)
        self.assertLess(kernel.memory_kib() - before, 2048)
        for _ in range(200):
            kernel.run("1/0")
        before = kernel.memory_kib()
        for _ in range(CALLS // 10):
            self.assertEqual(kernel.run("1/0").status, "error")
        self.assertLess(kernel.memory_kib() - before, 2048)

    def test_old_places_of_out_and_in_are_forgotten(self):
        kernel = self.fresh()
        for _ in range(1100):
            kernel.run("1+1")
        outcome = kernel.run(
            "len(Out) <= 1000, In[1], '_1' in globals(), '_i1' in globals(), len(In)"
        )
        self.assertEqual(outcome.result["data"]["text/plain"], "(True, '', False, False, 1102)")
        self.assertEqual(outcome.stderr, "")

    def test_a_function_of_an_old_cell_keeps_its_source_in_tracebacks(self):
        kernel = self.fresh()
        kernel.run("def fails():\n    return 1 / 0")
        for _ in range(1100):
            kernel.run("1")
        text = re.sub(r"\x1b\[[0-9;]*m", "", "".join(kernel.run("fails()").error["traceback"]))
        self.assertIn("return 1 / 0", text)

    def test_fifty_megabytes_of_output_arrive_and_leave_no_memory_behind(self):
        kernel = self.fresh()
        kernel.run("line = 'x' * 999")
        before = kernel.memory_kib()
        outcome = kernel.run("for _ in range(50_000): print(line)", limit_s=120)
        self.assertEqual(len(outcome.stdout), 50_000_000)
        self.assertLess(kernel.memory_kib() - before, 4096)

    def test_output_without_newlines_waits_until_there_is_enough(self):
        kernel = self.fresh()
        execution = kernel.begin(
            "import os\nprint('y' * 20_000, end=''); print('z', end='')\nwhile not os.path.exists('go'): pass"
        )
        events: list[tuple[str, object]] = []
        kernel.await_output(events, "y" * 20_000)
        with open(kernel.folder + "/go", "w", encoding="ascii"):
            pass
        self.assertEqual(kernel.finish(execution).stdout, "z")


if __name__ == "__main__":
    unittest.main()
