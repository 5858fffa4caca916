"""Wraps functions of HTTP libraries so that a watcher sees their exchanges and the program notices nothing.

Every replaced or wrapped method of another library passes on the exact arguments, and returns or raises what the
original does. An error in the describing or watching code of a :class:`Layer` goes to the watcher's log.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from inspect import isawaitable
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

import attrs

from crosswalk_observe.exchange import Exchange

P = ParamSpec("P")
R = TypeVar("R")
E = TypeVar("E", bound=BaseException)


class Watching(Protocol):
    """A watcher, as HTTP layers see it."""

    def begin(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        content: bytes | None = None,
    ) -> Exchange | None:
        """Begin the exchange of a request that is about to be sent, or return ``None`` if it is not watched."""

    def report(self, doing: str, error: BaseException) -> None:
        """Log *error*, which the program does not see."""


@attrs.frozen
class Request:
    """A request that is about to be sent."""

    method: str
    url: str
    headers: Mapping[str, str] | Iterable[tuple[str, str]]
    content: bytes | None


@attrs.frozen
class Layer:
    """How to watch a function of a library that sends a request.

    Attributes:
        library: the name of the library, for the log.
        describe: returns the :class:`Request` for the function's arguments, or an awaitable of it, or ``None`` if they
            are not objects of the library.
        watch: called with the exchange, the function's result and its arguments. It reports the answer to the exchange,
            and leaves a result alone that is not an object of the library.
    """

    library: str
    describe: Callable[..., Any]
    watch: Callable[Concatenate[Exchange, Any, ...], None]


def begin(
    watcher: Watching, layer: Layer, arguments: tuple[Any, ...], options: dict[str, Any]
) -> Exchange | None:
    """Begin the exchange of a call to the function of *layer*, or return ``None`` if it is not watched."""
    try:
        return _begin(watcher, layer.describe(*arguments, **options))
    except Exception as error:
        watcher.report(f"watching {layer.library}", error)
        return None


async def _begin_async(
    watcher: Watching, layer: Layer, arguments: tuple[Any, ...], options: dict[str, Any]
) -> Exchange | None:
    try:
        request = layer.describe(*arguments, **options)
        return _begin(watcher, await request if isawaitable(request) else request)
    except Exception as error:
        watcher.report(f"watching {layer.library}", error)
        return None


def _begin(watcher: Watching, request: Request | None) -> Exchange | None:
    if request is None:
        return None
    return watcher.begin(request.method, request.url, request.headers, request.content)


def send(
    exchange: Exchange,
    layer: Layer,
    function: Callable[..., R],
    arguments: tuple[Any, ...],
    options: dict[str, Any],
) -> R:
    """Call *function*, the original, and report its result to *exchange*."""
    with _sending(exchange):
        result = function(*arguments, **options)
    _watch(exchange, layer, result, arguments, options)
    return result


@contextmanager
def _sending(exchange: Exchange) -> Iterator[None]:
    try:
        with exchange.sending():
            yield
    except BaseException as error:
        exchange.failed(as_builtin_error(error))
        raise


def _watch(
    exchange: Exchange, layer: Layer, result: Any, arguments: tuple[Any, ...], options: dict[str, Any]
) -> None:
    try:
        layer.watch(exchange, result, *arguments, **options)
    except Exception as error:
        exchange.report(f"watching {layer.library}", error)
        exchange.discard()


def replaced(
    layer: Layer, watcher: Callable[[], Watching | None], original: Callable[..., Any]
) -> Callable[..., Any]:
    """Return *original*, watched whenever *watcher* returns a watcher."""

    @wraps(original)
    def call(*arguments: Any, **options: Any) -> Any:
        watching = watcher()
        exchange = None if watching is None else begin(watching, layer, arguments, options)
        if exchange is None:
            return original(*arguments, **options)
        return send(exchange, layer, original, arguments, options)

    return call


def replaced_async(
    layer: Layer, watcher: Callable[[], Watching | None], original: Callable[..., Awaitable[Any]]
) -> Callable[..., Awaitable[Any]]:
    """:func:`replaced` for an asynchronous function."""

    @wraps(original)
    async def call(*arguments: Any, **options: Any) -> Any:
        watching = watcher()
        exchange = None if watching is None else await _begin_async(watching, layer, arguments, options)
        if exchange is None:
            return await original(*arguments, **options)
        with _sending(exchange):
            result = await original(*arguments, **options)
        _watch(exchange, layer, result, arguments, options)
        return result

    return call


_LIBRARIES: Final = frozenset({"aiohttp", "botocore", "requests", "urllib3"})
_UNRELATED: Final = frozenset({"DecodeError", "InvalidURL", "LocationValueError"})
"""Errors of these libraries that do not mean that the connection failed."""


def as_builtin_error(error: E) -> E | TimeoutError | ConnectionError:
    """Return *error*, or a builtin error if it is a library's error about a slow, unreachable or broken connection."""
    kinds = [kind for one in (error, getattr(error, "reason", None)) for kind in type(one).__mro__]
    names = {kind.__name__ for kind in kinds if kind.__module__.partition(".")[0] in _LIBRARIES}
    if not names or names & _UNRELATED or isinstance(error, OSError):
        return error
    is_late = "NewConnectionError" not in names and any("Timeout" in name for name in names)
    return TimeoutError() if is_late else ConnectionError()
