"""In-memory history of bounded size: no database, no threads."""

from IPython.core.history import HistoryManager
from traitlets import Bool

KEPT_INPUTS = 1000
"""The text of so many inputs is kept; older places in `In` hold an empty string."""


class BoundedHistory(HistoryManager):
    """IPython's history, so that `In`, `Out`, `_i5` and `%history` work within one kernel."""

    enabled = Bool(False)

    def _get_hist_file_name(self, profile: str | None = None) -> str:
        return ":memory:"

    def store_inputs(self, line_num: int, source: str, source_raw: str | None = None) -> None:
        """Stores an input, and forgets the text of the one that is now too old."""
        super().store_inputs(line_num, source, source_raw)
        self.db_input_cache.clear()
        old = line_num - KEPT_INPUTS
        if old <= 0:
            return
        for inputs in (self.input_hist_parsed, self.input_hist_raw):
            if old < len(inputs):
                inputs[old] = ""
        self.exceptions.pop(old, None)
        for names in (self.shell.user_ns, self.shell.user_ns_hidden):
            names.pop(f"_i{old}", None)

    def end_session(self) -> None:
        """Nothing is open that had to be ended."""
