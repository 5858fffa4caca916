"""The body of a request that goes to a server as it came, apart from the name of the model."""

from __future__ import annotations

import re
from email.message import Message
from typing import Any, Final

import attrs
from starlette.requests import Request

from crosswalk.service.auxiliary_requests import estimated_tokens
from crosswalk.types import dump_json
from crosswalk_serve.bodies import FORM, JSON, check_head, read_body
from crosswalk_serve.config import Limits
from crosswalk_serve.errors import BadRequestError
from crosswalk_serve.requests import load_body

__all__ = ["Payload", "read_payload"]

_DISPOSITION: Final = re.compile(rb"^content-disposition:(.*)$", re.IGNORECASE | re.MULTILINE)
_NAME: Final = re.compile(rb';\s*name=(?:"([^"\r]*)"|([^;\s]*))', re.IGNORECASE)
_CODED: Final = re.compile(rb";\s*name\*", re.IGNORECASE)


@attrs.frozen
class Payload:
    """A body with the name of its model.

    Attributes:
        model: the client's name for the model.
        body: the bytes as the client sent them.
        content_type: its content type, or ``None`` without a body.
        fields: the JSON object, or ``None`` if the body is not JSON.
        place: the place of the name in the bytes of a form, or ``None``.
    """

    model: str
    body: bytes = attrs.field(default=b"", repr=False)
    content_type: str | None = None
    fields: dict[str, Any] | None = None
    place: slice | None = None

    def named(self, model: str) -> bytes:
        """Return the body for a server that calls the model *model*."""
        if model == self.model:
            return self.body
        if self.fields is not None:
            return dump_json({**self.fields, "model": model})
        if self.place is not None:
            return self.body[: self.place.start] + model.encode() + self.body[self.place.stop :]
        return self.body

    @property
    def tokens(self) -> int:
        """Estimate the number of tokens in JSON by its length. Other bodies hold none."""
        return 0 if self.fields is None else estimated_tokens(self.fields)


async def read_payload(request: Request, limits: Limits) -> Payload:
    """Read the body of *request*: JSON, a form, or none. The query may name the model of a body without one.

    Raises:
        BadRequestError: it is not valid, or names no model.
        Refusal: it is too long, too slow, or of another content type.
        starlette.requests.ClientDisconnect: the client has left.
    """
    model, kind = request.query_params.get("model"), request.headers.get("content-type", "")
    if request.method != "POST":
        if model is None:
            raise BadRequestError("is missing in the query", "model")
        return Payload(model)
    is_form = kind.lower().startswith(FORM)
    check_head(request.headers, {FORM} if is_form else JSON)
    body = await read_body(request, limits)
    if not is_form:
        fields = load_body(body).given
        named = fields.get("model")
        if not isinstance(named, str):
            raise BadRequestError("is missing" if named is None else "must be a string", "model")
        return Payload(named, body, kind, fields)
    location = _place_of_model(body, kind)
    if location is not None and model is None:
        try:
            return Payload(body[location].decode(), body, kind, place=location)
        except UnicodeDecodeError:
            raise BadRequestError("must be UTF-8", "model") from None
    if location is not None or model is None:
        raise BadRequestError("is named twice" if model else "is missing", "model")
    return Payload(model, body, kind)


def _place_of_model(body: bytes, content_type: str) -> slice | None:
    """Return the place of the value of ``model`` in the form *body*, or ``None`` if it has none.

    Raises:
        BadRequestError: readers of forms might see another model there.
    """
    header = Message()
    header["content-type"] = content_type
    boundary = header.get_param("boundary")
    if not isinstance(boundary, str) or not boundary.isascii():
        raise BadRequestError("the form has no boundary")
    delimiter = b"--" + boundary.encode()
    first, *parts = body.split(delimiter)
    if first or not parts or not parts[-1].startswith(b"--"):
        raise BadRequestError("the form is not between its boundaries")
    result: slice | None = None
    start = len(delimiter)
    for part in parts[:-1]:
        head, blank, value = part.partition(b"\r\n\r\n")
        if not (head.startswith(b"\r\n") and blank and value.endswith(b"\r\n")):
            raise BadRequestError("a part of the form has no head or no end")
        line = b"".join(_DISPOSITION.findall(head))
        names = [quoted or plain for quoted, plain in _NAME.findall(line)]
        if len(names) != 1 or _CODED.search(line):
            raise BadRequestError("a part of the form has no plain name")
        if names == [b"model"]:
            if result is not None:
                raise BadRequestError("is named twice", "model")
            begin = start + len(head) + len(blank)
            result = slice(begin, begin + len(value) - 2)
        start += len(part) + len(delimiter)
    return result
