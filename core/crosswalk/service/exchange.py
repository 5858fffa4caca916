"""One attempt: a request, its answer's bytes, and the time limits on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from crosswalk.errors import (
    CrosswalkError,
    ErrorInfo,
    ErrorKind,
    FramingError,
    IncompleteStreamError,
    LimitError,
    UnknownFinishReasonError,
)
from crosswalk.mapping.reader import Reader
from crosswalk.request import ChatRequest
from crosswalk.service.attempts import Failure
from crosswalk.service.endpoint import Route
from crosswalk.service.failures import (
    CANCELLED,
    as_cancelled,
    failure_of,
    is_paid,
    is_unstarted,
    request_id_of,
    retry_after_of,
    should_retry,
    timeout_info,
)
from crosswalk.service.http.deadlines import Wait
from crosswalk.service.http.redaction import Redaction
from crosswalk.service.http.transport import Answer
from crosswalk.service.policy import Timeouts
from crosswalk.service.setup import Prepared, Setup, not_sent
from crosswalk.text import clean_message, counted
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.response import ChatResponse
from crosswalk.types.values import altered

_DRAIN = 0.1
"""The number of seconds to wait for the end of the HTTP message after the stream's own, so that the connection can be used
again."""


class _Since:
    """A clock with *start* as its first reading: a reader takes the time of its making for that of the request."""

    def __init__(self, start: float, timer: Callable[[], float]) -> None:
        self._start: float | None = start
        self._timer = timer

    def __call__(self) -> float:
        start, self._start = self._start, None
        return self._timer() if start is None else start


class Exchange:
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
        has_token: whether the first token has arrived.
        extra: further facts about the attempt.
    """

    def __init__(
        self, setup: Setup, route: Route, request: ChatRequest, wait: Wait, deadline: float | None = None
    ) -> None:
        self.model = request.model or route.endpoint.model or ""
        self.path = self.content_type = ""
        self.has_token = False
        self.extra: dict[str, Any] = {}
        self._setup = setup
        self._route = route
        self._is_stream = request.stream
        self._wait = wait
        self._deadline = deadline
        self._redact = route.redact
        self._answer: Answer | None = None
        self._length: str | None = None
        self._is_error = False
        self._reader: Reader | None = None
        self._started = setup.timer()
        self._sent = self._silent = 0.0
        # The time since which the answer has been over, without the sentinel and with it.
        self._ends: dict[bool, float] = {}

    @property
    def seconds(self) -> float:
        """The time that it has taken so far."""
        return self._setup.timer() - self._started

    @property
    def reader(self) -> Reader:
        """The reader of the answer. An answer that has not begun is empty."""
        if self._reader is None:
            self._reader = self._new_reader(200)
        return self._reader

    async def open(self, sent: Prepared) -> Failure | None:
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
        if sent.built.dropped:
            self.extra["dropped"] = [{"option": d.option, "reason": d.reason} for d in sent.built.dropped]
        if sent.built.added:
            self.extra["added"] = dict(sent.built.added)
        self.path = sent.built.path
        self._started = setup.timer()
        self._sent = wait.now()
        self._silent = 0.0
        method, headers = sent.built.method, sent.headers
        if route.sign is not None:  # now: a signature does not last long
            try:
                signed = route.sign(method, sent.url, headers, sent.content)
            except CrosswalkError as error:
                return not_sent(error)
            headers = {**headers, **signed.headers}
            self._redact = Redaction([*route.headers.values(), *signed.secrets])
        wait.resent = 0
        sending = setup.transport.send(sent.url, method, headers, sent.content, setup.timeouts, wait)
        when, name = self._limit(self._sent)
        try:
            self._answer = answer = await wait.within(when, sending)
        except Exception as error:
            return self._ended_by(error, name)
        finally:
            self._silent += wait.now() - self._sent
            if wait.resent:
                self.extra["resent"] = wait.resent
        self._length = answer.headers.get("content-length")
        self.content_type = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        status = answer.status
        self.extra["status"] = status
        if (id := request_id_of(answer.headers)) is not None:
            self.extra["request_id"] = clean_message(self._redact(id), 200)
        self._is_error = status >= 400
        self._reader = self._new_reader(min(status, 599) if self._is_error else 200)
        if 300 <= status < 400:
            return self.failed(
                ErrorInfo(
                    ErrorKind.INVALID_REQUEST,
                    f"HTTP {status}: {_no_answer(answer.headers)}; check base_url",
                    status=status,
                )
            )
        return None

    async def chunk(self) -> tuple[bytes | None, Failure | None]:
        """Return the next bytes of the answer, ``None`` at its end, or the failure to read them."""
        wait = self._wait
        if wait.is_cancelled:
            return None, self.cancelled()
        assert self._answer is not None, "it has begun"
        before = wait.now()
        when, name = self._limit(before)
        try:
            return await wait.within(when, self._answer.chunks.__anext__()), None
        except StopAsyncIteration:
            return None, None
        except LimitError as error:
            return None, self.unread(error, has_read=True)
        except Exception as error:
            return None, self._ended_by(error, name)
        finally:
            self._silent += wait.now() - before

    def deltas(self, chunk: bytes | None) -> Iterator[ResponseDelta]:
        """Return the deltas of *chunk*, the next bytes of the answer, or ``None`` for its end."""
        if chunk is None:
            yield from self.reader.finish()
            return
        length, self._length = self._length, None  # the first bytes may be all
        is_whole = length is not None and length == str(len(chunk))
        yield from self.reader.read_whole(chunk) if is_whole else self.reader.read(chunk)

    def note_token(self) -> None:
        """Note that a token has arrived: the wait for the next one begins."""
        self.has_token = True
        self._silent = 0.0

    async def close(self) -> None:
        """Release the connection: back to the pool if the answer was read to its end, else closed."""
        answer, self._answer = self._answer, None
        if answer is not None:
            await answer.aclose()

    def failed(self, info: ErrorInfo) -> Failure:
        """Return the failure of this attempt with *info* and the partial answer."""
        return Failure(
            info, self.retry_after, self.reader.partial(info), is_unstarted=self._is_unstarted(info)
        )

    def refused(self, response: ChatResponse) -> Failure | None:
        """Return the failure that the server itself reported in *response*, or ``None`` for an answer.

        A generation that ended with a finish word and its counts was paid for. It is final: nobody is asked again.
        """
        info = response.error_info
        if info is None:
            return None
        assert self._answer is not None, "the server has answered"
        headers = self._answer.headers
        described = should_retry(headers, info)
        is_requested = described is not info and described.retryable
        return Failure(
            described,
            retry_after_of(headers, info.raw),
            response,
            is_final=is_paid(response) and not is_requested,
            is_retry_requested=is_requested,
            is_unstarted=self._is_unstarted(info),
        )

    def unread(self, error: CrosswalkError, *, has_read: bool) -> Failure:
        """Return the failure of this attempt if *error* prevents its bytes from being read.

        An answer that ends too early is the server's failure, and so is other content in its place, such as a proxy's page.
        Unreadable data behind readable data raises: a retry would hide it.
        """
        if isinstance(error, IncompleteStreamError):
            return self.failed(
                ErrorInfo(ErrorKind.SERVER, error.cause, retryable=True, code="incomplete_stream")
            )
        if not has_read and isinstance(error, FramingError) and not isinstance(error, LimitError):
            message = f"no answer that can be read ({self._content}): {error.cause}"
            return self.failed(ErrorInfo(ErrorKind.SERVER, message, retryable=True, code="unreadable_answer"))
        info = ErrorInfo(ErrorKind.UNKNOWN, str(error), code=type(error).__name__)
        failure = self.failed(info)
        is_whole = isinstance(
            error, UnknownFinishReasonError
        )  # all of it was received: it is not requested again
        return Failure(failure.info, failure.retry_after, failure.response, error, is_final=is_whole)

    def crashed(self, error: Exception) -> Failure:
        """Return the failure of this attempt by an unexpected *error* of a plugin, an observer or a client."""
        name = type(error).__name__
        return self.failed(ErrorInfo(ErrorKind.UNKNOWN, f"failed with {name}", code=name))

    def cancelled(self) -> Failure:
        """Return the end of this attempt by its caller, with the partial answer."""
        return Failure(CANCELLED, response=as_cancelled(self.reader.partial(CANCELLED)), cancelled=True)

    def _is_unstarted(self, info: ErrorInfo) -> bool:
        return is_unstarted(self.extra.get("status"), info.code)

    @property
    def retry_after(self) -> float | None:
        """The seconds that the server asks to wait, or ``None`` if it does not."""
        return None if self._answer is None else retry_after_of(self._answer.headers)

    @property
    def _content(self) -> str:
        """The status and content type of the answer, from its headers."""
        assert self._answer is not None, "something was read"
        raw = clean_message(self._redact(self._answer.headers.get("content-type", "")), 80)
        return f"HTTP {self._answer.status}, {raw or 'without a content type'}"

    def _ended_by(self, error: Exception, name: str) -> Failure | None:
        """Return the failure of a wait under the limit *name*, ended by *error*. Raises *error* if it is not a failure."""
        if self._wait.is_cancelled:
            return self.cancelled()
        if self._wait.is_late:
            failure = self._broken(_too_late(name, self._setup.timeouts))
            return failure if failure is None or name != "call" else attrs.evolve(failure, is_final=True)
        info = failure_of(error, self._route.host)
        if info is None:
            raise error
        return self._broken(info)

    def _broken(self, info: ErrorInfo) -> Failure | None:
        """Return the failure with *info*, or ``None`` if the answer had ended before and is complete."""
        if not self.reader.has_ended:
            return self.failed(info)
        self.extra["after_end"] = info.code
        return None

    def _limit(self, now: float) -> tuple[float | None, str]:
        """Return the time until which to wait now, and the name of that limit."""
        timeouts, deadline = self._setup.timeouts, self._deadline
        end, of_end = (None if timeouts.total is None else self._sent + timeouts.total), "total"
        own, of_own = (now, "between_bytes") if self._is_stream else (self._sent, "whole")
        seconds: float | None = getattr(timeouts, of_own)
        if seconds is not None and (end is None or own + seconds < end):
            end, of_end = own + seconds, of_own
        if deadline is not None and (end is None or deadline < end):
            end, of_end = deadline, "call"
        reader = self._reader
        if reader is not None and reader.has_ended:
            is_done = reader.is_done
            grace = _DRAIN if is_done else timeouts.after_end
            if grace is not None:
                over = self._ends.setdefault(is_done, now) + grace
                return (over if end is None else min(over, end)), "after_end"
        name = "between_tokens" if self.has_token else "first_token"
        seconds = getattr(timeouts, name) if self._is_stream else None
        if seconds is None:
            return end, of_end
        next_token = now + seconds - self._silent
        return (end, of_end) if end is not None and end < next_token else (next_token, name)

    def _new_reader(self, status: int) -> Reader:
        timer = _Since(self._started, self._setup.timer)
        options = altered(
            self._setup.options,
            status=status,
            timer=timer,
            redact=self._redact,
            content_type=self.content_type,
        )
        return Reader(self._route.mapper, options)


def _too_late(name: str, timeouts: Timeouts) -> ErrorInfo:
    what = {
        "first_token": "no first token",
        "between_tokens": "no further token",
        "between_bytes": "no further byte",
    }.get(name, "no end of the answer")
    return timeout_info(name, f"{what} within {counted(getattr(timeouts, name) or _DRAIN, 'second')}")


def _no_answer(headers: Mapping[str, str]) -> str:
    """Return why there is no answer, for a status that is neither success nor an error."""
    if "location" in headers:
        return "the server redirects, which is not followed"
    return "the server sends no answer"
