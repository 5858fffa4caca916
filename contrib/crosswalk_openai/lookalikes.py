"""Services and servers that speak OpenAI's dialect with a few differences, one plugin object each.

Facts: provider document "OpenAI Chat Completions", section 9. The objects at the end are what the entry points name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from crosswalk.plugins import (
    Access,
    BatchFile,
    CallIds,
    ChatSaid,
    CitationRef,
    FieldRow,
    FinishReason,
    MappingState,
    Names,
    Provenance,
    Recognition,
    ResponseDelta,
    Segment,
    SegmentType,
    TokenLogprob,
    ToolCallDelta,
    TrailingContentError,
    UsageInfo,
    VendorErrors,
    WayBack,
    accept_array,
    accept_object,
    error_delta,
    error_info,
    is_number,
    leave_mistyped,
    take_content,
    take_objects,
    take_same,
    take_string,
)
from crosswalk_openai import NO_REASONING, SOURCE_KEYS, ChatDialect, take_sources
from crosswalk_openai.lmstudio import FAMILIES, OwnEvent, lifted, lmstudio_deltas, lmstudio_usage
from crosswalk_openai.mistral import BODY, STREAM_EVENT_TYPES, conversation_deltas, reference

if TYPE_CHECKING:
    from crosswalk.plugins import ChatRequest, HTTPRequest

_TOP_K_STYLE: Mapping[str, Any] = {"options": {"top_k": "top_k"}}
_ENGINE_STYLE: Mapping[str, Any] = {
    "options": {"top_k": "top_k", "min_p": "min_p", "repeat_penalty": "repetition_penalty"},
    "takes_any_arguments": False,  # sgl-project/sglang 28035
}
_ROUTER_STYLE: Mapping[str, Any] = {
    "options": {
        **_ENGINE_STYLE["options"],
        **{name: name for name in ("verbosity", "cache_control", "service_tier")},
    }
}
_NAME_PATTERN = "[a-zA-Z0-9_-]{1,64}"
"""What OpenAI calls a tool's name, and those who say so, too."""


class DeepSeek(ChatDialect):
    """OpenAI's dialect as DeepSeek speaks it."""

    title: ClassVar[str] = "DeepSeek"
    model_classes: ClassVar[str | None] = "crosswalk_openai:models/deepseek.toml"
    documentation: ClassVar[str | None] = "https://api-docs.deepseek.com/api/create-chat-completion"
    access: ClassVar[Access | None] = Access.by_name("https://api.deepseek.com/v1", "DEEPSEEK")
    errors: ClassVar[VendorErrors | None] = VendorErrors("crosswalk_openai", "deepseek")
    call_ids: ClassVar[CallIds | None] = CallIds()  # "Duplicate value for 'tool_call_id'"
    call_names: ClassVar[str | None] = _NAME_PATTERN
    style: ClassVar[Mapping[str, Any]] = {"call_reasoning": NO_REASONING}
    speaks: ClassVar[tuple[str, ...]] = ("openai_responses", "anthropic")
    endpoints: ClassVar[tuple[str, ...]] = ("/chat/completions", "/v1/chat/completions", "/beta/completions")
    marks: ClassVar[tuple[str, ...]] = ("usage.prompt_cache_miss_tokens",)
    cached_tokens: ClassVar[tuple[str, ...]] = (*ChatDialect.cached_tokens, "prompt_cache_hit_tokens")
    numbers_calls: ClassVar[bool] = True
    text_paths: ClassVar[tuple[str, ...]] = ChatDialect.text_paths
    way_back: ClassVar[WayBack] = WayBack(takes_reasoning=True, names_speakers=True)

    def is_marked(self, event: dict[str, Any]) -> bool:
        """Whether *event* counts cache misses and has a fingerprint, which engines with the same counts leave empty."""
        return bool(event.get("system_fingerprint")) and super().is_marked(event)

    def usage_info(self, usage: dict[str, Any], state: MappingState) -> UsageInfo | None:
        """Read a usage object. Cache misses are the rest of the prompt."""
        counts = super().usage_info(usage, state)
        if counts is not None and counts.cached_tokens is not None:
            take_same(usage, "prompt_cache_miss_tokens", counts.prompt_tokens - counts.cached_tokens)
        return counts

    def spell(self, event: dict[str, Any]) -> None:
        """Write a usage object that counts cache hits twice, and cache misses."""
        super().spell(event)
        usage = event.get("usage") or {}
        cached_tokens = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
        if cached_tokens is not None:
            usage["prompt_cache_hit_tokens"] = cached_tokens
            usage["prompt_cache_miss_tokens"] = usage["prompt_tokens"] - cached_tokens


class Groq(ChatDialect):
    """OpenAI's dialect as Groq speaks it. Usage and errors may be in ``x_groq``."""

    title: ClassVar[str] = "Groq"
    model_classes: ClassVar[str | None] = "crosswalk_openai:models/groq.toml"
    documentation: ClassVar[str | None] = "https://console.groq.com/docs/api-reference#chat-create"
    access: ClassVar[Access | None] = Access.by_name("https://api.groq.com/openai/v1", "GROQ")
    errors: ClassVar[VendorErrors | None] = VendorErrors("crosswalk_openai", "groq")
    style: ClassVar[Mapping[str, Any]] = {
        "options": {"max_tokens": "max_completion_tokens"},
        "lacks": ("part.audio",),  # groq 1.7.0
    }
    # Its assistant message has no field for the calls of its own tools.
    way_back: ClassVar[WayBack] = WayBack(
        shows_pictures=True, names_speakers=True, refuses=("executed_tools",)
    )
    speaks: ClassVar[tuple[str, ...]] = ("openai_responses",)
    endpoints: ClassVar[tuple[str, ...]] = ("/openai/v1/chat/completions",)
    hosted_tools: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "web_search": {"type": "browser_search"},
        "code_execution": {"type": "code_interpreter"},
    }
    marks: ClassVar[tuple[str, ...]] = ("x_groq",)
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = {
        **ChatDialect.finish_reasons,
        "tool_use": FinishReason.TOOL_CALLS,
    }
    cumulative: ClassVar[tuple[str, ...]] = (*ChatDialect.cumulative, "choices[].delta.executed_tools")
    # The counts in both places are compared.
    usage_key: ClassVar[str | None] = None
    text_paths: ClassVar[tuple[str, ...]] = ChatDialect.text_paths
    reasoning_name: ClassVar[str] = "reasoning"

    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """See the hook ``map_delta``. An error in a stream may be a text in ``x_groq``."""
        deltas = super().map_delta(event, state)
        groq_fields = event.get("x_groq") if type(event) is dict else None
        if type(groq_fields) is dict and groq_fields.get("error"):
            failure = error_delta(self.map_error(None, groq_fields))
            del groq_fields["error"]
            return chain(deltas, (failure,))
        return deltas

    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """See the hook ``map_usage``. Usage is at the top level or in ``x_groq``; equal counts in both are read once."""
        if "x_groq" not in event:
            return super().map_usage(event, state)
        groq_fields = accept_object(event, "x_groq") or {}
        take_same(groq_fields, "usage", event.get("usage"))
        return super().map_usage(event, state) or super().map_usage(groq_fields, state)

    def usage_info(self, usage: dict[str, Any], state: MappingState) -> UsageInfo | None:
        """Read a usage object, which includes the duration of the request in seconds."""
        seconds = usage.get("total_time")
        if (type(seconds) is float or type(seconds) is int) and 0 <= seconds < 1e9:
            state.request_duration = timedelta(seconds=seconds)
        elif seconds is not None:
            leave_mistyped(usage, "total_time")
        return super().usage_info(usage, state)


def _take_last_sources(event: dict[str, Any], key: str, said: ChatSaid, state: MappingState) -> None:
    said.last = chain(said.last, take_sources(event, state))


def _take_end(choice: dict[str, Any], key: str, said: ChatSaid, state: MappingState) -> None:
    """Take the finish word. An empty one ends a choice that has a tool call."""
    said.finish = take_string(choice, key) or ("" if said.calls else None)


class XAI(ChatDialect):
    """OpenAI's dialect as xAI speaks it. Reasoning tokens are not part of the completion tokens."""

    title: ClassVar[str] = "xAI"
    names: ClassVar[Names] = Names(otel="x_ai", prices="x-ai")
    model_classes: ClassVar[str | None] = "crosswalk_openai:models/xai.toml"
    documentation: ClassVar[str | None] = "https://docs.x.ai/docs/api-reference#chat-completions"
    access: ClassVar[Access | None] = Access.by_name("https://api.x.ai/v1", "XAI")
    errors: ClassVar[VendorErrors | None] = VendorErrors("crosswalk_openai", "xai")
    speaks: ClassVar[tuple[str, ...]] = ("openai_responses", "anthropic")
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = {
        **ChatDialect.finish_reasons,
        "": FinishReason.STOP,
    }
    event_rows: ClassVar[Mapping[str, FieldRow]] = {
        **ChatDialect.event_rows,
        **dict.fromkeys(SOURCE_KEYS, FieldRow("segments", _take_last_sources)),
    }
    choice_rows: ClassVar[Mapping[str, FieldRow]] = {
        **ChatDialect.choice_rows,
        "finish_reason": FieldRow("finish_reason", _take_end, silent=(None,)),
    }
    text_paths: ClassVar[tuple[str, ...]] = ChatDialect.text_paths

    def usage_info(self, usage: dict[str, Any], state: MappingState) -> UsageInfo | None:
        """Read a usage object. The total shows whether the completion tokens include the reasoning tokens."""
        counts = super().usage_info(usage, state)
        if counts is None or not counts.reasoning_tokens or usage.get("total_tokens") is None:
            return counts
        completion_tokens = counts.completion_tokens + counts.reasoning_tokens
        if not take_same(usage, "total_tokens", counts.prompt_tokens + completion_tokens):
            return counts
        state.note("usage.completion_tokens", Provenance.DERIVED)
        return attrs.evolve(counts, completion_tokens=completion_tokens)

    def spell(self, event: dict[str, Any]) -> None:
        """Write a usage object whose completion tokens exclude reasoning tokens."""
        super().spell(event)
        usage = event.get("usage") or {}
        count = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens")
        if count:
            usage["completion_tokens"] -= count


class _Done:
    """Whether the chunk marked as the last one has arrived."""

    is_so = False


def _take_first_sources(event: dict[str, Any], key: str, said: ChatSaid, state: MappingState) -> None:
    """Say the sources first: they were found before the text was written."""
    said.first += take_sources(event, state)


class Perplexity(ChatDialect):
    """OpenAI's dialect as Perplexity speaks it. Each chunk has a delta and the whole message so far."""

    title: ClassVar[str] = "Perplexity"
    model_classes: ClassVar[str | None] = "crosswalk_openai:models/perplexity.toml"
    documentation: ClassVar[str | None] = "https://docs.perplexity.ai/api-reference/chat-completions-post"
    access: ClassVar[Access | None] = Access.by_name("https://api.perplexity.ai", "PERPLEXITY")
    style: ClassVar[Mapping[str, Any]] = {
        "path": "/chat/completions",
        "options": {"top_k": "top_k"},
        "lacks": ("part.audio",),
        "unsupported": {
            **dict.fromkeys(("tools", "tool_choice", "parallel_tool_calls"), "the API has no tools"),
            "seed": "the API has no such option",
        },
    }
    hosted_tools: ClassVar[Mapping[str, Mapping[str, Any]]] = {"web_search": {}}  # an option of the request
    speaks: ClassVar[tuple[str, ...]] = ("openai_responses",)
    way_back: ClassVar[WayBack] = WayBack(shows_pictures=True, moves_system=True, names_speakers=True)
    endpoints: ClassVar[tuple[str, ...]] = ("/chat/completions", "/v1/sonar")
    event_rows: ClassVar[Mapping[str, FieldRow]] = {
        **ChatDialect.event_rows,
        **dict.fromkeys(SOURCE_KEYS, FieldRow("segments", _take_first_sources)),
    }
    marks: ClassVar[tuple[str, ...]] = ("usage.search_context_size",)
    cumulative: ClassVar[tuple[str, ...]] = (
        *ChatDialect.cumulative,
        "search_results",
        "images",
        "related_questions",
    )
    sentinel: ClassVar[bool] = False
    # The message of a chunk repeats all earlier deltas, so each event has to be read.
    text_paths: ClassVar[tuple[str, ...]] = ()

    def build_request(self, request: ChatRequest) -> HTTPRequest:
        """See the hook ``build_request``."""
        from crosswalk_openai.requests import (
            PERPLEXITYS_ROWS,
            in_perplexitys_order,
            perplexitys_part,
            with_forced_sentences_named,
        )

        http_request = self.built(
            request, arrange=in_perplexitys_order, part=perplexitys_part, rows=PERPLEXITYS_ROWS
        )
        return with_forced_sentences_named(http_request)

    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """See the hook ``map_delta``. There is no ``[DONE]``.

        The chunk marked as the last one ends the answer, and later bytes belong to another answer.
        """
        if state.own(_Done).is_so:
            raise TrailingContentError("a second answer has begun")
        state.own(_Done).is_so = type(event) is dict and event.get("object") == "chat.completion.done"
        return super().map_delta(event, state)

    def rest_of_other_part(
        self, other: dict[str, Any], part: dict[str, Any], choice: int, state: MappingState
    ) -> None:
        """Take the text that the deltas have brought from *other*, the message so far."""
        piece = part.get("content")
        so_far = state.choice(choice).joined(SegmentType.TEXT)
        take_same(other, "content", so_far + piece if type(piece) is str else so_far)

    def spell(self, event: dict[str, Any]) -> None:
        """Write the sources at the top level, and an empty delta next to a whole message."""
        super().spell(event)
        for choice in event.get("choices", ()):
            message = choice.get("message") or {}
            citations = [note["url_citation"] for note in message.get("annotations", ())]
            whole = [0, len(message.get("content") or "")]
            sources = [one for one in citations if [one["start_index"], one["end_index"]] == whole]
            if sources:
                del message["annotations"][: len(sources)]
                event["citations"] = [source["url"] for source in sources]
                results = event.get("search_results") or [{} for source in sources if source["title"]]
                for result, source in zip(results, sources, strict=False):
                    result |= {name: source[name] for name in ("title", "url")}
                if results:
                    event["search_results"] = results
                    choice["delta"] = {"role": "assistant", "content": ""}


def _take_scores(choice: dict[str, Any], key: str, said: ChatSaid, state: MappingState) -> None:
    """Take the log probabilities of a choice. A chunk has that of its one token."""
    scores = choice[key]
    if is_number(scores):
        if said.text and not said.whole:
            said.logprobs = (TokenLogprob(said.text, choice.pop(key)),)
        return
    tops = None
    if type(scores) is dict and scores.get("tokens") and type(scores.get("top_logprobs")) is dict:
        tops = scores.pop("top_logprobs")  # not by token: they stay
    said.logprobs = said.dialect.logprobs(choice, said.text)
    if tops is not None:
        scores["top_logprobs"] = tops


class Together(ChatDialect):
    """OpenAI's dialect as Together speaks it. Its log probabilities have two more shapes."""

    title: ClassVar[str] = "Together"
    model_classes: ClassVar[str | None] = "crosswalk_openai:models/hosts.toml"
    documentation: ClassVar[str | None] = "https://docs.together.ai/reference/chat-completions-1"
    access: ClassVar[Access | None] = Access.by_name("https://api.together.xyz/v1", "TOGETHER")
    errors: ClassVar[VendorErrors | None] = VendorErrors("crosswalk_openai", "together")
    style: ClassVar[Mapping[str, Any]] = _TOP_K_STYLE
    marks: ClassVar[tuple[str, ...]] = ("choices[].seed",)
    cached_tokens: ClassVar[tuple[str, ...]] = ("cached_tokens", *ChatDialect.cached_tokens)
    numbers_calls: ClassVar[bool] = True
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = {
        **ChatDialect.finish_reasons,
        "eos": FinishReason.STOP,
    }
    text_paths: ClassVar[tuple[str, ...]] = ChatDialect.text_paths

    choice_rows: ClassVar[Mapping[str, FieldRow]] = {
        **ChatDialect.choice_rows,
        "logprobs": FieldRow("logprobs", _take_scores, silent=(None,)),
    }


class Fireworks(ChatDialect):
    """OpenAI's dialect as Fireworks speaks it."""

    title: ClassVar[str] = "Fireworks"
    model_classes: ClassVar[str | None] = "crosswalk_openai:models/hosts.toml"
    documentation: ClassVar[str | None] = "https://docs.fireworks.ai/api-reference/post-chatcompletions"
    access: ClassVar[Access | None] = Access.by_name("https://api.fireworks.ai/inference/v1", "FIREWORKS")
    errors: ClassVar[VendorErrors | None] = VendorErrors("crosswalk_openai", "fireworks")
    style: ClassVar[Mapping[str, Any]] = _TOP_K_STYLE
    speaks: ClassVar[tuple[str, ...]] = ("openai_responses", "anthropic")
    endpoints: ClassVar[tuple[str, ...]] = ("/inference/v1/chat/completions", "/inference/v1/completions")
    marks: ClassVar[tuple[str, ...]] = ("perf_metrics", "choices[].raw_output")
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = {
        **ChatDialect.finish_reasons,
        "malformed_function_call": FinishReason.ERROR,
    }


class LMStudio(ChatDialect):
    """OpenAI's dialect as LM Studio speaks it. Answers of ``/api/v0`` also have statistics."""

    title: ClassVar[str] = "LM Studio"
    model_classes: ClassVar[str | None] = "crosswalk_openai:models/hosts.toml"
    documentation: ClassVar[str | None] = "https://lmstudio.ai/docs/developer"
    access: ClassVar[Access | None] = Access.by_name("http://127.0.0.1:1234/v1", "LMSTUDIO")
    errors: ClassVar[VendorErrors | None] = VendorErrors("crosswalk_openai", "lmstudio")
    style: ClassVar[Mapping[str, Any]] = {**_TOP_K_STYLE, "takes_any_arguments": False}  # it runs llama.cpp
    speaks: ClassVar[tuple[str, ...]] = ("openai_responses", "anthropic")
    endpoints: ClassVar[tuple[str, ...]] = (
        *ChatDialect.endpoints,
        "/api/v0/chat/completions",
        "/api/v0/completions",
        "/api/v1/chat",
    )
    marks: ClassVar[tuple[str, ...]] = ("model_info",)
    text_paths: ClassVar[tuple[str, ...]] = ChatDialect.text_paths

    def recognizes(self, event: Any) -> Recognition:
        """See the hook ``recognizes``: certain of its own API."""
        return Recognition.CERTAIN if _is_of_lmstudio(event) else super().recognizes(event)

    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """See the hook ``map_delta``."""
        is_own = state.own(OwnEvent).is_so = _is_of_lmstudio(event)
        return lmstudio_deltas(event, state) if is_own else super().map_delta(event, state)

    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        """See the hook ``map_finish_reason``. Its own API has no word for the end."""
        return FinishReason.STOP if reason == "" else super().map_finish_reason(reason, state)

    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """See the hook ``map_usage``."""
        is_own = state.own(OwnEvent).is_so
        return lmstudio_usage(event, state) if is_own else super().map_usage(event, state)

    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """See the hook ``extensions``."""
        return lifted(event) if state.own(OwnEvent).is_so else super().extensions(event, state)


def _is_of_lmstudio(event: Any) -> bool:
    """Return whether *event* is an answer of this API, or an event of its stream other than an error."""
    if type(event) is not dict:
        return False
    kind = event.get("type")
    if kind is None:
        return "model_instance_id" in event and type(event.get("output")) is list
    return type(kind) is str and kind.partition(".")[0] in FAMILIES and "." in kind


@attrs.define
class CallNumbers:
    """The indexes of the calls of each choice so far."""

    seen: dict[int, set[int]] = attrs.Factory(dict)


class SGLang(ChatDialect):
    """OpenAI's dialect as SGLang speaks it."""

    title: ClassVar[str] = "SGLang"
    model_classes: ClassVar[str | None] = "crosswalk_openai:models/hosts.toml"
    documentation: ClassVar[str | None] = "https://docs.sglang.ai/basic_usage/openai_api.html"
    access: ClassVar[Access | None] = Access.by_name("http://127.0.0.1:30000/v1", "SGLANG")
    style: ClassVar[Mapping[str, Any]] = _ENGINE_STYLE
    way_back: ClassVar[WayBack] = WayBack(takes_reasoning=True, shows_pictures=True, names_speakers=True)
    speaks: ClassVar[tuple[str, ...]] = ("openai_responses", "anthropic")
    marks: ClassVar[tuple[str, ...]] = ("sglext", "choices[].matched_stop")
    reasoning_tokens: ClassVar[tuple[str, ...]] = (*ChatDialect.reasoning_tokens, "reasoning_tokens")
    text_paths: ClassVar[tuple[str, ...]] = ChatDialect.text_paths
    numbers_calls: ClassVar[bool] = True

    def spell(self, event: dict[str, Any]) -> None:
        """Write reasoning tokens in both places, and a zero if there are none."""
        super().spell(event)
        usage = event.get("usage") or {}
        count = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens")
        if count is not None:
            usage["reasoning_tokens"] = count
            if not count:
                del usage["completion_tokens_details"]

    def tool_call(
        self, call: dict[str, Any], choice: int, state: MappingState, *, whole: bool
    ) -> ToolCallDelta:
        """One tool call, or a fragment. MiniMax's parser counts the nameless fragments of its open call anew."""
        index = call.get("index")
        if whole or type(index) is not int:
            return super().tool_call(call, choice, state, whole=whole)
        seen_indexes = state.own(CallNumbers).seen.setdefault(choice, set())
        function = call.get("function")
        is_named = bool(call.get("id") or (isinstance(function, dict) and function.get("name")))
        if is_named or not seen_indexes or index in seen_indexes:
            seen_indexes.add(index)
            return super().tool_call(call, choice, state, whole=False)
        other_index = call.pop("index")
        fragment = super().tool_call(call, choice, state, whole=False)
        call["index"] = other_index  # kept as sent
        return fragment


class Moonshot(ChatDialect):
    """OpenAI's dialect as Moonshot AI's Kimi API speaks it. A stream's token counts are inside the choice.

    Facts: ``tests/captures/moonshot/README.md`` names the public page of each.
    """

    title: ClassVar[str] = "Moonshot AI"
    names: ClassVar[Names] = Names(prices="moonshotai")
    model_classes: ClassVar[str | None] = "crosswalk_openai:models/moonshot.toml"
    documentation: ClassVar[str | None] = "https://platform.kimi.ai/docs/api/chat"
    errors: ClassVar[VendorErrors | None] = VendorErrors("crosswalk_openai", "moonshot")
    access: ClassVar[Access | None] = Access.by_name("https://api.moonshot.ai/v1", "MOONSHOT")
    style: ClassVar[Mapping[str, Any]] = {"takes_empty": False, "call_reasoning": NO_REASONING}
    way_back: ClassVar[WayBack] = WayBack(takes_reasoning=True, shows_pictures=True, names_speakers=True)
    speaks: ClassVar[tuple[str, ...]] = ("anthropic",)
    endpoints: ClassVar[tuple[str, ...]] = ("/v1/chat/completions",)
    cached_tokens: ClassVar[tuple[str, ...]] = ("cached_tokens", *ChatDialect.cached_tokens)
    usage_key: ClassVar[str | None] = None  # the counts of two places are compared
    text_paths: ClassVar[tuple[str, ...]] = ChatDialect.text_paths
    call_ids: ClassVar[CallIds | None] = CallIds()  # two calls of one id are refused

    def build_request(self, request: ChatRequest) -> HTTPRequest:
        """See the hook ``build_request``."""
        from crosswalk_openai.requests import continue_last_answer

        http_request = self.built(request, arrange=continue_last_answer)
        if http_request.body.get("reasoning_effort") == "none":
            del http_request.body["reasoning_effort"]
            http_request.body["thinking"] = {"type": "disabled"}
        return http_request

    def is_marked(self, event: dict[str, Any]) -> bool:
        """Whether a choice has counts. TGI has a null there."""
        choices = (choice for choice in event["choices"] if type(choice) is dict)
        return any(type(choice.get("usage")) is dict for choice in choices)


def _take_failure(choice: dict[str, Any], key: str, said: ChatSaid, state: MappingState) -> None:
    if choice[key]:
        error = choice.pop(key)
        info = said.dialect.map_error(None, error) or error_info(None, error)
        said.last = chain(said.last, (error_delta(info),))


class OpenRouter(ChatDialect):
    """OpenAI's dialect as OpenRouter speaks it for every provider. Answers with status 200 may contain an error."""

    title: ClassVar[str] = "OpenRouter"
    model_classes: ClassVar[str | None] = "crosswalk_openai:models/openrouter.toml"
    documentation: ClassVar[str | None] = "https://openrouter.ai/docs/api-reference/overview"
    access: ClassVar[Access | None] = Access.by_name("https://openrouter.ai/api/v1", "OPENROUTER")
    errors: ClassVar[VendorErrors | None] = VendorErrors("crosswalk_openai", "openrouter")
    hosted_tools: ClassVar[Mapping[str, Mapping[str, Any]]] = {"web_search": {}}  # an option of the request
    style: ClassVar[Mapping[str, Any]] = _ROUTER_STYLE
    speaks: ClassVar[tuple[str, ...]] = ("openai_responses", "anthropic")
    marks: ClassVar[tuple[str, ...]] = ("choices[].native_finish_reason",)
    cost_currency: ClassVar[str | None] = "USD"  # one credit is one dollar
    usage_details: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **ChatDialect.usage_details,
        "web_search_requests": ("server_tool_use.web_search_requests",),
    }
    choice_rows: ClassVar[Mapping[str, FieldRow]] = {
        **ChatDialect.choice_rows,
        "error": FieldRow("error", _take_failure),
    }
    # Every provider behind it takes these ids except Mistral, for which it changes them.
    call_ids: ClassVar[CallIds | None] = CallIds(pattern="[a-zA-Z0-9_-]+", maximum=40)
    call_names: ClassVar[str | None] = _NAME_PATTERN
    text_paths: ClassVar[tuple[str, ...]] = ChatDialect.text_paths
    reasoning_name: ClassVar[str] = "reasoning"
    numbers_calls: ClassVar[bool] = True
    way_back: ClassVar[WayBack] = WayBack(
        takes_reasoning=True,
        takes_citations=True,
        takes_media=("image",),
        shows_pictures=True,
        names_speakers=True,
    )

    def build_request(self, request: ChatRequest) -> HTTPRequest:
        """See the hook ``build_request``."""
        from crosswalk_openai.requests import OPENROUTERS_ROWS, add_details

        return self.built(request, more=add_details, reasoning=None, rows=OPENROUTERS_ROWS)


def _take_chunks(part: dict[str, Any], key: str, said: ChatSaid, state: MappingState) -> None:
    """Take the content: a text, or chunks in an order with thinking and references."""
    if type(part[key]) is list:
        said.first += _chunks(part, said.choice, state)
    else:
        take_content(part, key, said, state)


class Mistral(ChatDialect):
    """OpenAI's dialect as Mistral speaks it. Content may be a list of chunks, which include thinking."""

    title: ClassVar[str] = "Mistral"
    names: ClassVar[Names] = Names(otel="mistral_ai")
    model_classes: ClassVar[str | None] = "crosswalk_openai:models/mistral.toml"
    documentation: ClassVar[str | None] = "https://docs.mistral.ai/api/endpoint/chat"
    access: ClassVar[Access | None] = Access.by_name("https://api.mistral.ai/v1", "MISTRAL")
    # https://docs.mistral.ai/capabilities/batch
    batch_file: ClassVar[BatchFile | None] = BatchFile(names_endpoint=False, model="job")
    # It counts without being asked, and refuses unknown fields and empty messages.
    style: ClassVar[Mapping[str, Any]] = {
        "options": {
            "seed": "random_seed",
            "repeat_penalty": "repetition_penalty",
            **{name: name for name in ("top_k", "prediction", "metadata", "prompt_cache_key")},
        },
        "lacks": (
            *("user", "logit_bias", "modalities", "audio", "function_call", "cache.mark", "message.name"),
            *("messages[].audio", "functions[].name"),
        ),
        "is_strict": True,
        "include_usage": False,
        "takes_empty": False,
    }
    call_ids: ClassVar[CallIds | None] = CallIds(pattern="[a-zA-Z0-9]{9}", maximum=9)
    way_back: ClassVar[WayBack] = WayBack(takes_citations=True, shows_pictures=True, moves_system=True)
    call_names: ClassVar[str | None] = _NAME_PATTERN
    endpoints: ClassVar[tuple[str, ...]] = (
        "/v1/chat/completions",
        "/v1/fim/completions",
        "/v1/conversations",
    )
    timestamp_key: ClassVar[str | None] = "p"
    pieces: ClassVar[tuple[str, ...]] = (*ChatDialect.pieces, "choices[].delta.content")
    part_rows: ClassVar[Mapping[str, FieldRow]] = {
        **ChatDialect.part_rows,
        "content": FieldRow("text", _take_chunks, "text", (None,)),
    }
    marks: ClassVar[tuple[str, ...]] = (
        "usage.prompt_audio_seconds",
        *(
            f"choices[].{part}.content[].{key}"
            for part in ("delta", "message")
            for key in ("thinking", "reference_ids")
        ),
    )
    cached_tokens: ClassVar[tuple[str, ...]] = (*ChatDialect.cached_tokens, "num_cached_tokens")
    text_paths: ClassVar[tuple[str, ...]] = ChatDialect.text_paths

    def build_request(self, request: ChatRequest) -> HTTPRequest:
        """See the hook ``build_request``."""
        from crosswalk_openai.requests import (
            MISTRALS_ROWS,
            add_chunks,
            in_mistrals_order,
            mistrals_part,
            with_forced_sentences_named,
        )

        http_request = self.built(
            request,
            arrange=in_mistrals_order,
            part=mistrals_part,
            more=add_chunks,
            reasoning=None,
            rows=MISTRALS_ROWS,
        )
        return with_forced_sentences_named(http_request)

    def recognizes(self, event: Any) -> Recognition:
        """See the hook ``recognizes``: certain of the Conversations API."""
        return Recognition.CERTAIN if _is_of_conversation(event) else super().recognizes(event)

    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """See the hook ``map_delta``."""
        if not _is_of_conversation(event):
            return super().map_delta(event, state)
        return conversation_deltas(event, state, lambda entry, entry_state: _chunks(entry, 0, entry_state))

    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        """See the hook ``map_finish_reason``. A conversation has no word for the end of its answer."""
        return FinishReason.STOP if reason == "" else super().map_finish_reason(reason, state)

    def tool_call(
        self, call: dict[str, Any], choice: int, state: MappingState, *, whole: bool
    ) -> ToolCallDelta:
        """Read one tool call. The id ``"null"`` means that there is none."""
        take_same(call, "id", "null")
        return super().tool_call(call, choice, state, whole=whole)


def _is_of_conversation(event: Any) -> bool:
    """Whether *event* is an answer of this API, or an event of its stream."""
    if type(event) is not dict:
        return False
    kind = event.get("type")
    return event.get("object") == BODY if kind is None else type(kind) is str and kind in STREAM_EVENT_TYPES


def _chunks(part: dict[str, Any], choice: int, state: MappingState) -> Iterator[ResponseDelta]:
    """Yield a delta for each chunk of *part*'s content.

    A chunk of an unknown type is left in the event, and ``provenance`` marks the content as unmapped.
    """
    for chunk in take_objects(part, "content"):
        kind = take_string(chunk, "type")
        if kind in ("text", "output_text") or (kind is None and "text" in chunk):
            text = take_string(chunk, "text")
            if text:
                yield ResponseDelta(content_delta=text, choice=choice)
        elif kind == "thinking":
            for thought in take_objects(chunk, "thinking"):
                if take_same(thought, "type", "text") and (text := take_string(thought, "text")):
                    yield ResponseDelta(reasoning_delta=text, choice=choice)
            if signature := take_string(chunk, "signature"):
                signature_segment = Segment(SegmentType.REASONING, "", {"signature": signature})
                yield ResponseDelta(segment=signature_segment, choice=choice)
        elif kind == "tool_reference":
            yield ResponseDelta(segment=reference(chunk), choice=choice)
        elif kind == "reference" and (ids := _accept_ids(chunk)):
            references = [CitationRef(id=str(source_id)) for source_id in ids]
            yield ResponseDelta(
                segment=Segment(SegmentType.CITATION, "", {"reference_ids": ids}, references), choice=choice
            )
        else:
            if kind != "reference":
                state.note_unknown_part()
            if kind is not None:
                chunk["type"] = kind
    if not part.get("content"):
        part.pop("content", None)


def _accept_ids(chunk: dict[str, Any]) -> list[int | str]:
    ids = accept_array(chunk, "reference_ids")
    if all(type(source_id) is int or type(source_id) is str for source_id in ids):
        return ids
    chunk["reference_ids"] = ids
    leave_mistyped(chunk, "reference_ids")
    return []


deepseek = DeepSeek()
fireworks = Fireworks()
groq = Groq()
lmstudio = LMStudio()
mistral = Mistral()
moonshot = Moonshot()
openrouter = OpenRouter()
perplexity = Perplexity()
sglang = SGLang()
together = Together()
xai = XAI()
