"""Where to send requests: a provider's server, its name for the model, and the key, which is removed from its texts."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final
from urllib.parse import quote, urlsplit

import attrs

from crosswalk.errors import ConfigurationError
from crosswalk.plugin.hooks import Access, Sign
from crosswalk.plugin.registry import Mapper
from crosswalk.text import brief, holds_key as holds_key, summary
from crosswalk.types.values import checks_keywords

# ------------------------------------------------------------------------------- redaction
# Removes the credentials of a request from a server's texts: some servers repeat them in their errors.


_MARK = "<secret>"
_MIN_SECRET_LENGTH = 4
"""Shorter values reveal nothing, and occur in many words."""
_MIN_PART_LENGTH = 8
"""The number of characters from which a part of a credential is removed too."""


class Redaction:
    """Removes credentials from texts: plain, in URLs, base64 or hex, and fragments left by cleaning and cutting.

    Args:
        values: of headers: credentials, with or without a scheme such as ``Bearer`` before them.
    """

    def __init__(self, values: Iterable[str]) -> None:
        self._values = sorted(
            {
                value.rpartition(" ")[2]
                for value in values
                if len(value.rpartition(" ")[2]) >= _MIN_SECRET_LENGTH
            },
            key=len,
            reverse=True,
        )
        encodings = {form for value in self._values for form in encoded_forms(value)}
        parts = {
            p for value in self._values for p in re.split(r"[^\w-]+", value) if len(p) >= _MIN_PART_LENGTH
        }
        secret_forms = sorted({*self._values, *encodings, *parts}, key=len, reverse=True)
        self._pattern = (
            re.compile("|".join(map(re.escape, secret_forms)), re.IGNORECASE) if secret_forms else None
        )

    @property
    def finds_any(self) -> bool:
        """Whether there are credentials to remove."""
        return self._pattern is not None

    def __call__(self, text: str) -> str:
        """Return *text* without them."""
        if self._pattern is None:
            return text
        return self._without_cut_one(self._pattern.sub(_MARK, text))

    def _without_cut_one(self, text: str) -> str:
        """Return *text*, which may have been cut in the middle of a credential."""
        if not text.endswith("…"):
            return text
        head = text[:-1]
        for value in self._values:
            for length in range(len(value) - 1, _MIN_SECRET_LENGTH - 1, -1):
                if head.endswith(value[:length]):
                    return f"{head[:-length]}{_MARK}…"
        return text

    def __repr__(self) -> str:
        return "Redaction()"


def encoded_forms(value: str) -> Iterator[str]:
    """Return the encodings of *value*, also amid other text."""
    yield quote(value, safe="")
    value_bytes = value.encode()
    yield value_bytes.hex()
    for byte_offset in range(3):  # its position in a group of three bytes decides its base64 form
        base64_text = base64.b64encode(bytes(byte_offset) + value_bytes).rstrip(b"=").decode()
        # The first characters hold bits of the text before, the last one may hold bits of the text behind.
        stable_text = base64_text[
            -(-byte_offset * 8 // 6) : -1 if (byte_offset + len(value_bytes)) % 3 else None
        ]
        if len(stable_text) >= _MIN_PART_LENGTH:
            yield stable_text
            yield stable_text.replace("+", "-").replace("/", "_")


# -------------------------------------------------------------------------------- endpoint
# Where to send requests: a provider's server, its name for the model, and the key.


DISCOVERED: Final = "auto"
"""The provider of an endpoint given by its address alone: the first call detects the provider from the server."""


class Secret:
    """A credential that no ``repr``, ``str`` or log shows. A pickle, made for another process, contains it.

    Args:
        value: the credential itself, as it goes into a header.

    Raises:
        ConfigurationError: it is empty, or has characters that a header cannot carry. The message does not quote it.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        given: object = value
        if not isinstance(given, str) or not given or not _is_header_text(given):
            raise ConfigurationError("a credential must be printable ASCII without line breaks, not empty")
        self._value = value

    def reveal(self) -> str:
        """The credential itself."""
        return self._value

    def __eq__(self, other: object) -> bool:
        return self._value == other._value if isinstance(other, Secret) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return "Secret('<secret>')"


_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""The name of a header, as HTTP defines it (RFC 9110, section 5.6.2)."""


def _is_header_text(text: str) -> bool:
    return text.isascii() and text.isprintable() and text == text.strip()


def _as_secret(value: str | Secret | None) -> Secret | None:
    return value if value is None or isinstance(value, Secret) else Secret(value)


def _check_model(_: Any, field: attrs.Attribute[Any], value: Any) -> None:
    if value is not None and not isinstance(value, str):
        raise ConfigurationError(f"{field.name} must be a text, not {type(value).__name__}", key=field.name)


def _as_headers(value: Mapping[str, str | Secret]) -> dict[str, Secret]:
    headers = {}
    for name, text in value.items():
        if not _TOKEN.fullmatch(name):
            raise ConfigurationError("the name of a header must be a token of ASCII characters")
        headers[name] = text if isinstance(text, Secret) else Secret(text)
    return headers


_PROVIDER_AND_MODEL = re.compile(r"([^:/]+)[:/](.+)")
"""A provider id and a model in one text."""


@checks_keywords()
@brief
@attrs.frozen(repr=False)
class Endpoint:
    """A server to send requests to.

    Attributes:
        provider: the provider id, perhaps with a model: ``"ollama"``, ``"ollama:llama3.2"``, ``"ollama/llama3.2"``. An
            address alone (``"http://127.0.0.1:8000"``, or ``base_url=``) is enough too: Crosswalk then detects the provider
            from the server.
        model: the model for requests that name none, or ``None`` for the value of ``CROSSWALK_<PROVIDER>_MODEL``, else
            none.
        base_url: its address: ``http://127.0.0.1:8000`` or ``https://api.example.com/v1``, perhaps with a query, which
            is added to every request (never put secrets there: HTTP clients log it). ``None`` for the value of
            ``CROSSWALK_<PROVIDER>_BASE_URL``, else the provider's own variables
            (:class:`~crosswalk.plugin.Access`), else its default.
        api_key: the key, or ``None`` for the value of ``CROSSWALK_<PROVIDER>_API_KEY``, else the provider's own variables,
            else none.
        headers: more headers for every request, such as an organisation or another form of credentials. Their
            values are treated as secrets.
        takes_media: whether the model accepts images, sounds and files. If not, each one in the conversation is
            replaced by a text that names it, so that the conversation can continue there.
        model_class: the model or the class of models whose rules hold here, for a deployment with a name of
            its own, or ``None`` to look it up by the model's name. See the page "Models".

    Raises:
        ConfigurationError: a credential or a header that HTTP cannot carry, a model that is not text, a model or an address
            that is named twice, or neither a provider nor an address.
    """

    provider: str = DISCOVERED
    model: str | None = attrs.field(default=None, kw_only=True, validator=_check_model)
    base_url: str | None = attrs.field(default=None, kw_only=True)
    api_key: Secret | None = attrs.field(default=None, kw_only=True, converter=_as_secret)
    headers: Mapping[str, Secret] = attrs.field(factory=dict, kw_only=True, converter=_as_headers, hash=False)
    takes_media: bool = attrs.field(default=True, kw_only=True, converter=bool)
    model_class: str | None = attrs.field(default=None, kw_only=True, validator=_check_model)

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.provider, str):
            raise ConfigurationError(
                f"provider must be a text, not {type(self.provider).__name__}", key="provider"
            )
        if "://" in self.provider:
            self._set_once("base_url", self.provider)
            object.__setattr__(self, "provider", DISCOVERED)
        elif match := _PROVIDER_AND_MODEL.fullmatch(self.provider):
            self._set_once("model", match[2])
            object.__setattr__(self, "provider", match[1])
        elif self.provider == DISCOVERED and self.base_url is None:
            raise ConfigurationError("an endpoint needs a provider or base_url=", key="provider")

    def _set_once(self, name: str, value: str) -> None:
        if getattr(self, name) is not None:
            raise ConfigurationError(f"{name} is given twice: in the first argument and as {name}=", key=name)
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return summary(
            "Endpoint",
            [
                ("provider", self.provider),
                ("model", self.model),
                ("base_url", None if self.base_url is None else shown_url(self.base_url)),
            ],
        )


@brief
@attrs.frozen(repr=False)
class Route:
    """An endpoint with all that is needed to send it requests.

    Attributes:
        endpoint: the user's endpoint.
        mapper: the provider, resolved.
        base_url: the address of the server.
        headers: the headers of every request, the key among them, values as they go out.
        host: name and port, for messages and spans.
        server: a name for its address and credentials. What a server keeps or seals is only for the server of this name.
        redact: removes the values of the headers from a text.
        sign: signs each request, or ``None`` if requests are not signed.
    """

    endpoint: Endpoint
    mapper: Mapper
    base_url: str
    headers: Mapping[str, str]
    host: tuple[str, int | None]
    sign: Sign | None = None
    redact: Redaction = attrs.field(init=False)
    server: str = attrs.field(init=False)

    @redact.default
    def _redaction(self) -> Redaction:
        return Redaction(self.headers.values())

    @server.default
    def _server(self) -> str:
        return sha256(repr((self.base_url, sorted(self.headers.items()))).encode()).hexdigest()[:32]

    @property
    def provider(self) -> str:
        """The provider id."""
        return self.endpoint.provider

    def __repr__(self) -> str:
        return f"Route({self.endpoint!r})"


def resolve(endpoint: Endpoint, mapper: Mapper, environ: Mapping[str, str] | None = None) -> Route:
    """Return everything that is needed to send requests to *endpoint*.

    Args:
        endpoint: the user's endpoint.
        mapper: its provider.
        environ: the environment, or ``None`` for the process's own.

    Raises:
        ConfigurationError: the server's address is missing, its URL is invalid or holds credentials, or a service on
            the internet has no key.
    """
    environment = os.environ if environ is None else environ
    access = mapper.info.access
    prefix = _prefix(endpoint.provider)
    model = endpoint.model or environment.get(f"{prefix}_MODEL", "").strip() or None
    if model != endpoint.model:
        endpoint = attrs.evolve(endpoint, model=model)
    base_url = _base_url(endpoint, access, environment)
    parts = urlsplit(base_url)
    key = endpoint.api_key or _from(
        environment, (f"{prefix}_API_KEY", *(access.api_key_variables if access else ()))
    )
    headers = {name: value.reveal() for name, value in endpoint.headers.items()}
    if key is not None:
        header, scheme = (
            (access.api_key_header, access.api_key_scheme) if access else ("Authorization", "Bearer")
        )
        headers = {header: f"{scheme} {key.reveal()}" if scheme else key.reveal(), **headers}
    elif access is not None and base_url == access.base_url and parts.scheme == "https" and not headers:
        variables = " or ".join((f"{prefix}_API_KEY", *access.api_key_variables))
        raise ConfigurationError(f"{endpoint.provider}: no API key; set {variables}", key="api_key")
    sign = None
    if access is not None and access.signer is not None and "authorization" not in map(str.lower, headers):
        sign = access.signer(base_url)
    return Route(endpoint, mapper, base_url, headers, (parts.hostname or "", parts.port), sign)


def base_url_variables(provider: str, access: Access | None) -> tuple[str, ...]:
    """The environment variables that may hold the address of *provider*'s server, by precedence.

    Args:
        provider: the provider id.
        access: the plugin's description of its server, or ``None`` if it has none.
    """
    return (f"{_prefix(provider)}_BASE_URL", *(access.base_url_variables if access else ()))


def _prefix(provider: str) -> str:
    return "CROSSWALK_" + "".join(c if c.isalnum() else "_" for c in provider.upper())


def _from(environ: Mapping[str, str], variables: tuple[str, ...]) -> Secret | None:
    for variable in variables:
        value = environ.get(variable, "").strip()
        if value:
            try:
                return Secret(value)
            except ConfigurationError as error:
                raise ConfigurationError(f"{variable}: {error}", key=variable, source="environment") from None
    return None


def _base_url(endpoint: Endpoint, access: Access | None, environ: Mapping[str, str]) -> str:
    source, base_url = "base_url", endpoint.base_url
    if base_url is None:
        variables = base_url_variables(endpoint.provider, access)
        for source in variables:
            base_url = environ.get(source, "").strip()
            if base_url:
                break
        else:
            if access is None:
                raise ConfigurationError(
                    f"{endpoint.provider}: no default address; pass base_url= or set {variables[0]}",
                    key="base_url",
                )
            return access.base_url if access.locate is None else access.locate()
    return _checked(_with_scheme(base_url, access), f"{endpoint.provider}: {source}")


def _with_scheme(url: str, access: Access | None) -> str:
    """Complete *url*, which may be a host alone, as in ``OLLAMA_HOST``. The default port is that of *access*."""
    if "://" in url or url.startswith("/"):
        return url
    host, _, path = url.partition("/")
    name, colon, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
    if not colon:
        name, port = host, ""
    default_port = urlsplit(access.base_url).port if access is not None else None
    name = "127.0.0.1" if name in ("", "0.0.0.0") else name
    port = port or ("" if default_port is None else str(default_port))
    return "http://" + name + (f":{port}" if port else "") + (f"/{path}" if path else "")


def _checked(url: str, source: str) -> str:
    """Check *url* and return it. An error does not quote it: it may hold credentials."""
    problem: str | None = None
    try:
        parts = urlsplit(url)
        port_is_fine = parts.port is None or parts.port > 0
    except ValueError:
        problem = "is not a URL"
    else:
        if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_fine:
            problem = "must be like http://host:port or https://host/path"
        elif parts.username is not None or parts.password is not None:
            problem = "must not hold credentials; give them as api_key= or headers="
        elif not _is_header_text(url) or " " in url:
            problem = "must be printable ASCII"
    if problem is not None:
        raise ConfigurationError(f"{source} {problem}", key="base_url")
    return url


@lru_cache(maxsize=256)
def join_url(base_url: str, path: str) -> str:
    """Return the URL of *path* below *base_url*, with both queries.

    Segments that end the base URL and also begin the path, as in ``…/v1`` and ``/v1/chat``, appear once.
    """
    base, _, base_query = base_url.partition("?")
    path, _, query = path.partition("?")
    scheme, _, remainder = base.rstrip("/").partition("://")
    host, *base_segments = remainder.split("/")
    path_segments = path.strip("/").split("/")
    shared_count = next(
        n
        for n in range(min(len(base_segments), len(path_segments)), -1, -1)
        if base_segments[len(base_segments) - n :] == path_segments[:n]
    )
    url = f"{scheme}://{'/'.join([host, *base_segments, *path_segments[shared_count:]])}"
    queries = "&".join(q for q in (query, base_query) if q)
    return f"{url}?{queries}" if queries else url


def shown_url(url: str) -> str:
    """Return *url* without its possible secrets: user, password and query."""
    head, _, _ = url.partition("?")
    scheme, separator, remainder = head.rpartition("://")
    host, slash, path = remainder.partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}"


def where(host: tuple[str, int | None]) -> str:
    """The name and the port of a server, for people."""
    name, port = host
    return name if port is None else f"{name}:{port}"


def attributes(route: Route) -> dict[str, Any]:
    """Describe *route* in OpenTelemetry's terms."""
    host, port = route.host
    return {"server.address": host, **({} if port is None else {"server.port": port})}
