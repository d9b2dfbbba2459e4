"""Code, results, errors, magics and shell commands."""

import shutil
import tempfile
import unittest

from support import KernelCase


class Running(KernelCase):
    def test_it_says_which_language_it_speaks_and_nothing_else_at_the_start(self):
        self.assertRegex(self.kernel.ready["language"], r"^python 3\.\d+\.\d+$")
        self.assertEqual(self.kernel.start_events, [])

    def test_output_result_and_reply_come_in_order(self):
        outcome = self.ok("print('before')\n6 * 7")
        self.assertEqual([kind for kind, _ in outcome.events], ["stdout", "result"])
        self.assertEqual(outcome.result["data"], {"text/plain": "42"})
        self.assertEqual(outcome.result["execution_count"], outcome.reply["execution_count"])

    def test_variables_live_from_call_to_call(self):
        self.ok("kept = [1, 2]")
        self.assertEqual(self.ok("kept").result["data"], {"text/plain": "[1, 2]"})

    def test_executions_are_counted_from_one_and_silent_ones_are_not(self):
        kernel = self.fresh()
        self.assertEqual(kernel.run("1").reply["execution_count"], 1)
        quiet = kernel.run("print('heard'); 2", silent=True)
        self.assertEqual((quiet.stdout, quiet.result), ("heard\n", None))
        self.assertEqual(kernel.run("2").reply["execution_count"], 2)

    def test_a_kernel_that_was_warmed_is_as_new(self):
        names = "sorted(name for name in globals() if name not in ('In', 'Out'))"
        cold = self.fresh().run(names)
        kernel = self.fresh()
        kernel.send({"type": "warm"})
        warm = kernel.run(names)
        self.assertEqual(warm.result, cold.result)
        self.assertEqual(warm.reply["execution_count"], 1)
        self.assertEqual(kernel.run("len(In)").result["data"]["text/plain"], "3")

    def test_empty_code_is_answered_and_not_counted(self):
        before = self.ok("1").reply["execution_count"]
        self.assertEqual(self.ok("").reply["execution_count"], before)
        self.assertEqual(self.ok("  \n ").events, [])

    def test_a_semicolon_keeps_the_value_from_being_shown(self):
        self.assertIsNone(self.ok("5;").result)
        self.assertIsNotNone(self.ok("';'").result)

    def test_in_and_out_and_underscores_work(self):
        kernel = self.fresh()
        kernel.run("10 + 1")
        self.assertEqual(kernel.run("_ + Out[1] + _1").result["data"]["text/plain"], "33")
        self.assertEqual(
            kernel.run("In[1], _i1").result["data"]["text/plain"], "('10 + 1', '10 + 1')"
        )

    def test_top_level_await_runs_on_one_loop(self):
        self.ok(
            "import asyncio\nloop = asyncio.get_running_loop() if await asyncio.sleep(0, 1) else 0"
        )
        outcome = self.ok("await asyncio.sleep(0)\nloop is asyncio.get_running_loop()")
        self.assertEqual(outcome.result["data"]["text/plain"], "True")

    def test_a_task_left_behind_goes_on_while_a_later_cell_awaits(self):
        self.ok(
            "import asyncio\nasync def later():\n await asyncio.sleep(0.01); return 'done'\n"
            "await asyncio.sleep(0); task = asyncio.create_task(later())"
        )
        self.assertEqual(self.ok("await task").result["data"]["text/plain"], "'done'")

    def test_asyncio_run_works_in_a_cell_that_does_not_await(self):
        self.assertEqual(
            self.ok("import asyncio; asyncio.run(asyncio.sleep(0, 3))").result["data"][
                "text/plain"
            ],
            "3",
        )

    def test_unicode_passes_both_ways(self):
        self.assertEqual(self.ok("print('žluťoučký 漢字 🐧')").stdout, "žluťoučký 漢字 🐧\n")

    def test_code_of_many_megabytes_is_taken(self):
        text = "x" * (12 * 1024 * 1024)
        self.assertEqual(self.ok(f"len('{text}')").result["data"]["text/plain"], str(len(text)))

    def test_main_is_the_namespace_of_cells_and_can_be_pickled_from(self):
        self.ok(
            "import pickle, sys\nclass Thing:\n  pass\nback = pickle.loads(pickle.dumps(Thing()))"
        )
        self.assertEqual(
            self.ok("type(back) is Thing, sys.argv, sys.path[0]").result["data"]["text/plain"],
            "(True, [''], '')",
        )

    def test_modules_of_the_working_folder_can_be_imported(self):
        self.ok("open('mine.py', 'w').write('value = 5')")
        self.assertEqual(self.ok("import mine; mine.value").result["data"]["text/plain"], "5")

    def test_files_of_the_working_folder_cannot_stop_the_start(self):
        folder = tempfile.mkdtemp(prefix="kernel-test-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        for name in (
            "json",
            "warnings",
            "random",
            "IPython",
            "traitlets",
            "inspect",
            "bdb",
            "sched",
        ):
            with open(f"{folder}/{name}.py", "w", encoding="ascii") as file:
                file.write("raise SystemError('the wrong module')")
        kernel = self.new_kernel(folder)
        self.addCleanup(kernel.stop)
        self.still_in_step(kernel)
        self.assertEqual(kernel.run("1 / 0").error["ename"], "ZeroDivisionError")
        self.assertEqual(kernel.run("import sched").status, "error")


class Errors(KernelCase):
    def test_an_error_has_a_coloured_traceback_with_the_cell_and_the_line(self):
        error = self.fails("def f():\n    return 1 / 0\nf()", "ZeroDivisionError")
        text = "\n".join(error["traceback"])
        self.assertEqual(error["evalue"], "division by zero")
        self.assertIn("\x1b[", text)
        self.assertIn("return", text)
        self.assertNotIn("glovebox_kernel", text)

    def test_a_syntax_error_is_an_error(self):
        self.fails("def", "SyntaxError")
        self.fails("if 1:\nx", "IndentationError")
        self.fails("return 5", "SyntaxError")
        self.fails("eval('1 +')", "SyntaxError")

    def test_output_comes_before_the_error_that_follows_it(self):
        outcome = self.kernel.run("print('first')\nraise ValueError('x')")
        self.assertEqual([kind for kind, _ in outcome.events], ["stdout", "error"])

    def test_an_unknown_magic_is_an_error(self):
        self.assertIn("nosuch", self.fails("%nosuch", "UsageError")["evalue"])

    def test_exception_groups_are_shown_whole(self):
        error = self.fails(
            "raise ExceptionGroup('two', [ValueError('a'), KeyError('b')])", "ExceptionGroup"
        )
        self.assertIn("ValueError: a", "\n".join(error["traceback"]))

    def test_exceptions_that_cannot_be_shown_are_shown_as_that(self):
        hostile = (
            "class Bad(Exception):\n"
            "    def __str__(self): raise RuntimeError('no')\n"
            "    __repr__ = __str__\n"
            "raise Bad()"
        )
        self.assertIn("text cannot be made", self.fails(hostile, "Bad")["evalue"])
        self.fails("class Odd(Exception):\n    def __str__(self): return 5\nraise Odd()", "Odd")
        self.fails(
            "class Exits(Exception):\n    def __str__(self): raise SystemExit\nraise Exits()",
            "Exits",
        )
        self.fails(
            "class Renders(Exception):\n    def _render_traceback_(self): return 7\nraise Renders()",
            "Renders",
        )
        self.fails(
            "class Fails(Exception):\n    def _render_traceback_(self): 1/0\nraise Fails()", "Fails"
        )
        self.still_in_step()

    def test_an_error_value_that_is_no_string_becomes_one(self):
        self.assertEqual(self.fails("raise KeyError(5)", "KeyError")["evalue"], "5")
        self.assertEqual(
            self.fails("raise ValueError(b'\\xff', None)", "ValueError")["evalue"],
            "(b'\\xff', None)",
        )

    def test_a_surrogate_in_an_error_does_not_break_the_frame(self):
        self.assertEqual(self.fails("raise ValueError('a\\udc80b')", "ValueError")["evalue"], "a?b")

    def test_endless_recursion_is_an_error(self):
        self.fails("def f(): return f()\nf()", "RecursionError")
        self.fails("x = []\nfor _ in range(100000): x = [x]\nrepr(x)", "RecursionError")
        self.still_in_step()

    def test_a_very_long_error_is_cut_in_the_middle(self):
        error = self.fails("raise ValueError('a' * 10_000_000 + 'end')", "ValueError")
        self.assertLess(len(error["evalue"]), 70_000)
        self.assertTrue(error["evalue"].endswith("end"))
        self.assertLess(len("".join(error["traceback"])), 2_000_000)

    def test_sys_exit_ends_the_cell_and_not_the_kernel(self):
        error = self.fails("import sys\nsys.exit(3)\nprint('not reached')", "SystemExit")
        self.assertEqual(error["evalue"], "3")
        self.still_in_step()

    def test_bare_exceptions_of_any_kind_leave_the_kernel_running(self):
        self.fails("raise KeyboardInterrupt", "KeyboardInterrupt")
        self.fails("raise GeneratorExit", "GeneratorExit")
        self.fails("class Own(BaseException): pass\nraise Own", "Own")
        self.fails("import asyncio; raise asyncio.CancelledError", "CancelledError")
        self.still_in_step()

    def test_asking_a_person_fails_at_once_and_clearly(self):
        for code in ("input('name? ')", "import getpass; getpass.getpass()", "breakpoint()"):
            with self.subTest(code):
                error = self.fails(code, "StdinNotImplementedError")
                self.assertIn("nobody is there", error["evalue"])
        self.still_in_step()

    def test_standard_input_is_empty(self):
        self.assertEqual(self.ok("import sys; sys.stdin.read()").result["data"]["text/plain"], "''")


class Exit(KernelCase):
    def test_exit_ends_the_cell_and_then_the_kernel(self):
        for code, status in (("exit()", 0), ("quit", 0), ("exit(3)", 3), ("exit('bye')", 1)):
            with self.subTest(code):
                kernel = self.fresh()
                outcome = kernel.run(f"print('a')\n{code}\nprint('b')" if "(" in code else code)
                self.assertEqual(outcome.status, "ok")
                self.assertIs(outcome.reply["ending"], True)
                self.assertNotIn("b", outcome.stdout)
                self.assertEqual(kernel.process.wait(10), status)

    def test_shutdown_runs_exit_handlers_and_does_not_wait_for_threads(self):
        kernel = self.fresh()
        kernel.run(
            "import atexit, threading, time\n"
            "atexit.register(lambda: open('handled', 'w').close())\n"
            "threading.Thread(target=time.sleep, args=(600,)).start()"
        )
        folder = kernel.run("import os; print(os.getcwd())").stdout.strip()
        self.assertEqual(kernel.stop(), 0)
        with open(folder + "/handled"):
            pass

    def test_the_end_of_the_agent_is_the_end_of_the_kernel(self):
        kernel = self.fresh()
        kernel.socket.close()
        self.assertEqual(kernel.process.wait(10), 70)


class MagicsAndCommands(KernelCase):
    def test_line_and_cell_magics_work(self):
        self.assertIn("loop", self.ok("%timeit -n1 -r1 1 + 1").stdout)
        self.assertIn("Wall time", self.ok("%%time\nsum(range(10))").stdout)
        self.ok("%pwd")
        self.ok("%matplotlib inline")
        self.ok("%config InlineBackend.figure_format = 'png'")
        self.ok("%%writefile script.py\nimport sys\nran = sys.argv[1:]\nprint('in script')")
        self.assertEqual(self.ok("%run script.py a b").stdout, "in script\n")
        self.assertEqual(self.ok("ran").result["data"]["text/plain"], "['a', 'b']")
        self.assertIn("ran", self.ok("%who").stdout)
        self.assertIn("%who", self.ok("%history -n").stdout)

    def test_help_is_a_display_and_not_a_pager(self):
        outcome = self.ok("len?")
        self.assertIn("Return the number of items", outcome.all("display")[0]["data"]["text/plain"])

    def test_capture_keeps_output_and_displays_from_the_wire(self):
        outcome = self.ok("%%capture got\nprint('hidden')\ndisplay(1)\n!echo shell\n2")
        self.assertEqual(outcome.events, [])
        self.assertEqual(
            self.ok("print(got.stdout, len(got.outputs))").stdout, "hidden\nshell\n 2\n"
        )

    def test_a_shell_command_writes_to_the_streams_of_its_call_in_order(self):
        outcome = self.ok("print('one')\n!echo two; echo error >&2\nprint('three')")
        self.assertEqual(outcome.stdout, "one\ntwo\nthree\n")
        self.assertEqual(outcome.stderr, "error\n")

    def test_a_shell_command_sees_no_terminal_and_its_status_is_kept(self):
        self.assertEqual(self.ok("!test -t 1 || echo none").stdout, "none\n")
        self.assertEqual(self.ok("!exit 3\n_exit_code").result["data"]["text/plain"], "3")
        self.assertEqual(self.ok("!kill -9 $$\n_exit_code").result["data"]["text/plain"], "-9")

    def test_a_shell_command_takes_python_values(self):
        self.assertEqual(
            self.ok("word = 'penguin'\n!echo {word} $word {1 + 1}").stdout, "penguin penguin 2\n"
        )
        self.assertEqual(
            self.ok("def f(inner):\n    get_ipython().system('echo {inner}')\nf(4)").stdout, "4\n"
        )

    def test_what_a_shell_command_writes_can_be_assigned(self):
        self.ok("lines = !printf 'a\\nb\\n'; echo c >&2")
        self.assertEqual(self.ok("lines").result["data"]["text/plain"], "['a', 'b', 'c']")
        self.assertEqual(self.ok("x = 'v'\ny = !echo $x\ny[0]").result["data"]["text/plain"], "'v'")

    def test_bash_cells_are_captured(self):
        outcome = self.ok("%%bash\nfor i in 1 2; do echo $i; done\necho oops >&2")
        self.assertEqual((outcome.stdout, outcome.stderr), ("1\n2\n", "oops\n"))
        self.assertEqual(self.ok("%%bash\necho again").stdout, "again\n")
        self.assertEqual(self.ok("%%bash --out text\necho kept").stdout, "")
        self.assertEqual(self.ok("text").result["data"]["text/plain"], "'kept\\n'")
        self.assertEqual(self.ok("%%sh\necho $0").stdout, "sh\n")
        self.assertEqual(self.ok("%%script cat\nthrough cat").stdout, "through cat\n")
        self.fails("%%bash\nexit 3", "CalledProcessError")

    def test_bash_cells_of_many_megabytes_are_quick(self):
        outcome = self.ok("%%bash\nhead -c 20000000 /dev/zero | tr '\\0' x", limit_s=20)
        self.assertEqual(len(outcome.stdout), 20_000_000)

    def test_a_subprocess_writes_to_the_streams_of_its_call(self):
        outcome = self.ok(
            "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'print(5)']); print(6)"
        )
        self.assertEqual(outcome.stdout, "5\n6\n")

    def test_nothing_is_left_in_the_home_folder(self):
        self.assertEqual(
            self.ok("import os; [n for n in os.listdir() if 'ipython' in n]").result["data"][
                "text/plain"
            ],
            "[]",
        )


if __name__ == "__main__":
    unittest.main()
