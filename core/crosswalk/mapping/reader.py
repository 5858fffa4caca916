"""Bytes in, deltas out, a response in the end: the one door for bodies and streams, sync and async."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import datetime, timedelta
from functools import cache, partial
from itertools import chain, starmap
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

import attrs

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
    UnknownFinishReasonError,
)
from crosswalk.lazy import pattern
from crosswalk.mapping.alike import AlikeEvents
from crosswalk.mapping.detect import other_document
from crosswalk.mapping.event import (
    Delivery,
    EventMapper,
    Unknown,
    final_deltas,
    has_output,
    missing,
    texts_of,
)
from crosswalk.mapping.failures import error_delta, error_info, read_error_body
from crosswalk.plain_errors import is_cancellation
from crosswalk.plugin.registry import Mapper
from crosswalk.plugin.state import MappingState
from crosswalk.text import Redact, may_log_content, shortened
from crosswalk.types.answer import ChoiceDraft
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.json import copy_json, dump_json
from crosswalk.types.response import Alternative, ChatResponse
from crosswalk.types.usage import Provenance, counted_tokens
from crosswalk.types.values import FinishReason, RawEvents, Segment, SegmentType, new_id, now
from crosswalk.wire.framing import (
    DEFAULT,
    REPLACEMENT,
    BodyDecoder,
    Frame,
    HalfBuffer,
    HeldEvent,
    Limits,
    PushDecoder,
    SniffingDecoder,
    is_done,
    load_event,
    mend_halves,
)

if TYPE_CHECKING:
    import logging


# --------------------------------------------------------------------------------- options
# How to read a payload: the options that bodies and streams share.


Timer: TypeAlias = Callable[[], float]


def _is_status(_: Any, __: Any, value: object) -> None:
    if type(value) is not int or not 100 <= value <= 999:
        raise ValueError(f"status is an HTTP status from 100 to 999, not {str(value)[:40]!r}")


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ReaderOptions:
    """How to read a payload, the same for bodies and streams.

    Attributes:
        status: the HTTP status of the answer. From 400 on the body is read as an error.
        unknown: ``"raise"`` refuses an unknown event type or finish word. ``"keep"`` keeps the event
            in the extensions, and the word as ``stop`` with provenance ``unmapped``.
        id_factory: makes the id if the provider sends none.
        clock: returns the time of creation if the provider sends none.
        keep_raw: whether to keep the provider's bytes on the response.
        limits: the limits of the input.
        timer: a monotonic clock in seconds, to measure duration and time to first token from now on;
            ``None`` for no measurement. Recorded bytes have no timing, so the same bytes give the same response.
        redact: removes secrets that a server may have repeated, such as the key of the request, from errors, ids,
            models and finish words. ``None`` if no request was sent.
        content_type: the media type of the HTTP answer, in lower case without parameters, or ``""`` if unknown.
    """

    status: int = attrs.field(default=200, validator=_is_status)
    unknown: Unknown = attrs.field(default="raise", validator=attrs.validators.in_(("raise", "keep")))
    id_factory: Callable[[], str] = new_id
    clock: Callable[[], datetime] = now
    keep_raw: bool = True
    limits: Limits = DEFAULT
    timer: Timer | None = None
    redact: Redact | None = None
    content_type: str = ""


USUAL_OPTIONS: Final = ReaderOptions()
"""The options of most bodies."""


def checked_call(make: Callable[[], Any], kind: type, errors: list[Exception]) -> Any:
    """Return the value of the caller's *make*, of this *kind*. An error is added to *errors* and raised."""
    name = "id_factory" if kind is str else "clock"
    try:
        value = make()
        if not isinstance(value, kind):
            raise TypeError(f"{name} gave {type(value).__name__}, not {kind.__name__}")
        if isinstance(value, str) and not value.encode():  # or it cannot be encoded in UTF-8
            raise ValueError(f"{name} gave an empty id")
        if isinstance(value, datetime) and value.tzinfo is None:
            raise ValueError(f"{name} gave a time without a time zone")
    except Exception as error:
        errors.append(error)
        raise
    return value


# ------------------------------------------------------------------------------------- log
# The log of the mapping core: one structured record for each response.


_is_quiet: ContextVar[bool] = ContextVar("crosswalk.mapping.quiet", default=False)


_DEBUG: Final = 10
_INFO: Final = 20
"""The levels of :mod:`logging`, which this module does not import."""
_ERROR: Final = FinishReason.ERROR
_TEXT: Final = SegmentType.TEXT


@cache
def _log() -> logging.Logger:
    import logging

    return logging.getLogger("crosswalk.mapping")


@contextmanager
def quietly() -> Iterator[None]:
    """Log nothing meanwhile, because the program has not received this answer."""
    token = _is_quiet.set(True)
    try:
        yield
    finally:
        _is_quiet.reset(token)


def log_response(response: ChatResponse) -> None:
    """Log that *response* was mapped: an error response at INFO, any other at DEBUG.

    The record's extra fields are OpenTelemetry's, with ``gen_ai.response.id`` as the correlation id. The content is
    added as ``crosswalk.content`` only if the settings allow it.
    """
    if "logging" not in sys.modules or _is_quiet.get():  # nobody listens below the level of a warning
        return
    level = _INFO if response.finish_reason is _ERROR else _DEBUG
    if not _log().isEnabledFor(level):
        return
    from crosswalk.otel import otel_attributes  # only where somebody listens

    extra: dict[str, Any] = {
        "event.name": "crosswalk.response",
        **otel_attributes(response),
        "gen_ai.response.id": response.id,
    }
    if may_log_content():
        extra["crosswalk.content"] = shortened(response.text)
    provider, reason = response.metadata.provider_id, response.finish_reason.value
    _log().log(level, "%s answered: %s", provider, reason, extra=extra)


def log_failure(error: MappingError) -> None:
    """Log at INFO that a payload could not be mapped: provider, place, kind of error. The error is raised as well."""
    if "logging" not in sys.modules or _is_quiet.get():
        return
    from crosswalk.otel import otel_provider_name  # only where somebody listens

    extra = {
        "event.name": "crosswalk.failure",
        "gen_ai.provider.name": otel_provider_name(error.provider or "unknown"),
        "error.type": type(error).__name__,
        "crosswalk.place": error.place or "",
    }
    if error.partial is not None:
        extra["gen_ai.response.id"] = error.partial.id
    _log().info("%s", error, extra=extra)


_MOST_WARNINGS = 1000
_seen: set[tuple[str, str, str]] = set()


def log_unknown(provider: str, kind: str, word: str) -> None:
    """Warn of an unknown *word* of *provider* for an event or a finish reason, once for each word."""
    warning_key = (provider, kind, word[:60])
    if (
        warning_key in _seen or _is_quiet.get() or len(_seen) >= _MOST_WARNINGS
    ):  # a hostile server must fill neither the log nor the memory
        return
    _seen.add(warning_key)
    from crosswalk.otel import otel_provider_name  # seldom needed

    extra = {"event.name": "crosswalk.unknown", "gen_ai.provider.name": otel_provider_name(provider)}
    _log().warning("%s: unknown %s %r is kept unchanged", *warning_key, extra=extra)


# -------------------------------------------------------------------------------- redacted
# Removes a request's secrets, which a server may repeat, from an answer (see ``ReaderOptions.redact``).


def redact_response(response: ChatResponse, redact: Redact) -> ChatResponse:
    """Return *response* with its identity, its finish words and its errors redacted.

    These appear in messages, logs and spans. The texts of the answer and the extensions belong to the user.
    """
    changes = _changed(response, redact, "id", "model", "raw_finish_reason")
    model = redact(response.metadata.model_id)
    if model != response.metadata.model_id:
        changes["metadata"] = attrs.evolve(response.metadata, model_id=model)
    if any(segment.type is SegmentType.ERROR for segment in response.segments):
        changes["segments"] = [_segment(segment, redact) for segment in response.segments]
        changes |= _changed(response, redact, "refusal")
    if response.alternatives:
        changes["alternatives"] = [_alternative(one, redact) for one in response.alternatives]
    return attrs.evolve(response, **changes) if changes else response


def redact_delta(delta: ResponseDelta, redact: Redact) -> ResponseDelta:
    """*delta*, the last of its choice, with its finish word and its error redacted."""
    changes = _changed(delta, redact, "raw_finish_reason")
    if delta.segment is not None:
        changes["segment"] = _segment(delta.segment, redact)
    return attrs.evolve(delta, **changes) if changes else delta


def redact_error(error: MappingError, redact: Redact) -> None:
    """Redact the message of *error*, and the word that it holds."""
    error.cause = redact(error.cause)
    error.args = (error.cause,)
    if isinstance(error, UnknownFinishReasonError):
        error.reason = redact(error.reason)
    elif isinstance(error, UnknownEventError) and error.event_type is not None:
        error.event_type = redact(error.event_type)


def _changed(value: object, redact: Redact, *names: str) -> dict[str, Any]:
    """Those fields of *value* in which *redact* finds something."""
    texts = {name: getattr(value, name) for name in names}
    redacted_texts = {name: redact(text) for name, text in texts.items() if text is not None}
    return {name: text for name, text in redacted_texts.items() if text != texts[name]}


def _alternative(alternative: Alternative, redact: Redact) -> Alternative:
    return attrs.evolve(alternative, **_changed(alternative, redact, "raw_finish_reason"))


def _segment(segment: Segment, redact: Redact) -> Segment:
    if segment.type is not SegmentType.ERROR:
        return segment
    metadata = segment.metadata.thawed()
    if isinstance(metadata.get("code"), str):
        metadata["code"] = redact(metadata["code"])
    return attrs.evolve(segment, content=redact(segment.content), metadata=metadata)


# ---------------------------------------------------------------------------------- unread
# Answers without content whose message holds text that no mapping has read, such as a renamed field.


ENVELOPE_KEYS: Final = frozenset(
    {
        "created", "created_at", "completed_at", "done", "done_reason", "eval_duration", "id", "index", "load_duration",
        "object", "phase", "prompt_eval_duration", "raw_finish_reason", "role", "service_tier", "status",
        "system_fingerprint", "timings", "total_duration", "type",
    }
)  # fmt: skip
"""Fields about the answer as a document or the stage of a text, and durations. Each format has its own, so no client misses
another's."""

_LABEL_KEYS: Final = ENVELOPE_KEYS | {
    "encrypted_content", "matched_stop", "model", "modelVersion", "name", "prompt", "provider", "remote_host",
    "remote_model", "signature", "stop_sequence", "stop_type", "stopping_word",
}  # fmt: skip
_SIDE_TYPES: Final = (SegmentType.SAFETY, SegmentType.CITATION)
"""Parts about the content of an answer, which a server may also send without it."""


def is_unread(state: MappingState, choice: int, paths: tuple[str, ...] | None) -> bool:
    """Whether *choice* has no content, although tokens beyond the reasoning were counted and text is left in the messages.

    The counts are those of all choices, and so is the text that is left.

    Args:
        state: the state at the end of the answer.
        choice: its number.
        paths: see ``ProviderInfo.message_paths``.
    """
    usage, kinds = state.usage, set(_kinds(state.choice(choice)))
    if usage is None or not kinds <= {SegmentType.REASONING}:
        return False
    reasoning_tokens = usage.reasoning_tokens or 0
    if (counted_tokens(usage, state.provenance) or 0) <= reasoning_tokens or (kinds and not reasoning_tokens):
        return False  # if reasoning was shown and not counted, all tokens may be reasoning
    roots = (state.extensions,) if paths is None else _at(state.extensions, paths)
    return any(map(_holds_text, roots))


def _kinds(choice: ChoiceDraft) -> Iterator[SegmentType]:
    for part in choice.parts:
        if isinstance(part, tuple):
            if any(part[1]):
                yield part[0]
        elif not isinstance(part, Segment):
            yield SegmentType.TOOL_CALL
        elif part.type not in _SIDE_TYPES and (part.content or part.type is not SegmentType.TEXT):
            yield part.type


def _at(extensions: Any, paths: Iterable[str]) -> Iterator[Any]:
    """Return the values at *paths* of *extensions*. Of an object at a path that ends with ``*``, only its own texts."""
    for path in paths:
        values = [extensions]
        for step in path.split("."):
            if step == "*":
                values = [_own_texts(value) for value in values if isinstance(value, dict)]
                continue
            key = step.removesuffix("[]")
            values = [value[key] for value in values if isinstance(value, dict) and key in value]
            if key != step:
                values = [item for value in values if isinstance(value, list) for item in value]
        yield from values


def _own_texts(value: dict[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in value.items() if isinstance(item, str)}


def _holds_text(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_holds_text(item) for key, item in value.items() if not _is_label(key))
    if isinstance(value, list):
        return any(map(_holds_text, value))
    return isinstance(value, str) and bool(value.strip())


def _is_label(key: str) -> bool:
    """Whether *key* is that of an id, a role, a name, or another field about the answer as a document."""
    return key in _LABEL_KEYS or key.endswith(("_id", "Id", "ID", "_reason"))


# ---------------------------------------------------------------------------------- reader
# Bytes in, deltas out, a response in the end: the one door for bodies and streams, sync and async.
#
# ::
#
#     bytes -> framing (wire) -> event -> hooks (event) -> residue and state -> deltas (delivery) -> response
#
# An event that is like an earlier one but for its text goes around the hooks (alike). The reader does no I/O.


class Reader:
    """Reads one answer of one provider.

    Feed it with :meth:`read`, end with :meth:`finish`, then ask for :meth:`response`.

    Args:
        mapper: the provider.
        options: how to read.
        is_guess: whether other providers answer like that, too, so that the provider's id is derived.

    Attributes:
        start_time: the time from which durations are measured, by the timer of *options*.
    """

    def __init__(
        self, mapper: Mapper, options: ReaderOptions | None = None, *, is_guess: bool = False
    ) -> None:
        self._options = options = options or USUAL_OPTIONS
        self._state = state = MappingState(mapper.provider)
        if is_guess:
            state.note("metadata.provider_id", Provenance.DERIVED)
        self._caller_errors: list[Exception] = []  # errors of the caller's id_factory and clock
        # Neither knows the reader: a reference cycle would keep it until the next garbage collection.
        if options.id_factory is not new_id:
            state.id_factory = partial(checked_call, options.id_factory, str, self._caller_errors)
        if options.clock is not now:
            state.clock = partial(checked_call, options.clock, datetime, self._caller_errors)
        warns_of_unknown = options.timer is not None and options.unknown == "keep"
        self._event_mapper = EventMapper(
            mapper,
            state,
            options.unknown,
            partial(_log_unknown, options.redact) if warns_of_unknown else None,
        )
        self._delivery = Delivery(state)
        # From the second event of a stream on, if its provider declares where it has text.
        self._alike_events: AlikeEvents | None = None
        self._error_decoder = BodyDecoder(options.limits) if options.status >= 400 else None
        self._decoder: SniffingDecoder | None = None  # made when bytes come that need framing
        self._direct_decoder: PushDecoder | None = None  # the one that it chose, from the first event on
        self._decode: Callable[[bytes], list[Frame]] | None = None
        if self._error_decoder is not None:
            self._decode = self._error_decoder.decode
        self._raw_events = state.raw_events if options.keep_raw else None
        self._event_count = 0
        self._most_events = options.limits.events
        self._longest_line = options.limits.line_bytes
        self._first_event: Any = None  # the first event, as it came
        self._has_halves = False  # whether the event that was loaded last may hold halves of surrogate pairs
        # Made for the first such event, and where events are opened, whose halves are found only then.
        self._halves: HalfBuffer | None = HalfBuffer() if mapper.info.nested else None
        self._open = mapper.info.opened if mapper.info.nested else None
        self._has_sentinel = False
        self._is_done = False  # nothing may follow
        self._input_has_ended = False  # the input has ended, and its remainder is read
        self.start_time = options.timer() if options.timer is not None else 0.0
        self._first_token_time: float | None = None
        self._response: ChatResponse | None = None

    def read(self, chunk: bytes) -> Iterable[ResponseDelta]:
        """Return the deltas that *chunk*, the next bytes of the answer, completes. Iterate over them before you read more.

        Raises:
            MappingError: the bytes cannot be mapped. ``partial`` has everything before them.
            PluginError: the plugin failed.
        """
        alike_events, decoder = self._alike_events, self._direct_decoder
        try:
            if (
                alike_events is not None
                and (event := alike_events.framed) is not None
                and decoder is not None
                and decoder.is_idle
                and self._halves is None
                and self._event_count < self._most_events
                and (size := len(chunk)) <= self._longest_line
                and size <= decoder.room
                and (deltas := alike_events.read_framed(event, chunk)) is not None
            ):
                self._event_count += 1
                decoder.room -= size
                if self._raw_events is not None:
                    self._raw_events.append(chunk[event.data_span])
                return deltas
            frames = (self._decode or self._new_decoder())(chunk)
        except Exception as error:
            return self._unframed(error)
        if len(frames) == 1:  # servers flush each event of a live stream
            deltas = self._read_frame(*frames[0])
            if alike_events is not None and alike_events.unframed is not None and decoder is not None:
                data = frames[0][0]
                alike_events.frame(decoder.around(data, chunk) if alike_events.unframed is data else None)
            return deltas
        return chain.from_iterable(starmap(self._read_frame, frames))

    def read_whole(self, answer: bytes, *, is_watched: bool = True) -> Iterable[ResponseDelta]:
        """:meth:`read` for a complete *answer*: a single JSON document needs no framing.

        Args:
            answer: the bytes.
            is_watched: whether the deltas of a single document are wanted. If not, they lack what only their reader needs.

        Raises:
            MappingError: as from :meth:`read`.
        """
        limits = self._options.limits
        is_document = answer[:1] + answer[-1:] == b"{}" and len(answer) <= limits.total_bytes
        if is_document and self._error_decoder is None and self._open is None:
            try:
                event = load_event(answer, limits)
            except FramingError:
                pass  # several documents, halves of characters, or not JSON: the framing tells
            else:
                self._event_count += 1
                self._delivery.is_watched = is_watched and self._delivery.is_watched
                if self._raw_events is not None:
                    self._raw_events.append(answer)
                return self._map_complete(event, None, answer)
        return self.read(answer)

    def read_to_end(self, answer: bytes) -> ChatResponse:
        """Read the complete *answer* and return the response, for a caller that wants no deltas.

        Raises:
            MappingError: as from :meth:`read` and :meth:`finish`.
        """
        self._delivery.is_watched = False
        for _ in self.read_whole(answer):
            pass
        if self._decode is None:  # a single document, of which nothing is left
            self._end()
            return self._complete()
        drain(self.finish())
        return self.response()

    def read_event(self, event: Any) -> Iterable[ResponseDelta]:
        """Return the deltas of a decoded event, which is copied and not changed.

        Raises:
            MappingError: as from :meth:`read`.
        """
        if self._error_decoder is not None:
            self._error_decoder.decode(dump_json(event))
            return ()
        if self._event_count >= self._most_events:
            raise self._too_many()
        self._event_count += 1
        return self._map(copy_json(event), None, event)

    def finish(self, *, is_cut: bool = False) -> Iterator[ResponseDelta]:
        """Return the last deltas, after the end of the input. The final one carries finish reason and usage.

        Args:
            is_cut: whether the connection broke. Behind the end of an answer, an event that is not whole then says nothing.
                The beginning of the sentinel says nothing there anyway.

        Raises:
            IncompleteStreamError: the provider's terminal signal is missing.
            UnknownFinishReasonError: the provider's finish word is unknown, and ``unknown="raise"``.
            MappingError: as from :meth:`read`.
        """
        decoder = self._error_decoder or self._direct_decoder or self._decoder
        try:
            frames = [] if decoder is None or decoder.is_idle else decoder.flush()
        except Exception as error:
            yield from self._unframed(error)
        if self._error_decoder is not None:
            body = frames[0][0] if frames else b""
            self._event_count += 1
            if self._raw_events is not None:
                self._raw_events.append(body)
            self._state.error = read_error_body(
                self._event_mapper.mapper, self._options.status, body, self._options.limits
            )
        else:
            self._input_has_ended = True
            for data, name in frames:
                try:
                    yield from self._read_frame(data, name)
                except IncompleteStreamError:
                    is_void = is_cut or b"[DONE]".startswith(data)
                    if not (is_void and self.has_ended):
                        raise
        if self._halves is not None:
            yield from self._map_held(self._halves.flush())
        yield from self._end()
        self._complete()

    def response(self) -> ChatResponse:
        """The complete response.

        Raises:
            ResponseValidationError: the input has not been finished (``ACODE-RSP-008``).
        """
        if self._response is None:
            draft = self._state.choices.get(0)
            finish = None if draft is None else draft.finish
            if finish is None:
                raise ResponseValidationError(
                    "Cannot build incomplete response: the final delta has not come", code="ACODE-RSP-008"
                )
            response = self._state.response(finish, is_last=True)
            redact = self._options.redact
            self._response = response if redact is None else redact_response(response, redact)
        return self._response

    @property
    def is_done(self) -> bool:
        """Whether nothing may follow: the stream's sentinel came, or the answer was finished."""
        return self._is_done

    @property
    def has_ended(self) -> bool:
        """Whether the provider has ended the answer: every choice that began has its end, or an error came.

        Facts such as the usage may still follow, until :attr:`is_done`. For a provider that repeats its finish word
        (``ProviderInfo.repeats_finish``) it is not known before.
        """
        state, mapper = self._state, self._event_mapper.mapper
        if self._is_done or not (state.ends or state.error is not None) or mapper.info.repeats_finish:
            return self._is_done
        return missing(state, mapper) is None

    def last_event(self) -> Any:
        """The provider's last event, decoded, or ``None`` before the first and if bytes are not stored."""
        return RawEvents(self._raw_events[-1:])[0] if self._raw_events else None

    @property
    def frames(self) -> Sequence[bytes]:
        """The provider's events so far, as received, or empty if bytes are not stored."""
        return self._raw_events or ()

    def head(self) -> ChatResponse:
        """Return a response without content, which has all else that is known so far, such as the model."""
        state = self._state
        end = state.ends.get(0)
        word = state.choice(0).raw_finish if end is None else end.finish_word
        return self._redacted(lambda: state.head(word))

    def partial(self, cause: str | ErrorInfo) -> ChatResponse:
        """Everything that was delivered so far as an error response with *cause*."""
        self._measure()
        return self._redacted(lambda: self._state.partial(cause))

    def _redacted(self, build: Callable[[], ChatResponse]) -> ChatResponse:
        try:
            response = build()
        except Exception as error:
            raise self._damaged(error) from error
        redact = self._options.redact
        return response if redact is None else redact_response(response, redact)

    # Framing.

    def _new_decoder(self) -> Callable[[bytes], list[Frame]]:
        options = self._options
        self._decoder = self._event_mapper.mapper.new_decoder(
            options.limits, content_type=options.content_type
        )
        self._decode = self._decoder.decode
        return self._decode

    def _read_frame(self, data: bytes, name: str | None) -> Iterable[ResponseDelta]:
        if data[:1] != b"{":
            if not data:
                return ()  # a keep-alive
            if is_done(data):
                last_deltas = [] if self._halves is None else [*self._map_held(self._halves.flush())]
                self._is_done = self._has_sentinel = True
                self._alike_events = None
                return last_deltas  # the sentinel is not an event, and no event may follow it
        if self._event_count >= self._most_events:
            raise self._too_many()
        self._event_count += 1
        if self._raw_events is not None:
            self._raw_events.append(data)
        if (
            self._alike_events is not None
            and self._alike_events.is_ready
            and (self._halves is None or not self._halves.waiting)
            and len(data) <= self._longest_line
            and (deltas := self._alike_events.read(data, name)) is not None
        ):
            return deltas
        failure = None
        try:
            event = load_event(data, self._options.limits)
        except MappingError as error:
            failure = error
        if failure is not None:  # out here, it does not carry the payload along
            event = self._load_again(data, failure)
        elif self._halves is None:  # all events of nearly any answer
            return self._map_complete(event, name, data)
        return self._map(event, name, data)

    def _too_many(self) -> MappingError:
        limit = self._most_events
        return self._explain(TooManyEventsError(f"more than {limit} events", limit=limit))

    def _load_again(self, data: bytes, failure: MappingError) -> Any:
        """Return the event of *data*, which could not be loaded, with halves of characters, or the mark of a message."""
        if isinstance(failure, InvalidJSONError):
            with suppress(InvalidJSONError):
                event = load_event(data, self._options.limits, halves="keep")
                self._has_halves = True
                return event
            if self._decoder is not None and self._decoder.framing == "sse" and _is_message(data):
                return _MESSAGE_MARKER
        raise self._unreadable(failure)

    def _unreadable(self, error: MappingError) -> MappingError:
        """Return why an event cannot be read. A remainder that is not JSON means that the connection broke."""
        if not self._input_has_ended or self._event_count < 2 or not isinstance(error, InvalidJSONError):
            return self._explain(error)
        cut_error = self._explain(IncompleteStreamError("the input ended in the middle of an event"))
        cut_error.__cause__ = error
        return cut_error

    # Mapping.

    def _map(self, event: Any, name: str | None, source: Any) -> Iterable[ResponseDelta]:
        """Return the deltas of *event*, which the hooks consume. *source* is the original: bytes, or an object.

        Those of events that waited for the other half of a character come before.
        """
        if event is _MESSAGE_MARKER:
            self._state.error = error_delta(error_info(None, source.decode("utf-8", "replace").strip()))
            return ()
        if self._open is not None:
            try:
                event = self._open(event, self._options.limits, halves="keep")
            except MappingError as error:
                raise self._explain(error) from None
            source, self._has_halves = copy_json(event), True
            mend_halves(source)
        if not self._has_halves and (self._halves is None or not self._halves.waiting):
            return self._map_complete(event, name, source)
        if self._halves is None:
            self._halves = HalfBuffer()
        self._has_halves = False
        return self._map_held(self._halves.push(event, name, source))

    def _map_held(self, events: list[HeldEvent]) -> Iterator[ResponseDelta]:
        for held_event in events:
            is_mended = mend_halves(held_event.event)
            deltas = self._map_complete(held_event.event, held_event.name, held_event.source)
            if is_mended:
                is_text = any(REPLACEMENT in text for delta in deltas for text in texts_of(delta))
                self._state.note("segments" if is_text else "metadata.extensions", Provenance.CUT)
            yield from deltas

    def _map_complete(self, event: Any, name: str | None, source: Any) -> list[ResponseDelta]:
        state, alike_events = self._state, self._alike_events
        if self._is_done:
            raise self._explain(TrailingContentError("an event after the end of the stream"))
        if self._event_count == 1:
            self._first_event = source
        deltas: list[ResponseDelta] = []
        try:
            usage, changes = self._event_mapper.map(event, name, source, deltas)
        except MappingError as error:
            try:
                self._delivery.deliver(deltas, None, {})
            except Exception as delivery_error:
                raise self._damaged(delivery_error) from delivery_error
            raise self._explain(error) from error.__cause__
        if state.unknown_finish is not None:
            state.unknown_finish.locate(provider=self._event_mapper.mapper.provider, event=self._place())
        if alike_events is not None:
            alike_events.note(source, name, deltas, usage, changes)
        elif self._event_count <= 2 and self._decoder is not None:
            self._direct_decoder = self._decoder.direct
            self._decode = self._direct_decoder.decode
            if self._event_count == 2 and (alike_events := self._new_alike()) is not None:
                self._alike_events = alike_events
                alike_events.note(source, name, deltas, usage, changes)
        try:
            delivered_deltas = self._delivery.deliver(deltas, usage, changes)
        except Exception as error:
            raise self._damaged(error) from error
        timer = self._options.timer
        if timer is not None and self._first_token_time is None and any(map(has_output, delivered_deltas)):
            self._first_token_time = timer()
        return delivered_deltas

    def _new_alike(self) -> AlikeEvents | None:
        mapper = self._event_mapper.mapper
        is_opened = self._open is not None
        if (
            self._event_mapper.may_switch
            or not mapper.is_unmodified
            or not mapper.info.text_paths
            or is_opened
        ):
            return None
        return AlikeEvents(self._event_mapper, self._delivery, self._state, self._options.limits.depth)

    # The end.

    def _end(self) -> list[ResponseDelta]:
        self._is_done = True
        state, mapper = self._state, self._event_mapper.mapper
        if state.unknown_finish is not None and state.error is None and self._options.unknown == "raise":
            raise self._explain(state.unknown_finish)
        cause = missing(state, mapper) if self._event_count else "the input is empty"
        if cause is not None:
            raise self._explain(IncompleteStreamError(cause, place=self._after()))
        if state.usage is None and self._is_cut_off():
            state.note("usage", Provenance.CUT)
        if self._options.timer is not None:
            self._measure()
        if not state.has_json_extensions:
            raise mapper.broken("it left in the extensions what is not JSON")
        draft = state.choices.get(0) if len(state.choices) == 1 else None
        is_told = draft is not None and (draft.has_calls or (draft.open is _TEXT and draft.text[0]))
        if state.usage is not None and not is_told:  # most answers say something
            self._note_unread()
        try:
            last_deltas = final_deltas(state, self._delivery)
            if self._options.redact is not None:
                last_deltas = [redact_delta(delta, self._options.redact) for delta in last_deltas]
        except Exception as error:
            raise self._damaged(error) from error
        return last_deltas

    def _note_unread(self) -> None:
        state = self._state
        paths = self._event_mapper.mapper.info.message_paths
        if paths is not None:
            paths = (*paths, *getattr(state.dialect, "message_paths", ()))
        if is_unread(state, 0, paths):
            state.note("message", Provenance.UNMAPPED)
        for position, choice in enumerate(state.others if len(state.choices) > 1 else ()):
            if is_unread(state, choice, paths):
                state.note(f"alternatives[{position}].message", Provenance.UNMAPPED)

    def _complete(self) -> ChatResponse:
        try:
            response = self.response()
        except ResponseValidationError as error:
            raise self._explain(MappingError(str(error), place=self._after())) from None
        except Exception as error:
            raise self._damaged(error) from error
        log_response(response)
        return response

    def _is_cut_off(self) -> bool:
        """Whether the input ended after its finish word and before its usage: the sentinel is missing, too."""
        return (
            self._state.error is None
            and (self._event_mapper.mapper.info.sentinel or getattr(self._state.dialect, "sentinel", False))
            and not self._has_sentinel
            and self._decoder is not None
            and self._decoder.framing == "sse"
        )

    def _measure(self) -> None:
        timer, state = self._options.timer, self._state
        if timer is not None:
            state.request_duration = timedelta(seconds=timer() - self.start_time)
            if self._first_token_time is not None:
                state.time_to_first_token = timedelta(seconds=self._first_token_time - self.start_time)

    # Errors.

    def _unframed(self, error: Exception) -> Iterator[NoReturn]:
        """Raise, on the first delta, why there are no frames: a limit was passed, or a plugin failed at framing."""
        if isinstance(error, MappingError):
            raise self._explain(error) from None
        raise error  # the caller passed something other than bytes, or a plugin failed
        yield

    def _damaged(self, error: Exception) -> PluginError:
        """Return the error for a state without a valid response. An error of the caller's, or of an alarm, is raised."""
        if error in self._caller_errors or is_cancellation(error):
            raise error
        text = str(error) if isinstance(error, ResponseValidationError) else type(error).__name__
        return self._event_mapper.mapper.broken(
            f"it has set a value in the state that a response cannot have: {text}"
        )

    def _no_answer(self) -> MappingError | None:
        """Return the error for an input that is another document than an answer, or ``None``."""
        first_event = self._first_event
        document = other_document(
            load_event(first_event, halves="mend") if type(first_event) is bytes else first_event
        )
        return None if document is None else UnknownEventError(f"this is no answer, but {document}")

    def _place(self) -> str:
        return f"event {max(self._event_count, 1)}"

    def _after(self) -> str:
        return f"after event {self._event_count}" if self._event_count else "at the start"

    def _explain(self, error: MappingError) -> MappingError:
        """*error* with provider, place, and everything that was received before it."""
        if self._event_count == 1 and isinstance(error, IncompleteStreamError | UnknownEventError):
            error = self._no_answer() or error
        error.locate(provider=self._event_mapper.mapper.provider, event=self._place())
        if self._halves is not None:
            with suppress(MappingError):
                drain(self._map_held(self._halves.flush()))  # the partial answer holds it
        if self._options.redact is not None:
            redact_error(error, self._options.redact)
        if error.partial is None and self._event_count:
            error.partial = self.partial(error.cause)
        self._alike_events = None
        log_failure(error)
        return error


_MESSAGE_MARKER: Final = object()
"""In place of an event that is no JSON, but a message that a relay wrote into the stream."""
_LONGEST_MESSAGE: Final = 20_000
_WORDS_PATTERN: Final = pattern(r"<|[^\W\d_]{2,}[^\w\n]+[^\W\d_]")


def _is_message(data: bytes) -> bool:
    """Return whether the *data* of an event is a message in words, or a page of HTML. What begins like JSON is a part."""
    text = data[:_LONGEST_MESSAGE].decode("utf-8", "replace").strip()
    is_text = text.replace("\n", " ").replace("\t", " ").isprintable() and text[:1] not in '{["'
    return is_text and _WORDS_PATTERN.match(text) is not None


def _log_unknown(redact: Redact | None, provider: str, kind: str, word: str) -> None:
    log_unknown(provider, kind, word if redact is None else redact(word))


def drain(deltas: Iterable[object]) -> None:
    """Read *deltas* to their end, for a caller that wants the response alone."""
    for _ in deltas:
        pass


def read_body(mapper: Mapper, data: bytes, options: ReaderOptions) -> ChatResponse:
    """Read the complete answer *data*.

    Raises:
        MappingError: it cannot be mapped.
    """
    return Reader(mapper, options).read_to_end(data)
