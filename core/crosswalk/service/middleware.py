"""What stands around a call: it sees what is asked and what is answered, and may change both."""

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
"""A generator function, also an asynchronous one, that is called with each request.

It yields the request to send, changed or not, and is given the response, whatever that says; it may yield another one to
take its place. A response in place of the request answers the call, and nobody is asked. Where the call raises instead of
giving a response, the generator is closed: its ``finally`` runs."""


class Around:
    """The middleware around one call; close it in the end.

    Args:
        middleware: the first one is the outermost: it sees the request first and the response last.
    """

    def __init__(self, middleware: Iterable[Middleware]) -> None:
        self._middleware = middleware
        self._open: list[tuple[str, Any]] = []

    async def ask(self, request: ChatRequest) -> ChatRequest | ChatResponse:
        """What to send for *request*; or the response, where that is known already.

        Raises:
            ConfigurationError: something is no middleware.
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
        """What to give for *response*.

        Raises:
            ConfigurationError: a middleware gave something else than a response.
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
    """What *steps* yields next; ``None`` at its end."""
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
