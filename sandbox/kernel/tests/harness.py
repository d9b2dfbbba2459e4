"""Plays the agent's part of the wire, so that the kernel can be tested without one."""

import array
import json
import os
import selectors
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

KERNEL_FOLDER = Path(__file__).resolve().parent.parent


class KernelDied(Exception):
    """The kernel closed its socket."""


@dataclass
class Outcome:
    """What one execute brought, in the order the agent saw it."""

    events: list[tuple[str, Any]] = field(default_factory=list)
    reply: dict[str, Any] = field(default_factory=dict)

    @property
    def stdout(self) -> str:
        return self._text("stdout")

    @property
    def stderr(self) -> str:
        return self._text("stderr")

    def _text(self, stream: str) -> str:
        data = b"".join(value for kind, value in self.events if kind == stream)
        return data.decode("utf-8", "replace")

    def all(self, kind: str) -> list[dict[str, Any]]:
        return [value for name, value in self.events if name == kind]

    @property
    def result(self) -> dict[str, Any] | None:
        found = self.all("result")
        return found[0] if found else None

    @property
    def error(self) -> dict[str, Any] | None:
        found = self.all("error")
        return found[0] if found else None

    @property
    def status(self) -> str:
        return self.reply["status"]


class Pipes:
    """The agent's ends of the two pipes of one call."""

    def __init__(self) -> None:
        out, self.child_out = os.pipe()
        err, self.child_err = os.pipe()
        self.ends = {out: "stdout", err: "stderr"}
        for end in self.ends:
            os.set_blocking(end, False)

    def close_child_ends(self) -> None:
        os.close(self.child_out)
        os.close(self.child_err)

    def drain(self, events: list[tuple[str, Any]]) -> None:
        """Takes what is in both pipes now."""
        for end in list(self.ends):
            while True:
                try:
                    data = os.read(end, 1 << 16)
                except BlockingIOError:
                    break
                if not data:
                    os.close(end)
                    del self.ends[end]
                    break
                events.append((self.ends[end], data))

    def close(self) -> None:
        for end in self.ends:
            os.close(end)
        self.ends = {}


def kernel_environment(folder: str) -> dict[str, str]:
    """The variables that a kernel, or what kernels are copied from, starts with."""
    return {
        "PATH": os.environ["PATH"],
        # Where the interpreter finds its own library outside of its tree.
        "LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", ""),
        "HOME": folder,
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "SHELL": "/bin/bash",
        "PYTHONUNBUFFERED": "1",
        "PYTHONPATH": str(KERNEL_FOLDER),
        "MPLBACKEND": "module://glovebox_backend",
        "MPLCONFIGDIR": os.environ.get("GLOVEBOX_TEST_MPLCONFIGDIR", folder + "/.mpl"),
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }


class FreshProcess(subprocess.Popen):
    """A kernel that was started, with its standard streams."""

    def __init__(self, folder: str, wire: socket.socket, out: int, err: int) -> None:
        super().__init__(
            [sys.executable, "-P", "-m", "glovebox_kernel"],
            stdin=wire.fileno(),
            stdout=out,
            stderr=err,
            cwd=folder,
            env=kernel_environment(folder),
            start_new_session=True,
        )


class Kernel:
    """A running kernel and this end of its socket.

    `start` makes the process, of the folder it works in, its end of the socket, and two pipes.
    """

    def __init__(self, folder: str, start: Callable[..., Any] = FreshProcess) -> None:
        self.socket, child = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self.folder = folder
        self._unread = b""
        self.pipes = Pipes()
        self.late: list[tuple[str, Any]] = []
        self.old_pipes: list[Pipes] = []
        started = time.monotonic()
        self.process = start(folder, child, self.pipes.child_out, self.pipes.child_err)
        child.close()
        self.pipes.close_child_ends()
        self.start_events: list[tuple[str, Any]] = []
        self.ready = self.read(self.start_events)
        self.start_ms = (time.monotonic() - started) * 1000
        self.number = 0

    def read(self, events: list[tuple[str, Any]], limit_s: float = 60.0) -> dict[str, Any]:
        """The next frame; output that comes meanwhile goes into `events`."""
        deadline = time.monotonic() + limit_s
        while True:
            if len(self._unread) >= 4:
                (length,) = struct.unpack(">I", self._unread[:4])
                if len(self._unread) >= 4 + length:
                    body = self._unread[4 : 4 + length]
                    self._unread = self._unread[4 + length :]
                    self.pipes.drain(events)
                    return json.loads(body, parse_constant=_no_constants)
            selector = selectors.DefaultSelector()
            with selector:
                selector.register(self.socket, selectors.EVENT_READ)
                for end in self.pipes.ends:
                    selector.register(end, selectors.EVENT_READ)
                ready = selector.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError(f"no frame from the kernel; so far {str(events)[-2000:]}")
            self.pipes.drain(events)
            if any(key.fileobj is self.socket for key, _ in ready):
                try:
                    data = self.socket.recv(1 << 20)
                except ConnectionResetError:
                    data = b""
                if not data:
                    raise KernelDied(f"the kernel closed its socket; output {str(events)[-2000:]}")
                self._unread += data

    def begin(self, code: str, silent: bool = False) -> str:
        """Sends an execute with fresh pipes and returns its id."""
        self.number += 1
        execution = f"call-{self.number}"
        self.old_pipes.append(self.pipes)
        for pipes in self.old_pipes:
            pipes.drain(self.late)
        self.old_pipes = [pipes for pipes in self.old_pipes if pipes.ends]
        self.pipes = Pipes()
        body = json.dumps(
            {"type": "execute", "id": execution, "code": code, "silent": silent}
        ).encode()
        frame = struct.pack(">I", len(body)) + body
        fds = array.array("i", [self.pipes.child_out, self.pipes.child_err])
        sent = self.socket.sendmsg([frame], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
        if sent < len(frame):
            self.socket.sendall(frame[sent:])
        self.pipes.close_child_ends()
        return execution

    def finish(self, execution: str, limit_s: float = 60.0) -> Outcome:
        """Reads until the reply of `execution`, acknowledging displays."""
        outcome = Outcome()
        while True:
            frame = self.read(outcome.events, limit_s)
            if "seq" in frame:
                self.send({"type": "ack", "seq": frame["seq"]})
            if frame["type"] == "reply":
                assert frame["id"] == execution, frame
                outcome.reply = frame
                return outcome
            outcome.events.append((frame["type"], frame))

    def run(self, code: str, silent: bool = False, limit_s: float = 60.0) -> Outcome:
        """Executes and waits for the reply."""
        return self.finish(self.begin(code, silent), limit_s)

    def send(self, message: dict[str, Any]) -> None:
        body = json.dumps(message).encode()
        self.socket.sendall(struct.pack(">I", len(body)) + body)

    def interrupt(self) -> None:
        """SIGINT to the kernel's process group, as the agent does it."""
        os.killpg(self.process.pid, signal.SIGINT)

    def drain_late(self) -> str:
        """What calls before the last one have printed since; both streams together."""
        for pipes in self.old_pipes:
            pipes.drain(self.late)
        return b"".join(data for _, data in self.late).decode("utf-8", "replace")

    def await_output(self, events: list[tuple[str, Any]], text: str, limit_s: float = 20) -> None:
        """Reads output of the running call until `text` is in it."""
        deadline = time.monotonic() + limit_s
        while text not in b"".join(v for k, v in events if k == "stdout").decode():
            with selectors.DefaultSelector() as selector:
                for end in self.pipes.ends:
                    selector.register(end, selectors.EVENT_READ)
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise TimeoutError(f"{text!r} was not printed")
            self.pipes.drain(events)

    def await_work(self, limit_s: float = 20) -> None:
        """Waits until the kernel waits for something, or has been at work for a while."""
        deadline = time.monotonic() + limit_s
        state, begun = self._state_and_ticks()
        while state != "S" and (ticks := self._state_and_ticks())[1] - begun < 3:
            state = ticks[0]
            if time.monotonic() > deadline:
                raise TimeoutError(f"the kernel neither waits nor works: {state}")
            time.sleep(0.001)

    def _state_and_ticks(self) -> tuple[str, int]:
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as stat:
            fields = stat.read().rpartition(")")[2].split()
        return fields[0], int(fields[11]) + int(fields[12])

    def private_kib(self) -> int:
        """Memory that no other process shares."""
        with open(f"/proc/{self.process.pid}/smaps_rollup", encoding="ascii") as memory:
            for line in memory:
                if line.startswith("Private_Dirty:"):
                    return int(line.split()[1])
        raise KernelDied("no memory figure")

    def memory_kib(self) -> int:
        """Resident memory of the kernel process."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            for line in status:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1])
        raise KernelDied("no memory figure")

    def stop(self) -> int:
        """Shuts the kernel down and returns its exit status."""
        try:
            self.send({"type": "shutdown"})
        except OSError:
            pass
        try:
            return self.process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            return self.process.wait(10)
        finally:
            self.socket.close()
            for pipes in [self.pipes, *self.old_pipes]:
                pipes.close()


def _no_constants(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
