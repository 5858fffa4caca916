"""Streams of events that are alike, and what is made of them: the same by their likeness as by parsing each."""

from __future__ import annotations

from typing import Any

import attrs
from hypothesis import strategies as st

from crosswalk import CrosswalkError, ResponseDelta, TokenLogprob, UsageInfo, registry, to_jsonable
from crosswalk.errors import WireTypeError
from crosswalk.mapping import Reader, ReaderOptions
from crosswalk.plugin import Mapper, hookimpl
from crosswalk.plugins import (
    MappingState,
    ProviderInfo,
    accept_count,
    accept_logprobs,
    accept_object,
    take_string,
)
from wires import CLOCK, chunk, registry_of, sse

OLLAMA, VLLM = registry.mapper("ollama"), registry.mapper("vllm")

texts = st.text(max_size=12) | st.sampled_from(
    ["", '"', "\\", '","finish_reason":"stop', "\\u0000", "\u2028\x85", "\x7f", "content", "m", "🦙", "é" * 9]
)
stamps = st.text(max_size=30) | st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000000001Z"])


def made(frames: list[bytes], mapper: Mapper, *, shows: bool = True) -> Any:
    """Everything that is made of *frames*: deltas, response or error, partial."""
    reading = Reader(mapper, ReaderOptions(id_factory=lambda: "made", clock=CLOCK), shows=shows)
    deltas: list[ResponseDelta] = []
    response: Any = None
    error = None
    try:
        for data in frames:
            deltas += reading.read(data)
        deltas += reading.finish()
        response = reading.response()
    except CrosswalkError as caught:
        response = getattr(caught, "partial", None)
        error = f"{type(caught).__name__}: {caught}"
    raw = response.raw_events.frames if response is not None else None
    shown = None if response is None else to_jsonable(response)
    return to_jsonable(deltas), shown, error, raw


def same_as_parsed(frames: list[bytes], mapper: Mapper) -> Any:
    """What is made of *frames*, after comparing it with what parsing every one of them makes."""
    parsed = made(frames, attrs.evolve(mapper, is_plain=False))
    assert made(frames, mapper) == parsed
    assert made([b"".join(frames)], mapper) == parsed
    assert made([b"".join(frames)], mapper, shows=False)[1:] == parsed[1:]
    return parsed


def call(arguments: str, choice: int = 0, **first: Any) -> bytes:
    """A fragment of a tool call; with an id or a name its first."""
    wire = {"index": 0, "function": {"arguments": arguments, **first}}
    return sse(chunk({"tool_calls": [wire]}, choice=choice), done=False)


class Stamped:
    """A provider whose events carry strings that change with every event."""

    stamps: tuple[str, ...] = ("at",)

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """Promise what the tests are about."""
        return ProviderInfo(title="Stamped", text_leaves=("said.text",), stamp_leaves=self.stamps)

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
        """Say the text."""
        return [ResponseDelta(content_delta=take_string(event["said"], "text"))]


class Counted(Stamped):
    """A provider that numbers its events."""

    stamps = ("n", "at")


class Full:
    """A provider whose events carry a number, a time, counts and log probabilities beside their text."""

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """Promise all that can be promised."""
        return ProviderInfo(
            title="Full",
            text_leaves=("said.text", "said.thought"),
            stamp_leaves=("at",),
            number_leaves=("n",),
            usage_leaves=("usage",),
            logprob_leaves={"tokens": self.tokens},
        )

    def tokens(self, holder: dict[str, Any], text: str | None) -> tuple[TokenLogprob, ...] | None:
        """The log probabilities; of what is no list there are none."""
        if holder.get("tokens") == "odd":
            raise ValueError(text)
        return accept_logprobs(holder, "tokens") if "tokens" in holder else None

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
        """Say text or thought, and remember the number."""
        last = state.data.get("n", 0) + sum(map(len, state.unseen.values()))
        if event.get("n") == last + 1:
            del event["n"]
        state.data["n"] = last + 1
        said = event["said"]
        text, thought = take_string(said, "text") or None, take_string(said, "thought") or None
        tokens = self.tokens(event, text)
        if text is None and thought is None and tokens is None:
            return []
        return [ResponseDelta(content_delta=text, reasoning_delta=thought, logprobs=tokens)]

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """The counts; too many are an error."""
        usage = accept_object(event, "usage")
        if not usage:
            return None
        if usage.get("out") == "7":
            raise WireTypeError("out", expected="no text", got="7")
        if usage.get("out") == "8":
            return 8  # type: ignore[return-value]  # a mistake
        if usage.get("out") == "9":
            raise KeyError("out")
        return state.usage_info(accept_count(usage, "in"), accept_count(usage, "out"))


FULL = registry_of(full=Full()).mapper("full")


def full(text: Any, out: Any = 1, tokens: Any = None, key: str = "text", **more: Any) -> dict[str, Any]:
    """An event of :class:`Full`."""
    beside = {} if tokens is None else {"tokens": tokens}
    return {"at": "now", "said": {key: text}, **beside, "usage": {"in": 1, "out": out}, **more}


TOKENS = [{"token": "a", "logprob": -1, "bytes": [97]}]
