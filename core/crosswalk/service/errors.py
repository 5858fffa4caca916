"""The errors of a request that is refused before anything is sent."""

from __future__ import annotations

from collections.abc import Sequence

from crosswalk.errors import CrosswalkError

__all__ = ["UnsupportedRequestError"]


class UnsupportedRequestError(CrosswalkError, ValueError):
    """A provider cannot express a request. Nothing has been sent.

    Attributes:
        provider: the provider id, or ``None`` if the request was built without one.
        options: the names of the options that it cannot express, such as ``top_k`` or ``messages[0]``.
    """

    def __init__(self, message: str, *, provider: str | None = None, options: Sequence[str] = ()) -> None:
        super().__init__(f"{provider}: {message}" if provider else message)
        self.provider = provider
        self.options = tuple(options)
