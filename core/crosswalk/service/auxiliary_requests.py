"""Requests besides chat: a server's models, embeddings, token counts, and which provider it is."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

import attrs
import orjson

from crosswalk.errors import ConfigurationError, CrosswalkError, ErrorInfo, ProviderError, ServerError
from crosswalk.mapping.failures import classify
from crosswalk.plugin.registry import Registry
from crosswalk.request import ChatRequest, HTTPRequest, UnsupportedRequestError
from crosswalk.service.building import build
from crosswalk.service.call import Attempt
from crosswalk.service.endpoint import DISCOVERED, Route, check_header_names, join_url, resolve, where
from crosswalk.service.http import CallWait
from crosswalk.service.setup import HEADERS, Prepared, Setup
from crosswalk.text import brief, clean_message, summary
from crosswalk.types.json import dump_json
from crosswalk.types.values import altered
from crosswalk.wire.framing import MIB

# ---------------------------------------------------------------------- auxiliary requests
# Requests besides chat: a server's models, embeddings, token counts. One request, one body.


_LONGEST = 64 * MIB
_SHOWN_BYTES = 400
"""The number of bytes of an error that a message is made of."""
T = TypeVar("T")


@brief
@attrs.frozen(repr=False)
class PlainAnswer:
    """A server's answer that is not a model's.

    Attributes:
        status: the HTTP status.
        body: its bytes.
        retry_after: the number of seconds that it asks to wait, or ``None`` if it does not.
        content_type: the content type with its parameters, or empty without one.
    """

    status: int
    body: bytes
    retry_after: float | None = None
    content_type: str = ""

    def __repr__(self) -> str:
        return summary("PlainAnswer", [("status", self.status), ("body", len(self.body))])


@brief
@attrs.frozen(repr=False)
class Embeddings:
    """Texts as vectors.

    Attributes:
        vectors: one for each text, in their order.
        model: the model that was requested.
        prompt_tokens: the number of tokens in the texts, or ``None`` if the server does not count.
    """

    vectors: tuple[tuple[float, ...], ...]
    model: str
    prompt_tokens: int | None = None

    def __repr__(self) -> str:
        return summary("Embeddings", [("model", self.model), ("vectors", len(self.vectors))])


@attrs.frozen
class TokenCount:
    """The number of input tokens of a request.

    Attributes:
        tokens: their number.
        is_estimated: whether it is an estimate: one token for four characters, and none for media.
    """

    tokens: int
    is_estimated: bool = False


_PLAIN: Final = ChatRequest("")


class PlainCall:
    """The requests of one call that are not a model's: sent once, within the limits of the call, until it is ended.

    Args:
        setup: the state that all calls of the service share.
        wait: the waits of the call.
        deadline: the time until which it may wait, by the clock of *wait*, or ``None`` for no limit.
        request: what is asked for with an answer in the end, whose limits hold.
    """

    def __init__(
        self, setup: Setup, wait: CallWait, deadline: float | None, request: ChatRequest = _PLAIN
    ) -> None:
        self.setup = setup
        self._wait, self._deadline, self._request = wait, deadline, request

    @classmethod
    async def asked(cls, setup: Setup, ask: Callable[[PlainCall], Awaitable[T]]) -> T:
        """Return the result of *ask*, a call of its own, at servers that are all known.

        Raises:
            ProviderError: one cannot be reached, or is too slow. CrosswalkError: the service is closed.
        """
        wait = setup.new_wait()
        wait.begin()
        deadline = None if setup.timeouts.call is None else wait.now() + setup.timeouts.call
        call = cls(setup, wait, deadline)
        setup.calls.add(call)
        try:
            if setup.discovery is not None:
                call.setup = await setup.discovery.resolve(setup, wait, deadline, needs_model=False)
            return await ask(call)
        finally:
            setup.calls.discard(call)
            wait.end()

    async def end(self) -> None:
        """End it, by the service that is being closed."""
        if self._wait.is_here():
            self._wait.cancel()

    async def fetch(
        self,
        route: Route,
        method: str,
        path: str,
        body: Mapping[str, Any] | bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> PlainAnswer:
        """Send *body*, JSON or bytes, to *path* at *route* and return the server's answer.

        Raises:
            ProviderError: it cannot be reached, or is too slow. CrosswalkError: the service is closed.
        """
        content = body if isinstance(body, bytes) else b"" if body is None else dump_json(dict(body))
        http_request = HTTPRequest(path, {}, method)
        check_header_names(headers or {})
        sent_headers = {**HEADERS, **(headers or {}), **route.headers}
        prepared = Prepared(http_request, content, join_url(route.base_url, path), sent_headers)
        attempt = Attempt(self.setup, route, self._request, self._wait, self._deadline)
        received_body = bytearray()
        try:
            failure = await attempt.open(prepared)
            failure = None if "status" in attempt.extra else failure  # a redirect is an answer as well
            while failure is None and len(received_body) <= _LONGEST:
                chunk, failure = await attempt.chunk()
                if chunk is None and failure is None:
                    kind = attempt.headers.get("content-type", "")
                    return PlainAnswer(
                        attempt.extra["status"], bytes(received_body), attempt.retry_after, kind
                    )
                received_body += chunk or b""
        finally:
            await attempt.close()
        if failure is None:
            raise ServerError(f"{route.provider}: more than {_LONGEST} bytes at {path}")
        if failure.cancelled:
            raise CrosswalkError("the service was closed before the answer was complete")
        raise failure.error or ProviderError.of_kind(failure.info.kind)(
            failure.info.message, info=failure.info
        )


def json_of(answer: PlainAnswer, route: Route, path: str) -> dict[str, Any]:
    """Return the JSON object in *answer*.

    Raises:
        ProviderError: it is an error, or something else.
    """
    if answer.status >= 300:
        text = answer.body[:_SHOWN_BYTES].decode(errors="replace")
        text += "…" * (len(answer.body) > _SHOWN_BYTES)  # so that the beginning of a key is known as such
        text = clean_message(route.redact(text), 200)
        kind = classify(answer.status, text)
        info = ErrorInfo(
            kind, f"{route.provider}: HTTP {answer.status} at {path}: {text}", status=answer.status
        )
        raise ProviderError.of_kind(kind)(info.message, info=info)
    try:
        value = orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise ServerError(f"{route.provider}: the answer at {path} is not a JSON object")
    return value


_MODEL_PATHS = (
    (re.compile(r"(.*)/chat/completions"), r"\1/models"),
    (re.compile(r"(.*)/(messages|responses)"), r"\1/models"),
    (re.compile(r"(.*)/api/chat"), r"\1/api/tags"),
    (re.compile(r"(/v\d\w*)/models/[^/]+:\w+"), r"\1/models"),
    (re.compile(r"/v2/chat"), "/v1/models"),
)
"""The path of a server's list of models, by the path at which it answers."""
_EMBEDDING_PATHS = (
    (re.compile(r"(.*)/chat/completions"), r"\1/embeddings"),
    (re.compile(r"(.*)/responses"), r"\1/embeddings"),
    (re.compile(r"(.*)/api/chat"), r"\1/api/embed"),
)
_COUNT_PATHS = (
    (re.compile(r"(.*/v1/messages)"), r"\1/count_tokens"),
    (re.compile(r"(.*/v1/responses)"), r"\1/input_tokens"),
)


def _path(route: Route, paths: Iterable[tuple[re.Pattern[str], str]], purpose: str) -> str:
    """Return the one of *paths* that belongs to the path at which *route* answers.

    Raises:
        UnsupportedRequestError: none of them does.
    """
    http_request, _ = build(ChatRequest("x"), route.mapper, "drop", model="m")
    path = http_request.path.partition("?")[0]
    for pattern, path_template in paths:
        if match := pattern.fullmatch(path):
            return match.expand(path_template)
    raise UnsupportedRequestError(f"Crosswalk knows no way to {purpose} there", provider=route.provider)


def names_of_models(model_list: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the models in a server's list, as requests name them."""
    models = model_list.get("data", model_list.get("models"))
    if not isinstance(models, list):
        return ()
    names = (model.get("id") or model.get("name") for model in models if isinstance(model, dict))
    return tuple(name.removeprefix("models/") for name in names if isinstance(name, str))


async def models(call: PlainCall) -> tuple[str, ...]:
    """Return the models of the first endpoint. See :meth:`LLMService.models`."""
    route = call.setup.routes[0]
    path = _path(route, _MODEL_PATHS, "list models")
    http_request, _ = build(ChatRequest("x"), route.mapper, "drop", model="m")
    answer = await call.fetch(route, "GET", path, headers=http_request.headers)
    return names_of_models(json_of(answer, route, path))


async def embed(texts: str | Iterable[str], model: str | None, call: PlainCall) -> Embeddings:
    """Return *texts* as vectors. See :meth:`LLMService.embed`."""
    route = call.setup.routes[0]
    path = _path(route, _EMBEDDING_PATHS, "embed texts")
    name = model or route.endpoint.model
    if name is None:
        raise UnsupportedRequestError("no model is named", provider=route.provider, options=["model"])
    asked_texts = [texts] if isinstance(texts, str) else list(texts)
    body = {"model": name, "input": asked_texts}
    answer_body = json_of(await call.fetch(route, "POST", path, body), route, path)
    try:
        if "data" in answer_body:
            items = sorted(answer_body["data"], key=lambda item: item.get("index", 0))
            rows = [item["embedding"] for item in items]
            count = (answer_body.get("usage") or {}).get("prompt_tokens")
        else:
            rows, count = answer_body["embeddings"], answer_body.get("prompt_eval_count")
        vectors = tuple(tuple(map(float, row)) for row in rows)
    except (AttributeError, KeyError, TypeError, ValueError):
        vectors = ()
    if len(vectors) != len(asked_texts):
        raise ServerError(f"{route.provider}: the answer at {path} holds no embeddings of these texts")
    return Embeddings(vectors, name, count if type(count) is int else None)


async def count_tokens(request: ChatRequest, call: PlainCall) -> TokenCount:
    """Return the number of tokens of *request*. See :meth:`LLMService.count_tokens`."""
    route = call.setup.routes[0]
    http_request, _ = build(altered(request, stream=False), route.mapper, "drop", model=route.endpoint.model)
    try:
        path = _path(route, _COUNT_PATHS, "count tokens")
    except UnsupportedRequestError:
        return TokenCount(estimated_tokens(http_request.body), is_estimated=True)
    body = {key: value for key, value in http_request.body.items() if key not in _ANSWER_OPTIONS}
    count_body = json_of(await call.fetch(route, "POST", path, body, http_request.headers), route, path)
    if type(count_body.get("input_tokens")) is not int:
        raise ServerError(f"{route.provider}: the answer at {path} holds no count")
    return TokenCount(count_body["input_tokens"])


_ANSWER_OPTIONS = {
    *("max_tokens", "max_output_tokens", "stream", "temperature", "top_p", "top_k"),
    *("stop", "stop_sequences", "store", "include", "seed"),
}
"""Options of an answer, which a count does not take."""
_CHARACTERS_PER_TOKEN = 4


def estimated_tokens(value: Any) -> int:
    """Estimate one token for each four characters of the texts in *value*, JSON or a text."""
    return -(-_characters(value) // _CHARACTERS_PER_TOKEN)


def _characters(value: Any) -> int:
    match value:
        case str():
            return 0 if value.startswith("data:") else len(value)
        case Mapping():
            counted_fields = {
                key: one for key, one in value.items() if key not in ("data", "role", "type", "model")
            }
            return sum(map(_characters, counted_fields.values()))
        case list() | tuple():
            return sum(map(_characters, value))
    return 0


# ------------------------------------------------------------------------------- discovery
# Detects the provider of a server that is given by its address alone.


_PROVIDERS_BY_OWNER = {
    "vllm": "vllm",
    "sglang": "sglang",
    "llamacpp": "llamacpp",
    "library": "ollama",
    "organization_owner": "lmstudio",
}
"""The shipped provider by the owner of the models of ``/v1/models``, for the servers that set it. Others say theirs in
``ProviderInfo.names``.
"""


class ServerDiscovery:
    """Detects each server's provider with the first call, by ``/api/tags`` and ``/v1/models``, and remembers it.

    If a server lists a single model, it is the model of requests that name none.

    Args:
        registry: the registry of providers.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._found_servers: dict[str, tuple[str, tuple[str, ...]]] = {}

    async def resolve(
        self,
        setup: Setup,
        wait: CallWait,
        deadline: float | None,
        request: ChatRequest = _PLAIN,
        *,
        needs_model: bool,
    ) -> Setup:
        """Return *setup* with the routes of all servers.

        Args:
            setup: the state that all calls of a service share.
            wait: the waits of the call that needs them.
            deadline: the time until which it may wait, or ``None`` for no limit.
            request: its request, whose limits hold.
            needs_model: whether the request names no model.

        Raises:
            ConfigurationError: a server's provider cannot be detected, or it lists several models and none is named.
            ProviderError: a server cannot be reached.
        """
        call = PlainCall(setup, wait, deadline, request)
        routes = [
            await self._resolved(call, route, needs_model) if route.provider == DISCOVERED else route
            for route in setup.routes
        ]
        return attrs.evolve(setup, routes=tuple(routes), discovery=None)

    async def _resolved(self, call: PlainCall, route: Route, needs_model: bool) -> Route:
        found_server = self._found_servers.get(route.base_url)
        if found_server is None:
            found_server = await _asked(call, route, self._registry)
            self._found_servers[route.base_url] = found_server
        provider, models = found_server
        model = route.endpoint.model or (models[0] if len(models) == 1 else None)
        if model is None and needs_model:
            raise ConfigurationError(
                f"{where(route.host)} has several models; name one: {', '.join(models)}", key="model"
            )
        resolved_route = resolve(
            attrs.evolve(route.endpoint, provider=provider, model=model), self._registry.mapper(provider)
        )
        headers = {**resolved_route.headers, **route.headers}
        return attrs.evolve(resolved_route, headers=headers, secrets=route.secrets)


async def _asked(call: PlainCall, route: Route, registry: Registry) -> tuple[str, tuple[str, ...]]:
    """Return the provider of the server at *route*, and its models."""
    for path in ("/v1/models", "/api/tags"):
        answer = await call.fetch(route, "GET", path)
        if answer.status == 404:
            continue
        model_list = json_of(answer, route, path)
        if isinstance(model_list.get("models"), list) and path == "/api/tags":
            return "ollama", names_of_models(model_list)
        if isinstance(model_list.get("data"), list):
            return _owner(model_list, registry), names_of_models(model_list)
    raise ConfigurationError(
        f"{where(route.host)} does not say what it is, at /v1/models or /api/tags; name the provider, "
        "such as 'vllm' or 'ollama'",
        key="provider",
    )


def _owner(model_list: Mapping[str, Any], registry: Registry) -> str:
    """Return the provider with such a list of models, or ``openai`` for any other that speaks its dialect."""
    values = [model.get("owned_by") for model in model_list["data"] if isinstance(model, dict)]
    owners = dict.fromkeys(value for value in values if isinstance(value, str))
    providers = (registry.named("owners", owner) or _PROVIDERS_BY_OWNER.get(owner) for owner in owners)
    return next(filter(None, providers), "openai")
