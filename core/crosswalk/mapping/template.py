"""Most events of a stream differ from the one before in one string: read that string, not the whole event.

A template is learnt from an event that was parsed and mapped: the bytes before and after its text. A later frame with the
same bytes around another string is the same JSON with that string in its place, so that the mapper would make
the same delta with that string (the promise of ``ProviderInfo.text_leaves``). Anything else is parsed anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import orjson

from crosswalk.plugin.info import ProviderInfo
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.json import load_json

__all__ = ["Template", "learn"]

_PROBE: Final = b"crosswalk-probe"


_BACKSLASH: Final = ord("\\")
# JSON strings: a stamp has no escapes, a text may have some. Possessive, so that a long one costs no memory.
_STAMP: Final = rb'(?P<stamp>[^"\\\x00-\x1f]++)'
_TEXT: Final = rb'(?P<text>(?:[^"\\\x00-\x1f]++|\\[^\x00-\x1f])++)'


class Template:
    """The bytes around the changing strings of an event, as one regular expression.

    Attributes:
        is_reasoning: whether the text is reasoning.
        choice: whose text it is.
        stamp: the key under which ``extensions`` keeps the stamp; ``""`` when there is none.
        name: the SSE name that such a frame must have; ``None`` for none.
        read: the text and the stamp of a frame; ``None`` when it is another kind of event.
    """

    def __init__(self, pattern: bytes, delta: ResponseDelta, stamp: str) -> None:
        self.is_reasoning = delta.reasoning_delta is not None
        self.choice = delta.choice
        self.stamp = stamp
        self.name: str | None = None
        self.read = _reader(re.compile(pattern).fullmatch, is_stamped=bool(stamp))


def _reader(
    fullmatch: Callable[[bytes], re.Match[bytes] | None], *, is_stamped: bool
) -> Callable[[bytes], tuple[str, str] | None]:
    def read(frame: bytes) -> tuple[str, str] | None:
        match = fullmatch(frame)
        if match is None:
            return None
        text = match["text"]
        try:
            if _BACKSLASH in text:
                return orjson.loads(b'"%b"' % text), ""
            return text.decode(), ""
        except ValueError:  # no UTF-8, or no such escape: whoever parses the frame will say so
            return None

    def read_stamped(frame: bytes) -> tuple[str, str] | None:
        match = fullmatch(frame)
        if match is None:
            return None
        text, stamp = match.group("text", "stamp")
        try:
            if _BACKSLASH in text:
                return orjson.loads(b'"%b"' % text), stamp.decode()
            return text.decode(), stamp.decode()
        except ValueError:
            return None

    return read_stamped if is_stamped else read


def learn(
    frame: bytes, deltas: Sequence[ResponseDelta], rest: dict[str, Any], info: ProviderInfo
) -> Template | None:
    """A template made from *frame*, which was mapped to *deltas* and left *rest*; ``None`` where none can be."""
    if len(deltas) != 1 or not info.text_leaves:
        return None
    delta = deltas[0]
    text = delta.content_delta if delta.reasoning_delta is None else delta.reasoning_delta
    if not text or not _is_text_alone(delta):
        return None
    event = load_json(frame)  # again: the hooks have taken it apart
    for leaf in info.text_leaves:
        if _at(event, leaf) == text and _at(rest, leaf) is None:
            break
    else:
        return None
    stamps = [path for path in info.stamp_leaves if isinstance(_at(event, path), str)]
    if len(stamps) > 1 or any(len(path) != 1 for path in stamps):
        return None
    return _cut(frame, event, leaf, text, stamps, delta)


def _is_text_alone(delta: ResponseDelta) -> bool:
    return (
        (delta.content_delta is None) != (delta.reasoning_delta is None)
        and delta.tool_call_delta is None
        and delta.finish_reason is None
        and delta.usage is None
        and delta.refusal_delta is None
        and delta.segment is None
        and delta.raw_finish_reason is None
        and delta.logprobs is None
    )


def _cut(
    frame: bytes,
    event: Any,
    leaf: tuple[str | int, ...],
    text: str,
    stamps: list[tuple[str | int, ...]],
    delta: ResponseDelta,
) -> Template | None:
    wanted = {leaf: (text, _TEXT), **{path: (event[path[0]], _STAMP) for path in stamps}}
    holes = []
    for path, (value, hole) in wanted.items():
        found = _find(frame, path, value)
        if found is None:
            return None
        holes.append((*found, hole))
    probe, pattern, after = b"", b"", 0
    for start, end, hole in sorted(holes):
        probe += frame[after:start] + _PROBE
        pattern += re.escape(frame[after:start]) + hole
        after = end
    # The proof: with probes in the holes the frame must parse to the same event with probes in those leaves.
    probed = orjson.loads(probe + frame[after:])
    for path, (value, _) in wanted.items():
        if _at(probed, path) != _PROBE.decode():
            return None
        _put(probed, path, value)
    made = Template(pattern + re.escape(frame[after:]), delta, str(stamps[0][0]) if stamps else "")
    return made if probed == event else None


def _find(frame: bytes, leaf: tuple[str | int, ...], text: str) -> tuple[int, int] | None:
    """Where *text* stands in *frame* as the value of the leaf's key; ``None`` unless exactly one place is found."""
    if '"' in text or "\\" in text or not text.isprintable():
        return None
    needle = text.encode()
    if frame.count(b'"' + needle + b'"') != 1:
        return None  # the same string elsewhere may be there because of this one
    for separator in (b'":"', b'": "'):
        opening = b'"' + str(leaf[-1]).encode() + separator
        place = frame.find(opening + needle + b'"')
        if place >= 0:
            start = place + len(opening)
            return start, start + len(needle)
    return None


def _at(value: Any, path: tuple[str | int, ...]) -> Any:
    for key in path:
        if isinstance(value, dict) and isinstance(key, str):
            value = value.get(key)
        elif isinstance(value, list) and isinstance(key, int) and key < len(value):
            value = value[key]
        else:
            return None
    return value


def _put(value: Any, path: tuple[str | int, ...], leaf: Any) -> None:
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = leaf
