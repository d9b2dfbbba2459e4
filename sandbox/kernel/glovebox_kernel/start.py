"""From a bare interpreter to a kernel that says ready."""

import builtins
import gc
import sys
import warnings
from atexit import _run_exitfuncs
from collections.abc import Iterable
from os import _exit, write
from typing import NoReturn

from . import descriptors
from .calls import Calls
from .interrupt import Interrupts
from .reporter import Reporter, start
from .streams import install
from .wire import Channel, PeerGone

globals()["__builtins__"] = dict(vars(builtins))  # see wire.py

STATUS_PEER_GONE = 70
"""Exit status when the agent can no longer be talked to."""

STATUS_BROKEN = 71
"""Exit status when user code has broken the runner itself."""


FIRST_CELL = "1"
"""Run before the kernel says that it is ready, so that the first cell of a user is quick."""


def main() -> NoReturn:
    """Runs the kernel of this process. Does not return."""
    kernel = Kernel()
    kernel.attach(0)
    kernel.serve()


class Kernel:
    """The kernel of this process, in two halves.

    What `__init__` makes needs no agent, so it can be made in one process and used in copies of
    it. What needs an agent, or differs from process to process, is left to `attach`.
    """

    def __init__(self) -> None:
        interrupts = Interrupts()
        calls = Calls()
        self._reporter = Reporter(Channel(interrupts), calls, interrupts)
        start(self._reporter)
        install(calls.mine)
        # Only now: what the shell imports finds the streams in place.
        from . import stdin
        from .runner import Runner
        from .shell import KernelShell

        self._shell = KernelShell.instance()
        self._runner = Runner(self._reporter, self._shell)
        stdin.refuse()
        # The error message says it better, and there is no Ctrl-D here.
        warnings.filterwarnings("ignore", message="To exit: use 'exit', 'quit'")
        self._shell.display_formatter.format([2])

    def rehearse(self, cells: Iterable[str]) -> None:
        """Runs cells, which leave nothing behind but a kernel that is quicker at them."""
        from .rehearsal import rehearse

        rehearse(self._runner, self._reporter, self._shell, cells)

    def attach(self, fd: int) -> None:
        """Takes over the socket to the agent. Raises OSError."""
        from . import forks

        self.rehearse([FIRST_CELL])
        wire = descriptors.high_copy(fd)
        if fd == 0:
            descriptors.empty_input()
        else:
            descriptors.close(fd)
        self._reporter.channel.connect(wire)
        self._reporter.interrupts.install()
        forks.watch(self._reporter, self._shell)
        sys.argv = [""]
        sys.path.insert(0, "")

    def serve(self) -> NoReturn:
        """Says ready and serves the agent to the end of the process. Does not return."""
        reporter = self._reporter
        # What is here now stays: collections need not look at it again, and memory shared with a
        # process that forked this one stays shared.
        gc.freeze()
        gc.enable()
        try:
            reporter.ready(f"python {'.'.join(map(str, sys.version_info[:3]))}")
            status = self._runner.serve()
        except PeerGone as error:
            _die(reporter, str(error), STATUS_PEER_GONE)
        except BaseException as error:
            _die(reporter, f"broken by code that ran in it: {error!r}", STATUS_BROKEN)
        _end(reporter, status)


def _end(reporter: Reporter, status: int) -> NoReturn:
    """Runs exit handlers and leaves, without waiting for threads of user code."""
    try:
        _run_exitfuncs()
    finally:
        reporter.flush()
        _exit(status)


def _die(reporter: Reporter, reason: str, status: int) -> NoReturn:
    """Leaves at once: nothing can be reported any more but on standard error."""
    try:
        reporter.flush()
        write(2, f"glovebox kernel: {reason}\n".encode("utf-8", "replace"))
    finally:
        _exit(status)
