"""Checks that nothing is lost (P1), and that no cut or mistyped answer is read wrongly (P4)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

import attrs
import orjson

from crosswalk.testing.captures import json_object, written
from crosswalk.testing.case import Case, strings, typed
from crosswalk.testing.perturbation import Leaf, Outcome, Path, at, changes, confusions, replaced, scalars
from crosswalk.testing.problems import Problem

# -------------------------------------------------------------------------------- mistaken
# Checks with a cut stream and with values of every other type: never a wrong or untyped result (P4).


def never_silently_wrong(case: Case) -> Iterator[Problem]:
    """P4: a stream cut after any event, or a leaf of the wrong type, never gives a wrong or untyped result."""
    yield from _truncated(case)
    for leaf in [*case.unlike(), *_containers(case)]:
        for wrong_value in confusions(leaf):
            changed_outcome = case.map(replaced(case.events, leaf, wrong_value))
            change_text = f"with {orjson.dumps(wrong_value).decode()} in its place"
            if changed_outcome.untyped:
                yield case.problem("P4", leaf, f"{change_text}: {changed_outcome.error}")
            elif case.is_answer and changed_outcome.is_taken:
                yield from _mistaken(case, leaf, wrong_value, changed_outcome, change_text)
            elif wrong_value not in (None, "", [], {}, [None]) and changed_outcome.is_like(case.baseline):
                yield case.problem("P4", leaf, f"{change_text} nothing changes")
                break  # no other value would


def _containers(case: Case) -> list[Leaf]:
    """Return a sample of the objects and arrays inside of events, as if they were leaves."""
    return case.few(one for one in case.nodes() if one.path and isinstance(one.value, dict | list))


def _mistaken(
    case: Case, leaf: Leaf, wrong_value: Any, changed_outcome: Outcome, change_text: str
) -> Iterator[Problem]:
    """The plugin accepted *wrong_value*, of a wrong type: it must appear somewhere unchanged, and nowhere as something else.

    A number for a number may be converted, as a time is, and a number for a time may be one.
    """
    if type(wrong_value) in (int, float):
        created = datetime.fromisoformat(changed_outcome.response["created"])
        if type(leaf.value) in (int, float) or created.timestamp() == wrong_value:
            return
    coerced_text = _coerced(case.typed, typed(changed_outcome.response), wrong_value)
    if coerced_text is not None:
        if not isinstance(leaf.value, dict | list):  # as arguments, which may be the JSON of anything
            yield case.problem("P4", leaf, f"{change_text} it is read as {coerced_text}")
    elif vanished(case.baseline, changed_outcome, wrong_value):
        yield case.problem("P4", leaf, f"{change_text} it is accepted, and is nowhere as it was sent")


def _truncated(case: Case) -> Iterator[Problem]:
    if len(case.events) < 2 or case.baseline.error is not None or not case.mapper.has_terminal:
        return
    whole_content = _said(case.baseline.response)
    counts: Iterable[int] = range(len(case.events))
    if case.sample is not None and len(case.events) > case.sample:
        counts = sorted(random.Random(case.capture.case).sample(range(len(case.events)), case.sample))
    for count in counts:
        cut_outcome = case.map(case.events[:count])
        cut_place = f"cut after event {count}"
        if cut_outcome.error is None and _said(cut_outcome.response) != whole_content:
            message = "looks like a complete answer, and is not"
            yield case.problem("P4", cut_place, message, about="finish_reason")


def _said(response: Any) -> Any:
    return [response.get(key) for key in ("message", "finish_reason", "refusal", "alternatives")]


def _coerced(before: Any, after: Any, value: Any) -> str | None:
    """Return the text that *value*, put into a payload, becomes in the typed fields, or ``None`` if it does not.

    Args:
        before: the typed fields without it, as canonical JSON.
        after: the typed fields with it.
        value: the value.
    """
    if after == before:
        return None
    new_texts, spellings = Counter(_texts_of(after)) - Counter(_texts_of(before)), _spellings(value)
    for text in new_texts:
        is_spelt = text == "-1" if value == -1 else any(spelling in text for spelling in spellings)
        if is_spelt and json_object(text) is None:
            return f"the text {text[:40]!r}"
    return None


def _spellings(value: Any) -> set[str]:
    """Return the spellings of *value* in careless conversions to text. As JSON an object may represent its text."""
    if isinstance(value, str):
        return set()
    text_spellings, json_spellings = {str(value)}, {orjson.dumps(value).decode()}
    return text_spellings - json_spellings if isinstance(value, dict) else text_spellings | json_spellings


def _texts_of(value: Any) -> Iterator[str]:
    return (text for _, text in scalars(value) if isinstance(text, str))


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
        inside = json_object(node)
        if inside is not None:
            return _places_of(value, inside, path)
        return Counter({path: node.count(orjson.dumps(value).decode()) if isinstance(value, dict) else 0})
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    counts: Counter[Path] = Counter()
    for key, item in items:
        counts += _places_of(value, item, (*path, key))
    return counts


# -------------------------------------------------------------------------------- lossless
# Checks that nothing is lost: another value, one more item, one more field show (P1).


def nothing_lost(case: Case) -> Iterator[Problem]:
    """P1: if one leaf of the payload changes, the canonical JSON changes.

    An event that a cut stream ends with may wait for the next one.
    """
    waiting_index = len(case.events) - 1 if case.baseline.error is not None and case.capture.stream else None
    for leaf in case.sampled():
        for name, events in changes(case.events, leaf):
            changed_outcome = case.map(events)
            if changed_outcome.is_like(case.baseline):
                if leaf.event == waiting_index or _is_of_another(case, leaf):
                    continue
                message = f"lost: changing its {name} changes nothing{_cure(case, leaf)}"
                yield case.problem("P1", leaf, message)
            elif changed_outcome.untyped:
                yield case.problem("P4", leaf, f"changing its {name}: {changed_outcome.error}")
            elif name == "value" and _is_dropped(case, leaf, events, changed_outcome):
                yield case.problem("P1", leaf, "lost: this value is kept, and another one is not")
    yield from _more_items(case)
    yield from _more_fields(case)
    yield from _more_parts(case)


def _cure(case: Case, leaf: Leaf) -> str:
    """Return how the number of a call is kept, or ``""`` for another leaf."""
    calls = case.baseline.response["message"].get("tool_calls", ()) if case.is_answer else ()
    beside = [*strings(at(case.events[leaf.event], leaf.path[:-1]))] if type(leaf.value) is int else []
    is_call = any(call["name"] in beside for call in calls)
    return " (take_tool_call keeps a number of a call that differs, or put it back)" if is_call else ""


def _is_of_another(case: Case, leaf: Leaf) -> bool:
    """Whether the next number is that of another part of the answer, and a number of none changes it."""
    others = [one for one in case.leaves if one.path[-1] == leaf.path[-1] and type(one.value) is int]
    is_next = type(leaf.value) is int and any(one.value == leaf.value + 1 for one in others)
    return is_next and not case.map(replaced(case.events, leaf, 7070707)).is_like(case.baseline)


def _is_dropped(case: Case, leaf: Leaf, events: list[Any], changed_outcome: Outcome) -> bool:
    """Whether *leaf* is in the extensions, and nowhere with its value in *events*, which changes nothing else."""
    extensions = case.baseline.extensions if case.is_answer else {}
    kept_values = [value for path, value in scalars(extensions) if path[-1:] == leaf.path[-1:]]
    return (
        leaf.value in kept_values
        and changed_outcome.error is None
        and typed(changed_outcome.response) == case.typed
        and vanished(case.baseline, changed_outcome, at(events[leaf.event], leaf.path))
    )


def _more_items(case: Case) -> Iterator[Problem]:
    """One more item in an array, similar to its items, is neither taken for another thing nor dropped."""
    ends = [attrs.evolve(one, path=(*one.path, len(one.value))) for one in case.nodes(kind=list)]
    for end in case.few(ends):
        array, items = attrs.evolve(end, path=end.path[:-1]), end.value
        item = next((more for kind, more in _ITEMS.items() if type(items[-1]) is kind), "crosswalk")
        # An optional item may come between.
        for more in ([item], [None, None, None, item]):
            changed_outcome = case.map(replaced(case.events, array, [*items, *more]))
            if changed_outcome.error is None:
                if vanished(case.baseline, changed_outcome, item):
                    message = "lost: one more item at the end of the array changes nothing"
                    yield case.problem("P1", end, message)
                break


def _more_fields(case: Case) -> Iterator[Problem]:
    """One more field in an object, unknown to all plugins, arrives, or is refused."""
    for field in case.few(attrs.evolve(one, path=(*one.path, "crosswalk")) for one in case.nodes(kind=dict)):
        changed_outcome = case.map(replaced(case.events, field, 1234.5))
        if changed_outcome.error is None and vanished(case.baseline, changed_outcome, 1234.5):
            yield case.problem("P1", field, "lost: an unknown field of the object changes nothing")


def _more_parts(case: Case) -> Iterator[Problem]:
    """One more call after the last of an array of calls is a call, too. So is one more source, if it has no span."""
    response: dict[str, Any] = case.baseline.response if case.is_answer else {"message": {}}
    notes = [note for part in response.get("segments", ()) for note in part.get("annotations", ())]
    calls = [call["id"] for call in response["message"].get("tool_calls", ())]
    for text in (*calls[-1:], *(n["source"] for n in notes[-1:] if n.get("source") and not n.get("span"))):
        found = [leaf for leaf in case.leaves if leaf.value == text]
        depths = [depth for depth, key in enumerate(found[0].path) if isinstance(key, int)] if found else []
        array = Leaf(found[0].event, found[0].path[: depths[-1]], None) if depths and depths[-1] else None
        items: list[Any] = at(case.events[array.event], array.path) if array and len(found) == 1 else [None]
        if array is None or not isinstance(items[-1], dict):
            continue
        changed = case.map(replaced(case.events, array, [*items, _another(items[-1], text)]))
        if changed.error is None and f"{text}-2" not in _texts_of(typed(changed.response)):
            kind = "call" if text in calls else "source"
            message = f"one more {kind} at the end of the array is not read as a {kind}"
            yield case.problem("P1", array, message, about=f"{kind}s")


def _another(value: Any, id: str) -> Any:
    """Return a copy of *value* with another id or text and other numbers."""
    if isinstance(value, dict):
        return {key: _another(item, id) for key, item in value.items()}
    return value + 1 if type(value) is int else f"{id}-2" if value == id else value


_ITEMS: Final[dict[type, Any]] = {
    dict: {"crosswalk": "crosswalk"},
    list: ["crosswalk"],
    int: 7070707,
    float: 1234.5,
}
