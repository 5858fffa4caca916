"""Walks the types of an SDK's requests: ``TypedDict`` classes, or models of pydantic.

A :class:`Walk` yields a :class:`Row` for each thing that a type allows a client to say: each variant of a union, each
optional field, each word of an enumeration, and each truth value, at the place where it first occurs. Each has the smallest
value that the type allows, with markers in its texts that occur nowhere else.
"""

from __future__ import annotations

import base64
import collections.abc
import enum
import functools
import itertools
import json
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple, Union, get_args, get_origin

import typing_extensions

__all__ = [
    "Row",
    "Values",
    "Walk",
    "bare",
    "fields_of",
    "file_of",
    "is_object",
    "required",
    "variants",
    "words",
]

_WRAPPERS: Final = frozenset(
    {
        Annotated,
        typing.Required,
        typing.NotRequired,
        typing_extensions.Annotated,
        typing_extensions.Required,
        typing_extensions.NotRequired,
    }
)
_OPTIONAL_MARKS: Final = frozenset({typing.NotRequired, typing_extensions.NotRequired})
_REQUIRED_MARKS: Final = frozenset({typing.Required, typing_extensions.Required})


class Row(NamedTuple):
    """One thing that a client may say.

    Attributes:
        name: where it stands, as ``messages[][user].content[list][][image]``.
        kind: ``variant`` of a union, ``field``, ``word`` of an enumeration, or ``flag``.
        body: the smallest request that says it.
        without: the same request without it; ``None`` for the smallest request of the format.
    """

    name: str
    kind: str
    body: dict[str, Any]
    without: dict[str, Any] | None


# What a type is.


def bare(kind: Any) -> Any:
    """Return *kind* without annotations, ``Required`` and aliases. A type variable is anything.

    It is not cached, and neither are :func:`variants`: enumerations are equal whose words have another order.
    """
    while True:
        if get_origin(kind) in _WRAPPERS:
            kind = get_args(kind)[0]
        elif type(kind).__name__ == "TypeAliasType":
            kind = kind.__value__
        else:
            return Any if isinstance(kind, typing.TypeVar) else kind


@functools.cache
def fields_of(kind: Any) -> dict[str, Any]:
    """Return the types of the fields of an object."""
    if hasattr(kind, "model_fields"):
        return {name: field.annotation for name, field in kind.model_fields.items()}
    return typing.get_type_hints(kind, include_extras=True)


@functools.cache
def required(kind: Any) -> frozenset[str]:
    """Return the names of the fields that an object must have."""
    if hasattr(kind, "model_fields"):
        return frozenset(name for name, field in kind.model_fields.items() if field.is_required())
    marks = {name: get_origin(hint) for name, hint in fields_of(kind).items()}
    optional = {name for name, mark in marks.items() if mark in _OPTIONAL_MARKS}
    said = {name for name, mark in marks.items() if mark in _REQUIRED_MARKS}
    return frozenset(kind.__required_keys__ - optional | said)


def is_object(kind: Any) -> bool:
    """Whether *kind* is an object with fields of its own."""
    return isinstance(kind, type) and (hasattr(kind, "__required_keys__") or hasattr(kind, "model_fields"))


def _is_list(kind: Any) -> bool:
    origin = get_origin(kind)
    return (
        isinstance(origin, type)
        and issubclass(origin, collections.abc.Iterable)
        and not issubclass(origin, collections.abc.Mapping)
    )


def _is_mapping(kind: Any) -> bool:
    return get_origin(kind) in (dict, collections.abc.Mapping) or kind is dict


def words(kind: Any) -> list[Any]:
    """Return the words of an enumeration, or nothing."""
    if get_origin(kind) is Literal:
        return list(get_args(kind))
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return [one.value for one in kind if "UNSPECIFIED" not in str(one.value)]
    return []


def variants(kind: Any, *, models: bool) -> list[Any]:
    """Return the members of a union, flattened and without ``None``, or *kind* alone if it is none.

    Args:
        kind: the type.
        models: whether models of pydantic count. Beside a ``TypedDict`` they do not: they are answers that the SDK takes
            back.
    """
    kind = bare(kind)
    if get_origin(kind) in (Union, types.UnionType):
        found = {str(one): one for member in get_args(kind) for one in variants(member, models=models)}
        members = list(found.values())
        if str in members:  # a free string beside known names, as of models, is one string
            members = [one for one in members if get_origin(one) is not Literal]
        return members
    is_file = getattr(kind, "__name__", "") in ("IO", "PathLike", "Path")
    is_file = is_file or str(kind).startswith(("typing.IO", "os.PathLike"))
    if kind is type(None) or is_file or (not models and hasattr(kind, "model_fields")):
        return []
    return [kind]


def tag(kind: Any, *, models: bool) -> str:
    """Return how a variant is called in the name of a row: by its ``type`` or ``role``, if it has one."""
    kind = bare(kind)
    if is_object(kind):
        for key in ("type", "role") if kind.__name__ not in _NAMED_BY_CLASS else ():
            found = variants(fields_of(kind).get(key, object), models=models)
            if len(found) == 1 and len(known := words(found[0])) == 1:
                return str(known[0])
        return str(kind.__name__)
    if words(kind):
        return "word"
    return "list" if _is_list(kind) else getattr(kind, "__name__", str(kind))


_NAMED_BY_CLASS: Final = frozenset({"EasyInputMessageParam", "Message", "ResponseOutputMessageParam"})
"""Objects with a ``type`` or a ``role`` that others have as well."""


# The smallest values.

_SAYING: Final = {
    r"ResponseInputImage\w*Param|ResponseComputerToolCallOutputScreenshotParam": ("image_url",),
    r"ResponseInputFile\w*Param|FileFile|File": ("file_data", "filename"),
    r"Blob|FunctionResponseBlob": ("data", "mime_type"),
    r"FileData|FunctionResponseFileData": ("file_uri", "mime_type"),
    r"FunctionCall": ("name", "args"),
    r"FunctionResponse": ("name", "response"),
    r"ExecutableCode": ("code", "language"),
    r"CodeExecutionResult": ("outcome", "output"),
    r"FunctionDeclaration|Function": ("name",),
    r"SafetySetting": ("category", "threshold"),
    r"BetaSystemMessageParam|BetaToolResultBlockParam": ("content",),
    r"ToolCall": ("tool_type", "args"),
    r"ToolResponse": ("tool_type", "response"),
    r"McpServer": ("name", "streamable_http_transport"),
    r"StreamableHttpTransport": ("url",),
    r"FunctionCallOutput|ToolSearchCall|ResponseToolSearchOutputItemParamParam": ("call_id",),
    r"ItemReference": ("type",),
    r"JSONSchema": ("schema",),
}
"""The optional fields without which an object says nothing, by the name of its class."""

_ONE_OF: Final = ({"image_url", "file_id"}, {"file_data", "file_id", "file_url"})
"""Fields of which an object has one."""

_STRINGS_OF_WORDS: Final = {
    "think": "high",
    "keep_alive": "7m",
    "response_modalities": "AUDIO",
    "response_mime_type": "application/json",
}
"""Fields that the types call a string, and of which a server takes certain words."""

_IDS: Final = frozenset(
    [
        "id",
        "call_id",
        "tool_use_id",
        "tool_call_id",
        "item_id",
        "response_id",
        "approval_request_id",
        "parent_id",
        "agent_name",
        "title_id",
        "model",
        "name",
        "tool_name",
        "function_name",
        "filename",
        "title",
        "allowed_function_names",
    ]
)
_URLS: Final = frozenset(
    [
        "url",
        "image_url",
        "file_url",
        "server_url",
        "uri",
        "file_uri",
        "connector_url",
        "source_url",
        "page_url",
        "source_uri",
    ]
)
_SCHEMAS: Final = frozenset(
    [
        "parameters",
        "input_schema",
        "schema",
        "parameters_json_schema",
        "response_json_schema",
        "response_schema",
        "output_schema",
    ]
)
_SIGNED: Final = frozenset(
    ["signature", "thought_signature", "encrypted_content", "encrypted_index", "encrypted_stdout"]
)
_NUMBERS: Final = {
    "top_k": 41,
    "n": 3,
    "candidate_count": 3,
    "top_logprobs": 7,
    "logprobs": 7,
    "partial_images": 2,
    "port": 8443,
}
_DEEPEST: Final = 14


class Values:
    """The smallest values of types, each with a marker that no other has."""

    def __init__(self, *, models: bool) -> None:
        self.models = models
        self._numbers = itertools.count(1)

    def marker(self) -> str:
        """Return a word that occurs once."""
        return f"zq{next(self._numbers):05d}x"

    def smallest(self, kind: Any, name: str = "", owner: Any = None, depth: int = 0) -> Any:
        """Return the smallest instance of *kind*, the type of the field *name* of *owner*."""
        kind = bare(kind)
        if depth > _DEEPEST:
            return self.marker()
        if known := words(kind):
            return known[0]
        members = variants(kind, models=self.models)
        if len(members) > 1:
            simple = [one for one in members if one in (str, bool, int, float)]
            return self.smallest((simple or members)[0], name, owner, depth + 1)
        if members:
            kind = members[0]
        if known := words(kind):
            return known[0]
        if is_object(kind):
            return self._object(kind, depth)
        if name in _SCHEMAS and (_is_mapping(kind) or kind in (object, Any)):
            return {"type": "object", "properties": {self.marker(): {"type": "string"}}}
        if _is_mapping(kind):
            inner = get_args(kind)[1] if get_args(kind) else object
            is_free = bare(inner) in (object, Any) or len(variants(inner, models=self.models)) != 1
            value = self.marker() if is_free else self.smallest(inner, name, owner, depth + 1)
            return {self.marker(): value}
        if _is_list(kind):
            return [self.smallest(get_args(kind)[0], name, owner, depth + 1)]
        if kind in (object, Any) and name in ("input", "args", "action"):
            return {self.marker(): self.marker()}
        return self._plain(kind, name, owner)

    def _object(self, kind: Any, depth: int) -> dict[str, Any]:
        if kind.__name__ == "Schema" and hasattr(kind, "model_fields"):
            return {"type": "OBJECT", "properties": {self.marker(): {"type": "STRING"}}}
        saying = next((names for own, names in _SAYING.items() if re.fullmatch(own, kind.__name__)), ())
        wanted = required(kind)
        return {
            name: self.smallest(hint, name, kind, depth + 1)
            for name, hint in fields_of(kind).items()
            if name in wanted or name in saying
        }

    def _plain(self, kind: Any, name: str, owner: Any) -> Any:
        if kind in (str, Any, object):
            return self._text(name, owner)
        if kind is bool:
            return True
        if kind is int:
            return _NUMBERS.get(name, 3000 + next(self._numbers))
        if kind is float:
            return float(_NUMBERS.get(name, round(0.5 + next(self._numbers) / 100000, 5)))
        if kind is bytes:
            return file_of(self.marker(), is_image=bool(owner) and "image" in owner.__name__.lower())
        return None

    def _text(self, name: str, owner: Any) -> str:
        """Return a text as the field *name* has it. Pictures, files, addresses and signatures look like what they are."""
        if name in _STRINGS_OF_WORDS:
            return _STRINGS_OF_WORDS[name]
        marker, of = self.marker(), owner.__name__.lower() if owner else ""
        if name in _URLS:
            return f"https://{marker}.example/a.{'png' if 'image' in of or 'image' in name else 'pdf'}"
        is_data = (name == "data" and "audio" not in of and "text" not in of) or (
            name == "result" and "image" in of
        )
        if is_data or name in ("file_data", "image_bytes", "partial_images"):
            data = file_of(marker, is_image="image" in of)
            return f"data:application/pdf;base64,{data}" if name == "file_data" else data
        if name == "data" and "audio" in of:
            return _base64(marker)
        if name in ("media_type", "mime_type"):
            return "image/png" if "image" in of else "audio/wav" if "audio" in of else "application/pdf"
        if name == "arguments":
            return json.dumps({marker: 1})
        if name in _SIGNED:
            return _base64(f"signed {marker} signed {marker}")
        if name.endswith(("_at", "_time")):
            return "2026-11-29T00:00:00Z"
        if name in ("allowed_domains", "blocked_domains", "excluded_domains"):
            return f"{marker}.example"
        return marker if name in _IDS else f"{marker} words"


def file_of(text: str, *, is_image: bool) -> str:
    """Return in base64 what begins as a PNG or a PDF does, with *text* in it."""
    return _base64(f"\x89PNG\r\n\x1a\n{text}" if is_image else f"%PDF-1.4 {text}", "latin-1")


def _base64(text: str, encoding: str = "utf-8") -> str:
    return base64.b64encode(text.encode(encoding)).decode()


# The rows.

Wrap = Callable[[Any], dict[str, Any]]
"""Puts a value into the smallest request around it."""


class Walk:
    """The rows below the type of a request.

    Args:
        models: whether the SDK's requests are models of pydantic.
        skip: whether to leave out the place of that name, and all below it.
    """

    def __init__(self, *, models: bool, skip: Callable[[str], bool] = lambda name: False) -> None:
        self.values = Values(models=models)
        self._skip = skip
        self._seen: set[Any] = set()

    def rows(
        self,
        kind: Any,
        wrap: Wrap,
        at: str = "",
        name: str = "",
        owner: Any = None,
        without: dict[str, Any] | None = None,
    ) -> Iterator[Row]:
        """Yield the rows below a place.

        Args:
            kind: the type of the place.
            wrap: puts a value into that place of a request.
            at: the name of the place.
            name: the field that the place is in, of the type *owner*.
            owner: see *name*.
            without: the request without that place.
        """
        members = variants(kind, models=self.values.models)
        if len(members) <= 1:
            for one in members:
                yield from self._inside(one, wrap, at, name, owner, without)
            return
        for one in members:
            here = f"{at}[{tag(one, models=self.values.models)}]"
            key = (str(one), name, str(owner), _area(at))
            if self._skip(here) or (key in self._seen and is_object(one)):
                continue
            self._seen.add(key)
            if not words(one) and one is not bool:
                yield Row(here, "variant", wrap(self.values.smallest(one, name, owner)), without)
            yield from self._inside(one, wrap, here, name, owner, without)

    def _inside(
        self, kind: Any, wrap: Wrap, at: str, name: str, owner: Any, without: dict[str, Any] | None
    ) -> Iterator[Row]:
        kind = bare(kind)
        if known := words(kind):
            for word in self._new(known, name, at) if len(known) > 1 else ():
                yield Row(f"{at}={word}", "word", wrap(word), without)
        elif kind is bool:
            for flag in self._new([True, False], name, at):
                yield Row(f"{at}={str(flag).lower()}", "flag", wrap(flag), without)
        elif is_object(kind):
            yield from self._fields(kind, wrap, at, name, owner)
        elif _is_list(kind):
            yield from self.rows(
                get_args(kind)[0], lambda value: wrap([value]), f"{at}[]", name, owner, without
            )
        elif get_origin(kind) is dict:
            inner = get_args(kind)[1]
            if is_object(bare(inner)) or len(variants(inner, models=self.values.models)) > 1:
                key = self.values.marker()
                yield from self.rows(
                    inner, lambda value: wrap({key: value}), f"{at}{{}}", name, owner, without
                )

    def _new(self, known: list[Any], name: str, at: str) -> list[Any]:
        """All words where a field first occurs, then only the first."""
        key = (name, tuple(known), at.split(".")[0].split("[")[0])
        again = key in self._seen
        self._seen.add(key)
        return known[:1] if again else known

    def _fields(self, kind: Any, wrap: Wrap, at: str, name: str, owner: Any) -> Iterator[Row]:
        if kind.__name__ == "Schema" or ((kind, _area(at)) in self._seen and len(at) > 10):
            return
        self._seen.add((kind, _area(at)))
        base = self.values.smallest(kind, name, owner)
        for field, hint in fields_of(kind).items():
            here = f"{at}.{field}" if at else field
            if self._skip(here):
                continue

            def inner(value: Any, field: str = field) -> dict[str, Any]:
                return wrap(_with(base, field, value))

            if field in required(kind):
                yield from self.rows(hint, inner, here, field, kind)
                continue
            without = wrap({key: value for key, value in base.items() if key != field})
            value = self.values.smallest(hint, field, kind)
            members = variants(hint, models=self.values.models)
            has_words = [one is bool or len(words(one)) > 1 for one in members]
            if len(members) <= 1 and has_words != [True]:
                yield Row(here, "field", inner(value), without)
            yield from self.rows(hint, inner, here, field, kind, without)


def _area(at: str) -> str:
    return at.split(".")[0]


def _with(base: Mapping[str, Any], field: str, value: Any) -> dict[str, Any]:
    """Return *base* with another field, and without those that cannot stand beside it."""
    others = set().union(*(group for group in _ONE_OF if field in group and "size" not in base))
    kept = {key: one for key, one in base.items() if key not in others}
    return {**kept, field: value}
