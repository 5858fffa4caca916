"""Read an answer that was stored as a file, and act on how it ended."""

from __future__ import annotations

import sys
from pathlib import Path

from crosswalk import ChatResponse, FinishReason, MappingError, normalize


def text_of(response: ChatResponse) -> str:
    match response.finish_reason:
        case FinishReason.STOP | FinishReason.CANCELLED:
            return response.text
        case FinishReason.TOOL_CALLS:
            return ", ".join(f"{call.name}({call.arguments})" for call in response.tool_calls)
        case FinishReason.LENGTH:
            return f"cut after {response.usage.completion_tokens} tokens: {response.text}"
        case FinishReason.CONTENT_FILTER:
            return f"filtered: {response.content_filter_results}"
        case FinishReason.ERROR:
            return "no answer" if response.error_info is None else response.error_info.message


for name in sys.argv[1:]:
    try:
        answer = normalize(Path(name))
    except MappingError as error:
        partial = error.partial
        print(f"{name}: {error}: {'' if partial is None else partial.text}")
    else:
        seen = answer.metadata.extensions.get("system_fingerprint")
        place = answer.metadata.provenance.get("usage")
        print(text_of(answer), answer.usage.total_tokens, answer.metadata.provider_id, seen, place)
        for alternative in answer.alternatives:
            print(alternative.index, alternative.message.content, alternative.finish_reason)
        for segment in answer.segments:
            print(segment.type, segment.content, segment.metadata)
