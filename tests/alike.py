"""Streams of events that are alike, and what is made of them: the same by their likeness as by parsing each."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs
from hypothesis import strategies as st

from crosswalk import CrosswalkError, ResponseDelta, TokenLogprob, UsageInfo, registry, to_jsonable
from crosswalk.errors import WireTypeError
from crosswalk.mapping.reader import Reader, ReaderOptions
from crosswalk.plugin.hookspecs import hookimpl
from crosswalk.plugin.mapper import Mapper
from crosswalk.plugins import (
    MappingState,
    ProviderInfo,
    accept_count,
    accept_logprobs,
    accept_object,
    take_number,
    take_string,
)
from crosswalk.types.json import dump_json
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


class Keeping(Stamped):
    """A provider of which most stays in the extensions; its counts say how long it took, its tokens come beside their text."""

    leaves_hold = True

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """Promise all of it."""
        return ProviderInfo(
            title="Keeping",
            text_leaves=("said.text",),
            stamp_leaves=("at", "by", "timings", "of", "said.id", "token.ids", "tokens.id"),
            usage_leaves=("timings",),
            logprob_leaves={"token": self.token, "tokens": self.tokens},
            pieces=("token", "words", "of.words"),
        )

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
        """Say the text, with its tokens."""
        text = take_string(event["said"], "text")
        found = self.token(event, text) if "token" in event else self.tokens(event, text)
        return [ResponseDelta(content_delta=text, logprobs=found)]

    def token(self, holder: dict[str, Any], text: str | None) -> tuple[TokenLogprob, ...] | None:
        """The text is the token; what is left becomes a list."""
        said = holder["token"]
        holder["token"] = [said]
        return (TokenLogprob(text or "", take_number(said, "logprob")),)

    def tokens(self, holder: dict[str, Any], _: str | None) -> tuple[TokenLogprob, ...] | None:
        """The number of the token says what it is, and stays, or its bytes."""
        said = holder.get("tokens", {}).get("id")
        if said is None:
            return None
        return (
            TokenLogprob("x", None, bytes(said)) if type(said) is list else TokenLogprob(f"{said}", None),
        )

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """The counts, which stay, and the duration: that of the last event, or the longest."""
        timings = event.get("timings", event.get("elsewhere"))
        if type(timings) is not dict or type(timings.get("out")) is not int:
            return None
        duration = timedelta(milliseconds=timings.get("ms", 0))
        if "longest" in timings:
            duration = max(duration, state.request_duration or duration)
        state.request_duration = duration
        return state.usage_info(3, timings["out"])


KEEPING = registry_of(keeping=Keeping()).mapper("keeping")


def keeping(number: int, **more: Any) -> bytes:
    """An event with *more* beside its text."""
    return dump_json({"said": {"text": f"t{number} "}, **more}) + b"\n"
