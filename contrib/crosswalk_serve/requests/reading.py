"""What the readers of all forms have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

import attrs
import orjson

from crosswalk import normalize
from crosswalk.convert import WireForm
from crosswalk.errors import (
    CrosswalkError,
    FramingError,
    LineTooLongError,
    NestingTooDeepError,
    ResponseValidationError,
)
from crosswalk.service import ChatRequest
from crosswalk.types import ChatResponse, load_json
from crosswalk.types.json import dump_json
from crosswalk.wire import Limits, load_event
from crosswalk_serve.errors import BadRequestError
from crosswalk_serve.requests.fields import Fields, path_of
from crosswalk_serve.requests.incoming import ClientRequest, Incoming, Wants

__all__ = ["answer", "incoming", "load_body", "model", "option", "options", "placed", "source", "word"]

T = TypeVar("T")
_LIMITS = Limits()
_EPOCH = datetime.fromtimestamp(0, UTC)
_FIELDS = attrs.fields_dict(ChatRequest)


def load_body(body: bytes, limits: Limits = _LIMITS) -> Fields:
    """The JSON object that *body* is.

    Raises:
        BadRequestError: it is none, has a key twice, or is beyond *limits* (then its status is 413).
    """
    try:
        load_event(body, limits)
        return Fields(load_json(body, unique_keys=True))
    except NestingTooDeepError as error:
        problem, status = f"the request is nested deeper than {error.limit} levels", 413
    except LineTooLongError as error:
        problem, status = f"the request is longer than {error.limit} bytes", 413
    except (FramingError, orjson.JSONDecodeError) as error:
        problem, status = f"the body is no JSON: {getattr(error, 'msg', error)}", 400
    raise BadRequestError(problem, status=status)


@contextmanager
def placed(fields: Fields, *at: str | int) -> Iterator[None]:
    """Say of what goes wrong within where it stands: in *fields*, at *at*."""
    try:
        yield
    except BadRequestError:
        raise
    except ResponseValidationError as error:
        problem = str(error)
    else:
        return
    raise BadRequestError(problem, path_of((*fields.place, *at)))


def model(fields: Fields) -> Any:
    """The client's name for the model, which every form wants to have."""
    return option(fields, "model", "model", fields.need("model", fields.text("model")))


def options(fields: Fields, names: Mapping[str, str]) -> dict[str, Any]:
    """The options in *fields* that *names* tells the canonical names of, each of the type that :class:`ChatRequest` has."""
    return {
        field: option(fields, name, field, _TAKERS.get(field, Fields.number)(fields, name))
        for name, field in names.items()
    }


_TAKERS: Final[dict[str, Callable[[Fields, str], Any]]] = {
    "top_k": Fields.whole,
    "max_tokens": Fields.whole,
    "seed": Fields.whole,
    "parallel_tool_calls": Fields.flag,
    "model": Fields.text,
    "stop": Fields.texts,
}


def option(fields: Fields, name: str, field: str, value: Any) -> Any:
    """*value*, taken as *name*, as :class:`ChatRequest` has it in its *field*."""
    if value is None:
        return None
    attribute = _FIELDS[field]
    with placed(fields, name):
        if callable(attribute.converter):
            value = attribute.converter(value)
        if attribute.validator is not None:
            attribute.validator(None, attribute, value)
    return value


def word(fields: Fields, name: str, words: Mapping[str, T]) -> T | None:
    """What the word in the field *name* means; one that is not among *words* stays, for there may be more some day."""
    said = fields.look(name)
    if said is None:
        return None
    if not isinstance(said, str):
        return fields.text(name)  # type: ignore[return-value]  # it raises
    if said not in words:
        return None
    fields.take(name)
    return words[said]


def source(url: str) -> dict[str, str]:
    """Where something lies: in its own URL, if that holds base64, else there."""
    head, comma, data = url.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        kind = head[len("data:") : -len(";base64")]
        return {"data": data, "media_type": kind or "text/plain"}
    return {"url": url}


def answer(fields: Fields, body: dict[str, Any], provider: str) -> ChatResponse:
    """An earlier answer, as *provider* sent it: *body*, made of *fields*, is read as any answer is.

    Raises:
        BadRequestError: that is no answer.
    """
    id = f"{path_of(fields.place)}"
    try:
        return normalize(
            dump_json(body),
            provider,
            id_factory=lambda: id,
            clock=lambda: _EPOCH,
            unknown="keep",
            keep_raw=False,
        )
    except CrosswalkError as error:
        problem = f"is no answer of {provider}: {error}"
    raise BadRequestError(problem, path_of(fields.place))


def incoming(form: WireForm, body: Fields, said: dict[str, Any], wants: Wants, **asked: Any) -> Incoming:
    """What was read of *body*: the canonical fields *asked*, and all that is left.

    Raises:
        BadRequestError: the fields do not go together.
    """
    with placed(body, "messages"):
        request = ChatRequest(**{name: value for name, value in asked.items() if value is not None})
        fields = {name: getattr(request, name) for name in attrs.fields_dict(ChatRequest)}
        whole = ClientRequest(**fields, form=form, said=said, unread=tuple(body.unread()), asked=request)
    return Incoming(form=form, request=whole, wants=wants)
