"""StreamEvent: deltas in the words of the Responses API."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from crosswalk.errors import ResponseValidationError
from crosswalk.types import (
    ChatMessage,
    ChatResponse,
    FinishReason,
    ProviderAttempt,
    ResponseDelta,
    StreamEvent,
    StreamEventType,
    ToolCall,
    UsageInfo,
)
from crosswalk.types.stream import TERMINAL

RESPONSE = ChatResponse.success(ChatMessage.assistant("x"), UsageInfo(1, 2), "m")


@pytest.mark.parametrize("kind", StreamEventType)
@pytest.mark.parametrize("response", [None, RESPONSE])
def test_the_terminal_event_and_no_other_has_the_response(
    kind: StreamEventType, response: ChatResponse | None
) -> None:
    """Design, section 4: the last one carries the complete response."""
    if (kind in TERMINAL) == (response is not None):
        assert StreamEvent(kind, response=response).response is response
    else:
        with pytest.raises(ResponseValidationError, match=f"{kind}: the terminal event, and no other"):
            StreamEvent(kind, response=response)


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        (FinishReason.STOP, "response.completed"),
        (FinishReason.TOOL_CALLS, "response.completed"),
        (FinishReason.LENGTH, "response.incomplete"),
        (FinishReason.CONTENT_FILTER, "response.incomplete"),
        (FinishReason.CANCELLED, "response.incomplete"),
        (FinishReason.ERROR, "response.error"),
    ],
)
def test_the_terminal_event_says_how_it_ended(reason: FinishReason, kind: str) -> None:
    """A cut answer is never ``completed`` (P4). Segments and attempts come along."""
    response = attrs.evolve(
        ChatResponse.tool_calls_required(
            ChatMessage.assistant(tool_calls=[ToolCall("c", "go", "{}")]), UsageInfo(1, 1), "m"
        ),
        finish_reason=reason,
        attempts=[ProviderAttempt("p", "m")],
    )
    delta = ResponseDelta(0, finish_reason=reason)
    event = StreamEvent.terminal(response, delta)
    assert (event.event_type, event.response, event.delta) == (kind, response, delta)
    assert (event.segments, event.attempts) == (response.segments, response.attempts)


@pytest.mark.parametrize("raw", [None, "[DONE]", 1, {"a": [{}]}, [1]])
def test_the_raw_event_is_kept_read_only(raw: Any) -> None:
    """NFR-013: a copy, frozen."""
    event = StreamEvent(StreamEventType.CREATED, raw_event=raw)
    assert event.raw_event == (tuple(raw) if isinstance(raw, list) else raw)


def test_a_raw_event_is_json() -> None:
    """NFR-016: decoded JSON or text, no bytes."""
    with pytest.raises(ResponseValidationError, match="not a JSON object"):
        StreamEvent(StreamEventType.CREATED, raw_event=b"{}")
