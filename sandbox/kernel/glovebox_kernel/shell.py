"""IPython's shell without a terminal, without files of its own and without a pseudo terminal."""

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from IPython.core.autocall import ExitAutocall
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magics import default_script_magics
from IPython.utils.text import LSString, SList
from traitlets import Any as AnyTrait
from traitlets import Bool, Instance, Type, default

from . import content, errors, forks
from .awaiting import CellLoop
from .compiling import BoundedCompiler
from .display import MessagePublisher, QuickFormatter, ResultHook
from .history import BoundedHistory
from .reporter import reporter
from .transforming import PlainCells, may_await
from .wire import PeerGone


class Exiter(ExitAutocall):
    """`exit` and `quit`: end the cell at once and the kernel after it."""

    def __call__(self, status: object = None) -> None:
        if isinstance(status, str):
            print(status, file=sys.stderr)
        reporter().exit_status = forks.exit_number(status)
        raise errors.KernelExit


class KernelShell(InteractiveShell):
    """The shell that cells run in. Nothing is read from or written to an IPython folder."""

    displayhook_class = Type(ResultHook)
    display_pub_class = Type(MessagePublisher)
    compiler_class = Type(BoundedCompiler)
    exiter = Instance(Exiter)
    display_page = Bool(True)
    # Any, where IPython has the class: naming it would import its application framework.
    profile_dir = AnyTrait()

    @default("exiter")
    def _exiter_default(self) -> Exiter:
        return Exiter(self)

    @default("profile_dir")
    def _profile_dir_default(self) -> Any:
        """A folder for the magics that keep something (`%store`), made when one asks for it."""
        from tempfile import mkdtemp

        from IPython.core.profiledir import ProfileDir

        return ProfileDir(location=mkdtemp(prefix="ipython-"), parent=self)

    def __init__(self, **options: Any) -> None:
        self._completer: Any = None
        self._cell_loop = CellLoop(reporter().interrupts)
        super().__init__(**options)
        self.loop_runner = self._cell_loop
        self._plain_cells = PlainCells(self)

    def init_ipython_dir(self, ipython_dir: str | None) -> None:
        """Leaves the folder unset, so that none is made."""

    def init_profile_dir(self, profile_dir: object) -> None:
        """Leaves it to `_profile_dir_default`."""

    def init_virtualenv(self) -> None:
        """The interpreter is the sandbox's own; variables do not change its path."""

    def init_history(self) -> None:
        """History in memory, bounded."""
        self.history_manager = BoundedHistory(shell=self, parent=self)
        self.configurables.append(self.history_manager)

    def init_display_formatter(self) -> None:
        """The formatter, with a short way for plain values."""
        self.display_formatter = QuickFormatter(parent=self)
        self.configurables.append(self.display_formatter)

    def init_completer(self) -> None:
        """Nobody completes here as a rule: `Completer` makes it when somebody does."""

    @property
    def Completer(self) -> Any:  # noqa: N802 (IPython's name)
        """IPython's completer."""
        if self._completer is None:
            super().init_completer()
        return self._completer

    @Completer.setter
    def Completer(self, completer: Any) -> None:  # noqa: N802
        self._completer = completer

    def init_magics(self) -> None:
        """IPython's magics, with a quicker way to run scripts."""
        super().init_magics()
        for name in ("script", *default_script_magics()):
            self.magics_manager.register_lazy(
                name, "glovebox_kernel.scripts:KernelScriptMagics", "cell"
            )

    def _tee(self, channel: str) -> AbstractContextManager[None]:
        """Keeps no copy of what is printed."""
        return nullcontext()

    def reset(self, new_session: bool = True, aggressive: bool = False) -> None:
        """Clears the namespace, but leaves what multiprocessing looks for in `__main__`."""
        super().reset(new_session, aggressive)
        self.user_module.__spec__ = None

    def enable_gui(self, gui: str | None = None) -> None:
        """There is no window system; the inline backend needs none."""

    def enable_matplotlib(self, gui: str | None = None) -> Any:
        """`%matplotlib`: figures are shown inline, whatever window system is asked for."""
        if gui not in (None, "auto", "inline", "agg", "svg", "pdf", "ps"):
            print(
                f"%matplotlib {gui}: there is no display here, figures are shown inline",
                file=sys.stderr,
            )
            gui = "inline"
        return super().enable_matplotlib("inline" if gui in (None, "auto") else gui)

    def transform_cell(self, raw_cell: str) -> str:
        """Makes Python of a cell, which it mostly is already."""
        if self._plain_cells.hold(raw_cell):
            self._last_input_line = raw_cell
            return raw_cell if raw_cell.endswith("\n") else raw_cell + "\n"
        return super().transform_cell(raw_cell)

    def should_run_async(self, raw_cell: str, *, transformed_cell: Any = None, **rest: Any) -> bool:
        """Whether a cell needs an event loop."""
        if transformed_cell is not None and not may_await(transformed_cell):
            return False
        return super().should_run_async(raw_cell, transformed_cell=transformed_cell, **rest)

    def system_piped(self, cmd: str) -> None:
        """`!cmd`."""
        from . import commands

        self.user_ns["_exit_code"] = commands.run(self.var_expand(cmd, depth=1))

    system = system_raw = system_piped

    def getoutput(self, cmd: str, split: bool = True, depth: int = 0) -> SList | LSString:
        """`x = !cmd`."""
        from . import commands

        text, code = commands.capture(self.var_expand(cmd, depth=depth + 1))
        self.user_ns["_exit_code"] = code
        return SList(text.splitlines()) if split else LSString(text)

    def showtraceback(
        self,
        exc_tuple: Any = None,
        filename: str | None = None,
        tb_offset: int | None = None,
        exception_only: bool = False,
        running_compiled_code: bool = False,
    ) -> None:
        """Sends the exception being handled. Whatever it is, something is sent."""
        try:
            info = self._get_exc_info(exc_tuple)
        except ValueError:
            print("No traceback available to show.", file=sys.stderr)
            return
        kind, value, trace = info
        errors.without_own_tail(trace)
        cut = errors.without_deep_middle(trace)
        errors.forget_sources()
        if reporter().is_child and isinstance(value, (SystemExit, errors.KernelExit)):
            status = value.code if isinstance(value, SystemExit) else reporter().exit_status
            forks.leave(reporter(), status)
        if isinstance(value, (errors.KernelExit, PeerGone)):
            return
        if self._cell_loop.interrupted and errors.is_cancellation(value):
            self._cell_loop.interrupted = False
            info = kind, value, _ = errors.as_interrupt(info)
        try:
            text = content.safe_text(value)
            if isinstance(value, SyntaxError):
                self.showsyntaxerror(filename, running_compiled_code)
            else:
                lines = self._lines(info, text, tb_offset, exception_only)
                if cut:
                    lines.insert(-1, f"[{cut} frames in the middle left out]")
                self._showtraceback(kind, value, lines)
        except PeerGone:
            raise
        except BaseException as failure:
            if isinstance(failure, KeyboardInterrupt):
                text = "<interrupted while it was being shown>"
            reporter().error(kind, text, errors.plain_lines(kind, value, text))
        else:
            if self.call_pdb:
                self.debugger(force=True)

    def _lines(
        self, info: errors.ExcInfo, text: str, tb_offset: int | None, exception_only: bool
    ) -> list[str]:
        """The traceback as it is shown. User code has a say in it, so it may raise anything."""
        kind, value, trace = info
        if kind is UsageError:
            return [f"UsageError: {text}"]
        if errors.holds_group(value):
            return errors.group_lines(info)
        if exception_only:
            lines = ["An exception has occurred, use %tb to see the full traceback.\n"]
            return lines + self.InteractiveTB.get_exception_only(kind, value)
        if hasattr(value, "_render_traceback_"):
            return list(value._render_traceback_())
        with errors.known_modules(trace):
            return self.InteractiveTB.structured_traceback(kind, value, trace, tb_offset=tb_offset)

    def _format_exception_for_storage(self, *_error: Any, **_options: Any) -> dict[str, Any]:
        """Stores no second traceback: nothing reads it, and making it runs the error's code."""
        return {}

    def _showtraceback(self, etype: type, evalue: BaseException, stb: list[str]) -> None:
        reporter().error(etype, evalue, stb)
