"""Forks made by user code: the child keeps its output and loses the agent.

A child that came back into the runner's loop would share the socket and shift every later reply,
so it gives the socket up at once and ends where the cell ends.
"""

import builtins
from os import _exit, register_at_fork, write
from typing import Any, NoReturn

from .session import Session

__builtins__ = dict(vars(builtins))  # see wire.py


def watch(session: Session, shell: Any) -> None:
    """Makes every forked child safe, and ends those that outlive the cell."""

    def in_child() -> None:
        session.channel.abandon()
        session.calls.become_child()
        session.interrupts.become_child()

    register_at_fork(before=session.flush, after_in_child=in_child)

    def leave_after_cell() -> None:
        if session.is_child:
            leave(session, 0 if shell.last_execution_succeeded else 1)

    shell.events.register("post_execute", leave_after_cell)


def leave(session: Session, status: object) -> NoReturn:
    """Ends a forked child with its output written. `status` as given to `sys.exit`."""
    session.flush()
    if isinstance(status, str):
        write(2, f"{status}\n".encode("utf-8", "replace"))
    _exit(exit_number(status))


def exit_number(status: object) -> int:
    """The exit status that `sys.exit(status)` means."""
    if status is None:
        return 0
    return status & 0xFF if isinstance(status, int) else 1
