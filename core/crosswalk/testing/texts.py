"""Checks of texts: each unchanged, and in one place."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any, Final

import orjson

from crosswalk.testing.case import MARKER, NAME, Case, Place, marker_for, occurrences, strings, typed
from crosswalk.testing.perturbation import (
    Leaf,
    Path,
    at,
    replaced,
    scalars,
    show_path,
)
from crosswalk.testing.problems import Problem

_REASONING: Final = re.compile(r"reasoning|think|thought", re.IGNORECASE)


def text_as_it_was_sent(case: Case) -> Iterator[Problem]:
    """P4: another text in place of a text shows exactly, capitals, spaces and all, or is refused."""
    for location in _texts(case):
        after = case.marked(location)
        if location.value.isdecimal():
            yield from _padded_numbers(case, location)
        if after.error is not None or after.response is None:
            continue
        if not occurrences(after.response) and not occurrences(after.deltas):
            yield case.problem("P4", location, "another text in its place is not passed on as it is")
        elif _says_reasoning(case, location.leaves[0]) and occurrences(
            after.response["message"].get("content")
        ):
            yield case.problem("P4", location, "reasoning is given as the text of the answer")
        elif (
            _is_all_reasoning(case)
            and occurrences(_reasoning(after.response))
            and not _says_reasoning(case, location.leaves[0])
        ):
            yield case.problem(
                "P4", location, "the text of an answer that ended by itself is given as reasoning"
            )
        elif marker_for(location.value) == MARKER:
            yield from _changed_texts(case, Place(location.leaves[:4]))
        else:
            yield from _written_anew(case, location)
    yield from _equal_pieces(case)
    yield from _joined(case)


def _is_all_reasoning(case: Case) -> bool:
    """Whether the answer ended by itself with only reasoning, and nothing is stated about its text."""
    response = case.baseline.response
    kinds = {part["type"] for part in response.get("segments", ())}
    return (
        response["finish_reason"] == "stop"
        and kinds == {"reasoning"}
        and "text" not in (case.capture.says or {})
    )


def _reasoning(response: dict[str, Any]) -> list[str]:
    return [part["content"] for part in response.get("segments", ()) if part["type"] == "reasoning"]


def _joined(case: Case) -> Iterator[Problem]:
    """One more item after the last of an array: nothing comes between its text and the one before."""
    if not case.is_answer:
        return
    for location in _texts(case):
        leaf = location.leaves[0]
        number = max((depth for depth, key in enumerate(leaf.path) if isinstance(key, int)), default=None)
        if number is None or len(location.leaves) > 1 or marker_for(location.value) != MARKER:
            continue
        array = Leaf(leaf.event, leaf.path[:number], None)
        *others, last = at(replaced(case.events, leaf, MARKER)[leaf.event], array.path)
        after = case.map(replaced(case.events, array, [*others, last, last]))
        for text in _words(after.response) if after.error is None else ():
            between = text.split(MARKER)[1:-1]
            if between and between[0] not in {"", *strings(case.events)}:
                yield case.problem("P4", location, f"between it and the next one, {between[0]!r} is put in")


def _words(response: dict[str, Any]) -> list[str]:
    """Return the texts, the reasoning and the refusals of the first choice."""
    kinds = ("text", "reasoning", "refusal")
    return [part["content"] for part in response.get("segments", ()) if part["type"] in kinds]


_TEXTS: Final = {
    "  ": "a text of white space",
    "\n": "a line break",
    "Kelp\x00\x07 \u200b": "a text with characters that nobody sees",
    f"\r\n\t{'Kelp ' * 14_000}\t\r\n": "a long text with white space around it",
}


def _changed_texts(case: Case, place: Place) -> Iterator[Problem]:
    """The text of the first choice at *place* is replaced by white space, or by a long text."""
    raw = "".join(_parts(case.marked(place).response))
    for text, name in _TEXTS.items() if MARKER in raw else ():
        if place.value.startswith(text):
            continue  # a later event that repeats the whole would then continue where this one ended
        after = case.map(place.put(case.events, text))
        in_json = orjson.dumps(text).decode()[1:-1]  # as in the arguments of a call
        if after.error is None and "".join(_parts(after.response)) not in {
            raw.replace(MARKER, text),
            raw.replace(MARKER, in_json),
        }:
            yield case.problem("P4", place, f"{name} in its place is not passed on as it is")


_OBJECT: Final = '{ "KeLp":1.50, "b" :"\\u00e9\\/" }'
"""The text of a JSON object with white space, digits and escapes that another writer would leave out."""


def _written_anew(case: Case, place: Place) -> Iterator[Problem]:
    """The arguments of a call are the text that was sent, not the same object written anew."""
    after = case.map(place.put(case.events, _OBJECT))
    calls = after.response["message"].get("tool_calls", ()) if after.error is None else ()
    for arguments in (call["arguments"] for call in calls):
        if "KeLp" in arguments and _OBJECT not in arguments:
            yield case.problem("P4", place, f"the arguments {_OBJECT!r} are written anew, as {arguments!r}")
            return


def _padded_numbers(case: Case, place: Place) -> Iterator[Problem]:
    """A number that is sent as text has one spelling: the others that Python's ``int`` takes are not read as a number."""
    for text in (f" {place.value}\n", f"1_{place.value}"):
        after = case.map(place.put(case.events, text))
        if (
            after.error is None
            and not occurrences(after.response, text)
            and not occurrences(after.deltas, text)
        ):
            yield case.problem("P4", place, f"{text!r} in its place is read as a number")


def _equal_pieces(case: Case) -> Iterator[Problem]:
    """Consecutive pieces of text: if different ones are all passed on, equal ones are, too."""
    for location in case.every_place(str, by_value=False):
        few = [leaf for leaf in location.leaves if leaf.value and marker_for(leaf.value) == MARKER][:4]
        if len({leaf.value for leaf in few}) < 2:
            continue
        events = case.events
        for number, leaf in enumerate(few):
            events = replaced(events, leaf, f"{number}{MARKER}")
        unlike, similar = case.map(events), case.map(Place(tuple(few)).put(case.events, MARKER))
        if unlike.error is not None or similar.error is not None:
            continue
        if occurrences(_parts(similar.response)) < occurrences(_parts(unlike.response)):
            yield case.problem("P4", location, "the same text again, in its next event, is not passed on")


def _parts(response: dict[str, Any]) -> list[str]:
    """Return the output of the first choice: texts, reasoning, arguments."""
    return [part["content"] for part in response.get("segments", ())]


def _texts(case: Case) -> list[Place]:
    if case.baseline.error is not None or not case.events:
        return []
    return case.places(str)


def _says_reasoning(case: Case, leaf: Leaf) -> bool:
    """Whether a key on the way to *leaf*, the kind of its holder, or the name of its event marks it as reasoning."""
    parent = at(case.events[leaf.event], leaf.path[:-1])
    names = {next(iter(parent)), "kind", "type"} - {leaf.path[-1]} if isinstance(parent, dict) else ()
    kinds = [
        parent[name] for name in names if isinstance(parent.get(name), str) and NAME.fullmatch(parent[name])
    ]
    event_name = case.frames[leaf.event][1] if case.frames else None
    keys = [key for key in leaf.path if isinstance(key, str)]
    return any(_REASONING.search(name) for name in (*keys, *case.words(leaf), *kinds, event_name or ""))


def text_only_once(case: Case) -> Iterator[Problem]:
    """P1: a value in a typed field is not also in the extensions, and no text is given twice.

    Values derived from a stored part may repeat it: citations, verdicts, media and errors.
    """
    for location in _texts(case):
        after = case.marked(location)
        if after.error is not None or after.response is None:
            continue
        extensions = after.response["metadata"].get("extensions", {})
        if occurrences(extensions) and occurrences(_spoken(after.response)):
            where = next(
                path for path, text in scalars(extensions) if isinstance(text, str) and MARKER in text
            )
            yield case.problem(
                "P1", location, f"stands in a typed field and in the extensions: {show_path(where)}"
            )
        for kind in ("text", "reasoning", "refusal"):
            parts = [p["content"] for p in after.response.get("segments", ()) if p["type"] == kind]
            if occurrences(parts) > occurrences(marker_for(location.value)) * len(location.leaves):
                yield case.problem("P1", location, f"stands more than once in the {kind} of the answer")
    yield from _doubled(case)


_DERIVED: Final = frozenset({"citation", "safety", "media", "error"})


def _spoken(response: dict[str, Any]) -> dict[str, Any]:
    """Return the typed fields of *response* that hold output, without those that are derived from it."""
    parts = [part for part in response.get("segments", ()) if part["type"] not in _DERIVED]
    derived = ("content_filter_results", "refusal")
    remainder = {key: value for key, value in typed(response).items() if key not in derived}
    return {**remainder, "segments": [{**part, "metadata": {}} for part in parts]}


def _doubled(case: Case) -> Iterator[Problem]:
    """Text that grows from event to event, or is repeated at the end, is given twice."""
    if not case.is_answer or len(case.events) < 2:
        return
    shown = {text for text in strings(case.typed["message"]) if len(text) > 3}
    by_path: dict[Path, list[str]] = {}
    for leaf in case.leaves:
        if isinstance(leaf.value, str) and leaf.value:
            by_path.setdefault(leaf.path, []).append(leaf.value)
    in_pieces = {"".join(pieces): path for path, pieces in by_path.items() if len(pieces) > 1}
    whole = {pieces[0] for pieces in by_path.values() if len(pieces) == 1}
    for text, path in in_pieces.items():
        pieces = by_path[path]
        grows = len(pieces) > 2 and all(
            len(b) > len(a) and b.startswith(a) for a, b in itertools.pairwise(pieces)
        )
        if grows and text in shown:
            yield case.problem(
                "P1", show_path(path), "the text grows from event to event, and is added up", about="text"
            )
        if text in whole and text * 2 in shown:
            yield case.problem(
                "P1",
                show_path(path),
                "the text is said again as a whole, and is added to itself",
                about="text",
            )
