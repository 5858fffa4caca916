"""Bytes in, deltas out, a response in the end: the one path that bodies and streams, sync and async share.

The reader composes a plugin's hooks and applies the rules that are the same for every provider: it holds finish
reasons back to the end, settles what they mean, and lets no failure pass as an answer. It does no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from functools import partial
from types import MappingProxyType
from typing import Any, NoReturn, TypeAlias

import attrs
import orjson

from crosswalk.errors import (
    ErrorInfo,
    FramingError,
    IncompleteStreamError,
    InvalidJSONError,
    MappingError,
    PluginError,
    ResponseValidationError,
    TooManyEventsError,
    TrailingContentError,
)
from crosswalk.mapping.ending import final_deltas, missing
from crosswalk.mapping.interpreter import Interpreter, Unknown
from crosswalk.mapping.learnt.templates import NO_TEMPLATE, Templates
from crosswalk.mapping.log import log_failure, log_response, log_unknown
from crosswalk.plugin.mapper import Mapper
from crosswalk.plugin.shown import is_token
from crosswalk.text import Redact
from crosswalk.types._value import altered
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.json import dump_json, load_json
from crosswalk.types.merge import copy_json
from crosswalk.types.metadata import Provenance
from crosswalk.types.raw import RawEvents
from crosswalk.types.response import ChatResponse, new_id, now
from crosswalk.wire.body import BodyDecoder
from crosswalk.wire.events import load_event
from crosswalk.wire.framing import Frame, is_done
from crosswalk.wire.limits import DEFAULT, Limits
from crosswalk.wire.sniff import SniffingDecoder

__all__ = ["Reader", "ReaderOptions"]

Timer: TypeAlias = Callable[[], float]

_BRACE = ord("{")


def _is_status(_: Any, __: Any, value: object) -> None:
    if type(value) is not int or not 100 <= value <= 599:
        raise ValueError(f"status is an HTTP status from 100 to 599, not {str(value)[:40]!r}")


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ReaderOptions:
    """How to read a payload; the same for bodies and streams.

    Attributes:
        status: the HTTP status of the answer; from 400 on the body is read as an error.
        unknown: ``"raise"`` for an event type or finish word that no mapping knows, or ``"keep"`` it: the event
            as extensions alone, the word as ``stop`` with provenance ``unmapped``.
        id_factory: makes the id where the provider sends none.
        clock: tells the time of creation where the provider sends none.
        keep_raw: whether to keep the provider's bytes on the response.
        limits: how much input is accepted.
        timer: a monotonic clock in seconds, to measure duration and time to first token from now on;
            ``None`` not to measure: recorded bytes have no timing, and the same bytes give the same response.
        redact: takes out of errors, of ids and models, and of finish words what a server may have repeated and nobody may
            see, such as the key that it was sent; ``None`` where nothing was sent.
    """

    status: int = attrs.field(default=200, validator=_is_status)
    unknown: Unknown = attrs.field(default="raise", validator=attrs.validators.in_(("raise", "keep")))
    id_factory: Callable[[], str] = new_id
    clock: Callable[[], datetime] = now
    keep_raw: bool = True
    limits: Limits = DEFAULT
    timer: Timer | None = None
    redact: Redact | None = None


def _made(make: Callable[[], Any], kind: type, failed: list[Exception]) -> Any:
    """What the caller's *make* makes, of this *kind*; with what it has *failed* is noted."""
    name = "id_factory" if kind is str else "clock"
    try:
        made = make()
        if not isinstance(made, kind):
            raise TypeError(f"{name} gave {type(made).__name__}, not {kind.__name__}")
        if isinstance(made, str) and not made.encode():  # or it holds what no UTF-8 can say
            raise ValueError(f"{name} gave an empty id")
        if isinstance(made, datetime) and made.tzinfo is None:
            raise ValueError(f"{name} gave a time without a time zone")
    except Exception as error:
        failed.append(error)
        raise
    return made


class Reader:
    """Reads one answer of one provider: cuts its bytes into events, lets the hooks map them, and holds the limits.

    Feed it with :meth:`read`, end with :meth:`finish`, then ask for :meth:`response`. What was received is in one place, the
    ``MappingState``.

    Args:
        mapper: the provider.
        options: how to read.
        shows: whether anybody asks for the deltas.

    Attributes:
        shows: the same. Where nobody does, many events that are alike are part of the answer at once, and make none.
    """

    def __init__(self, mapper: Mapper, options: ReaderOptions | None = None, *, shows: bool = True) -> None:
        self.shows = shows
        self._options = options = options or ReaderOptions()
        self._state = state = mapper.new_state()
        self._failed: list[Exception] = []  # errors of the caller's, who makes ids and tells times
        self.make_with(options.id_factory, options.clock)
        self._decoder = SniffingDecoder(options.limits, mapper.info.framing)
        self._error_body = BodyDecoder(options.limits) if options.status >= 400 else None
        self._raw = state.raw_events if options.keep_raw else None
        is_live = options.timer is not None and options.unknown == "keep"
        self._interpreter = Interpreter(
            mapper, state, options.unknown, partial(_log_unknown, options.redact) if is_live else None
        )
        self._alike = Templates(mapper, state, self._raw, options.limits)
        self._is_new = True  # nothing has been read
        self._chunk: bytes | None = None  # what came in one read, if that is one event and nothing else
        self._shallow = min(2 * options.limits.depth, options.limits.line_bytes)
        self._has_sentinel = False
        self._is_done = False  # nothing may follow
        self._is_last = False  # the input has ended; what is left of it is read
        self._started = options.timer() if options.timer is not None else 0.0
        self._first_token: float | None = None
        self._response: ChatResponse | None = None
        self._alike_body: bytes | None = None  # what was not read, but is like what was

    def make_with(self, id_factory: Callable[[], str], clock: Callable[[], datetime]) -> None:
        """Let these make the id and tell the time where the provider sends none."""
        # Neither knows the reader, or they would go round in a circle, which nobody frees at once.
        self._state.id_factory = partial(_made, id_factory, str, self._failed)
        self._state.clock = partial(_made, clock, datetime, self._failed)

    @property
    def _mapper(self) -> Mapper:
        return self._interpreter.mapper

    def read(self, chunk: bytes) -> Iterable[ResponseDelta]:
        """The deltas that *chunk*, the next bytes of the answer, completes; to be read before the next bytes come.

        Raises:
            MappingError: the bytes cannot be mapped; ``partial`` holds everything before them.
            PluginError: the plugin failed.
        """
        alike = self._alike
        delta = alike.last.follower.read_chunk(chunk) or alike.read_chunk(chunk)
        if delta is not None:
            # A server that is asked for a stream flushes each event: what is like one before needs no framing either.
            return (delta,)
        decoder = self._decoder if self._error_body is None else self._error_body
        try:
            frames = decoder.decode(chunk)
        except Exception as error:
            return self._unframed(error)
        if alike.learns:
            live, alike.live = alike.live, self._decoder.between_events
            # White space and a byte order mark are skipped at the start alone.
            begins = live is not None or (self._is_new and b" " < chunk[:1] < b"\x7f")
            self._chunk = chunk if begins and alike.live is not None and len(frames) == 1 else None
            self._is_new = False
        else:
            self._chunk = None
        return self._read_frames(frames)

    def read_whole(self, answer: bytes) -> Iterator[ResponseDelta]:
        """:meth:`read` for an *answer* that is here to its end: most are one JSON document, which needs no framing.

        Raises:
            MappingError: as from :meth:`read`.
        """
        limits = self._options.limits
        is_document = answer.startswith(b"{") and answer.endswith(b"}") and len(answer) <= limits.total_bytes
        if is_document and self._error_body is None:
            try:
                event = load_event(answer, limits)
            except FramingError:
                pass  # several documents, or none: the framing tells
            else:
                self._count(answer)
                self._alike.learns = False  # of an answer that is one event no other will be alike
                yield from self._map(event, None, answer)
                return
        yield from self.read(answer)

    def take(self, response: ChatResponse, answer: bytes) -> None:
        """Let *answer*, which is here to its end, be the *response* that its likeness to one before says.

        Only :meth:`response` is told then; there are no deltas, and nothing is left to :meth:`finish`.
        """
        self._alike_body, self._is_done = answer, True
        timer, metadata = self._options.timer, response.metadata
        if timer is not None:
            provenance = dict(metadata.provenance)
            if provenance.get("metadata.request_duration") is Provenance.ABSENT:
                del provenance["metadata.request_duration"]
            duration = timedelta(seconds=timer() - self._started)
            metadata = altered(metadata, request_duration=duration, provenance=MappingProxyType(provenance))
            response = altered(response, metadata=metadata)
        self._response = self._redacted(response)
        log_response(self._response)

    def read_event(self, event: Any) -> Iterator[ResponseDelta]:
        """The deltas of an event that somebody else decoded; it is copied, and stays as it is.

        Raises:
            MappingError: as from :meth:`read`.
        """
        if self._error_body is not None:
            self._error_body.decode(dump_json(event))
            return
        if self._alike.events >= self._options.limits.events:
            raise self._too_many()
        self._alike.events += 1
        yield from self._map(copy_json(event), None, event)

    def finish(self) -> Iterator[ResponseDelta]:
        """The last deltas, once the input has ended; the very last one carries finish reason and usage.

        Raises:
            IncompleteStreamError: the provider's terminal signal is missing.
            UnknownFinishReasonError: the provider's finish word is not known, and ``unknown="raise"``.
            MappingError: as from :meth:`read`.
        """
        if self._alike_body is not None:
            return
        decoder = self._decoder if self._error_body is None else self._error_body
        try:
            frames = decoder.flush()
        except Exception as error:
            yield from self._unframed(error)
        if self._error_body is not None:
            body = frames[0][0] if frames else b""
            self._count(body)
            from crosswalk.mapping.error_body import read_error_body  # an answer needs none

            self._state.error = read_error_body(
                self._mapper, self._options.status, body, self._options.limits
            )
        else:
            self._is_last = True
            yield from self._read_frames(frames)
        yield from self._end()

    def response(self) -> ChatResponse:
        """The complete response.

        Raises:
            ResponseValidationError: the input has not been finished (``ACODE-RSP-008``).
        """
        if self._response is None:
            finish = self._state.choice(0).finish
            if finish is None:
                raise ResponseValidationError(
                    "Cannot build incomplete response: the final delta has not come", code="ACODE-RSP-008"
                )
            self._response = self._redacted(self._state.response(finish))
        return self._response

    @property
    def is_done(self) -> bool:
        """Whether nothing may follow: the stream's sentinel came, or the answer was finished."""
        return self._is_done

    @property
    def has_ended(self) -> bool:
        """Whether the provider has said that the answer is over: every choice that began has its end, or an error came.

        Facts such as the usage may still follow, until :attr:`is_done`. Of a provider that repeats its finish word while
        it goes on (``ProviderInfo.repeats_finish``) that is not known before.
        """
        if self._is_done or not self._state.has_begun_to_end or self._mapper.info.repeats_finish:
            return self._is_done
        return missing(self._state, self._mapper) is None

    @property
    def has_learnt(self) -> bool:
        """Whether events like one that came are read by their likeness just now."""
        return self._alike.last is not NO_TEMPLATE

    def last_event(self) -> Any:
        """The provider's event that was read last, decoded; ``None`` before the first, and where bytes are not kept."""
        return RawEvents(self._raw[-1:])[0] if self._raw else None

    def partial(self, cause: str | ErrorInfo) -> ChatResponse:
        """Everything so far, all that was handed out, as an error response that tells *cause*."""
        if self._alike_body is not None:  # who takes an answer for a failure wants what it says all the same
            answer, self._alike_body, self._is_done = self._alike_body, None, False
            drain(self.read_whole(answer))
        self._measure()
        try:
            response = self._state.partial(cause)
        except Exception as error:
            raise self._damaged(error) from error
        return self._redacted(response)

    def _redacted(self, response: ChatResponse) -> ChatResponse:
        redact = self._options.redact
        if redact is None:
            return response
        from crosswalk.mapping.redacted import redact_response  # who has sent nothing needs none

        return redact_response(response, redact)

    def _too_many(self) -> MappingError:
        limit = self._options.limits.events
        return self._explain(TooManyEventsError(f"more than {limit} events", limit=limit))

    # Frames: most of a stream is read by their likeness to the one before, the rest is parsed.

    def _read_frames(self, frames: list[Frame]) -> Iterable[ResponseDelta]:
        count, deltas = self._alike.read_run(frames, shows=self.shows)
        return deltas if count == len(frames) else self._read_parts(frames, count, deltas)

    def _read_parts(
        self, frames: list[Frame], count: int, deltas: Iterable[ResponseDelta]
    ) -> Iterator[ResponseDelta]:
        """The deltas of *frames*; those of the first *count* are known."""
        alike, tries, waits = self._alike, count > 0, False
        yield from deltas
        while count < len(frames):
            if tries:  # what comes next may be like the one before
                many, deltas = alike.read_run(frames[count:], shows=self.shows)
                count += many
                yield from deltas
                if many:
                    continue
            data, name = frames[count]
            count += 1
            delta = alike.read(data, name) if alike.learns else None
            if delta is None:
                yield from self._read_frame(data, name)
                tries, waits = alike.has_one, True  # of several choices each is to be learnt before
            else:
                yield delta
                tries, waits = waits, False
            if self._chunk is not None:
                alike.stands_in(self._chunk, data)

    def _count(self, answer: bytes) -> None:
        """Count *answer*, which came as one event: no limit allows less."""
        self._alike.events += 1
        if self._raw is not None:
            self._raw.append(answer)

    def _read_frame(self, data: bytes, name: str | None) -> list[ResponseDelta]:
        if not data:
            return []  # a keep-alive: no event
        if data[0] != _BRACE and is_done(data):
            self._is_done = self._has_sentinel = True
            self._alike.forget()
            return []  # the sentinel: no event either, but none may follow it
        alike = self._alike
        if alike.events >= self._options.limits.events:
            raise self._too_many()
        alike.events += 1
        if alike.events >= alike.wakes > 0:
            alike.learns, alike.wakes = True, 0
        if self._raw is not None:
            self._raw.append(data)
        return self._map(self._load(data), name, data)

    def _unreadable(self, error: MappingError) -> MappingError:
        """Why an event cannot be read; what was left when the input ended is a piece of one: the connection broke."""
        if not self._is_last or self._alike.events < 2 or not isinstance(error, InvalidJSONError):
            return self._explain(error)
        cut = self._explain(IncompleteStreamError("the input ended in the middle of an event"))
        cut.__cause__ = error
        return cut

    def _load(self, data: bytes) -> Any:
        if len(data) <= self._shallow:  # each level of nesting takes two bytes: what is short is not too deep
            try:
                return load_json(data)
            except orjson.JSONDecodeError:
                pass
        try:
            return load_event(data, self._options.limits)
        except MappingError as error:
            failure = error
        # Raised out here, it does not carry the payload along.
        raise self._unreadable(failure)

    # What an event says.

    def _map(self, event: Any, name: str | None, source: Any) -> list[ResponseDelta]:
        """The deltas of *event*, which the hooks take apart; *source* is what it was made of: bytes, or an object."""
        alike, state = self._alike, self._state
        learns = alike.learns
        # The state moves on, also where the event turns out to be wrong: what was said before would now be news.
        before = alike.take_over(self._interpreter) if learns else []
        if self._is_done:
            raise self._explain(TrailingContentError("an event after the end of the stream"))
        try:
            said = deltas, usage, _, news = self._interpreter.read(event, name, source)
        except MappingError as error:
            raise self._explain(error) from error.__cause__
        if state.unknown_finish is not None:
            state.unknown_finish.locate(provider=self._mapper.provider, event=self._place())
        try:
            shown = state.show(deltas, usage, news)
        except Exception as error:
            raise self._damaged(error) from error
        if self._first_token is None and self._options.timer is not None and any(map(is_token, shown)):
            self._first_token = self._options.timer()
        if learns:
            alike.learn(before, source, name, said, self._interpreter)
        return shown

    # The end.

    def _end(self) -> Iterator[ResponseDelta]:
        self._is_done = True
        self._alike.forget()
        state = self._state
        if state.unknown_finish is not None and state.error is None and self._options.unknown == "raise":
            raise self._explain(state.unknown_finish)
        cause = missing(state, self._mapper) if self._alike.events else "the input is empty"
        if cause is not None:
            raise self._explain(IncompleteStreamError(cause, place=self._after()))
        if self._is_cut_off():
            state.note("usage", Provenance.CUT)
        self._measure()
        if not state.has_json_extensions:
            raise self._mapper.broken("it has left in the extensions what is no JSON")
        try:
            last = list(final_deltas(state))
            if self._options.redact is not None:
                from crosswalk.mapping.redacted import redact_delta

                last = [redact_delta(delta, self._options.redact) for delta in last]
        except Exception as error:
            raise self._damaged(error) from error
        yield from last
        try:
            response = self.response()
        except ResponseValidationError as error:
            raise self._explain(MappingError(str(error), place=self._after())) from None
        except Exception as error:
            raise self._damaged(error) from error
        log_response(response)

    def _is_cut_off(self) -> bool:
        """Whether the input ended after its finish word and before its usage: the sentinel is missing, too."""
        return (
            self._state.usage is None
            and self._state.error is None
            and (self._mapper.info.sentinel or getattr(self._state.dialect, "sentinel", False))
            and not self._has_sentinel
            and self._decoder.framing == "sse"
        )

    def _measure(self) -> None:
        timer, state = self._options.timer, self._state
        if timer is not None:
            state.request_duration = timedelta(seconds=timer() - self._started)
            if self._first_token is not None:
                state.time_to_first_token = timedelta(seconds=self._first_token - self._started)

    # What only a plugin can have done.

    def _unframed(self, error: Exception) -> Iterator[NoReturn]:
        """Raise, once a delta is asked for, why there are no frames: a limit was passed, or a plugin failed at framing."""
        if isinstance(error, MappingError):
            raise self._explain(error) from None
        if self._mapper.info.framing is None:
            raise error  # the caller's, who gave no bytes
        raise self._mapper.broken(f"its framing failed with {type(error).__name__}") from error
        yield

    def _damaged(self, error: Exception) -> PluginError:
        """The error for a state of the answer that no response can be made of; one of the caller's is raised."""
        if error in self._failed:
            raise error
        said = str(error) if isinstance(error, ResponseValidationError) else type(error).__name__
        return self._mapper.broken(f"it has set in the state what no response can have: {said}")

    # Where it is.

    def _place(self) -> str:
        return f"event {max(self._alike.events, 1)}"

    def _after(self) -> str:
        return f"after event {self._alike.events}" if self._alike.events else "at the start"

    def _explain(self, error: MappingError) -> MappingError:
        """*error* with provider, place, and everything that was received before it."""
        error.locate(provider=self._mapper.provider, event=self._place())
        if self._options.redact is not None:
            from crosswalk.mapping.redacted import redact_error

            redact_error(error, self._options.redact)
        if error.partial is None and self._alike.events:
            error.partial = self.partial(error.cause)
        self._alike.forget()
        log_failure(error)
        return error


def _log_unknown(redact: Redact | None, provider: str, kind: str, word: str) -> None:
    log_unknown(provider, kind, word if redact is None else redact(word))


def drain(deltas: Iterable[object]) -> None:
    """Read *deltas* to their end, for a caller that wants the response alone."""
    for _ in deltas:
        pass
