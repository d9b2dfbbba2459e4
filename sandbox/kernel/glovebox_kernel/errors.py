"""Shows exceptions of user code: as IPython does where it can, plainly where it cannot."""

import inspect
import os.path
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import _lru_cache_wrapper
from types import TracebackType
from typing import Any

from .compiling import is_cell

_OWN_FOLDER = os.path.dirname(__file__)

_DEEP = 100
_KEPT_OF_DEEP = 10
_KEPT_SOURCES = 200

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None]


class KernelExit(BaseException):
    """Ends the running cell without a word, because the kernel is to end after it."""


def holds_group(value: BaseException | None) -> bool:
    """Whether it is an exception group or was raised while one was handled."""
    seen: set[int] = set()
    while value is not None and id(value) not in seen:
        if isinstance(value, BaseExceptionGroup):
            return True
        seen.add(id(value))
        value = value.__context__
    return False


def group_lines(info: ExcInfo) -> list[str]:
    """The traceback of an exception group, which IPython cannot format."""
    return "".join(traceback.format_exception(*info)).splitlines()


def plain_lines(kind: type[BaseException], value: BaseException, text: str) -> list[str]:
    """A traceback when formatting the real one failed: the places, and what was raised."""
    places = traceback.StackSummary.extract(
        traceback.walk_tb(value.__traceback__), limit=-20, lookup_lines=False
    )
    lines = [f'  File "{place.filename}", line {place.lineno}, in {place.name}' for place in places]
    return ["Traceback (most recent call last):", *lines, f"{kind.__name__}: {text}"]


def without_own_tail(trace: TracebackType | None) -> None:
    """Cuts the kernel's own frames off the end of a traceback: they tell a user nothing."""
    keep = None
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(_OWN_FOLDER):
            keep = trace
        trace = trace.tb_next
    if keep is not None:
        keep.tb_next = None


@contextmanager
def known_modules(trace: TracebackType | None) -> Iterator[None]:
    """Tells `inspect` which modules the frames of a traceback are of.

    The formatter asks it, and for a file it has not seen it looks at every module there is: some
    tens of milliseconds, and a page or two of each module that a copy of a process shares no more.
    """
    cells = []
    while trace is not None:
        frame, trace = trace.tb_frame, trace.tb_next
        name = frame.f_globals.get("__name__")
        module = sys.modules.get(name) if isinstance(name, str) else None
        file = os.path.abspath(frame.f_code.co_filename)
        if module is None or file in inspect.modulesbyfile:
            continue
        if getattr(module, "__file__", None) != frame.f_code.co_filename:
            if vars(module) is not frame.f_globals or not is_cell(frame.f_code.co_filename):
                continue
            cells.append(file)
        inspect.modulesbyfile[file] = name
    try:
        yield
    finally:
        for file in cells:
            inspect.modulesbyfile.pop(file, None)


def without_deep_middle(trace: TracebackType | None) -> int:
    """Cuts the middle out of a very deep traceback, which takes seconds to show and no one reads.

    Returns how many frames were cut.
    """
    frames = []
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    if len(frames) <= _DEEP:
        return 0
    frames[_KEPT_OF_DEEP - 1].tb_next = frames[-_KEPT_OF_DEEP]
    return len(frames) - 2 * _KEPT_OF_DEEP


def forget_sources() -> None:
    """Empties the caches of the traceback formatter, which would keep the syntax of every cell."""
    executing: Any = sys.modules.get("executing.executing")
    stack_data: Any = sys.modules.get("stack_data.core")
    sources = getattr(getattr(stack_data, "Source", None), "__source_cache_with_lines", None)
    if executing is None or not isinstance(sources, dict) or len(sources) <= _KEPT_SOURCES:
        return
    sources.clear()
    getattr(stack_data.Source, "__executing_cache", {}).clear()
    for owner in (executing, executing.Source):
        for cached in list(vars(owner).values()):
            if isinstance(cached, _lru_cache_wrapper):
                cached.cache_clear()


def as_interrupt(info: ExcInfo) -> ExcInfo:
    """An await that was cancelled by an interrupt, as the KeyboardInterrupt it stands for."""
    _, value, trace = info
    interrupt = KeyboardInterrupt()
    interrupt.__traceback__ = trace
    interrupt.__suppress_context__ = True
    return KeyboardInterrupt, interrupt, trace


def is_cancellation(value: Any) -> bool:
    """Whether it is what `await` raises in a cancelled task."""
    exceptions = sys.modules.get("asyncio.exceptions")  # importing it would cost 30 ms
    return exceptions is not None and isinstance(value, exceptions.CancelledError)
