"""From a bare interpreter to a kernel that says ready."""

import fcntl
import gc
import os
import platform
import sys

from .calls import Calls
from .interrupt import Interrupts
from .session import Session, start
from .streams import install
from .wire import Channel, PeerGone

_HIGH_FD = 240


def _take_socket() -> int:
    """Moves the socket off descriptor 0 and puts /dev/null there."""
    fd = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, _HIGH_FD)
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return fd


def main() -> None:
    fd = _take_socket()
    interrupts = Interrupts()
    calls = Calls()
    session = Session(Channel(fd, interrupts), calls, interrupts)
    start(session)
    install(calls.mine)
    from .runner import Runner
    from .shell import KernelShell

    shell = KernelShell.instance()
    shell.display_formatter.format(2)
    shell.run_cell("pass", silent=True)
    interrupts.install()
    gc.freeze()
    gc.enable()
    try:
        session.ready(f"python {platform.python_version()}")
        status = Runner(session, shell).serve()
    except PeerGone:
        status = 70
    session.flush()
    os._exit(status)
