"""Amazon Bedrock: Converse and ConverseStream, of whatever model.

Facts: provider document "Amazon Bedrock Converse". A stream's events may come as SDKs give them, wrapped in their name, or
as frames that carry the name; :mod:`crosswalk_bedrock.eventstream` cuts the binary framing of the wire. The bodies of
InvokeModel are the model vendor's own: the vendor's provider reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any

from crosswalk import (
    ErrorInfo,
    FinishReason,
    MappingState,
    ProviderInfo,
    Recognition,
    ResponseDelta,
    UnknownEventError,
    UsageInfo,
    error_delta,
    get_array,
    get_count,
    get_object,
    get_string,
    hookimpl,
    require_object,
)
from crosswalk_bedrock.consumed import PIECES, leftovers
from crosswalk_bedrock.errors import EventStreamError, bedrock_error
from crosswalk_bedrock.events import BODY, ERROR, read_event
from crosswalk_bedrock.eventstream import framing
from crosswalk_bedrock.finish import finish_reason
from crosswalk_bedrock.progress import progress
from crosswalk_bedrock.recognition import recognition
from crosswalk_bedrock.safety import guardrail_segments
from crosswalk_bedrock.usage import usage_info

__all__ = ["Bedrock", "EventStreamError", "plugin"]

_LONGEST_MS = 10**14  # three thousand years; a duration cannot hold much more


class Bedrock:
    """The hooks for Converse and ConverseStream."""

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """See the hook ``provider_info``. No text leaves: padding of its own makes every event unlike the last."""
        return ProviderInfo(
            title="Amazon Bedrock",
            endpoints=("/model/{modelId}/converse", "/model/{modelId}/converse-stream"),
            documentation="https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html",
            pieces=PIECES,
            framing=framing,
        )

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        """See the hook ``recognizes``: by fields that only this API has."""
        return recognition(event)

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """See the hook ``map_delta``."""
        read = read_event(event, state)
        payload, place, seen = read.payload, read.place, progress(state)
        blocks = seen.blocks
        match read.kind:
            case "contentBlockDelta":
                block = blocks.at(get_count(payload, "contentBlockIndex", place))
                where = _inside(place, "delta")
                return blocks.delta(block, require_object(payload.get("delta"), where), where, state)
            case "contentBlockStart":
                block = blocks.at(get_count(payload, "contentBlockIndex", place))
                where = _inside(place, "start")
                return blocks.start(block, require_object(payload.get("start"), where), where, state)
            case "contentBlockStop":
                return blocks.stop(get_count(payload, "contentBlockIndex", place), state)
            case "messageStart":
                self._begin(state)
                get_string(payload, "role", place)
                return []
            case "messageStop":
                return [*blocks.flush(state), *self._end(payload, place, state)]
            case "metadata":
                return [*blocks.flush(state), *self._metadata(payload, place, state)]
        if read.kind == ERROR:
            info = bedrock_error(None, payload, read.name)
            return [*blocks.flush(state), error_delta(info, state)]
        return self._body(payload, state)

    def _begin(self, state: MappingState) -> None:
        seen = progress(state)
        if seen.has_begun:
            raise UnknownEventError("a second message in one stream", event_type="messageStart")
        seen.has_begun = True

    def _body(self, body: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
        """A whole answer: what a stream's events say, at once."""
        self._begin(state)
        message = get_object(get_object(body, "output") or {}, "message", "output") or {}
        get_string(message, "role", "output.message")
        for number, item in enumerate(get_array(message, "content", "output.message")):
            place = f"output.message.content[{number}]"
            yield from progress(state).blocks.whole(require_object(item, place), number, place, state)
        yield from self._metadata(body, "", state)
        yield from self._end(body, "", state)

    def _end(self, part: dict[str, Any], place: str, state: MappingState) -> Iterator[ResponseDelta]:
        """Why the model stopped; of several ends the first."""
        seen, reason = progress(state), get_string(part, "stopReason", place) or ""
        if seen.stop_reason is None:
            seen.stop_reason = reason
            yield ResponseDelta(state.next_index(), raw_finish_reason=reason)

    def _metadata(self, part: dict[str, Any], place: str, state: MappingState) -> Iterator[ResponseDelta]:
        """Who answered, how long it took, and what a guardrail found."""
        for name, key in (("ResponseMetadata", "RequestId"), ("$metadata", "requestId")):
            state.identify(id=get_string(get_object(part, name, place) or {}, key, name))
        latency = get_count(get_object(part, "metrics", place) or {}, "latencyMs", _inside(place, "metrics"))
        if latency is not None and latency <= _LONGEST_MS:
            state.request_duration = timedelta(milliseconds=latency)
        trace, where = get_object(part, "trace", place) or {}, _inside(place, "trace")
        router = get_object(trace, "promptRouter", where) or {}
        state.identify(model=get_string(router, "invokedModelId", f"{where}.promptRouter"))
        for segment in guardrail_segments(trace, where):
            yield ResponseDelta(state.next_index(), segment=segment)

    @hookimpl
    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason:
        """See the hook ``map_finish_reason``."""
        return finish_reason(reason)

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """See the hook ``map_usage``."""
        read = read_event(event, state)
        usage = get_object(read.payload, "usage", read.place) if read.kind in ("metadata", BODY) else None
        if not usage:
            return None
        found = usage_info(usage, _inside(read.place, "usage"), state)
        progress(state).usage = found or progress(state).usage
        return found

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """See the hook ``extensions``."""
        return leftovers(event, read_event(event, state), state)

    @hookimpl
    def map_error(self, status: int, body: Any) -> ErrorInfo:
        """See the hook ``map_error``."""
        return bedrock_error(status, body)


def _inside(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


plugin = Bedrock()
