"""Requests besides chat, answered or passed on as they came: token counts, embeddings, audio, images and others."""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from functools import cache, partial
from operator import is_
from typing import Any, Final, TypeVar
from urllib.parse import urlencode, urlsplit
from uuid import uuid4

import attrs
import orjson
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route as Page

from crosswalk import normalize
from crosswalk.convert import WireForm
from crosswalk.errors import CrosswalkError, ErrorInfo, ErrorKind, ProviderError
from crosswalk.formats.reading import VERSION, ClientRequest
from crosswalk.service import ChatRequest, LLMService, PlainAnswer, build_http_request
from crosswalk.service.endpoint import is_unstarted
from crosswalk.types import UsageInfo, dump_json, load_json
from crosswalk_serve.config import Target
from crosswalk_serve.gateway import (
    Exchange,
    Gateway,
    log_failure,
    refuse_lost_items,
    request_id,
)
from crosswalk_serve.http import (
    LEFT,
    BadRequestError,
    Interruptible,
    Refusal,
    cost_headers,
    dumped,
    error_response,
    for_client,
    form_of,
    header_of,
    id_headers,
    is_spent,
    loaded,
)
from crosswalk_serve.requests import (
    Incoming,
    Payload,
    Seals,
    check_head,
    load_body,
    read_body,
    read_payload,
    read_request,
    repetition_headers,
)
from crosswalk_serve.routing import Caller, ModelRoute, prompt_tokens

# ---------------------------------------------------------------------- auxiliary requests
# Requests to a server besides chat: to count tokens, to load a model, to embed texts.


T = TypeVar("T")

_NO_ANSWER: Final = ErrorInfo(ErrorKind.SERVER, "the server of this model gave no answer", status=502)


async def fetch(
    service: LLMService,
    provider: str,
    method: str,
    path: str,
    body: Mapping[str, Any] | bytes | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    endpoint: int = 0,
) -> PlainAnswer:
    """Return the answer of an endpoint of *service*, which has a status of success and is no error.

    See :meth:`LLMService.request`.

    Args:
        service: the service with the endpoints.
        provider: the provider id for the server's errors.
        method: the HTTP method.
        path: the path below the base URL.
        body: the body of the request.
        headers: additional headers for the request.
        endpoint: the number of the endpoint.

    Raises:
        Refusal: there is no such answer. It reports the server's response like an error of an answer, without credentials.
    """
    error, retry_after, is_free = None, None, False
    try:
        answer = await service.request(method, path, body, headers, endpoint=endpoint)
        is_error = method != "GET" and bool((_json_object(answer) or {}).get("error"))  # a file says anything
        if 200 <= answer.status < 300 and not is_error:
            return answer
        error = normalize(answer.body, provider, status=min(answer.status, 599), keep_raw=False).error_info
        retry_after, is_free = answer.retry_after, is_unstarted(answer.status, None)
    except ProviderError as failure:
        error = failure.info
        is_free = is_unstarted(None, None if error is None else error.code)
    except CrosswalkError:
        pass
    client_error = for_client(error or _NO_ANSWER, service.redact)
    raise Refusal(
        client_error.kind,
        client_error.message,
        status=client_error.status,
        code=client_error.code,
        retry_after=None if retry_after is None else math.ceil(retry_after),
        may_repeat=is_free and not is_spent(client_error),
    )


def read(answer: PlainAnswer, parse: Callable[[bytes], T]) -> T:
    """Return the result of *parse* for the body of *answer*.

    Args:
        answer: the server's answer.
        parse: raises ``CrosswalkError``, ``ValueError``, ``LookupError`` or ``TypeError`` for an invalid body.

    Raises:
        Refusal: the body is invalid.
    """
    try:
        return parse(answer.body)
    except (CrosswalkError, ValueError, LookupError, TypeError):
        raise Refusal(
            _NO_ANSWER.kind,
            _NO_ANSWER.message,
            status=_NO_ANSWER.status,
            code="unreadable_answer",
            may_repeat=False,
        ) from None


async def supervised(
    gateway: Gateway, request: Request, caller: Caller, work: Callable[[], Awaitable[T]]
) -> T:
    """Return the result of *work* for *caller*. It ends when the client leaves or the gateway ends.

    Raises:
        Refusal: too many requests run, or the gateway ends.
        starlette.requests.ClientDisconnect: the client has left.
    """
    interruptible = Interruptible(request.receive)
    with gateway.slot(), gateway.running(interruptible, caller):
        async with interruptible:
            return await work()
    if interruptible.cause is None:
        raise ClientDisconnect
    raise Refusal(
        interruptible.cause.kind,
        interruptible.cause.message,
        status=interruptible.cause.status,
        retry_after=1,
        may_repeat=False,
    )


_LOAD_FIELDS = ("keep_alive", "options")
"""The other fields of such a request: how long to keep the model, and with which context to load it."""


async def load(route: ModelRoute, incoming: Incoming, name: str) -> bytes:
    """Return the answer to *incoming*, whose :attr:`Wants.load` is set, for a client that calls the model *name*.

    The request goes to the Ollama servers that may be asked first for the model. Other servers have no such request, and
    nothing to do.

    Raises:
        Refusal: a server cannot do it.
    """
    done_reason = incoming.wants.load
    load_options = {
        field: incoming.request.said[field] for field in _LOAD_FIELDS if field in incoming.request.said
    }
    for (service, _), target in zip(route.services, route.first, strict=True):
        if target.provider == WireForm.OLLAMA.provider:
            body = {"model": target.model or name, "messages": [], "stream": False, **load_options}
            answer = await fetch(service, target.provider, "POST", WireForm.OLLAMA.paths[0], body)
            done_reason = read(answer, _done)
    own_fields = (
        {"message": {"role": "assistant", "content": ""}}
        if incoming.form is WireForm.OLLAMA
        else {"response": ""}
    )
    created_at = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    return orjson.dumps(
        {"model": name, "created_at": created_at, **own_fields, "done": True, "done_reason": done_reason}
    )


def _done(body: bytes) -> str | None:
    """Return the end reason in the server's answer *body*.

    Raises:
        CrosswalkError: it is not an answer, or is an error.
    """
    return normalize(body, WireForm.OLLAMA.provider, keep_raw=False).raise_for_error().raw_finish_reason


_COUNT_PATH: Final = "/v1/messages/count_tokens"
_ABSENT_STATUSES: Final = (404, 405, 501)
"""The statuses of a server without this page."""
_COUNTING_PROVIDERS: Final = {
    "anthropic": True,
    "gemini": True,
    "openai_responses": False,
    "vllm": False,
    "llamacpp": False,
}
"""The providers that count, and whether every version of their servers does. Those without a page of their own API have
Anthropic's."""
_OWN_PAGES: Final = ("gemini", "openai_responses")
_OMITTED_OPTIONS: Final = (
    "max_tokens",
    "stream",
    "temperature",
    "top_p",
    "top_k",
    "stop_sequences",
    "metadata",
)
"""The options that Anthropic's page does not take, because it makes no answer."""
_COUNTED: Final = ("model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "reasoning", "text",
                   "truncation", "conversation")  # fmt: skip
"""The options that OpenAI's page takes."""


class TokenCounts:
    """The page of one format.

    Args:
        gateway: the state that all requests share.
        form: the client's format: Anthropic's ``POST /v1/messages/count_tokens``, OpenAI's
            ``POST /v1/responses/input_tokens``, or Gemini's ``:countTokens``.
    """

    def __init__(self, gateway: Gateway, form: WireForm) -> None:
        self._gateway = gateway
        self._form = form

    async def answer(self, request: Request) -> Response:
        """Answer one request. An estimate is marked by the header ``x-crosswalk-estimated``."""
        gateway = self._gateway
        caller = gateway.caller(request)
        check_head(request.headers)
        body, target, count_key = await read_body(request, gateway.config.limits), None, "input_tokens"
        if self._form is WireForm.GEMINI:
            given_fields = load_body(body).given
            body = dump_json(given_fields.get("generateContentRequest", given_fields))
            target, count_key = {"model": request.path_params["model"]}, "totalTokens"
        incoming = read_request(self._form, body, headers=request.headers.raw, target=target)
        if self._form is WireForm.OPENAI_RESPONSES:
            incoming, _ = await gateway.kept_state.with_items(caller.name, incoming, gateway.conversations)
        route = gateway.route(caller, incoming.request.model).for_form(self._form)
        route, asked = await self._asked(caller, route, Seals(gateway.config, caller).opened(incoming))
        await gateway.quotas.admit(caller)
        count = await supervised(gateway, request, caller, lambda: _counted(route, asked))
        headers = {} if count is not None else {"x-crosswalk-estimated": count_key}
        about = {"object": "response.input_tokens"} if self._form is WireForm.OPENAI_RESPONSES else {}
        tokens = prompt_tokens(asked) if count is None else count
        return Response(
            orjson.dumps({**about, count_key: tokens}), headers=headers, media_type="application/json"
        )

    async def _asked(
        self, caller: Caller, route: ModelRoute, incoming: Incoming
    ) -> tuple[ModelRoute, ClientRequest]:
        """Return the route to the server that keeps what *incoming* names, and the request with the turns before it.

        They are as for an answer. The request names only what *caller* has received.

        Raises:
            BadRequestError, Refusal: it names something else.
        """
        gateway = self._gateway
        settled = incoming.without("previous_response_id", "store")
        if route.keeps(self._form):
            route = route.at(await gateway.kept_state.keeper(caller.name, route.servers, settled))
        elif self._form is WireForm.OPENAI_RESPONSES:
            refuse_lost_items(settled)
        previous = incoming.wants.previous_response_id
        earlier = (await gateway.conversations.before(caller.name, previous)).turns
        request, count = settled.request, settled.request.instruction_count
        asked_turns = (*request.messages[:count], *earlier, *request.messages[count:])
        turns, _ = await gateway.kept_state.turns_for(caller.name, route.servers, asked_turns)
        is_same = not earlier and all(map(is_, turns, request.messages))
        return route, request if is_same else attrs.evolve(request, messages=turns)


async def _counted(route: ModelRoute, asked: ClientRequest) -> int | None:
    """Return the count of the first server that does not fail, or ``None`` if that does not count.

    Raises:
        Refusal: it counts, but not this request.
    """
    number, targets = 0, route.targets[0]
    while True:
        try:
            return await _counted_by(route, number, targets[number], asked)
        except Refusal as error:
            number += 1
            error.may_repeat = error.may_repeat and number == 1
            if not _may_go_on(error) or number == len(targets):
                raise


def _may_go_on(error: Refusal) -> bool:
    """Return whether another server may do what the one that has failed with *error* did not."""
    return error.info.retryable or error.info.kind is ErrorKind.QUOTA


async def _counted_by(route: ModelRoute, number: int, target: Target, asked: ClientRequest) -> int | None:
    """Return the count of *target*, the endpoint *number*, or ``None`` if it does not count.

    Raises:
        Refusal: it counts, but not this request.
    """
    name = asked.model or ""
    is_sure = (
        target.counts_tokens if target.counts_tokens is not None else _COUNTING_PROVIDERS.get(target.provider)
    )
    if is_sure is None or target.counts_tokens is False:
        return None
    server_request = attrs.evolve(route.request(asked, name), model=target.model or name)
    provider = target.provider if target.provider in _OWN_PAGES else "anthropic"
    built_request = build_http_request(server_request, provider, on_unsupported="drop")
    path, name, body = _COUNT_PATH, "input_tokens", built_request.body
    if provider == "gemini":
        model, name = built_request.path.partition(":")[0], "totalTokens"
        path = f"{model}:countTokens"
        body = {"generateContentRequest": {"model": model.removeprefix("/v1beta/"), **built_request.body}}
    elif provider == "openai_responses":
        path = f"{built_request.path}/{name}"
        body = {key: body[key] for key in _COUNTED if key in body}
    else:
        body = {key: value for key, value in body.items() if key not in _OMITTED_OPTIONS}
    try:
        answer = await fetch(
            route.services[0][0], provider, "POST", path, body, built_request.headers, endpoint=number
        )
    except Refusal as error:
        if not is_sure and error.info.status in _ABSENT_STATUSES:
            return None
        raise
    return read(answer, partial(_count, name))


def _count(name: str, body: bytes) -> int:
    """Return the token count under *name* in the server's answer *body*.

    Raises:
        ValueError, LookupError, TypeError: it has no count.
    """
    count: int = orjson.loads(body)[name]
    if not _is_count(count):
        raise TypeError("a count is a whole number")
    return count


# ----------------------------------------------------------------------------- passthrough
# Requests without a conversation go to the server of their model as they came: embeddings, audio, images and others.
#
# The gateway checks the key and its limits, writes the server's name of the model, asks the next server after a
# failure, and
# counts. Servers of another API, which have no such page, answer with their own "not found".


_OLD_EMBEDDING_PATH: Final = "/api/embeddings"
"""Ollama's older page, which takes one ``prompt``."""
_EMBEDDING_PATHS: Final = ("/api/embed", _OLD_EMBEDDING_PATH)
_EMBEDDING_FIELDS: Final = frozenset({"model", "input", "prompt", "dimensions", "keep_alive"})
"""The fields with a meaning for OpenAI's servers, and ``keep_alive``, whose models stay in memory."""
_PAGE_PATHS: Final = (
    *("/v1/embeddings", "/v1/moderations", "/v1/rerank", *_EMBEDDING_PATHS),
    *("/v1/images/generations", "/v1/images/edits", "/v1/images/variations"),
    *("/v1/audio/speech", "/v1/audio/transcriptions", "/v1/audio/translations"),
)
_FILE_METHODS: Final = {
    "/v1/files": ["GET", "POST"],
    "/v1/files/{id}": ["GET", "DELETE"],
    "/v1/files/{id}/content": ["GET"],
}
_BATCHES: Final = {
    "/v1/batches": ["GET", "POST"],
    "/v1/batches/{id}": ["GET"],
    "/v1/batches/{id}/cancel": ["POST"],
    "/v1/messages/batches": ["GET", "POST"],
    "/v1/messages/batches/{id}": ["GET", "DELETE"],
    "/v1/messages/batches/{id}/results": ["GET"],
    "/v1/messages/batches/{id}/cancel": ["POST"],
}
_PREFIXES: Final = {
    "/chat/completions": "",
    "/responses": "",
    "/messages": "",
    "/api/chat": "/v1",
    "/chat": "",
}
"""The beginning of a server's other paths, by the end of its path for chats, which it replaces."""
_SWITCHES: Final = (VERSION, "anthropic-beta", "openai-beta")
"""The headers that switch features on. Files and batches of Anthropic need them."""
_ID_PATTERN: Final = re.compile(r"[\w-]+", re.ASCII)
_INPUT_KEYS: Final = ("prompt_tokens", "input_tokens")
_OUTPUT_KEYS: Final = ("completion_tokens", "output_tokens")


class Passthrough:
    """The pages of a gateway whose requests are passed on.

    Args:
        gateway: the state that all requests share.
    """

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def pages(self) -> list[Page]:
        """Return Starlette's routes to them."""
        pages = [Page(path, self.answer, methods=["POST"]) for path in _PAGE_PATHS]
        named = {**_FILE_METHODS, **_BATCHES}
        return pages + [Page(path, self.answer, methods=methods) for path, methods in named.items()]

    async def answer(self, request: Request) -> Response:
        """Answer one request."""
        exchange = _PassedExchange(self._gateway, request)
        status = LEFT
        try:
            response = await exchange.run()
            status = response.status_code
        except (Refusal, BadRequestError) as error:
            response = error_response(request, error, exchange.id)
            status = response.status_code
        finally:
            await exchange.end(status)
        return response


class _PassedExchange(Exchange):
    """A request and its answer."""

    def __init__(self, gateway: Gateway, request: Request) -> None:
        super().__init__(gateway, request)
        self._request = request
        self._path = request.url.path
        self._is_batch = request.scope["route"].path in _BATCHES
        self._dropped: list[str] = []
        self.id = str(uuid4())
        request_id.set(self.id)

    async def run(self) -> Response:
        gateway, request = self._gateway, self._request
        self._caller = caller = gateway.caller(request)
        if not _ID_PATTERN.fullmatch(request.path_params.get("id", "-")):
            raise Refusal(ErrorKind.INVALID_REQUEST, "there is no such id", status=404)
        if self._is_batch and caller.key is not None and not caller.key.batches:
            raise Refusal(ErrorKind.PERMISSION, "this key may not send batches", status=403)
        payload = await read_payload(request, gateway.config.limits, is_batch=self._is_batch)
        self._route = route = gateway.route(caller, payload.model)
        number = route.choose()
        targets, estimate = route.targets[number], UsageInfo(payload.tokens, 0)
        first_target = targets[0]
        max_cost = route.cost_of_tokens(estimate, first_target, first_target.model or payload.model) or 0.0
        self._reservation = await gateway.quotas.admit(caller, max_cost)
        service = route.services[number][0]
        answer, target = await supervised(
            gateway, request, caller, lambda: self._first_answer(service, targets, payload)
        )
        return await self._respond(answer, target, payload, estimate, route)

    async def _first_answer(
        self, service: LLMService, targets: tuple[Target, ...], payload: Payload
    ) -> tuple[PlainAnswer, Target]:
        """Return the answer of the first of *targets* that does not fail, with that target."""
        number = 0
        while True:
            target = targets[number]
            try:
                return await self._ask(service, number, target, payload), target
            except Refusal as error:
                address = urlsplit(target.base_url or "").netloc or "-"
                log_failure(target.provider, address, target.model or payload.model, error.info)
                number += 1
                error.may_repeat = error.may_repeat and number == 1
                if not _may_go_on(error) or number == len(targets):
                    raise

    async def _ask(self, service: LLMService, number: int, target: Target, payload: Payload) -> PlainAnswer:
        name = target.model or payload.model
        path, body, content_type = self._path, payload.named(name), payload.content_type
        if self._is_translated(target) and payload.fields is not None:
            path = "/v1/embeddings"
            body, self._dropped = _openai_request(payload.fields, name)
            content_type = "application/json"
        path = _server_path(target.provider, path) + _query(self._request)
        headers = {name: self._request.headers[name] for name in _SWITCHES if name in self._request.headers}
        headers |= repetition_headers(self._request.headers.raw)
        if content_type is not None:
            headers["Content-Type"] = content_type
        return await fetch(
            service, target.provider, self._request.method, path, body or None, headers, endpoint=number
        )

    def _is_translated(self, target: Target) -> bool:
        return self._path in _EMBEDDING_PATHS and target.provider != "ollama"

    async def _respond(
        self, answer: PlainAnswer, target: Target, payload: Payload, estimate: UsageInfo, route: ModelRoute
    ) -> Response:
        body, name = answer.body, target.model or payload.model
        answer_object = _json_object(answer)
        # Each look at a batch that has ended would count it.
        usage = None if answer_object is None or self._is_batch else _usage(answer_object)
        counted = usage or estimate
        cost = route.cost_of_tokens(counted, target, name)
        dollars = await self._count(target.provider, name, counted, cost, is_estimated=usage is None)
        if self._is_translated(target):
            body = read(answer, partial(_ollama_answer, self._path, payload.model))
        elif (
            answer_object is not None
            and name != payload.model
            and isinstance(answer_object.get("model"), str)
        ):
            body = dumped({**answer_object, "model": payload.model})
        headers = {**id_headers(form_of(self._request), self.id), **cost_headers(dollars)}
        if self._dropped:
            headers["x-crosswalk-dropped"] = header_of(self._dropped)
        headers["content-type"] = answer.content_type or "application/octet-stream"
        return Response(body, answer.status, headers)

    async def end(self, status: int) -> None:
        """Return what is still reserved, and record the request."""
        page: Any = self._request.scope["route"]
        await self._record(self.id, page.path, status, self._dropped)


def _query(request: Request) -> str:
    """Return the query of *request* without the name of the model, with its ``?``."""
    items = [(name, value) for name, value in request.query_params.multi_items() if name != "model"]
    return f"?{urlencode(items)}" if items else ""


@cache
def _chat_path(provider: str) -> str:
    request = ChatRequest("-", model="m")
    return build_http_request(request, provider, on_unsupported="drop").path.partition("?")[0]


def _server_path(provider: str, path: str) -> str:
    """Return the path for requests to *path* at a server of *provider*.

    Raises:
        Refusal: its API has no such path.
    """
    if path in _EMBEDDING_PATHS:
        return path
    chat_path = _chat_path(provider)
    for end, prefix in _PREFIXES.items():
        if chat_path.endswith(end):
            return chat_path.removesuffix(end) + prefix + path.removeprefix("/v1")
    raise Refusal(ErrorKind.MODEL_UNAVAILABLE, "the server of this model has no such page", status=404)


def _openai_request(fields: Mapping[str, Any], model: str) -> tuple[bytes, list[str]]:
    """Return the body for OpenAI's ``/v1/embeddings``, and the names of the dropped fields."""
    body: dict[str, Any] = {"model": model, "input": fields.get("input", fields.get("prompt"))}
    if fields.get("dimensions") is not None:
        body["dimensions"] = fields["dimensions"]
    return dump_json(body), [f"request.{name}" for name in fields if name not in _EMBEDDING_FIELDS]


def _ollama_answer(path: str, model: str, body: bytes) -> bytes:
    """Return OpenAI's answer *body* as Ollama's to a request for *path* with the name *model*.

    Raises:
        ValueError, LookupError, TypeError: it is not such an answer.
    """
    answer_object = load_json(body)
    embeddings = [item["embedding"] for item in answer_object["data"]]
    if path == _OLD_EMBEDDING_PATH:
        return dump_json({"embedding": embeddings[0]})
    usage = _usage(answer_object)
    count_field = {} if usage is None else {"prompt_eval_count": usage.prompt_tokens}
    return dump_json({"model": model, "embeddings": embeddings, **count_field})


def _json_object(answer: PlainAnswer) -> dict[str, Any] | None:
    if answer.content_type.partition(";")[0].strip().lower() != "application/json":
        return None
    try:
        value = loaded(answer.body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


_MAX_COUNT: Final = 2**62
"""The number of tokens below which counts are taken for counts. The sum of two has at most 63 bits."""


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < _MAX_COUNT


def _usage(value: dict[str, Any]) -> UsageInfo | None:
    """Return the token counts in an answer, or ``None`` without them."""
    counts = value.get("usage")
    counts = counts if isinstance(counts, dict) else {"input_tokens": value.get("prompt_eval_count")}
    token_counts = [
        next((counts[name] for name in names if _is_count(counts.get(name))), None)
        for names in (_INPUT_KEYS, _OUTPUT_KEYS)
    ]
    return None if token_counts == [None, None] else UsageInfo(token_counts[0] or 0, token_counts[1] or 0)
