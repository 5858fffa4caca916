"""Hugging Face's Text Generation Inference: ``/generate``, ``/generate_stream``, and its OpenAI layer.

Facts: provider document "Hugging Face Text Generation Inference".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from crosswalk.plugins import (
    Access,
    ChatSaid,
    DialectFamily,
    FieldRow,
    FinishReason,
    MappingState,
    OpenAIChatDialect,
    Provenance,
    ProviderInfo,
    ResponseDelta,
    ToolCallDelta,
    Totals,
    UsageInfo,
    hookimpl,
)
from crosswalk_tgi.native import NativeDialect, tgi_error

if TYPE_CHECKING:
    from crosswalk.plugins import ChatRequest, HTTPRequest

__all__ = ["TGI", "plugin"]

_NO_OPTION_CAUSE = "the server has no such option"

# The OpenAI layer: ``/v1/chat/completions`` and ``/v1/completions`` (sections 3 to 5).

_VERSION_PATTERN = re.compile(r"\d+\.\d+\.\d+(-dev\d+)?-.+")
_COUNT_PATTERN = re.compile(r"-?\d+")
_MARK_PATTERN = re.compile(r'["\[\]{}]|\\.?', re.DOTALL)


@attrs.define(eq=False, repr=False)
class Arguments:
    """Finds the end of the JSON object in a call's fragments, because TGI may send nothing after it.

    Each character is read once.

    Attributes:
        depth: the number of open objects and arrays.
        in_string: whether a string is open.
        backslash: whether the last character escapes the next one.
        complete: whether the object has been closed.
    """

    depth: int = 0
    in_string: bool = False
    backslash: str = ""
    complete: bool = False

    def add(self, fragment: str) -> None:
        """Take the next fragment."""
        marks = _MARK_PATTERN.findall(self.backslash + fragment)
        self.backslash = marks.pop() if marks and marks[-1] == "\\" else ""
        for mark in marks:
            if mark == '"':
                self.in_string = not self.in_string
            elif not self.in_string and mark[0] != "\\":
                self.depth += 1 if mark in "{[" else -1
                self.complete = self.depth == 0


class _Calls(dict[tuple[int, int], Arguments]):
    """The arguments of one stream's calls, by choice and call."""


def _take_calls(part: dict[str, Any], key: str, said: ChatSaid, state: MappingState) -> None:
    """Take the tool calls. Version 1.4 sends its one call without an array."""
    if said.asked is _take_calls:
        return
    said.asked, calls = _take_calls, part.get("tool_calls")
    if type(calls) is dict:
        said.calls.append(said.dialect.tool_call(calls, said.choice, state, whole=said.whole))
    else:
        said.calls += said.dialect.tool_calls(part, said.choice, state, whole=said.whole)


def _take_logprobs(choice: dict[str, Any], key: str, said: ChatSaid, state: MappingState) -> None:
    """Take the log probabilities of a chat. Those of a completion have no tokens and stay."""
    if type(choice[key]) is not list:
        said.logprobs = said.dialect.logprobs(choice, said.text)


class OpenAILayer(OpenAIChatDialect):
    """OpenAI's dialect as TGI speaks it: calls without an id of their own, and without an end.

    Attributes:
        text_paths: see ``ProviderInfo``.
        pieces: see ``ProviderInfo``.
    """

    text_paths: ClassVar[tuple[str, ...]] = ("choices[0].delta.content", "choices[0].text")
    pieces: ClassVar[tuple[str, ...]] = ("choices[].logprobs",)
    part_rows: ClassVar[Mapping[str, FieldRow]] = {
        **OpenAIChatDialect.part_rows,
        **dict.fromkeys(("tool_calls", "function_call"), FieldRow("tool_calls", _take_calls, silent=(None,))),
    }
    choice_rows: ClassVar[Mapping[str, FieldRow]] = {
        **OpenAIChatDialect.choice_rows,
        "logprobs": FieldRow("logprobs", _take_logprobs, silent=(None,)),
    }
    map_error = staticmethod(tgi_error)
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = {
        **OpenAIChatDialect.finish_reasons,
        **NativeDialect.finish_reasons,
    }

    def is_marked(self, event: dict[str, Any]) -> bool:
        """Whether *event* is of this layer: its fingerprint is TGI's version, and its id is empty."""
        return event.get("id") == "" and bool(
            _VERSION_PATTERN.fullmatch(str(event.get("system_fingerprint")))
        )

    def choice_deltas(
        self, choice: dict[str, Any], part: dict[str, Any], index: int, state: MappingState, *, whole: bool
    ) -> Iterator[ResponseDelta]:
        """Return the deltas of one choice. It may end without a finish word after its only, complete call."""
        is_complete = has_word = False
        for delta in super().choice_deltas(choice, part, index, state, whole=whole):
            yield delta
            has_word = has_word or delta.raw_finish_reason is not None
            call = delta.tool_call_delta
            if call is not None and not whole:
                arguments = state.own(_Calls).setdefault((index, call.index), Arguments())
                arguments.add(call.arguments_delta or "")
                is_complete = is_complete or arguments.complete
        if has_word:
            state.note("finish_reason", None)  # a word of the server's after all
        elif is_complete:
            state.note("finish_reason", Provenance.DERIVED)
            yield ResponseDelta(finish_reason=FinishReason.TOOL_CALLS, choice=index)

    def tool_call(
        self, call: dict[str, Any], choice: int, state: MappingState, *, whole: bool
    ) -> ToolCallDelta:
        """Take a tool call. Its id is a count that repeats in every answer, so it is not used (section 3)."""
        id, function = call.get("id"), call.get("function", {})
        match function:
            case {"parameters": dict()} if "arguments" not in function:
                function["arguments"] = function.pop("parameters")  # as version 1.4 calls them
        if not _COUNT_PATTERN.fullmatch(str(id)):
            return super().tool_call(call, choice, state, whole=whole)
        del call["id"]
        delta = super().tool_call(call, choice, state, whole=whole)
        call["id"] = id
        return delta

    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """Take the counts. Each of several prompts has its own, which stay, and the response has the sum (section 3)."""
        sent_usage = deepcopy(event["usage"]) if event.get("usage") else {}
        counts = super().map_usage(event, state)
        if counts is None:
            return None
        number = self.choice_of(state) or 0
        usage = state.own(Totals).add(number, number, counts, state)
        if usage is not counts:
            event["usage"].update(sent_usage)
        return usage


class TGI(DialectFamily):
    """The hooks for a TGI server. The first event decides the dialect of a stream."""

    map_error = staticmethod(hookimpl(tgi_error))

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """See the hook ``provider_info``."""
        return ProviderInfo(
            title="Text Generation Inference",
            model_classes="crosswalk_tgi:models.toml",
            endpoints=("/generate", "/generate_stream", "/", "/invocations", *OpenAILayer.endpoints),
            documentation="https://huggingface.co/docs/text-generation-inference/reference/api_reference",
            message_paths=OpenAILayer.message_paths,
            text_paths=OpenAILayer.text_paths,
            pieces=(*NativeDialect.pieces, *OpenAILayer.pieces),
            access=Access.by_name("http://127.0.0.1:3000", "TGI"),
            way_back=OpenAILayer.way_back,
        )

    @hookimpl
    def build_request(self, request: ChatRequest) -> HTTPRequest:
        """See the hook ``build_request``: OpenAI's fields, as ``ChatRequest`` in the router reads them.

        A schema has another form there, and what the router does not know it leaves out without a word.
        """
        from crosswalk.plugins import OpenAIChatStyle, build_openai_chat_request, thaw

        unsupported = dict.fromkeys(("parallel_tool_calls", "reasoning_effort"), _NO_OPTION_CAUSE)
        response_format = request.response_format
        if response_format is not None and response_format.schema is None:
            unsupported["response_format"] = "JSON needs a schema here"
        http_request = build_openai_chat_request(request, OpenAIChatStyle(unsupported=unsupported))
        if response_format is not None and response_format.schema is not None:
            http_request.body["response_format"] = {"type": "json", "value": thaw(response_format.schema)}
        return http_request


plugin = TGI(NativeDialect(), OpenAILayer())
