"""Completes a call's response with the facts that only the service knows."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from crosswalk.errors import ErrorInfo, ErrorKind
from crosswalk.types._value import altered
from crosswalk.types.finish import FinishReason
from crosswalk.types.metadata import Provenance, ProviderAttempt
from crosswalk.types.response import ChatResponse
from crosswalk.types.segment import SegmentType

__all__ = ["CANCELLED", "as_cancelled", "completed"]

CANCELLED = ErrorInfo(ErrorKind.UNKNOWN, "cancelled by the caller", code="cancelled")
"""The error information of an answer that the caller ended."""


def as_cancelled(partial: ChatResponse) -> ChatResponse:
    """Turn *partial*, an error response with :data:`CANCELLED`, into an answer that the caller ended."""
    segments = partial.segments[:-1]
    refusals = [s.content for s in segments if s.type is SegmentType.REFUSAL]
    alternatives = (
        attrs.evolve(answer, finish_reason=FinishReason.CANCELLED)
        if answer.finish_reason is FinishReason.ERROR
        else answer
        for answer in partial.alternatives
    )
    return attrs.evolve(
        partial,
        finish_reason=FinishReason.CANCELLED,
        segments=segments,
        refusal="".join(refusals) if refusals else None,
        alternatives=alternatives,
    )


def completed(
    response: ChatResponse, model: str | None, attempts: Iterable[ProviderAttempt], *, is_stream: bool
) -> ChatResponse:
    """Return *response* with all *attempts*.

    If a server does not name the model that answered, it is assumed to be the requested one. The time to the
    first token is unknown for an answer that arrived whole.

    Args:
        response: the answer.
        model: the requested model, or ``None`` if it is unknown.
        attempts: every attempt at the request, in order.
        is_stream: whether the answer came as a stream.
    """
    metadata = response.metadata
    if not is_stream and metadata.time_to_first_token is not None:
        metadata = altered(metadata, time_to_first_token=None)
    if model is not None and metadata.provenance.get("model") is Provenance.ABSENT:
        said = {**metadata.provenance, "model": Provenance.DERIVED}
        metadata = attrs.evolve(metadata, model_id=model, provenance=said)
        response = attrs.evolve(response, model=model)
    return altered(response, metadata=metadata, attempts=tuple(attempts))
