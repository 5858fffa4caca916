"""The Messages dialect (``/v1/messages``): Anthropic's, and that of the servers that answer in it too.

Facts: provider document "Anthropic Messages"; the deviations of other servers, in "vLLM", section 9, "Ollama",
section 9.4, and "llama.cpp", section 8, need no code of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from crosswalk import (
    ErrorInfo,
    FinishReason,
    MappingState,
    Provenance,
    ProviderInfo,
    Recognition,
    ResponseDelta,
    SafetyAnnotation,
    Segment,
    SegmentType,
    UnknownEventError,
    UnknownFinishReasonError,
    UsageInfo,
    error_delta,
    event_type,
    get_array,
    get_count,
    get_object,
    get_string,
    hookimpl,
    require_object,
)
from crosswalk_anthropic.consumed import leftovers
from crosswalk_anthropic.errors import anthropic_error
from crosswalk_anthropic.finish import FINISH_REASONS, UNFINISHED
from crosswalk_anthropic.progress import progress
from crosswalk_anthropic.usage import usage_info

__all__ = ["AnthropicDialect"]

_IN_A_STREAM = {
    "message_start": "message",
    "content_block_start": "content_block",
    "content_block_delta": "delta",
    "message_delta": "delta",
}
_ALONE = ("content_block_stop", "message_stop", "ping")


class AnthropicDialect:
    """The hooks for ``/v1/messages``, whole and streamed.

    A provider whose server answers in it too puts an instance, or one of a subclass, into its ``DialectFamily``.

    Attributes:
        title: the provider's name as people write it.
        documentation: where the provider describes the API.
        finish_reasons: the provider's stop reasons.
    """

    title: ClassVar[str] = "Anthropic Messages"
    documentation: ClassVar[str | None] = None
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = MappingProxyType(FINISH_REASONS)

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """See the hook ``provider_info``."""
        return ProviderInfo(
            title=self.title,
            endpoints=("/v1/messages",),
            documentation=self.documentation,
            text_leaves=("delta.text", "delta.thinking"),
        )

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        """See the hook ``recognizes``: several servers speak this dialect."""
        if not isinstance(event, dict):
            return Recognition.NO
        kind = event.get("type")
        if kind == "message":
            fits = event.get("role") == "assistant" and "content" in event and "usage" in event
        elif kind == "error":
            fits = isinstance(event.get("error"), dict)
        else:
            inside = _IN_A_STREAM.get(kind) if isinstance(kind, str) else None
            fits = kind in _ALONE if inside is None else isinstance(event.get(inside), dict)
        return Recognition.POSSIBLE if fits else Recognition.NO

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """See the hook ``map_delta``."""
        event = require_object(event, "the event")
        seen = progress(state)
        blocks = seen.blocks
        if _is_error(event, state):
            return [*blocks.flush(state), error_delta(anthropic_error(None, event), state)]
        match get_string(event, "type"):
            case "content_block_delta":
                piece = _object(event, "delta")
                return blocks.delta(piece, get_count(event, "index"), "delta", state)
            case "content_block_start":
                block = _object(event, "content_block")
                return blocks.start(block, get_count(event, "index"), "content_block", state)
            case "content_block_stop":
                return blocks.stop(get_count(event, "index"), state)
            case "message_start":
                return self._message(_object(event, "message"), "message", state)
            case "message_delta":
                return [*blocks.flush(state), *self._ending(_object(event, "delta"), "delta", state)]
            case "message_stop":
                return [*blocks.flush(state), *self._end(state)]
            case "message":
                return [*self._message(event, "", state), *self._end(state)]
            case "ping":
                return []
        word = event_type(event)
        raise UnknownEventError(f"an event of an unknown type ({word or 'no type'})", event_type=word)

    def _message(self, message: dict[str, Any], place: str, state: MappingState) -> list[ResponseDelta]:
        """The message of a body or of a stream's start, which may have content already (section 3)."""
        seen = progress(state)
        if seen.has_begun:
            raise UnknownEventError("a second message in one stream", event_type=event_type(message))
        seen.has_begun = True
        state.identify(id=get_string(message, "id", place), model=get_string(message, "model", place))
        where = f"{place}.content" if place else "content"
        deltas = []
        for number, item in enumerate(get_array(message, "content", place)):
            spot = f"{where}[{number}]"
            deltas += seen.blocks.whole(require_object(item, spot), number, spot, state)
        return [*deltas, *self._ending(message, place, state)]

    def _ending(self, part: dict[str, Any], place: str, state: MappingState) -> Iterable[ResponseDelta]:
        """Why the model stopped, in a message or in a piece of it: after that, only ``message_stop`` comes."""
        seen = progress(state)
        reason = get_string(part, "stop_reason", place)
        details = get_object(part, "stop_details", place)
        if details is not None and details.get("type") == "refusal":
            where = f"{place}.stop_details" if place else "stop_details"
            yield ResponseDelta(state.next_index(), segment=_refusal(details, where))
        if reason is not None and seen.stop_reason is None:
            seen.stop_reason = reason
            yield ResponseDelta(state.next_index(), raw_finish_reason=reason)

    def _end(self, state: MappingState) -> Iterable[ResponseDelta]:
        if progress(state).stop_reason is None:
            yield ResponseDelta(state.next_index(), raw_finish_reason="")

    @hookimpl
    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason:
        """See the hook ``map_finish_reason``: a message that ends without a reason was cut (vLLM, section 9)."""
        if reason == "":
            return FinishReason.ERROR
        if reason in UNFINISHED:
            state.note("finish_reason", Provenance.DERIVED)
        try:
            return self.finish_reasons[reason]
        except KeyError:
            raise UnknownFinishReasonError(reason) from None

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """See the hook ``map_usage``."""
        kind = event.get("type")
        if kind == "message_start":
            usage, place = get_object(event["message"], "usage", "message"), "message.usage"
        elif kind in ("message", "message_delta"):
            usage, place = get_object(event, "usage"), "usage"
        else:
            return None
        return usage_info(usage, place, progress(state).counts, state) if usage else None

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """See the hook ``extensions``; an error's segment keeps its event whole."""
        return {} if _is_error(event, state) else leftovers(event, state)

    @hookimpl
    def map_error(self, status: int, body: Any) -> ErrorInfo:
        """See the hook ``map_error``."""
        return anthropic_error(status, body)


def _is_error(event: dict[str, Any], state: MappingState) -> bool:
    """Whether *event* is an error; llama.cpp's has no ``error`` inside, only the event's name says it."""
    return event.get("type") == "error" or state.event_name == "error" or bool(event.get("error"))


def _object(event: dict[str, Any], key: str) -> dict[str, Any]:
    return require_object(event.get(key), key)


def _refusal(details: dict[str, Any], place: str) -> Segment:
    """Why a classifier or the model declined: the explanation, where there is one, and the category (section 2)."""
    explanation = get_string(details, "explanation", place)
    category = get_string(details, "category", place)
    about = {name: value for name, value in details.items() if name != "explanation"}
    kind = SegmentType.SAFETY if explanation is None else SegmentType.REFUSAL
    verdicts = () if category is None else (SafetyAnnotation(category, blocked=True),)
    return Segment(kind, explanation or "", about, verdicts)
