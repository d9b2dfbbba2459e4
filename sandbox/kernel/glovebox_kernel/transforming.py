"""Tells cells that are Python and nothing else, so that they need not be rewritten.

IPython reads every cell token by token in search of magics, prompts and commands, and asks eight
checkers about a cell of one line. Most cells have none of what they look for, and for a short
one the search takes longer than the cell.
"""

import re
from typing import Any

from IPython.core.autocall import IPyAutocall
from IPython.core.macro import Macro

_SIGNS = re.compile(
    r"""
    [%!?]               # magics, commands, help
    | >>> | \.\. | In\ \[     # prompts
    | (?: \A | [\n\r\v\f\x1c-\x1e\x85\u2028\u2029] ) \s* [,;/]     # calls without brackets
    """,
    re.VERBOSE,
)
"""What IPython's transformers look for; it may stand where they would leave it alone."""

_WORD = re.compile(r"[\w*]*")


class PlainCells:
    """What IPython would leave as it is. Make it when the shell is complete."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._manager = shell.input_transformer_manager
        self._prefilters = shell.prefilter_manager
        self._usual = self._transformers()

    def hold(self, cell: str) -> bool:
        """Whether a cell is plain Python to IPython, also after what user code has set up."""
        if not cell or cell[0].isspace() or _SIGNS.search(cell):
            return False
        if self._transformers() != self._usual or self._shell.input_transformers_post:
            return False
        return len(cell.splitlines()) > 1 or not self._names_a_command(cell)

    def _transformers(self) -> list[Any]:
        manager, prefilters = self._manager, self._prefilters
        return [
            *manager.cleanup_transforms,
            *manager.line_transforms,
            *manager.token_transformers,
            *prefilters.transformers,
            *prefilters.checkers,
            prefilters.handlers.get("normal"),
        ]

    def _names_a_command(self, line: str) -> bool:
        """Whether the first word is one that IPython acts on: `exit`, `ls`, the name of a magic."""
        shell = self._shell
        magics = shell.magics_manager
        word = _WORD.match(line)[0]  # type: ignore[index]
        return (
            word in magics.magics["line"]
            or word in magics.lazy_magics
            or shell.autocall
            or isinstance(shell.user_ns.get(word), (IPyAutocall, Macro))
        )


def may_await(cell: str) -> bool:
    """Whether a cell may need an event loop. Looking closer means compiling it."""
    return "await" in cell or "async" in cell
