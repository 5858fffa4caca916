"""Clients' requests, read into canonical ones as answers are: typed, and what no canonical field says kept by its place.

:func:`read_request` gives an :class:`Incoming`. Its ``request`` goes to a service as it is, or changed with
``attrs.evolve`` (another model, a default): it brings along what else the client said, to a server of the client's own form
as it was sent, to any other as options that cannot be expressed.
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
    """The request that *body* is in the form *form*.

    Args:
        form: the form of the endpoint that the client asks.
        body: the bytes of its request.
        limits: how long and how deep it may be, or ``None`` for what holds for answers.
        headers: those that came with it, names in lower case; only what :mod:`crosswalk_serve.requests.headers` names is
            looked at.
        target: the fields that its path says, such as Gemini's model, or ``None`` for none.

    Raises:
        BadRequestError: it is no request of that form; the error names the place as a JSON path, and quotes nothing.
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
