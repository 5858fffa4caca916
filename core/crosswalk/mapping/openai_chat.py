"""OpenAI's Chat Completions and Completions dialect: the building block for every server that speaks it.

Facts: provider document "OpenAI Chat Completions". A provider with this API subclasses
:class:`OpenAIChatDialect` and overrides what differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import attrs

from crosswalk.errors import (
    ErrorInfo,
    PluginError,
    TrailingContentError,
    WireTypeError,
)
from crosswalk.mapping.chat_leaves import (
    SEVERAL_PATHS,
    accept_count_at,
    accept_details,
    has_mark,
    is_error,
    spell,
    take_arguments,
    take_text,
)
from crosswalk.mapping.choices import Choices, Echo, speaking_part, take_beside
from crosswalk.mapping.dialects import unknown_event
from crosswalk.mapping.failures import error_info, take_error
from crosswalk.mapping.logprobs import accept_legacy_logprobs, accept_logprobs
from crosswalk.mapping.native_finish import NATIVE, native_end
from crosswalk.mapping.times_and_costs import look_at_cost
from crosswalk.plugin.hooks import (
    Access,
    CallIds,
    LogprobReader,
    ProviderInfo,
    Recognition,
    WayBack,
    hookimpl,
)
from crosswalk.plugin.state import (
    MappingState,
    accept_count,
    accept_object,
    look_at_count,
    require_object,
    take_count,
    take_object,
    take_objects,
    take_same,
    take_string,
)
from crosswalk.types.delta import ResponseDelta, ended, said
from crosswalk.types.message import CallKind, ToolCallDelta
from crosswalk.types.usage import UsageInfo
from crosswalk.types.values import FinishReason, Segment, TokenLogprob
from crosswalk.wire import chat as wire


class OpenAIChatDialect:
    """The hooks for ``/v1/chat/completions`` and ``/v1/completions``, whole and streamed.

    A subclass may override the methods in this list, and the hooks. Each method takes the values that it reads from the
    object, and the residue reaches the extensions:
    :meth:`choice_deltas`, :meth:`segments`, :meth:`reasoning`, :meth:`tool_calls`, :meth:`tool_call`, :meth:`logprobs`,
    :meth:`usage_info`, :meth:`rest_of_other_part`, and :meth:`is_marked`, which takes nothing. They do not change
    while ``ProviderInfo.api`` does not. A subclass stores its state of an answer in ``state.own``, under its own class.
    :meth:`choice_of` returns the choice of an event.

    Attributes:
        title: the provider's name as people write it.
        documentation: the URL of the provider's documentation.
        endpoints: the HTTP paths with answers in this dialect.
        text_paths: see ``ProviderInfo``. A subclass that overrides a method must list the paths again for which the promise
            holds. Otherwise its hooks get every event.
        message_paths: see ``ProviderInfo``.
        timestamp_key: see ``ProviderInfo``.
        usage_key: see ``ProviderInfo``.
        pieces: see ``ProviderInfo``.
        cumulative: see ``ProviderInfo``.
        speaks: see ``ProviderInfo``.
        marks: the paths of values that no other server sends, such as ``x_groq`` or ``choices[].matched_stop``. Any of
            them makes recognition certain.
        cached_tokens: the paths of the cached prompt tokens in the usage object. The first one present counts, and
            the others are taken if they are equal.
        cache_write_tokens: likewise, the tokens written to a cache.
        reasoning_tokens: likewise, the completion's tokens that were reasoning.
        usage_details: likewise, each count of ``UsageDetails`` by its name.
        cost_currency: the currency, as a code of ISO 4217, of a usage object's plain number ``cost``, or ``None`` if
            its currency is unknown.
        finish_reasons: the provider's finish words.
        reasoning_name: the provider's name for reasoning. Both names are read, and this one is written.
        way_back: see ``ProviderInfo``.
        numbers_calls: whether the calls of a whole answer have an ``index`` too.
        sentinel: whether every stream ends with ``[DONE]``. In a family, the dialect of the stream counts.
        access: the address of the server, or ``None`` if only the user knows it.
        call_ids: see ``ProviderInfo``.
        call_names: see ``ProviderInfo``.
        hosted_tools: the item of ``tools`` for each kind of tool that the server runs.
    """

    title: ClassVar[str] = "OpenAI Chat Completions"
    documentation: ClassVar[str | None] = None
    endpoints: ClassVar[tuple[str, ...]] = ("/v1/chat/completions", "/v1/completions")
    text_paths: ClassVar[tuple[str, ...]] = (
        "choices[0].delta.content",
        "choices[0].delta.reasoning",
        "choices[0].delta.reasoning_content",
        "choices[0].delta.tool_calls[0].function.arguments",
        "choices[0].text",
    )
    message_paths: ClassVar[tuple[str, ...]] = ("choices[].message", "choices[].delta")
    timestamp_key: ClassVar[str | None] = None
    usage_key: ClassVar[str | None] = "usage"
    pieces: ClassVar[tuple[str, ...]] = (
        "choices[].token_ids",
        "choices[].delta.annotations",
        "choices[].logprobs.content",
        "choices[].logprobs.reasoning_content",
        "choices[].logprobs.refusal",
        "choices[].logprobs.text_offset",
        "choices[].logprobs.token_ids",
    )
    cumulative: ClassVar[tuple[str, ...]] = ()
    speaks: ClassVar[tuple[str, ...]] = ()
    marks: ClassVar[tuple[str, ...]] = ()
    cached_tokens: ClassVar[tuple[str, ...]] = (wire.COUNTS["cached_tokens"],)
    cache_write_tokens: ClassVar[tuple[str, ...]] = (wire.COUNTS["cache_write_tokens"],)
    reasoning_tokens: ClassVar[tuple[str, ...]] = (wire.COUNTS["reasoning_tokens"],)
    usage_details: ClassVar[Mapping[str, tuple[str, ...]]] = {
        name: (path,) for name, path in wire.DETAILS.items()
    }
    cost_currency: ClassVar[str | None] = None
    sentinel: ClassVar[bool] = True
    access: ClassVar[Access | None] = None
    call_ids: ClassVar[CallIds | None] = None
    call_names: ClassVar[str | None] = None
    hosted_tools: ClassVar[Mapping[str, Mapping[str, Any]]] = MappingProxyType({})
    reasoning_name: ClassVar[str] = "reasoning_content"
    way_back: ClassVar[WayBack] = WayBack(shows_pictures=True, names_speakers=True)
    numbers_calls: ClassVar[bool] = False
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = wire.FINISH_REASONS

    @property
    def logprob_paths(self) -> dict[str, LogprobReader]:
        """See ``ProviderInfo``."""
        return {"choices[0].logprobs": self.logprobs}

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """See the hook ``provider_info``."""
        names = (field.name for field in attrs.fields(ProviderInfo))
        payload = {name: getattr(self, name) for name in names if hasattr(self, name)}
        return ProviderInfo(**payload)

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        """See the hook ``recognizes``."""
        if not isinstance(event, dict) or event.get("type") == "error":
            return Recognition.NO  # such an error is one of Anthropic's or of the Responses API
        if isinstance(event.get("choices"), list):
            return Recognition.CERTAIN if self.is_marked(event) else Recognition.POSSIBLE
        return Recognition.POSSIBLE if is_error(event) else Recognition.NO

    def is_marked(self, event: dict[str, Any]) -> bool:
        """Whether *event*, which has choices, is this server's for certain: it has one of the :attr:`marks`."""
        return has_mark(event, self.marks)

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """See the hook ``map_delta``."""
        event = require_object(event)
        if is_error(event):
            usage = event.get("usage")
            yield take_error(event, self.map_error(None, event))
            if usage is not None:
                event["usage"] = usage  # what the failure cost counts all the same
            return
        if "choices" not in event and event.get("object") != wire.CHUNK:
            raise unknown_event(event, "no choices in it, so it is not in OpenAI's dialect")
        is_same = state.id is not None and event.get("id") == state.id
        wrong: WireTypeError | None = None
        try:
            state.take_identity(event)
        except WireTypeError as error:
            wrong = error  # once the answer has been read: nothing of it is to be lost
        known = state.own(Choices)
        known.first = None
        silent = known.silent
        silent.clear()
        choices, bare = take_objects(event, "choices"), 0
        for number, choice in enumerate(choices):
            # It stays, to identify the residue of the choice.
            index = choice.get("index")
            if type(index) is not int or index >> 63:
                take_count(choice, "index")  # takes a null, and refuses other values except counts
                index = number
            if number == 0:
                known.first = index
            state.continues = is_same and "delta" in choice
            part, whole = self._part(choice, index, state)
            has_said = False
            try:
                for delta in self.choice_deltas(choice, part, index, state, whole=whole):
                    has_said = True
                    yield delta
            except WireTypeError:
                text = part.get("content")
                if text and type(text) is str:  # later text is just as valid
                    yield ResponseDelta(content_delta=text, choice=index)
                raise
            if not has_said:
                silent.add(index)
            elif not part:
                choice.pop("message" if whole else "delta", None)
                bare += choice.keys() == _NUMBER
        if bare and bare == len(choices):
            del event["choices"]  # as in most events: only the index of the text remains
        if wrong is not None:
            raise wrong

    def choice_of(self, state: MappingState) -> int | None:
        """Return the number of the first choice in the present event, or ``None`` without any."""
        return state.own(Choices).first

    def _part(self, choice: dict[str, Any], index: int, state: MappingState) -> tuple[dict[str, Any], bool]:
        """Return the part of *choice* to read, empty if it has none, and whether it is a message."""
        if "delta" in choice and "message" not in choice:  # most of any stream
            name, other = "delta", None
        elif "message" in choice and "delta" not in choice and index not in state.ends:  # any body
            name, other = "message", None
        else:
            name = speaking_part(choice, has_spoken=state.has_spoken(index))
            other = "delta" if name == "message" else "message"
            if name == "message" and "message" in choice and state.has_ended(index):
                raise TrailingContentError("a second answer has begun")
        if index not in state.choices:
            state.begin(index)
        part = take_object(choice, name) or {}
        if other is not None and other in choice:
            # It is not part of the answer, so its extra fields of any kind go to the extensions.
            extra = take_beside(choice, other, part)
            if extra:
                self.rest_of_other_part(extra, part, index, state)
        return part, name == "message"

    def rest_of_other_part(
        self, other: dict[str, Any], part: dict[str, Any], choice: int, state: MappingState
    ) -> None:
        """Take repetitions in another form from *other*.

        Args:
            other: the residue of the part of *choice* that is not read.
            part: the part to read next.
            choice: the number of the choice.
            state: the state of this answer.
        """

    def choice_deltas(
        self, choice: dict[str, Any], part: dict[str, Any], index: int, state: MappingState, *, whole: bool
    ) -> Iterable[ResponseDelta]:
        """Return the deltas of one choice: its text, its tool calls, its other segments, its end.

        Args:
            choice: the choice.
            part: its delta or message, empty if it has none.
            index: its number.
            state: the state of this answer.
            whole: whether the part is a message, not a piece of one.
        """
        reasoning = self.reasoning(part, index, state)
        if reasoning is not None and type(reasoning) is not str:
            raise self._gave("reasoning", reasoning, "a string or None", state)
        refusal = take_string(part, "refusal")
        try:
            content = take_text(part, state)
        except WireTypeError:
            if reasoning or refusal:  # which are right
                yield ResponseDelta(
                    reasoning_delta=reasoning or None, refusal_delta=refusal or None, choice=index
                )
            raise
        if "refusal" in part:
            refusal = take_string(part, "refusal")  # of the content's parts
        if "text" in choice:
            if not content:
                content = take_string(choice, "text")
            elif not take_same(choice, "text", content):
                take_same(choice, "text", "")
        logprobs = self.logprobs(choice, content)
        if logprobs is not None and type(logprobs) is not tuple:
            raise self._gave("logprobs", logprobs, "a tuple or None", state)
        if refusal or logprobs:
            yield ResponseDelta(
                content_delta=content or None,
                reasoning_delta=reasoning or None,
                refusal_delta=refusal or None,
                logprobs=logprobs,
                choice=index,
            )
        elif content or reasoning:
            yield said(content or None, reasoning or None, choice=index)
        for call in self.tool_calls(part, index, state, whole=whole):
            if type(call) is not ToolCallDelta:
                raise self._gave("tool_calls", call, "ToolCallDelta", state)
            yield said(None, None, call, choice=index)
        if part:
            take_same(part, "role", "assistant")
            if part.get("annotations") == []:
                del part["annotations"]  # OpenAI sends an empty list where others send null
        for segment in self.segments(part, index, state):
            if type(segment) is not Segment:
                raise self._gave("segments", segment, "Segment", state)
            yield ResponseDelta(segment=segment, choice=index)
        finish = take_string(choice, "finish_reason")
        if finish:
            yield ended(finish, choice=index)
        if NATIVE in choice:
            end = native_end(choice, index, self.finish_reasons, self.speaks, state)
            if end is not None:
                yield end

    def _gave(self, method: str, value: object, wanted: str, state: MappingState) -> PluginError:
        """Return the error of an override that returned *value*, at its origin instead of in a later delta."""
        cause = f"{type(self).__qualname__}.{method} gave {type(value).__name__}, not {wanted}"
        return PluginError(f"provider {state.provider!r}: {cause}", plugin=state.provider)

    def reasoning(self, part: dict[str, Any], choice: int, state: MappingState) -> str | None:
        """Return the reasoning of a message or delta. Under both of its names it counts once."""
        if "reasoning" not in part and "reasoning_content" not in part:
            return None
        raw, names = take_string(part, "reasoning"), {"reasoning"}
        if not raw:
            raw, names = take_string(part, "reasoning_content"), {"reasoning_content"}
        elif part.get("reasoning_content") == raw:
            names.add("reasoning_content")
            del part["reasoning_content"]
        else:
            take_same(part, "reasoning_content", "")
        if not raw or state.own(Echo).is_repeated(names, raw, choice, state):
            return None
        return raw

    def segments(self, part: dict[str, Any], choice: int, state: MappingState) -> Iterable[Segment]:
        """Return the segments of a message or delta other than text and tool calls. The dialect itself has none."""
        return ()

    def tool_calls(
        self, part: dict[str, Any], choice: int, state: MappingState, *, whole: bool
    ) -> Iterator[ToolCallDelta]:
        """The tool calls, or fragments of them, of a message or delta."""
        legacy = take_object(part, "function_call")
        calls = take_objects(part, "tool_calls")
        are_full = all(calls)
        for call in calls:
            if legacy and legacy == call.get("function"):
                legacy.clear()  # some servers send a forced call in both forms
            yield self.tool_call(call, choice, state, whole=whole)
        if are_full and not any(calls):
            part.pop("tool_calls", None)  # nothing is left of them
        if legacy and not calls:
            yield self.tool_call({"index": 0, "function": legacy}, choice, state, whole=False)

    def tool_call(
        self, call: dict[str, Any], choice: int, state: MappingState, *, whole: bool
    ) -> ToolCallDelta:
        """One tool call, or a fragment of one."""
        take_same(call, "type", "function")
        function = take_object(call, "function")
        kind = CallKind.CUSTOM if not function and "custom" in call else None
        if kind is not None:
            function = take_object(call, "custom") or {}
            arguments, is_all = take_string(function, "input"), False
        else:
            arguments, is_all = take_arguments(function or {})
        # An object is all the arguments, so a fragment with a tool's name is a separate call.
        whole = whole or (is_all and bool((function or {}).get("name")))
        delta = state.take_tool_call(call, function or {}, arguments=arguments, choice=choice, whole=whole)
        if not function:
            call.pop("function", None)
        return delta if kind is None else attrs.evolve(delta, kind=kind)

    def logprobs(self, choice: dict[str, Any], content: str | None) -> tuple[TokenLogprob, ...] | None:
        """Return the log probabilities of a choice, in the shape of chat or of completions, or ``None`` without any.

        Args:
            choice: the choice.
            content: the text in the same event, ``None`` or ``""`` without any.
        """
        logprobs = accept_object(choice, "logprobs")
        if not logprobs:
            return None
        if logprobs.get("tokens") is not None:
            return accept_legacy_logprobs(logprobs)
        return accept_logprobs(logprobs, "content")

    def spell(self, event: dict[str, Any]) -> None:
        """Convert *event*, a body or chunk in OpenAI's words, to this server's words: the reverse of reading.

        Values with several paths are written to the first one.
        """
        paths = {name: getattr(self, name)[0] for name in SEVERAL_PATHS}
        paths |= {name: places[0] for name, places in self.usage_details.items() if name in wire.DETAILS}
        spell(event, paths, self.reasoning_name, numbers_calls=self.numbers_calls)

    @hookimpl
    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        """See the hook ``map_finish_reason``."""
        return self.finish_reasons.get(reason)

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """See the hook ``map_usage``. Some servers send the counts inside a choice; equal ones in both places count once."""
        inside = None
        choices = event.get("choices")
        for choice in choices if type(choices) is list else ():
            if type(choice) is dict and choice.get("usage"):
                counts = (
                    None if take_same(choice, "usage", event.get("usage")) else accept_object(choice, "usage")
                )
                inside = (self.usage_info(counts, state) if counts else None) or inside
        usage = accept_object(event, "usage") if "usage" in event else None
        return (self.usage_info(usage, state) if usage else None) or inside

    def usage_info(self, usage: dict[str, Any], state: MappingState) -> UsageInfo | None:
        """Return the counts of a usage object, or ``None`` without any."""
        prompt = accept_count(usage, "prompt_tokens")
        completion = accept_count(usage, "completion_tokens")
        look_at_count(usage, "total_tokens")
        if prompt is not None:
            take_same(usage, "total_tokens", prompt + (completion or 0))
        if not usage:
            return state.usage_info(prompt, completion)
        return state.usage_info(
            prompt,
            completion,
            cached_tokens=accept_count_at(usage, self.cached_tokens),
            reasoning_tokens=accept_count_at(usage, self.reasoning_tokens),
            cache_write_tokens=accept_count_at(usage, self.cache_write_tokens),
            cost=look_at_cost(usage, self.cost_currency),
            details=accept_details(usage, self.usage_details),
        )

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """See the hook ``extensions``. A choice with only its number left is dropped."""
        remainder: dict[str, Any] = event
        if "choices" in remainder:
            silent = state.own(Choices).silent
            remaining = [c for c in remainder["choices"] if c.keys() != _NUMBER or c["index"] in silent]
            if remaining:
                remainder["choices"] = remaining
            else:
                del remainder["choices"]
        return remainder

    @hookimpl
    def map_error(self, status: int | None, body: Any) -> ErrorInfo | None:
        """See the hook ``map_error``. *status* is ``None`` for an error inside a stream."""
        return error_info(status, body)


_NUMBER = {"index"}
