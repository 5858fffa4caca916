"""JSON to records and back, without a loss: the same JSON value comes out that went in."""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias, TypeVar, cast, overload

from crosswalk.codec.canonical import problems_in
from crosswalk.errors import InvalidJSONError, ResponseValidationError
from crosswalk.responses.records import (
    LazyFamily,
    OnUnknown as OnUnknown,
    ResponsesRecord,
    UnknownType,
    record_converter,
)
from crosswalk.responses.vocabulary import ResponsesParseError, ResponsesValueError, UnknownTypeError
from crosswalk.types.json import FrozenObject, copy_json, dump_json, plain_view
from crosswalk.wire.framing import load_event

if TYPE_CHECKING:
    from crosswalk.responses.events import KnownStreamEvent, ResponseStreamEvent
    from crosswalk.responses.items import (
        KnownInputItem,
        KnownOutputItem,
        ResponseInputItem,
        ResponseOutputItem,
    )
    from crosswalk.responses.response import Response, ResponseCreateParams

R = TypeVar("R", bound=ResponsesRecord)

JSONInput: TypeAlias = bytes | bytearray | str | Mapping[str, Any]
"""A JSON object as UTF-8 bytes, as text, or decoded."""


def parse(cls: type[R], data: JSONInput, *, unknown: OnUnknown = "raise") -> R:
    """Read *data* as *cls*, any record of this package.

    Args:
        cls: the type.
        data: a JSON object.
        unknown: ``"raise"`` or ``"keep"``. With ``"keep"``, an object with an unknown ``type`` becomes an
            :class:`crosswalk.responses.Unknown`, and an unknown word becomes ``None`` and stays in ``extensions``.

    Raises:
        UnknownTypeError: an object has a type that is not registered.
        ResponsesParseError: it is not such an object. The error has the path.
        ResponsesValueError: *unknown* is neither of the two words.
        FramingError: it is not JSON, or nested too deeply.
    """
    return cast(R, _read(cls, data, unknown))


def parse_response(data: JSONInput, *, unknown: OnUnknown = "raise") -> Response:
    """Read the body of a response, see :func:`parse`. For error bodies see :class:`crosswalk.responses.ErrorBody`."""
    from crosswalk.responses.response import Response  # the types are loaded when one is asked for

    response = parse(Response, data, unknown=unknown)
    if not response.id and _RESPONSE_KEYS.isdisjoint(to_dict(response)):
        raise ResponsesParseError("not a response: it has no id, object, status or output")
    return response


def parse_params(data: JSONInput, *, unknown: OnUnknown = "raise") -> ResponseCreateParams:
    """Read the body of a request. See :func:`parse`."""
    from crosswalk.responses.response import ResponseCreateParams

    return parse(ResponseCreateParams, data, unknown=unknown)


@overload
def parse_event(data: JSONInput, *, unknown: Literal["raise"] = "raise") -> KnownStreamEvent: ...
@overload
def parse_event(data: JSONInput, *, unknown: OnUnknown) -> ResponseStreamEvent: ...
def parse_event(data: JSONInput, *, unknown: OnUnknown = "raise") -> ResponseStreamEvent:
    """Read the data of one event of a stream. See :func:`parse`."""
    event: ResponseStreamEvent = _read(_EVENT, data, unknown)
    return event


@overload
def parse_item(data: JSONInput, *, unknown: Literal["raise"] = "raise") -> KnownOutputItem: ...
@overload
def parse_item(data: JSONInput, *, unknown: OnUnknown) -> ResponseOutputItem: ...
def parse_item(data: JSONInput, *, unknown: OnUnknown = "raise") -> ResponseOutputItem:
    """Read an item of a response. See :func:`parse`."""
    from crosswalk.responses.response import ResponseOutputItem

    item: ResponseOutputItem = _read(ResponseOutputItem, data, unknown)
    return item


@overload
def parse_input_item(data: JSONInput, *, unknown: Literal["raise"] = "raise") -> KnownInputItem: ...
@overload
def parse_input_item(data: JSONInput, *, unknown: OnUnknown) -> ResponseInputItem: ...
def parse_input_item(data: JSONInput, *, unknown: OnUnknown = "raise") -> ResponseInputItem:
    """Read an item of a request. See :func:`parse`."""
    from crosswalk.responses.items import ResponseInputItem

    item: ResponseInputItem = _read(ResponseInputItem, data, unknown)
    return item


_EVENT: Final = object()
"""A placeholder for the union of events."""


@functools.cache
def _hook(kind: Any, on_unknown: OnUnknown) -> Callable[[Any, Any], Any]:
    if kind is not _EVENT:
        return record_converter(on_unknown).get_structure_hook(kind)
    # Most streams contain only text. The first event of a call loads the rest.
    from crosswalk.responses.answer_events import LifecycleEvent, TextEvent

    common_classes = typing.get_args(LifecycleEvent | TextEvent)
    event_union: Any = Annotated[
        ResponsesRecord, LazyFamily("crosswalk.responses.events", "ResponseStreamEvent", common_classes)
    ]
    return record_converter(on_unknown).get_structure_hook(event_union)


_RESPONSE_KEYS: Final = {"id", "object", "status", "output"}
_TEXT_TYPES: Final = (bytes, str, bytearray)


def _read(kind: Any, data: JSONInput, unknown: OnUnknown) -> Any:
    if unknown not in ("raise", "keep"):
        raise ResponsesValueError("expected 'raise' or 'keep'", path="unknown")
    if type(data) is bytes:  # as the events of a stream are
        value = load_event(data)
    elif isinstance(data, _TEXT_TYPES):
        value = load_json(data)
    else:
        value = _own_copy(data)
    try:
        return _hook(kind, unknown)(value, kind)
    except Exception as error:
        problems = problems_in(error)
    first_problem = problems[0]
    path = f"${first_problem.at}"
    problem_lines = [f"{problem} @ ${problem.at}" for problem in problems]
    failure = ResponsesParseError(str(first_problem), path=path, problems=problem_lines)
    if isinstance(first_problem, UnknownType):
        failure = UnknownTypeError(
            str(first_problem),
            path=path,
            problems=problem_lines,
            family=first_problem.family,
            type_name=first_problem.type_name,
        )
    # Raised out here, the error does not carry along its context, which holds content.
    raise failure


def load_json(data: bytes | bytearray | str) -> Any:
    """Return the decoded JSON value of *data*.

    Raises:
        FramingError: it is not JSON, or nested too deeply.
    """
    try:
        return load_event(data.encode() if isinstance(data, str) else bytes(data))
    except UnicodeEncodeError:
        pass
    raise InvalidJSONError("not JSON: half a surrogate pair")


def _own_copy(data: Mapping[str, Any]) -> Any:
    """Return a copy of *data* as plain JSON."""
    if not isinstance(data, Mapping):
        raise ResponsesParseError(f"not a JSON object ({type(data).__name__})")
    try:
        return plain_view(FrozenObject(data))
    except (ResponseValidationError, RecursionError) as error:
        raise ResponsesParseError(f"not a JSON object ({type(error).__name__})") from None


def to_dict(value: ResponsesRecord) -> dict[str, Any]:
    """Return the JSON object that *value* was read from, or that the API takes. It is a copy that you may change."""
    copy: dict[str, Any] = copy_json(record_converter("raise").unstructure(value))
    return copy


def to_json(value: ResponsesRecord) -> bytes:
    """Return *value* as JSON text: the same JSON value that it was read from.

    Raises:
        ResponsesValueError: it contains a value without a JSON form, such as half a surrogate pair, or is nested too deeply.
    """
    try:
        return dump_json(record_converter("raise").unstructure(value))
    except (TypeError, RecursionError) as error:
        problem = f"not JSON: {error}" if isinstance(error, TypeError) else "nested too deeply"
    raise ResponsesValueError(problem, path=type(value).__name__)
