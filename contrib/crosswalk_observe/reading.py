"""From the bytes of an exchange to its record, without secrets, through the same mapping as any other answer."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import partial
from typing import Final, TypeAlias

import attrs

from crosswalk import DeltaStream, Registry, detect, normalize_stream
from crosswalk.errors import (
    CrosswalkError,
    DetectionError,
    ErrorInfo,
    ErrorKind,
    MappingError,
    PluginError,
    StreamTooLargeError,
)
from crosswalk.prices import cost_of
from crosswalk.service import (
    CANCELLED,
    SECRET,
    GzipReader,
    as_cancelled,
    completed,
    failure_of,
    request_id_of,
    tokens_of,
)
from crosswalk.types import AttemptOutcome, ChatResponse, Provenance, ProviderAttempt
from crosswalk.types.json import dump_json
from crosswalk_observe.exchange import ObservedExchange, ObservedRequest, WatchedExchange, json_object
from crosswalk_observe.secrets import Secrets

_STREAM_TYPES: Final = ("text/event-stream", "application/x-ndjson", "application/vnd.amazon.eventstream")


@attrs.define
class WatchedDialect:
    """The provider at an address.

    Attributes:
        provider: the provider id.
        guesses: the number of answers that fitted several providers, or 0 once an answer has shown the provider.
    """

    provider: str
    guesses: int = 0


DialectCache: TypeAlias = dict[tuple[str, str | None], WatchedDialect]
"""The provider by URL and model, as earlier answers have shown."""
_MAX_DIALECTS: Final = 1024
_MAX_GUESSES: Final = 8
"""The number of a server's answers that are asked for its provider, while none of them shows it."""


def record_of(
    exchange: WatchedExchange,
    registry: Registry,
    keep_bytes: int,
    dialects: DialectCache,
    *,
    with_prices: bool = False,
    facts_alone: bool = False,
) -> ObservedExchange:
    """Return the record of *exchange*, which has ended.

    Args:
        exchange: the exchange.
        registry: the registry of providers.
        keep_bytes: the maximum bytes of the decompressed body.
        dialects: the providers that earlier answers have shown. Updated by this one.
        with_prices: whether to estimate a cost that the provider does not send.
        facts_alone: whether URL, headers, bodies and the response's attempts are left out.
    """
    site, status = exchange.site, exchange.status
    headers = exchange.headers
    secrets = Secrets(exchange)
    body_read = _Body(exchange, secrets, keep_bytes, registry)
    is_complete = body_read.is_complete
    has_no_answer = not site.gives_answer and status is not None and status < 400
    tokens = tokens_of(json_object(body_read.body)) if has_no_answer and is_complete else {}
    if has_no_answer:
        body_read.drop()
    content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    is_stream = (
        content_type in _STREAM_TYPES
        or exchange.options.get("stream") is True
        or "stream" in exchange.url.partition("?")[0].rpartition("/")[2].lower()
    )
    duration = timedelta(seconds=exchange.finished - exchange.started)
    trace_id, span_id = exchange.trace or (None, None)
    headers = {} if facts_alone else secrets.headers(headers)
    has_content = exchange.is_json and site.gives_answer and not facts_alone
    make_record = partial(
        ObservedExchange,
        id=exchange.id,
        resend_count=exchange.attempt or 0,
        labels=exchange.labels,
        trace_id=trace_id,
        span_id=span_id,
        provider=site.providers[0],
        operation=site.operation,
        gives_answer=site.gives_answer,
        method=exchange.method,
        url="" if facts_alone else secrets.url(),
        host=site.host,
        port=site.port,
        request=ObservedRequest(
            model=exchange.model,
            options=exchange.options,
            headers={} if facts_alone else secrets.headers(exchange.headers_asked),
            body=secrets.content() if has_content else None,
        ),
        status=status,
        headers=headers,
        tokens=tokens,
        is_cut=body_read.is_cut,
        is_complete=is_complete,
        is_stream=is_stream,
        began=exchange.began,
        duration=duration,
        time_to_first_chunk=(
            timedelta(seconds=exchange.times[0] - exchange.started) if exchange.times else None
        ),
        chunk_times=tuple([moment - exchange.started for moment in exchange.times]),
    )
    body = b"" if facts_alone else body_read.body
    if has_no_answer and (is_complete or body_read.is_cut):
        return make_record(body=body)
    try:
        provider, is_guessed = _provider(exchange, body_read.body, registry, dialects)
        reader = _AnswerReader(exchange, body_read, provider, registry, is_stream=is_stream)
    except CrosswalkError as error:
        return make_record(body=body, error=error.with_traceback(None), is_cancelled=exchange.was_abandoned)
    if reader.error is not None:
        dialects.pop(_server(exchange), None)  # another server may have taken its place
    response, cost = reader.response, None
    if response is not None:
        # In pieces or with escapes, so that its bytes do not show it.
        if secrets.appear_in_texts(response, is_cut=not is_complete):
            response = secrets.redact_response(response, is_cut=not is_complete)
            body = body and SECRET.encode()
            if isinstance(reader.error, MappingError):
                reader.error.partial = response
        if is_guessed:
            response = _with_guessed_provider(response)
        attempts = (
            [] if facts_alone else [_attempt(response, exchange, headers, duration, reader.is_cancelled)]
        )
        response = completed(response, exchange.model, attempts, is_stream=is_stream)
        cost = cost_of(response) if with_prices else response.usage.cost
    return make_record(
        provider=provider,
        body=body,
        response=response,
        error=reader.error,
        is_complete=is_complete or reader.is_complete,
        is_cancelled=reader.is_cancelled,
        cost=cost,
    )


def _provider(
    exchange: WatchedExchange, body: bytes, registry: Registry, dialects: DialectCache
) -> tuple[str, bool]:
    """Return the provider that answered, and whether it is only a guess."""
    site = exchange.site
    if site.is_sure and len(site.providers) == 1:
        return site.providers[0], False
    key = _server(exchange)
    known_dialect = dialects.get(key, WatchedDialect(""))
    if known_dialect.provider and known_dialect.guesses in (0, _MAX_GUESSES):
        return known_dialect.provider, known_dialect.guesses > 0
    try:
        candidates = site.providers if site.is_sure else None
        provider = detect(body, registry, among=candidates, guess=False)
    except (DetectionError, PluginError) as error:
        fitting_providers = getattr(error, "candidates", ())
        provider = next((name for name in site.providers if name in fitting_providers), site.providers[0])
        if fitting_providers:
            _remember(dialects, exchange, WatchedDialect(provider, known_dialect.guesses + 1))
        return provider, True
    if provider not in site.providers:
        for name in site.providers:
            if provider in registry.mapper(name).info.speaks:  # its server, with another dialect
                return name, True
    _remember(dialects, exchange, WatchedDialect(provider))
    return provider, False


def _remember(dialects: DialectCache, exchange: WatchedExchange, dialect: WatchedDialect) -> None:
    if exchange.status == 200:
        if len(dialects) >= _MAX_DIALECTS:
            dialects.clear()
        dialects[_server(exchange)] = dialect


def _server(exchange: WatchedExchange) -> tuple[str, str | None]:
    """Return the cache key: a model at an address has one dialect."""
    return exchange.url.partition("?")[0], exchange.model


def _with_guessed_provider(response: ChatResponse) -> ChatResponse:
    provenance = {**response.metadata.provenance, "metadata.provider_id": Provenance.DERIVED}
    return attrs.evolve(response, metadata=attrs.evolve(response.metadata, provenance=provenance))


def _attempt(
    response: ChatResponse,
    exchange: WatchedExchange,
    headers: Mapping[str, str],
    duration: timedelta,
    is_cancelled: bool,
) -> ProviderAttempt:
    """Return the attempt that *exchange* was, with *response*."""
    error_info = response.error_info
    extra = {
        "status": exchange.status,
        "request_id": request_id_of(headers),
        "kind": None if error_info is None else error_info.kind.value,
    }
    outcome = AttemptOutcome.SUCCESS if error_info is None else AttemptOutcome.ERROR
    return ProviderAttempt(
        response.metadata.provider_id,
        exchange.model or response.model,
        latency_ms=duration.total_seconds() * 1000,
        outcome=AttemptOutcome.CANCELLED if is_cancelled else outcome,
        error=None if error_info is None else error_info.message,
        extra={name: value for name, value in extra.items() if value is not None},
    )


class _Body:
    """The body of an answer: decompressed, limited, and without the credentials of its request."""

    def __init__(
        self, exchange: WatchedExchange, secrets: Secrets, keep_bytes: int, registry: Registry
    ) -> None:
        self._exchange = exchange
        self.is_cut = exchange.is_cut
        self.failure: ErrorInfo | None = None
        self.times = exchange.times
        self.chunks = exchange.chunks
        if exchange.encoding not in ("", "identity"):
            self._unpack(exchange, keep_bytes)
        if exchange.site.wrapper is not None:
            self._unwrap(exchange, exchange.site.wrapper, registry)
        body = b"".join(self.chunks)
        if secrets.appear_in(body, is_cut=not self.is_complete):
            body = secrets.redact(body, is_cut=not self.is_complete)
            self.chunks, self.times = [body], self.times[-1:]
        self.body = body

    @property
    def is_complete(self) -> bool:
        """Whether all of it has arrived, and was read."""
        return not (self.is_cut or self.failure or self._exchange.error or self._exchange.was_abandoned)

    def drop(self) -> None:
        """Forget the body of an answer that is not read."""
        self.chunks, self.times, self.body = [], [], b""

    def _unpack(self, exchange: WatchedExchange, keep_bytes: int) -> None:
        import httpx2  # seldom needed, and it takes long

        timed_chunks = iter(zip(exchange.times, exchange.chunks, strict=True))
        now = exchange.started

        def packed_chunks() -> Iterator[bytes]:
            nonlocal now
            for arrival, chunk in timed_chunks:
                now = arrival
                yield chunk

        self.times, self.chunks, room = [], [], keep_bytes
        try:
            for piece in filter(None, _unpacked(packed_chunks(), exchange.encoding)):
                if len(piece) > room:
                    self.is_cut = True
                    piece = piece[:room]
                room -= len(piece)
                self.chunks.append(piece)
                self.times.append(now)
                if self.is_cut:
                    break
        except httpx2.HTTPError as error:
            is_known = self.is_cut or exchange.error is not None or exchange.was_abandoned
            if not (is_known and isinstance(error, httpx2.ReadError)):
                self.failure = failure_of(error, (exchange.site.host, exchange.site.port))

    def _unwrap(self, exchange: WatchedExchange, wrapper: str, registry: Registry) -> None:
        """Replace the frames of *wrapper* by the events in them, a line of JSON for each."""
        chunks, times = self.chunks, self.times
        self.chunks, self.times = [], []
        try:
            decoder = registry.mapper(wrapper).new_decoder()
            for arrival, chunk in zip(times, chunks, strict=True):
                for frame in decoder.decode(chunk):
                    self.chunks.append(_event_line(*frame))
                    self.times.append(arrival)
            for frame in decoder.flush() if self.is_complete else ():
                self.chunks.append(_event_line(*frame))
                self.times.append(exchange.finished)
        except CrosswalkError as error:
            self.failure = ErrorInfo(ErrorKind.UNKNOWN, str(error), code=type(error).__name__)


def _unpacked(chunks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """Yield the content of *chunks*.

    Raises:
        httpx2.DecodingError: they do not match their *encoding*.
        httpx2.ReadError: they end too early.
    """
    import httpx2

    if encoding not in ("gzip", "x-gzip"):
        yield from httpx2.Response(200, headers={"content-encoding": encoding}, content=chunks).iter_bytes()
        return
    reader = GzipReader()
    try:
        for chunk in chunks:
            yield from reader.unpack(chunk)
        yield reader.flush()
    except zlib.error as error:
        raise httpx2.DecodingError(str(error)) from error
    if not reader.is_whole:
        raise httpx2.ReadError("the compressed body is cut")


def _event_line(data: bytes, name: str | None) -> bytes:
    """Return the line of an event. One with a *name* is an exception of the wrapper, ``{name: …}``."""
    if name is not None:
        details = json_object(data).get(name)
        data = dump_json({"error": {"type": name, **(details if isinstance(details, dict) else {})}})
    return data.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"


class _AnswerReader:
    """Reads the response from the bytes of an exchange and from the way it ended."""

    def __init__(
        self,
        exchange: WatchedExchange,
        body_read: _Body,
        provider: str,
        registry: Registry,
        *,
        is_stream: bool,
    ) -> None:
        self._now = exchange.started
        self._provider = provider
        self._is_over = False
        self.error: CrosswalkError | None = None
        self.is_cancelled = False
        self.is_complete = False
        status = exchange.status or 200
        is_whole = not (is_stream or body_read.is_cut) and len(body_read.chunks) == 1
        deltas = normalize_stream(  # not an attribute: it calls this object, and a cycle would live longer
            body_read.chunks if is_whole else self._chunks(exchange, body_read),
            provider,
            status=status if status >= 400 else 200,
            unknown="keep",
            id_factory=lambda: exchange.id,
            clock=lambda: exchange.began,
            keep_raw=False,
            registry=registry,
            timer=lambda: self._now,
        )
        if is_whole:
            self._now, self._is_over = exchange.finished, True
        address = (exchange.site.host, exchange.site.port)
        cause = body_read.failure
        if exchange.error is not None:
            name = type(exchange.error).__name__
            cause = failure_of(exchange.error, address) if isinstance(exchange.error, Exception) else None
            cause = cause or ErrorInfo(ErrorKind.UNKNOWN, f"failed with {name}", code=name)
        elif exchange.was_abandoned and cause is None:
            cause = CANCELLED
        # Only a stream has an end mark. Without one, HTTP alone says whether a body that broke off was whole.
        has_mark = (is_stream or cause is CANCELLED) and registry.mapper(provider).has_terminal
        self.response = self._read(deltas, cause, has_mark or status >= 400)

    def _chunks(self, exchange: WatchedExchange, body_read: _Body) -> Iterator[bytes]:
        for self._now, chunk in zip(body_read.times, body_read.chunks, strict=True):
            yield chunk
        self._now = exchange.finished
        if body_read.is_cut:
            kept_size = len(body_read.body)
            error = StreamTooLargeError(
                f"more came than the {kept_size} bytes that are kept", limit=kept_size
            )
            raise error.locate(provider=self._provider, event=f"after byte {kept_size}")
        self._is_over = True

    def _read(self, deltas: DeltaStream, cause: ErrorInfo | None, has_end: bool) -> ChatResponse | None:
        """Return the response. *cause* is why the rest of the answer is missing, if it is incomplete."""
        try:
            return self._answer(deltas, cause, has_end)
        except PluginError as error:  # nothing can be made of what it has set
            self.error = error.with_traceback(None)
            return None

    def _answer(self, deltas: DeltaStream, cause: ErrorInfo | None, has_end: bool) -> ChatResponse:
        try:
            response = deltas.until_done()
            if cause is None or has_end:
                self.is_complete = True
                return response
        except CrosswalkError as error:
            if cause is None or not self._is_over:
                self.error = error.with_traceback(None)
                cause = ErrorInfo(ErrorKind.UNKNOWN, str(error), code=type(error).__name__)
        self.is_cancelled = cause is CANCELLED
        response = deltas.ended_by(cause)
        return as_cancelled(response) if self.is_cancelled else response
