"""Removes a request's secrets, which a server may repeat, from an answer (see ``ReaderOptions.redact``)."""

from __future__ import annotations

from typing import Any

import attrs

from crosswalk.errors import MappingError, UnknownEventError, UnknownFinishReasonError
from crosswalk.text import Redact
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.response import Alternative, ChatResponse
from crosswalk.types.values import Segment, SegmentType


def redact_response(response: ChatResponse, redact: Redact) -> ChatResponse:
    """Return *response* with its identity, its finish words and its errors redacted.

    These appear in messages, logs and spans. The texts of the answer and the extensions belong to the user.
    """
    changes = _changed(response, redact, "id", "model", "raw_finish_reason")
    model = redact(response.metadata.model_id)
    if model != response.metadata.model_id:
        changes["metadata"] = attrs.evolve(response.metadata, model_id=model)
    if any(segment.type is SegmentType.ERROR for segment in response.segments):
        changes["segments"] = [_segment(segment, redact) for segment in response.segments]
        changes |= _changed(response, redact, "refusal")
    if response.alternatives:
        changes["alternatives"] = [_alternative(one, redact) for one in response.alternatives]
    return attrs.evolve(response, **changes) if changes else response


def redact_delta(delta: ResponseDelta, redact: Redact) -> ResponseDelta:
    """*delta*, the last of its choice, with its finish word and its error redacted."""
    changes = _changed(delta, redact, "raw_finish_reason")
    if delta.segment is not None:
        changes["segment"] = _segment(delta.segment, redact)
    return attrs.evolve(delta, **changes) if changes else delta


def redact_error(error: MappingError, redact: Redact) -> None:
    """Redact the message of *error*, and the word that it holds."""
    error.cause = redact(error.cause)
    error.args = (error.cause,)
    if isinstance(error, UnknownFinishReasonError):
        error.reason = redact(error.reason)
    elif isinstance(error, UnknownEventError) and error.event_type is not None:
        error.event_type = redact(error.event_type)


def _changed(value: object, redact: Redact, *names: str) -> dict[str, Any]:
    """Those fields of *value* in which *redact* finds something."""
    payload = {name: getattr(value, name) for name in names}
    shown = {name: redact(text) for name, text in payload.items() if text is not None}
    return {name: text for name, text in shown.items() if text != payload[name]}


def _alternative(alternative: Alternative, redact: Redact) -> Alternative:
    return attrs.evolve(alternative, **_changed(alternative, redact, "raw_finish_reason"))


def _segment(segment: Segment, redact: Redact) -> Segment:
    if segment.type is not SegmentType.ERROR:
        return segment
    raw = segment.metadata.thawed()
    if isinstance(raw.get("code"), str):
        raw["code"] = redact(raw["code"])
    return attrs.evolve(segment, content=redact(segment.content), metadata=raw)
