"""Bytes in, deltas out, a response in the end: the one path that bodies and streams, sync and async share.

The reader composes a plugin's hooks and applies the rules that are the same for every provider: it holds finish
reasons back to the end, settles what they mean, and lets no failure pass as an answer. It does no I/O.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Container, Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import PurePath
from typing import Any, Literal, TypeAlias

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
    UnknownEventError,
    WireTypeError,
)
from crosswalk.mapping.ending import final_deltas, missing, note_end
from crosswalk.mapping.error_body import read_error_body
from crosswalk.mapping.log import log_failure, log_response, log_unknown
from crosswalk.mapping.template import Template, learn
from crosswalk.plugin.mapper import Mapper, is_cancellation
from crosswalk.plugin.state import is_token
from crosswalk.plugin.take import empty_containers, mistyped, path_to, prune
from crosswalk.types.delta import ResponseDelta, text_delta
from crosswalk.types.json import EMPTY_OBJECT, FrozenObject
from crosswalk.types.merge import Pieces, copy_json, has_pieces, pieces_table
from crosswalk.types.metadata import Provenance
from crosswalk.types.raw import RawEvents
from crosswalk.types.response import ChatResponse, new_id, now
from crosswalk.types.segment import Segment, SegmentType
from crosswalk.types.usage import UsageInfo
from crosswalk.wire import BodyDecoder, Frame, Limits, SniffingDecoder, is_done, load_event
from crosswalk.wire.limits import DEFAULT

__all__ = ["Reader", "ReaderOptions", "Unknown"]

Unknown: TypeAlias = Literal["raise", "keep"]
Timer: TypeAlias = Callable[[], float]

_MISSES = 16
"""So many templates in a row may go unused before a stream's events are all parsed."""


def _is_status(_: Any, __: Any, value: object) -> None:
    if type(value) is not int or not 100 <= value <= 599:
        raise ValueError(f"status is an HTTP status from 100 to 599, not {str(value)[:40]!r}")


@attrs.frozen(kw_only=True)
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
        redact: takes out of messages, those of errors and of error responses, what a server may have repeated and
            nobody may see, such as the key that it was sent; ``None`` where nothing was sent.
    """

    status: int = attrs.field(default=200, validator=_is_status)
    unknown: Unknown = attrs.field(default="raise", validator=attrs.validators.in_(("raise", "keep")))
    id_factory: Callable[[], str] = new_id
    clock: Callable[[], datetime] = now
    keep_raw: bool = True
    limits: Limits = DEFAULT
    timer: Timer | None = None
    redact: Callable[[str], str] | None = None


class Reader:
    """Reads one answer of one provider: cuts its bytes into events, lets the provider's hooks map them, and holds the limits.

    Feed it with :meth:`read`, end with :meth:`finish`, then ask for :meth:`response`. What was received is in one place, the
    ``MappingState``.

    Args:
        mapper: the provider.
        options: how to read.
    """

    def __init__(self, mapper: Mapper, options: ReaderOptions | None = None) -> None:
        self._options = options = options or ReaderOptions()
        self._state = state = mapper.new_state()
        state.id_factory, state.clock = options.id_factory, options.clock
        self._decoder = SniffingDecoder(options.limits, mapper.info.framing)
        self._error_body = BodyDecoder(options.limits) if options.status >= 400 else None
        self._raw = state.raw_events if options.keep_raw else None
        self._use_mapper(mapper)
        self._may_speak = bool(mapper.info.speaks)
        self._template: Template | None = None
        self._texts: list[str] | None = None
        self._stamp = ""
        self._misses = 0
        self._events = 0
        self._has_sentinel = False
        self._is_done = False  # nothing may follow
        self._is_last = False  # the input has ended; what is left of it is read
        self._started = options.timer() if options.timer is not None else 0.0
        self._first_token: float | None = None
        self._response: ChatResponse | None = None

    def _use_mapper(self, mapper: Mapper) -> None:
        self._mapper = mapper
        self._pieces: Pieces = pieces_table(mapper.info.pieces)
        self._learns = mapper.is_plain and bool(mapper.info.text_leaves)

    def read(self, chunk: bytes) -> Iterator[ResponseDelta]:
        """The deltas that *chunk*, the next bytes of the answer, completes.

        Raises:
            MappingError: the bytes cannot be mapped; ``partial`` holds everything before them.
            PluginError: the plugin failed.
        """
        decoder = self._decoder if self._error_body is None else self._error_body
        try:
            frames = decoder.decode(chunk)
        except MappingError as error:
            raise self._explain(error) from None
        read = self._read_frames if self._has_room(frames) else self._read_up_to_limit
        yield from read(frames)

    def read_whole(self, answer: bytes) -> Iterator[ResponseDelta]:
        """:meth:`read` for an *answer* that is here to its end: most are one JSON document, which needs no framing.

        Raises:
            MappingError: as from :meth:`read`.
        """
        limits = self._options.limits
        is_document = answer.startswith(b"{") and answer.endswith(b"}") and len(answer) <= limits.total_bytes
        if is_document and self._error_body is None and self._events < limits.events:
            try:
                event = load_event(answer, limits)
            except FramingError:
                pass  # several documents, or none: the framing tells
            else:
                self._count(answer)
                yield from self._map(event, None, answer)
                return
        yield from self.read(answer)

    def read_event(self, event: Any) -> Iterator[ResponseDelta]:
        """The deltas of an event that somebody else decoded; it is copied, and stays as it is.

        Raises:
            MappingError: as from :meth:`read`.
        """
        if self._error_body is not None:
            self._error_body.decode(orjson.dumps(event))
            return
        if self._events >= self._options.limits.events:
            raise self._too_many()
        self._events += 1
        self._catch_up()
        self._use(None)
        yield from self._map(copy_json(event), None, event)

    def finish(self) -> Iterator[ResponseDelta]:
        """The last deltas, once the input has ended; the very last one carries finish reason and usage.

        Raises:
            IncompleteStreamError: the provider's terminal signal is missing.
            UnknownFinishReasonError: the provider's finish word is not known, and ``unknown="raise"``.
            MappingError: as from :meth:`read`.
        """
        decoder = self._decoder if self._error_body is None else self._error_body
        try:
            frames = decoder.flush()
        except MappingError as error:
            raise self._explain(error) from None
        if self._error_body is not None:
            body = frames[0][0] if frames else b""
            self._count(body)
            self._state.error = read_error_body(
                self._mapper, self._options.status, body, self._options.limits
            )
        else:
            self._is_last = True
            read = self._read_frames if self._has_room(frames) else self._read_up_to_limit
            yield from read(frames)
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

    def last_event(self) -> Any:
        """The provider's event that was read last, decoded; ``None`` before the first, and where bytes are not kept."""
        return RawEvents(self._raw[-1:])[0] if self._raw else None

    def partial(self, cause: str | ErrorInfo) -> ChatResponse:
        """Everything so far as an error response that tells *cause*."""
        self._catch_up()
        self._measure()
        return self._redacted(self._state.partial(cause))

    def _redacted(self, response: ChatResponse) -> ChatResponse:
        """*response* with its errors' messages and codes redacted; ``raw`` is the provider's own and stays."""
        redact = self._options.redact
        if redact is None or not any(s.type is SegmentType.ERROR for s in response.segments):
            return response
        segments = [_redacted(s, redact) if s.type is SegmentType.ERROR else s for s in response.segments]
        refusal = None if response.refusal is None else redact(response.refusal)
        return attrs.evolve(response, segments=segments, refusal=refusal)

    def _has_room(self, frames: list[Frame]) -> bool:
        return self._events + len(frames) <= self._options.limits.events

    def _too_many(self) -> MappingError:
        limit = self._options.limits.events
        return self._explain(TooManyEventsError(f"more than {limit} events", limit=limit))

    def _read_up_to_limit(self, frames: list[Frame]) -> Iterator[ResponseDelta]:
        """As :meth:`_read_frames`, near the limit: keep-alives and sentinels do not count."""
        for data, name in frames:
            if data and not is_done(data) and self._events >= self._options.limits.events:
                raise self._too_many()
            yield from self._read_frames([(data, name)])

    # Frames: most of a stream is read by their likeness to the one before, the rest is parsed.

    def _read_frames(self, frames: list[Frame]) -> Iterator[ResponseDelta]:
        # The loop that most of a stream goes through; spelt out, because every call in it shows.
        template, raw, state = self._template, self._raw, self._state
        for data, name in frames:
            found = template.read(data) if template is not None and name == template.name else None
            if template is None or found is None:
                yield from self._read_frame(data, name)
                template = self._template
                continue
            self._events += 1
            if raw is not None:
                raw.append(data)
            text, stamp = found
            extensions = EMPTY_OBJECT
            if stamp and stamp != self._stamp:
                self._stamp = stamp
                extensions = FrozenObject.adopt({template.stamp: stamp})
            if self._texts is None:
                choice = state.choice(template.choice)
                if choice.open is not template.kind:
                    choice.start(template.kind)
                self._texts = choice.text
            self._texts.append(text)
            index = state.delta_count
            state.delta_count = index + 1
            yield text_delta(index, text, template.choice, extensions, template.is_reasoning)

    def _use(self, template: Template | None) -> None:
        """Read by *template* from now on, or by none."""
        self._template = template
        if template is not None:
            self._stamp = self._state.extensions.get(template.stamp, "")

    def _count_miss(self) -> None:
        """Learn no more where templates do not pay: when one after the other is made and never used."""
        self._misses = self._misses + 1 if self._texts is None else 0
        if self._misses > _MISSES:
            self._learns = False

    def _catch_up(self) -> None:
        """Tell the extensions of the last stamp that was read by the template."""
        if self._texts is None or self._template is None:
            return
        self._texts = None
        if self._template.stamp:
            self._state.extensions[self._template.stamp] = self._stamp

    def _count(self, data: bytes) -> None:
        self._events += 1
        if self._raw is not None:
            self._raw.append(data)

    def _read_frame(self, data: bytes, name: str | None) -> list[ResponseDelta]:
        if not data:
            return []  # a keep-alive: no event
        if self._template is not None:
            self._count_miss()
            self._catch_up()
        if is_done(data):
            self._is_done = self._has_sentinel = True
            self._use(None)
            return []  # the sentinel: no event either, but none may follow it
        self._count(data)
        try:
            event = load_event(data, self._options.limits)
        except InvalidJSONError as error:
            if not self._is_last or self._events < 2:
                raise self._explain(error) from None
            # What was left when the input ended is a piece of an event: the connection broke in its middle.
            cut = IncompleteStreamError("the input ended in the middle of an event")
            raise self._explain(cut) from error
        except MappingError as error:
            raise self._explain(error) from None
        return self._map(event, name, data)

    # What an event says.

    def _map(self, event: Any, name: str | None, source: Any) -> list[ResponseDelta]:
        """The deltas of *event*, which its hooks take apart; *source* is what it was made of: bytes, or somebody's object."""
        if self._is_done:
            raise self._explain(TrailingContentError("an event after the end of the stream"))
        state = self._state
        state.event_name = name
        state.goes_on = False
        kept = empty_containers(event) if type(source) is not bytes or _may_be_empty(source) else _NOTHING
        mistyped()  # what another reader, which broke off, has left
        deltas: list[ResponseDelta] = []
        try:
            if self._may_speak:
                self._choose_dialect(event)
            usage, rest = self._ask(event, deltas, kept)
        except UnknownEventError as error:
            if self._options.unknown == "raise":
                raise self._keep(deltas, error) from error.__cause__
            self._note_unknown(error.event_type or "")
            # It may have been taken from before it turned out to be unknown.
            event = load_event(source, self._options.limits) if type(source) is bytes else copy_json(source)
            usage, rest = None, event if type(event) is dict else {"event": event}
        except WireTypeError as error:
            found = path_to(event, error.__dict__.pop("container", None))
            if found and error.place:
                error.place = f"{found}{error.place}" if error.place[0] == "[" else f"{found}.{error.place}"
            raise self._keep(deltas, error) from error.__cause__
        except MappingError as error:
            raise self._keep(deltas, error) from error.__cause__
        except PluginError:
            raise
        except Exception as error:
            # A plugin's bug on an odd payload must not surface as a bare KeyError (promise P4).
            raise self._keep(
                deltas, MappingError(f"the plugin failed with {type(error).__name__}{_line_of(error)}")
            ) from error
        except BaseException as error:
            if is_cancellation(error):
                raise
            raise self._mapper.broken(f"the plugin failed with {type(error).__name__}") from error
        news = state.extend(rest, self._pieces) if rest else rest
        shown = state.show(deltas, usage, news)
        if self._first_token is None and self._options.timer is not None and any(map(is_token, shown)):
            self._first_token = self._options.timer()
        if self._learns and usage is None and type(source) is bytes:
            self._learn(source, name, deltas, rest)
        else:
            self._template = None  # the state has moved on: what was said before would now be news
        return shown

    def _ask(
        self, event: Any, deltas: list[ResponseDelta], kept: Container[int]
    ) -> tuple[UsageInfo | None, dict[str, Any]]:
        """What the plugin says of *event*: its deltas, put into *deltas* one by one; its usage, and what is left of it."""
        state, mapper, ends = self._state, self._mapper, self._state.ends
        may_differ = not ends or state.has_other_ids
        for delta in mapper.map_delta(event, state) or ():
            if type(delta) is not ResponseDelta:
                raise mapper.broken(f"map_delta gave {type(delta).__name__}, not ResponseDelta")
            if not may_differ:
                self._refuse_another_id()
            if delta.choice in ends and is_token(delta):
                self._refuse_trailing(delta.choice)
            deltas.append(delta)
            if delta.raw_finish_reason is not None or delta.finish_reason is not None:
                self._note_end(delta)
        if not may_differ:
            self._refuse_another_id()
        usage = mapper.map_usage(event, state)
        if usage is not None and type(usage) is not UsageInfo:
            raise mapper.broken(f"map_usage gave {type(usage).__name__}, not UsageInfo")
        if type(event) is dict:
            if event:
                prune(event, kept)
            rest = event
        else:
            rest = {"event": event}
        if mapper.extensions is not None:
            said = mapper.extensions(event, state)
            rest = {} if said is None else said
            if type(rest) is not dict:
                raise mapper.broken(f"extensions gave {type(rest).__name__}, not dict")
        for container, key in mistyped():
            path = ".".join(filter(None, ("metadata.extensions", path_to(rest, container))))
            state.note(f"{path}[{key}]" if type(key) is int else f"{path}.{key}", Provenance.MISTYPED)
        return usage, rest

    def _keep(self, deltas: list[ResponseDelta], error: MappingError) -> MappingError:
        """*error*, which came in the middle of an event, with what the event had said before it, too."""
        mistyped()
        self._state.show(deltas, None, {})
        return self._explain(error)

    def _note_end(self, delta: ResponseDelta) -> None:
        word = note_end(self._state, self._mapper, delta)
        if word is None:
            return
        error = self._state.unknown_finish
        if error is not None:
            error.locate(provider=self._mapper.provider, event=self._place())
        if self._options.unknown == "keep":
            log_unknown(self._mapper.provider, "finish reason", word)

    def _note_unknown(self, event_type: str) -> None:
        self._state.note("metadata.extensions", Provenance.UNMAPPED)
        log_unknown(self._mapper.provider, "event", event_type)

    def _refuse_another_id(self) -> None:
        if self._state.has_other_ids:
            raise TrailingContentError("another answer's id after the end: a second answer has begun")

    def _refuse_trailing(self, choice: int) -> None:
        if self._state.goes_on or self._mapper.info.repeats_finish or self._state.error is not None:
            return
        raise TrailingContentError(
            f"content after the end of choice {choice}: a second answer, or one out of order"
        )

    def _choose_dialect(self, event: Any) -> None:
        """Let the first event that anybody recognizes say whose dialect the server speaks in this answer."""
        mapper = self._mapper.dialect_of(event)
        if mapper is None:
            return
        self._may_speak = False
        if mapper is not self._mapper:
            self._use_mapper(mapper)

    def _learn(
        self, data: bytes, name: str | None, deltas: list[ResponseDelta], rest: dict[str, Any]
    ) -> None:
        template = None
        if not (rest and has_pieces(rest, self._pieces)):  # saying one of those again would be news
            template = learn(data, deltas, self._mapper.info)
        if template is not None:
            template.name = name
        self._use(template)

    # The end.

    def _end(self) -> Iterator[ResponseDelta]:
        self._is_done = True
        self._catch_up()
        state = self._state
        if state.unknown_finish is not None and state.error is None and self._options.unknown == "raise":
            raise self._explain(state.unknown_finish)
        cause = missing(state, self._mapper) if self._events else "the input is empty"
        if cause is not None:
            raise self._explain(IncompleteStreamError(cause, place=self._after()))
        if self._is_cut_off():
            state.note("usage", Provenance.CUT)
        self._measure()
        yield from final_deltas(state)
        try:
            log_response(self.response())
        except ResponseValidationError as error:
            raise self._explain(MappingError(str(error), place=self._after())) from None

    def _is_cut_off(self) -> bool:
        """Whether the input ended after its finish word and before its usage: the sentinel is missing, too."""
        return (
            self._state.usage is None
            and self._state.error is None
            and self._mapper.info.sentinel
            and not self._has_sentinel
            and self._decoder.framing == "sse"
        )

    def _measure(self) -> None:
        timer, state = self._options.timer, self._state
        if timer is not None:
            state.request_duration = timedelta(seconds=timer() - self._started)
            if self._first_token is not None:
                state.time_to_first_token = timedelta(seconds=self._first_token - self._started)

    # Where it is.

    def _place(self) -> str:
        return f"event {max(self._events, 1)}"

    def _after(self) -> str:
        return f"after event {self._events}" if self._events else "at the start"

    def _explain(self, error: MappingError) -> MappingError:
        """*error* with provider, place, and everything that was received before it."""
        error.locate(provider=self._mapper.provider, event=self._place())
        if self._options.redact is not None:
            error.cause = self._options.redact(error.cause)
            error.args = (error.cause,)
        if error.partial is None and self._events:
            error.partial = self.partial(error.cause)
        log_failure(error)
        return error


_NOTHING: frozenset[int] = frozenset()
_SHORT = 4096
"""Up to here looking for the brackets of an empty object takes less time than looking at all containers."""


def _may_be_empty(data: bytes) -> bool:
    """Whether the JSON *data* may hold an object or array that is empty from the start."""
    return (
        len(data) > _SHORT
        or b"{}" in data
        or b"[]" in data
        or b"{ " in data
        or b"[ " in data
        or b"\n" in data
        or b"\t" in data
    )


def _redacted(segment: Segment, redact: Callable[[str], str]) -> Segment:
    said = segment.metadata.thawed()
    if isinstance(said.get("code"), str):
        said["code"] = redact(said["code"])
    return attrs.evolve(segment, content=redact(segment.content), metadata=said)


def _line_of(error: Exception) -> str:
    """Where a plugin's own code failed, to spare its author the search; its text may quote content, so it is left out."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename != __file__]
    if not frames:
        return ""
    return f" in {frames[-1].name}, line {frames[-1].lineno} of {PurePath(frames[-1].filename).name}"


def drain(deltas: Iterable[ResponseDelta]) -> None:
    """Read *deltas* to their end, for a caller that wants the response alone."""
    for _ in deltas:
        pass
