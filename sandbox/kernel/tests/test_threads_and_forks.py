"""Threads of earlier calls, forked children and other processes."""

import time
import unittest

from harness import Kernel
from support import KernelCase


class Threads(KernelCase):
    def setUp(self) -> None:
        self.kernel = self.fresh()

    def late(self, kernel: Kernel, text: str) -> str:
        """What earlier calls printed, once `text` is among it."""
        deadline = time.monotonic() + 10
        while text not in (found := kernel.drain_late()):
            self.assertLess(time.monotonic(), deadline, found)
            time.sleep(0.01)
        return found

    def test_a_thread_prints_into_the_call_that_started_it(self):
        kernel = self.fresh()
        kernel.run(
            "import threading, sys\ngo = threading.Event(); done = threading.Event()\n"
            "def work():\n    go.wait(); print('late line'); print('late error', file=sys.stderr)\n"
            "    display('late display'); done.set()\n"
            "threading.Thread(target=work).start()"
        )
        outcome = kernel.run("go.set(); done.wait(); print('mine')")
        self.assertEqual((outcome.stdout, outcome.stderr), ("mine\n", ""))
        self.assertEqual(outcome.all("display")[0]["id"], "call-1")
        self.assertIn("late error", self.late(kernel, "late line"))
        self.still_in_step(kernel)

    def test_a_thread_of_the_running_call_prints_in_it(self):
        outcome = self.ok(
            "import threading\nt = threading.Thread(target=print, args=('in thread',)); t.start(); t.join()"
        )
        self.assertEqual(outcome.stdout, "in thread\n")

    def test_a_thread_started_by_a_late_thread_is_late_too(self):
        kernel = self.fresh()
        kernel.run(
            "import threading, _thread\ngo = threading.Event(); done = threading.Event()\n"
            "def inner(): print('inner'); done.set()\n"
            "def outer(): go.wait(); threading.Thread(target=inner).start()\n"
            "threading.Thread(target=outer).start()"
        )
        self.assertEqual(kernel.run("go.set(); done.wait()").stdout, "")
        self.late(kernel, "inner")

    def test_pools_work_and_print(self):
        outcome = self.ok(
            "from concurrent.futures import ThreadPoolExecutor\nfrom multiprocessing.pool import ThreadPool\n"
            "with ThreadPoolExecutor(4) as pool: list(pool.map(print, 'abcd'))\n"
            "with ThreadPool(2) as pool: pool.map(print, 'ef')"
        )
        self.assertEqual(sorted(outcome.stdout.split()), list("abcdef"))

    def test_work_given_to_a_thread_by_an_await_is_of_the_call_that_gave_it(self):
        self.ok("import asyncio\nawait asyncio.to_thread(print, 'x')")
        self.assertEqual(self.ok("await asyncio.to_thread(print, 'y')").stdout, "y\n")

    def test_a_failing_thread_tells_on_standard_error_of_its_call(self):
        outcome = self.ok(
            "import threading\nt = threading.Thread(target=lambda: 1 / 0); t.start(); t.join()"
        )
        self.assertIn("ZeroDivisionError", outcome.stderr)

    def test_descriptors_of_ended_calls_are_given_back(self):
        kernel = self.fresh()
        count = "import os; print(len(os.listdir('/proc/self/fd')))"
        before = kernel.run(count).stdout
        kernel.run("import threading\nstop = threading.Event()")
        for _ in range(20):
            kernel.run("threading.Thread(target=stop.wait).start()")
        kernel.run("stop.set()\nfor t in threading.enumerate()[1:]: t.join()")
        self.assertEqual(kernel.run(count).stdout, before)

    def test_calls_beyond_the_kept_ones_lose_late_output_only(self):
        kernel = self.fresh()
        kernel.run(
            "import threading\nstop = threading.Event()\ndef work(): stop.wait(); print('x')"
        )
        for _ in range(80):
            self.assertEqual(kernel.run("threading.Thread(target=work).start()").status, "ok")
        self.assertEqual(
            kernel.run("stop.set()\nfor t in threading.enumerate()[1:]: t.join()").stdout, ""
        )
        self.still_in_step(kernel)

    def test_many_threads_printing_and_displaying_at_once_stay_in_step(self):
        outcome = self.ok(
            "import threading\ndef work(n):\n    for i in range(50): print(n, i); display(n)\n"
            "ts = [threading.Thread(target=work, args=(n,)) for n in range(8)]\n"
            "for t in ts: t.start()\nfor i in range(50): display('main')\nfor t in ts: t.join()"
        )
        self.assertEqual(len(outcome.all("display")), 450)
        self.assertEqual(len(outcome.stdout.splitlines()), 400)
        self.still_in_step()

    def test_a_process_left_behind_prints_into_its_own_call(self):
        kernel = self.fresh()
        kernel.run(
            "import subprocess\nbehind = subprocess.Popen('until [ -e go ]; do sleep 0.01; done; echo from behind', shell=True)"
        )
        outcome = kernel.run("open('go', 'w').close(); behind.wait(); print('here')")
        self.assertEqual(outcome.stdout, "here\n")
        self.late(kernel, "from behind")


class Forks(KernelCase):
    def setUp(self) -> None:
        self.kernel = self.fresh()

    def test_a_forked_child_prints_and_never_comes_back(self):
        outcome = self.ok(
            "import os\nprint('parent', end=' ')\npid = os.fork()\n"
            "if pid: print('status', os.waitpid(pid, 0)[1])\nelse: print('child')"
        )
        self.assertIn("child\n", outcome.stdout)
        self.assertIn("status 0", outcome.stdout)
        self.assertEqual(outcome.stdout.count("parent"), 1)
        self.still_in_step()

    def test_a_child_sends_nothing_but_text(self):
        outcome = self.ok(
            "import os\npid = os.fork()\nif not pid:\n    display('shown'); raise ValueError('lost')\n"
            "os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])"
        )
        self.assertEqual(outcome.result["data"]["text/plain"], "1")
        self.assertEqual(outcome.all("display"), [])
        self.assertIn("shown", outcome.stdout)
        self.assertIn("lost", outcome.stderr)
        self.still_in_step()

    def test_a_child_can_leave_with_a_status(self):
        for leave in ("import sys; sys.exit(7)", "exit(7)", "os._exit(7)"):
            with self.subTest(leave):
                outcome = self.ok(
                    f"import os\npid = os.fork()\nif not pid:\n    {leave}\n"
                    "os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])"
                )
                self.assertEqual(outcome.result["data"]["text/plain"], "7")
        self.still_in_step()

    def test_a_child_that_outlives_the_cell_disturbs_nothing(self):
        kernel = self.fresh()
        kernel.run(
            "import os, time\npid = os.fork()\nif pid == 0:\n    while not os.path.exists('go'): time.sleep(0.01)\n"
            "    print('child done'); display(1)"
        )
        self.still_in_step(kernel)
        kernel.run("open('go', 'w').close(); os.waitpid(pid, 0)")
        self.assertIn("child done", kernel.drain_late())
        self.still_in_step(kernel)

    def test_a_fork_from_a_thread_and_while_awaiting(self):
        self.ok(
            "import os, threading\ndef work():\n    pid = os.fork()\n    if pid: os.waitpid(pid, 0)\n    else: print('thread child')\n"
            "t = threading.Thread(target=work); t.start(); t.join()"
        )
        self.ok(
            "import asyncio\nawait asyncio.sleep(0)\npid = os.fork()\nif pid: os.waitpid(pid, 0)"
        )
        self.still_in_step()

    def test_a_fork_bomb_of_one_level_stays_in_step(self):
        self.ok(
            "import os\nfor _ in range(5):\n    pid = os.fork()\n    if pid: os.waitpid(pid, 0)"
        )
        self.still_in_step()

    def test_multiprocessing_by_fork_uses_functions_of_cells(self):
        outcome = self.ok(
            "import multiprocessing as mp\ndef square(x):\n    print('squaring'); return x * x\n"
            "with mp.get_context('fork').Pool(2) as pool: out = pool.map(square, range(4))\nout"
        )
        self.assertEqual(outcome.result["data"]["text/plain"], "[0, 1, 4, 9]")
        self.assertEqual(outcome.stdout.count("squaring"), 4)
        self.ok(
            "from concurrent.futures import ProcessPoolExecutor\n"
            "with ProcessPoolExecutor(2, mp_context=mp.get_context('fork')) as pool: out = list(pool.map(square, range(3)))"
        )
        self.still_in_step()

    def test_multiprocessing_by_spawn_runs_functions_of_modules(self):
        self.ok("open('tasks.py', 'w').write('def double(x): return 2 * x')")
        code = (
            "import multiprocessing as mp, tasks\n"
            "with mp.get_context('spawn').Pool(1) as pool: out = pool.map(tasks.double, [1, 2])\nout"
        )
        self.assertEqual(self.ok(code).result["data"]["text/plain"], "[2, 4]")
        self.ok("%reset -f")
        self.assertEqual(self.ok(code).result["data"]["text/plain"], "[2, 4]")
        self.still_in_step()


if __name__ == "__main__":
    unittest.main()
