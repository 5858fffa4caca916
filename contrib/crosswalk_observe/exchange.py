"""An exchange in progress, to which HTTP layers report, the call of an SDK that it belongs to, and its record."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar, copy_context
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final, Protocol
from urllib.parse import unquote, urljoin, urlsplit

import attrs

from crosswalk.errors import CrosswalkError
from crosswalk.service import Site, option_paths
from crosswalk.types import ChatResponse, Cost
from crosswalk.types.json import load_json

# --------------------------------------------------------------------------------- context
# The context of a request: labels of the program, the current trace, and whether observation is suppressed.


@attrs.frozen
class Labels:
    """Labels that a program puts on its requests.

    Attributes:
        session: the id of a session or conversation, or ``None``.
        user: the id of a user, or ``None``.
        tags: any words, those of outer blocks first.
    """

    session: str | None = None
    user: str | None = None
    tags: tuple[str, ...] = ()


_labels: Final[ContextVar[Labels]] = ContextVar("crosswalk.observe.labels", default=Labels())  # noqa: B039


@contextmanager
def watching(
    *, session: str | None = None, user: str | None = None, tags: Iterable[str] = ()
) -> Iterator[None]:
    """Label the records and spans of the requests that this thread or task makes in the block.

    In a nested block, omitted labels keep their values, and *tags* are added.
    """
    outer_labels = _labels.get()
    token = _labels.set(
        Labels(
            outer_labels.session if session is None else session,
            outer_labels.user if user is None else user,
            (*outer_labels.tags, *(tag for tag in dict.fromkeys(tags) if tag not in outer_labels.tags)),
        )
    )
    try:
        yield
    finally:
        _labels.reset(token)


def current_labels() -> Labels:
    """Return the labels of requests made now."""
    return _labels.get()


def current_trace() -> tuple[str, str] | None:
    """Return the ids of OpenTelemetry's current trace and span in hex, or ``None``."""
    trace_module = sys.modules.get("opentelemetry.trace")
    if trace_module is None:  # OpenTelemetry is not in use
        return None
    context = trace_module.get_current_span().get_span_context()
    return (f"{context.trace_id:032x}", f"{context.span_id:016x}") if context.is_valid else None


_suppressed: Final[ContextVar[bool]] = ContextVar("crosswalk.observe.passed", default=False)


class Suppression:
    """A block in which nothing is observed, because an outer layer observes the request already, or a sink makes it."""

    def __enter__(self) -> None:
        self._token = _suppressed.set(True)

    def __exit__(self, *error: object) -> None:
        _suppressed.reset(self._token)


def is_suppressed() -> bool:
    """Whether observation is suppressed in this context."""
    return _suppressed.get()


# ---------------------------------------------------------------------------------- record
# The canonical record of an exchange, as sinks receive it.


@attrs.frozen(kw_only=True, eq=False)
class ObservedRequest:
    """A request, without credentials.

    Attributes:
        model: the requested model, or ``None`` if the request names none.
        options: the known options of the JSON body, with the provider's names, such as ``temperature`` or ``max_tokens``.
            They contain no content and no user.
        headers: the headers by lower-case name. The values of credentials are ``<secret>``.
        body: the JSON body as it was sent, or ``None`` if it was not JSON, was sent as a stream, or exceeded the limit.
    """

    model: str | None = None
    options: Mapping[str, Any] = attrs.field(
        factory=dict, repr=lambda options: f"{{{', '.join(sorted(options))}}}"
    )
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    body: bytes | None = attrs.field(default=None, repr=False)


@attrs.frozen(kw_only=True, eq=False)
class ObservedExchange:
    """An exchange with a model's server, complete or as far as it got.

    The URL, the headers, the bodies and the attempts of the response are empty if no sink of the watcher needs them.

    Attributes:
        id: a generated id. The response has it too if the provider sends none.
        provider: the provider id.
        method: the HTTP method, of the first request if a redirect was followed.
        url: the URL that was answered, without user, password, fragment and the secrets of its query.
        host: the name of the server.
        port: the port of the server.
        request: the request.
        status: the HTTP status, or ``None`` if no answer began.
        headers: the headers of the answer by lower-case name, without credentials.
        body: the bytes of the answer, decompressed.
        is_cut: whether the answer was longer than the limit, so that the rest is missing.
        is_complete: whether the body reached its end, by HTTP or by the provider's end marker, and is stored completely.
        response: the canonical response, with the measured times and one attempt. It is an error response if the server or
            the connection failed, and ``cancelled`` if the application stopped reading, each with the partial answer.
            ``None`` if a plugin failed.
        error: why the answer could not be read to its end, or ``None``. An answer that reports an error has ``None`` too.
        is_stream: whether a stream was requested or received.
        is_cancelled: whether the application stopped reading before the end of the answer.
        resend_count: the number of earlier attempts at the same request, as the SDK reports it.
        operation: the requested operation, such as ``chat``, ``text_completion`` or ``embeddings``.
        gives_answer: whether the operation returns a chat answer. Embeddings, images, rerank and the like have a status, a
            model, tokens and errors, but neither bodies nor a response, unless it is an error.
        tokens: the ``input`` and ``output`` tokens of such an operation, and those of a modality, such as ``image.input``.
        cost: the provider's own cost, or an estimate by list prices, which is ``derived``, or ``None``. See
            :class:`~crosswalk_observe.Watcher`.
        labels: the labels of the request, set with :func:`~crosswalk_observe.watching`.
        trace_id: the OpenTelemetry trace of the request in hex, or ``None``.
        span_id: the span that was current while the request was sent, in hex. With an ``OpenTelemetrySink`` it is its span.
        began: when the request was sent, in UTC.
        duration: the time from then to the end of the answer.
        time_to_first_chunk: the time from then to the first bytes of the body, or ``None`` if none arrived.
        chunk_times: the seconds from then to each piece of the body, as it arrived.
    """

    id: str
    provider: str
    method: str
    url: str
    host: str
    port: int
    request: ObservedRequest
    status: int | None
    headers: Mapping[str, str] = attrs.field(repr=False)
    body: bytes = attrs.field(repr=False)
    is_cut: bool = False
    is_complete: bool = True
    response: ChatResponse | None = None
    error: CrosswalkError | None = attrs.field(
        default=None, repr=lambda error: error and type(error).__name__
    )
    is_stream: bool = False
    is_cancelled: bool = False
    resend_count: int = 0
    operation: str = "chat"
    gives_answer: bool = True
    tokens: Mapping[str, int] = attrs.field(factory=dict)
    cost: Cost | None = None
    labels: Labels = attrs.field(factory=Labels)
    trace_id: str | None = None
    span_id: str | None = None
    began: datetime
    duration: timedelta
    time_to_first_chunk: timedelta | None = None
    chunk_times: tuple[float, ...] = attrs.field(default=(), repr=False)


# ----------------------------------------------------------------------------------- calls
# Calls of an SDK. A call has one span, and one attempt or several at its request.


_COUNT_HEADER: Final = "x-stainless-retry-count"
"""The header in which the SDKs of OpenAI, Anthropic and others number the attempts of a call, from 0."""
_LONGEST_WAIT: Final = 10.0
"""The maximum wait of these SDKs before the next attempt in seconds, plus a margin, if the server does not set it."""
_LONGEST_RETRY_AFTER: Final = 60.0
"""The maximum ``retry-after`` in seconds that these SDKs obey."""
_REDIRECT_WAIT: Final = 1.0
"""The maximum seconds until a client follows a redirect."""
_REPETITION_WAIT: Final = 130.0
"""The maximum seconds until a library repeats a request: the longest wait of urllib3 by default, plus a margin."""


_numbers: Final = count()  # orders calls that end at the same time


class Operation(Protocol):
    """The operation that a sink has begun for a call. See :class:`crosswalk_observe.watcher.Watcher`."""

    def current(self) -> AbstractContextManager[object]:
        """Return a block that is entered in the thread or task of the request while it is sent."""

    def end(self, record: ObservedExchange | None) -> object:
        """End the call with *record*, of its last attempt, or ``None`` if that was not recorded."""


@attrs.frozen
class ExpectedRequest:
    """The request that continues a call.

    Attributes:
        address: what :func:`_address` returns for its URL.
        site: the site of the request before it.
        attempt: the number of attempts before it, or ``None`` if it is unknown.
        redirected: the exchange of the request before it, if that was redirected and both are one exchange.
    """

    address: tuple[str, ...]
    site: Site
    attempt: int | None
    redirected: WatchedExchange | None = None


def _address(url: str, base: str = "") -> tuple[str, ...] | None:
    """Return what *url*, relative to *base*, addresses, however it is written, or ``None`` if it is no URL."""
    try:
        parts = urlsplit(urljoin(base, url))
    except ValueError:
        return None
    host = parts.netloc.rpartition("@")[2].lower().removesuffix(":443" if parts.scheme == "https" else ":80")
    return parts.scheme, host, unquote(parts.path) or "/", unquote(parts.query)


class SDKCall:
    """The attempts at one request, and the operations that sinks have begun for it.

    Attributes:
        operations: the active operations, by the position of their sinks.
        sinks: the positions of the sinks that have begun an operation.
        attempts: the number of attempts before the last.
        expected: the request that continues the call, or ``None`` if none is known to follow.
        deadline: when the call ends unless another attempt begins, or ``None`` during an attempt.
        record: the record of the last attempt.
    """

    def __init__(self, url: str, attempts: int) -> None:
        self.operations: dict[int, Operation] = {}
        self.sinks: set[int] = set()
        self.attempts = attempts
        self.expected: ExpectedRequest | None = None
        self.url = url
        self.is_over = False
        self.deadline: float | None = None
        self.record: ObservedExchange | None = None


_current: Final[ContextVar[SDKCall | None]] = ContextVar("crosswalk.observe.call", default=None)


def expected_request(url: str) -> ExpectedRequest | None:
    """Return what the current call expects, if that is a request to *url*."""
    call = _current.get()
    expected = None if call is None or call.is_over else call.expected
    return None if expected is None or expected.address != _address(url) else expected


def call_of(exchange: WatchedExchange) -> tuple[SDKCall, bool]:
    """Return the call that *exchange* is an attempt of, and whether it has begun before.

    An SDK that numbers its attempts makes them one after the other, in one thread or task. So does a client that follows
    a redirect or repeats a request.
    """
    attempt = exchange.attempt
    earlier_call = _current.get()
    if earlier_call is not None and not earlier_call.is_over:
        if (expected := expected_request(exchange.url)) is not None:
            if expected.redirected is not None:
                exchange.follow(expected.redirected)
            exchange.attempt = expected.attempt
            earlier_call.attempts = expected.attempt or 0
            earlier_call.expected = earlier_call.deadline = None
            return earlier_call, True
        if attempt == earlier_call.attempts + 1 and exchange.url == earlier_call.url:
            earlier_call.attempts, earlier_call.deadline = attempt, None
            return earlier_call, True
        earlier_call.expected = None  # it may hold the content of a request
    call = SDKCall(exchange.url, attempt or 0)
    if attempt is not None:
        _current.set(call)
    return call, False


class OpenCalls:
    """The calls after their last attempt, until it is certain that no other attempt follows. Not thread-safe."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, SDKCall]] = []

    def end_later(self, exchange: WatchedExchange, record: ObservedExchange | None, wait: float) -> bool:
        """Let the call of *exchange* end in *wait* seconds, unless another attempt begins.

        Returns whether the call was added: it has operations, and *exchange* is its last attempt.
        """
        call = exchange.call
        if call is None or not call.operations or (exchange.attempt or 0) < call.attempts:
            return False
        call.record, call.deadline = record, time.monotonic() + wait
        heappush(self._heap, (call.deadline, next(_numbers), call))
        return True

    def take_ended(self, *, all_of_them: bool = False) -> list[SDKCall]:
        """Remove and return the calls that have waited long enough, or all calls."""
        now, ended_calls = time.monotonic(), []
        while self._heap and (all_of_them or self._heap[0][0] <= now):
            deadline, _, call = heappop(self._heap)
            if call.deadline == deadline and not call.is_over:  # otherwise another attempt has begun
                call.is_over, call.expected = True, None
                ended_calls.append(call)
        return ended_calls

    def seconds_to_next(self) -> float | None:
        """Return the seconds until the next call ends, or ``None``."""
        return max(0.0, self._heap[0][0] - time.monotonic()) if self._heap else None


def attempt_number(headers: Mapping[str, str]) -> int | None:
    """Return the number of the attempt, from 0, in the *headers* of a request, or ``None`` if they have none."""
    value = headers.get(_COUNT_HEADER, "")
    return int(value) if value.isascii() and value.isdigit() else None


def longest_wait(exchange: WatchedExchange) -> float | None:
    """Return the maximum seconds until the SDK retries *exchange*, which has ended, or ``None`` if it does not retry."""
    if exchange.next_wait:
        return exchange.next_wait
    if not exchange.is_numbered or (exchange.was_abandoned and exchange.status is None):
        return None
    retry_word, status = exchange.headers.get("x-should-retry"), exchange.status
    if retry_word != "true" and (
        retry_word == "false" or not (status is None or status in (408, 409, 429) or status >= 500)
    ):
        return None
    retry_after = exchange.headers.get("retry-after", "")
    seconds = float(retry_after) if retry_after.isascii() and retry_after.isdigit() else 0.0
    return _LONGEST_WAIT + (seconds if seconds <= _LONGEST_RETRY_AFTER else 0.0)


def by_name(headers: Mapping[str, str] | Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return *headers* by lower-case name. Values of one name are joined with a comma."""
    values: dict[str, str] = {}
    pairs = headers if type(headers) is list else headers.items() if isinstance(headers, Mapping) else headers
    for name, value in pairs:
        name = name.lower()
        values[name] = f"{values[name]}, {value}" if name in values else value
    return values


# -------------------------------------------------------------------------------- exchange
# An exchange in progress: HTTP layers report to it, at almost no cost.


_OVERHEAD: Final = 128
"""Estimated bytes of memory for a chunk, in addition to its content."""


class ExchangeOwner(Protocol):
    """Limits the memory of all exchanges, and receives each that has ended."""

    keep_bytes: int

    def reserve(self, exchange: WatchedExchange, size: int) -> bool:
        """Reserve *size* more bytes for *exchange*, or drop it and return ``False`` if memory is short."""

    def discard(self, exchange: WatchedExchange) -> None:
        """Forget *exchange* without a record."""

    def deliver(self, exchange: WatchedExchange) -> None:
        """Receive *exchange*, which has ended."""

    def report(self, doing: str, error: BaseException) -> None:
        """Log *error*, which the program does not see."""


@attrs.frozen
class Hop:
    """A request that was redirected, and the headers of its answer, with credentials."""

    url: str = attrs.field(repr=False)
    request_headers: Mapping[str, str] = attrs.field(repr=False)
    answer_headers: Mapping[str, str] = attrs.field(repr=False)


class WatchedExchange:
    """An exchange in progress. An HTTP layer calls, in this order:

    - :meth:`answered` when status and headers have arrived
    - :meth:`chunk` for each piece of the body
    - :meth:`ended`, :meth:`failed` or :meth:`abandoned`: the first call counts, and later calls have no effect

    None of these methods raises, blocks or maps anything. :meth:`Watcher.begin` makes exchanges. If an exchange is garbage
    collected before its end, it counts as abandoned by the application.
    """

    def __init__(
        self,
        owner: ExchangeOwner,
        site: Site,
        method: str,
        url: str,
        headers: Mapping[str, str] | Iterable[tuple[str, str]],
        content: bytes | None,
        body: Mapping[str, Any],
    ) -> None:
        self.id = os.urandom(16).hex()
        self.site = site
        self.method = method
        self.url = url
        self.request_headers = by_name(headers)
        self.content = content if len(content or b"") <= owner.keep_bytes else None
        model = body.get("model")
        self.model = model if isinstance(model, str) and model else site.model
        self.options = options_of(body)
        self.is_json = bool(body)
        self.attempt = attempt_number(self.request_headers)
        self.is_numbered = self.attempt is not None
        self.call: SDKCall | None = None
        self.labels = current_labels()
        self.hops: tuple[Hop, ...] = ()
        self.status: int | None = None
        self.headers: Mapping[str, str] = {}
        self.encoding = ""
        self.chunks: list[bytes] = []
        self.times: list[float] = []
        self.is_cut = False
        self.context = self.sending_context = copy_context()  # sinks run in the trace of the request
        self.error: BaseException | None = None
        self.was_abandoned = False
        self.began = datetime.now(UTC)
        self.started = time.perf_counter()
        self.finished = self.started
        self.reserved = 0
        self.next_wait = 0.0
        self._stored_bytes = 0
        self._owner = owner
        self._is_over = not owner.reserve(self, len(self.content or b"") + len(url) + 2 * _OVERHEAD)

    def answered(
        self,
        status: int,
        headers: Mapping[str, str] | Iterable[tuple[str, str]],
        *,
        encoding: str | None = None,
    ) -> bool:
        """Report the start of the answer. Returns whether its body is wanted.

        Args:
            status: the HTTP status. Interim answers and redirects are not watched. The request that follows a redirect
                continues this exchange.
            headers: the headers of the answer.
            encoding: the content encoding of the chunks, ``""`` if they are decoded, or ``None`` to read the headers.
        """
        try:
            if status < 200 or 300 <= status < 400:
                self.hop(headers)
                location = self.hops[-1].answer_headers.get("location")
                content = self.content
                self._expect(
                    _address(location, self.url) if location else None, self.attempt, self, _REDIRECT_WAIT
                )
                self.discard()
                self.content = content  # what follows may not send it again
                return False
            self.status = status
            self.headers = by_name(headers)
            if encoding is None:
                encoding = self.headers.get("content-encoding", "")
            self.encoding = encoding.strip().lower()
            return not self._is_over
        except Exception as error:
            self.report("watching", error)
            return False

    @property
    def trace(self) -> tuple[str, str] | None:
        """The ids in hex of the trace and the span that are current while the request is sent, or ``None``."""
        return self.sending_context.copy().run(current_trace)

    def hop(self, headers: Mapping[str, str] | Iterable[tuple[str, str]]) -> None:
        """Report the *headers* of a redirect that the client may follow."""
        self.hops += (Hop(self.url, self.request_headers, by_name(headers)),)

    @property
    def headers_asked(self) -> dict[str, str]:
        """The headers of the request, and those that a client left out after a redirect."""
        return {
            name: value
            for headers in (*[hop.request_headers for hop in self.hops], self.request_headers)
            for name, value in headers.items()
        }

    def follow(self, redirected: WatchedExchange) -> None:
        """Continue *redirected*. What that asked counts, because a client asks 301 to 303 with a ``GET``."""
        self.began, self.started = redirected.began, redirected.started
        self.hops, self.method = redirected.hops, redirected.method
        self.model, self.options, self.is_json = redirected.model, redirected.options, redirected.is_json
        if not self.content and redirected.content:
            self.content = redirected.content
            self._is_over = not self._owner.reserve(self, len(redirected.content))

    def chunk(self, data: bytes) -> None:
        """Report the next bytes of the body."""
        try:
            if self._is_over or self.is_cut or not data:
                return
            room = self._owner.keep_bytes - self._stored_bytes
            if len(data) > room:
                self.is_cut = True
                data = bytes(data[:room])
            if not self._owner.reserve(self, len(data) + _OVERHEAD):
                self._is_over = True
                return
            self._stored_bytes += len(data)
            self.times.append(time.perf_counter())
            self.chunks.append(data if type(data) is bytes else bytes(data))
        except Exception as error:
            self.report("watching", error)

    def ended(self) -> None:
        """Report the end of the body."""
        self._end()

    def failed(self, error: BaseException) -> None:
        """Report that *error* ended the exchange. A cancellation or interruption means that the application abandoned it.

        So does an error that has a cancellation as its cause.
        """
        if isinstance(error, Exception) and not _is_of_cancellation(error):
            self._end(error=error)
        else:  # cancelled, interrupted, or a generator that is closed
            self.abandoned()

    def abandoned(self) -> None:
        """Report that the application stopped reading."""
        self._end(was_abandoned=True)

    def discard(self) -> None:
        """Forget the exchange without a record."""
        if not self._is_over:
            self._is_over = True
            self._owner.discard(self)

    def repeats(self) -> None:
        """Report, before the end, that the client will send the request again. That is another exchange of the same call."""
        self._expect(_address(self.url), (self.attempt or 0) + 1, None, _REPETITION_WAIT)

    def _expect(
        self,
        address: tuple[str, ...] | None,
        attempt: int | None,
        redirected: WatchedExchange | None,
        wait: float,
    ) -> None:
        """Expect a request to *address* within *wait* seconds, which continues the call."""
        if address is not None and self.call is not None:
            self.call.expected = ExpectedRequest(address, self.site, attempt, redirected)
            self.next_wait = wait
            _current.set(self.call)

    def report(self, doing: str, error: BaseException) -> None:
        """Log *error*, which the program does not see."""
        self._owner.report(doing, error)

    def _end(self, error: Exception | None = None, was_abandoned: bool = False) -> None:
        if self._is_over:
            return
        self._is_over = True
        self.finished = time.perf_counter()
        self.error = error
        self.was_abandoned = was_abandoned
        try:
            self._owner.deliver(self)
        except Exception as failure:
            self.report("watching", failure)

    def __del__(self) -> None:
        if not getattr(self, "_is_over", True):
            self.abandoned()


def _is_of_cancellation(error: BaseException) -> bool:
    """Whether *error* has a cancellation among its causes."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        if isinstance(cause, CancelledError):
            return True
        seen.add(id(cause))
        cause = cause.__cause__
    return False


class WatchedSending:
    """The block in which the request of *exchange* is sent.

    Lower layers do not observe it again, and the operations of its call are current.
    """

    def __init__(self, exchange: WatchedExchange) -> None:
        self._exchange = exchange
        self._blocks: list[AbstractContextManager[object]] = []

    def __enter__(self) -> None:
        exchange = self._exchange
        self._token = _suppressed.set(True)
        for operation in () if exchange.call is None else exchange.call.operations.values():
            try:
                block = operation.current()
                block.__enter__()
                self._blocks.append(block)
            except Exception as error:
                exchange.report("beginning an operation", error)
        if self._blocks:
            exchange.sending_context = copy_context()

    def __exit__(self, *error: Any) -> None:
        for block in reversed(self._blocks):
            block.__exit__(*error)
        _suppressed.reset(self._token)


_PATHS: Final = option_paths()
_LABELS: Final = ("user", "safety_identifier", "metadata", "prompt_cache_key")
"""Options that may name a person."""
_SPOKEN: Final = (
    *("reasoning_effort", "reasoning_summary", "response_format", "tool_choice", "think", "stop"),
    *("truncation", "verbosity", "modalities", "service_tier", "previous_response_id"),
)
"""Options with a word, or with a list of words."""


def option_names(*options: str) -> tuple[str, ...]:
    """Return the names of *options* in all formats, without the objects around them."""
    paths = (path for option in options for path in _PATHS[option])
    return tuple(dict.fromkeys(path.rpartition(".")[2] for path in paths))


_PLAIN: Final = [option for option in _PATHS if option not in _LABELS]
_NUMBER_OPTIONS: Final = frozenset(option_names(*_PLAIN)) | {
    *("echo", "include_usage", "k", "maxTokens", "max_new_tokens", "max_tool_calls", "min_tokens", "p"),
    *("stream", "top_n_tokens", "use_cache"),
}
_WORD_OPTIONS: Final = frozenset(option_names(*_SPOKEN)) | {"format", "response_mime_type"}
_OBJECT_OPTIONS: Final = frozenset(
    step for option in _PLAIN for path in _PATHS[option] for step in path.split(".")[:-1]
) | {"format", "inferenceConfig", "parameters", "response_format"}
"""Names of options with a number or flag, with a word or list of words, and with an object of options.

They are those of the request tables, and those of formats that only servers speak.
"""


def json_object(content: bytes | None) -> dict[str, Any]:
    """Return the JSON object in *content*, or an empty one if it is something else."""
    try:
        value = load_json(content or b"")
    except ValueError:
        return {}
    return value if type(value) is dict else {}


def options_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the known options in the JSON *body* of a request, without content."""
    options: dict[str, Any] = {}
    for name, value in body.items():
        if isinstance(value, bool | int | float):
            if name in _NUMBER_OPTIONS:
                options[name] = value
        elif isinstance(value, dict):
            if name in _OBJECT_OPTIONS:
                options[name] = options_of(value)
        elif name in _WORD_OPTIONS and (isinstance(value, str) or _is_words(value)):
            options[name] = value
    return options


def _is_words(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)
