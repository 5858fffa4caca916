"""Bytes in, deltas out, a response in the end: the one path that bodies and streams, sync and async share.

The reader composes a plugin's hooks and applies the rules that are the same for every provider: it holds finish
reasons back to the end, settles what they mean, and lets no failure pass as an answer. It does no I/O.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator
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
)
from crosswalk.mapping.ending import Endings
from crosswalk.mapping.error_body import read_error_body
from crosswalk.mapping.log import log_failure, log_response
from crosswalk.mapping.residue import ResidueMemory
from crosswalk.mapping.template import Template, learn
from crosswalk.mapping.usage import UsageReports
from crosswalk.plugin.mapper import Mapper
from crosswalk.types.accumulator import DeltaAccumulator
from crosswalk.types.delta import ResponseDelta, text_delta, with_changes
from crosswalk.types.finish import FinishReason
from crosswalk.types.json import EMPTY_OBJECT, FrozenObject
from crosswalk.types.merge import copy_json, merge
from crosswalk.types.raw import RawEvents
from crosswalk.types.response import ChatResponse, new_id, now
from crosswalk.types.segment import Segment, SegmentType
from crosswalk.types.tools import ToolCallDelta
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
    """Reads one answer of one provider.

    Feed it with :meth:`read`, end with :meth:`finish`, then ask for :meth:`response`.

    Args:
        mapper: the provider.
        options: how to read.
    """

    def __init__(self, mapper: Mapper, options: ReaderOptions | None = None) -> None:
        self._mapper = mapper
        self._options = options = options or ReaderOptions()
        self._state = mapper.new_state()
        self._decoder = SniffingDecoder(options.limits, mapper.info.framing)
        self._accumulator = DeltaAccumulator(provider_id=mapper.provider)
        self._accumulator.envelope.id_factory = options.id_factory
        self._accumulator.envelope.clock = options.clock
        self._raw = self._accumulator.envelope.raw_events if options.keep_raw else None
        self._memory = ResidueMemory(mapper.info.pieces)
        self._template: Template | None = None
        self._texts: list[str] | None = None
        self._stamp = ""
        self._learns = mapper.is_plain and bool(mapper.info.text_leaves)
        self._may_speak = bool(mapper.info.speaks)
        self._events = 0
        self._index = 0
        self._misses = 0
        self._endings = Endings(mapper, self._state, keep_unknown=options.unknown == "keep")
        self._usage = UsageReports(self._state.provenance)
        self._held: dict[str, Any] = {}
        self._is_done = False  # nothing may follow
        self._is_last = False  # the input has ended; what is left of it is read
        self._started = options.timer() if options.timer is not None else 0.0
        self._first_token: float | None = None
        self._error_body = BodyDecoder(options.limits) if options.status >= 400 else None
        self._response: ChatResponse | None = None

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
                yield from self._map(event, None)
                return
        yield from self.read(answer)

    def read_event(self, event: Any) -> Iterator[ResponseDelta]:
        """The deltas of an event that somebody else decoded.

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
        yield from self._map(event, None)

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
            self._endings.error = read_error_body(
                self._mapper, self._options.status, body, self._options.limits, self._state
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
            self._response = self._redacted(self._accumulator.build())
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
        endings = self._endings
        if self._is_done or not endings.has_begun or self._mapper.info.repeats_finish:
            return self._is_done
        return endings.missing() is None

    def last_event(self) -> Any:
        """The provider's event that was read last, decoded; ``None`` before the first, and where bytes are not kept."""
        return RawEvents(self._raw[-1:])[0] if self._raw else None

    def partial(self, cause: str | ErrorInfo) -> ChatResponse:
        """Everything so far as an error response that tells *cause*."""
        self._catch_up()
        self._settle_envelope()
        if self._usage.latest is not None:
            self._accumulator.report(self._usage.latest)
        response = self._accumulator.build_partial(cause)
        if self._accumulator.finish_reason is None:
            response = self._with_held(response)
        return self._redacted(response)

    def _redacted(self, response: ChatResponse) -> ChatResponse:
        """*response* with its errors' messages and codes redacted; ``raw`` is the provider's own and stays."""
        redact = self._options.redact
        if redact is None or not any(s.type is SegmentType.ERROR for s in response.segments):
            return response
        segments = [_redacted(s, redact) if s.type is SegmentType.ERROR else s for s in response.segments]
        refusal = None if response.refusal is None else redact(response.refusal)
        return attrs.evolve(response, segments=segments, refusal=refusal)

    def _with_held(self, response: ChatResponse) -> ChatResponse:
        """*response* with what was to come with the ends: they have been received, but not been shown."""
        ends, error = self._endings.ends, self._endings.error
        segments, metadata = response.segments, response.metadata
        if error is not None and error.segment is not None:
            segments = (*segments[:-1], error.segment, segments[-1])
        if self._held:
            extensions = metadata.extensions.thawed()
            merge(extensions, copy_json(self._held))
            metadata = attrs.evolve(metadata, extensions=FrozenObject.adopt(extensions))
        return attrs.evolve(
            response,
            segments=segments,
            metadata=metadata,
            refusal=next(s.content for s in segments if s.type is SegmentType.ERROR),
            raw_finish_reason=ends[0].raw if 0 in ends else None,
            alternatives=[
                attrs.evolve(answer, raw_finish_reason=ends[answer.index].raw)
                if answer.index in ends
                else answer
                for answer in response.alternatives
            ],
        )

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

    # What an event says.

    def _read_frames(self, frames: list[Frame]) -> Iterator[ResponseDelta]:
        # The loop that most of a stream goes through; spelt out, because every call in it shows.
        template, raw = self._template, self._raw
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
            index = self._index
            self._index = index + 1
            if self._texts is None:
                self._texts = self._accumulator.open_text(template.choice, template.kind)
            self._texts.append(text)
            yield text_delta(index, text, template.choice, extensions, template.is_reasoning)

    def _use(self, template: Template | None) -> None:
        """Read by *template* from now on, or by none."""
        self._template = template
        if template is not None:
            self._stamp = self._memory.last.get(template.stamp, "")

    def _count_miss(self) -> None:
        """Learn no more where templates do not pay: when one after the other is made and never used."""
        self._misses = self._misses + 1 if self._texts is None else 0
        if self._misses > _MISSES:
            self._learns = False

    def _catch_up(self) -> None:
        """Tell memory and accumulator what was read by the template; they are not told of every delta of it."""
        if self._texts is None or self._template is None:
            return
        self._texts = None
        name, stamped = self._template.stamp, {}
        if name and self._memory.last.get(name) != self._stamp:
            self._memory.last[name] = self._stamp
            stamped = {name: self._stamp}
        self._accumulator.catch_up(self._index, stamped)

    def _count(self, data: bytes) -> None:
        self._events += 1
        if self._raw is not None:
            self._raw.append(data)

    def _read_frame(self, data: bytes, name: str | None) -> Iterator[ResponseDelta]:
        if not data:
            return  # a keep-alive: no event
        if self._template is not None:
            self._count_miss()
        self._catch_up()
        if is_done(data):
            self._is_done = True
            self._use(None)
            return  # the sentinel: no event either, but none may follow it
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
        yield from self._map(event, name, data)

    def _map(self, event: Any, name: str | None, data: bytes | None = None) -> Iterator[ResponseDelta]:
        if self._is_done:
            raise self._explain(TrailingContentError("an event after the end of the stream"))
        try:
            deltas, usage, rest = self._ask(event, name)
        except MappingError as error:
            raise self._explain(error) from error.__cause__
        except PluginError:
            raise
        except Exception as error:
            # A plugin's bug on an odd payload must not surface as a bare KeyError (promise P4).
            raise self._explain(
                MappingError(f"the plugin failed with {type(error).__name__}{_line_of(error)}")
            ) from error
        news = self._memory.news(rest) if rest else rest
        shown = [kept for delta in deltas if (kept := self._hold_end(delta)) is not None]
        yield from self._show(shown, usage, news)
        if self._learns and data is not None and usage is None:
            self._learn(data, name, event, deltas, rest)
        else:
            self._use(None)  # memory has moved on: what was said before would now be news

    def _ask(
        self, event: Any, name: str | None
    ) -> tuple[list[ResponseDelta], UsageInfo | None, dict[str, Any]]:
        """What the plugin says of *event*: its deltas, its usage, its residue."""
        state, ends = self._state, self._endings.ends
        state.begin_event(self._index, name)
        try:
            if self._may_speak:
                self._choose_dialect(event)
            mapper = self._mapper
            may_differ = not ends or state.has_other_ids
            deltas = list(mapper.map_delta(event, state) or ())
            if state.has_other_ids and not may_differ:
                raise TrailingContentError("another answer's id after the end: a second answer has begun")
            for delta in deltas:
                if delta.segment is not None or delta.tool_call_delta is not None:
                    _check_parts(delta)
                if delta.choice in ends and _is_token(delta):
                    self._refuse_trailing(delta.choice)
                if delta.raw_finish_reason is not None or delta.finish_reason is not None:
                    self._endings.note(delta, self._place())
            usage = mapper.map_usage(event, state)
            rest = mapper.extensions(event, state) or {}
            if (usage is not None and type(usage) is not UsageInfo) or type(rest) is not dict:
                raise TypeError("a hook gives what its specification does not")
        except UnknownEventError:
            if self._options.unknown == "raise":
                raise
            return [], None, event if isinstance(event, dict) else {"event": event}
        return deltas, usage, rest

    def _refuse_trailing(self, choice: int) -> None:
        if self._mapper.info.repeats_finish or self._endings.error is not None:
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
            self._mapper = self._endings.mapper = mapper
            self._memory = ResidueMemory(mapper.info.pieces)
            self._learns = mapper.is_plain and bool(mapper.info.text_leaves)

    def _learn(
        self, data: bytes, name: str | None, event: Any, deltas: list[ResponseDelta], rest: dict[str, Any]
    ) -> None:
        if rest and self._memory.news(rest):
            self._use(None)
            return  # a list in pieces: saying it again would be news
        template = learn(data, event, deltas, self._mapper.info)
        if template is not None:
            template.name = name
        self._use(template)

    # What is shown at once, and what is held back.

    def _show(
        self, deltas: list[ResponseDelta], usage: UsageInfo | None, news: dict[str, Any]
    ) -> Iterator[ResponseDelta]:
        reports = self._usage
        if usage is not None:
            unseen = reports.unseen(usage)
            if unseen is not None:
                yield self._emit(ResponseDelta(self._index, usage=unseen))
                reports.shown = unseen
            usage = reports.add(usage)
        if not deltas:
            if news and not self._endings.has_begun:
                yield self._emit(ResponseDelta(self._index, extensions=FrozenObject.adopt(news)))
            elif news:
                if _replaces(news, self._held):
                    # What is about to be replaced before anybody saw it gets a delta of its own.
                    held, self._held = self._held, {}
                    yield self._emit(ResponseDelta(self._index, extensions=FrozenObject.adopt(held)))
                merge(self._held, news)
            return
        last = len(deltas) - 1
        for number, delta in enumerate(deltas):
            extensions = delta.extensions
            if number == 0 and news:
                extensions = _with_extensions(delta, news)
            counts = delta.usage
            if counts is not None:
                reports.shown = reports.latest
            if number == last and usage is not None and counts is None:
                counts = reports.shown = usage
            yield self._emit(
                with_changes(delta, index=self._index, extensions=extensions, usage=counts, ends=False)
            )

    def _emit(self, delta: ResponseDelta) -> ResponseDelta:
        if self._first_token is None and self._options.timer is not None and _is_token(delta):
            self._first_token = self._options.timer()
        self._index += 1
        self._state.choices.add(delta.choice)
        self._accumulator.append(delta)
        return delta

    def _hold_end(self, delta: ResponseDelta) -> ResponseDelta | None:
        """What of *delta* may be shown before the end; ``None`` when nothing is left."""
        if delta.segment is not None and delta.finish_reason is FinishReason.ERROR:
            earlier, self._endings.error = self._endings.error, delta
            return earlier
        if delta.usage is not None:
            self._usage.add(delta.usage)
        if delta.raw_finish_reason is None and delta.finish_reason is None:
            return delta
        self._state.choices.add(delta.choice)
        return None if _says_only_the_end(delta) else delta

    # The end.

    def _end(self) -> Iterator[ResponseDelta]:
        self._is_done = True
        self._catch_up()
        endings = self._endings
        if endings.unknown is not None and endings.error is None:
            raise self._explain(endings.unknown)
        missing = endings.missing() if self._events else "the input is empty"
        if missing is not None:
            raise self._explain(IncompleteStreamError(missing, place=self._after()))
        for choice in sorted(self._state.choices - {0}):
            end = endings.settle(choice)
            yield self._emit(
                ResponseDelta(self._index, finish_reason=end.reason, raw_finish_reason=end.raw, choice=choice)
            )
        self._settle_envelope()
        end = endings.settle(0)
        held = self._held
        if endings.error is not None and endings.error.extensions:
            held = {**endings.error.extensions.thawed(), **held}
        yield self._emit(
            ResponseDelta(
                self._index,
                finish_reason=end.reason,
                raw_finish_reason=end.raw,
                usage=self._usage.latest,
                segment=endings.segment(end),
                extensions=FrozenObject.adopt(held) if held else EMPTY_OBJECT,
            )
        )
        try:
            log_response(self.response())
        except ResponseValidationError as error:
            raise self._explain(MappingError(str(error), place=self._after())) from None

    def _settle_envelope(self) -> None:
        """Hand the accumulator what the response needs and the deltas do not say."""
        state, envelope = self._state, self._accumulator.envelope
        envelope.id, envelope.model, envelope.created = (
            state.response_id,
            state.model,
            state.created,
        )
        envelope.request_duration = state.request_duration
        envelope.provenance = state.provenance
        if state.verdicts:
            envelope.content_filter_results = tuple(state.verdicts.values())
        timer = self._options.timer
        if timer is not None:
            envelope.request_duration = timedelta(seconds=timer() - self._started)
            if self._first_token is not None:
                waited = self._first_token - self._started
                envelope.time_to_first_token = timedelta(seconds=waited)

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


def _check_parts(delta: ResponseDelta) -> None:
    segment, call = delta.segment, delta.tool_call_delta
    if type(segment) not in (Segment, type(None)) or type(call) not in (ToolCallDelta, type(None)):
        raise TypeError("a delta whose parts are of other types")


def _with_extensions(delta: ResponseDelta, news: dict[str, Any]) -> FrozenObject:
    if not delta.extensions:
        return FrozenObject.adopt(news)
    own = delta.extensions.thawed()
    merge(own, copy_json(news))
    return FrozenObject.adopt(own)


def _replaces(news: dict[str, Any], held: dict[str, Any]) -> bool:
    """Whether merging *news* into *held* would overwrite something."""
    return any(
        name in held
        and not (
            isinstance(value, dict) and isinstance(held[name], dict) and not _replaces(value, held[name])
        )
        for name, value in news.items()
    )


def _says_only_the_end(delta: ResponseDelta) -> bool:
    return not (
        _is_token(delta)
        or delta.refusal_delta is not None
        or delta.segment is not None
        or delta.logprobs
        or delta.extensions
    )


def _is_token(delta: ResponseDelta) -> bool:
    return (
        delta.content_delta is not None
        or delta.reasoning_delta is not None
        or delta.tool_call_delta is not None
    )


def drain(deltas: Iterable[ResponseDelta]) -> None:
    """Read *deltas* to their end, for a caller that wants the response alone."""
    for _ in deltas:
        pass
