"""Makes what user code shows fit for the wire: plain JSON values, within a budget.

It never raises for what it is given: values that are not JSON become their text, and what is too
large becomes a note that says how large it was.
"""

import builtins
from binascii import b2a_base64
from math import isfinite
from typing import Any

from .wire import to_json

globals()["__builtins__"] = dict(vars(builtins))  # see wire.py

MAX_DISPLAY_BYTES = 8 * 1024 * 1024
"""One display or result holds at most this much JSON, all its representations together."""

MAX_METADATA_BYTES = 1024 * 1024
"""Metadata beyond this much JSON are left out."""

MAX_ERROR_VALUE_CHARACTERS = 64 * 1024
"""Longest `evalue`; the middle of a longer one is cut out."""

MAX_TRACEBACK_CHARACTERS = 1024 * 1024
"""Longest traceback, all its entries together."""

_MAX_DEPTH = 56  # the agent passes on 64 levels, those of the message itself included
_MAX_CELL_NUMBER = 2**31
_MAX_NUMBER_BITS = 63
_MAX_TEXT_BITS = 10_000


def safe_text(value: object) -> str:
    """`str(value)` for hostile values too. Only an interrupt gets out of it."""
    try:
        text = str(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return f"<{type(value).__name__}: its text cannot be made, {type(error).__name__}>"
    return text if type(text) is str else str.__str__(text)


def plain(value: object, depth: int = 0) -> Any:
    """`value` as strings, numbers, lists and dicts only."""
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return _whole_number(value)  # type: ignore[arg-type]
    if kind is float:
        return value if isfinite(value) else None  # type: ignore[arg-type]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return b2a_base64(value, newline=False).decode("ascii")
    if depth >= _MAX_DEPTH:
        return "…"
    if isinstance(value, dict):
        return {safe_text(k): plain(v, depth + 1) for k, v in list(value.items())}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item, depth + 1) for item in list(value)]
    if isinstance(value, str):
        return str.__str__(value)
    return _number_or_text(value)


def _whole_number(value: int) -> int | str:
    """The number, or its digits: readers of JSON refuse or round what is longer."""
    bits = value.bit_length()
    if bits <= _MAX_NUMBER_BITS:
        return value
    return str(value) if bits <= _MAX_TEXT_BITS else "<a number too long to send>"


def cell_number(count: object) -> int:
    """The number of a cell, which user code can set to anything."""
    small = isinstance(count, int) and 0 <= count <= _MAX_CELL_NUMBER
    return int(count) if small else 0  # type: ignore[call-overload]


def _number_or_text(value: Any) -> Any:
    """Numbers of other types (numpy's, for one) as plain numbers, anything else as text."""
    for convert, attribute in ((int, "__index__"), (float, "__float__")):
        if hasattr(type(value), attribute):
            try:
                return plain(convert(value))
            except Exception:
                break
    return safe_text(value)


def bundle(data: object, metadata: object) -> tuple[dict[str, Any], dict[str, Any]]:
    """Data by MIME type and its metadata, both plain and within the budget."""
    plain_data = _plain_dict(data)
    plain_metadata = _plain_dict(metadata)
    sizes = {mime: _size(value) for mime, value in plain_data.items()}
    if sum(sizes.values()) > MAX_DISPLAY_BYTES:
        plain_data = _within_budget(plain_data, sizes)
        plain_metadata = {k: v for k, v in plain_metadata.items() if k in plain_data}
    if plain_metadata and _size(plain_metadata) > MAX_METADATA_BYTES:
        plain_metadata = {}
    return plain_data, plain_metadata


def _plain_dict(value: object) -> dict[str, Any]:
    if not value:
        return {}
    try:
        made = plain(value)
        return made if isinstance(made, dict) else {"text/plain": safe_text(value)}
    except (Exception, RecursionError) as error:
        return {"text/plain": f"<a display that cannot be sent: {type(error).__name__}>"}


_LONGEST_ESCAPE = 6  # what JSON makes of one control character


def _size(value: Any) -> int:
    """Bytes of `value` on the wire. Of short text its length will do: it fits either way."""
    if type(value) is str and len(value) * _LONGEST_ESCAPE <= MAX_METADATA_BYTES:
        return len(value)
    return len(to_json(value).encode("utf-8", "replace"))


def _within_budget(data: dict[str, Any], sizes: dict[str, int]) -> dict[str, Any]:
    """The smaller representations that fit, and a note that names those left out."""
    kept: dict[str, Any] = {}
    left_out = []
    room = MAX_DISPLAY_BYTES
    for mime in sorted(sizes, key=sizes.__getitem__):
        if sizes[mime] <= room:
            kept[mime] = data[mime]
            room -= sizes[mime]
        else:
            left_out.append(f"{mime[:80]} of {sizes[mime] / 2**20:.1f} MiB")
    note = (
        f"[left out: {', '.join(left_out)[:400]}; "
        f"a display holds at most {MAX_DISPLAY_BYTES // 2**20} MiB]"
    )
    text = kept.get("text/plain")
    kept["text/plain"] = f"{text}\n{note}" if isinstance(text, str) else note
    return kept


def shortened(text: str, limit: int) -> str:
    """`text`, or its beginning and end with a note between them."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"


def error_fields(kind: object, value: object, entries: object) -> dict[str, Any]:
    """`ename`, `evalue` and `traceback` of an error message."""
    name = getattr(kind, "__name__", None)
    lines = [safe_text(entry) for entry in entries] if isinstance(entries, list) else []
    while len(lines) > 3 and sum(map(len, lines)) > MAX_TRACEBACK_CHARACTERS:
        del lines[len(lines) // 2]
    share = MAX_TRACEBACK_CHARACTERS // max(len(lines), 1)
    return {
        "ename": safe_text(name if isinstance(name, str) else kind)[:256],
        "evalue": shortened(safe_text(value), MAX_ERROR_VALUE_CHARACTERS),
        "traceback": [shortened(line, max(share, 1024)) for line in lines],
    }
