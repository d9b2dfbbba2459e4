"""Forks made by user code: the child keeps its output and loses the agent.

A child that came back into the runner's loop would share the socket and shift every later reply,
so it gives the socket up at once and ends where the cell ends.
"""

import builtins
from os import _exit, register_at_fork, write
from typing import Any, NoReturn

from .reporter import Reporter

globals()["__builtins__"] = dict(vars(builtins))  # see wire.py


def watch(reporter: Reporter, shell: Any) -> None:
    """Makes every forked child safe, and ends those that outlive the cell."""

    def in_child() -> None:
        reporter.channel.abandon()
        reporter.calls.become_child()
        reporter.interrupts.become_child()

    register_at_fork(before=reporter.flush, after_in_child=in_child)

    def leave_after_cell() -> None:
        if reporter.is_child:
            leave(reporter, 0 if shell.last_execution_succeeded else 1)

    shell.events.register("post_execute", leave_after_cell)


def leave(reporter: Reporter, status: object) -> NoReturn:
    """Ends a forked child with its output written. `status` as given to `sys.exit`."""
    reporter.flush()
    if isinstance(status, str):
        write(2, f"{status}\n".encode("utf-8", "replace"))
    _exit(exit_number(status))


def exit_number(status: object) -> int:
    """The exit status that `sys.exit(status)` means."""
    if status is None:
        return 0
    return status & 0xFF if isinstance(status, int) else 1
