"""Errors and refusals, before and after they are written in the client's format."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from typing import Any, Final
from uuid import uuid4

import attrs
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from crosswalk.convert import DangerousLossError, WireForm, error_body
from crosswalk.errors import CrosswalkError, ErrorInfo, ErrorKind
from crosswalk.service import UnsupportedRequestError
from crosswalk.types import dump_json, load_json
from crosswalk.wire.fields import FieldError

LEFT: Final = 499
"""The status in logs if the client has left, as in nginx. It is never sent."""


class Refusal(CrosswalkError):
    """A request is refused. The endpoint writes the error in the client's format.

    Attributes:
        info: the error. Its status is that of the answer.
        retry_after: the seconds until the next attempt, or ``None`` for no advice.
        may_repeat: whether the client may repeat the request. Otherwise a server may have charged for it.
    """

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        status: int | None = None,
        code: str | None = None,
        retry_after: int | None = None,
        may_repeat: bool = True,
    ) -> None:
        super().__init__(message)
        retryable = kind in (ErrorKind.RATE_LIMIT, ErrorKind.SERVER, ErrorKind.TIMEOUT)
        self.info = ErrorInfo(kind, message, retryable=retryable, status=status, code=code)
        self.retry_after = retry_after
        self.may_repeat = may_repeat


_UNREACHED: Final = {
    "connect_error": ("cannot be reached", 502),
    "connect_timeout": ("cannot be reached", 504),
    "connection_lost": ("broke off", 502),
    "decoding_error": ("sent what cannot be unpacked", 502),
    "transport_timeout": ("took too long", 504),
}
"""Messages in place of those that contain a server's address, by code."""


def for_client(error: ErrorInfo) -> ErrorInfo:
    """Return a provider's *error* for a client. Refused credentials are the gateway's and not the client's, and the
    addresses of servers are private."""
    if error.code in _UNREACHED:
        text, status = _UNREACHED[error.code]
        return attrs.evolve(error, message=f"the server of this model {text}", status=status)
    if error.status is not None and 300 <= error.status < 400:
        text = f"the server of this model gave no answer (HTTP {error.status})"
        return ErrorInfo(ErrorKind.SERVER, text, status=502, code="no_answer")
    if error.kind is ErrorKind.AUTHENTICATION:
        return ErrorInfo(
            ErrorKind.SERVER,
            "the provider has refused the gateway's credentials",
            status=502,
            code="bad_credentials",
        )
    if error.status is None and error.kind in (ErrorKind.SERVER, ErrorKind.UNKNOWN):
        return attrs.evolve(error, status=502)  # the answer cannot be read, or has no end
    return error


class BadRequestError(CrosswalkError, ValueError):
    """A client's request does not conform to its form. The message names the place and quotes no content.

    Attributes:
        path: the place, such as ``messages[0].content[1].type``, or ``""`` for the body as a whole.
        problem: the problem.
        status: the HTTP status of the response.
    """

    def __init__(self, problem: str, path: str = "", *, status: int = 400) -> None:
        super().__init__(f"{path}: {problem}" if path else problem)
        self.path = path
        self.problem = problem
        self.status = status


def form_of(request: Request) -> WireForm:
    """Return the form that the sender of *request* reads, for requests that do not reach an endpoint of any form."""
    return form_at(request.url.path, request.headers)


def form_at(path: str, headers: Container[str]) -> WireForm:
    """Return the form for a request for *path* with these *headers*, by name in lower case."""
    if path.startswith("/api/"):
        return WireForm.OLLAMA
    is_google = path.startswith("/v1beta/") or "x-goog-api-key" in headers
    if is_google or path.endswith(WireForm.GEMINI.paths):
        return WireForm.GEMINI
    is_anthropic = "anthropic-version" in headers or path.startswith("/v1/messages")
    return WireForm.ANTHROPIC if is_anthropic else WireForm.OPENAI_CHAT


_NO_THREADS: Final = "thread_unsupported_request"
"""Anthropic's code for a request that no thread can hold. Then its SDKs send the whole conversation."""
_NO_THREAD: Final = "thread_not_found"
"""Anthropic's code for a thread that is not there. Then its SDKs begin a new one."""


def info_of(error: CrosswalkError) -> ErrorInfo:
    """What is wrong with a request, for :func:`failed`: its place in the request is the ``param`` of OpenAI's form.

    An answer may be at fault, too, if the client's format cannot express the action that it asks for.
    """
    if isinstance(error, DangerousLossError):
        message = f"the answer cannot be written in the format of this request: {error.losses[0].rule.why}"
        return ErrorInfo(ErrorKind.SERVER, message, status=502, code="unsupported_answer")
    places = error.options if isinstance(error, UnsupportedRequestError) else ()
    param = error.path if isinstance(error, BadRequestError) else (places[0] if places else "")
    status = error.status if isinstance(error, BadRequestError) else 400
    raw: dict[str, Any] | None = {"error": {"param": param}} if param else None
    if raw is not None and param == "thread":
        is_unknown = isinstance(error, BadRequestError)
        raw["error"]["details"] = {
            "error_code": _NO_THREAD if is_unknown else _NO_THREADS,
            "unsupported": [param],
        }
    return ErrorInfo(ErrorKind.INVALID_REQUEST, str(error), status=status, raw=raw)


def failed(form: WireForm, error: ErrorInfo, request_id: str) -> tuple[bytes, int]:
    """Return the body of *error* for a client of *form*, and its HTTP status. Anthropic's repeats the *request_id*."""
    made = error_body(error, form)
    if form is not WireForm.ANTHROPIC:
        return made.value, made.status
    body = load_json(made.value)
    given = error.raw.get("error") if error.raw is not None else None
    details = given.get("details") if isinstance(given, Mapping) else None
    if isinstance(details, Mapping) and isinstance(details.get("error_code"), str):
        body["error"]["details"] = dict(details)  # by this Anthropic's SDKs know how to go on
    return dump_json({**body, "request_id": request_id}), made.status


def id_headers(form: WireForm, request_id: str) -> dict[str, str]:
    """The headers in which a client of *form* looks for the id of its request."""
    payload = {"x-request-id": request_id}
    return {**payload, "request-id": request_id} if form is WireForm.ANTHROPIC else payload


def retry_headers(seconds: float | None, *, may_repeat: bool) -> dict[str, str]:
    """The headers that tell a client's SDK whether to repeat a failed request, and after how many *seconds*."""
    headers = {} if seconds is None else {"retry-after": str(math.ceil(seconds))}
    return headers if may_repeat else {**headers, "x-should-retry": "false"}


def error_response(request: Request, error: Exception, id: str) -> Response:
    """Return the response to *request*, called *id*, that reports *error* in the format of its sender."""
    headers: dict[str, str] = {}
    if isinstance(error, Refusal):
        info = error.info
        headers = retry_headers(error.retry_after, may_repeat=error.may_repeat)
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
    body, status = failed(form, info, id)
    return Response(body, status, {**id_headers(form, id), **headers}, "application/json")


async def handle_error(request: Request, error: Exception) -> Response:
    """Handle *error* as Starlette's applications do."""
    return error_response(request, error, str(uuid4()))
