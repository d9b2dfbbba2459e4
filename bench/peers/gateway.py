"""Runs a jupyter-kernel-gateway on loopback and speaks to its kernels, as its users do.

It measures nothing itself, and it changes no setting of the gateway but the rate limit, which
would drop most of a flood instead of passing it on.
"""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from importlib.metadata import version
from pathlib import Path

import websocket

START_LIMIT_S = 60


def name():
    """What the gateway is called in the results."""
    return f"jupyter-kernel-gateway {version('jupyter-kernel-gateway')}"


class Gateway:
    """One gateway process with a folder of its own; ends with everything that it started."""

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="glovebox-bench-")
        folder = self._folder.name
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.token = secrets.token_hex(16)
        environment = {
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "KG_AUTH_TOKEN": self.token,
            **dict.fromkeys(("HOME", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR"), folder),
            # Fonts are listed once for the machine and not once for each run.
            "MPLCONFIGDIR": str(Path(sys.prefix) / "matplotlib"),
        }
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "kernel_gateway",
                "--KernelGatewayApp.ip=127.0.0.1",
                f"--KernelGatewayApp.port={self.port}",
                "--ZMQChannelsWebsocketConnection.limit_rate=False",
            ],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        deadline = time.monotonic() + START_LIMIT_S
        while True:
            try:
                self.call("GET", "/api")
                return self
            except (OSError, urllib.error.URLError):
                if self._process.poll() is not None or time.monotonic() > deadline:
                    self.__exit__()
                    raise RuntimeError("the gateway did not start") from None
                time.sleep(0.05)

    def __exit__(self, *_):
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
        self._folder.cleanup()

    def call(self, method, path, body=None):
        """One request of the gateway's REST interface; returns the decoded answer or None."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"token {self.token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def processes(self):
        """The process ids of the gateway's kernels."""
        me = str(self._process.pid)
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    after_name = (entry / "stat").read_text().rpartition(")")[2].split()
                except OSError:
                    continue
                if after_name[1] == me:
                    found.append(int(entry.name))
        return found


class Kernel:
    """One kernel and one websocket to it."""

    def __init__(self, gateway):
        self._gateway = gateway
        self.id = gateway.call("POST", "/api/kernels", {"name": "python3"})["id"]
        self._session = uuid.uuid4().hex
        # The stock client checks UTF-8 in pure Python, which is slower than the gateway: without
        # the check the gateway is measured and not the client.
        self._socket = websocket.create_connection(
            f"ws://127.0.0.1:{gateway.port}/api/kernels/{self.id}/channels",
            header=[f"Authorization: token {gateway.token}"],
            timeout=120,
            skip_utf8_validation=True,
        )

    def send(self, code):
        """Sends code and returns the id of the request."""
        message = uuid.uuid4().hex
        self._socket.send(
            json.dumps(
                {
                    "header": {
                        "msg_id": message,
                        "username": "bench",
                        "session": self._session,
                        "msg_type": "execute_request",
                        "version": "5.3",
                    },
                    "parent_header": {},
                    "metadata": {},
                    "content": {
                        "code": code,
                        "silent": False,
                        "store_history": True,
                        "user_expressions": {},
                        "allow_stdin": False,
                        "stop_on_error": True,
                    },
                    "channel": "shell",
                }
            )
        )
        return message

    def receive(self):
        """The next message, whatever it is."""
        return json.loads(self._socket.recv())

    def until(self, message, wanted):
        """Reads until a message in answer to `message` for which `wanted` holds."""
        while True:
            answer = self.receive()
            if answer["parent_header"].get("msg_id") == message and wanted(answer):
                return answer

    def run(self, code):
        """Runs code to its end: the reply and the idle state have both come. Returns how many
        characters of output there were."""
        message = self.send(code)
        left, characters = {"execute_reply", "idle"}, 0
        while left:
            answer = self.receive()
            if answer["parent_header"].get("msg_id") != message:
                continue
            kind, content = answer["msg_type"], answer["content"]
            if kind == "stream":
                characters += len(content["text"])
            elif kind == "error":
                raise RuntimeError(f"{content['ename']}: {content['evalue']}")
            left.discard(content["execution_state"] if kind == "status" else kind)
        return characters

    def first_output(self, code):
        """Sends code and waits for its first output."""
        message = self.send(code)
        self.until(message, lambda answer: answer["msg_type"] == "stream")

    def interrupt(self):
        """Interrupts what runs."""
        self._gateway.call("POST", f"/api/kernels/{self.id}/interrupt")

    def close(self):
        """Ends the kernel. The gateway answers 500 for one that it is restarting; that one ends
        with the gateway."""
        self._socket.close()
        try:
            self._gateway.call("DELETE", f"/api/kernels/{self.id}")
        except urllib.error.HTTPError as error:
            if error.code != 500:
                raise
