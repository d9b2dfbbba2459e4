"""`input()` and `getpass()`: nobody is there to answer, so they say so at once."""

import builtins
import getpass
from typing import Any, NoReturn

from IPython.core.error import StdinNotImplementedError


def refuse() -> None:
    """Replaces the functions that ask a person."""
    builtins.input = _refusal("input()")
    getpass.getpass = _refusal("getpass()")


def _refusal(name: str) -> Any:
    def ask(*_args: Any, **_options: Any) -> NoReturn:
        raise StdinNotImplementedError(
            f"{name} is not possible here: nobody is there to answer. "
            "Put the value into the code or into a file instead."
        )

    ask.__name__ = ask.__qualname__ = name.removesuffix("()")
    ask.__doc__ = "Always raises: nobody is there to answer."
    return ask
