"""A short cut for streams: an event that equals an earlier one except for its text is not parsed again.

If the hooks made exactly one piece of text out of an event, this module splits the event's bytes around that text. The next
event with the same bytes around a JSON string is the same event with a new text, so it does not go to the hooks. A plugin
declares where its events carry text (``ProviderInfo.text_paths``). A few other values may also change: a string such as a
time, a running number, token counts, log probabilities. The bytes are split around them as well. The splits are verified
once: the earlier event is parsed with placeholders in place of the values.

Only the last event of each choice is remembered. An event that does more than add text clears them all.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from types import NoneType
from typing import Any, Final, NamedTuple

import orjson

from crosswalk.mapping.event import Delivery, EventMapper, may_hold_empty
from crosswalk.plain_errors import is_cancellation
from crosswalk.plugin.hooks import Path
from crosswalk.plugin.state import NOTED, MappingState, empty_containers, mistyped, note_again, prune
from crosswalk.types.delta import UNNUMBERED, ResponseDelta, text_delta
from crosswalk.types.json import EMPTY_OBJECT, FrozenObject, adopted, has_long_integer
from crosswalk.types.message import ToolCallDelta, arguments_delta
from crosswalk.types.usage import UsageInfo

_TEXT: Final = "text"
_TIME: Final = "time"
_NUMBER: Final = "number"
_COUNTS: Final = "counts"
_LOGPROBS: Final = "logprobs"
_FRAMED_KINDS: Final = frozenset({_TEXT, _TIME, _NUMBER, _COUNTS})
"""The values that may change in an event that is recognized with its framing."""
_STRING_KINDS: Final = frozenset({_TEXT, _TIME})
_DIGITS: Final = b"0123456789"
_MARK: Final = f"\0{os.urandom(8).hex()}"
"""The placeholder for a value. It is random, so no server can send it."""
_WRITTEN_MARK: Final = orjson.dumps(_MARK)
_PATIENCE: Final = 8
_PAUSE: Final = 32
"""After ``_PATIENCE`` remembered events without a match, only one event in ``_PAUSE`` is remembered, until one matches."""
_LONGEST_PAUSE: Final = 512
"""Each pause is twice as long as the one before, up to this."""
_MOST_CHOICES: Final = 16
"""The most choices with a remembered event. An event is compared with each of them in turn."""

_loads: Final = orjson.loads
_dumps: Final = orjson.dumps
_scan: Final = json.JSONDecoder().raw_decode


class _Cut(NamedTuple):
    """A value in an event that may change: its bytes from *start* to *end*, and its kind."""

    start: int
    end: int
    kind: str


class _Candidate(NamedTuple):
    """An event that only added a piece of text. It is cut up when the next one looks like it: many streams are short."""

    source: bytes
    name: str | None
    text: str
    delta: ResponseDelta
    usage: UsageInfo | None
    residue: dict[str, Any]
    changes: dict[str, Any]

    def may_match(self, data: bytes) -> bool:
        """Return whether *data* may be the same event with another text: a quick look, which tells most events apart."""
        start = self.source.find(_dumps(self.text))  # -1 if the server escapes it in another way
        key_end = self.source.rfind(b'"', 0, max(start, 0))
        key_start = self.source.rfind(b'"', 0, max(key_end, 0))
        return self.source[key_start:start] in data and _behind_strings(data) == _behind_strings(self.source)


def _behind_strings(data: bytes) -> bytes:
    """Return what stands behind the last string of *data*, without spaces and numbers, which may change."""
    return data[data.rfind(b'"') :].translate(None, b" +-.0123456789")


class _Remembered:
    """A remembered event, from which the hooks made one piece of text and nothing else.

    Attributes:
        data: its bytes.
        name: its SSE name.
        text: its text.
        choice: the number of its choice.
        parts: the draft of that choice.
        attribute: the attribute of a delta with such a text.
        call: the position of the tool call, or -1 for text.
        pieces: the arguments of that call so far.
        kinds: the kinds of the values that may change, in the order of the bytes. The text may occur twice.
        residue: the fields that the hooks left over.
        is_proved: whether the splits are verified. Only then the following attributes are set.
        strings: the other strings of the event. An event whose text equals one of them goes to the hooks, which may compare
            the two.
        logprob_path: the path of the log probabilities, or ``None`` if the event has none.
        left: the part of the log probabilities that the plugin leaves over, as JSON.
        texts: the texts of the choice that the hooks have not seen.
        before, behind: the bytes before the first value that may change, and behind the last one.
        closing_brackets: the latter without spaces, if their number may change, or ``None``.
        opening, closing: the bytes of a whole read before and behind those values, with their quotation marks. Empty if
            they are not known.
        opening_size, closing_size: their lengths.
        last_bracket: the end of the latter, from the event's last byte on.
        counts_form: the bytes of the token counts without digits and line ends. Empty if the event has none.
        frame_holes: the kind of each value, with the bytes between it and the next one and their number, if there are
            several.
        data_span: where the event is in the read.
    """

    __slots__ = (
        "_separators", "attribute", "before", "behind", "call", "choice", "closing", "closing_brackets", "closing_size",
        "counts_form", "data", "data_span", "frame_holes", "is_proved", "kinds", "last_bracket", "left", "logprob_path",
        "name", "opening", "opening_size", "parts", "pieces", "residue", "strings", "text", "texts",
    )  # fmt: skip

    def __init__(
        self,
        data: bytes,
        name: str | None,
        text: str,
        delta: ResponseDelta,
        cuts: list[_Cut],
        residue: dict[str, Any],
        state: MappingState,
    ) -> None:
        self.data, self.name, self.text, self.residue = data, name, text, residue
        self.choice, self.parts = delta.choice, state.choice(delta.choice)
        self.texts = state.repeated_texts[delta.choice]
        self.kinds = [cut.kind for cut in cuts]
        self.is_proved = False
        self.strings: frozenset[str] = frozenset()
        self.logprob_path: Path | None = None
        self.left = b""
        self.call = -1
        self.attribute = "content_delta" if delta.content_delta is not None else "reasoning_delta"
        self.pieces: list[str] = []
        if delta.tool_call_delta is not None:
            self.attribute, self.call = "tool_call_delta", delta.tool_call_delta.index
            self.pieces = self.parts.calls[self.call].arguments
        self.before = data[: cuts[0].start]
        self._separators = [
            (left_cut.kind, data[left_cut.end : right_cut.start]) for left_cut, right_cut in pairwise(cuts)
        ]
        self.behind = data[cuts[-1].end :]
        # Anthropic pads its events with spaces between the last brackets.
        is_padded = cuts[-1].kind in _STRING_KINDS and not self.behind.translate(None, b" }]")
        self.closing_brackets = self.behind.replace(b" ", b"") if is_padded else None
        self.opening = self.closing = self.last_bracket = b""
        self.opening_size = self.closing_size = 0
        counts = b"".join(data[cut.start : cut.end] for cut in cuts if cut.kind is _COUNTS)
        self.counts_form = counts.translate(None, _DIGITS + b"\r\n")
        self.frame_holes: list[tuple[str, bytes, int]] = []
        self.data_span = slice(0)

    def frame(self, head: bytes, tail: bytes) -> None:
        """Learn that *head* and *tail* stand around the event in a read."""
        marks = [b'"' if kind in _STRING_KINDS else b"" for kind in self.kinds]
        self.opening = head + self.before + marks[0]
        self.closing = marks[-1] + self.behind + tail
        self.opening_size, self.closing_size = len(self.opening), len(self.closing)
        self.last_bracket = self.behind[-1:] + tail
        self.frame_holes = [
            (kind, separator := left_mark + between + right_mark, len(separator))
            for (kind, between), (left_mark, right_mark) in zip(
                self._separators, pairwise(marks), strict=True
            )
        ]
        if self.frame_holes:
            self.frame_holes.append((self.kinds[-1], b"", 0))
        self.data_span = slice(len(head), -len(tail))

    def values_in(self, data: bytes) -> dict[str, Any] | None:
        """Return the values that may change in *data*, by kind, or ``None`` if other bytes differ."""
        if not data.startswith(self.before):
            return None
        values: dict[str, Any] = {}
        start = len(self.before)
        try:
            for kind, separator in self._separators:
                end = data.find(separator, start)
                if end < 0:
                    return None
                value = _loads(data[start:end])
                if values.setdefault(kind, value) != value:
                    return None  # the two places have different texts
                start = end + len(separator)
            end = len(data) - len(self.behind)
            if not data.endswith(self.behind):
                end = data.rfind(b'"') + 1
                if self.closing_brackets is None or data[end:].replace(b" ", b"") != self.closing_brackets:
                    return None
            value = _loads(data[start:end])
        except ValueError:
            return None
        return values if values.setdefault(self.kinds[-1], value) == value else None

    def marked(self) -> Any:
        """Return the decoded event with placeholders for the values that may change.

        Raises:
            ValueError: the result is not JSON.
        """
        pieces = [self.before]
        for separator in (*(separator for _, separator in self._separators), self.behind):
            pieces += _WRITTEN_MARK, separator
        return _loads(b"".join(pieces))


class AlikeEvents:
    """Recognizes the events of one answer that differ from an earlier one only in the values that may change.

    Args:
        events: maps the other events.
        delivery: delivers deltas.
        state: the state of the answer.
        depth: the greatest nesting depth of an event.

    Attributes:
        is_ready: whether an event is remembered. If not, no other one can match.
        framed: the remembered event that matched last, if the bytes around it in a read are known.
        unframed: the bytes of the event that matched last, if those around them in its read would help.
    """

    def __init__(
        self, event_mapper: EventMapper, delivery: Delivery, state: MappingState, depth: int
    ) -> None:
        info = event_mapper.mapper.info
        self._event_mapper = event_mapper
        self._delivery = delivery
        self._state = state
        self._depth = depth
        self._text_paths = info.text_paths
        keys = {_TIME: info.timestamp_key, _NUMBER: info.number_key, _COUNTS: info.usage_key}
        self._keys = {kind: key for kind, key in keys.items() if key is not None}
        self._logprob_paths = info.logprob_paths
        self._last_number: int | None = None  # of the last event
        self._candidate: _Candidate | None = None
        self._last: _Remembered | None = None
        self._plain: _Remembered | None = None  # the last event, if only its text may change
        self.is_ready = False
        self.framed: _Remembered | None = None
        self.unframed: bytes | None = None
        self._events_by_choice: dict[int, _Remembered] = {}
        self._vain_count = 0  # the number of remembered events since the last match
        self._pause_count = 0  # the number of next events not to remember
        self._next_pause = _PAUSE
        self._is_paused = False  # whether the last event was not to be remembered

    def read(self, data: bytes, name: str | None) -> list[ResponseDelta] | None:
        """Return the deltas of the event *data* if it matches a remembered one, or ``None`` if the hooks must map it.

        Call it only while :attr:`is_ready`.
        """
        plain_event = self._plain
        if (
            plain_event is not None
            and data.startswith(plain_event.before)
            and data.endswith(plain_event.behind)
        ):
            try:
                text = _loads(data[len(plain_event.before) : -len(plain_event.behind)])
            except ValueError:
                text = None
            if text and type(text) is str and text not in plain_event.strings and plain_event.name == name:
                return [self._deliver(plain_event, text, EMPTY_OBJECT)]
        last_event = self._last
        if last_event is None:
            candidate = self._candidate
            assert candidate is not None, "it is ready"
            if not candidate.may_match(data):
                return None
            last_event = self._remember(candidate)
            if last_event is None:
                return None
        values = last_event.values_in(data)
        if values is None:
            for last_event in self._events_by_choice.values() if len(self._events_by_choice) > 1 else ():
                if (values := last_event.values_in(data)) is not None:
                    break
            else:
                return None
        text = values.pop(_TEXT)
        if (
            last_event.name != name
            or type(text) is not str
            or not text
            or not (last_event.is_proved or self._prove(last_event))
            or text in last_event.strings
            or ((values or self._last_number is not None) and not self._may_change(values, data))
        ):
            return None
        self._last = last_event
        self._vain_count = self._pause_count = 0
        self._next_pause = _PAUSE
        self._last_number = values.get(_NUMBER)
        self._plain = last_event if last_event.kinds == [_TEXT] else None
        self.framed = last_event if last_event.opening else None
        self.unframed = data if self.framed is None and _FRAMED_KINDS.issuperset(last_event.kinds) else None
        extensions = EMPTY_OBJECT
        if values:
            if _COUNTS in values or _LOGPROBS in values:
                return self._deliver_counted(last_event, data, text, values)
            if _TIME in values:
                self._event_mapper.forget_residue()
                extensions = self._with_time(values[_TIME])
        return [self._deliver(last_event, text, extensions)]

    def frame(self, around: tuple[bytes, bytes] | None) -> None:
        """Learn the bytes *around* the event that matched last in its read. With ``None``, they may stand around others."""
        self.unframed = None
        if around is not None and self._last is not None:
            self._last.frame(*around)
            self.framed = self._last

    def read_framed(self, event: _Remembered, chunk: bytes) -> Iterable[ResponseDelta] | None:
        """Return the deltas of the read *chunk* if it is *event* with other values, framed as before, or ``None``.

        The bytes around a string have its quotation marks, so no space or line end is between them and the string. Token
        counts differ only in digits from those of *event*.
        """
        if not chunk.startswith(event.opening):
            return None
        start, end = event.opening_size, len(chunk) - event.closing_size
        if not chunk.endswith(event.closing):
            end = chunk.rfind(b'"')
            closing_brackets = event.closing_brackets
            if closing_brackets is None or not chunk.endswith(event.last_bracket):
                return None
            if chunk[end + 1 : event.data_span.stop].replace(b" ", b"") != closing_brackets:
                return None
        text = number = None
        values: dict[str, Any] = {}
        counts = b""
        try:
            if not event.frame_holes:  # most of any stream
                text, start = _loads(chunk[start - 1 : end + 1]), end
            for kind, separator, size in event.frame_holes:
                if kind is _NUMBER:
                    assert self._last_number is not None, "the last event had it"
                    number = self._last_number + 1
                    expected = b"%d%b" % (number, separator)
                    if not chunk.startswith(expected, start):
                        return None
                    start += len(expected)
                    continue
                hole_end = chunk.find(separator, start) if size else end
                if kind is _TIME:
                    values[_TIME] = _loads(chunk[start - 1 : hole_end + 1])
                elif kind is _COUNTS:
                    counts = chunk[start:hole_end]
                    if counts.translate(None, _DIGITS) != event.counts_form or has_long_integer(counts):
                        return None
                    values[_COUNTS] = _loads(counts)
                elif text is None:
                    text = _loads(chunk[start - 1 : hole_end + 1])
                elif text != _loads(chunk[start - 1 : hole_end + 1]):
                    return None
                start = hole_end + size
        except ValueError:
            return None
        if not text or text in event.strings or start != end:
            return None
        self._last_number = number
        if counts:
            return self._deliver_counted(event, counts, text, values)
        return (self._deliver(event, text, self._with_time(values[_TIME]) if values else EMPTY_OBJECT),)

    def note(
        self,
        source: Any,
        name: str | None,
        deltas: list[ResponseDelta],
        usage: UsageInfo | None,
        changes: dict[str, Any],
    ) -> None:
        """Remember the event that the hooks mapped last if it only added text. Otherwise forget all events.

        Args:
            source: the event as bytes. An event that came as an object is not remembered.
            name: its SSE name.
            deltas: its deltas, before they are delivered.
            usage: its token counts, or ``None`` if it has none.
            changes: its changes to the extensions.
        """
        is_paused, self._is_paused = self._is_paused, self._pause_count > 0
        if self._is_paused:
            self._pause_count -= 1
            if is_paused:
                return  # nothing was remembered or repeated since the last event
        for texts in self._state.repeated_texts.values():
            texts.clear()
        if self._is_paused:
            self.forget()
            return
        residue = self._event_mapper.residue
        delta = deltas[0] if len(deltas) == 1 else None
        if delta is None or not self._event_mapper.is_settled or self._keys.get(_NUMBER) in residue:
            self.forget()
            return
        text = self._only_text(delta)
        if not text or type(source) is not bytes or source[:1] != b"{":
            self.forget()
            return
        self._vain_count += 1
        if self._vain_count > _PATIENCE * max(1, len(self._events_by_choice)):
            self._pause_count = self._next_pause
            self._next_pause = min(2 * self._next_pause, _LONGEST_PAUSE)
        candidate = _Candidate(source, name, text, delta, usage, residue, changes)
        if self._last is None:
            self._candidate = candidate  # until the next event looks like it
            self.is_ready = True
        else:
            self._remember(candidate)

    def _remember(self, candidate: _Candidate) -> _Remembered | None:
        """Remember the event *candidate*, unless a value that may change is not found in it."""
        self._candidate = None
        source, delta = candidate.source, candidate.delta
        cuts = self._cuts(source, candidate.text, candidate.usage, delta, candidate.residue)
        if not cuts:
            self.forget()
            return None
        if candidate.changes and not candidate.changes.keys() <= {self._keys.get(cut.kind) for cut in cuts}:
            self.forget()  # these fields are new, and the other events were mapped before them
        remembered = _Remembered(
            source, candidate.name, candidate.text, delta, cuts, candidate.residue, self._state
        )
        self._last = self._events_by_choice[remembered.choice] = remembered
        self._plain = self.framed = self.unframed = None
        self.is_ready = True
        numbers = [source[cut.start : cut.end] for cut in cuts if cut.kind is _NUMBER]
        self._last_number = int(numbers[0]) if numbers else None
        if len(self._events_by_choice) > _MOST_CHOICES:
            del self._events_by_choice[next(iter(self._events_by_choice))]
        return remembered

    def forget(self) -> None:
        """Forget all events, because the next events may have another meaning."""
        self._last = self._plain = self._candidate = self.framed = self.unframed = None
        self.is_ready = False
        if self._events_by_choice:
            self._events_by_choice.clear()

    # The events that may be remembered.

    def _only_text(self, delta: ResponseDelta) -> str | None:
        """Return the text, reasoning or arguments of *delta*, or ``None`` if it has more than that and log probabilities."""
        call, text, reasoning = delta.tool_call_delta, delta.content_delta, delta.reasoning_delta
        if (
            delta.choice in self._state.ends
            or self._state.error is not None
            or delta.refusal_delta is not None
            or delta.segment is not None
            or delta.correction is not None
            or delta.finish_reason is not None
            or delta.raw_finish_reason is not None
            or delta.usage is not None
            or delta.extensions is not EMPTY_OBJECT
            or (text is None) + (reasoning is None) + (call is None) != 2
        ):
            return None
        if call is None:
            return text if reasoning is None else reasoning
        call_draft = self._state.choice(delta.choice).calls.get(call.index)
        if call_draft is None or delta.logprobs is not None:
            return None  # the plugin made the delta itself, without the state
        # The next piece of a new call may start another call. A piece with another id belongs to a call by its arguments.
        is_new = not call_draft.arguments and call_draft.id is call_draft.name is None
        is_its_own = call.id is call.name is call_draft.other_id is None
        return call.arguments_delta if is_its_own and not is_new else None

    def _cuts(
        self,
        data: bytes,
        text: str,
        usage: UsageInfo | None,
        delta: ResponseDelta,
        residue: dict[str, Any],
    ) -> list[_Cut]:
        """Return the values in the event *data* that may change, in order, or nothing if one of them is not found."""
        if usage is not None and _COUNTS not in self._keys:
            return []
        other_cuts: list[_Cut] = []
        for kind, key in self._keys.items():
            if (kind is _COUNTS and usage is None) or (kind is _TIME and residue.get(key) is None):
                continue
            cut = _find(data, key, kind)
            if cut is not None:
                other_cuts.append(cut)
            elif kind is not _NUMBER:
                return []
        if delta.logprobs is not None:
            keys = {str(path[-1]) for path in self._logprob_paths}
            logprob_cuts = [cut for key in keys if (cut := _find(data, key, _LOGPROBS)) is not None]
            if len(logprob_cuts) != 1:
                return []
            other_cuts += logprob_cuts
        text_cuts = _find_text(data, text, other_cuts)
        return sorted(other_cuts + text_cuts) if 1 <= len(text_cuts) <= 2 else []

    def _prove(self, remembered: _Remembered) -> bool:
        """Return whether the values are where the plugin declares them, and the event has no other text."""
        try:
            remembered.is_proved = self._is_right(remembered)
        except (
            ValueError,
            RecursionError,
        ):  # a split is wrong, or only the standard library can parse the event
            remembered.is_proved = False
        if not remembered.is_proved:
            self._pause_count = _PAUSE  # verifying the next events would probably fail, too
            self.forget()
        return remembered.is_proved

    def _is_right(self, remembered: _Remembered) -> bool:
        differences: list[tuple[Path, Any, Any]] = []
        strings: set[str] = set()
        _compare(_loads(remembered.data), remembered.marked(), (), differences, strings)
        _compare(remembered.residue, remembered.residue, (), [], strings)
        if len(differences) != len(remembered.kinds) or remembered.text in strings:
            return False
        remembered.strings = frozenset(strings)
        is_declared = False
        for (path, value, marked_value), kind in zip(differences, remembered.kinds, strict=True):
            if marked_value != _MARK:
                return False
            if kind is _TEXT:
                is_declared = is_declared or path in self._text_paths
            elif kind is _LOGPROBS:
                outer_notes = mistyped()
                try:
                    remembered.logprob_path, remembered.left = (
                        path,
                        self._read_logprobs(path, value, remembered.text)[1],
                    )
                except Exception:  # the hooks read them from another place, or in another way, than declared
                    return False
                finally:
                    note_again(outer_notes)
            elif path != (self._keys[kind],) or (kind is _TIME and value != remembered.residue.get(path[0])):
                return False  # or the plugin changed the time
        return is_declared

    # An event that matches a remembered one.

    def _may_change(self, values: dict[str, Any], data: bytes) -> bool:
        """Return whether the other values of the event *data* changed as they may."""
        number = values.get(_NUMBER)
        has_number = _NUMBER in values or self._last_number is not None
        if has_number and (type(number) is not int or number - 1 != self._last_number):
            return False
        return (
            type(values.get(_TIME, "")) is str
            and type(values.get(_COUNTS, {})) is dict
            and bool(values.get(_LOGPROBS, True))
            and (
                (_COUNTS not in values and _LOGPROBS not in values)
                or (data.count(b"{") + data.count(b"[") <= self._depth and not has_long_integer(data))
            )
        )

    def _deliver(self, remembered: _Remembered, text: str, extensions: FrozenObject) -> ResponseDelta:
        """Deliver a piece of text, reasoning or arguments. The last event of its choice was such a piece, too."""
        state = self._state
        index = state.delta_count
        state.delta_count = index + 1
        remembered.texts.append(text)
        piece: str | ToolCallDelta = text
        if remembered.call < 0:
            remembered.parts.text.append(text)
        else:
            remembered.pieces.append(text)
            piece = arguments_delta(remembered.call, text)
        return text_delta(index, remembered.attribute, piece, remembered.choice, extensions)

    def _with_time(self, time: str) -> FrozenObject:
        """Store *time* in the extensions, and return the part of them for the delta."""
        key, extensions = self._keys[_TIME], self._state.extensions
        if extensions.get(key) == time:
            return EMPTY_OBJECT
        extensions[key] = time
        return adopted({key: time})

    def _deliver_counted(
        self, remembered: _Remembered, data: bytes, text: str, values: dict[str, Any]
    ) -> list[ResponseDelta] | None:
        """Deliver a piece with counts or log probabilities, or return ``None`` if the hooks must map the whole event.

        If it returns ``None`` because a hook failed, mapping the event raises the error of the hook.
        """
        mapper = self._event_mapper.mapper
        event: Any = {self._keys[kind]: value for kind, value in values.items() if kind in (_TIME, _COUNTS)}
        empty_containers_sent = empty_containers(event) if may_hold_empty(data) else {}
        usage, logprobs, logprob_rest, extensions = None, None, remembered.left, event
        notes = NOTED.values
        outer_notes = mistyped() if notes else []  # of an event with a hook that reads this one
        try:
            if remembered.logprob_path is not None:
                logprobs, logprob_rest = self._read_logprobs(remembered.logprob_path, values[_LOGPROBS], text)
            if _COUNTS in values:
                usage = mapper.map_usage(event, self._state)
            prune(event, empty_containers_sent)
            if event and mapper.extensions is not None:
                extensions = mapper.extensions(event, self._state) or {}
            is_read = logprob_rest == remembered.left and type(extensions) is dict and not notes
        except BaseException as error:
            if is_cancellation(error):
                raise
            is_read = False
        finally:
            if outer_notes or notes:
                note_again(outer_notes)
        if (
            not is_read
            or type(usage) not in (UsageInfo, NoneType)
            or type(logprobs) is not (NoneType if remembered.logprob_path is None else tuple)
        ):
            self.forget()
            return None
        changes = self._event_mapper.extend(extensions) if extensions else {}
        remembered.texts.append(text)
        piece = text if remembered.call < 0 else arguments_delta(remembered.call, text)
        delta = text_delta(UNNUMBERED, remembered.attribute, piece, remembered.choice, EMPTY_OBJECT, logprobs)
        return self._delivery.deliver([delta], usage, changes)

    def _read_logprobs(self, path: Path, value: Any, text: str) -> tuple[Any, bytes]:
        """Let the plugin read the log probabilities *value* at *path*. Return them and the rest as JSON."""
        holder: dict[Any, Any] = {path[-1]: value}
        empty_containers_sent = empty_containers(holder)
        logprobs = self._logprob_paths[path](holder, text)
        prune(holder, empty_containers_sent)
        return logprobs, _dumps(holder)


_VALUE_PATTERNS: Final = {
    _TIME: rb'"(?:[^"\\]|\\.)*"',
    _NUMBER: rb"-?\d{1,18}(?![\d.eE])",
    _COUNTS: rb"\{",
    _LOGPROBS: rb"[\[{]",
}
"""The pattern of each kind of value, or of its beginning."""


@lru_cache(maxsize=64)
def _pattern(key: str, kind: str) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Return the pattern of *key*, and the pattern of *key* with a value of that kind."""
    key_pattern = re.escape(_dumps(key)) + rb"\s*:\s*"
    return re.compile(key_pattern), re.compile(key_pattern + b"(" + _VALUE_PATTERNS[kind] + b")", re.DOTALL)


def _find(data: bytes, key: str, kind: str) -> _Cut | None:
    """Return the value of that kind under *key* in *data*, or ``None`` if the key is missing or repeated."""
    key_pattern, value_pattern = _pattern(key, kind)
    match = value_pattern.search(data)
    if match is None or len(key_pattern.findall(data)) != 1:
        return None
    start, end = match.span(1)
    if kind is _COUNTS or kind is _LOGPROBS:
        try:  # Latin-1: only brackets and quotation marks matter
            end = start + _scan(data[start:].decode("latin-1"))[1]
        except (ValueError, RecursionError):  # more digits or levels than Python supports
            return None
    return _Cut(start, end, kind)


def _find_text(data: bytes, text: str, other_cuts: list[_Cut]) -> list[_Cut]:
    """Return the positions of *text* in *data* outside of the values *other_cuts*."""
    cuts = _places(data, _dumps(text), other_cuts)
    if cuts or text.isascii():
        return cuts
    return _places(
        data, json.dumps(text).encode(), other_cuts
    )  # some servers escape characters outside of ASCII


def _places(data: bytes, encoded: bytes, other_cuts: list[_Cut]) -> list[_Cut]:
    cuts = []
    start = data.find(encoded)
    while start >= 0:
        end = start + len(encoded)
        if not any(cut.start <= start < cut.end for cut in other_cuts):
            cuts.append(_Cut(start, end, _TEXT))
        start = data.find(encoded, end)
    return cuts


def _compare(
    one: Any, other: Any, path: Path, differences: list[tuple[Path, Any, Any]], strings: set[str]
) -> None:
    """Add the paths at which *one* and *other* differ to *differences*, with both values, and all strings to *strings*."""
    items: Iterable[tuple[str | int, Any]]
    if type(one) is type(other) is dict and one.keys() == other.keys():
        items = one.items()
    elif type(one) is type(other) is list and len(one) == len(other):
        items = enumerate(one)
    else:
        differences.append((path, one, other))
        return
    for key, item in items:
        other_item = other[key]
        if type(item) is dict or type(item) is list or item != other_item:
            _compare(item, other_item, (*path, key), differences, strings)
        elif type(item) is str:
            strings.add(item)
