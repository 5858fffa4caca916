"""Token counts and costs of requests."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, final

import attrs

from crosswalk.lazy import later, pattern
from crosswalk.plain_errors import ResponseValidationError
from crosswalk.text import json_type_name
from crosswalk.types._value import LARGEST, check_text, wrong_type
from crosswalk.types.metadata import Provenance

if TYPE_CHECKING:
    import decimal
else:
    decimal = later("decimal")  # hardly any answer reports its cost


_CURRENCY: Final = pattern("[A-Z]{3}")


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
        if not _CURRENCY.fullmatch(self.currency):
            raise wrong_type(self, "currency", "a code of three capitals, such as USD")
        if self.provenance is not None and type(self.provenance) is not Provenance:
            raise wrong_type(self, "provenance", "a Provenance")

    def __str__(self) -> str:
        return f"{self.amount:f} {self.currency}"


@final
@attrs.frozen(weakref_slot=False)
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
                raise _wrong_count(_DETAILS[position], count)

    def __add__(self, other: object) -> UsageDetails:
        if not isinstance(other, UsageDetails):
            return NotImplemented
        if other is UsageDetails.EMPTY:
            return self
        return UsageDetails(*(_add(getattr(self, name), getattr(other, name)) for name in _DETAILS))


_DETAILS: Final = tuple(field.name for field in attrs.fields(UsageDetails))
_counts: Final = attrgetter(*_DETAILS)
UsageDetails.EMPTY = UsageDetails()


@final
@attrs.frozen(weakref_slot=False)
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
        prompt, completion = self.prompt_tokens, self.completion_tokens
        if type(prompt) is not int or not 0 <= prompt <= LARGEST:
            self._refuse()
        if type(completion) is not int or not 0 <= completion <= LARGEST:
            self._refuse()
        cached, reasoning, written = self.cached_tokens, self.reasoning_tokens, self.cache_write_tokens
        if cached is not None and (type(cached) is not int or not 0 <= cached <= LARGEST):
            self._refuse()
        if reasoning is not None and (type(reasoning) is not int or not 0 <= reasoning <= LARGEST):
            self._refuse()
        if written is not None and (type(written) is not int or not 0 <= written <= LARGEST):
            self._refuse()
        if self.cost is not None and type(self.cost) is not Cost:
            raise wrong_type(self, "cost", "a Cost")
        if type(self.details) is not UsageDetails:
            raise wrong_type(self, "details", "a UsageDetails")

    def _refuse(self) -> NoReturn:
        """Raise an error that names the wrong count and the reason."""
        for name in _COUNTS:
            count = getattr(self, name)
            if type(count) is not int and (count is not None or name in _REQUIRED):
                raise _wrong_count(name, count)
        for name in _COUNTS:
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
        return counts_at({**OPENAI_COUNTS, **OPENAI_DETAILS}, self)

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

OPENAI_DETAILS: Final[Mapping[str, str]] = MappingProxyType(
    {
        f"{modality}_{side}_tokens": f"{group}_tokens_details.{modality}_tokens"
        for side, group in (("input", "prompt"), ("output", "completion"))
        for modality in ("text", "audio", "image", "video")
    }
)
"""The path of each count of :class:`UsageDetails` in OpenAI's nested form."""


def counts_at(paths: Mapping[str, str], usage: UsageInfo, **other: int | None) -> dict[str, Any]:
    """Return the counts of *usage*, each at its path in *paths*, without those that are ``None``.

    Args:
        paths: by count, its path, with dots between the keys.
        usage: the counts. Those of its details have paths, too.
        other: the counts to write in place of those of *usage*.
    """
    written: dict[str, Any] = {}
    for name, path in paths.items():
        count = other[name] if name in other else getattr(usage.details if name in _DETAILS else usage, name)
        if count is not None:
            *groups, leaf = path.split(".")
            holder = written
            for group in groups:
                holder = holder.setdefault(group, {})
            holder[leaf] = count
    return written


_new: Final = object.__new__
_set_prompt, _set_completion, _set_cached, _set_reasoning, _set_written, _set_cost, _set_details = (
    vars(UsageInfo)[field.name].__set__ for field in attrs.fields(UsageInfo)
)


def usage_of(
    counts: tuple[int | None, ...], cost: Cost | None, details: UsageDetails = UsageDetails.EMPTY
) -> UsageInfo:
    """A :class:`UsageInfo` of its five counts in their order, in half the time of its constructor."""
    for count in counts:
        if count is not None and (type(count) is not int or not 0 <= count <= LARGEST):
            return UsageInfo(*counts)  # type: ignore[arg-type]  # which refuses them
    if cost is not None and type(cost) is not Cost:
        return UsageInfo(0, 0, cost=cost)  # which refuses it
    made = _new(UsageInfo)
    prompt, completion, cached, reasoning, written = counts
    _set_prompt(made, prompt)
    _set_completion(made, completion)
    _set_cached(made, cached)
    _set_reasoning(made, reasoning)
    _set_written(made, written)
    _set_cost(made, cost)
    _set_details(made, details)
    return made


def later_usage(old: UsageInfo | None, new: UsageInfo, absent: Collection[str] = ()) -> UsageInfo:
    """Combine two reports of one answer. The later one counts, but removes nothing that it does not mention.

    Args:
        old: the report before, or ``None``.
        new: the later one.
        absent: the required counts of *new* that are placeholders.
    """
    if old is None or not (
        absent
        or (new.cached_tokens is None and old.cached_tokens is not None)
        or (new.reasoning_tokens is None and old.reasoning_tokens is not None)
        or (new.cache_write_tokens is None and old.cache_write_tokens is not None)
        or (new.cost is None and old.cost is not None)
        or (old.details is not UsageDetails.EMPTY and old.details is not new.details)
    ):
        return new  # most of any stream that counts in every event
    stored: dict[str, Any] = {
        name: getattr(old, name) for name in _FIELDS if getattr(new, name) is None or name in absent
    }
    return attrs.evolve(new, **stored, details=_later_details(old.details, new.details))


def _later_details(old: UsageDetails, new: UsageDetails) -> UsageDetails:
    if old is new or old is UsageDetails.EMPTY:
        return new
    return UsageDetails(
        *(
            later if later is not None else earlier
            for earlier, later in zip(_counts(old), _counts(new), strict=True)
        )
    )


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


def _is_money(amount: decimal.Decimal) -> bool:
    """Return whether *amount* may be a sum of money. A number of a thousand places would be costly to write."""
    return amount.is_finite() and 0 <= amount <= 10**12 and amount.as_tuple().exponent >= -30  # type: ignore[operator]


def _add_costs(left: Cost | None, right: Cost | None) -> Cost | None:
    if left is None or right is None:
        return right if left is None else left
    if left.currency != right.currency:
        raise ResponseValidationError(f"costs in {left.currency} and {right.currency} have no sum")
    reasons = {left.provenance, right.provenance} - {None}
    provenance = Provenance.DERIVED if len(reasons) > 1 else next(iter(reasons), None)
    return Cost(exact().add(left.amount, right.amount), left.currency, provenance)


_FIELDS = tuple(field.name for field in attrs.fields(UsageInfo))
_COUNTS = tuple(name for name in _FIELDS if name not in ("cost", "details"))
_REQUIRED = ("prompt_tokens", "completion_tokens")
UsageInfo.EMPTY = UsageInfo(0, 0)
