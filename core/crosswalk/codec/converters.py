"""The converter behind canonical JSON, cattrs' orjson preset made strict, and the values that it reads."""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable, Set
from types import NoneType, SimpleNamespace
from typing import Any, NoReturn, TypeVar

import orjson
from cattrs import BaseConverter
from cattrs.preconf.orjson import OrjsonConverter, configure_converter as configure_for_orjson

from crosswalk.codec.layout import union_members
from crosswalk.codec.leaves import add_collections, add_leaves
from crosswalk.codec.located import problems_in
from crosswalk.codec.objects import add_classes, is_canonical
from crosswalk.codec.problems import cannot
from crosswalk.codec.unions import add_unions
from crosswalk.types.json import dump_json, load_json

T = TypeVar("T")


class CanonicalConverter(OrjsonConverter):
    """cattrs' converter for orjson that knows canonical types, coerces nothing and keeps every digit of an integer."""

    def get_structure_hook(self, type: Any, cache_result: bool = True) -> Callable[[Any, Any], Any]:
        """The hook that reads *type*. The metadata of ``Annotated`` may be of any kind, also one without a hash."""
        try:
            hash(type)
        except TypeError:
            plain = _without_metadata(type)
            read = super().get_structure_hook(plain, cache_result)
            return lambda value, _: read(value, plain)
        return super().get_structure_hook(type, cache_result)

    def dumps(self, obj: Any, unstructure_as: Any = None, **kwargs: Any) -> bytes:
        """The JSON text of *obj*; keywords are those of ``orjson.dumps``."""
        return dump_json(self.unstructure(obj, unstructure_as=unstructure_as), **kwargs)

    def loads(self, data: bytes | bytearray | memoryview | str, cl: type[T]) -> T:
        """The value of type *cl* that the JSON text *data* stands for."""
        return self.structure(load_json(data if isinstance(data, bytes | str) else bytes(data)), cl)


def _without_metadata(kind: Any) -> Any:
    """*kind* without the metadata of each ``Annotated`` in it."""
    return typing.get_type_hints(SimpleNamespace(__annotations__={"kind": kind}))["kind"]


def converter(*, include_raw: bool = False, forbid_extra_keys: bool = False) -> CanonicalConverter:
    """Make a cattrs converter for canonical types and for classes that hold them.

    It is cattrs' orjson preset, but it coerces nothing, save that a number may be written without a point. Canonical
    types are written and read as :func:`crosswalk.to_json` and :func:`crosswalk.from_json` do. Each call makes
    another converter, so you may register hooks of your own.

    A class may bring its hooks along: the class methods ``__structure_hook__(converter)`` and
    ``__unstructure_hook__(converter)`` return them, and ``__union_hook__(union)`` that of a union of such classes.

    Args:
        include_raw: also write the provider's own bytes, ``raw_events`` and ``raw_event``.
        forbid_extra_keys: refuse keys that your classes do not have. Canonical types always ignore such keys.
    """
    made = CanonicalConverter(
        forbid_extra_keys=forbid_extra_keys,
        structure_fallback_factory=_refuse,
        unstruct_collection_overrides={Set: list},
        use_alias=True,
    )
    configure_for_orjson(made)
    add_leaves(made)
    add_collections(made)
    add_unions(made)
    add_classes(made, include_raw=include_raw)
    return made


def _refuse(kind: Any) -> NoReturn:
    raise TypeError(f"no JSON is read as {kind!r}")


@functools.cache
def shared_converter(*, include_raw: bool = False) -> CanonicalConverter:
    """The converter that the library itself uses. Do not register anything with it."""
    return converter(include_raw=include_raw)


def transform_error(error: Exception) -> list[str]:
    """List every problem behind an error of a converter, as ``problem @ $.path``.

    It is cattrs' function of that name, and also looks into canonical types and Responses records.
    """
    return [f"{problem} @ ${problem.at}" for problem in problems_in(error)]


def configure_converter(converter: BaseConverter) -> None:
    """Teach your own cattrs *converter* the canonical types, so that it reads and writes classes that hold them.

    They are written as :func:`crosswalk.to_jsonable` writes them and read as :func:`crosswalk.from_json` reads them. A wrong
    value raises :class:`CanonicalJSONError`, inside the groups that cattrs makes of errors.
    """
    converter.register_structure_hook_func(_is_ours, _structure)
    converter.register_unstructure_hook_func(is_canonical, _unstructure)


def _is_ours(kind: Any) -> bool:
    """Whether *kind* is a canonical type or record, or a union of them."""
    members = [member for member in union_members(kind) if member is not NoneType]
    return all(map(is_canonical, members)) if len(members) > 1 else is_canonical(kind)


def _structure(value: Any, cls: Any) -> Any:
    try:
        return shared_converter().structure(value, cls)
    except Exception as error:
        problems = transform_error(error)
    raise cannot("read", cls, problems)  # out here it has no context, which would quote content


def _unstructure(value: Any) -> Any:
    return load_json(shared_converter().dumps(value))


def from_json(data: bytes | bytearray | memoryview | str, cls: type[T]) -> T:
    """Read canonical JSON as *cls*: ``from_json(to_json(x), type(x))`` gives *x* back.

    Unknown keys and computed values are ignored. A missing optional key is its default, and so is ``null`` if the
    type allows ``None``. Otherwise types are exact: nothing is coerced, save that a number may be written without a
    point. Finish reasons are read in any case, usage flat or in OpenAI's nested form. Every ``1.x`` format is read. A
    document without a version is a ``1.0``.

    Args:
        data: the JSON text.
        cls: a canonical type, or ``list[…]`` or ``tuple[…, ...]`` of one.

    Raises:
        CanonicalJSONError: it is not JSON, of another format version, or not of this type. ``problems`` lists each
            problem with its path, such as ``expected string, got number @ $.message.content``.
        TypeError: *cls* is not a canonical type, or *data* is neither bytes nor text.
    """
    if not isinstance(data, bytes | bytearray | memoryview | str):
        raise TypeError(f"data is the JSON's bytes or text, not {type(data).__name__}")
    if not is_canonical(cls) and not is_canonical(_item_type(cls)):
        raise TypeError(f"{cls!r} is no canonical type")
    try:
        return shared_converter().loads(data, cls)
    except orjson.JSONDecodeError as error:
        problems = [f"not JSON ({error.msg} at character {error.pos}) @ $"]
    except Exception as error:
        problems = transform_error(error)
    raise cannot("read", cls, problems)  # out here it has no context, which would quote content


def _item_type(cls: Any) -> Any:
    """The type of the items of an array type, or *cls* itself."""
    origin, items = typing.get_origin(cls), typing.get_args(cls)
    return items[0] if origin is list or (origin is tuple and items[1:] == (...,)) else cls
