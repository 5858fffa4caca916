"""The dialect before Messages: Text Completions (``/v1/complete``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from crosswalk.plugins import (
    FinishReason,
    MappingState,
    Recognition,
    ResponseDelta,
    UsageInfo,
    messages as wire,
    require_object,
    take_error,
    take_string,
    unknown_event,
)
from crosswalk_anthropic.messages import anthropic_error


class CompletionsDialect:
    """The mapping hooks for Text Completions (``/v1/complete``), also in Bedrock: a body is a stream of one event."""

    text_paths: ClassVar[tuple[str, ...]] = ("completion",)

    def recognizes(self, event: Any) -> Recognition:
        """Return whether *event* has a completion. Bedrock leaves out its type."""
        if not isinstance(event, dict) or not isinstance(event.get("completion"), str):
            return Recognition.NO
        return Recognition.CERTAIN if event.get("type") == "completion" else Recognition.POSSIBLE

    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """Return the text of one event, and its end if it has one."""
        kind = require_object(event).get("type")
        if kind == "error":
            yield take_error(event, anthropic_error(None, event))
            return
        if kind != "ping" and (kind not in ("completion", None) or "completion" not in event):
            raise unknown_event(event, "no completion in it")
        event.pop("type", None)
        if kind == "ping":
            return
        state.take_identity(event)
        if text := take_string(event, "completion"):
            yield ResponseDelta(content_delta=text)
        reason = take_string(event, "stop_reason")
        if reason is not None:
            yield ResponseDelta(raw_finish_reason=reason)

    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        """The reason for ``stop_reason``: ``stop_sequence`` or ``max_tokens``."""
        return wire.FINISH_REASONS.get(reason)

    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """This API counts no tokens."""
        return None
