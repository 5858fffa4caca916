"""Middleware around a call: it sees the request and the response, and may change both."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from typing import Any, TypeAlias

from crosswalk.errors import ConfigurationError
from crosswalk.service.request import ChatRequest
from crosswalk.types.response import ChatResponse

__all__ = ["Middleware"]

Middleware: TypeAlias = Callable[
    [ChatRequest],
    Generator[ChatRequest | ChatResponse, ChatResponse, None]
    | AsyncGenerator[ChatRequest | ChatResponse, ChatResponse],
]
"""A generator function, possibly asynchronous, that is called with each request.

It yields the request to send, changed or not, and receives the response, whatever its result. It may yield another
response to replace it. If it yields a response instead of the request, that answers the call and nothing is sent. If the
call raises, the generator is closed: its ``finally`` runs.
"""


class Around:
    """The middleware around one call. Close it in the end.

    Args:
        middleware: the first one is the outermost: it sees the request first and the response last.
    """

    def __init__(self, middleware: Iterable[Middleware]) -> None:
        self._middleware = middleware
        self._open: list[tuple[str, Any]] = []

    async def ask(self, request: ChatRequest) -> ChatRequest | ChatResponse:
        """Return the request to send for *request*, or the response if a middleware has answered already.

        Raises:
            ConfigurationError: an item is not a middleware.
        """
        for one in self._middleware:
            name = getattr(one, "__qualname__", type(one).__name__)
            steps = one(request)
            if not isinstance(steps, Generator | AsyncGenerator):
                raise _wrong(name, "must be a generator function")
            self._open.append((name, steps))
            given = await _step(steps, None)
            if isinstance(given, ChatResponse):
                await _close(self._open.pop()[1])
                return await self.answer(given)
            if not isinstance(given, ChatRequest):
                raise _wrong(name, f"must yield a ChatRequest first, not {type(given).__name__}")
            request = given
        return request

    async def answer(self, response: ChatResponse) -> ChatResponse:
        """Return the final response for *response*.

        Raises:
            ConfigurationError: a middleware yielded something other than a response.
        """
        while self._open:
            name, steps = self._open.pop()
            try:
                given = await _step(steps, response)
            finally:
                await _close(steps)
            if given is not None and not isinstance(given, ChatResponse):
                raise _wrong(name, f"must yield a ChatResponse then, not {type(given).__name__}")
            response = response if given is None else given
        return response

    async def aclose(self) -> None:
        """Close those that have not seen a response, the innermost first."""
        while self._open:
            await _close(self._open.pop()[1])


async def _step(steps: Any, given: ChatResponse | None) -> Any:
    """Return the next item of *steps*, or ``None`` at its end."""
    try:
        return steps.send(given) if isinstance(steps, Generator) else await steps.asend(given)
    except (StopIteration, StopAsyncIteration):
        return None


async def _close(steps: Any) -> None:
    if isinstance(steps, Generator):
        steps.close()
    else:
        await steps.aclose()


def _wrong(name: str, what: str) -> ConfigurationError:
    return ConfigurationError(f"middleware {name} {what}", key="middleware")
