"""Reads the bodies of clients' requests. The formats are in :mod:`crosswalk.service.client_requests`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs
import orjson

from crosswalk.convert import WireForm
from crosswalk.errors import FramingError, LineTooLongError, NestingTooDeepError
from crosswalk.service.client_requests.read import ClientRequest, Incoming, Wants, read_fields
from crosswalk.types import load_json
from crosswalk.wire import Limits, load_event
from crosswalk.wire.fields import FieldError, Fields
from crosswalk_serve.http_errors import BadRequestError
from crosswalk_serve.requests.headers import said_beside

__all__ = ["BadRequestError", "ClientRequest", "Incoming", "Wants", "WireForm", "load_body", "read_request"]

_LIMITS = Limits()


def load_body(body: bytes, limits: Limits = _LIMITS) -> Fields:
    """The JSON object that *body* is.

    Raises:
        BadRequestError: it is none, has a key twice, or is longer than *limits* (then its status is 413).
    """
    try:
        load_event(body, limits)
        return Fields(load_json(body, unique_keys=True))
    except FieldError as error:
        problem, status = error.problem, 400
    except NestingTooDeepError as error:
        problem, status = f"the request is nested deeper than {error.limit} levels", 400
    except LineTooLongError as error:
        problem, status = f"the request is longer than {error.limit} bytes", 413
    except (FramingError, orjson.JSONDecodeError) as error:
        problem, status = f"the body is no JSON: {getattr(error, 'msg', error)}", 400
    raise BadRequestError(problem, status=status)


def read_request(
    form: WireForm,
    body: bytes,
    limits: Limits | None = None,
    *,
    headers: Iterable[tuple[bytes, bytes]] = (),
    target: Mapping[str, Any] | None = None,
) -> Incoming:
    """Parse the request in *body*, which is in the form *form*.

    Args:
        form: the form of the endpoint that the client asks.
        body: the bytes of its request.
        limits: the limits of length and depth, or ``None`` for those of answers.
        headers: the headers of the request, by name in lower case. Only those in :mod:`crosswalk_serve.requests.headers` are
            read.
        target: the fields in its path, such as Gemini's model, or ``None`` without any.

    Raises:
        BadRequestError: it is not a request of that form. The error names the place as a JSON path, and quotes nothing.
    """
    fields = load_body(body, limits or _LIMITS)
    for name, value in (target or {}).items():
        fields.give(name, value)
    try:
        incoming = read_fields(form, fields)
    except FieldError as error:
        raise BadRequestError(error.problem, error.path) from None
    extra = said_beside(form, headers)
    if not extra:
        return incoming
    return attrs.evolve(incoming, request=attrs.evolve(incoming.request, headers=extra))
