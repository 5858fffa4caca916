"""A look-alike of OpenAI with ten differences."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import attrs

from crosswalk.plugins import (
    ErrorInfo,
    ErrorKind,
    FinishReason,
    MappingState,
    OpenAIChatDialect,
    ResponseDelta,
    Segment,
    SegmentType,
    TokenLogprob,
    UsageInfo,
    accept_number,
    error_info,
    is_number,
    take_error,
    take_objects,
    take_string,
)

CODES = {"1002": ErrorKind.RATE_LIMIT, "1004": ErrorKind.AUTHENTICATION, "1039": ErrorKind.CONTEXT_OVERFLOW}


class Kelp(OpenAIChatDialect):
    title = "Kelp"
    marks = ("kelp_region",)
    cached_tokens = ("kelp_cache_hits",)
    reasoning_tokens = ("kelp_thought_tokens",)
    finish_reasons = MappingProxyType(
        {
            "eos": FinishReason.STOP,
            "window": FinishReason.LENGTH,
            "functions": FinishReason.TOOL_CALLS,
            "blocked": FinishReason.CONTENT_FILTER,
        }
    )

    def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
        base = event.get("kelp_resp")
        if isinstance(base, dict) and base.get("code") not in (0, None):
            return [take_error(event, self.failure(None, base, dict(event)))]
        millis = event.get("created")
        if is_number(millis):
            event["created"] = millis / 1000
        return list(super().map_delta(event, state))

    def failure(self, status: int | None, base: dict[str, Any], raw: dict[str, Any]) -> ErrorInfo:
        body = {"error": {"message": base.get("message"), "code": str(base.get("code"))}}
        return attrs.evolve(error_info(status, body, codes=CODES), raw=raw)

    def map_error(self, status: int | None, body: Any) -> ErrorInfo | None:
        if isinstance(body, dict) and isinstance(body.get("kelp_resp"), dict):
            return self.failure(status, body["kelp_resp"], body)
        return error_info(status, body, codes=CODES)

    def reasoning(self, part: dict[str, Any], choice: int, state: MappingState) -> str | None:
        texts = [take_string(detail, "text") for detail in take_objects(part, "reasoning_details")]
        return "".join(text for text in texts if text) or super().reasoning(part, choice, state)

    def segments(self, part: dict[str, Any], choice: int, state: MappingState) -> list[Segment]:
        found = list(super().segments(part, choice, state))
        if denial := take_string(part, "denial"):
            found.append(Segment(SegmentType.REFUSAL, denial))
        return found

    def logprobs(self, choice: dict[str, Any], content: str | None) -> tuple[TokenLogprob, ...] | None:
        logprob = accept_number(choice, "lp")
        return None if logprob is None or not content else (TokenLogprob(content, logprob),)

    def usage_info(self, usage: dict[str, Any], state: MappingState) -> UsageInfo | None:
        found = super().usage_info(usage, state)
        # Prompt tokens are counted without the cached ones.
        return found and found + UsageInfo(found.cached_tokens or 0, 0)


plugin = Kelp()
