"""The JSON Schema of a type, and the same as TypeScript for a prompt."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import ipaddress
import operator
import re
import sys
import typing
from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, Flag
from functools import reduce
from pathlib import PurePath
from types import NoneType, SimpleNamespace
from typing import Any, Final, Literal
from uuid import UUID

import attrs
import orjson
import typing_extensions

from crosswalk.codec.canonical import LISTS, MAPPINGS, json_word, origin_of
from crosswalk.codec.layout import (
    CANONICAL,
    READABLE_MAJORS,
    TAGS,
    is_canonical_enum,
    layout,
    union_members,
)
from crosswalk.schemas.metadata import (
    SchemaDefinitionError,
    description_of,
    limited,
    read_metadata,
    refuse_field_as_default,
    refuse_misfits,
)
from crosswalk.schemas.pydantic_types import DECIDES, is_pydantic, pydantic_schema
from crosswalk.types.json import FrozenObject, dump_json
from crosswalk.types.response import ChatResponse
from crosswalk.types.values import RawEvents

# ----------------------------------------------------------------------------- json schema
# The JSON Schema of canonical types, and of any type that an answer may have.


# ------------------------------------------------------------------------------ docstrings
# Titles and descriptions for JSON Schemas, out of the docstrings of classes.


_ATTRIBUTE_PATTERN: Final = re.compile(r"^    (\w+): ((?:.+)(?:\n {8}.+)*)", re.MULTILINE)


def heading(kind: type) -> dict[str, str]:
    """Return the title of the class *kind*, and its description if it has one."""
    text = first_line(kind)
    return {"title": kind.__name__, **({"description": text} if text else {})}


def first_line(documented: object) -> str:
    """The first line of a docstring, or empty without one."""
    return _plain((inspect.getdoc(documented) or "").partition("\n")[0])


def documented_attributes(cls: type) -> dict[str, str]:
    """The texts of the ``Attributes:`` sections of *cls* and its bases, by attribute."""
    texts_by_attribute: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        section = (inspect.getdoc(base) or "").partition("\nAttributes:\n")[2].partition("\n\n")[0]
        texts_by_attribute |= {
            name: _plain(" ".join(text.split())) for name, text in _ATTRIBUTE_PATTERN.findall(section)
        }
    return texts_by_attribute


def _plain(text: str) -> str:
    """*text* without the markup of docstrings."""
    return re.sub(r":\w+:`~?([^`]+)`", r"\1", text).replace("``", "`")


# ---------------------------------------------------------------------------------- fields
# The fields of a class of any kind: attrs, dataclass, typed dict, named tuple, msgspec's struct.


REQUIRED: Final = "required"
"""The key of a field's attrs metadata that makes its JSON key required although the field has a default."""

_MISSING: Final = object()


@attrs.frozen
class ClassField:
    """A field in JSON.

    Attributes:
        key: its key.
        kind: its type, with the annotations of ``Annotated``.
        is_required: whether the key must be present.
        default: its default, or a value that JSON cannot have.
        metadata: its metadata from attrs or a dataclass. ``alias`` is its JSON key, if that is not an identifier.
        name: its name in Python, or ``None`` if the class sets it itself, such as the tag of a struct.
    """

    key: str
    kind: Any
    is_required: bool
    default: Any = _MISSING
    metadata: typing.Mapping[str, Any] = attrs.field(factory=dict)
    name: str | None = attrs.field(default=attrs.Factory(lambda self: self.key, takes_self=True))


def is_typed_dict(kind: Any) -> bool:
    """Whether *kind* is a ``TypedDict``, of typing or of typing_extensions, with arguments or without."""
    return typing_extensions.is_typeddict(origin_of(kind))


def is_struct(kind: Any) -> bool:
    """Whether *kind* is a ``Struct`` of msgspec, which is never imported here."""
    return isinstance(origin_of(kind), type) and hasattr(origin_of(kind), "__struct_fields__")


def is_named_tuple(kind: Any) -> bool:
    """Whether *kind* is a ``NamedTuple``, of typing or of typing_extensions."""
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_field_defaults")


def has_fields(kind: Any) -> bool:
    """Return whether :func:`fields_of` can read *kind*, a class or a generic class with its arguments."""
    kind = origin_of(kind)
    return isinstance(kind, type) and (
        attrs.has(kind)
        or dataclasses.is_dataclass(kind)
        or is_typed_dict(kind)
        or is_struct(kind)
        or is_named_tuple(kind)
    )


def fields_of(cls: Any) -> list[ClassField]:
    """Return the fields of *cls* that its constructor takes. ``T`` of a generic class is its argument.

    Raises:
        SchemaDefinitionError: a type cannot be found, or the constructor does not take a field.
    """
    origin = origin_of(cls)
    try:
        hints = type_hints(origin)
        if attrs.has(origin):  # cattrs reads the types there
            attrs.resolve_types(origin, None, _names_around(origin))
    except (NameError, TypeError) as error:
        raise SchemaDefinitionError(
            f"{origin.__name__}: {error}; move the class that is named to the top of its module, "
            "or declare the schema in the function that defines it"
        ) from None
    arguments = dict(zip(getattr(origin, "__parameters__", ()), typing.get_args(cls), strict=False))
    return list(_fields(origin, {name: _with_arguments(kind, arguments) for name, kind in hints.items()}))


def type_hints(annotated: Any) -> dict[str, Any]:
    """Return the types in the annotations of a class or function, with all that ``Annotated`` adds.

    An annotation that is a text may name a class of the function that is running and defines *annotated*.

    Raises:
        NameError: an annotation names something that cannot be found.
    """
    return typing.get_type_hints(annotated, None, _names_around(annotated), include_extras=True)


def _names_around(annotated: Any) -> dict[str, Any] | None:
    """The names that an annotation of *annotated* may use besides those of its module."""
    names = {each.__name__: each for each in getattr(annotated, "__type_params__", ())}
    *outer_names, name = getattr(annotated, "__qualname__", "").split(".<locals>.")
    for depth in range(1, len(outer_names) + 1):
        frame = sys._getframe(1)
        while frame is not None:
            is_there = frame.f_code.co_qualname == ".<locals>.".join(outer_names[:depth])
            if is_there and frame.f_globals.get("__name__") == annotated.__module__:
                names |= frame.f_locals
                break
            frame = frame.f_back  # type: ignore[assignment]
    return {name: annotated, **names} if outer_names else names or None


def _with_arguments(kind: Any, arguments: dict[Any, Any]) -> Any:
    if isinstance(kind, typing.TypeVar):
        return arguments.get(kind, kind)
    parameters = getattr(kind, "__parameters__", ()) if typing.get_origin(kind) else ()
    return kind[tuple(arguments.get(each, each) for each in parameters)] if parameters else kind


def is_alias(kind: Any) -> bool:
    """Whether *kind* is a ``type X = …``, with arguments or without."""
    return type(origin_of(kind)).__name__ == "TypeAliasType"  # typing and typing_extensions have one each


def aliased_type(kind: Any) -> Any:
    """The type that ``type X = …`` stands for.

    Raises:
        SchemaDefinitionError: it names something that cannot be found.
    """
    alias = origin_of(kind)
    holder = SimpleNamespace(__annotations__={"value": alias.__value__})
    module_globals = vars(sys.modules.get(alias.__module__, typing))
    try:
        target_type = typing.get_type_hints(holder, module_globals, include_extras=True)["value"]
    except NameError as error:
        raise SchemaDefinitionError(f"{alias.__name__}: {error}; move it to the top of its module") from None
    return _with_arguments(target_type, dict(zip(alias.__type_params__, typing.get_args(kind), strict=False)))


def extra_items(cls: Any) -> Any:
    """The type of the further keys of a ``TypedDict``: ``Never`` if it is closed, ``None`` if it does not say."""
    if getattr(cls, "__closed__", None):
        return typing_extensions.Never
    extra_type = getattr(cls, "__extra_items__", typing_extensions.NoExtraItems)
    return None if extra_type is typing_extensions.NoExtraItems else extra_type


def _forbids_unknown(cls: Any) -> bool:
    """Whether a class declares that it has no other keys."""
    config = getattr(cls, "__struct_config__", None)
    return extra_items(cls) is typing_extensions.Never or getattr(config, "forbid_unknown_fields", False)


def _fields(cls: Any, hints: dict[str, Any]) -> Iterator[ClassField]:
    if attrs.has(cls):
        parameters = inspect.signature(cls).parameters
        for field in attrs.fields(cls):
            if field.init and field.metadata.get("json_key", "") is not None:
                key = field.alias or field.name
                if key.isidentifier() and key not in parameters:
                    raise SchemaDefinitionError(f"{cls.__name__}.{key}: its constructor does not take it")
                is_required = field.default is attrs.NOTHING or bool(field.metadata.get(REQUIRED))
                default = _MISSING if field.metadata.get(REQUIRED) else field.default
                json_key = field.metadata.get("alias", key)
                yield ClassField(
                    json_key, hints.get(field.name, Any), is_required, default, field.metadata, key
                )
    elif dataclasses.is_dataclass(cls):
        for each in dataclasses.fields(cls):
            if each.init:
                is_required = each.default is each.default_factory is dataclasses.MISSING
                key = each.metadata.get("alias", each.name)
                yield ClassField(key, hints[each.name], is_required, each.default, each.metadata, each.name)
    elif is_typed_dict(cls):
        for name, kind in hints.items():
            kind, qualifiers = _without_qualifiers(kind)
            # A part of the type: annotations that are texts are not in __required_keys__.
            yield ClassField(name, kind, qualifiers.get("is_required", name in cls.__required_keys__))
    elif is_struct(cls):
        yield from _struct_fields(cls, hints)
    else:
        for name, kind in hints.items():
            default = cls._field_defaults.get(name, _MISSING)
            yield ClassField(name, kind, name not in cls._field_defaults, default)


_QUALIFIERS: Final[dict[Any, dict[str, bool]]] = {
    typing_extensions.Required: {"is_required": True},
    typing_extensions.NotRequired: {"is_required": False},
    typing_extensions.ReadOnly: {},
}


def _without_qualifiers(kind: Any) -> tuple[Any, dict[str, bool]]:
    """*kind* without ``Required``, ``NotRequired`` and ``ReadOnly``, and what they say."""
    qualifiers: dict[str, bool] = {}
    while (origin := typing.get_origin(kind)) in _QUALIFIERS:
        qualifiers, kind = qualifiers | _QUALIFIERS[origin], typing.get_args(kind)[0]
    return kind, qualifiers


def _struct_fields(cls: Any, hints: dict[str, Any]) -> Iterator[ClassField]:
    config = cls.__struct_config__
    if config.tag is not None:
        yield ClassField(config.tag_field, Literal[config.tag], is_required=True, name=None)
    names = cls.__struct_fields__
    defaults = (*[_MISSING] * (len(names) - len(cls.__struct_defaults__)), *cls.__struct_defaults__)
    for name, key, default in zip(names, cls.__struct_encode_fields__, defaults, strict=True):
        is_required = default is _MISSING or type(default).__name__ == "NoDefault"
        yield ClassField(key, hints[name], is_required, default, name=name)


# ----------------------------------------------------------------------------- json schema
# The JSON Schema of canonical types, and of any type that an answer may have.


RULES: Final = "x-rules"
"""The key of a field's own rules from its metadata, in the schema that answers are checked with."""

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_RAW_EVENT_SCHEMA: Final = {
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "properties": {"base64": {"type": "string", "contentEncoding": "base64"}},
            "required": ["base64"],
        },
    ]
}
_LEAF_SCHEMAS: Final[dict[Any, dict[str, Any]]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    NoneType: {"type": "null"},
    date: {"type": "string", "format": "date"},
    time: {"type": "string", "format": "time"},
    datetime: {"type": "string", "format": "date-time"},
    timedelta: {"type": "number", "minimum": 0},
    Decimal: {"type": ["number", "string"], "format": "decimal", "pattern": r"^-?[0-9]+(\.[0-9]+)?$"},
    UUID: {"type": "string", "format": "uuid"},
    FrozenObject: {"type": "object"},
    RawEvents: {"type": "array", "items": _RAW_EVENT_SCHEMA},
    Any: {},
    object: {},
    bytes: {"type": "string", "contentEncoding": "base64", "format": "base64"},
    ipaddress.IPv4Address: {"type": "string", "format": "ipv4"},
    ipaddress.IPv6Address: {"type": "string", "format": "ipv6"},
    ipaddress.IPv4Network: {"type": "string", "format": "ipv4network"},
    ipaddress.IPv6Network: {"type": "string", "format": "ipv6network"},
    ipaddress.IPv4Interface: {"type": "string", "format": "ipv4interface"},
    ipaddress.IPv6Interface: {"type": "string", "format": "ipv6interface"},
}
_OWN_FORMATS: Final = frozenset(
    ("base64", "decimal", "ipv4network", "ipv6network", "ipv4interface", "ipv6interface")
)
"""Formats that only the check of an answer knows. Servers refuse them."""
_ALTERNATIVES: Final[dict[Any, str]] = {
    complex: "use two numbers",
    type: "use a Literal of the names of the classes",
    Callable: "use str, or a Literal of the names of the functions",
}
"""What to write instead of a type."""
_AMOUNT_SCHEMA: Final = {
    "type": "string",
    "pattern": r"^[0-9]+(\.[0-9]+)?$",
}  # a decimal number of canonical JSON
_FORMAT_VERSION_SCHEMA: Final = {
    "type": "string",
    "pattern": rf"^({'|'.join(READABLE_MAJORS)})\.[0-9]+$",
    "description": "The version of this format; 1.0 when missing.",
}
_TYPE_NAMES: Final = {str: "string", bool: "boolean", int: "integer", float: "number", NoneType: "null"}


def json_schema(cls: type[Any]) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the JSON of *cls*. Each call returns a new dict.

    It describes the written form: everything that :func:`crosswalk.to_json` writes validates. Further keys are allowed.
    Computed values are ``readOnly``. Types inside *cls* are under ``$defs``.

    Raises:
        TypeError: *cls* is neither a canonical type nor a type of :mod:`crosswalk.responses`.
    """
    writer = _Writer(forbid_unknown=False, with_rules=False)
    if cls in CANONICAL:
        return writer.whole(writer.of_canonical(cls))
    if not hasattr(cls, "__unstructure_hook__"):
        raise TypeError(f"{cls!r} is neither a canonical type nor a type of crosswalk.responses")
    return writer.whole(writer.of_class(cls))


def schema_of(
    kind: Any, *, forbid_unknown: bool = False, with_rules: bool = False
) -> tuple[dict[str, Any], bool]:
    """Return the JSON Schema (2020-12) of *kind*, and whether it holds a ``Decimal``. Classes in it are under ``$defs``.

    Args:
        kind: the type.
        forbid_unknown: declare that objects have no other keys.
        with_rules: keep the rules of a field's metadata apart, under :data:`RULES`, to check them as an invariant.

    Raises:
        SchemaDefinitionError: a field has a type that JSON cannot express, or names one that does not exist.
    """
    writer = _Writer(forbid_unknown, with_rules)
    return writer.whole(writer.of_root(kind)), writer.has_decimal


def _name(kind: Any) -> str:
    """Return the name of *kind*, such as ``Page_int`` for the generic class ``Page[int]``."""
    if typing.get_origin(kind) is typing.Annotated:
        return _name(typing.get_args(kind)[0])
    if has_fields(kind) or is_alias(kind):
        return "_".join([origin_of(kind).__name__, *map(_name, typing.get_args(kind))])
    return getattr(kind, "__name__", None) or str(kind)


class _Writer:
    def __init__(self, forbid_unknown: bool, with_rules: bool) -> None:
        self._forbid_unknown = forbid_unknown
        self._with_rules = with_rules
        self.definitions: dict[str, Any] = {}
        self.has_decimal = False
        self._named: dict[str, Any] = {}

    def whole(self, schema: dict[str, Any]) -> dict[str, Any]:
        """*schema* as a document, with the classes in it."""
        definitions = {name: self.definitions[name] for name in sorted(self.definitions)}
        return {"$schema": _DIALECT, **schema, **({"$defs": definitions} if definitions else {})}

    def of_root(self, kind: Any) -> dict[str, Any]:
        if isinstance(kind, type) and is_pydantic(kind):
            return self._of_pydantic(kind)
        if is_alias(kind):
            return self.of_root(aliased_type(kind))
        return (
            self.of_class(kind) if has_fields(kind) and kind not in CANONICAL else self.of(kind, _name(kind))
        )

    def of_class(self, kind: Any) -> dict[str, Any]:
        fields, cls = fields_of(kind), origin_of(kind)
        descriptions = documented_attributes(cls)
        has_own_text = not (vars(cls).get("__doc__") or f"{cls.__name__}(").startswith(f"{cls.__name__}(")
        title_fields = heading(cls)
        properties = {field.key: self._of_field(cls, field, descriptions) for field in fields}
        is_closed, extra_type = self._forbid_unknown or _forbids_unknown(cls), extra_items(cls)
        return {
            **(title_fields if has_own_text else {"title": title_fields["title"]}),
            "type": "object",
            "properties": properties,
            "required": [field.key for field in fields if field.is_required],
            "additionalProperties": not is_closed
            if extra_type in (None, typing_extensions.Never)
            else self.of(extra_type, cls.__name__),
        }

    def of_canonical(self, cls: Any) -> dict[str, Any]:
        """The schema of a canonical type, which its table of keys describes."""
        descriptions = documented_attributes(cls)
        properties: dict[str, Any] = {"type": {"const": TAGS[cls]}} if cls in TAGS else {}
        for key in layout(cls):
            text = (
                first_line(getattr(cls, key.attribute)) if key.computed else descriptions.get(key.attribute)
            )
            properties[key.name] = {
                **(_AMOUNT_SCHEMA if key.type is Decimal else self.of(key.type, key.name)),
                **({"description": text} if text else {}),
                **({"readOnly": True} if key.computed else {}),
            }
        if cls is ChatResponse:
            properties["format_version"] = dict(_FORMAT_VERSION_SCHEMA)
        required = [*(["type"] if cls in TAGS else []), *(key.name for key in layout(cls) if key.required)]
        return {
            **heading(cls),
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": True,
        }

    def _of_field(self, cls: Any, field: ClassField, descriptions: dict[str, str]) -> dict[str, Any]:
        field_path = f"{cls.__name__}.{field.key}"
        refuse_field_as_default(field.default, field_path)
        field_schema = self.of(field.kind, field_path)
        text = (
            field.metadata.get("description")
            or field_schema.pop("description", None)
            or descriptions.get(field.key)
        )
        is_plain = type(field.default) in (str, int, float, bool)
        rules = field.metadata.get("json_schema", {})
        return {
            **field_schema,
            **({"description": text.replace("`None`", "null")} if text else {}),
            **({"default": field.default} if is_plain else {}),
            **({RULES: dict(rules)} if rules and self._with_rules else rules),
        }

    def of(self, kind: Any, where: str) -> dict[str, Any]:
        """Return the schema of *kind*, a new dict each time. *where* names it in an error."""
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if origin is typing.Annotated:
            union = getattr(arguments[1], "union", None)  # one that is loaded when it is needed
            if union is not None:
                return self.of(union, where)
            if is_pydantic(kind):
                refuse_misfits(kind, where)
                text = description_of(kind.__metadata__)
                return {**self._of_pydantic(kind), **({"description": text} if text else {})}
            metadata = read_metadata(kind.__metadata__, where)
            return limited(self.of(arguments[0], where), arguments[0], metadata, where)
        if hasattr(kind, "__supertype__"):  # a NewType
            return self.of(kind.__supertype__, where)
        if is_pydantic(kind) and not hasattr(kind, "__pydantic_fields__"):
            return self._of_pydantic(kind)
        if has_fields(kind) or is_pydantic(kind) or is_canonical_enum(kind) or is_alias(kind):
            return self._reference(kind)
        if isinstance(kind, type) and kind in _LEAF_SCHEMAS:
            self.has_decimal = self.has_decimal or kind is Decimal
            leaf_schema = copy.deepcopy(_LEAF_SCHEMAS[kind])
            if leaf_schema.get("format") in _OWN_FORMATS and not self._with_rules:
                del leaf_schema["format"]
            return leaf_schema
        if isinstance(kind, type) and issubclass(kind, PurePath):
            return {"type": "string"}
        if isinstance(kind, type) and issubclass(kind, Flag):
            bits = reduce(operator.or_, kind).value if len(kind) else 0
            return {"title": kind.__name__, "type": "integer", "minimum": 0, "maximum": bits}
        if isinstance(kind, type) and issubclass(kind, Enum):
            return {"title": kind.__name__, **_of_words(kind, where)}
        if origin is Literal:
            return _of_words(arguments, where)
        if union_members(kind):
            return {"anyOf": [self.of(member, where) for member in arguments]}
        if isinstance(kind, type) and kind in LISTS:
            return {"type": "array"}
        if origin is tuple and arguments[1:] != (...,):
            items = [self.of(item, where) for item in arguments]
            is_uniform = all(item == items[0] for item in items) and bool(items)
            item_keywords = {"items": items[0]} if is_uniform else {"prefixItems": items}
            return {"type": "array", **item_keywords, "minItems": len(items), "maxItems": len(items)}
        if origin in LISTS:
            return {"type": "array", "items": self.of(arguments[0], where)}
        if origin in MAPPINGS or (isinstance(kind, type) and kind in MAPPINGS):
            return self._of_mapping(origin, arguments, where)
        alternative = _ALTERNATIVES.get(origin_of(kind), "use a dataclass, or a pydantic model that reads it")
        if isinstance(kind, typing.TypeVar):
            alternative = "give its generic class or alias an argument"
        raise SchemaDefinitionError(f"{where}: an answer cannot hold {kind!r}; {alternative}")

    def _of_mapping(self, origin: Any, arguments: tuple[Any, ...], where: str) -> dict[str, Any]:
        """An object with any keys, or with those that the type of its keys names."""
        if not arguments:
            return {"type": "object"}
        key_type, value_type = arguments if len(arguments) > 1 else (arguments[0], int)  # a Counter counts
        if key_type in (str, Any):
            return {"type": "object", "additionalProperties": self.of(value_type, where)}
        key_schema = self.of(key_type, where)
        if "enum" in key_schema:
            words = [str(word) for word in key_schema["enum"]]
            return {
                "type": "object",
                "properties": {word: self.of(value_type, where) for word in words},
                "required": [],
                "additionalProperties": False,
            }
        if key_schema.get("type") == "integer" and key_schema.keys() == {"type"}:
            key_schema = {"type": "string", "pattern": r"^(0|-?[1-9][0-9]*)$"}
        elif key_schema.get("type") != "string":
            raise SchemaDefinitionError(
                f"{where}: the keys of an answer are texts or integers, not {key_type!r}; use a list of classes with a "
                "field for the key"
            )
        return {
            "type": "object",
            "propertyNames": key_schema,
            "additionalProperties": self.of(value_type, where),
        }

    def _reference(self, cls: Any) -> dict[str, Any]:
        decides_field: dict[str, Any] = {DECIDES: True} if self._with_rules and is_pydantic(cls) else {}
        name = _name(cls)
        if self._named.setdefault(name, cls) != cls:
            raise SchemaDefinitionError(f"two classes of one answer are called {name}")
        if name not in self.definitions:
            self.definitions[name] = {}  # before its own schema, which may refer to it
            self.definitions[name] = self._definition(cls)
        return {"$ref": f"#/$defs/{name}", **decides_field}

    def _definition(self, cls: Any) -> dict[str, Any]:
        if is_pydantic(cls):
            return {key: value for key, value in self._of_pydantic(cls).items() if key != DECIDES}
        if is_alias(cls):
            return self.of(aliased_type(cls), _name(cls))
        if cls in CANONICAL:
            return self.of_canonical(cls)
        if is_canonical_enum(cls):
            return {**heading(cls), "type": "string", "enum": [member.value for member in cls]}
        return self.of_class(cls)

    def _of_pydantic(self, kind: Any) -> dict[str, Any]:
        """Return pydantic's own schema. Its classes are added to ours."""
        schema = pydantic_schema(kind, with_rules=self._with_rules)
        definitions = schema.pop("$defs", {})
        if "$ref" in schema:  # it contains itself
            name = schema["$ref"].rpartition("/")[2]
            decides_field: dict[str, Any] = {key: value for key, value in schema.items() if key == DECIDES}
            schema = {**definitions[name], **decides_field}
            self._named[name] = kind
            self.definitions[name] = definitions.pop(name)
        for name, definition in definitions.items():
            self.has_decimal = self.has_decimal or _has_decimal(definition)
            if self.definitions.setdefault(name, definition) != definition:
                raise SchemaDefinitionError(
                    f"two classes of one answer are called {name}; rename one of them, or make {name} a pydantic model "
                    "if it holds itself inside of a validated type"
                )
        self.has_decimal = self.has_decimal or _has_decimal(schema)
        for each in (schema, *self.definitions.values()):
            for field in each.get("properties", {}).values():
                field.pop("title", None)  # its key once more
            if self._forbid_unknown and "properties" in each:
                each.setdefault("additionalProperties", False)
        return dict(schema)


def _has_decimal(schema: Any) -> bool:
    """Whether a schema of pydantic holds a ``Decimal``."""
    if isinstance(schema, dict):
        return schema.get("format") == "decimal" or any(map(_has_decimal, schema.values()))
    return isinstance(schema, list) and any(map(_has_decimal, schema))


def _of_words(members: Iterable[Any], where: str) -> dict[str, Any]:
    """An enumeration with the types of its words, which servers require."""
    words = [json_word(member) for member in members]
    if not all(type(word) in _TYPE_NAMES for word in words):
        raise SchemaDefinitionError(f"{where}: a word of an answer is a string, number, boolean or null")
    types = list(dict.fromkeys(_TYPE_NAMES[type(word)] for word in words))
    return {"type": types[0] if len(types) == 1 else types, "enum": words}


# ------------------------------------------------------------------------------ typescript
# A JSON Schema as TypeScript writes types: a third of the tokens, and models read it well.


def as_words(schema: dict[str, Any], form: Literal["typescript", "json_schema"] = "json_schema") -> str:
    """Return the text that asks a model for an answer of *schema*. Of the notations, only JSON Schema says all of it."""
    answer_form = "one JSON object" if schema.get("type") == "object" else "one JSON value"
    instruction = f"Answer with {answer_form} and nothing else: no text before or after it, no Markdown fence, no comments."
    if form == "typescript":
        return f"{instruction}\n\nIt must be of this TypeScript type:\n\n{as_typescript(schema)}"
    schema_json = dump_json(schema, option=orjson.OPT_INDENT_2).decode()
    return f"{instruction}\n\nIt must conform to this JSON Schema:\n\n{schema_json}"


_TYPESCRIPT_NAMES: Final = {"integer": "integer", "array": "any[]", "object": "object"}
_RULE_KEYWORDS: Final = (
    "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "minItems",
    "maxItems", "minProperties", "maxProperties", "pattern", "format",
)  # fmt: skip


def as_typescript(schema: dict[str, Any]) -> str:
    """The type that *schema* describes, the types that it refers to before it."""
    parts = [f"type {name} = {_limited_type(each, '')}" for name, each in schema.get("$defs", {}).items()]
    return "\n\n".join([*parts, _limited_type(schema, "")])


def _limited_type(schema: Any, indent: str) -> str:
    """The type with its rules, in a place without a line of its own."""
    rules = _rules(schema) if isinstance(schema, dict) else []
    return f"{_type(schema, indent)} /* {', '.join(rules)} */" if rules else _type(schema, indent)


def _type(schema: Any, indent: str) -> str:
    if not isinstance(schema, dict):
        return "any"
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema or "const" in schema:
        words = schema.get("enum", [schema.get("const")])
        return " | ".join(dump_json(word).decode() for word in words)
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " | ".join(_limited_type(each, indent) for each in schema[key])
    if schema.get("properties"):
        return _object(schema, indent)
    if "prefixItems" in schema:
        return f"[{', '.join(_limited_type(each, indent) for each in schema['prefixItems'])}]"
    if "items" in schema:
        item = _limited_type(schema["items"], indent)
        return f"({item})[]" if " | " in item or item.endswith("*/") else f"{item}[]"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"{{ [key: string]: {_limited_type(schema['additionalProperties'], indent)} }}"
    types = schema.get("type", "any")
    return " | ".join(
        _TYPESCRIPT_NAMES.get(each, each) for each in ([types] if isinstance(types, str) else types)
    )


def _object(schema: dict[str, Any], indent: str) -> str:
    required = schema.get("required", ())
    lines = []
    for key, each in schema["properties"].items():
        name = key if key.isidentifier() else orjson.dumps(key).decode()
        optional_mark = "" if key in required else "?"
        comment = _comment(each)
        lines.append(f"{indent}  {name}{optional_mark}: {_type(each, indent + '  ')};{comment}")
    return "\n".join(["{", *lines, f"{indent}}}"])


def _comment(schema: Any) -> str:
    """The parts that the type does not express: the description, and the rules."""
    if not isinstance(schema, dict):
        return ""
    description = " ".join(str(schema.get("description", "")).split())
    notes = [text for text in (description, ", ".join(_rules(schema))) if text]
    return f"  // {'; '.join(notes)}" if notes else ""


def _rules(schema: dict[str, Any]) -> list[str]:
    return [f"{key} {schema[key]}" for key in _RULE_KEYWORDS if key in schema]
