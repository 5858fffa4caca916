"""Read by a type checker, never run: what the public API's uses are inferred to be."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, assert_type

from crosswalk import (
    Alternative,
    ChatMessage,
    ChatResponse,
    DeltaAccumulator,
    DeltaStream,
    ErrorInfo,
    FinishReason,
    FrozenObject,
    IncompleteStreamError,
    Provenance,
    Registry,
    ResponseDelta,
    Segment,
    StreamingChatResponse,
    StreamState,
    ToolCall,
    ToolCallDelta,
    UsageInfo,
    anormalize_stream,
    from_json,
    normalize,
    normalize_stream,
    registry,
    to_json,
)
from crosswalk.plugin.registry import Mapper, ProviderEntry
from crosswalk.plugins import (
    MappingState,
    ProviderHooks,
    ProviderInfo,
    Recognition,
    hookimpl,
    take_object,
    take_string,
)
from crosswalk.types.stream import PartialResponse
from crosswalk.types.values import RawEvents


def bodies(data: bytes, text: str, event: dict[str, Any]) -> None:
    """Every form of a body gives a response."""
    response = normalize(data)
    assert_type(response, ChatResponse)
    assert_type(normalize(text, "ollama"), ChatResponse)
    assert_type(normalize(event, provider="vllm", status=200, unknown="keep", keep_raw=False), ChatResponse)
    assert_type(response.text, str)
    assert_type(response.message, ChatMessage)
    assert_type(response.tool_calls, tuple[ToolCall, ...])
    assert_type(response.tool_calls[0].parsed(), dict[str, Any])
    assert_type(response.finish_reason, FinishReason)
    assert_type(response.raw_finish_reason, str | None)
    assert_type(response.usage, UsageInfo)
    assert_type(response.usage + UsageInfo.EMPTY, UsageInfo)
    assert_type(response.created, datetime)
    assert_type(response.segments, tuple[Segment, ...])
    assert_type(response.alternatives, tuple[Alternative, ...])
    assert_type(response.metadata.extensions, FrozenObject)
    assert_type(response.metadata.provenance, Mapping[str, Provenance])
    assert_type(response.metadata.request_duration, timedelta)
    assert_type(response.tokens_per_second, float | None)
    assert_type(response.error_info, ErrorInfo | None)
    assert_type(response.raise_for_error(), ChatResponse)
    assert_type(response.raw_events, RawEvents)


def streams(chunks: Iterable[bytes]) -> None:
    """A stream is an iterator of deltas that knows its response."""
    stream = normalize_stream(chunks, "vllm", timer=None)
    assert_type(stream, DeltaStream)
    for delta in stream:
        assert_type(delta, ResponseDelta)
        assert_type(delta.content_delta, str | None)
        assert_type(delta.tool_call_delta, ToolCallDelta | None)
        assert_type(delta.finish_reason, FinishReason | None)
        assert_type(delta.is_complete, bool)
    assert_type(next(stream), ResponseDelta)
    assert_type(stream.response, ChatResponse)
    assert_type(stream.partial, ChatResponse)


async def asynchronous_streams(chunks: AsyncIterator[bytes]) -> None:
    """The same, awaited."""
    stream = anormalize_stream(chunks, "ollama", replay=False)
    assert_type(stream, StreamingChatResponse)
    async with stream as opened:
        assert_type(opened, StreamingChatResponse)
        async for delta in opened:
            assert_type(delta, ResponseDelta)
    assert_type(stream.state, StreamState)
    assert_type(await stream.response(), ChatResponse)


def canonical_json(response: ChatResponse, delta: ResponseDelta) -> None:
    """The result of reading has the requested type."""
    data = to_json(response)
    assert_type(data, bytes)
    assert_type(from_json(data, ChatResponse), ChatResponse)
    assert_type(from_json(to_json(delta), ResponseDelta), ResponseDelta)
    assert_type(from_json(b"{}", UsageInfo), UsageInfo)


def deltas(found: Sequence[ResponseDelta]) -> None:
    """Deltas add up to a response."""
    total = DeltaAccumulator()
    for delta in found:
        total.append(delta)
    assert_type(total.current, PartialResponse)
    assert_type(total.build(), ChatResponse)
    assert_type(ChatResponse.from_deltas(found), ChatResponse)


def errors(chunks: Iterable[bytes]) -> None:
    """An error keeps what came before it."""
    try:
        list(normalize_stream(chunks, "vllm"))
    except IncompleteStreamError as error:
        assert_type(error.partial, ChatResponse | None)
        assert_type(error.provider, str | None)


class Parrot:
    """A plugin as a stranger writes it, fully typed."""

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """Describe it."""
        return ProviderInfo(title="Parrot", text_paths=("said.text",), timestamp_key="at", pieces=("ids",))

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
        """Say it."""
        call = state.tool_call(name="go", arguments="{}")
        assert_type(call, ToolCallDelta)
        said = take_object(event, "said") or {}
        assert_type(said, dict[str, Any])
        return [ResponseDelta(content_delta=take_string(said, "text"))]

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        """Look at it."""
        return Recognition.POSSIBLE if "said" in event else Recognition.NO


class Mistyped(ProviderHooks):
    """A type checker refuses a hook that gives something else than its specification says."""

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> int:  # type: ignore[override]
        """Give a number."""
        return 1

    @hookimpl
    def map_finish_reason(self, reason: str) -> FinishReason | None:  # type: ignore[override]
        """Leave an argument out."""
        return None


def plugins() -> None:
    """Providers are listed, registered and resolved."""
    assert_type(registry, Registry)
    assert_type(registry.providers(), list[ProviderEntry])
    registry.register(Parrot(), "parrot")
    mapper = registry.mapper("parrot")
    assert_type(mapper, Mapper)
    assert_type(mapper.map_usage({}, mapper.new_state()), UsageInfo | None)
