"""Requests and answers: JSON in and out, errors in the one shape that the server has."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit


class Refused(Exception):
    """The server said no. ``code`` is for programs, the rest for people."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        self.status = status
        self.code: str = body.get("code", "unknown")
        self.message: str = body.get("message", f"the server answered {status}")
        self.fix: str = body.get("fix", "")
        self.details: dict[str, Any] = body.get("details") or {}
        self.request_id: str = body.get("request_id", "")
        words = [f"{self.message} ({self.code})", self.fix]
        super().__init__("; ".join(word for word in words if word))


class Wire:
    """One server, as the holder of a key asks it. Not for several threads at once."""

    def __init__(self, url: str, key: str, timeout: float) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"`{url}` is no address of a server: one is http://HOST[:PORT]")
        self._secure = parts.scheme == "https"
        self._host, self._port = parts.hostname, parts.port
        self._headers = {"authorization": f"Bearer {key}"}
        self._timeout = timeout
        self._kept: http.client.HTTPConnection | None = None

    def close(self) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def _connect(self) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        return kind(self._host, self._port, timeout=self._timeout)

    def _send(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: bytes | None,
        headers: dict[str, str],
    ) -> http.client.HTTPResponse:
        connection.request(method, path, body, {**self._headers, **headers})
        return connection.getresponse()

    def bytes(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> bytes:
        """What a call answers, whole."""
        reused = self._kept is not None
        connection = self._kept or self._connect()
        self._kept = None
        try:
            answer = self._send(connection, method, path, body, headers or {})
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            # A kept connection may have been closed meanwhile; only what can be repeated is.
            connection.close()
            if not reused or method == "POST":
                raise
            connection = self._connect()
            answer = self._send(connection, method, path, body, headers or {})
        content = answer.read()
        self._kept = connection
        if answer.status >= 400:
            raise Refused(answer.status, _document(content))
        return content

    def json(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """What a call answers, as the document that it is."""
        sent = None if body is None else json.dumps(body).encode()
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if sent is not None:
            given["content-type"] = "application/json"
        content = self.bytes(method, path, sent, given)
        return json.loads(content) if content else None

    def events(self, path: str) -> Iterator[dict[str, Any]]:
        """The documents of a stream of server-sent events, as they come."""
        connection = self._connect()
        try:
            answer = self._send(connection, "GET", path, None, {})
            if answer.status >= 400:
                raise Refused(answer.status, _document(answer.read()))
            for line in answer:
                if line.startswith(b"data:"):
                    yield json.loads(line[len(b"data:") :])
        finally:
            connection.close()


def _document(content: bytes) -> dict[str, Any]:
    try:
        document = json.loads(content)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
