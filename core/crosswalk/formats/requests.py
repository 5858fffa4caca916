"""Reads requests in any of the formats into canonical ones.

:func:`read_request` returns an :class:`Incoming`. Its ``request`` goes to a service or to ``build_http_request``, unchanged
or changed with ``attrs.evolve``. It carries the fields without a canonical one: unchanged to an API of its own format, and
to any other as options that cannot be expressed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from crosswalk.formats import chat, gemini, messages, ollama, responses
from crosswalk.formats.reading import (
    ClientRequest as ClientRequest,
    Incoming as Incoming,
    Wants as Wants,
)
from crosswalk.formats.writing import WireForm
from crosswalk.types.json import as_frozen_object, load_json
from crosswalk.wire.options import FieldError, Fields

READERS: Final[dict[WireForm, Callable[[Fields, dict[str, Any]], Incoming]]] = {
    WireForm.OPENAI_CHAT: chat.read,
    WireForm.OPENAI_RESPONSES: responses.read,
    WireForm.OPENAI_COMPLETIONS: chat.read_completions,
    WireForm.ANTHROPIC: messages.read,
    WireForm.GEMINI: gemini.read,
    WireForm.OLLAMA: ollama.read_chat,
    WireForm.OLLAMA_GENERATE: ollama.read_generate,
}
"""The reader of each form: it parses the fields of a request, beside an untouched copy of them.

It raises :class:`FieldError` if they are no request of that form. The error names the place as a JSON path, and quotes
nothing.
"""


def read_request(
    body: bytes | str | Mapping[str, Any], form: WireForm | str, *, model: str | None = None
) -> Incoming:
    """Parse the request in *body*.

    ::

        incoming = read_request(body, "anthropic")
        build_http_request(incoming.request, "ollama").body

    Args:
        body: the JSON object that a client sends, as text or decoded.
        form: its format: ``openai-chat``, ``openai-responses``, ``openai-completions``, ``anthropic``, ``gemini``,
            ``ollama`` or ``ollama-generate``.
        model: the model's name, if the request has it in its path, as Gemini's, or ``None`` if it is in *body*.

    Raises:
        ResponseValidationError: it is not a request of that format. The message names the place, and quotes nothing.
        ConversionError: there is no such format.
    """
    value: Any = body
    try:
        if isinstance(body, Mapping):
            value = as_frozen_object(body).thawed()
        elif isinstance(body, str | bytes | bytearray | memoryview):
            value = load_json(body if isinstance(body, str) else bytes(body), unique_keys=True)
    except orjson.JSONDecodeError as error:
        raise FieldError(f"the body is not JSON: {error.msg}") from None
    fields = Fields(value)
    if model is not None:
        fields.give("model", model)
    return READERS[WireForm.of(form)](fields, fields.given)
