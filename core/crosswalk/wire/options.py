"""Options and details of requests: their canonical names, and the request table of each format that maps them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, TypeAlias, cast

import attrs

from crosswalk.lazy import pattern
from crosswalk.plain_errors import ResponseValidationError
from crosswalk.text import json_type_name, names_credential
from crosswalk.types.json import EMPTY_OBJECT, as_frozen_object
from crosswalk.types.values import altered
from crosswalk.wire.fields import Fields, Place as Path


class PlaceKind(StrEnum):
    """How Crosswalk treats a part of a request that the server cannot take."""

    MEANING = "meaning"
    """The answer would differ without it. Content is sent as text. Any other part makes Crosswalk refuse the request."""
    HINT = "hint"
    """The answer is as good without it. The part is left out and reported."""
    STATE = "state"
    """It refers to state on a server. Crosswalk refuses the request, because its meaning depends on that state."""
    LINK = "link"
    """It connects items. Crosswalk writes a new one."""


@attrs.frozen
class RequestPlace:
    """An option of a request, or a detail of a message or a tool, under its canonical name.

    Attributes:
        name: the canonical name. An option has the name of its field in ``ChatRequest``, or of its key in ``extra_options``.
            The name of a detail starts with its object: ``tool.strict``.
        kind: how it is treated if the server cannot take it.
        neutral: the value that has no effect, and may be left out.
        why: for a hint other than cache marks, tiers, labels and storage, the reason why leaving it out is harmless.
        also: other names that a program may use for the option.
        type: the JSON type of a detail, for its reader.
    """

    name: str
    kind: PlaceKind
    neutral: Any = None
    why: str = attrs.field(default="", kw_only=True)
    also: tuple[str, ...] = attrs.field(default=(), kw_only=True)
    type: type = attrs.field(default=object, kw_only=True)

    def is_neutral(self, value: Any) -> bool:
        """Return whether *value* changes nothing."""
        return value == self.neutral and isinstance(value, bool) is isinstance(self.neutral, bool)


_MEANING, _HINT, _STATE, _LINK = PlaceKind
_RUNNER_REASON: Final = "it changes how the server runs, not what is asked"
_DISPLAY_REASON: Final = "it changes what is shown of the reasoning, not the answer"

OPTIONS: Final[Mapping[str, RequestPlace]] = MappingProxyType(
    {
        place.name: place
        for place in (
            # Fields of a ChatRequest.
            *(RequestPlace(name, _MEANING) for name in ("temperature", "top_p", "top_k", "max_tokens", "stop", "seed")),
            RequestPlace("parallel_tool_calls", _MEANING),
            RequestPlace("tool_choice", _MEANING),
            RequestPlace("reasoning_effort", _MEANING),
            RequestPlace("response_format", _MEANING),
            # Tools.
            RequestPlace("allowed_tools", _MEANING),
            RequestPlace("mcp_servers", _MEANING),
            # Sampling.
            RequestPlace("frequency_penalty", _MEANING, 0),
            RequestPlace("presence_penalty", _MEANING, 0),
            RequestPlace("repeat_penalty", _MEANING, 1, also=("repetition_penalty",)),
            RequestPlace("min_p", _MEANING),
            *(
                RequestPlace(name, _MEANING)
                for name in ("repeat_last_n", "typical_p", "mirostat", "mirostat_tau", "mirostat_eta")
            ),
            RequestPlace("logit_bias", _MEANING, {}),
            # The answer.
            RequestPlace("n", _MEANING, 1),
            RequestPlace("logprobs", _MEANING, False),
            RequestPlace("top_logprobs", _MEANING, 0),
            RequestPlace("verbosity", _MEANING, "medium"),
            RequestPlace("modalities", _MEANING, ["text"]),
            RequestPlace("audio", _MEANING),
            RequestPlace("best_of", _MEANING, 1),
            RequestPlace("prediction", _HINT, why="it saves time, and changes no word of the answer"),
            RequestPlace("moderation", _MEANING),
            RequestPlace("encrypted_reasoning", _HINT, why=_DISPLAY_REASON),
            RequestPlace("reasoning_summary", _HINT, why=_DISPLAY_REASON),
            RequestPlace("thinking_budget", _HINT, why="the effort that it stands for is sent as well"),
            RequestPlace("think", _HINT, why="the effort that it stands for is sent as well"),
            RequestPlace("truncation", _MEANING, "disabled"),
            RequestPlace("compaction", _HINT, why="it shortens a conversation that grows too long for the model"),
            RequestPlace("background", _MEANING, False),
            # What a server keeps.
            *(
                RequestPlace(name, _STATE)
                for name in ("previous_response_id", "conversation", "container", "cached_content")
            ),
            # The user, records and cost.
            *(RequestPlace(name, _HINT) for name in ("user", "safety_identifier")),
            RequestPlace("metadata", _HINT, {}),
            RequestPlace("store", _HINT, False),
            *(RequestPlace(name, _HINT) for name in ("prompt_cache_key", "prompt_cache_retention", "cache_control")),
            *(RequestPlace(name, _HINT) for name in ("prompt_cache_mode", "prompt_cache_ttl")),
            RequestPlace("service_tier", _HINT, "auto"),
            RequestPlace("speed", _HINT, "standard"),
            RequestPlace("safety_settings", _HINT, [], why="it sets what the server's own filter lets pass"),
            RequestPlace("include_obfuscation", _HINT, False, why="it pads the events of a stream"),
            # Ollama's runner.
            RequestPlace("keep_alive", _HINT, why=_RUNNER_REASON),
            *(
                RequestPlace(name, _HINT, why=_RUNNER_REASON)
                for name in (
                    *("num_ctx", "num_batch", "num_gpu", "num_keep", "num_thread", "main_gpu", "numa"),
                    *("low_vram", "f16_kv", "use_mmap", "use_mlock"),
                )
            ),
            *(RequestPlace(name, _MEANING) for name in ("penalize_newline", "tfs_z", "truncate", "shift")),
        )
    }
)  # fmt: skip
"""The options of a request, by name.

If two share a spelling in a format, the first one is read. The first one with a value is written.
"""

DETAILS: Final[Mapping[str, RequestPlace]] = MappingProxyType(
    {
        place.name: place
        for place in (
            RequestPlace("part.text", _MEANING),
            RequestPlace("part.image", _MEANING),
            RequestPlace("part.audio", _MEANING),
            RequestPlace("part.video", _MEANING),
            RequestPlace("part.file", _MEANING),
            RequestPlace("part.file_id", _STATE),
            RequestPlace("part.detail", _HINT, "auto", why="it sets how closely a picture is looked at"),
            RequestPlace("part.name", _HINT, why="the content is the same without the name of its file", type=str),
            RequestPlace("part.context", _MEANING, type=str),
            RequestPlace("part.citations", _MEANING, False, type=bool),
            RequestPlace("part.document", _MEANING),
            RequestPlace("part.search_result", _MEANING),
            *(RequestPlace(f"cache.{name}", _HINT) for name in ("mark", "ttl", "tools")),
            RequestPlace("message.name", _MEANING),
            *(RequestPlace(f"message.tool_{name}", _MEANING) for name in ("addition", "removal")),
            RequestPlace("call", _MEANING),
            RequestPlace("result", _MEANING),
            RequestPlace("result.is_error", _MEANING, False),
            RequestPlace("reasoning", _HINT, why="reasoning of a model is read by its own server alone"),
            RequestPlace("refusal", _MEANING),
            RequestPlace("citation", _HINT, why="the text is the same without its sources"),
            RequestPlace("tool.name", _MEANING, type=str),
            RequestPlace("tool.description", _MEANING, type=str),
            RequestPlace("tool.parameters", _MEANING, type=dict),
            RequestPlace("tool.strict", _HINT, False, why="the model gets the schema all the same", type=bool),
            RequestPlace("tool.defer_loading", _HINT, False, why="a tool that is loaded at once can be called", type=bool),
            RequestPlace("tool.output_schema", _HINT, why="it describes a result that the model gets to see", type=dict),
            RequestPlace("tool.input_format", _MEANING, type=dict),
            RequestPlace("tool.input_examples", _HINT, (), why="the schema says what they show"),
            RequestPlace("format.schema", _MEANING, type=dict),
            RequestPlace("format.name", _HINT, "answer", why="it is a label of the schema", type=str),
            RequestPlace("format.description", _HINT, why="the schema says what the answer holds", type=str),
            RequestPlace("format.strict", _HINT, False, why="the model gets the schema all the same", type=bool),
            RequestPlace("web_search", _MEANING),
            RequestPlace("hosted.allowed_domains", _MEANING, type=list),
            RequestPlace("hosted.blocked_domains", _MEANING, type=list),
            RequestPlace("hosted.max_uses", _MEANING, type=int),
            RequestPlace("hosted.user_location", _MEANING, type=dict),
            RequestPlace("hosted.search_context_size", _MEANING, "medium", type=str),
            RequestPlace("hosted.file_store_ids", _MEANING, type=list),
            RequestPlace("hosted.max_results", _MEANING, type=int),
            *(
                RequestPlace(f"hosted.{name}", _MEANING, type=str)
                for name in ("size", "quality", "background", "output_format")
            ),
            RequestPlace("web_fetch", _MEANING),
            RequestPlace("code_execution", _MEANING),
            RequestPlace("file_search", _MEANING),
            RequestPlace("image_generation", _MEANING),
            RequestPlace("client_tool", _MEANING),
            RequestPlace("mcp.name", _MEANING, type=str),
            RequestPlace("mcp.url", _MEANING, type=str),
            RequestPlace("mcp.authorization", _MEANING, type=str),
            RequestPlace("mcp.headers", _MEANING, type=dict),
            RequestPlace("mcp.allowed_tools", _MEANING),
            RequestPlace("mcp.approval", _MEANING, "never"),
            RequestPlace("mcp_toolset", _MEANING),
        )
    }
)  # fmt: skip
"""The details of messages, tools and output formats that several formats share, by name."""

PLACES: Final[Mapping[str, RequestPlace]] = MappingProxyType({**OPTIONS, **DETAILS})
"""All options and details."""


def option_named(name: str) -> RequestPlace | None:
    """Return the option that a program calls *name*, or ``None`` if there is none."""
    return OPTIONS.get(name) or next((place for place in OPTIONS.values() if name in place.also), None)


# ----------------------------------------------------------------------------------- rows
# The fields that a client may set in a format, with their path and spelling.
# The tables are in :mod:`crosswalk.formats.tables`.


Spelling: TypeAlias = Callable[[Any], Any]
"""A function that returns another spelling of a value, or ``None`` if there is none."""
_OBJECT_TYPE: Final = re.compile(r"(?<!\[\])\[\w+\]")
_LIST: Final = re.compile(r"\[\](?=[.\[])")
_TYPED_ITEM: Final = re.compile(r"\[\]\[\w+\]$")
VERSION: Final = re.compile(r"_20\d{6}$")
"""The end of a type that has versions."""


@attrs.frozen
class RequestRow:
    """A field of a format.

    Attributes:
        path: the path of the field. ``[]`` is an item of a list. ``[word]`` behind an item or an object is its type, as in
            ``messages[].content[][text].text``. A row covers everything below its path without a row of its own.
            ``include[]=word`` is an item of a list of words.
        place: the canonical name, a key of :data:`crosswalk.wire.options.PLACES`, or ``""`` if only this format has it.
        kind: how the field is treated if the server cannot take it. A canonical name has its own kind.
        why: for a hint that only this format has, the reason why leaving it out is harmless.
        words: the format's word for each canonical word, or ``None`` if they are the same.
        read, write: functions for values that need more than other words.
        replaces: the path to remove when this field is written.
        needs: the path that must be true when this field is written.
        beside: the fields that must accompany this one: the value to write for each, then other valid values.
    """

    path: str
    place: str = ""
    kind: PlaceKind = PlaceKind.MEANING
    why: str = attrs.field(default="", kw_only=True)
    words: Mapping[Any, Any] | None = attrs.field(default=None, kw_only=True, hash=False)
    read: Spelling | None = attrs.field(default=None, kw_only=True)
    write: Spelling | None = attrs.field(default=None, kw_only=True)
    replaces: str = attrs.field(default="", kw_only=True)
    needs: str = attrs.field(default="", kw_only=True)
    beside: Mapping[str, tuple[Any, ...]] = attrs.field(factory=dict, kw_only=True, hash=False)

    def __attrs_post_init__(self) -> None:
        if self.place:
            object.__setattr__(self, "kind", PLACES[self.place].kind)

    def written(self, value: Any) -> Any:
        """Return the format's spelling of the canonical *value*, or ``None`` if it has none."""
        if self.write is not None:
            try:
                return self.write(value)
            except (AttributeError, LookupError, TypeError):
                return None
        return value if self.words is None else self.words.get(value) if isinstance(value, str) else None

    def value_of(self, written: Any) -> Any:
        """Return the canonical value for *written*, a value in the format, or ``None`` if there is none."""
        if self.read is not None:
            try:
                return self.read(written)
            except (AttributeError, LookupError, TypeError):
                return None
        if self.words is None:
            return written
        return next((ours for ours, theirs in self.words.items() if _is_same(theirs, written)), None)


def _is_same(one: Any, other: Any) -> bool:
    return bool(one == other) and type(one) is type(other)


def meaning(*paths: str, **more: Any) -> tuple[RequestRow, ...]:
    """Return rows that only this format has and that change the answer."""
    return tuple(RequestRow(path, **more) for path in paths)


def hint(why: str, *paths: str) -> tuple[RequestRow, ...]:
    """Return rows that only this format has and that may be left out. *why* is the reason."""
    return tuple(RequestRow(path, kind=PlaceKind.HINT, why=why) for path in paths)


def state(*paths: str) -> tuple[RequestRow, ...]:
    """Return rows that only this format has and that refer to state on its servers."""
    return tuple(RequestRow(path, kind=PlaceKind.STATE) for path in paths)


def link(*paths: str) -> tuple[RequestRow, ...]:
    """Return rows that only this format has and that connect items."""
    return tuple(RequestRow(path, kind=PlaceKind.LINK) for path in paths)


def below(at: str, *rows: RequestRow) -> tuple[RequestRow, ...]:
    """Return *rows* with the path *at* in front of their paths."""
    return tuple(
        altered(row, path=f"{at}{row.path}" if row.path[:1] in ("", "[") else f"{at}.{row.path}")
        for row in rows
    )


@attrs.frozen(eq=False)
class RequestTable:
    """All fields that a client may set in one format, or for one server.

    Attributes:
        key: the name of the table, such as ``chat``.
        label: the name in messages.
        paths: the endings of the URL paths of its endpoints.
        rows: the rows. If several have one canonical name, the first one is written.
        types: functions that return the type of an item without a type field, by the path of the list.
        spelled: a function that returns the table's spelling of a field, for formats that accept several spellings.
        is_strict: whether the server refuses unknown fields.
        lacks: the canonical names that other servers of the format have, and this one does not.
    """

    key: str
    label: str
    paths: tuple[str, ...]
    rows: tuple[RequestRow, ...]
    types: Mapping[str, Callable[[Mapping[str, Any]], str]] = attrs.field(factory=dict)
    spelled: Callable[[str], str] = attrs.field(default=str)
    is_strict: bool = False
    lacks: frozenset[str] = frozenset()

    def with_rows(
        self, *rows: RequestRow, without: tuple[str, ...] = (), is_strict: bool = False
    ) -> RequestTable:
        """Return the table of a server with additional *rows*, and without the canonical names or paths in *without*."""
        kept_rows = tuple(row for row in self.rows if row.place not in without and row.path not in without)
        lacks = self.lacks.union(without).difference(row.place for row in (*rows, *kept_rows))
        return attrs.evolve(
            self, rows=(*rows, *kept_rows), is_strict=self.is_strict or is_strict, lacks=lacks
        )

    @cached_property
    def _of_place(self) -> Mapping[str, RequestRow]:
        return {row.place: row for row in reversed(self.rows) if row.place}

    @cached_property
    def options(self) -> tuple[RequestRow, ...]:
        """The rows of options. If several have one path, the first one that can read the value counts."""
        return tuple(row for row in self.rows if row.place in OPTIONS)

    @cached_property
    def _of_path(self) -> Mapping[str, RequestRow]:
        return {row.path: row for row in reversed(self.rows)}

    @cached_property
    def _lists(self) -> frozenset[str]:
        """The paths of lists of objects."""
        return frozenset(row.path[: match.start()] for row in self.rows for match in _LIST.finditer(row.path))

    def row(self, place: str) -> RequestRow | None:
        """Return the row to write for the canonical name *place*, or ``None`` if the format has none."""
        return self._of_place.get(place)

    def words(self, place: str) -> Mapping[Any, Any]:
        """Return the format's word for each canonical word of *place*, or nothing if it has none."""
        row = self.row(place)
        return {} if row is None or row.words is None else row.words

    def row_at(self, path: str) -> RequestRow | None:
        """Return the row for *path*, in the notation of :attr:`RequestRow.path`, or ``None`` if the table has none.

        It is the row with that path, or else the one with the longest path around it. For an object with rows for its parts
        only, it is the first of these rows that changes the answer.
        """
        for prefix in (path, _OBJECT_TYPE.sub("", path)):
            while prefix:
                if prefix in self._of_path:
                    return self._of_path[prefix]
                if _TYPED_ITEM.search(prefix):  # the rows of a list do not cover items of an unknown type
                    break
                prefix = prefix[: max(prefix.rfind("."), prefix.rfind("["), 0)]
        inner_rows = [row for row in self.rows if row.path.startswith((f"{path}.", f"{path}["))]
        return min(inner_rows, key=lambda row: row.kind is not PlaceKind.MEANING, default=None)

    def details(self, at: str, of: str) -> tuple[tuple[str, str, RequestRow], ...]:
        """Return the details that an object at the path *at* may have.

        Each item is the path inside the object, the name of the detail, and its row.

        Args:
            at: the path of the object.
            of: the kind of object, such as ``tool`` or ``hosted``.
        """
        return self._details[at, of]

    @cached_property
    def _details(self) -> Mapping[tuple[str, str], tuple[tuple[str, str, RequestRow], ...]]:
        details: dict[tuple[str, str], tuple[tuple[str, str, RequestRow], ...]] = _Nothing()
        for row in self.rows:
            owner, _, name = row.place.partition(".")
            for cut in range(len(row.path)):
                path, inner_path = row.path[:cut], row.path[cut + 1 :]
                if name and row.path[cut] == "." and "[" not in inner_path:
                    details[path, owner] = (*details[path, owner], (inner_path, name, row))
        return details

    def path_in(self, body: Any, place: Path) -> str:
        """Return the path, in the notation of :attr:`RequestRow.path`, of the value at the location *place* in *body*."""
        path, value = "", body
        for step in place:
            holder_path, path = (
                path,
                f"{path}[]" if isinstance(step, int) else f"{path}.{self.spelled(step)}".removeprefix("."),
            )
            item = (
                value[step] if isinstance(value, list) and isinstance(step, int) else None
            )  # the body may spell a field in another way
            value = value.get(step) if isinstance(value, dict) else item
            kind = value.get("type") if isinstance(value, dict) else None
            if isinstance(value, dict) and path in self._lists:  # it stands for a list of one
                path += "[]"
            if (
                kind is None
                and isinstance(value, dict)
                and isinstance(step, int)
                and holder_path in self.types
            ):
                kind = self.types[holder_path](value)
            if isinstance(kind, str):
                path += f"[{VERSION.sub('', kind)}]"
        return path


class _Nothing(dict[Any, Any]):
    def __missing__(self, key: Any) -> tuple[()]:
        return ()


def read_details(table: RequestTable, at: str, of: str, fields: Fields) -> dict[str, Any]:
    """Take the details of a tool or another object from *fields*, and return them by name.

    A value without a canonical counterpart stays in *fields*. *at* is the path of the object in *table*, and *of* its kind.
    """
    details: dict[str, Any] = {}
    for path, name, row in table.details(at, of):
        *outer_steps, last_step = path.split(".")
        holder: Fields | None = fields
        for step in outer_steps:
            holder = None if holder is None else holder.inside(step)
        if holder is None or name in details or last_step not in holder:
            continue
        given_value = holder.typed(last_step, PLACES[row.place].type)
        value = row.value_of(given_value)
        if value is None:
            holder.give(last_step, given_value)
        else:
            details[name] = value
    return details


def written_details(
    table: RequestTable, at: str, of: str, values: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Return the details *values* in the spelling of *table*, and the names of those that the format cannot express.

    *at* is the path of the object in *table*, and *of* its kind.
    """
    written_fields: dict[str, Any] = {}
    lost_names: list[str] = []
    row_by_name = {name: (path, row) for path, name, row in reversed(table.details(at, of))}
    for name, value in values.items():
        path, row = row_by_name.get(name, ("", None))
        written_value = None if row is None else row.written(value)
        if written_value is None:
            lost_names.append(name)
        else:
            put(written_fields, path, written_value)
    return written_fields, lost_names


def put_row(body: dict[str, Any], row: RequestRow, written: Any) -> bool:
    """Write *written* at the path of *row*, with the fields that it needs. Return whether no other value was there."""
    companions_fit = (
        put(body, path, values[0]) or get(body, path) in values for path, values in row.beside.items()
    )
    if not all(companions_fit) or not put(body, row.path, written):
        return False
    if row.replaces:
        *outer_steps, last_step = row.replaces.split(".")
        holder = get(body, ".".join(outer_steps)) if outer_steps else body
        (holder or {}).pop(last_step, None)
    if row.needs:
        put(body, row.needs, True)
    return True


def get(body: Any, path: str) -> Any:
    """Return the value at *path* in *body*, or ``None`` if there is none."""
    for step in path.split("."):
        body = body.get(step) if isinstance(body, dict) else None
    return body


def put(body: dict[str, Any], path: str, value: Any) -> bool:
    """Write *value* at *path* into *body*, and return whether no other value was there.

    The path ``a[]=word`` adds the word to the list. ``a[].b`` adds an object with the value under ``b``. ``a[][type]`` adds
    all items of the value.
    """
    path, is_item, item_path = path.partition("[]")
    *outer_steps, last_step = path.split(".")
    for step in outer_steps:
        body = body.setdefault(step, {})
    if is_item:
        new_items = (
            value
            if item_path[:1] == "["
            else [{item_path[1:]: value} if item_path[:1] == "." else item_path[1:]]
        )
        items = body.setdefault(last_step, [])
        items += [item for item in new_items if item not in items]
        return True
    return bool(body.setdefault(last_step, value) == value)


# Headers.

_HTTP_PREFIXES: Final = ("host", "connection", "content-", "transfer-encoding", "accept-encoding")
_HEADER_NAME: Final = pattern(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+\Z")
_HEADER_VALUE: Final = pattern(r"[\t\x20-\x7e]*\Z")


def as_headers(value: Mapping[str, str]) -> Mapping[str, str]:
    """Return *value*, the headers that a request adds, with names in lower case.

    Raises:
        ResponseValidationError: they are no headers, may hold a secret, or are set by the connection.
    """
    if value is EMPTY_OBJECT:
        return value
    given: Any = value
    if not isinstance(given, Mapping):
        raise ResponseValidationError(f"extra_headers must be headers by name, not {json_type_name(given)}")
    headers: dict[str, str] = {}
    for name, text in given.items():
        if not (isinstance(name, str) and _HEADER_NAME.match(name)):
            raise ResponseValidationError(f"extra_headers: no name of a header: {name!r:.60}")
        lowercase_name = name.lower()
        if names_credential(name, in_head=True):
            raise ResponseValidationError(
                f"extra_headers: {name:.60} may hold a secret: give it as api_key= or headers= of the endpoint or the call"
            )
        if lowercase_name.startswith(_HTTP_PREFIXES):
            raise ResponseValidationError(f"extra_headers: {name:.60} is set by the connection")
        if not (isinstance(text, str) and _HEADER_VALUE.match(text)):
            raise ResponseValidationError(
                f"extra_headers: the value of {name:.60} must be a line of ASCII text"
            )
        headers[lowercase_name] = text
    return cast("Mapping[str, str]", as_frozen_object(headers))
