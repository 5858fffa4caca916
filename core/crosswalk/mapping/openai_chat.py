"""OpenAI's Chat Completions and Completions dialect: the building block for every server that speaks it.

Facts: provider document "OpenAI Chat Completions". A provider with this API subclasses
:class:`OpenAIChatDialect` and overrides what differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, ClassVar

import orjson

from crosswalk.errors import ErrorInfo, UnknownEventError, UnknownFinishReasonError, WireTypeError
from crosswalk.mapping.choices import beside, has_speech, is_said, named_again, number_of, speaking_part
from crosswalk.mapping.dialects import event_type
from crosswalk.mapping.failures import error_delta, error_info
from crosswalk.mapping.leaves import (
    get_array,
    get_count,
    get_integer,
    get_object,
    get_string,
    require_object,
)
from crosswalk.mapping.logprobs import CONSUMED_TOKENS, legacy_logprobs, token_logprobs
from crosswalk.mapping.residue import KEY, TAKEN, Consumed, residue, taken_if
from crosswalk.plugin.access import Access
from crosswalk.plugin.hookspecs import hookimpl
from crosswalk.plugin.info import ProviderInfo, Recognition
from crosswalk.plugin.state import MappingState
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.finish import FinishReason
from crosswalk.types.logprob import TokenLogprob
from crosswalk.types.metadata import Provenance
from crosswalk.types.tools import ToolCallDelta
from crosswalk.types.usage import UsageInfo

__all__ = ["OpenAIChatDialect"]


def _is_the_id(value: Any, _: dict[str, Any], state: MappingState) -> bool:
    return value is None or value == state.response_id


def _is_the_model(value: Any, _: dict[str, Any], state: MappingState) -> bool:
    return value is None or value == state.model


def _is_the_time(value: Any, _: dict[str, Any], state: MappingState) -> bool:
    return type(value) is int and state.created is not None and value == int(state.created.timestamp())


def _is_the_sum(value: Any, usage: dict[str, Any], _: MappingState) -> bool:
    return (
        type(value) is int
        and value == (usage.get("prompt_tokens") or 0) + (usage.get("completion_tokens") or 0)
        and usage.get("prompt_tokens") is not None
    )


def _is_the_only_text(value: Any, choice: dict[str, Any], _: MappingState) -> bool:
    part = choice.get(speaking_part(choice)) or {}
    return not (value and part.get("content"))


def _is_legacy(_: Any, logprobs: dict[str, Any], __: MappingState) -> bool:
    return logprobs.get("tokens") is not None


def _is_not_legacy(_: Any, logprobs: dict[str, Any], __: MappingState) -> bool:
    return logprobs.get("tokens") is None


def _is_no_call_of_its_own(value: Any, part: dict[str, Any], _: MappingState) -> bool:
    """Whether a legacy ``function_call`` is the call: where ``tool_calls`` has one too, it must be the same."""
    calls = part.get("tool_calls")
    return not calls or value is None or any(value == call.get("function") for call in calls)


def _is_shown_as_reasoning(value: Any, part: dict[str, Any], _: MappingState) -> bool:
    return not part.get("reasoning") or value == part["reasoning"] or value is None


_PART: Consumed = {
    "role": taken_if(lambda value, *_: value == "assistant"),
    "content": TAKEN,
    "refusal": TAKEN,
    "reasoning": TAKEN,
    "reasoning_content": taken_if(_is_shown_as_reasoning),
    "tool_calls": [
        {
            "index": taken_if(lambda value, _, state: value is None or state.carries_index(value)),
            "id": taken_if(lambda value, _, state: state.carries_id(value)),
            "type": taken_if(lambda value, *_: value is None or value == "function"),
            "function": {
                "name": taken_if(lambda value, _, state: state.carries_name(value)),
                "arguments": TAKEN,
            },
            "custom": {
                "name": taken_if(lambda value, _, state: state.carries_name(value)),
                "input": TAKEN,
            },
        }
    ],
    "function_call": taken_if(
        _is_no_call_of_its_own,
        {"name": taken_if(lambda value, _, state: state.carries_name(value)), "arguments": TAKEN},
    ),
}


class OpenAIChatDialect:
    """The hooks for ``/v1/chat/completions`` and ``/v1/completions``, whole and streamed.

    Attributes:
        title: the provider's name as people write it.
        documentation: where the provider describes the API.
        endpoints: the HTTP paths whose answers are in this dialect.
        text_leaves: see ``ProviderInfo``; a subclass for which the promise does not hold leaves some out.
        stamp_leaves: see ``ProviderInfo``.
        pieces: see ``ProviderInfo``.
        speaks: see ``ProviderInfo``.
        cache_write_field: where ``prompt_tokens_details`` counts the tokens written to a cache.
        finish_reasons: the provider's finish words.
        consumed: what the typed fields take, as a table for ``residue``.
        access: how the server is reached; ``None`` where only the user can say.
    """

    title: ClassVar[str] = "OpenAI Chat Completions"
    documentation: ClassVar[str | None] = None
    endpoints: ClassVar[tuple[str, ...]] = ("/v1/chat/completions", "/v1/completions")
    text_leaves: ClassVar[tuple[str, ...]] = (
        "choices[0].delta.content",
        "choices[0].delta.reasoning",
        "choices[0].delta.reasoning_content",
        "choices[0].text",
    )
    stamp_leaves: ClassVar[tuple[str, ...]] = ()
    pieces: ClassVar[tuple[str, ...]] = (
        "choices[].token_ids",
        "choices[].logprobs.text_offset",
        "choices[].logprobs.refusal",
    )
    speaks: ClassVar[tuple[str, ...]] = ()
    cache_write_field: ClassVar[str] = "cache_write_tokens"
    access: ClassVar[Access | None] = None
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = MappingProxyType(
        {
            "stop": FinishReason.STOP,
            "length": FinishReason.LENGTH,
            "tool_calls": FinishReason.TOOL_CALLS,
            "function_call": FinishReason.TOOL_CALLS,
            "content_filter": FinishReason.CONTENT_FILTER,
        }
    )
    consumed: ClassVar[Consumed] = {
        "id": taken_if(_is_the_id),
        "model": taken_if(_is_the_model),
        "created": taken_if(_is_the_time),
        "choices": [
            {
                "index": KEY,
                "finish_reason": TAKEN,
                "text": taken_if(_is_the_only_text),
                "delta": _PART,
                "message": _PART,
                "logprobs": {
                    "content": taken_if(_is_not_legacy, CONSUMED_TOKENS),
                    "tokens": TAKEN,
                    "token_logprobs": taken_if(_is_legacy),
                    "top_logprobs": taken_if(_is_legacy),
                },
            }
        ],
        "usage": {
            "prompt_tokens": TAKEN,
            "completion_tokens": TAKEN,
            "total_tokens": taken_if(_is_the_sum),
            "prompt_tokens_details": {"cached_tokens": TAKEN, "cache_write_tokens": TAKEN},
            "completion_tokens_details": {"reasoning_tokens": TAKEN},
        },
    }

    def __init_subclass__(cls) -> None:
        """Let the table of consumed leaves follow a subclass that names a field differently."""
        super().__init_subclass__()
        details = {"cached_tokens": TAKEN, cls.cache_write_field: TAKEN}
        usage = {**cls.consumed["usage"], "prompt_tokens_details": details}
        cls.consumed = {**cls.consumed, "usage": usage}

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """See the hook ``provider_info``."""
        return ProviderInfo(
            title=self.title,
            endpoints=self.endpoints,
            documentation=self.documentation,
            text_leaves=self.text_leaves,
            stamp_leaves=self.stamp_leaves,
            pieces=self.pieces,
            speaks=self.speaks,
            access=self.access,
        )

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        """See the hook ``recognizes``."""
        fits = isinstance(event, dict) and (isinstance(event.get("choices"), list) or _is_error(event))
        return Recognition.POSSIBLE if fits else Recognition.NO

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """See the hook ``map_delta``."""
        event = require_object(event, "the event")
        if _is_error(event):
            return [error_delta(error_info(None, event), state)]
        if "choices" not in event:
            word = event_type(event)
            raise UnknownEventError(f"no choices in it ({word or 'no type'})", event_type=word)
        state.identify(id=get_string(event, "id"), model=get_string(event, "model"), created=_time(event))
        deltas: list[ResponseDelta] = []
        silent = state.data["silent"] = []
        settled: dict[int, dict[Any, Any]] = {}
        state.data["settled"] = settled
        spoken: set[int] = state.data.setdefault("spoken", set())
        speaking: list[int] = []
        for number, item in enumerate(get_array(event, "choices")):
            place = f"choices[{number}]"
            choice = require_object(item, place)
            index = number_of(choice, number, place)
            if "delta" in choice and "message" in choice:
                name = speaking_part(choice, has_spoken=index in spoken)
                other = "message" if name == "delta" else "delta"
                read = {key: value for key, value in choice.items() if key != other}
                found = self.choice_deltas(read, number, place, state)
                unsaid = self.unsaid(choice[other], read[name] or {}, index, state)
                settled[number] = beside(read, other, unsaid)
                choice = read
            else:
                found = self.choice_deltas(choice, number, place, state)
            if index not in spoken and has_speech(choice):
                speaking.append(index)
            if not found and "index" in choice:
                silent.append(choice["index"])
            deltas += found
        spoken.update(speaking)
        return deltas

    def settled(self, event: dict[str, Any], state: MappingState) -> dict[str, Any]:
        """*event*, which was mapped last, with the part that was read as the only one of each choice."""
        settled: dict[int, Any] | None = state.data.get("settled")
        if not settled:
            return event
        choices = [settled.get(number, choice) for number, choice in enumerate(event["choices"])]
        return {**event, "choices": choices}

    def unsaid(self, other: Any, part: dict[str, Any], choice: int, state: MappingState) -> Any:
        """What *other*, the part of *choice* that was not read, says beside *part*, which was.

        ``None`` or an empty object is nothing.
        """
        if type(other) is not dict:
            return other
        return {name: value for name, value in other.items() if not is_said(name, value, part)}

    def choice_deltas(
        self, choice: dict[str, Any], number: int, place: str, state: MappingState
    ) -> list[ResponseDelta]:
        """The deltas of one choice, the *number*-th of its event: its text first, then its tool calls."""
        index = number_of(choice, number, place)
        state.choices.add(index)
        whole = "delta" not in choice
        where = f"{place}.{'message' if whole else 'delta'}"
        part = get_object(choice, "message" if whole else "delta", place) or {}
        reasoning = get_string(part, "reasoning", where)
        reasoning = reasoning or get_string(part, "reasoning_content", where)
        content = get_string(part, "content", where) or get_string(choice, "text", place)
        refusal = get_string(part, "refusal", where)
        logprobs = self.logprobs(choice, place)
        calls = self.tool_call_deltas(part, where, index, state, whole=whole)
        finish = get_string(choice, "finish_reason", place) or None
        deltas: list[ResponseDelta] = []
        said = content or reasoning or refusal or logprobs
        if said or (finish is not None and not calls):
            deltas.append(
                ResponseDelta(
                    state.next_index(),
                    content or None,
                    None,
                    None,
                    None,
                    reasoning or None,
                    refusal or None,
                    None,
                    None if calls else finish,
                    logprobs,
                    index,
                )
            )
        for number, call in enumerate(calls, 1):
            deltas.append(
                ResponseDelta(
                    state.next_index(),
                    tool_call_delta=call,
                    raw_finish_reason=finish if number == len(calls) else None,
                    choice=index,
                )
            )
        return deltas

    def tool_call_deltas(
        self, part: dict[str, Any], place: str, choice: int, state: MappingState, *, whole: bool
    ) -> list[ToolCallDelta]:
        """The tool calls, or fragments of them, of a message or delta."""
        found = []
        for number, item in enumerate(get_array(part, "tool_calls", place)):
            spot = f"{place}.tool_calls[{number}]"
            call = require_object(item, spot)
            function = get_object(call, "function", spot) or {}
            custom = get_object(call, "custom", spot) or {}
            arguments, complete = _arguments(function, f"{spot}.function")
            name = get_string(function, "name", f"{spot}.function")
            text = get_string(custom, "input", f"{spot}.custom")
            found.append(
                state.tool_call(
                    index=get_integer(call, "index", spot),
                    id=get_string(call, "id", spot),
                    name=name or get_string(custom, "name", f"{spot}.custom"),
                    arguments=arguments or text,
                    choice=choice,
                    # An object is all the arguments: a fragment that names its tool is then a call of its own.
                    whole=whole or (complete and bool(name)),
                )
            )
        legacy = get_object(part, "function_call", place)
        if legacy and not found:  # some servers say a forced call in both forms
            spot = f"{place}.function_call"
            name = get_string(legacy, "name", spot)
            arguments, _ = _arguments(legacy, spot)
            found.append(state.tool_call(index=0, name=name, arguments=arguments, choice=choice))
        return found

    def logprobs(self, choice: dict[str, Any], place: str) -> tuple[TokenLogprob, ...] | None:
        """The log probabilities of a choice, in chat's shape or in that of completions; ``None`` without any."""
        logprobs = get_object(choice, "logprobs", place)
        if not logprobs:
            return None
        where = f"{place}.logprobs"
        if logprobs.get("tokens") is not None:
            return legacy_logprobs(logprobs, where) or None
        items = get_array(logprobs, "content", where)
        return token_logprobs(items, f"{where}.content") or None

    @hookimpl
    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason:
        """See the hook ``map_finish_reason``."""
        try:
            return self.finish_reasons[reason]
        except KeyError:
            raise UnknownFinishReasonError(reason) from None

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """See the hook ``map_usage``."""
        usage = get_object(event, "usage")
        return self.usage_info(usage, "usage", state) if usage else None

    def usage_info(self, usage: dict[str, Any], place: str, state: MappingState) -> UsageInfo | None:
        """The counts of a usage object; ``None`` when it has none."""
        prompt = get_count(usage, "prompt_tokens", place)
        completion = get_count(usage, "completion_tokens", place)
        inputs = get_object(usage, "prompt_tokens_details", place) or {}
        outputs = get_object(usage, "completion_tokens_details", place) or {}
        cached = get_count(inputs, "cached_tokens", f"{place}.prompt_tokens_details")
        written = get_count(inputs, self.cache_write_field, f"{place}.prompt_tokens_details")
        reasoning = get_count(outputs, "reasoning_tokens", f"{place}.completion_tokens_details")
        counts = (prompt, completion, cached, reasoning, written)
        if all(count is None for count in counts):
            return None
        state.note("usage.prompt_tokens", Provenance.ABSENT if prompt is None else None)
        state.note("usage.completion_tokens", Provenance.ABSENT if completion is None else None)
        return UsageInfo(prompt or 0, completion or 0, cached, reasoning, written)

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """See the hook ``extensions``."""
        if _is_error(event):
            return {}  # the error segment keeps the whole event
        rest = named_again(residue(self.settled(event, state), self.consumed, state))
        for index in state.data.get("silent", ()):
            # No delta says that this choice has begun: the chunk with its role alone does.
            choices = rest.setdefault("choices", [])
            if all(choice.get("index") != index for choice in choices):
                choices.append({"index": index})
        return rest

    @hookimpl
    def map_error(self, status: int, body: Any) -> ErrorInfo | None:
        """See the hook ``map_error``."""
        return error_info(status, body)


def _is_error(event: dict[str, Any]) -> bool:
    return bool(event.get("error")) or event.get("object") == "error"


def _time(event: dict[str, Any]) -> datetime | None:
    """The time of creation; ``None`` where it is missing, 0 (Azure's filter chunks) or no time at all."""
    created = event.get("created")
    if type(created) is not int or created <= 0:
        return None
    try:
        return datetime.fromtimestamp(created, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _arguments(function: dict[str, Any], place: str) -> tuple[str | None, bool]:
    """Argument text, and whether it is whole: some servers send the object itself, then it is all of it."""
    value = function.get("arguments")
    if value is None or type(value) is str:
        return value, False
    if type(value) is dict:
        return orjson.dumps(value).decode(), True
    raise WireTypeError(f"{place}.arguments", expected="string", got=value)
