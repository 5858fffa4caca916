"""llama.cpp: the native ``/completion`` of its server, and its OpenAI layer, which llama-cpp-python has too.

Facts: provider document "llama.cpp server". Answers in the form of Anthropic or of the Responses API are read
by the providers of those dialects.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from copy import deepcopy
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from crosswalk.plugins import (
    Access,
    DialectFamily,
    MappingState,
    OpenAIChatDialect,
    Provenance,
    ProviderInfo,
    Recognition,
    ResponseDelta,
    Totals,
    UsageInfo,
    WayBack,
    hookimpl,
    look_at_count,
)
from crosswalk_llamacpp.native import NativeDialect, note_duration, timings_of

if TYPE_CHECKING:
    from crosswalk.plugins import ChatRequest, HTTPRequest

__all__ = ["LlamaCpp", "plugin"]

# The OpenAI layer: ``/v1/chat/completions`` and ``/v1/completions`` (sections 2, 3 and 5).

_BUILD_PATTERN = re.compile(r"b\d+-[0-9a-f]{6,40}")
_TIMING_KEYS = {"prompt_ms", "predicted_n", "predicted_ms"}


_OPTIONS = {
    name: name
    for name in (
        *("top_k", "min_p", "repeat_penalty", "repeat_last_n", "typical_p"),
        *("mirostat", "mirostat_tau", "mirostat_eta"),
    )
}
"""The options that OpenAI's API lacks, with their names."""


class Notes:
    """The state of several answers.

    Attributes:
        prompts: the number of prompts that the server has begun, as far as it announces them.
        choice: in the OpenAI layer, the answer of an event without choices.
        is_whole: whether the present event is whole, and not the timings of one that is alike to an earlier one.
        has_usage: in the OpenAI layer, whether the last whole event had counts besides its timings.
    """

    prompts = 1
    choice = 0
    is_whole = False
    has_usage = False


class OpenAILayer(OpenAIChatDialect):
    """OpenAI's dialect as llama.cpp speaks it: with ``timings``, and usage for each answer."""

    text_paths: ClassVar[tuple[str, ...]] = OpenAIChatDialect.text_paths
    pieces: ClassVar[tuple[str, ...]] = (
        *OpenAIChatDialect.pieces,
        "__verbose.tokens",
        "__verbose.completion_probabilities",
    )

    def recognizes(self, event: Any) -> Recognition:
        """Whether *event* is of this layer: it is marked, or an error of a kind that only llama.cpp has."""
        recognition = super().recognizes(event)
        if recognition is Recognition.POSSIBLE and type(event.get("error")) is dict:
            has_own_error = event["error"].get("type") == "exceed_context_size_error"
            return Recognition.CERTAIN if has_own_error else recognition
        return recognition

    def is_marked(self, event: dict[str, Any]) -> bool:
        """Whether *event* names llama.cpp's build, or has its timings."""
        timings = event.get("timings")
        return bool(_BUILD_PATTERN.fullmatch(str(event.get("system_fingerprint")))) or (
            type(timings) is dict and timings.keys() >= _TIMING_KEYS
        )

    def spell(self, event: dict[str, Any]) -> None:
        """See the dialect. llama-cpp-python also sends a demanded call in the old form, with the same id."""
        super().spell(event)
        for choice in event.get("choices", ()):
            part = choice.get("message") or choice.get("delta") or {}
            for call in part.get("tool_calls") or ():
                if str(call.get("id")).startswith("call__"):
                    part["function_call"] = dict(call["function"])

    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """Return the counts of the usage object, or of the timings, which have the cached tokens in old versions.

        Each of several answers has its own counts. A chunk without choices belongs to the answer that ended last.

        Raises:
            LookupError: the event is alike to an earlier one, and the timings alone do not tell its counts.
        """
        notes = state.own(Notes)
        choice = notes.choice
        is_whole, notes.is_whole = notes.is_whole, False
        if not is_whole and (notes.has_usage or len(state.choices) > 1):
            raise LookupError("the choice and its usage are in the whole event")
        if (chunk_choice := self.choice_of(state)) is not None:
            choice = chunk_choice
            if state.has_ended(choice):
                notes.choice = choice
        timings = timings_of(event)
        note_duration(timings, choice, state)
        sent_usage = deepcopy(event["usage"]) if event.get("usage") else None
        counts = super().map_usage(event, state)
        notes.has_usage = counts is not None
        if counts is None:
            counts = _usage_of(timings, state)
        elif counts.cached_tokens is None:
            counts = attrs.evolve(counts, cached_tokens=look_at_count(timings, "cache_n"))
        if counts is None:
            return None
        # Several answers to one prompt all count it. With several prompts each answer counts its own.
        prompt_key: int | str | None = f"{counts.prompt_tokens} tokens" if counts.prompt_tokens else None
        if notes.prompts > 1:
            prompt_key = choice
        usage = state.own(Totals).add(choice, prompt_key, counts, state)
        if usage is not counts and sent_usage:
            event["usage"].update(sent_usage)  # that of one answer of several stays
        return usage


def _usage_of(timings: dict[str, Any], state: MappingState) -> UsageInfo | None:
    """Return the counts of a stream without requested usage, or ``None`` without *timings* (section 5).

    ``prompt_n`` counts the processed tokens, without cached ones. In versions that do not count cached tokens the
    prompt's count is unknown.
    """
    uncached_tokens, completion_tokens = (
        look_at_count(timings, name) for name in ("prompt_n", "predicted_n")
    )
    if uncached_tokens is None and completion_tokens is None:
        return None
    cached_count = look_at_count(timings, "cache_n")
    prompt_tokens = (
        None if uncached_tokens is None or cached_count is None else uncached_tokens + cached_count
    )
    counts = state.usage_info(prompt_tokens, completion_tokens, cached_tokens=cached_count)
    if prompt_tokens is not None:
        state.note("usage.prompt_tokens", Provenance.DERIVED)
    return counts


ACCESS = Access(
    base_url="http://127.0.0.1:8080",
    base_url_variables=("LLAMACPP_BASE_URL",),
    api_key_variables=("LLAMA_API_KEY",),
)


class LlamaCpp(DialectFamily):
    """The hooks for a llama.cpp server. The first event with content decides the dialect of the others.

    The event ``null`` only means that the answer to one more of several prompts has begun.
    """

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """See the hook ``provider_info``."""
        return ProviderInfo(
            title="llama.cpp",
            model_classes="crosswalk_llamacpp:models.toml",
            endpoints=("/completion", "/completions", "/infill", *OpenAILayer.endpoints),
            documentation="https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md",
            message_paths=OpenAILayer.message_paths,
            text_paths=(*NativeDialect.text_paths, *OpenAILayer.text_paths),
            pieces=(*NativeDialect.pieces, *OpenAILayer.pieces),
            usage_key="timings",
            speaks=("openai_responses", "anthropic"),
            access=ACCESS,
            way_back=WayBack(takes_reasoning=True, shows_pictures=True, names_speakers=True),
            spell=OpenAILayer().spell,
        )

    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """See the hook ``map_delta``. An answer that ``null`` has begun must end. The first one begins without it."""
        notes = state.own(Notes)
        notes.is_whole = True
        if event is None:
            state.begin(notes.prompts)
            notes.prompts += 1
            return ()
        return super().map_delta(event, state)

    @hookimpl
    def build_request(self, request: ChatRequest) -> HTTPRequest:
        """See the hook ``build_request``: OpenAI's fields, as ``oaicompat_chat_params_parse`` in the server reads them."""
        from crosswalk.plugins import OpenAIChatStyle, build_openai_chat_request

        # "Failed to parse tool call arguments as JSON" (common/chat.cpp, func_args_not_string)
        style = OpenAIChatStyle(options=_OPTIONS, takes_any_arguments=False)
        return build_openai_chat_request(request, style)


plugin = LlamaCpp(NativeDialect(), OpenAILayer())
