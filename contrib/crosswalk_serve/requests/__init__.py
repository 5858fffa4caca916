"""Reads clients' requests into canonical ones. They are typed, and fields without a canonical one are kept by their place.

:func:`read_request` returns an :class:`Incoming`. Its ``request`` goes to a service unchanged, or changed with
``attrs.evolve`` (another model, a default). It carries the client's other fields: unchanged to a server of the client's own
form, and to any other server as options that cannot be expressed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import attrs

from crosswalk.convert import WireForm
from crosswalk.wire import Limits
from crosswalk.wire.fields import FieldError, Fields
from crosswalk_serve.errors import BadRequestError
from crosswalk_serve.requests import chat, completions, gemini, messages, ollama, responses
from crosswalk_serve.requests.headers import said_beside
from crosswalk_serve.requests.incoming import ClientRequest, Incoming, Wants
from crosswalk_serve.requests.reading import load_body

__all__ = ["BadRequestError", "ClientRequest", "Incoming", "Wants", "WireForm", "read_request"]

_READERS: Final[dict[WireForm, Callable[[Fields, dict[str, Any]], Incoming]]] = {
    WireForm.OPENAI_CHAT: chat.read,
    WireForm.OPENAI_RESPONSES: responses.read,
    WireForm.OPENAI_COMPLETIONS: completions.read,
    WireForm.ANTHROPIC: messages.read,
    WireForm.GEMINI: gemini.read,
    WireForm.OLLAMA: ollama.read_chat,
    WireForm.OLLAMA_GENERATE: ollama.read_generate,
}


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
    fields = load_body(body, limits or Limits())
    for name, value in (target or {}).items():
        fields.give(name, value)
    try:
        incoming = _READERS[form](fields, fields.given)
    except FieldError as error:
        raise BadRequestError(error.problem, error.path) from None
    beside = said_beside(form, headers)
    if not beside:
        return incoming
    return attrs.evolve(incoming, request=attrs.evolve(incoming.request, headers=beside))
