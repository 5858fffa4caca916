"""What HTTP clients are made with: options of applications, proxies, certificates."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from crosswalk.errors import ConfigurationError

if TYPE_CHECKING:
    import ssl

    import httpx2

C = TypeVar("C")
KEPT_SECONDS: Final = 4.0
"""The number of seconds for which an unused connection stays open.

Many servers close theirs after five (uvicorn, and so vLLM and SGLang; Node). A request that is sent at that moment is lost.
"""


def check_client(
    client: object, options: Mapping[str, Any], name: Literal["AsyncClient", "Client"] = "AsyncClient"
) -> None:
    """Refuse a *client* that is not httpx2's *name*, and *options* that such a one does not have. It checks the values.

    Raises:
        ConfigurationError: one of them is refused.
    """
    if client is None and not options:
        return
    import httpx2  # needed only by callers that pass one of them

    client_class = getattr(httpx2, name)
    if client is not None and not isinstance(client, client_class):
        raise ConfigurationError(
            f"client must be an httpx2.{name}, not {type(client).__name__}", key="client"
        )
    unknown_options = sorted(set(options) - set(inspect.signature(client_class).parameters))
    if unknown_options:
        raise ConfigurationError(
            f"client_options: httpx2.{name} has no option {unknown_options[0]!r:.60}", key="client_options"
        )


def made_client(client_type: Callable[..., C], transport_type: type[Any], options: Mapping[str, Any]) -> C:
    """Return a client of httpx2 of this type with *options*, and transports of *transport_type*.

    Raises:
        ConfigurationError: it refuses them. It names the one that it refuses alone.
    """
    import httpx2

    wrong_option: str | None = None
    error_types = (TypeError, ValueError, AttributeError, OSError, httpx2.InvalidURL)
    with refused(*error_types):
        try:
            return _tried(client_type(**client_arguments(options, transport_type)), transport_type, options)
        except error_types:
            for name, value in options.items():
                alone = {"verify": False, "trust_env": False, name: value}
                try:
                    _tried(client_type(**with_context(alone)), transport_type, alone)
                except error_types:
                    wrong_option = name
                    break
            if wrong_option is None:
                raise
    raise ConfigurationError(f"client_options: httpx2 refuses {wrong_option!r}", key=wrong_option)


def _tried(client: C, transport_type: type[Any], options: Mapping[str, Any]) -> C:
    """Return *client*, whose *options* can make a request. Raises what httpx2 would raise later."""
    maker: Any = client
    maker.build_request("GET", "http://server.invalid")
    for name in vars(transport_type).keys() & {"handle_request", "handle_async_request"}:
        getattr(options.get("transport") or transport_type, name)
    return client


def client_arguments(options: Mapping[str, Any], transport_class: Callable[..., Any]) -> dict[str, Any]:
    """Return the arguments of a client of httpx2 with *options*, which uses the proxies that :func:`proxy_for` names.

    Args:
        options: as for that client.
        transport_class: its ``HTTPTransport`` or ``AsyncHTTPTransport``.
    """
    import httpx2

    limits = httpx2.Limits(
        max_connections=None, max_keepalive_connections=None, keepalive_expiry=KEPT_SECONDS
    )
    arguments = {"limits": limits, **with_context(options)}
    proxies = environment_proxies(options)
    if proxies and options.get("transport") is None:
        names = ("verify", "cert", "trust_env", "http1", "http2", "limits")
        shared_arguments = {name: arguments[name] for name in names if name in arguments}
        transports = {
            proxy: transport_class(proxy=proxy, **shared_arguments) for proxy in {None, *proxies.values()}
        }
        arguments["transport"] = _ProxyTransports(transports, options)
    return arguments


class _ProxyTransports:
    """A transport of httpx2, asynchronous or not, that gives each request to the one for the proxy of its URL."""

    def __init__(self, transports: Mapping[str | None, Any], options: Mapping[str, Any]) -> None:
        self._transports = transports
        self._options = options

    def _of(self, url: httpx2.URL) -> Any:
        return self._transports[proxy_for(url.scheme, url.host, url.port, self._options)]

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        response: httpx2.Response = self._of(request.url).handle_request(request)
        return response

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response: httpx2.Response = await self._of(request.url).handle_async_request(request)
        return response

    def close(self) -> None:
        for transport in self._transports.values():
            transport.close()

    async def aclose(self) -> None:
        for transport in self._transports.values():
            await transport.aclose()


def environment_proxies(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the addresses of the environment's proxies by the schemes ``http``, ``https`` and ``all``.

    Empty if *options* name a proxy, or exclude those of the environment.
    """
    if options.get("proxy") is not None or not options.get("trust_env", True):
        return {}
    proxies = getproxies()
    return {name: _proxy_url(proxies[name]) for name in ("http", "https", "all") if name in proxies}


def _proxy_url(address: str) -> str:
    scheme, has_scheme, place = address.strip().rpartition("://")
    return f"{scheme.lower() if has_scheme else 'http'}://{place}"


def proxy_for(scheme: str, host: str, port: int | None, options: Mapping[str, Any]) -> str | None:
    """Return the address of the proxy for a URL of these parts: that of *options*, or of the environment.

    An entry of ``NO_PROXY`` is a host, a domain or a network, and may have a scheme or a port. Commas or spaces separate
    them.
    """
    if options.get("proxy") is not None:
        return _proxy_url(str(options["proxy"]))
    proxies = environment_proxies(options)
    proxy = proxies.get(scheme, proxies.get("all"))
    if proxy is None or proxy_bypass(host):
        return None
    real_port = port or (443 if scheme == "https" else 80)
    entries = getproxies().get("no", "").replace(",", " ").split()
    return None if any(_is_named(entry, scheme, host, real_port) for entry in entries) else proxy


def _is_named(entry: str, scheme: str, host: str, port: int) -> bool:
    """Return whether *entry* of ``NO_PROXY`` names the server. One that cannot be read names none."""
    entry_scheme, has_scheme, place = entry.lower().rpartition("://")
    if entry_scheme not in ("", "all", scheme):
        return False
    with suppress(ValueError):
        network = place[1:].replace("]/", "/") if "]/" in place else place  # [2001:db8::]/32
        return ip_address(host) in ip_network(network, strict=False)
    try:
        parts = urlsplit(f"//{place}")
        name, entry_port = (parts.hostname or "").removeprefix("*").strip("."), parts.port
    except ValueError:
        return False
    if entry_port not in (None, port):
        return False
    with suppress(ValueError):
        return ip_address(host) == ip_address(name)  # [::1]:8000
    if not name:
        return bool(has_scheme) or place.startswith(("*", ":"))  # the server of any name
    return f".{host.rstrip('.')}".endswith(f".{name}")


def with_context(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return *options* with the certificates of a ``verify=PATH``, a file or a folder, or else the shared ones.

    Raises:
        OSError: they cannot be read.
    """
    import ssl

    path = options.get("verify", True)
    if path is True and options.get("cert") is None:
        names = map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR"))
        return {
            **options,
            "verify": _by_default(options.get("trust_env", True), options.get("http2"), *names),
        }
    if not isinstance(path, str | os.PathLike):
        return dict(options)
    file, folder = (None, path) if os.path.isdir(path) else (path, None)
    return {**options, "verify": ssl.create_default_context(cafile=file, capath=folder)}


@lru_cache(maxsize=4)
def _by_default(trust_env: bool, *_: str | bool | None) -> ssl.SSLContext:
    """The certificates that all clients of the process share: the system's, or those that the environment names.

    They take long to load. A client with HTTP/2 has its own, since it changes them.
    """
    import httpx2

    return httpx2.create_ssl_context(trust_env=trust_env)


@contextmanager
def refused(*more_types: type[Exception]) -> Iterator[None]:
    """Turns exceptions of wrong options into a :class:`ConfigurationError`, without their text.

    The text may quote a proxy's URL with its password.
    """
    error_types: tuple[type[Exception], ...] = (TypeError, ValueError, OSError, *more_types)
    try:
        yield
    except ImportError as error:
        # For HTTP/2, or a SOCKS proxy, which the environment may name. That text quotes nothing.
        raise ConfigurationError(f"client_options: {error}", key="client_options") from None
    except error_types as error:
        raise ConfigurationError(
            f"client_options, or a proxy of the environment: httpx2 refuses them ({type(error).__name__})",
            key="client_options",
        ) from None
