"""A response, put together step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Self

from crosswalk.plain_errors import ResponseValidationError
from crosswalk.types._value import as_optional_tuple, as_tuple
from crosswalk.types.filter import ContentFilterResult
from crosswalk.types.finish import FinishReason
from crosswalk.types.logprob import TokenLogprob
from crosswalk.types.message import ChatMessage
from crosswalk.types.metadata import ProviderAttempt, ResponseMetadata
from crosswalk.types.raw import RawEvents, as_raw_events
from crosswalk.types.response import Alternative, ChatResponse, new_id, now
from crosswalk.types.segment import Segment
from crosswalk.types.usage import UsageInfo


class ResponseBuilder:
    """Builds a :class:`ChatResponse` step by step.

    Message, finish reason, usage and metadata must be set. The id and the time of creation are made
    if you do not set them, and the model is the metadata's. Each ``with_…`` returns the builder.

    Args:
        id_factory: makes an id if none is set.
        clock: returns the time of creation, with a time zone.
    """

    def __init__(
        self, *, id_factory: Callable[[], str] = new_id, clock: Callable[[], datetime] = now
    ) -> None:
        self._id_factory = id_factory
        self._clock = clock
        self._fields: dict[str, Any] = {}

    def with_id(self, id: str) -> Self:
        """Set the response's id."""
        return self._with("id", id)

    def with_message(self, message: ChatMessage) -> Self:
        """Set the message of the assistant."""
        return self._with("message", message)

    def with_finish_reason(self, reason: FinishReason | str, *, raw: str | None = None) -> Self:
        """Set why it ended, and the provider's own word for that."""
        self._with("raw_finish_reason", raw)
        return self._with("finish_reason", reason)

    def with_usage(self, usage: UsageInfo) -> Self:
        """Set the tokens taken."""
        return self._with("usage", usage)

    def with_metadata(self, metadata: ResponseMetadata) -> Self:
        """Set provider, model and timing."""
        return self._with("metadata", metadata)

    def with_model(self, model: str) -> Self:
        """Set the model if it is not the metadata's."""
        return self._with("model", model)

    def with_created(self, created: datetime) -> Self:
        """Set the time of creation."""
        return self._with("created", created)

    def with_refusal(self, refusal: str | None) -> Self:
        """Set why the model declined, or ``None`` if it did not."""
        return self._with("refusal", refusal)

    def with_content_filter_results(self, results: Iterable[ContentFilterResult] | None) -> Self:
        """Set the report of moderation, or ``None`` if there is none."""
        return self._with("content_filter_results", as_optional_tuple(results))

    def with_segments(self, segments: Iterable[Segment]) -> Self:
        """Set the typed parts of the answer."""
        return self._with("segments", as_tuple(segments))

    def with_logprobs(self, logprobs: Iterable[TokenLogprob] | None) -> Self:
        """Set the tokens of the answer, or ``None`` if they were not requested."""
        return self._with("logprobs", as_optional_tuple(logprobs))

    def with_alternatives(self, alternatives: Iterable[Alternative]) -> Self:
        """Set the choices after the first."""
        return self._with("alternatives", as_tuple(alternatives))

    def with_attempts(self, attempts: Iterable[ProviderAttempt]) -> Self:
        """Set every attempt at the request, in order."""
        return self._with("attempts", as_tuple(attempts))

    def with_raw_events(self, events: Iterable[bytes] | RawEvents) -> Self:
        """Set the provider's bytes, event by event."""
        return self._with("raw_events", as_raw_events(events))

    def _with(self, field: str, value: Any) -> Self:
        self._fields[field] = value
        return self

    def build(self) -> ChatResponse:
        """Return the validated response. The builder can continue and build another.

        Raises:
            ResponseValidationError: a required field is missing (``ACODE-RSP-002`` for the message,
                ``-003`` for the finish reason, ``-008`` otherwise) or invalid.
        """
        fields = dict(self._fields)
        if fields.get("message") is None:
            raise ResponseValidationError("Response message cannot be null", code="ACODE-RSP-002")
        if "finish_reason" not in fields:
            raise ResponseValidationError("Invalid finish reason value: none", code="ACODE-RSP-003")
        missing = [name for name in ("usage", "metadata") if fields.get(name) is None]
        if missing:
            raise ResponseValidationError(
                f"Cannot build incomplete response: no {' and no '.join(missing)}",
                code="ACODE-RSP-008",
            )
        if "id" not in fields:
            fields["id"] = self._id_factory()
        if "created" not in fields:
            fields["created"] = self._clock()
        if "model" not in fields:
            fields["model"] = fields["metadata"].model_id
        return ChatResponse(**fields)
