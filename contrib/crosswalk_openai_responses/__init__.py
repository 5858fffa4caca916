"""OpenAI's Responses API: ``/v1/responses``, whole and streamed.

Facts: provider document "OpenAI Responses". vLLM, Ollama, llama.cpp, SGLang, xAI, OpenRouter and others answer in this
dialect too: :class:`ResponsesDialect` reads them under their own provider ids, in a ``DialectFamily`` or subclassed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from crosswalk.plugins import (
    ErrorInfo,
    FinishReason,
    MappingState,
    ProviderInfo,
    Recognition,
    ResponseDelta,
    UnknownEventError,
    UnknownFinishReasonError,
    UsageInfo,
    event_type,
    hookimpl,
    require_object,
    responses_wire as wire,
    take_error,
)
from crosswalk_openai_responses.answer import Answer
from crosswalk_openai_responses.events import HANDLERS, PIECES
from crosswalk_openai_responses.response import (
    RESERVED,
    is_error,
    response_deltas,
    responses_error,
    usage_info,
)

__all__ = ["ResponsesDialect", "plugin"]


class ResponsesDialect:
    """The hooks for ``/v1/responses``.

    Attributes:
        title: the provider's name as people write it.
        documentation: where the provider describes the API.
        finish_reasons: what each final status means, with the reason of an incomplete response behind a colon.
    """

    title: ClassVar[str] = "OpenAI Responses"
    documentation: ClassVar[str | None] = "https://platform.openai.com/docs/api-reference/responses"
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = wire.FINISH_REASONS

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """See the hook ``provider_info``. No text leaves: what a piece says decides what its whole still adds."""
        return ProviderInfo(
            title=self.title,
            api=1,
            endpoints=("/v1/responses",),
            documentation=self.documentation,
            pieces=PIECES,
        )

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        """See the hook ``recognizes``: many servers speak this dialect, and none marks it."""
        if not isinstance(event, dict):
            return Recognition.NO
        fits = _known(event) is not None or event.get("object") == "response" or is_error(event)
        return Recognition.POSSIBLE if fits else Recognition.NO

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """See the hook ``map_delta``. What is left of an item stands under ``output``, as in a body."""
        event = require_object(event)
        if is_error(event):
            return (take_error(event, responses_error(None, event)),)
        answer, known = state.own(Answer), _known(event)
        if known is not None:
            del event["type"]
            answer.take_sequence_number(event)
            if not RESERVED.isdisjoint(event):  # what would be taken for the response's own gets another name
                for name in [name for name in event if name in RESERVED and name != known.leaf]:
                    event[f"event_{name}"] = event.pop(name)
            return HANDLERS[known.role](event, known, answer, state)
        is_body = event.get("object") == "response" or type(event.get("output")) is list
        if is_body and event.get("type") is None:
            return response_deltas(event, None, answer, state)
        kind = event_type(event)
        raise UnknownEventError(f"an event of an unknown type ({kind or 'no type'})", event_type=kind)

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
        return usage_info(event, state) if "usage" in event else None

    @hookimpl
    def map_error(self, status: int, body: Any) -> ErrorInfo:
        """See the hook ``map_error``."""
        return responses_error(status, body)


def _known(event: dict[str, Any]) -> wire.WireEvent | None:
    kind = event.get("type")
    return wire.EVENTS.get(kind) if type(kind) is str else None


plugin = ResponsesDialect()
