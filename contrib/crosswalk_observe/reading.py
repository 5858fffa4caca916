"""From the bytes of an exchange to its record, without secrets, through the same mapping as any other answer."""

from __future__ import annotations

import re
import zlib
from base64 import b64decode
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import timedelta
from functools import lru_cache, partial
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

import attrs

from crosswalk import DeltaStream, Registry, detect, from_json, normalize_stream, to_json
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
    GzipReader,
    as_cancelled,
    completed,
    encoded_forms,
    failure_of,
    holds_key,
    request_id_of,
    tokens_of,
)
from crosswalk.types import AttemptOutcome, ChatResponse, Provenance, ProviderAttempt
from crosswalk.types.json import dump_json, load_json
from crosswalk_observe.exchange import ObservedExchange, ObservedRequest, WatchedExchange, json_object

# --------------------------------------------------------------------------------- secrets
# Redacts credentials in the URL, the headers and the bodies of an exchange.


PLACEHOLDER: Final = "<secret>"
_MIN_LENGTH: Final = 12
"""Shorter values are words, such as the ``EMPTY`` sent to servers without keys, and not credentials."""
_SECRET_NAME: Final = re.compile(
    r"auth|token|secret|key|cookie|session|signature|credential|passw|\bsig\b|\bcode\b|^x-amz-security|subscription",
    re.IGNORECASE,
)
_JSON_SECRET_WORDS: Final = (
    *(b"authorization", b"apikey", b"passw", b"secret"),
    *(b"authtoken", b"accesstoken", b"bearertoken", b"securitytoken"),
)
"""In names of credentials in the JSON of a request, such as those that the server passes on to its tools."""
_MOST_JSON_VALUES: Final = 50
"""The number of credentials in JSON that are looked for elsewhere in the exchange, the longest first."""
_ESCAPED_LETTER: Final = re.compile(rb"\\u00[2-7]")
_COOKIE_START: Final = re.compile(r"(?:^|, )[^=;,\s]+=([^;,\s]+)")
_HARMLESS_NAME: Final = re.compile(r"ratelimit|^access-control-", re.IGNORECASE)


class Secrets:
    """Redacts the credentials of one exchange.

    Args:
        url: the URL of the request.
        headers: the headers of the request by lower-case name.
        content: the body of the request, or ``None`` if it is unknown.
        answer_headers: the headers of the answer, in the same form. The cookies that they set are credentials too.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        content: bytes | None = None,
        answer_headers: Mapping[str, str] | None = None,
    ) -> None:
        self._content = content
        self._parts = parts = urlsplit(url)
        self._query = parse_qsl(parts.query, keep_blank_values=True) if parts.query else []
        pairs = [pair for pair in headers.items() if pair[0] != "content-length"]  # it differs each time
        self._secret_pairs, values = _credentials_of((*pairs, *self._query))
        if "@" in url:
            values |= {unquote(word or "") for word in (parts.password, parts.username)}
        self._forms = _known_forms_of(values)
        if content is not None and _may_hold_json_secret(content):
            self._content, json_secrets = _without_json_secrets(content)
            json_values = sorted(_credentials_in([("", value) for value in json_secrets]), key=len)
            self._forms += _forms_of(json_values[-_MOST_JSON_VALUES:])
        if answer_headers is not None and "set-cookie" in answer_headers:
            self._forms += tuple(
                value.strip('"').encode()
                for value in _COOKIE_START.findall(answer_headers["set-cookie"])
                if len(value.strip('"')) >= _MIN_LENGTH
            )

    def url(self) -> str:
        """Return the URL without user, password, fragment and the secrets of its query."""
        parts = self._parts
        query = [
            (name, PLACEHOLDER if (name, value) in self._secret_pairs else value)
            for name, value in self._query
        ]
        netloc = parts.netloc.rpartition("@")[2]
        path = self._redact_text(parts.path)
        return urlunsplit(
            (parts.scheme, netloc, path, urlencode(query, safe="<>/:", quote_via=quote, errors="replace"), "")
        )

    def content(self) -> bytes | None:
        """Return the body of the request without credentials."""
        return None if self._content is None else self.redact(self._content)

    def headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return *headers*, of the request or the answer, without credentials."""
        redacted_headers = {**headers, **{name: PLACEHOLDER for name, _ in _secret_pairs(headers.items())}}
        if self.appear_in("\n".join(redacted_headers.values()).encode(errors="replace")):
            redacted_headers = {name: self._redact_text(value) for name, value in redacted_headers.items()}
        return redacted_headers

    def redact(self, data: bytes) -> bytes:
        """Return *data* with the credentials of the request replaced."""
        for form in self._forms:
            if form in data:
                data = data.replace(form, PLACEHOLDER.encode())
        return data

    def _redact_text(self, text: str) -> str:
        return self.redact(text.encode(errors="replace")).decode()

    def appear_in(self, data: bytes) -> bool:
        """Whether *data* contains a credential of the request."""
        return any(map(data.__contains__, self._forms))  # without a generator, which is slower

    def appear_in_texts(self, response: ChatResponse) -> bool:
        """Whether a text of *response* contains a credential of the request."""
        if not self._forms:
            return False
        texts = [response.message.content, response.refusal, *[part.content for part in response.segments]]
        for choice in response.alternatives:
            texts += [choice.message.content, *[part.content for part in choice.segments]]
        return self.appear_in("\n".join([text for text in texts if type(text) is str]).encode())

    def redact_response(self, response: ChatResponse) -> ChatResponse:
        """Return *response* with the credentials of the request replaced, and without its single tokens."""
        plain_response: Any = load_json(self.redact(to_json(response)))
        for choice in (plain_response, *plain_response.get("alternatives", ())):
            choice.pop("logprobs", None)
        return from_json(dump_json(plain_response), ChatResponse)


def _may_hold_json_secret(text: bytes) -> bool:
    """Whether the JSON *text* may have a credential: it contains such a name, or a name with an escape."""
    return _names_json_secret(text) or _ESCAPED_LETTER.search(text) is not None


def _names_json_secret(text: bytes) -> bool:
    """Whether *text* contains the name of a credential."""
    letters = text.lower().translate(None, b"-_")
    return any(map(letters.__contains__, _JSON_SECRET_WORDS))


def _without_json_secrets(content: bytes) -> tuple[bytes | None, set[str]]:
    """Return the JSON *content* without its credentials, and these. It is ``None`` if JSON cannot be written so deep."""
    secrets: set[str] = set()
    try:
        document = [load_json(content)]
    except ValueError:
        return content, secrets
    if not _take_secrets(document, secrets):
        return content, secrets
    try:
        return dump_json(document[0]), secrets
    except TypeError:
        return None, secrets


def _take_secrets(document: list[Any], secrets: set[str]) -> bool:
    """Replace the credentials in the JSON *document*, also in texts that are JSON, and add them to *secrets*.

    Returns whether there are any. A credential is a text at the name of one, or in a list there.
    """
    has_any = False
    containers: list[tuple[Any, bool]] = [(document, False)]
    while containers:
        container, is_secret = containers.pop()
        is_object = type(container) is dict
        for key, value in list(container.items() if is_object else enumerate(container)):
            if is_object:
                is_secret = _names_json_secret(key.encode())
            if type(value) is dict or type(value) is list:
                containers.append((value, is_secret))
            elif type(value) is str and is_secret:
                secrets.add(value)
                container[key], has_any = PLACEHOLDER, True
            elif (
                type(value) is str
                and len(value) > _MIN_LENGTH
                and value.lstrip()[:1] in ("{", "[", '"')
                and _may_hold_json_secret(value.encode())
            ):
                try:
                    inner_document = [load_json(value)]
                except ValueError:
                    continue
                if _take_secrets(inner_document, secrets):
                    container[key], has_any = dump_json(inner_document[0]).decode(), True
    return has_any


@lru_cache(64)  # most exchanges have the headers of the one before
def _credentials_of(pairs: tuple[tuple[str, str], ...]) -> tuple[list[tuple[str, str]], frozenset[str]]:
    """Return the *pairs* (name, value) with a credential, and the credentials in them."""
    secret_pairs = _secret_pairs(pairs)
    return secret_pairs, _credentials_in(secret_pairs)


def _forms_of(values: Iterable[str]) -> tuple[bytes, ...]:
    """Return the forms in which the credentials *values* may appear, the longest first."""
    long_values = [value for value in values if len(value) >= _MIN_LENGTH]
    forms = {form for value in long_values for form in (value, *encoded_forms(value))}
    sorted_forms = sorted((form for form in forms if len(form) >= _MIN_LENGTH), key=len, reverse=True)
    return tuple(form.encode(errors="replace") for form in sorted_forms)


_known_forms_of: Final = lru_cache(64)(_forms_of)


def _credentials_in(secret_pairs: Iterable[tuple[str, str]]) -> frozenset[str]:
    """Return the credentials in the values of *secret_pairs*, of headers or query parameters."""
    credentials: set[str] = set()
    for name, value in secret_pairs:
        if value.startswith("AWS4-"):  # it also contains header names and the region
            credentials.update(re.findall(r"(?:Credential|Signature)=([^\s,/]+)", value))
        elif name == "cookie":
            credentials.update(re.findall(r"=([^\s;]+)", value))
        else:
            credentials.update(re.split(r"[\s,]+", value))
            credentials.update(word.strip(",") for word in value.split())
        if value[:6].lower() == "basic ":
            credentials |= _basic_credentials(value[6:])
    return frozenset(credentials)


def _basic_credentials(value: str) -> set[str]:
    """Return the user and the password in *value*, of an ``Authorization: Basic``."""
    try:
        text = b64decode(value).decode()
    except ValueError:
        return set()
    return {text, *text.split(":", 1)}


def _secret_pairs(pairs: Collection[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the *pairs* (name, value) with a credential as the value."""
    secret_pairs: list[tuple[str, str]] = []
    other_pairs: list[tuple[str, str]] = []
    for pair in pairs:
        (secret_pairs if _is_named_secret(pair[0]) else other_pairs).append(pair)
    if holds_key("\n".join([value for _, value in other_pairs])):  # usually false, so search all at once
        secret_pairs += [pair for pair in other_pairs if holds_key(pair[1])]
    return secret_pairs


@lru_cache(1024)  # the same few header names occur in every exchange
def _is_named_secret(name: str) -> bool:
    return _SECRET_NAME.search(name) is not None and _HARMLESS_NAME.search(name) is None


# --------------------------------------------------------------------------------- reading
# From the bytes of an exchange to its record, through the same mapping as any other answer.


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
    request_headers, headers = exchange.request_headers, exchange.headers
    secrets = Secrets(exchange.url, request_headers, exchange.content, headers)
    body_read = _Body(exchange, secrets, keep_bytes, registry)
    is_complete = not (body_read.is_cut or body_read.failure or exchange.error or exchange.was_abandoned)
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
    headers = {} if facts_alone else secrets.headers(headers)
    has_content = exchange.is_json and site.gives_answer and not facts_alone
    make_record = partial(
        ObservedExchange,
        id=exchange.id,
        resend_count=exchange.attempt or 0,
        labels=exchange.labels,
        trace_id=exchange.trace and exchange.trace[0],
        span_id=exchange.trace and exchange.trace[1],
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
            headers={} if facts_alone else secrets.headers(request_headers),
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
        chunk_times=tuple(moment - exchange.started for moment in exchange.times),
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
        if secrets.appear_in_texts(response):  # in pieces or with escapes, so that its bytes do not show it
            response, body = secrets.redact_response(response), body and PLACEHOLDER.encode()
            if isinstance(reader.error, MappingError):
                reader.error.partial = response
        if is_guessed:
            response = _with_guessed_provider(response)
        id = request_id_of(headers)
        attempts = [] if facts_alone else [_attempt(response, exchange, duration, id, reader.is_cancelled)]
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
    duration: timedelta,
    request_id: str | None,
    is_cancelled: bool,
) -> ProviderAttempt:
    """Return the attempt that *exchange* was, with *response*."""
    error_info = response.error_info
    extra = {
        "status": exchange.status,
        "request_id": request_id,
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
        self.is_cut = exchange.is_cut
        self.failure: ErrorInfo | None = None
        self.times = exchange.times
        self.chunks = exchange.chunks
        if exchange.encoding not in ("", "identity"):
            self._unpack(exchange, keep_bytes)
        if exchange.site.wrapper is not None:
            self._unwrap(exchange, exchange.site.wrapper, registry)
        body = b"".join(self.chunks)
        if secrets.appear_in(body):
            body = secrets.redact(body)
            self.chunks, self.times = [body], self.times[-1:]
        self.body = body

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
        is_whole = not (self.is_cut or self.failure or exchange.error or exchange.was_abandoned)
        try:
            decoder = registry.mapper(wrapper).new_decoder()
            for arrival, chunk in zip(times, chunks, strict=True):
                for frame in decoder.decode(chunk):
                    self.chunks.append(_event_line(*frame))
                    self.times.append(arrival)
            for frame in decoder.flush() if is_whole else ():
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
            status=min(status, 599) if status >= 400 else 200,
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
            for _ in deltas:
                pass
            if cause is None or has_end:
                response = deltas.response
                self.is_complete = True
                return response
        except CrosswalkError as error:
            if cause is None or not self._is_over:
                self.error = error.with_traceback(None)
                cause = ErrorInfo(ErrorKind.UNKNOWN, str(error), code=type(error).__name__)
        self.is_cancelled = cause is CANCELLED
        response = deltas.ended_by(cause)
        return as_cancelled(response) if self.is_cancelled else response
