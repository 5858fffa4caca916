"""A response with what its log says and the answer does not."""

from __future__ import annotations

from typing import Any

from crosswalk.records.facts import Exchange
from crosswalk.types._value import altered
from crosswalk.types.metadata import Provenance
from crosswalk.types.response import ChatResponse

__all__ = ["with_facts"]


def with_facts(response: ChatResponse, exchange: Exchange) -> ChatResponse:
    """*response* with the model, the time and the duration of *exchange*, each where the answer does not say its own.

    ``provenance`` calls what comes from the log ``derived``.
    """
    provenance = response.metadata.provenance
    marks: dict[str, Provenance] = {}
    changes: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    if exchange.model is not None and provenance.get("model") is Provenance.ABSENT:
        changes["model"] = metadata["model_id"] = exchange.model
        marks["model"] = Provenance.DERIVED
    if exchange.created is not None and provenance.get("created") is Provenance.SYNTHETIC:
        changes["created"] = exchange.created
        marks["created"] = Provenance.DERIVED
    if exchange.latency is not None and provenance.get("metadata.request_duration") is Provenance.ABSENT:
        metadata["request_duration"] = exchange.latency
        marks["metadata.request_duration"] = Provenance.DERIVED
    if exchange.is_finish_unknown:
        marks["finish_reason"] = Provenance.SYNTHETIC
    if not marks:
        return response
    metadata["provenance"] = {**provenance, **marks}
    return altered(response, metadata=altered(response.metadata, **metadata), **changes)
