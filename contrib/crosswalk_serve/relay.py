"""Passes a stream on in its own format: the server's events go out unchanged.

The service reads them as well, for counts, errors and the store. Four things change on the way. The model carries the
client's name if the configuration gives it another one. Token counts that the client did not ask for stay out. An error
shows what a client may see. And the format's sentinel ends the stream.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from crosswalk.convert import Loss, WireForm, error_body
from crosswalk.errors import ErrorInfo
from crosswalk.service import Incoming, Sent
from crosswalk.types import dump_json, load_json
from crosswalk_serve.answers import alias_of, rename
from crosswalk_serve.http_reply import media_type

__all__ = ["Relay", "error_frame", "is_native"]

_NAMED: Final = (WireForm.ANTHROPIC, WireForm.OPENAI_RESPONSES)
"""The formats with names for events. The names are the events' types."""
_USUAL: Final = frozenset(
    ("id", "object", "created", "model", "choices", "usage", "system_fingerprint", "service_tier")
)
"""The members of a chunk that holds nothing but counts."""


def is_native(incoming: Incoming, sent: Sent) -> bool:
    """Return whether the stream that answers *sent* is in the format of the client."""
    path = sent.path.partition("?")[0]
    return path.endswith(incoming.form.paths) and sent.content_type == media_type(incoming.form)


class Relay:
    """Passes one stream on.

    Args:
        incoming: the client's request.
        sent: the request that the stream answers.

    Attributes:
        losses: the fields that did not go out. Always empty.
    """

    losses: tuple[Loss, ...] = ()

    def __init__(self, incoming: Incoming, sent: Sent) -> None:
        self._form = form = incoming.form
        self._alias = alias_of(incoming, sent.model)
        self._is_chat = form is WireForm.OPENAI_CHAT
        self._hides_usage = self._is_chat and not incoming.wants.include_usage
        self._errors: list[bytes] = []
        self._has_ended = False
        self._number = -1  # of the last event, in Responses

    def frames(self, events: Iterable[bytes]) -> bytes:
        """Return further *events* for the client, as received. An error waits for :meth:`finish` or :meth:`fail`."""
        return b"".join(map(self._frame, events))

    def finish(self) -> bytes:
        """Return the end of a stream that did not fail."""
        self._has_ended = True
        return b"".join(self._errors) + (b"data: [DONE]\n\n" if self._is_chat else b"")

    def fail(self, error: ErrorInfo) -> bytes:
        """Return the end of the stream with *error*, or nothing if the stream has ended."""
        if self._has_ended:
            return b""
        self._has_ended = True
        return error_frame(self._form, error, self._number + 1)

    def _frame(self, data: bytes) -> bytes:
        counts = self._hides_usage and b'"usage"' in data
        if self._alias is None and not counts and self._form not in _NAMED and b'"error"' not in data:
            return _framed(self._form, {}, data)
        event = load_json(data)
        if type(event) is not dict:
            return _framed(self._form, {}, data)
        if _is_error(event):
            self._errors.append(_framed(self._form, event, data))
            return b""
        number = event.get("sequence_number")
        self._number = number if type(number) is int else self._number
        is_changed = rename(event, self._alias)
        if counts and event.get("usage") is not None:
            if event.get("choices") == [] and event.keys() <= _USUAL:
                return b""
            del event["usage"]
            is_changed = True
        return _framed(self._form, event, dump_json(event) if is_changed else data)


def error_frame(form: WireForm, error: ErrorInfo, number: int = 0) -> bytes:
    """Return the event of a stream in *form* that reports *error*. In Responses, it is the event *number*."""
    event = load_json(error_body(error, form).value)
    if form is WireForm.OPENAI_RESPONSES:
        details = {"code": error.code or error.kind.value, "message": error.message, "param": None}
        event = {"type": "error", **details, "sequence_number": number}
    return _framed(form, event, dump_json(event))


def _framed(form: WireForm, event: dict[str, Any], data: bytes) -> bytes:
    """Return the text *data* of *event* with the framing of *form*."""
    if media_type(form) == "application/x-ndjson":
        return data.replace(b"\n", b" ") + b"\n"
    lines = b"".join(b"data: " + line + b"\n" for line in data.splitlines())
    kind = event.get("type") if form in _NAMED else None
    name = f"event: {kind}\n".encode() if type(kind) is str and kind.isprintable() else b""
    return name + lines + b"\n"


def _is_error(event: dict[str, Any]) -> bool:
    """Return whether *event* reports the end of a stream by an error."""
    return bool(event.get("error")) or event.get("type") in ("error", "response.failed")
