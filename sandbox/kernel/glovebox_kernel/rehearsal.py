"""Runs cells before there is an agent, along the whole way that they go with one.

What a first cell would have to import, make or copy is then there. Nothing of it is left to be
seen: the next cell is the first one, in a namespace as it was.
"""

import sys
from _socket import SCM_RIGHTS, SOL_SOCKET, socketpair
from collections.abc import Iterable
from struct import Struct, pack
from typing import Any

from .reporter import Reporter
from .runner import Runner
from .wire import to_json

_LENGTH = Struct(">I")
_ANY_DISPLAY = 1 << 62
_READ_BYTES = 1024 * 1024


def rehearse(runner: Runner, reporter: Reporter, shell: Any, cells: Iterable[str]) -> None:
    """Runs cells one after the other. What they print and show goes nowhere.

    Descriptors 1 and 2 stay what they are, so the cells must not print unless those swallow it.
    """
    before = _Before(shell)
    agent, ours = socketpair()
    try:
        reporter.channel.connect(ours.detach())
        for cell in cells:
            _play(agent, cell)
            runner.serve()
            agent.recv(_READ_BYTES)
    finally:
        agent.close()
        reporter.end_rehearsal()
        before.come_back()


def _play(agent: Any, cell: str) -> None:
    """Says what an agent would say for one cell, without waiting for answers."""
    execute = {"type": "execute", "id": "", "code": cell, "silent": False}
    agent.sendmsg([_frame(execute)], [(SOL_SOCKET, SCM_RIGHTS, pack("2i", 1, 2))])
    agent.sendall(_frame({"type": "ack", "seq": _ANY_DISPLAY}) + _frame({"type": "shutdown"}))


def _frame(message: dict[str, Any]) -> bytes:
    body = to_json(message).encode()
    return _LENGTH.pack(len(body)) + body


class _Before:
    """What a shell held before its first cell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._names = dict(shell.user_ns)
        self._hidden = dict(shell.user_ns_hidden)

    def come_back(self) -> None:
        """Makes the shell as it was."""
        shell = self._shell
        for names, before in (
            (shell.user_ns, self._names),
            (shell.user_ns_hidden, self._hidden),
        ):
            for name in names.keys() - before.keys():
                del names[name]
            names.update(before)
        shell.execution_count = 1
        shell.last_execution_succeeded = True
        shell.last_execution_result = None
        shell.displayhook.forget()
        shell.history_manager.forget()
        shell.compile.forget()
        for name in ("last_type", "last_value", "last_traceback", "last_exc"):
            vars(sys).pop(name, None)
