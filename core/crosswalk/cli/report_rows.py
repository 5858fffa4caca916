"""The facts of an exchange that ``crosswalk report`` counts, and groups of exchanges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from math import ceil
from typing import Final

import attrs

from crosswalk.types.response import ChatResponse
from crosswalk.types.usage import Provenance


@attrs.frozen(kw_only=True)
class ReportRow:
    """The facts of one exchange in a report. ``None`` means unknown.

    Attributes:
        time: the beginning, in UTC.
        vendor: the provider's name in the log, else the provider id.
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
        is_unread: whether the exchange could not be read. *error* is then the reason.
        has_answer: whether the log stores the answer. If not, the facts are those that the log states.
        id: the id of the answer if a log may repeat it, or ``None``. Answers with the same id count once.
    """

    time: datetime | None = None
    vendor: str | None = None
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
    is_unread: bool = False
    has_answer: bool = True
    id: str | None = None


def row_of(response: ChatResponse, **known: object) -> ReportRow:
    """The row of *response*.

    Args:
        response: the answer, with the facts of its log.
        known: the facts in the log, which take precedence over those in the answer.
    """
    provenance, metadata = response.metadata.provenance, response.metadata
    unsaid = {Provenance.ABSENT, Provenance.CUT}
    info = response.error_info
    own: dict[str, object] = {
        "provider": metadata.provider_id,
        "vendor": metadata.provider_id,
        "error": None if info is None else info.kind.value,
        "tool_calls": len(response.tool_calls),
        "broken_calls": sum(not call.has_valid_arguments for call in response.tool_calls),
    }
    if provenance.get("finish_reason") is not Provenance.ABSENT:
        own["finish_reason"] = response.finish_reason.value
    if provenance.get("model") is not Provenance.ABSENT:
        own["model"] = response.model
    if provenance.get("created") is not Provenance.SYNTHETIC:
        own["time"] = response.created
    if metadata.request_duration:
        own["latency"] = metadata.request_duration.total_seconds()
    if info is not None and info.status is not None:
        own["status"] = info.status
    for name in ("prompt_tokens", "completion_tokens", "cached_tokens"):
        if not {provenance.get("usage"), provenance.get(f"usage.{name}")} & unsaid:
            own[name] = getattr(response.usage, name)
    return ReportRow(**{**own, **{name: value for name, value in known.items() if value is not None}})  # type: ignore[arg-type]


GROUPINGS: Final[Mapping[str, Callable[[ReportRow], object]]] = {
    "model": lambda row: row.model,
    "day": lambda row: None if row.time is None else row.time.date(),
    "hour": lambda row: None if row.time is None else row.time.strftime("%Y-%m-%d %H:00"),
    "vendor": lambda row: row.vendor,
    "provider": lambda row: row.provider,
    "status": lambda row: row.status,
    "finish": lambda row: row.finish_reason,
    "error": lambda row: row.error,
    "session": lambda row: row.session,
    "user": lambda row: row.user,
    "tags": lambda row: row.tags,
}
"""The names of the groupings."""


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
        latencies: the measured durations, in seconds.
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
    tool_calls: int = 0
    broken_calls: int = 0
    latencies: list[float] = attrs.field(factory=list)
    finishes: Counter[str] = attrs.field(factory=Counter)
    errors: Counter[str] = attrs.field(factory=Counter)

    def add(self, row: ReportRow) -> None:
        """Count *row*."""
        self.exchanges += 1
        self.without_answer += not row.has_answer
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
            self.latencies.append(row.latency)
        if row.finish_reason is not None:
            self.finishes[row.finish_reason] += 1
        if row.error is not None:
            self.errors[row.error] += 1

    def latency(self, share: float) -> float | None:
        """The latency that *share* of the measured exchanges do not exceed, or ``None`` if none was measured."""
        if not self.latencies:
            return None
        return sorted(self.latencies)[max(0, ceil(share * len(self.latencies)) - 1)]


def groups_of(rows: Sequence[ReportRow] | list[ReportRow], by: Sequence[str]) -> tuple[list[Group], Group]:
    """The groups of *rows*, sorted by their values, and one group of all rows."""
    groups: dict[tuple[str, ...], Group] = {}
    total = Group(values=("all",))
    for row in rows:
        results = (GROUPINGS[name](row) for name in by)
        values = tuple("-" if value is None else str(value) for value in results)
        groups.setdefault(values, Group(values=values)).add(row)
        total.add(row)
    return [groups[values] for values in sorted(groups)], total
