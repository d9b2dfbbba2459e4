"""Keeps the source of cells for tracebacks, within bounds."""

import linecache
from binascii import crc32

from IPython.core.compilerop import CachingCompiler

KEPT_CELLS = 1000
"""The source of so many cells is kept in any case."""

KEPT_DEFINITIONS = 10_000
"""And that of so many cells which may have defined something that still lives."""

_CELL = "<ipython-input-"
_DEFINING = ("def ", "class ", "lambda", " for ")


class BoundedCompiler(CachingCompiler):
    """IPython's compiler, which would keep the source of every cell for ever."""

    def __init__(self) -> None:
        super().__init__()
        # Dicts for their order: names by age.
        self._recent: dict[str, None] = {}
        self._defining: dict[str, None] = {}

    def get_code_name(self, raw_code: str, transformed_code: str, number: int) -> str:
        """A name for a cell. IPython's own takes a hash that brings OpenSSL in, 3 ms at start."""
        checksum = crc32(transformed_code.encode("utf-8", "surrogatepass"))
        return f"{_CELL}{number}-{checksum:08x}>"

    def cache(self, transformed_code: str, number: int = 0, raw_code: str | None = None) -> str:
        """Keeps the source of a cell and forgets that of a cell too old to matter."""
        name = super().cache(transformed_code, number, raw_code=raw_code)
        if any(word in transformed_code for word in _DEFINING):
            self._keep(self._defining, name, KEPT_DEFINITIONS)
        else:
            self._keep(self._recent, name, KEPT_CELLS)
        return name

    def forget(self) -> None:
        """Lets go of every cell there was."""
        for name in self._filename_map:
            linecache.cache.pop(name, None)
        for names in (self._filename_map, self._recent, self._defining):
            names.clear()

    def _keep(self, names: dict[str, None], name: str, most: int) -> None:
        names.pop(name, None)
        names[name] = None
        if len(names) > most:
            oldest = next(iter(names))
            del names[oldest]
            linecache.cache.pop(oldest, None)
            self._filename_map.pop(oldest, None)


def is_cell(filename: str) -> bool:
    """Whether it is what the code of a cell has in the place of a file."""
    return filename.startswith(_CELL)
