"""What an answer cost and where it came from: token counts, costs, provider, model and timing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta
from enum import StrEnum
from functools import cache
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, final

import attrs

from crosswalk.lazy import later, pattern
from crosswalk.plain_errors import ResponseValidationError
from crosswalk.text import brief, clean_message, json_type_name, short_repr, summary
from crosswalk.types.json import EMPTY_OBJECT, FrozenObject, as_frozen_object
from crosswalk.types.values import (
    LARGEST,
    altered,
    as_text,
    check_count,
    check_number,
    check_text,
    maker,
    one_of,
    wrong_type,
)
from crosswalk.words import suggests_names

# -------------------------------------------------------------------------------- metadata
# Provider, model, timing and remaining fields of a response.


_ZERO = timedelta(0)
LONGEST: Final = timedelta(days=365_250)
"""The limit of durations: no counter of 64 bits and nanoseconds reaches it, and JSON can still contain it."""


class Provenance(StrEnum):
    """The reason why a canonical field does not contain the provider's own value (design, promise P8)."""

    SYNTHETIC = "synthetic"
    """Made up here, such as an id that the provider does not send."""
    DERIVED = "derived"
    """Worked out from another value that the provider sent."""
    ABSENT = "absent"
    """Not sent. The value is a placeholder: a count of 0 was not counted."""
    UNMAPPED = "unmapped"
    """Sent as a word, or as an event, that no mapping knows."""
    MISTYPED = "mistyped"
    """Sent as another type than the API promises. It is in the extensions, unchanged."""
    CUT = "cut"
    """Not sent, because the input ended before its end."""


_NO_PROVENANCE: Mapping[str, Provenance] = MappingProxyType({})


def as_provenance(value: Mapping[str, str] | None) -> Mapping[str, Provenance]:
    """An attrs converter: paths and their words, read-only."""
    if value is None or value is _NO_PROVENANCE:
        return _NO_PROVENANCE
    if not isinstance(value, Mapping):
        raise ResponseValidationError(f"provenance must be an object, not {json_type_name(value)}")
    return MappingProxyType(
        {
            p if type(p) is str and p.isascii() else as_text(p, "a path of provenance"): word
            if type(word) is Provenance
            else one_of(Provenance, word, "unknown provenance")
            for p, word in value.items()
        }
    )


@suggests_names
@brief
@final
@attrs.frozen(weakref_slot=False)
class ResponseMetadata:
    """The metadata of an answer: everything except the answer itself.

    Attributes:
        provider_id: the provider whose dialect it came in, such as ``ollama``.
        model_id: the exact model that answered, as the provider names it, or ``unknown`` if the answer does not name it.
        request_duration: from the request to the end of the answer, or zero if it was not measured and
            the provider does not report it.
        time_to_first_token: from the request to the first content, reasoning or tool call, or
            ``None`` if not streamed or not measured.
        extensions: every field of the provider without a typed counterpart, read-only, in its own structure.
        provenance: canonical path to the reason why the value there is not the provider's own word.
        completion_tokens: the tokens that ``tokens_per_second`` counts, or ``None`` if unknown. A response fills it in.

    Raises:
        ResponseValidationError: an empty provider id (``ACODE-RSP-005``) or model id (``-006``),
            a negative duration (``-007``) or one of more than 1000 years, an unknown provenance, or a field of
            another type.
    """

    provider_id: str
    model_id: str
    request_duration: timedelta = attrs.field(
        default=_ZERO, metadata={"json_key": "request_duration_seconds"}
    )
    time_to_first_token: timedelta | None = attrs.field(
        default=None, metadata={"json_key": "time_to_first_token_seconds", "json_next": "tokens_per_second"}
    )
    extensions: FrozenObject = attrs.field(default=EMPTY_OBJECT, converter=as_frozen_object)
    provenance: Mapping[str, Provenance] = attrs.field(default=_NO_PROVENANCE, converter=as_provenance)
    completion_tokens: int | None = attrs.field(default=None, eq=False, metadata={"json_key": None})

    def __attrs_post_init__(self) -> None:
        if not self.provider_id or not isinstance(self.provider_id, str):
            raise ResponseValidationError("Provider ID cannot be empty", code="ACODE-RSP-005")
        if not isinstance(self.model_id, str):
            raise ResponseValidationError(
                f"the model is a text, not {type(self.model_id).__name__}", code="ACODE-RSP-006"
            )
        if not self.model_id:
            raise ResponseValidationError("Model ID cannot be empty", code="ACODE-RSP-006")
        check_text(self, "provider_id", "model_id")
        if self.completion_tokens is not None:
            check_count(self, "completion_tokens")
        if self.request_duration is _ZERO and self.time_to_first_token is None:
            return  # as for most
        duration: object = self.request_duration
        first_token_delay: object = self.time_to_first_token
        if not isinstance(duration, timedelta) or not isinstance(first_token_delay, timedelta | None):
            raise ResponseValidationError("request duration and time to first token must be timedeltas")
        if duration < _ZERO:
            raise ResponseValidationError("Request duration cannot be negative", code="ACODE-RSP-007")
        if first_token_delay is not None and first_token_delay < _ZERO:
            raise ResponseValidationError("Time to first token cannot be negative")
        if duration > LONGEST or (first_token_delay is not None and first_token_delay > LONGEST):
            raise ResponseValidationError("a duration cannot be longer than 1000 years")

    def with_completion_tokens(self, count: int | None) -> ResponseMetadata:
        """The same, with *count*, a count of tokens, for ``tokens_per_second``."""
        return altered(self, completion_tokens=count)

    @property
    def tokens_per_second(self) -> float | None:
        """Completion tokens per second of the request, or ``None`` when either is unknown."""
        if self.completion_tokens is None or not self.request_duration:
            return None
        return self.completion_tokens / self.request_duration.total_seconds()

    def __hash__(self) -> int:
        return hash((self.provider_id, self.model_id, self.request_duration))

    __repr__ = short_repr(
        "provider_id", "model_id", "request_duration", "time_to_first_token", "extensions", "provenance"
    )

    def __reduce__(self) -> tuple[object, ...]:
        # A mapping proxy cannot be pickled directly.
        fields = attrs.fields(type(self))
        values = {field.name: getattr(self, field.name) for field in fields}
        return _restore, ({**values, "provenance": dict(self.provenance)},)


def _restore(values: dict[str, object]) -> ResponseMetadata:
    return ResponseMetadata(**values)  # type: ignore[arg-type]


def _as_clean(value: str | None) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise ResponseValidationError(f"ProviderAttempt.error must be text, not {json_type_name(value)}")
    return clean_message(value)


class AttemptOutcome(StrEnum):
    """How one attempt at a request ended."""

    SUCCESS = "success"
    ERROR = "error"
    CANCELLED = "cancelled"


def _as_outcome(value: object) -> AttemptOutcome:
    return one_of(AttemptOutcome, value, "unknown outcome of an attempt")


@brief
@attrs.frozen
class ProviderAttempt:
    """One attempt at a request, successful or not.

    Attributes:
        provider_name: the provider that was asked.
        model: the model that was requested.
        latency_ms: from the request to the end of the attempt, in milliseconds, or ``None`` if not measured.
        outcome: how it ended.
        error: why it failed, cleaned of secrets, or ``None`` on success.
        extra: further facts, read-only.

    Raises:
        ResponseValidationError: an unknown outcome, a negative time, or a field of another type.
    """

    provider_name: str
    model: str
    latency_ms: float | None = None
    outcome: AttemptOutcome = attrs.field(default=AttemptOutcome.SUCCESS, converter=_as_outcome)
    error: str | None = attrs.field(default=None, converter=_as_clean)
    extra: FrozenObject = attrs.field(default=EMPTY_OBJECT, converter=as_frozen_object)

    def __attrs_post_init__(self) -> None:
        check_text(self, "provider_name", "model")
        if self.latency_ms is not None:
            check_number(self, "latency_ms")
            if self.latency_ms < 0:
                raise ResponseValidationError("ProviderAttempt.latency_ms cannot be negative")

    __repr__ = short_repr("provider_name", "model", "outcome", "latency_ms", "error", "extra")


# ----------------------------------------------------------------------------------- usage
# Token counts and costs of requests.


if TYPE_CHECKING:
    import decimal
else:
    decimal = later("decimal")  # hardly any answer reports its cost


_CURRENCY_PATTERN: Final = pattern("[A-Z]{3}")


@cache
def exact() -> decimal.Context:
    """A context that rounds no digit of an amount, nor of a sum of two, whatever the application has set."""
    return decimal.Context(prec=60)


@attrs.frozen(weakref_slot=False)
class Cost:
    """The cost of one request, or of several together.

    Attributes:
        amount: the money, exact, at least 0. In canonical JSON it is the text of a decimal number.
        currency: its code in ISO 4217, such as ``USD``.
        provenance: ``None`` if the provider reports what it charges, or ``derived`` if the amount was worked out from
            a price list.

    Raises:
        ResponseValidationError: the amount is not a ``Decimal`` from 0 to a million million with at most 30 places behind
            the point, or the currency is not a code of three capitals.
    """

    amount: decimal.Decimal
    currency: str = "USD"
    provenance: Provenance | None = None

    def __attrs_post_init__(self) -> None:
        if type(self.amount) is not decimal.Decimal or not _is_money(self.amount):
            raise wrong_type(self, "amount", "a Decimal from 0 to a million million with at most 30 places")
        check_text(self, "currency")
        if not _CURRENCY_PATTERN.fullmatch(self.currency):
            raise wrong_type(self, "currency", "a code of three capitals, such as USD")
        if self.provenance is not None and type(self.provenance) is not Provenance:
            raise wrong_type(self, "provenance", "a Provenance")

    def __str__(self) -> str:
        return f"{self.amount:f} {self.currency}"


@brief
@final
@attrs.frozen(weakref_slot=False, repr=False)
class UsageDetails:
    """Counts that only some providers send: tokens by modality, cache writes by lifetime, requests of server tools.

    The names are those of OpenTelemetry's GenAI conventions where these have one. Tokens by modality are part of the
    prompt or of the completion; the parts need not add up to it. Each count is ``None`` when the provider does not say.

    Attributes:
        text_input_tokens: prompt tokens that were text.
        audio_input_tokens: prompt tokens that were audio.
        image_input_tokens: prompt tokens that were images.
        video_input_tokens: prompt tokens that were video.
        text_output_tokens: completion tokens that are text.
        audio_output_tokens: completion tokens that are audio.
        image_output_tokens: completion tokens that are images.
        video_output_tokens: completion tokens that are video.
        text_cache_read_tokens: cached prompt tokens that were text.
        audio_cache_read_tokens: cached prompt tokens that were audio.
        image_cache_read_tokens: cached prompt tokens that were images.
        video_cache_read_tokens: cached prompt tokens that were video.
        cache_write_5m_tokens: prompt tokens written to a cache for five minutes.
        cache_write_1h_tokens: prompt tokens written to a cache for one hour.
        web_search_requests: how often the server searched the web.
        web_fetch_requests: how often the server fetched a page.

    Raises:
        ResponseValidationError: a count is negative (``ACODE-RSP-004``), not an ``int``, or one of more than 63 bits.
    """

    EMPTY: ClassVar[UsageDetails]
    """Usage details without any count: the identity of ``+``."""

    text_input_tokens: int | None = None
    audio_input_tokens: int | None = None
    image_input_tokens: int | None = None
    video_input_tokens: int | None = None
    text_output_tokens: int | None = None
    audio_output_tokens: int | None = None
    image_output_tokens: int | None = None
    video_output_tokens: int | None = None
    text_cache_read_tokens: int | None = None
    audio_cache_read_tokens: int | None = None
    image_cache_read_tokens: int | None = None
    video_cache_read_tokens: int | None = None
    cache_write_5m_tokens: int | None = None
    cache_write_1h_tokens: int | None = None
    web_search_requests: int | None = None
    web_fetch_requests: int | None = None

    def __attrs_post_init__(self) -> None:
        for position, count in enumerate(_counts(self)):
            if count is not None and (type(count) is not int or not 0 <= count <= LARGEST):
                raise _wrong_count(_DETAIL_NAMES[position], count)

    def __repr__(self) -> str:
        return summary("UsageDetails", [(name, getattr(self, name)) for name in _DETAIL_NAMES])

    def __add__(self, other: object) -> UsageDetails:
        if not isinstance(other, UsageDetails):
            return NotImplemented
        if other is UsageDetails.EMPTY:
            return self
        return UsageDetails(*(_add(getattr(self, name), getattr(other, name)) for name in _DETAIL_NAMES))


_DETAIL_NAMES: Final = tuple(field.name for field in attrs.fields(UsageDetails))
_DETAIL_SET: Final = frozenset(_DETAIL_NAMES)
_counts: Final = attrgetter(*_DETAIL_NAMES)
UsageDetails.EMPTY = UsageDetails()


@suggests_names
@brief
@final
@attrs.frozen(weakref_slot=False, repr=False)
class UsageInfo:
    """Tokens of one request, or of several added up.

    In one meaning for every provider: prompt tokens include the cached ones and those
    written to the cache, completion tokens include reasoning. A mapper for a provider that counts otherwise
    adds up.

    Attributes:
        prompt_tokens: tokens of the input, at least 0.
        completion_tokens: tokens generated, at least 0.
        cached_tokens: how many of the prompt tokens came from a cache; ``None`` when the provider does not
            say.
        reasoning_tokens: how many of the completion tokens were reasoning, or ``None`` when the provider does
            not say.
        cache_write_tokens: how many of the prompt tokens were written to a cache, or ``None`` when the provider
            does not say.
        cost: what the request cost, or ``None`` when the provider does not say.
        details: counts by modality, cache lifetime and server tool; each is ``None`` when the provider does not say.

    Whether a 0 was counted or is merely missing stands in ``ResponseMetadata.provenance``.

    Raises:
        ResponseValidationError: a count is negative (``ACODE-RSP-004``), not an ``int``, or one of more than 63 bits.
    """

    EMPTY: ClassVar[UsageInfo]
    """No tokens at all: the identity of ``+``."""

    prompt_tokens: int
    completion_tokens: int = attrs.field(metadata={"json_next": "total_tokens"})
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    cache_write_tokens: int | None = None
    cost: Cost | None = None
    details: UsageDetails = attrs.field(default=UsageDetails.EMPTY, metadata={"json_omit": True})

    def __attrs_post_init__(self) -> None:
        # Spelt out, not looped: this runs for every usage report of a stream.
        prompt_tokens, completion_tokens = self.prompt_tokens, self.completion_tokens
        if type(prompt_tokens) is not int or not 0 <= prompt_tokens <= LARGEST:
            self._refuse()
        if type(completion_tokens) is not int or not 0 <= completion_tokens <= LARGEST:
            self._refuse()
        cached_tokens, reasoning_tokens, cache_write_tokens = (
            self.cached_tokens,
            self.reasoning_tokens,
            self.cache_write_tokens,
        )
        if cached_tokens is not None and (
            type(cached_tokens) is not int or not 0 <= cached_tokens <= LARGEST
        ):
            self._refuse()
        if reasoning_tokens is not None and (
            type(reasoning_tokens) is not int or not 0 <= reasoning_tokens <= LARGEST
        ):
            self._refuse()
        if cache_write_tokens is not None and (
            type(cache_write_tokens) is not int or not 0 <= cache_write_tokens <= LARGEST
        ):
            self._refuse()
        if self.cost is not None and type(self.cost) is not Cost:
            raise wrong_type(self, "cost", "a Cost")
        if type(self.details) is not UsageDetails:
            raise wrong_type(self, "details", "a UsageDetails")

    def __repr__(self) -> str:
        counts: list[tuple[str, Any]] = [(name, getattr(self, name)) for name in _COUNT_NAMES]
        details = None if self.details == UsageDetails.EMPTY else self.details
        return summary("UsageInfo", [*counts, ("cost", self.cost), ("details", details)])

    def _refuse(self) -> NoReturn:
        """Raise an error that names the wrong count and the reason."""
        for name in _COUNT_NAMES:
            count = getattr(self, name)
            if type(count) is not int and (count is not None or name in _REQUIRED_COUNTS):
                raise _wrong_count(name, count)
        for name in _COUNT_NAMES:
            count = getattr(self, name)
            if count is not None and count < 0:
                raise _wrong_count(name, count)
        raise _wrong_count("", LARGEST + 1)

    @property
    def total_tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def input_tokens(self) -> int:
        """``prompt_tokens`` under its name in OpenTelemetry and genai-prices."""
        return self.prompt_tokens

    @property
    def output_tokens(self) -> int:
        """``completion_tokens`` under its name in OpenTelemetry and genai-prices."""
        return self.completion_tokens

    @property
    def cache_read_tokens(self) -> int | None:
        """``cached_tokens`` under its name in OpenTelemetry and genai-prices."""
        return self.cached_tokens

    @property
    def input_audio_tokens(self) -> int | None:
        """``details.audio_input_tokens`` under its name in genai-prices."""
        return self.details.audio_input_tokens

    @property
    def cache_audio_read_tokens(self) -> int | None:
        """``details.audio_cache_read_tokens`` under its name in genai-prices."""
        return self.details.audio_cache_read_tokens

    @property
    def output_audio_tokens(self) -> int | None:
        """``details.audio_output_tokens`` under its name in genai-prices."""
        return self.details.audio_output_tokens

    def add(self, other: UsageInfo) -> UsageInfo:
        """Add two requests. An optional count is ``None`` only if it is ``None`` on both sides, and so is the cost.

        Raises:
            ResponseValidationError: the costs are in two currencies, or a count passes 63 bits.
        """
        return UsageInfo(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            _add(self.cached_tokens, other.cached_tokens),
            _add(self.reasoning_tokens, other.reasoning_tokens),
            _add(self.cache_write_tokens, other.cache_write_tokens),
            _add_costs(self.cost, other.cost),
            self.details + other.details,
        )

    def __add__(self, other: object) -> UsageInfo:
        return self.add(other) if isinstance(other, UsageInfo) else NotImplemented

    def to_openai(self) -> dict[str, Any]:
        """Return the counts in OpenAI's nested form, without details that are not known."""
        has_details = self.details is not UsageDetails.EMPTY
        return counts_at({**OPENAI_COUNTS, **OPENAI_COUNT_PATHS} if has_details else OPENAI_COUNTS, self)

    def __str__(self) -> str:
        counts = (self.prompt_tokens, self.completion_tokens, self.total_tokens)
        return "Prompt: {}, Completion: {}, Total: {}".format(*counts)


OPENAI_COUNTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "prompt_tokens": "prompt_tokens",
        "completion_tokens": "completion_tokens",
        "total_tokens": "total_tokens",
        "cached_tokens": "prompt_tokens_details.cached_tokens",
        "cache_write_tokens": "prompt_tokens_details.cache_write_tokens",
        "reasoning_tokens": "completion_tokens_details.reasoning_tokens",
    }
)
"""The path of each count in OpenAI's nested form."""

OPENAI_COUNT_PATHS: Final[Mapping[str, str]] = MappingProxyType(
    {
        f"{modality}_{side}_tokens": f"{group}.{modality}_tokens"
        for side, group in (
            ("input", "prompt_tokens_details"),
            ("output", "completion_tokens_details"),
            ("cache_read", "prompt_tokens_details.cached_tokens_details"),
        )
        for modality in ("text", "audio", "image", "video")
    }
)
"""The path of each count of :class:`UsageDetails` in OpenAI's nested form."""


def counts_at(paths: Mapping[str, str], usage: UsageInfo, **other_counts: int | None) -> dict[str, Any]:
    """Return the counts of *usage*, each at its path in *paths*, without those that are ``None``.

    Args:
        paths: by count, its path, with dots between the keys.
        usage: the counts. Those of its details have paths, too.
        other_counts: the counts to write in place of those of *usage*.
    """
    nested_counts: dict[str, Any] = {}
    for name, path in paths.items():
        count = (
            other_counts[name]
            if name in other_counts
            else getattr(usage.details if name in _DETAIL_SET else usage, name)
        )
        if count is not None:
            *groups, leaf = path.split(".")
            holder = nested_counts
            for group in groups:
                holder = holder.setdefault(group, {})
            holder[leaf] = count
    return nested_counts


_USAGE_MAKER: Final = maker(UsageInfo, *(field.name for field in attrs.fields(UsageInfo)))


def usage_of(
    counts: tuple[int | None, ...], cost: Cost | None, details: UsageDetails = UsageDetails.EMPTY
) -> UsageInfo:
    """A :class:`UsageInfo` of its five counts in their order, in half the time of its constructor."""
    for count in counts:
        if count is not None and (type(count) is not int or not 0 <= count <= LARGEST):
            return UsageInfo(*counts)  # type: ignore[arg-type]  # which refuses them
    if cost is not None and type(cost) is not Cost:
        return UsageInfo(0, 0, cost=cost)  # which refuses it
    return _USAGE_MAKER(*counts, cost, details)


def later_usage(old: UsageInfo | None, new: UsageInfo, absent_names: Collection[str] = ()) -> UsageInfo:
    """Combine two reports of one answer. The later one counts, but removes nothing that it does not mention.

    Args:
        old: the report before, or ``None``.
        new: the later one.
        absent_names: the required counts of *new* that are placeholders.
    """
    if old is None or not (
        absent_names
        or (new.cached_tokens is None and old.cached_tokens is not None)
        or (new.reasoning_tokens is None and old.reasoning_tokens is not None)
        or (new.cache_write_tokens is None and old.cache_write_tokens is not None)
        or (new.cost is None and old.cost is not None)
        or (old.details is not UsageDetails.EMPTY and old.details is not new.details)
    ):
        return new  # most of any stream that counts in every event
    earlier_fields: dict[str, Any] = {
        name: getattr(old, name)
        for name in _FIELD_NAMES
        if getattr(new, name) is None or name in absent_names
    }
    return attrs.evolve(new, **earlier_fields, details=_later_details(old.details, new.details))


def _later_details(old: UsageDetails, new: UsageDetails) -> UsageDetails:
    if old is new or old is UsageDetails.EMPTY:
        return new
    pairs = zip(_counts(old), _counts(new), strict=True)
    return UsageDetails(*[earlier if later is None else later for earlier, later in pairs])


def _wrong_count(name: str, count: Any) -> ResponseValidationError:
    if type(count) is not int:
        return ResponseValidationError(f"{name} must be an integer, not {json_type_name(count)}")
    if count < 0:
        return ResponseValidationError(f"Token count cannot be negative: {name}", code="ACODE-RSP-004")
    return ResponseValidationError("Token counts have at most 63 bits")


def _add(left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return right if left is None else left
    return left + right


_UNCOUNTED_MARKS: Final = (Provenance.ABSENT, Provenance.CUT)


def counted_tokens(usage: UsageInfo, provenance: Mapping[str, Provenance]) -> int | None:
    """Return the completion tokens that the provider counted, or ``None`` if the 0 was not counted."""
    if provenance:
        for path in ("usage.completion_tokens", "usage"):
            if provenance.get(path) in _UNCOUNTED_MARKS:
                return None
    return usage.completion_tokens


def _is_money(amount: decimal.Decimal) -> bool:
    """Return whether *amount* may be a sum of money. A number of a thousand places would be costly to write."""
    return amount.is_finite() and 0 <= amount <= 10**12 and amount.as_tuple().exponent >= -30  # type: ignore[operator]


def _add_costs(left: Cost | None, right: Cost | None) -> Cost | None:
    if left is None or right is None:
        return right if left is None else left
    if left.currency != right.currency:
        raise ResponseValidationError(f"costs in {left.currency} and {right.currency} have no sum")
    provenances = {left.provenance, right.provenance} - {None}
    provenance = Provenance.DERIVED if len(provenances) > 1 else next(iter(provenances), None)
    return Cost(exact().add(left.amount, right.amount), left.currency, provenance)


_FIELD_NAMES = tuple(field.name for field in attrs.fields(UsageInfo))
_COUNT_NAMES = tuple(name for name in _FIELD_NAMES if name not in ("cost", "details"))
_REQUIRED_COUNTS = ("prompt_tokens", "completion_tokens")
UsageInfo.EMPTY = UsageInfo(0, 0)
