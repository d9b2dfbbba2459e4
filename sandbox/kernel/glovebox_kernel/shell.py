"""IPython's shell without a terminal, without files of its own and without a pseudo terminal."""

from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from traitlets import Bool, Type

from .display import MessagePublisher, ResultHook
from .history import BoundedHistory
from .session import session


class KernelShell(InteractiveShell):
    """The shell that cells run in. Nothing is read from or written to an IPython folder."""

    displayhook_class = Type(ResultHook)
    display_pub_class = Type(MessagePublisher)
    display_page = Bool(True)

    def init_ipython_dir(self, ipython_dir: str | None) -> None:
        """Leaves the folder unset, so that none is made."""

    def init_profile_dir(self, profile_dir: object) -> None:
        """Leaves it to `_profile_dir_default`: made when something asks for it."""

    def init_virtualenv(self) -> None:
        """The interpreter is the sandbox's own; variables do not change its path."""

    def init_history(self) -> None:
        """History in memory, bounded."""
        self.history_manager = BoundedHistory(shell=self, parent=self)
        self.configurables.append(self.history_manager)

    def _showtraceback(self, etype: type, evalue: BaseException, stb: list[str]) -> None:
        session().error(etype, evalue, stb)
