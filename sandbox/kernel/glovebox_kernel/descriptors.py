"""The standard descriptors of a process whose code may have closed any of them."""

import builtins
from errno import EINVAL
from fcntl import F_DUPFD_CLOEXEC, fcntl
from os import O_RDONLY
from os import close as _close
from os import dup2 as _dup2
from os import open as _open

globals()["__builtins__"] = dict(vars(builtins))  # see wire.py

HIGH_FD = 240
"""Descriptors of the runner's own lie from here up, away from code that counts on low ones."""


def high_copy(fd: int) -> int:
    """A close-on-exec copy of a descriptor, high if the limit allows. Raises OSError."""
    try:
        return fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD)
    except OSError as error:
        if error.errno != EINVAL:
            raise
        return fcntl(fd, F_DUPFD_CLOEXEC, 3)


def close(fd: int) -> None:
    """Closes a descriptor that may be closed already."""
    try:
        _close(fd)
    except OSError:
        pass


def empty_input() -> None:
    """Puts /dev/null on descriptor 0."""
    null = _open("/dev/null", O_RDONLY)
    if null != 0:
        _dup2(null, 0)
        _close(null)


class Reserve:
    """Two descriptors kept free, so that an execute gets through to code that took all others."""

    def __init__(self) -> None:
        self._kept: list[int] = []

    def keep(self) -> None:
        """Takes them, to be given back by `free`."""
        try:
            while len(self._kept) < 2:
                self._kept.append(high_copy(0))
        except OSError:  # none to be had: the next execute may fail, this one need not
            pass

    def free(self) -> None:
        """Lets them go, for the descriptors that come with the next execute."""
        while self._kept:
            close(self._kept.pop())


def install(out: int, err: int) -> None:
    """Makes two descriptors the standard output and error, and closes them.

    Where code closed a standard descriptor they may themselves have got its number.
    """
    if out < 3 or err < 3:
        received = (out, err)
        out, err = high_copy(out), high_copy(err)
        for fd in received:
            _close(fd)
        if 0 in received:
            empty_input()
    _dup2(out, 1)
    _dup2(err, 2)
    _close(out)
    _close(err)
