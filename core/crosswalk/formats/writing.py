"""Code shared by the writers of all formats: the pieces of an answer, its stored fields, its failure, its arguments."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from enum import StrEnum
from itertools import accumulate, chain
from typing import Any, ClassVar, Final, Self, TypeAlias

import attrs
import orjson

from crosswalk.errors import CrosswalkError, ErrorInfo, ErrorKind
from crosswalk.formats.tables import TABLES
from crosswalk.mapping.blocks import logprob_of
from crosswalk.plugin.registry import Mapper
from crosswalk.text import clean_message
from crosswalk.types.answer import ChoiceDraft
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.json import EMPTY_OBJECT, PIECES, Arrays, FrozenObject, as_json_object, dump_json, merge
from crosswalk.types.message import CallKind, ChatMessage, ToolCall
from crosswalk.types.response import ChatResponse
from crosswalk.types.usage import UsageInfo
from crosswalk.types.values import (
    PAUSES,
    Annotation,
    CitationRef,
    FinishReason,
    Segment,
    SegmentType,
    TokenLogprob,
)
from crosswalk.wire import (
    chat as chat_wire,
    gemini,
    gemini as gemini_wire,
    messages,
    responses,
    responses as responses_wire,
)
from crosswalk.words import right_word

# ---------------------------------------------------------------------------------- errors
# The errors of a conversion.
#
# CrosswalkError
# └── ConversionError (ValueError)     a value from which the form cannot be made
#     ├── DangerousLossError           acting on the converted answer may do the wrong thing
#     └── FoldingError                 a message or an item that the other kind of conversation cannot express


class ConversionError(CrosswalkError, ValueError):
    """An unknown form, or a value that cannot be written as JSON."""


class FoldingError(ConversionError):
    """A message or an item that cannot be turned into the other.

    Attributes:
        place: its position, such as ``input[3]``.
        item_type: its ``type``, or the role of a message.
    """

    def __init__(self, problem: str, *, place: str, item_type: str) -> None:
        super().__init__(f"{problem} @ {place} ({item_type})")
        self.place = place
        self.item_type = item_type


# ------------------------------------------------------------------------------------ form
# The wire forms that clients speak. Answers are converted to them, and the gateway accepts requests in them.


class WireForm(StrEnum):
    """A form that clients understand, by the name that ``crosswalk convert --to`` takes."""

    provider: str
    """The provider id under which Crosswalk reads the form."""
    key: str
    """Its key in :data:`crosswalk.formats.tables.TABLES`."""
    label: str
    """Its name for people."""
    paths: tuple[str, ...]
    """The possible endings of the path of a server's endpoint that accepts the form."""

    def __new__(cls, word: str, provider: str, key: str) -> Self:
        """Return the form of this name, which is its value."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.provider = provider
        member.key = key
        member.label, member.paths = TABLES[key].label, TABLES[key].paths
        return member

    OPENAI_CHAT = "openai-chat", "openai", "chat"
    OPENAI_RESPONSES = "openai-responses", "openai_responses", "responses"
    ANTHROPIC = "anthropic", "anthropic", "messages"
    OLLAMA = "ollama", "ollama", "ollama"
    OLLAMA_GENERATE = "ollama-generate", "ollama", "generate"
    GEMINI = "gemini", "gemini", "gemini"
    OPENAI_COMPLETIONS = "openai-completions", "openai", "completions"

    @classmethod
    def of(cls, name: str) -> WireForm:
        """Return the form called *name*.

        Raises:
            ConversionError: the form is unknown.
        """
        for form in cls:
            if form.value == name:
                return form
        raise ConversionError(
            f"no form {name!r:.40}{right_word('a form', name)}; there are: {', '.join(cls)}"
        )


# ------------------------------------------------------------------------------- arguments
# The arguments of a call: incremental detection of their end, and their values.


INVALID_JSON: Final = "INVALID_JSON"
"""The key of arguments that are not a JSON object, for a format that takes an object only. Anthropic advises it."""


class JSONObjectText:
    """The text of a JSON object that arrives in pieces.

    Attributes:
        is_complete: whether the object has been closed.
    """

    def __init__(self) -> None:
        self.is_complete = False
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def add(self, text: str) -> None:
        """Take the next piece. Each character is read once."""
        for character in text:
            if self._in_string:
                if self._escaped:
                    self._escaped = False
                elif character == "\\":
                    self._escaped = True
                elif character == '"':
                    self._in_string = False
            elif self._depth == 0 and not self.is_complete:
                if character == "{":
                    self._depth = 1
                elif not character.isspace():
                    self.is_complete = True
            elif character == '"':
                self._in_string = True
            elif character in "{[":
                self._depth += 1
            elif character in "}]":
                self._depth -= 1
                self.is_complete = self._depth == 0 or self.is_complete


_MAX_DEPTH: Final = 190
"""The maximum nesting depth of an input's objects and arrays. The official client takes 200 in the whole body."""


def as_input(text: str) -> dict[str, Any] | None:
    """Return *text* as an input that official clients can read, with all digits of numbers, or ``None`` if invalid."""
    if not _is_input(text):
        return None
    exact_input: dict[str, Any] = json.loads(text, parse_int=orjson.Fragment, parse_float=orjson.Fragment)
    return exact_input


def input_of(text: str, kind: CallKind | None = None) -> dict[str, Any]:
    """Return *text* as an input, or under ``INVALID_JSON``. An empty object would be a call without arguments.

    The text of a call of the *kind* ``custom`` is the one argument ``input``.
    """
    if kind is not None:
        return {"input": text}
    call_input = as_input(text or "{}")
    return {INVALID_JSON: text} if call_input is None else call_input


def is_cut_input(text: str) -> bool:
    """Whether *text* is the beginning of a JSON object that lacks only its rest, and is not too deep."""
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError as error:
        is_cut = error.pos == len(text) and text.lstrip().startswith("{")
        return is_cut and _depth(text) <= _MAX_DEPTH
    return False


def is_same_object(one: str, other: str) -> bool:
    """Whether two texts are the same JSON object: every digit of a number counts, and every key that comes twice."""
    return _is_input(one) and _is_input(other) and bool(_exact(one) == _exact(other))


def _is_input(text: str) -> bool:
    """Whether *text* is a JSON object, and not too deep."""
    try:
        is_object = isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False
    return is_object and _depth(text) <= _MAX_DEPTH


def _depth(text: str) -> int:
    """Return the maximum nesting depth of the objects and arrays of *text*."""
    return max(accumulate((mark in "{[") - (mark in "}]") for mark in _JSON_MARKS.findall(text)))


_JSON_MARKS: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[\[\]{}]')
"""The characters that open and close objects and arrays, and texts, in which they have no effect."""


def _exact(text: str) -> Any:
    """Return *text*, which is JSON, as values that are equal only for the same JSON."""
    return json.loads(text, parse_int=_integer, parse_float=_number, object_pairs_hook=_object)


_QUIET_CONTEXT: Final = Context(traps=[])


def _integer(digits: str) -> tuple[str, str]:
    """An integer. Python would treat it as equal to a number with a point, and 1 as equal to true."""
    return "integer", digits


def _number(digits: str) -> tuple[str, Decimal | str]:
    """A number with all its digits, or its text if the exponent is too large."""
    value = Decimal(digits, _QUIET_CONTEXT)
    return "number", value if value.is_finite() else digits


def _object(pairs: list[tuple[str, Any]]) -> Any:
    fields = dict(pairs)
    return fields if len(fields) == len(pairs) else pairs


class CallIDs:
    """The ids of the calls of one answer, all different.

    Args:
        choice: the answer's number.
    """

    def __init__(self, choice: int = 0) -> None:
        self._prefix = f"call_{choice}_" if choice else "call_"
        self._taken_ids: set[str] = set()

    def take(self, id: str | None, index: int) -> str:
        """Return *id*, or the answer's own id for its call *index* if it is missing or taken by another call."""
        if not id or id in self._taken_ids:
            id = f"{self._prefix}{index}"
            while id in self._taken_ids:
                id += "_"
        self._taken_ids.add(id)
        return id


# ----------------------------------------------------------------------------------- parts
# An answer as pieces of its parts: the input of the writers of all forms, for whole answers and streams.


@attrs.frozen
class CallPiece:
    """Marks a piece of a call that the client is to make.

    Attributes:
        index: the call's position among the calls of its choice.
        id: its id, on the piece that brings it.
        name: its name, on the piece that brings it.
        kind: ``custom`` if its arguments are free text.
    """

    index: int
    id: str | None = None
    name: str | None = None
    kind: CallKind | None = None


@attrs.frozen
class Piece:
    """A piece of a part of an answer, or all of it.

    Attributes:
        part: the number of the part in its choice, from 0.
        type: the type of the part.
        text: text to append: for a call its arguments.
        metadata: the known facts about the part, or the new ones.
        annotations: citations and verdicts.
        call: the client's call of the piece, or ``None`` for everything else, including calls of the server's tools.
        choice: the number of the answer, if there are several.
    """

    part: int
    type: SegmentType
    text: str = ""
    metadata: FrozenObject = EMPTY_OBJECT
    annotations: tuple[Annotation, ...] = ()
    call: CallPiece | None = None
    choice: int = 0


def pieces_of(message: ChatMessage, segments: tuple[Segment, ...], *, choice: int = 0) -> Iterator[Piece]:
    """Yield the parts of a whole answer, each in one piece.

    The message determines the client's calls and, if the segments do not show all of it, the text.
    """
    calls = message.tool_calls or ()
    unseen_indices: dict[tuple[str, str], list[int]] = {}
    for index in reversed(range(len(calls))):
        unseen_indices.setdefault((calls[index].id, calls[index].arguments), []).append(index)
    for number, segment in enumerate(segments):
        indices = None
        if segment.type is SegmentType.TOOL_CALL:
            indices = unseen_indices.get((str(segment.metadata.get("id")), segment.content))
        yield _piece(number, segment, _about(calls, indices.pop()) if indices else None, choice)
    number = len(segments)
    if message.text and not any(segment.type is SegmentType.TEXT for segment in segments):
        yield Piece(number, SegmentType.TEXT, message.text, choice=choice)
    for index in sorted(chain.from_iterable(unseen_indices.values())):  # no segment shows it
        number += 1
        call_piece = _about(calls, index)
        yield Piece(number, SegmentType.TOOL_CALL, calls[index].arguments, call=call_piece, choice=choice)


def _about(calls: Sequence[ToolCall], index: int) -> CallPiece:
    return CallPiece(index, calls[index].id, calls[index].name, calls[index].kind)


class Parts:
    """Determines for each delta of a stream the part of the answer that it adds to."""

    def __init__(self) -> None:
        self._choices: dict[int, ChoiceDraft] = {}
        self._call_parts: dict[tuple[int, int], int] = {}

    def of(self, delta: ResponseDelta) -> Iterator[Piece]:
        """Return the pieces of *delta*, in the order in which the answer takes them."""
        number = delta.choice
        choice = self._choices.get(number)
        if choice is None:
            choice = self._choices[number] = ChoiceDraft()
        parts = choice.parts
        for kind, text in (
            (SegmentType.REASONING, delta.reasoning_delta),
            (SegmentType.TEXT, delta.content_delta),
            (SegmentType.REFUSAL, delta.refusal_delta),
        ):
            if text is not None:
                choice.write(kind, text)
                if choice.open is kind:
                    yield Piece(len(parts) - 1, kind, text, choice=number)
        call, segment = delta.tool_call_delta, delta.segment
        if call is not None:
            choice.add_call(call)
            part = self._call_parts.setdefault((number, call.index), len(parts) - 1)
            call_piece = CallPiece(call.index, call.id, call.name, call.kind)
            yield Piece(
                part, SegmentType.TOOL_CALL, call.arguments_delta or "", call=call_piece, choice=number
            )
        if segment is not None:
            choice.insert(segment)
            yield _piece(len(parts) - 1, segment, None, number)


def _piece(part: int, segment: Segment, call: CallPiece | None, choice: int) -> Piece:
    return Piece(part, segment.type, segment.content, segment.metadata, segment.annotations, call, choice)


# -------------------------------------------------------------------------------- searches
# A web search of the server: one item of Responses, and the blocks of a call and of its result in Messages. Both have the
# query and the URLs of the pages. The id of each is valid in the other API, and comes back as it was.


_ITEM_ID, _BLOCK_ID = "ws_", "srvtoolu_"
"""The beginnings of the ids that each API takes."""


def search_item(piece: Piece) -> Event | None:
    """Return *piece*, the call of a web search in Messages, as the item that begins, or ``None`` if it is another piece."""
    call = piece.metadata
    if (call.get("type"), call.get("name")) != ("server_tool_use", "web_search"):
        return None
    query, id = (as_json_object(piece.text) or {}).get("query"), call.get("id")
    if not (isinstance(query, str) and isinstance(id, str)):
        return None
    own_id = id.removeprefix(_BLOCK_ID)
    id = own_id if own_id.startswith(_ITEM_ID) else f"{_ITEM_ID}{id}"
    return {"id": id, "type": "web_search_call", "action": {"type": "search", "query": query}}


def sources_of(piece: Piece) -> list[Event] | None:
    """Return the pages that *piece*, the result of a web search in Messages, lists, or ``None`` if the search has failed."""
    pages = piece.metadata.thawed().get("content")
    if not isinstance(pages, list):
        return None
    urls = (page.get("url") for page in pages if isinstance(page, dict))
    return [{"type": "url", "url": url} for url in urls if isinstance(url, str)]


def search_pieces(piece: Piece) -> list[Piece]:
    """Return *piece*, the item of a web search of Responses, as the call and, if present, the result in Messages.

    The list is empty for other items. A client requires the title and the encrypted content of a page, so they are empty.
    """
    item = piece.metadata
    if item.get("type") != "web_search_call":
        return []
    action = as_json_object(piece.text) or {}
    queries = [action.get("query"), *(action.get("queries") or ())]
    query, id = next((query for query in queries if isinstance(query, str)), None), item.get("id")
    if not (action.get("type") == "search" and query is not None and isinstance(id, str)):
        return []
    own_id = id.removeprefix(_ITEM_ID)
    id = own_id if own_id.startswith(_BLOCK_ID) else f"{messages.FOREIGN_SEARCH}{own_id}"
    caller, sources = {"caller": dict(messages.CALLER)}, action.get("sources")
    call = {"type": "server_tool_use", "id": id, "name": "web_search", **caller}
    pieces = [attrs.evolve(piece, text=dump_json({"query": query}).decode(), metadata=FrozenObject(call))]
    content: Any = None
    if item.get("status") == "failed":
        content = {"type": "web_search_tool_result_error", "error_code": "unavailable"}
    elif isinstance(sources, list):
        content = [_page(source) for source in sources if isinstance(source, dict) and "url" in source]
    if content is not None:
        result = {"type": "web_search_tool_result", "tool_use_id": id, "content": content, **caller}
        pieces.append(attrs.evolve(piece, part=~piece.part, text="", metadata=FrozenObject(result)))
    return pieces


def _page(source: Event) -> Event:
    about = {"title": source.get("title") or "", "encrypted_content": "", "page_age": None}
    return {"type": "web_search_result", "url": source["url"], **about}


def hidden_of(piece: Piece, *, is_own: bool) -> Any:
    """Return the encrypted reasoning of *piece*, marked if it is from another API than the written form's.

    Args:
        piece: the reasoning.
        is_own: whether its answer is of that API. Then it may hold reasoning that was marked before.
    """
    hidden, is_seal = piece.metadata.get("encrypted"), piece.metadata.get("format") == "crosswalk"
    is_marked = isinstance(hidden, str) and piece.metadata.get("is_foreign", False) is is_own
    return f"{messages.ENCRYPTED}{hidden}" if hidden and is_marked and not is_seal else hidden


# ---------------------------------------------------------------------------------- source
# Restores the stored fields of an answer's original form at their positions.
#
# ``metadata.extensions`` have the structure of the payload. In a list of objects, each gives its position as ``index``
# if its position in the list is a different one.


def form_of_body(body: Any) -> WireForm | None:
    """Return the form of a whole *body* by the guarantees of its API, or ``None`` if it matches no form."""
    if not isinstance(body, dict):
        return None
    if body.get("object") == "response":
        return WireForm.OPENAI_RESPONSES
    if body.get("type") == "message" and isinstance(body.get("content"), list):
        return WireForm.ANTHROPIC
    if type(body.get("done")) is bool:
        if isinstance(body.get("message"), dict):
            return WireForm.OLLAMA
        return WireForm.OLLAMA_GENERATE if isinstance(body.get("response"), str) else None
    if isinstance(body.get("candidates"), list) or isinstance(body.get("promptFeedback"), dict):
        return WireForm.GEMINI
    choices = body.get("choices")
    first_choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(first_choice, dict):
        return None
    if body.get("object") == chat_wire.TEXT and isinstance(first_choice.get("text"), str):
        return WireForm.OPENAI_COMPLETIONS
    return WireForm.OPENAI_CHAT if isinstance(first_choice.get("message"), dict) else None


def source_form(response: ChatResponse) -> WireForm | None:
    """Return the form that *response*, complete or partial, was read from, or ``None`` if it is unclear."""
    extensions = response.metadata.extensions
    object = extensions.get("object")
    if isinstance(object, str) and object.startswith("chat.completion"):
        return WireForm.OPENAI_CHAT
    if object == chat_wire.TEXT:
        return WireForm.OPENAI_COMPLETIONS
    if "stop_sequence" in extensions:  # a message always has it
        return WireForm.ANTHROPIC
    if response.metadata.provider_id == WireForm.ANTHROPIC.provider and "log_id" not in extensions:
        return WireForm.ANTHROPIC  # of all but the legacy completions of Anthropic, which have it
    if response.metadata.provider_id == WireForm.GEMINI.provider and _is_gemini(response):
        return WireForm.GEMINI
    if "updated" in extensions:
        return None  # an interaction of Gemini's, which ends with the words of the Responses API
    finish_word = (response.raw_finish_reason or "").partition(":")[0]
    if finish_word in responses_wire.FINISH_REASONS or _is_output(extensions.get("output")):
        return WireForm.OPENAI_RESPONSES
    if response.metadata.provider_id == WireForm.OLLAMA.provider and isinstance(
        extensions.get("created_at"), str
    ):
        return WireForm.OLLAMA  # or an answer of its generate API: they are indistinguishable
    return None


def _is_gemini(response: ChatResponse) -> bool:
    """Whether an answer of Gemini's provider is of ``generateContent``, and not of its other APIs: by its first event or, if
    that was not kept, by its finish word."""
    if len(response.raw_events):
        return form_of_body(response.raw_events[0]) is WireForm.GEMINI
    finish_word = response.raw_finish_reason or ""
    return finish_word in gemini_wire.FINISH_REASONS or finish_word in gemini_wire.FAILED


def _is_output(value: Any) -> bool:
    """Whether *value* lists the items of a response, each with its position and its type."""
    return isinstance(value, tuple | list) and any(
        isinstance(item, Mapping) and type(item.get("index")) is int and type(item.get("type")) is str
        for item in value
    )


def put_back(written_object: dict[str, Any], residue: Mapping[str, Any], *, over: bool = False) -> None:
    """Put into *written_object*, a written object, the residue *residue* of the original. Written fields stay.

    With *over*, an object with a type replaces the written one: it has no canonical field, so the written object was made up
    as a substitute.
    """
    for name, value in residue.items():
        written_value = written_object.get(name)
        if isinstance(written_value, dict) and isinstance(value, dict):
            put_back(written_value, value, over=over)
        elif isinstance(written_value, list) and isinstance(value, list):
            _put_items(written_value, value, over)
        elif written_value is None or (over and type(written_value) is type(value)):
            written_object[name] = value


def _put_items(written_items: list[Any], residues: list[Any], over: bool) -> None:
    """Do the same for lists of objects. An entry without a written counterpart is added if it is whole (has a type)."""
    for position, item in enumerate(residues):
        if isinstance(item, dict):
            number, remainder = item.get("index", position), without_place(item)
            if (
                type(number) is int
                and number < len(written_items)
                and isinstance(written_items[number], dict)
            ):
                put_back(written_items[number], remainder, over=over)
            elif "type" in remainder:
                written_items.append(remainder)


def without_place(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return one of several residues, without its position. An ``index`` of the payload gets its own name back."""
    return {
        "index" if name == "own_index" else name: value for name, value in item.items() if name != "index"
    }


# ---------------------------------------------------------------------------------- writer
# The shared base of the writers of all forms.


Event: TypeAlias = dict[str, Any]
"""An event of a stream, or an object in one."""

TIERS: Final = ("auto", "default", "flex", "scale", "priority", "fast")
"""The service tiers that clients of OpenAI's forms know."""
_USUAL_TIERS: Final = ("default", "on_demand", "standard")
"""The words of OpenAI, Groq and Anthropic for the usual service tier."""


def tier_of(extensions: Mapping[str, Any], usual: str = "default") -> str | None:
    """Return the service tier of an answer with *extensions*, by the word *usual* if it is the usual one, or ``None``."""
    usage = extensions.get("usage")
    for holder in (extensions, usage if isinstance(usage, Mapping) else {}):
        if isinstance(tier := holder.get("service_tier"), str):
            return usual if tier in _USUAL_TIERS else tier
    return None


@attrs.frozen
class Heading:
    """The facts about an answer that a form writes before its content.

    Attributes:
        id: its id.
        model: the model, or ``""`` if unknown.
        created: the time of its creation.
        extensions: the provider's further fields, as far as they are known. A form takes only its own.
        own: the provider that read it, if it was read from the form that is written, or ``None``.
        request: the client's request in the form that is written, as far as the answer repeats it.
        provider: the provider that gave the answer, or ``""`` if unknown.
    """

    id: str
    model: str
    created: datetime
    extensions: FrozenObject = EMPTY_OBJECT
    own: Mapper | None = None
    request: Mapping[str, Any] = attrs.Factory(dict)
    provider: str = ""

    def tier(self, usual: str = "default") -> Any:
        """Its service tier, by the word *usual* if it is the usual one. An answer of the form itself keeps its own word."""
        own = self.own is not None
        return self.extensions.get("service_tier") if own else tier_of(self.extensions, usual)

    @property
    def time(self) -> str:
        """The time of its creation, in UTC, as Gemini and Ollama write it."""
        return f"{self.created.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"


class Writer(ABC):
    """Writes one answer in one form, as the events of a stream or as a whole.

    Pass it the stored fields (:meth:`learn`), feed it with :meth:`piece`, :meth:`tokens`, :meth:`end` and :meth:`fail`, then
    :meth:`close` it, and take the events that it makes. A writer of the *whole* answer has it as :meth:`body` after that.

    Args:
        heading: returns the heading. It is called once, as late as possible, because some providers send it late.
        whole: whether only the body is wanted. Then events are unused, and a part may wait for the next one.

    Attributes:
        form: the form.
        usage: the tokens so far, set by the caller.
        duration: the duration of the request, set by the caller before the end, or ``None`` if unknown.
    """

    form: ClassVar[WireForm]

    def __init__(self, heading: Callable[[], Heading], *, whole: bool = False) -> None:
        self._ask = heading
        self._heading: Heading | None = None
        self._left: dict[str, Any] | None = None
        self._arrays = Arrays()
        self.whole = whole
        self.usage: UsageInfo | None = None
        self.duration: timedelta | None = None
        self.error: ErrorInfo | None = None

    @property
    def heading(self) -> Heading:
        """The heading."""
        if self._heading is None:
            self._heading = self._ask()
        return self._heading

    @property
    def is_own(self) -> bool:
        """Whether the answer was read from this form, so that its stored fields go back to their positions."""
        return self.heading.own is not None

    @property
    def left(self) -> dict[str, Any]:
        """The stored fields of the answer in its own form so far. The writer's own copy."""
        if self._left is None:
            self._left = self.heading.extensions.thawed() if self.whole else {}
        return self._left

    def learn(self, new_fields: FrozenObject) -> None:
        """Take more of the stored fields of a streamed answer, as a delta brings them."""
        merge(self.left, new_fields.thawed(), self._arrays, PIECES)

    @abstractmethod
    def piece(self, piece: Piece) -> Iterable[Event]:
        """Write a piece of a part. Content that the form cannot express is left out."""

    def tokens(self, tokens: tuple[TokenLogprob, ...], choice: int) -> None:  # noqa: B027  # not every form has them
        """Write log probabilities of the text that follows next."""

    @abstractmethod
    def end(self, reason: FinishReason, finish_word: str | None, choice: int) -> None:
        """Write the reason why an answer ended, with the provider's own word for it."""

    def fail(self, info: ErrorInfo) -> Iterable[Event]:
        """Write the error that ended the answer, as its last event."""
        yield from self._pending()
        self.error = info
        yield self.error_event(info)

    @staticmethod
    @abstractmethod
    def error_event(info: ErrorInfo) -> Event:
        """Return the body of an HTTP error with *info*."""

    def close(self) -> Iterable[Event]:
        """End the answer."""
        if self.error is None:
            yield from self._pending()
            if not self.whole:
                yield from self._last()

    @abstractmethod
    def _pending(self) -> Iterable[Event]:
        """Write the parts that have waited for later ones."""

    @abstractmethod
    def _last(self) -> Iterable[Event]:
        """Write the last events of a stream."""

    def word_for(
        self, reason: FinishReason, finish_word: str | None, words: Mapping[str, FinishReason]
    ) -> str:
        """Return the form's word for *reason*: the provider's own one if it is among the *words* and means the same.

        In its own form an answer keeps an unknown word, and one that the presence or absence of calls overrules.
        A pause has no word in another form. The nearest is a limit, which marks the answer as incomplete.
        """
        if (
            finish_word in PAUSES
            and finish_word not in words
            and reason is FinishReason.STOP
            and not self.is_own
        ):
            reason = FinishReason.LENGTH
        meaning = None if finish_word is None else words.get(finish_word, reason if self.is_own else None)
        is_overruled = {meaning, reason} == {FinishReason.STOP, FinishReason.TOOL_CALLS}
        if finish_word is not None and (meaning is reason or (is_overruled and self.is_own)):
            return finish_word
        words_by_meaning = first_words(words)
        return words_by_meaning[reason if reason in words_by_meaning else _NEAREST_REASONS[reason]]

    @staticmethod
    def frame(event: Event) -> bytes:
        """Return *event* as sent in a stream."""
        return named_frame(event)

    def spelled(self, event: Event) -> Event:
        """Return *event* in the spelling of the answer's server. The event may be changed."""
        return event

    def top_of(self, event: Event) -> Event:
        """Return the object in *event* that has the top fields of a body."""
        return event

    @property
    def is_error_body(self) -> bool:
        """Whether the body is that of an HTTP error."""
        return self.error is not None

    def body(self) -> Event:
        """Return the answer as a whole, or the body of an HTTP error, once it is closed."""
        error = self.error if self.is_error_body else None
        return self._body() if error is None else self.error_event(error)

    @abstractmethod
    def _body(self) -> Event:
        """Return the answer as a whole."""


def named_frame(event: Event) -> bytes:
    """Return *event* with its type as its name, as Anthropic and the Responses API send it."""
    return b"event: %s\ndata: %s\n\n" % (str(event["type"]).encode(), json_of(event))


def unnamed_frame(event: Event) -> bytes:
    """Return *event* as OpenAI sends chunks: without a name. An empty event is the end marker."""
    return b"data: %s\n\n" % (json_of(event) if event else b"[DONE]")


def json_of(value: Event) -> bytes:
    """Return *value* as JSON text.

    Raises:
        ConversionError: JSON cannot hold it, such as half a surrogate pair.
    """
    try:
        return dump_json(value)
    except TypeError as error:
        cause = str(error)[:80]
    raise ConversionError(f"the answer holds what JSON cannot: {cause}")


_NEAREST_REASONS: Final = {
    FinishReason.CANCELLED: FinishReason.LENGTH,  # marks the answer as incomplete
    FinishReason.CONTENT_FILTER: FinishReason.LENGTH,  # likewise
    FinishReason.TOOL_CALLS: FinishReason.STOP,
    FinishReason.ERROR: FinishReason.STOP,  # of an alternative: the answer itself becomes an error
}
"""The substitute for a meaning that a form has no word for."""


def first_words(words: Mapping[str, Any]) -> dict[Any, str]:
    """Invert a form's *words* with their meanings: the first word for each meaning."""
    return {meaning: word for word, meaning in reversed([*words.items()])}


_WEB_SCHEMES: Final = ("http://", "https://")


def logprobs_of(tokens: tuple[TokenLogprob, ...], *, with_bytes: bool = False) -> list[Event]:
    """Return *tokens* in OpenAI's format. Tokens without a probability are left out, because it cannot be made up.

    If *with_bytes*, a token without bytes gets those of its text.
    """
    logprobs = [logprob_of(token) for token in tokens if token.logprob is not None]
    for logprob in logprobs:
        logprob["top_logprobs"] = [top for top in logprob["top_logprobs"] if top["logprob"] is not None]
        for entry in (logprob, *logprob["top_logprobs"]) if with_bytes else ():
            entry["bytes"] = entry["bytes"] or list(entry["token"].encode(errors="replace"))
    return logprobs


def url_citation(piece: Piece, span: tuple[int, int]) -> Event | None:
    """Return the page of *piece*, a citation of *span*, in OpenAI's format, or ``None`` if it cites something else."""
    source = ref_of(piece).source
    is_of_plan = piece.metadata.get("type") == "PLAN"  # Cohere's reasoning
    if source is None or not source.startswith(_WEB_SCHEMES) or is_of_plan:
        return None
    title = piece.metadata.get("title")
    span_fields = dict(zip(("start_index", "end_index"), span, strict=True))
    return {**span_fields, "title": title if isinstance(title, str) else piece.text, "url": source}


def ref_of(piece: Piece) -> CitationRef:
    """Return the source of *piece*, an empty one if it names none."""
    return next((note for note in piece.annotations if isinstance(note, CitationRef)), CitationRef())


def is_of_block(piece: Piece) -> bool:
    """Whether *piece*, a citation, is of one block of text, which it precedes unless that says otherwise: Claude's are."""
    return str(piece.metadata.get("type")) in messages.LOCATIONS or "location" in piece.metadata


class CitedText:
    """Counts the text of an answer, and determines the characters of it that each citation is of.

    Attributes:
        length: the length of the text so far, in characters.
        start: where its newest part begins. A part of its server may come in several pieces, with citations between them.
    """

    def __init__(self) -> None:
        self.length = 0
        self._starts: list[int] = []
        self._part: int | None = None  # the newest text, while it may go on
        self._goes_on = False  # whether the next one belongs to it, too
        self._is_ahead = True
        self._citations: list[tuple[Piece, int | tuple[int, int] | None]] = []

    @property
    def start(self) -> int:
        """See the class."""
        return self._starts[-1] if self._starts else 0

    def add(self, piece: Piece) -> None:
        """Take the next piece of the answer."""
        goes_on, self._goes_on = self._goes_on, False
        if piece.type is SegmentType.TEXT:
            if piece.text and piece.part != self._part:
                self._part = piece.part
                if not goes_on:
                    self._starts.append(self.length)
            self.length += len(piece.text)
            self._is_ahead = piece.metadata is EMPTY_OBJECT or piece.metadata.get("citations") != "follow"
        elif piece.type is SegmentType.CITATION:
            self._goes_on = not is_of_block(piece) and self._starts != []
            self._citations.append((piece, self._span(piece)))

    def _span(self, piece: Piece) -> int | tuple[int, int] | None:
        """Return the span of *piece*, or the number of the part that it is of, or ``None`` if it is of the whole text."""
        span = ref_of(piece).span
        if span is not None:
            start = self.start if "type" in piece.metadata else 0
            return start + span[0], start + span[1]
        return max(len(self._starts) - (not self._is_ahead), 0) if is_of_block(piece) else None

    def citations(self) -> Iterator[tuple[Piece, tuple[int, int] | None]]:
        """Return the citations of the text, which is complete, with their spans. Those of a text that never came are not."""
        ends = [*self._starts[1:], self.length]
        for piece, span in self._citations:
            if not isinstance(span, int):
                yield piece, span
            elif span < len(self._starts):
                yield piece, (self._starts[span], ends[span])


# --------------------------------------------------------------------------------- failure
# Errors in the format of each form.


_INVALID_REQUEST: Final = "invalid_request_error"
_USUAL_ERRORS: Final[dict[ErrorKind, tuple[int, str, str | None]]] = {
    ErrorKind.RATE_LIMIT: (429, "rate_limit_exceeded", None),
    ErrorKind.QUOTA: (402, "insufficient_quota", "insufficient_quota"),
    ErrorKind.CONTEXT_OVERFLOW: (400, _INVALID_REQUEST, "context_length_exceeded"),
    ErrorKind.MODEL_UNAVAILABLE: (404, _INVALID_REQUEST, "model_not_found"),
    ErrorKind.AUTHENTICATION: (401, _INVALID_REQUEST, "invalid_api_key"),
    ErrorKind.PERMISSION: (403, "permission_denied", None),
    ErrorKind.INVALID_REQUEST: (400, _INVALID_REQUEST, None),
    ErrorKind.CONTENT_FILTER: (400, _INVALID_REQUEST, "content_filter"),
    ErrorKind.TOOL_CALL_VALIDATION: (500, "server_error", "tool_use_failed"),  # the model has failed
    ErrorKind.TIMEOUT: (504, "timeout", None),
    ErrorKind.SERVER: (500, "server_error", None),
    ErrorKind.UNKNOWN: (500, "api_error", None),
}
"""The status of each kind, and OpenAI's type and code if the provider named none, by which a reader recognizes the kind."""
_ANTHROPIC_TYPES: Final = {**first_words(messages.ERRORS), ErrorKind.MODEL_UNAVAILABLE: "not_found_error"}
_TYPES_BY_STATUS: Final[dict[tuple[str, int | None], str]] = {
    (_INVALID_REQUEST, 404): "not_found_error",
    (_INVALID_REQUEST, 413): "request_too_large",
    ("rate_limit_error", 503): "overloaded_error",
    ("rate_limit_error", 529): "overloaded_error",
}
"""Anthropic's type of an error whose usual type means another status."""
_GEMINI_STATUSES: Final = {
    **first_words(gemini.ERRORS),
    ErrorKind.QUOTA: "RESOURCE_EXHAUSTED",
    ErrorKind.SERVER: "INTERNAL",
    ErrorKind.TIMEOUT: "DEADLINE_EXCEEDED",
}
_GEMINI_WORDS: Final = {404: "NOT_FOUND", 503: "UNAVAILABLE", 529: "UNAVAILABLE"}
"""Google's words for statuses whose errors other APIs count among others."""
_RESPONSE_CODES: Final = {
    ErrorKind.RATE_LIMIT: "rate_limit_exceeded",
    ErrorKind.QUOTA: "rate_limit_exceeded",
    ErrorKind.INVALID_REQUEST: "invalid_prompt",
    ErrorKind.SERVER: "server_error",
}


def error_status(info: ErrorInfo, form: WireForm) -> int:
    """Return the HTTP status to answer with: the provider's own, else the usual one for the kind of error.

    Groq says 400 if its model calls a tool wrongly, and has a word for that. If only the status can say who is at fault,
    it is not the request.
    """
    has_word = info.kind is not ErrorKind.TOOL_CALL_VALIDATION or form.provider.startswith("openai")
    own_status, least = info.status, 400 if has_word else 500
    return (
        own_status if own_status is not None and least <= own_status <= 599 else _USUAL_ERRORS[info.kind][0]
    )


def openai_error(info: ErrorInfo) -> Event:
    """Return the body of an HTTP error, or of an event that ends a stream, as OpenAI writes it.

    Many servers of its dialect have a number as the code, where OpenAI has a word or nothing. It is written as a text.
    Other numbers stay, such as llama.cpp's ``n_ctx``. Other texts may contain secrets.
    """
    _, usual_type, usual_code = _USUAL_ERRORS[info.kind]
    error = info.raw.get("error") if isinstance(info.raw, dict) else None
    provider_error = error if isinstance(error, dict) else {}
    own_type = _word(provider_error.get("type"))
    code = info.code or usual_code
    if own_type is not None and own_type == info.code != provider_error.get("code"):
        code = str(provider_error["code"]) if type(provider_error.get("code")) is int else None
    error_fields = {
        "message": info.message,
        "type": own_type or usual_type,
        "param": _word(provider_error.get("param")),
        "code": code,
    }
    numbers = {
        name: value
        for name, value in provider_error.items()
        if type(value) is int and name not in error_fields
    }
    return {"error": error_fields | numbers}


def anthropic_error(info: ErrorInfo) -> Event:
    """Return the body of an HTTP error, or of an ``error`` event, as Anthropic writes it."""
    code, near_kind = info.code, _near_kind(info, WireForm.ANTHROPIC)
    type = code if code in messages.ERRORS else _ANTHROPIC_TYPES.get(info.kind, _ANTHROPIC_TYPES[near_kind])
    type = _TYPES_BY_STATUS.get((type or "", info.status)) or type
    return {"type": "error", "error": {"type": type, "message": info.message}, "request_id": None}


def gemini_error(info: ErrorInfo) -> Event:
    """Return the body of an HTTP error, or of the chunk that ends a stream, as Google's services write it."""
    usual_status = _GEMINI_STATUSES.get(info.kind, _GEMINI_STATUSES[_near_kind(info, WireForm.GEMINI)])
    usual = _GEMINI_WORDS.get(info.status or 0, usual_status)
    status = info.code if info.code in gemini.ERRORS else usual
    return {"error": {"code": error_status(info, WireForm.GEMINI), "message": info.message, "status": status}}


def _near_kind(info: ErrorInfo, form: WireForm) -> ErrorKind:
    """Return who is at fault by the status, for a kind that an API has no word for: the request, or the server."""
    return ErrorKind.INVALID_REQUEST if error_status(info, form) < 500 else ErrorKind.SERVER


def ollama_error(info: ErrorInfo) -> Event:
    """Return the body of an HTTP error, or of the line that ends a stream, as Ollama writes it."""
    return {"error": info.message}


def response_error(info: ErrorInfo, *, is_own: bool) -> Event:
    """Return the ``error`` of a failed response. Its code is one of a closed list, unless it *is* the form's *own*."""
    raw_error, code, kind = info.raw, info.code, info.kind
    if (
        is_own
        and isinstance(raw_error, dict)
        and {"code", "message"} <= raw_error.keys()
        and "type" not in raw_error
    ):
        return raw_error
    if code not in responses.ERRORS:
        near_kind = ErrorKind.INVALID_REQUEST if _USUAL_ERRORS[kind][0] == 400 else ErrorKind.SERVER
        code = _RESPONSE_CODES.get(kind, _RESPONSE_CODES[near_kind])
    return {"code": code, "message": info.message}


def _word(value: Any) -> str | None:
    return clean_message(value) if isinstance(value, str) and value else None
