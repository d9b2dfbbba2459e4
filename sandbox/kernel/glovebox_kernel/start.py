"""From a bare interpreter to a kernel that says ready."""

import fcntl
import gc
import os
import sys
import warnings

from .calls import Calls
from .interrupt import Interrupts
from .session import Session, start
from .streams import install
from .wire import Channel, PeerGone

_HIGH_FD = 240
"""The socket lies from here up, out of the way of code that counts on low descriptors."""

_STATUS_PEER_GONE = 70
"""Exit status when the agent can no longer be talked to."""


def main() -> None:
    """Runs the kernel of this process. Does not return."""
    session = _open_session()
    runner = _make_runner(session)
    session.interrupts.install()
    # What is here now stays: collections need not look at it again, and memory shared with a
    # process that forked this one stays shared.
    gc.freeze()
    gc.enable()
    try:
        session.ready(f"python {'.'.join(map(str, sys.version_info[:3]))}")
        status = runner.serve()
    except PeerGone as error:
        _die(session, str(error), _STATUS_PEER_GONE)
    _end(session, status)


def _open_session() -> Session:
    """Takes the socket and puts the streams in place."""
    fd = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, _HIGH_FD)
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    interrupts = Interrupts()
    calls = Calls()
    session = Session(Channel(fd, interrupts), calls, interrupts)
    start(session)
    install(calls.mine)
    return session


def _make_runner(session: Session) -> "Runner":  # type: ignore[name-defined] # noqa: F821
    """Makes the shell and runs a first cell, so that the first one of a user is quick."""
    from . import forks, stdin
    from .runner import Runner
    from .shell import KernelShell

    shell = KernelShell.instance()
    forks.watch(session, shell)
    stdin.refuse()
    # The error message says it better, and there is no Ctrl-D here.
    warnings.filterwarnings("ignore", message="To exit: use 'exit', 'quit'")
    shell.display_formatter.format(2)
    shell.run_cell("pass", silent=True)
    sys.argv = [""]
    sys.path.insert(0, "")
    return Runner(session, shell)


def _end(session: Session, status: int) -> None:
    """Runs exit handlers and leaves, without waiting for threads of user code."""
    import atexit

    try:
        atexit._run_exitfuncs()
    finally:
        session.flush()
        os._exit(status)


def _die(session: Session, reason: str, status: int) -> None:
    """Leaves at once: nothing can be reported any more but on standard error."""
    session.flush()
    try:
        os.write(2, f"glovebox kernel: {reason}\n".encode())
    finally:
        os._exit(status)
