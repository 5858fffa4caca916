"""Provider, model, timing and remaining fields of a response."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Final, final

import attrs

from crosswalk.plain_errors import ResponseValidationError
from crosswalk.text import brief, clean_message, json_type_name, short_repr
from crosswalk.types._value import (
    altered,
    as_text,
    check_count,
    check_number,
    check_text,
    one_of,
)
from crosswalk.types.json import EMPTY_OBJECT, FrozenObject, as_frozen_object

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
        if not self.model_id or not isinstance(self.model_id, str):
            raise ResponseValidationError("Model ID cannot be empty", code="ACODE-RSP-006")
        check_text(self, "provider_id", "model_id")
        if self.completion_tokens is not None:
            check_count(self, "completion_tokens")
        if self.request_duration is _ZERO and self.time_to_first_token is None:
            return  # as for most
        duration: object = self.request_duration
        first: object = self.time_to_first_token
        if not isinstance(duration, timedelta) or not isinstance(first, timedelta | None):
            raise ResponseValidationError("request duration and time to first token must be timedeltas")
        if duration < _ZERO:
            raise ResponseValidationError("Request duration cannot be negative", code="ACODE-RSP-007")
        if first is not None and first < _ZERO:
            raise ResponseValidationError("Time to first token cannot be negative")
        if duration > LONGEST or (first is not None and first > LONGEST):
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
