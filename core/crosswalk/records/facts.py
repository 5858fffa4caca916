"""The facts that a log states about an exchange, as typed values, and how they complete a response."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import Any, Final

import attrs

from crosswalk.plain_errors import CrosswalkError
from crosswalk.plugin.registry import registry
from crosswalk.records.layout import PART_OF, TIMES, Field, Layout, Path, look_up, unquoted, verdict_of
from crosswalk.text import json_type_name, plain_name
from crosswalk.types.json import dump_json, load_json
from crosswalk.types.message import ChatMessage
from crosswalk.types.response import ChatResponse
from crosswalk.types.usage import Provenance, ResponseMetadata, UsageInfo, as_provenance, counted_tokens
from crosswalk.types.values import FinishReason, altered, now

VENDORS: Final[Mapping[str, str]] = {
    "aws": "bedrock",
    "aws_bedrock": "bedrock",
    "azure": "openai",
    "azure_ai_openai": "openai",
    "azure_openai": "openai",
    "cloudflare_workers_ai": "cloudflare",
    "fireworks_ai": "fireworks",
    "gcp_gemini": "gemini",
    "gcp_vertex_ai": "gemini",
    "google": "gemini",
    "google_ai_studio": "gemini",
    "google_vertex_ai": "gemini",
    "hosted_vllm": "vllm",
    "lm_studio": "lmstudio",
    "mistral_ai": "mistral",
    "mistralai": "mistral",
    "moonshotai": "moonshot",
    "perplexity_ai": "perplexity",
    "together_ai": "together",
    "vertex": "gemini",
    "vertex_ai": "gemini",
    "workers_ai": "cloudflare",
    "x_ai": "xai",
}
"""Providers by vendor names that differ from the provider id, from OpenTelemetry's conventions, LiteLLM, Helicone and
Portkey. Case and the difference between ``-``, ``.`` and ``_`` do not matter. The plugin of another distribution says its
own: ``ProviderInfo.names``.
"""

_SPELLINGS: Final[Mapping[str, str]] = {
    "azure": "azure",
    "azure_ai_openai": "azure",
    "azure_openai": "azure",
    "gcp_vertex_ai": "vertex_ai",
    "google_vertex_ai": "vertex_ai",
    "openai_responses": "openai",
    "vertex": "vertex_ai",
    "vertex_ai": "vertex_ai",
}
"""Vendors whose name is not that of the provider with their dialect."""


@cache
def _vendors_of_models() -> tuple[tuple[re.Pattern[str], str], ...]:
    """The vendors by the names of their models, from ``vendors.toml``."""
    from importlib.resources import files

    rows = tomllib.loads(files("crosswalk.records").joinpath("vendors.toml").read_text(encoding="utf-8"))[
        "models"
    ]
    return tuple((re.compile(row["names"]), row["vendor"]) for row in rows)


_MISSING_VALUES: Final = ("", "-")
"""How logs write a value that they lack. Access logs have a dash."""
_LONGEST: Final = timedelta(days=365_000)
_MAX_TOKENS: Final = 10**15
_MAX_COUNT_DIGITS: Final = len(str(_MAX_TOKENS))
_UNKNOWN: Final = "unknown"
_FINISH_REASONS: Final = frozenset(FinishReason)
_NOT_COUNTED: Final = {Provenance.ABSENT, Provenance.CUT}


@attrs.frozen(eq=False, repr=False, kw_only=True)
class LoggedExchange:
    """The facts that a line states about an exchange. Each is ``None`` if the line does not state it.

    Attributes:
        id: the id of the exchange in the log.
        created: when it began, in UTC.
        latency: its duration.
        provider: the provider id of the answer's dialect.
        vendor: the name of the vendor in the log.
        server: the provider id for *vendor*, used for answers that fit several providers.
        model: the requested model.
        status: the HTTP status.
        request: the request, as JSON or text.
        tags: the tags of the log, as JSON.
        cost: the cost, in the currency of the log.
        cost_source: who states the cost, such as ``provider``, or ``estimated`` for a list price.
        session: the id of the session or conversation.
        user: the id of the user.
        trace_id: the id of the trace, in hex.
        parent: the id of the span around it, for logs of spans.
        is_finish_unknown: whether the log stores the answer without its finish reason.
        url: the address of the request.
        team: the name or id of the team, tenant or project.
        tier: the service tier, such as ``batch``, ``flex`` or ``priority``.
        answered_model: the model that answered, for lines that do not store the answer.
        finish: the finish reason, for lines that do not store the answer.
        tokens: the token counts that the log states, by their names in ``UsageInfo`` and with their meaning there.
        has_answer: whether the log stores the answer. If not, :func:`stated_response` returns what it states.
        has_odd_time: whether a time or duration of the line is in a form that is not read. It counts as absent.
        kept: the further values that were requested, as text, or as JSON if they are not text.
    """

    id: str | None = None
    created: datetime | None = None
    latency: timedelta | None = None
    provider: str | None = None
    vendor: str | None = None
    server: str | None = None
    model: str | None = None
    status: int | None = None
    request: str | None = None
    tags: str | None = None
    cost: Decimal | None = None
    cost_source: str | None = None
    session: str | None = None
    user: str | None = None
    trace_id: str | None = None
    parent: str | None = None
    is_finish_unknown: bool = False
    url: str | None = None
    team: str | None = None
    tier: str | None = None
    answered_model: str | None = None
    finish: str | None = None
    tokens: Mapping[str, int] = attrs.field(factory=dict)
    has_answer: bool = True
    has_odd_time: bool = False
    kept: Mapping[str, str | None] = attrs.field(factory=dict)


class NotAnExchangeError(CrosswalkError, ValueError):
    """A line of a log is no exchange with a model, such as the span of a tool. The message says why."""


class RecordError(CrosswalkError, ValueError):
    """A line of a log contains no answer. The message says why, without quoting the line.

    Attributes:
        exchange: the facts of the line, or ``None`` if it cannot be read at all.
    """

    def __init__(self, message: str, exchange: LoggedExchange | None = None) -> None:
        super().__init__(message)
        self.exchange = exchange


def read_facts(record: dict[str, Any], layout: Layout, kept_paths: Mapping[str, Path]) -> dict[str, Any]:
    """Return the facts of *record*, the object of a line or the columns of a row: the attributes of a ``LoggedExchange``.

    Args:
        record: the record.
        layout: the layout that locates the facts.
        kept_paths: the paths of further values, by name.

    Raises:
        RecordError: a strict field has an invalid value. The error's ``exchange`` has the other facts.
    """
    facts: dict[str, Any] = {}
    fault: str | None = None
    for name, field in layout.fields.items():
        value = field.read(record) if name in _READERS else None
        if value is None or value in _MISSING_VALUES:
            continue
        try:
            facts[name] = _READERS[name](value, field)
        except (ValueError, OverflowError, InvalidOperation) as error:
            if name in TIMES:
                facts["has_odd_time"] = True
            if name in layout.strict and fault is None:
                place = ".".join(field.paths[0]) if len(field.paths) == 1 else name
                fault = f"{place}: expected {error}"
    end_time = facts.pop("ended", None)
    if end_time is not None and "created" in facts and "latency" not in facts:
        facts["latency"] = max(end_time - facts["created"], timedelta())
    if layout.states and (tokens := _tokens(record, layout)):
        facts["tokens"] = tokens
    if layout.tier is not None:
        facts.setdefault("tier", layout.tier)
    for name, key in (("answered_model", "model"), ("finish", "finish_reason")):
        answer_field = layout.answer.get(key)
        value = None if answer_field is None else answer_field.read(record)
        if type(value) is str and value:
            facts[name] = unquoted(value)
    _add_provider(facts, layout, None if verdict_of(layout.own_form, record) else layout.dialect)
    has_place = "model" not in layout.fields or layout.fields["model"].paths
    if has_place and "model" not in facts and (model := _requested_model(record, layout)):
        facts["model"] = model
    if kept_paths:
        facts["kept"] = kept_values(record, kept_paths)
    if fault is not None:
        raise RecordError(fault, LoggedExchange(**facts))
    return facts


def _tokens(record: dict[str, Any], layout: Layout) -> dict[str, int]:
    """Return the token counts that *record* states, each with the parts that the log's own count leaves out."""
    stated_counts = {name: _count(field.read(record)) for name, field in layout.states.items()}
    tokens = {name: count for name, count in stated_counts.items() if count is not None}
    is_whole = bool(layout.excludes_when) and not verdict_of(layout.excludes_when, record)
    for part in () if is_whole else layout.excludes:
        if part in tokens and (whole_name := PART_OF[part]) in tokens:
            tokens[whole_name] += tokens[part]
    return tokens


def _count(value: Any) -> int | None:
    """Return *value* as a count of tokens, or ``None`` if it is none. Columns may hold counts as text or as floats."""
    if type(value) is str and len(value) <= _MAX_COUNT_DIGITS and value.isascii() and value.isdecimal():
        value = int(value)
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value <= _MAX_TOKENS else None


def _add_provider(facts: dict[str, Any], layout: Layout, dialect: str | None) -> None:
    """Add the provider or server and the vendor to *facts*, from the names in *facts* and *layout*, and the *dialect*."""
    provider_name = facts.pop("provider", None)
    vendor = facts.get("vendor") or provider_name or layout.vendor
    if vendor is not None:
        facts["vendor"] = vendor
    provider = dialect or (None if provider_name is None else plain_name(provider_name))
    server = _provider_of(provider or plain_name(vendor or ""))
    if server is not None:  # a vendor with the dialect of a provider, or several
        facts["server"] = server
    elif provider is not None:
        facts["provider"] = provider
    elif vendor is not None:
        facts["server"] = plain_name(vendor)


def _provider_of(vendor: str) -> str | None:
    """Return the provider that logs call *vendor*, or ``None`` if none says that it has that name."""
    return VENDORS.get(vendor) or registry.named("vendors", vendor)


def vendor_name(word: str) -> str:
    """Return the one spelling of the vendor that a log calls *word*.

    The name of a wire format becomes that of its maker. A platform such as Azure stays itself, although it answers in
    another vendor's dialect.
    """
    vendor = plain_name(word)
    return _SPELLINGS.get(vendor) or _provider_of(vendor) or vendor


def vendor_of_model(model: str) -> str | None:
    """Return the vendor that serves the model with this name, or ``None`` if several do or it is unknown."""
    name = model.lower()
    return next((vendor for pattern, vendor in _vendors_of_models() if pattern.fullmatch(name)), None)


def _requested_model(record: dict[str, Any], layout: Layout) -> str | None:
    field = layout.fields.get("request")
    request = None if field is None else field.read(record)
    if type(request) is str and request.startswith("{"):
        try:
            request = load_json(request)
        except ValueError:
            return None
    model = request.get("model") if type(request) is dict else None
    return model if type(model) is str and model else None


def kept_values(record: dict[str, Any], kept_paths: Mapping[str, Path]) -> dict[str, str | None]:
    """Return the values of *record* at the paths *kept_paths*, as text."""
    return {name: _kept(look_up(record, path)) for name, path in kept_paths.items()}


def _kept(value: Any) -> str | None:
    if value is None or type(value) is str:
        return value
    return dump_json(value).decode()


def _id(value: Any, field: Field) -> str:
    return str(value) if type(value) is int else _text(value, field)


def _text(value: Any, _: Field) -> str:
    if type(value) is str:
        return unquoted(value)
    raise ValueError(f"a string, got {json_type_name(value)}")


def _json(value: Any, _: Field) -> str:
    try:
        return value if type(value) is str else dump_json(value).decode()
    except TypeError:
        raise ValueError("JSON that is not nested too deeply") from None


def _status(value: Any, _: Field) -> int:
    if type(value) is str and value.isdecimal() and len(value) == 3:
        value = int(value)
    if type(value) is not int or not 100 <= value <= 999:
        raise ValueError("an HTTP status")
    return value


def _seconds(value: Any, field: Field) -> Decimal:
    if type(value) not in (int, float, str, Decimal) or not (number := Decimal(str(value))).is_finite():
        raise InvalidOperation
    return number / field.per_unit


def _time(value: Any, field: Field) -> datetime:
    try:
        if type(value) is str and not value.replace(".", "", 1).isdecimal():
            time = datetime.fromisoformat(value.strip().removesuffix(" UTC"))  # BigQuery's form
            return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
        seconds = _seconds(value, field)
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=round(seconds * 1_000_000))
    except (ValueError, OverflowError, InvalidOperation):
        raise ValueError("a time: ISO 8601, or a number since 1970 (@ms, @us, @ns name its unit)") from None


def _duration(value: Any, field: Field) -> timedelta:
    try:
        duration = timedelta(microseconds=round(_seconds(value, field) * 1_000_000))
    except (OverflowError, InvalidOperation):
        raise ValueError("a duration: a number (@ms, @us, @ns name its unit)") from None
    if not timedelta() <= duration <= _LONGEST:
        raise ValueError("a duration that is not negative")
    return duration


def _cost(value: Any, field: Field) -> Decimal:
    try:
        cost = Decimal(str(value)) if type(value) in (int, float, str, Decimal) else None
    except InvalidOperation:
        cost = None
    if cost is None or not cost.is_finite() or abs(cost) >= 10**18:
        raise ValueError("an amount of money")
    return cost / field.per_unit


def _flag(value: Any, _: Field) -> bool:
    if type(value) is not bool:
        raise ValueError("true or false")
    return value


_READERS: Final = {
    "id": _id,
    "created": _time,
    "ended": _time,
    "latency": _duration,
    "provider": _text,
    "vendor": _text,
    "model": _text,
    "status": _status,
    "request": _json,
    "tags": _json,
    "cost": _cost,
    "cost_source": _text,
    "session": _id,
    "user": _id,
    "team": _id,
    "url": _text,
    "tier": _text,
    "trace_id": _id,
    "parent": _id,
    "is_finish_unknown": _flag,
}


def with_facts(response: ChatResponse, exchange: LoggedExchange) -> ChatResponse:
    """Return *response* with the model, time, duration and token counts of *exchange* where the answer states none.

    ``provenance`` marks these values as ``derived``.
    """
    provenance = dict(response.metadata.provenance)
    changes: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    model = exchange.answered_model or exchange.model
    if model is not None and provenance.get("model") is Provenance.ABSENT:
        changes["model"] = metadata["model_id"] = model
        provenance["model"] = Provenance.DERIVED
    if exchange.created is not None and provenance.get("created") is Provenance.SYNTHETIC:
        changes["created"] = exchange.created
        provenance["created"] = Provenance.DERIVED
    if exchange.latency is not None and provenance.get("metadata.request_duration") is Provenance.ABSENT:
        metadata["request_duration"] = exchange.latency
        provenance["metadata.request_duration"] = Provenance.DERIVED
    if exchange.finish in _FINISH_REASONS and provenance.get("finish_reason") is Provenance.ABSENT:
        changes["finish_reason"] = FinishReason(exchange.finish)
        provenance["finish_reason"] = Provenance.DERIVED
    if exchange.is_finish_unknown:
        provenance["finish_reason"] = Provenance.SYNTHETIC
    if exchange.tokens:
        changes["usage"] = _with_tokens(response.usage, exchange.tokens, provenance)
        metadata["completion_tokens"] = counted_tokens(changes["usage"], provenance)
    if provenance == response.metadata.provenance:
        return response
    metadata["provenance"] = as_provenance(provenance)
    return altered(response, metadata=altered(response.metadata, **metadata), **changes)


def _with_tokens(usage: UsageInfo, tokens: Mapping[str, int], provenance: dict[str, Provenance]) -> UsageInfo:
    """Return *usage* with those of *tokens* that the answer does not count, and mark them in *provenance*."""
    usage_provenance = provenance.pop("usage", None)
    if usage_provenance is not None:  # it holds for each count
        provenance |= {f"usage.{name}": usage_provenance for name in ("prompt_tokens", "completion_tokens")}
    missing_counts: dict[str, Any] = {
        name: count
        for name, count in tokens.items()
        if getattr(usage, name) is None or provenance.get(f"usage.{name}") in _NOT_COUNTED
    }
    provenance |= {f"usage.{name}": Provenance.DERIVED for name in missing_counts}
    return attrs.evolve(usage, **missing_counts)


def stated_response(exchange: LoggedExchange, *, clock: Callable[[], datetime] = now) -> ChatResponse:
    """Return a response with the facts of *exchange* alone, for a line that does not store its answer.

    Its message is empty. ``provenance`` marks the message and the finish reason as ``absent`` and the stated values as
    ``derived``, and the response is not complete. If the log has no id, one is made from the facts.

    Args:
        exchange: the facts.
        clock: returns a time of creation if the log has none.
    """
    absent_fields = ("model", "message.content", "finish_reason", "usage", "metadata.request_duration")
    provenance = {
        "id": Provenance.SYNTHETIC if exchange.id is None else Provenance.DERIVED,
        "created": Provenance.SYNTHETIC,
        **dict.fromkeys(absent_fields, Provenance.ABSENT),
    }
    provider = exchange.provider or exchange.server or _UNKNOWN
    response = ChatResponse(
        id=exchange.id or _id_of(exchange),
        message=ChatMessage.assistant(),
        finish_reason=FinishReason.STOP,
        usage=UsageInfo.EMPTY,
        metadata=ResponseMetadata(provider, _UNKNOWN, provenance=provenance),
        created=exchange.created or clock(),
        model=_UNKNOWN,
    )
    return with_facts(response, exchange)


def _id_of(exchange: LoggedExchange) -> str:
    from hashlib import sha1  # rarely needed, and slow to import
    from uuid import UUID

    facts = repr([getattr(exchange, field.name) for field in attrs.fields(LoggedExchange)])
    digest = sha1(facts.encode(errors="surrogatepass"), usedforsecurity=False).digest()
    return str(UUID(bytes=digest[:16], version=5))
