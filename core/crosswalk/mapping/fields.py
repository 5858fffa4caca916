"""The fields of a dialect, as data: a table with a row for each field."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from inspect import getmembers_static, signature
from itertools import chain
from types import MappingProxyType
from typing import Any, ClassVar, Final, TypeAlias, cast

import attrs

from crosswalk.errors import ErrorInfo, MappingError
from crosswalk.lazy import pattern
from crosswalk.mapping.failures import take_error
from crosswalk.plugin.hooks import ProviderInfo, Recognition, hookimpl
from crosswalk.plugin.registry import unknown_event
from crosswalk.plugin.state import (
    CountPaths,
    MappingState,
    counted,
    require_object,
    take_object,
    take_objects,
    take_same,
    take_string,
    wrong_type,
)
from crosswalk.text import meant
from crosswalk.types.delta import ResponseDelta, ended, said
from crosswalk.types.json import dump_json
from crosswalk.types.message import ToolCallDelta
from crosswalk.types.usage import UsageDetails, UsageInfo
from crosswalk.types.values import FinishReason, TokenLogprob

# ----------------------------------------------------------------------------------- marks
# Values in any dialect: the marks of a server, and the arguments of a call.


def has_mark(event: dict[str, Any], marks: tuple[str, ...]) -> bool:
    """Return whether *event* has a value at any of the paths *marks*, in which ``[]`` matches any item."""
    for steps, keys in _by_holder(marks):
        values: list[Any] = [event]
        for key, is_list in steps:
            holders, values = values, []
            for holder in holders:
                value = holder.get(key) if type(holder) is dict else None
                if is_list:
                    values += value if type(value) is list else ()
                else:
                    values.append(value)
        for value in values:
            if type(value) is dict and not keys.isdisjoint(value):
                return True
    return False


@lru_cache(maxsize=256)
def _by_holder(marks: tuple[str, ...]) -> list[tuple[list[tuple[str, bool]], frozenset[str]]]:
    """The *marks* that are in one object together: the way to it, and their keys."""
    groups: dict[str, list[str]] = {}
    for mark in marks:
        holder_path, _, key = mark.rpartition(".")
        groups.setdefault(holder_path, []).append(key)
    return [
        (
            [(name.removesuffix("[]"), name.endswith("[]")) for name in holder_path.split(".") if name],
            frozenset(keys),
        )
        for holder_path, keys in groups.items()
    ]


def take_arguments(function: dict[str, Any], key: str = "arguments") -> tuple[str | None, bool]:
    """Take argument text, and whether it is whole: some servers send the object itself, then it is all of it.

    Raises:
        WireTypeError: it is something else.
    """
    value = function.get(key)
    if type(value) is str:
        del function[key]
        return value, False
    if type(value) is dict:
        return dump_json(function.pop(key)).decode(), True
    return take_string(function, key), False


# ---------------------------------------------------------------------------------- fields
# A table with a row for each field, in place of code that takes one after the other.


class Said:
    """The values of one object of an event. A row's function adds to them, or to more in its dialect's own subclass.

    Attributes:
        text: its text, ``None`` without any; likewise its reasoning and its refusal.
        logprobs: the log probabilities of its text, or ``None``.
        calls: its tool calls, or fragments of them.
        finish: its finish word, ``""`` for an end without a word, or ``None`` if the answer goes on.
        deltas: other deltas, such as those of segments, between its calls and its end.
        error: the first error. It is raised when all the rest has been read.
        choice: the number of its choice.
    """

    text: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    logprobs: tuple[TokenLogprob, ...] | None = None
    finish: str | None = None
    error: MappingError | None = None
    choice: int = 0

    def __init__(self) -> None:
        self.calls: list[ToolCallDelta] = []
        self.deltas: list[ResponseDelta] = []

    def speak(self) -> Iterable[ResponseDelta]:
        """Return the deltas in the canonical order, whatever the order in the event. The error is raised after them."""
        deltas: list[ResponseDelta] = []
        text, reasoning, refusal = self.text or None, self.reasoning or None, self.refusal or None
        if refusal or self.logprobs:
            deltas.append(
                ResponseDelta(
                    content_delta=text,
                    reasoning_delta=reasoning,
                    refusal_delta=refusal,
                    logprobs=self.logprobs,
                    choice=self.choice,
                )
            )
        elif text or reasoning:
            deltas.append(said(text, reasoning, choice=self.choice))
        for call in self.calls:
            deltas.append(said(None, None, call, choice=self.choice))
        if self.deltas:
            deltas += self.deltas
        if self.finish is not None:
            deltas.append(ended(self.finish, choice=self.choice))
        return deltas if self.error is None else _and_raise(deltas, self.error)


def _and_raise(deltas: Iterable[ResponseDelta], error: MappingError) -> Iterator[ResponseDelta]:
    yield from deltas
    raise error


Take: TypeAlias = Callable[[dict[str, Any], str, Any, MappingState], object]
"""Takes the value under a key of an object, by ``take_…`` or ``accept_…``, and adds what it says to the :class:`Said`."""
Level: TypeAlias = tuple[tuple[str, str | None, tuple[Any, ...], Take | None], ...]
"""The rows of one object, in order: each one's key, word, silent values, and function."""


def _is_take(row: FieldRow, _: object, take: Any) -> None:
    try:
        take is None or signature(take).bind(*_TAKEN)
    except (TypeError, ValueError) as error:
        name = getattr(take, "__name__", type(take).__name__)
        raise TypeError(f"{name}, of the row {row.place!r}, gets {', '.join(_TAKEN)}: {error}") from None


_TAKEN: Final = ("holder", "key", "said", "state")


def _are_tables(row: FieldRow, _: object, tables: Any) -> None:
    check_map(f"inside, of the row {row.place!r},", tables, FieldTable, "{'say': FieldTable({'text': TEXT})}")


@attrs.frozen(eq=False)
class FieldRow:
    """The row of a field.

    Attributes:
        place: the canonical field, for people.
        take: the function that takes the value, or ``None`` for a count, which waits for ``map_usage``, for a row whose
            silent values alone are taken, and in rows that state what is read without a table.
        word: the attribute of :class:`Said` that a string becomes without the function, unless it has one already:
            ``text``, ``reasoning``, ``refusal`` or ``finish``.
        silent: the values that say nothing. They are taken without the function.
        inside: the tables of what is inside the value, by its type. The function reads it by one of them.

    Raises:
        TypeError: *take* does not take four arguments, or *inside* has other values than tables.
        ValueError: *word* is another one.
    """

    place: str
    take: Take | None = attrs.field(repr=False, validator=_is_take)
    word: str | None = attrs.field(
        default=None,
        repr=False,
        validator=attrs.validators.in_((None, "text", "reasoning", "refusal", "finish")),
    )
    silent: tuple[Any, ...] = attrs.field(default=(), repr=False)
    inside: Mapping[str, FieldTable] = attrs.field(
        default=MappingProxyType({}), repr=False, validator=_are_tables
    )


class FieldTable:
    """The rows of a dialect's fields, by their path. Values without a row are left in the event.

    The rows are asked in their order, so that a later one sees what the earlier ones have taken. A value of a wrong type
    raises when the others have been read.

    Args:
        rows: by path, such as ``message.content`` or ``output[].text``. In an array each object speaks for itself.
            ``[2]`` is the third item of an array, as in ``rows[][2]``, or of an event that is one. Counts are only read in
            objects, and at a place of the event itself.
        at: the path of the objects in the event that it reads, such as ``output.choices[]``, or several. ``""`` is the
            event itself.

    Attributes:
        rows: the same, by their path in the event.
        text_paths: the paths of texts, for ``ProviderInfo``.
        read: takes the rows from an object of an event, but for the counts, and adds what they say to a ``Said``.

    Raises:
        TypeError: a row has the wrong type.
        ValueError: a path has a row and leads to others as well, or is invalid, or a count is inside an array of the event.
    """

    def __init__(self, rows: Mapping[str, FieldRow], at: str | tuple[str, ...] = "") -> None:
        check_map("a table", rows, FieldRow, "{'said.text': TEXT}")
        for path in rows:
            if not _PATH.fullmatch(path):
                raise ValueError(f"{path!r} is no path of a row, as in 'output[].text' or 'rows[][2]'")
        places = (at,) if isinstance(at, str) else at
        self.rows: Mapping[str, FieldRow] = {
            f"{place}.{path}" if place else path: row for place in places for path, row in rows.items()
        }
        texts = (path for path, row in self.rows.items() if row in (TEXT, REASONING))
        text_paths = (path.replace("[]", "[0]") for path in texts)
        self.text_paths = tuple(path for path in text_paths if path[0] != "[")
        count_paths: dict[str, list[str]] = {}
        for path, row in rows.items():
            if row.take is None and not row.silent:
                if "[" in path[1:]:
                    raise ValueError(
                        f"{path!r}: a count is read in objects, or at a place of the event itself"
                    )
                count_paths.setdefault(row.place.rpartition(".")[2], []).append(_steps(path))
        self._count_paths = CountPaths(count_paths)
        level = level_of({_steps(path): row for path, row in rows.items()})
        self._has_places = bool(level) and level[0][0][0] == "["
        self.read: Callable[[Any, Said, MappingState], None] = partial(
            _read_places if self._has_places else read_rows, level
        )
        self._keys = frozenset(_steps(path).partition(".")[0].removesuffix("[]") for path in rows)

    def knows(self, event: Any) -> bool:
        """Whether *event* is an object with the first key of any row, or an array with its place."""
        keys = _cells(event) if isinstance(event, list) else event if isinstance(event, dict) else ()
        return not self._keys.isdisjoint(keys)

    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """Take all but the counts from *event*, and return its deltas. See the hook ``map_delta``.

        Raises:
            WireTypeError: a value has a wrong type.
        """
        event_said = Said()
        is_readable = type(event) is dict or (self._has_places and isinstance(event, list))
        self.read(event if is_readable else require_object(event), event_said, state)
        return event_said.speak()

    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """Take the counts from *event*. A missing one is unknown, not 0. See the hook ``map_usage``."""
        is_array = isinstance(event, list)
        counts = self.accept_counts(event) if is_array else self._count_paths.accept(event)
        return counted(counts, state) if counts else None

    def accept_counts(self, event: Any) -> dict[str, int]:
        """Take the counts from *event*, by name, for ``counted``. Mistyped ones stay, and are noted."""
        holder = _cells(event) if isinstance(event, list) else event
        counts = self._count_paths.accept(holder)
        if holder is not event:
            _put_back(event, holder)
        return counts


_PATH: Final = pattern(r"(\[\d+\]|[^.\[\]]+)(\[\d*\])*(\.[^.\[\]]+(\[\d*\])*)*")


def _steps(path: str) -> str:
    """Return *path* with its places as keys: ``rows[].[2]``. The items of an array are those of the key before."""
    return re.sub(r"(?<!^)(\[\d+\])", r".\1", path)


def _cells(array: list[Any]) -> dict[str, Any]:
    """Return the items of *array* by their places, as ``[2]``."""
    return {f"[{number}]": value for number, value in enumerate(array)}


def _put_back(array: list[Any], cells: dict[str, Any]) -> None:
    """Leave in *array* what is left of its *cells*, each in its place. It is emptied if there is nothing."""
    items = (cells.get(f"[{number}]") for number in range(len(array)))
    left = [None if _is_gone(item) else item for item in items]
    array[:] = [] if _is_gone(left) else left


def _is_gone(value: Any) -> bool:
    """Whether nothing is left of *value*."""
    if isinstance(value, dict | list):
        return all(map(_is_gone, value.values() if isinstance(value, dict) else value))
    return value is None


def check_map(name: str, known: Any, kind: type, example: str) -> None:
    """Raise a TypeError unless *known* is a mapping of strings to values of *kind*, as in *example*."""
    form = f"{name} gives a {kind.__name__} for each text, as in {example}, not"
    if not isinstance(known, Mapping):
        raise TypeError(f"{form} {type(known).__name__}")
    for key, value in known.items():
        if not isinstance(key, str):
            raise TypeError(
                f"{name}: the key {str(key)[:40]} must be text, as in {example}, not {type(key).__name__}"
            )
        if not isinstance(value, kind):
            raise TypeError(f"{form} {type(value).__name__} for {key[:40]!r}")


def level_of(rows: Mapping[str, FieldRow]) -> Level:
    """Return the *rows* of one object, in the order of their paths, without the counts."""
    inner_rows: dict[str, dict[str, FieldRow]] = {}
    for path, row in rows.items():
        if row.take is not None or row.silent:
            key, _, rest = path.partition(".")
            inner_rows.setdefault(key, {})[rest] = row
    if len({key[0] == "[" for key in inner_rows}) > 1:
        raise ValueError(f"{', '.join(inner_rows)}: an object has no places, and an array no keys")
    for key, inner in inner_rows.items():
        if "" in inner and len(inner) > 1:
            raise ValueError(
                f"{key!r} has a row of its own and rows inside it, and the first would take all of it"
            )
    level = []
    for key, inner in inner_rows.items():
        row = inner.get("") or FieldRow("", _inside(key, level_of(inner)))
        level.append((key.removesuffix("[]"), row.word, row.silent, row.take))
    return tuple(level)


def _inside(key: str, level: Level) -> Take:
    """Return the function for an object with its own rows, or for an array of such objects."""

    def take_inner(holder: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
        inner = take_object(holder, key)
        if inner:
            read_rows(level, inner, said, state)
            if not inner:
                del holder[key]

    def take_places(holder: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
        array = holder[key]
        if not isinstance(array, list | None):
            raise wrong_type(holder, key, "array")
        _read_places(level, array or [], said, state)

    def take_each(holder: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
        items: Any = holder[key] or []
        if not has_places:
            items = take_objects(holder, key)
        elif not isinstance(items, list) or not all(isinstance(item, list) for item in items):
            raise wrong_type(holder, key, "array of arrays")
        for item in items:
            item_said = Said()
            item_said.choice = said.choice
            (_read_places if has_places else read_rows)(level, item, item_said, state)
            item_error, item_said.error = item_said.error, None
            said.deltas += item_said.speak()
            said.error = said.error or item_error

    has_places = level[0][0][0] == "["
    return take_each if key.endswith("[]") else take_places if has_places else take_inner


def read_rows(level: Level, holder: Any, said: Said, state: MappingState) -> None:
    """Read an object by the rows of a *level*. Values without a row stay."""
    words = said.__dict__
    for key, word, silent, take in level:
        if key in holder:
            value = holder[key]
            if word is not None and type(value) is str and word not in words:
                del holder[key]
                if value:
                    words[word] = value
            elif value in silent:
                del holder[key]
            elif take is not None:
                try:
                    take(holder, key, said, state)
                except MappingError as error:  # what is beside it is as valid
                    said.error = said.error or error


def _read_places(level: Level, array: Any, said: Said, state: MappingState) -> None:
    if type(array) is dict:  # which has no places
        return
    cells = _cells(array)
    read_rows(level, cells, said, state)
    _put_back(array, cells)
    if said.error is not None and said.error.__dict__.get("container") is cells:
        said.error.__dict__["container"] = array


def _words(name: str) -> Take:
    """Return the function for a string that :class:`Said` has under *name*. The same again, or none, says nothing more."""

    def take(holder: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
        earlier = getattr(said, name)
        if not earlier:
            setattr(said, name, take_string(holder, key) or None)
        elif not take_same(holder, key, earlier):
            take_same(holder, key, "")

    return take


def _origin(name: str) -> Take:
    """Return the function for the state's id or model. A value that differs from the first stays."""

    def take(holder: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
        value: Any = holder[key]
        known = getattr(state, name)
        if type(value) is str and (known is None or value in ("", known)):  # nearly always
            setattr(state, name, known or value or None)
            del holder[key]
        elif value := take_string(holder, key):
            state.has_other_ids |= name == "id"
            holder[key] = value

    return take


def _take_created(holder: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
    if holder[key] is not None:
        state.take_created(holder, key)


TEXT: Final = FieldRow("text", _words("text"), "text", (None,))
"""The row of a piece of the text, or all of it."""
REASONING: Final = FieldRow("reasoning", _words("reasoning"), "reasoning", (None,))
"""The row of a piece of the reasoning, or all of it."""
REFUSAL: Final = FieldRow("refusal", _words("refusal"), "refusal", (None,))
"""The row of the words of a refusal."""
FINISH: Final = FieldRow("finish_reason", _words("finish"), "finish", (None,))
"""The row of the finish word. An empty one, or none, is no end."""
ID: Final = FieldRow("id", _origin("id"))
"""The row of the response's id. Another one than the first stays."""
MODEL: Final = FieldRow("model", _origin("model"))
"""The row of the model's name. Another one than the first stays."""
CREATED: Final = FieldRow("created", _take_created)
"""The row of the time of creation, in seconds since 1970."""


_COUNTS: Final = frozenset(
    {field.name for kind in (UsageInfo, UsageDetails) for field in attrs.fields(kind)} - {"cost", "details"}
    | {"total_tokens"}
)
"""The names of all counts."""


def count(name: str) -> FieldRow:
    """The row of the token count *name* of ``UsageInfo`` or ``UsageDetails``. The first of several with a count decides.

    Raises:
        ValueError: the name of the count is unknown.
    """
    if name not in _COUNTS:
        raise ValueError(f"there is no count {name!r}{meant(name, _COUNTS)}")
    return FieldRow(f"usage.{name}", None)


def same(known: Any) -> FieldRow:
    """The row of a value that is always *known* and says nothing. Another value stays."""
    return FieldRow(
        "always empty" if known == "" else f"always {known}",
        lambda holder, key, said, state: take_same(holder, key, known),
        silent=(None, known) if isinstance(known, str) else (None,),
    )


def calls(
    id: str = "id", name: str = "name", arguments: str = "arguments", function: str | None = None
) -> FieldRow:
    """The row of an array of tool calls, or of fragments of them. Arguments are a text, or an object that is all of them.

    Args:
        id: the key of a call's id.
        name: the key of the tool's name.
        arguments: the key of the arguments.
        function: the key of the object that holds name and arguments, or ``None`` if the call itself does.

    Raises:
        TypeError: a key is not a string.
    """
    keys: tuple[Any, ...] = (id, name, arguments, "" if function is None else function)
    for key in keys:
        if not isinstance(key, str):
            raise TypeError(
                f"the keys of a call are strings, as in calls(id='call_id'), not {str(key)[:40]!r}"
            )

    def take_calls(holder: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
        for call in take_objects(holder, key):
            inner = call if function is None else take_object(call, function) or {}
            text, is_whole = take_arguments(inner, arguments)
            said.calls.append(
                state.take_tool_call(
                    call, inner, arguments=text, id=id, name=name, choice=said.choice, whole=is_whole
                )
            )

    return FieldRow("tool_calls", take_calls)


class TableDialect:
    """The hooks of a provider with a plain wire, which a table describes: subclass it, and fill in the attributes.

    In a plain wire each event is one object, a whole body has the fields of a stream's events, and a finish word ends the
    answer. An event with an ``error`` is one. An event without any field of the table is unknown.

    Every field of ``ProviderInfo`` may be an attribute, such as ``title``, ``endpoints`` and ``access``.

    Attributes:
        fields: the table.
        finish_reasons: the finish words, with their meaning.
        marks: where an event has what no other server writes, as ``heron_run`` or ``parts[].heron``. Detection needs it.
    """

    title: ClassVar[str]
    fields: ClassVar[FieldTable]
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = MappingProxyType({})
    marks: ClassVar[tuple[str, ...]] = ()

    @property
    def text_paths(self) -> tuple[str, ...]:
        """See ``ProviderInfo``."""
        return self.fields.text_paths

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """See the hook ``provider_info``.

        Raises:
            TypeError: the table, the finish words or the marks have another type.
        """
        fields, marks = getattr(self, "fields", None), cast(object, self.marks)
        if not isinstance(fields, FieldTable):
            raise TypeError(
                f"fields is a FieldTable, as in FieldTable({{'text': TEXT}}), not {type(fields).__name__}"
            )
        check_map("finish_reasons", self.finish_reasons, FinishReason, "{'done': FinishReason.STOP}")
        if not isinstance(marks, tuple) or not all(isinstance(mark, str) for mark in marks):
            raise TypeError(f"marks is a tuple of strings, as in ('said.by',), not {str(marks)[:40]!r}")
        return ProviderInfo.of(self)

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        """See the hook ``recognizes``. An event with a mark is certain, and no other one is recognized."""
        is_marked = self.fields.knows(event) and has_mark(event, self.marks)
        return Recognition.CERTAIN if is_marked else Recognition.NO

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """See the hook ``map_delta``."""
        event = event if isinstance(event, list) else require_object(event)
        if isinstance(event, dict) and event.get("error"):
            return (take_error(event),)
        if not self.fields.knows(event):
            raise unknown_event(event, "no field of the table in it")
        return self.fields.map_delta(event, state)

    @hookimpl
    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        """See the hook ``map_finish_reason``."""
        return self.finish_reasons.get(reason)

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """See the hook ``map_usage``."""
        return self.fields.map_usage(event, state)

    @hookimpl
    def map_error(self, status: int, body: Any) -> ErrorInfo | None:
        """See the hook ``map_error``. By default the general rules read an error."""


def stated_rows(dialect: Any) -> list[Mapping[str, FieldRow]]:
    """Return the rows that *dialect* states: those of each :class:`FieldTable` among its attributes, or in a mapping there.
    Where types have tables of their own inside a row, there are rows for each type.

    A dialect that reads without a table may state the same facts as mappings of rows, or by a method ``stated_rows`` as
    :meth:`OpenAIChatDialect.stated_rows`.
    """
    own_rows = getattr(dialect, "stated_rows", None)
    values = [value for _, value in getmembers_static(dialect)]
    tables = values if own_rows is None else [value for value in values if isinstance(value, FieldTable)]
    return [rows for value in tables for rows in _rows_in(value)] + list(own_rows() if own_rows else ())


def _rows_in(value: Any) -> Iterator[Mapping[str, FieldRow]]:
    """Yield the rows of *value*: a table, a mapping of rows, or a mapping of either by type. None of anything else."""
    if isinstance(value, FieldTable):
        yield from _by_type(value.rows)
    elif isinstance(value, Mapping):
        rows = {path: row for path, row in value.items() if isinstance(row, FieldRow)}
        yield from (rows,) if rows else chain.from_iterable(map(_rows_in, value.values()))


def _by_type(rows: Mapping[str, FieldRow]) -> Iterator[Mapping[str, FieldRow]]:
    """Yield *rows* with those inside one of them, once for each type, or just *rows* if no row has tables inside."""
    inner = [
        (path, inner)
        for path, row in rows.items()
        for table in row.inside.values()
        for inner in _by_type(table.rows)
    ]
    for path, inner_rows in inner:
        yield {**rows, **{f"{path}.{inner_path}": row for inner_path, row in inner_rows.items()}}
    if not inner:
        yield rows
