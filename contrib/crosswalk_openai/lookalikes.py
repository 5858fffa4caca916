"""Services and servers that speak OpenAI's dialect, each with a few words of its own; one plugin object each.

Facts: provider document "OpenAI Chat Completions", section 9. Those that differ in more than a few lines have a module of
their own: ``mistral``, ``openrouter``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any, ClassVar

import attrs
import orjson

from crosswalk import (
    ErrorInfo,
    ErrorKind,
    FinishReason,
    MappingState,
    Provenance,
    ResponseDelta,
    TokenLogprob,
    UsageInfo,
    error_delta,
    error_info,
    get_count,
    get_number,
    get_object,
    get_string,
    hookimpl,
    require_object,
    taken_if,
)
from crosswalk.plugin import Access
from crosswalk.service.openai_chat import OpenAIChatStyle
from crosswalk.service.request import ChatRequest, HTTPRequest
from crosswalk_openai.citations import SOURCES, new_sources
from crosswalk_openai.consumed import extended
from crosswalk_openai.dialect import ChatDialect, choices_of, number_of, part_of, usage_of
from crosswalk_openai.mistral import Mistral
from crosswalk_openai.openrouter import OpenRouter
from crosswalk_openai.requests import ACCESS, STYLES, deepseek_request

__all__ = [
    "XAI",
    "DeepSeek",
    "Fireworks",
    "Groq",
    "LMStudio",
    "Mistral",
    "OpenRouter",
    "Perplexity",
    "SGLang",
    "Together",
    "deepseek",
    "fireworks",
    "groq",
    "lmstudio",
    "mistral",
    "openrouter",
    "perplexity",
    "sglang",
    "together",
    "xai",
]


def _with_words(**words: FinishReason) -> Mapping[str, FinishReason]:
    return MappingProxyType({**ChatDialect.finish_reasons, **words})


def _is_the_rest_of_the_prompt(value: Any, usage: dict[str, Any], _: MappingState) -> bool:
    prompt, hit = usage.get("prompt_tokens"), usage.get("prompt_cache_hit_tokens")
    return type(value) is int and prompt is not None and hit is not None and value == prompt - hit


class DeepSeek(ChatDialect):
    """OpenAI's dialect as DeepSeek speaks it."""

    title: ClassVar[str] = "DeepSeek"
    documentation: ClassVar[str | None] = "https://api-docs.deepseek.com/api/create-chat-completion"
    access: ClassVar[Access | None] = ACCESS["deepseek"]
    speaks: ClassVar[tuple[str, ...]] = ("openai_responses", "anthropic")
    endpoints: ClassVar[tuple[str, ...]] = ("/chat/completions", "/v1/chat/completions", "/beta/completions")
    flat_counts: ClassVar[Mapping[str, tuple[str, str]]] = MappingProxyType(
        {"prompt_cache_hit_tokens": ("prompt_tokens_details", "cached_tokens")}
    )
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = _with_words(
        insufficient_system_resource=FinishReason.ERROR
    )
    consumed: ClassVar[Any] = extended(
        ChatDialect.consumed,
        usage={"prompt_cache_miss_tokens": taken_if(_is_the_rest_of_the_prompt)},
    )

    @hookimpl
    def build_request(self, request: ChatRequest) -> HTTPRequest:
        """See the hook ``build_request``."""
        return deepseek_request(request)

    def is_marked(self, event: dict[str, Any]) -> bool:
        """Whether *event* counts hits and misses of a cache; engines that copy that leave the fingerprint empty."""
        counts = {"prompt_cache_hit_tokens", "prompt_cache_miss_tokens"} <= usage_of(event).keys()
        return counts and bool(event.get("system_fingerprint"))

    def usage_info(self, usage: dict[str, Any], place: str, state: MappingState) -> UsageInfo | None:
        """The counts of a usage object."""
        get_count(usage, "prompt_cache_miss_tokens", place)
        return super().usage_info(usage, place, state)

    def choice_deltas(
        self, choice: dict[str, Any], number: int, place: str, state: MappingState
    ) -> list[ResponseDelta]:
        """The deltas of one choice; that its server ran out of resources is an error that may be tried again."""
        deltas = super().choice_deltas(choice, number, place, state)
        word = choice.get("finish_reason")
        if word == "insufficient_system_resource":
            deltas.append(error_delta(ErrorInfo(ErrorKind.SERVER, word, True, code=word), state))
        return deltas


def _is_the_usage(_: Any, __: dict[str, Any], state: MappingState) -> bool:
    return bool(state.data.get("usage_is_in_x_groq"))


class Groq(ChatDialect):
    """OpenAI's dialect as Groq speaks it: usage may stand in ``x_groq``, and so may an error."""

    title: ClassVar[str] = "Groq"
    documentation: ClassVar[str | None] = "https://console.groq.com/docs/api-reference#chat-create"
    access: ClassVar[Access | None] = ACCESS["groq"]
    style: ClassVar[OpenAIChatStyle] = STYLES["groq"]
    speaks: ClassVar[tuple[str, ...]] = ("openai_responses",)
    endpoints: ClassVar[tuple[str, ...]] = ("/openai/v1/chat/completions",)
    consumed: ClassVar[Any] = extended(
        ChatDialect.consumed,
        top={"x_groq": {"usage": taken_if(_is_the_usage, ChatDialect.consumed["usage"])}},
    )

    def is_marked(self, event: dict[str, Any]) -> bool:
        """Whether *event* has Groq's own object."""
        return "x_groq" in event

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """See the hook ``map_delta``: a failure in mid-stream may be a text in ``x_groq``."""
        deltas = list(super().map_delta(event, state))
        own = get_object(event, "x_groq")
        if own and get_string(own, "error", "x_groq"):
            deltas.append(error_delta(error_info(None, own), state))
        return deltas

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """See the hook ``map_usage``: at the top, else in ``x_groq``."""
        found = super().map_usage(event, state)
        state.data["usage_is_in_x_groq"] = found is None
        if found is None:
            own = get_object(event, "x_groq") or {}
            usage = get_object(own, "usage", "x_groq")
            found = self.usage_info(usage, "x_groq.usage", state) if usage else None
        return found

    def usage_info(self, usage: dict[str, Any], place: str, state: MappingState) -> UsageInfo | None:
        """The counts of a usage object, and the time that the request took, in seconds."""
        seconds = get_number(usage, "total_time", place)
        if seconds is not None and 0 <= seconds < 1e9:
            state.request_duration = timedelta(seconds=seconds)
        return super().usage_info(usage, place, state)

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """See the hook ``extensions``: the same usage in both places is there once."""
        rest = super().extensions(event, state)
        own = rest.get("x_groq")
        if own and "usage" in own and _same(own["usage"], event.get("usage")):
            rest["x_groq"] = {key: value for key, value in own.items() if key != "usage"}
        return rest


def _same(left: Any, right: Any) -> bool:
    """Whether two values are equal as JSON, in which ``true`` is not 1."""
    return orjson.dumps(left, option=orjson.OPT_SORT_KEYS) == orjson.dumps(right, option=orjson.OPT_SORT_KEYS)


def _is_the_sum(value: Any, usage: dict[str, Any], _: MappingState) -> bool:
    prompt = usage.get("prompt_tokens")
    return type(value) is int and prompt is not None and value == prompt + _completion(usage)


def _completion(usage: dict[str, Any]) -> int:
    """The completion tokens of a usage object whose leaves have been checked, reasoning included (section 5)."""
    prompt, completion = usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0
    details = usage.get("completion_tokens_details") or {}
    reasoning: int = details.get("reasoning_tokens") or 0
    is_beside = usage.get("total_tokens") == prompt + completion + reasoning
    return completion + reasoning if is_beside else completion


class XAI(ChatDialect):
    """OpenAI's dialect as xAI speaks it: reasoning is counted beside the completion, not in it."""

    title: ClassVar[str] = "xAI"
    documentation: ClassVar[str | None] = "https://docs.x.ai/docs/api-reference#chat-completions"
    access: ClassVar[Access | None] = ACCESS["xai"]
    speaks: ClassVar[tuple[str, ...]] = ("openai_responses", "anthropic")
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = MappingProxyType(
        {**ChatDialect.finish_reasons, "": FinishReason.STOP}
    )
    consumed: ClassVar[Any] = extended(
        ChatDialect.consumed,
        top={"citations": SOURCES["citations"]},
        usage={"total_tokens": taken_if(_is_the_sum)},
    )

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """See the hook ``map_delta``: the sources come with the end."""
        deltas = list(super().map_delta(event, state))
        deltas += [ResponseDelta(state.next_index(), segment=source) for source in new_sources(event, state)]
        return deltas

    def choice_deltas(
        self, choice: dict[str, Any], number: int, place: str, state: MappingState
    ) -> list[ResponseDelta]:
        """The deltas of one choice; with a tool call, an empty finish word is an end."""
        deltas = super().choice_deltas(choice, number, place, state)
        if choice.get("finish_reason") == "" and part_of(choice)[1].get("tool_calls"):
            end = ResponseDelta(
                state.next_index(), raw_finish_reason="", choice=number_of(choice, number, place)
            )
            deltas.append(end)
        return deltas

    def usage_info(self, usage: dict[str, Any], place: str, state: MappingState) -> UsageInfo | None:
        """The counts of a usage object; the total says whether reasoning is in the completion."""
        counts = super().usage_info(usage, place, state)
        completion = _completion(usage)
        if counts is None or completion == counts.completion_tokens:
            return counts
        state.note("usage.completion_tokens", Provenance.DERIVED)
        return attrs.evolve(counts, completion_tokens=completion)


class Perplexity(ChatDialect):
    """OpenAI's dialect as Perplexity speaks it: each chunk has a delta and the whole message so far."""

    title: ClassVar[str] = "Perplexity"
    documentation: ClassVar[str | None] = "https://docs.perplexity.ai/api-reference/chat-completions-post"
    access: ClassVar[Access | None] = ACCESS["perplexity"]
    style: ClassVar[OpenAIChatStyle] = STYLES["perplexity"]
    speaks: ClassVar[tuple[str, ...]] = ("openai_responses",)
    endpoints: ClassVar[tuple[str, ...]] = ("/chat/completions", "/v1/sonar")
    # What a chunk's message repeats depends on all deltas before it: each is to be read.
    text_leaves: ClassVar[tuple[str, ...]] = ()
    consumed: ClassVar[Any] = extended(ChatDialect.consumed, top=SOURCES)

    def is_marked(self, event: dict[str, Any]) -> bool:
        """Whether *event* says how much was searched."""
        return "search_context_size" in usage_of(event)

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """See the hook ``map_delta``: the sources were found before the text was written."""
        event = require_object(event, "the event")
        sources = [ResponseDelta(state.next_index(), segment=source) for source in new_sources(event, state)]
        return [*sources, *super().map_delta(event, state)]

    @hookimpl
    def map_error(self, status: int, body: Any) -> ErrorInfo | None:
        """See the hook ``map_error``: Perplexity has a word of its own for a prompt that is too long."""
        info = error_info(status, body)
        if info.code == "too_many_prompt_tokens":
            return attrs.evolve(info, kind=ErrorKind.CONTEXT_OVERFLOW)
        return info

    def choice_deltas(
        self, choice: dict[str, Any], number: int, place: str, state: MappingState
    ) -> list[ResponseDelta]:
        """The deltas of one choice; its text so far is noted."""
        deltas = super().choice_deltas(choice, number, place, state)
        text = part_of(choice)[1].get("content")
        if text:
            so_far: dict[int, _SoFar] = state.data.setdefault("so_far", {})
            so_far.setdefault(number_of(choice, number, place), _SoFar()).add(text)
        return deltas

    def unsaid(self, other: Any, part: dict[str, Any], choice: int, state: MappingState) -> Any:
        """What the part of *choice* that was not read says else: it repeats the text so far."""
        rest = super().unsaid(other, part, choice, state)
        so_far: _SoFar | None = state.data.get("so_far", {}).get(choice)
        if type(rest) is dict and so_far is not None and so_far.is_(rest.get("content")):
            del rest["content"]
        return rest


class _SoFar:
    """A text that grows by pieces; to compare it takes no longer than to read what it is compared with."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0

    def add(self, piece: str) -> None:
        self._pieces.append(piece)
        self._length += len(piece)

    def is_(self, text: Any) -> bool:
        if type(text) is not str or len(text) != self._length:
            return False
        self._pieces = ["".join(self._pieces)]
        return self._pieces[0] == text


def _are_lists(value: Any, logprobs: dict[str, Any], _: MappingState) -> bool:
    return logprobs.get("tokens") is not None and type(value) is not dict


def _says_the_same_text(text: Any, choice: dict[str, Any], _: MappingState) -> bool:
    content = part_of(choice)[1].get("content")
    return not text or not content or text == content


class Together(ChatDialect):
    """OpenAI's dialect as Together speaks it: the text twice, and log probabilities in shapes of its own."""

    title: ClassVar[str] = "Together"
    documentation: ClassVar[str | None] = "https://docs.together.ai/reference/chat-completions-1"
    access: ClassVar[Access | None] = ACCESS["together"]
    style: ClassVar[OpenAIChatStyle] = STYLES["together"]
    flat_counts: ClassVar[Mapping[str, tuple[str, str]]] = MappingProxyType(
        {"cached_tokens": ("prompt_tokens_details", "cached_tokens")}
    )
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = _with_words(eos=FinishReason.STOP)
    consumed: ClassVar[Any] = extended(
        ChatDialect.consumed,
        choice={
            "text": taken_if(_says_the_same_text),
            "logprobs": {
                **ChatDialect.consumed["choices"][0]["logprobs"],
                "top_logprobs": taken_if(_are_lists),
            },
        },
    )

    def is_marked(self, event: dict[str, Any]) -> bool:
        """Whether *event* says with which seed it was sampled."""
        return any("seed" in choice for choice in choices_of(event))

    def logprobs(self, choice: dict[str, Any], place: str) -> tuple[TokenLogprob, ...] | None:
        """The log probabilities of a choice; of a chunk, that of its one token."""
        found = choice.get("logprobs")
        if type(found) is float:
            return _of_one_token(found, choice)
        if type(found) is dict and type(found.get("top_logprobs")) is dict:
            choice = {**choice, "logprobs": {**found, "top_logprobs": None}}
        return super().logprobs(choice, place)

    def shape(self, event: dict[str, Any]) -> ChatDialect:
        """The dialect whose table of consumed leaves fits *event*: log probabilities are an object or a number."""
        numbers = any(type(choice.get("logprobs")) is float for choice in choices_of(event))
        return _WITH_NUMBERS if numbers else self


def _of_one_token(value: float, choice: dict[str, Any]) -> tuple[TokenLogprob, ...] | None:
    token = part_of(choice)[1].get("content") or choice.get("text")
    return (TokenLogprob(token, value),) if type(token) is str and token else None


def _is_of_one_token(value: Any, choice: dict[str, Any], _: MappingState) -> bool:
    return type(value) is float and _of_one_token(value, choice) is not None


class _WithNumbers(ChatDialect):
    consumed: ClassVar[Any] = extended(Together.consumed, choice={"logprobs": taken_if(_is_of_one_token)})


_WITH_NUMBERS = _WithNumbers()


class Fireworks(ChatDialect):
    """OpenAI's dialect as Fireworks speaks it."""

    title: ClassVar[str] = "Fireworks"
    documentation: ClassVar[str | None] = "https://docs.fireworks.ai/api-reference/post-chatcompletions"
    access: ClassVar[Access | None] = ACCESS["fireworks"]
    style: ClassVar[OpenAIChatStyle] = STYLES["fireworks"]
    speaks: ClassVar[tuple[str, ...]] = ("openai_responses", "anthropic")
    endpoints: ClassVar[tuple[str, ...]] = (
        "/inference/v1/chat/completions",
        "/inference/v1/completions",
    )

    def is_marked(self, event: dict[str, Any]) -> bool:
        """Whether *event* has Fireworks' measurements or its raw output."""
        return "perf_metrics" in event or any("raw_output" in choice for choice in choices_of(event))


class LMStudio(ChatDialect):
    """OpenAI's dialect as LM Studio speaks it, and its ``/api/v0`` with statistics beside."""

    title: ClassVar[str] = "LM Studio"
    documentation: ClassVar[str | None] = "https://lmstudio.ai/docs/developer"
    access: ClassVar[Access | None] = ACCESS["lmstudio"]
    style: ClassVar[OpenAIChatStyle] = STYLES["lmstudio"]
    speaks: ClassVar[tuple[str, ...]] = ("openai_responses", "anthropic")
    endpoints: ClassVar[tuple[str, ...]] = (
        *ChatDialect.endpoints,
        "/api/v0/chat/completions",
        "/api/v0/completions",
    )

    def is_marked(self, event: dict[str, Any]) -> bool:
        """Whether *event* describes the model and its runtime."""
        return {"stats", "model_info", "runtime"} <= event.keys()


class SGLang(ChatDialect):
    """OpenAI's dialect as SGLang speaks it."""

    title: ClassVar[str] = "SGLang"
    documentation: ClassVar[str | None] = "https://docs.sglang.ai/basic_usage/openai_api.html"
    access: ClassVar[Access | None] = ACCESS["sglang"]
    style: ClassVar[OpenAIChatStyle] = STYLES["sglang"]
    speaks: ClassVar[tuple[str, ...]] = ("openai_responses", "anthropic")
    flat_counts: ClassVar[Mapping[str, tuple[str, str]]] = MappingProxyType(
        {"reasoning_tokens": ("completion_tokens_details", "reasoning_tokens")}
    )
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = _with_words(abort=FinishReason.CANCELLED)

    def is_marked(self, event: dict[str, Any]) -> bool:
        """Whether *event* says at what the text was stopped, or has SGLang's own object."""
        return "sglext" in event or any("matched_stop" in choice for choice in choices_of(event))


deepseek = DeepSeek()
fireworks = Fireworks()
groq = Groq()
lmstudio = LMStudio()
mistral = Mistral()
openrouter = OpenRouter()
perplexity = Perplexity()
sglang = SGLang()
together = Together()
xai = XAI()
