"""OpenAI's Responses: requests read, answers written."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice
from typing import Any, Final

import attrs

from crosswalk.errors import ErrorInfo, ResponseValidationError
from crosswalk.formats.chat import (
    answer_format,
    effort,
)
from crosswalk.formats.reading import (
    Incoming,
    incoming,
    marks_of,
    take_neutral,
    told_if_unknown,
    told_message,
    told_result,
)
from crosswalk.formats.response_items import (
    CALL_IDS,
    CALLS,
    HeldCall,
    KeptItems,
    OpenItem,
    OpenPart,
    action_item,
    annotation_of,
    answer_of,
    choice_of,
    content_of,
    is_found_by_client,
    is_item,
    is_search_of_client,
    kind_of,
    repeated,
    server_item,
    status_words,
    tool_usage_of,
    tools_of,
    usage_of,
    wants_of,
    without_signatures,
)
from crosswalk.formats.responses_table import CLIENT_TOOLS, RESPONSES
from crosswalk.formats.writing import (
    TIERS,
    CallIDs,
    Event,
    Heading,
    Piece,
    WireForm,
    Writer,
    hidden_of,
    is_of_block,
    logprobs_of,
    openai_error,
    put_back,
    ref_of,
    response_error,
    search_item,
    sources_of,
)
from crosswalk.request import CacheMark, ToolDefinition, Turn
from crosswalk.responses.vocabulary import IdKind
from crosswalk.types.json import copy_json
from crosswalk.types.message import ChatMessage, ContentPart, Role
from crosswalk.types.values import PAUSES, FinishReason, SegmentType, TokenLogprob, altered
from crosswalk.wire.chat import ROLES
from crosswalk.wire.messages import SIGNERS
from crosswalk.wire.options import Fields, UnnamedCalls, path_of, placed
from crosswalk.wire.responses import (
    BESIDE,
    FAMILIES,
    FINISH_REASONS,
    ITEMS,
    LISTS,
    PARTS,
    SIGNED,
    EventRole,
    ItemRole,
    read_output,
)

# ------------------------------------------------------------------------------- responses
# Requests in the form of OpenAI's Responses. Facts: provider document "OpenAI Responses".


_ROLES: Final = {word: role for word, role in ROLES.items() if role is not Role.TOOL}
_MODEL_ITEMS: Final = ("reasoning", "compaction", "program", "program_output")
"""The items that only a model or its server makes, besides calls."""
_OUTPUT_SUFFIX: Final = "_output"
"""The end of the type of an item with a result."""
_STATE_FIELDS: Final = ("conversation", "previous_response_id", "prompt")
"""The fields that name what a server keeps."""
_SEARCH_CALL: Final = "tool_search_call"
"""The item that calls a search for tools, and its name elsewhere."""


def read(body: Fields, said: dict[str, Any]) -> Incoming:
    """Parse the request in *body*. *said* is an untouched copy.

    Raises:
        FieldError: it is not a valid request.
    """
    said, signed = without_signatures(said)
    wants = wants_of(body)
    tools, hosted, servers, namespaces = tools_of(body)
    items = _Items(namespaces)
    instructions = [*_instructions(body)]
    turns = [*instructions, *items.turns(body)]
    instead, found = _instead(body, {tool.name for tool in tools})
    namespaces |= {name: place for name, place in found.items() if name not in namespaces}
    if not turns:
        if not (body.given.get("input") or any(body.look(name) for name in _STATE_FIELDS)):
            body.refuse("must not be empty", "input")
        turns = [ChatMessage.user(())]  # what a server keeps
    wants = attrs.evolve(wants, namespaces=namespaces)
    body.object("stream_options")
    body.object("prompt_cache_options")
    text, reasoning = body.object("text"), body.object("reasoning")
    if text is not None:
        take_neutral(text, "responses", {"verbosity": "medium"})
    read = incoming(
        WireForm.OPENAI_RESPONSES,
        body,
        said,
        wants,
        places=[*["instructions"] * len(instructions), *items.places],
        messages=turns,
        cache_marks=items.marks(turns),
        tools=tools,
        hosted_tools=hosted,
        extra_options={"mcp_servers": servers} if servers else None,
        tool_choice=choice_of(body, [tool.name for tool in tools], namespaces),
        response_format=None
        if text is None
        else answer_format(text.object("format"), RESPONSES, "text.format[json_schema]"),
        reasoning_effort=None if reasoning is None else effort(reasoning, "effort"),
    )
    return altered(read, request=altered(read.request, instead=instead, alone=items.alone, unsigned=signed))


def _instead(
    body: Fields, names: set[str]
) -> tuple[dict[str, tuple[ToolDefinition, ...]], dict[str, tuple[str, str]]]:
    """Return the functions for other servers, by the place of the item, and their namespaces: a search of the client's,
    and the tools that it has found, without those of the *names* that are declared.
    """
    instead: dict[str, tuple[ToolDefinition, ...]] = {}
    namespaces: dict[str, tuple[str, str]] = {}
    for item in (*body.opened("tools"), *body.opened("input")):
        given = tools_item = item.given
        if is_search_of_client(given):
            some = {"name": _SEARCH_CALL, **{key: given.get(key) for key in ("description", "parameters")}}
            tools_item = {"tools": [{"type": "function", **some}]}
        elif given.get("type") != "additional_tools" and not is_found_by_client(given):
            continue
        try:
            inner = Fields({"tools": copy_json(tools_item.get("tools"))}, item.place)
            tools, *others, inside = tools_of(inner)
        except ResponseValidationError:  # the server of this format checks it
            continue
        if item.is_left and (any(others) or any(tool.client_tool for tool in tools) or [*inner.unread()]):
            continue  # some of it is no function of the client's, so it is named as a whole
        instead[path_of(item.place)] = tuple(tool for tool in tools if tool.name not in names)
        names = names | {tool.name for tool in tools}
        namespaces |= inside
    return instead, namespaces


def _instructions(body: Fields) -> Iterator[Turn]:
    if isinstance(body.look("instructions"), list):
        return  # items, of an answer that is continued
    with placed(body, "instructions"):
        if instructions := body.text("instructions"):
            yield ChatMessage.system(instructions)


# The conversation.


class _Items:
    """Items as turns.

    Args:
        namespaces: the namespace of each tool that has one, and its name there, by the tool's name.

    Attributes:
        alone: see :class:`ClientRequest`.
        places: the place of each turn: of an answer its first item.
    """

    def __init__(self, namespaces: Mapping[str, tuple[str, str]]) -> None:
        self._marked_turns: list[tuple[Turn, Fields, str]] = []  # turns with the lists of their parts
        self._namespaces = namespaces
        self._call_ids_by_item: dict[str, str] = {}  # the id of each call, by that of its item
        self._calls: set[str] = set()  # the ids of the calls, and of their items
        self._server_call_ids: list[str] = []  # the ids of calls that the server itself runs
        self._unnamed_calls = UnnamedCalls()
        self.alone: dict[int, tuple[str, ChatMessage]] = {}
        self.places: list[str] = []

    def turns(self, body: Fields) -> Iterator[Turn]:
        """Return the turns of the conversation in *body*."""
        if isinstance(body.look("input"), str):
            self.places.append("input")
            with placed(body, "input"):
                yield ChatMessage.user(body.need("input", body.text("input")))
            return
        output: list[Fields] = []  # the items of an answer
        for item in body.objects("input"):
            if self._is_output(item):
                if not output:
                    self._unnamed_calls.forget()
                self._note(item)
                output.append(item)
                continue
            if (turn := self._turn(item)) is not None:
                if output:
                    self.places.append(path_of(output[0].place))
                    yield answer_of(output)
                output = []
                self.places.append(path_of(item.place))
                yield turn
        if output:
            self.places.append(path_of(output[0].place))
            yield answer_of(output)

    def marks(self, turns: Sequence[Turn]) -> list[CacheMark]:
        """Return the cache marks in the items of *turns*."""
        numbers = {id(turn): number for number, turn in enumerate(turns)}
        marked = (marks_of(item.opened(name), numbers[id(turn)]) for turn, item, name in self._marked_turns)
        return [*chain.from_iterable(marked)]

    def _note(self, item: Fields) -> None:
        """Give a tool the name that the server has for it, without a namespace. Note the ids of a call."""
        said = (item.look("namespace"), item.look("name"))
        name = next((name for name, inner in self._namespaces.items() if inner == said), None)
        if name is not None:
            item.take("namespace")
            item.give("name", name)
        id, call_id, kind = item.look("id"), item.look("call_id"), kind_of(item)
        if (call_id == "" and kind.endswith("_call")) or (call_id is None and kind in CALLS):
            call_id = self._unnamed_calls.id_of(item.place)  # the first result that names no call answers it
            item.give("call_id", call_id)
        is_known = RESPONSES.row_at(f"input[][{kind}]") is not None
        if is_known:  # another call is told, and its result by itself
            self._calls |= {name for name in (id, call_id) if isinstance(name, str)}
        if isinstance(id, str) and isinstance(call_id, str):
            self._call_ids_by_item[id] = call_id
        environment = item.look("environment")
        if isinstance(environment, dict) and environment.get("type") == "container_reference":
            self._server_call_ids += [call_id] if isinstance(call_id, str) else []

    def _is_output(self, item: Fields) -> bool:
        """Return whether *item* belongs to an answer."""
        kind = kind_of(item)
        is_made = kind in _MODEL_ITEMS or kind.endswith(("_call", "_list_tools", "_approval_request"))
        if kind.endswith(_OUTPUT_SUFFIX):
            call_id = item.look("call_id")
            is_made = is_made or item.look("execution") == "server" or call_id in self._server_call_ids
        return is_made or (kind == "message" and item.look("role") == "assistant")

    def _turn(self, item: Fields) -> Turn | None:
        """Return the content of *item*, or ``None`` if it has none here, such as a reference. Then it stays unread."""
        kind = kind_of(item)
        if kind == "message":
            role = _ROLES.get(item.need("role", item.text("role")))
            if role is None:
                item.refuse(f"must be one of {', '.join(_ROLES)}", "role")
            item.take("type")
            with placed(item, "content"):
                message = ChatMessage(role, item.need("content", content_of(item, "content")))
            self._marked_turns.append((message, item, "content"))
            return message
        if kind.endswith(_OUTPUT_SUFFIX) or kind in CALL_IDS:
            return self._result(item, kind)
        if (text := told_if_unknown(item, RESPONSES, f"input[][{kind}]")) is not None:
            return ChatMessage.user(text)
        item.leave()
        return None

    def _result(self, item: Fields, kind: str) -> ChatMessage:
        """Return the result of a call of any kind. If it names no call, it is told as the user's."""
        names = CALL_IDS.get(kind, ("call_id",))
        given = [value for field in names if (value := item.text(field))]
        known = [id for id in given if id in self._calls]
        call_id = next(chain(known, given), None) or self._unnamed_calls.answered()
        item.take("type")
        is_plain = kind in ("function_call_output", "custom_tool_call_output")
        content = item.need("output", content_of(item, "output")) if is_plain else read_output(item, kind)
        with placed(item):
            if call_id is not None and call_id in self._calls:
                return self._of_call(item, call_id, content)
            name = ".".join(filter(None, (item.text("namespace"), item.text("name")))) or kind
            if call_id is None:
                return told_result(item, name, content)
            result = self._of_call(item, call_id, content)
            self.alone[id(result)] = path_of(item.place), told_message(name, content)
            return result

    def _of_call(self, item: Fields, id: str, content: str | list[ContentPart]) -> ChatMessage:
        is_error = item.look("status") == "failed" or None
        result = ChatMessage.tool_result(self._call_ids_by_item.get(id, id), content, is_error=is_error)
        self._marked_turns.append((result, item, "output"))
        return result


# ------------------------------------------------------------------------ openai responses
# Responses: the response object of ``/v1/responses``, and its events (provider document "OpenAI Responses").
#
# A text, with its citations, is a part of a message. A run of texts and refusals is one message. Reasoning is a
# separate
# item, and so is each call. An answer that was read as a response is restored: its items in their order, with their
# types,
# ids and stored fields.


_SUMMARIES: Final = ("summary", "generate_summary")
"""The options of reasoning that ask for a summary. The second one is the older word."""
_NON_RESPONSE_FIELDS: Final = ("output", "type", "sequence_number", "obfuscation")
"""Stored data that are not fields of the response: its items, and the further fields of events."""


class ResponsesWriter(Writer):
    """Writes Responses, the first of several answers."""

    form = WireForm.OPENAI_RESPONSES

    def __init__(self, heading: Callable[[], Heading], *, whole: bool = False) -> None:
        super().__init__(heading, whole=whole)
        self._items: list[OpenItem] = []
        self._passed_items: dict[int | None, int] = {}  # items without pieces, by their positions
        self._kept_items = KeptItems(lambda: self.left.get("output") if self.is_own else None)
        self._open_item: OpenItem | None = None  # the message or the reasoning that may continue
        self._reasoning_part = -1
        self._call_ids = CallIDs()
        self._calls: dict[int, OpenItem] = {}  # the calls that have begun, by part
        self._unfinished_calls: dict[
            int, OpenItem
        ] = {}  # those of them whose arguments may continue, by number
        self._held_calls: dict[int, HeldCall] = {}  # the calls that have not, by part
        self._named: dict[int, str] = {}  # those of them whose name is known
        self._complete_calls: list[OpenItem] = []  # calls whose arguments are complete
        self._searches: dict[str, OpenItem] = {}  # those that have begun, by the id of the call
        self._finished_items: dict[int, Event] = {}
        self._logprobs: list[Event] = []
        self._length = 0  # of the text, in characters
        self._citations: list[Piece] = []  # of the part that comes next
        self._is_cited_ahead = True
        self._next_sequence_number = 0
        self._status = ""
        self._detail = ""
        self._has_begun = False

    # The input.

    def piece(self, piece: Piece) -> Iterator[Event]:
        """See :meth:`Writer.piece`."""
        if piece.choice or piece.type in (SegmentType.SAFETY, SegmentType.ERROR):
            return
        yield from self._begin()
        match piece.type:
            case SegmentType.TEXT | SegmentType.REFUSAL | SegmentType.CITATION:
                yield from self._message(piece)
            case SegmentType.REASONING:
                yield from self._reasoning(piece)
            case SegmentType.TOOL_CALL if piece.call is not None:
                yield from self._call(piece)
            case _:
                yield from self._server_item(piece)

    def _message(self, piece: Piece) -> Iterator[Event]:
        is_citation = piece.type is SegmentType.CITATION
        (key, name), part, item = BESIDE["message"], self._part_of(piece), self._opened("message")
        is_late = part is None and self._length > 0
        if is_citation and not self.is_own and (is_late or ref_of(piece).span is None):
            is_of_next = self._is_cited_ahead and is_of_block(piece)
            (self._citations if part is None or is_of_next else part.citations).append(piece)
            return
        if is_citation and part is None and annotation_of(piece, (0, 0), is_own=self.is_own) is None:
            return
        if not is_citation:
            self._is_cited_ahead = piece.metadata.get("citations") != "follow"
        phase = piece.metadata.get(name)
        about = {key: phase} if isinstance(phase, str) else {}
        if part is None and not (piece.text or is_citation):
            if item is not None:
                item.about |= about
            if item is not None or not about:
                return
        if part is None:
            if item is None or key in item.about or self._kept_items.next_is("message"):
                item = yield from self._new_open("message", piece)
            kind = "refusal" if piece.type is SegmentType.REFUSAL else "output_text"
            part = yield from self._add_part(item, kind, piece.part)
        assert item is not None, "a part is one of the open item"
        if is_citation:
            yield from self._annotate(item, part, piece)
        elif piece.text:
            yield from self._say(item, part, piece.text)
        if phase:
            item.about |= about

    def _annotate(self, item: OpenItem, part: OpenPart, piece: Piece) -> Iterator[Event]:
        span = ref_of(piece).span
        if span is not None and not self.is_own:  # it may be of an earlier text
            item, part = next(text for text in self._texts() if text[1].start <= span[0])
        annotation = annotation_of(piece, (part.start, part.start + part.length), is_own=self.is_own)
        if annotation is not None:
            number, family = len(part.annotations), FAMILIES[EventRole.ANNOTATION, part.type]
            part.annotations.append(annotation)
            about: Event = {"annotation": annotation, "annotation_index": number}
            yield self._event(f"{family}.added", **self._place(item, part), **about)
            if item.index in self._finished_items:
                content = item.value("")["content"]
                self._finished_items[item.index] = {**self._finished_items[item.index], "content": content}

    def _texts(self) -> Iterator[tuple[OpenItem, OpenPart]]:
        """Return the texts so far, the last one first, each with its item."""
        for item in reversed(self._items):
            yield from ((item, part) for part in reversed(item.parts) if part.type == "output_text")

    def _opened(self, type: str) -> OpenItem | None:
        """Return the item that may continue, if it is of that type."""
        return self._open_item if self._open_item is not None and self._open_item.type == type else None

    def _part_of(self, piece: Piece) -> OpenPart | None:
        """Return the part that *piece* continues, or ``None`` if it begins one."""
        if self._open_item is None or not self._open_item.parts:
            return None
        last = self._open_item.parts[-1]
        if piece.type is SegmentType.CITATION:
            return last if last.type == "output_text" else None
        return last if last.part == piece.part and PARTS[last.type].segment is piece.type else None

    def _reasoning(self, piece: Piece) -> Iterator[Event]:
        (key, name), item = BESIDE["reasoning"], self._opened("reasoning")
        hidden, signature = map(piece.metadata.get, (name, "signature"))
        if hidden:
            hidden = hidden_of(piece, is_own=self.is_own)
        elif isinstance(signature, str) and signature and (self.is_own or self.heading.provider in SIGNERS):
            hidden = f"{SIGNED}{signature}"
        if item is None or not self._goes_on(piece, item):
            if not (piece.text or isinstance(hidden, str) or "id" in piece.metadata):
                return
            item = yield from self._new_open("reasoning", piece)
        self._reasoning_part = piece.part
        if isinstance(hidden, str):
            item.about[key] = hidden
        if piece.text:
            part = self._part_of(piece)
            if part is None:
                remaining, is_signed = self._left_of(item, ""), str(item.about.get(key)).startswith(SIGNED)
                # A summary, or the reasoning itself: servers that show it encrypt nothing, and mark it so.
                is_summary = self._wants_summary
                if remaining is not None:
                    is_summary = not is_signed and (key not in remaining or remaining[key])
                part = yield from self._add_part(
                    item, "summary_text" if is_summary else "reasoning_text", piece.part
                )
            yield from self._say(item, part, piece.text)

    @property
    def _wants_summary(self) -> bool:
        """Whether the client has asked for a summary. Then it looks for reasoning there, and nowhere else."""
        asked = self.heading.request.get("reasoning")
        return isinstance(asked, Mapping) and any(map(asked.get, _SUMMARIES))

    def _goes_on(self, piece: Piece, item: OpenItem) -> bool:
        """Whether *piece* belongs to *item*, the reasoning that is open."""
        if piece.part == self._reasoning_part or item.id == piece.metadata.get("id"):
            return True
        return item.place is not None and not self._kept_items.next_is("reasoning")

    def _call(self, piece: Piece) -> Iterator[Event]:
        about = piece.call
        assert about is not None, "the caller has looked"
        item = self._calls.get(piece.part)
        if item is not None:
            yield from self._argue(item, piece.text)
            return
        if piece.part not in self._held_calls:
            yield from self._settle(piece.part)  # the buffered call has ended, with or without an id
            self._held_calls[piece.part] = HeldCall(about.index)
        held_call = self._held_calls[piece.part]
        held_call.id = held_call.id or about.id
        held_call.name = held_call.name or about.name
        if about.kind is not None:
            held_call.type = "custom_tool_call"
        elif held_call.name in self._actions:
            held_call.type = held_call.name
        held_call.texts.append(piece.text)
        if held_call.name:
            self._named[piece.part] = held_call.name
            if (
                held_call.id and held_call.type not in self._actions
            ):  # an action is written once it is complete
                yield from self._open_held(piece.part)

    @cached_property
    def _actions(self) -> frozenset[str]:
        """The types of the items that call the tools without a name that the request declares."""
        tools = [tool for tool in self.heading.request.get("tools") or () if isinstance(tool, Mapping)]
        kinds = (str(tool.get("type")) for tool in tools)
        calls = (CLIENT_TOOLS[kind].call for kind in kinds if kind in CLIENT_TOOLS)
        return frozenset((*calls, *(_SEARCH_CALL for tool in tools if is_search_of_client(tool))))

    def _open_held(self, part: int) -> Iterator[Event]:
        """Begin the call of *part*, if its name is known. A missing id is replaced by the one that the answer makes."""
        if part not in self._named:
            return
        name, held_call = self._named.pop(part), self._held_calls.pop(part)
        yield from self._settle(part)
        item = yield from self._new_item(held_call.type, None, called=name)
        if item.role is ItemRole.ACTION:  # its action is written at once
            action = action_item(item.type, "".join(held_call.texts))
            if action is None:  # and is not an action
                item = OpenItem(item.index, item.id, "function_call")
            else:
                item.about |= action
                if item.type == _SEARCH_CALL:
                    item.about["execution"] = "client"
                self._complete_calls.append(item)
        id = self._call_ids.take(held_call.id, held_call.index)
        if ITEMS[item.type].id != "id":
            item.about[ITEMS[item.type].id] = id
        if item.role is ItemRole.CALL:
            item.about["name"] = name
        self._calls[part] = self._unfinished_calls[item.index] = item
        yield from self._added(item)
        for text in held_call.texts if item.role is ItemRole.CALL else ():
            yield from self._argue(item, text)

    def _argue(self, item: OpenItem, text: str) -> Iterator[Event]:
        if item.index in self._finished_items or not text:
            return
        item.arguments.append(text)
        was_complete = item.syntax.is_complete
        item.syntax.add(text)
        if item.syntax.is_complete and not was_complete:
            self._complete_calls.append(item)
        yield from self._argued(item, "delta", {"delta": text})

    def _argued(self, item: OpenItem, word: str, said: Event) -> Iterator[Event]:
        """Return the event for the arguments of *item*, if its type has one."""
        family = FAMILIES.get((EventRole.FIELD, item.type))
        if family is not None and item.role is ItemRole.CALL:
            yield self._event(f"{family}.{word}", item_id=item.id, output_index=item.index, **said)

    def _server_item(self, piece: Piece) -> Iterator[Event]:
        is_search = False if self.is_own else (yield from self._search(piece))
        if is_search:
            return
        value = server_item(piece, lambda kind: self._id(kind, None))
        if value is not None and self._is_item(value):
            yield from self._settle(piece.part)
            # A stream cannot take back what it passed over, should it arrive later.
            yield from self._pass_over(str(value["type"]), id=value.get("id") if self.whole else None)
            yield from self._write_whole(value)

    def _search(self, piece: Piece) -> Generator[Event, None, bool]:
        """Begin the web search that *piece* calls in Messages, or end the one of its result. Return whether it is either."""
        about = piece.metadata
        begun, search = search_item(piece), self._searches.pop(str(about.get("tool_use_id")), None)
        if begun is not None:
            yield from self._settle(piece.part)
            if about["id"] in self._searches:  # of two calls with one id, the first has no result
                yield from self._finish(self._searches.pop(about["id"]), "completed")
            item = self._searches[about["id"]] = OpenItem(
                len(self._items), begun["id"], begun["type"], about=begun
            )
            yield from self._added(item)
            yield from self._reached(item, item.type, "in_progress", "searching")
        elif search is not None:
            sources = sources_of(piece)
            if sources is not None:
                search.about["action"] = {**search.about["action"], "sources": sources}
                yield from self._reached(search, search.type, "completed")
            yield from self._finish(search, "failed" if sources is None else "completed")
        return begun is not None or search is not None

    def _reached(self, item: OpenItem, family: str, *words: str) -> Iterator[Event]:
        for word in words:
            yield self._event(f"{family}.{word}", item_id=item.id, output_index=item.index)

    def _write_whole(self, value: Event) -> Iterator[Event]:
        item = OpenItem(len(self._items), str(value.get("id") or ""), "server", whole=value)
        yield from self._added(item)
        yield from self._reached(item, str(value.get("type")), *status_words(value))
        yield from self._finish(item, "completed")

    def _is_item(self, value: Event) -> bool:
        """Whether *value* can be in the output: any value that was read from there can."""
        if self.is_own:
            return True
        needs = ITEMS[value["type"]].needs
        return bool(needs) and all(value.get(name) is not None for name in needs) and is_item(value, "raise")

    def tokens(self, tokens: tuple[TokenLogprob, ...], choice: int) -> None:
        """See :meth:`Writer.tokens`."""
        if not choice:
            self._logprobs += logprobs_of(tokens, with_bytes=True)

    def end(self, reason: FinishReason, finish_word: str | None, choice: int) -> None:
        """See :meth:`Writer.end`."""
        if not choice:
            word = self.word_for(reason, finish_word, FINISH_REASONS)
            is_missing = reason is FinishReason.TOOL_CALLS and not (self._calls or self._held_calls)
            if not self.is_own and (is_missing or (reason is FinishReason.STOP and finish_word in PAUSES)):
                word = "incomplete"
            self._status, _, self._detail = word.partition(":")

    def fail(self, info: ErrorInfo) -> Iterable[Event]:
        """See :meth:`Writer.fail`. The error event comes with the end, with the token counts."""
        self.error = info
        self._status = "failed"
        return ()

    error_event = staticmethod(openai_error)

    def close(self) -> Iterator[Event]:
        """See :meth:`Writer.close`. A failed answer has all of its items, too."""
        yield from self._pending()
        yield from self._last()

    def _pending(self) -> Iterator[Event]:
        """See :meth:`Writer._pending`."""
        yield from self._begin()
        for part in list(self._held_calls):
            yield from self._open_held(part)
        remaining = [
            *self._unfinished_calls.values(),
            *([self._open_item] if self._open_item is not None else []),
        ]
        for item in sorted(remaining, key=lambda item: item.index):
            is_cut = self._status != "completed" and item.index == len(self._items) - 1
            yield from self._finish(item, "incomplete" if is_cut else "completed")
        for search in self._searches.values():  # without a result
            yield from self._finish(search, "completed" if self._status == "completed" else "in_progress")
        self._unfinished_calls.clear()
        self._open_item = None
        for text in islice(self._texts(), 1):
            for piece in self._citations:  # of no later text
                if not (self._is_cited_ahead and is_of_block(piece)):
                    yield from self._annotate(*text, piece)
        yield from self._pass_over(None)

    def _last(self) -> Iterator[Event]:
        """See :meth:`Writer._last`."""
        last = self._status if self._status in ("completed", "failed") else "incomplete"
        yield self._event(last, response=self.response())

    def top_of(self, event: Event) -> Event:
        """See :meth:`Writer.top_of`."""
        top: Event = event.get("response", event)
        return top

    @property
    def is_error_body(self) -> bool:
        """See :meth:`Writer.is_error_body`. A failed answer is a response, an HTTP error without one is not."""
        return self.error is not None and self.error.status is not None and not self._items

    def _body(self) -> Event:
        """See :meth:`Writer._body`."""
        return self.response()

    def response(self, *, begins: bool = False) -> Event:
        """Return the response so far. If it *begins*, it has no end yet."""
        # Some servers send the model's name at the end.
        late = self._ask() if self.is_own and not self.whole else self.heading
        created, error, is_cut = (
            late.created.timestamp(),
            self.error,
            self._status == "incomplete" and self._detail,
        )
        body: Event = {
            "id": self.heading.id,
            "object": "response",
            "created_at": int(created) if created.is_integer() else created,
            "status": "in_progress" if begins else self._status,
            "error": None if begins or error is None else response_error(error, is_own=self.is_own),
            "incomplete_details": {"reason": self._detail} if is_cut and not begins else None,
            "model": late.model,
            "output": [self._finished_items[index] for index in sorted(self._finished_items)],
        }
        if self.usage is not None:
            body["usage"] = usage_of(self.usage, is_own=self.is_own)
        if self.is_own:
            kept_fields = {name: value for name, value in self.left.items() if self._is_kept(name, value)}
            put_back(body, kept_fields if self.whole else copy_json(kept_fields))
            return body
        duration = None if begins or self._status != "completed" else self.duration
        body |= {
            "created_at": int(created),
            "completed_at": int(created + duration.total_seconds()) if duration else None,
            "usage": body.get("usage"),
            **repeated(self.heading.request),
        }
        if self.usage is not None and self.usage.details.web_search_requests:
            body["tool_usage"] = tool_usage_of(self.usage.details.web_search_requests)
        names = ("parallel_tool_calls", "previous_response_id")
        parallel, previous_id = map(self.heading.extensions.get, names)
        if isinstance(parallel, bool):
            body["parallel_tool_calls"] = parallel
        if isinstance(previous_id, str):
            body["previous_response_id"] = previous_id
        if (tier := self.heading.tier()) in (*TIERS, "ultrafast"):
            body["service_tier"] = tier
        return body

    def _is_kept(self, name: str, value: Any) -> bool:
        """Whether the stored value under *name* goes back into the response."""
        if name == "usage" and self.usage is None and not self.whole:
            return False  # it begins
        return name not in _NON_RESPONSE_FIELDS and not name.startswith("event_")

    # The beginning and end of items and parts.

    def _new_item(
        self, type: str, piece: Piece | None, called: str | None = None
    ) -> Generator[Event, None, OpenItem]:
        """Return the item that begins now, like the original one if there is one."""
        position = yield from self._pass_over(type, called)
        remaining = self._kept_items.entry(position)
        id = remaining.get("id")
        if type != "custom_tool_call":  # which a call may have become since
            type = str(remaining.get("type", type))
        known = id if isinstance(id, str) and id else self._id(type, piece)
        return OpenItem(len(self._items), known, type, position)

    def _pass_over(
        self, type: str | None, called: str | None = None, id: Any = None
    ) -> Generator[Event, None, int | None]:
        """Return its position among the original items. Those before it are written from storage."""
        position, passed = self._kept_items.pass_over(type, called, id)
        for number, value in passed.items():
            if self._is_item(value):
                self._passed_items[number] = len(self._items)
                yield from self._write_whole(value)
        if position in self._passed_items and self.whole:  # a stream cannot take it back
            del self._finished_items[self._passed_items.pop(position)]
        return position

    def _left_of(self, item: OpenItem, status: str) -> Event | None:
        return self._kept_items.left_of(item, status, is_late=not self.whole)

    def _begin(self) -> Iterator[Event]:
        if not (self._has_begun or self.whole):
            self._has_begun = True
            for word in ("created", "in_progress"):
                yield self._event(word, response=self.response(begins=True))

    def _settle(self, part: int) -> Iterator[Event]:
        """End the items that must end when *part* begins. A call may still wait for the rest of its arguments."""
        for other in sorted(other for other in self._named if other < part):
            yield from self._open_held(other)
        if self._open_item is not None:
            item, self._open_item = self._open_item, None
            yield from self._finish(item, "completed")
        complete, self._complete_calls = self._complete_calls, []
        for item in complete:
            yield from self._finish(item, "completed")
            self._unfinished_calls.pop(item.index, None)

    def _new_open(self, type: str, piece: Piece) -> Generator[Event, None, OpenItem]:
        """Return a new item of texts that *piece* begins, which may continue."""
        yield from self._settle(piece.part)
        item = self._open_item = yield from self._new_item(type, piece)
        yield from self._added(item)
        return item

    def _added(self, item: OpenItem) -> Iterator[Event]:
        self._items.append(item)
        value = item.value("in_progress", self._left_of(item, "in_progress"))
        begun = self._kept_items.entry(item.place).get("added")
        if isinstance(begun, dict):  # its type changes in the end
            value.update(begun)
        yield self._event("output_item.added", output_index=item.index, item=value)

    def _add_part(self, item: OpenItem, type: str, number: int) -> Generator[Event, None, OpenPart]:
        yield from self._end_part(item)
        list_name = PARTS[type].list
        index = sum(PARTS[other.type].list == list_name for other in item.parts)
        part = OpenPart(type, index, number, self._length)
        if type == "output_text":
            part.citations, self._citations = self._citations, []
        item.parts.append(part)
        yield self._event(
            f"{FAMILIES[EventRole.PART, list_name]}.added", **self._place(item, part), part=part.value()
        )
        return part

    def _say(self, item: OpenItem, part: OpenPart, text: str) -> Iterator[Event]:
        part.texts.append(text)
        more: Event = {}
        if part.type == "output_text":
            self._length += len(text)
            more["logprobs"], self._logprobs = self._logprobs, []
            part.logprobs += more["logprobs"]
        family = FAMILIES[EventRole.TEXT, part.type]
        yield self._event(f"{family}.delta", **self._place(item, part), delta=text, **more)

    def _end_part(self, item: OpenItem) -> Iterator[Event]:
        if item.parts:
            part = item.parts[-1]
            place_fields, text, family = (
                self._place(item, part),
                part.text,
                FAMILIES[EventRole.PART, PARTS[part.type].list],
            )
            if part.type == "output_text":
                for citation in part.citations:
                    yield from self._annotate(item, part, citation)
                text["logprobs"] = list(part.logprobs)
            yield self._event(f"{FAMILIES[EventRole.TEXT, part.type]}.done", **place_fields, **text)
            yield self._event(f"{family}.done", **place_fields, part=part.value())

    def _finish(self, item: OpenItem, status: str) -> Iterator[Event]:
        yield from self._end_part(item)
        value = self._finished_items[item.index] = item.value(status, self._left_of(item, status))
        if item.role is ItemRole.CALL:
            names = (ITEMS[item.type].fields[0], "name")
            yield from self._argued(item, "done", {name: value[name] for name in names})
        yield self._event("output_item.done", output_index=item.index, item=value)

    @staticmethod
    def _place(item: OpenItem, part: OpenPart) -> Event:
        return {"item_id": item.id, "output_index": item.index, LISTS[PARTS[part.type].list]: part.index}

    def _event(self, family: str, **said: Any) -> Event:
        self._next_sequence_number += 1
        return {"type": f"response.{family}", "sequence_number": self._next_sequence_number - 1, **said}

    def _id(self, kind: str, piece: Piece | None) -> str:
        """Return the item's own id if it is known in time, or one made from the response's: the same each time."""
        own = None if piece is None else piece.metadata.get("id")
        if isinstance(own, str) and own:
            return own
        token = uuid.uuid5(uuid.NAMESPACE_OID, f"{self.heading.id}/{len(self._items)}").hex
        return f"{IdKind(kind).prefix}{token}"  # type: ignore[call-arg]  # a word finds its member
