"""Types for :mod:`argparse` that check the values on a command line."""

from __future__ import annotations

import argparse
from datetime import datetime


def whole_number(text: str) -> int:
    """A whole number above 0.

    Raises:
        ArgumentTypeError: it is something else.
    """
    if not (text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"not a whole number above 0: {text!r}")
    return int(text)


def http_status(text: str) -> int:
    """An HTTP status.

    Raises:
        ArgumentTypeError: it is something else.
    """
    if not (text.isdecimal() and 100 <= int(text) <= 599):
        raise argparse.ArgumentTypeError(f"not an HTTP status: {text!r}")
    return int(text)


def zoned_time(text: str) -> datetime:
    """A time in ISO 8601, with its zone.

    Raises:
        ArgumentTypeError: it is something else, or has no zone.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise argparse.ArgumentTypeError(f"not an ISO 8601 time with a zone: {text!r}")
    return time
