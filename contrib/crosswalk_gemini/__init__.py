"""Google Gemini: ``generateContent`` and ``streamGenerateContent`` of the Gemini API and of Vertex AI.

Facts: provider document "Google Gemini". A body and each chunk of a stream are the same object, whether the stream
comes as SSE or, without ``alt=sse``, as one JSON array piece by piece: see :mod:`crosswalk_gemini.arrays`. An array
that somebody else decoded is read as well. The Interactions API is another protocol and is not read here.

Old models say ``STOP`` in every chunk. So content after a finish word is no error here, and the price is that a
stream which is cut after its first finish word passes for a complete one; only of an array the missing end tells.
"""

from __future__ import annotations

from typing import Any

from crosswalk import (
    ErrorInfo,
    FinishReason,
    MappingState,
    ProviderInfo,
    Recognition,
    ResponseDelta,
    UsageInfo,
    hookimpl,
)
from crosswalk.service.request import ChatRequest, HTTPRequest
from crosswalk_gemini.arrays import framing
from crosswalk_gemini.chunks import chunk_deltas, chunks, is_certain
from crosswalk_gemini.consumed import PIECES, rest_of
from crosswalk_gemini.errors import gemini_error
from crosswalk_gemini.finish import finish_reason
from crosswalk_gemini.requests import ACCESS, build_request
from crosswalk_gemini.usage import usage_info

__all__ = ["Gemini", "plugin"]


class Gemini:
    """The hooks for Google's Gemini models."""

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """See the hook ``provider_info``. No text leaves: citations are placed in the text so far."""
        return ProviderInfo(
            title="Google Gemini",
            endpoints=(
                "/v1beta/models/{model}:generateContent",
                "/v1beta/models/{model}:streamGenerateContent",
            ),
            documentation="https://ai.google.dev/api/generate-content",
            pieces=PIECES,
            framing=framing,
            access=ACCESS,
            repeats_finish=True,  # old models say STOP in every chunk
        )

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        """See the hook ``recognizes``: by fields that only this API has."""
        first = event[0] if isinstance(event, list) and event else event
        if not isinstance(first, dict):
            return Recognition.NO
        if is_certain(first):
            return Recognition.CERTAIN
        error = first.get("error")
        fits = isinstance(error, dict) and isinstance(error.get("code"), int)
        return Recognition.POSSIBLE if fits else Recognition.NO

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
        """See the hook ``map_delta``."""
        deltas = []
        for chunk, place in chunks(event):
            deltas += chunk_deltas(chunk, place, state)
            usage = usage_info(chunk, place, state) if place else None
            if usage is not None:
                deltas.append(ResponseDelta(state.next_index(), usage=usage))
        return deltas

    @hookimpl
    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason:
        """See the hook ``map_finish_reason``."""
        return finish_reason(reason)

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """See the hook ``map_usage``. The reports of an array that somebody else decoded are in its deltas."""
        return None if isinstance(event, list) else usage_info(event, "", state)

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """See the hook ``extensions``: what :data:`~crosswalk_gemini.consumed.CONSUMED` does not name."""
        return rest_of(event, state)

    @hookimpl
    def build_request(self, request: ChatRequest) -> HTTPRequest:
        """See the hook ``build_request``."""
        return build_request(request)

    @hookimpl
    def map_error(self, status: int, body: Any) -> ErrorInfo:
        """See the hook ``map_error``."""
        return gemini_error(status, body)


plugin = Gemini()
