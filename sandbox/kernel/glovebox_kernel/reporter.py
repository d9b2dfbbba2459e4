"""Everything the runner says to the agent about user code, for the shell's parts to call."""

import builtins
from os import getpid
from typing import Any

from . import content
from .calls import Calls
from .interrupt import Interrupts
from .streams import flush_c_library
from .wire import Channel

globals()["__builtins__"] = dict(vars(builtins))  # see wire.py


class Reporter:
    """The channel, the calls and the interrupts of this process, and the messages they make."""

    def __init__(self, channel: Channel, calls: Calls, interrupts: Interrupts) -> None:
        self.channel = channel
        self.calls = calls
        self.interrupts = interrupts
        self.process = getpid()
        self.exit_status: int | None = None
        """Set when user code asked the kernel to end; it does after the reply."""
        self._reported = False

    @property
    def is_child(self) -> bool:
        """Whether this process is a fork of the runner, made by user code."""
        return not self.channel.open

    def ready(self, language: str) -> None:
        """Says that the kernel takes code."""
        self.channel.send({"type": "ready", "language": language})

    def display(self, kind: str, data: object, metadata: object, transient: object) -> None:
        """Sends a display or an update of one; in a forked child prints its text."""
        data, metadata = content.bundle(data, metadata)
        if self.is_child:
            self._print(data)
            return
        _, transient = content.bundle(None, transient)
        self._numbered({"type": kind, "data": data, "metadata": metadata, "transient": transient})

    def clear_output(self, wait: bool) -> None:
        """Sends the wish to clear the output of the call."""
        if not self.is_child:
            self._numbered({"type": "clear_output", "wait": wait})

    def result(self, count: object, data: object, metadata: object) -> None:
        """Sends the value of a cell; in a forked child prints its text."""
        data, metadata = content.bundle(data, metadata)
        if self.is_child:
            self._print(data)
            return
        self._send(
            {
                "type": "result",
                "execution_count": content.cell_number(count),
                "data": data,
                "metadata": metadata,
            }
        )

    def error(self, kind: object, value: object, entries: object) -> None:
        """Sends an error; in a forked child prints its traceback."""
        fields = content.error_fields(kind, value, entries)
        if self.is_child:
            self.calls.mine().err.text.write("\n".join(fields["traceback"]) + "\n")
            return
        self._reported = True
        self._send({"type": "error", **fields})

    def next_frame(self) -> dict[str, Any]:
        """What the agent wants next. Blocks."""
        self.calls.make_room()
        return self.channel.receive()

    def end_rehearsal(self) -> None:
        """Makes ready for the first call: a wire will come, descriptors 1 and 2 stay."""
        self.channel.abandon()
        self.calls.start_over()

    def begin(self, execution: str) -> None:
        """Starts a call: from here on output and messages are its own."""
        self._reported = False
        self.calls.begin(execution, *self.channel.take_descriptors())

    def reply(self, execution: str, failure: BaseException | None, count: object) -> None:
        """Ends a call. A failure that no error message told of gets one first."""
        if failure is not None and not self._reported:
            text = content.safe_text(failure)
            self.error(type(failure), text, [f"{type(failure).__name__}: {text}"])
        self.flush()
        message: dict[str, Any] = {
            "type": "reply",
            "id": execution,
            "status": "ok" if failure is None else "error",
            "execution_count": content.cell_number(count),
        }
        if self.exit_status is not None:
            message["ending"] = True
        self.channel.send(message)

    def flush(self) -> None:
        """Brings everything printed so far by this thread's call to its descriptors."""
        call = self.calls.mine()
        call.out.flush_quietly()
        call.err.flush_quietly()
        flush_c_library()

    def _send(self, message: dict[str, Any]) -> None:
        self.flush()
        message["id"] = self.calls.mine().execution
        self.channel.send(message)

    def _numbered(self, message: dict[str, Any]) -> None:
        self.flush()
        message["id"] = self.calls.mine().execution
        self.channel.send_numbered(message, wait=True)

    def _print(self, data: dict[str, Any]) -> None:
        text = data.get("text/plain")
        if text is not None:
            self.calls.mine().out.text.write(f"{text}\n")


_reporter: Reporter | None = None


def start(reporter_of_process: Reporter) -> None:
    """Makes it the reporter of this process."""
    global _reporter
    _reporter = reporter_of_process


def reporter() -> Reporter:
    """The reporter of this process. Raises RuntimeError outside a kernel."""
    if _reporter is None:
        raise RuntimeError("there is no Glovebox kernel in this process")
    return _reporter


def in_kernel() -> bool:
    """Whether this very process is a kernel, and not a fork of one."""
    return _reporter is not None and not _reporter.is_child
