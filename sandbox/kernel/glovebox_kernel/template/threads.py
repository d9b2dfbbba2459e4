"""How many threads numpy's linear algebra uses, which it has asked the environment long ago.

OpenBLAS starts its threads when it is told how many there are to be, and each of them then turns
in circles for some 20 ms, waiting for work. That would be in every copy, on processors that the
first cell needs. But it is also made to start them with its first work that they can share, as it
has to after a fork. So a template leaves it as it is in the child of a fork, and a copy only
writes down the number.
"""

import os
from ctypes import CDLL, c_int
from typing import Any

_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")

_COUNTS = ("blas_num_threads", "blas_cpu_number")
"""Where OpenBLAS has how many threads there are, and how many of them are used."""

_STOP = "blas_thread_shutdown_"
"""What it calls before a fork. The threads come back when they are needed."""

_SETTERS = (
    "scipy_openblas_set_num_threads64_",
    "scipy_openblas_set_num_threads",
    "openblas_set_num_threads64_",
    "openblas_set_num_threads",
)
"""What the function is called in the builds of OpenBLAS that come with numpy and scipy."""


class Blas:
    """The libraries for linear algebra that are loaded. They must run in one thread till now."""

    def __init__(self) -> None:
        self._counts: list[c_int] = []
        self._setters: list[Any] = []
        for library in map(CDLL, _loaded()):
            if (counts := _counts(library)) is not None:
                library[_STOP]()
                self._counts += counts
            elif (setter := _setter(library)) is not None:
                self._setters.append(setter)

    def use(self, count: int) -> None:
        """Lets them, and programs to come, use that many threads."""
        for name in _VARIABLES:
            os.environ[name] = str(count)
        for place in self._counts:
            place.value = count
        if count > 1:
            for setter in self._setters:
                setter(count)


def _loaded() -> set[str]:
    """The files of OpenBLAS that this process has mapped."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return {line.split(None, 5)[5].strip() for line in maps if "openblas" in line}


def _counts(library: CDLL) -> list[c_int] | None:
    """The places of its counts, where it shows them and can be made to start its threads later."""
    try:
        library[_STOP]
        return [c_int.in_dll(library, name) for name in _COUNTS]
    except (AttributeError, ValueError):
        return None


def _setter(library: CDLL) -> Any:
    for name in _SETTERS:
        setter = getattr(library, name, None)
        if setter is not None:
            setter.argtypes, setter.restype = [c_int], None
            return setter
    return None
