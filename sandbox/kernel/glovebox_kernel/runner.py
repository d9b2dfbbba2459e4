"""The loop: one execute after the other, one reply for each."""

import builtins
import sys
from typing import Any

from . import environment, forks
from .errors import KernelExit
from .reporter import Reporter
from .wire import PeerGone

globals()["__builtins__"] = dict(vars(builtins))  # see wire.py

_LEAST_RECURSION = 500

_EMPTY_CELL = "pass"

_get_recursion_limit = sys.getrecursionlimit
_set_recursion_limit = sys.setrecursionlimit
_set_trace = sys.settrace
_set_profile = sys.setprofile


class Runner:
    """Serves the agent until it says shutdown or closes the socket."""

    def __init__(self, reporter: Reporter, shell: Any) -> None:
        self._reporter = reporter
        self._shell = shell
        self._run_cell = shell.run_cell
        self._traps = [shell.display_trap, shell.builtin_trap]

    def serve(self) -> int:
        """Runs code until told to stop. Returns the status to exit with.

        Raises PeerGone when the agent does.
        """
        reporter = self._reporter
        while reporter.exit_status is None:
            frame = reporter.next_frame()
            if frame["type"] == "shutdown":
                return 0
            if frame["type"] == "environment":
                environment.take(frame["variables"])
            if frame["type"] == "warm":
                self._warm()
            if frame["type"] == "execute":
                self._execute(frame["id"], frame["code"], bool(frame.get("silent")))
        return reporter.exit_status

    def _warm(self) -> None:
        """Runs an empty cell unseen: of a kernel that lay idle no code is near the processor.

        Only before the first call, so nothing of a user's can be in it.
        """
        self._run_cell(_EMPTY_CELL, store_history=False, silent=True)

    def _execute(self, execution: str, code: str, silent: bool) -> None:
        reporter = self._reporter
        reporter.begin(execution)
        interrupts = reporter.interrupts
        result: Any = None
        failure: BaseException | None = None
        try:
            interrupts.start_cell()
            result = self._run_cell(code, store_history=not silent, silent=silent)
            interrupts.running = False
        except PeerGone:
            raise
        except BaseException as error:
            interrupts.running = False
            failure = error
        interrupts.end_cell()
        if failure is None:
            failure = _failure_of(result)
        if isinstance(failure, KernelExit):
            failure = None
        if reporter.is_child:
            forks.leave(reporter, 0 if failure is None else 1)
        self._tidy()
        reporter.reply(execution, failure, self._count(result))

    def _count(self, result: Any) -> object:
        """The number of the cell: of the one before if it had none of its own."""
        count = getattr(result, "execution_count", None)
        return self._shell.execution_count - 1 if count is None else count

    def _tidy(self) -> None:
        """Undoes what code or an interrupt may have left in the way of the next call."""
        for trap in self._traps:
            try:
                while getattr(trap, "_nested_level", 0) > 0:
                    trap.__exit__(None, None, None)
            except Exception:  # code has deleted what the trap would put back
                trap._nested_level = 0
        _set_trace(None)
        _set_profile(None)
        if _get_recursion_limit() < _LEAST_RECURSION:
            _set_recursion_limit(_LEAST_RECURSION)


def _failure_of(result: Any) -> BaseException | None:
    """What a cell ended with, if not well."""
    if result is None:
        return RuntimeError("the shell gave no result; code of this kernel has replaced it")
    return getattr(result, "error_before_exec", None) or getattr(result, "error_in_exec", None)
