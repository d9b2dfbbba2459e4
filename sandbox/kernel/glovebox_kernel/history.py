"""In-memory history of bounded size: no database, no threads."""

from IPython.core.history import HistoryManager
from traitlets import Bool

KEPT_INPUTS = 1000
"""The text of so many inputs is kept; older places in `In` hold an empty string."""


class BoundedHistory(HistoryManager):
    """IPython's history, so that `In`, `Out`, `_i5` and `%history` work within one kernel."""

    enabled = Bool(False)
    # Plain attributes, where IPython has each assignment checked and announced.
    _i00 = _i = _ii = _iii = ""

    def _get_hist_file_name(self, profile: str | None = None) -> str:
        return ":memory:"

    def store_inputs(self, line_num: int, source: str, source_raw: str | None = None) -> None:
        """Stores an input, and forgets the text of the one that is now too old.

        Does what IPython does, without what it does for the database that is not there.
        """
        source_raw = (source if source_raw is None else source_raw).rstrip("\n")
        if not self._exit_re.match(source_raw.strip()):
            self.input_hist_parsed.append(source.rstrip("\n"))
            self.input_hist_raw.append(source_raw)
            self._iii, self._ii, self._i, self._i00 = self._ii, self._i, self._i00, source_raw
            names = {"_i": self._i, "_ii": self._ii, "_iii": self._iii, f"_i{line_num}": source_raw}
            self.shell.push(names, interactive=False)
        old = line_num - KEPT_INPUTS
        if old > 0:
            self._forget(old)

    def forget(self) -> None:
        """Lets go of every input and output there was."""
        self.input_hist_parsed[:] = self.input_hist_raw[:] = [""]
        self.output_hist.clear()
        self.exceptions.clear()
        self._i00 = self._i = self._ii = self._iii = ""

    def _forget(self, line_num: int) -> None:
        for inputs in (self.input_hist_parsed, self.input_hist_raw):
            if line_num < len(inputs):
                inputs[line_num] = ""
        self.exceptions.pop(line_num, None)
        for names in (self.shell.user_ns, self.shell.user_ns_hidden):
            names.pop(f"_i{line_num}", None)

    def end_session(self) -> None:
        """Nothing is open that had to be ended."""
