"""OpenAI's Responses API: ``/v1/responses``, whole and streamed.

Facts: provider document "OpenAI Responses". vLLM, Ollama, llama.cpp, SGLang, xAI, OpenRouter and others answer in this
dialect too. :class:`ResponsesDialect` reads them under their own provider ids, in a ``DialectFamily`` or subclassed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

from crosswalk.plugins import (
    Access,
    BatchFile,
    CallIds,
    CountPaths,
    FinishReason,
    MappingState,
    Names,
    OpenAIChatDialect,
    Provenance,
    ProviderInfo,
    Recognition,
    ResponseDelta,
    UsageInfo,
    WayBack,
    accept_object,
    counted,
    hookimpl,
    look_at,
    look_at_cost,
    look_at_count,
    requests_of,
    require_object,
    responses as wire,
    take_error,
    unknown_event,
)
from crosswalk_openai_responses.answer import Answer
from crosswalk_openai_responses.events import (
    HANDLERS,
    PIECES,
    RESERVED_FIELDS,
    is_error,
    response_deltas,
    set_aside,
    take_logprobs,
)

__all__ = ["ResponsesDialect", "plugin"]

ACCESS = Access.by_name("https://api.openai.com/v1", "OPENAI")


class ResponsesDialect:
    """The hooks for ``/v1/responses``.

    Attributes:
        title: the provider's name for display.
        documentation: the address of the provider's description of the API.
        finish_reasons: the meaning of each final status. The reason of an incomplete response follows a colon.
    """

    title: ClassVar[str] = "OpenAI Responses"
    documentation: ClassVar[str | None] = "https://platform.openai.com/docs/api-reference/responses"
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = wire.FINISH_REASONS

    build_request = staticmethod(requests_of("crosswalk_openai_responses.requests"))

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """See the hook ``provider_info``."""
        return ProviderInfo(
            title=self.title,
            model_classes="crosswalk_openai_responses:models.toml",
            names=Names(otel="openai", prices="openai"),
            endpoints=("/v1/responses",),
            is_original=True,
            documentation=self.documentation,
            message_paths=("output[].content[]", "output[].*"),
            text_paths=("delta",),
            timestamp_key="obfuscation",
            number_key="sequence_number",
            logprob_paths={"logprobs": take_logprobs},
            pieces=PIECES,
            access=ACCESS,
            call_ids=CallIds(),
            call_names="[a-zA-Z0-9_-]{1,128}",
            way_back=WayBack(
                takes_custom_calls=True, takes_citations=True, takes_media=("image",), shows_pictures=True
            ),
            hosted_tools=("web_search", "code_execution", "file_search", "image_generation"),
            batch_file=BatchFile(),
        )

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        """See the hook ``recognizes``. Many servers speak this dialect, and none marks it."""
        if not isinstance(event, dict):
            return Recognition.NO
        fits = _known(event) is not None or event.get("object") == "response" or is_error(event)
        return Recognition.POSSIBLE if fits else Recognition.NO

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """See the hook ``map_delta``. The remainder of an item is listed under ``output``, as in a body."""
        if type(event) is not dict:
            event = require_object(event)
        answer = state.own(Answer)
        if state.repeated_texts:
            answer.add_repeated(state)
        if event.get("type") is None and (
            event.get("object") == "response" or (type(event.get("output")) is list and not is_error(event))
        ):
            return response_deltas(event, None, answer, state)
        if is_error(event):
            return (take_error(event),)
        wire_event = _known(event)
        if wire_event is not None:
            is_beat = event.pop("type") == "keepalive"
            answer.take_sequence_number(event, is_beat=is_beat)
            if not RESERVED_FIELDS.isdisjoint(event):
                set_aside(event, RESERVED_FIELDS - {wire_event.leaf})
            return HANDLERS[wire_event.role](event, wire_event, answer, state)
        if _is_extension(event):
            answer.take_sequence_number(event)
            kind, remainder = event.pop("type"), dict(event)
            event.clear()
            event[kind] = [remainder]
            return ()
        raise unknown_event(event)

    @hookimpl
    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        """See the hook ``map_finish_reason``. An aggregator passes on why an answer is incomplete, without the status."""
        reasons = self.finish_reasons
        if reason in wire.PENDING:
            state.note("finish_reason", Provenance.DERIVED)
        return reasons.get("failed" if reason.startswith("failed:") else reason) or reasons.get(
            f"incomplete:{reason}"
        )

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """See the hook ``map_usage``. The counts are inclusive, as the canonical ones are, and come once, with the end."""
        usage = accept_object(event, "usage") if "usage" in event else None
        if not usage:
            return None
        if "prompt_tokens" in usage and "input_tokens" not in usage:
            return _CHAT_DIALECT.usage_info(usage, state)  # of a proxy that translates Chat Completions
        counts = _COUNT_PATHS.accept(usage)
        if "tool_usage" in event and (searches := _searches(event)) is not None:
            counts["web_search_requests"] = searches
        return counted(counts, state, look_at_cost(usage))


def _searches(event: dict[str, Any]) -> int | None:
    """The number of web searches of the server. It stays with the rest of ``tool_usage``, which is outside the usage."""
    searches = (look_at(event, "tool_usage", dict) or {}).get("web_search")
    return look_at_count(searches, "num_requests") if isinstance(searches, dict) else None


_CHAT_DIALECT: Final = OpenAIChatDialect()
_COUNT_PATHS: Final = CountPaths({**wire.COUNTS, **wire.DETAILS})
_OPEN_RESPONSES_EVENTS = {theirs: wire.EVENTS[ours] for ours, theirs in wire.OPEN_RESPONSES.items()}


def _known(event: dict[str, Any]) -> wire.WireEvent | None:
    kind = event.get("type")
    if type(kind) is not str:
        return None
    return wire.EVENTS.get(kind) or _OPEN_RESPONSES_EVENTS.get(kind)


def _is_extension(event: dict[str, Any]) -> bool:
    """Return whether *event* is a vendor extension, such as ``acme:trace_event``, which clients ignore (Open Responses)."""
    kind = event.get("type")
    return type(kind) is str and kind.partition(":")[1] == ":"


plugin = ResponsesDialect()
