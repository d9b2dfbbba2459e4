"""Shell commands of cells: `!command`, `x = !command` and `%%bash`, through pipes only.

There is no terminal in a sandbox, so none is asked for. A command writes straight to the pipes
of its call, unless user code captures `sys.stdout`: then what it writes is read and passed on.
An interrupt ends the command and the cell.
"""

import os
import selectors
import subprocess
import sys
from codecs import getincrementaldecoder
from typing import IO, Any

from .streams import RoutedText

_GRACE_S = 0.3
"""How long a command may take to end, in seconds, after each of the signals it gets."""


def run(command: str | list[str], text: bytes | None = None) -> int:
    """Runs a command to its end; its output goes where Python's goes. Returns its exit code.

    `text` is its standard input. A signal gives its negative number, as in subprocess.
    """
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    direct = isinstance(sys.stdout, RoutedText) and isinstance(sys.stderr, RoutedText)
    process = _start(
        command,
        stdin=subprocess.DEVNULL if text is None else subprocess.PIPE,
        stdout=sys.stdout.fileno() if direct else subprocess.PIPE,
        stderr=sys.stderr.fileno() if direct else subprocess.PIPE,
    )
    try:
        if direct:
            process.communicate(text)
        else:
            _feed(process, text)
            _pass_on(process)
        return _exit_code(process.wait())
    except BaseException:
        _end(process)
        raise


def capture(command: str) -> tuple[str, int]:
    """Runs a command; returns what it wrote, both streams together, and its exit code."""
    output, _, code = _captured(command, None, subprocess.STDOUT)
    return output, code


def capture_apart(command: list[str], text: bytes) -> tuple[str, str, int]:
    """Runs a command with `text` as its input; returns its two streams and its exit code."""
    return _captured(command, text, subprocess.PIPE)


def _captured(command: str | list[str], text: bytes | None, errors: int) -> tuple[str, str, int]:
    process = _start(
        command,
        stdin=subprocess.DEVNULL if text is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
    )
    try:
        out, err = process.communicate(text)
    except BaseException:
        _end(process)
        raise
    code = _exit_code(process.returncode)
    return out.decode("utf-8", "replace"), (err or b"").decode("utf-8", "replace"), code


def _start(command: str | list[str], **streams: Any) -> "subprocess.Popen[bytes]":
    if isinstance(command, str):
        shell = os.environ.get("SHELL") or "/bin/sh"
        return subprocess.Popen(command, shell=True, executable=shell, **streams)
    return subprocess.Popen(command, **streams)


def _feed(process: "subprocess.Popen[bytes]", text: bytes | None) -> None:
    """Gives a command its input from a thread, so that it can write before it has read all."""
    if text is None:
        return
    from threading import Thread

    def feed() -> None:
        assert process.stdin is not None
        try:
            process.stdin.write(text)
            process.stdin.close()
        except OSError:  # it ended without reading
            pass

    Thread(target=feed, daemon=True).start()


def _pass_on(process: "subprocess.Popen[bytes]") -> None:
    """Reads both streams as they come and writes them to Python's."""
    decoder = getincrementaldecoder("utf-8")
    streams: dict[IO[bytes], Any] = {}
    with selectors.DefaultSelector() as selector:
        for pipe, stream in ((process.stdout, sys.stdout), (process.stderr, sys.stderr)):
            assert pipe is not None
            streams[pipe] = stream
            selector.register(pipe, selectors.EVENT_READ, decoder("replace"))
        while selector.get_map():
            for key, _ in selector.select():
                data = os.read(key.fd, 65536)
                streams[key.fileobj].write(key.data.decode(data, final=not data))  # type: ignore[index]
                if not data:
                    selector.unregister(key.fileobj)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Ends a command for good; the interrupt itself has reached its group already."""
    for stop in (None, process.terminate, process.kill):
        if stop is not None:
            stop()
        try:
            process.wait(_GRACE_S)
            break
        except subprocess.TimeoutExpired:
            continue


def _exit_code(status: int) -> int:
    """A shell says 128 + n for a command that died of signal n; this says -n."""
    return -(status - 128) if status > 128 else status
