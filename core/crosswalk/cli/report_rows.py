"""The facts of an exchange that ``crosswalk report`` counts, and groups of exchanges."""

from __future__ import annotations

from array import array
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import product
from math import ceil, exp, log
from typing import Final

import attrs

from crosswalk.records import decoded
from crosswalk.types.json import dump_json
from crosswalk.types.response import ChatResponse
from crosswalk.types.usage import Provenance


@attrs.frozen(kw_only=True)
class ReportRow:
    """The facts of one exchange in a report. ``None`` means unknown.

    Attributes:
        time: the beginning, in UTC.
        vendor: the vendor, in one spelling.
        vendor_source: what names it: the ``log``, its ``url``, the name of the ``model``, or the form of the ``answer``.
        logged_vendor: the vendor's name in the log.
        provider: the provider id.
        model: the model that answered, else the requested one.
        status: the HTTP status.
        latency: the duration in seconds.
        prompt_tokens: tokens of the input.
        completion_tokens: tokens generated.
        cached_tokens: tokens of the input that came from a cache.
        cost: the cost, with its currency.
        is_estimated: whether the cost was computed from list prices.
        finish_reason: the reason why the answer ended, or ``None`` if unknown.
        error: the kind of error, or the name of the error raised by reading it, or ``None`` for an answer.
        tool_calls: the number of tool calls.
        broken_calls: the number of tool calls whose arguments are not a JSON object.
        session: the id of the session or conversation.
        user: the id of the user.
        tags: the tags of the log, as JSON.
        team: the team, tenant or project.
        tier: the service tier, such as ``batch``.
        kept: the values at the paths that the groupings name.
        differs: whether the log states other token counts than the answer.
        is_unread: whether the exchange could not be read. *error* is then the reason.
        has_odd_time: whether the log has a time or duration in a form that is not read.
        has_answer: whether the log stores the answer. If not, the facts are those that the log states.
        span: the ids of its trace and of itself, for logs of spans.
        parent: the ids of its trace and of the span around it, or ``None``.
        id: the id of the answer if a log may repeat it, or ``None``. Answers with the same id count once.
    """

    time: datetime | None = None
    vendor: str | None = None
    vendor_source: str | None = None
    logged_vendor: str | None = None
    provider: str | None = None
    model: str | None = None
    status: int | None = None
    latency: float | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost: Decimal | None = None
    is_estimated: bool = False
    finish_reason: str | None = None
    error: str | None = None
    tool_calls: int = 0
    broken_calls: int = 0
    session: str | None = None
    user: str | None = None
    tags: str | None = None
    team: str | None = None
    tier: str | None = None
    kept: Mapping[str, str | None] = attrs.field(factory=dict)
    differs: bool = False
    is_unread: bool = False
    has_odd_time: bool = False
    has_answer: bool = True
    span: tuple[str | None, str] | None = None
    parent: tuple[str | None, str] | None = None
    id: str | None = None


def row_of(response: ChatResponse, **facts: object) -> ReportRow:
    """The row of *response*.

    Args:
        response: the answer, with the facts of its log.
        facts: the facts in the log, which take precedence over those in the answer.
    """
    provenance, metadata = response.metadata.provenance, response.metadata
    unsent_provenances = {Provenance.ABSENT, Provenance.CUT}
    info = response.error_info
    row_fields: dict[str, object] = {
        "provider": metadata.provider_id,
        "error": None if info is None else info.kind.value,
        "tool_calls": len(response.tool_calls),
        "broken_calls": sum(not call.has_valid_arguments for call in response.tool_calls),
    }
    if provenance.get("finish_reason") is not Provenance.ABSENT:
        row_fields["finish_reason"] = response.finish_reason.value
    if provenance.get("model") is not Provenance.ABSENT:
        row_fields["model"] = response.model
    if provenance.get("created") is not Provenance.SYNTHETIC:
        row_fields["time"] = response.created
    if metadata.request_duration:
        row_fields["latency"] = metadata.request_duration.total_seconds()
    if info is not None and info.status is not None:
        row_fields["status"] = info.status
    for name in ("prompt_tokens", "completion_tokens", "cached_tokens"):
        if not {provenance.get("usage"), provenance.get(f"usage.{name}")} & unsent_provenances:
            row_fields[name] = getattr(response.usage, name)
    return ReportRow(**{**row_fields, **{name: value for name, value in facts.items() if value is not None}})  # type: ignore[arg-type]


GROUPINGS: Final[Mapping[str, Callable[[ReportRow], object]]] = {
    "model": lambda row: row.model,
    "day": lambda row: None if row.time is None else row.time.date(),
    "hour": lambda row: None if row.time is None else row.time.strftime("%Y-%m-%d %H:00"),
    "vendor": lambda row: row.vendor,
    "logged_vendor": lambda row: row.logged_vendor,
    "provider": lambda row: row.provider,
    "status": lambda row: row.status,
    "finish": lambda row: row.finish_reason,
    "error": lambda row: row.error,
    "session": lambda row: row.session,
    "user": lambda row: row.user,
    "team": lambda row: row.team,
    "tier": lambda row: row.tier,
    "tags": lambda row: row.tags,
    "tag": lambda row: _tags(row.tags),
}
"""The names of the groupings. One with several values counts an exchange in several groups. Other names are paths."""


def _tags(text: str | None) -> object:
    """Return each of the tags in *text* on its own: those of a list, and ``key: value`` of an object."""
    tags = None if text is None else decoded(text)
    if type(tags) is list:
        return [tag if type(tag) is str else dump_json(tag).decode() for tag in tags] or None
    if type(tags) is dict:
        return [f"{key}: {value}" for key, value in tags.items()] or None
    return text


_MAX_EXACT_DURATIONS: Final = 10_000
"""The most durations that are kept one by one."""
_CLASS_WIDTH: Final = log(1.01)
"""The width of a class of durations: 1 %, which its middle misses by less than 0.5 %."""
_MIN_SECONDS: Final = 1e-6


class Latencies:
    """Durations in seconds, of which the quantiles are asked. The first 10,000 are exact.

    If there are more, their number is kept by classes of 1 %, so that memory stays flat. The quantiles are then right to
    0.5 %, as those of a DDSketch: https://arxiv.org/abs/1908.10693.
    """

    def __init__(self) -> None:
        self._exact_seconds = array("d")
        self._class_counts: Counter[int] = Counter()

    def add(self, seconds: float) -> None:
        """Add a duration."""
        self._exact_seconds.append(seconds)
        if len(self._exact_seconds) > _MAX_EXACT_DURATIONS or self._class_counts:
            self._class_counts.update(
                round(log(max(one, _MIN_SECONDS)) / _CLASS_WIDTH) for one in self._exact_seconds
            )
            del self._exact_seconds[:]

    def quantile(self, share: float) -> float | None:
        """The duration that *share* of them do not exceed, or ``None`` if there are none."""
        rank = max(1, ceil(share * (len(self._exact_seconds) + self._class_counts.total())))
        if self._exact_seconds:
            return sorted(self._exact_seconds)[rank - 1]
        for number in sorted(self._class_counts):
            rank -= self._class_counts[number]
            if rank <= 0:
                return exp(number * _CLASS_WIDTH)
        return None


@attrs.define(kw_only=True)
class Group:
    """The exchanges with the same values of the groupings.

    Attributes:
        values: these values, as text; ``-`` if unknown.
        exchanges: the number of exchanges.
        without_answer: the number whose log does not store the answer.
        with_usage: the number with token counts.
        with_cost: the number with a cost.
        estimated: the number of estimated costs.
        without_price: the number of exchanges with token counts and without a cost, by model.
        unread: the number that could not be read.
        differing: the number whose log states other token counts than the answer.
        odd_times: the number with a time or duration that is not read.
        vendors_by_model: the number whose vendor is told by the model's name.
        latencies: the measured durations.
        finishes: the number of exchanges by finish reason.
        errors: the number of failed exchanges by kind of error.
    """

    values: tuple[str, ...]
    exchanges: int = 0
    without_answer: int = 0
    with_usage: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost: Decimal = Decimal(0)
    with_cost: int = 0
    estimated: int = 0
    without_price: Counter[str] = attrs.field(factory=Counter)
    differing: int = 0
    unread: int = 0
    odd_times: int = 0
    vendors_by_model: int = 0
    tool_calls: int = 0
    broken_calls: int = 0
    latencies: Latencies = attrs.field(factory=Latencies)
    finishes: Counter[str] = attrs.field(factory=Counter)
    errors: Counter[str] = attrs.field(factory=Counter)

    def add(self, row: ReportRow) -> None:
        """Count *row*."""
        self.exchanges += 1
        self.without_answer += not row.has_answer
        self.differing += row.differs
        self.unread += row.is_unread
        self.odd_times += row.has_odd_time
        self.vendors_by_model += row.vendor_source == "model"
        self.with_usage += row.prompt_tokens is not None or row.completion_tokens is not None
        self.prompt_tokens += row.prompt_tokens or 0
        self.completion_tokens += row.completion_tokens or 0
        self.cached_tokens += row.cached_tokens or 0
        if row.cost is not None:
            self.cost += row.cost
            self.with_cost += 1
            self.estimated += row.is_estimated
        elif row.model is not None and None not in (row.prompt_tokens, row.completion_tokens):
            self.without_price[row.model] += 1
        self.tool_calls += row.tool_calls
        self.broken_calls += row.broken_calls
        if row.latency is not None:
            self.latencies.add(row.latency)
        if row.finish_reason is not None:
            self.finishes[row.finish_reason] += 1
        if row.error is not None:
            self.errors[row.error] += 1

    def latency(self, share: float) -> float | None:
        """The latency that *share* of the measured exchanges do not exceed, or ``None`` if none was measured."""
        return self.latencies.quantile(share)


MAX_SPANS: Final = 10_000
"""The most spans that are held back at once."""
_DEEPEST: Final = 64
"""The most model calls one in the other. More of them are a circle, or damaged ids."""


class Spans:
    """The last 10,000 spans of model calls, held back until it is known which of them repeat the calls inside.

    Two instrumentations of one call, such as those of LangChain and of OpenAI's SDK, write a span each, one in the other, in
    any order. A span counts unless its counts are the sum of those inside. One without counts has those inside.

    Attributes:
        repeated: the number of spans that do not count.
    """

    def __init__(self) -> None:
        self._held: OrderedDict[object, ReportRow] = OrderedDict()
        self._sums: OrderedDict[object, tuple[int, int]] = OrderedDict()
        self.repeated = 0

    def take(self, row: ReportRow) -> Iterator[ReportRow]:
        """Hold *row* back if it is a span. Yield those that count, and that no span inside can reach any more."""
        earlier = self._held.pop(row.span, None)
        if earlier is None and row.parent is not None and not self._is_inside_itself(row):
            self._add(row.parent, self._sums.get(row.span, (0, 0)) if _is_empty(row) else _counts(row))
        if row.span is None:
            yield row
            return
        if earlier is not None:  # a log that is there twice
            yield from self._settled(earlier)
        self._held[row.span] = row
        if row.span in self._sums:
            self._sums.move_to_end(row.span)
        if len(self._held) > MAX_SPANS:
            span, oldest = self._held.popitem(last=False)
            yield from self._settled(oldest)
            self._sums.pop(span, None)

    def rest(self) -> Iterator[ReportRow]:
        """Yield those of the spans still held that count."""
        for row in self._held.values():
            yield from self._settled(row)

    def _settled(self, row: ReportRow) -> Iterator[ReportRow]:
        inside = self._sums.get(row.span)
        if inside is not None and (_is_empty(row) or inside == (row.prompt_tokens, row.completion_tokens)):
            self.repeated += 1
        else:
            yield row

    def _is_inside_itself(self, row: ReportRow) -> bool:
        """Whether the spans around *row* lead back to it, or do not end."""
        place: object = row.parent
        for _ in range(_DEEPEST):
            if place is not None and place == row.span:
                return True
            if (outer := self._held.get(place)) is None:
                return False
            place = outer.parent
        return True

    def _add(self, place: object, counts: tuple[int, int]) -> None:
        """Add *counts* to what is inside the span *place*, and inside those around it that have only these counts."""
        while place is not None:
            prompt, completion = self._sums.get(place, (0, 0))
            self._sums[place] = prompt + counts[0], completion + counts[1]
            outer = self._held.get(place)
            place = outer.parent if outer is not None and _is_empty(outer) else None
        if len(self._sums) > MAX_SPANS:
            self._sums.popitem(last=False)


def _counts(row: ReportRow) -> tuple[int, int]:
    return row.prompt_tokens or 0, row.completion_tokens or 0


def _is_empty(row: ReportRow) -> bool:
    return row.prompt_tokens is None and row.completion_tokens is None


def _values(row: ReportRow, name: str) -> list[str]:
    value = GROUPINGS[name](row) if name in GROUPINGS else row.kept.get(name)
    distinct_values = dict.fromkeys(value) if isinstance(value, list) else [value]
    return ["-" if one is None else str(one) for one in distinct_values]


class Groups:
    """Groups of exchanges, which grow with the number of groups, and not with that of exchanges.

    Args:
        by: the names of the groupings.

    Attributes:
        total: all exchanges as one group.
    """

    def __init__(self, by: Sequence[str]) -> None:
        self.total = Group(values=("all",))
        self._by = by
        self._groups: dict[tuple[str, ...], Group] = {}

    def add(self, row: ReportRow) -> None:
        """Count *row*."""
        for values in product(*(_values(row, name) for name in self._by)):
            if values not in self._groups:
                self._groups[values] = Group(values=values)
            self._groups[values].add(row)
        self.total.add(row)

    def add_all(self, rows: Iterable[ReportRow]) -> None:
        """Count each of *rows*."""
        for row in rows:
            self.add(row)

    def sorted(self) -> list[Group]:
        """The groups, sorted by their values."""
        return [self._groups[values] for values in sorted(self._groups)]
