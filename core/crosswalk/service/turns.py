"""The turns of a conversation as a provider's messages, and the options of a request as its body: helpers for plugins."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any, Final, Literal

import attrs

from crosswalk.errors import ToolCallArgumentsError
from crosswalk.formats.reading import table_of
from crosswalk.formats.tables import CLIENT_TOOLS, TABLES
from crosswalk.formats.writing import INVALID_JSON
from crosswalk.request import (
    NO_ANSWER as NO_ANSWER,
    Adaptation,
    AdaptationKind,
    CacheMark,
    ChatRequest,
    HostedTool,
    HTTPRequest,
    NamedTool,
    ReasoningEffort,
    ResponseFormat,
    ToolDefinition,
    Turn,
    UnsupportedRequestError,
)
from crosswalk.types.json import copy_json, dump_json, thaw
from crosswalk.types.message import (
    AudioPart,
    ChatMessage,
    ContentPart,
    DocumentPart,
    FilePart,
    ImagePart,
    Role,
    SearchResultPart,
    TextPart,
    ToolCall,
    VideoPart,
)
from crosswalk.types.response import ChatResponse
from crosswalk.types.values import FinishReason, Segment, SegmentType, altered, unchecked
from crosswalk.wire.options import (
    DETAILS,
    OPTIONS,
    PLACES,
    Place,
    PlaceKind,
    RequestPlace,
    RequestRow,
    RequestTable,
    path_of,
    put,
    put_row,
    written_details,
)

# ----------------------------------------------------------------------------------- turns
# Helpers for plugins that turn a conversation into their provider's messages, independent of any provider.


_BEGIN_SENTENCE = "(The conversation begins.)"
_NO_WORDS = "(The user says nothing.)"
NOT_RUN = "Error: not run: the conversation went on"
"""The result of a call that has none, for APIs that would refuse the call."""
SUMMARY = "Summary of the conversation so far:"
"""The words before a summary that another provider has made of earlier turns."""
_SHOWN_SENTENCE = "The result is shown in the next message of the user."
_SENTENCES: Final = {
    sentence.encode(): re.compile(rf"^{re.escape(sentence)}{rest}", re.MULTILINE)
    for sentence, rest in {
        **dict.fromkeys((NO_ANSWER, _BEGIN_SENTENCE, _NO_WORDS, NOT_RUN, SUMMARY, _SHOWN_SENTENCE), ""),
        "What call ": r"\S+ gave:$",
        "The output of ": r"\S+:$",
    }.items()
}
"""The sentences that stand in a conversation without anybody having said them, by how each begins."""


class Drops:
    """Collects what a provider cannot express while its request is being built.

    Args:
        request: the request.
    """

    def __init__(self, request: ChatRequest) -> None:
        self._request = request
        self._adaptations: list[Adaptation] = []

    def add(self, option: str, reason: str, *, refuses: bool = True) -> None:
        """Note that *option* is left out, for *reason*. See :class:`Adaptation` for *refuses*."""
        self._note(option, AdaptationKind.DROPPED, reason, refuses=refuses)

    def clamp(self, option: str, sent: Any, reason: str) -> None:
        """Note that *option* is *sent* with another value than it has, for *reason*."""
        self._note(option, AdaptationKind.CLAMPED, reason, sent)

    def default(self, option: str, sent: Any, reason: str) -> None:
        """Note that *option*, which the request does not set, is *sent*, for *reason*."""
        self._note(option, AdaptationKind.DEFAULTED, reason, sent)

    def leave(self, number: int, reason: str) -> None:
        """Note that a part of the message *number* is left out, for *reason*. The request is sent all the same."""
        self._note(f"messages[{number}]", AdaptationKind.DROPPED, reason)

    def _note(
        self, field: str, kind: AdaptationKind, reason: str, sent: Any = None, *, refuses: bool = False
    ) -> None:
        asked = self._request.option(field)
        self._adaptations.append(Adaptation(field, kind, reason, asked=asked, sent=sent, refuses=refuses))

    def given(self, request: ChatRequest, *options: str, reason: str = "the API has no such option") -> None:
        """Note those of *options* that *request* sets."""
        for option in options:
            if getattr(request, option) not in (None, ()):
                self.add(option, reason)

    def found(self) -> tuple[Adaptation, ...]:
        """The notes, in order."""
        return tuple(self._adaptations)


def message_of(turn: Turn) -> ChatMessage:
    """Return *turn* as a message."""
    return turn.message if isinstance(turn, ChatResponse) else turn


def text_of(turn: Turn) -> str:
    """Return the text of *turn*, then the model's reason for declining, for which many APIs have no other field."""
    return "\n\n".join(filter(None, (message_of(turn).text, refusal_of(turn))))


def refusal_of(turn: Turn) -> str | None:
    """Return the model's reason for declining in *turn*, or ``None``. The error of a failed answer is not a reason."""
    if not isinstance(turn, ChatResponse) or turn.finish_reason is FinishReason.ERROR:
        return None
    return turn.refusal


def is_of(turn: Turn, request: ChatRequest) -> bool:
    """Whether *turn* is an answer of the provider that this request goes to."""
    return isinstance(turn, ChatResponse) and request.provider in (None, turn.metadata.provider_id)


def segments_of(turn: Turn) -> tuple[Segment, ...]:
    """Return the parts of an assistant's *turn* that may be sent, in order. A plain message has its text and its tool calls.

    The request that a plugin gets holds nothing else (see ``ProviderInfo.way_back``).
    """
    if isinstance(turn, ChatResponse) and turn.segments:
        return turn.segments
    message, turn_text = message_of(turn), text_of(turn)
    text_segments = (Segment(SegmentType.TEXT, turn_text),) if turn_text else ()
    calls = (
        Segment(SegmentType.TOOL_CALL, call.arguments, {"id": call.id, "name": call.name})
        for call in message.tool_calls or ()
    )
    return (*text_segments, *calls)


def reasoning_of(turn: Turn) -> str:
    """Return the reasoning of an answer that may be sent, or ``""`` if it has none."""
    return turn.reasoning if isinstance(turn, ChatResponse) else ""


def content_parts(message: ChatMessage) -> tuple[ContentPart, ...]:
    """Return the content of *message* as parts. A text is one part, an empty text no part."""
    content = message.content
    if content is None or isinstance(content, str):
        return (unchecked(TextPart, text=content),) if content else ()
    return tuple(part for part in content if not isinstance(part, TextPart) or part.text)


def are_texts(turns: Iterable[Turn]) -> bool:
    """Whether *turns* are messages of text alone, those of the system first: every server takes them as they are."""
    is_begun = False
    for turn in turns:
        if not isinstance(turn, ChatMessage) or not isinstance(turn.content, str) or not turn.content:
            return False
        if turn.role is Role.TOOL or turn.tool_calls or turn.name or (is_begun and turn.role is Role.SYSTEM):
            return False
        is_begun = turn.role is not Role.SYSTEM
    return True


def system_text(turns: Iterable[Turn]) -> tuple[list[str], list[Turn]]:
    """Return the texts of the system messages, and the other turns, for APIs that keep the two apart.

    Raises:
        UnsupportedRequestError: a system message holds more than text.
    """
    texts: list[str] = []
    others: list[Turn] = []
    for turn in turns:
        message = message_of(turn)
        if message.role is not Role.SYSTEM:
            others.append(turn)
            continue
        for part in content_parts(message):
            if not isinstance(part, TextPart):
                raise UnsupportedRequestError("a system message can hold text alone", options=["messages"])
        if message.text:
            texts.append(message.text)
    return texts, others


_FAILED: Final = "Error: the tool has failed"


def told_failure(message: ChatMessage) -> str | tuple[ContentPart, ...] | None:
    """Return the content of *message*, the result of a tool that has failed, with words that say so."""
    text = message.text or ""
    if text.lstrip().lower().startswith("error"):
        return message.content
    if isinstance(message.content, str | None):
        return f"Error: {text}" if text.strip() else _FAILED
    return (*message.content, TextPart(f"\n{_FAILED}" if text else _FAILED))  # some APIs join the texts


def alternating(
    turns: Iterable[Turn],
    *,
    answer: Callable[[Turn], Iterable[dict[str, Any]]],
    result: Callable[[ChatMessage], dict[str, Any]],
    part: Callable[[ContentPart], dict[str, Any] | list[dict[str, Any]] | None],
    mark: Callable[[Turn, list[dict[str, Any]]], object] = lambda turn, parts: None,
) -> list[tuple[bool, list[dict[str, Any]]]]:
    """Return the conversation for APIs in which user and model alternate.

    Each turn is a pair: whether it is the model's, and its parts.

    The results of all calls of one answer are put into one turn of the user, together with the user's next message. An
    empty turn is left out, because the API would refuse it. An empty answer between two turns of the user becomes a text
    that states this, and so does an empty turn of the user behind an answer, because the model would go on with the answer.
    If the model speaks first, as in a greeting, a turn of the user is put before it to explain this.

    Args:
        turns: the conversation, without system messages.
        answer: returns the parts of a model's turn.
        result: returns the part of a tool's result.
        part: converts a part of the user's message, to one part or several, or returns ``None`` for one that would be
            refused.
        mark: receives each turn and its parts, to mark them for the cache.

    Raises:
        UnsupportedRequestError: the conversation has no content.
    """
    message_groups: list[tuple[bool, list[dict[str, Any]]]] = []
    is_silent = is_unsaid = False
    for turn in turns:
        message = message_of(turn)
        is_answer = message.role is Role.ASSISTANT
        if is_answer:
            blocks = [*answer(turn)]
        elif message.role is Role.TOOL:
            blocks = [result(message)]
        else:
            blocks = [*_flat(map(part, content_parts(message)))]
        if blocks:
            mark(turn, blocks)
        if blocks and is_unsaid and is_answer:
            message_groups.append((False, [*_flat([part(TextPart(_NO_WORDS))])]))
        is_unsaid = not blocks and not is_answer and bool(message_groups) and message_groups[-1][0]
        if blocks and is_silent and not is_answer and message_groups and not message_groups[-1][0]:
            message_groups.append((True, [*_flat([part(TextPart(NO_ANSWER))])]))
        is_silent = is_answer and not blocks
        if blocks and message_groups and message_groups[-1][0] is is_answer:
            message_groups[-1][1].extend(blocks)
        elif blocks:
            message_groups.append((is_answer, blocks))
    if not message_groups:
        raise UnsupportedRequestError("the conversation has no content", options=["messages"])
    if is_unsaid:
        message_groups.append((False, [*_flat([part(TextPart(_NO_WORDS))])]))
    if message_groups[0][0]:
        message_groups.insert(0, (False, [*_flat([part(TextPart(_BEGIN_SENTENCE))])]))
    return message_groups


def _flat(parts: Iterable[dict[str, Any] | list[dict[str, Any]] | None]) -> Iterator[dict[str, Any]]:
    for part in parts:
        yield from part if isinstance(part, list) else filter(None, [part])


def without_silence(
    messages: Iterable[dict[str, Any]], is_empty: Callable[[dict[str, Any]], bool]
) -> Iterator[dict[str, Any]]:
    """Return *messages* without empty answers. One between two messages of the user gets a text that states this.

    Args:
        messages: the messages, each with its role.
        is_empty: whether a message is an answer that the API would refuse because it has no content.
    """
    silent_message: dict[str, Any] | None = None
    previous_role: str | None = None
    for message in messages:
        if is_empty(message):
            silent_message = message
            continue
        if silent_message is not None and message.get("role") == previous_role == "user":
            yield {**silent_message, "content": NO_ANSWER}
        silent_message, previous_role = None, message.get("role")
        yield message


def with_results_shown(turns: Iterable[Turn]) -> Iterator[tuple[Turn | None, Turn]]:
    """Return the conversation for APIs that take only texts as results, with other output in the user's next message.

    Each item is one of *turns* with its form to send. The turn is ``None`` for a message that was made for that.
    """
    shown_parts: list[ContentPart] = []
    for turn in turns:
        message = message_of(turn)
        sent_turn: Turn = turn
        if message.role is Role.TOOL:
            media = [part for part in content_parts(message) if not isinstance(part, TextPart)]
            if media:
                text = message.text or _SHOWN_SENTENCE
                sent_turn = attrs.evolve(message, content=text)
                shown_parts += [TextPart(f"What call {message.tool_call_id} gave:"), *media]
        elif shown_parts and message.role is Role.USER:
            sent_turn = attrs.evolve(message, content=(*shown_parts, *content_parts(message)))
            shown_parts = []
        elif shown_parts:
            yield None, ChatMessage.user(shown_parts)
            shown_parts = []
        yield turn, sent_turn
    if shown_parts:
        yield None, ChatMessage.user(shown_parts)


def sentences_added(body: Any, content: bytes, read_caller_content: Callable[[], Any]) -> dict[str, str]:
    """Return the sentences that Crosswalk has put into a conversation, by their places in *body*.

    Args:
        body: the body of the request.
        content: the same as JSON.
        read_caller_content: returns what the caller says. A sentence of the caller's own is not listed.
    """
    sentences: dict[str, str] = {}
    for beginning, pattern in _SENTENCES.items():
        if beginning in content:
            caller_sentences = {
                match[0] for _, text in _texts(read_caller_content()) for match in pattern.finditer(text)
            }
            for place, text in _texts(body):
                match = pattern.search(text)
                if match is not None and match[0] not in caller_sentences:
                    sentences[path_of(place)] = match[0]
    return sentences


def _texts(value: Any) -> Iterator[tuple[Place, str]]:
    """Return each text in *value*, with its place."""
    stack: list[tuple[Place, Any]] = [((), value)]
    while stack:
        place, value = stack.pop()
        if isinstance(value, str):
            yield place, value
        elif isinstance(value, dict):
            stack += [((*place, name), inner) for name, inner in value.items()]
        elif isinstance(value, list):
            stack += [((*place, number), inner) for number, inner in enumerate(value)]


def written_mark(mark: CacheMark, table: RequestTable | str) -> dict[str, Any]:
    """Return *mark* as *table* spells it, under its key, or nothing if the table has no place for it."""
    row = _table(table).row("cache.mark")
    return (
        {}
        if row is None
        else {row.path.rpartition(".")[2]: row.written({"ttl": mark.ttl} if mark.ttl else {})}
    )


def part_marks(request: ChatRequest, table: RequestTable | str) -> Mapping[int, dict[str, Any]]:
    """Return the marks of *request* within its messages as *table* spells them, by the ``id()`` of the part before each."""
    marks: dict[int, dict[str, Any]] = {}
    for mark in request.cache_marks:
        message = message_of(request.messages[mark.after]) if isinstance(mark.after, int) else None
        if message is not None and mark.part is not None and isinstance(message.content, tuple):
            marks |= {
                id(part): written_mark(mark, table) for part in message.content[mark.part : mark.part + 1]
            }
    return marks


def mark_behind(request: ChatRequest, turn: Turn) -> CacheMark | None:
    """Return the mark of *request* behind *turn*. That of the system stands behind its last message."""
    for mark in request.cache_marks:
        marked_turn = request.messages[mark.after] if isinstance(mark.after, int) else None
        if mark.after == "system":
            system_turns = (one for one in reversed(request.messages) if message_of(one).role is Role.SYSTEM)
            marked_turn = next(system_turns, None)
        if mark.part is None and marked_turn is turn:
            return mark
    return None


def system_texts(request: ChatRequest, table: RequestTable | str) -> list[tuple[str, dict[str, Any]]]:
    """Return the texts of the system messages, each with the mark behind it as *table* spells it.

    Texts without a mark between them are one, with empty lines between the messages.
    """
    marks = part_marks(request, table)
    marked_texts: list[tuple[str, dict[str, Any]]] = []
    pending_texts: list[str] = []
    turns = [turn for turn in request.messages if message_of(turn).role is Role.SYSTEM]
    for turn in turns:
        pending_texts.append("")
        for part in content_parts(message_of(turn)):
            pending_texts[-1] += part.text if isinstance(part, TextPart) else ""
            if marks.get(id(part)):
                marked_texts.append(("\n\n".join(filter(None, pending_texts)), marks[id(part)]))
                pending_texts = [""]
        mark = mark_behind(request, turn)
        if mark is not None and any(pending_texts) and (mark_fields := written_mark(mark, table)):
            marked_texts.append(("\n\n".join(filter(None, pending_texts)), mark_fields))
            pending_texts = []
    text = "\n\n".join(filter(None, pending_texts))
    return [*marked_texts, (text, {})] if text else marked_texts


def lost_marks(request: ChatRequest, turn: Turn, drops: Drops) -> None:
    """Note in *drops* the cache marks of *request* in or behind *turn*, for which the API has no place there."""
    for number, mark in enumerate(request.cache_marks):
        if isinstance(mark.after, int) and request.messages[mark.after] is turn:
            drops.add(f"cache_marks[{number}]", "the API takes no mark there", refuses=False)


def cache_mark(request: ChatRequest, place: Turn | Literal["tools", "system"]) -> CacheMark | None:
    """Return the mark of *request* after *place*: one of its turns, or a part before the conversation.

    The last of several marks among the system's messages counts. Marks within a message are those of :func:`part_marks`.
    """
    found_mark = None
    for mark in request.cache_marks:
        turn = request.messages[mark.after] if isinstance(mark.after, int) else None
        is_system = turn is not None and message_of(turn).role is Role.SYSTEM
        if mark.part is None and (mark.after == place or turn is place or (is_system and place == "system")):
            found_mark = mark
    return found_mark


def tool_names(turns: Sequence[Turn]) -> Mapping[str, str]:
    """Return the tools' names by the ids of their calls, for APIs in which a result names its tool."""
    return {call.id: call.name for turn in turns for call in message_of(turn).tool_calls or ()}


def arguments_object(call: ToolCall) -> dict[str, Any]:
    """Return the arguments of *call*, for APIs that take an object.

    The model's text may be invalid JSON. It is then sent back as ``{"INVALID_JSON": text}``, the form that Anthropic
    recommends, so that the model can see its mistake.
    """
    try:
        return call.parsed()
    except ToolCallArgumentsError:
        return {INVALID_JSON: call.arguments}


def arguments_text(call: ToolCall) -> str:
    """Return the arguments of *call* as the text of a JSON object: the model's text, or as from :func:`arguments_object`."""
    arguments = arguments_object(call)
    return dump_json(arguments).decode() if call.is_custom or INVALID_JSON in arguments else call.arguments


def arguments_wrapped(request: ChatRequest, content: bytes) -> Iterator[Adaptation]:
    """Return the calls of *request* with arguments that are sent as from :func:`arguments_object`, in *content*, as JSON."""
    if INVALID_JSON.encode() not in content:
        return
    for number, turn in enumerate(request.messages):
        for position, call in enumerate(message_of(turn).tool_calls or ()):
            wrapped = dump_json({INVALID_JSON: call.arguments})
            if wrapped in content or dump_json(wrapped.decode())[1:-1] in content:
                place = f"messages[{number}].tool_calls[{position}].arguments"
                yield Adaptation(place, "clamped", f"no JSON object: the text is sent as {INVALID_JSON}")


_TEXT_ENDINGS = ("/json", "/xml", "+json", "+xml", "/yaml", "/x-yaml", "/toml", "/x-ndjson", "/jsonl")
_TEXT_TYPES = frozenset(
    f"application/{name}"
    for name in (
        "javascript",
        "x-javascript",
        "typescript",
        "ecmascript",
        "sql",
        "x-sh",
        "x-python",
        "graphql",
        "x-tex",
    )
)
"""The types of files of text, beside those whose name says so."""


def text_in(part: FilePart) -> str | None:
    """Return the text of *part*, or ``None`` if it is not a file of text with its data."""
    media_type = (part.media_type or "").partition(";")[0].strip().lower()
    is_text = (
        media_type in _TEXT_TYPES or media_type.startswith("text/") or media_type.endswith(_TEXT_ENDINGS)
    )
    if part.data is None or not is_text:
        return None
    try:
        return b64decode(part.data, validate=True).decode()
    except ValueError:
        return None


def with_files_told(parts: Iterable[ContentPart]) -> Iterator[ContentPart]:
    """Return *parts* with each file of text as text, its name before it, for APIs without files."""
    for part in parts:
        text = text_in(part) if isinstance(part, FilePart) else None
        if text is None or not isinstance(part, FilePart):
            yield part
        else:
            yield from map(TextPart, filter(None, (part.name, text)))


# The beginning of base64 data of these types.
_TYPES_BY_BEGINNING = {
    "iVBORw0KGgo": "image/png",
    "/9j/": "image/jpeg",
    "R0lGOD": "image/gif",
    "UklGR": "image/webp",
    "JVBERi0": "application/pdf",
}
_SOUND_TYPES_BY_BEGINNING = {
    "UklGR": "audio/wav",
    **dict.fromkeys(("SUQz", "//s", "//M", "//I"), "audio/mpeg"),
}


def media_type_of(part: ImagePart | AudioPart | VideoPart | FilePart) -> str:
    """Return the MIME type of *part*: the declared one, else the one that its data begin like.

    Raises:
        UnsupportedRequestError: neither is known, or only the id of the file is.
    """
    if isinstance(part, FilePart) and part.id is not None:
        raise unsupported_part(part, "that was uploaded to OpenAI cannot be sent to this API")
    if part.media_type:
        return "image/jpeg" if part.media_type == "image/jpg" else part.media_type
    beginnings = _SOUND_TYPES_BY_BEGINNING if isinstance(part, AudioPart) else _TYPES_BY_BEGINNING
    if media_type := known_media_type(part.data or "", beginnings):
        return media_type
    raise UnsupportedRequestError(f"{noun_of(part)} needs its media_type", options=["messages"])


def known_media_type(data: str, beginnings: Mapping[str, str] = _TYPES_BY_BEGINNING) -> str:
    """Return the MIME type that base64 *data* begin like, or ``""`` if none is recognized.

    Args:
        data: the data.
        beginnings: the types by the beginnings of their data, if the data are no picture or document.
    """
    return next((kind for beginning, kind in beginnings.items() if data.startswith(beginning)), "")


def data_url(part: ImagePart | AudioPart | VideoPart | FilePart) -> str:
    """Return *part* as a URL: its own, or its data in one."""
    return part.url if part.url is not None else f"data:{media_type_of(part)};base64,{part.data}"


def unsupported_part(part: ContentPart, why: str) -> UnsupportedRequestError:
    """Return the error for a part of a message that the API cannot take."""
    return UnsupportedRequestError(f"{noun_of(part)} {why}", options=["messages"])


def noun_of(part: ContentPart) -> str:
    """Return the word for *part*, with its article."""
    kinds = {TextPart: "a text", ImagePart: "an image", AudioPart: "a sound", VideoPart: "a video"}
    return kinds.get(type(part), "a file")


# --------------------------------------------------------------------------------- options
# Writes the options of a request into a body, spelled as in the server's table (:mod:`crosswalk.formats.tables`).


_PLAIN_OPTIONS: Final = ("temperature", "top_p", "top_k", "max_tokens", "stop", "seed", "parallel_tool_calls")


def _table(table: RequestTable | str) -> RequestTable:
    return TABLES[table] if isinstance(table, str) else table


def put_options(
    body: dict[str, Any],
    request: ChatRequest,
    table: RequestTable | str,
    drops: Drops,
    *,
    but: Collection[str] = (),
    names: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write the plain options of *request* into *body*, as *table* spells them. Note in *drops* those that it lacks.

    A table of the server's own may have rows for ``tool_choice`` and ``reasoning_effort``. They are written as well, as
    :func:`word_of` and the row's ``write`` say. Without a row they are the caller's.

    Args:
        body: the body of the request.
        request: the canonical request.
        table: the table of the server, or the name of its format, for plain options alone: ``chat``, ``responses``,
            ``messages``, ``ollama`` or ``gemini``.
        drops: collects the options that cannot be expressed.
        but: options that the caller writes.
        names: the server's own names, for options that have other ones than in *table*.
    """
    known_table = _table(table)
    for name in _PLAIN_OPTIONS:
        value = getattr(request, name)
        if value in (None, ()) or name in but:
            continue
        row = known_table.row(name)
        path = names.get(name) or (row.path if row else None)
        if path is None:
            drops.add(name, f"{known_table.label} has no such option")
        else:
            put(body, path, list(value) if isinstance(value, tuple) else row.written(value) if row else value)
    for name in () if isinstance(table, str) else ("tool_choice", "reasoning_effort"):
        value, row = getattr(request, name), known_table.row(name)
        if value is not None and row is not None and name not in but:
            word = _choice_word(row, value, known_table, drops)
            if word is not None:
                put(body, names.get(name, row.path), word)


def _choice_word(row: RequestRow, value: Any, table: RequestTable, drops: Drops) -> Any:
    """Return what *row* writes for *value*, a choice of tools or an effort, or ``None`` with a note in *drops*."""
    if row.words and row.write is None:
        return word_of(row.place, value, table, drops)
    word = value.value if row.write is None and isinstance(value, StrEnum) else row.written(value)
    if word is None or isinstance(word, NamedTool):
        drops.add(row.place, f"{table.label} has no word for it")
        return None
    return word


@lru_cache(maxsize=256)
def spellings_of(table: RequestTable) -> Mapping[str, str]:
    """Return the written path of each plain option by each of its paths in the chat format and in *table*."""
    rows = (row for row in (*TABLES["chat"].rows, *table.rows) if row.place in _PLAIN_OPTIONS)
    return {row.path: written_row.path for row in rows if (written_row := table.row(row.place)) is not None}


def words_of(option: str, table: RequestTable | str) -> Mapping[Any, Any]:
    """Return the spelling in *table* of each word of *option* that it has: of ``tool_choice`` or ``reasoning_effort``."""
    return _table(table).words(option)


def word_of(option: str, value: Any, table: RequestTable | str, drops: Drops) -> Any:
    """Return the word in *table* for the *value* of *option*. If it lacks one, return ``None`` and note that in *drops*.

    An effort is a wish: it gets the nearest word, which is noted. Not to think is none.
    """
    words = words_of(option, table)
    if value is None or value in words:
        return words.get(value)
    *other_words, last_word = words
    reason = f"{_table(table).label} knows {', '.join(other_words)} and {last_word}"
    if isinstance(value, ReasoningEffort) and value is not ReasoningEffort.NONE:
        nearest_word = value.nearest(words)
        drops.clamp(option, words[nearest_word], reason)
        return words[nearest_word]
    drops.add(option, reason)
    return None


def with_extra_options(http_request: HTTPRequest, request: ChatRequest) -> HTTPRequest:
    """Return *http_request* with those of *request*'s ``extra_options`` that the API has. Name the others.

    Raises:
        UnsupportedRequestError: one names what a server keeps, and the API has no place for it.
    """
    if request.extra_headers:
        own_headers = {
            name: value
            for name, value in http_request.headers.items()
            if name.lower() not in request.extra_headers
        }
        http_request = attrs.evolve(http_request, headers={**own_headers, **request.extra_headers})
    if not request.extra_options:
        return http_request
    values, table = thaw(request.extra_options), table_of(http_request)
    body = copy_json(http_request.body)
    lost_adaptations: list[Adaptation] = []
    adapted_fields = {one.field for one in http_request.adaptations}  # by the plugin, which has said how
    for name, place in OPTIONS.items():
        if name in values and name not in adapted_fields:
            row = None if table is None else table.row(name)
            wire_value = None if row is None else row.written(values[name])
            if row is None or wire_value is None or not put_row(body, row, wire_value):
                if place.kind is PlaceKind.STATE:
                    reason = f"it names what another server keeps, and {_label(table)} has no place for it"
                    raise UnsupportedRequestError(f"it cannot express {name} ({reason})", options=[name])
                lost_adaptations += _lost(place, values[name], table, row)
    return attrs.evolve(http_request, body=body).adapted(*lost_adaptations)


def with_instructions(request: ChatRequest, text: str) -> ChatRequest:
    """Return *request* with a system message of *text* before the others."""
    marks = tuple(
        attrs.evolve(mark, after=mark.after + 1) if isinstance(mark.after, int) and mark.after >= 0 else mark
        for mark in request.cache_marks
    )
    messages = (ChatMessage.system(text), *request.messages)
    return altered(request, messages=messages, cache_marks=marks)


def details_of(thing: Any, table: RequestTable | str, at: str, of: str) -> dict[str, Any]:
    """Return the details of *thing*, such as a tool, as *table* has them in an object at the path *at*.

    Args:
        thing: a tool (``tool``), a hosted tool (``hosted``) or a response format (``format``).
        table: the table of the server, or the name of its format.
        at: the path, as in :attr:`crosswalk.wire.options.RequestRow.path`.
        of: the word for *thing* in the names of places.
    """
    return written_details(_table(table), at, of, _set_details(thing, of))[0]


def client_tool_item(tool: ToolDefinition, format: str) -> dict[str, Any] | None:
    """Return the item of ``tools`` for *tool*, if it is one that the vendor of *format* has defined, or ``None``."""
    client_tool = CLIENT_TOOLS[format].get(tool.client_tool or "")
    if client_tool is None:
        return None
    return {name: tool.name if name == "name" else value for name, value in client_tool.declared.items()}


def _set_details(thing: Any, noun: str) -> dict[str, Any]:
    """Return the details of *thing* that are set, by name."""
    values = {name: getattr(thing, name, None) for name in _detail_names(noun)}
    return {name: _plain(value) for name, value in values.items() if not (value is None or value == ())}


@cache
def _detail_names(noun: str) -> tuple[str, ...]:
    return tuple(name.partition(".")[2] for name in DETAILS if name.startswith(f"{noun}."))


def _plain(value: Any) -> Any:
    return thaw(list(value)) if isinstance(value, tuple) else thaw(value)


def limits_of(tool: HostedTool, *but: str) -> Iterator[str]:
    """Return the paths of all that is set of *tool* but its kind and the details *but*."""
    for name, value in _set_details(tool, "hosted").items():
        if name not in but and not DETAILS[f"hosted.{name}"].is_neutral(value):
            key_suffixes = [f".{key}" for key in value] if isinstance(value, dict) and value else [""]
            yield from (f"hosted_tools.{name}{key}" for key in key_suffixes)


def schema_of(wanted: ResponseFormat) -> dict[str, Any] | None:
    """Return the schema of *wanted*, for servers that take nothing else: its name and description are annotations of it."""
    if wanted.schema is None:
        return None
    schema: dict[str, Any] = thaw(wanted.schema)
    schema_annotations = {"title": wanted.name, "description": wanted.description}
    if DETAILS["format.name"].is_neutral(wanted.name):
        del schema_annotations["title"]
    return {**{name: text for name, text in schema_annotations.items() if text is not None}, **schema}


def hosted_fields(tool: HostedTool, table: RequestTable | str, drops: Drops) -> dict[str, Any]:
    """Return the object with which *table* asks for *tool*. Note in *drops* the limits for which it has no place.

    Where the format names tools by a key, the object holds it.
    """
    known_table = _table(table)
    row = known_table.row(tool.kind)
    assert row is not None, f"{known_table.label} has no {tool.kind}"
    fields, lost_names = written_details(known_table, row.path, "hosted", _set_details(tool, "hosted"))
    for option in limits_of(tool, *(name for name in _set_details(tool, "hosted") if name not in lost_names)):
        drops.add(option, f"{known_table.label} has no place for it")
    fields = {**{name: values[0] for name, values in row.beside.items()}, **fields}
    key = row.path.partition("[].")[2]
    return {key: fields} if key else fields


def unsaid(
    request: ChatRequest, table: RequestTable | None, adaptations: Iterable[Adaptation]
) -> Iterator[Adaptation]:
    """Return the details of messages and tools in *request* without a place in *table* that are not yet *adaptations*."""
    if table is None:
        return
    adapted_fields = {one.field for one in adaptations}
    for path, name, value in _details(request):
        whole_place, row = _WHOLE_PLACES.get(name), table.row(name)
        is_named = value is None or path.removesuffix(".ttl") in adapted_fields
        is_named |= whole_place is not None and table.row(whole_place) is None
        if not is_named and (
            row is None or (name in _PARTLY_TAKEN_DETAILS and row.written(thaw(value)) is None)
        ):
            if name in _TOLD_DETAILS:
                yield Adaptation(path, AdaptationKind.TOLD, "it is sent as text")
                continue
            lost_adaptations = _lost(PLACES[name], value, table, row)
            yield from (attrs.evolve(one, field=path) for one in lost_adaptations)


_SERVER_DETAILS: Final = tuple(name for name in DETAILS if name.startswith("mcp."))
_TOLD_DETAILS: Final = ("part.document", "part.search_result")
"""Details that are texts, so that they are told where an API has no place for them."""
_PARTLY_TAKEN_DETAILS: Final = (*_SERVER_DETAILS, *_TOLD_DETAILS)
"""Details that some APIs have a place for, but not for every value."""
_WHOLE_PLACES: Final = {"cache.ttl": "cache.mark", **dict.fromkeys(_SERVER_DETAILS, "mcp_servers")}
"""Details of what is named as a whole where an API has no place for it."""


def _details(request: ChatRequest) -> Iterator[tuple[str, str, Any]]:
    for number, tool in enumerate(request.tools):
        for name in ("strict", "defer_loading", "output_schema", "input_examples"):
            yield f"tools[{number}].{name}", f"tool.{name}", getattr(tool, name)
    for number, mark in enumerate(request.cache_marks):
        place = "tools" if mark.after == "tools" else "mark"
        yield f"cache_marks[{number}]", f"cache.{place}", True
        yield f"cache_marks[{number}].ttl", "cache.ttl", mark.ttl
    for number, server in enumerate(request.extra_options.get("mcp_servers", ())):
        for name, value in server.items() if isinstance(server, Mapping) else ():
            yield f"mcp_servers[{number}].{name}", f"mcp.{name}", value
    for number, turn in enumerate(request.messages):
        content = message_of(turn).content
        if content is None or isinstance(content, str):
            continue
        for part_index, part in enumerate(content_parts(message_of(turn))):
            part_details = request.details_of_part(part) or {}
            part_path = part_details.get("at", f"messages[{number}].content[{part_index}]")
            if isinstance(part, ImagePart):
                yield f"{part_path}.detail", "part.detail", part.detail
            elif isinstance(part, FilePart):
                yield f"{part_path}.context", "part.context", part.context
                yield f"{part_path}.citations", "part.citations", part.citations
            elif isinstance(part, SearchResultPart | DocumentPart):
                kind = "document" if isinstance(part, DocumentPart) else "search_result"
                yield part_path, f"part.{kind}", bool(part.citations)
                yield f"{part_path}.citations", "part.citations", part.citations


def _label(table: RequestTable | None) -> str:
    return table.label if table else "the API"


def _lost(
    place: RequestPlace, value: Any, table: RequestTable | None, row: RequestRow | None
) -> Iterator[Adaptation]:
    if place.is_neutral(value):
        return
    label = _label(table)
    reason = f"{label} has no such option"
    if row is None and table is not None and table.key == "chat" and TABLES["chat"].row(place.name):
        reason = "no such option of this server is known"
    elif row is not None and row.words is not None and row.written(value) is None:
        reason = f"{label} knows {' and '.join(map(str, row.words.values()))}"
    elif row is not None and row.written(value) is None:
        reason = f"{label} has no such value"
    elif row is not None:
        reason = f"the request sets {row.path} differently"
    refuses = place.kind is PlaceKind.MEANING
    yield Adaptation.dropped(place.name, reason, asked=value, refuses=refuses)
