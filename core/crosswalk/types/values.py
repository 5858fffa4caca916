"""The small values of an answer, from its end to its error, and the checks of what people give to a constructor."""

from __future__ import annotations

import functools
import inspect
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from datetime import UTC, datetime
from enum import StrEnum
from itertools import repeat
from operator import attrgetter, call
from typing import Any, Final, TypeAlias, TypeVar, final, overload

import attrs
import orjson

from crosswalk.plain_errors import ConfigurationError, ResponseValidationError
from crosswalk.text import brief, clean_message, counted, json_type_name, meant, nearest, short_repr, summary
from crosswalk.types.json import EMPTY_OBJECT, FrozenObject, as_frozen_object, load_json
from crosswalk.words import right_keyword

# ----------------------------------------------------------------------------------- value
# Shared helpers of the canonical types: converters to immutable values, checks of fields, and copies.


T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

LARGEST: Final = 2**63 - 1
"""The largest whole number of a field. JSON can still be written with the sum of two of them."""
_new: Final = object.__new__
_set: Final = object.__setattr__


def as_tuple(value: Iterable[Any]) -> tuple[Any, ...]:
    """An attrs converter: *value* as a tuple."""
    if type(value) is tuple:
        return value
    untyped_value: object = value  # a caller may not be typed
    if not isinstance(untyped_value, Iterable) or isinstance(
        untyped_value, str | bytes | bytearray | Mapping | Set
    ):
        raise ResponseValidationError(f"expected a list, got {json_type_name(untyped_value)}")
    return tuple(untyped_value)


def as_optional_tuple(value: Iterable[Any] | None) -> tuple[Any, ...] | None:
    """An attrs converter: *value* as a tuple, or ``None``."""
    return None if value is None else as_tuple(value)


def new_id() -> str:
    """A fresh response id: a random UUID, without the modules that :mod:`uuid` loads."""
    random_bytes = bytearray(os.urandom(16))
    random_bytes[6] = random_bytes[6] & 0x0F | 0x40  # version 4
    random_bytes[8] = random_bytes[8] & 0x3F | 0x80
    digits = random_bytes.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


def as_utc(value: object) -> datetime:
    """Return the time *value* in UTC.

    Raises:
        ResponseValidationError: it is not a time, has no time zone, or lies outside the calendar.
    """
    if type(value) is datetime and value.tzinfo is UTC:
        return value
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise ResponseValidationError("created must be a datetime with a time zone")
    try:
        value = value.astimezone(UTC)
        return datetime(*value.timetuple()[:6], value.microsecond, UTC)  # a subclass has more to it
    except OverflowError:
        raise ResponseValidationError("created lies outside the years 1 to 9999 in UTC") from None


def one_of(enum_class: type[E], value: object, problem: str, *, code: str | None = None) -> E:
    """Return *value* as one of *enum_class*.

    Raises:
        ResponseValidationError: it is not one of them. The message is *problem*, the code *code*.
    """
    if type(value) is enum_class:
        return value
    if isinstance(value, str):
        try:
            return enum_class(value)
        except ValueError:
            pass
    description = repr(value[:40]) if isinstance(value, str) else json_type_name(value)
    raise ResponseValidationError(f"{problem}: {description}", code=code)


# What a field may hold, checked when a value is made. Each function leaves in the field *name* of *value* what it may
# hold, or raises ResponseValidationError. Types are exact, as in JSON; a subclass of str, int or float becomes what it
# is a subclass of. Where many values are made, a quick look comes first and the call only where it finds something odd.


def check_text(value: Any, *names: str) -> None:
    """Check text that JSON can contain: no lone surrogates."""
    for name in names:
        text = getattr(value, name)
        if type(text) is str and text.isascii():
            continue
        checked_text = as_text(text, f"{type(value).__name__}.{name}")
        if checked_text is not text:
            _set(value, name, checked_text)


def as_text(value: object, name: str) -> str:
    """Return *value*, named *name* in the message of the error, as text that JSON can contain."""
    if not isinstance(value, str):
        raise ResponseValidationError(f"{name} must be text, not {json_type_name(value)}")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ResponseValidationError(f"{name} holds a lone surrogate, which is not text") from None
    return value if type(value) is str else str.__str__(value)


def check_optional_text(value: Any, *names: str) -> None:
    """Text, or ``None``."""
    for name in names:
        if getattr(value, name) is not None:
            check_text(value, name)


def check_count(value: Any, name: str) -> None:
    """A whole number of at least 0, in 63 bits."""
    number = getattr(value, name)
    if type(number) is not int:
        if not isinstance(number, int) or isinstance(number, bool):
            raise wrong_type(value, name, "an integer from 0")
        _set(value, name, int(number))
    if not 0 <= number <= LARGEST:
        raise ResponseValidationError(f"{type(value).__name__}.{name} must be an integer from 0 to 2**63 - 1")


def check_number(value: Any, name: str) -> None:
    """Check a number that JSON can contain, as a ``float``: neither NaN nor infinite."""
    number = getattr(value, name)
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise wrong_type(value, name, "a number")
    try:
        converted = float(number)
    except OverflowError:
        converted = math.inf
    if not math.isfinite(converted):
        raise ResponseValidationError(f"{type(value).__name__}.{name} must be a finite number")
    _set(value, name, converted)


def check_flag(value: Any, name: str) -> None:
    """``True`` or ``False``."""
    if type(getattr(value, name)) is not bool:
        raise wrong_type(value, name, "true or false")


def check_is(value: Any, name: str, *kinds: type) -> None:
    """A value of one of *kinds*."""
    if type(getattr(value, name)) not in kinds:
        raise wrong_type(value, name, " or ".join(kind.__name__ for kind in kinds))


def check_items(value: Any, name: str, *kinds: type) -> None:
    """Check a tuple of values of one of *kinds*, or ``None`` if a converter has let that pass."""
    for item in getattr(value, name) or ():
        if type(item) not in kinds:
            expected_types = " or ".join(kind.__name__ for kind in kinds)
            raise ResponseValidationError(
                f"{type(value).__name__}.{name} must hold {expected_types}, not {json_type_name(item)}"
            )


def wrong_type(value: Any, name: str, requirement: str) -> ResponseValidationError:
    """Return the error that names the wrong field of *value*."""
    actual_type = json_type_name(getattr(value, name))
    return ResponseValidationError(f"{type(value).__name__}.{name} must be {requirement}, not {actual_type}")


def need_name(_: Any, attribute: attrs.Attribute[str], value: object) -> None:
    """An attrs validator: a text that is not empty."""
    if not isinstance(value, str) or not value:
        raise ResponseValidationError(f"{attribute.name} must be a text that is not empty")


def need_bool(_: Any, attribute: attrs.Attribute[Any], value: object) -> None:
    """An attrs validator: a boolean."""
    if type(value) is not bool:
        raise ResponseValidationError(f"{attribute.name} must be a boolean, not {json_type_name(value)}")


def number(least: float, most: float | None = None, *, whole: bool = False) -> Any:
    """Return a validator: ``None``, or a number from *least* to *most*."""
    kinds: tuple[type, ...] = (int,) if whole else (int, float)

    def check(_: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        top = math.inf if most is None else most
        if value is not None and not (type(value) in kinds and least <= value <= top and value != math.inf):
            bounds = f"at least {least}" if most is None else f"from {least} to {most}"
            raise ResponseValidationError(
                f"{attribute.name} must be a {'whole ' if whole else ''}number, {bounds}"
            )

    return check


@functools.cache
def _defaults(cls: Any) -> dict[str, Any]:
    """The default of each field of an attrs class."""
    return {field.name: field.default for field in attrs.fields(cls)}


@functools.cache
def _setters(cls: Any) -> tuple[Callable[[Any, Any], None], ...]:
    """The functions that set the fields of a slotted attrs class, in their order: faster than to set them by name."""
    return tuple(getattr(cls, name).__set__ for name in _defaults(cls))


@functools.cache
def _parts(cls: Any) -> tuple[Callable[[Any], tuple[Any, ...]], dict[str, int], tuple[Any, ...]] | None:
    """Return the parts that copy a value of an attrs class, or ``None`` if its fields are not slots.

    The first part gets all fields in their order, the last one twice, so that there are always two. The second is the
    position of each field, and the third holds the functions that set them.
    """
    names = [*_defaults(cls)]
    if not all(hasattr(getattr(cls, name, None), "__set__") for name in names):
        return None
    positions = {name: position for position, name in enumerate(names)}
    return attrgetter(*names, names[-1]), positions, _setters(cls)


def unchecked(cls: type[T], **fields: Any) -> T:
    """A value of the slotted attrs class *cls* with these *fields*, which the caller has checked, and defaults."""
    kind: Any = cls
    instance = _new(cls)
    any(
        map(call, _setters(kind), repeat(instance), {**_defaults(kind), **fields}.values())
    )  # each gives None
    return instance


def maker(cls: type[T], *names: str) -> Callable[..., T]:
    """Return a function that makes a value of the slotted attrs class *cls* as :func:`unchecked` does.

    Its arguments are the values of the fields *names*, by position: keywords take longer than all the rest.
    """
    kind: Any = cls
    more_names = [name for name in _defaults(kind) if name not in names]
    setters = [getattr(kind, name).__set__ for name in (*names, *more_names)]
    more_values = tuple([_defaults(kind)[name] for name in more_names])

    def make(*values: Any) -> T:
        instance = _new(cls)
        any(map(call, setters, repeat(instance), values + more_values))  # each gives None
        return instance

    return make


def altered(value: T, **changes: Any) -> T:
    """Return a copy of the frozen *value* with *changes*, which need no check. ``attrs.evolve`` checks everything again."""
    cls: Any = type(value)
    copy: T = _new(cls)
    parts = _parts(cls)
    if parts is None:
        copy.__dict__.update(value.__dict__, **changes)
        return copy
    getter, positions, setters = parts
    fields = [*getter(value)]
    for name, field in changes.items():
        fields[positions[name]] = field
    any(map(call, setters, repeat(copy), fields))
    return copy


# -------------------------------------------------------------------------------- keywords
# Refuses the wrong keyword of a call that people type, and names the right one.


C = TypeVar("C", bound=Callable[..., Any])


def checks_keywords(
    *more_names: Iterable[str], elsewhere: Mapping[str, Iterable[str]] | None = None
) -> Callable[[C], C]:
    """Decorate a function, or a class for its constructor, so that a wrong keyword raises with the nearest right one.

    Args:
        more_names: the keywords that it takes as ``**options``.
        elsewhere: keywords that belong to another class, by the name of the class.
    """

    def decorate(target: Any) -> Any:
        if isinstance(target, type):
            target_class: Any = target
            target_class.__init__ = decorate(target_class.__init__)
            return target_class
        code = target.__code__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        known_names = frozenset(names).union(*more_names) - {"self"}

        def wrong(options: Mapping[str, Any]) -> ConfigurationError:
            name = next(name for name in options if name not in known_names)
            return _wrong(name, known_names, elsewhere or {})

        if inspect.iscoroutinefunction(target):

            @functools.wraps(target)
            async def checked_coroutine(*arguments: Any, **options: Any) -> Any:
                if not known_names.issuperset(options):
                    raise wrong(options)
                return await target(*arguments, **options)

            return checked_coroutine

        @functools.wraps(target)
        def checked(*arguments: Any, **options: Any) -> Any:
            if not known_names.issuperset(options):
                raise wrong(options)
            return target(*arguments, **options)

        return checked

    return decorate


def _wrong(
    name: str, known_names: Iterable[str], elsewhere: Mapping[str, Iterable[str]]
) -> ConfigurationError:
    """Return the error for the wrong keyword *name*."""
    hint = right_keyword(name, frozenset(known_names))
    is_foreign = hint is not None
    hint = hint if is_foreign else meant(name, sorted(known_names))
    if not hint:
        owners = {option: owner for owner, options in elsewhere.items() for option in options}
        nearest_name = nearest(name, owners)
        if nearest_name and (nearest_name == name or not is_foreign):
            hint = f"; give it in {owners[nearest_name]}(..., {nearest_name}=...)"
    return ConfigurationError(f"there is no option {name!r:.60}{hint}", key=name)


# ---------------------------------------------------------------------------------- finish
# Why a generation ended, and why its answer is not whole.


class FinishReason(StrEnum):
    """The reason why the model stopped. It is read case-insensitively and written as these words."""

    STOP = "stop"
    """The model finished by itself."""
    LENGTH = "length"
    """A limit of tokens was reached, or the answer was cut for another reason: it is incomplete."""
    TOOL_CALLS = "tool_calls"
    """The model asks the client to run tools."""
    CONTENT_FILTER = "content_filter"
    """Moderation stopped the answer."""
    ERROR = "error"
    """The generation failed."""
    CANCELLED = "cancelled"
    """The client, or the server's operator, stopped it."""

    @classmethod
    def _missing_(cls, value: object) -> FinishReason | None:
        return _FINISH_REASONS_BY_WORD.get(value.lower()) if isinstance(value, str) else None


class IncompleteReason(StrEnum):
    """Why an answer is not whole: a closed set, in order of precedence."""

    ERROR = "error"
    """The generation failed."""
    CANCELLED = "cancelled"
    """The client, or the server's operator, stopped it."""
    CONTENT_FILTER = "content_filter"
    """Moderation stopped it."""
    LENGTH = "length"
    """A limit cut it."""
    UNKNOWN_FINISH_REASON = "unknown_finish_reason"
    """It ended with a word that no mapping knows, or its log states no reason."""
    UNKNOWN_EVENT = "unknown_event"
    """It holds an event, or a part of its content, that no mapping knows."""
    REFUSAL = "refusal"
    """The model declined."""
    MISSING_CALL = "missing_call"
    """The server reports that the model calls tools, and no call came."""
    INVALID_ARGUMENTS = "invalid_arguments"
    """The arguments of a function call are not a JSON object."""
    UNREAD = "unread"
    """Tokens were counted and no content was found, but its message holds text that no mapping has read."""
    PAUSED = "paused"
    """The model continues when the answer is sent back unchanged."""


PAUSES: Final = frozenset({"pause_turn", "compaction"})
"""The providers' words for an answer that only pauses. They are read as ``stop``."""

_FINISH_REASONS_BY_WORD = {reason.value: reason for reason in FinishReason}


# ---------------------------------------------------------------------------------- filter
# Verdicts of a provider's moderation, in one set of words.


class ContentFilterCategory(StrEnum):
    """The kind of harm."""

    SEXUAL = "sexual"
    VIOLENCE = "violence"
    HATE = "hate"
    SELF_HARM = "self_harm"


class ContentFilterSeverity(StrEnum):
    """How bad it is."""

    SAFE = "safe"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


def _as_category(value: object) -> ContentFilterCategory:
    return one_of(ContentFilterCategory, value, "unknown content filter category")


def _as_severity(value: object) -> ContentFilterSeverity:
    return one_of(ContentFilterSeverity, value, "unknown content filter severity")


@brief
@attrs.frozen
class ContentFilterResult:
    """One verdict of a provider's moderation.

    Attributes:
        category: the kind of harm.
        severity: how bad it is.
        filtered: whether content was blocked because of it.
        reason: the provider's explanation, or ``None`` when it gives none.

    Raises:
        ResponseValidationError: an unknown category or severity, or a field of another type.
    """

    category: ContentFilterCategory = attrs.field(converter=_as_category)
    severity: ContentFilterSeverity = attrs.field(converter=_as_severity)
    filtered: bool
    reason: str | None = None

    def __attrs_post_init__(self) -> None:
        check_flag(self, "filtered")
        check_optional_text(self, "reason")

    __repr__ = short_repr("category", "severity", "filtered", "reason")


# --------------------------------------------------------------------------------- logprob
# How likely the model found its tokens.


_INFINITY: Final = float("inf")


def _as_bytes(value: Iterable[int] | None) -> tuple[int, ...] | None:
    if value is None:
        return None
    numbers = value if type(value) in (tuple, list, bytes, bytearray) else as_tuple(value)
    try:
        return tuple(bytes(numbers))  # which takes integers from 0 to 255 only
    except (TypeError, ValueError):
        raise ResponseValidationError("TokenLogprob.bytes must hold integers from 0 to 255") from None


@brief
@final
@attrs.frozen(weakref_slot=False)
class TokenLogprob:
    """One token with its log probability.

    Attributes:
        token: the token as text.
        logprob: natural logarithm of its probability, or ``None`` where the model has none, as for the first
            token of a prompt.
        bytes: its UTF-8 bytes, which may be a part of a character, or ``None`` when not sent.
        top: the likeliest tokens at this place, in the provider's order.

    Raises:
        ResponseValidationError: a field of another type, a number that is not finite, a byte that is none.
    """

    token: str
    logprob: float | None = None
    bytes: tuple[int, ...] | None = attrs.field(default=None, converter=_as_bytes)
    top: tuple[TokenLogprob, ...] = attrs.field(default=(), converter=as_tuple)

    def __attrs_post_init__(self) -> None:
        # Spelt out: there may be tens of thousands of these in one answer.
        token, logprob = self.token, self.logprob
        if type(token) is not str or not token.isascii():
            check_text(self, "token")
        if logprob is not None and (type(logprob) is not float or not -_INFINITY < logprob < _INFINITY):
            check_number(self, "logprob")
        for other in self.top:
            if type(other) is not TokenLogprob:
                check_items(self, "top", TokenLogprob)

    __repr__ = short_repr("token", "logprob", "top")


_set_token, _set_logprob, _set_bytes, _set_top = (
    vars(TokenLogprob)[f.name].__set__ for f in attrs.fields(TokenLogprob)
)


def token_logprob(
    token: str, logprob: float | None, bytes: tuple[int, ...] | None, top: tuple[TokenLogprob, ...]
) -> TokenLogprob:
    """A :class:`TokenLogprob` for a caller that has checked the types: a quarter of the constructor's time."""
    is_plain = logprob is None or (type(logprob) is float and -_INFINITY < logprob < _INFINITY)
    if not (is_plain and token.isascii()):
        return TokenLogprob(token, logprob, bytes, top)
    instance = _new(TokenLogprob)
    _set_token(instance, token)
    _set_logprob(instance, logprob)
    _set_bytes(instance, bytes)
    _set_top(instance, top)
    return instance


# ------------------------------------------------------------------------------------- raw
# The provider's own bytes, stored alongside the values that were read from them.


_FRAME_TYPES = {bytes}


class RawEvents(Sequence[Any]):
    """The provider's bytes, event by event. They are decoded only when you look at them.

    ``raw_events[i]`` is the decoded JSON of event *i*, or its text if it is not JSON.

    Raises:
        ResponseValidationError: an event is not ``bytes``.
    """

    __slots__ = ("_frames",)
    _frames: tuple[bytes, ...]

    def __init__(self, frames: Iterable[bytes] = ()) -> None:
        self._frames = tuple(frames) if type(frames) is list else as_tuple(frames)
        if not _FRAME_TYPES.issuperset(map(type, self._frames)):
            raise ResponseValidationError("raw events must be bytes")

    @property
    def frames(self) -> tuple[bytes, ...]:
        """The bytes of each event, not decoded."""
        return self._frames

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> RawEvents: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return RawEvents(self._frames[index])
        data = self._frames[index]
        try:
            return load_json(data)
        except orjson.JSONDecodeError:
            return data.decode(errors="replace")

    def __len__(self) -> int:
        return len(self._frames)

    def __eq__(self, other: object) -> bool:
        return self._frames == other._frames if isinstance(other, RawEvents) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._frames)

    def __repr__(self) -> str:
        return f"RawEvents({counted(len(self._frames), 'event')})"


NO_RAW_EVENTS = RawEvents()


def as_raw_events(value: Iterable[bytes] | RawEvents) -> RawEvents:
    """An attrs converter: bytes of events as :class:`RawEvents`."""
    return value if type(value) is RawEvents else RawEvents(value)


# --------------------------------------------------------------------------------- segment
# The typed parts of an answer, in the order in which they came.


class SegmentType(StrEnum):
    """The type of a segment: a closed set without an ``other``."""

    TEXT = "text"
    REASONING = "reasoning"
    TOOL_CALL = "tool_call"
    CITATION = "citation"
    REFUSAL = "refusal"
    SAFETY = "safety"
    ERROR = "error"
    MEDIA = "media"


def _is_integer(value: object) -> bool:
    return type(value) is int and -LARGEST <= value <= LARGEST


@brief
@attrs.frozen
class CitationRef:
    """A source that a segment rests on.

    Attributes:
        id: the provider's id of the source, or ``None`` if it has none.
        source: its location: a URL, a file id or a title, or ``None`` if the provider does not send it.
        span: the characters of the text that it covers, from and up to, or ``None`` for the whole.

    Raises:
        ResponseValidationError: a field has another type, or a span is not two integers.
    """

    id: str | None = None
    source: str | None = None
    span: tuple[int, int] | None = attrs.field(default=None, converter=as_optional_tuple)

    def __attrs_post_init__(self) -> None:
        if self.id is not None:
            check_text(self, "id")
        if self.source is not None:
            check_text(self, "source")
        span: tuple[object, ...] | None = self.span
        if span is not None and not (len(span) == 2 and _is_integer(span[0]) and _is_integer(span[1])):
            raise ResponseValidationError("CitationRef.span must be two integers")

    __repr__ = short_repr("id", "source", "span")


@brief
@attrs.frozen
class SafetyAnnotation:
    """A moderation verdict on a segment.

    Attributes:
        category: the provider's word for the kind of harm.
        level: the provider's word for how bad or how likely, or ``None`` if it gives none.
        blocked: whether content was withheld because of it.

    Raises:
        ResponseValidationError: a field has another type.
    """

    category: str
    level: str | None = None
    blocked: bool = False

    def __attrs_post_init__(self) -> None:
        check_text(self, "category")
        check_optional_text(self, "level")
        check_flag(self, "blocked")

    __repr__ = short_repr("category", "level", "blocked")


Annotation: TypeAlias = CitationRef | SafetyAnnotation
"""The annotations that a segment may have: a closed set."""


@brief
@final
@attrs.frozen(weakref_slot=False)
class Segment:
    """A typed part of an answer.

    Attributes:
        type: the type of the part.
        content: its text. For ``tool_call`` the exact arguments, for ``media`` base64 data or a URL.
        metadata: more about it, read-only: ``id`` and ``name`` of a tool call, ``signature`` or ``encrypted``
            of reasoning (to be sent back byte for byte), ``kind``, ``retryable``, ``status``, ``code`` and
            ``raw`` of an error, ``media_type`` of media.
        annotations: citations and safety verdicts, in order.

    Raises:
        ResponseValidationError: the type is unknown, the content is not text, the metadata is not a JSON object, or an
            annotation has another type.
    """

    type: SegmentType
    content: str = ""
    metadata: FrozenObject = attrs.field(default=EMPTY_OBJECT, converter=as_frozen_object)
    annotations: tuple[Annotation, ...] = attrs.field(default=(), converter=as_tuple)

    def __attrs_post_init__(self) -> None:
        if type(self.type) is not SegmentType:
            object.__setattr__(self, "type", one_of(SegmentType, self.type, "unknown segment type"))
        content = self.content
        if type(content) is not str or not content.isascii():
            check_text(self, "content")
        if self.annotations:
            check_items(self, "annotations", CitationRef, SafetyAnnotation)

    def __repr__(self) -> str:
        return summary(
            "Segment",
            [
                ("type", self.type.value),
                ("content", self.content),
                ("metadata", tuple(self.metadata)),
                ("annotations", len(self.annotations) or None),
            ],
        )


# ------------------------------------------------------------------------------ error info
# A provider's report of its failure, in one set of words.


class ErrorKind(StrEnum):
    """The kind of error that a provider reported, in the same words for every provider."""

    RATE_LIMIT = "rate_limit"
    QUOTA = "quota"
    CONTEXT_OVERFLOW = "context_overflow"
    MODEL_UNAVAILABLE = "model_unavailable"
    AUTHENTICATION = "authentication"
    PERMISSION = "permission"
    INVALID_REQUEST = "invalid_request"
    CONTENT_FILTER = "content_filter"
    TOOL_CALL_VALIDATION = "tool_call_validation"
    TIMEOUT = "timeout"
    SERVER = "server"
    UNKNOWN = "unknown"


def _as_kind(value: object) -> ErrorKind:
    return one_of(ErrorKind, value, "unknown kind of error")


def _as_message(value: object) -> str:
    if not isinstance(value, str):
        raise ResponseValidationError(f"ErrorInfo.message must be text, not {json_type_name(value)}")
    return clean_message(value)


@brief
@attrs.frozen
class ErrorInfo:
    """A provider's report of its failure, in canonical words.

    Attributes:
        kind: one of the closed taxonomy.
        message: the provider's own words, cleaned of secrets, paths and control characters and cut to 500
            characters.
        retryable: whether the same request may succeed later.
        status: the HTTP status, or ``None`` for an error inside a stream.
        code: the provider's own code or type word, or ``None`` if it sent none.
        raw: the provider's error payload: JSON, or text if it was not JSON, or ``None`` if it sent none.

    Raises:
        ResponseValidationError: the kind is not an :class:`ErrorKind`, or a field has another type.
    """

    kind: ErrorKind = attrs.field(converter=_as_kind)
    message: str = attrs.field(converter=_as_message)
    retryable: bool = False
    status: int | None = None
    code: str | None = None
    raw: Any = attrs.field(default=None, hash=False)

    def __attrs_post_init__(self) -> None:
        check_flag(self, "retryable")
        if self.status is not None:
            check_count(self, "status")
        check_optional_text(self, "code")

    __repr__ = short_repr("kind", "status", "code", "retryable", "message")


# --------------------------------------------------------------------------- error segment
# The segment that stores a provider's report of its failure.


NO_CAUSE = "the generation failed"


def error_segment(info: ErrorInfo) -> Segment:
    """Return the segment that stores *info* in a response, and that :attr:`ChatResponse.error_info` reads back."""
    metadata = {
        "kind": info.kind.value,
        "retryable": info.retryable,
        "status": info.status,
        "code": info.code,
        "raw": info.raw,
    }
    return Segment(SegmentType.ERROR, info.message, {k: v for k, v in metadata.items() if v is not None})


def read_error(segment: Segment) -> ErrorInfo:
    """Read the fields that :func:`error_segment` stores. A plugin's segment, or a stored one, may contain anything."""
    metadata = segment.metadata.thawed()
    kind, status, code = metadata.get("kind"), metadata.get("status"), metadata.get("code")
    return ErrorInfo(
        kind=kind if kind in list(ErrorKind) else ErrorKind.UNKNOWN,
        message=segment.content or NO_CAUSE,
        retryable=metadata.get("retryable") is True,
        status=status if type(status) is int else None,
        code=code if type(code) is str else None,
        raw=metadata.get("raw"),
    )
