"""TGI's OpenAI layer: ``/v1/chat/completions`` and ``/v1/completions`` (sections 3 to 5)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from crosswalk import (
    FinishReason,
    MappingState,
    OpenAIChatDialect,
    Provenance,
    Recognition,
    ResponseDelta,
    TokenLogprob,
    ToolCallDelta,
    UsageInfo,
    error_delta,
    get_array,
    taken_if,
)
from crosswalk_tgi.arguments import Arguments
from crosswalk_tgi.errors import tgi_error
from crosswalk_tgi.usage import has_one_report, usage_of_all

__all__ = ["OpenAILayer"]

_VERSION = re.compile(r"\d+\.\d+\.\d+(-dev\d+)?-.+")
_NO_ID = re.compile(r"\d+")


class OpenAILayer(OpenAIChatDialect):
    """OpenAI's dialect as TGI speaks it: calls without an id of their own, and without an end.

    Attributes:
        text_leaves: see ``ProviderInfo``.
        pieces: see ``ProviderInfo``.
    """

    title: ClassVar[str] = "Text Generation Inference (OpenAI layer)"
    text_leaves: ClassVar[tuple[str, ...]] = ("choices[0].delta.content", "choices[0].text")
    pieces: ClassVar[tuple[str, ...]] = ("choices[].logprobs",)
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = MappingProxyType(
        {
            **OpenAIChatDialect.finish_reasons,
            "eos_token": FinishReason.STOP,
            "stop_sequence": FinishReason.STOP,
        }
    )
    consumed: ClassVar[Any] = {
        **OpenAIChatDialect.consumed,
        "id": taken_if(lambda value, _, state: not value or value == state.response_id),
    }

    def recognizes(self, event: Any) -> Recognition:
        """Whether *event* is of this layer: its fingerprint is TGI's version, and its id is empty."""
        found = super().recognizes(event)
        if found is Recognition.NO or event.get("type") == "error":
            return Recognition.NO  # such an error is one of Anthropic's or of the Responses API
        marked = _VERSION.fullmatch(str(event.get("system_fingerprint"))) and event.get("id") == ""
        return Recognition.CERTAIN if marked else found

    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """The deltas of OpenAI's dialect; an error in mid-stream is one of TGI's."""
        if type(event) is dict and event.get("error"):
            return [error_delta(tgi_error(None, event), state)]
        return super().map_delta(event, state)

    def choice_deltas(
        self, choice: dict[str, Any], number: int, place: str, state: MappingState
    ) -> list[ResponseDelta]:
        """The deltas of one choice; where a streamed call is complete, the answer may be too, without a word."""
        deltas = super().choice_deltas(choice, number, place, state)
        if "delta" not in choice:
            return deltas
        for delta in list(deltas):
            call = delta.tool_call_delta
            if call is not None and self._are_complete(call, delta.choice, state):
                state.note("finish_reason", Provenance.DERIVED)
                end = ResponseDelta(
                    state.next_index(), finish_reason=FinishReason.TOOL_CALLS, choice=delta.choice
                )
                deltas.append(end)
        return deltas

    @staticmethod
    def _are_complete(call: ToolCallDelta, choice: int, state: MappingState) -> bool:
        """Whether, with this fragment, a call of *choice*, the only one that TGI makes, has all its arguments."""
        calls: dict[tuple[int, int], Arguments] = state.data.setdefault("arguments", {})
        arguments = calls.setdefault((choice, call.index), Arguments())
        arguments.add(call.arguments_delta or "")
        return arguments.complete

    def tool_call_deltas(
        self, part: dict[str, Any], place: str, choice: int, state: MappingState, *, whole: bool
    ) -> list[ToolCallDelta]:
        """The tool calls; their ids are counts, the same in every answer, and no use as ids (section 3)."""
        calls = [_without_count(call) for call in get_array(part, "tool_calls", place)]
        return super().tool_call_deltas({**part, "tool_calls": calls}, place, choice, state, whole=whole)

    def logprobs(self, choice: dict[str, Any], place: str) -> tuple[TokenLogprob, ...] | None:
        """The log probabilities of a chat; those of a completion come without their tokens and stay as they are."""
        return None if type(choice.get("logprobs")) is list else super().logprobs(choice, place)

    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """The counts; of several prompts each has its own (section 3)."""
        counts = super().map_usage(event, state)
        if counts is None:
            return None
        choices = event.get("choices")
        return usage_of_all((choices[0].get("index") or 0) if choices else 0, counts, state)

    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """What no typed field takes; the usage of one answer of several stays: the response's is that of all."""
        rest = super().extensions(event, state)
        usage = event.get("usage")
        return {**rest, "usage": usage} if usage and not has_one_report(state) else rest


def _without_count(call: Any) -> Any:
    """*call* without an id that is a count: a number in old versions, now digits."""
    if type(call) is not dict:
        return call
    id = call.get("id")
    is_count = type(id) is int or (type(id) is str and _NO_ID.fullmatch(id))
    return {**call, "id": None} if is_count else call
