"""Checks of values that are converted on their way: numbers with a fraction, times, counts, and arguments of calls."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, Final

import orjson

from crosswalk.testing.case import Case, Place, strings
from crosswalk.testing.perturbation import Leaf, Path, leaves, replaced, scalars
from crosswalk.testing.problems import Problem
from crosswalk.types.usage import Provenance

_PARTS: Final = {
    "prompt_tokens": ("cached_tokens", "cache_write_tokens"),
    "completion_tokens": ("reasoning_tokens",),
}


def parts_within_wholes(case: Case) -> Iterator[Problem]:
    """P8: prompt tokens include the cached ones, completion tokens include reasoning."""
    if not case.is_answer:
        return
    usage = case.baseline.response["usage"]
    provenance = case.baseline.response["metadata"].get("provenance", {})
    if "usage" in provenance:
        return
    for whole, names in _PARTS.items():
        part = sum(usage.get(name) or 0 for name in names)
        if part > usage[whole] and f"usage.{whole}" not in provenance:
            yield case.problem(
                "P8", f"usage.{whole}", f"{usage[whole]}, and the parts that it includes are {part}"
            )


# ------------------------------------------------------------------------------------------ digits


def digits_kept(case: Case) -> Iterator[Problem]:
    """P4: a log probability is a number of the payload, with its sign and all of its digits, and 0 is one, too.

    A text of digits is taken for a number in only one spelling: ``"007"`` is not 7.
    """
    if not case.is_answer:
        return
    for location in case.places(str):
        if location.value.isascii() and location.value.isdecimal():
            encoded = f"0{location.value}"
            if case.map(location.put(case.events, encoded)).is_like(case.baseline):
                yield case.problem("P4", location, f"the text {encoded!r} is read as {location.value!r}")
    if not case.baseline.response.get("logprobs"):
        return
    yield from _other_digits(case, case.events, case.baseline.response, "logprobs")
    texts = [text for event in case.events for text in strings(event)]
    tokens = [entry["token"] for entry in case.baseline.response["logprobs"]]
    unsent = [token for token in tokens if token not in texts]
    for token in unsent[:1]:
        yield case.problem("P4", "logprobs", f"the token {token!r} is not a text of the payload")
    in_order = iter(texts)
    if not unsent and not all(token in in_order for token in tokens):
        yield case.problem("P4", "logprobs", "the tokens are not in the order of the payload")
    count = len(tokens)
    for location in case.places(float, by_value=False):
        events = case.events
        for size, leaf in enumerate(location.leaves, 1):
            events = replaced(events, leaf, -size / 64)
        after = case.map(events)
        if after.error is None and [one["token"] for one in after.response.get("logprobs") or ()] != tokens:
            yield case.problem("P4", location, "other numbers give other tokens, or another order of them")
        after = case.map(location.put(case.events, None))
        if after.error is None and _zeros(after.response) > _zeros(case.baseline.response):
            yield case.problem("P4", location, "null in its place is read as the log probability 0")
        for number in (_LONG, 0.0):
            events = case.events
            for leaf in location.leaves:
                events = replaced(events, leaf, -number if leaf.value < 0 else number)
            after = case.map(events)
            if after.error is not None or after.response is None:
                continue
            if len(after.response.get("logprobs") or ()) < count and not after.response["metadata"].get(
                "extensions"
            ):
                yield case.problem("P4", location, f"{number} in its place is not read as a log probability")
            yield from _other_digits(case, events, after.response, location)


def _entries(response: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the tokens of *response*, each before the likeliest tokens in its place."""
    for entry in response.get("logprobs") or ():
        yield entry
        yield from entry.get("top", ())


def _zeros(response: dict[str, Any]) -> int:
    return sum(entry.get("logprob") == 0 for entry in _entries(response))


_LONG: Final = 0.12345678901234568
"""A number with as many digits as a float can have."""


def _other_digits(
    case: Case, events: list[Any], response: dict[str, Any], where: Place | str
) -> Iterator[Problem]:
    """Report the first log probability in *response* that is not a number of *events*."""
    numbers = {_digits(leaf.value) for leaf in leaves(events) if type(leaf.value) in (int, float)}
    for entry in _entries(response):
        logprob = entry.get("logprob")  # the first token of a prompt has none
        if logprob is not None and _digits(logprob) not in numbers:
            yield case.problem("P4", where, f"the log probability {logprob} is not a number of the payload")
            return


def _digits(number: float) -> tuple[int, str]:
    """Return the sign and the digits of *number*, which are the same in another unit."""
    sign, digits, _ = Decimal(repr(number)).as_tuple()
    return sign, "".join(map(str, digits)).strip("0")


# ------------------------------------------------------------------------------------------- times


_EARLIEST, _LATEST = datetime(2015, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


def times_kept(case: Case) -> Iterator[Problem]:
    """P4: the time of an answer is plausible, and the same in another zone. Its fraction stays."""
    if not case.is_answer:
        return
    if "created" in case.baseline.response["metadata"].get("provenance", {}):
        yield from _time_left(case)
        yield from _time_lost(case)
        return
    created = datetime.fromisoformat(case.baseline.response["created"])
    numbers = [leaf.value for leaf in case.leaves if type(leaf.value) in (int, float)]
    if not _EARLIEST < created < _LATEST and any(_is_of(number, created) for number in numbers):
        yield case.problem(
            "P4", "created", f"the answer is from {created.year}: the time is read in a wrong unit"
        )
    for location in case.places(str):
        time = _time(location.value)
        if time is None or time != created or _created(case, location, time + timedelta(hours=1)) == created:
            continue  # it is not the time of the answer
        for other, name in (
            (time.astimezone(timezone(timedelta(hours=5, minutes=30))), "in another zone"),
            (time.replace(microsecond=123_456), "with a fraction"),
            (time.replace(second=(time.second + 37) % 60), "37 seconds later"),
        ):
            read = _created(case, location, other)
            if read not in (None, other):
                yield case.problem("P4", location, f"{other.isoformat()}, the time {name}, is read as {read}")


def _created(case: Case, place: Place, time: datetime) -> datetime | None:
    """Return the time of the answer with *time* in *place*, or ``None`` if it is refused or missing."""
    after = case.map(place.put(case.events, time.isoformat()))
    if after.error is not None or "created" in after.response["metadata"].get("provenance", {}):
        return None
    return datetime.fromisoformat(after.response["created"])


def _time_left(case: Case) -> Iterator[Problem]:
    """The answer has no time, but the extensions have a single one, or one under a name for the time of creation."""
    if "created" in (case.capture.says or {}):
        return
    extensions = case.baseline.response["metadata"].get("extensions", {})
    for key, value in extensions.items():
        if key in _CREATED and type(value) in (int, float) and _is_plausible(value):
            yield case.problem("P4", key, "the time of the answer is left in the extensions", about="created")
            return
    dated = [text for _, text in scalars(extensions) if isinstance(text, str) and _time(text) is not None]
    for leaf in case.leaves if len({*dated}) == 1 else ():
        if leaf.value == dated[0]:
            yield case.problem(
                "P4", leaf, "the only time of the answer is left in the extensions", about="created"
            )
            return


def _time_lost(case: Case) -> Iterator[Problem]:
    """The answer has no time, and another time in place of one of the payload changes nothing."""
    for location in case.places(str):
        if (time := _time(location.value)) is not None:
            other = (time + timedelta(days=1)).isoformat()
            if case.map(location.put(case.events, other)).is_like(case.baseline):
                yield case.problem(
                    "P1", location, "lost: another time in its place changes nothing", about="created"
                )


_UNITS: Final = (1, 1e3, 1e6, 1e9)
"""The numbers of parts of a second that a time may count."""


def _is_plausible(number: float) -> bool:
    """Whether *number* is a time since 1970, in seconds or in parts of them."""
    return any(_EARLIEST.timestamp() < number / unit < _LATEST.timestamp() for unit in _UNITS)


def _is_of(number: float, created: datetime) -> bool:
    """Whether *number* is a plausible time in one unit, and *created* the same in another."""
    return _is_plausible(number) and any(abs(number / unit - created.timestamp()) < 1 for unit in _UNITS)


_CREATED: Final = frozenset({"created", "created_at", "createdAt", "create_time", "createTime", "timestamp"})


def _time(text: str) -> datetime | None:
    """Return the time of *text* in ISO 8601, with its zone, or ``None`` for any other text."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo is not None else None


# --------------------------------------------------------------------------------------- arguments


def arguments_told_apart(case: Case) -> Iterator[Problem]:
    """P4: arguments that are ``{}``, ``""``, ``null`` or missing are not taken for each other, or are marked."""
    if not case.is_answer or case.baseline.response["finish_reason"] == "length":
        return  # empty arguments of an answer that was cut may be the start of any
    calls = case.baseline.response["message"].get("tool_calls", ())
    for number, call in enumerate(calls):
        leaf = _arguments_in(case, call["arguments"])
        if leaf is None:
            continue
        for value, wanted in (({}, "{}"), ("", ""), (None, "")):
            after = case.map(replaced(case.events, leaf, value))
            if after.error is not None or after.response["finish_reason"] == "error":
                continue
            read = next(iter(after.response["message"].get("tool_calls", ())[number : number + 1]), None)
            marks = after.response["metadata"].get("provenance", {})
            mark = marks.get(f"message.tool_calls[{number}].arguments")
            if read is None or (
                read["arguments"] == "{}" and mark in (Provenance.DERIVED, Provenance.ABSENT)
            ):
                continue
            if read["arguments"] != wanted and mark is None:
                shown = orjson.dumps(value).decode()
                yield case.problem(
                    "P4", leaf, f"the arguments {shown} are read as {read['arguments']!r}, and not marked"
                )


def _arguments_in(case: Case, arguments: str) -> Leaf | None:
    """Return the only leaf of *arguments*, as a text or its object, or ``None`` unless there is exactly one."""
    try:
        value = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        value = None
    results = [
        Leaf(number, path, node)
        for number, event in enumerate(case.events)
        for path, node in _nodes(event)
        if path and (node == arguments or (value and isinstance(node, dict) and node == value))
    ]
    return results[0] if len(results) == 1 else None


def _nodes(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield every value in *value*, with its path."""
    yield path, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _nodes(item, (*path, key))
