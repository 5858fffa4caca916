"""Generate (``/v1/generate``): the API before chat, also inside Amazon Bedrock; one generation is one choice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from crosswalk import (
    TAKEN,
    FinishReason,
    MappingState,
    Recognition,
    ResponseDelta,
    UnknownEventError,
    UsageInfo,
    event_type,
    get_array,
    get_object,
    get_string,
    require_object,
    residue,
    taken_if,
)
from crosswalk_cohere.consumed import USAGE
from crosswalk_cohere.finish import finish_reason
from crosswalk_cohere.usage import usage_info

__all__ = ["CONSUMED", "GenerateDialect"]

CONSUMED: dict[str, Any] = {
    "id": taken_if(lambda value, _, state: value is None or value == state.response_id),
    "generations": [
        {"text": TAKEN, "finish_reason": taken_if(lambda value, *_: isinstance(value, str) and value != "")}
    ],
    "meta": USAGE,
}


class GenerateDialect:
    """The mapping hooks for Generate: a body is one event."""

    def recognizes(self, event: Any) -> Recognition:
        """Whether *event* has generations; only Cohere has them beside its ``meta``."""
        found = event.get("generations") if isinstance(event, dict) else None
        if not isinstance(found, list):
            return Recognition.NO
        return Recognition.CERTAIN if isinstance(event.get("meta"), dict) else Recognition.POSSIBLE

    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        """Text and end of each generation."""
        event = require_object(event, "the event")
        if "generations" not in event:
            raise UnknownEventError("an event without generations", event_type=event_type(event))
        state.identify(id=get_string(event, "id"))
        for number, item in enumerate(get_array(event, "generations")):
            place = f"generations[{number}]"
            answer = require_object(item, place)
            text = get_string(answer, "text", place)
            word = get_string(answer, "finish_reason", place) or ""
            yield ResponseDelta(state.next_index(), text, raw_finish_reason=word, choice=number)

    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason:
        """What ``finish_reason`` means."""
        return finish_reason(reason, state)

    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """The counts in ``meta``: what is charged, as this API tells nothing else."""
        meta = get_object(event, "meta")
        return usage_info(meta, "meta", state) if meta else None

    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """Everything that :data:`CONSUMED` does not name."""
        return residue(event, CONSUMED, state)
