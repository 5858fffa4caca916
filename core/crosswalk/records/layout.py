"""Layouts: the paths to the facts of an exchange in the lines of a log."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path as FilePath
from typing import Any, Final, TypeAlias

import attrs

from crosswalk.plain_errors import ConfigurationError
from crosswalk.types.json import dump_json, load_json

# ----------------------------------------------------------------------------------- paths
# Paths to values in the lines of a log, and the units of numbers.


Path: TypeAlias = tuple[str, ...]
"""The keys that lead from the object of a line to a value."""

_STEP_PATTERN: Final = re.compile(r'\[(\d+)\]|\["([^"]+)"\]|\.?([^.\[\]"]+)')
_UNIT_PATTERN: Final = re.compile(r"(.+)@(s|ms|us|ns|cents)")
_PER_UNIT: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000, "cents": 100}


@attrs.frozen
class Field:
    """The location of a fact in a line.

    Attributes:
        paths: the paths to try, in order. The first with a value counts.
        per_unit: how many of the log's units make a second, for times and durations, or a unit of money, for a cost.
    """

    paths: tuple[Path, ...]
    per_unit: int = 1

    def read(self, record: dict[str, Any]) -> Any:
        """Return the value in *record*, or ``None`` if no path has one."""
        for path in self.paths:
            value = record.get(path[0]) if len(path) == 1 else look_up(record, path)
            if value is not None:
                return value
        return None


@attrs.frozen
class Condition:
    """Values that a line may have at a path.

    Attributes:
        path: the path.
        values: the values, as JSON. In a text ``*`` matches any characters. A number or flag may also be its text.
    """

    path: Path
    values: tuple[Any, ...]

    def verdict(self, record: dict[str, Any]) -> bool | None:
        """Return whether *record* has one of the values, or ``None`` if it has no value at the path."""
        value = look_up(record, self.path)
        if value is None or value == "":
            return None
        return any(
            value == one or _is_like(value, one) if type(value) is type(one) else _is_text_of(value, one)
            for one in self.values
        )


def _is_text_of(value: Any, one: Any) -> bool:
    """Whether *value* is the text of the number or flag *one*, as in a column of CSV."""
    return type(value) is str and value.lower() == dump_json(one).decode()


def _is_like(value: Any, pattern: Any) -> bool:
    """Whether the text *value* is like *pattern*, in which ``*`` matches any characters."""
    return type(pattern) is str and "*" in pattern and _with_stars(pattern).fullmatch(value) is not None


@cache
def _with_stars(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL | re.IGNORECASE)


def verdict_of(conditions: Iterable[Condition], record: dict[str, Any]) -> bool | None:
    """Return whether *record* meets one of *conditions*, or ``None`` if it has no value at any of their paths."""
    verdicts = {condition.verdict(record) for condition in conditions} - {None}
    return any(verdicts) if verdicts else None


def parse_condition(path: str, values: Any) -> Condition:
    """Parse a path and its values.

    Raises:
        ValueError: *path* is not a path, or *values* is not an array.
    """
    if type(values) is not list or not values:
        raise ValueError(f"{path}: expected the values in an array")
    return Condition(parse_path(path), tuple(values))


def parse_path(text: str) -> Path:
    """Parse a path such as ``response.body``, ``choices[0].text`` or ``attributes["gen_ai.request.model"]``.

    A number is the index in an array. Any other key is looked up in OpenTelemetry's arrays of ``{"key": …, "value": …}``.
    A path leads on through a text that holds JSON.

    Raises:
        ValueError: *text* is not a path.
    """
    steps: list[str] = []
    end = 0
    text = text.removeprefix(".")
    while match := _STEP_PATTERN.match(text, end):
        if end == 0 and match[0].startswith("."):
            break
        steps.append(match[1] or match[2] or match[3])
        end = match.end()
    if not steps or end != len(text):
        raise ValueError('a path is keys with dots between them, such as response.body or attributes["a.b"]')
    return tuple(steps)


def parse_field(text: str | list[str]) -> Field:
    """Parse one path, or several to be tried in order.

    ``@ms`` after a path is the unit of a time or a duration, and ``@cents`` that of a cost.

    No path at all says that lines do not state the fact.

    Raises:
        ValueError: one of them is not a path, or they have different units.
    """
    paths, units = [], set()
    for one in [text] if isinstance(text, str) else text:
        match = _UNIT_PATTERN.fullmatch(one)
        paths.append(parse_path(match[1] if match else one))
        units.add(match[2] if match else "s")
    if len(units) > 1:
        raise ValueError("one field has one unit")
    return Field(tuple(paths), _PER_UNIT[units.pop()] if units else 1)


def look_up(value: Any, path: Path) -> Any:
    """Return the value at *path* below *value*, or ``None``."""
    for key in path:
        if type(value) is dict:
            value = value.get(key)
        elif type(value) is list:
            value = _item(value, key)
        elif type(value) is str and type(decoded_value := decoded(value)) is not str:
            value = look_up(decoded_value, (key,))
        else:
            return None
    return value


def decoded(text: str) -> Any:
    """Return the object or array that *text* holds as JSON, or *text* itself."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            return load_json(text)
        except ValueError:
            pass
    return text


def unquoted(text: str) -> str:
    """Return the text that *text* holds as JSON, as in the attributes of MLflow's spans, or *text* itself."""
    if text[:1] == '"' == text[-1:]:
        try:
            return str(load_json(text))
        except ValueError:
            pass
    return text


# ------------------------------------------------------------------------------ containers


def entries_at(record: Any, entries_path: str) -> list[Any]:
    """Return the objects in *record* at *entries_path*, such as ``resourceSpans[].scopeSpans[].spans[]``.

    ``[]`` after a path means every item of the array there. A text that holds JSON is decoded.
    """
    *array_paths, last_path = entries_path.split("[]")
    values = [record]
    for step in array_paths:
        values = [value if not step else look_up(value, parse_path(step)) for value in values]
        values = [item for value in values if type(value) is list for item in value]
    if last_path:
        values = [value for item in values if (value := look_up(item, parse_path(last_path))) is not None]
    return [decoded(value) if type(value) is str else value for value in values]


def _item(items: list[Any], key: str) -> Any:
    if key.isdecimal():
        index = int(key)
        return items[index] if index < len(items) else None
    for item in items:
        if type(item) is dict and item.get("key") == key:
            return _any_value(item.get("value"))
    return None


def _any_value(value: Any) -> Any:
    """Return the value of an ``AnyValue`` object: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding."""
    if type(value) is not dict or len(value) != 1:
        return value
    ((kind, typed_value),) = value.items()
    if kind == "intValue" and type(typed_value) is str:
        return int(typed_value) if typed_value.lstrip("-").isdecimal() else typed_value
    if kind == "arrayValue" and type(typed_value) is dict:
        return [_any_value(item) for item in typed_value.get("values", ())]
    return typed_value if kind in ("stringValue", "intValue", "doubleValue", "boolValue") else value


# ---------------------------------------------------------------------------------- layout
# Layouts: the locations of the facts of an exchange in the lines of a log.
#
# A layout is data. The included layouts are the TOML files in ``layouts/``, each with the public document that it
# follows.
# Your own layout has the same form:
#
# .. code-block:: toml
#
#     title = "Our proxy's log"
#     requires = ["ts", "resp"]     # a line has this layout when it has all of these
#
#     [fields]
#     created = "ts@ms"             # a number of milliseconds since 1970
#     vendor = "upstream"
#     response = "resp"
#
#     [states]                      # token counts that the line states itself
#     prompt_tokens = "tokens.in"


FIELDS: Final = (
    "id", "created", "ended", "latency", "provider", "vendor", "model", "status", "request", "response",
    "response_base64", "response_encoding", "error", "tags", "cost", "cost_source", "session", "user", "team", "trace_id",
    "is_finish_unknown", "url", "tier", "parent",
)  # fmt: skip
"""The facts of an exchange that a layout can locate."""

_COUNT_NAMES: Final = (
    "prompt_tokens", "completion_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens",
)  # fmt: skip
TIMES: Final = ("created", "ended", "latency")
"""The fields that are times or durations."""
PART_OF: Final = {
    "cached_tokens": "prompt_tokens",
    "cache_write_tokens": "prompt_tokens",
    "reasoning_tokens": "completion_tokens",
}
"""The count that includes another one in ``UsageInfo``."""
_ANSWER_FIELDS: Final = ("id", "model", "message", "finish_reason")
_ERROR_FIELDS: Final = ("type", "code", "message")
_LAYOUT_KEYS: Final = {
    *(
        "title",
        "document",
        "requires",
        "lacks",
        "each",
        "exchanges",
        "dialect",
        "vendor",
        "tier",
        "strict",
        "excludes",
    ),
    *("when", "fields", "states", "excludes_when", "failed", "no_answer", "own_form", "answer", "error"),
}
_MAX_HEAD_LINES: Final = 20


@attrs.frozen(kw_only=True)
class Layout:
    """The locations of the facts of an exchange in the lines of one kind of log.

    Attributes:
        name: the name for ``--layout``.
        title: the name of the log.
        document: the public document that it follows, or ``""`` for your own layout.
        requires: what every line of this layout has: at least one path of each entry.
        lacks: paths that no line of this layout has, since they are those of another one.
        each: the places of such lines in an object that contains several, as :func:`entries_at` reads them.
        when: the values that make a line an exchange, one at each of the paths. Empty if every line is one.
        has_exchanges: whether the layout has exchanges at all. Lines of one that has none are left out.
        dialect: the provider id of the form of all answers, or ``None`` if each has its provider's own.
        vendor: the vendor if the lines do not name it, or ``None``.
        tier: the service tier if the lines do not name it, such as ``batch``, or ``None``.
        fields: the locations of the facts, by the names in :data:`FIELDS`.
        states: the locations of token counts that the line states itself, by their names in ``UsageInfo``. A line counts
            with them even if it does not store the answer.
        excludes: the counts in *states* that the log leaves out of its prompt or completion tokens, unlike ``UsageInfo``.
        excludes_when: the values of lines to which this applies. Empty if it applies to all.
        failed: the values that state a failure. Without one the line is a success. Empty if lines do not state it so.
        no_answer: the values of lines without an answer: it is not stored, as if redacted, or is not a message.
        own_form: the values of lines with an answer that is not in *dialect*, but in the form of its provider.
        answer: the locations of the parts of an answer, for a log that does not store the provider's body.
        error: the locations of the parts of an error, for lines without an answer.
        strict: the fields that reject a line if their value is invalid. An invalid value of other fields counts as absent.
        is_fallback: whether it is for lines that fit no included layout alone.
    """

    name: str
    title: str = ""
    document: str = ""
    requires: tuple[tuple[Path, ...], ...] = ()
    lacks: tuple[Path, ...] = ()
    each: tuple[str, ...] = ()
    when: tuple[Condition, ...] = ()
    has_exchanges: bool = True
    dialect: str | None = None
    vendor: str | None = None
    tier: str | None = None
    fields: Mapping[str, Field] = attrs.field(factory=dict)
    states: Mapping[str, Field] = attrs.field(factory=dict)
    excludes: tuple[str, ...] = ()
    excludes_when: tuple[Condition, ...] = ()
    failed: tuple[Condition, ...] = ()
    no_answer: tuple[Condition, ...] = ()
    own_form: tuple[Condition, ...] = ()
    answer: Mapping[str, Field] = attrs.field(factory=dict)
    error: Mapping[str, Field] = attrs.field(factory=dict)
    strict: tuple[str, ...] = ()
    is_fallback: bool = False

    def fits(self, record: dict[str, Any]) -> bool:
        """Whether *record*, the object of a line, has everything that the layout requires."""
        return all(any(_has(record, path) for path in paths) for paths in self.requires) and not any(
            _has(record, path) for path in self.lacks
        )

    @property
    def has_answers(self) -> bool:
        """Whether it locates answers, and not only their counts."""
        return not {"response", "response_base64"}.isdisjoint(self.fields) or "message" in self.answer

    def why_no_exchange(self, record: dict[str, Any]) -> str | None:
        """Return why *record*, the object of a line of this layout, is not an exchange, or ``None`` if it is."""
        if not self.has_exchanges:
            return self.title
        for condition in self.when:
            if not condition.verdict(record):
                return f"no model call by its {'.'.join(condition.path)}"
        return None

    @classmethod
    def of_description(cls, description: Mapping[str, Any]) -> Layout:
        """Return the layout described by ``attrs.asdict``, also after a round trip through JSON.

        Raises:
            TypeError, KeyError: *description* does not describe a layout.
        """

        def fields(table: Mapping[str, Any]) -> dict[str, Field]:
            return {
                name: Field(tuple(map(tuple, field_description["paths"])), field_description["per_unit"])
                for name, field_description in table.items()
            }

        def conditions(table: Iterable[Mapping[str, Any]]) -> tuple[Condition, ...]:
            return tuple(Condition(tuple(one["path"]), tuple(one["values"])) for one in table)

        return cls(
            **{
                **description,
                "requires": tuple(tuple(map(tuple, paths)) for paths in description["requires"]),
                "lacks": tuple(map(tuple, description["lacks"])),
                **{name: tuple(description[name]) for name in ("strict", "excludes", "each")},
                **{
                    name: conditions(description[name])
                    for name in ("when", "excludes_when", "failed", "no_answer", "own_form")
                },
                **{name: fields(description[name]) for name in ("fields", "states", "answer", "error")},
            }
        )


def _has(value: Any, path: Path) -> bool:
    for key in path:
        if type(value) is dict and key in value:
            value = value[key]
        elif type(value) is list:
            if key.isdecimal():
                if int(key) >= len(value):
                    return False
                value = value[int(key)]
            elif not any(type(item) is dict and item.get("key") == key for item in value):
                return False
        else:
            return False
    return True


@cache
def layouts() -> Mapping[str, Layout]:
    """Return the included layouts by name."""
    folder = FilePath(__file__).parent / "layouts"
    return {file.stem: _read(file.read_text("utf-8"), file.stem) for file in sorted(folder.glob("*.toml"))}


def load_layout(name: str) -> Layout:
    """Return the included layout *name*, or the layout in the file *name*, which ends in ``.toml``.

    Raises:
        ConfigurationError: the layout or file does not exist, or cannot be read.
    """
    if name.endswith(".toml"):
        try:
            return _read(FilePath(name).read_text("utf-8"), FilePath(name).stem)
        except OSError as error:
            raise ConfigurationError(f"{name}: {error.strerror}") from None
        except ValueError as error:
            raise ConfigurationError(f"{name}: {error}") from None
    try:
        return layouts()[name]
    except KeyError:
        raise ConfigurationError(
            f"no layout {name!r}; name a file that ends in .toml, or one of: {', '.join(layouts())}"
        ) from None


def layout_of(record: dict[str, Any]) -> Layout | None:
    """Return the included layout of *record*, the object of a line, or ``None`` for a plain body.

    Raises:
        ConfigurationError: several layouts fit.
    """
    exchange_layout = layouts()["exchange"]
    if exchange_layout.fits(record):
        return exchange_layout
    fitting_layouts = [each for each in _candidates(record) if each.fits(record)]
    if len(fitting_layouts) > 1:
        names = ", ".join(each.name for each in fitting_layouts)
        raise ConfigurationError(f"several layouts fit; name one with --layout: {names}")
    return fitting_layouts[0] if fitting_layouts else None


def _candidates(record: dict[str, Any]) -> Iterator[Layout]:
    """Yield the included layouts one of whose required keys *record* has."""
    for keys, layout in _by_keys():
        if not keys.isdisjoint(record):
            yield layout


@cache
def _by_keys() -> tuple[tuple[frozenset[str], Layout], ...]:
    return tuple(
        (frozenset(path[0] for path in layout.requires[0]), layout)
        for layout in layouts().values()
        if layout.name != "exchange"
    )


def entries_of(record: dict[str, Any]) -> list[Any] | None:
    """Return the objects of the lines that *record* contains, such as the spans of an OTLP file, or ``None``."""
    for key, entries_path, layout in _containers():
        entries = entries_at(record, entries_path) if key in record else []
        if any(type(one) is dict and layout.fits(one) for one in entries):
            return entries
    answers = record.get("data")
    return answers if type(answers) is list and any(map(is_answer, answers)) else None


_ANSWER_OBJECTS: Final = ("chat.completion", "response", "text_completion")
_CANONICAL_KEYS: Final = {"format_version", "metadata", "finish_reason"}


def is_answer(value: Any) -> bool:
    """Whether *value* is marked as a whole answer, or canonical JSON."""
    if type(value) is not dict:
        return False
    is_message = value.get("type") == "message" and value.get("role") == "assistant"
    return is_message or value.get("object") in _ANSWER_OBJECTS or value.keys() >= _CANONICAL_KEYS


@cache
def _containers() -> tuple[tuple[str, str, Layout], ...]:
    """Return the first key of each place that contains lines, the place, and their layout."""
    return tuple(
        (parse_path(each.partition("[]")[0])[0], each, layout)
        for layout in layouts().values()
        for each in layout.each
    )


def layout_of_lines(lines: Iterable[bytes]) -> Layout | None:
    """Return the layout that the first 20 of *lines* share.

    Returns ``None`` if they differ, fit several layouts, or are plain bodies. Then the layout is detected for each line.
    """
    layout_names: set[str | None] = set()
    for line, _ in zip(lines, range(_MAX_HEAD_LINES), strict=False):
        try:
            record = load_json(line)
            if type(record) is dict:
                layout = layout_of(record)
                layout_names.add(None if layout is None else layout.name)
        except ConfigurationError:  # several layouts fit
            return None
        except ValueError:  # skip a damaged line
            continue
    name = layout_names.pop() if len(layout_names) == 1 else None
    return layouts()[name] if name is not None and layouts()[name].has_exchanges else None


def with_fields(layout: Layout | None, fields: Mapping[str, str]) -> Layout:
    """Return *layout* with further fields, as in ``--field NAME=PATH``, which must be readable in each line.

    Without a *layout* they are for lines that fit no included layout, or that of Crosswalk's own logs. Times are the
    exception: one in an odd form is left out.

    Args:
        layout: the layout to extend, or ``None`` for the fields of a recorded exchange, which may be absent.
        fields: the paths by the name of the field.

    Raises:
        ConfigurationError: an unknown field, or an invalid path.
    """
    if layout is None:
        exchange_fields = {
            name: field for name, field in layouts()["exchange"].fields.items() if name != "response_base64"
        }
        layout = Layout(name="custom", fields=exchange_fields, is_fallback=True)
    try:
        added_fields = _fields(fields, FIELDS)
    except ValueError as error:
        raise ConfigurationError(str(error)) from None
    strict_names = (name for name in added_fields if name not in TIMES)
    return attrs.evolve(
        layout, fields={**layout.fields, **added_fields}, strict=(*layout.strict, *strict_names)
    )


def _read(text: str, name: str) -> Layout:
    """Parse a layout. Raises ``ValueError`` if *text* is not a layout."""
    table = tomllib.loads(text)
    if unknown_names := table.keys() - _LAYOUT_KEYS:
        raise ValueError(
            f"unknown key {min(unknown_names)!r}; a layout has {', '.join(sorted(_LAYOUT_KEYS))}"
        )
    requires = tuple(
        tuple(parse_path(one) for one in ([entry] if type(entry) is str else entry))
        for entry in table.get("requires", ())
    )
    layout = Layout(
        name=name,
        title=table.get("title", ""),
        document=table.get("document", ""),
        requires=requires,
        lacks=tuple(map(parse_path, table.get("lacks", ()))),
        each=tuple(table.get("each", ())),
        when=_conditions(table.get("when", {})),
        has_exchanges=table.get("exchanges", True),
        dialect=table.get("dialect"),
        vendor=table.get("vendor"),
        tier=table.get("tier"),
        strict=tuple(table.get("strict", ())),
        excludes=tuple(table.get("excludes", ())),
        excludes_when=_conditions(table.get("excludes_when", {})),
        fields=_fields(table.get("fields", {}), FIELDS),
        states=_fields(table.get("states", {}), _COUNT_NAMES),
        failed=_conditions(table.get("failed", {})),
        no_answer=_conditions(table.get("no_answer", {})),
        own_form=_conditions(table.get("own_form", {})),
        answer=_fields(table.get("answer", {}), _ANSWER_FIELDS),
        error=_fields(table.get("error", {}), _ERROR_FIELDS),
    )
    if unknown_names := {*layout.excludes} - PART_OF.keys():
        raise ValueError(f"excludes: no count {min(unknown_names)!r}; there are {', '.join(sorted(PART_OF))}")
    if layout.has_exchanges and not layout.has_answers and not layout.states:
        raise ValueError("a layout must locate the answer or its counts: [fields] response = …")
    return layout


def _conditions(table: Mapping[str, Any]) -> tuple[Condition, ...]:
    return tuple(parse_condition(path, values) for path, values in table.items())


def _fields(table: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Field]:
    if unknown_names := table.keys() - {*names}:
        raise ValueError(f"no field {min(unknown_names)!r}; there are {', '.join(names)}")
    return {name: parse_field(path) for name, path in table.items()}
