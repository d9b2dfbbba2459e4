"""Turns what IPython displays into messages. It keeps no copy of any output."""

from typing import Any

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.formatters import DisplayFormatter

from .reporter import reporter

_PLAIN_TYPES = frozenset({int, float, complex, bool, str, bytes, type(None)})
_SHOWN_AS_WRITTEN = _PLAIN_TYPES - {float}  # of which people set the precision


class QuickFormatter(DisplayFormatter):
    """IPython's formatter, which asks a dozen formats what they make of the number 2."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        text = self.formatters["text/plain"]
        self._usual = tuple(printers.copy() for printers in _printers(text))

    def format(
        self, obj: object, include: Any = None, exclude: Any = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The value in every format that has something to say about it."""
        if type(obj) in _PLAIN_TYPES and not (include or exclude or self._is_special(type(obj))):
            return {"text/plain": self._text(obj)}, {}
        return super().format(obj, include=include, exclude=exclude)

    def _text(self, obj: object) -> Any:
        """A plain value as text: what `repr` says, unless user code has asked for another."""
        text = self.formatters["text/plain"]
        if type(obj) in _SHOWN_AS_WRITTEN and _printers(text) == self._usual:
            try:
                return repr(obj)
            except ValueError:  # a number with too many digits: IPython tells how
                pass
        return text(obj)

    def _is_special(self, kind: type) -> bool:
        """Whether user code has said how this type is to be shown in other formats than text."""
        others = [f for name, f in self.formatters.items() if name != "text/plain"]
        for formatter in (self.ipython_display_formatter, self.mimebundle_formatter, *others):
            printers = formatter.type_printers
            if printers and any(base in printers for base in kind.__mro__):
                return True
        return False


def _printers(text: Any) -> tuple[dict[Any, Any], ...]:
    return text.type_printers, text.singleton_printers, text.deferred_printers


class MessagePublisher(DisplayPublisher):
    """Sends `display()`, `update_display()` and `clear_output()` as messages."""

    def _setup_execution_tracking(self) -> None:
        """Nothing is kept by execution here."""

    def publish(
        self,
        data: dict[str, Any],
        metadata: dict[str, Any] | None = None,
        source: object = None,
        *,
        transient: dict[str, Any] | None = None,
        update: bool = False,
        **_other: Any,
    ) -> None:
        """Sends one display; on the main thread it returns when the agent has it."""
        self._validate_data(data, metadata)
        reporter().display("update_display" if update else "display", data, metadata, transient)

    def clear_output(self, wait: bool = False) -> None:
        """Asks whoever shows the output to clear it, with `wait` before the next output."""
        reporter().clear_output(bool(wait))


class ResultHook(DisplayHook):
    """Sends the value of the last expression as a result."""

    def write_output_prompt(self) -> None:
        """There is no prompt."""

    def write_format_data(
        self, format_dict: dict[str, Any], md_dict: dict[str, Any] | None = None
    ) -> None:
        """Sends the value in all its formats."""
        reporter().result(self.prompt_count, format_dict, md_dict)

    def log_output(self, format_dict: dict[str, Any]) -> None:
        """Nothing is logged: `Out` keeps the objects, no text is kept of them."""

    def finish_displayhook(self) -> None:
        """Nothing is open: the message went out whole."""
        self._is_active = False

    def quiet(self) -> bool:
        """Whether the cell ends in a semicolon, which keeps its value from being shown."""
        try:
            cell = self.shell.history_manager.input_hist_parsed[-1]
        except (IndexError, AttributeError):
            return False
        # Reading tokens is a third of the time of a short cell.
        return ";" in cell and self.semicolon_at_end_of_expression(cell)

    def forget(self) -> None:
        """Lets go of the last values."""
        self._ = self.__ = self.___ = ""

    def cull_cache(self) -> None:
        """Forgets the oldest values when `Out` is full, as IPython does, but without a warning."""
        out = self.shell.user_ns.get("_oh", {})
        for number in sorted(out)[: max(int(len(out) * self.cull_fraction), 2)]:
            for names in (self.shell.user_ns, self.shell.user_ns_hidden):
                names.pop(f"_{number}", None)
            out.pop(number, None)
