"""The differences of two responses, field by field: compares the result of a new mapping with a stored one."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any, Final

import attrs
import orjson

from crosswalk.codec.layout import layout
from crosswalk.codec.problems import step
from crosswalk.codec.writing import to_jsonable
from crosswalk.text import brief
from crosswalk.types.response import ChatResponse
from crosswalk.types.usage import Provenance, ResponseMetadata, UsageInfo


class Absent(Enum):
    """The type of :data:`ABSENT`."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT
"""The placeholder for a value that one of two responses does not have. ``None`` is JSON's null."""


@brief
@attrs.frozen
class Difference:
    """A difference of two responses at one path.

    Attributes:
        path: the keys that lead there, such as ``("usage", "cached_tokens")``. Items of an array are counted as
            in the newer response. An item that it does not have is counted as in the older one.
        before: the older value, as plain JSON, or :data:`ABSENT` if there was none.
        after: the newer one, likewise.
    """

    path: tuple[str | int, ...]
    before: Any
    after: Any

    @property
    def place(self) -> str:
        """The path as text: ``message.tool_calls[0].name``."""
        return "".join(map(step, self.path)).removeprefix(".")

    @property
    def field(self) -> str:
        """The same for every item of an array: ``message.tool_calls[].name``."""
        return "".join("[]" if isinstance(key, int) else step(key) for key in self.path).removeprefix(".")

    def __repr__(self) -> str:
        return f"Difference({self.place!r})"


def differences(before: ChatResponse, after: ChatResponse) -> list[Difference]:
    """Return the differences of the canonical JSON of two responses, in the order of its keys.

    Values that no mapping decides are left out: computed values, ``raw_events``, and an id or a time that was made up.
    A made-up one counts as absent, so one that has become the provider's own is a difference. Of two arrays,
    equal items at the start and at the end belong together, so that an inserted item is one difference.

    Args:
        before: the older response, such as a stored one that :func:`crosswalk.from_json` has read.
        after: the newer one.

    Raises:
        CanonicalJSONError: one of them cannot be written as JSON.
    """
    return list(_differences(_said(before), _said(after), ()))


def _said(response: ChatResponse) -> dict[str, Any]:
    """Return the canonical JSON of *response*, without values that no mapping decides."""
    raw: dict[str, Any] = to_jsonable(response)
    for name, cls in (("usage", UsageInfo), ("metadata", ResponseMetadata)):
        for key in layout(cls):
            if key.computed:
                raw[name].pop(key.name, None)
    for name in ("id", "created"):
        if response.metadata.provenance.get(name) is Provenance.SYNTHETIC:
            del raw[name]
    return raw


def _differences(before: Any, after: Any, path: tuple[str | int, ...]) -> Iterator[Difference]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in {**before, **after}:
            yield from _differences(before.get(key, ABSENT), after.get(key, ABSENT), (*path, key))
    elif isinstance(before, list) and isinstance(after, list):
        yield from _between_arrays(before, after, path)
    elif type(before) is not type(after) or before != after:
        yield Difference(path, before, after)


def _between_arrays(before: list[Any], after: list[Any], path: tuple[str | int, ...]) -> Iterator[Difference]:
    # As JSON: to Python, true is 1.
    old, new = list(map(orjson.dumps, before)), list(map(orjson.dumps, after))
    shorter = min(len(old), len(new))
    start = 0
    while start < shorter and old[start] == new[start]:
        start += 1
    end = 0
    while end < shorter - start and old[-1 - end] == new[-1 - end]:
        end += 1
    left, right = before[start : len(before) - end], after[start : len(after) - end]
    for number in range(max(len(left), len(right))):
        one = left[number] if number < len(left) else ABSENT
        other = right[number] if number < len(right) else ABSENT
        yield from _differences(one, other, (*path, start + number))
