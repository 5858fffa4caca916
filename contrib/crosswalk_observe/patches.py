"""For those who cannot give their SDK a client: every client of the process is watched, also those that exist already."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import attrs

from crosswalk_observe.aiohttp_sessions import watched_request
from crosswalk_observe.transports import send, send_async
from crosswalk_observe.urllib3_pools import watched_urlopen
from crosswalk_observe.watcher import Watcher

__all__ = ["install", "uninstall"]


@attrs.frozen
class Patch:
    """A method that is replaced while somebody watches.

    Attributes:
        library: the module that has to be there.
        owner: the class, by its name in *library*.
        method: what is replaced.
        watched: makes the replacement, of a function that gives the watcher (``None`` while nobody watches) and the method
            as it was.
    """

    library: str
    owner: str
    method: str
    watched: Callable[[Callable[[], Watcher | None], Callable[..., Any]], Callable[..., Any]]


def _sync(watcher: Callable[[], Watcher | None], original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def handle_request(self: Any, request: Any) -> Any:
        watching = watcher()
        if watching is None:
            return original(self, request)
        return send(watching, lambda request: original(self, request), request)

    return handle_request


def _async(watcher: Callable[[], Watcher | None], original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    async def handle_async_request(self: Any, request: Any) -> Any:
        watching = watcher()
        if watching is None:
            return await original(self, request)
        return await send_async(watching, lambda request: original(self, request), request)

    return handle_async_request


PATCHES: Final = [
    *(
        Patch(library, owner, method, make)
        for library in ("httpx", "httpx2")
        for owner, method, make in (
            ("HTTPTransport", "handle_request", _sync),
            ("AsyncHTTPTransport", "handle_async_request", _async),
        )
    ),
    Patch("aiohttp", "ClientSession", "_request", watched_request),
    Patch("urllib3", "HTTPConnectionPool", "urlopen", watched_urlopen),
]

_lock = threading.Lock()
_watcher: Watcher | None = None
_replaced: list[tuple[type, str, Callable[..., Any], Callable[..., Any]]] = []


def install(watcher: Watcher) -> None:
    """Let *watcher* see what every client in this process sends and receives, whoever made it and when: those of httpx,
    httpx2, aiohttp and urllib3, which requests and botocore use.

    A second call puts another watcher in the place of the first. What passes through a transport that is watched already is
    not seen twice.
    """
    global _watcher
    with _lock:
        _watcher = watcher
        if _replaced:
            return
        for patch in PATCHES:
            if find_spec(patch.library) is None:
                continue
            owner = getattr(import_module(patch.library), patch.owner)
            original = getattr(owner, patch.method)
            replacement = patch.watched(_installed, original)
            setattr(owner, patch.method, replacement)
            _replaced.append((owner, patch.method, original, replacement))


def uninstall() -> None:
    """Take back :func:`install`; without one before, nothing happens. What goes on is watched to its end."""
    global _watcher
    with _lock:
        _watcher = None
        for owner, method, original, replacement in _replaced:
            if (
                getattr(owner, method) is replacement
            ):  # what somebody else has put around it stays, and sees nobody watch
                setattr(owner, method, original)
        _replaced.clear()


def _installed() -> Watcher | None:
    return _watcher
