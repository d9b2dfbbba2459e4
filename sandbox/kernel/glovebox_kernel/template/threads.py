"""How many threads numpy's linear algebra uses, which it has asked the environment long ago."""

import os
from ctypes import CDLL, c_int
from typing import Any

_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")

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
        self._setters = [setter for path in _loaded() if (setter := _setter(CDLL(path)))]

    def use(self, count: int) -> None:
        """Lets them, and programs to come, use that many threads."""
        for name in _VARIABLES:
            os.environ[name] = str(count)
        if count > 1:
            for setter in self._setters:
                setter(count)


def _loaded() -> set[str]:
    """The files of OpenBLAS that this process has mapped."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return {line.split(None, 5)[5].strip() for line in maps if "openblas" in line}


def _setter(library: CDLL) -> Any:
    for name in _SETTERS:
        setter = getattr(library, name, None)
        if setter is not None:
            setter.argtypes, setter.restype = [c_int], None
            return setter
    return None
