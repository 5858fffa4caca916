"""OpenAI's Chat Completions and Completions dialect: the building block for every server that speaks it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import suppress
from functools import cached_property
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

import attrs

from crosswalk.errors import ErrorInfo, MappingError, PluginError, TrailingContentError, WireTypeError
from crosswalk.lazy import later
from crosswalk.mapping.blocks import accept_legacy_logprobs, accept_logprobs
from crosswalk.mapping.failures import VendorErrors, error_delta, error_info, take_error
from crosswalk.mapping.fields import (
    CREATED,
    FINISH,
    ID,
    MODEL,
    REFUSAL,
    TEXT,
    FieldRow,
    Level,
    Said,
    Take,
    check_map,
    count,
    has_mark,
    level_of,
    read_rows,
    same,
    take_arguments,
)
from crosswalk.plugin.hooks import (
    Access,
    CallIds,
    LogprobReader,
    ProviderInfo,
    Recognition,
    WayBack,
    hookimpl,
)
from crosswalk.plugin.registry import registry, unknown_event
from crosswalk.plugin.state import (
    CountPaths,
    MappingState,
    accept_object,
    counted,
    look_at_cost,
    require_object,
    take_count,
    take_object,
    take_objects,
    take_same,
    take_string,
)
from crosswalk.types.delta import ResponseDelta, ended, said
from crosswalk.types.json import dump_json, same_json
from crosswalk.types.message import CallKind, ToolCallDelta
from crosswalk.types.usage import Provenance, UsageInfo
from crosswalk.types.values import PAUSES, FinishReason, Segment, SegmentType, TokenLogprob
from crosswalk.wire import chat as wire
from crosswalk.wire.chat import SPEECH

if TYPE_CHECKING:
    from crosswalk.request import ChatRequest, HTTPRequest

# -------------------------------------------------------------------------------- chat said
# What a choice of OpenAI's dialect says beside the canonical order, for the rows that its look-alikes add.


class ChatSaid(Said):
    """The values of a choice, or of an event apart from its choices.

    Attributes:
        dialect: the dialect with the rows that read it.
        whole: whether it is a whole message, not a piece of one.
        first: deltas before its text, such as reasoning in an order with other values.
        last: deltas after its end. They are asked for when its end has been said.
        asked: the last function of several keys, which took all of them.
    """

    last: Iterable[ResponseDelta] = ()
    asked: object = None

    def __init__(self, dialect: OpenAIChatDialect, choice: int = 0, whole: bool = True) -> None:
        self.dialect, self.choice, self.whole = dialect, choice, whole
        self.first: list[ResponseDelta] = []
        self.calls: list[ToolCallDelta] = []
        self.deltas: list[ResponseDelta] = []

    def speak_first(self) -> list[ResponseDelta]:
        """Return the first deltas and all others before the end."""
        finish, error = self.finish, self.error
        self.finish = self.error = None
        deltas = [*self.first, *self.speak()]
        self.finish, self.error = finish, error
        return deltas

    def speak_last(self) -> Iterator[ResponseDelta]:
        """Yield the end and the last deltas. The error is raised after them."""
        if self.finish is not None:
            yield ended(self.finish, choice=self.choice)
        yield from self.last
        if self.error is not None:
            raise self.error


# --------------------------------------------------------------------------- native finish
# The finish word of the provider behind an aggregator, if the aggregator's own word is less exact.


NATIVE_KEY: Final = "native_finish_reason"
"""The keys of the word in OpenRouter's answers and in services in front of it."""


def _take_native_end(choice: dict[str, Any], key: str, said: ChatSaid, state: MappingState) -> None:
    """Say the end of *choice* in its native word, unless the word that was read is as exact.

    The native word stays, and reaches the extensions.
    """
    word = choice[key]
    if isinstance(word, str) and word:
        said.last = chain(said.last, _native_end(word, choice, said, state))


def _native_end(
    word: str, choice: dict[str, Any], said: ChatSaid, state: MappingState
) -> Iterator[ResponseDelta]:
    reason = said.dialect.finish_reasons.get(word) or _meaning(word, said.dialect.speaks)
    end = state.ends.get(said.choice)
    if reason is FinishReason.ERROR:
        message = f"the provider ended the answer with {word[:60]!r}"
        yield error_delta(error_info(None, {"code": word, "message": message}))
    elif reason is None or end is None:
        return
    elif reason is not FinishReason.STOP:
        yield ResponseDelta(finish_reason=reason, choice=said.choice)
    elif word in PAUSES and end.reason is reason and end.finish_word not in PAUSES:
        choice["finish_reason"] = end.finish_word
        yield ResponseDelta(finish_reason=reason, raw_finish_reason=word, choice=said.choice)


def _meaning(word: str, provider_names: Iterable[str]) -> FinishReason | None:
    """Return the meaning of *word* for the first shipped provider that declares it. Canonical words keep their meaning.

    Only shipped providers count, so that no installed plugin changes the end of another provider's answer.
    """
    with suppress(ValueError):
        return FinishReason(word)
    for name in dict.fromkeys((*provider_names, *registry.names())):
        with suppress(PluginError):  # it is not shipped, or broken
            mapper = registry.shipped(name)
            reason = mapper.map_finish_reason(word, mapper.new_state())  # of its own first dialect
            if reason is not None:
                return reason
    return None


# --------------------------------------------------------------------------------- choices
# The choices of OpenAI's chat dialect: the part to read, and the repetitions in the other part.
#
# A chunk has a delta and a body has a message, but Perplexity sends both in both: the message so far next to a chunk's
# delta, and an empty delta next to a body's message. Some servers send the same reasoning under two names.


class Choices:
    """The state of choices, apart from their content.

    Attributes:
        first: the number of the first one in the present event, or ``None`` without any.
        silent: the choices that the present event opens without a delta.
    """

    first: int | None = None
    silent: Set[int] = frozenset()


def speaking_part(choice: dict[str, Any], *, has_spoken: bool = False) -> str:
    """Return the part of *choice* to read: ``delta`` or ``message``.

    If there are two, it is the delta if that has content, if the message is empty, or if the choice *has_spoken* in an
    earlier event, which the message repeats. Otherwise it is the message. A part of a wrong type counts as content, so
    that reading refuses it.
    """
    if "delta" not in choice:
        return "message"
    if "message" not in choice or has_spoken:
        return "delta"
    return "delta" if _speaks(choice["delta"]) or not _speaks(choice["message"]) else "message"


def take_beside(choice: dict[str, Any], name: str, part: dict[str, Any]) -> dict[str, Any] | None:
    """Take the repetitions of *part*, which is read, from the other part *name* of *choice*.

    Returns the residue, or ``None`` if it is not an object.
    """
    other = choice[name]
    if other is None or other == {}:
        del choice[name]
    if type(other) is not dict:
        return None
    for key in list(other):
        value = other[key]
        if (
            (key == "role" and value == "assistant")
            or (key in SPEECH and (value is None or value == "" or value == []))
            or (key in part and same_json(value, part[key]))
        ):
            del other[key]
    return other


def _speaks(part: Any) -> bool:
    return any(part.get(name) for name in SPEECH) if type(part) is dict else part is not None


class Echo:
    """Decides whether reasoning under a second name repeats the first, in pieces of any length.

    Two names with new text in one event, or with different texts, are not an echo. From then on all of them count.
    """

    def __init__(self) -> None:
        self._names: dict[int, set[str]] = {}  # by choice, the names under which reasoning counts
        # By choice, the position of the repetition: the part, its piece, and the characters in that piece.
        self._positions: dict[int, tuple[int, int, int]] = {}

    def is_repeated(self, names: Set[str], text: str, choice: int, state: MappingState) -> bool:
        """Return whether *text*, under all of *names* of *choice* at once, repeats the text of other names in order."""
        first_names = self._names.setdefault(choice, set(names))
        if first_names.isdisjoint(names) and self._goes_on(text, choice, state):
            return True
        first_names |= names
        return False

    def _goes_on(self, text: str, choice: int, state: MappingState) -> bool:
        parts = state.choice(choice).parts
        part_index, piece_index, start = self._positions.get(choice, (0, 0, 0))
        position = 0
        while position < len(text):
            if part_index == len(parts):
                return False
            part = parts[part_index]
            if type(part) is not tuple or part[0] is not SegmentType.REASONING or piece_index == len(part[1]):
                part_index, piece_index = part_index + 1, 0
                continue
            earlier_text = part[1][piece_index]
            count = min(len(text) - position, len(earlier_text) - start)
            if text[position : position + count] != earlier_text[start : start + count]:
                return False
            position, start = position + count, start + count
            if start == len(earlier_text):
                piece_index, start = piece_index + 1, 0
        self._positions[choice] = part_index, piece_index, start
        return True


# ----------------------------------------------------------------------------- chat leaves
# The values in events of OpenAI's chat dialect: texts, arguments and counts, in the forms of servers, and back.


MULTI_PATH_COUNTS: Final = tuple(name for name, path in wire.COUNTS.items() if "." in path)
"""The counts with different paths on some servers."""
_OPENAI_PATHS: Final = {**wire.COUNTS, **wire.DETAILS}


def take_text(part: dict[str, Any], state: MappingState) -> str | None:
    """Take the text of a message or delta: a string, the text parts of a list, or an object of JSON mode as its JSON.

    The refusal parts of a list become the ``refusal`` of *part*, if it has no refusal.
    A part of another type stays in the list, and the text is noted as unmapped.

    Raises:
        WireTypeError: it is something else.
    """
    content = part.pop("content", None)
    if content is None or type(content) is str:
        return content
    if type(content) is list:
        part["content"] = content
        return _take_parts(part, state)
    if type(content) is dict:
        state.note("message.content", Provenance.DERIVED)
        return dump_json(content).decode()
    part["content"] = content
    return take_string(part, "content")


_TEXT_PART_TYPES = (None, "text", "output_text")


def _take_parts(part: dict[str, Any], state: MappingState) -> str | None:
    """Take the text parts of a list of content. ``None`` without any."""
    items = take_objects(part, "content")
    texts, refusals = [], []
    for item in items:
        kind = item.get("type")
        if (kind is None or type(kind) is str) and kind in _TEXT_PART_TYPES and item.get("text") is not None:
            texts.append(take_string(item, "text"))
            item.pop("type", None)
        elif kind == "refusal" and not part.get("refusal") and type(item.get("refusal")) is str:
            refusals.append(take_string(item, "refusal"))
            item.pop("type", None)
        elif item:  # or another method has taken all of it
            state.note_unknown_part()
    if refusals:
        part["refusal"] = "".join(filter(None, refusals))
    if not any(items):
        part.pop("content", None)
    return "".join(text for text in texts if text is not None) if texts else None


def is_error(event: dict[str, Any]) -> bool:
    """Return whether *event* reports a failed request."""
    return bool(event.get("error")) or event.get("object") == "error"


def spell(
    event: dict[str, Any], paths: Mapping[str, str], reasoning_name: str, *, numbers_calls: bool
) -> None:
    """Move the counts of *event*, a body or chunk in OpenAI's words, to these *paths*.

    Args:
        event: the event, which is changed.
        paths: the server's path of each count.
        reasoning_name: the server's name for reasoning.
        numbers_calls: whether the calls of a whole answer have an ``index`` too.
    """
    for choice in event.get("choices", ()):
        part = choice.get("message") or choice.get("delta") or {}
        if "reasoning_content" in part and reasoning_name not in part:
            part[reasoning_name] = part.pop("reasoning_content")
        if numbers_calls:
            for index, call in enumerate(part.get("tool_calls") or ()):
                call.setdefault("index", index)
        if choice.get("finish_reason") == "function_call" and part.get("tool_calls"):
            part["function_call"] = part.pop("tool_calls")[0]["function"]
    usage = event.get("usage")
    if usage:
        for name, path in paths.items():
            _move(usage, _OPENAI_PATHS[name], path)


def _move(usage: dict[str, Any], old_path: str, new_path: str) -> None:
    """Move the count at the path *old_path* of *usage* to the path *new_path*. An object that becomes empty is removed."""
    *groups, name = old_path.split(".")
    holders = [usage]
    for group in groups:
        holders.append(holders[-1].get(group, {}))
    if old_path == new_path or name not in holders[-1]:
        return
    count = holders[-1].pop(name)
    for group, holder, inner in reversed([*zip(groups, holders, holders[1:], strict=False)]):
        if not inner:
            del holder[group]
    *groups, name = new_path.split(".")
    for group in groups:
        usage = usage.setdefault(group, {})
    usage[name] = count


# ----------------------------------------------------------------------------- openai chat
# OpenAI's Chat Completions and Completions dialect: the building block for every server that speaks it.
#
# Facts: provider document "OpenAI Chat Completions". A provider with this API subclasses
# :class:`OpenAIChatDialect` and overrides what differs.


def _take_reasoning(part: dict[str, Any], key: str, said: ChatSaid, state: MappingState) -> None:
    if said.reasoning is None:
        reasoning = said.dialect.reasoning(part, said.choice, state)
        if reasoning is not None and type(reasoning) is not str:
            raise _gave(said, "reasoning", reasoning, "a string or None", state)
        said.reasoning = reasoning or ""


def take_content(part: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
    """Take the text of a message or delta in any of its forms."""
    said.text = take_text(part, state)
    if "refusal" in part:
        said.refusal = take_string(part, "refusal")  # of the content's parts


def _take_logprobs(choice: dict[str, Any], key: str, said: ChatSaid, state: MappingState) -> None:
    logprobs = said.dialect.logprobs(choice, said.text)
    if logprobs is not None and type(logprobs) is not tuple:
        raise _gave(said, "logprobs", logprobs, "a tuple or None", state)
    said.logprobs = logprobs


def _take_calls(part: dict[str, Any], key: str, said: ChatSaid, state: MappingState) -> None:
    if said.asked is _take_calls:
        return
    said.asked = _take_calls
    for call in said.dialect.tool_calls(part, said.choice, state, whole=said.whole):
        if type(call) is not ToolCallDelta:
            raise _gave(said, "tool_calls", call, "ToolCallDelta", state)
        said.calls.append(call)


def _take_segments(part: dict[str, Any], key: str, said: ChatSaid, state: MappingState) -> None:
    for segment in said.dialect.segments(part, said.choice, state):
        if type(segment) is not Segment:
            raise _gave(said, "segments", segment, "Segment", state)
        said.deltas.append(ResponseDelta(segment=segment, choice=said.choice))


_Step: TypeAlias = tuple[bool, str, str | None, tuple[Any, ...], Take | None]
"""A row of a choice: whether it is one of its part, its key, word, silent values, and function."""
_IDENTITY: Final = {"id": ID, "model": MODEL, "created": CREATED}
_METHODS: Final[Mapping[str, Take]] = {
    "logprobs": _take_logprobs,
    "reasoning": _take_reasoning,
    "segments": _take_segments,
    "tool_calls": _take_calls,
}
"""The functions of rows that ask a method of the dialect."""


def _gave(said: ChatSaid, method: str, value: object, expected_type: str, state: MappingState) -> PluginError:
    """Return the error of an override that returned *value*, at its origin instead of in a later delta."""
    cause = f"{type(said.dialect).__qualname__}.{method} gave {type(value).__name__}, not {expected_type}"
    return PluginError(f"provider {state.provider!r}: {cause}", plugin=state.provider)


class OpenAIChatDialect:
    """The hooks for ``/v1/chat/completions`` and ``/v1/completions``, whole and streamed, and for asking such a server.

    It reads by rows, and a subclass adds those of its server: ``part_rows = {**OpenAIChatDialect.part_rows, "mood": ...}``.
    It may also override the methods in this list, and the hooks. Each method takes the values that it reads from the
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
        model_classes: see ``ProviderInfo``.
        batch_file: see ``ProviderInfo``.
        names: see ``ProviderInfo``.
        style: the differences of the server's requests from OpenAI's, as arguments of an ``OpenAIChatStyle``.
        errors: what the vendor says of its errors, or ``None`` if the general rules suffice.
        event_rows: the rows of an event, by key, except its choices and counts. Their values come before the choices, but
            an end, the last deltas and an error come after them.
        choice_rows: the rows of a choice. Their functions get a :class:`ChatSaid`, as those of all three.
        part_rows: the rows of its message or delta, which are asked before.
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
    message_paths: ClassVar[tuple[str, ...]] = ("choices[].message", "choices[].delta", "choices[].*")
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
    style: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    errors: ClassVar[VendorErrors | None] = None

    event_rows: ClassVar[Mapping[str, FieldRow]] = MappingProxyType(_IDENTITY)
    part_rows: ClassVar[Mapping[str, FieldRow]] = MappingProxyType(
        {
            "reasoning": FieldRow("reasoning", _take_reasoning, silent=(None,)),
            "reasoning_content": FieldRow("reasoning", _take_reasoning, silent=(None,)),
            "refusal": REFUSAL,
            "content": FieldRow("text", take_content, "text", (None,)),
            "tool_calls": FieldRow("tool_calls", _take_calls, silent=(None,)),
            "function_call": FieldRow("tool_calls", _take_calls, silent=(None,)),
            "role": same("assistant"),
            "annotations": FieldRow("always []", None, silent=([],)),  # of OpenAI, where others send null
        }
    )
    choice_rows: ClassVar[Mapping[str, FieldRow]] = MappingProxyType(
        {
            "text": TEXT,
            "logprobs": FieldRow("logprobs", _take_logprobs, silent=(None,)),
            "finish_reason": FINISH,
            NATIVE_KEY: FieldRow("finish_reason", _take_native_end),
        }
    )

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Check the rows of a subclass.

        Raises:
            TypeError: one of them is no :class:`FieldRow`.
        """
        super().__init_subclass__(**arguments)
        for name in ("event_rows", "choice_rows", "part_rows"):
            check_map(f"{cls.__name__}.{name}", getattr(cls, name), FieldRow, "{'musing': REASONING}")

    @property
    def logprob_paths(self) -> dict[str, LogprobReader]:
        """See ``ProviderInfo``."""
        return {"choices[0].logprobs": self.logprobs}

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """See the hook ``provider_info``."""
        return ProviderInfo.of(self)

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
        if type(event) is not dict:
            event = require_object(event)
        told: ChatSaid | None = None
        event_keys, event_level, has_identity = self._event_level
        is_same = state.id is not None and event.get("id") == state.id
        if event_keys and not event_keys.isdisjoint(event):
            told = ChatSaid(self)
            read_rows(event_level, event, told, state)
            yield from told.speak_first()
        kind = event.get("object")
        if kind == "":
            del event["object"]  # as Azure's chunks of verdicts have it, with an empty id
        if event.get("error") or kind == "error":
            usage = event.get("usage")
            yield take_error(event, self.map_error(None, event))
            if usage is not None:
                event["usage"] = usage  # what the failure cost counts all the same
            return
        if "choices" not in event and kind != wire.CHUNK:
            raise unknown_event(event, "no choices in it, so it is not in OpenAI's dialect")
        type_error: WireTypeError | None = None
        try:
            if has_identity:
                state.take_identity(event)
        except WireTypeError as error:
            type_error = error  # once the answer has been read: nothing of it is to be lost
        choices_state = state.own(Choices)
        choices_state.first, choices_state.silent = None, _NO_CHOICES
        choices, bare_count = event.get("choices"), 0
        if type(choices) is not list or len(choices) != 1 or type(choices[0]) is not dict:  # unlike most
            choices = take_objects(event, "choices")
        # An override may look at what is left before it goes on, so it gets a generator.
        is_plain = type(self).choice_deltas is OpenAIChatDialect.choice_deltas
        for number, choice in enumerate(choices):
            # It stays, to identify the residue of the choice.
            index = choice.get("index")
            if type(index) is not int or index >> 63:
                take_count(choice, "index")  # takes a null, and refuses other values except counts
                index = number
            if number == 0:
                choices_state.first = index
            state.continues = is_same and "delta" in choice
            part, whole = choice.get("delta"), False
            if not part or type(part) is not dict or "message" in choice or index not in state.choices:
                part, whole = self._part(choice, index, state)
            has_said = False
            try:
                for delta in (
                    self._read_choice(choice, part, index, state, whole)
                    if is_plain
                    else self.choice_deltas(choice, part, index, state, whole=whole)
                ):
                    has_said = True
                    yield delta
            except WireTypeError:
                text = part.get("content")
                if text and type(text) is str:  # later text is just as valid
                    yield ResponseDelta(content_delta=text, choice=index)
                raise
            if not has_said:
                choices_state.silent |= {index}
            elif not part:
                choice.pop("message" if whole else "delta", None)
                bare_count += choice.keys() == _INDEX_KEYS
        if bare_count and bare_count == len(choices):
            del event["choices"]  # as in most events: only the index of the text remains
        if told is not None:
            yield from told.speak_last()
        if type_error is not None:
            raise type_error

    def choice_of(self, state: MappingState) -> int | None:
        """Return the number of the first choice in the present event, or ``None`` without any."""
        return state.own(Choices).first

    def _part(self, choice: dict[str, Any], index: int, state: MappingState) -> tuple[dict[str, Any], bool]:
        """Return the part of *choice* to read, empty if it has none, and whether it is a message."""
        if "delta" in choice and "message" not in choice:  # the first chunk of any stream
            name, other_name = "delta", None
        elif "message" in choice and "delta" not in choice and index not in state.ends:  # any body
            name, other_name = "message", None
        else:
            name = speaking_part(choice, has_spoken=state.has_spoken(index))
            other_name = "delta" if name == "message" else "message"
            if name == "message" and "message" in choice and state.has_ended(index):
                raise TrailingContentError("a second answer has begun")
        if index not in state.choices:
            state.choice(index)
        part = take_object(choice, name) or {}
        if other_name is not None and other_name in choice:
            # It is not part of the answer, so its extra fields of any kind go to the extensions.
            extra_fields = take_beside(choice, other_name, part)
            if extra_fields:
                self.rest_of_other_part(extra_fields, part, index, state)
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
        yield from self._read_choice(choice, part, index, state, whole)

    def _read_choice(
        self, choice: dict[str, Any], part: dict[str, Any], index: int, state: MappingState, whole: bool
    ) -> Iterable[ResponseDelta]:
        """See :meth:`choice_deltas`. It reads at once, and makes a :class:`ChatSaid` only if a row's function is asked."""
        shape = (*part, None, *choice)
        words: dict[str, Any] = {}
        told = None
        for is_inner, key, word, silent, take in self._plans.get(shape) or self._plan(shape, part, choice):
            holder = part if is_inner else choice
            value = holder.get(key)
            if word is not None and type(value) is str and word not in words:
                del holder[key]
                if value:
                    words[word] = value
            elif value in silent:
                holder.pop(key, None)  # unless an earlier row has taken it
            elif take is not None:
                if told is None:
                    told = ChatSaid(self, index, whole)
                    told.__dict__.update(words)
                    words = told.__dict__
                try:
                    take(holder, key, told, state)
                except MappingError as error:  # what is beside it is as valid
                    told.error = told.error or error
        if told is None and "refusal" in words:
            told = ChatSaid(self, index, whole)
            told.__dict__.update(words)
        if told is not None:
            is_plain = told.last == () and not told.first
            return told.speak() if is_plain else chain(told.speak_first(), told.speak_last())
        text, reasoning = words.get("text"), words.get("reasoning")
        deltas = [said(text, reasoning, choice=index)] if text or reasoning else []
        if "finish" in words:
            deltas.append(ended(words["finish"], choice=index))
        return deltas

    def _plan(
        self, shape: tuple[str | None, ...], part: dict[str, Any], choice: dict[str, Any]
    ) -> list[_Step]:
        """Return the rows for *part* and *choice* in their order, and note them for others of this *shape*."""
        plan = [
            step for step, is_always in self._steps if is_always or step[1] in (part if step[0] else choice)
        ]
        if len(str(shape)) < 1000:
            if len(self._plans) >= 100:
                self._plans.clear()
            self._plans[shape] = plan
        return plan

    @cached_property
    def _plans(self) -> dict[tuple[str | None, ...], list[_Step]]:
        """The rows that fit a choice, by the keys of its part, ``None``, and its own."""
        return {}

    @cached_property
    def _steps(self) -> list[tuple[_Step, bool]]:
        """All rows of a part and of a choice, and whether each is asked without its key, for a method that is overridden."""
        always = {
            take
            for name, take in _METHODS.items()
            if getattr(type(self), name) is not getattr(OpenAIChatDialect, name)
        }
        own_rows = {"segments": FieldRow("segments", _take_segments)} if _take_segments in always else {}
        steps = []
        for is_inner, rows in ((True, {**self.part_rows, **own_rows}), (False, self.choice_rows)):
            is_watched = False
            for key, word, silent, take in level_of(rows):
                is_always = take in always
                is_watched |= is_always  # the override may look at what later rows take
                step = is_inner, key, None if is_watched else word, () if is_always else silent, take
                steps.append((step, is_always))
        return steps

    @cached_property
    def _event_level(self) -> tuple[frozenset[str], Level, bool]:
        """The keys of the rows of an event, the rows, and whether the identity is taken at once, without these rows."""
        rows = self.event_rows
        has_identity = all(rows.get(key) is row for key, row in _IDENTITY.items())
        if has_identity:
            rows = {key: row for key, row in rows.items() if key not in _IDENTITY}
        return (
            frozenset(path.partition(".")[0].removesuffix("[]") for path in rows),
            level_of(rows),
            has_identity,
        )

    def reasoning(self, part: dict[str, Any], choice: int, state: MappingState) -> str | None:
        """Return the reasoning of a message or delta. Under both of its names it counts once."""
        if "reasoning" not in part and "reasoning_content" not in part:
            return None
        text, names = take_string(part, "reasoning"), {"reasoning"}
        if not text:
            text, names = take_string(part, "reasoning_content"), {"reasoning_content"}
        elif part.get("reasoning_content") == text:
            names.add("reasoning_content")
            del part["reasoning_content"]
        else:
            take_same(part, "reasoning_content", "")
        if not text or state.own(Echo).is_repeated(names, text, choice, state):
            return None
        return text

    def segments(self, part: dict[str, Any], choice: int, state: MappingState) -> Iterable[Segment]:
        """Return the segments of a message or delta other than text and tool calls. The dialect itself has none."""
        return ()

    def tool_calls(
        self, part: dict[str, Any], choice: int, state: MappingState, *, whole: bool
    ) -> Iterator[ToolCallDelta]:
        """The tool calls, or fragments of them, of a message or delta."""
        has_legacy_call = part.get("function_call") is not None
        legacy_call = take_object(part, "function_call") if has_legacy_call else None
        calls = take_objects(part, "tool_calls")
        are_full = all(calls)
        for call in calls:
            if legacy_call and legacy_call == call.get("function"):
                legacy_call.clear()  # some servers send a forced call in both forms
            yield self.tool_call(call, choice, state, whole=whole)
        if are_full and not any(calls):
            part.pop("tool_calls", None)  # nothing is left of them
        if legacy_call and not calls:
            yield self.tool_call({"index": 0, "function": legacy_call}, choice, state, whole=False)

    def tool_call(
        self, call: dict[str, Any], choice: int, state: MappingState, *, whole: bool
    ) -> ToolCallDelta:
        """One tool call, or a fragment of one."""
        function = call.get("function")
        if call.get("type") == "function":
            del call["type"]
        else:
            take_same(call, "type", None)
        if not function or type(function) is not dict:
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
        paths = {name: getattr(self, name)[0] for name in MULTI_PATH_COUNTS}
        paths |= {
            name: detail_paths[0] for name, detail_paths in self.usage_details.items() if name in wire.DETAILS
        }
        spell(event, paths, self.reasoning_name, numbers_calls=self.numbers_calls)

    @hookimpl
    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        """See the hook ``map_finish_reason``."""
        return self.finish_reasons.get(reason)

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """See the hook ``map_usage``. Some servers send the counts inside a choice. Equal ones in both places count once."""
        choice_usage = None
        choices = event.get("choices")
        for choice in choices if type(choices) is list else ():
            if type(choice) is dict and choice.get("usage"):
                counts = (
                    None if take_same(choice, "usage", event.get("usage")) else accept_object(choice, "usage")
                )
                choice_usage = (self.usage_info(counts, state) if counts else None) or choice_usage
        usage = accept_object(event, "usage") if "usage" in event else None
        return (self.usage_info(usage, state) if usage else None) or choice_usage

    def usage_info(self, usage: dict[str, Any], state: MappingState) -> UsageInfo | None:
        """Return the counts of a usage object, or ``None`` without any."""
        counts = self.count_paths.accept(usage)
        return counted(counts, state, look_at_cost(usage, self.cost_currency) if usage else None)

    def stated_rows(self) -> Iterable[Mapping[str, FieldRow]]:
        """Return the rows of whole events: for messages, for deltas, and for texts if ``/v1/completions`` is an endpoint."""
        counts = {
            f"usage.{path}": count(name) for name, paths in self.count_paths.paths.items() for path in paths
        }
        end = {path: row for path, row in self.choice_rows.items() if path != "text"}
        said = [
            {**{f"{part}.{path}": row for path, row in self.part_rows.items()}, **end}
            for part in ("message", "delta")
        ] + [dict(self.choice_rows)] * ("/v1/completions" in self.endpoints)
        for rows in said:
            yield {**self.event_rows, **{f"choices[].{path}": row for path, row in rows.items()}, **counts}

    @cached_property
    def count_paths(self) -> CountPaths:
        """The paths of the counts in a usage object, as the attributes of this class state them."""
        own_paths = {name: getattr(self, name) for name in MULTI_PATH_COUNTS}
        return CountPaths({**wire.COUNTS, **own_paths, **self.usage_details})

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """See the hook ``extensions``. A choice with only its number left is dropped."""
        remainder: dict[str, Any] = event
        choices = remainder.get("choices")
        if choices is not None and (not choices or 1 in map(len, choices)):
            silent_choices = state.own(Choices).silent
            remaining_choices = [
                c for c in choices if c.keys() != _INDEX_KEYS or c["index"] in silent_choices
            ]
            if remaining_choices:
                remainder["choices"] = remaining_choices
            else:
                del remainder["choices"]
        return remainder

    @hookimpl
    def map_error(self, status: int | None, body: Any) -> ErrorInfo | None:
        """See the hook ``map_error``. *status* is ``None`` for an error inside a stream. :attr:`errors` go first."""
        info = error_info(status, body)
        return info if self.errors is None else self.errors.refined(info)

    @hookimpl
    def build_request(self, request: ChatRequest) -> HTTPRequest:
        """See the hook ``build_request``."""
        return self.built(request)

    def built(self, request: ChatRequest, **refinements: Any) -> HTTPRequest:
        """Return *request* in this server's :attr:`style`, refined by *refinements*: arguments of an ``OpenAIChatStyle``."""
        own_fields = {"reasoning": self.reasoning_name, "hosted_tools": self.hosted_tools}
        style = _building.OpenAIChatStyle(**{**own_fields, **self.style, **refinements})
        http_request: HTTPRequest = _building.build_openai_chat_request(request, style)
        return http_request


_building = later("crosswalk.service.building")
_NO_CHOICES: Final[Set[int]] = frozenset()
_INDEX_KEYS = {"index"}
