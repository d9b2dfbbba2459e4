"""A server of the program as it is built, with data of its own, on which code may run."""

import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request
from http.cookies import SimpleCookie
from pathlib import Path

START_LIMIT = 60
CALL_LIMIT = 120

# Names and passwords of people that are made.
ADMIN = {"email": "ada@example.com", "name": "Ada", "password": "correct horse battery"}
MEMBER = {"email": "vera@example.com", "name": "Vera", "password": "staple battery horse"}


class Server:
    """Started on entering, ended on leaving; its log is kept in `log`."""

    def __init__(self, program: Path, tree: str, log: Path):
        self.program, self.tree, self.log = program, tree, log
        self.address = self.link = self.cookie = ""

    def __enter__(self):
        # A short path: the sockets of sandboxes lie below it, and their ids walk through it.
        self.folder = tempfile.TemporaryDirectory(prefix="gbc-")
        os.chmod(self.folder.name, 0o711)
        self.log_file = self.log.open("wb")
        self.child = subprocess.Popen(
            [self.program, "serve", "--listen", "127.0.0.1:0", "--data", self.tree]
            + ["--server-data", self.folder.name],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self.log_file,
            text=True,
        )
        try:
            self._hear()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        # Sandboxes outlive their server, and nobody would come for these.
        if self.cookie and self.child.poll() is None:
            for sandbox in self.call("GET", "/api/v1/admin/sandboxes")["items"]:
                self.call("DELETE", f"/api/v1/admin/sandboxes/{sandbox['id']}")
        self.child.send_signal(signal.SIGTERM)
        self.child.wait(timeout=60)
        self.log_file.close()
        self.folder.cleanup()

    def _hear(self):
        """Waits for the address and the link for the first administrator."""
        late = threading.Timer(START_LIMIT, self.child.kill)
        late.start()
        said = ""
        for line in self.child.stdout:
            said += line
            address = re.search(r"Glovebox is at (\S+)", said)
            link = re.search(r"(\S+/setup#token=\S+)", said)
            if address and link:
                late.cancel()
                self.address, self.link = address[1], link[1]
                return
        late.cancel()
        raise SystemExit(f"contract: the server did not start; it said `{said}`; its log is {self.log}")

    def call(self, method: str, path: str, body=None):
        """Calls the API as the administrator and gives the document that comes back."""
        request = urllib.request.Request(self.address + path, method=method)
        if self.cookie:
            request.add_header("Cookie", self.cookie)
        if isinstance(body, bytes):
            request.data = body
        elif body is not None:
            request.add_header("Content-Type", "application/json")
            request.data = json.dumps(body).encode()
        try:
            with urllib.request.urlopen(request, timeout=CALL_LIMIT) as answer:
                for name, cookie in SimpleCookie(answer.headers.get("Set-Cookie", "")).items():
                    self.cookie = f"{name}={cookie.value}"
                text = answer.read()
                is_json = answer.headers["Content-Type"] == "application/json"
                return json.loads(text) if is_json else text.decode()
        except urllib.error.HTTPError as error:
            raise SystemExit(f"contract: {method} {path}: {error.code} {error.read().decode()}") from error

    def prove(self, path: str):
        """Has the profile tested until it passes: its gateway is still being started."""
        patience = time.monotonic() + START_LIMIT
        while not self.call("POST", path, {})["test"]["is_passed"]:
            if time.monotonic() > patience:
                raise SystemExit(f"contract: the profile's test does not pass; the log is {self.log}")

    def open(self) -> tuple[dict, str]:
        """Does what a first administrator does and runs something.

        Gives the ids of what is there then, by the names that the API has for them, and a key.
        """
        me = self.call("POST", "/api/v1/setup", {"token": self.link.split("#token=")[1], **ADMIN})
        workspace = me["memberships"][0]["workspace_id"]
        profile = self.call("GET", "/api/v1/admin/profiles")["items"][0]["profile"]["id"]
        one = f"/api/v1/admin/profiles/{profile}"
        self.prove(f"{one}/test")
        self.call("POST", f"{one}/canary", {})
        self.call("PUT", f"{one}/acknowledgements/shared_kernel", {})
        self.call("POST", f"{one}/activate", {})
        self.call(
            "PATCH", "/api/v1/admin/sandbox", {"code_execution": True, "default_profile_id": profile}
        )
        self.call(
            "PATCH", f"/api/v1/admin/workspaces/{workspace}", {"version": 1, "code_execution": True}
        )
        spare = self.call("POST", "/api/v1/admin/workspaces", {"name": "Spare"})
        member = self.call("POST", "/api/v1/admin/users", MEMBER)
        self.call(
            "POST",
            f"/api/v1/workspaces/{workspace}/members",
            {"email": MEMBER["email"], "role": "editor"},
        )
        key = self.call(
            "POST",
            f"/api/v1/workspaces/{workspace}/api-keys",
            {
                "name": "contract",
                "scopes": [
                    "code_execution:run",
                    "files:read",
                    "files:write",
                    "artifacts:read",
                    "threads:read",
                    "threads:write",
                    "knowledge:read",
                    "knowledge:write",
                ],
            },
        )
        sandbox = self.call("POST", "/api/v1/sandboxes", {"workspace_id": workspace})["id"]
        runs = f"/api/v1/sandboxes/{sandbox}/executions"
        code = "open('a.csv', 'w').write('a')"
        execution = self.call("POST", runs, {"code": code})["id"]
        # The stream ends when the execution has.
        self.call("GET", f"{runs}/{execution}/events")
        artifacts = self.call("GET", f"/api/v1/artifacts?workspace_id={workspace}")["items"]
        ids = {
            "workspace": workspace,
            "workspace_id": workspace,
            "spare_workspace": spare["id"],
            "profile": profile,
            "user": member["id"],
            "sandbox": sandbox,
            "execution": execution,
            "artifact": artifacts[0]["id"],
            "path": "a.csv",
            **self.talk(workspace),
        }
        return ids, key["token"]

    def talk(self, workspace: str) -> dict:
        """Begins a thread with a message in it, and brings files. Gives the ids of all that."""
        thread = self.call("POST", "/api/v1/threads", {"workspace_id": workspace})["id"]
        sent = self.call(
            "POST", f"/api/v1/threads/{thread}/messages", {"kind": "text", "text": "Hello"}
        )
        query = f"workspace_id={workspace}&name=a.txt"
        return {
            "thread": thread,
            "thread_id": thread,
            "message": sent["message_id"],
            "attachment": self.call("POST", f"/api/v1/attachments?{query}", b"a")["id"],
            "file": self.call("POST", f"/api/v1/knowledge?{query}", b"a")["id"],
        }
