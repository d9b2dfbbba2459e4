"""Code that breaks what it can reach: replies stay in step, or the process dies and says so."""

import unittest

from harness import KernelDied
from support import KernelCase


class Breaks(KernelCase):
    def setUp(self) -> None:
        self.kernel = self.fresh()

    def test_replaced_streams(self):
        self.ok("import sys, io\nsys.stdout = io.StringIO()\nprint('lost')")
        self.assertEqual(self.ok("5").result["data"]["text/plain"], "5")
        self.ok("sys.stdout = sys.__stdout__")
        self.still_in_step()
        self.ok("sys.stdout = None; sys.stderr = None; x = 1")
        self.assertEqual(self.kernel.run("x").result["data"]["text/plain"], "1")

    def test_closed_and_wrapped_streams(self):
        self.ok("import sys, io\nprint('a', end=''); sys.stdout.close(); sys.stderr.close()")
        self.still_in_step()
        self.ok("sys.stdout.reconfigure(encoding='latin-1', line_buffering=False)")
        self.assertEqual(
            self.ok(
                "w = io.TextIOWrapper(sys.stdout.buffer, 'utf-8'); w.write('wrapped'); w.flush(); del w"
            ).stdout,
            "wrapped",
        )
        self.still_in_step()

    def test_streams_look_like_streams(self):
        outcome = self.ok(
            "import sys, os\nsys.stdout.write('text '); sys.stdout.buffer.write(b'bytes \\xff '); sys.stdout.flush()\n"
            "os.write(sys.stdout.fileno(), b'fd\\n')\nprint('\\udcff')\n"
            "sys.stdout.isatty(), sys.stdout.fileno(), sys.stderr.fileno(), sys.stdout.encoding, sys.stdout.writable()"
        )
        self.assertEqual(outcome.stdout, "text bytes � fd\n\\udcff\n")
        self.assertEqual(outcome.result["data"]["text/plain"], "(False, 1, 2, 'utf-8', True)")

    def test_replaced_modules_and_builtins(self):
        self.ok(
            "import json, threading, os, socket, struct, select, signal, gc\n"
            "json.dumps = json.loads = json.JSONEncoder.encode = json.JSONDecoder.decode = None\n"
            "json.encoder.encode_basestring = json.encoder.JSONEncoder = json.decoder.JSONDecoder = None\n"
            "threading.Thread = threading.current_thread = threading.enumerate = threading.get_ident = None\n"
            "os.write = os.dup2 = os.close = os.getpid = os._exit = None\n"
            "socket.socket.sendall = socket.socket.recvmsg = socket.socket = None\n"
            "struct.pack = struct.unpack = select.poll = None"
        )
        self.still_in_step()

    def test_ruined_builtins(self):
        self.kernel.run(
            "import builtins\nfor n in ('len','isinstance','getattr','type','str','dict','int','max','BaseException','OSError','print'):\n"
            "    setattr(builtins, n, None)"
        )
        for _ in range(3):
            self.assertIn(self.kernel.run("1 + 1").reply["status"], ("ok", "error"))

    def test_emptied_module_table(self):
        self.kernel.run("import sys\nsys.modules.clear()")
        for _ in range(3):
            self.assertIn(self.kernel.run("1 / 0").status, ("ok", "error"))

    def test_a_ruined_shell(self):
        self.kernel.run(
            "get_ipython().run_cell = None; get_ipython().display_pub = None; get_ipython().events = None"
        )
        for _ in range(3):
            self.assertEqual(self.kernel.run("1").reply["type"], "reply")
        kernel = self.fresh()
        kernel.run("type(get_ipython()).run_cell = lambda *a, **k: None")
        self.assertEqual(kernel.run("1").reply["type"], "reply")
        kernel.run("type(get_ipython()).showtraceback = lambda *a, **k: 1 / 0")
        self.assertEqual(kernel.run("1 / 0").reply["type"], "reply")

    def test_numbers_that_readers_of_json_refuse(self):
        self.kernel.run("get_ipython().execution_count = 10 ** 400")
        self.assertEqual(self.kernel.run("7").reply["execution_count"], 0)
        outcome = self.kernel.run(
            "display({'application/json': [2**62, 2**64, -2**70, 10**5000]}, raw=True)"
        )
        numbers = outcome.all("display")[0]["data"]["application/json"]
        self.assertEqual(numbers[:3], [2**62, str(2**64), str(-(2**70))])

    def test_trace_functions_and_recursion_limits(self):
        self.ok("import sys\ndef trace(*a): raise ValueError('trace')\nsys.setrecursionlimit(120)")
        self.still_in_step()
        self.kernel.run("sys.settrace(trace)")
        self.kernel.run("sys.setprofile(trace)")
        self.still_in_step()

    def test_descriptors_1_and_2_closed(self):
        outcome = self.kernel.run("import os\nos.close(1); os.close(2)\nprint('nowhere')")
        self.assertEqual(outcome.status, "error")
        self.still_in_step()

    def test_descriptor_0_closed(self):
        self.ok("import os\nos.close(0)")
        self.still_in_step()

    def test_moved_descriptors(self):
        self.ok(
            "import os\nf = open('taken', 'w'); os.dup2(f.fileno(), 1)\nprint('to the file')\n!echo this too"
        )
        self.still_in_step()
        self.assertEqual(
            self.ok("open('taken').read()").result["data"]["text/plain"],
            "'to the file\\nthis too\\n'",
        )

    def test_all_descriptors_closed_is_a_clear_death(self):
        with self.assertRaises(KernelDied):
            self.kernel.run("import os\nos.closerange(0, 1024)\nprint('x')", limit_s=10)
        self.assertEqual(self.kernel.process.wait(10), 70)

    def test_all_descriptors_but_the_streams_closed_is_a_clear_death(self):
        execution = self.kernel.begin("import os\nos.closerange(3, 1024)\nprint('x')")
        with self.assertRaises(KernelDied) as death:
            self.kernel.finish(execution, limit_s=10)
        self.assertEqual(self.kernel.process.wait(10), 70)
        rest: list[tuple[str, bytes]] = []
        self.kernel.pipes.drain(rest)
        self.assertIn("glovebox kernel: ", f"{death.exception}{rest}")

    def test_a_display_after_the_socket_is_closed_is_a_clear_death(self):
        with self.assertRaises(KernelDied):
            self.kernel.run(
                "import os\nos.closerange(3, 1024)\ndisplay(1)\nwhile True: pass", limit_s=10
            )

    def test_death_by_the_codes_own_hand_is_seen(self):
        with self.assertRaises(KernelDied):
            self.kernel.run("import os\nos._exit(9)")
        self.assertEqual(self.kernel.process.wait(10), 9)

    def test_a_finaliser_that_displays_while_a_display_is_sent(self):
        outcome = self.ok(
            "import gc\nclass Loud:\n    def __init__(self): self.me = self\n    def __del__(self): display('gone'); print('gone')\n"
            "gc.set_threshold(1)\nfor _ in range(30): Loud(); display('here')\ngc.set_threshold(700)"
        )
        self.assertEqual(
            sum(d["data"]["text/plain"] == "'here'" for d in outcome.all("display")), 30
        )
        self.still_in_step()

    def test_callbacks_of_the_shell_that_fail(self):
        self.kernel.run("get_ipython().events.register('post_execute', lambda: 1 / 0)")
        self.assertEqual(self.kernel.run("5").result["data"]["text/plain"], "5")
        self.assertEqual(self.kernel.run("6").result["data"]["text/plain"], "6")

    def test_out_of_memory_in_python_is_an_error(self):
        self.fails("x = bytearray(10 ** 15)", "MemoryError")
        self.fails(
            "import resource\nresource.setrlimit(resource.RLIMIT_AS, (2 ** 30, -1))\nx = 'y' * 2 ** 31",
            "MemoryError",
        )
        self.still_in_step()

    def test_no_descriptors_left(self):
        self.kernel.run(
            "import os, resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (300, 300))\nl = []\nwhile True: l.append(os.open('/dev/null', 0))"
        )
        outcome = self.kernel.run("for f in l: os.close(f)\n'freed'")
        self.assertEqual(outcome.result["data"]["text/plain"], "'freed'")
        self.still_in_step()


if __name__ == "__main__":
    unittest.main()
