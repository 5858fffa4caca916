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
from crosswalk.service import Sent
from crosswalk.types import dump_json, load_json
from crosswalk_serve.requests.incoming import Incoming

__all__ = ["Relay", "is_native"]

_MEDIA_TYPES: Final = {
    WireForm.OPENAI_CHAT: "text/event-stream",
    WireForm.OPENAI_RESPONSES: "text/event-stream",
    WireForm.ANTHROPIC: "text/event-stream",
    WireForm.GEMINI: "text/event-stream",
    WireForm.OLLAMA: "application/x-ndjson",
}
"""The formats of requests to servers. Completions and Ollama's generate are sent as chats."""
_NAMED: Final = (WireForm.ANTHROPIC, WireForm.OPENAI_RESPONSES)
"""The formats with names for events. The names are the events' types."""
_USUAL: Final = frozenset(
    ("id", "object", "created", "model", "choices", "usage", "system_fingerprint", "service_tier")
)
"""The members of a chunk that holds nothing but counts."""


def is_native(incoming: Incoming, sent: Sent) -> bool:
    """Return whether the stream that answers *sent* is in the format of the client."""
    path = sent.path.partition("?")[0]
    return path.endswith(incoming.form.paths) and sent.content_type == _MEDIA_TYPES.get(incoming.form)


class Relay:
    """Passes one stream on.

    Args:
        incoming: the client's request.
        sent: the request that the stream answers.

    Attributes:
        media_type: the content type of the stream.
        losses: the fields that did not go out. Always empty.
    """

    losses: tuple[Loss, ...] = ()

    def __init__(self, incoming: Incoming, sent: Sent) -> None:
        self._form = form = incoming.form
        name = incoming.request.model
        self._name = name if name != sent.model else None
        self._is_chat = form is WireForm.OPENAI_CHAT
        self._hides_usage = self._is_chat and not incoming.wants.include_usage
        self._errors: list[bytes] = []
        self._has_ended = False
        self._number = -1  # of the last event, in Responses
        self.media_type = _MEDIA_TYPES[form]
        self._is_ndjson = self.media_type != "text/event-stream"

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
        event = load_json(error_body(error, self._form).value)
        if self._form is WireForm.OPENAI_RESPONSES:
            details = {"code": error.code or error.kind.value, "message": error.message, "param": None}
            event = {"type": "error", **details, "sequence_number": self._number + 1}
        return self._framed(event, dump_json(event))

    def _frame(self, data: bytes) -> bytes:
        counts = self._hides_usage and b'"usage"' in data
        if self._name is None and not counts and self._form not in _NAMED and b'"error"' not in data:
            return self._framed({}, data)
        event = load_json(data)
        if type(event) is not dict:
            return self._framed({}, data)
        if _is_error(event):
            self._errors.append(self._framed(event, data))
            return b""
        number = event.get("sequence_number")
        self._number = number if type(number) is int else self._number
        is_changed = self._rename(event)
        if counts and event.get("usage") is not None:
            if event.get("choices") == [] and event.keys() <= _USUAL:
                return b""
            del event["usage"]
            is_changed = True
        return self._framed(event, dump_json(event) if is_changed else data)

    def _rename(self, event: dict[str, Any]) -> bool:
        """Give the model of *event* the client's name. Return whether it had another one."""
        if self._name is None:
            return False
        is_changed = False
        for holder in (event, event.get("message"), event.get("response")):
            if type(holder) is dict and type(holder.get("model")) is str:
                holder["model"], is_changed = self._name, True
        return is_changed

    def _framed(self, event: dict[str, Any], data: bytes) -> bytes:
        if self._is_ndjson:
            return data.replace(b"\n", b" ") + b"\n"
        lines = b"".join(b"data: " + line + b"\n" for line in data.splitlines())
        kind = event.get("type") if self._form in _NAMED else None
        name = f"event: {kind}\n".encode() if type(kind) is str and kind.isprintable() else b""
        return name + lines + b"\n"


def _is_error(event: dict[str, Any]) -> bool:
    """Return whether *event* reports the end of a stream by an error."""
    return bool(event.get("error")) or event.get("type") in ("error", "response.failed")
