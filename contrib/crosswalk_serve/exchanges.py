"""The log of exchanges: a line for each answer, which ``crosswalk batch`` and ``crosswalk normalize`` read."""

from __future__ import annotations

import base64
import logging
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from crosswalk.errors import ConfigurationError
from crosswalk.types import ChatResponse

__all__ = ["ExchangeLog", "exchange_line"]

_log = logging.getLogger("crosswalk.serve")


class ExchangeLog:
    """A file that lines are added to, each in one piece, so that several processes may share it.

    Args:
        path: the file; made where there is none.

    Raises:
        ConfigurationError: it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        try:
            self._file = os.open(path, flags, 0o600)  # it holds what people asked and were told
        except OSError as error:
            raise ConfigurationError(
                f"log.exchanges: {path}: {error.strerror}", key="log.exchanges"
            ) from None
        self._has_failed = False

    def add(self, response: ChatResponse, about: Mapping[str, Any]) -> None:
        """Write a line for *response*; a full disk is said once, and stops no answer."""
        try:
            os.write(self._file, exchange_line(response, about))
            self._has_failed = False
        except OSError as error:
            if not self._has_failed:
                _log.error("the log of exchanges cannot be written: %s", error.strerror)
            self._has_failed = True

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def exchange_line(response: ChatResponse, about: Mapping[str, Any]) -> bytes:
    """*response* as :func:`crosswalk.records.read_record` reads it: what the provider sent.

    Args:
        response: the answer; the provider's bytes are its ``raw_events``.
        about: more for the line.
    """
    body, *more = response.raw_events.frames or (b"",)
    if more:
        body = b"".join(b"data: %b\n\n" % frame for frame in [body, *more, b"[DONE]"])
    error = response.error_info
    try:
        said: dict[str, Any] = {"body": body.decode()}
    except UnicodeDecodeError:
        said = {"body_base64": base64.b64encode(body).decode()}
    line = {
        "id": response.id,
        "provider": response.metadata.provider_id,
        "status": error.status if error is not None and error.status is not None else 200,
        "time": datetime.now(UTC),
        **about,
        **said,
    }
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
