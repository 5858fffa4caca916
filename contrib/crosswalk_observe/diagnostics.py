"""The log messages of a watcher, each written once."""

from __future__ import annotations

import logging
import time
from typing import Final

from crosswalk.errors import CrosswalkError

_log = logging.getLogger("crosswalk.observe")
_DROPPED_INTERVAL: Final = 60.0
"""Seconds between two messages about dropped exchanges."""


class Diagnostics:
    """Logs the errors and notes of a watcher as warnings of the logger ``crosswalk.observe``."""

    def __init__(self) -> None:
        self._logged: set[object] = set()
        self._logged_dropped = 0
        self._logged_at = -_DROPPED_INTERVAL

    def report(self, doing: str, error: BaseException) -> None:
        """Log *error*, which the program does not see, once for each kind.

        The text of an error of another library is left out, because it may quote content.
        """
        text = type(error).__name__
        if isinstance(error, CrosswalkError):
            text += f": {error}"
        elif isinstance(error, OSError) and error.strerror:
            text += f": {error.strerror}"
        self.note(f"{doing} failed with {text} (logged once)", (doing, type(error)))

    def note(self, message: str, kind: object = None) -> None:
        """Log *message*, once for each *kind*, which is the message itself by default."""
        kind = message if kind is None else kind
        if kind not in self._logged:
            self._logged.add(kind)
            _log.warning("%s", message)

    def note_dropped(self, count: int) -> None:
        """Log that *count* exchanges were dropped so far, if that has changed, at most once a minute."""
        now = time.monotonic()
        if count != self._logged_dropped and now - self._logged_at >= _DROPPED_INTERVAL:
            self._logged_at, self._logged_dropped = now, count
            _log.warning("no room: %d exchanges were not recorded so far", count)

    def restart_count(self) -> None:
        """Count dropped exchanges from 0, in a new process."""
        self._logged_dropped = 0
