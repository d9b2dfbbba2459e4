"""Which call a thread belongs to, and where its output goes.

A call is one execute. Output of the main thread goes to the call that runs; output of a thread
goes to the call that started the thread, also after that call has been replied to. A retired call
keeps its descriptors while a thread of it lives.
"""

import builtins
import threading
from _thread import get_ident
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from . import descriptors
from .streams import Sink

globals()["__builtins__"] = dict(vars(builtins))  # see wire.py

_MAX_RETIRED = 64
"""So many retired calls may keep descriptors; the oldest beyond that loses its late output."""


class Call:
    """One execute: its id as the agent gave it, and the two places its output goes to."""

    def __init__(self, execution: str, out: Sink, err: Sink) -> None:
        self.execution = execution
        self.out = out
        self.err = err
        self.over = False
        """Whether it is retired and has no thread left."""


class Calls:
    """The running call, the retired ones that may still print, and which thread is whose."""

    def __init__(self) -> None:
        self._main = get_ident()
        self.current = Call("", Sink(1), Sink(2))
        self._retired: list[Call] = []
        self._reserve = descriptors.Reserve()
        self._of_context: ContextVar[Call | None] = ContextVar("glovebox_call", default=None)
        self._current_thread = threading.current_thread
        self._all_threads = threading.enumerate
        self._watch_thread_starts()

    def mine(self) -> Call:
        """The call that the calling thread works for."""
        if get_ident() == self._main:
            return self.current
        # The context first: work handed to a thread with its context (asyncio.to_thread) belongs
        # to the call that handed it over.
        call = self._of_context.get()
        if call is None:
            call = getattr(self._current_thread(), "_glovebox_call", None)
        return self.current if call is None or call.over else call

    def start_over(self) -> None:
        """Forgets a call that was only rehearsed."""
        self.make_room()
        self.current.execution = ""

    def make_room(self) -> None:
        """To be called before the descriptors of the next call are received."""
        self._reserve.free()

    def begin(self, execution: str, out_fd: int, err_fd: int) -> None:
        """Retires the running call and makes a new one of the two descriptors, which it takes."""
        old = self.current
        old.out.flush_quietly()
        old.err.flush_quietly()
        self._drop_finished()
        if self._has_threads(old):
            self._retire(old)
            self.current = Call(execution, Sink(1), Sink(2))
        else:
            self.current = Call(execution, old.out, old.err)
        descriptors.install(out_fd, err_fd)
        self._reserve.keep()
        self._of_context.set(self.current)

    def become_child(self) -> None:
        """In a forked child: its one thread is the main one, with streams of its own.

        The old streams may hold text of other threads, and locks that nobody will open.
        """
        call = self.mine()
        self._main = get_ident()
        self._retired.clear()
        self.current = Call(call.execution, Sink(call.out.fd), Sink(call.err.fd))

    def _retire(self, call: Call) -> None:
        for sink, fd in ((call.out, 1), (call.err, 2)):
            try:
                sink.move_to(descriptors.high_copy(fd))
            except OSError:  # closed by user code, or no descriptor left
                sink.move_to(None)
        self._retired.append(call)
        if len(self._retired) > _MAX_RETIRED:
            self._release(self._retired.pop(0))

    def _has_threads(self, call: Call) -> bool:
        return any(
            getattr(thread, "_glovebox_call", None) is call for thread in self._all_threads()
        )

    def _drop_finished(self) -> None:
        for call in self._retired[:]:
            if not self._has_threads(call):
                self._retired.remove(call)
                self._release(call)
                call.over = True

    @staticmethod
    def _release(call: Call) -> None:
        for sink in (call.out, call.err):
            sink.move_to(None)

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
