"""Keys that an object of arguments repeats: its text keeps them, as the text in the pieces of a stream does."""

from __future__ import annotations

import json
from typing import Any, Final

import attrs
import orjson

from crosswalk.types.delta import ResponseDelta
from crosswalk.types.json import dump_json, may_repeat_keys
from crosswalk.types.values import SegmentType

_FEW_CALLS: Final = 8
"""Up to so many arguments are looked for one by one in the event's bytes, which is faster than to parse it once more."""
_MOST_MISSES: Final = 16
"""The number of arguments without an object in the event after which the search ends, to bound its time."""


def keep_repeated_keys(deltas: list[ResponseDelta], source: bytes) -> None:
    """Give arguments in *deltas* that *source* sends as an object with a repeated key the text that it has there.

    The parser keeps the last value of such a key, and who reads the arguments could not know that there was another.
    """
    written = {number: text for number, delta in enumerate(deltas) if (text := _whole_arguments(delta))}
    if len(written) <= _FEW_CALLS:
        written = {number: text for number, text in written.items() if source.find(orjson.dumps(text)) < 0}
    if not written or not may_repeat_keys(source):
        return
    try:
        exact = _Objects(source)
        for number, text in written.items():
            deltas[number] = _with_arguments(deltas[number], exact.text_of(text))
    except (RecursionError, TypeError):  # nested deeper than Python's own parser, or orjson's writer, goes
        return


def _whole_arguments(delta: ResponseDelta) -> str | None:
    """Return the arguments of *delta* if they are a whole object, or ``None``."""
    call, segment = delta.tool_call_delta, delta.segment
    text = call.arguments_delta if call is not None else None
    if segment is not None and segment.type is SegmentType.TOOL_CALL:
        text = segment.content
    if text and text[0] == "{" and text[-1] == "}" and len(text) > 2:
        return text
    return None


def _with_arguments(delta: ResponseDelta, text: str) -> ResponseDelta:
    call, segment = delta.tool_call_delta, delta.segment
    if call is not None:
        return attrs.evolve(delta, tool_call_delta=attrs.evolve(call, arguments_delta=text))
    assert segment is not None
    return attrs.evolve(delta, segment=attrs.evolve(segment, content=text))


class _Objects:
    """The objects of a JSON text in order, and the original text of those with a repeated key.

    Args:
        source: the JSON.

    Raises:
        RecursionError: it is nested deeper than Python's parser goes.
    """

    def __init__(self, source: bytes) -> None:
        self._all: list[dict[str, Any]] = []
        self._strings: set[str] = set()
        self._repeating: dict[int, list[tuple[str, Any]]] = {}
        json.loads(source, object_pairs_hook=self._note)
        self._next = self._misses = 0

    def _note(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        self._all.append(value)
        self._strings.update(item for _, item in pairs if type(item) is str)
        if len(value) < len(pairs):
            self._repeating[id(value)] = pairs
        return value

    def text_of(self, written: str) -> str:
        """Return the original text of the next object that was *written* with the last value of each key, or *written*.

        Arguments that were sent as a string are what was *written*.

        Raises:
            TypeError: the first value of a repeated key is nested too deeply to be written.
        """
        if not self._repeating or self._misses > _MOST_MISSES or written in self._strings:
            return written
        wanted = json.loads(written)
        for position in range(self._next, len(self._all)):
            result = self._all[position]
            if result == wanted and dump_json(result).decode() == written:
                self._next = position + 1
                return dump_json(self._as_it_stands(result)).decode()
        self._misses += 1
        return written

    def _as_it_stands(self, value: Any) -> Any:
        if type(value) is list:
            return [self._as_it_stands(item) for item in value]
        if type(value) is not dict:
            return value
        pairs = self._repeating.get(id(value))
        if pairs is None:
            return {key: self._as_it_stands(item) for key, item in value.items()}
        raw = (orjson.dumps(key) + b":" + dump_json(self._as_it_stands(item)) for key, item in pairs)
        return orjson.Fragment(b"{" + b",".join(raw) + b"}")
