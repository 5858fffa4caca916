"""Whether a value of a wrong type was taken for another one, or has vanished."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import orjson

from crosswalk.testing.captures import written
from crosswalk.testing.perturbation import (
    Outcome,
    Path,
    scalars,
)

__all__ = ["coerced", "vanished"]


def coerced(before: Any, after: Any, value: Any) -> str | None:
    """How *value*, put into a payload, shows as a text in the typed fields; ``None`` where it does not.

    Args:
        before: what the typed fields held without it, as canonical JSON.
        after: what they hold with it.
        value: it.
    """
    if after == before:
        return None
    fresh, spellings = Counter(_texts_of(after)) - Counter(_texts_of(before)), _spellings(value)
    for text in fresh:
        is_spelt = text == "-1" if value == -1 else any(spelt in text for spelt in spellings)
        if is_spelt and not _is_object(text):
            return f"the text {text[:40]!r}"
    return None


def _spellings(value: Any) -> set[str]:
    """How a careless conversion to text spells *value*; as JSON an object may stand for the text of one."""
    if isinstance(value, str):
        return set()
    spelt, as_json = {str(value)}, {orjson.dumps(value).decode()}
    return spelt - as_json if isinstance(value, dict) else spelt | as_json


def _texts_of(value: Any) -> Iterator[str]:
    return (text for _, text in scalars(value) if isinstance(text, str))


def _is_object(text: str) -> bool:
    """Whether *text* is that of a JSON object, in which a value keeps its type."""
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False


def vanished(before: Outcome, after: Outcome, value: Any) -> bool:
    """Whether *value*, put into a payload, stands nowhere in what came of it; of what is empty nothing need be left."""
    if value in (None, "", [], {}) or value == [None]:
        return False
    # The text tells at once, mostly; where what stood there before has gone too, the paths do.
    needle = b"crosswalk" if isinstance(value, str | list | dict) else written(value)
    if after.text.count(needle) > before.text.count(needle):
        return False
    if after.text_of_deltas.count(needle) > before.text_of_deltas.count(needle):
        return False
    pairs = (before.response, after.response), (before.deltas, after.deltas)
    return not any(_places_of(value, new) - _places_of(value, old) for old, new in pairs)


def _places_of(value: Any, node: Any, path: Path = ()) -> Counter[Path]:
    """Where *value* stands in *node*, as it is, in a text, or in the text of an object."""
    if type(node) is type(value) and node == value:
        return Counter([path])
    if isinstance(node, str):
        if isinstance(value, str):
            return Counter({path: node.count(value)})
        is_json = isinstance(value, dict) or _is_object(node)
        return Counter({path: node.count(orjson.dumps(value).decode()) if is_json else 0})
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    found: Counter[Path] = Counter()
    for key, item in items:
        found += _places_of(value, item, (*path, key))
    return found
