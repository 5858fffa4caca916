"""A client's request: its fields, read by taking them, and its options, in the request table of each format."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, NoReturn, TypeAlias, TypeVar, cast

import attrs

from crosswalk.lazy import pattern
from crosswalk.plain_errors import ResponseValidationError
from crosswalk.text import json_type_name, meant, names_credential
from crosswalk.types.json import EMPTY_OBJECT, as_frozen_object
from crosswalk.types.values import altered

# ---------------------------------------------------------------------------------- fields
# A client's JSON, read by taking fields. The residue has no canonical counterpart.

T = TypeVar("T")
Place: TypeAlias = tuple[str | int, ...]
"""The path of a value: keys of objects and numbers of items, outermost first."""
_LONGEST = 60
_TYPE_NAMES = {str: "a string", bool: "a boolean", int: "a whole number", dict: "an object"}


def path_of(place: Place) -> str:
    """*place* as people write it: ``messages[0].content``."""
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step:.{_LONGEST}}" for step in place)
    return path.removeprefix(".")


class FieldError(ResponseValidationError):
    """A field violates its format. The message names the path and quotes no content.

    Attributes:
        path: its path, such as ``messages[0].content[1].type``, or ``""`` for the body as a whole.
        problem: the problem.
    """

    def __init__(self, problem: str, path: str = "") -> None:
        super().__init__(f"{path}: {problem}" if path else problem)
        self.path = path
        self.problem = problem


@attrs.frozen
class Unread:
    """A part of a client's request without a canonical field.

    Attributes:
        place: its path.
        value: the value, as the client sent it.
        reason: the reason why it is not read, or empty for a field of an unknown name.
        known: the names that are read in its place.
    """

    place: Place
    value: Any
    reason: str = ""
    known: Collection[str] = attrs.field(default=(), eq=False)

    @property
    def why(self) -> str:
        """The reason why it is not read, with a suggestion for an unknown name."""
        suggestion = meant(str(self.place[-1]), self.known)
        return self.reason or f"is not a field that Crosswalk reads here{suggestion}"

    @property
    def path(self) -> str:
        """The place, as people write it."""
        return path_of(self.place)

    @property
    def option(self) -> str:
        """The name of the path in the table of options, with the value of a list's item."""
        if isinstance(self.place[-1], int) and isinstance(self.value, str):
            return f"{self.place[0]}[]={self.value}"
        return self.path


class Fields:
    """An object of a client's request. Each ``take`` removes a field, and returns ``None`` if it is absent or null.

    Args:
        value: the object.
        place: its path.
        spelled: returns the name under which a field is taken, for formats in which it has several spellings.

    Attributes:
        is_told: whether other servers get the object as text, because they have no place for it.

    Raises:
        FieldError: *value* is not an object. From each method: a field has a wrong type.
    """

    def __init__(self, value: Any, place: Place = (), spelled: Callable[[str], str] = str) -> None:
        self.place = place
        self._spelled = spelled
        if not isinstance(value, dict):
            self.refuse(f"must be an object, not {json_type_name(value)}")
        self._left: dict[str, Any] = {
            spelled(name): member for name, member in value.items() if member is not None
        }
        self._given_names = {} if spelled is str else {spelled(name): name for name in value}
        self._inner_fields: list[Fields] = []
        self.given, self._leave_reason = value, ""
        self._names: set[str] = set()
        self.is_told = False

    def __contains__(self, name: str) -> bool:
        return name in self._left

    def __iter__(self) -> Iterator[str]:
        return iter(self._left)

    def look(self, name: str) -> Any:
        """Return the field *name* unchanged, without taking it."""
        return self._left.get(name)

    def take(self, name: str) -> Any:
        """The field *name*, of any type."""
        self._names.add(name)
        return self._left.pop(name, None)

    def text(self, name: str) -> str | None:
        """A string."""
        return self._typed(name, str, "a string")  # type: ignore[no-any-return]

    def flag(self, name: str) -> bool | None:
        """A boolean."""
        return self._typed(name, bool, "a boolean")  # type: ignore[no-any-return]

    def whole(self, name: str) -> int | None:
        """A whole number, which may be written as ``40.0``."""
        value = self.look(name)
        if type(value) is float and value.is_integer():
            self.give(name, int(value))
        return self._typed(name, int, "a whole number")  # type: ignore[no-any-return]

    def number(self, name: str) -> float | None:
        """A number."""
        return self._typed(name, (int, float), "a number")  # type: ignore[no-any-return]

    def items(self, name: str) -> list[Any] | None:
        """A list, with whatever in it."""
        return self._typed(name, list, "a list")  # type: ignore[no-any-return]

    def texts(self, name: str) -> list[str] | None:
        """A list of strings."""
        items = self.items(name)
        for number, item in enumerate(items or ()):
            if not isinstance(item, str):
                self.refuse(f"must be a string, not {json_type_name(item)}", name, number)
        return items

    def plain(self, name: str) -> dict[str, Any] | None:
        """An object that is taken as a whole."""
        return self._typed(name, dict, "an object")  # type: ignore[no-any-return]

    def object(self, name: str) -> Fields | None:
        """Return an object, to take its fields one by one."""
        if name not in self._left:
            return None
        return self._kept(Fields(self.take(name), self._at(name), self._spelled))

    def inside(self, name: str) -> Fields | None:
        """Return the object *name* as from :meth:`object`, also if it was opened before."""
        place = self._at(name)
        return next((fields for fields in self._inner_fields if fields.place == place), None) or self.object(
            name
        )

    def typed(self, name: str, kind: type) -> Any:
        """A value of the JSON type *kind*, or of any for ``object``. The items of a list are strings."""
        if kind is list:
            return self.texts(name)
        return self.take(name) if kind is object else self._typed(name, kind, _TYPE_NAMES[kind])

    def objects(self, name: str) -> Iterator[Fields]:
        """Return the objects of a list, to take their fields one by one, or none if it is absent."""
        for number, item in enumerate(self.items(name) or ()):
            yield self._kept(Fields(item, self._at(name, number), self._spelled))

    def each(self, name: str, *ready: type) -> Iterator[Any]:
        """Return the items of a list like :meth:`objects`. Values of the types *ready* are returned unchanged."""
        for number, item in enumerate(self.items(name) or ()):
            is_ready = isinstance(item, ready)
            yield item if is_ready else self._kept(Fields(item, (*self.place, name, number)))

    def opened(self, name: str) -> list[Fields]:
        """Return the items of the list *name* that were taken as objects."""
        place = self._at(name)
        return [fields for fields in self._inner_fields if fields.place[:-1] == place]

    @property
    def is_left(self) -> bool:
        """Whether the object is left as a whole."""
        return bool(self._leave_reason)

    def need(self, name: str, value: Any) -> Any:
        """*value*, which was taken as *name* and must not be absent."""
        if value is None:
            self.refuse(f"is missing{meant(name, self._left)}", name)
        return value

    def is_text(self, name: str) -> str | None:
        """A string, which stays."""
        return self._kept_as(name, self.text(name))

    def is_flag(self, name: str) -> bool | None:
        """A boolean, which stays."""
        return self._kept_as(name, self.flag(name))

    def is_whole(self, name: str) -> int | None:
        """A whole number, which stays."""
        return self._kept_as(name, self.whole(name))

    def give(self, name: str, value: Any) -> None:
        """Give *value* back, which was taken as *name*."""
        self._left[name] = value

    def rest(self) -> dict[str, Any]:
        """All fields that are left."""
        remainder, self._left = self._left, {}
        return remainder

    def leave(self, why: str = "is of a type that Crosswalk does not read") -> None:
        """Leave the object as a whole, with what was taken of it: it is not understood, for the reason *why*.

        Without a reason it is understood after all, and only its other fields are left.
        """
        self._leave_reason = why

    def tell(self, *but: str) -> dict[str, Any]:
        """Take all fields except *but*, to send them as text, and return them unchanged."""
        self.is_told, self._leave_reason = True, ""
        fields = {
            name: member for name, member in self.given.items() if member is not None and name not in but
        }
        self._left = {name: member for name, member in self._left.items() if name in but}
        return fields

    def told(self) -> Iterator[str]:
        """Return the paths of the objects that go out as text, in this one and inside."""
        if self.is_told:
            yield path_of(self.place)
        for inner in self._inner_fields:
            yield from inner.told()

    def unread(self) -> Iterator[Unread]:
        """Return the residue of this object and of those inside it."""
        if self._leave_reason:
            yield Unread(self.place, self.given, self._leave_reason)
            return
        for name, value in self._left.items():
            yield Unread(self._at(name), value, known=self._names)
        for inner in self._inner_fields:
            yield from inner.unread()

    def refuse(self, problem: str, *at: str | int) -> NoReturn:
        """Raise what is wrong here, or in the field *at*."""
        raise self.wrong(problem, *at)

    def word(self, name: str, words: Mapping[str, T]) -> T | None:
        """Return the meaning of the word in the field *name*. An unknown word stays, for there may be more some day."""
        sent_word = self.look(name)
        if sent_word is None:
            return None
        if not isinstance(sent_word, str):
            return self.text(name)  # type: ignore[return-value]  # it raises
        if sent_word not in words:
            return None
        self.take(name)
        return words[sent_word]

    def need_all_read(self) -> None:
        """Refuse the first entry in them that has no canonical counterpart."""
        for unread in self.unread():
            raise FieldError(unread.why, unread.path)

    def wrong(self, problem: str, *at: str | int) -> FieldError:
        """Return the error for what is wrong here, or in the field *at*."""
        return FieldError(problem, path_of(self._at(*at)))

    def respelled(self, spelled: Callable[[str], str]) -> Fields:
        """Return the fields that are left, each under the name that *spelled* returns for it."""
        fields = Fields(self._left, self.place, spelled)
        fields.given = self.given
        return fields

    def _at(self, *steps: str | int) -> Place:
        """Return the path of the value at *steps* in this object, as the client spells it."""
        if steps and self._given_names and isinstance(steps[0], str):
            steps = (self._given_names.get(steps[0], steps[0]), *steps[1:])
        return (*self.place, *steps)

    def _kept(self, fields: Fields) -> Fields:
        self._inner_fields.append(fields)
        return fields

    def check_type(self, name: str, types: tuple[type, ...]) -> None:
        """Refuse the field *name* if it is of none of *types*, of which an object is one of texts. It stays."""
        expected_text = " or ".join(_TYPE_NAMES[each] for each in types)
        value = self._kept_as(name, self._typed(name, types, expected_text))
        for key, inner in value.items() if types == (dict,) and value else ():
            if not isinstance(inner, str):
                self.refuse(f"must be a string, not {json_type_name(inner)}", name, key)

    def _kept_as(self, name: str, value: T) -> T:
        if value is not None:
            self._left[name] = value
        return value

    def _typed(self, name: str, kinds: type | tuple[type, ...], expected_text: str) -> Any:
        self._names.add(name)
        value = self._left.pop(name, None)
        if value is not None and (
            not isinstance(value, kinds) or (type(value) is bool and kinds is not bool)
        ):
            self.refuse(f"must be {expected_text}, not {json_type_name(value)}", name)
        return value


class placed:  # used like a function
    """Add the path *at* in *fields* to errors of the block."""

    def __init__(self, fields: Fields, *at: str | int) -> None:
        self._fields = fields
        self._at = at

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        """Refuse the fields for an *error* that names no place."""
        if isinstance(error, ResponseValidationError) and not isinstance(error, FieldError):
            raise self._fields.wrong(str(error), *self._at) from None


class UnnamedCalls:
    """Makes the ids of the calls of a history that have none, and finds the results that name no call."""

    def __init__(self) -> None:
        self._waiting_calls: list[tuple[str, Any]] = []

    def id_of(self, place: Place, name: Any = None) -> str:
        """Return an id for the call at *place* of the tool *name*."""
        id = "_".join(("call_unnamed", *(str(step) for step in place if isinstance(step, int))))
        self._waiting_calls.append((id, name))
        return id

    def answered(self, name: Any = None) -> str | None:
        """Return the id of the first call that has no result so far, of the tool *name* if there is one, or ``None``."""
        fitting_calls = (call for call in self._waiting_calls if name in (None, call[1]))
        if (waiting_call := next(fitting_calls, None)) is None:
            return None
        self._waiting_calls.remove(waiting_call)
        return waiting_call[0]

    def forget(self) -> None:
        """Begin a new answer: no later result is of a call before it."""
        self._waiting_calls = []


def objects_at(said: Any, paths: Collection[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the objects at *paths* in *said*, each with its path."""
    waiting: list[tuple[Place, Any]] = [((), said)] if paths else []
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, dict) and (path := path_of(place)) in paths:
            yield path, value
        elif isinstance(value, dict | list):
            steps = value.items() if isinstance(value, dict) else enumerate(value)
            waiting += [((*place, step), inner) for step, inner in steps]


_SEALS: Final = frozenset({"signature", "thoughtSignature", "thought_signature", "fingerprint"})
"""Fields that only their provider can read. So are those with names that begin with ``encrypted_``."""


def readable(value: Any) -> Any:
    """Return *value* without the fields that only their provider can read."""
    if isinstance(value, dict):
        return {
            key: readable(inner)
            for key, inner in value.items()
            if key not in _SEALS and not key.startswith("encrypted_")
        }
    return [readable(inner) for inner in value] if isinstance(value, list) else value


# --------------------------------------------------------------------------------- options
# Options and details of requests: their canonical names, and the request table of each format that maps them.


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
    """Return the option that a program calls *name*, or ``None``."""
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
            ``messages[].content[][text].text``. A row covers everything below its path that has no other row.
            ``include[]=word`` is an item of a list of words.
        place: the canonical name, a key of :data:`crosswalk.wire.options.PLACES`, or ``""`` if only this format has it.
        kind: how the field is treated if the server cannot take it. A canonical name has its own kind.
        why: for a hint that only this format has, the reason why leaving it out is harmless.
        words: the format's word for each canonical word, or ``None`` if they are the same.
        read, write: functions for values that need more than other words.
        replaces: the path to remove when this field is written.
        needs: the path that must be true when this field is written.
        beside: the fields to write with this one: the value to write for each, then other valid values.
        types: the types of its values, if a request of another one is refused before it is sent. Null is of any.
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
    types: tuple[type, ...] = attrs.field(default=(), kw_only=True)

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
        """Return the canonical value for *written*, a value in the format, or ``None`` without one."""
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

    def check_types(self, body: Fields) -> None:
        """Check the values of the fields with types.

        Raises:
            FieldError: one is of another type, or an object of texts has another value.
        """
        for row in self.rows:
            if row.types:
                body.check_type(row.path, row.types)

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

    def path_in(self, body: Any, place: Place) -> str:
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
    """Return the value at *path* in *body*, or ``None`` without one."""
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
