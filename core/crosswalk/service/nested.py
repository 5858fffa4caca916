"""Async generators inside others, which close them."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Generator
from typing import Any, Generic, TypeVar

__all__ = ["Nested"]

T = TypeVar("T")


class Nested(Awaitable[T], Generic[T]):
    """Awaits *work* without registering its inner async generators with the event loop.

    At its end a loop closes all registered generators at once. An inner one, which the outer one is closing, would be closed
    twice, which Python reports as an error.
    """

    def __init__(self, work: Awaitable[T]) -> None:
        self._work = work

    def __await__(self) -> Generator[Any, Any, T]:
        steps: Any = self._work.__await__()
        value: Any = None
        error: BaseException | None = None
        while True:
            hooks = sys.get_asyncgen_hooks()
            sys.set_asyncgen_hooks(None, None)
            try:
                waited = steps.send(value) if error is None else steps.throw(error)
            except StopIteration as done:
                result: T = done.value
                return result
            finally:
                sys.set_asyncgen_hooks(*hooks)
            value = error = None
            try:
                value = yield waited
            except BaseException as raised:
                error = raised
