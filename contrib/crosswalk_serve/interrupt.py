"""Ends the task of a request from outside: when its client has left, or the gateway ends."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from starlette.types import Receive

from crosswalk.errors import ErrorInfo

__all__ = ["Interruptible"]


class Interruptible:
    """A block of code that is cancelled when the client leaves, or by :meth:`interrupt`. Use it with ``async with``.

    Afterwards :attr:`has_left` and :attr:`cause` hold the reason: a cancellation from here raises nothing outside. Any other
    cancellation passes through.

    Args:
        receive: that of the ASGI request. Its body has been read.

    Attributes:
        has_left: whether the client has left.
        cause: the message to the client if the gateway ended the block, or ``None`` if it did not.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._task: asyncio.Task[object] | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._is_cancelled = False
        self.has_left = False
        self.cause: ErrorInfo | None = None

    def interrupt(self, cause: ErrorInfo) -> None:
        """End the block, with *cause* for the client."""
        if self._task is not None and not self._is_cancelled:
            self.cause = cause
            self._cancel()

    async def __aenter__(self) -> Self:
        self._task = asyncio.current_task()
        self._watcher = asyncio.create_task(self._watch())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> bool:
        task, self._task = self._task, None
        assert task is not None, "the block was entered"
        assert self._watcher is not None, "likewise"
        self._watcher.cancel()
        if self._is_cancelled and task.uncancel() == 0:
            return kind is not None and issubclass(kind, asyncio.CancelledError)
        return False

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.has_left = True
        if not self._is_cancelled:
            self._cancel()

    def _cancel(self) -> None:
        assert self._task is not None, "who leaves the block ends the watcher"
        self._is_cancelled = True
        self._task.cancel()
