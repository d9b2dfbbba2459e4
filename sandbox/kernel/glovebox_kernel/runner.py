"""The loop: one execute after the other, one reply for each."""

import builtins
import os
from typing import Any

from .session import Session

__builtins__ = dict(vars(builtins))  # see wire.py


class Runner:
    """Serves the agent until it says shutdown or closes the socket."""

    def __init__(self, session: Session, shell: Any) -> None:
        self._session = session
        self._shell = shell

    def serve(self) -> int:
        """Runs code until told to stop. Returns the status to exit with."""
        while True:
            frame = self._session.channel.receive()
            if frame["type"] == "shutdown":
                return 0
            if frame["type"] == "execute":
                self._execute(frame["id"], frame["code"], frame["silent"])
            if self._session.exit_status is not None:
                return self._session.exit_status

    def _execute(self, execution: str, code: str, silent: bool) -> None:
        session = self._session
        session.calls.begin(execution, *session.channel.take_descriptors())
        session.begin()
        failure: BaseException | None = None
        result = None
        try:
            session.interrupts.start_cell()
            result = self._shell.run_cell(code, store_history=not silent, silent=silent)
            session.interrupts.end_cell()
        except BaseException as error:
            session.interrupts.end_cell()
            failure = error
        failure = failure or getattr(result, "error_in_exec", None) or result.error_before_exec
        count = result.execution_count or self._shell.execution_count - 1 if result else 0
        session.reply(execution, failure is None, count, failure)
