"""The check that texts of different kinds, which the captures of a provider show, are not read alike."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from crosswalk.testing.case import MARKER, Case, Place, answer
from crosswalk.testing.perturbation import Leaf, Outcome, Path, at, replaced, without
from crosswalk.testing.problems import Problem
from crosswalk.types.json import same_json


def kinds_are_told_apart(case: Case) -> Iterator[Problem]:
    """P1: a text of one kind is not read like a text of another: the word, the event's name or the key for it counts."""
    if case.is_answer:
        texts = {
            (leaf.event, leaf.path)
            for location in case.places(str)
            for leaf in location.leaves
            if _shows(case, leaf)
        }
        yield from _words(case, texts)
        yield from _names(case, texts)
        yield from _keys(case, texts)


def _shows(case: Case, leaf: Leaf) -> bool:
    """Whether *leaf* is a piece of text, of reasoning or of a refusal."""
    shown = _texts(case.baseline)
    if not leaf.value or leaf.value not in shown:
        return False
    return MARKER in _texts(case.marked(Place((leaf,))))


def _texts(outcome: Outcome) -> str:
    kinds = ("text", "reasoning", "refusal")
    segments = () if outcome.response is None else outcome.response.get("segments", ())
    return "\n".join(part["content"] for part in segments if part["type"] in kinds)


def _words(case: Case, texts: set[tuple[int, Path]]) -> Iterator[Problem]:
    """Another kind of the same place in place of a kind, as in ``{"kind": "say", "text": …}`` or ``["say", …]``."""
    for location in case.every_place(str, int):
        text, own = _text_of(location, texts), _without_numbers(location.value)
        kinds = _kinds(case, location.path, text) if text else set()
        others = sorted((kind for kind in kinds if _without_numbers(kind) != own), key=str)
        if not 0 < len(others) < _MOST_KINDS:
            continue
        unknown = case.map(location.put(case.events, _UNKNOWN[type(location.value)]))
        if unknown.error is None and answer(unknown.response) == answer(case.baseline.response):
            continue  # it does not decide what is read
        for other in others:
            after = case.map(location.put(case.events, other))
            if after.error is None and same_json(after.response, case.baseline.response):
                yield case.problem("P1", location, _ALIKE.format(other), about="text")
                break


def _text_of(place: Place, texts: set[tuple[int, Path]]) -> Path | None:
    """Return the path of the text after a word: in the object or the row of the word, or inside of it."""
    if not _is_kind(place.value) or any((leaf.event, leaf.path) in texts for leaf in place.leaves):
        return None
    holder = place.path[:-1]
    events = {leaf.event for leaf in place.leaves}
    results = (path for event, path in texts if event in events and path[: len(holder)] == holder)
    return min(results, default=None, key=str)


def _kinds(case: Case, word: Path, text: Path) -> set[str | int]:
    """Return the words at *word* in all captures of this form, each of an object or a row with a text at *text*."""
    return {
        kind
        for _, events in case.of_this_form()
        for event in events
        for holder in _holders(event, word[:-1])
        if _is_text(at(holder, text[len(word) - 1 :])) and _is_kind(kind := at(holder, word[-1:]))
    }


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _holders(value: Any, path: Path) -> Iterator[Any]:
    """Yield what is at *path* in *value*, with any number in place of the number of an item."""
    if not path:
        yield value
    elif isinstance(path[0], int):
        for item in value if isinstance(value, list) else ():
            yield from _holders(item, path[1:])
    elif isinstance(value, dict) and path[0] in value:
        yield from _holders(value[path[0]], path[1:])


_WORD: Final = re.compile(r"\S{1,64}")
_UNKNOWN: Final[dict[type, str | int]] = {str: "crosswalk", int: 7070707}
_MOST_KINDS: Final = 16
"""More values at one place are not kinds."""
_ALIKE: Final = "{!r}, another kind of this provider, in its place changes nothing: both are read alike"


def _names(case: Case, texts: set[tuple[int, Path]]) -> Iterator[Problem]:
    """Another name of an event in place of the name of an event with a text."""
    named = {case.frames[event][1]: path for event, path in sorted(texts, key=str) if case.frames}
    for name, path in named.items():
        others = {
            other
            for frames, events in case.of_this_form()
            for (_, other), event in zip(frames, events, strict=False)
            if other not in (None, name) and _is_text(at(event, path))
        }
        if name is None or case.map_bytes(case.renamed(name, "crosswalk")).is_like(case.baseline):
            continue  # the name is not read
        for other in sorted(others):
            after = case.map_bytes(case.renamed(name, other))
            if after.error is None and same_json(after.response, case.baseline.response):
                yield case.problem("P1", f"events named {name}", _ALIKE.format(other), about="text")
                break


def _keys(case: Case, texts: set[tuple[int, Path]]) -> Iterator[Problem]:
    """The key of another text, of the same object, in place of a key: ``{"thought": …, "text": …}``."""
    for event, path in sorted(texts, key=str):
        for _, other in (one for one in texts if one != (event, path) and one[0] == event):
            value = at(case.events[event], path)
            if other[:-1] != path[:-1] or isinstance(path[-1], int) or at(case.events[event], other) == value:
                continue
            second = Leaf(event, other, None)
            alone = without(case.events, second)
            moved = replaced(without(alone, Leaf(event, path, None)), second, value)
            before, after = case.map(alone), case.map(moved)
            if before.error is None and same_json(before.response, after.response):
                yield case.problem(
                    "P1",
                    Leaf(event, path, value),
                    f"under the key {other[-1]!r} it is read alike",
                    about="text",
                )


def _without_numbers(kind: str | int) -> str | int:
    """Return *kind* without its numbers, which count: ``/out/0/say`` is of the kind of ``/out/1/say``."""
    return re.sub(r"[0-9]+", "", kind) if isinstance(kind, str) else kind


def _is_kind(value: Any) -> bool:
    return type(value) is int or (isinstance(value, str) and _WORD.fullmatch(value) is not None)
