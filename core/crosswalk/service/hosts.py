"""The provider and the operation of a request, as far as its URL shows."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import attrs

from crosswalk.errors import PluginError
from crosswalk.plugin.registry import Registry
from crosswalk.records import look_up
from crosswalk.service.endpoint import base_url_variables

# ------------------------------------------------------------------------------ operations
# The operation of a request by its path, and the token counts of operations that return no chat answer.


_COMPLETION_PATHS: Final = (
    "/completions",
    "/completion",
    "/complete",
    "/infill",
    "/generate",
    "/generate_stream",
)
_OTHER_OPERATIONS: Final = {
    r"/deployments/(?P<model>[^/]+)/embeddings": ("embeddings", "openai"),
    r"/deployments/(?P<model>[^/]+)/images/(generations|edits|variations)": ("image_generation", "openai"),
    r"/deployments/(?P<model>[^/]+)/audio/transcriptions": ("transcription", "openai"),
    r"/deployments/(?P<model>[^/]+)/audio/translations": ("translation", "openai"),
    r"/deployments/(?P<model>[^/]+)/audio/speech": ("speech", "openai"),
    r"/embeddings": ("embeddings", "openai"),
    r"/api/embed": ("embeddings", "ollama"),
    r"/v\d+/embed": ("embeddings", "cohere"),
    r"/models/(?P<model>[^/:]+):(embedContent|batchEmbedContents)": ("embeddings", "gemini"),
    r"/v\d+/rerank": ("rerank", "cohere"),
    r"/moderations": ("moderation", "openai"),
    r"/images/(generations|edits|variations)": ("image_generation", "openai"),
    r"/audio/transcriptions": ("transcription", "openai"),
    r"/audio/translations": ("translation", "openai"),
    r"/audio/speech": ("speech", "openai"),
}
"""Endpoints that return no chat answer: the operation and the provider. Azure has the model in the path. The conventions
name only ``embeddings``.
"""
_PATTERNS: Final = {
    re.compile(f"(?:/.*)?{path}/?"): operation for path, operation in _OTHER_OPERATIONS.items()
}
_STORED_RESPONSE_URL: Final = re.compile(r"(.*/responses)/resp_[^/]+")
_COUNT_PATHS: Final = {
    "input": (
        ("usage", "prompt_tokens"),
        ("usage", "input_tokens"),
        ("prompt_eval_count",),
        ("usageMetadata", "promptTokenCount"),
        ("meta", "billed_units", "input_tokens"),
    ),
    "output": (
        ("usage", "completion_tokens"),
        ("usage", "output_tokens"),
        ("meta", "billed_units", "output_tokens"),
    ),
}
"""The paths of token counts: OpenAI's two forms, Ollama's, Gemini's and Cohere's."""


@attrs.frozen
class OtherOperation:
    """An operation that returns no chat answer: its name, its provider, and the model in the path."""

    name: str
    provider: str
    model: str | None


def other_operation(path: str) -> OtherOperation | None:
    """Return the operation at *path*, or ``None`` if it returns chat answers."""
    for pattern, (name, provider) in _PATTERNS.items():
        if (pattern_match := pattern.fullmatch(path)) is not None:
            return OtherOperation(name, provider, pattern_match.groupdict().get("model"))
    return None


def operation_of(path: str) -> str:
    """Return OpenTelemetry's name for the chat operation at *path*."""
    path = path.rstrip("/")
    if path.endswith((":generateContent", ":streamGenerateContent")):
        return "generate_content"
    is_text = path.endswith(_COMPLETION_PATHS) and not path.endswith("/chat/completions")
    return "text_completion" if is_text else "chat"


def fetched_from(url: str) -> str | None:
    """Return the address that created the stored response at *url*, or ``None`` if *url* is not a stored response."""
    pattern_match = _STORED_RESPONSE_URL.fullmatch(url.partition("?")[0].partition("#")[0])
    return None if pattern_match is None else pattern_match[1]


_DETAIL_KINDS: Final = {
    **dict.fromkeys(("input_tokens_details", "input_token_details", "prompt_tokens_details"), "input"),
    **dict.fromkeys(("output_tokens_details", "output_token_details", "completion_tokens_details"), "output"),
}
_MODALITIES: Final = ("text", "audio", "image")


def tokens_of(body: Mapping[str, Any]) -> dict[str, int]:
    """Return the token counts in the JSON *body* of an answer.

    They are called ``input`` and ``output``, and those of a modality ``text.input``, ``image.output`` and so on.
    """
    counts: dict[str, int] = {}
    for kind, paths in _COUNT_PATHS.items():
        sent_counts = [count for path in paths if type(count := look_up(body, path)) is int]
        if sent_counts:
            counts[kind] = sent_counts[0]
    usage = body.get("usage")
    for name, details in usage.items() if isinstance(usage, dict) else ():
        if name in _DETAIL_KINDS and isinstance(details, dict):
            for modality in _MODALITIES:
                if type(count := details.get(f"{modality}_tokens")) is int:
                    counts[f"{modality}.{_DETAIL_KINDS[name]}"] = count
    return counts


# ----------------------------------------------------------------------------------- hosts
# The provider of a request, as far as its URL shows.


_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0"})
_PORTS: Final = {"http": 80, "https": 443}
_VERSION: Final = re.compile(r"/v\d\w*(?=/)")
_CACHE_SIZE: Final = 1024
_CONTENT_FIELDS: Final = frozenset(
    {"messages", "input", "prompt", "contents", "inputs", "message", "inputText"}
)
"""Fields that hold the content of a model request."""
_CLOUD_PATHS: Final = {
    "anthropic": (
        "/publishers/anthropic/models/{model}:rawPredict",
        "/publishers/anthropic/models/{model}:streamRawPredict",
    ),
    "mistral": (
        "/publishers/mistralai/models/{model}:rawPredict",
        "/publishers/mistralai/models/{model}:streamRawPredict",
    ),
    "bedrock": ("/model/{model}/converse", "/model/{model}/converse-stream"),
    "gemini": ("/endpoints/{model}:generateContent", "/endpoints/{model}:streamGenerateContent"),
    "cloudflare": ("/workers-ai/{model}",),
    "openai": ("/deployments/{model}/chat/completions", "/deployments/{model}/completions"),
}
"""Paths of a provider's dialect on cloud platforms."""
_MORE_PATHS: Final = {
    "mistral": ("/v1/agents/completions",),
    "openai": ("/serving-endpoints/{model}/invocations", "/endpoints/{model}/invocations"),
    "tgi": ("/endpoints/{model}/invocations",),
}
"""More paths of a provider's dialect: of agents, and of Databricks and SageMaker, which also serve other models."""
_PLATFORMS: Final = tuple(
    (re.compile(host), re.compile(path))
    for host, path in (
        (
            r"(.+-)?aiplatform\.googleapis\.com",
            r".*:(predict|rawPredict|streamRawPredict|serverStreamingPredict)",
        ),
        (r"runtime\.sagemaker\..+", r"/endpoints/[^/]+/(async-)?invocations(-response-stream)?"),
        (r".+\.inference\.ml\.azure\.com", r"/score"),
        (r".+\.ml\.cloud\.ibm\.com", r"/ml/v1/.*text/.+"),
        (r"api\.replicate\.com", r"/v1/(.+/)?predictions"),
        (r".+\.snowflakecomputing\.com", r"/api/v2/cortex/.+"),
        (r".+\.(databricks\.com|azuredatabricks\.net)", r"/serving-endpoints/.+/invocations"),
    )
)
"""Hosts and paths of models on platforms. A plugin may read the answers or not."""
_ANY_VENDOR_PATH: Final = re.compile(r"(?:/.*)?/model/(?P<model>[^/]+)/(invoke|invoke-with-response-stream)")
"""Paths of Bedrock whose answers have the dialect of the model's vendor."""


@attrs.frozen
class Site:
    """The target of a request.

    Attributes:
        host: the name of the server.
        port: the port of the server.
        providers: the possible providers, the likeliest first, or empty if no plugin reads its answers.
        is_sure: whether the provider is one of them. A public name belongs to its owner; a local port can be any server.
        model: the model in the path, or ``None``.
        is_known: whether the host belongs to a provider or was named by the user.
        is_exact: whether the path is exactly one that a plugin reads, and does not only end like one.
        operation: the operation, with OpenTelemetry's name if it has one, such as ``chat`` or ``embeddings``.
        gives_answer: whether it returns a chat answer, and not embeddings, an image or the like.
        wrapper: the provider whose framing has the answer's events in it, or ``None`` if they are those of *providers*.
        is_platform: whether it is the address of a model on a platform such as SageMaker.
    """

    host: str
    port: int
    providers: tuple[str, ...]
    is_sure: bool
    model: str | None = None
    is_known: bool = True
    is_exact: bool = True
    operation: str = "chat"
    gives_answer: bool = True
    wrapper: str | None = None
    is_platform: bool = False

    def fits(self, body: Mapping[str, Any]) -> bool:
        """Whether a request with the JSON *body* is a model request with a readable answer."""
        if not self.providers:
            return False
        if self.is_known:
            return True
        model = body.get("model")
        has_model = self.model is not None or (isinstance(model, str) and model != "")
        return has_model and (self.is_exact or not _CONTENT_FIELDS.isdisjoint(body))

    def why_not(self, body: Mapping[str, Any]) -> str | None:
        """Return why a request with the JSON *body*, which does not fit, is not watched.

        Returns ``None`` if it does not look like a model request.
        """
        if self.providers and self.is_exact:
            return f"it names no model; include=['{self.host}:{self.port}'] watches it"
        if self.is_platform or (
            not self.providers and not body.keys().isdisjoint({"model", *_CONTENT_FIELDS})
        ):
            return "no plugin reads its answer"
        return None


@attrs.frozen
class _Provider:
    name: str
    servers: tuple[_Server, ...]
    is_original: bool
    own: tuple[re.Pattern[str], ...]
    exact: tuple[re.Pattern[str], ...]
    spoken: tuple[re.Pattern[str], ...]


@attrs.frozen
class _Server:
    host: re.Pattern[str]
    port: int
    is_loopback: bool
    is_default: bool


class Hosts:
    """The servers of all providers of a registry.

    These are their default addresses, the addresses in their environment variables, and the user's. Providers that are
    registered later are included.

    Args:
        registry: the registry.
        providers: maps ``host`` or ``host:port``, with ``*`` as a wildcard, to the provider id of that server.
        include: further hosts to watch, of any provider.
        exclude: hosts not to watch.
        environ: the environment, or ``None`` for the process's own.
        broken: called with the error of each plugin that cannot be used.

    Raises:
        PluginError: a provider in *providers* cannot be used.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        providers: Mapping[str, str] | None = None,
        include: Iterable[str] = (),
        exclude: Iterable[str] = (),
        environ: Mapping[str, str] | None = None,
        broken: Callable[[PluginError], Any] = lambda error: None,
    ) -> None:
        self._registry = registry
        self._named = dict(providers or {})
        self._included_hosts = tuple(include)
        self._excluded_hosts = tuple(exclude)
        self._environ = os.environ if environ is None else environ
        self._on_broken = broken
        self._names: list[str] = []
        self._providers: tuple[_Provider, ...] = ()
        for name in self._named.values():
            registry.mapper(name)
        self._cached_look_up = lru_cache(_CACHE_SIZE)(self._look_up)
        self._refresh()

    def site(self, url: str) -> Site | None:
        """Return the site of a request to *url*, or ``None`` if it is not watched."""
        if self._registry.names() != self._names:
            self._refresh()
        return self._cached_look_up(url.partition("?")[0].partition("#")[0])

    def fetched(self, url: str) -> Site | None:
        """Return the site of a stored response that a ``GET`` of *url* fetches, or ``None`` if it is something else."""
        creation_url = fetched_from(url)
        site = None if creation_url is None else self.site(creation_url)
        return None if site is None else attrs.evolve(site, operation="fetch_response", is_known=True)

    def _refresh(self) -> None:
        self._names = self._registry.names()
        self._providers = tuple(self._describe_providers())
        self._cached_look_up.cache_clear()

    def _describe_providers(self) -> Iterator[_Provider]:
        for name in self._names:
            try:
                mapper = self._registry.mapper(name)
                own_paths = mapper.info.endpoints
                spoken_paths = tuple(path for path in mapper.endpoints() if path not in own_paths)
            except PluginError as error:
                self._on_broken(error)
                continue
            access = mapper.info.access
            addresses = ["" if access is None else access.base_url]
            base_path = "" if access is None else urlsplit(access.base_url).path.rstrip("/")
            addresses += [
                self._environ.get(variable, "").strip() for variable in base_url_variables(name, access)
            ]
            all_servers = (
                _server(address, addresses[0], index == 0) for index, address in enumerate(addresses)
            )
            servers = tuple(server for server in all_servers if server is not None)
            yield _Provider(
                name,
                servers,
                mapper.info.is_original,
                _patterns((*_MORE_PATHS.get(name, ()), *own_paths), base_path),
                tuple(map(re.compile, map(_exact_pattern, (*_CLOUD_PATHS.get(name, ()), *own_paths)))),
                _patterns(spoken_paths, base_path),
            )

    def _look_up(self, address: str) -> Site | None:
        try:
            parts = urlsplit(address)
            host, port = (parts.hostname or ""), parts.port or _PORTS.get(parts.scheme, 0)
        except ValueError:
            return None
        if not host or not port or _matches_any(host, port, self._excluded_hosts):
            return None
        site = self._site(host, port, parts.path)
        if site is not None and site.gives_answer:
            site = attrs.evolve(site, operation=operation_of(parts.path))
        if any(
            host_pattern.fullmatch(host) and path_pattern.fullmatch(parts.path)
            for host_pattern, path_pattern in _PLATFORMS
        ):
            site = attrs.evolve(site or _unread_site(host, port), is_platform=True)
        return site

    def _site(self, host: str, port: int, path: str) -> Site | None:
        operation = other_operation(path)
        for pattern, name in self._named.items():
            if _matches_any(host, port, (pattern,)):
                if operation is not None:
                    return _other_site(host, port, (name,), operation, is_sure=True)
                return self._site_of_named_provider(host, port, path, name)
        server_matches = [
            (server.is_default, one)
            for one in self._providers
            for server in one.servers
            if _is_at(server, host, port)
        ]
        if any(is_default for is_default, _ in server_matches) and host not in _LOOPBACK:
            server_matches = [
                each for each in server_matches if each[0]
            ]  # ignore variables of others that point there
        candidates = list(
            dict.fromkeys(one for _, one in sorted(server_matches, key=lambda each: not each[0]))
        )
        if not server_matches and _matches_any(host, port, self._included_hosts):
            candidates = sorted(self._providers, key=lambda one: not one.is_original)
        is_sure = bool(server_matches) and host not in _LOOPBACK
        if operation is not None:
            names = tuple(one.name for one in candidates)
            return _other_site(
                host, port, names or self._originals(), operation, is_sure, is_known=bool(names)
            )
        matches = _all_matching(((one.name, one.own) for one in candidates), path) or _all_matching(
            ((one.name, one.spoken) for one in candidates), path
        )
        if not matches:
            return self._site_by_path(host, port, path) or (_unread_site(host, port) if is_sure else None)
        return Site(host, port, tuple(name for name, _ in matches), is_sure, _model(matches[0][1]))

    def _originals(self) -> tuple[str, ...]:
        return tuple(one.name for one in self._providers if one.is_original)

    def _site_by_path(self, host: str, port: int, path: str) -> Site | None:
        """Return the site at an unknown server with a path that a plugin reads, or ``None``."""
        ordered_providers = sorted(self._providers, key=lambda one: not one.is_original)
        if (match := _ANY_VENDOR_PATH.fullmatch(path)) is not None:
            wrapper = None if match[2] == "invoke" else "bedrock"
            return Site(host, port, self._originals(), False, _model(match), is_known=False, wrapper=wrapper)
        exact_matches = _all_matching(((one.name, one.exact) for one in ordered_providers), path)
        matches = exact_matches or _all_matching(((one.name, one.own) for one in ordered_providers), path)
        if not matches or path in ("", "/"):  # too general
            return None
        names = tuple(name for name, _ in matches)
        return Site(
            host, port, names, False, _model(matches[0][1]), is_known=False, is_exact=bool(exact_matches)
        )

    def _site_of_named_provider(self, host: str, port: int, path: str, name: str) -> Site | None:
        patterns = [
            pattern for one in self._providers if one.name == name for pattern in (*one.own, *one.spoken)
        ]
        match = _matching(patterns, path)
        if patterns and match is None:
            return None
        return Site(host, port, (name,), True, None if match is None else _model(match))


def _other_site(
    host: str,
    port: int,
    providers: tuple[str, ...],
    operation: OtherOperation,
    is_sure: bool,
    *,
    is_known: bool = True,
) -> Site:
    providers = tuple(sorted(providers, key=lambda name: name != operation.provider))
    return Site(
        host,
        port,
        providers,
        is_sure,
        operation.model,
        is_known,
        operation=operation.name,
        gives_answer=False,
    )


def _unread_site(host: str, port: int) -> Site:
    return Site(host, port, (), is_sure=False, is_exact=False)


def _server(address: str, default: str, is_default: bool) -> _Server | None:
    """Return the server at *address*.

    If that is only a host and a port, the default port is that of the *default* address.
    """
    if not address:
        return None
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        default_parts = urlsplit(default)
        port = (
            parts.port
            or _PORTS.get(parts.scheme)
            or default_parts.port
            or _PORTS.get(default_parts.scheme, 80)
        )
    except ValueError:
        return None
    host = parts.hostname
    if not host:
        return None
    pattern = re.sub(r"\\\{\w+\\\}", "[^.]+", re.escape(host))
    return _Server(re.compile(pattern, re.IGNORECASE), port, host in _LOOPBACK, is_default)


def _is_at(server: _Server, host: str, port: int) -> bool:
    if server.port != port:
        return False
    return host in _LOOPBACK if server.is_loopback else server.host.fullmatch(host) is not None


def _matches_any(host: str, port: int, host_patterns: Iterable[str]) -> bool:
    host_and_port = f"{host}:{port}"
    return any(
        fnmatchcase(host, one.lower()) or fnmatchcase(host_and_port, one.lower()) for one in host_patterns
    )


def _patterns(endpoints: Iterable[str], base: str) -> tuple[re.Pattern[str], ...]:
    """Return patterns for the *endpoints* with any prefix instead of *base*, the path of the default address."""
    return tuple(map(re.compile, (_pattern(path, base) for path in endpoints)))


def _pattern(path: str, base: str) -> str:
    tail = path.removeprefix(base) if base and path.startswith(f"{base}/") else path
    tail = tail[match.end() :] if (match := _VERSION.match(tail)) else tail
    if tail in ("", "/"):
        return "/?"
    return f"(?:/.*)?{_named(tail)}/?"


def _named(path: str) -> str:
    escaped = re.sub(r"\\\{(\w+)\\\}$", r"(?P<\1>.+?)", re.escape(path))  # the last may have slashes in it
    return re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+?)", escaped)


def _exact_pattern(path: str) -> str:
    """Return a pattern for the endpoint *path*, in any version and with any prefix. A single segment matches nothing."""
    match = _VERSION.match(path)
    tail = path[match.end() :] if match else path
    if match is None and path.strip("/").count("/") == 0:
        return r"(?!)"
    version = r"/v\d[\w.]*(?:/openai)?" if match and tail.count("/") == 1 and ":" not in tail else ""
    return f"(?:/.*)?{version}{_named(tail)}/?"


def _matching(patterns: Iterable[re.Pattern[str]], path: str) -> re.Match[str] | None:
    return next((match for one in patterns if (match := one.fullmatch(path))), None)


def _all_matching(
    patterns: Iterable[tuple[str, Iterable[re.Pattern[str]]]], path: str
) -> list[tuple[str, re.Match[str]]]:
    return [
        (name, match)
        for name, own_patterns in patterns
        if (match := _matching(own_patterns, path)) is not None
    ]


def _model(match: re.Match[str]) -> str | None:
    """Return the model in a path, whatever its endpoint calls it."""
    return next((unquote(value) for value in match.groupdict().values()), None)
