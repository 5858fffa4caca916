"""OpenAI's Responses API: ``/v1/responses``, whole and streamed.

Facts: provider document "OpenAI Responses". vLLM, Ollama, llama.cpp, SGLang, xAI, OpenRouter and others answer in this
dialect too: :class:`ResponsesDialect` reads them under their own provider ids, in a ``DialectFamily`` or subclassed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from crosswalk import (
    ErrorInfo,
    FinishReason,
    MappingState,
    ProviderInfo,
    Recognition,
    ResponseDelta,
    UnknownEventError,
    UnknownFinishReasonError,
    UsageInfo,
    error_delta,
    event_type,
    hookimpl,
    require_object,
    residue,
)
from crosswalk_openai_responses.answer import answer_of
from crosswalk_openai_responses.consumed import CONSUMED, left_of_event
from crosswalk_openai_responses.errors import is_error, responses_error
from crosswalk_openai_responses.events import ENDS, HANDLERS, PIECES, STARTS
from crosswalk_openai_responses.finish import FINISH_REASONS
from crosswalk_openai_responses.responses import response_deltas, response_of
from crosswalk_openai_responses.usage import usage_info

__all__ = ["ResponsesDialect", "plugin"]


class ResponsesDialect:
    """The hooks for ``/v1/responses``.

    Attributes:
        title: the provider's name as people write it.
        documentation: where the provider describes the API.
        finish_reasons: what each status means, with the detail of an incomplete one.
        consumed: what the typed fields take of the response object, as a table for ``residue``.
    """

    title: ClassVar[str] = "OpenAI Responses"
    documentation: ClassVar[str | None] = "https://platform.openai.com/docs/api-reference/responses"
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = FINISH_REASONS
    consumed: ClassVar[Mapping[str, Any]] = CONSUMED

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """See the hook ``provider_info``. No text leaves: what a piece says decides what its whole still adds."""
        return ProviderInfo(
            title=self.title,
            endpoints=("/v1/responses",),
            documentation=self.documentation,
            pieces=PIECES,
        )

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        """See the hook ``recognizes``: many servers speak this dialect, and none marks it."""
        if not isinstance(event, dict):
            return Recognition.NO
        kind = event.get("type")
        known = kind in HANDLERS or kind in STARTS or kind in ENDS if isinstance(kind, str) else False
        fits = known or event.get("object") == "response" or is_error(event)
        return Recognition.POSSIBLE if fits else Recognition.NO

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """See the hook ``map_delta``."""
        event = require_object(event, "the event")
        answer = answer_of(state)
        answer.start()
        if is_error(event):
            answer.is_error = True
            return [error_delta(responses_error(None, event), state)]
        kind = event_type(event)
        handler = HANDLERS.get(kind or "")
        if handler is not None:
            return handler(event, answer, state)
        response = response_of(event)
        if response is None:
            raise UnknownEventError(f"an event of an unknown type ({kind or 'no type'})", event_type=kind)
        return response_deltas(event, response, answer, state)

    @hookimpl
    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason:
        """See the hook ``map_finish_reason``."""
        known = self.finish_reasons.get("failed" if reason.startswith("failed:") else reason)
        if known is None:
            raise UnknownFinishReasonError(reason)
        return known

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """See the hook ``map_usage``."""
        response = response_of(event)
        return None if response is None else usage_info(response, state)

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """See the hook ``extensions``."""
        answer = answer_of(state)
        if answer.is_error:
            return {}  # the error segment keeps the whole event
        response = response_of(event)
        rest = {} if response is None else residue(response, self.consumed, state)
        return left_of_event(event, rest, answer)

    @hookimpl
    def map_error(self, status: int, body: Any) -> ErrorInfo:
        """See the hook ``map_error``."""
        return responses_error(status, body)


plugin = ResponsesDialect()
