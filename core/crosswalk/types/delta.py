"""The contribution of one event of a stream to the answer."""

from __future__ import annotations

import functools
from types import MappingProxyType
from typing import Any, Final, final

import attrs

from crosswalk.plain_errors import ResponseValidationError
from crosswalk.text import brief, short_repr, summary
from crosswalk.types.json import EMPTY_OBJECT, FrozenObject, as_frozen_object
from crosswalk.types.message import ToolCallDelta
from crosswalk.types.usage import UsageInfo
from crosswalk.types.values import (
    LARGEST,
    FinishReason,
    Segment,
    SegmentType,
    TokenLogprob,
    as_optional_tuple,
    check_count,
    check_is,
    check_items,
    check_optional_text,
    check_text,
    one_of,
)
from crosswalk.words import suggests_names

UNNUMBERED: Final = -1
"""The index of a delta that is not numbered yet."""


@brief
@final
@attrs.frozen
class Correction:
    """A streamed text that the provider's final item replaces.

    Attributes:
        type: the kind of text: ``text``, ``reasoning`` or ``refusal``, or ``tool_call`` for the arguments of a call.
        text: the new text.
        start: the first character that it replaces, counted in all text of that kind so far, or in the arguments.
        end: the character after the last one that it replaces.
        call: the position of the call among the calls of its choice, or ``None`` for other text.

    Raises:
        ResponseValidationError: the range ends before it starts, another type has characters to replace, a call has no
            position, or a field has another type.
    """

    type: SegmentType
    text: str
    start: int
    end: int
    call: int | None = None

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "type", one_of(SegmentType, self.type, "unknown segment type"))
        check_text(self, "text")
        check_count(self, "start")
        check_count(self, "end")
        if self.end < self.start:
            raise ResponseValidationError("a correction ends before it starts")
        if self.type is SegmentType.TOOL_CALL:
            check_count(self, "call")
        elif self.call is not None or self.type not in _CORRECTED_TYPES:
            raise ResponseValidationError(
                "a correction is of text, reasoning, a refusal or a call's arguments"
            )

    __repr__ = short_repr("type", "text", "start", "end", "call")


_CORRECTED_TYPES: Final = (SegmentType.TEXT, SegmentType.REASONING, SegmentType.REFUSAL)


@suggests_names
@brief
@final
@attrs.frozen(slots=False)
class ResponseDelta:
    """The contribution of one event of a stream to the answer.

    Attributes:
        index: its position in the stream, from 0, without gaps. A plugin leaves it out: the reader of the stream numbers
            its deltas. Until then it is -1.
        content_delta: text to append, or ``None``.
        tool_call_delta: a fragment of a tool call, or ``None``.
        finish_reason: why generation ended. Only on the final delta (with several choices, each choice's
            last).
        usage: tokens so far. On the final delta the total. A provider that reports running counts has them on
            earlier deltas too. A later report replaces an earlier one and is never added.
        reasoning_delta: reasoning text to append, or ``None``.
        refusal_delta: text of a refusal to append, or ``None``.
        segment: a whole segment that came at once, such as an error or an image.
        correction: the replacement of text that earlier deltas streamed, or ``None``.
        raw_finish_reason: the provider's own word for why it ended, verbatim, or ``None`` if it gave none.
        logprobs: the tokens of this delta, or ``None`` if not requested.
        choice: the number of the answer that it belongs to, from 0.
        extensions: fields without a typed counterpart, in the provider's own structure and only as far as they are
            new or changed since the deltas before.

    Raises:
        ResponseValidationError: it is empty (``ACODE-RSP-009``), ends for no known reason
            (``-003``), an index is below -1 or a choice below 0, or a field has another type.
    """

    index: int = UNNUMBERED
    content_delta: str | None = attrs.field(default=None, kw_only=True)
    tool_call_delta: ToolCallDelta | None = attrs.field(default=None, kw_only=True)
    finish_reason: FinishReason | None = attrs.field(default=None, kw_only=True)
    usage: UsageInfo | None = attrs.field(default=None, kw_only=True)
    reasoning_delta: str | None = attrs.field(default=None, kw_only=True)
    refusal_delta: str | None = attrs.field(default=None, kw_only=True)
    segment: Segment | None = attrs.field(default=None, kw_only=True)
    correction: Correction | None = attrs.field(default=None, kw_only=True)
    raw_finish_reason: str | None = attrs.field(default=None, kw_only=True)
    logprobs: tuple[TokenLogprob, ...] | None = attrs.field(
        default=None, kw_only=True, converter=as_optional_tuple
    )
    choice: int = attrs.field(default=0, kw_only=True, metadata={"json_omit": True})
    extensions: FrozenObject = attrs.field(default=EMPTY_OBJECT, kw_only=True, converter=as_frozen_object)

    def __attrs_post_init__(self) -> None:
        index, choice = self.index, self.choice
        if (
            type(index) is not int
            or not UNNUMBERED <= index <= LARGEST
            or type(choice) is not int
            or not 0 <= choice <= LARGEST
        ):
            raise ResponseValidationError("delta index and choice must be integers from 0")
        check_optional_text(self, *_TEXT_FIELDS)
        for name, kind in _FIELD_TYPES:
            if getattr(self, name) is not None:
                check_is(self, name, kind)
        reason = self.finish_reason
        if reason is not None and type(reason) is not FinishReason:
            object.__setattr__(self, "finish_reason", as_finish_reason(reason))
        if self.logprobs is not None:
            check_items(self, "logprobs", TokenLogprob)
        if self.content_delta is None and self._is_empty():
            raise ResponseValidationError("Delta must have content or be complete", code="ACODE-RSP-009")

    def _is_empty(self) -> bool:
        return (
            self.reasoning_delta is None
            and self.tool_call_delta is None
            and self.finish_reason is None
            and self.usage is None
            and self.refusal_delta is None
            and self.segment is None
            and self.correction is None
            and self.raw_finish_reason is None
            and not self.logprobs
            and not self.extensions
        )

    @property
    def text(self) -> str:
        """The text that it appends, or ``""``."""
        return self.content_delta or ""

    @property
    def is_complete(self) -> bool:
        """Whether this delta ends its choice."""
        return self.finish_reason is not None

    def __repr__(self) -> str:
        names = (
            "index", "choice", "content_delta", "reasoning_delta", "refusal_delta", "tool_call_delta",
            "segment", "correction", "finish_reason", "raw_finish_reason", "usage", "logprobs",
        )  # fmt: skip
        shown_fields = [(name, getattr(self, name)) for name in names if name != "choice" or self.choice]
        return summary("ResponseDelta", [*shown_fields, ("extensions", tuple(self.extensions))])


_TEXT_FIELDS: Final = ("content_delta", "reasoning_delta", "refusal_delta", "raw_finish_reason")
_FIELD_TYPES: Final = (
    ("tool_call_delta", ToolCallDelta),
    ("segment", Segment),
    ("correction", Correction),
    ("usage", UsageInfo),
)
_PART_TYPES: Final = MappingProxyType({"tool_call_delta": ToolCallDelta, "segment": Segment})
"""The types of the fields that are checked when they are made."""
_new: Final = object.__new__
# A stream makes a delta for each of its tokens, and most have one field alone. Such a delta has it in its dict and finds
# its other fields here: to fill twelve slots of a frozen object takes three times as long.
for _field in attrs.fields(ResponseDelta):
    setattr(ResponseDelta, _field.name, _field.default)
_set_and_check: Final = ResponseDelta.__init__


@functools.wraps(_set_and_check)
def _set(self: ResponseDelta, index: int = UNNUMBERED, *, choice: int = 0, **fields: Any) -> None:
    if (
        len(fields) == 1
        and type(index) is type(choice) is int
        and UNNUMBERED <= index <= LARGEST >= choice >= 0
    ):
        for name, value in fields.items():
            if type(value) is _PART_TYPES.get(name) or (
                name in _TEXT_FIELDS and type(value) is str and (value.isascii() or _is_text(value))
            ):  # no check could fail
                self.__dict__.update(fields, index=index, choice=choice)
                return
    _set_and_check(self, index, choice=choice, **fields)


ResponseDelta.__init__ = _set  # type: ignore[method-assign]


def text_delta(
    index: int,
    name: str | None,
    piece: str | ToolCallDelta,
    choice: int,
    extensions: FrozenObject,
    logprobs: tuple[TokenLogprob, ...] | None = None,
) -> ResponseDelta:
    """Return a delta of a *piece* for the attribute *name*, for a caller that has checked it: most of any stream.

    It bypasses the constructor, because the checks could only pass. Without a *name* there is no piece.
    """
    delta = _new(ResponseDelta)
    fields = delta.__dict__
    fields["index"] = index
    if name is not None:
        fields[name] = piece
    if choice:
        fields["choice"] = choice
    if extensions is not EMPTY_OBJECT:
        fields["extensions"] = extensions
    if logprobs is not None:
        fields["logprobs"] = logprobs
    return delta


def last_delta(
    index: int,
    choice: int,
    reason: FinishReason,
    raw_reason: str | None,
    usage: UsageInfo | None,
    segment: Segment | None,
    extensions: FrozenObject,
) -> ResponseDelta:
    """The delta that ends a choice, for a caller that has checked its parts."""
    delta = _new(ResponseDelta)
    delta.__dict__.update(
        index=index,
        choice=choice,
        finish_reason=reason,
        raw_finish_reason=raw_reason,
        usage=usage,
        segment=segment,
        extensions=extensions,
    )
    return delta


def said(
    text: str | None, reasoning: str | None = None, call: ToolCallDelta | None = None, *, choice: int = 0
) -> ResponseDelta:
    """Return ``ResponseDelta(...)`` of texts that are strings, at least one of them not empty, or of a fragment of a call.

    Raises:
        ResponseValidationError: as from the constructor, if it is something else after all.
    """
    if choice <= LARGEST and (
        type(call) is ToolCallDelta
        if not text and not reasoning
        else call is None
        and (text is None or (type(text) is str and text.isascii()) or _is_text(text))
        and (reasoning is None or (type(reasoning) is str and reasoning.isascii()) or _is_text(reasoning))
    ):
        delta = _new(ResponseDelta)  # as text_delta does, which would be one call more for any text
        fields = delta.__dict__
        fields["index"] = UNNUMBERED
        if text is not None:
            fields["content_delta"] = text
        if reasoning is not None:
            fields["reasoning_delta"] = reasoning
        if call is not None:
            fields["tool_call_delta"] = call
        if choice:
            fields["choice"] = choice
        return delta
    return ResponseDelta(content_delta=text, reasoning_delta=reasoning, tool_call_delta=call, choice=choice)


def ended(word: str, *, choice: int = 0) -> ResponseDelta:
    """Return ``ResponseDelta(raw_finish_reason=word, choice=choice)``, the delta of most finish words.

    Raises:
        ResponseValidationError: as from the constructor.
    """
    if choice > LARGEST or not ((type(word) is str and word.isascii()) or _is_text(word)):
        return ResponseDelta(raw_finish_reason=word, choice=choice)
    delta = _new(ResponseDelta)
    fields = delta.__dict__
    fields["index"] = UNNUMBERED
    fields["raw_finish_reason"] = word
    if choice:
        fields["choice"] = choice
    return delta


def _is_text(text: object) -> bool:
    """Whether *text* is a string without lone surrogates."""
    if type(text) is not str:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def with_changes(
    delta: ResponseDelta, index: int, extensions: FrozenObject, usage: UsageInfo | None
) -> ResponseDelta:
    """Return *delta* without its end, and with these fields replaced. ``attrs.evolve`` takes ten times as long."""
    changed_delta = _new(ResponseDelta)
    fields = changed_delta.__dict__
    fields.update(delta.__dict__)
    fields["finish_reason"] = fields["raw_finish_reason"] = None
    fields["index"], fields["extensions"], fields["usage"] = index, extensions, usage
    return changed_delta


def as_finish_reason(value: object) -> FinishReason:
    """Return *value* as a :class:`FinishReason`.

    Raises:
        ResponseValidationError: it is not one of the words (``ACODE-RSP-003``).
    """
    return one_of(FinishReason, value, "Invalid finish reason value", code="ACODE-RSP-003")
