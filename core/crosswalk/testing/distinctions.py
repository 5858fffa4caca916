"""Checks of what a provider tells apart in all of its captures: the kinds of its texts, its failures, its ids and words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from crosswalk.testing.case import MARKER, Case, Place, answer
from crosswalk.testing.decoded import Decoded, position
from crosswalk.testing.perturbation import Leaf, Outcome, Path, at, replaced, without
from crosswalk.testing.problems import Problem
from crosswalk.types.finish import FinishReason
from crosswalk.types.merge import same_json
from crosswalk.types.metadata import Provenance

__all__ = ["failures_are_told", "ids_are_told_from_models", "kinds_are_told_apart"]


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
        text = _text_of(location, texts)
        kinds = {kind for kind, _ in _kinds(case, location.path, text)} if text else set()
        own = _without_numbers(location.value)
        others = sorted((kind for kind in kinds - {None} if _without_numbers(kind) != own), key=str)
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


def _kinds(case: Case, word: Path, text: Path) -> Iterator[tuple[str | int | None, str | None]]:
    """Yield the word at *word*, and the name of the event, of each event of a capture in this form with a text at *text*."""
    captures = [case.content, *(one for other, one in case.compared() if other.stream == case.capture.stream)]
    for frames, events in ((one.frames, one.events) for one in captures):
        for number, event in enumerate(events):
            for holder in _holders(event, word[:-1]):
                kind, described = at(holder, word[-1:]), at(holder, text[len(word) - 1 :])
                if described and isinstance(described, str):
                    yield kind if _is_kind(kind) else None, frames[number][1] if frames else None


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
        others = {other for _, other in _kinds(case, path, path) if other} - {name}
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


def _without_numbers(kind: str | int | None) -> str | int | None:
    """Return *kind* without its numbers, which count: ``/out/0/say`` is of the kind of ``/out/1/say``."""
    return re.sub(r"[0-9]+", "", kind) if isinstance(kind, str) else kind


def _is_kind(value: Any) -> bool:
    return type(value) is int or (isinstance(value, str) and _WORD.fullmatch(value) is not None)


# --------------------------------------------------------------------------------------- failures


def failures_are_told(case: Case) -> Iterator[Problem]:
    """P4: an event with a key that every recorded failure has, and few answers, ends the answer as an error."""
    failures = [
        set(_signs(one.events[0])) for other, one in case.compared() if other.status >= 400 and one.events
    ]
    if not failures or not case.is_answer:
        return
    answers = [one.events for other, one in case.compared() if other.status < 400 and one.events]
    usual = [{sign for event in events for sign in _signs(event)} for events in answers]
    signs = set.intersection(*failures) - set(_signs(case.events[0]))
    signs = {sign for sign in signs if 2 * sum(sign in one for one in usual) < len(usual)}
    response = case.baseline.response
    for number, event in enumerate(case.events, 1):
        result = signs & set(_signs(event))
        if result:
            where, finish = f"event {number}", response["finish_reason"]
            yield case.problem(
                "P4",
                where,
                f"has {min(result)} like every recorded failure, and the answer ends as {finish}",
                about="finish_reason",
            )
            return


def _signs(value: Any, key: str = "") -> Iterator[str]:
    """Yield the keys of *value* that are not null, and the first words of its rows."""
    if isinstance(value, dict):
        for name, item in value.items():
            if item is not None:
                yield name
            if isinstance(item, list):
                yield from _signs(item, name)
    elif isinstance(value, list):
        if value and isinstance(value[0], str):
            yield f"{key}[{value[0]}]"
        for item in value:
            if isinstance(item, list):
                yield from _signs(item, key)


# -------------------------------------------------------------------------------- ids and words


def ids_are_told_from_models(case: Case) -> Iterator[Problem]:
    """P8: an id belongs to one answer, a model to many. P4: a word that ends only answers with calls means calls."""
    if not case.is_answer:
        return
    pair = case.capture.pair
    others = [
        one for other, one in case.compared() if other.status < 400 and other.pair != pair and one.events
    ]
    if len(others) < 2:
        return
    id, model = case.baseline.response["id"], case.baseline.response["model"]
    if all(id in one.texts for one in others) and not any(model in one.texts for one in others):
        yield case.problem("P8", "id", "it is in every other answer, and the model in none: they are swapped")
    yield from _end_of_calls(case, others)


def _end_of_calls(case: Case, others: list[Decoded]) -> Iterator[Problem]:
    """An answer with calls, and with a word of this provider alone that ends no other answer: it is read as ``stop``.

    The reader makes ``tool_calls`` of a ``stop`` with calls, and marks it.
    """
    response = case.baseline.response
    raw, mark = (
        response.get("raw_finish_reason"),
        response["metadata"].get("provenance", {}).get("finish_reason"),
    )
    is_mended = response["finish_reason"] == "tool_calls" and mark == Provenance.DERIVED
    if not is_mended or not raw or raw.lower() in tuple(FinishReason):
        return
    places = {position(leaf.path) for leaf in case.leaves if str(leaf.value) == raw}
    known = [set[str]().union(*(one.words.get(location, ()) for one in others)) for location in places]
    if any(words and raw not in words for words in known):
        yield case.problem(
            "P4", "finish_reason", f"{raw!r}, which ends answers with calls alone, is read as stop"
        )
