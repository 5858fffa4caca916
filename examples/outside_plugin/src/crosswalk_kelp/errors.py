"""What went wrong: a patch with the operator ``!``, in a stream or alone as the body of an HTTP error."""

from __future__ import annotations

from typing import Any

from crosswalk import ErrorInfo
from crosswalk.plugins import error_info

__all__ = ["error_of", "is_error"]


def is_error(event: Any) -> bool:
    """Whether *event* is an error: ``{"p": ["!", path, code, message, "retry" or nothing]}``."""
    array = event.get("p") if isinstance(event, dict) else None
    return isinstance(array, list) and array[:1] == ["!"]


def error_of(event: Any, status: int | None = None) -> ErrorInfo | None:
    """What the error *event* says; ``None`` when it is none of ours."""
    if not is_error(event):
        return None
    code, message = (
        value if isinstance(value, str) else None for value in [*event["p"][2:4], None, None][:2]
    )
    number = code.removeprefix("E-") if code is not None else ""
    http = int(number) if number.isdecimal() and len(number) == 3 else 500
    kind = error_info(http, message or "").kind
    return ErrorInfo(kind, message or "", event["p"][4:5] == ["retry"], status, code, event)
