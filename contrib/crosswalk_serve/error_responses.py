"""Errors as Starlette's responses, for requests that do not reach a chat endpoint."""

from __future__ import annotations

from uuid import uuid4

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from crosswalk.errors import ErrorInfo, ErrorKind
from crosswalk.wire.fields import FieldError
from crosswalk_serve.answers import failed, id_headers, info_of
from crosswalk_serve.forms import form_of
from crosswalk_serve.refusal import LEFT, Refusal
from crosswalk_serve.requests import BadRequestError

__all__ = ["error_response", "handle_error"]


def error_response(request: Request, error: Exception, id: str) -> Response:
    """Return the response to *request*, called *id*, that reports *error* in the format of its sender."""
    headers: dict[str, str] = {}
    if isinstance(error, Refusal):
        info = error.info
        headers = {} if error.retry_after is None else {"retry-after": str(error.retry_after)}
    elif isinstance(error, BadRequestError):
        info = info_of(error)
    elif isinstance(error, FieldError):
        info = info_of(BadRequestError(error.problem, error.path))
    elif isinstance(error, HTTPException):
        message = f"{error.detail}: there is no such page here, or not for {request.method}"
        info = ErrorInfo(ErrorKind.INVALID_REQUEST, message, status=error.status_code)
        headers = dict(error.headers or {})
    else:
        return Response(status_code=LEFT)
    form = form_of(request)
    written = failed(form, info, id)
    return Response(written.body, written.status, {**id_headers(form, id), **headers}, "application/json")


async def handle_error(request: Request, error: Exception) -> Response:
    """Handle *error* as Starlette's applications do."""
    return error_response(request, error, str(uuid4()))
