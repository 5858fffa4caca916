"""The log of exchanges: a line for each answer, which ``crosswalk batch`` and ``crosswalk normalize`` read."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from crosswalk.errors import ConfigurationError
from crosswalk.records import append_line, record_line
from crosswalk.types import ChatResponse, FinishReason, Provenance

__all__ = ["ExchangeLog", "exchange_line"]

_log = logging.getLogger("crosswalk.serve")
_MODE: Final = 0o600
"""The file mode. The file holds people's questions and answers."""
_LINE_END: Final = re.compile(rb"\r\n?|\n")


class ExchangeLog:
    """A file that lines are appended to. Several processes may share it.

    Args:
        path: the file, created if it does not exist.

    Raises:
        ConfigurationError: it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, _MODE))
        except OSError as error:
            raise ConfigurationError(
                f"log.exchanges: {path}: {error.strerror}", key="log.exchanges"
            ) from None
        self._path = path
        self._has_failed = False

    def add(self, response: ChatResponse, about: Mapping[str, Any], redact: Callable[[str], str]) -> None:
        """Write a line for *response*, see :func:`exchange_line`. A full disk is logged once, and stops no answer."""
        try:
            append_line(self._path, exchange_line(response, about, redact), mode=_MODE)
            self._has_failed = False
        except OSError as error:
            if not self._has_failed:
                _log.error("the log of exchanges cannot be written: %s", error.strerror)
            self._has_failed = True


def exchange_line(
    response: ChatResponse, about: Mapping[str, Any], redact: Callable[[str], str] | None = None
) -> bytes:
    """Return *response* as :func:`crosswalk.records.read_record` reads it: the provider's data.

    Args:
        response: the answer. The provider's bytes are its ``raw_events``.
        about: more for the line.
        redact: removes credentials from an error, because servers may repeat them, or ``None`` for no removal.
    """
    sent = _sent(response)
    if redact is not None and response.error_info is not None:
        sent = redact(sent.decode("latin-1")).encode("latin-1")  # in any encoding, credentials are ASCII
    return record_line(
        sent,
        status=_status(response),
        provider=response.metadata.provider_id,
        id=response.id,
        more={"time": datetime.now(UTC).isoformat().replace("+00:00", "Z"), **about},
    )


def _status(response: ChatResponse) -> int:
    """Return the HTTP status with which the answer began. An error in the middle of it may have another one."""
    raw = response.attempts[-1].extra.get("status") if response.attempts else None
    if isinstance(raw, int):
        return raw
    error = response.error_info if len(response.raw_events) < 2 else None
    return 200 if error is None or error.status is None else error.status


def _sent(response: ChatResponse) -> bytes:
    """Return the provider's data. The events of a stream become server-sent ones, whatever their framing was.

    The mark of a stream's end, which is not an event, is written if the stream is complete. If it ended in the middle
    of an event, the piece of the event stays open.
    """
    frames = response.raw_events.frames
    if len(frames) < 2:
        return b"".join(frames)
    is_cut = (
        response.finish_reason in (FinishReason.ERROR, FinishReason.CANCELLED)
        or response.metadata.provenance.get("usage") is Provenance.CUT
    )
    sent = b"\n\n".join(b"data: " + _LINE_END.sub(b"\ndata: ", frame) for frame in frames)
    if not is_cut:
        return sent + b"\n\ndata: [DONE]\n\n"
    return sent if isinstance(response.raw_events[-1], str) else sent + b"\n\n"
