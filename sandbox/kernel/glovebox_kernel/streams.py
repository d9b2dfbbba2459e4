"""`sys.stdout` and `sys.stderr`: text streams that write to the call their thread belongs to.

They write to descriptors 1 and 2, so the order with output of subprocesses is kept and code that
moves those descriptors gets what it asked for. They flush at a newline, when 8 KiB are pending,
and before any message to the agent.
"""

import builtins
import io
import sys
from collections.abc import Callable, Iterable
from os import write as _write
from typing import Any

from .descriptors import close

globals()["__builtins__"] = dict(vars(builtins))  # see wire.py


class _Raw(io.RawIOBase):
    """Writes to a descriptor that can be exchanged. None swallows what is written."""

    def __init__(self, fd: int | None) -> None:
        self.fd = fd

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if self.fd is None:
            return len(data)
        return _write(self.fd, data)


class Sink:
    """Where one stream of one call goes: a buffered text writer over a descriptor."""

    def __init__(self, fd: int | None) -> None:
        self._raw = _Raw(fd)
        self.buffer = io.BufferedWriter(self._raw, 8192)
        self.text = io.TextIOWrapper(
            self.buffer, encoding="utf-8", errors="backslashreplace", line_buffering=True
        )
        self._owned: int | None = None

    @property
    def fd(self) -> int | None:
        """The descriptor behind it, or None when what is written is swallowed."""
        return self._raw.fd

    def move_to(self, fd: int | None) -> None:
        """Writes to `fd` from now on and takes it; closes the one it had taken before."""
        self.flush_quietly()
        if self._owned is not None:
            close(self._owned)
        self._raw.fd = self._owned = fd

    def flush_quietly(self) -> None:
        """Flushes; if the descriptor does not take it, drops what was pending."""
        try:
            self.text.flush()
        except (OSError, ValueError, RuntimeError):
            fd, self._raw.fd = self._raw.fd, None
            try:
                self.text.flush()
            except (OSError, ValueError, RuntimeError):
                pass
            self._raw.fd = fd


class RoutedBuffer(io.BufferedIOBase):
    """The `.buffer` of a routed stream. Unbuffered, so that bytes and text stay in order."""

    def __init__(self, sink: Callable[[], Sink], name: str) -> None:
        self._sink = sink
        self.name = name
        self.mode = "wb"

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        sink = self._sink()
        sink.text.flush()
        count = sink.buffer.write(data)
        sink.buffer.flush()
        return count

    def flush(self) -> None:
        self._sink().text.flush()

    def fileno(self) -> int:
        return _fileno(self._sink())

    def isatty(self) -> bool:
        return False

    def close(self) -> None:
        """Only flushes: the descriptor is the kernel's, later calls need it."""
        self.flush()


class RoutedText(io.TextIOBase):
    """A text stream over the sink of the thread that writes."""

    errors = "backslashreplace"
    line_buffering = True
    write_through = False
    newlines = None

    def __init__(self, sink: Callable[[], Sink], name: str) -> None:
        self._sink = sink
        self.name = name
        self.mode = "w"
        self.buffer = RoutedBuffer(sink, name)

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        return self._sink().text.write(text)

    def writelines(self, lines: Iterable[str]) -> None:  # type: ignore[override]
        self._sink().text.writelines(lines)

    def flush(self) -> None:
        self._sink().text.flush()

    def fileno(self) -> int:
        return _fileno(self._sink())

    def isatty(self) -> bool:
        return False

    def reconfigure(self, **_options: Any) -> None:
        """Accepted and passed over: encoding and buffering are the kernel's."""

    def close(self) -> None:
        """Only flushes: the descriptor is the kernel's, later calls need it."""
        self.flush()


def _fileno(sink: Sink) -> int:
    if sink.fd is None:
        raise io.UnsupportedOperation("the call that this thread belongs to has ended")
    return sink.fd


def install(mine: Callable[[], Any]) -> None:
    """Puts routed streams in place of `sys.stdout` and `sys.stderr`.

    `mine` gives the call of the calling thread, with its sinks `out` and `err`.
    """
    out = RoutedText(lambda: mine().out, "<stdout>")
    err = RoutedText(lambda: mine().err, "<stderr>")
    sys.stdout = sys.__stdout__ = out  # type: ignore[misc, assignment]
    sys.stderr = sys.__stderr__ = err  # type: ignore[misc, assignment]


def flush_c_library() -> None:
    """Flushes what C code printed, if ctypes is there to reach the C library with."""
    ctypes = sys.modules.get("ctypes")
    if ctypes is None:
        return
    try:
        _c_library(ctypes).fflush(None)
    except Exception:  # user code may have put anything in its place
        pass


def _c_library(ctypes: Any) -> Any:
    global _libc
    if _libc is None:
        _libc = ctypes.CDLL(None)
    return _libc


_libc: Any = None
