"""Checks with a cut stream and with values of every other type: never a wrong or untyped result (P4)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from crosswalk.testing.captures import written
from crosswalk.testing.case import Case, typed
from crosswalk.testing.perturbation import (
    Leaf,
    Outcome,
    Path,
    confusions,
    replaced,
    scalars,
)
from crosswalk.testing.problems import Problem


def never_silently_wrong(case: Case) -> Iterator[Problem]:
    """P4: a stream cut after any event, or a leaf of the wrong type, never gives a wrong or untyped result."""
    yield from _truncated(case)
    for leaf in case.unlike():
        for other in confusions(leaf):
            after = case.map(replaced(case.events, leaf, other))
            what = f"with {orjson.dumps(other).decode()} in its place"
            if after.untyped:
                yield case.problem("P4", leaf, f"{what}: {after.error}")
            elif after.error is None and case.is_answer and after.response["finish_reason"] != "error":
                yield from _mistaken(case, leaf, other, after, what)
            elif other not in (None, "", [], {}, [None]) and after.is_like(case.baseline):
                yield case.problem("P4", leaf, f"{what} nothing changes")
                break  # no other value would


def _mistaken(case: Case, leaf: Leaf, other: Any, after: Outcome, what: str) -> Iterator[Problem]:
    """The plugin accepted *other*, of a wrong type: it must appear somewhere unchanged, and nowhere as something else.

    A number for a number may be converted, as a time is.
    """
    if type(other) in (int, float) and type(leaf.value) in (int, float):
        return
    shown = _coerced(case.typed, typed(after.response), other)
    if shown is not None:
        yield case.problem("P4", leaf, f"{what} it is read as {shown}")
    elif vanished(case.baseline, after, other):
        yield case.problem("P4", leaf, f"{what} it is accepted, and stands nowhere as it was sent")


def _truncated(case: Case) -> Iterator[Problem]:
    if len(case.events) < 2 or case.baseline.error is not None or not case.mapper.has_terminal:
        return
    whole = _said(case.baseline.response)
    counts: Iterable[int] = range(len(case.events))
    if case.sample is not None and len(case.events) > case.sample:
        counts = sorted(random.Random(case.capture.case).sample(range(len(case.events)), case.sample))
    for count in counts:
        after = case.map(case.events[:count])
        where = f"cut after event {count}"
        if after.error is None and _said(after.response) != whole:
            yield case.problem("P4", where, "looks like a complete answer, and is not", about="finish_reason")


def _said(response: Any) -> Any:
    keys = ("message", "finish_reason", "refusal", "alternatives")
    return [response.get(key) for key in keys]


def _coerced(before: Any, after: Any, value: Any) -> str | None:
    """Return the text that *value*, put into a payload, becomes in the typed fields, or ``None`` if it does not.

    Args:
        before: the typed fields without it, as canonical JSON.
        after: the typed fields with it.
        value: the value.
    """
    if after == before:
        return None
    fresh, spellings = Counter(_texts_of(after)) - Counter(_texts_of(before)), _spellings(value)
    for text in fresh:
        is_spelt = text == "-1" if value == -1 else any(encoded in text for encoded in spellings)
        if is_spelt and not _is_object(text):
            return f"the text {text[:40]!r}"
    return None


def _spellings(value: Any) -> set[str]:
    """Return the spellings of *value* in careless conversions to text. As JSON an object may represent its text."""
    if isinstance(value, str):
        return set()
    encoded, as_json = {str(value)}, {orjson.dumps(value).decode()}
    return encoded - as_json if isinstance(value, dict) else encoded | as_json


def _texts_of(value: Any) -> Iterator[str]:
    return (text for _, text in scalars(value) if isinstance(text, str))


def _is_object(text: str) -> bool:
    """Whether *text* is a JSON object, in which a value keeps its type."""
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False


def vanished(before: Outcome, after: Outcome, value: Any) -> bool:
    """Whether *value*, put into a payload, is missing in the result. An empty value need not leave a trace."""
    if value in (None, "", [], {}) or value == [None]:
        return False
    # The text usually decides. If the earlier value has gone too, the paths decide.
    needle = b"crosswalk" if isinstance(value, str | list | dict) else written(value)
    if after.text.count(needle) > before.text.count(needle):
        return False
    if after.text_of_deltas.count(needle) > before.text_of_deltas.count(needle):
        return False
    pairs = (before.response, after.response), (before.deltas, after.deltas)
    return not any(_places_of(value, new) - _places_of(value, old) for old, new in pairs)


def _places_of(value: Any, node: Any, path: Path = ()) -> Counter[Path]:
    """Count the positions of *value* in *node*: unchanged, in a text, or in the text of an object."""
    if type(node) is type(value) and node == value:
        return Counter([path])
    if isinstance(node, str):
        if isinstance(value, str):
            return Counter({path: node.count(value)})
        is_json = isinstance(value, dict) or _is_object(node)
        return Counter({path: node.count(orjson.dumps(value).decode()) if is_json else 0})
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    results: Counter[Path] = Counter()
    for key, item in items:
        results += _places_of(value, item, (*path, key))
    return results
