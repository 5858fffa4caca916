"""A strict type checker's view of the packages that import their names on use."""

from __future__ import annotations

from typing import assert_type

import crosswalk
import crosswalk.responses as responses
from crosswalk.agent import ChatSession
from crosswalk.convert import Conversion, convert
from crosswalk.responses import Response, make_id, parse_response
from crosswalk.responses.events import ResponseTextDeltaEvent
from crosswalk.service import ChatRequest, SyncLLMService


def names_have_their_types(body: bytes, service: SyncLLMService, answer: crosswalk.ChatResponse) -> None:
    """Those of a package are those of its modules."""
    assert_type(parse_response(body), Response)
    assert_type(responses.parse_response(body), Response)
    assert_type(make_id(responses.IdKind.RESPONSE), str)
    assert_type(service.complete(ChatRequest("hi")), crosswalk.ChatResponse)
    assert_type(convert(answer, "openai-chat"), Conversion[bytes])
    assert_type(ChatSession(), ChatSession)
    assert_type(ResponseTextDeltaEvent.__name__, str)


def what_is_not_there_is_an_error() -> None:
    """A misspelt name is found before the program runs."""
    _ = responses.Respons  # type: ignore[attr-defined]
    _ = crosswalk.normalise  # type: ignore[attr-defined]
    from crosswalk.service import LLMServise  # type: ignore[attr-defined]  # noqa: F401
