"""Frames between the runner and the agent, and nothing above that.

A frame is four bytes of big-endian length and a UTF-8 JSON object. Descriptors arrive beside the
first byte of an ``execute`` frame. User code shares this process and may replace anything in it,
so everything used after start is bound here, at import, from C modules that cannot be patched.
"""

import builtins
import json.decoder
import json.encoder
from _socket import AF_UNIX, CMSG_SPACE, MSG_CMSG_CLOEXEC, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET
from _socket import socket as _socket
from _thread import RLock, get_ident
from collections import deque
from os import close as _close
from select import POLLIN, poll
from struct import Struct
from typing import Any

from .interrupt import Interrupts

# Functions made below look names up in this copy: code that replaces a builtin does not reach them.
globals()["__builtins__"] = dict(vars(builtins))

MAX_FRAME_BYTES = 64 * 1024 * 1024
"""A frame longer than this, in bytes, means that the peer is broken."""

_READ_BYTES = 64 * 1024  # more would be mapped and unmapped for every call
_LENGTH = Struct(">I")
_FD = Struct("i")
_FDS_PER_EXECUTE = 2
_ANCILLARY_BYTES = CMSG_SPACE(16 * 4)

_scan = json.decoder.JSONDecoder().scan_once  # type: ignore[attr-defined]


def _unencodable(value: object) -> Any:
    raise TypeError(f"{type(value).__name__} is not JSON")


_encode_parts = json.encoder.c_make_encoder(  # type: ignore[attr-defined]
    None, _unencodable, json.encoder.encode_basestring, None, ":", ",", False, False, False
)


def to_json(value: object) -> str:
    """The JSON text of plain data; ValueError or TypeError for anything else (NaN included)."""
    return "".join(_encode_parts(value, 0))


class PeerGone(BaseException):
    """The socket to the agent is closed or broken. Nothing can be reported any more.

    A BaseException, so that no handler for errors of user code takes it for one.
    """


class Channel:
    """The runner's end of the socket. Any thread may send; only the main thread reads."""

    def __init__(self, interrupts: Interrupts) -> None:
        self._interrupts = interrupts
        self._lock = RLock()
        self._main = get_ident()
        self.open = False
        """False before there is a socket, and in a forked child, which must not use it."""

    def connect(self, fd: int) -> None:
        """Takes a socket over, and begins to count from the start."""
        self._socket = _socket(AF_UNIX, SOCK_STREAM, 0, fd)
        self._fd = fd
        self._unread = bytearray()
        self._fds: deque[int] = deque()
        self._waiting: deque[dict[str, Any]] = deque()
        self._seq = 0
        self._acked = 0
        self._poll = poll()
        self._poll.register(fd, POLLIN)
        self.open = True

    def send(self, message: dict[str, Any]) -> None:
        """Sends one frame whole. Raises PeerGone when that is not possible any more."""
        body = to_json(message).encode("utf-8", "replace")
        self._interrupts.hold()
        try:
            with self._lock:
                if self.open:
                    self._socket.sendall(_LENGTH.pack(len(body)) + body)
        except OSError as error:
            raise PeerGone(f"sending to the agent: {error}") from None
        finally:
            self._interrupts.release()

    def send_numbered(self, message: dict[str, Any], wait: bool) -> None:
        """Sends a frame with a sequence number; with `wait`, returns when the agent has it.

        The wait can be interrupted; the acknowledgement that comes later is then passed over.
        """
        with self._lock:
            self._seq += 1
            seq = message["seq"] = self._seq
            self.send(message)
        if not wait or get_ident() != self._main:
            return
        while self._acked < seq and self.open:
            # Only this wait may be interrupted: an exception while reading would lose bytes.
            if not self._has_frame():
                self._poll.poll()
            self._take_frame_in()

    def receive(self) -> dict[str, Any]:
        """The next frame that is not an acknowledgement. Blocks. Raises PeerGone at the end."""
        while not self._waiting:
            self._take_frame_in()
        return self._waiting.popleft()

    def take_descriptors(self) -> tuple[int, int]:
        """The two descriptors that came with the oldest execute frame not yet served."""
        if len(self._fds) < _FDS_PER_EXECUTE:
            raise PeerGone("an execute came without its two descriptors")
        return self._fds.popleft(), self._fds.popleft()

    def abandon(self) -> None:
        """Closes this process's copy of the socket: for a forked child."""
        self.open = False
        try:
            _close(self._fd)
        except OSError:
            pass
        self._socket.detach()

    def _take_frame_in(self) -> None:
        """Reads one frame and keeps what it says, as one step for interrupts."""
        self._interrupts.hold()
        try:
            (length,) = _LENGTH.unpack(self._take(_LENGTH.size))
            if length > MAX_FRAME_BYTES:
                raise PeerGone(f"a frame of {length} bytes")
            frame, _ = _scan(self._take(length).decode("utf-8"), 0)
            if frame["type"] == "ack":
                self._acked = max(self._acked, int(frame["seq"]))
            else:
                self._waiting.append(frame)
        except OSError as error:
            raise PeerGone(f"reading from the agent: {error}") from None
        except (ValueError, KeyError, TypeError, StopIteration) as error:
            raise PeerGone(f"a frame that is not one of ours: {error!r}") from None
        finally:
            self._interrupts.release()

    def _has_frame(self) -> bool:
        """Whether a whole frame has been read already, together with one before it."""
        have = len(self._unread) - _LENGTH.size
        return have >= 0 and have >= _LENGTH.unpack_from(self._unread)[0]

    def _take(self, count: int) -> bytearray:
        while len(self._unread) < count:
            data, ancillary, _, _ = self._socket.recvmsg(
                _READ_BYTES, _ANCILLARY_BYTES, MSG_CMSG_CLOEXEC
            )
            for level, kind, value in ancillary:
                if level == SOL_SOCKET and kind == SCM_RIGHTS:
                    usable = len(value) - len(value) % 4
                    for (fd,) in _FD.iter_unpack(value[:usable]):
                        self._fds.append(fd)
            if not data:
                raise PeerGone("the agent closed the socket")
            self._unread += data
        taken = self._unread[:count]
        del self._unread[:count]
        return taken
