"""What a program sees: a server, its sandboxes, what code in them says and leaves."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from ._wire import Refused, Wire

__all__ = ["Artifact", "Client", "Event", "Refused", "Result", "Sandbox"]

#: The events after which nothing comes.
_LAST = ("execution_ended", "failed", "sandbox_gone")


@dataclass(frozen=True)
class Event:
    """What happened while code ran."""

    seq: int
    type: str
    at: str
    data: dict[str, Any]

    @property
    def text(self) -> str:
        """What was printed, or the plain form of what is shown; empty for other events."""
        if self.type in ("stdout", "stderr"):
            if "text" in self.data:
                return str(self.data["text"])
            return base64.b64decode(self.data["base64"]).decode(errors="replace")
        shown = self.data.get("data")
        return str(shown.get("text/plain", "")) if isinstance(shown, dict) else ""


@dataclass
class Result:
    """What one run of code came to."""

    stdout: str = ""
    stderr: str = ""
    #: The plain form of the last expression; empty where there is none.
    value: str = ""
    #: The exception's class and text; empty where none reached the top.
    error: str = ""
    events: list[Event] = field(default_factory=list)

    @property
    def succeeded(self) -> bool:
        """Whether the code ran to its end."""
        last = self.events[-1] if self.events else None
        outcome = last.data.get("outcome", {}) if last else {}
        return outcome.get("how") == "succeeded"


@dataclass(frozen=True)
class Artifact:
    """A file that left a sandbox."""

    id: str
    name: str
    version: int
    bytes: int
    sha256: str
    media_type: str
    _wire: Wire = field(repr=False, compare=False)

    def content(self) -> bytes:
        """Its bytes, as the code wrote them."""
        return self._wire.bytes("GET", f"/api/v1/artifacts/{self.id}/content")


class Sandbox:
    """One sandbox. As a context it ends when the context does."""

    def __init__(self, wire: Wire, view: dict[str, Any]) -> None:
        self._wire = wire
        self.id: str = view["id"]
        self.view = view
        self._path = f"/api/v1/sandboxes/{self.id}"

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def run(self, code: str, time_limit: int | None = None) -> Iterator[Event]:
        """Runs code and gives the events as they come. Variables stay for the next run."""
        body: dict[str, Any] = {"code": code}
        if time_limit is not None:
            body["time_limit_seconds"] = time_limit
        path = f"{self._path}/executions"
        # Named, so that asking again after a broken connection cannot run it twice.
        key = str(uuid.uuid4())
        accepted = self._wire.json("POST", path, body, idempotency_key=key)
        yield from self.events(accepted["id"])

    def events(self, execution: str, after: int = 0) -> Iterator[Event]:
        """The events of a run after number ``after``, until it has ended."""
        path = f"{self._path}/executions/{execution}/events"
        while True:
            for document in self._wire.events(f"{path}?after={after}"):
                event = Event(
                    document["seq"], document["type"], document["at"], document.get("data") or {}
                )
                after = event.seq
                yield event
                if event.type in _LAST:
                    return

    def result(self, code: str, time_limit: int | None = None) -> Result:
        """Runs code to its end and gives what it came to."""
        result = Result()
        for event in self.run(code, time_limit):
            result.events.append(event)
            if event.type == "stdout":
                result.stdout += event.text
            elif event.type == "stderr":
                result.stderr += event.text
            elif event.type == "result":
                result.value = event.text
            elif event.type == "error":
                result.error = f"{event.data['name']}: {event.data['value']}"
        return result

    def interrupt(self, execution: str, kill: bool = False) -> None:
        """Interrupts what runs; with ``kill`` its variables are gone."""
        path = f"{self._path}/executions/{execution}/interrupt"
        self._wire.json("POST", path, {"kill": kill})

    def put(self, path: str, content: bytes) -> None:
        """Pushes a file in, in place of one of that name."""
        self._wire.bytes("PUT", f"{self._path}/files/{quote(path)}", content)

    def get(self, path: str) -> bytes:
        """Fetches a file."""
        return self._wire.bytes("GET", f"{self._path}/files/{quote(path)}")

    def files(self) -> list[str]:
        """The names of all files, in order."""
        names: list[str] = []
        cursor = ""
        while True:
            page = self._wire.json("GET", f"{self._path}/files{cursor}")
            names += [item["name"] for item in page["items"] if item["kind"] == "file"]
            if not page["next_cursor"]:
                return names
            cursor = f"?cursor={quote(page['next_cursor'], safe='')}"

    def artifacts(self) -> list[Artifact]:
        """What left it, the newest first."""
        return _artifacts(self._wire, f"sandbox_id={self.id}")

    def end(self) -> None:
        """Ends it: nothing of it is left afterwards. What left it stays with the server."""
        self.view = self._wire.json("DELETE", self._path)


class Client:
    """A server, as the holder of a key."""

    def __init__(self, url: str, key: str, timeout: float = 120.0) -> None:
        self._wire = Wire(url, key, timeout)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._wire.close()

    def sandbox(self, size: str | None = None) -> Sandbox:
        """Makes a sandbox; ``size`` is its class: ``SMALL``, ``MEDIUM`` or ``LARGE``."""
        body = {} if size is None else {"class": size}
        return Sandbox(self._wire, self._wire.json("POST", "/api/v1/sandboxes", body))

    def find(self, sandbox: str) -> Sandbox:
        """A sandbox that is there already, or was."""
        return Sandbox(self._wire, self._wire.json("GET", f"/api/v1/sandboxes/{sandbox}"))

    def artifacts(self) -> list[Artifact]:
        """What left one's sandboxes, the newest first."""
        return _artifacts(self._wire, "")


def _artifacts(wire: Wire, query: str) -> list[Artifact]:
    found: list[Artifact] = []
    cursor: str | None = None
    while True:
        words = [word for word in (query, f"cursor={cursor}" if cursor else "") if word]
        page = wire.json("GET", "/api/v1/artifacts?" + "&".join(words))
        for item in page["items"]:
            found.append(
                Artifact(
                    id=item["id"],
                    name=item["name"],
                    version=item["version"],
                    bytes=item["bytes"],
                    sha256=item["sha256"],
                    media_type=item["media_type"],
                    _wire=wire,
                )
            )
        cursor = page["next_cursor"]
        if not cursor:
            return found
