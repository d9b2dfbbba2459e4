"""What code finds in a kernel from a template is what it finds in one that was started."""

import ast
import shutil
import tempfile
import unittest

from copies import TemplateProcess
from harness import Kernel

LIBRARIES = """
import pandas, numpy, matplotlib.pyplot, openpyxl, xlsxwriter, pptx, docx, reportlab.platypus
import reportlab.pdfgen.canvas, PIL.Image, asyncio, multiprocessing.pool, concurrent.futures
import logging, locale, decimal, tempfile, platform, uuid, unittest
"""

BEFORE_ANYTHING = {
    "namespace": "sorted(globals())",
    "inputs": "In, _ih, _i, _ii, _iii",
    "outputs": "Out, _oh, _, __, ___",
    "count": "get_ipython().execution_count",
    "hidden names": "sorted(get_ipython().user_ns_hidden)",
    "main": "(__name__, __spec__, __doc__, sys.modules['__main__'].__dict__ is globals())",
    "arguments": "sys.argv",
    "module path": "sys.path",
    "import hooks": "[type(f).__name__ for f in sys.meta_path], len(sys.path_hooks)",
    "folder": "(os.getcwd(), os.listdir())",
    "umask": "(os.umask(0o22), os.umask(0o22))[0]",
    "environment": "sorted(os.environ.items())",
    "session": "os.getsid(0) == os.getpgrp() == os.getpid()",
    "builtins": "sorted(vars(__import__('builtins')))",
    "flags": "str(sys.flags), sys.warnoptions, sys._xoptions",
    "limits": "sys.getrecursionlimit(), sys.getswitchinterval(), sys.get_int_max_str_digits()",
    "resources": "[resource.getrlimit(n) for n in range(16)]",
    "signals": "{s: re.sub(' at 0x.*|object .*', '', str(signal.getsignal(s))) for s in signal.valid_signals()}",
    "blocked signals": "signal.pthread_sigmask(signal.SIG_BLOCK, [])",
    "streams": "[(s.encoding, s.errors, s.name, s.isatty()) for s in (sys.stdin, sys.stdout, sys.stderr)]",
    "hooks": "sys.excepthook is sys.__excepthook__, sys.breakpointhook is sys.__breakpointhook__, sys.gettrace(), sys.getprofile()",
    "last error": "[hasattr(sys, n) for n in ('last_type', 'last_value', 'last_traceback', 'last_exc')]",
    "warnings shown": "sorted(n for n, m in list(sys.modules.items()) if getattr(m, '__warningregistry__', None))",
    "collector": "gc.isenabled(), gc.get_threshold(), gc.get_debug(), len(gc.callbacks)",
    "threads": "threading.active_count(), threading.main_thread() is threading.current_thread(), threading.main_thread().ident == threading.get_ident(), threading.main_thread().native_id == threading.get_native_id() == os.getpid()",
    "tracing": "__import__('faulthandler').is_enabled(), __import__('tracemalloc').is_tracing()",
    "open descriptors": "sorted(map(int, os.listdir('/proc/self/fd')))",
    "children": "open('/proc/self/task/%d/children' % os.getpid()).read()",
    "time zone": "__import__('time').tzname",
    "aliases": "sorted(get_ipython().alias_manager.aliases)",
    "magics": "{k: sorted(v) for k, v in get_ipython().magics_manager.magics.items()}",
    "events": "{k: [f.__qualname__ for f in v] for k, v in get_ipython().events.callbacks.items()}",
    "transformers": "len(get_ipython().ast_transformers), len(get_ipython().input_transformers_post), len(get_ipython().input_transformers_cleanup)",
    "settings": "{type(c).__name__: {n: v for n, v in c._trait_values.items() if type(v) in (int, str, bool, float, list, tuple)} for c in get_ipython().configurables}",
    "formatters": "{n: (sorted(map(str, f.type_printers)), sorted(map(str, f.deferred_printers))) for n, f in get_ipython().display_formatter.formatters.items()}",
    "compiler": "get_ipython().compile.flags, get_ipython().compile._filename_map.keys()",
    "sources of cells": "len([n for n in __import__('linecache').cache if n.startswith('<ipython')])",
    "last result": "get_ipython().last_execution_result, get_ipython().last_execution_succeeded",
    "event loop": "__import__('IPython.core.async_helpers', fromlist=['x'])._asyncio_event_loop",
}
"""Each is an expression. Looked at from one cell, the first."""

AFTER_IMPORTS = {
    "warning filters": "[str(f) for f in __import__('warnings').filters]",
    "matplotlib settings": "dict(matplotlib.rcParams)",
    "matplotlib backend": "matplotlib.get_backend(auto_select=False), matplotlib.is_interactive(), 'glovebox_backend' in sys.modules",
    "figures": "matplotlib.pyplot.get_fignums()",
    "numpy errors": "numpy.geterr(), numpy.geterrcall(), numpy.get_printoptions()",
    "pandas options": "{k: pandas.get_option(k) for k in pandas._config.config._registered_options}",
    "units of axes": "sorted(map(str, __import__('matplotlib.units').units.registry))",
    "logging": "logging.root.handlers, logging.root.level, logging.raiseExceptions, [(n, l) for n, l in logging.root.manager.loggerDict.items() if isinstance(l, logging.Logger) and (l.level or l.handlers or l.disabled or not l.propagate)]",
    "locale": "locale.setlocale(locale.LC_ALL), locale.getlocale()",
    "decimal": "str(decimal.getcontext()), str(decimal.DefaultContext)",
    "event loops": "asyncio.events._event_loop_policy, asyncio._get_running_loop()",
    "fonts of documents": "sorted(reportlab.pdfbase.pdfmetrics.getRegisteredFontNames())",
    "pictures": "PIL.Image.MAX_IMAGE_PIXELS, PIL.ImageFile.LOAD_TRUNCATED_IMAGES",
    "names to come": "threading.Thread().name, multiprocessing.Process().name, multiprocessing.get_start_method(allow_none=True), concurrent.futures.ThreadPoolExecutor()._thread_name_prefix",
    "what is known of the host": "platform.uname(), platform.platform(), tempfile.tempdir, uuid._node",
    "exit handlers": "__import__('atexit')._ncallbacks()",
    "signals": BEFORE_ANYTHING["signals"],
    "recursion": "sys.getrecursionlimit()",
    "environment": "sorted(os.environ.items())",
    "open descriptors": BEFORE_ANYTHING["open descriptors"],
    "files left": "sorted(os.listdir(os.environ['HOME']))",
}


def ask(kernel: Kernel, questions: dict[str, str], libraries: str = "") -> dict[str, str]:
    """The answers to the questions, as text, all from one cell that leaves no names of its own."""
    code = (
        f"def _ask():\n    import sys, os, gc, re, signal, threading, resource\n    {libraries.strip().replace(chr(10), chr(10) + '    ')}\n"
        f"    names = {{**globals(), **locals()}}\n    answers = {{}}\n"
        f"    for name, question in {questions!r}.items():\n"
        "        try: answers[name] = repr(eval(question, names))\n"
        "        except Exception as error: answers[name] = repr(error)\n"
        "    return answers\nprint(_ask())"
    )
    outcome = kernel.run(code)
    assert outcome.status == "ok", outcome.events
    return ast.literal_eval(outcome.stdout)


class State(unittest.TestCase):
    in_advance = 0
    template: TemplateProcess
    fresh: Kernel
    copy: Kernel

    @classmethod
    def setUpClass(cls) -> None:
        cls.template = TemplateProcess()
        cls.addClassCleanup(cls.template.stop)
        cls.folders = [tempfile.mkdtemp(prefix="kernel-test-") for _ in range(2)]
        for folder in cls.folders:
            cls.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
        cls.fresh = Kernel(cls.folders[0])
        cls.copy = cls.template.kernel(cls.folders[1], in_advance=cls.in_advance)
        for kernel in (cls.fresh, cls.copy):
            cls.addClassCleanup(kernel.stop)
        cls.first = cls.answers(BEFORE_ANYTHING)
        cls.then = cls.answers(AFTER_IMPORTS, LIBRARIES)

    @classmethod
    def answers(cls, questions: dict[str, str], libraries: str = "") -> list[dict[str, str]]:
        """Of the fresh kernel and the copy, with the same word for folders of theirs."""
        both = []
        for kernel in (cls.fresh, cls.copy):
            found = ask(kernel, questions, libraries)
            for folder in (*cls.folders, cls.template.folder):
                found = {name: answer.replace(folder, "FOLDER") for name, answer in found.items()}
            both.append(found)
        return both

    def assert_equal(self, both: list[dict[str, str]]) -> None:
        fresh, copy = both
        for name in fresh:
            with self.subTest(name):
                self.assertNotIn("Error(", fresh[name])
                self.assertEqual(copy[name], fresh[name])

    def test_the_first_cell_finds_everything_as_in_a_fresh_kernel(self):
        self.assert_equal(self.first)

    def test_the_libraries_are_as_if_they_were_just_imported(self):
        self.assert_equal(self.then)

    def test_nothing_of_the_rehearsal_is_left(self):
        for answers in self.first:
            self.assertEqual(answers["count"], "2")  # the question is the first cell
            self.assertEqual(answers["outputs"], "({}, {}, '', '', '')")
            self.assertEqual(answers["sources of cells"], "1")

    def test_more_modules_are_there_and_none_is_missing(self):
        code = "import sys; print(*sys.modules)"
        fresh = set(self.fresh.run(code).stdout.split())
        copy = set(self.copy.run(code).stdout.split())
        self.assertEqual(fresh - copy, set())
        self.assertGreater(len(copy), 1000)


class StateInAdvance(State):
    """Of one that was made before anybody waited for it."""

    in_advance = 1


if __name__ == "__main__":
    unittest.main()
