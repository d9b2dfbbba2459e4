"""What SIGINT does: KeyboardInterrupt in user code, and nothing anywhere else.

The agent interrupts by signal, so it can come at any moment: between two calls, in the middle of
a frame, while a traceback is being formatted. The handler raises only while a cell runs and
nobody holds it off; a held-off interrupt is raised when the last holder lets go.
"""

import builtins
from _signal import SIG_UNBLOCK, SIGINT, getsignal, pthread_sigmask
from _signal import signal as _set_handler
from _thread import get_ident
from collections.abc import Callable
from types import FrameType

globals()["__builtins__"] = dict(vars(builtins))  # see wire.py

_ONLY_SIGINT = frozenset({SIGINT})


class Interrupts:
    """The handler of SIGINT and its state. Make it on the main thread."""

    def __init__(self) -> None:
        self._main = get_ident()
        self._held = 0
        self._pending = False
        self.running = False
        """Whether a cell runs. The runner clears it by assignment: a method call could already
        be interrupted."""
        self.divert: Callable[[FrameType | None], bool] | None = None
        """Asked first; if it returns True it has dealt with the interrupt itself."""

    def start_cell(self) -> None:
        """From here on an interrupt is raised."""
        self.install()
        self._reset()
        self.running = True

    def end_cell(self) -> None:
        """From here on an interrupt is dropped: there is nothing left to interrupt."""
        self.running = False
        self._reset()
        # Lets through what code has blocked only in `start_cell`: meanwhile it is dropped either
        # way.
        self._take_back_handler()

    def hold(self) -> None:
        """Puts interrupts off until `release`, as often as it is called."""
        if get_ident() == self._main:
            self._held += 1

    def release(self) -> None:
        """Undoes one `hold`; raises the interrupt that came meanwhile."""
        if get_ident() != self._main:
            return
        self._held -= 1
        if self._pending and self._held <= 0 and self.running:
            self._pending = False
            raise KeyboardInterrupt

    def install(self) -> None:
        """Makes this the handler of SIGINT and lets the signal through."""
        self._take_back_handler()
        pthread_sigmask(SIG_UNBLOCK, _ONLY_SIGINT)

    def become_child(self) -> None:
        """In a forked child: the forking thread is the main one now."""
        self._main = get_ident()
        self._held = 0

    def _take_back_handler(self) -> None:
        if getsignal(SIGINT) != self._on_signal:
            _set_handler(SIGINT, self._on_signal)

    def _reset(self) -> None:
        self._pending = False
        self._held = 0
        self.divert = None

    def _on_signal(self, _number: int, frame: FrameType | None) -> None:
        if not self.running:
            return
        if self._held > 0:
            self._pending = True
        elif self.divert is None or not self.divert(frame):
            raise KeyboardInterrupt
