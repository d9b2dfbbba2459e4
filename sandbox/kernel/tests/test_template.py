"""Kernels that are copied from a template pass the tests of kernels that are started."""

import unittest

import test_displays
import test_hostile_code
import test_interrupts
import test_libraries
import test_running
import test_threads_and_forks
from copies import TemplateProcess
from harness import Kernel

template: TemplateProcess


def setUpModule() -> None:  # noqa: N802 (unittest's name)
    global template
    template = TemplateProcess()


def tearDownModule() -> None:  # noqa: N802
    template.stop()


class Copied:
    """Has a test case work with copies."""

    @classmethod
    def new_kernel(cls, folder: str) -> Kernel:
        return template.kernel(folder)


class Running(Copied, test_running.Running):
    pass


class Errors(Copied, test_running.Errors):
    pass


class Exit(Copied, test_running.Exit):
    pass


class MagicsAndCommands(Copied, test_running.MagicsAndCommands):
    pass


class Displays(Copied, test_displays.Displays):
    pass


class Matplotlib(Copied, test_displays.Matplotlib):
    test_a_bare_kernel_has_not_imported_it = None  # this one has


class Libraries(Copied, test_libraries.Libraries):
    pass


class Interrupts(Copied, test_interrupts.Interrupts):
    pass


class Threads(Copied, test_threads_and_forks.Threads):
    pass


class Forks(Copied, test_threads_and_forks.Forks):
    pass


class Breaks(Copied, test_hostile_code.Breaks):
    pass


if __name__ == "__main__":
    unittest.main()
