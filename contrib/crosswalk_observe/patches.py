"""Watch every client of the process, including existing ones, if you cannot pass a client to your SDK."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import attrs

from crosswalk import ConfigurationError
from crosswalk_observe.aiohttp_sessions import watched_request
from crosswalk_observe.guard import replaced, replaced_async
from crosswalk_observe.transports import METHOD
from crosswalk_observe.urllib3_pools import watched_urlopen
from crosswalk_observe.watcher import Watcher


@attrs.frozen
class Patch:
    """A method that is replaced while a watcher is installed.

    Attributes:
        library: the module, if it is installed.
        oldest: the first supported version. Older versions are left alone.
        owner: the name of the class in *library*.
        method: the name of the method.
        watched: makes the replacement, from a function that returns the watcher (``None``) and the original
            method.
    """

    library: str
    oldest: tuple[int, ...]
    owner: str
    method: str
    watched: Callable[[Callable[[], Watcher | None], Callable[..., Any]], Callable[..., Any]]

    def why_not(self, module: Any) -> str | None:
        """Return why the library cannot be watched, or ``None`` if it can."""
        version = str(getattr(module, "__version__", ""))
        if tuple(map(int, re.findall(r"\d+", version)[:2])) < self.oldest:
            oldest = ".".join(map(str, self.oldest))
            return f"version {version or 'unknown'} is older than {oldest}"
        if not hasattr(getattr(module, self.owner, None), self.method):
            return f"it has no {self.owner}.{self.method}"
        return None


PATCHES: Final = [
    *(
        Patch(library, oldest, owner, method, partial(make, METHOD))
        for library, oldest in (("httpx", (0, 20)), ("httpx2", ()))
        for owner, method, make in (
            ("HTTPTransport", "handle_request", replaced),
            ("AsyncHTTPTransport", "handle_async_request", replaced_async),
        )
    ),
    Patch("aiohttp", (3, 12), "ClientSession", "_request", watched_request),
    Patch("urllib3", (1, 26), "HTTPConnectionPool", "urlopen", watched_urlopen),
]

_lock = threading.Lock()
_watcher: Watcher | None = None
_replaced: list[tuple[type, str, Callable[..., Any], Callable[..., Any]]] = []


def install(watcher: Watcher) -> None:
    """Let *watcher* see the traffic of every client in this process, including existing ones.

    This covers httpx, httpx2, aiohttp and urllib3, which requests and botocore use. A library in an unsupported version
    is left alone, and the log says so. A second call replaces the first watcher, and the log says that too. Traffic of a
    transport that is watched already is not seen twice.

    Raises:
        ConfigurationError: *watcher* is not a watcher.
    """
    global _watcher
    given: object = watcher
    if not isinstance(given, Watcher):
        raise ConfigurationError(f"install() takes a Watcher, not {type(given).__name__}: Watcher(your_sink)")
    with _lock:
        if _watcher is not None and _watcher is not watcher:
            watcher.note("another watcher was installed; this one takes its place")
        _watcher = watcher
        if _replaced:
            return
        for patch in PATCHES:
            if find_spec(patch.library) is None:
                continue
            try:
                module = import_module(patch.library)
            except Exception as error:
                watcher.report(f"importing {patch.library}", error)
                continue
            if (reason := patch.why_not(module)) is not None:
                watcher.note(f"{patch.library} is not watched: {reason}")
                continue
            owner = getattr(module, patch.owner)
            original = getattr(owner, patch.method)
            replacement = patch.watched(_installed, original)
            setattr(owner, patch.method, replacement)
            _replaced.append((owner, patch.method, original, replacement))


def uninstall() -> None:
    """Undo :func:`install`, if it was called. Active exchanges are watched to their end."""
    global _watcher
    with _lock:
        _watcher = None
        for owner, method, original, replacement in _replaced:
            if getattr(owner, method) is replacement:  # otherwise another wrapper stays, without a watcher
                setattr(owner, method, original)
        _replaced.clear()


def _installed() -> Watcher | None:
    return _watcher
