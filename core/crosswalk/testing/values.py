"""Checks of values that are converted or not sent at all: numbers, times, counts, and the origin of each (P8)."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from email.utils import parsedate_to_datetime
from typing import Any, Final

from crosswalk.plugin.state import time_of
from crosswalk.testing.captures import COUNTS, json_object
from crosswalk.testing.case import Case, Place, decoded, strings, typed
from crosswalk.testing.pairing import normalized
from crosswalk.testing.perturbation import Leaf, Outcome, at, nodes, replaced, scalars, show_path, without
from crosswalk.testing.problems import Problem
from crosswalk.testing.texts import holds
from crosswalk.types.json import dump_json
from crosswalk.types.usage import Provenance

# ---------------------------------------------------------------------------------- values
# Checks of values that are converted on their way: numbers with a fraction, times, counts, and arguments of calls.


_PARTS: Final = {
    "prompt_tokens": ("cached_tokens", "cache_write_tokens"),
    "completion_tokens": ("reasoning_tokens",),
}
_URL: Final = re.compile("https?://")


def parts_within_wholes(case: Case) -> Iterator[Problem]:
    """P8: prompt tokens include the cached ones, completion tokens include reasoning.

    A citation ends after its start, and its source is its URL.
    """
    response = case.baseline.response
    notes = [note for part in response.get("segments", ()) for note in part.get("annotations", ())]
    if any(note["span"][0] > note["span"][1] for note in notes if note.get("span")):
        yield case.problem("P8", "citations", "one ends before it begins")
    sources = {note.get("source") for note in notes}
    urls = {text for _, text in scalars(case.baseline.extensions) if _URL.match(str(text))}
    for _, holder in nodes(case.events, kind=dict) if urls and notes else ():
        texts = {text for text in holder.values() if isinstance(text, str)}
        if texts & sources and texts & urls and not any(map(_URL.match, texts & sources)):
            message = f"a source is {min(texts & sources)!r}, and its URL is left"
            yield case.problem("P8", "citations", message)
            break
    usage = response["usage"]
    provenance = case.baseline.provenance
    if "usage" in provenance:
        return
    for whole_name, part_names in _PARTS.items():
        parts_sum = sum(usage.get(name) or 0 for name in part_names)
        if parts_sum > usage[whole_name] and f"usage.{whole_name}" not in provenance:
            message = f"{usage[whole_name]}, and the parts that it includes are {parts_sum}"
            yield case.problem("P8", f"usage.{whole_name}", message)


# ------------------------------------------------------------------------------------------ digits


def digits_kept(case: Case) -> Iterator[Problem]:
    """P4: a log probability is a number of the payload, with its sign and all of its digits, and 0 is one, too.

    A text of digits is taken for a number in only one spelling: ``"007"`` is not 7.
    """
    for place in case.places(str):
        is_number = place.value.isascii() and place.value.isdecimal()
        for text in (f"0{place.value}", f" {place.value}\n", f"1_{place.value}") if is_number else ():
            changed_outcome = case.map(place.put(case.events, text))
            if changed_outcome.error is None and not holds(changed_outcome, text):
                yield case.problem("P4", place, f"the text {text!r} is read as {int(text)!r}")
    if not case.baseline.response.get("logprobs"):
        return
    yield from _other_digits(case, case.events, case.baseline.response, "logprobs")
    extensions = case.baseline.extensions
    is_left = any(type(number) is float and number < 0 for _, number in scalars(extensions))
    if is_left and all(entry.get("logprob") is None for entry in _entries(case.baseline.response)):
        message = "no token has a log probability, and a negative number is left in the extensions"
        yield case.problem("P4", "logprobs", message)
    texts = [text for event in case.events for text in strings(event)]
    tokens = [entry["token"] for entry in case.baseline.response["logprobs"]]
    unsent_tokens = [token for token in tokens if token not in texts]
    for token in unsent_tokens[:1]:
        yield case.problem("P4", "logprobs", f"the token {token!r} is not a text of the payload")
    remaining_texts = iter(texts)
    if not unsent_tokens and not all(token in remaining_texts for token in tokens):
        yield case.problem("P4", "logprobs", "the tokens are not in the order of the payload")
    count = _numbers_in(case.baseline.response)
    for place in case.places(str):
        fields = case.fields_at(place.leaves[0])
        if "text" in fields and not any("logprobs" in field for field in fields):
            silent_outcome = case.map(place.put(case.events, ""))
            if silent_outcome.error is None and _numbers_in(silent_outcome.response) < count:
                yield case.problem("P4", place, "with an empty text in its place, log probabilities are gone")
    for place in case.places(float, by_value=False):
        changed_outcome = case.map(place.put(case.events, None))
        zeros = _zeros(case.baseline.response)
        if changed_outcome.error is None and _zeros(changed_outcome.response) > zeros:
            yield case.problem("P4", place, "null in its place is read as the log probability 0")
        for number in (_LONG, 0.0):
            events = case.events
            for size, leaf in enumerate(place.leaves):
                value = number and number + size
                events = replaced(events, leaf, -value if leaf.value < 0 else value)
            changed_outcome = case.map(events)
            if changed_outcome.error is not None or changed_outcome.response is None:
                continue
            if [one["token"] for one in changed_outcome.response.get("logprobs", ())] != tokens:
                yield case.problem("P4", place, "other numbers give other tokens, or another order of them")
            if _numbers_in(changed_outcome.response) < count and not changed_outcome.extensions:
                yield case.problem("P4", place, f"{number} in its place is not read as a log probability")
            yield from _other_digits(case, events, changed_outcome.response, place)


def _entries(response: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the tokens of *response*, each before the likeliest tokens in its place."""
    for entry in response.get("logprobs") or ():
        yield entry
        yield from entry.get("top", ())


def _numbers_in(response: dict[str, Any]) -> int:
    return sum(entry.get("logprob") is not None for entry in _entries(response))


def _zeros(response: dict[str, Any]) -> int:
    return sum(entry.get("logprob") == 0 for entry in _entries(response))


_LONG: Final = 0.12345678901234568
"""A number with as many digits as a float can have."""


def _other_digits(
    case: Case, events: list[Any], response: dict[str, Any], where: Place | str
) -> Iterator[Problem]:
    """Report the first log probability in *response* that is not a number of *events*."""
    numbers = {_digits(value) for _, value in scalars(events) if type(value) in (int, float)}
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


_SECOND, _MICROSECOND = timedelta(seconds=1), timedelta(microseconds=1)
_EARLIEST, _LATEST = datetime(2015, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


def times_kept(case: Case) -> Iterator[Problem]:
    """P4: the time of an answer is plausible, and the same in another zone. Its fraction stays. A duration may be 0."""
    yield from _durations(case)
    if "created" in case.baseline.provenance:
        yield from _time_left(case)
        yield from _time_lost(case)
        return
    created = datetime.fromisoformat(case.baseline.response["created"])
    numbers = [leaf.value for leaf in case.leaves if type(leaf.value) in (int, float)]
    if not _EARLIEST < created < _LATEST and any(_is_of(number, created) for number in numbers):
        message = f"the answer is from {created.year}: the time is read in a wrong unit"
        yield case.problem("P4", "created", message)
    for place in case.places(str, int, float):
        for value, time in _other_times(place.value, created):
            changed_outcome = case.map(place.put(case.events, value))
            is_read = changed_outcome.error is None and "created" not in changed_outcome.provenance
            time_read = datetime.fromisoformat(changed_outcome.response["created"]) if is_read else None
            if time_read == created:
                break  # it is not the time of the answer
            if time_read is not None and abs(time_read - time) > _MICROSECOND:
                yield case.problem("P4", place, f"the time {value} is read as {time_read}")
                break


def _durations(case: Case) -> Iterator[Problem]:
    for place in case.places(int, float):
        if place.value and "metadata.request_duration_seconds" in case.fields_at(place.leaves[0]):
            zero_outcome = case.map(place.put(case.events, 0))
            is_absent = zero_outcome.error is None and "metadata.request_duration" in zero_outcome.provenance
            if is_absent and zero_outcome.extensions == case.baseline.extensions:
                yield case.problem("P4", place, "0 in its place is read as no duration")
            yield from _other_unit(case, place, zero_outcome)


def _other_unit(case: Case, place: Place, zero_outcome: Outcome) -> Iterator[Problem]:
    """A duration is in the unit of its key. Without one, no server gives tokens so fast or so slowly."""
    if zero_outcome.error is None:
        durations = [
            one.response["metadata"]["request_duration_seconds"] for one in (case.baseline, zero_outcome)
        ]
        seconds, unit = durations[0], _UNIT_KEYS.search(place.key)
        sent = place.value / 1000 ** ((unit.lastindex or 1) - 1) if unit else seconds
        speed = case.baseline.response["usage"]["completion_tokens"] / seconds if seconds else _FASTEST
        is_plausible = unit or not speed or _SLOWEST <= speed <= _FASTEST
        if not durations[1] and (abs(seconds - sent) > sent / 100 or not is_plausible):
            yield case.problem("P4", place, f"the duration {place.value} is read as {seconds} seconds")


_UNIT_KEYS: Final = re.compile(
    r"(?:^|_|(?=[MSUN]))(?i:(s|secs?|seconds)|(ms|millis\w*)|(us|micros\w*)|(ns|nanos\w*))$"
)
"""The ends of keys that are units, of a second, and of thousandths of the one before."""
_SLOWEST, _FASTEST = 0.1, 10_000
"""The numbers of tokens per second that a server may give."""


def _other_times(value: Any, created: datetime) -> Iterator[tuple[Any, datetime]]:
    """Yield later times in place of *value*, if that is *created*: in other zones, and with 0 to 9 digits of a second."""
    later = created.replace(microsecond=0) + timedelta(hours=1, seconds=37)
    time = time_of(value) if isinstance(value, str) else None
    if time is not None and abs(time - created) < _SECOND:
        for hours in (0, 5.5, -8):
            yield later.astimezone(timezone(timedelta(hours=hours))).isoformat(), later
        for count in range(10):
            digits = "123456789"[:count]
            text = f"{later:%Y-%m-%dT%H:%M:%S}{'.' if digits else ''}{digits}Z"
            yield text, later.replace(microsecond=int(digits[:6].ljust(6, "0")))
    elif not isinstance(value, str) and _is_of(value, created):
        unit = next(unit for unit in _UNITS if abs(value / unit - created.timestamp()) < 1)
        exact = 123_456 if isinstance(value, float) else {1: 0, 10**3: 123_000}.get(unit, 123_456)
        number = int(later.timestamp()) * unit + type(value)(exact * unit / 10**6)
        yield number, later.replace(microsecond=exact)


def _time_left(case: Case) -> Iterator[Problem]:
    """The answer has no time, but the extensions have a single one, or one under a name for the time of creation."""
    if "created" in (case.capture.says or {}):
        return
    extensions = case.baseline.extensions
    for key, value in extensions.items():
        if _CREATED_KEY.search(key) and type(value) in (int, float) and _is_plausible(value):
            yield case.problem("P4", key, "the time of the answer is left in the extensions", about="created")
            return
    texts = {text for _, text in scalars(extensions) if isinstance(text, str) and time_of(text) is not None}
    for leaf in case.leaves if len(texts) == 1 else ():
        if isinstance(leaf.value, str) and leaf.value in texts:
            message = "the only time of the answer is left in the extensions"
            yield case.problem("P4", leaf, message, about="created")
            return


def _time_lost(case: Case) -> Iterator[Problem]:
    """The answer has no time, and another time in place of one of the payload changes nothing."""
    for place in case.places(str):
        time = time_of(place.value)
        other = None if time is None else (time + timedelta(days=1)).isoformat()
        if other is not None and case.map(place.put(case.events, other)).is_like(case.baseline):
            message = "lost: another time in its place changes nothing"
            yield case.problem("P1", place, message, about="created")


_UNITS: Final = (1, 10**3, 10**6, 10**9)
"""The numbers of parts of a second that a time may count."""


def _is_plausible(number: float) -> bool:
    """Whether *number* is a time since 1970, in seconds or in parts of them."""
    return any(_EARLIEST.timestamp() < number / unit < _LATEST.timestamp() for unit in _UNITS)


def _is_of(number: float, created: datetime) -> bool:
    """Whether *number* is a plausible time in one unit, and *created* the same in another."""
    return _is_plausible(number) and any(abs(number / unit - created.timestamp()) < 1 for unit in _UNITS)


_CREATED_KEY: Final = re.compile(
    r"^(?!complet|end|expir|finish).*(create|time|born|(^|_)(at|date|stamp)$)", re.IGNORECASE
)


# --------------------------------------------------------------------------------------- arguments


def arguments_told_apart(case: Case) -> Iterator[Problem]:
    """P4: arguments that are ``{}``, ``""``, ``null`` or missing are not taken for each other, or are marked."""
    if not case.is_answer or case.baseline.response["finish_reason"] == "length":
        return  # empty arguments of an answer that was cut may be the start of any
    calls = case.baseline.response["message"].get("tool_calls", ())
    yield from _arguments_left(case, calls)
    yield from _in_turn(case, calls)
    for number, call in enumerate(calls):
        leaf = _arguments_in(case, call["arguments"])
        if leaf is None:
            continue
        large_text = dump_json(_BIG).decode()
        for value, wanted_arguments in (({}, "{}"), ("", ""), (None, ""), (_BIG, large_text)):
            changed_outcome = case.map(replaced(case.events, leaf, value))
            if not changed_outcome.is_taken:
                continue
            is_marked = f"message.tool_calls[{number}].arguments" in changed_outcome.provenance
            calls_read = changed_outcome.response["message"].get("tool_calls", ())
            for read in [one["arguments"] for one in calls_read[number : number + 1] if not is_marked]:
                if read != wanted_arguments:
                    shown = dump_json(value).decode()
                    message = f"the arguments {shown} are read as {read!r}, and not marked"
                    yield case.problem("P4", leaf, message)


def _in_turn(case: Case, calls: Sequence[dict[str, Any]]) -> Iterator[Problem]:
    """The pieces of two calls may come in turn, if they say whose they are."""
    for one, other in itertools.pairwise(_pieces_of(case, call["arguments"]) for call in calls):
        if not one or not other or one[-1].event >= other[0].event:
            continue
        last, first = one[-1].event, other[0].event
        pairs = [dict(scalars(case.events[leaf.event])) for leaf in (one[-1], other[-1])]
        signs = {path: value for path, value in pairs[1].items() if path != other[-1].path}
        signs = {path: value for path, value in signs.items() if pairs[0].get(path, value) != value}
        between = {number: case.events[number] for number in range(last + 1, first + 1)}
        numbers = [n for n, event in between.items() if any(at(event, path) == signs[path] for path in signs)]
        order = [number for number in range(len(case.events)) if number not in numbers]
        order[order.index(last) : order.index(last)] = numbers
        changed = case.map_bytes(b"".join(case.chunks[number] for number in order))
        calls_read = changed.response["message"].get("tool_calls", ()) if changed.is_taken else calls
        if numbers and [one["arguments"] for one in calls_read] != [one["arguments"] for one in calls]:
            message = "the pieces of two calls that come in turn are not those of each"
            yield case.problem("P4", one[-1], message, about="calls")


def _pieces_of(case: Case, arguments: str) -> list[Leaf]:
    """Return the leaves, two or more in a row at one path, with the pieces of a call's *arguments*, or none."""
    for place in case.every_place(str, by_value=False):
        is_in = arguments in "".join(leaf.value for leaf in place.leaves)
        for start, end in itertools.combinations(range(len(place.leaves) + 1 if is_in else 0), 2):
            pieces = place.leaves[start:end]
            if end - start > 1 and "".join(leaf.value for leaf in pieces) == arguments:
                return list(pieces)
    return []


def _arguments_left(case: Case, calls: Iterable[dict[str, Any]]) -> Iterator[Problem]:
    """A call has no arguments, and the extensions have an object, or the text of one, beside where its name was.

    An object with ``parameters`` declares a tool of the request, and is no call.
    """
    names = {call["name"] for call in calls if call["arguments"] in ("", "{}")}
    for leaf in case.leaves:
        holder = at(case.events[leaf.event], leaf.path[:-1])
        is_call = leaf.value in names and isinstance(holder, dict) and "parameters" not in holder
        left_values = [value for _, value in nodes(case.baseline.extensions)]
        if is_call and any(json_object(value) and value in left_values for value in holder.values()):
            message = "the arguments of its call are left in the extensions"
            yield case.problem("P4", leaf, message, about="calls")
            return


_BIG: Final[Any] = {"n": 10**22 + 1, "f": 0.1, "z": None, "deep": [[{}], []], "Key": {"b": 1, "a": 2}}
"""Arguments that lose something in a float, in a writer that sorts, or in one that drops what is empty."""


def _arguments_in(case: Case, arguments: str) -> Leaf | None:
    """Return the only leaf of *arguments*, as a text or its object, or ``None`` unless there is exactly one."""
    value = json_object(arguments)
    found = [one for one in case.nodes() if one.path and one.value in (arguments, value or arguments)]
    return found[0] if len(found) == 1 else None


# --------------------------------------------------------------------------------- origins
# Checks of the origin of values that were not sent: nothing is invented, counts are the provider's (promise P8).


def nothing_invented(case: Case) -> Iterator[Problem]:
    """P8: a value that the provider did not send is marked in ``provenance``."""
    if case.baseline.response is not None:
        for where, message in _invented(case.baseline.response, case.events):
            yield case.problem("P8", where, message)


def _invented(response: dict[str, Any], events: list[Any]) -> Iterator[tuple[str, str]]:
    provenance = response["metadata"].get("provenance", {})
    payload = [value for _, value in scalars(events)]
    payload_texts = {*map(str, payload)}
    for name in ("id", "model"):
        if response[name] not in payload_texts and name not in provenance:
            yield name, "made up, and not marked"
    if "created" not in provenance and not _is_told(response["created"], payload):
        yield "created", "made up, and not marked"
    is_whole = response["finish_reason"] in {"stop", "length", "tool_calls"}
    if is_whole and not response.get("raw_finish_reason") and "finish_reason" not in provenance:
        yield "finish_reason", "no word of the provider's, and not marked"
    finish_word = response.get("raw_finish_reason")
    if finish_word and not _is_made_of(finish_word, payload_texts | {":"}):
        yield "raw_finish_reason", f"{finish_word!r} is not a word of the payload"
    for name in ("prompt_tokens", "completion_tokens"):
        count, mark = response["usage"][name], _mark(response, name)
        if count == 0 and "0" not in payload_texts and mark is None:
            yield f"usage.{name}", "0 was not sent, and is not marked"
    for number, call in enumerate(response["message"].get("tool_calls", ())):
        if call["id"] not in payload_texts and f"message.tool_calls[{number}].id" not in provenance:
            yield f"tool call {number}", "its id is made up, and not marked"
        is_marked = f"message.tool_calls[{number}].name" in provenance
        if not is_marked and not _is_made_of(call["name"], payload_texts):
            yield f"tool call {number}", f"its name {call['name']!r} is not a text of the payload"


def _mark(response: dict[str, Any], name: str) -> str | None:
    provenance = response["metadata"].get("provenance", {})
    mark: str | None = provenance.get("usage", provenance.get(f"usage.{name}"))
    return mark


def _is_told(created: str, payload: list[Any]) -> bool:
    """Whether a value is the time *created*: seconds since 1970 or parts of them, or a date, in UTC or a zone."""
    time = datetime.fromisoformat(created)
    numbers = [number for number in map(_as_number, payload) if number is not None]
    dates = [_date(text) for text in payload if isinstance(text, str) and re.search(r"\d\D", text)]
    is_number = any(abs(number - time.timestamp() * unit) < unit for number in numbers for unit in _UNITS)
    return is_number or any(date is not None and abs(date - time) < _SECOND for date in dates)


def _date(text: str) -> datetime | None:
    """Return the time of *text*, as in ISO 8601 or in a header of HTTP, or ``None`` if it is not a time."""
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        with suppress(ValueError, OverflowError):
            time = read(text)
            return time.replace(tzinfo=UTC) if time.tzinfo is None else time
    return None


def nothing_filled_in(case: Case) -> Iterator[Problem]:
    """P8: if a leaf is removed from every event, or is null or empty in it, no unmarked value appears in its place."""
    known = [*_invented(case.baseline.response, case.events)]
    for place in case.places(by_value=False):
        for tried, events in _emptied(case, place):
            changed = case.map(events)
            for where, message in () if changed.response is None else _invented(changed.response, events):
                if (where, message) not in known:
                    yield case.problem("P8", place, f"{tried}, {where}: {message}", about=where)
            if changed.error is None:
                yield from _appears(case, place, tried, events, changed)
                if typed(changed.response) == case.typed:
                    break  # it is only kept


def _emptied(case: Case, place: Place) -> Iterator[tuple[str, list[Any]]]:
    """Yield what is done to *place*, and the events after it."""
    events = case.events
    for leaf in place.leaves:  # the item stays: those after it depend on their positions
        events = without(events, leaf) if isinstance(leaf.path[-1], str) else replaced(events, leaf, None)
    yield "without it", events
    for empty in (None, "") if isinstance(place.value, str) else (None,):
        yield f"with {dump_json(empty).decode()} in its place", place.put(case.events, empty)


def _appears(case: Case, place: Place, tried: str, events: list[Any], changed: Outcome) -> Iterator[Problem]:
    """Yield the texts and counts of *changed*, the answer of *events* without *place*, that nobody has sent."""
    sent_texts = {*strings(events)}
    for name, field in _TEXT_FIELDS.items():
        old, new = ("".join(one.said(name)) for one in (case.baseline, changed))
        other_kinds = "".join(case.baseline.said(*(kind for kind in _TEXT_FIELDS if kind != name)))
        is_moved = str(place.value) in old and new in other_kinds
        is_sent = _is_part(new, old) or (_is_made_of(new, sent_texts) and not is_moved)
        if not is_sent and changed.provenance.get(field) not in _ALLOWED_MARKS:
            yield case.problem("P8", place, f"{tried}, another {name} appears", about=name)
    others = [leaf for leaf in case.leaves if leaf.path != place.path and leaf.path[-1] == place.path[-1]]
    for name in COUNTS:
        old, new = (one.response["usage"].get(name) for one in (case.baseline, changed))
        mark = _mark(changed.response, name)
        is_unsent = new and mark not in _ALLOWED_MARKS and new not in _sums(case, place)
        is_zero = new == 0 and mark is None and old == _as_number(place.value)
        if new != old and (is_unsent or (is_zero and all(leaf.value != 0 for leaf in others))):
            yield case.problem("P8", place, f"{tried}, usage.{name} is {new}, which was not sent")


_TEXT_FIELDS: Final = {"text": "message.content", "reasoning": "reasoning", "refusal": "message.refusal"}
"""The texts of an answer, each with the field under which a mark says that a repair has made it."""
_ALLOWED_MARKS: Final = frozenset({Provenance.DERIVED, Provenance.SYNTHETIC})
"""Marks of a text, or of a count that is not 0, although it was not sent."""


def _is_part(text: str, whole: str) -> bool:
    """Whether *text* is *whole* with something left out."""
    remainder = iter(whole)
    return all(letter in remainder for letter in text)


def _is_made_of(text: str, pieces: set[str]) -> bool:
    """Whether *text* consists of some of *pieces* in a row."""
    ends = {0}
    for end in range(1, len(text) + 1):
        if any(text.endswith(piece, 0, end) and end - len(piece) in ends for piece in pieces if piece):
            ends.add(end)
    return len(text) in ends


def _sums(case: Case, place: Place) -> set[int]:
    """Return the payload's numbers other than *place*, and the sums of up to three of them that are close to it."""
    numbers = [(leaf, _as_number(leaf.value)) for leaf in case.leaves if leaf.path != place.path]
    number_leaves = [(leaf, int(number)) for leaf, number in numbers if number is not None]
    near_numbers = {
        number
        for leaf, number in number_leaves
        if leaf.path[0] == place.path[0] or leaf.path[:-1][-1:] == place.path[:-1][-1:]
    }
    few_numbers = sorted(near_numbers)[:16]
    sums = {sum(group) for size in (2, 3) for group in itertools.combinations(few_numbers, size)}
    return {number for _, number in number_leaves} | sums


# -------------------------------------------------------------------------------------------- counts


def counts_are_the_providers(case: Case) -> Iterator[Problem]:
    """P8: each count is one of the provider's or a sum of them, each added once, and fits its name."""
    response, usage = case.baseline.response, case.baseline.response["usage"]
    movers: dict[str, list[Place]] = {name: [] for name in COUNTS}
    raised_responses: list[tuple[Place, dict[str, Any]]] = []
    places, is_sure = _numbers(case)
    for place in places:
        raised_outcome = case.map(_raised(case, place))
        if not raised_outcome.is_taken:
            is_sure = False  # an error has no counts
            continue
        raised_usage = raised_outcome.response["usage"]
        count_changes = {name: (raised_usage.get(name) or 0) - (usage.get(name) or 0) for name in COUNTS}
        for name, change in count_changes.items():
            if change:
                movers[name].append(place)
            if change > _RAISE_AMOUNT * (1 + len(response.get("alternatives", ()))):
                yield case.problem("P8", place, f"it counts more than once in usage.{name}")
            elif change < 0 and _mark(response, name) is None:
                yield case.problem("P8", place, f"usage.{name} falls when it rises")
        yield from _swapped(case, place, count_changes)
        yield from _not_counted(case, place, count_changes)
        yield from _no_zero(case, place, count_changes)
        raised_responses.append((place, raised_outcome.response))
    yield from _counted_and_kept(case, movers, raised_responses)
    yield from _from_nowhere(case, movers, is_sure=is_sure)
    yield from _beyond_the_total(case, movers)


def _numbers(case: Case) -> tuple[list[Place], bool]:
    """Return the numbers to raise, first those with names of counts, and whether these are all numbers."""
    places = case.every_place(int, float, str, by_value=False)
    places = [place for place in places if all(_as_number(leaf.value) is not None for leaf in place.leaves)]
    if case.sample is None or len(places) <= case.sample:
        return places, True
    names = re.compile("usage|token|count|units", re.IGNORECASE)
    places.sort(key=lambda place: not names.search(show_path(place.path)))
    return places[: case.sample], False


_RAISE_AMOUNT: Final = 1_000_003
"""A prime by which a count is raised: no other count changes by this amount."""


def _raised(case: Case, place: Place) -> list[Any]:
    events = case.events
    for leaf in place.leaves:
        number = _as_number(leaf.value) + _RAISE_AMOUNT
        events = Place((leaf,)).put(events, str(number) if isinstance(leaf.value, str) else number)
    return events


def _as_number(value: Any) -> Any:
    """Return *value* as a number, which some servers write as text, or ``None`` if it is not a number."""
    if isinstance(value, str):
        return int(value) if value.isascii() and value.isdecimal() and len(value) < 19 else None
    return value if type(value) in (int, float) else None


_NAME_PATTERNS: Final = {
    "prompt_tokens": re.compile(r"prompt|input|(?<![a-z])in(?![a-z])", re.IGNORECASE),
    "completion_tokens": re.compile(
        r"completion|output|generated|candidates|predicted|(?<![a-z])out(?![a-z])", re.IGNORECASE
    ),
}
_PART_NAMES: Final = {
    "cached_tokens": re.compile("^(?!.*(writ|creat|fill|stor)).*cache", re.IGNORECASE),
    "cache_write_tokens": re.compile("^(?=.*(writ|creat|fill|stor)).*cache", re.IGNORECASE),
    "reasoning_tokens": re.compile("reason|thought|think", re.IGNORECASE),
}


def _swapped(case: Case, place: Place, count_changes: dict[str, int]) -> Iterator[Problem]:
    """A leaf that is named after the prompt counts for the completion alone, or the other way round."""
    for patterns in (_PART_NAMES, _NAME_PATTERNS):
        named_counts = [name for name, pattern in patterns.items() if pattern.search(place.key)]
        moved_counts = [name for name in patterns if count_changes[name]]
        if len(named_counts) == len(moved_counts) == 1 and named_counts != moved_counts:
            kind = f"{named_counts[0]} became {moved_counts[0]}".replace("_", " ")
            yield case.problem("P8", place, f"it is counted in usage.{moved_counts[0]}", kind=kind)
    is_total = re.fullmatch("total(_?tokens)?", place.key, re.IGNORECASE) and len(moved_counts) == 1
    if is_total and _mark(case.baseline.response, moved_counts[0]) is None:
        yield case.problem("P8", place, f"it is counted in usage.{moved_counts[0]}")


_PART_NAME_PATTERNS: Final = {
    "prompt_tokens": re.compile(r"^(prompt|input)_?tokens?", re.IGNORECASE),
    "completion_tokens": re.compile(r"^(completion|output)_?tokens?", re.IGNORECASE),
    "cached_tokens": re.compile(r"cached|cache_(hit|read)", re.IGNORECASE),
    "reasoning_tokens": re.compile(r"(reasoning|thoughts?|thinking)(_?tokens?|$)", re.IGNORECASE),
}


def _not_counted(case: Case, place: Place, count_changes: dict[str, int]) -> Iterator[Problem]:
    """A count that is named after cached or reasoning tokens moves nothing, and the answer has no such count."""
    usage, is_still = case.baseline.response["usage"], not any(count_changes.values())
    for name, pattern in _PART_NAME_PATTERNS.items() if is_still and type(place.value) is int else ():
        is_absent = name not in usage or _mark(case.baseline.response, name) == Provenance.ABSENT
        if is_absent and pattern.search(place.key) and not _is_filling(case, place):
            yield case.problem("P8", place, f"it is not counted in usage.{name}", about="usage")


def _is_filling(case: Case, place: Place) -> bool:
    """Whether every recording has all tokens at *place*, or all but the last: a cache so full, whatever was read from it."""
    unfilled = []
    for one in case.others or (case.capture,):
        usage = normalized(case.mapper, one).get("response", {}).get("usage", {})
        counts = [at(event, place.path) for event in decoded(case.mapper, one)[1]]
        unfilled += [usage.get("total_tokens", -1) - count for count in counts if type(count) is int]
    return {*unfilled} in ({0}, {1}, {0, 1})


def _no_zero(case: Case, place: Place, count_changes: dict[str, int]) -> Iterator[Problem]:
    """A leaf is a count, and 0 in its place is read as a missing count."""
    names = [name for name, change in count_changes.items() if change]
    if len(names) != 1:
        return
    (name,) = names
    zero_outcome = case.map(place.put(case.events, "0" if isinstance(place.value, str) else 0))
    if zero_outcome.error is None and (
        name not in zero_outcome.response["usage"] or _mark(zero_outcome.response, name) == Provenance.ABSENT
    ):
        yield case.problem("P8", place, f"0 in its place is read as no usage.{name}")


def _counted_and_kept(
    case: Case, movers: dict[str, list[Place]], raised_responses: list[tuple[Place, dict[str, Any]]]
) -> Iterator[Problem]:
    """A leaf is a count by itself, not a part of a sum, and is in the extensions as well."""
    for place, response in raised_responses:
        name = next((name for name, places in movers.items() if place in places), None)
        numbers = {_as_number(leaf.value) + _RAISE_AMOUNT for leaf in place.leaves}
        is_sum = name is None or len(movers[name]) > 1 or response["usage"][name] not in numbers
        if is_sum or response.get("alternatives"):  # it may be counted for one of the choices
            continue
        extensions = response["metadata"].get("extensions", {})
        for path, value in scalars(extensions):
            if _as_number(value) in numbers and not _is_kept_whole(case, place, at(extensions, path[:-1])):
                path_text = show_path(path)
                yield case.problem("P1", place, f"is in usage.{name} and in the extensions: {path_text}")


def _is_kept_whole(case: Case, place: Place, stored_object: Any) -> bool:
    """Whether the whole object of *place* is in the extensions: it is understood and stored, not forgotten."""
    holders = [at(case.events[leaf.event], leaf.path[:-1]) for leaf in place.leaves]
    return len(place.path) > 1 and any(len(one) > 1 and one.keys() <= stored_object.keys() for one in holders)


def _from_nowhere(case: Case, movers: dict[str, list[Place]], *, is_sure: bool) -> Iterator[Problem]:
    """A count that no number of the payload moves."""
    response = case.baseline.response
    for name, places in movers.items() if is_sure else ():  # in a sample, it may be a sum of others
        if not places and name in response["usage"] and _mark(response, name) is None:
            message = f"{response['usage'][name]} comes from no number of the payload"
            yield case.problem("P8", f"usage.{name}", message)


def _beyond_the_total(case: Case, movers: dict[str, list[Place]]) -> Iterator[Problem]:
    """A part is added to a count that already contains it: the provider's own total is less by exactly that part."""
    total = case.baseline.response["usage"]["total_tokens"]
    sent_totals = {_as_number(leaf.value) for leaf in case.leaves if "total" in str(leaf.path[-1]).lower()}
    if total in sent_totals:
        return
    for name in ("prompt_tokens", "completion_tokens"):
        for place in movers[name] if len(movers[name]) > 1 else ():
            if (part := _as_number(place.leaves[-1].value)) and total - part in sent_totals:
                yield case.problem("P8", place, f"it is added to usage.{name}, which holds it already")
