"""Code shared by the readers of all formats: a client's request in canonical form, and the body for a server of its form."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache
from itertools import chain
from operator import attrgetter, is_
from types import MappingProxyType
from typing import Any, Final, TypeVar

import attrs

from crosswalk.errors import CrosswalkError
from crosswalk.formats.chat_table import CHAT, CHAT_SERVER
from crosswalk.formats.messages_table import without_unsigned
from crosswalk.formats.tables import TABLES, fields_with_names as fields_with_names
from crosswalk.formats.writing import WireForm
from crosswalk.mapping.reader import ReaderOptions, read_body
from crosswalk.plugin.registry import registry as default_registry
from crosswalk.request import (
    Adaptation,
    AdaptationKind,
    CacheMark,
    ChatRequest,
    HTTPRequest,
    NamedTool,
    ReasoningEffort,
    ToolDefinition,
    Turn,
    UnsupportedRequestError,
    as_extra_options,
)
from crosswalk.types.json import copy_json, dump_json
from crosswalk.types.message import ChatMessage, ContentPart, Role, TextPart
from crosswalk.types.response import ChatResponse
from crosswalk.types.values import altered, unchecked
from crosswalk.wire.chat import read_choice, read_custom_tool
from crosswalk.wire.options import (
    PLACES,
    FieldError,
    Fields,
    Place,
    PlaceKind,
    RequestRow,
    RequestTable,
    Unread,
    objects_at,
    path_of,
    placed as placed,
    put,
    read_details,
    readable,
)

# -------------------------------------------------------------------------------- incoming
# A client's request in canonical form, and the body for a server that speaks the client's own form.


VERSION: Final = "anthropic-version"
"""The header is sent to no server: answers are read and written here in one version."""


@attrs.frozen(kw_only=True)
class Wants:
    """Requests for the form of the answer, or for the gateway itself. They are not sent to a model.

    Those that a server could also fulfil are among the unread fields, too. :meth:`Incoming.without` removes them.

    Attributes:
        include_usage: whether a stream ends with the token counts (``stream_options``).
        n: the number of answers.
        echo: whether the prompt precedes the answer (completions).
        logprobs: whether log probabilities are requested.
        store: whether to keep the answer (Responses), or ``None`` if the request does not say.
        previous_response_id: the id of the answer to continue (Responses), or ``None`` without one.
        background: whether to make the answer in the background (Responses).
        user: the client's name for its end user, or ``None`` without one.
        namespaces: the namespace of each tool in one, and its name there, by the tool's name in the request (Responses).
        load: ``load`` or ``unload`` if a request of Ollama's has no prompt and only loads or unloads the model, otherwise
            ``None``.
        defaults: options that only repeat the default, by name. Servers do not need them.
    """

    include_usage: bool = False
    n: int = 1
    echo: bool = False
    logprobs: bool = False
    store: bool | None = None
    previous_response_id: str | None = None
    background: bool = False
    user: str | None = None
    namespaces: Mapping[str, tuple[str, str]] = attrs.field(factory=dict)
    load: str | None = None
    defaults: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ClientRequest(ChatRequest):
    """A client's request in canonical form, with the client's other fields.

    A service builds it like any other request. Then :meth:`built_by` adds the fields for a server of the client's own form,
    and lists the rest as dropped: the service raises for that, or records it.

    Attributes:
        form: the client's form.
        said: the body as the client sent it.
        unread: its fields without a canonical one.
        asked: the request as it was read, before any change.
        headers: the options in the client's headers, by name in lower case.
        notes: the parts of earlier answers that the gateway has left out.
        known: the ids of the answers with a provider from a seal.
        unsigned: why a part of another server, by its place, is not in *said*: its opaque values are not the form's.
        told: the places of content that only the client's form has. Other forms get it as text.
        details: what :meth:`details_of_part` returns, by the ``id()`` of the part.
        instead: the tools that servers of other forms get for an item that only the client's form has, by its place. A
            toolset of an MCP server has an empty entry.
        servers: the known servers of answers, by the id of the answer.
        alone: the place of each result without a call before it, and the message that tells it, by the ``id()`` of its turn.
        places: the place of each turn in the client's body, or empty if it is that of the turn itself. The place of an
            earlier turn, which the gateway has kept, is the id that names its answer.
    """

    form: WireForm
    said: Mapping[str, Any]
    unread: tuple[Unread, ...]
    asked: ChatRequest
    headers: Mapping[str, str] = attrs.field(factory=dict)
    notes: tuple[Adaptation, ...] = ()
    known: frozenset[str] = frozenset()
    unsigned: Mapping[str, str] = attrs.field(factory=dict)
    told: tuple[str, ...] = ()
    details: Mapping[int, Mapping[str, Any]] = attrs.field(factory=dict)
    instead: Mapping[str, tuple[ToolDefinition, ...]] = attrs.field(factory=dict)
    servers: Mapping[str, str] = attrs.field(factory=dict)
    alone: Mapping[int, tuple[str, ChatMessage]] = attrs.field(factory=dict)
    places: tuple[str, ...] = ()

    @property
    def instruction_count(self) -> int:
        """The number of turns that begin the request and are for its answer alone: no later request continues them."""
        return self.places.count("instructions")

    def server_of(self, turn: Turn) -> str | None:
        """See :meth:`ChatRequest.server_of`."""
        return self.servers.get(turn.id) if isinstance(turn, ChatResponse) else None

    def details_of_part(self, part: object) -> Mapping[str, Any] | None:
        """See :meth:`ChatRequest.details_of_part`."""
        return self.details.get(id(part))

    def is_for(self, format: str | None, model: str) -> bool:
        """See :meth:`ChatRequest.is_for`. An alias or another server's model is not the model that the client named."""
        return format == self.form.key and model == self.asked.model

    @property
    def thinking_budget(self) -> Any:
        """See :attr:`ChatRequest.thinking_budget`. A client's format may have brought it."""
        sent_budgets = (one.value for one in self._brought("thinking_budget"))
        return self.extra_options.get("thinking_budget", next(sent_budgets, None))

    def names_of(self, option: str) -> tuple[str, ...]:
        """See :meth:`ChatRequest.names_of`."""
        return (option, *(one.path for one in self._brought(option)))

    def _brought(self, option: str) -> Iterator[Unread]:
        return (
            one
            for one in self.unread
            if any(
                row.place == option for row in (*_rows(self.form.key, one), *filter(None, [self._row(one)]))
            )
        )

    def _row(self, unread: Unread) -> RequestRow | None:
        """Return the row of *unread*, or ``None`` if the table of the client's format has none."""
        table = TABLES[self.form.key]
        return table.row_at(table.path_in(self.said, unread.place))

    def built_by(self, build: Callable[[ChatRequest], HTTPRequest]) -> HTTPRequest:
        """See :meth:`ChatRequest.built_by`."""
        http_request = self._built_by(build)
        if self.headers:
            http_request = self._with_headers(http_request)
        return http_request.adapted(*self.notes) if self.notes else http_request

    def _at_client(self, http_request: HTTPRequest) -> HTTPRequest:
        """Return *http_request*, which is made of the turns here, with each turn named by its place in the client's body."""

        def placed(adaptation: Adaptation) -> Adaptation:
            match = _MESSAGE.fullmatch(adaptation.field)
            if not match or adaptation.refuses:
                return adaptation
            return attrs.evolve(adaptation, field=self.places[int(match[1])])

        if len(self.places) != len(self.messages) or not http_request.adaptations:
            return http_request
        return altered(http_request, adaptations=tuple(map(placed, http_request.adaptations)))

    def _with_headers(self, http_request: HTTPRequest) -> HTTPRequest:
        """Return *http_request* with the options of the client's headers, if the server speaks the client's form."""
        passed_headers = dict(self.headers) if self._is_own(http_request) else {}
        passed_headers.pop(VERSION, None)
        reason = "the header asks what this API does not know"
        adaptations = (
            Adaptation.dropped(name, reason, asked=value)
            for name, value in self.headers.items()
            if name not in passed_headers
        )
        return attrs.evolve(http_request, headers={**http_request.headers, **passed_headers}).adapted(
            *adaptations
        )

    def _is_own(self, http_request: HTTPRequest) -> bool:
        """Return whether *http_request* is for an API of the client's form."""
        return http_request.path.partition("?")[0].endswith(self.form.paths)

    def _built_by(self, build: Callable[[ChatRequest], HTTPRequest]) -> HTTPRequest:
        if self.provider == self.form.provider:
            unchanged_request = self._as_said(build)
            if unchanged_request is not None:
                return unchanged_request
        elif self.alone:
            return self._with_results_told()._built_for_other(build)
        return self._built_for_other(build)

    def _built_for_other(self, build_turns: Callable[[ChatRequest], HTTPRequest]) -> HTTPRequest:
        def build(request: ClientRequest) -> HTTPRequest:
            return request._at_client(build_turns(request))

        request = self
        if (self.unread or self.instead) and not self._is_own(frame := build(_unchanged(self))):
            request = self._without_silence(table_of(frame))
        built = build(request)
        table = table_of(built)
        if not self._is_own(built) or (table is not None and table.is_strict):
            return request._translated(built, build).adapted(*map(_told_at, self.told))
        if any(isinstance(turn, ChatResponse) for turn in self.messages):
            # These are probably the server's own answers, so it gets back the fields that such answers have.
            built = build(attrs.evolve(self, messages=tuple(map(self._own, self.messages))))
        unread_fields: dict[bool, list[Unread]] = {True: [], False: []}
        for one in self.unread:
            unread_fields[self._is_lacking(one, table)].append(one)
        drops = (dropped for one in unread_fields[True] for dropped in self._dropped(one, table))
        return self._with_told_parts(self._with_unread(built, unread_fields[False])).adapted(*drops)

    def _is_lacking(self, unread: Unread, table: RequestTable | None) -> bool:
        """Return whether *unread* is an option, and the server with *table* is known not to have it."""
        rows = _rows(self.form.key, unread)
        return table is not None and any(
            row.place in table.lacks and row.value_of(unread.value) is not None for row in rows
        )

    def _with_told_parts(self, built: HTTPRequest) -> HTTPRequest:
        """Return *built*, for another server of the client's form, with the client's parts in place of their texts."""
        body, back = self._with_parts_back(built.body)
        built = attrs.evolve(built, body=body)
        return built.adapted(*(_told_at(place) for place in self.told if place not in back))

    def _with_parts_back(self, body: Any) -> tuple[Any, set[str]]:
        """Return *body* with the parts and items of the client in place of their texts, and their places."""
        told = [*objects_at(self.said, self.told)]
        back = self._put_calls_back(body := copy_json(body)) if told else set()
        parts: dict[str, tuple[Any, list[str]]] = {}
        for place, part in told:
            if ".tool_calls[" not in place:
                for text in {_told_text(part), _told_text(readable(part))}:
                    parts.setdefault(text, (part, []))[1].append(place)

        def restored(value: Any) -> Any:
            if isinstance(value, dict):
                text = _text_alone(value) if value.get("type") == "message" else value.get("text")
                if isinstance(text, str) and text in parts:
                    part, places = parts[text]
                    back.update(places)
                    return part
                return {name: restored(inner) for name, inner in value.items()}
            return [restored(inner) for inner in value] if isinstance(value, list) else value

        return (restored(body) if parts else body), back

    def _put_calls_back(self, body: dict[str, Any]) -> set[str]:
        """Put the calls of a client of Chat Completions into *body* in place of their texts, and return their places."""
        back: set[str] = set()
        for number, (said, sent) in enumerate(zip(_messages(self.said), _messages(body), strict=False)):
            texts: Any = sent.get("content")
            for at, call in enumerate((isinstance(texts, list) and said.get("tool_calls")) or ()):
                place = path_of(("messages", number, "tool_calls", at))
                if place in self.told and (told := {"type": "text", "text": _told_text(call)}) in texts:
                    texts.remove(told)
                    sent.setdefault("tool_calls", []).insert(at, call)
                    sent["content"] = texts or None
                    back.add(place)
        return back

    def _with_results_told(self) -> ClientRequest:
        """Return the request with each result as text, if it is alone and no call of an earlier turn asks for it."""
        called: set[str | None] = set()
        turns: list[Turn] = []
        places: list[str] = []
        for turn in self.messages:
            message = turn.message if isinstance(turn, ChatResponse) else turn
            called.update(call.id for call in message.tool_calls or ())
            if id(turn) in self.alone and message.tool_call_id not in called:
                place, turn = self.alone[id(turn)]
                places.append(place)
            turns.append(turn)
        return altered(self, messages=tuple(turns), told=(*self.told, *places))

    def _without_silence(self, target: RequestTable | None) -> ClientRequest:
        """Return the request for a server with the table *target*, without entirely unread messages.

        Raises:
            UnsupportedRequestError: the request names a server's state, or nothing is left of it.
        """
        for one in self.unread:
            self._refuse_state(one, target)
        silence_flags = [
            isinstance(turn, ChatMessage) and turn.content == () and turn.role in (Role.USER, Role.SYSTEM)
            for turn in self.messages
        ]
        if all(silence_flags):
            raise UnsupportedRequestError("the conversation has no content", options=["messages"])
        kept_numbers = [number for number, is_silent in enumerate(silence_flags) if not is_silent]
        turns = tuple(self.messages[number] for number in kept_numbers)
        is_placed = len(self.places) == len(self.messages)
        places = (self.places[number] if is_placed else f"messages[{number}]" for number in kept_numbers)
        marks = tuple(
            attrs.evolve(mark, after=mark.after - sum(silence_flags[: mark.after]))
            if isinstance(mark.after, int)
            else mark
            for mark in self.cache_marks
            if not (isinstance(mark.after, int) and silence_flags[mark.after])
        )
        added_tools = chain.from_iterable(self.instead.values())
        return altered(
            self, messages=turns, places=tuple(places), cache_marks=marks, tools=(*self.tools, *added_tools)
        )

    def _refuse_state(self, unread: Unread, target: RequestTable | None) -> None:
        for one in _state_in(self.form.key, self.said, unread):
            label = target.label if target else "the API"
            reason = f"it names what a server of {self.form.label} keeps, and {label} has no place for it"
            raise UnsupportedRequestError(
                f"it cannot express {one.path} ({reason})", provider=self.provider, options=[one.path]
            )

    def _translated(
        self, http_request: HTTPRequest, build: Callable[[ClientRequest], HTTPRequest]
    ) -> HTTPRequest:
        """Return the options for an API of another form, in its own words, as far as it has them."""
        if not self.unread:
            return http_request
        form = self.form
        target, nearest_formats = table_of(http_request), _NEAREST_FORMATS.get(form, (form.key, form.key))
        near_table = target if target is not None and target.key == nearest_formats[0] else None
        shared_fields = (
            []
            if near_table is None
            else [one for one in self.unread if self._is_shared(one, nearest_formats[1], near_table)]
        )
        options: dict[str, Any] = {}
        paths: dict[str, str] = {}
        dropped_adaptations: list[Adaptation] = []
        for unread in _apart(one for one in self.unread if one not in shared_fields):
            rows = _rows(nearest_formats[1], unread)
            is_item = unread.path != unread.option
            option_rows = (row for row in rows if row.place not in _FIELD_NAMES)
            values = ((row.place, is_item or row.value_of(unread.value)) for row in option_rows)
            placed_value = next(((place, value) for place, value in values if value is not None), None)
            if placed_value is not None:
                options[placed_value[0]], paths[placed_value[0]] = placed_value[1], unread.path
            elif not self._is_by_part(unread, http_request, target):
                dropped_adaptations += self._dropped(unread, target)
        if "top_logprobs" in options and self.form is WireForm.OPENAI_RESPONSES:  # it is enough there
            options["logprobs"] = True
            paths.setdefault("logprobs", paths["top_logprobs"])
        elif near_table is None and not options.get("logprobs") and options.pop("top_logprobs", None):
            dropped_adaptations.append(Adaptation.dropped(paths["top_logprobs"], "without logprobs"))
        if options:
            extra_options = as_extra_options({**self.extra_options, **options})
            http_request = build(altered(self, extra_options=extra_options))
        named = [attrs.evolve(one, field=paths.get(one.field, one.field)) for one in http_request.adaptations]
        adaptations = (*dict.fromkeys(named), *dropped_adaptations)
        return self._with_unread(altered(http_request, adaptations=adaptations), shared_fields)

    def _is_shared(self, unread: Unread, source: str, target: RequestTable) -> bool:
        """Return whether *unread* goes on unchanged to a server with the table *target*, near the format *source*."""
        if target.is_strict:  # of its other rows, it may have other words
            row = target.row_at(target.path_in(self.said, unread.place))
            return row is not None and not row.place
        if isinstance(unread.value, dict) and unread.place[0] != "options":
            return False
        target_rows = (target.row(row.place) for row in _rows(source, unread))
        return any(row is not None and row.path == unread.option for row in target_rows)

    def _is_by_part(self, unread: Unread, http_request: HTTPRequest, target: RequestTable | None) -> bool:
        """Return whether the part with *unread* has brought it to the server with the table *target*."""
        row = self._row(unread)
        target_row = target.row(row.place) if target and row and row.place in _TOOL_CHANGES else None
        if target_row is None:
            return False
        change: dict[str, Any] = {}
        put(
            change,
            target_row.path.removeprefix("messages[].content[]."),
            target_row.written(unread.value.get("tool")),
        )
        return dump_json(change) in dump_json(http_request.body)

    def _own(self, turn: Any) -> Any:
        is_plain = isinstance(turn, ChatResponse) and turn.metadata.provider_id == self.form.provider
        if not is_plain or self.provider is None or turn.id in self.known:
            return turn
        return attrs.evolve(turn, metadata=attrs.evolve(turn.metadata, provider_id=self.provider))

    def _as_said(self, build: Callable[[ChatRequest], HTTPRequest]) -> HTTPRequest | None:
        """Return the body as the client sent it, with the changes since it was read, or ``None`` for another API.

        A conversation that did not change is not built: its own server knows what it may hold.
        """
        original_request: ChatRequest = altered(
            self.asked, **{name: getattr(self, name) for name in _ENDPOINT_FIELDS}
        )
        current_request: ChatRequest = self
        is_same = len(self.messages) == len(original_request.messages) and all(
            map(is_, self.messages, original_request.messages)
        )
        if is_same:
            current_request, original_request = _unchanged(self), _unchanged(original_request)
        http_request = build(current_request)
        if not self._is_own(http_request):
            return None
        is_same = is_same and all(
            getattr(current_request, name) == getattr(original_request, name) for name in _FIELD_NAMES
        )
        earlier_http_request = http_request if is_same else _built_before(build, original_request)
        earlier = {(one.field, one.reason) for one in earlier_http_request.adaptations}
        new_adaptations = [one for one in http_request.adaptations if (one.field, one.reason) not in earlier]
        placed_adaptations = self._at_client(altered(http_request, adaptations=new_adaptations)).adaptations
        # The client's items hold what has been left out since, even if the written ones are the same without it.
        drops = (one.field for one in placed_adaptations if one.kind is AdaptationKind.DROPPED)
        lessened_names = {place.partition("[")[0] for place in drops}
        body = {name: value for name, value in self.said.items() if name not in _PLUGIN_FIELDS}
        written_names: set[str] = set()
        for name in {**earlier_http_request.body, **http_request.body}:
            value, old_value = http_request.body.get(name), earlier_http_request.body.get(name)
            if name not in _PLUGIN_FIELDS and value == old_value and name not in lessened_names:
                continue
            sent_value = body.get(name)
            for sent_name in [*body]:
                if sent_name == name or http_request.spellings.get(sent_name) == name:
                    del body[sent_name]
            if name == "stream_options" and isinstance(self.said.get(name), dict) and value is not None:
                body[name] = {**self.said[name], **value}
            elif value is not None:
                # Then the client's items are not the server's.
                is_built = bool(self.known or self.notes) or name in lessened_names
                body[name] = value if is_built else _patched(sent_value, old_value, value)
                written_names |= {name} if body[name] is value else set()
        for name in _FIELD_NAMES:
            if (
                getattr(current_request, name) in _UNSET_VALUES
                and getattr(original_request, name) not in _UNSET_VALUES
            ):
                # It was left out since. The plugin itself may have written the same before and after.
                row = TABLES[self.form.key].row(name)
                path = "" if row is None else row.path
                body.pop(path, None)
                if path in http_request.body:
                    body[path] = http_request.body[path]
        sent_options = self.said.get("stream_options")
        if (
            isinstance(sent_options, dict)
            and http_request.body.get("stream")
            and "stream_options" not in body
        ):
            body["stream_options"] = {
                name: value for name, value in sent_options.items() if name != "include_usage"
            }
        unsigned = self.unsigned
        if (self.known or self.notes) and self.form is WireForm.ANTHROPIC:  # as for what the client has sent
            body, found = without_unsigned(body, ("", None))
            unsigned = unsigned or found
        unsigned_drops = (Adaptation.dropped(place, reason) for place, reason in unsigned.items())
        body, back = self._with_parts_back(body)
        told = (
            place for place in self.told if place.partition("[")[0] in written_names and place not in back
        )
        adaptations = (*placed_adaptations, *unsigned_drops, *map(_told_at, told))
        http_request = attrs.evolve(http_request, body=body, adaptations=adaptations)
        return self._with_unread(http_request, [one for one in self.unread if one.place[0] in written_names])

    def _with_unread(self, http_request: HTTPRequest, unread: Iterable[Unread]) -> HTTPRequest:
        """Return *http_request* with each *unread* value in its place, as far as the lists there have the same items."""
        unread_queue = sorted(unread, key=lambda one: one.place)
        if not unread_queue:
            return http_request
        body = copy_json(http_request.body)
        unplaced_fields = []
        while unread_queue:
            if not _put(body, self.said, unread_queue[0].place, unread_queue):
                unplaced_fields.append(unread_queue[0])
            del unread_queue[0]
        target = table_of(http_request)
        drop_adaptations = (dropped for one in unplaced_fields for dropped in self._dropped(one, target))
        return attrs.evolve(http_request, body=body).adapted(*drop_adaptations)

    def _dropped(self, unread: Unread, target: RequestTable | None) -> Iterator[Adaptation]:
        """Return the part of *unread* to report, because a server with the table *target* does not get it.

        Raises:
            UnsupportedRequestError: it is state. Without it the request is another one, so it is never left out.
        """
        self._refuse_state(unread, target)
        if unread.path in self.instead:
            if unread.place[0] == "tools":  # the option mcp_servers says it
                for one in _marks_in(unread):
                    reason = f"{target.label if target else 'the API'} has no place for it"
                    yield Adaptation.dropped(one.path, reason, asked=one.value)
            elif not self.instead[unread.path]:
                yield Adaptation.dropped(unread.path, "its tools are declared from the beginning")
            return
        row = self._row(unread)
        label = target.label if target else "the API"
        if row is None:
            reason = f"it is no known field of {self.form.label}"
            yield Adaptation.dropped(unread.path, reason, asked=unread.value, refuses=True)
        elif row.kind is not PlaceKind.LINK and not (
            row.place and PLACES[row.place].is_neutral(unread.value)
        ):
            has_place = target is not None and row.place and target.row(row.place) is not None
            reason = f"{label} has no such value" if has_place else f"{label} has no place for it"
            refuses = row.kind is PlaceKind.MEANING
            yield Adaptation.dropped(unread.path, reason, asked=unread.value, refuses=refuses)


def _messages(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = body.get("messages", [])
    return messages


def _text_alone(item: dict[str, Any]) -> Any:
    """Return the text of *item*, a message, if it is nothing else."""
    content = item.get("content")
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict):
        return content[0].get("text")
    return content


def _told_at(place: str) -> Adaptation:
    return Adaptation(place, AdaptationKind.TOLD, "it is sent as text")


def table_of(http_request: HTTPRequest) -> RequestTable | None:
    """Return the table of the server that *http_request* goes to, or ``None`` if no table is known."""
    return http_request.table or table_of_path(http_request.path)


@lru_cache(maxsize=256)  # bounded, because a path may hold a name that a client chooses
def table_of_path(path: str) -> RequestTable | None:
    """Return the table of the servers with an endpoint at *path*, or ``None`` if it is another one."""
    bare_path = path.partition("?")[0]
    table = next((table for table in TABLES.values() if bare_path.endswith(table.paths)), None)
    return CHAT_SERVER if table is CHAT else table


_NEAREST_FORMATS: Final = {
    WireForm.OPENAI_COMPLETIONS: ("chat", "completions"),
    WireForm.OLLAMA_GENERATE: ("ollama", "ollama"),
}
"""The format closest to a form, and the format with the same spelling of options, for forms that no server is asked in."""
_FIELD_NAMES: Final = frozenset(attrs.fields_dict(ChatRequest))
_TOOL_CHANGES: Final = ("message.tool_addition", "message.tool_removal")
"""The places of blocks that :meth:`ClientRequest.details_of_part` has as ``tool_changes``."""


def _rows(format: str, unread: Unread) -> list[RequestRow]:
    """Return the rows of the options that *unread* may be in *format*."""
    table = TABLES[format]
    path = ".".join(map(table.spelled, unread.option.split(".")))
    return [row for row in table.options if row.path == path]


def _apart(unread: Iterable[Unread]) -> Iterator[Unread]:
    """Return *unread*, with each item of a list of words by itself."""
    for one in unread:
        if one.place == ("include",) and isinstance(one.value, list):
            for number, item in enumerate(one.value):
                yield Unread(("include", number), item)
        else:
            yield one


_PLUGIN_FIELDS: Final = ("model", "stream", "stream_options")
_UNSET_VALUES: Final = (None, ())
"""The fields that the plugin sets for a server, regardless of the client's values."""
_ENDPOINT_FIELDS: Final = ("model", "stream", "provider", "extra_headers")
"""The fields of a request that differ between the client's and the one for an endpoint."""
_STAND_IN_MESSAGES: Final = (ChatMessage.user("-"),)
"""Stands for a conversation that goes on as the client sent it."""


def _unchanged(request: T) -> T:
    """Return *request* with a stand-in for its conversation."""
    return altered(request, messages=_STAND_IN_MESSAGES, cache_marks=())


def _built_before(build: Callable[[ChatRequest], HTTPRequest], asked: ChatRequest) -> HTTPRequest:
    """Return what *build* makes of *asked*, or nothing if *asked* is only complete with the turns before it."""
    try:
        return build(asked)
    except UnsupportedRequestError:
        return HTTPRequest("", {})


def _patched(client_items: Any, old_items: Any, new_items: Any) -> Any:
    """Return *new_items*, with the client's items in place of those that did not change since *old_items*, if any.

    Items are the same at the end or the beginning of both lists, or one by one in lists of one length.
    """
    if not (
        isinstance(client_items, list)
        and isinstance(old_items, list)
        and isinstance(new_items, list)
        and old_items
    ):
        return new_items
    if new_items[-len(old_items) :] == old_items:
        return [*new_items[: -len(old_items)], *client_items]
    if new_items[: len(old_items)] == old_items:
        return [*client_items, *new_items[len(old_items) :]]
    if len(client_items) == len(old_items) == len(new_items):
        item_triples = zip(client_items, old_items, new_items, strict=True)
        return [item if before == after else after for item, before, after in item_triples]
    return new_items


_MESSAGE: Final = re.compile(r"messages\[(\d+)\]")


def _state_in(format: str, raw_body: Any, unread: Unread) -> Iterator[Unread]:
    """Return the parts of *unread* in the request *raw_body* in *format* that name something on a server.

    A file on a server has a canonical place, so all of *unread* is returned for it.
    """
    table, unread_queue = TABLES[format], [unread]
    while unread_queue:
        one = unread_queue.pop(0)
        path = table.path_in(raw_body, one.place)
        row = table.row_at(path)
        is_inside = row is not None and row.path.startswith((f"{path}.", f"{path}["))
        if row is not None and row.kind is PlaceKind.STATE and not is_inside:
            yield unread if row.place else one
        elif isinstance(one.value, dict | list):
            steps = one.value.items() if isinstance(one.value, dict) else enumerate(one.value)
            unread_queue += [Unread((*one.place, step), value) for step, value in steps if value is not None]


def _marks_in(unread: Unread) -> Iterator[Unread]:
    """Return what a toolset says that may be left out: its cache mark, and which tools are loaded late."""
    waiting = [unread]
    while waiting:
        one = waiting.pop(0)
        if one.value and one.place[-1] in ("cache_control", "defer_loading"):
            yield one
        elif isinstance(one.value, dict):
            waiting += [Unread((*one.place, step), value) for step, value in one.value.items()]


def _put(body: Any, client_value: Any, place: Place, unread_queue: list[Unread]) -> bool:
    """Put the first of the *unread_queue* into *body*, at its *place* in *client_value*. Return whether it is there.

    In a list it is there if the list has as many items as the client's, apart from those still waiting.
    """
    step, *remainder = place
    is_there = isinstance(body, list if isinstance(step, int) else dict)
    if not is_there:
        return False
    if isinstance(step, int):
        list_place = unread_queue[0].place[: -len(place)]
        if len(body) != len(client_value) - sum(other.place[:-1] == list_place for other in unread_queue):
            return False
        if not remainder:
            body.insert(step, unread_queue[0].value)
            return True
        return _put(body[step], client_value[step], tuple(remainder), unread_queue)
    if not remainder:
        return body.setdefault(step, unread_queue[0].value) is unread_queue[0].value
    inner_value = body.get(step, type(client_value[step])())
    is_there = _put(inner_value, client_value[step], tuple(remainder), unread_queue)
    if is_there:
        body[step] = inner_value
    return is_there


@attrs.frozen(kw_only=True)
class Incoming:
    """A client's request after reading.

    Attributes:
        form: the client's form.
        request: the canonical request for a service, unchanged or changed with ``attrs.evolve``. Its ``model`` is the
            client's name for it, its ``stream`` the client's wish. It carries the unread fields.
        wants: the client's requests for the form of the answer.
    """

    form: WireForm
    request: ClientRequest
    wants: Wants

    @property
    def custom_tools(self) -> frozenset[str]:
        """The names of the client's tools that take free text."""
        tools = (*self.request.asked.tools, *chain.from_iterable(self.request.instead.values()))
        return frozenset(tool.name for tool in tools if tool.is_custom)

    @property
    def unread(self) -> Mapping[str, Any]:
        """The fields without a canonical one, by JSON path, as the client sent them.

        They go to a server of the client's own form. To any other they are options that cannot be expressed, so the service
        refuses the request and names them, or drops and records them.
        """
        return {unread.path: unread.value for unread in self.request.unread}

    @property
    def state(self) -> Mapping[str, Any]:
        """The unread values that name a server's state, by JSON path. They never go to another server."""
        return {
            one.path: one.value
            for unread in self.request.unread
            for one in _state_in(self.form.key, self.request.said, unread)
        }

    def without(self, *paths: str) -> Incoming:
        """Return the same without the unread fields *paths*, which the gateway handles. They are sent to no server."""
        unread_left = tuple(unread for unread in self.request.unread if unread.path not in paths)
        removed_places: set[Place] = {unread.place for unread in self.request.unread if unread.path in paths}
        if not removed_places:
            return self
        remaining_fields = {
            name: value for name, value in self.request.said.items() if (name,) not in removed_places
        }
        return altered(self, request=altered(self.request, unread=unread_left, said=remaining_fields))


# --------------------------------------------------------------------------------- reading
# The functions that the readers of all formats share.


T = TypeVar("T")
_EPOCH = datetime.fromtimestamp(0, UTC)
_NO_FIELDS: Final[Mapping[str, Any]] = MappingProxyType({})
_FIELDS = attrs.fields_dict(ChatRequest)
_FIELDS_OF: Final = attrgetter(*_FIELDS)


_TAKERS: Final[dict[str, Callable[[Fields, str], Any]]] = {
    "temperature": Fields.number,
    "top_p": Fields.number,
    "top_k": Fields.whole,
    "max_tokens": Fields.whole,
    "stop": lambda fields, name: _stop(fields, name),
    "seed": Fields.whole,
    "parallel_tool_calls": Fields.flag,
}


def options(fields: Fields, format: str, prefix: str = "") -> dict[str, Any]:
    """The options in *fields* that :class:`ChatRequest` has, in the spelling of *format* below *prefix*.

    If an option has two spellings, the later one in the table counts, and the other stays. So does a value outside the
    bounds of a :class:`ChatRequest`, such as -1 for no limit: each server checks its own.
    """
    option_values: dict[str, Any] = {}
    given_names = {*fields}
    for name, place in _taken_names(format, prefix):
        if name in given_names and place not in option_values:
            value = _TAKERS[place](fields, name)
            try:
                option_values[place] = option(fields, name, place, value)
            except FieldError:
                fields.give(name, value)
    return option_values


@cache
def _taken_names(format: str, prefix: str) -> list[tuple[str, str]]:
    rows = reversed(TABLES[format].options)
    return [(row.path.removeprefix(prefix), row.place) for row in rows if row.place in _TAKERS]


def _stop(fields: Fields, name: str) -> Any:
    if isinstance(fields.look(name), str):
        return fields.text(name)
    if not isinstance(fields.look(name), list):
        fields.refuse("must be a string or a list of strings", name)
    return fields.texts(name)


DEFAULTS_OF_SERVERS: Final = ("store", "frequency_penalty", "presence_penalty")
"""Options whose default a server or a model sets, so that the value of another API's default is a wish as any other."""


def take_neutral(body: Fields, format: str, other_values: Mapping[str, Any] = _NO_FIELDS) -> dict[str, Any]:
    """The options of *body* that change nothing, by name: those of *format*, and *other_values* with their values."""
    taken_values = {}
    neutral_values = {**_neutral_values(format), **other_values}
    for name in [name for name in body if name in neutral_values]:
        sent_value, value = body.look(name), neutral_values[name]
        is_of_its_kind = (type(sent_value) is bool) is (type(value) is bool)
        if sent_value is not None and sent_value == value and is_of_its_kind:
            taken_values[name] = body.take(name)
    return taken_values


@cache
def _neutral_values(format: str) -> dict[str, Any]:
    rows = reversed(TABLES[format].options) if format else ()
    return {row.path: PLACES[row.place].neutral for row in rows if row.place not in DEFAULTS_OF_SERVERS}


def option(fields: Fields, name: str, field: str, value: Any) -> Any:
    """*value*, taken as *name*, as :class:`ChatRequest` has it in its *field*."""
    attribute = _FIELDS[field]
    with placed(fields, name):
        if callable(attribute.converter):
            value = attribute.converter(value)
        if attribute.validator is not None:
            attribute.validator(None, attribute, value)
    return value


@cache
def read_words(option: str, format: str) -> dict[str, str]:
    """Return the meaning of each word of *format* for *option*."""
    words = TABLES[format].words(option)
    return {wire_word: name for name, wire_word in words.items() if isinstance(wire_word, str)}


_LOW_BUDGET, _MEDIUM_BUDGET = 4096, 16384
"""Budgets in tokens: up to the first, thinking counts as low. Beyond the second, it counts as high."""


def effort_of(budget: int) -> ReasoningEffort:
    """Return the effort for a *budget* of tokens for reasoning."""
    if budget <= _LOW_BUDGET:
        return ReasoningEffort.LOW
    return ReasoningEffort.MEDIUM if budget <= _MEDIUM_BUDGET else ReasoningEffort.HIGH


def answer(fields: Fields, body: dict[str, Any], provider: str) -> ChatResponse:
    """Read an earlier answer of *provider* from *body*, made of *fields*.

    Raises:
        FieldError: *body* cannot be read as an answer.
    """
    id = f"{path_of(fields.place)}"
    try:
        options = ReaderOptions(id_factory=lambda: id, clock=lambda: _EPOCH, unknown="keep", keep_raw=False)
        return read_body(default_registry.mapper(provider), dump_json(body), options)
    except CrosswalkError as error:
        problem = f"is not an answer of {provider}: {error}"
    fields.refuse(problem)


def cache_marks(block: Fields, after: Any, part: int | None = None) -> Iterator[CacheMark]:
    """Return the mark of *block*, in any of its spellings. Another one stays unread.

    Args:
        block: the last block of the prompt's part that *after* names.
        after: the place of the mark.
        part: its number among the parts of the message, or ``None`` for the last one.
    """
    point = block.object("prompt_cache_breakpoint")
    if point is not None and point.look("mode") == "explicit":
        point.take("mode")
        yield CacheMark(after, part=part)
    control = block.object("cache_control")
    if control is None:
        return
    if control.look("type") != "ephemeral" or control.look("ttl") not in (None, "5m", "1h"):
        control.leave()
        return
    control.take("type")
    yield CacheMark(after, control.take("ttl"), part=part)


def marks_of(parts: Iterable[Fields], after: Any) -> Iterator[CacheMark]:
    """Return the marks of the *parts* of the message *after*. A part that is not read has no number."""
    read_parts = [part for part in parts if not part.is_left]
    for number, part in enumerate(read_parts):
        yield from cache_marks(part, after, number if number < len(read_parts) - 1 else None)


def told_result(result: Fields, name: str | None, content: str | Sequence[ContentPart]) -> ChatMessage:
    """Return the *content* of *result*, without a call, as the user's words about the tool *name*."""
    result.tell(*result)
    return told_message(name, content)


def told_message(name: str | None, content: str | Sequence[ContentPart]) -> ChatMessage:
    """Return the *content* of a result as the user's words about the tool *name*."""
    about = f"The output of {name or 'a tool'}:"
    if isinstance(content, str):
        return ChatMessage.user(f"{about}\n{content}")
    return ChatMessage.user([TextPart(about), *content])


def told_part(block: Fields, table: RequestTable, path: str) -> TextPart | None:
    """Return *block*, which only its own format has, as JSON.

    References to a server's state, declarations and hints are not content. They stay, and the result is ``None``.

    Args:
        block: the block.
        table: the table of its format.
        path: its path in the table, such as ``messages[].content[][browser_state]``.
    """
    row = table.row_at(path)
    if row is not None and (row.place or row.kind is not PlaceKind.MEANING):
        block.leave()
        return None
    block.tell("cache_control")
    return TextPart(_told_text(block.given))


def _told_text(given: Mapping[str, Any]) -> str:
    fields = {
        name: member for name, member in given.items() if member is not None and name != "cache_control"
    }
    return dump_json(fields).decode()


def told_if_unknown(block: Fields, table: RequestTable, path: str) -> str | None:
    """Return *block* of an answer as JSON if *table* has no row for it at *path*, or ``None`` for a known one.

    A server has made it, so what only that server can read stays out.
    """
    if table.row_at(path) is not None:
        return None
    block.tell("cache_control")
    return _told_text(readable(block.given))


def incoming(
    form: WireForm, body: Fields, raw_body: dict[str, Any], wants: Wants, **canonical_fields: Any
) -> Incoming:
    """Return the request in *body*: the *canonical_fields*, the fields of every form, and the unread rest.

    The ``places`` of the turns may be among *canonical_fields*.

    Raises:
        FieldError: the fields do not go together.
    """
    places = tuple(canonical_fields.pop("places", ()))
    model = option(body, "model", "model", body.need("model", body.text("model")))
    fields = {
        "model": model,
        "stream": bool(body.flag("stream")),
        **options(body, form.key),
        **canonical_fields,
    }
    with placed(body, "messages"):
        request = ChatRequest(**{name: value for name, value in fields.items() if value is not None})
        client_request = unchecked(
            ClientRequest,
            **dict(zip(_FIELDS, _FIELDS_OF(request), strict=True)),
            form=form,
            said=raw_body,
            unread=tuple(body.unread()),
            asked=request,
            headers={},
            unsigned={},
            told=tuple(body.told()),
            details={},
            instead={},
            servers={},
            alone={},
            places=places,
        )
    return Incoming(form=form, request=client_request, wants=wants)


# ----------------------------------------------------------------------------------- tools
# Tools as all formats say them.


def definition(tool: Fields, table: RequestTable, path: str) -> ToolDefinition:
    """Return the tool that *tool* defines, an object that *table* has at the path *path*."""
    fields = read_details(table, path, "tool", tool)
    tool.need("name", fields.get("name"))
    with placed(tool):
        return ToolDefinition(**fields)


def custom_definition(tool: Fields) -> ToolDefinition:
    """Return the tool that *tool* defines, which takes free text."""
    with placed(tool):
        return ToolDefinition(**read_custom_tool(tool))


def tool_choice(body: Fields, *, is_nested: bool = True) -> str | NamedTool | None:
    """Return whether the model may call tools, or which one it must call."""
    if not isinstance(body.look("tool_choice"), dict):
        return body.word("tool_choice", read_words("tool_choice", "chat"))
    choice_object = body.object("tool_choice")
    assert choice_object is not None, "it is an object"
    name = read_choice(choice_object, is_nested=is_nested)
    with placed(choice_object, "name"):
        return None if name is None else NamedTool(name)
