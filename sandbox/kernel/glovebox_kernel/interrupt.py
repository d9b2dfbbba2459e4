"""What SIGINT does: KeyboardInterrupt in user code, and nothing anywhere else.

The agent interrupts by signal, so it can come at any moment: between two calls, in the middle of
a frame, while a traceback is being formatted. The handler raises only while a cell runs and
nobody holds it off; a held-off interrupt is raised when the last holder lets go.
"""

import builtins
from _signal import (
    SIG_UNBLOCK,
    SIGINT,
    getsignal,
    pthread_sigmask,
)
from _signal import signal as _set_handler
from _thread import get_ident
from types import FrameType

__builtins__ = dict(vars(builtins))  # see wire.py


class Interrupts:
    """The state of the SIGINT handler. Make it on the main thread."""

    def __init__(self) -> None:
        self._main = get_ident()
        self._running = False
        self._held = 0
        self._pending = False
        self.count = 0
        """How many KeyboardInterrupts were raised so far: shows whether one was swallowed."""

    def start_cell(self) -> None:
        """From here on an interrupt is raised. Takes back the handler if user code changed it."""
        self._install()
        self._pending = False
        self._held = 0
        self._running = True

    def end_cell(self) -> None:
        """From here on an interrupt is dropped: there is nothing left to interrupt."""
        self._running = False
        self._pending = False
        self._held = 0
        self._install()

    def hold(self) -> None:
        """Puts interrupts off until `release`, as often as it is called. Main thread only."""
        if get_ident() == self._main:
            self._held += 1

    def release(self) -> None:
        """Undoes one `hold`; raises the interrupt that came meanwhile."""
        if get_ident() != self._main:
            return
        self._held -= 1
        if self._pending and self._held <= 0 and self._running:
            self._raise()

    def install(self) -> None:
        """Makes this the handler of SIGINT."""
        self._install()

    def _install(self) -> None:
        if getsignal(SIGINT) != self._on_signal:
            _set_handler(SIGINT, self._on_signal)
        pthread_sigmask(SIG_UNBLOCK, _ONLY_SIGINT)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if not self._running:
            return
        if self._held > 0:
            self._pending = True
            return
        self._raise()

    def _raise(self) -> None:
        self._pending = False
        self.count += 1
        raise KeyboardInterrupt


_ONLY_SIGINT = frozenset({SIGINT})
