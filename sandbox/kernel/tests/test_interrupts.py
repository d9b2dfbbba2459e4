"""SIGINT at every moment: user code stops, the runner and its replies do not."""

import time
import unittest

from harness import Kernel, Outcome
from support import KernelCase

MARK = "print('started', flush=True)\n"


class Interrupts(KernelCase):
    def setUp(self) -> None:
        self.kernel = self.fresh()

    def interrupted(self, code: str, kernel: Kernel | None = None) -> Outcome:
        """Runs code until it says `started`, interrupts it and waits for the reply."""
        kernel = kernel or self.kernel
        execution = kernel.begin(code)
        before: list[tuple[str, object]] = []
        kernel.await_output(before, "started")
        kernel.await_work()  # into whatever the code does after it said so
        kernel.interrupt()
        outcome = kernel.finish(execution, limit_s=15)
        outcome.events[:0] = before
        return outcome

    def assert_interrupted(self, code: str) -> Outcome:
        outcome = self.interrupted(code)
        self.assertEqual(outcome.status, "error", outcome.events)
        self.assertEqual([e["ename"] for e in outcome.all("error")], ["KeyboardInterrupt"])
        self.still_in_step()
        return outcome

    def test_a_busy_loop(self):
        self.assert_interrupted(MARK + "while True: pass")

    def test_a_sleep(self):
        self.assert_interrupted(MARK + "import time; time.sleep(600)")

    def test_a_blocked_read(self):
        self.assert_interrupted("import os; r, w = os.pipe()\n" + MARK + "os.read(r, 1)")

    def test_a_blocked_lock_queue_and_thread(self):
        self.assert_interrupted(
            "import threading; l = threading.Lock(); l.acquire()\n" + MARK + "l.acquire()"
        )
        self.assert_interrupted("import queue\n" + MARK + "queue.Queue().get()")

    def test_a_numpy_loop(self):
        self.assert_interrupted(
            "import numpy as np; a = np.ones((300, 300))\n" + MARK + "while True: a = a @ a % 7"
        )

    def test_an_await(self):
        self.assert_interrupted("import asyncio\n" + MARK + "await asyncio.sleep(600)")

    def test_an_await_of_several_tasks(self):
        self.assert_interrupted(
            "import asyncio\n"
            + MARK
            + "await asyncio.gather(asyncio.sleep(600), asyncio.sleep(600))"
        )
        self.assertEqual(
            self.ok("await asyncio.sleep(0, 'fine')").result["data"]["text/plain"], "'fine'"
        )

    def test_a_busy_loop_in_a_cell_that_awaits(self):
        self.assert_interrupted(
            "import asyncio\nawait asyncio.sleep(0)\n" + MARK + "while True: pass"
        )

    def test_a_busy_task_of_a_cell_that_awaits(self):
        self.assert_interrupted(
            "import asyncio\nasync def busy():\n    print('started', flush=True)\n    while True: pass\n"
            "await asyncio.gather(busy(), asyncio.sleep(600))"
        )

    def test_asyncio_run(self):
        self.assert_interrupted("import asyncio\n" + MARK + "asyncio.run(asyncio.sleep(600))")

    def test_a_subprocess(self):
        self.assert_interrupted("import subprocess\n" + MARK + "subprocess.run(['sleep', '600'])")

    def test_a_shell_command(self):
        self.assert_interrupted(MARK + "!sleep 600")
        self.assert_interrupted(MARK + "x = !sleep 600")
        self.assert_interrupted(MARK + "!trap '' INT TERM; sleep 600")

    def test_a_bash_cell(self):
        self.assert_interrupted("%%bash\necho started\nsleep 600")

    def test_a_flood_of_output(self):
        self.assert_interrupted(MARK + "while True: print('x' * 1000)")

    def test_a_flood_of_displays(self):
        self.assert_interrupted(MARK + "while True: display(1)")

    def test_a_loop_while_an_object_is_shown(self):
        self.assert_interrupted(
            "class Slow:\n    def __repr__(self):\n        print('started', flush=True)\n        while True: pass\nSlow()"
        )

    def test_a_loop_while_an_error_is_shown(self):
        outcome = self.interrupted(
            "class Slow(Exception):\n    def __str__(self):\n        print('started', flush=True)\n        while True: pass\nraise Slow"
        )
        # The text of the error may be asked for more than once, each time for ever.
        while outcome.reply.get("status") is None:
            self.kernel.interrupt()
        self.assertEqual(outcome.status, "error")

    def test_code_that_catches_it_ends_well(self):
        outcome = self.interrupted(
            MARK + "import time\ntry: time.sleep(600)\nexcept KeyboardInterrupt: print('caught')"
        )
        self.assertEqual(outcome.status, "ok")
        self.assertIn("caught", outcome.stdout)

    def test_between_calls_it_is_dropped(self):
        for _ in range(20):
            self.kernel.interrupt()
        self.still_in_step()

    def test_a_handler_of_user_code_lasts_for_its_cell(self):
        outcome = self.interrupted(
            "import signal, time\nseen = []\nsignal.signal(signal.SIGINT, lambda *a: seen.append(print('mine')))\n"
            + MARK
            + "while not seen: time.sleep(1)"
        )
        self.assertIn("mine", outcome.stdout)
        self.assertEqual(outcome.status, "ok")
        self.kernel.interrupt()
        self.still_in_step()
        self.ok(
            "signal.signal(signal.SIGINT, signal.SIG_IGN); signal.pthread_sigmask(signal.SIG_BLOCK, [2])"
        )
        self.assert_interrupted(MARK + "time.sleep(600)")

    def test_at_any_moment_of_short_calls_replies_stay_in_step(self):
        kernel = self.fresh()
        code = "for i in range(20): display(i); print(i)\nawait __import__('asyncio').sleep(0)\n'value'"
        for number in range(150):
            execution = kernel.begin(code)
            time.sleep((number % 50) / 10_000)
            kernel.interrupt()
            outcome = kernel.finish(execution, limit_s=20)
            if outcome.status == "ok":
                self.assertIsNotNone(outcome.result)
            else:
                self.assertIn("KeyboardInterrupt", [e["ename"] for e in outcome.all("error")], outcome.all("error"))
        self.still_in_step(kernel)
        self.assertEqual(kernel.run("%timeit -n1 -r1 1\nlen('abc')").status, "ok")


if __name__ == "__main__":
    unittest.main()
