"""Loads the parts that take long the first time: the HTTP library and the trusted certificates."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from crosswalk.errors import ConfigurationError

if TYPE_CHECKING:
    import ssl

__all__ = ["PLAIN", "load_for_loop", "refused", "trusted", "with_context"]

PLAIN: Final = frozenset({"verify", "cert", "trust_env"})
"""The options of an HTTP client that set the trusted certificates."""


def load_for_loop() -> None:
    """Load the HTTP library's means of waiting, which it would load in the middle of the first request."""
    import anyio

    anyio.run(anyio.sleep, 0)


def trusted(options: Mapping[str, Any], *, is_secure: bool) -> ssl.SSLContext:
    """Return the trusted certificates of *options*, those of :data:`PLAIN`. Loads the HTTP library.

    Certificates are read only if some server *is_secure*, that is, uses TLS. Otherwise the result trusts no server.

    Raises:
        ConfigurationError: the options are wrong.
    """
    import ssl

    import httpcore2  # noqa: F401  # only where something is sent: it takes as long to load as all of Crosswalk
    import httpx2

    if not is_secure:
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if options.get("verify", True) is True and options.get("cert") is None:
        return _by_default(
            options.get("trust_env", True), *map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR"))
        )
    with refused():
        return httpx2.create_ssl_context(**with_context(options))


def with_context(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return *options* with the certificates of a ``verify=PATH``, from a file or a folder.

    Raises:
        OSError: they cannot be read.
    """
    import ssl

    path = options.get("verify")
    if not isinstance(path, str | os.PathLike):
        return dict(options)
    file, folder = (None, path) if os.path.isdir(path) else (path, None)
    return {**options, "verify": ssl.create_default_context(cafile=file, capath=folder)}


@lru_cache(maxsize=4)
def _by_default(trust_env: bool, *_: str | None) -> ssl.SSLContext:
    """The certificates that all pools of the process share: the system's, or those that the environment names."""
    import httpx2

    return httpx2.create_ssl_context(trust_env=trust_env)


@contextmanager
def refused(*more: type[Exception]) -> Iterator[None]:
    """Turns exceptions of wrong options into a :class:`ConfigurationError`, without their text.

    The text may quote a proxy's URL with its password.
    """
    kinds: tuple[type[Exception], ...] = (TypeError, ValueError, OSError, *more)
    try:
        yield
    except ImportError as error:
        # For HTTP/2, or a SOCKS proxy, which the environment may name. That text quotes nothing.
        raise ConfigurationError(f"client_options: {error}", key="client_options") from None
    except kinds as error:
        raise ConfigurationError(
            f"client_options: httpx2.AsyncClient refuses them ({type(error).__name__})", key="client_options"
        ) from None
