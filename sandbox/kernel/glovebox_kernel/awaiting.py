"""Runs cells that await, on one event loop that lives as long as the kernel.

Tasks that a cell leaves behind stay on the loop and go on while a later cell awaits.
"""

from collections.abc import Coroutine
from types import FrameType
from typing import TYPE_CHECKING, Any

from .interrupt import Interrupts

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop


class CellLoop:
    """A loop runner for IPython that can be interrupted without losing a cell's task."""

    def __init__(self, interrupts: Interrupts) -> None:
        self._interrupts = interrupts
        self.interrupted = False
        """Whether the cell was cancelled because of an interrupt."""

    def __str__(self) -> str:
        return "asyncio"

    def __call__(self, cell: Coroutine[Any, Any, Any]) -> Any:
        """Runs a cell to its end and returns its value."""
        try:
            loop = self._loop()
        except BaseException:
            cell.close()
            raise
        task = loop.create_task(cell)
        self.interrupted = False

        def cancel_if_loop_waits(frame: FrameType | None) -> bool:
            # An exception raised inside the loop's own code could lose a wake-up for good.
            if frame is None or not _is_loop_code(frame.f_code.co_filename):
                return False
            self.interrupted = True
            loop.call_soon_threadsafe(task.cancel)
            return True

        self._interrupts.divert = cancel_if_loop_waits
        try:
            while True:
                try:
                    return loop.run_until_complete(task)
                except KeyboardInterrupt:
                    # Raised in a task that the cell started; the cell itself still waits.
                    if task.done():
                        raise
                    self.interrupted = True
                    task.cancel()
        finally:
            self._interrupts.divert = None

    def _loop(self) -> "AbstractEventLoop":
        """The one loop. What it is made of is imported with its first use, and imported whole: of
        a half import Python keeps parts, and with those no later one succeeds."""
        self._interrupts.hold()
        try:
            from IPython.core.async_helpers import get_asyncio_loop

            return get_asyncio_loop()
        finally:
            self._interrupts.release()


def _is_loop_code(filename: str) -> bool:
    return "/asyncio/" in filename or filename.endswith("/selectors.py")
