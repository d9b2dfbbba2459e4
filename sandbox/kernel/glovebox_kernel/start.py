"""From a bare interpreter to a kernel that says ready."""

import builtins
import gc
import sys
import warnings
from atexit import _run_exitfuncs
from os import _exit, write

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


def main() -> None:
    """Runs the kernel of this process. Does not return."""
    reporter = _open_reporter()
    runner = _make_runner(reporter)
    reporter.interrupts.install()
    # What is here now stays: collections need not look at it again, and memory shared with a
    # process that forked this one stays shared.
    gc.freeze()
    gc.enable()
    try:
        reporter.ready(f"python {'.'.join(map(str, sys.version_info[:3]))}")
        status = runner.serve()
    except PeerGone as error:
        _die(reporter, str(error), STATUS_PEER_GONE)
    except BaseException as error:
        _die(reporter, f"broken by code that ran in it: {error!r}", STATUS_BROKEN)
    _end(reporter, status)


def _open_reporter() -> Reporter:
    """Takes the socket and puts the streams in place."""
    fd = descriptors.high_copy(0)
    descriptors.empty_input()
    interrupts = Interrupts()
    calls = Calls()
    reporter = Reporter(Channel(fd, interrupts), calls, interrupts)
    start(reporter)
    install(calls.mine)
    return reporter


def _make_runner(reporter: Reporter) -> "Runner":  # type: ignore[name-defined] # noqa: F821
    """Makes the shell and runs a first cell, so that the first one of a user is quick."""
    from . import forks, stdin
    from .runner import Runner
    from .shell import KernelShell

    shell = KernelShell.instance()
    forks.watch(reporter, shell)
    stdin.refuse()
    # The error message says it better, and there is no Ctrl-D here.
    warnings.filterwarnings("ignore", message="To exit: use 'exit', 'quit'")
    shell.display_formatter.format([2])
    shell.run_cell("pass", silent=True)
    sys.argv = [""]
    sys.path.insert(0, "")
    return Runner(reporter, shell)


def _end(reporter: Reporter, status: int) -> None:
    """Runs exit handlers and leaves, without waiting for threads of user code."""
    try:
        _run_exitfuncs()
    finally:
        reporter.flush()
        _exit(status)


def _die(reporter: Reporter, reason: str, status: int) -> None:
    """Leaves at once: nothing can be reported any more but on standard error."""
    try:
        reporter.flush()
        write(2, f"glovebox kernel: {reason}\n".encode("utf-8", "replace"))
    finally:
        _exit(status)
