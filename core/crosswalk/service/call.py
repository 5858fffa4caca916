"""One call: its attempts, one after the other, and the events of the one that is delivered."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterable, Iterator, Mapping
from contextlib import aclosing
from typing import Any, Final, Self

import attrs

from crosswalk.errors import (
    CrosswalkError,
    ErrorInfo,
    ErrorKind,
    FramingError,
    IncompleteStreamError,
    InvalidJSONError,
    LimitError,
    MappingError,
    ResponseValidationError,
    UnknownFinishReasonError,
)
from crosswalk.mapping.reader import Reader
from crosswalk.plain_errors import interruption_of, raise_interruption
from crosswalk.request import Asked, ChatRequest, as_request
from crosswalk.service.endpoint import (
    CANCELLED,
    AttemptFailure,
    Redaction,
    RetryState,
    Route,
    StepTimeout,
    Timeouts,
    as_cancelled,
    completed,
    failure_of,
    is_paid,
    is_unstarted,
    request_id_of,
    retry_after_of,
    should_retry,
    timeout_info,
    where,
)
from crosswalk.service.http import CallWait, HTTPAnswer
from crosswalk.service.setup import (
    Around,
    Call,
    Observation,
    Prepared,
    Setup,
    not_sent,
    prepared,
    replayed,
)
from crosswalk.service.way_back import answer_with_names
from crosswalk.text import clean_message, counted
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.json import FrozenObject
from crosswalk.types.response import ChatResponse
from crosswalk.types.stream import EventMaker, StreamEvent, StreamEventType
from crosswalk.types.usage import AttemptOutcome, ProviderAttempt
from crosswalk.types.values import altered, new_id, unchecked
from crosswalk.words import suggests_names

# -------------------------------------------------------------------------------- exchange
# One attempt: a request, its answer's bytes, and the time limits on them.


_DRAIN_SECONDS = 0.1
"""The number of seconds to wait for the end of the HTTP message after the stream's own, so that the connection can be used
again."""


_MOST_BYTES: Final = 2**14
"""The number of bytes that are read from one look at the clock to the next."""


_MOST_ERROR_BYTES: Final = 2**20
"""The number of bytes of an error's body that are read: it says why in its first part."""


class Attempt:
    """One attempt at one endpoint.

    Its methods return failures as values, because the caller decides how to continue.

    Args:
        setup: the state that all calls of the service share.
        route: the endpoint.
        request: the request. If it names no model, the endpoint's is used.
        wait: lets the caller end a wait.
        deadline: the time until which the call may wait, by the clock of *wait*, or ``None`` for no limit.

    Attributes:
        model: the requested model.
        path: the path of its HTTP request, or empty before one is sent.
        content_type: the content type of the answer, in lower case without parameters, or empty before it begins.
        headers: those of the answer, by their names in lower case, or empty before it begins.
        start_time: the time of sending, by the timer of *setup*.
        has_read: whether anything of the answer has been read.
        has_token: whether the first token has arrived.
        silent_since: the time of the last token, or of sending, by the clock of *wait*. The time that the consumer takes
            is to be added.
        extra: further facts about the attempt.
    """

    def __init__(
        self, setup: Setup, route: Route, request: ChatRequest, wait: CallWait, deadline: float | None = None
    ) -> None:
        self.model = request.model or route.endpoint.model or ""
        self.path = self.content_type = ""
        self.headers: Mapping[str, str] = {}
        self.has_read = self.has_token = False
        self.extra: dict[str, Any] = {}
        self._setup = setup
        self._route = route
        self._is_stream = request.stream
        self._wait = wait
        self._deadline = deadline
        self._redact = route.redact
        self._tool_names: Mapping[str, str] = {}
        self._answer: HTTPAnswer | None = None
        self._content_length: str | None = None
        self._is_error = False
        limits = setup.options.limits
        self._left_bytes = min(_MOST_ERROR_BYTES, limits.line_bytes, limits.total_bytes)  # of an error's body
        self._reader: Reader | None = None
        self.start_time = setup.timer()
        self._sent_time = self.silent_since = 0.0
        self._pieces: Iterator[bytes] = iter(())  # of a long chunk
        # The time since which the answer has been over, without the sentinel and with it.
        self._end_times: dict[bool, float] = {}

    @property
    def reader(self) -> Reader:
        """The reader of the answer. An answer that has not begun is empty."""
        if self._reader is None:
            self._reader = self._new_reader(200)
        return self._reader

    async def open(self, prepared_request: Prepared) -> AttemptFailure | None:
        """Send the prepared request, and wait for the answer to begin."""
        setup, route, wait = self._setup, self._route, self._wait
        try:
            await wait.within(None, setup.transport.ready())
        except CrosswalkError as error:
            return not_sent(error)
        except TimeoutError:
            if not wait.is_late:
                raise
        if wait.is_cancelled:
            return self.cancelled()
        if prepared_request.built.adaptations:
            self.extra["adaptations"] = [one.plain() for one in prepared_request.built.adaptations]
        if prepared_request.built.tool_names:
            self._tool_names = self.extra["tool_names"] = dict(prepared_request.built.tool_names)
        self.path = prepared_request.built.path
        self.start_time = setup.timer()
        self._sent_time = self.silent_since = wait.now()
        method, headers = prepared_request.built.method, prepared_request.headers
        if route.sign is not None:  # now: a signature does not last long
            try:
                signature = route.sign(method, prepared_request.url, headers, prepared_request.content)
            except CrosswalkError as error:
                return not_sent(error)
            headers = {**headers, **signature.headers}
            self._redact = Redaction(route.headers.values(), (*route.secrets, *signature.secrets))
        wait.resent, wait.may_resend = 0, setup.retry.repeat_started or method != "POST"
        url, content = prepared_request.url, prepared_request.content
        deadline, limit_name = self._limit(self._sent_time)
        try:
            if deadline is not None and deadline <= self._sent_time:
                wait.is_late = True
                raise TimeoutError
            sending = setup.transport.send(url, method, headers, content, setup.timeouts, wait)
            self._answer = answer = await wait.within(deadline, sending)
        except Exception as error:
            return self._ended_by(error, limit_name)
        finally:
            if wait.resent:
                self.extra["resent"] = wait.resent
        self.headers = answer.headers
        self._content_length = answer.headers.get("content-length")
        self.content_type = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        self.extra["status"] = status = answer.status
        if (id := request_id_of(answer.headers)) is not None:
            self.extra["request_id"] = clean_message(self._redact(id), 200)
        self._is_error = status >= 400
        self._reader = self._new_reader(status if self._is_error else 200)
        if 300 <= status < 400:
            message = f"HTTP {status}: {_no_answer(answer.headers)}; check base_url"
            return self.failed(ErrorInfo(ErrorKind.INVALID_REQUEST, message, status=status))
        return None

    async def chunk(self) -> tuple[bytes | None, AttemptFailure | None]:
        """Return the next bytes of the answer, ``None`` at its end, or the failure to read them.

        Of an error, the part of the body that came is all of it: its status decides what follows.
        """
        wait = self._wait
        if wait.is_cancelled:
            return None, self.cancelled()
        if self._is_error and not self._left_bytes:
            return None, None
        assert self._answer is not None, "it has begun"
        now = wait.now()
        deadline, limit_name = self._limit(now)
        try:
            if deadline is not None and deadline <= now:  # even if what comes next need not be waited for
                wait.is_late = True
                raise TimeoutError
            chunk = next(self._pieces, b"") or await wait.within(deadline, self._answer.chunks.__anext__())
        except StopAsyncIteration:
            return None, None
        except LimitError as error:
            return None, self.unread(error, has_read=True)
        except Exception as error:
            return None, self._ended_by(error, limit_name)
        if len(chunk) > _MOST_BYTES and self._content_length != str(len(chunk)):
            self._pieces = iter(
                [chunk[start : start + _MOST_BYTES] for start in range(0, len(chunk), _MOST_BYTES)]
            )
            chunk = next(self._pieces)
        if self._is_error:
            chunk = chunk[: self._left_bytes]
            self._left_bytes -= len(chunk)
        return chunk, None

    async def read_body(self) -> AttemptFailure | None:
        """Read the answer to its end. Return how that failed, or ``None``: then :meth:`response` is complete."""
        chunk: bytes | None = b""
        while chunk is not None:
            chunk, failure = await self.chunk()
            if failure is not None:
                return failure
            try:
                for delta in self.deltas(chunk):
                    self.has_read = True
                    if self._is_stream and is_output(delta):
                        self.note_token()
            except CrosswalkError as error:
                return self.unread(error, has_read=self.has_read)
        return self.refused()

    def deltas(self, chunk: bytes | None) -> Iterable[ResponseDelta]:
        """Return the deltas of *chunk*, the next bytes of the answer, or ``None`` for its end.

        Raises:
            CrosswalkError: as from the methods of a :class:`Reader`. So does iterating over them.
        """
        reader = self._reader
        assert reader is not None, "it has begun"
        if chunk is None:
            deltas: Iterable[ResponseDelta] = reader.finish(is_cut="after_end" in self.extra)
        else:
            length, self._content_length = self._content_length, None  # the first bytes may be all
            is_whole = length is not None and length == str(len(chunk))
            is_watched = self._is_stream or "stream" in self.content_type
            deltas = reader.read_whole(chunk, is_watched=is_watched) if is_whole else reader.read(chunk)
        return map(self._with_own_name, deltas) if self._tool_names else deltas

    def _with_own_name(self, delta: ResponseDelta) -> ResponseDelta:
        """Return *delta* with the caller's name of the tool that it calls."""
        call = delta.tool_call_delta
        name = None if call is None else self._tool_names.get(call.name or "")
        if call is None or name is None:
            return delta
        return attrs.evolve(delta, tool_call_delta=attrs.evolve(call, name=name))

    def response(self) -> ChatResponse:
        """Return the complete answer, with the caller's names of the tools that it calls."""
        return self._with_own_names(self.reader.response())

    def partial(self, error: ErrorInfo | str) -> ChatResponse:
        """Return the answer so far as an error response, with the caller's names of the tools that it calls."""
        return self._with_own_names(self.reader.partial(error))

    def _with_own_names(self, response: ChatResponse) -> ChatResponse:
        return answer_with_names(response, self._tool_names) if self._tool_names else response

    def note_token(self) -> None:
        """Note that a token has arrived: the wait for the next one begins."""
        self.has_token = True
        self.silent_since = self._wait.now()

    async def close(self) -> None:
        """Release the connection: back to the pool if the answer was read to its end, else closed."""
        answer, self._answer = self._answer, None
        if answer is not None:
            await answer.aclose()

    def failed(self, info: ErrorInfo) -> AttemptFailure:
        """Return the failure of this attempt with *info* and the partial answer."""
        return AttemptFailure(
            info,
            self.retry_after,
            self.partial(info),
            is_unstarted=is_unstarted(self.extra.get("status"), info.code),
        )

    def refused(self) -> AttemptFailure | None:
        """Return the failure that the server itself reported in its complete answer, or ``None`` without one.

        A generation that ended with a finish word and its counts was paid for. It is final: nobody is asked again.
        """
        response = self.response()
        info = response.error_info
        if info is None:
            return None
        assert self._answer is not None, "the server has answered"
        headers = self._answer.headers
        advised_info = should_retry(headers, info)
        is_requested = advised_info is not info and advised_info.retryable
        return AttemptFailure(
            advised_info,
            retry_after_of(headers, info.raw),
            response,
            is_final=is_paid(response) and not is_requested,
            is_retry_requested=is_requested,
            is_unstarted=is_unstarted(self.extra.get("status"), info.code),
        )

    def unread(self, error: CrosswalkError, *, has_read: bool) -> AttemptFailure:
        """Return the failure of this attempt if *error* prevents its bytes from being read.

        An answer that ends too early is the server's failure, and so is other content in its place, such as a proxy's page.
        Unreadable data behind readable data raises: a retry would hide it.
        """
        raise_interruption(error)
        cause, is_cut = getattr(error, "cause", ""), isinstance(error, IncompleteStreamError)
        if is_cut and has_read and (self._is_stream or "stream" in self.content_type):
            return self.failed(ErrorInfo(ErrorKind.SERVER, cause, retryable=True, code="incomplete_stream"))
        if is_cut or (not has_read and isinstance(error, FramingError) and not isinstance(error, LimitError)):
            assert self._answer is not None, "something was read"
            content_type = clean_message(self._redact(self._answer.headers.get("content-type", "")), 80)
            content = f"HTTP {self._answer.status}, {content_type or 'without a content type'}"
            message = f"no answer that can be read ({content}): {cause}"
            return self.failed(ErrorInfo(ErrorKind.SERVER, message, retryable=True, code=_UNREADABLE))
        info = ErrorInfo(ErrorKind.UNKNOWN, str(error), code=_UNREADABLE)
        failure = self.failed(info)
        # All of such an answer was received: it is not requested again.
        is_whole = isinstance(error, UnknownFinishReasonError)
        return AttemptFailure(failure.info, failure.retry_after, failure.response, error, is_final=is_whole)

    def crashed(self, error: BaseException) -> AttemptFailure:
        """Return the failure of this attempt by an unexpected *error* of a plugin, an observer or a client."""
        name = type(error).__name__
        return self.failed(ErrorInfo(ErrorKind.UNKNOWN, f"failed with {name}", code="internal_error"))

    def cancelled(self) -> AttemptFailure:
        """Return the end of this attempt by its caller, with the partial answer."""
        return AttemptFailure(CANCELLED, response=as_cancelled(self.partial(CANCELLED)), cancelled=True)

    @property
    def retry_after(self) -> float | None:
        """The seconds that the server asks to wait, or ``None`` if it does not."""
        return None if self._answer is None else retry_after_of(self._answer.headers)

    def _ended_by(self, error: Exception, limit_name: str) -> AttemptFailure | None:
        """Return the failure of a wait under the limit *limit_name*, ended by *error*. Raises *error* if it is none."""
        if self._wait.is_cancelled:
            return self.cancelled()
        raise_interruption(error)
        if self._wait.is_late and not isinstance(error, StepTimeout):
            failure = self._broken(_too_late(limit_name, self._setup.timeouts))
            return (
                failure if failure is None or limit_name != "call" else attrs.evolve(failure, is_final=True)
            )
        info = failure_of(error, self._route.host)
        if info is None:
            raise error
        return self._broken(info)

    def _broken(self, info: ErrorInfo) -> AttemptFailure | None:
        """Return the failure with *info*, or ``None`` if the answer had ended before, or its status says that it failed."""
        if self._is_error:
            return None
        if not self.reader.has_ended:
            return self.failed(info)
        self.extra["after_end"] = info.code
        return None

    def _limit(self, now: float) -> tuple[float | None, str]:
        """Return the time until which to wait now, and the name of that limit."""
        timeouts, deadline = self._setup.timeouts, self._deadline
        end, end_limit = (None if timeouts.total is None else self._sent_time + timeouts.total), "total"
        own_start, own_limit = (now, "between_bytes") if self._is_stream else (self._sent_time, "whole")
        seconds: float | None = getattr(timeouts, own_limit)
        if seconds is not None and (end is None or own_start + seconds < end):
            end, end_limit = own_start + seconds, own_limit
        if deadline is not None and (end is None or deadline < end):
            end, end_limit = deadline, "call"
        reader = self._reader
        if reader is not None and reader.has_ended:
            is_done = reader.is_done
            grace = _DRAIN_SECONDS if is_done else timeouts.after_end
            if grace is not None:
                grace_end = self._end_times.setdefault(is_done, now) + grace
                return (grace_end if end is None else min(grace_end, end)), "after_end"
        limit_name = "between_tokens" if self.has_token else "first_token"
        seconds = getattr(timeouts, limit_name) if self._is_stream else None
        if seconds is None:
            return end, end_limit
        next_token = self.silent_since + seconds
        return (end, end_limit) if end is not None and end < next_token else (next_token, limit_name)

    def _new_reader(self, status: int) -> Reader:
        options = altered(
            self._setup.options,
            status=status,
            timer=self._setup.timer,
            redact=self._redact if self._redact.finds_any else None,
            content_type=self.content_type,
        )
        reader = Reader(self._route.mapper, options)
        reader.start_time = self.start_time  # that of the request
        return reader


def _too_late(limit_name: str, timeouts: Timeouts) -> ErrorInfo:
    missing_phrase = {
        "first_token": "no first token",
        "between_tokens": "no further token",
        "between_bytes": "no further byte",
    }.get(limit_name, "no end of the answer")
    seconds = getattr(timeouts, limit_name) or _DRAIN_SECONDS
    return timeout_info(limit_name, f"{missing_phrase} within {counted(seconds, 'second')}")


_UNREADABLE: Final = "unreadable_answer"
"""The code of an answer whose bytes cannot be read. The message says why."""


def _no_answer(headers: Mapping[str, str]) -> str:
    """Return why there is no answer, for a status that is neither success nor an error."""
    if "location" in headers:
        return "the server redirects, and redirects are not followed"
    return "the server sends no answer"


# ------------------------------------------------------------------------------------ call
# One call: its attempts, one after the other, with the middleware around them and the observers beside them.


def is_output(delta: ResponseDelta) -> bool:
    """Whether *delta* holds output of the model, and not only facts about the answer.

    An empty text does not count: some servers send it to announce a text.
    """
    return bool(
        delta.content_delta
        or delta.reasoning_delta
        or delta.tool_call_delta is not None
        or delta.refusal_delta
        or delta.segment is not None
    )


class ServiceCall:
    """One call of a service. It belongs to one event loop.

    Args:
        setup: the state that all calls of the service share.
        request: the request.

    Attributes:
        has_ended: whether the call has its response, or the exception in its place.
    """

    _shows_events = False

    def __init__(self, setup: Setup, request: Asked) -> None:
        self._setup = setup
        self._request = as_request(request)
        self._wait = setup.new_wait()
        self._around: Around | None = None
        self._retries: RetryState | None = None  # from the start on
        self._wait_seconds: float | None = 0.0  # before the next attempt, or None without one
        self._failure: AttemptFailure | None = None  # of the last attempt
        self._attempts: list[ProviderAttempt] = []
        self._response: ChatResponse | None = None
        self._error: CrosswalkError | None = None
        self._observations: list[Observation] = []
        # Whether a middleware's response is in place of the server's is known at the end.
        self.has_ended = self._has_attempt = self._is_replaced = False
        self._prepared_requests: dict[int, Prepared] = {}  # what goes to each endpoint
        self._deadline: float | None = None  # of the call, by the time of its waits

    @property
    def response(self) -> ChatResponse:
        """The complete response, once the call has ended for any reason.

        Raises:
            ResponseValidationError: it has not ended (``ACODE-RSP-008``).
            CrosswalkError: the exception that was raised, if nothing was sent.
        """
        if self._response is None:
            if self._error is not None:
                raise self._error
            raise ResponseValidationError("the stream has not been read to its end", code="ACODE-RSP-008")
        return self._response

    async def cancel(self) -> None:
        """End the answer here, from any task of this event loop, and close the connection.

        Events that have arrived can still be read. The last one is then ``response.incomplete`` with a response marked
        ``cancelled``. Does nothing to a stream that has ended.

        Raises:
            Exception: a middleware raises it for that response, which stays.
        """
        self._wait.cancel()
        if self._wait.is_read_here:
            return  # it ends when the reading goes on
        await self._wait.alone(self._read_rest)

    async def _read_rest(self) -> None:
        """Read what is left, unless that is done by who reads the call."""

    async def end(self) -> None:
        """Like :meth:`cancel`, by the service that is being closed. A call of another event loop is left alone."""
        if self._wait.is_here():
            await self.cancel()

    def _as_shown(self, request: ChatRequest) -> ChatRequest:
        """Return *request* as it is sent."""
        return altered(request, stream=True) if self._shows_events and not request.stream else request

    # The attempts.

    async def _next_attempt(self) -> Attempt | None:
        """End the last attempt, whose reading set ``_failure``, and return the next one, whose answer has begun.

        ``None`` if there is none: the call has its response.

        Raises:
            CrosswalkError: the call ends with it instead.
        """
        if self._retries is not None:
            await self._settle(self._retries)
        else:
            await self._start()
        retries = self._retries
        if retries is None:  # a middleware has answered
            return None
        while self._wait_seconds is not None:
            if self._wait_seconds and not self._wait.is_cancelled:
                pause_start = self._setup.timer()
                try:
                    await self._wait.pause(self._wait_seconds)
                finally:
                    earlier = self._attempts[-1]
                    extra = {**earlier.extra, "waited_seconds": self._setup.timer() - pause_start}
                    self._attempts[-1] = attrs.evolve(earlier, extra=extra)
            if self._wait.is_cancelled:
                self._failure = self._attempt.cancelled()
                break
            self._is_trying = True
            self._failure = await self._attempt.open(self._prepared_requests[retries.endpoint])
            if self._failure is None:
                return self._attempt
            await self._settle(retries)
        await self._finish()
        return None

    async def _stepped(self, step: Awaitable[Any], otherwise: Any, deadline: float | None = None) -> Any:
        """Return the result of a *step* of the middleware, or *otherwise* if the caller or the *deadline* ends it."""
        try:
            return await self._wait.within(deadline, step)
        except TimeoutError:
            if self._wait.is_late or self._wait.is_cancelled:
                return otherwise
            raise

    async def _start(self) -> None:
        """Begin the call, and the first attempt with the request to each endpoint, unless a middleware answers the call."""
        setup = self._setup
        self._wait.begin()
        if setup.timeouts.call is not None:
            self._deadline = self._wait.now() + setup.timeouts.call
        setup.calls.add(self)
        if setup.middleware:
            self._around = around = Around(setup.middleware)
            given = await self._stepped(around.ask(self._request), self._request, self._deadline)
            if isinstance(given, ChatResponse):
                self._response, self.has_ended, self._is_replaced = given, True, True
                return
            self._request = self._as_shown(given)
        self._begin(0)
        failures: dict[int, AttemptFailure] = {}
        if setup.discovery is not None:
            try:
                needs_model = self._request.model is None
                self._setup = setup = await setup.discovery.resolve(
                    setup, self._wait, self._deadline, self._request, needs_model=needs_model
                )
                self._begin(0)
            except CrosswalkError as unresolved:
                failures = {} if self._wait.is_cancelled else {0: not_sent(unresolved)}
        if setup.slots is not None and not self._wait.is_cancelled:
            try:
                await setup.slots.take(self._wait)
            except TimeoutError:
                if not self._wait.is_cancelled:
                    raise
        if not failures and not self._wait.is_cancelled:
            self._prepared_requests, failures = prepared(setup, self._request)
        endpoints = self._prepared_requests or range(len(setup.routes))
        self._retries = retries = RetryState(endpoints, setup.retry, setup.cooling)
        if retries.endpoint:  # the first one begins above
            self._begin(retries.endpoint, retries.passed_over)
        call = Call(new_id(), self._request, self._route, self._attempt.model, self._shows_events)
        self._observations = [observer.started(call) for observer in setup.observers]
        for number, failure in failures.items():
            self._begin(number)
            self._failure = failure
            self._record(failure)
        if failures:
            self._begin(retries.endpoint, retries.passed_over)
            self._wait_seconds = 0.0 if self._prepared_requests else None

    def _begin(self, endpoint: int, passed_over: Iterable[int] = ()) -> None:
        """Begin an attempt at the *endpoint* of this number. What an earlier one has shown becomes void."""
        routes, self._has_attempt = self._setup.routes, True
        self._route = route = routes[endpoint]
        self._attempt = Attempt(self._setup, route, self._request, self._wait, self._deadline)
        if passed_over:
            self._attempt.extra["passed_over"] = [where(routes[one].host) for one in passed_over]
        self._is_trying = self._is_shown = False  # shown: a part of it

    async def _settle(self, retries: RetryState) -> None:
        """End the attempt, and begin the next one if *retries* allows it."""
        attempt, failure = self._attempt, self._failure
        await attempt.close()
        seconds = retries.after(failure, shown=self._is_shown)
        if retries.cool_down is not None:
            attempt.extra["cool_down"] = retries.cool_down
        if seconds is not None and self._deadline is not None:
            seconds = seconds if self._wait.now() + seconds < self._deadline else None
        self._record(failure)
        self._wait_seconds = seconds
        if seconds is not None:
            self._begin(retries.endpoint, retries.passed_over)

    def _record(self, failure: AttemptFailure | None) -> None:
        current_attempt, self._is_trying = self._attempt, False
        extra = dict(current_attempt.extra)
        outcome, message = AttemptOutcome.SUCCESS, None
        if failure is not None:
            outcome = AttemptOutcome.CANCELLED if failure.cancelled else AttemptOutcome.ERROR
            info, message = failure.info, clean_message(failure.info.message)
            code = None if info.code is None else clean_message(info.code, 200)
            failure_fields = {"kind": info.kind.value, "code": code, "retry_after": failure.retry_after}
            extra |= {name: value for name, value in failure_fields.items() if value is not None}
        attempt = unchecked(
            ProviderAttempt,
            provider_name=self._route.provider,
            model=current_attempt.model,
            latency_ms=(self._setup.timer() - current_attempt.start_time) * 1000,
            outcome=outcome,
            error=message,
            extra=FrozenObject.adopt(extra),
        )
        self._attempts.append(attempt)
        for observation in self._observations:
            observation.attempted(attempt, self._route)

    async def _finish(self) -> None:
        """End the call with the response of the last attempt, or with that of the middleware.

        Raises:
            CrosswalkError: the exception that ends it instead.
        """
        failure = self._failure
        response = self._attempt.response() if failure is None else failure.response
        error = None if failure is None else failure.error
        if failure is not None and failure.cancelled and not self._shows_events:
            # Only the service itself can end a call that delivers no events. The part that arrived is not an answer.
            error = CrosswalkError("the service was closed before the answer was complete")
        self._end(response, error)
        if error is not None:
            raise error
        around, self._around = self._around, None
        if around is not None:
            async with aclosing(around):
                await self._leave()
                response = self.response
                self._response = await self._stepped(around.answer(response), response)
                self._is_replaced = self._response is not response

    def _note_end_by(self, error: BaseException) -> None:
        """Note that *error* ends the call, unless it has ended."""
        if self.has_ended:
            return
        # Anything but an Exception comes from a cancelled task, or from a consumer that left.
        has_failed = isinstance(error, Exception) and interruption_of(error) is None
        if not has_failed and not isinstance(error, GeneratorExit):
            self._wait.tear()
        response = None
        if self._has_attempt:
            failure = self._attempt.crashed(error) if has_failed else self._attempt.cancelled()
            if self._is_trying:
                self._record(failure)
            response = failure.response
        self._end(response, error)

    async def _leave(self) -> None:
        """Give back what the call holds."""
        self._setup.calls.discard(self)
        try:
            self._wait.end()
            if self._has_attempt:
                await self._attempt.close()
            if self._setup.slots is not None:
                self._setup.slots.give_back(self._wait)
        finally:
            if self._around is not None:
                await self._around.aclose()

    def _end(self, response: ChatResponse | None, error: BaseException | None) -> None:
        if response is not None and not response.attempts:
            response = completed(
                response, self._attempt.model or None, self._attempts, is_stream=self._request.stream
            )
        if response is not None and isinstance(error, MappingError):
            error.partial = response
        if response is not None and self._setup.has_several_servers:
            self._setup.servers.note(response, self._route.server)
        self._response, self.has_ended = response, True
        self._error = error if isinstance(error, CrosswalkError) else None
        for observation in self._observations:
            observation.ended(response, error)


class BodyCall(ServiceCall):
    """A call that reads one complete answer."""

    async def answer(self) -> ChatResponse:
        """Return the complete response.

        Raises:
            CrosswalkError: as from :meth:`LLMService.complete`, but not for an error response.
        """
        await self._wait.alone(lambda: self._wait.nested(self._read_body()))
        return self.response

    async def _read_body(self) -> None:
        try:
            while (attempt := await self._next_attempt()) is not None:
                self._failure = await attempt.read_body()
        except BaseException as error:
            self._note_end_by(error)
            raise
        finally:
            await self._leave()


# ---------------------------------------------------------------------------------- stream
# The events of the attempt that is delivered.


@attrs.frozen
class Sent:
    """The request of a stream.

    Attributes:
        provider: the provider id.
        model: the model that was requested.
        path: the path of the HTTP request.
        content_type: the content type of the answer, in lower case without parameters.
        renames_tools: whether it calls tools by other names than the caller's.
        adaptations: those of the request, each as plain JSON.
    """

    provider: str
    model: str
    path: str
    content_type: str
    renames_tools: bool = False
    adaptations: Iterable[Mapping[str, Any]] = ()


def text_of(event: StreamEvent) -> str:
    """Return the text that *event* adds to the first choice, or ``""``."""
    delta = event.delta
    return "" if delta is None or delta.choice else delta.content_delta or ""


_UNFINISHED: Final = ErrorInfo(ErrorKind.UNKNOWN, "the stream has not been read to its end")


@suggests_names
class EventStream(ServiceCall, AsyncIterator[StreamEvent]):
    """The events of an answer as they arrive, made by :meth:`LLMService.stream`.

    The first event is ``response.created``, the last carries the complete response. Nothing is sent before the first
    event is requested, and no byte is read before its event is. Use it in ``async with``: leaving the block closes the
    connection of an unfinished answer, which is then marked ``cancelled``. A stream belongs to one event loop.

    Args:
        setup: the state that all calls of the service share.
        request: the request.
        raw_events: whether events carry the provider's own.

    Attributes:
        ready: the events that have arrived and not been read.
        has_ended: whether the last event, or the exception in its place, has arrived. Events may still be ``ready``.
    """

    _shows_events = True

    def __init__(self, setup: Setup, request: Asked, *, raw_events: bool = False) -> None:
        super().__init__(setup, self._as_shown(as_request(request)))
        self._adds_raw_events = raw_events
        self._source = self._batches()
        self.ready: deque[StreamEvent] = deque()
        self._was_shown = False  # by an attempt, which may be void by now

    # The consumer's interface.

    async def __anext__(self) -> StreamEvent:
        """Return the next event.

        Raises:
            MappingError: the answer cannot be read. ``partial`` holds its readable part, and all attempts.
            UnsupportedRequestError: an endpoint cannot express the request. Nothing was sent to any.
        """
        while not self.ready:
            await self.read_on()
        return self.ready.popleft()

    @property
    async def text(self) -> AsyncGenerator[str, None]:
        """The text of the answer as it arrives. Leaving the loop early ends the answer.

        If an attempt is repeated after text was delivered (``RetryPolicy.after_first_token``), the new text follows the old
        one. Iterate over the events to tell them apart.

        Raises:
            ProviderError: the provider failed, after the text so far. CrosswalkError: as from iterating.
        """
        async with self:
            async for event in self:
                if text := text_of(event):
                    yield text
        self.response.raise_for_error()

    @property
    def partial(self) -> ChatResponse:
        """The present attempt so far, as an error response that is marked so. At the end it is the complete response.

        Raises:
            ResponseValidationError: the first event has not been requested (``ACODE-RSP-008``).
        """
        if self._response is not None or not self._has_attempt:
            return self.response
        return self._attempt.partial(_UNFINISHED)

    @property
    def head(self) -> ChatResponse:
        """A response without content, with all else that is known of the present attempt so far, such as its model.

        At the end it is the complete response.

        Raises:
            ResponseValidationError: the first event has not been requested (``ACODE-RSP-008``).
        """
        if self._response is not None or not self._has_attempt:
            return self.response
        return self._attempt.reader.head()

    @property
    def sent(self) -> Sent | None:
        """The request of the present attempt. ``None`` before one is sent, and for an answer of a middleware."""
        if not self._has_attempt or not self._attempt.path:
            return None
        attempt = self._attempt
        about = (attempt.content_type, "tool_names" in attempt.extra, attempt.extra.get("adaptations", ()))
        return Sent(self._route.provider, attempt.model, attempt.path, *about)

    def take_frames(self) -> list[bytes]:
        """Return the provider's events of the present attempt since the last call, as received.

        An event that could not be read is left out. Empty if the service stores no bytes (``keep_raw=False``).
        """
        if not self._has_attempt:
            return []
        frames = list(self._attempt.reader.frames[self._taken_count : self._unreadable_number])
        self._taken_count += len(frames)
        return frames

    async def aclose(self) -> None:
        """Like :meth:`cancel`, for a stream that is not read any further."""
        await self.cancel()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def read_on(self) -> None:
        """Wait for further events, unless some are :attr:`ready`. Afterwards some are, or the stream has ended.

        Raises:
            StopAsyncIteration: there are no more events. CrosswalkError: as from :meth:`__anext__`.
        """
        await self._wait.alone(self._read_batch)

    async def _read_batch(self) -> None:
        if not self.ready:
            self.ready.extend(await self._wait.nested(self._source.__anext__()))

    async def _read_rest(self) -> None:
        try:
            async for batch in self._source:
                self.ready.extend(batch)
        except CrosswalkError as error:
            if error is not self._error:  # which ``response`` tells
                raise

    # The events of each attempt.

    async def _batches(self) -> AsyncGenerator[list[StreamEvent], None]:
        try:
            while (attempt := await self._next_attempt()) is not None:
                chunk: bytes | None = b""
                now = self._wait.now
                while chunk is not None and self._failure is None:
                    chunk, self._failure = await attempt.chunk()
                    if self._failure is None:
                        batch, self._failure = self._collect(chunk)
                        if batch:
                            shown_at = now()
                            yield batch
                            attempt.silent_since += now() - shown_at
                        if chunk is None:
                            self._failure = self._failure or attempt.refused()
            yield self._last()
        except BaseException as error:
            self._note_end_by(error)
            raise
        finally:
            await self._leave()

    def _begin(self, endpoint: int, passed_over: Iterable[int] = ()) -> None:
        super()._begin(endpoint, passed_over)
        self._maker = EventMaker()
        self._taken_count = 0  # of the attempt's frames
        self._unreadable_number: int | None = None  # the number of the frame that could not be read
        self._held_events: list[StreamEvent] = []
        self._final_delta: ResponseDelta | None = None

    def _collect(self, chunk: bytes | None) -> tuple[list[StreamEvent], AttemptFailure | None]:
        """Return the events of *chunk*, the next bytes of the answer, and the failure after them."""
        events: list[StreamEvent] = []
        failure: AttemptFailure | None = None
        attempt, has_output = self._attempt, False
        try:
            for delta in attempt.deltas(chunk):
                attempt.has_read = True
                if delta.finish_reason is not None and delta.choice == 0:
                    self._final_delta = delta
                    continue
                has_output = has_output or is_output(delta)
                raw_event = attempt.reader.last_event() if self._adds_raw_events else None
                events += self._maker.events(delta, raw_event)
        except CrosswalkError as error:
            failure = attempt.unread(error, has_read=attempt.has_read)
            if not isinstance(error, IncompleteStreamError) or isinstance(error.__cause__, InvalidJSONError):
                self._unreadable_number = len(attempt.reader.frames) - 1
        if has_output:
            attempt.note_token()
        if not self._is_shown:
            self._held_events += events
            if not has_output:
                return [], failure
            events = [self._created(), *self._held_events]
            self._is_shown = self._was_shown = True
        return events, failure

    def _created(self) -> StreamEvent:
        event_type = StreamEventType.RETRIED if self._was_shown else StreamEventType.CREATED
        return unchecked(StreamEvent, event_type=event_type, attempts=tuple(self._attempts))

    def _last(self) -> list[StreamEvent]:
        """Return the events that end the stream, or all of them for an answer of a middleware."""
        response = self.response
        if self._is_replaced and not self._was_shown:
            return replayed(response)
        final_delta = None if self._final_delta is None else self._maker.numbered(self._final_delta)
        last_events = [StreamEvent.terminal(response, final_delta)]
        if self._is_shown or (self._failure is not None and not self._held_events and not self._was_shown):
            return last_events
        return [self._created(), *self._held_events, *last_events]
