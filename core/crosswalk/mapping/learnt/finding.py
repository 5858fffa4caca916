"""Where in the bytes of an event that stands which may be something else in the next: its gaps, each proven with a probe."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

import orjson

from crosswalk.mapping.interpreter import Said
from crosswalk.mapping.learnt.kept import put
from crosswalk.mapping.learnt.marks import Gap, are_counts, between, strings_in, value_at
from crosswalk.plugin.info import Path, ProviderInfo
from crosswalk.types.json import load_json
from crosswalk.types.merge import same_json

if TYPE_CHECKING:
    from crosswalk.mapping.learnt.event_code import Role

__all__ = ["SCALARS", "find", "gaps_of", "is_proven", "probed"]

_PROBES: Final[dict[type, Any]] = {
    str: "crosswalk-probe",
    int: 730517,
    float: 730517.25,
    dict: {"crosswalk-probe": 1},
    list: [1],
}
SCALARS: Final = (str, int)
_STAMPS: Final = (str, int, float)
_WEIGHED: Final = (dict, list, int, float)
_MOST_LEAVES: Final = 40
"""Of more nothing is learnt: each is looked for in the whole event."""
_MOST: Final = 64
"""Where a key stands more often than that, nobody looks which of them it is."""


def gaps_of(
    frame: bytes, said: Said, info: ProviderInfo, event: Any, text: str
) -> Sequence[tuple[Role, Gap]]:
    """What may change in *frame*, which is this *event* and says this *text*; nothing where that cannot be told for sure."""
    deltas, usage, rest, _ = said
    leaf = next(
        (leaf for leaf in info.text_leaves if value_at(event, leaf) == text and value_at(rest, leaf) is None),
        None,
    )
    if leaf is None:
        return ()
    leaves: list[tuple[Role, Path]] = [("text", leaf)]
    leaves += [("number", path) for path in info.number_leaves if type(value_at(event, path)) is int]
    if usage is not None:
        leaves += [("usage", path) for path in _counted(event, info.usage_leaves)]
    tokens = deltas[0].logprobs
    weighed = next((path for path in info.logprob_leaves if type(value_at(event, path)) in _WEIGHED), None)
    if tokens is not None and weighed is not None:
        leaves.append(("logprobs", weighed))
    if usage is None and any(value_at(event, path) for path in info.usage_leaves):
        return ()  # what their hook made nothing of, it may make something of in the next
    if tokens is None and any(_says(value_at(event, path)) for path in info.logprob_leaves):
        return ()
    parts = {*info.usage_leaves, *info.logprob_leaves}
    for path in info.stamp_leaves:
        if not any(path[:depth] in parts for depth in range(1, len(path) + 1)):
            leaves += [("stamp", stamp) for stamp in _stamps_in(value_at(event, path), path)]
    if len(leaves) > _MOST_LEAVES:
        return ()
    roles = [role for role, _ in leaves]
    if (usage is not None) > ("usage" in roles) or (tokens is not None) > ("logprobs" in roles):
        return ()
    if any(len(path) != 1 for role, path in leaves if role in ("number", "usage")):
        return ()
    if not all(
        same_json(value_at(rest, path), value_at(event, path)) for role, path in leaves if role == "stamp"
    ):
        return ()
    # A number that does not follow the one before says something, and so does what is no number.
    if any(value_at(rest, path) is not None for role, path in leaves if role == "number"):
        return ()
    if any(type(value_at(event, path)) not in (int, NoneType) for path in info.number_leaves):
        return ()
    found: list[tuple[Role, Gap | None]] = []
    leaves.sort(key=lambda leaf: leaf[1] not in parts)  # first those in which no other leaf stands
    for role, path in leaves:
        found.append((role, find(frame, path, value_at(event, path), [gap for _, gap in found if gap])))
    whole = sorted(((role, gap) for role, gap in found if gap is not None), key=lambda one: one[1].start)
    if len(whole) < len(leaves) or not is_proven(frame, [gap for _, gap in whole], event):
        return ()
    return whole


def _counted(event: Any, paths: Sequence[Path]) -> list[Path]:
    """Of these *paths* those where *event* has counts: the first object of such, or numbers."""
    objects = [path for path in paths if type(value_at(event, path)) is dict]
    return objects[:1] or [path for path in paths if type(value_at(event, path)) is int]


def _says(value: Any) -> bool:
    """Whether anything but nothing stands in *value*."""
    if type(value) is dict or type(value) is list:
        return any(map(_says, value.values() if type(value) is dict else value))
    return value is not None and value != ""


def _stamps_in(value: Any, path: Path) -> Iterator[Path]:
    """Where in the *value* at *path* stands what may change: itself, or all that an object has."""
    if type(value) is dict:
        for key, item in value.items():
            yield from _stamps_in(item, (*path, key))
    elif type(value) in _STAMPS or (type(value) is list and are_counts(value)):
        yield path


def find(frame: bytes, path: Path, value: Any, besides: Sequence[Gap] = ()) -> Gap | None:
    """Where *value* stands in *frame* under its key; ``None`` unless it is one place *besides* those that are known."""
    found = []
    quote = int(type(value) in (str, list))
    for separator in (b'":', b'": '):
        opening = b'"' + str(path[-1]).encode() + separator
        if frame.count(opening) > _MOST:
            return None
        start = frame.find(opening)
        while start >= 0:
            start += len(opening)
            end = _end_of(frame, start, value)
            if end is not None and not any(gap.start <= start < gap.end for gap in besides):
                found.append(Gap(start + quote, end - quote, type(value), path))
            start = frame.find(opening, start)
    return found[0] if len(found) == 1 else None


_DECODER: Final = json.JSONDecoder()


def _end_of(frame: bytes, start: int, value: Any) -> int | None:
    """The byte behind the JSON text at *start*, if it is that of *value*."""
    text = frame[start:].decode(errors="replace")
    try:
        found, end = _DECODER.raw_decode(text)
    except ValueError:
        return None
    return start + len(text[:end].encode()) if same_json(found, value) else None


def is_proven(frame: bytes, gaps: Sequence[Gap], event: Any) -> bool:
    """Whether with probes in its *gaps* the frame is the same event with probes in those leaves."""
    found = probed(frame, gaps)
    others = {*strings_in(found)}
    for gap in gaps:
        value = value_at(event, gap.path)
        if value_at(found, gap.path) != _PROBES[gap.kind]:
            return False
        if gap.kind is str:
            if value in others:  # in whatever spelling: it may be there because of this one
                return False
            others.add(value)
        put(found, gap.path, value)
    return bool(found == event)


def probed(frame: bytes, gaps: Sequence[Gap]) -> Any:
    """The event that *frame* is with probes in its *gaps*."""
    probes = [_PROBES[gap.kind] for gap in gaps]
    said = [
        orjson.dumps(probe)[1:-1] if type(probe) in (str, list) else orjson.dumps(probe) for probe in probes
    ]
    literals = between(frame, gaps)
    return load_json(b"".join(part for pair in zip(literals, (*said, b""), strict=True) for part in pair))
