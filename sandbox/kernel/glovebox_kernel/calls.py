"""Which call a thread belongs to, and where its output goes.

A call is one execute. Output of the main thread goes to the call that runs; output of a thread
goes to the call that started the thread, also after that call has been replied to. A retired call
keeps its descriptors while a thread of it lives.
"""

import os
import threading
from _thread import get_ident
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from .streams import Sink

_MAX_RETIRED = 64
"""So many retired calls may keep descriptors; the oldest beyond that loses its late output."""

_HIGH_FD = 240
"""Descriptors of the runner's own lie from here, out of the way of code that counts on low ones."""


class Call:
    """One execute: its id as the agent gave it, and the two places its output goes to."""

    def __init__(self, execution: str, out: Sink, err: Sink) -> None:
        self.execution = execution
        self.out = out
        self.err = err


class Calls:
    """The running call, the retired ones that may still print, and which thread is whose."""

    def __init__(self) -> None:
        self._main = get_ident()
        self.current = Call("", Sink(1), Sink(2))
        self._retired: list[Call] = []
        self._of_context: ContextVar[Call | None] = ContextVar("glovebox_call", default=None)
        self._current_thread = threading.current_thread
        self._all_threads = threading.enumerate
        self._watch_thread_starts()

    def mine(self) -> Call:
        """The call that the calling thread works for."""
        if get_ident() == self._main:
            return self.current
        # The context first: work handed to a thread with its context (asyncio.to_thread, the
        # loop thread behind %%bash) belongs to the call that handed it over.
        call = self._of_context.get()
        if call is None:
            call = getattr(self._current_thread(), "_glovebox_call", None)
        return self.current if call is None or call.out.released else call

    def begin(self, execution: str, out_fd: int, err_fd: int) -> Call:
        """Retires the running call and makes a new one of the two descriptors, which it takes."""
        old = self.current
        self._drop_finished()
        if self._has_threads(old):
            old.out.move_to(_duplicate(1))
            old.err.move_to(_duplicate(2))
            self._retired.append(old)
            if len(self._retired) > _MAX_RETIRED:
                self._release(self._retired.pop(0))
            self.current = Call(execution, Sink(1), Sink(2))
        else:
            old.out.flush_quietly()
            old.err.flush_quietly()
            self.current = Call(execution, old.out, old.err)
        for fd, standard in ((out_fd, 1), (err_fd, 2)):
            os.dup2(fd, standard)
            os.close(fd)
        self._of_context.set(self.current)
        return self.current

    def become_child(self) -> None:
        """In a forked child: its one thread is the main one, with streams of its own.

        The old streams may hold text of other threads, and locks that nobody will open.
        """
        call = self.mine()
        self._main = get_ident()
        self._retired.clear()
        self.current = Call(call.execution, Sink(call.out.fd), Sink(call.err.fd))

    def _has_threads(self, call: Call) -> bool:
        return any(
            getattr(thread, "_glovebox_call", None) is call for thread in self._all_threads()
        )

    def _drop_finished(self) -> None:
        for call in self._retired[:]:
            if not self._has_threads(call):
                self._retired.remove(call)
                self._release(call)

    @staticmethod
    def _release(call: Call) -> None:
        for sink in (call.out, call.err):
            sink.flush_quietly()
            sink.release()

    def _watch_thread_starts(self) -> None:
        start: Callable[[Any], None] = threading.Thread.start
        mine = self.mine

        def start_and_remember(self: threading.Thread) -> None:
            self._glovebox_call = mine()  # type: ignore[attr-defined]
            start(self)

        start_and_remember.__name__ = "start"
        start_and_remember.__qualname__ = "Thread.start"
        start_and_remember.__doc__ = start.__doc__
        threading.Thread.start = start_and_remember  # type: ignore[method-assign]


def _duplicate(fd: int) -> int | None:
    """A high, close-on-exec copy; None if user code closed the original or took every slot."""
    import fcntl

    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH_FD)
    except OSError:
        return None
