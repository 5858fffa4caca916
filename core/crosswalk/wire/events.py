"""From a frame's bytes to a parsed event: JSON within limits, with every failure typed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, TypeAlias

import attrs
import orjson

from crosswalk.errors import FramingError, InvalidJSONError, LineTooLongError, NestingTooDeepError
from crosswalk.lazy import pattern
from crosswalk.types.json import dump_json, load_json
from crosswalk.wire.framing import DEFAULT, Limits

if TYPE_CHECKING:
    from collections.abc import Iterable


# ------------------------------------------------------------------------------ surrogates
# Halves of surrogate pairs: JSON allows them (RFC 8259, section 8.2), and servers cut a character in two.
#
# A server that streams UTF-16 code units ends a text in one event with ``\ud83d`` and goes on with ``\ude00`` in a
# later
# one. Until then this event and those after it wait. A half without its other half becomes U+FFFD.


REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
_MOST_WAITING: Final = 32


@attrs.define(eq=False)
class HeldEvent:
    """An event that waits.

    Attributes:
        event: the event, decoded.
        name: its SSE name.
        source: its original bytes or object.
        open_strings: the number of its strings that end with the first half of a pair.
    """

    event: Any
    name: str | None
    source: Any
    open_strings: int = 0


class HalfBuffer:
    """Holds events back, in their order, while a string of the first one ends with the first half of a pair.

    The next text at the same path has the other half, or nothing has. At most 32 events wait.

    Attributes:
        waiting: these events.
    """

    def __init__(self) -> None:
        self.waiting: list[HeldEvent] = []
        self._open_halves: dict[tuple[Any, ...], tuple[HeldEvent, Any, Any]] = {}

    def push(self, event: Any, name: str | None, source: Any) -> list[HeldEvent]:
        """Return the events that the next *event* completes. A second half goes to the event with the first."""
        held_event = HeldEvent(event, name, source)
        self.waiting.append(held_event)
        for container, key, path in [*_strings(event)]:
            text = container[key]
            if path in self._open_halves and text:
                earlier_event, holder, position = self._open_halves.pop(path)
                earlier_event.open_strings -= 1
                if _is_second(text[0]):
                    holder[position] = _whole(holder[position] + text[0])
                    container[key] = text = text[1:]
            if _is_first(text[-1:]):
                self._open_halves[path] = held_event, container, key
                held_event.open_strings += 1
        if len(self.waiting) > _MOST_WAITING:
            return self.flush()
        first_waiting = next(
            (position for position, one in enumerate(self.waiting) if one.open_strings), None
        )
        complete_events, self.waiting = (
            self.waiting[:first_waiting],
            [] if first_waiting is None else self.waiting[first_waiting:],
        )
        return complete_events

    def flush(self) -> list[HeldEvent]:
        """All events that wait: no other half has come."""
        self._open_halves.clear()
        waiting_events, self.waiting = self.waiting, []
        return waiting_events


def load_with_halves(data: bytes) -> Any:
    """The value of JSON in which halves of pairs stay as they are.

    Raises:
        ValueError: it is not JSON, or has a half in a key.
        RecursionError: it is nested too deeply.
    """
    return json.loads(data.decode(), parse_constant=_refuse, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    for key, _ in pairs:
        key.encode()
    return dict(pairs)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def mend_halves(event: Any) -> bool:
    """Replace each half without its other half. Return whether there was one."""
    has_halves = False
    for holder, key, _ in [*_strings(event)]:
        text = holder[key]
        try:
            text.encode()
        except UnicodeEncodeError:
            holder[key] = _whole(text)
            has_halves = True
    return has_halves


def _whole(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _is_first(character: str) -> bool:
    return "\ud800" <= character <= "\udbff"


def _is_second(character: str) -> bool:
    return "\udc00" <= character <= "\udfff"


def _strings(value: Any) -> Iterator[tuple[Any, Any, tuple[Any, ...]]]:
    """Each string in *value*, as its container, its key there, and its path.

    If an object has an index, like choices, calls and blocks, the path has it in place of the position.
    """
    stack: list[tuple[Any, tuple[Any, ...]]] = [(value, ())]
    while stack:
        container, path = stack.pop()
        if type(container) is dict:
            items: Any = container.items()
            indexes = [item for item in items if type(item[1]) is int and item[0][-5:].lower() == "index"]
            if indexes:
                path = (*path[:-1], *indexes) if path and type(path[-1]) is int else (*path, *indexes)
        elif type(container) is list:
            items = enumerate(container)
        else:
            continue
        for key, item in items:
            if type(item) is str:
                yield container, key, (*path, key)
            else:
                stack.append((item, (*path, key)))


# ----------------------------------------------------------------------------------- looks
# Describes bytes that are not JSON, for error messages.


_SIGNATURES: Final = (
    (b"\x1f\x8b", "gzip, to be unpacked first"),
    (b"\x28\xb5\x2f\xfd", "zstd, to be unpacked first"),
    (b"BZh", "bzip2, to be unpacked first"),
    (b"\xfd7zXZ\x00", "xz, to be unpacked first"),
    (b"PK\x03\x04", "a ZIP archive, to be unpacked first"),
    (b"%PDF-", "a PDF"),
    (b"PAR1", "Parquet"),
    (b"\xff\xfe", "UTF-16, to be written as UTF-8"),
    (b"\xfe\xff", "UTF-16, to be written as UTF-8"),
)
_ZLIB_SIGNATURES: Final = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
_HTTP: Final = pattern(rb"HTTP/[0-9.]+ [0-9]{3}|[A-Za-z-]{2,40}: [^\r\n]*\r\n[A-Za-z-]{2,40}: ")
_HTML: Final = pattern(rb"<(?:!doctype html|html|head|body|!--)", 0x2)  # whatever the case
_BASE64: Final = pattern(rb"(?:[A-Za-z0-9+/_-]{4}){6,}[A-Za-z0-9+/_-]*={0,2}\s*")


def looks_like(data: bytes) -> str | None:
    """Return a short description of *data* with advice, or ``None`` if nothing is recognized.

    It quotes no data. Pass only data that is not JSON.
    """
    start = data[:1024]
    for signature, name in _SIGNATURES:
        if start.startswith(signature):
            return name
    if start.startswith(_ZLIB_SIGNATURES):
        return "zlib (deflate), to be unpacked first"
    if b"\0" in start[:4] and start[:200].count(b"\0") * 3 > len(start[:200]):
        return "UTF-16, to be written as UTF-8"
    stripped_start = start.lstrip()
    if _HTTP.match(stripped_start):
        return "HTTP headers before a body"
    if _HTML.match(stripped_start):
        return "HTML, a page of a proxy perhaps"
    if stripped_start.startswith(b"<"):
        return "XML"
    if _BASE64.fullmatch(stripped_start):
        return "base64, to be decoded first"
    if stripped_start.startswith((b"{", b"[", b"data:")):
        try:
            data.decode()
        except UnicodeDecodeError as error:
            if error.end < len(data):  # not only cut in a character
                return "text in another encoding, such as Latin-1, to be written as UTF-8"
    return None


# ------------------------------------------------------------------------- other documents
# What the same servers send that is no answer of a model.


_ANY: Final = object()
_OTHER_DOCUMENTS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("a batch job", {"object": "batch"}),  # OpenAI
    ("a batch job", {"type": "message_batch"}),  # Anthropic
    ("a batch job", {"name": "batches/*"}),  # Gemini
    ("a cache of content", {"name": "*cachedContents/*"}),  # Gemini
    ("embeddings", {"data": [{"object": "embedding"}]}),  # OpenAI
    ("embeddings", {"embedding": _ANY}),  # Gemini, Ollama
    ("embeddings", {"embeddings": _ANY}),  # Gemini, Ollama, Cohere
    ("a moderation", {"results": [{"flagged": _ANY}]}),  # OpenAI
    ("a ranking", {"results": [{"relevance_score": _ANY}]}),  # Cohere
    ("a list of models", {"data": [{"object": "model"}]}),  # OpenAI
    ("a list of models", {"data": [{"type": "model"}]}),  # Anthropic
    ("a list of models", {"models": [{"name": "*"}]}),  # Gemini, Ollama, Cohere
    ("a file", {"object": "file"}),  # OpenAI
    ("a picture", {"data": [{"b64_json": _ANY}]}),  # OpenAI
    ("a picture", {"data": [{"url": _ANY}]}),  # OpenAI
    ("a count of tokens", {"totalTokens": _ANY}),  # Gemini
    ("a count of tokens", {"object": "response.input_tokens"}),  # OpenAI
    ("a transcript", {"text": "*", "usage": _ANY}),  # OpenAI
    ("a transcript", {"text": "*", "segments": _ANY}),  # OpenAI
)
"""Documents that are no answer, by the fields that tell them, from the references of the endpoints that send them."""


def other_document(event: Any) -> str | None:
    """Return what *event*, the only one of its input, which cannot be read as an answer, is, or ``None`` if unknown."""
    if type(event) is dict and event.keys() == {"input_tokens"}:  # Anthropic
        return "a count of tokens"
    return next((name for name, fields in _OTHER_DOCUMENTS if _fits(event, fields)), None)


def _fits(value: Any, wanted: Any) -> bool:
    if wanted is _ANY:
        return True
    if type(wanted) is dict:
        return type(value) is dict and all(
            key in value and _fits(value[key], inner) for key, inner in wanted.items()
        )
    if type(wanted) is list:
        return type(value) is list and bool(value) and _fits(value[0], wanted[0])
    return type(value) is str and fnmatchcase(value, wanted)


# ---------------------------------------------------------------------------------- events
# From a frame's bytes to a parsed event: JSON within limits, with every failure typed.


Halves: TypeAlias = Literal["refuse", "keep", "mend"]
"""How to treat half of a surrogate pair, see :func:`load_event`."""

# How deep orjson itself goes.
ORJSON_READ_DEPTH = 1024
ORJSON_WRITE_DEPTH = 254

_SHORT_LENGTH = 4_096
"""Up to here counting brackets takes less time than looking for the few containers of a long text."""

# Possessive, so that a hostile string costs no memory. A truncated string counts to its end.
_STRUCTURE = pattern(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)


def load_event(
    data: bytes, limits: Limits = DEFAULT, *, place: str | None = None, halves: Halves = "refuse"
) -> Any:
    """
    Parse one frame, or one whole body, as JSON.

    Invalid JSON such as ``NaN`` is refused. An error never quotes the payload.

    Args:
        data: the JSON text in UTF-8, without a byte order mark.
        limits: ``line_bytes`` and ``depth`` apply.
        place: the position in the input, for the error's ``place``. ``None`` leaves it to
            :meth:`crosswalk.errors.MappingError.locate`.
        halves: how to treat half of a surrogate pair: ``"refuse"`` the JSON, ``"keep"`` the half, or ``"mend"`` it
            to U+FFFD.

    Returns:
        The values of ``orjson.loads``: dicts, lists, strings, numbers, booleans and ``None``. Integers of any
        length keep all digits.

    Raises:
        InvalidJSONError: it is not JSON or not UTF-8. ``offset`` is the byte at which reading failed.
        LineTooLongError: it is longer than ``limits.line_bytes``.
        NestingTooDeepError: it is nested deeper than ``limits.depth``, or than the 1024 of orjson.
    """
    if len(data) > limits.line_bytes:
        raise LineTooLongError(
            f"the event is longer than {limits.line_bytes} bytes",
            limit=limits.line_bytes,
            place=place,
        )
    try:
        event = load_json(data)
    except orjson.JSONDecodeError as error:
        if halves != "refuse" and "surrogate" in error.msg:
            try:
                event = load_with_halves(data)
            except (ValueError, RecursionError):
                pass
            else:
                if _is_flat(limits.depth, event):
                    if halves == "mend":
                        mend_halves(event)
                    return event
        failure = _failure(data, error, limits, place)
    else:
        # Each level takes two bytes, so most frames are too short to be too deep, and most bodies have too few brackets.
        if (
            len(data) <= 2 * limits.depth
            or (len(data) <= _SHORT_LENGTH and data.count(b"{") + data.count(b"[") <= limits.depth)
            or _is_within(limits.depth, event, data)
        ):
            return event
        failure = _too_deep(limits.depth, place)
    # Raised out here, the error does not carry along orjson's, which holds the payload.
    raise failure


def _is_within(depth: int, event: Any, data: bytes) -> bool:
    """Tell whether *event*, parsed from *data*, is nested at most *depth* levels deep."""
    if _has_few_containers(event, depth) or data.count(b"{") + data.count(b"[") <= depth:
        return True
    # Writing it out again tells the same as walking it, in C and in a fifth of the time: orjson refuses what is
    # deeper than its own limit, and the arrays around the event bring that limit down to ours.
    wrapped = event
    for _ in range(ORJSON_WRITE_DEPTH - depth):
        wrapped = [wrapped]
    if depth <= ORJSON_WRITE_DEPTH:
        try:
            dump_json(wrapped)
        except TypeError:
            return False
        return True
    return _is_flat(depth, event)


def _is_flat(depth: int, event: Any) -> bool:
    """Tell whether *event* is nested at most *depth* levels deep, level by level."""
    level = _containers([event])
    while level and depth:
        depth -= 1
        level = _containers(
            child for parent in level for child in (parent.values() if type(parent) is dict else parent)
        )
    return not level


def _has_few_containers(event: Any, limit: int) -> bool:
    """Return whether *event* has fewer than *limit* objects and arrays. ``False`` also if counting takes long.

    The commonest long event is a text: its few containers are found faster than its brackets are counted.
    """
    containers = _containers([event])
    for container in containers:
        if len(containers) > limit or len(container) > limit:
            return False
        containers += _containers(container.values() if type(container) is dict else container)
    return True


def _containers(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if type(value) is dict or type(value) is list]


def _failure(data: bytes, error: orjson.JSONDecodeError, limits: Limits, place: str | None) -> FramingError:
    offset = _byte_offset(data, error)
    depth = min(limits.depth, ORJSON_READ_DEPTH)
    if _is_deeper(depth, data, offset):
        return _too_deep(depth, place)
    cause = f"not JSON at byte {offset}: {error.msg}"
    likeness = None
    if offset <= 1:
        likeness = looks_like(data)
    return InvalidJSONError(
        f"{cause}; it looks like {likeness}" if likeness else cause, offset=offset, place=place
    )


def _too_deep(depth: int, place: str | None) -> NestingTooDeepError:
    return NestingTooDeepError(f"the event is nested deeper than {depth} levels", limit=depth, place=place)


def _byte_offset(data: bytes, error: orjson.JSONDecodeError) -> int:
    try:
        text = data.decode()
    except UnicodeDecodeError as not_utf8:
        return not_utf8.start
    return len(text[: error.pos].encode())


def _is_deeper(depth: int, data: bytes, end: int) -> bool:
    """Tell whether *data*, which is not JSON from *end* on, is nested deeper than *depth* before it."""
    level = 0
    for token in _STRUCTURE.finditer(data, 0, end):
        mark = data[token.start()]
        if mark in b"[{":
            level += 1
            if level > depth:
                return True
        elif mark in b"]}":
            level -= 1
    return False
