"""The way back: the parts of earlier turns that a new request sends to its provider, and what is said of the others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, count, groupby
from typing import Any, Final, TypeVar

import attrs

from crosswalk.plugin.hooks import CallIds, ServerTool, WayBack, fits_ids
from crosswalk.request import Adaptation, CacheMark, ChatRequest, Turn, UnsupportedRequestError, in_words
from crosswalk.service.turns import (
    NO_ANSWER,
    NOT_RUN,
    SUMMARY,
    content_parts,
    is_of,
    known_media_type,
    message_of,
    noun_of,
    segments_of,
    told_failure,
)
from crosswalk.types.json import dump_json, thaw
from crosswalk.types.message import ChatMessage, ContentPart, FilePart, ImagePart, Role, TextPart, ToolCall
from crosswalk.types.response import Alternative, ChatResponse
from crosswalk.types.values import CitationRef, FinishReason, Segment, SegmentType, altered
from crosswalk.wire.options import readable

Choice = TypeVar("Choice", ChatResponse, Alternative)

# ----------------------------------------------------------------------------------- state
# The state of an answer: fields of the provider's message without a canonical counterpart, each at its position.
#
# ``metadata.extensions`` keep the structure of the payload. So the state is located there by position, in a body and in
# the
# sum of a stream. Only the provider that sent it understands it (see :mod:`crosswalk.service.way_back`).


_PATHS: Final[tuple[tuple[str | int, ...], ...]] = (
    ("choices", 0, "message"),  # Chat Completions
    ("choices", 0, "delta"),
    ("output", "choices", 0, "message"),  # DashScope's own API
    ("result", "choices", 0, "message"),  # Cloudflare's envelope
    ("result", "choices", 0, "delta"),
    ("output", "message"),  # Bedrock
    ("candidates", 0, "content"),  # Gemini
    ("message",),  # Ollama, Cohere
    ("content",),  # Messages: the blocks
    ("output",),  # Responses: the items
    ("steps",),  # Gemini's Interactions, of which no request takes an answer
    ("outputs",),
)
"""The position of an answer's message, in each form."""
_PLACE: Final = "index"
"""The key by which an object of a list gives its position."""


def answer_state(turn: ChatResponse) -> Any:
    """Return the state of *turn*, read-only, or ``None`` if its message has none."""
    path = _path_of(turn)
    return None if path is None else _at(turn.metadata.extensions, path)


def _path_of(turn: ChatResponse) -> tuple[str | int, ...] | None:
    extensions = turn.metadata.extensions
    return next((path for path in _PATHS if isinstance(_at(extensions, path), Mapping | tuple)), None)


def _at(value: Any, path: Sequence[str | int]) -> Any:
    for step in path:
        value = _entry(value, step) if isinstance(step, int) else _field(value, step)
    return value


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None


def _entry(items: Any, place: int) -> Any:
    """Return the item of *items* at position *place*."""
    for number, item in enumerate(items if isinstance(items, tuple | list) else ()):
        if isinstance(item, Mapping) and item.get(_PLACE, number) == place:
            return item
    return None


def without_fields(turn: ChatResponse, names: Sequence[str]) -> tuple[ChatResponse, list[str]]:
    """Return *turn* without the fields *names* of its message, and those of them that it had."""
    state = answer_state(turn) if names else None
    results = [name for name in names if isinstance(state, Mapping) and state.get(name) is not None]
    if not results:
        return turn, []
    extensions = turn.metadata.extensions.thawed()
    message = _at(extensions, _path_of(turn) or ())
    for name in results:
        del message[name]
    return attrs.evolve(turn, metadata=attrs.evolve(turn.metadata, extensions=extensions)), results


def without_items(turn: ChatResponse, ids: Collection[object]) -> ChatResponse:
    """Return *turn* without the items of its message that have one of *ids*."""
    state = answer_state(turn) if ids else None
    if not isinstance(state, tuple) or not any(_field(item, "id") in ids for item in state):
        return turn
    extensions = turn.metadata.extensions.thawed()
    items = _at(extensions, _path_of(turn) or ())
    items[:] = [item for item in items if _field(item, "id") not in ids]
    return attrs.evolve(turn, metadata=attrs.evolve(turn.metadata, extensions=extensions))


def own_fields(turn: Turn) -> dict[str, Any]:
    """Return the fields of the message of *turn* that are state, without empty ones, or empty for a plain message."""
    state = answer_state(turn) if isinstance(turn, ChatResponse) else None
    if not isinstance(state, Mapping):
        return {}
    fields = {name: thaw(value) for name, value in state.items() if value is not None}
    if not message_of(turn).tool_calls:
        fields.pop("tool_calls", None)  # the remaining fields of calls that are not sent
    return fields


def own_items(
    turn: Turn,
    items: Sequence[dict[str, Any] | None],
    *,
    inside: str | None = None,
    kinds: Collection[str] = (),
) -> list[dict[str, Any]]:
    """Return *items*, built for the parts of *turn*, with the state of each, and with the items that are state as a whole.

    If the state does not show which of its entries belongs to which item, *items* are returned unchanged.

    Args:
        turn: the turn.
        items: the item for each part, in order, or ``None`` for one that is left out but keeps its position.
        inside: the field of the state that has the entries, or ``None`` if the state is the list of them.
        kinds: if an item has no ``type``, the keys of which each known item has one.
    """
    state = answer_state(turn) if isinstance(turn, ChatResponse) else None
    entries = state if inside is None else _field(state, inside)
    if isinstance(entries, tuple | list) and (by_place := _by_place(entries, len(items), kinds)) is not None:
        return [*_merged(items, by_place)]
    return [item for item in items if item is not None]


@attrs.frozen
class _Entry:
    """The state at one position of a list: a separate item, or the residue of one that was built."""

    fields: Mapping[str, Any]
    is_whole: bool


def _by_place(entries: Any, count: int, kinds: Collection[str]) -> dict[int, _Entry] | None:
    """Return the *entries* by position, for *count* items that were built, or ``None`` if that is uncertain."""
    results: dict[int, _Entry] = {}
    is_dense = True
    for number, entry in enumerate(entries):
        if not isinstance(entry, Mapping):
            return None
        position = entry.get(_PLACE, number)
        is_dense = is_dense and _PLACE not in entry
        fields = {name: thaw(value) for name, value in entry.items() if name != _PLACE}
        results[position] = _Entry(fields, bool(fields) and _is_whole(fields, kinds))
    if is_dense:  # one for each item of the payload, so that they can be counted
        if kinds and len(results) == count:
            return {position: _Entry(entry.fields, False) for position, entry in results.items()}
        if len(results) != count + sum(entry.is_whole for entry in results.values()):
            return None
    return results


def _is_whole(fields: Mapping[str, Any], kinds: Collection[str]) -> bool:
    return not any(kind in fields for kind in kinds) if kinds else "type" in fields


def _merged(
    items: Sequence[dict[str, Any] | None], by_place: Mapping[int, _Entry]
) -> Iterator[dict[str, Any]]:
    waiting = list(items)
    position, last = 0, max(by_place, default=-1)
    while waiting or position <= last:
        entry = by_place.get(position)
        position += 1
        if entry is not None and entry.is_whole:
            if not _is_empty(entry.fields):
                yield dict(entry.fields)
        elif waiting and (item := waiting.pop(0)) is not None:
            put_fields(item, {} if entry is None else entry.fields)
            yield item


def _is_empty(fields: Mapping[str, Any]) -> bool:
    """Whether an item has nothing but its type: its other fields are null, as an empty compaction's are."""
    return None in fields.values() and all(value is None or name == "type" for name, value in fields.items())


def put_fields(said: dict[str, Any], state: Mapping[str, Any]) -> None:
    """Put *state* into *said*, a built object: built fields stay, and null fields are not added."""
    for name, value in state.items():
        there = said.get(name)
        if isinstance(there, dict) and isinstance(value, dict):
            put_fields(there, value)
        elif isinstance(there, list) and isinstance(value, list):
            for number, item in enumerate(value):
                position = item.get(_PLACE, number) if isinstance(item, dict) else None
                if isinstance(position, int) and position < len(there) and isinstance(there[position], dict):
                    put_fields(there[position], {key: inner for key, inner in item.items() if key != _PLACE})
        elif name not in said and value is not None:
            said[name] = value


def response_items(answer: ChatResponse) -> list[dict[str, Any]]:
    """Return the output items of *answer*, one of the Responses API, as received: stored data is complete."""
    from crosswalk.convert.conversion import written  # other providers need none of this
    from crosswalk.formats.responses import ResponsesWriter

    items: list[dict[str, Any]] = written(answer, ResponsesWriter, None).response()["output"]
    return items


# --------------------------------------------------------------------------------- history
# Prepares earlier turns for the next server: ids and names of tool calls, their order, and texts in place of media.


def with_fitting_ids(turns: Iterable[Turn], rule: CallIds) -> tuple[Turn, ...]:
    """Return *turns* with ids that *rule* allows: the same in a call and its result, different for calls of different turns.

    An id that fits, and that no earlier answer used, stays unchanged.
    """
    spoken = [(turn, _ids_of(turn)) for turn in turns]
    fits = {id: len(id) <= rule.maximum and fits_ids(rule, id) for _, ids in spoken for id in ids}
    taken = {id for id in fits if fits[id]}
    used: set[str] = set()  # by an earlier answer
    names: dict[str, str] = {}  # the new id of the last call, or result, by its former id
    results: list[Turn] = []
    for turn, ids in spoken:
        is_result = not isinstance(turn, ChatResponse) and turn.tool_call_id is not None
        fresh = [id for id in dict.fromkeys(ids) if not (is_result and id in names)]
        for id in fresh:
            names[id] = id if fits[id] and id not in used else _fresh(id, rule, taken)
        used.update(fresh)
        results.append(_renamed(turn, {id: names[id] for id in ids if names[id] != id}))
    return tuple(results)


def with_call_names(turn: Turn, names: Mapping[str, str]) -> Turn:
    """Return *turn* with the new names of called tools in *names*, by their former ones."""
    return answer_with_names(turn, names) if isinstance(turn, ChatResponse) else _with_names(turn, names)


def answer_with_names(answer: ChatResponse, names: Mapping[str, str]) -> ChatResponse:
    """Return *answer*, with its alternatives, with the new names of called tools in *names*, by their former ones."""
    others = tuple(_choice_with_names(other, names) for other in answer.alternatives)
    return attrs.evolve(_choice_with_names(answer, names), alternatives=others)


def _choice_with_names(choice: Choice, names: Mapping[str, str]) -> Choice:
    segments = [_changed(segment, "name", names) for segment in choice.segments]
    return attrs.evolve(choice, message=_with_names(choice.message, names), segments=segments)


def _with_names(message: ChatMessage, names: Mapping[str, str]) -> ChatMessage:
    calls = [attrs.evolve(call, name=names.get(call.name, call.name)) for call in message.tool_calls or ()]
    is_result = message.role is Role.TOOL
    return attrs.evolve(
        message,
        tool_calls=calls or message.tool_calls,
        name=names.get(message.name or "", message.name) if is_result else message.name,
    )


def _ids_of(turn: Turn) -> list[str]:
    message = message_of(turn)
    ids = [call.id for call in message.tool_calls or ()]
    return ids if message.tool_call_id is None else [message.tool_call_id]


def _fresh(id: str, rule: CallIds, taken: set[str]) -> str:
    made = (rule.make(f"{id} {number}" if number else id) for number in count())
    result = next(name for name in made if name not in taken)
    taken.add(result)
    return result


def _renamed(turn: Turn, names: Mapping[str, str]) -> Turn:
    if not names:
        return turn
    if isinstance(turn, ChatResponse):
        segments = [_changed(segment, "id", names) for segment in turn.segments]
        return attrs.evolve(turn, message=_renamed_message(turn.message, names), segments=segments)
    return _renamed_message(turn, names)


def _renamed_message(message: ChatMessage, names: Mapping[str, str]) -> ChatMessage:
    if message.tool_call_id is not None:
        return attrs.evolve(message, tool_call_id=names[message.tool_call_id])
    calls = [attrs.evolve(call, id=names.get(call.id, call.id)) for call in message.tool_calls or ()]
    return attrs.evolve(message, tool_calls=calls)


def _changed(segment: Segment, key: str, names: Mapping[str, str]) -> Segment:
    metadata = segment.metadata
    if segment.type is not SegmentType.TOOL_CALL or "type" in metadata or metadata.get(key) not in names:
        return segment  # a segment with a type is a call that the server itself has answered
    return attrs.evolve(segment, metadata={**metadata, key: names[metadata[key]]})


_STORED_TURN_OPTIONS = frozenset({"previous_response_id", "conversation"})
"""Options of an API that stores earlier turns: the call of a result may be stored there."""


@attrs.define
class _Round:
    """A turn, and the results of its calls, by the ids of the calls."""

    place: int
    turn: Turn
    calls: tuple[ToolCall, ...] = ()
    results: dict[str, tuple[int, ChatMessage]] = attrs.field(factory=dict)


def with_whole_rounds(request: ChatRequest) -> tuple[ChatRequest, Sequence[int | None]]:
    """Return *request* with each result behind the answer that called for it, and the former number of each turn.

    A call without a result gets one that declares it not run, if the conversation went on. It has no former number.

    Raises:
        UnsupportedRequestError: the conversation is empty, or it is unclear which call a result answers: a result without
            a call, a second result, two calls of one answer with one id. Or it ends with unanswered calls.
    """
    messages = [message_of(turn) for turn in request.messages]
    if all(message.role is not Role.TOOL and not message.tool_calls for message in messages):
        if any(isinstance(turn, ChatResponse) or content_parts(turn) for turn in request.messages):
            return request, range(len(messages))
        raise _refused("a conversation without content")
    options = {**request.extra_options, **request.provider_options.get(request.provider or "", {})}
    rounds = _rounds(request.messages, messages, is_elsewhere=not _STORED_TURN_OPTIONS.isdisjoint(options))
    last = rounds[-1]
    for call in last.calls:
        if call.id not in last.results:
            raise _refused(f"messages[{last.place}] calls {call.name!r:.80}, and has no result of it")
    places: list[int | None] = []
    turns: list[Turn] = []
    for one in rounds:
        not_run = [_not_run(call) for call in one.calls if call.id not in one.results]
        places += [one.place, *(position for position, _ in one.results.values()), *[None] * len(not_run)]
        turns += [one.turn, *(result for _, result in one.results.values()), *not_run]
    if places == list(range(len(messages))):
        return request, places
    marks = [_moved(mark, places, len(messages)) for mark in request.cache_marks]
    return altered(request, messages=tuple(turns), cache_marks=tuple(marks)), places


def _rounds(turns: Sequence[Turn], said: Iterable[ChatMessage], *, is_elsewhere: bool) -> list[_Round]:
    rounds: list[_Round] = []
    for position, (turn, message) in enumerate(zip(turns, said, strict=True)):
        if message.role is not Role.TOOL:
            calls = message.tool_calls or ()
            if len({call.id for call in calls}) < len(calls):
                raise _refused(f"messages[{position}] has two calls of one id")
            rounds.append(_Round(position, turn, calls))
            continue
        id = message.tool_call_id or ""
        requested = next((one for one in reversed(rounds) if id in {call.id for call in one.calls}), None)
        if requested is not None and id not in requested.results:
            requested.results[id] = (position, message)
        elif requested is not None:
            raise _refused(f"messages[{position}] is a second result of call {id!r:.80}")
        elif is_elsewhere:
            rounds.append(_Round(position, turn))
        else:
            raise _refused(
                f"messages[{position}] is the result of call {id!r:.80}, which no answer before it made"
            )
    return rounds


def _not_run(call: ToolCall) -> ChatMessage:
    return ChatMessage.tool_result(call.id, NOT_RUN, name=call.name, is_error=True)


def _moved(mark: CacheMark, places: Sequence[int | None], count: int) -> CacheMark:
    """Move *mark* behind the same message at its new position. *places* are the former positions."""
    if not isinstance(mark.after, int):
        return mark
    return attrs.evolve(mark, after=places.index(mark.after % count))


def _refused(what: str) -> UnsupportedRequestError:
    return UnsupportedRequestError(f"no server takes it: {what}", options=["messages"])


def has_media(message: ChatMessage) -> bool:
    """Whether *message* holds more than text."""
    parts = message.content
    return not isinstance(parts, str | None) and not all(isinstance(part, TextPart) for part in parts)


def with_words(message: ChatMessage) -> str:
    """Return the content of *message*, with texts in place of media."""
    parts = message.content
    assert not isinstance(parts, str | None), "the caller has looked"
    return "\n".join(map(_text_of, parts))


def _text_of(part: ContentPart) -> str:
    if isinstance(part, TextPart):
        return part.text
    name = getattr(part, "name", None)
    return in_words(noun_of(part), name, part.media_type, "you cannot be shown it")


# --------------------------------------------------------------------------------- missing
# The parts of a conversation that the finished body of its request lacks.


NO_PLACE: Final = "the API has no place for it"
"""The reason of a part that the API cannot express."""
_SPOKEN_TYPES: Final = (SegmentType.TEXT, SegmentType.REFUSAL, SegmentType.REASONING)


def not_sent(request: ChatRequest, body: Any, named: Iterable[Adaptation]) -> Iterator[Adaptation]:
    """Return the parts of *request*, that *body* lacks and that are not yet named.

    A plugin may leave out parts that its API cannot express. So the finished body is searched: each text, each opaque
    value and each field of an answer's state has to be there, and not because another turn has the same.
    """
    named_options = {one.field for one in named}
    contents: dict[bool, _Content] = {}
    for number, turn in enumerate(request.messages):
        option = f"messages[{number}]"
        wanted = [] if option in named_options else [*_wanted(turn)]
        is_answer = isinstance(turn, ChatResponse)
        if wanted and is_answer not in contents:
            contents[is_answer] = _Content(_without_others(body) if is_answer else body)
        for part in dict.fromkeys(part for part, is_in in wanted if not is_in(contents[is_answer])):
            yield Adaptation.dropped(option, f"{part}: {NO_PLACE}")


def _without_others(body: Any) -> Any:
    """Return *body* without the messages that the model did not write: in every API they name their role."""
    if isinstance(body, Mapping):
        return {key: _without_others(value) for key, value in body.items()}
    if isinstance(body, list):
        return [_without_others(item) for item in body if not (_is_message(item) and item["role"] in _OTHERS)]
    return body


def _is_message(item: Any) -> bool:
    return isinstance(item, Mapping) and isinstance(item.get("role"), str)


_OTHERS: Final = ("system", "developer", "user", "tool")


class _Content:
    """Everything that a body holds."""

    def __init__(self, body: Any) -> None:
        self.texts: set[str] = set()
        self.pairs: set[tuple[str, Any]] = set()
        for key, leaf in leaves(body):
            self.pairs.add((key, leaf))
            if isinstance(leaf, str):
                self.texts.add(leaf)
        self._all_text: str | None = None

    def has(self, text: str) -> bool:
        """Whether *text* is there, alone or in a longer one."""
        if text in self.texts:
            return True
        if self._all_text is None:
            self._all_text = "\n".join(self.texts)
        return text in self._all_text


def _wanted(turn: Turn) -> Iterator[tuple[str, Callable[[_Content], bool]]]:
    """Return the parts of *turn* that have to be in the body: the name of each, and the test for its presence."""
    message = message_of(turn)
    if message.name and message.role is not Role.TOOL:
        yield "the speaker's name", _has_pair(("name", message.name))
    if not isinstance(turn, ChatResponse):
        if not isinstance(turn.content, str) and turn.content is not None:
            for part in turn.content:
                if isinstance(part, TextPart) and part.text and not part.text.strip():
                    yield "white space", _holds(part.text)
                elif isinstance(part, FilePart) and part.id is not None and part.name:
                    yield "the name of a file", _holds(part.name)
        return
    for segment in turn.segments:
        if segment.type in _SPOKEN_TYPES and (text := segment.content.strip()):
            yield str(segment.type), _holds(text)
        for note in segment.annotations if segment.type is SegmentType.CITATION else ():
            if isinstance(note, CitationRef) and note.source:
                yield "citations", _holds(note.source)
        for key, noun in (("signature", "a signature"), ("encrypted", "encrypted reasoning")):
            if value := segment.metadata.get(key):
                yield noun, _holds(str(value))
    for pair in leaves(answer_state(turn)):
        yield f"state ({pair[0]})", _has_pair(pair)


def _holds(text: str) -> Callable[[_Content], bool]:
    return lambda content: content.has(text)


def _has_pair(pair: tuple[str, Any]) -> Callable[[_Content], bool]:
    return lambda content: pair in content.pairs


def leaves(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Return the strings, numbers and truth values in *value*, each with its key."""
    stack = [(key, value)]
    while stack:
        key, value = stack.pop()
        if isinstance(value, Mapping):
            stack += [(name, item) for name, item in value.items() if name != "index"]  # a mere position
        elif isinstance(value, list | tuple):
            stack += [(key, item) for item in value]
        elif value is not None and value != "":
            yield key, value


# --------------------------------------------------------------------------------- sorting
# The way back: selects the parts of earlier turns that are sent to the provider of the new request.
#
# Everything opaque has an owner, the provider that sent it, and no other provider ever sees it. :func:`with_own_parts`
# decides
# for each part of each turn by the facts that the provider declares (:class:`~crosswalk.plugins.WayBack`). So a plugin
# gets a request with only the parts that it may send. Parts that are left out are named, with their message.


_PLACEHOLDER: Final = Segment(SegmentType.TEXT, "")
"""The placeholder of a part that is left out, which keeps the positions of later parts. Empty texts are never sent."""
_CUT_REASONS: Final = (FinishReason.LENGTH, FinishReason.CANCELLED, FinishReason.ERROR)
_VERDICT_TYPES: Final = (SegmentType.SAFETY, SegmentType.ERROR)
_BLOCK_KEYS: Final = ("id", "name")


def with_own_parts(
    request: ChatRequest, facts: WayBack, *, is_official: bool, takes_media: bool = True
) -> tuple[ChatRequest, tuple[Adaptation, ...]]:
    """Return *request* with the parts of earlier turns that its provider takes, and the other parts, by message.

    Args:
        request: the request. Its provider is the one that it is sent to.
        facts: what that provider takes.
        is_official: whether the request is sent to the provider's own host.
        takes_media: whether the model takes images, sounds and files.
    """
    if not takes_media:
        facts = attrs.evolve(facts, takes_media=(), shows_pictures=False)
    sorter = _Sorter(request, facts, is_official=is_official, takes_media=takes_media)
    turns = sorter.shown(tuple(sorter.sorted(number, turn) for number, turn in enumerate(request.messages)))
    if any(sent is not turn for sent, turn in zip(turns, request.messages, strict=True)):
        request = altered(request, messages=turns)
    return request, sorter.adaptations()


class _Sorter:
    """Sorts the parts of the turns of *request* into those that are sent and those that are named."""

    def __init__(self, request: ChatRequest, facts: WayBack, *, is_official: bool, takes_media: bool) -> None:
        self._request = request
        self._facts = facts
        self._is_official = is_official
        self._takes_media = takes_media
        self._named: dict[tuple[int, str], Adaptation] = {}
        self._pictures: dict[int, list[ImagePart]] = {}  # by the user's message that shows them
        self._halves = _Halves(request, facts.server_tools)

    def adaptations(self) -> tuple[Adaptation, ...]:
        """The parts that are left out or sent otherwise: each reason once for each message."""
        return tuple(self._named[key] for key in sorted(self._named))

    def sorted(self, number: int, turn: Turn) -> Turn:
        """Return the turn to send for *turn*, which is the message *number*."""
        message = self._message(number, message_of(turn))
        if not isinstance(turn, ChatResponse):
            return message
        if is_of(turn, self._request):
            return self._own(number, attrs.evolve(turn, message=message))
        return self._foreign(number, attrs.evolve(turn, message=message))

    def shown(self, turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
        """Return *turns*, with the pictures of answers in the user's messages that follow them."""
        results = list(turns)
        for number, pictures in self._pictures.items():
            message = message_of(turns[number])
            results[number] = attrs.evolve(message, content=(*pictures, *content_parts(message)))
        return tuple(results)

    def _name(self, number: int, reason: str, kind: str = "dropped") -> None:
        self._named[number, reason] = Adaptation(f"messages[{number}]", kind, reason)

    def _tell(self, number: int, noun: str, how: str = "it is sent as text") -> None:
        self._name(number, f"{noun}: {how}", "told")

    def _message(self, number: int, message: ChatMessage) -> ChatMessage:
        facts = self._facts
        if message.role is Role.SYSTEM and facts.moves_system:
            before = map(message_of, self._request.messages[:number])
            if any(other.role is not Role.SYSTEM for other in before):
                self._name(
                    number, "moved to the beginning: the API has system messages there alone", "clamped"
                )
        if message.name and message.role is not Role.TOOL and not facts.names_speakers:
            self._name(number, f"the speaker's name: {NO_PLACE}")
            message = attrs.evolve(message, name=None)
        if message.is_error and not facts.knows_failures:
            self._tell(number, "that the tool has failed")
            message = attrs.evolve(message, content=told_failure(message))
        if not self._takes_media and has_media(message):
            self._name(number, "images, sounds and files: the model takes text alone")
            message = attrs.evolve(message, content=with_words(message))
        calls = message.tool_calls or ()
        if not facts.takes_custom_calls and any(call.is_custom for call in calls):
            return attrs.evolve(message, tool_calls=[_as_function(call) for call in calls])
        return message

    # ------------------------------------------------------------------------------------ answers

    def _own(self, number: int, turn: ChatResponse) -> ChatResponse:
        segments = [*segments_of(turn)]
        gone: set[object] = set()
        is_cut = turn.finish_reason in _CUT_REASONS
        for position, segment in enumerate(segments):
            sent = self._own_part(number, segment, turn, is_last=is_cut and position == len(segments) - 1)
            if sent is not segment:
                segments[position] = sent
                gone.add(segment.metadata.get("id"))
        turn = without_items(turn, gone - {None})
        remaining, refused = without_fields(turn, self._facts.refuses)
        for name in refused:
            self._name(number, f"{name}: the API does not take it back")
        return self._with_words(attrs.evolve(remaining, segments=segments), turn)

    def _own_part(self, number: int, segment: Segment, turn: ChatResponse, *, is_last: bool) -> Segment:
        """Return what is sent of *segment*, a part of the provider's own *turn* (*is_last* if it may have been cut)."""
        facts = self._facts
        match segment.type:
            case SegmentType.REASONING if "is_foreign" in segment.metadata:
                self._name(number, "reasoning of another provider")
                return _PLACEHOLDER
            case SegmentType.REASONING if facts.needs_signature and not _is_sealed(segment):
                if is_last:
                    self._name(number, "reasoning that was cut before its signature")
                    return _PLACEHOLDER
                if self._is_official:
                    self._name(number, "reasoning without a signature")
                    return _PLACEHOLDER
            case SegmentType.TOOL_CALL if "type" in segment.metadata:
                if (half := self._halves.of(number, segment)) is not None:
                    self._name(number, half)
                    return _PLACEHOLDER
            case SegmentType.TOOL_CALL:
                return self._call(number, segment, turn)
            case SegmentType.CITATION if not facts.takes_citations:
                self._name(number, "citations: the API does not take them back")
                return _PLACEHOLDER
            case SegmentType.MEDIA:
                return self._medium(number, segment, turn, facts.takes_media)
            case kind if kind in _VERDICT_TYPES:
                self._name(number, _verdict(segment))
        return segment

    def _foreign(self, number: int, turn: ChatResponse) -> ChatResponse:
        """Return *turn*, an answer of another provider, without the parts that only that provider understands."""
        owner = turn.metadata.provider_id
        turn = self._with_summaries(number, turn)
        segments: list[Segment] = []
        calls = message_of(self._request.messages[number]).tool_calls or ()
        kinds = {call.kind for call in calls}  # "custom" is not state: the call is sent as a function
        state = {key for key, value in leaves(answer_state(turn)) if key != "type" or value not in kinds}
        for segment in segments_of(turn):
            segments += self._foreign_part(number, segment, turn)
            state |= set(segment.metadata) - _PLAIN_KEYS.get(segment.type, set(segment.metadata))
            if segment.annotations and segment.type is SegmentType.TEXT:
                self._name(number, f"citations of another provider ({owner})")
        told = [segment for segment in turn.segments if _is_of_client_server(segment)]
        if not any(segment.content or segment.metadata for segment in segments):
            turn, segments, told = self._told(number, turn)
        for segment in told:
            fields = _told_fields(segment)
            state -= {"type", *fields, *(key for key, _ in leaves(fields))}
        if state:
            self._name(number, f"state of another provider ({owner}): {', '.join(sorted(state))}")
        metadata = attrs.evolve(turn.metadata, extensions={})
        return self._with_words(attrs.evolve(turn, segments=segments, metadata=metadata), turn)

    def _with_summaries(self, number: int, turn: ChatResponse) -> ChatResponse:
        """Return *turn* with the summaries of the conversation that its server has made as texts before all others.

        A summary that only its server can read stands for turns that the request may not have, so it is refused.
        """
        entries = answer_state(turn)
        summaries: list[str] = []
        kept_entries: list[Any] = []
        for entry in entries if isinstance(entries, tuple) else ():
            if _field(entry, "type") == "compaction":
                if isinstance(text := entry.get("content"), str) and text:
                    summaries.append(f"{SUMMARY}\n\n{text}")
                    entry = {key: value for key, value in entry.items() if key not in ("type", "content")}
                elif entry.get("encrypted_content"):
                    what, owner = f"messages[{number}]", turn.metadata.provider_id
                    why = f"only its own server ({owner}) can read what stands for the conversation"
                    problem = f"it cannot express {what} (compaction: {why})"
                    raise UnsupportedRequestError(problem, provider=self._request.provider, options=[what])
            kept_entries.append(entry)
        if not summaries:
            return turn
        self._tell(number, "a summary of the conversation")
        extensions = turn.metadata.extensions.thawed()
        _at(extensions, _path_of(turn) or ())[:] = thaw(kept_entries)
        content = "\n\n".join(filter(None, (*summaries, turn.message.text)))
        return attrs.evolve(
            turn,
            message=attrs.evolve(turn.message, content=content),
            segments=[*(Segment(SegmentType.TEXT, text) for text in summaries), *segments_of(turn)],
            metadata=attrs.evolve(turn.metadata, extensions=extensions),
        )

    def _told(self, number: int, turn: ChatResponse) -> tuple[ChatResponse, list[Segment], list[Segment]]:
        """Return *turn*, of which nothing can be sent, in words: what its server's tools did, or that it says nothing.

        The last item is the parts that become text.
        """
        calls = [segment for segment in turn.segments if segment.type is SegmentType.TOOL_CALL]
        tools = [call for call in calls if "type" in call.metadata]
        words = [*map(_in_words, tools)]
        if words:
            del self._named[number, _of_server(turn)]
            self._tell(number, _of_server(turn))
        has_more = any(segment.type not in _VERDICT_TYPES for segment in turn.segments) or answer_state(turn)
        text = "\n".join(words or ([NO_ANSWER] if has_more else []))
        message = attrs.evolve(turn.message, content=text or turn.message.content)
        return attrs.evolve(turn, message=message), [Segment(SegmentType.TEXT, text)] if text else [], tools

    @staticmethod
    def _with_words(turn: ChatResponse, before: ChatResponse) -> ChatResponse:
        """Return *turn* with a message that matches its segments, including the texts that replace media and calls."""
        if not any(part.type is SegmentType.MEDIA or _is_of_client_server(part) for part in before.segments):
            return turn
        texts = [segment.content for segment in before.segments if segment.type is SegmentType.TEXT]
        spoken = [part.content for part in turn.segments if part.type is SegmentType.TEXT and part.content]
        spoken[:0] = [] if texts or turn.message.text in spoken else [turn.message.text or ""]
        groups = groupby(spoken, texts.__contains__)
        paragraphs = chain.from_iterable(["".join(group)] if is_own else group for is_own, group in groups)
        content = "\n\n".join(filter(None, paragraphs))
        return attrs.evolve(turn, message=attrs.evolve(turn.message, content=content))

    def _foreign_part(self, number: int, segment: Segment, turn: ChatResponse) -> Iterable[Segment]:
        owner = turn.metadata.provider_id
        match segment.type:
            case SegmentType.TEXT | SegmentType.REFUSAL:
                return [Segment(segment.type, segment.content)] if segment.content else ()
            case SegmentType.REASONING:
                if self._facts.takes_reasoning and segment.content and not _is_sealed(segment):
                    return [Segment(segment.type, segment.content)]
                signed = {key: value for key, value in segment.metadata.items() if key == "signature"}
                if (
                    signed and self._facts.needs_signature and owner == "openai_responses"
                ):  # marked as Claude's
                    return [Segment(segment.type, segment.content, signed)]
                self._name(number, f"reasoning of another provider ({owner})")
            case SegmentType.TOOL_CALL if _is_of_client_server(segment):
                self._tell(number, "a call of a tool of an MCP server")
                return [Segment(SegmentType.TEXT, _in_words(segment))]
            case SegmentType.TOOL_CALL if "type" in segment.metadata:
                self._name(number, _of_server(turn))
            case SegmentType.TOOL_CALL:
                call = self._call(number, segment, turn)
                id_and_name = {key: call.metadata[key] for key in _BLOCK_KEYS if key in call.metadata}
                return [] if call is _PLACEHOLDER else [Segment(call.type, call.content, id_and_name)]
            case SegmentType.CITATION:
                self._name(number, f"citations of another provider ({owner})")
            case SegmentType.MEDIA:
                return [self._medium(number, segment, turn, ())]
            case _:
                self._name(number, _verdict(segment))
        return ()

    def _call(self, number: int, segment: Segment, turn: ChatResponse) -> Segment:
        """Return the client's call that *segment* shows, as the provider takes it."""
        calls = {call.id: call for call in turn.message.tool_calls or ()}
        call = calls.get(str(segment.metadata.get("id")))
        if call is None or "name" not in segment.metadata:
            self._name(number, "a call that was not finished")
            return _PLACEHOLDER
        if call.arguments == segment.content:
            return segment
        return attrs.evolve(segment, content=call.arguments)  # it was free text

    # ------------------------------------------------------------------------------------ media

    def _medium(self, number: int, segment: Segment, turn: ChatResponse, takes: Sequence[str]) -> Segment:
        """Return *segment* of *turn* unchanged if the provider *takes* its kind, otherwise as a text."""
        metadata = segment.metadata
        kind = _kind_of(segment)
        if metadata.get("thought"):
            self._name(number, f"{_MEDIA_PHRASES.get(kind, 'a file')} of a thought")
            return _PLACEHOLDER
        if kind in takes:
            return segment
        if kind == "audio":
            return self._sound(number, segment, turn, takes)
        picture = _picture_of(segment) if kind == "image" else None
        user = self._next_user(number) if picture is not None and self._facts.shows_pictures else None
        if picture is not None and picture.media_type in _PICTURE_TYPES and user is not None:
            self._name(number, f"moved to messages[{user}]: a picture that the user shows", "clamped")
            self._pictures.setdefault(user, []).append(picture)
            note = "the next message of the user shows it"
            return Segment(SegmentType.TEXT, in_words(_NOUNS[kind], picture.media_type, note))
        self._name(number, f"{_MEDIA_PHRASES.get(kind, 'a file')}: only a note of it is sent")
        return Segment(SegmentType.TEXT, in_words(_NOUNS[kind], *_about(segment, picture)))

    def _sound(self, number: int, segment: Segment, turn: ChatResponse, takes: Sequence[str]) -> Segment:
        """Return *segment*, a sound of *turn* or a piece of one: by its id, as the transcript of all pieces, or in words."""
        pieces = [one for one in turn.segments if one.type is SegmentType.MEDIA and _kind_of(one) == "audio"]
        about: dict[str, Any] = {}
        for piece in pieces:
            about = {**piece.metadata, **about}
        if "audio_id" in takes and "id" in about and _lasts(about.get("expires_at")):
            return segment
        if segment is not pieces[0]:
            return _PLACEHOLDER
        transcript = "".join(str(piece.metadata.get("transcript") or "") for piece in pieces)
        if transcript:
            self._tell(number, "a sound", "its transcript is sent")
            return Segment(SegmentType.TEXT, transcript)
        self._name(number, "a sound: only a note of it is sent")
        return Segment(SegmentType.TEXT, in_words("a sound", *_about(segment, None)))

    def _next_user(self, number: int) -> int | None:
        """Return the user's next message after *number*, skipping results of tools."""
        for later in range(number + 1, len(self._request.messages)):
            role = message_of(self._request.messages[later]).role
            if role is not Role.TOOL:
                return later if role is Role.USER else None
        return None


def _of_server(turn: ChatResponse) -> str:
    return f"a server tool of another provider ({turn.metadata.provider_id})"


_LINK_KEYS: Final = ("id", "type", "status", "index")
"""Metadata of a server tool's call that say nothing about it."""


def _is_of_client_server(segment: Segment) -> bool:
    """Whether *segment* is what a tool of an MCP server, which the client has named, was asked or gave: it is content."""
    return segment.metadata.get("type") in ("mcp_call", "mcp_tool_use", "mcp_tool_result")


def _in_words(segment: Segment) -> str:
    """Return the text for *segment*, what a server's tool was asked or gave: its kind, and its fields as JSON."""
    fields = _told_fields(segment)
    fields_json = dump_json(fields).decode() if fields else None
    return in_words(str(segment.metadata["type"]), segment.content or None, fields_json)


def _told_fields(segment: Segment) -> Any:
    """Return the fields of *segment* that its text holds."""
    fields = {key: value for key, value in segment.metadata.thawed().items() if value is not None}
    return readable({key: fields[key] for key in fields if key not in _LINK_KEYS and not key.endswith("_id")})


_PLAIN_KEYS: Final[Mapping[SegmentType, set[str]]] = {
    SegmentType.TEXT: set(),
    SegmentType.REFUSAL: set(),
    SegmentType.TOOL_CALL: {*_BLOCK_KEYS},
}
"""Metadata of a part that are not state. Parts of other types are named for themselves."""
_PICTURE_TYPES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""The types of pictures that every API takes from a user."""
_MEDIA_PHRASES: Final = {"image": "a picture", "audio": "a sound", "video": "a video"}
_NOUNS: Final = {"image": "an image", "audio": "a sound", "video": "a video", "file": "a file"}


def _about(segment: Segment, picture: ImagePart | None) -> Iterator[str]:
    """Return the type of the medium in *segment*, and its address if it has one."""
    media_type = segment.metadata.get("media_type") or (picture and picture.media_type)
    if isinstance(media_type, str):
        yield media_type
    if segment.content.startswith(("http://", "https://")):
        yield segment.content


def _verdict(segment: Segment) -> str:
    noun = "a verdict" if segment.type is SegmentType.SAFETY else "an error"
    return f"{noun}: no API takes it back"


def _is_sealed(segment: Segment) -> bool:
    """Whether only its provider can read or verify *segment*."""
    return bool(segment.metadata.keys() & {"signature", "encrypted"})


def _as_function(call: ToolCall) -> ToolCall:
    """Return *call*, with free text as the one argument ``input``."""
    if not call.is_custom:
        return call
    return attrs.evolve(call, arguments=dump_json(call.parsed()).decode(), kind=None)


def _kind_of(segment: Segment) -> str:
    """Return ``image``, ``audio`` or ``video``, or ``file`` if the kind is unknown."""
    metadata = segment.metadata
    for word in (metadata.get("type"), str(metadata.get("media_type", "")).partition("/")[0]):
        if word in _MEDIA_PHRASES:
            return str(word)
    if metadata.get("type") == "image_generation_call" or known_media_type(segment.content).startswith(
        "image/"
    ):
        return "image"
    return "image" if segment.content.startswith("data:image/") else "file"


def _picture_of(segment: Segment) -> ImagePart | None:
    """Return the picture in *segment* if it has data of a known type."""
    head, comma, data = segment.content.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return ImagePart(data=data, media_type=head[len("data:") : -len(";base64")])
    media_type = segment.metadata.get("media_type") or known_media_type(segment.content)
    if segment.metadata.get("encoding") != "base64" or not isinstance(media_type, str) or not media_type:
        return None
    return ImagePart(data=segment.content, media_type=media_type)


def _lasts(expires_at: object) -> bool:
    """Whether a time, in seconds since 1970, is in the future. True if it is unknown."""
    return not isinstance(expires_at, int | float) or expires_at > datetime.now(UTC).timestamp()


class _Halves:
    """The calls of server tools that have no result, and the results that have no call.

    A call may wait for its result as long as only results of the client's own tools follow.
    """

    def __init__(self, request: ChatRequest, tools: Sequence[ServerTool]) -> None:
        self._tools = tools
        self._last = _last_answer(request.messages)
        self._calls: set[object] = set()
        self._results: set[object] = set()
        for number, turn in enumerate(request.messages if tools else ()):
            if isinstance(turn, ChatResponse) and is_of(turn, request):
                for segment in turn.segments:
                    for tool in tools:
                        if tool.is_call(segment.metadata.get("type")):
                            self._calls.add(self._key(tool, "id", number, segment))
                        elif tool.is_result(segment.metadata.get("type")):
                            self._results.add(self._key(tool, tool.id, number, segment))

    @staticmethod
    def _key(tool: ServerTool, key: str, number: int, segment: Segment) -> object:
        """Return the name of a call: its id. Without ids a call and its result are in one answer."""
        return segment.metadata.get(key) or (tool.call, number)

    def of(self, number: int, segment: Segment) -> str | None:
        """Return why *segment* of the answer *number* cannot be sent alone, or ``None`` if it can."""
        for tool in self._tools:
            if tool.is_call(segment.metadata.get("type")):
                is_answered = self._key(tool, "id", number, segment) in self._results
                return (
                    None if is_answered or number == self._last else "a server tool's call without a result"
                )
            if tool.is_result(segment.metadata.get("type")):
                is_called = self._key(tool, tool.id, number, segment) in self._calls
                return None if is_called else "a server tool's result without a call"
        if segment.metadata.get("status") in _PENDING_STATES and number != self._last:
            return "a server tool's call without a result"
        return None


_PENDING_STATES: Final = ("in_progress", "searching", "interpreting", "generating", "calling", "incomplete")
"""The states of an item of the Responses API that mean its tool is still at work, or was cut short."""


def _last_answer(turns: Sequence[Turn]) -> int | None:
    """Return the answer at the end of *turns*, before results of its calls, or ``None`` if there is none."""
    for number in reversed(range(len(turns))):
        role = message_of(turns[number]).role
        if role is not Role.TOOL:
            return number if role is Role.ASSISTANT else None
    return None
