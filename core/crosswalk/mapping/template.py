"""Most events of a stream differ from one before in a few leaves: read those, not the whole event.

A template is learnt from an event that was parsed and mapped: the bytes around its holes, which are the text that its delta
carries and the stamps beside it. A later frame with the same bytes around other values is the same JSON with those values in
their places, so that the mapper would make the same delta with that text (the promise of ``ProviderInfo.text_leaves``).
Anything else is parsed anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import orjson

from crosswalk.plugin.info import ProviderInfo
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.json import EMPTY_OBJECT, load_json
from crosswalk.types.segment import SegmentType

__all__ = ["Found", "Template", "learn"]

Found: TypeAlias = list[Any]
"""What stands in the holes of a frame, in their order."""
_Reading: TypeAlias = Callable[[bytes], Found | None]

_PROBES: Final[dict[type, Any]] = {str: "crosswalk-probe", int: 730517}
_MOST_DIGITS: Final = 18
"""A stamp of more may be an integer that the parser of the holes does not read exactly."""
_KINDS: Final = (SegmentType.TEXT, SegmentType.REASONING, SegmentType.TOOL_CALL)


class Template:
    """One kind of event: what its delta is, and how to read its holes.

    Attributes:
        kind: what the text is: text, reasoning, or the arguments of a tool call.
        choice: whose text it is.
        call: whose arguments they are; ``None`` for other text.
        place: which of the holes the text is.
        stamps: the others, each with the key under which ``extensions`` keeps it.
        name: the SSE name that such a frame must have; ``None`` for none.
        read: what is in the holes of a frame; ``None`` where it is another kind of event.
        literals: the bytes before, between and behind the holes.
        read_chunk: as *read*, for what came in one read: a frame with all that its framing puts around it; ``None``
            while that is not known.
        frame: where in such a read the frame stands.
    """

    __slots__ = (
        "call", "choice", "frame", "kind", "literals", "name", "place", "read", "read_chunk", "stamps",
    )  # fmt: skip

    def __init__(
        self, delta: ResponseDelta, keys: list[str | None], name: str | None, literals: list[bytes]
    ) -> None:
        said = delta.tool_call_delta
        self.kind = _KINDS[2 if said is not None else 1 if delta.reasoning_delta is not None else 0]
        self.choice = delta.choice
        self.call = None if said is None else said.index
        self.place = keys.index(None)
        self.stamps = [(place, key) for place, key in enumerate(keys) if key is not None]
        self.name = name
        self.literals = literals
        self.read = _reading(literals, self.place)
        self.read_chunk: _Reading | None = None
        self.frame = slice(0, None)

    def frame_stands_in(self, chunk: bytes, frame: bytes) -> None:
        """Say that *chunk* came in one read between two others, and holds *frame*, which was read, and nothing else.

        With the same bytes around it, whatever they are, another frame is framed in the same way.
        """
        before, _, behind = chunk.partition(frame)
        # Else it stands there in several lines, or in a comment as well.
        if chunk.find(frame) == chunk.rfind(frame) >= 0:
            first, *more = self.literals
            more[-1] += behind
            self.read_chunk = _reading([before + first, *more], self.place)
            self.frame = slice(len(before), -len(behind) or None)


def _reading(literals: list[bytes], text: int) -> _Reading:
    """How to read the holes between *literals*, of which number *text* is the text and not empty.

    What stands in a hole is between two quotes of the literals, or is a number without anything around it. Parsed together,
    with a line feed behind each, as many values as there are holes prove that each is one whole value: no JSON string holds
    a line feed.
    """
    begin, *between, end = literals
    quoted = [literal.endswith(b'"') for literal in literals[:-1]]
    start, stop = len(begin) - quoted[0], quoted[-1] - len(end)  # the quotes included

    def read_one(frame: bytes) -> Found | None:
        if not (frame.startswith(begin) and frame.endswith(end)):
            return None
        try:
            found = orjson.loads(frame[start:stop])
        except ValueError:  # no UTF-8, no such escape, a second string: whoever parses the frame will say so
            return None
        return [found] if found and type(found) is str else None

    # What stood between two holes, and what parts them instead where both are parsed.
    parts = [
        (literal, b'"' * before + b",\n" + b'"' * behind)
        for literal, before, behind in zip(between, quoted, quoted[1:], strict=False)
    ]
    types = [str if quote else int for quote in quoted]
    numbers = [number for number, quote in enumerate(quoted) if not quote]

    def read_more(frame: bytes) -> Found | None:
        if not (frame.startswith(begin) and frame.endswith(end)):
            return None
        rest = frame[start:stop]
        holes: list[bytes] = []
        for literal, joint in parts:
            hole, has_found, rest = rest.partition(literal)
            if not has_found:
                return None
            holes += (hole, joint)
        holes.append(rest)
        try:
            found: Found = orjson.loads(b"[%b]" % b"".join(holes))
        except ValueError:
            return None
        if [*map(type, found)] != types or not found[text]:
            return None
        for number in numbers:  # holes and joints take turns
            if len(holes[2 * number]) > _MOST_DIGITS or holes[2 * number] != b"%d" % found[number]:
                return None
        return found

    return read_more if parts else read_one


def learn(
    frame: bytes,
    name: str | None,
    deltas: Sequence[ResponseDelta],
    rest: dict[str, Any],
    info: ProviderInfo,
) -> Template | None:
    """A template made from *frame*, which was mapped to *deltas* and left *rest*; ``None`` where none can be.

    Args:
        frame: the event.
        name: its SSE name.
        deltas: what its hooks made of it.
        rest: what they left.
        info: what the plugin promises.
    """
    text = _only_text(deltas[0]) if len(deltas) == 1 else None
    if not text:
        return None
    event = load_json(frame)  # again: the hooks have taken it apart
    leaf = next(
        (leaf for leaf in info.text_leaves if _at(event, leaf) == text and _at(rest, leaf) is None), None
    )
    stamps = [path for path in info.stamp_leaves if type(_at(event, path)) in _PROBES]
    if leaf is None or any(len(path) != 1 for path in stamps):
        return None
    holes = sorted((*_find(frame, path, _at(event, path)), path) for path in (leaf, *stamps))
    literals = _between(frame, holes)
    if literals is None or not _is_proven(literals, [path for *_, path in holes], event):
        return None
    return Template(deltas[0], [None if path == leaf else str(path[0]) for *_, path in holes], name, literals)


def _only_text(delta: ResponseDelta) -> str | None:
    """The text, reasoning, or arguments of a known call that *delta* carries, if that is all that it carries."""
    call = delta.tool_call_delta
    if call is not None and (call.id is not None or call.name is not None):
        return None
    arguments = None if call is None else call.arguments_delta
    said = (delta.content_delta, delta.reasoning_delta, arguments)
    texts = [text for text in said if text is not None]
    is_alone = (
        len(texts) == 1
        and delta.finish_reason is None
        and delta.usage is None
        and delta.refusal_delta is None
        and delta.segment is None
        and delta.raw_finish_reason is None
        and delta.logprobs is None
        and delta.extensions is EMPTY_OBJECT
    )
    return texts[0] if is_alone else None


def _find(frame: bytes, leaf: tuple[str | int, ...], value: Any) -> tuple[int, int]:
    """Where *value* stands in *frame* as that of the leaf's key, without its quotes; (-1, -1) unless it is one place."""
    for token in {
        json.dumps(value, ensure_ascii=escaped).encode(errors="replace") for escaped in (False, True)
    }:
        if frame.count(token) != 1 and type(value) is str:
            continue  # the same string elsewhere may be there because of this one
        for separator in (b'":', b'": '):
            opening = b'"' + str(leaf[-1]).encode() + separator
            if frame.count(opening + token) == 1:
                start = frame.find(opening + token) + len(opening)
                quote = int(type(value) is str)
                return start + quote, start + len(token) - quote
    return -1, -1


def _between(frame: bytes, holes: list[tuple[int, int, Any]]) -> list[bytes] | None:
    """The bytes before, between and behind *holes*; ``None`` where one of these was not found."""
    if holes[0][0] < 0:
        return None
    begins = [0, *(end for _, end, _ in holes)]
    ends = [*(start for start, _, _ in holes), len(frame)]
    return [frame[begin:end] for begin, end in zip(begins, ends, strict=True)]


def _is_proven(literals: list[bytes], paths: list[tuple[str | int, ...]], event: Any) -> bool:
    """Whether with probes in its holes the frame is the same event with probes in those leaves."""
    probes = [_PROBES[type(_at(event, path))] for path in paths]
    texts = [str(probe).encode() for probe in probes]
    probed = orjson.loads(b"".join(part for pair in zip(literals, texts) for part in pair) + literals[-1])  # noqa: B905
    for path, probe in zip(paths, probes, strict=True):
        if _at(probed, path) != probe:
            return False
        _put(probed, path, _at(event, path))
    return bool(probed == event)


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
