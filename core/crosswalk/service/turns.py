"""The turns of a conversation as a provider's messages, and the options of a request as its body: helpers for plugins."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal

import attrs

from crosswalk.errors import ToolCallArgumentsError
from crosswalk.formats.writing import INVALID_JSON
from crosswalk.request import (
    CacheMark,
    ChatRequest,
    Dropped,
    HostedTool,
    HTTPRequest,
    ReasoningEffort,
    Turn,
    UnsupportedRequestError,
)
from crosswalk.types.json import copy_json, dump_json, thaw
from crosswalk.types.message import (
    AudioPart,
    ChatMessage,
    ContentPart,
    FilePart,
    ImagePart,
    Role,
    TextPart,
    ToolCall,
)
from crosswalk.types.response import ChatResponse
from crosswalk.types.values import FinishReason, Segment, SegmentType
from crosswalk.wire.options import (
    FORMATS,
    NESTED,
    OPTIONS,
    WORDS,
    Option,
    OptionGrade,
    format_of_path,
    put,
)

# ----------------------------------------------------------------------------------- turns
# Helpers for plugins that turn a conversation into their provider's messages, independent of any provider.


NO_ANSWER = "(no answer)"
"""The text of an answer without words, for APIs that would refuse an empty one."""
_BEGIN = "(The conversation begins.)"


class Drops:
    """Collects what a provider cannot express while its request is being built."""

    def __init__(self) -> None:
        self._found: list[Dropped] = []

    def add(self, option: str, reason: str, *, refuses: bool = True) -> None:
        """Note that *option* is left out, or is sent otherwise, for *reason*. See :class:`Dropped` for *refuses*."""
        self._found.append(Dropped(option, reason, refuses=refuses))

    def leave(self, number: int, reason: str) -> None:
        """Note that a part of the message *number* is left out, for *reason*. The request is sent all the same."""
        self._found.append(Dropped(f"messages[{number}]", reason, refuses=False))

    def given(self, request: ChatRequest, *options: str, reason: str = "the API has no such option") -> None:
        """Note those of *options* that *request* sets."""
        for option in options:
            if getattr(request, option) not in (None, ()):
                self.add(option, reason)

    def limits(self, tool: HostedTool, *known: str) -> None:
        """Note the limits of *tool* that the API cannot set: all except those in *known*."""
        for name in ("allowed_domains", "blocked_domains", "max_uses"):
            if name not in known and getattr(tool, name) not in (None, ()):
                self.add(f"hosted_tools.{name}", f"the API has no such limit of its {tool.kind}")

    def found(self) -> tuple[Dropped, ...]:
        """The notes, in order."""
        return tuple(self._found)


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
    message, raw = message_of(turn), text_of(turn)
    text = (Segment(SegmentType.TEXT, raw),) if raw else ()
    calls = (
        Segment(SegmentType.TOOL_CALL, call.arguments, {"id": call.id, "name": call.name})
        for call in message.tool_calls or ()
    )
    return (*text, *calls)


def reasoning_of(turn: Turn) -> str:
    """Return the reasoning of an answer that may be sent, or ``""`` if it has none."""
    return turn.reasoning if isinstance(turn, ChatResponse) else ""


def content_parts(message: ChatMessage) -> tuple[ContentPart, ...]:
    """Return the content of *message* as parts. A text is one part, an empty text no part."""
    content = message.content
    parts = (TextPart(content or ""),) if content is None or isinstance(content, str) else content
    return tuple(part for part in parts if not isinstance(part, TextPart) or part.text)


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


def alternating(
    turns: Iterable[Turn],
    *,
    answer: Callable[[Turn], Iterable[dict[str, Any]]],
    result: Callable[[ChatMessage], dict[str, Any]],
    part: Callable[[ContentPart], dict[str, Any] | None],
    mark: Callable[[Turn, list[dict[str, Any]]], object] = lambda turn, parts: None,
) -> list[tuple[bool, list[dict[str, Any]]]]:
    """Return the conversation for APIs in which user and model alternate.

    Each turn is a pair: whether it is the model's, and its parts.

    The results of all calls of one answer are put into one turn of the user, together with the user's next message. An
    empty turn is left out, because the API would refuse it. An empty answer between two turns of the user becomes a text
    that states this. If the model speaks first, as in a greeting, a turn of the user is put before it to explain this.

    Args:
        turns: the conversation, without system messages.
        answer: returns the parts of a model's turn.
        result: returns the part of a tool's result.
        part: converts a part of the user's message, or returns ``None`` for one that would be refused.
        mark: receives each turn and its parts, to mark them for the cache.

    Raises:
        UnsupportedRequestError: the conversation has no content.
    """
    results: list[tuple[bool, list[dict[str, Any]]]] = []
    is_silent = False
    for turn in turns:
        message = message_of(turn)
        is_answer = message.role is Role.ASSISTANT
        if is_answer:
            raw = [*answer(turn)]
        elif message.role is Role.TOOL:
            raw = [result(message)]
        else:
            raw = [*filter(None, map(part, content_parts(message)))]
        if raw:
            mark(turn, raw)
        if raw and is_silent and not is_answer and results and not results[-1][0]:
            results.append((True, [*filter(None, [part(TextPart(NO_ANSWER))])]))
        is_silent = is_answer and not raw
        if raw and results and results[-1][0] is is_answer:
            results[-1][1].extend(raw)
        elif raw:
            results.append((is_answer, raw))
    if not results:
        raise UnsupportedRequestError("the conversation has no content", options=["messages"])
    if results[0][0]:
        results.insert(0, (False, [*filter(None, [part(TextPart(_BEGIN))])]))
    return results


def without_silence(
    messages: Iterable[dict[str, Any]], is_empty: Callable[[dict[str, Any]], bool]
) -> Iterator[dict[str, Any]]:
    """Return *messages* without empty answers. One between two messages of the user gets a text that states this.

    Args:
        messages: the messages, each with its role.
        is_empty: whether a message is an answer that the API would refuse because it has no content.
    """
    silent: dict[str, Any] | None = None
    before: str | None = None
    for message in messages:
        if is_empty(message):
            silent = message
            continue
        if silent is not None and message.get("role") == before == "user":
            yield {**silent, "content": NO_ANSWER}
        silent, before = None, message.get("role")
        yield message


def with_results_shown(turns: Iterable[Turn]) -> Iterator[tuple[Turn | None, Turn]]:
    """Return the conversation for APIs that take only texts as results, with other output in the user's next message.

    Each item is one of *turns* with its form to send. The turn is ``None`` for a message that was made for that.
    """
    shown: list[ContentPart] = []
    for turn in turns:
        message = message_of(turn)
        sent: Turn = turn
        if message.role is Role.TOOL:
            media = [part for part in content_parts(message) if not isinstance(part, TextPart)]
            if media:
                text = message.text or "The result is shown in the next message of the user."
                sent = attrs.evolve(message, content=text)
                shown += [TextPart(f"What call {message.tool_call_id} gave:"), *media]
        elif shown and message.role is Role.USER:
            sent = attrs.evolve(message, content=(*shown, *content_parts(message)))
            shown = []
        elif shown:
            yield None, ChatMessage.user(shown)
            shown = []
        yield turn, sent
    if shown:
        yield None, ChatMessage.user(shown)


def cache_mark(request: ChatRequest, place: Turn | Literal["tools", "system"]) -> CacheMark | None:
    """Return the mark of *request* after *place*: one of its turns, or a part before the conversation."""
    for mark in request.cache_marks:
        turn = request.messages[mark.after] if isinstance(mark.after, int) else None
        is_system = turn is not None and message_of(turn).role is Role.SYSTEM
        if mark.after == place or turn is place or (is_system and place == "system"):
            return mark
    return None


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
    try:
        parsed = call.parsed()
    except ToolCallArgumentsError:
        return dump_json({INVALID_JSON: call.arguments}).decode()
    return dump_json(parsed).decode() if call.is_custom else call.arguments


# The beginning of base64 data of these types.
_BEGINNINGS = {
    "iVBORw0KGgo": "image/png",
    "/9j/": "image/jpeg",
    "R0lGOD": "image/gif",
    "UklGR": "image/webp",
    "JVBERi0": "application/pdf",
}


def media_type_of(part: ImagePart | AudioPart | FilePart) -> str:
    """Return the MIME type of *part*: the declared one, else the one that its data begin like.

    Raises:
        UnsupportedRequestError: neither is known, or only the id of the file is.
    """
    if isinstance(part, FilePart) and part.id is not None:
        raise unsupported_part(part, "that was uploaded to OpenAI cannot be sent to this API")
    if part.media_type:
        return part.media_type
    if media_type := known_media_type(part.data or ""):
        return media_type
    raise UnsupportedRequestError(f"{noun_of(part)} needs its media_type", options=["messages"])


def known_media_type(data: str) -> str:
    """Return the MIME type that base64 *data* begin like, or ``""`` if none is recognized."""
    return next((kind for beginning, kind in _BEGINNINGS.items() if data.startswith(beginning)), "")


def data_url(part: ImagePart | AudioPart | FilePart) -> str:
    """Return *part* as a URL: its own, or its data in one."""
    return part.url if part.url is not None else f"data:{media_type_of(part)};base64,{part.data}"


def unsupported_part(part: ContentPart, why: str) -> UnsupportedRequestError:
    """Return the error for a part of a message that the API cannot take."""
    return UnsupportedRequestError(f"{noun_of(part)} {why}", options=["messages"])


def noun_of(part: ContentPart) -> str:
    """Return the word for *part*, with its article."""
    kinds = {TextPart: "a text", ImagePart: "an image", AudioPart: "a sound", FilePart: "a file"}
    return kinds[type(part)]


# --------------------------------------------------------------------------------- options
# Writes the options of a request into a body, spelled as in :mod:`crosswalk.wire.options`.


_PLAIN: Final = ("temperature", "top_p", "top_k", "max_tokens", "stop", "seed", "parallel_tool_calls")
_BY_NAME: Final = {option.name: option for option in OPTIONS}


def put_options(
    body: dict[str, Any],
    request: ChatRequest,
    format: str,
    drops: Drops,
    *,
    but: Collection[str] = (),
    names: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write the plain options of *request* into *body*, as *format* spells them. Note in *drops* those that it lacks.

    Args:
        body: the body of the request.
        request: the canonical request.
        format: ``chat``, ``responses``, ``messages``, ``ollama``, ``gemini``, ``bedrock`` or ``cohere``.
        drops: collects the options that cannot be expressed.
        but: options that the caller writes.
        names: the server's own names, for options that have other ones than in *format*.
    """
    for name in _PLAIN:
        value, path = getattr(request, name), names.get(name) or _BY_NAME[name].path(format)
        if name in but or value in (None, ()):
            continue
        if path is None:
            drops.add(name, f"{FORMATS[format][0]} has no such option")
        else:
            put(body, path, list(value) if isinstance(value, tuple) else value)


def spellings_of(format: str, names: Mapping[str, str]) -> dict[str, str]:
    """Return the written path of each option by each of its paths in *format*. *names* as for :func:`put_options`."""
    paths = {name: _BY_NAME[name].spellings.get(format, ()) for name in _PLAIN}
    return {path: names.get(name, known[0]) for name, known in paths.items() for path in known}


def words_of(option: str, format: str) -> Mapping[Any, Any]:
    """Return *format*'s spelling of each word of *option* that it has: of ``tool_choice`` or ``reasoning_effort``."""
    return WORDS[option].get(format, {})


def word_of(option: str, value: Any, format: str, drops: Drops) -> Any:
    """Return *format*'s word for the *value* of *option*. If it lacks one, return ``None`` and note that in *drops*.

    An effort is a wish: it gets the nearest word, which is noted. Not to think is none.
    """
    words = words_of(option, format)
    if value is None or value in words:
        return words.get(value)
    *most, last = words
    why = f"{FORMATS[format][0]} knows {', '.join(most)} and {last}"
    if isinstance(value, ReasoningEffort) and value is not ReasoningEffort.NONE:
        near = value.nearest(words)
        drops.add(option, f"sent as {near.value}: {why}", refuses=False)
        return words[near]
    drops.add(option, why)
    return None


def with_extra_options(built: HTTPRequest, request: ChatRequest) -> HTTPRequest:
    """Return *built* with those of *request*'s ``extra_options`` that the API has. Add the others to ``dropped``."""
    if not request.extra_options:
        return built
    values, format = thaw(request.extra_options), format_of_path(built.path) or ""
    body, dropped = copy_json(built.body), list(built.dropped)
    done = {one.option for one in dropped}  # by the plugin, which has said how
    for option in OPTIONS:
        if option.name in values and option.name not in done:
            value, path = values[option.name], option.path(format, request.provider)
            written = None if path is None else option.written(value, format)
            if path is None or written is None or not put(body, path, written):
                dropped += _lost(option, value, format, path)
            elif format in option.replaces:
                _take(body, option.replaces[format])
            elif format in option.needs:
                put(body, option.needs[format], True)
    return attrs.evolve(built, body=body, dropped=tuple(dropped))


def unsaid(request: ChatRequest, format: str | None) -> Iterator[Dropped]:
    """Return the details of messages and tools in *request* for which *format* has no word."""
    for location, name, value in _details(request):
        option = NESTED[name]
        if format is not None and value is not None and option.path(format) is None:
            yield from (attrs.evolve(one, option=location) for one in _lost(option, value, format, None))


def _details(request: ChatRequest) -> Iterator[tuple[str, str, Any]]:
    for number, tool in enumerate(request.tools):
        yield f"tools[{number}].strict", "strict", tool.strict
    for number, turn in enumerate(request.messages):
        for inner, part in enumerate(content_parts(message_of(turn))):
            if isinstance(part, ImagePart):
                yield f"messages[{number}].content[{inner}].detail", "detail", part.detail


def _lost(option: Option, value: Any, format: str, path: str | None) -> Iterator[Dropped]:
    grade = option.lost(value, format)
    if grade is OptionGrade.HARMLESS:
        return
    label = FORMATS[format][0] if format else "the API"
    why = f"{label} has no such option"
    if path is not None and format in option.values:
        why = f"{label} knows {' and '.join(map(str, option.values[format].values()))}"
    elif path is not None and option.written(value, format) is None:
        why = f"{label} has no such value"
    elif path is not None:
        why = f"the request sets {path} differently"
    elif format == "chat" and len(option.spellings) > 1:
        why = "no such option of this server is known"
    yield Dropped(option.name, why, refuses=grade is OptionGrade.DANGEROUS)


def _take(body: dict[str, Any], path: str) -> None:
    *outer, last = path.split(".")
    for step in outer:
        body = body.get(step, {})
    body.pop(last, None)
