"""Google Gemini: ``generateContent`` and ``streamGenerateContent`` of the Gemini API and of Vertex AI.

Facts: provider document "Google Gemini". A body and each chunk of a stream are the same object, whether the stream
comes as SSE or, without ``alt=sse``, as one JSON array piece by piece: see :mod:`crosswalk_gemini.arrays`. An array
that somebody else decoded is read as well. The Interactions API is another protocol and is not read here.

Old models say ``STOP`` in every chunk. So content after a finish word is no error here, and the price is that a
stream which is cut after its first finish word passes for a complete one; only of an array the missing end tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from crosswalk.plugins import (
    Access,
    ErrorInfo,
    FinishReason,
    MappingState,
    ProviderInfo,
    Recognition,
    ResponseDelta,
    UsageInfo,
    hookimpl,
    require_object,
)
from crosswalk_gemini.arrays import framing
from crosswalk_gemini.chunks import REASONS, chunk_deltas, gemini_error
from crosswalk_gemini.sides import usage_info

if TYPE_CHECKING:
    from crosswalk.plugins import ChatRequest, HTTPRequest

__all__ = ["Gemini", "plugin"]

ACCESS = Access(
    base_url="https://generativelanguage.googleapis.com",
    base_url_variables=("GEMINI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"),
    api_key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    # In the query, where it may stand as well, it would reach logs.
    api_key_header="x-goog-api-key",
    api_key_scheme=None,
)


class Gemini:
    """The hooks for Google's Gemini models."""

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """See the hook ``provider_info``. No text leaves: citations are placed in the text so far."""
        return ProviderInfo(
            title="Google Gemini",
            api=1,
            endpoints=(
                "/v1beta/models/{model}:generateContent",
                "/v1beta/models/{model}:streamGenerateContent",
            ),
            documentation="https://ai.google.dev/api/generate-content",
            pieces=(
                "candidates[].content.parts",
                "candidates[].logprobsResult.chosenCandidates",
                "candidates[].logprobsResult.topCandidates",
            ),
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
        if _is_certain(first):
            return Recognition.CERTAIN
        error = first.get("error")
        fits = isinstance(error, dict) and isinstance(error.get("code"), int)
        return Recognition.POSSIBLE if fits else Recognition.NO

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        """See the hook ``map_delta``. Tools that decode a capture without the provider's framing give an array."""
        if type(event) is not list:
            yield from chunk_deltas(require_object(event), state)
            return
        for number, item in enumerate(event):
            chunk = require_object(item, f"[{number}]")
            yield from chunk_deltas(chunk, state)
            usage = usage_info(chunk, state)
            if usage is not None:
                yield ResponseDelta(usage=usage)

    @hookimpl
    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        """See the hook ``map_finish_reason``; vague words are errors where the chunk does not say what was produced."""
        return REASONS.get(reason)

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """See the hook ``map_usage``. The reports of an array that somebody else decoded are in its deltas."""
        return None if type(event) is list else usage_info(event, state)

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """See the hook ``extensions``: of a candidate whose number alone is left, nothing is; arrays stay arrays."""
        chunks = event if type(event) is list else [event]
        for chunk in chunks:
            if "candidates" in chunk:
                chunk["candidates"] = [item for item in chunk["candidates"] if item.keys() != {"index"}]
                if not chunk["candidates"]:
                    del chunk["candidates"]
        rest: dict[str, Any] = {"event": event} if type(event) is list else event
        return rest if any(chunks) else {}

    @hookimpl
    def build_request(self, request: ChatRequest) -> HTTPRequest:
        """See the hook ``build_request``."""
        from crosswalk_gemini.requests import build_request

        return build_request(request)

    @hookimpl
    def map_error(self, status: int, body: Any) -> ErrorInfo:
        """See the hook ``map_error``."""
        return gemini_error(status, body)


def _is_certain(chunk: dict[str, Any]) -> bool:
    """Whether *chunk* has the names that no other API uses."""
    candidates = chunk.get("candidates")
    first = candidates[0] if isinstance(candidates, list) and candidates else None
    content = first.get("content") if isinstance(first, dict) else None
    return (
        isinstance(chunk.get("usageMetadata"), dict)
        or isinstance(chunk.get("promptFeedback"), dict)
        or (isinstance(first, dict) and ("modelVersion" in chunk or "finishReason" in first))
        or (isinstance(content, dict) and isinstance(content.get("parts"), list))
    )


plugin = Gemini()
