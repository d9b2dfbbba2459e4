"""Kernels that are copied from a template, with `template_process.py` as the template."""

import array
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from harness import Kernel, kernel_environment


def start_template(
    arguments: list[str], folder: str, line: socket.socket, **options: Any
) -> subprocess.Popen[bytes]:
    """Starts Python as a template is started: with its line as descriptor 3. Takes the line."""
    with line:
        fd = line.fileno()
        return subprocess.Popen(
            [sys.executable, "-P", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            cwd=folder,
            env=kernel_environment(folder),
            pass_fds=[3],
            preexec_fn=lambda: os.dup2(fd, 3) if fd != 3 else os.set_inheritable(3, True),
            **options,
        )


class TemplateProcess:
    """A running template."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="template-test-")
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._line.settimeout(60)
        self._ended: dict[int, int] = {}
        self._errors = tempfile.TemporaryFile()
        self.process = start_template(
            [str(Path(__file__).with_name("template_process.py"))],
            self.folder,
            theirs,
            stderr=self._errors,
        )
        self.modules = set(self._next()["modules"])

    def kernel(self, folder: str, **order: Any) -> Kernel:
        """A kernel that works in a folder; for the order see `template_process.py`."""
        return Kernel(folder, partial(Copy, self, order))

    def fork(self, folder: str, wire: socket.socket, order: dict[str, Any]) -> int:
        """Makes a copy, with one end of a socket. Returns its process id."""
        order = {
            "folder": folder,
            "threads": 1,
            "reseed": 1,
            "in_advance": 0,
            "process_ids_of_its_own": False,
            **order,
        }
        rights = array.array("i", [wire.fileno()])
        self._line.sendmsg(
            [json.dumps(order).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)]
        )
        while (answer := self._next())["is"] == "ended":
            self._ended[answer["pid"]] = answer["status"]
        return answer["pid"]

    def status(self, pid: int, limit_s: float) -> int | None:
        """The exit status of a copy, once it has one."""
        deadline = time.monotonic() + limit_s
        while pid not in self._ended:
            self._line.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                answer = self._next()
            except TimeoutError:
                return None
            finally:
                self._line.settimeout(60)
            self._ended[answer["pid"]] = answer["status"]
        return self._ended[pid]

    def stop(self) -> None:
        self._line.close()
        self.process.wait(10)
        self._errors.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _next(self) -> dict[str, Any]:
        text = self._line.recv(1 << 20)
        if not text:
            self._errors.seek(0)
            raise RuntimeError(f"the template died: {self._errors.read().decode()}")
        return json.loads(text)


class Copy:
    """A kernel's process that a template made, with what tests use of `Popen`."""

    def __init__(
        self, template: TemplateProcess, order: dict[str, Any], folder: str, wire: Any, *_pipes: int
    ) -> None:
        self._template = template
        self.pid = template.fork(folder, wire, order)

    def wait(self, timeout: float) -> int:
        status = self._template.status(self.pid, timeout)
        if status is None:
            raise subprocess.TimeoutExpired("a copy", timeout)
        return status
