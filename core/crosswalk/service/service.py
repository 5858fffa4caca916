"""The service: one interface to any list of servers."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import (
    TYPE_CHECKING,
    Any,
    Self,
    TypeVar,
    Unpack,
    overload,
)

from crosswalk.errors import ConfigurationError
from crosswalk.keywords import checks_keywords
from crosswalk.request import Asked
from crosswalk.service.arguments import CallOptions, ServiceOptions, setup_of, with_options
from crosswalk.service.endpoint import Endpoint
from crosswalk.service.setup import Setup
from crosswalk.service.stream import EventStream
from crosswalk.types.response import ChatResponse

if TYPE_CHECKING:
    from crosswalk.service.auxiliary_requests import Embeddings, PlainAnswer, TokenCount
    from crosswalk.service.json_answer import AnswerType, JSONAnswer, JSONStream, ProseChoice
    from crosswalk.structured import Partial


T = TypeVar("T")


class LLMService:
    """Sends requests to servers, and returns every answer as one type.

    The service keeps its connections: create one and use it for all requests, in one event loop. Close it when you are
    done, or use ``async with``. :class:`SyncLLMService` is the same without ``await``.

    Args:
        endpoints: the servers, in order: if one fails, the next is tried. Without any, the default provider of the
            settings is used. If one of them lacks an option of a request, the request is sent to no endpoint.
            A string is a provider id, a provider and its model (``"ollama:llama3.2"``) or an address.
        retry: the errors to retry, or the number of times to repeat a failed attempt, or ``None`` for the defaults.
        timeout: the limits of an attempt: :class:`Timeouts`, or seconds for a whole answer, and in a stream for the next
            byte, or ``None`` for the settings' ``timeout_seconds``, else the defaults.
        base_url: the address of a single server. Without an endpoint, its provider is detected from the server.
        proxy: the address of a proxy for all requests, or ``None`` to follow the environment.
        max_concurrency: the number of calls that run at once in an event loop. Further calls wait. A
            stream counts until it has ended. ``None`` for no limit.
        unknown: ``"keep"`` or ``"raise"``, for an event type or finish word that no mapping knows. If kept, it is logged
            once and marked in ``provenance``, and an answer with such a finish word is not ``is_complete``.
        on_unsupported: ``"raise"`` for an option that a provider cannot express, or ``"drop"`` it. Dropped options
            are listed in the attempt's ``extra``.
        keep_raw: whether to keep the provider's bytes as the response's ``raw_events``.
        limits: the largest answer that is accepted, or ``None`` for the defaults.
        client: the application's own HTTP client, which the application closes, or ``None`` to create one.
        client_options: arguments for that client, as for ``httpx2.AsyncClient``: ``proxy``, ``verify``, ``http2``.
        transport: the HTTP library: ``"httpx2"``, or ``"aiohttp"`` for programs with many concurrent calls, which it costs
            less. aiohttp takes the options ``proxy``, ``verify``, ``cert`` and ``trust_env``, and no *client*.
        observers: objects that are notified of every call, besides the log, such as
            ``crosswalk.service.otel.OpenTelemetry()``.
        middleware: generator functions of the request that wrap each call, the outermost first. See
            :data:`Middleware`.
        cache: stores whole answers and returns them for the same request to the same endpoints. Such a response
            has no ``attempts``. ``None`` to send every request. Errors and partial answers are not stored.
        settings: the user's settings, or ``None`` to read them from their file and the environment, and to apply all of
            them: those for logs and ``repr`` affect the whole process.
        registry: the registry of providers, or ``None`` for the installed ones.
        id_factory: creates the id if a provider sends none.
        clock: returns the time of creation if a provider sends none.
        timer: a monotonic clock in seconds, by which durations are measured.

    Raises:
        ConfigurationError: there is no endpoint, an endpoint has no address or key, its plugin builds no requests, or a
            setting or argument is wrong.
        UnknownProviderError: there is no such provider. PluginError: it is broken.
    """

    def __init__(self, *endpoints: Endpoint | str, **options: Unpack[ServiceOptions]) -> None:
        self._setup = setup_of(*endpoints, **options)

    __signature__ = inspect.signature(setup_of)  # so that notebooks and ``help`` show the options

    @checks_keywords(CallOptions.__annotations__)
    async def complete(self, request: Asked, **options: Unpack[CallOptions]) -> ChatResponse:
        """Return the complete answer to *request*, with every attempt in ``attempts``.

        Args:
            request: the request.
            options: those of a :class:`ChatRequest`, such as ``temperature=0``, and ``timeout=``, ``retry=``, ``headers=``
                for this call.

        Raises:
            ProviderError: every endpoint failed. The subclass says how the last one failed, and ``response`` holds the part
                of its answer that arrived and all attempts. If a server cannot be reached, this is a ``ServerError``. If it
                is too slow, a ``ProviderTimeoutError``.
            MappingError: the last answer cannot be read. ``partial`` holds the same.
            UnsupportedRequestError: an endpoint cannot express the request. Nothing was sent to any.
            CrosswalkError: the service was closed, before or during the call.
        """
        call = EventStream(*with_options(self._setup, request, options), shows=False)
        with suppress(StopAsyncIteration):
            await call.read_on()  # there are no events: it comes back at the end
        return call.response.raise_for_error()

    @checks_keywords(CallOptions.__annotations__)
    def stream(
        self, request: Asked, *, raw_events: bool = False, **options: Unpack[CallOptions]
    ) -> EventStream:
        """Return the answer to *request* as events, each as soon as its bytes arrive. ``.text`` yields its text alone.

        If the server fails, the last event is ``response.error``, with the answer so far and all attempts. No attempt is
        repeated once a token was delivered, unless the retry policy allows it.

        Args:
            request: the request.
            raw_events: whether each event carries the provider's own event, decoded. This takes time, and the response has
                all of them in ``raw_events`` anyway.
            options: see :meth:`complete`.
        """
        return EventStream(*with_options(self._setup, request, options), raw_events=raw_events)

    @overload
    async def complete_json(
        self,
        request: Asked,
        answer: AnswerType[T],
        *,
        instruct: bool = ...,
        partial: Partial | None = ...,
        prose: ProseChoice = ...,
        retries: int = ...,
        **options: Unpack[CallOptions],
    ) -> JSONAnswer[T]: ...
    @overload
    async def complete_json(
        self,
        request: Asked,
        answer: object,
        *,
        instruct: bool = ...,
        partial: Partial | None = ...,
        prose: ProseChoice = ...,
        retries: int = ...,
        **options: Unpack[CallOptions],
    ) -> JSONAnswer[Any]: ...
    @checks_keywords(CallOptions.__annotations__)
    async def complete_json(
        self,
        request: Asked,
        answer: Any,
        *,
        instruct: bool = False,
        partial: Partial | None = None,
        prose: ProseChoice = "allow",
        retries: int = 0,
        **options: Unpack[CallOptions],
    ) -> JSONAnswer[Any]:
        """Return the answer to *request* as a value, with its response.

        The provider is asked to enforce the schema, as far as it can. The model's text is parsed directly,
        else extracted from the text around it, else repaired. A truncated answer is refused by default.

        Args:
            request: the request. Its own ``response_format`` is sent if it has one.
            answer: a class of attrs, a dataclass, a typed dict, a named tuple, a pydantic model, an enum, a ``Literal``, a
                union or list of these, a ``Schema`` with invariants, a ``StructuredParser``, or a JSON Schema as a dict.
            instruct: put the schema also into a system message, for servers that do not enforce it.
            partial: how to treat a truncated answer, or ``None`` to refuse it.
            prose: whether text may surround the value: ``"allow"`` or ``"refuse"``.
            retries: how many times to send the model the errors of its answer, and ask again.
            options: see :meth:`complete`.

        Raises:
            JSONAnswerError: the model's answer does not fit. ``response`` and ``result`` are attached.
            CrosswalkError: as from :meth:`complete`.
        """
        from crosswalk.service.json_answer import (
            JSONAnswerError,
            asked_again,
            parser_for,
            read_answer,
            with_schema,
        )
        from crosswalk.structured import Partial

        parser = parser_for(answer, prose)
        requested = with_schema(request, parser, instruct=instruct)
        for remaining in range(retries, -1, -1):
            response = await self.complete(requested, **options)
            try:
                return read_answer(response, parser, Partial.REFUSE if partial is None else partial)
            except JSONAnswerError as error:
                if not remaining or not error.result.can_retry:
                    raise
                requested = asked_again(requested, error)
        raise ConfigurationError("retries must be a number from 0 on", key="retries")

    @overload
    def stream_json(
        self,
        request: Asked,
        answer: AnswerType[T],
        *,
        instruct: bool = ...,
        partial: Partial | None = ...,
        prose: ProseChoice = ...,
        **options: Unpack[CallOptions],
    ) -> JSONStream[T]: ...
    @overload
    def stream_json(
        self,
        request: Asked,
        answer: object,
        *,
        instruct: bool = ...,
        partial: Partial | None = ...,
        prose: ProseChoice = ...,
        **options: Unpack[CallOptions],
    ) -> JSONStream[Any]: ...
    @checks_keywords(CallOptions.__annotations__)
    def stream_json(
        self,
        request: Asked,
        answer: Any,
        *,
        instruct: bool = False,
        partial: Partial | None = None,
        prose: ProseChoice = "allow",
        **options: Unpack[CallOptions],
    ) -> JSONStream[Any]:
        """Return the answer as a value that grows while it arrives. Takes the arguments of :meth:`complete_json`.

        Raises:
            ConfigurationError: a parser of several versions.
        """
        from crosswalk.service.json_answer import JSONStream, parser_for, with_schema

        parser = parser_for(answer, prose)
        requested = with_schema(request, parser, instruct=instruct)
        return JSONStream(self.stream(requested, **options), parser, partial)

    async def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        endpoint: int = 0,
    ) -> PlainAnswer:
        """Send a request to any *path* of an endpoint, such as one that counts tokens, and return its answer.

        The request is sent once, to this endpoint only, with its own address, key and timeout.

        Args:
            method: the HTTP method.
            path: below the endpoint's base URL, such as ``/v1/messages/count_tokens``.
            body: a JSON object, or bytes whose ``Content-Type`` is among *headers*.
            headers: further headers that the API wants.
            endpoint: the number of the endpoint, from 0.

        Raises:
            ProviderError: it cannot be reached, or is too slow. CrosswalkError: the service is closed.
        """
        from crosswalk.service.auxiliary_requests import fetch

        setup = await self._resolved()
        return await fetch(setup, setup.routes[endpoint], method, path, body, headers)

    async def models(self) -> tuple[str, ...]:
        """Return the names of the models of the first endpoint.

        Raises:
            UnsupportedRequestError: Crosswalk cannot list the models of this API. ProviderError: it refuses, or cannot be
                reached.
        """
        from crosswalk.service.auxiliary_requests import models

        return await models(await self._resolved())

    async def embed(self, texts: str | Iterable[str], *, model: str | None = None) -> Embeddings:
        """Return *texts* as vectors, from the first endpoint.

        Args:
            texts: a text, or several.
            model: the model, or ``None`` for the endpoint's.

        Raises:
            UnsupportedRequestError: its API makes no embeddings, or no model is named. ProviderError: it failed.
        """
        from crosswalk.service.auxiliary_requests import embed

        return await embed(await self._resolved(), texts, model)

    @checks_keywords(CallOptions.__annotations__)
    async def count_tokens(self, request: Asked, **options: Unpack[CallOptions]) -> TokenCount:
        """Return the number of input tokens of *request* at the first endpoint: a marked estimate if it cannot count.

        Raises:
            ProviderError: it failed. UnsupportedRequestError: it cannot express the request.
        """
        from crosswalk.service.auxiliary_requests import count_tokens

        return await count_tokens(*with_options(await self._resolved(), request, options))

    async def _resolved(self) -> Setup:
        discovery = self._setup.discovery
        return self._setup if discovery is None else await discovery.resolve(self._setup, needs_model=False)

    def redact(self, text: str) -> str:
        """Return *text* without the credentials of the endpoints, which some servers repeat in their errors.

        Use this before you write down ``raw_events``, which are exactly as sent. Messages are already redacted.
        """
        for route in self._setup.routes:
            text = route.redact(text)
        return text

    async def aclose(self) -> None:
        """End the running calls and close the connections. An application's own client stays open.

        Streams end as by :meth:`EventStream.cancel`, other calls with a ``CrosswalkError``.
        """
        for call in self._setup.open_calls():
            await call.end()
        await self._setup.transport.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"LLMService({', '.join(repr(route.endpoint) for route in self._setup.routes)})"
