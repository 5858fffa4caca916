"""What the errors of other HTTP libraries mean, as Python's own, whose meaning is known."""

from __future__ import annotations

from typing import Final, TypeVar

__all__ = ["plain"]

E = TypeVar("E", bound=BaseException)

_LIBRARIES: Final = frozenset({"aiohttp", "botocore", "requests", "urllib3"})
_OTHERS: Final = frozenset({"DecodeError", "InvalidURL", "LocationValueError"})
"""Those that do not mean that the connection failed."""


def plain(error: E) -> E | TimeoutError | ConnectionError:
    """*error*, or Python's own where it is one of a library that means that the server was slow, away or broke off."""
    kinds = [kind for one in (error, getattr(error, "reason", None)) for kind in type(one).__mro__]
    names = {kind.__name__ for kind in kinds if kind.__module__.partition(".")[0] in _LIBRARIES}
    if not names or names & _OTHERS or isinstance(error, OSError):
        return error
    is_late = "NewConnectionError" not in names and any("Timeout" in name for name in names)
    return TimeoutError() if is_late else ConnectionError()
