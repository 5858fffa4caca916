"""The guard between this package and the programs that it watches.

Every method of another library that is replaced or wrapped goes through :func:`send` or :func:`send_async`. They pass on
exactly the arguments that came, and the answer or the exception that came back. What a :class:`Layer` does with either may
fail: the guard reports that to the watcher, and the program does not notice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import wraps
from inspect import isawaitable
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

import attrs

from crosswalk_observe.exchange import Exchange

__all__ = [
    "Layer",
    "Request",
    "Watching",
    "as_builtin_error",
    "begin",
    "replaced",
    "replaced_async",
    "send",
    "send_async",
]

P = ParamSpec("P")
R = TypeVar("R")


class Watching(Protocol):
    """Watches exchanges: a watcher, as the HTTP layers see it."""

    def begin(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        content: bytes | None = None,
    ) -> Exchange | None:
        """A request is about to be sent; ``None`` where it is to pass untouched."""

    def report(self, doing: str, error: BaseException) -> None:
        """Log *error*, which the program does not see."""


@attrs.frozen
class Request:
    """A request that is about to be sent, as a watcher is told of it."""

    method: str
    url: str
    headers: Mapping[str, str] | Iterable[tuple[str, str]]
    content: bytes | None


@attrs.frozen
class Layer:
    """How to watch a library's own function that sends a request.

    Attributes:
        library: its name, for the log.
        describe: gives the :class:`Request` for the function's arguments, perhaps as an awaitable; ``None`` where they are
            not the library's own objects.
        watch: takes the exchange, the function's result and its arguments, and sees to it that the exchange is told of the
            answer. It leaves a result alone that is not of the library's own class.
    """

    library: str
    describe: Callable[..., Any]
    watch: Callable[Concatenate[Exchange, Any, ...], None]


def begin(
    watcher: Watching, layer: Layer, arguments: tuple[Any, ...], options: dict[str, Any]
) -> Exchange | None:
    """The exchange that the function of *layer* is about to begin; ``None`` where it is not watched."""
    try:
        return _begun(watcher, layer.describe(*arguments, **options))
    except Exception as error:
        watcher.report(f"watching {layer.library}", error)
        return None


async def _begin_async(
    watcher: Watching, layer: Layer, arguments: tuple[Any, ...], options: dict[str, Any]
) -> Exchange | None:
    try:
        described = layer.describe(*arguments, **options)
        return _begun(watcher, await described if isawaitable(described) else described)
    except Exception as error:
        watcher.report(f"watching {layer.library}", error)
        return None


def _begun(watcher: Watching, request: Request | None) -> Exchange | None:
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
    """The result of *function*, the library's own, which *exchange* is told of."""
    try:
        with exchange.sending():
            result = function(*arguments, **options)
    except BaseException as error:
        exchange.failed(as_builtin_error(error))
        raise
    _watch(exchange, layer, result, arguments, options)
    return result


async def send_async(
    exchange: Exchange,
    layer: Layer,
    function: Callable[..., Awaitable[R]],
    arguments: tuple[Any, ...],
    options: dict[str, Any],
) -> R:
    """As :func:`send`."""
    try:
        with exchange.sending():
            result = await function(*arguments, **options)
    except BaseException as error:
        exchange.failed(as_builtin_error(error))
        raise
    _watch(exchange, layer, result, arguments, options)
    return result


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
    """*original*, watched while there is a watcher."""

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
    """As :func:`replaced`."""

    @wraps(original)
    async def call(*arguments: Any, **options: Any) -> Any:
        watching = watcher()
        exchange = None if watching is None else await _begin_async(watching, layer, arguments, options)
        if exchange is None:
            return await original(*arguments, **options)
        return await send_async(exchange, layer, original, arguments, options)

    return call


E = TypeVar("E", bound=BaseException)


_LIBRARIES: Final = frozenset({"aiohttp", "botocore", "requests", "urllib3"})


_UNRELATED: Final = frozenset({"DecodeError", "InvalidURL", "LocationValueError"})
"""Those that do not mean that the connection failed."""


def as_builtin_error(error: E) -> E | TimeoutError | ConnectionError:
    """*error*, or Python's own where it is one of a library that means that the server was slow, away or broke off."""
    kinds = [kind for one in (error, getattr(error, "reason", None)) for kind in type(one).__mro__]
    names = {kind.__name__ for kind in kinds if kind.__module__.partition(".")[0] in _LIBRARIES}
    if not names or names & _UNRELATED or isinstance(error, OSError):
        return error
    is_late = "NewConnectionError" not in names and any("Timeout" in name for name in names)
    return TimeoutError() if is_late else ConnectionError()
