"""The one short cut: an event with the same bytes around its text as an earlier one means the same, with the new text.

If the hooks made one piece of text of an event, and nothing else, its bytes are cut around that text. The next event with
the same bytes around a JSON string is the same event with another text, and the hooks need not take it apart. A plugin
declares where its events carry text (``ProviderInfo.text_paths``), and which few values may change alongside: a string such
as a time, a running number, token counts, log probabilities. The bytes are cut around them as well. That the cuts are right
is proved once: the earlier event is parsed with marks in the place of what was cut out.

At most one event of each choice is remembered: the last one. An event that does anything but add text clears them all.
"""

from __future__ import annotations

import json
import os
import re
from functools import lru_cache
from itertools import pairwise
from types import NoneType
from typing import Any, Final, NamedTuple

import orjson

from crosswalk.mapping.event import Delivery, EventMapper, may_hold_empty
from crosswalk.plugin.hooks import Path
from crosswalk.plugin.registry import is_cancellation
from crosswalk.plugin.state import NOTED, MappingState, empty_containers, prune
from crosswalk.types.delta import UNNUMBERED, ResponseDelta, text_delta
from crosswalk.types.json import EMPTY_OBJECT, FrozenObject, adopted, has_long_integer
from crosswalk.types.message import arguments_delta
from crosswalk.types.usage import UsageInfo
from crosswalk.types.values import SegmentType

_TEXT: Final = "text"
_TIME: Final = "time"
_NUMBER: Final = "number"
_COUNTS: Final = "counts"
_LOGPROBS: Final = "logprobs"
_MARK: Final = f"\0{os.urandom(8).hex()}"
"""Stands in the place of a value. No server can know it."""
_WRITTEN_MARK: Final = orjson.dumps(_MARK)
_PATIENCE: Final = 8
_PAUSE: Final = 32
"""After so many events of a choice were remembered in vain, one in so many is remembered, until one is like it."""
_MOST_CHOICES: Final = 16
"""The number of choices with a remembered event: each is tried, one after the other."""

_loads: Final = orjson.loads
_dumps: Final = orjson.dumps
_scan: Final = json.JSONDecoder().raw_decode


class _Cut(NamedTuple):
    """A value that was cut out of an event: the bytes from *start* to *end*, and what it is."""

    start: int
    end: int
    kind: str


class _Remembered:
    """An event that was one piece of text, and nothing else.

    Attributes:
        data: its bytes.
        name: its SSE name.
        text: its text.
        choice: the number of its choice.
        parts: that choice.
        kind: the kind of text, or ``None`` for arguments.
        call: the position of the arguments' call, or -1 for text.
        pieces: the arguments of that call so far.
        kinds: what is cut out of the bytes, in order: the text, in one or two places, and what may change alongside.
        residue: what the hooks left of it.
        is_proved: whether its cuts are proved. Then these are known:
        strings: its strings beside the text. An event whose text is one of them is mapped: the hooks may compare the two.
        logprob_path: where it has log probabilities, or ``None`` if it has none.
        left: what the plugin leaves of them, as JSON.
        texts: the texts of its choice that the hooks have not seen.
        before, behind: the bytes before the first cut and behind the last one.
    """

    __slots__ = (
        "_between", "_closing", "before", "behind", "call", "choice", "data", "is_proved", "kind", "kinds", "left",
        "logprob_path", "name", "parts", "pieces", "residue", "strings", "text", "texts",
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
        self.kind: SegmentType | None = None
        self.pieces: list[str] = []
        if delta.tool_call_delta is not None:
            self.call = delta.tool_call_delta.index
            self.pieces = self.parts.calls[self.call].arguments
        else:
            self.kind = SegmentType.TEXT if delta.content_delta is not None else SegmentType.REASONING
        self.before = data[: cuts[0].start]
        self._between = [(one.kind, data[one.end : other.start]) for one, other in pairwise(cuts)]
        self.behind = data[cuts[-1].end :]
        # Anthropic pads its events with spaces between the last brackets.
        is_padded = cuts[-1].kind in (_TEXT, _TIME) and not self.behind.translate(None, b" }]")
        self._closing = self.behind.replace(b" ", b"") if is_padded else None

    def values_in(self, data: bytes) -> dict[str, Any] | None:
        """By kind, the values in *data* where values are cut out of the event, or ``None`` if it is not alike."""
        if not data.startswith(self.before):
            return None
        values: dict[str, Any] = {}
        start = len(self.before)
        try:
            for kind, between in self._between:
                end = data.find(between, start)
                if end < 0:
                    return None
                value = _loads(data[start:end])
                if values.setdefault(kind, value) != value:
                    return None  # another text in the second place
                start = end + len(between)
            end = len(data) - len(self.behind)
            if not data.endswith(self.behind):
                end = data.rfind(b'"') + 1
                if self._closing is None or data[end:].replace(b" ", b"") != self._closing:
                    return None
            value = _loads(data[start:end])
        except ValueError:
            return None
        return values if values.setdefault(self.kinds[-1], value) == value else None

    def marked(self) -> Any:
        """The event with marks in the place of what is cut out.

        Raises:
            ValueError: it is no JSON then.
        """
        pieces = [self.before]
        for between in (*(between for _, between in self._between), self.behind):
            pieces += _WRITTEN_MARK, between
        return _loads(b"".join(pieces))


class AlikeEvents:
    """Recognizes the events of one answer that are like an earlier one.

    Args:
        events: maps the other events.
        delivery: delivers deltas.
        state: the state of the answer.
        depth: how deeply an event may be nested.
    """

    def __init__(self, events: EventMapper, delivery: Delivery, state: MappingState, depth: int) -> None:
        info = events.mapper.info
        self._events = events
        self._delivery = delivery
        self._state = state
        self._depth = depth
        self._paths = frozenset(info.text_paths)
        keys = {_TIME: info.timestamp_key, _NUMBER: info.number_key, _COUNTS: info.usage_key}
        self._keys = {kind: key for kind, key in keys.items() if key is not None}
        self._logprob_paths = info.logprob_paths
        self._number: int | None = None  # of the last event
        self._last: _Remembered | None = None
        self._plain: _Remembered | None = None  # the last one, if nothing beside its text may change
        self._by_choice: dict[int, _Remembered] = {}
        self._vain = 0  # how many were remembered in vain since one was like an earlier one
        self._pause = 0  # how many of the next ones are not remembered

    def read(self, data: bytes, name: str | None) -> list[ResponseDelta] | None:
        """Return the deltas of the event *data* if it is like an earlier one, or ``None`` if the hooks must map it."""
        plain = self._plain
        if plain is not None and data.startswith(plain.before) and data.endswith(plain.behind):
            try:
                text = _loads(data[len(plain.before) : -len(plain.behind)])
            except ValueError:
                text = None
            if text and type(text) is str and text not in plain.strings and plain.name == name:
                return [self._deliver(plain, text, EMPTY_OBJECT)]
        last = self._last
        if last is None:
            return None
        values = last.values_in(data)
        if values is None:
            for last in self._by_choice.values() if len(self._by_choice) > 1 else ():
                if (values := last.values_in(data)) is not None:
                    break
            else:
                return None
        text = values.pop(_TEXT)
        if (
            last.name != name
            or type(text) is not str
            or not text
            or not (last.is_proved or self._prove(last))
            or text in last.strings
            or ((values or self._number is not None) and not self._may_change(values, data))
        ):
            return None
        self._last = last
        self._vain = self._pause = 0
        self._number = values.get(_NUMBER)
        self._plain = last if last.kinds == [_TEXT] else None
        extensions = EMPTY_OBJECT
        if values:
            if _COUNTS in values or _LOGPROBS in values:
                return self._deliver_counted(last, data, text, values)
            if _TIME in values:
                extensions = self._with_time(values[_TIME])
        return [self._deliver(last, text, extensions)]

    def note(
        self,
        source: Any,
        name: str | None,
        deltas: list[ResponseDelta],
        usage: UsageInfo | None,
        changes: dict[str, Any],
    ) -> None:
        """Remember the event that the hooks mapped last if it only added text. Otherwise forget all.

        Args:
            source: the event: bytes, or an object, which is not remembered.
            name: its SSE name.
            deltas: its deltas, before they are delivered.
            usage: its token counts, or ``None`` without any.
            changes: its changes to the extensions.
        """
        for texts in self._state.repeated_texts.values():
            texts.clear()
        if self._pause:
            self._pause -= 1
            self.forget()
            return
        residue = self._events.residue
        delta = deltas[0] if len(deltas) == 1 else None
        if delta is None or not self._events.is_settled or self._keys.get(_NUMBER) in residue:
            self.forget()
            return
        text = self._only_text(delta)
        is_object = type(source) is bytes and source[:1] == b"{"
        cuts = self._cuts(source, text, usage, delta, residue) if text and is_object else []
        if not text or not cuts:
            self.forget()
            return
        if changes and not changes.keys() <= {self._keys.get(cut.kind) for cut in cuts}:
            self.forget()  # the others were mapped before these fields came
        one = _Remembered(source, name, text, delta, cuts, residue, self._state)
        self._last = self._by_choice[one.choice] = one
        self._plain = None
        self._vain += 1
        if self._vain > _PATIENCE * len(self._by_choice):
            self._pause = _PAUSE
        numbers = [source[cut.start : cut.end] for cut in cuts if cut.kind is _NUMBER]
        self._number = int(numbers[0]) if numbers else None
        if len(self._by_choice) > _MOST_CHOICES:
            del self._by_choice[next(iter(self._by_choice))]

    def forget(self) -> None:
        """Forget all events, because the next ones may have another meaning."""
        self._last = self._plain = None
        if self._by_choice:
            self._by_choice.clear()

    # What an event may be to be remembered.

    def _only_text(self, delta: ResponseDelta) -> str | None:
        """The text, reasoning or arguments of *delta* if it has nothing else but log probabilities, otherwise ``None``."""
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
        opened = self._state.choice(delta.choice).calls.get(call.index)
        if opened is None or delta.logprobs is not None:
            return None  # without a call, the plugin made the delta without the state
        # The next piece of a new call may open another one, and whose a piece with another id is depends on the arguments.
        is_new = not opened.arguments and opened.id is opened.name is None
        is_its_own = call.id is call.name is opened.other_id is None
        return call.arguments_delta if is_its_own and not is_new else None

    def _cuts(
        self,
        data: bytes,
        text: str,
        usage: UsageInfo | None,
        delta: ResponseDelta,
        residue: dict[str, Any],
    ) -> list[_Cut]:
        """What to cut out of the event *data*, in order, or nothing if not all of it can be found."""
        if usage is not None and _COUNTS not in self._keys:
            return []
        beside: list[_Cut] = []
        for kind, key in self._keys.items():
            if (kind is _COUNTS and usage is None) or (kind is _TIME and residue.get(key) is None):
                continue
            cut = _find(data, key, kind)
            if cut is not None:
                beside.append(cut)
            elif kind is not _NUMBER:
                return []
        if delta.logprobs is not None:
            keys = {str(path[-1]) for path in self._logprob_paths}
            found = [cut for key in keys if (cut := _find(data, key, _LOGPROBS)) is not None]
            if len(found) != 1:
                return []
            beside += found
        texts = _find_text(data, text, beside)
        return sorted(beside + texts) if 1 <= len(texts) <= 2 else []

    def _prove(self, one: _Remembered) -> bool:
        """Find out whether what was cut out of an event is where the plugin declares it, and nothing else is its text."""
        try:
            one.is_proved = self._is_right(one)
        except (ValueError, RecursionError):  # the cuts are wrong, or only the standard library reads it
            one.is_proved = False
        if not one.is_proved:
            self._pause = _PAUSE  # the next ones will hardly be proved either
            self.forget()
        return one.is_proved

    def _is_right(self, one: _Remembered) -> bool:
        differences: list[tuple[Path, Any, Any]] = []
        strings: set[str] = set()
        _compare(_loads(one.data), one.marked(), (), differences, strings)
        _compare(one.residue, one.residue, (), [], strings)
        if len(differences) != len(one.kinds) or one.text in strings:
            return False
        one.strings = frozenset(strings)
        is_declared = False
        for (path, value, other), kind in zip(differences, one.kinds, strict=True):
            if other != _MARK:
                return False
            if kind is _TEXT:
                is_declared = is_declared or path in self._paths
            elif kind is _LOGPROBS:
                try:
                    one.logprob_path, one.left = path, self._read_logprobs(path, value, one.text)[1]
                except Exception:  # the hooks read them elsewhere, or otherwise, than the plugin declares
                    return False
                finally:
                    NOTED.values.clear()
            elif path != (self._keys[kind],) or (kind is _TIME and value != one.residue.get(path[0])):
                return False  # or the plugin did not keep the time as it came
        return is_declared

    # An event that is like a remembered one.

    def _may_change(self, values: dict[str, Any], data: bytes) -> bool:
        """Whether what changes beside a text is what may change, in the event *data*."""
        number = values.get(_NUMBER)
        has_number = _NUMBER in values or self._number is not None
        if has_number and (type(number) is not int or number - 1 != self._number):
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

    def _deliver(self, one: _Remembered, text: str, extensions: FrozenObject) -> ResponseDelta:
        """Deliver a piece of text, reasoning or arguments: the last event of its choice was such a piece, too."""
        state = self._state
        index = state.delta_count
        state.delta_count = index + 1
        one.texts.append(text)
        if one.kind is None:
            one.pieces.append(text)
            return text_delta(index, None, None, arguments_delta(one.call, text), one.choice, extensions)
        one.parts.text.append(text)
        if one.kind is SegmentType.TEXT:
            return text_delta(index, text, None, None, one.choice, extensions)
        return text_delta(index, None, text, None, one.choice, extensions)

    def _with_time(self, time: str) -> FrozenObject:
        """Keep *time* in the extensions, and return the part that the delta shows."""
        key, extensions = self._keys[_TIME], self._state.extensions
        if extensions.get(key) == time:
            return EMPTY_OBJECT
        extensions[key] = time
        self._events.forget_residue()
        return adopted({key: time})

    def _deliver_counted(
        self, one: _Remembered, data: bytes, text: str, values: dict[str, Any]
    ) -> list[ResponseDelta] | None:
        """Deliver a piece with counts or log probabilities, or return ``None`` if the hooks must map the whole event.

        A hook that fails raises its error then.
        """
        mapper = self._events.mapper
        residue: Any = {self._keys[kind]: value for kind, value in values.items() if kind in (_TIME, _COUNTS)}
        sent_empty = empty_containers(residue) if may_hold_empty(data) else {}
        usage, logprobs, left = None, None, one.left
        try:
            if one.logprob_path is not None:
                logprobs, left = self._read_logprobs(one.logprob_path, values[_LOGPROBS], text)
            if _COUNTS in values:
                usage = mapper.map_usage(residue, self._state)
            prune(residue, sent_empty)
            if residue and mapper.extensions is not None:
                residue = mapper.extensions(residue, self._state) or {}
            is_read = left == one.left and type(residue) is dict
        except BaseException as error:
            if is_cancellation(error):
                raise
            is_read = False
        if (
            not is_read
            or NOTED.values
            or type(usage) not in (UsageInfo, NoneType)
            or type(logprobs) is not (NoneType if one.logprob_path is None else tuple)
        ):
            NOTED.values.clear()
            self.forget()
            return None
        changes = self._events.extend(residue) if residue else {}
        one.texts.append(text)
        call = None if one.kind is not None else arguments_delta(one.call, text)
        is_text = one.kind is SegmentType.TEXT
        content, reasoning = (text, None) if is_text else (None, text if call is None else None)
        delta = text_delta(UNNUMBERED, content, reasoning, call, one.choice, EMPTY_OBJECT, logprobs)
        return self._delivery.deliver([delta], usage, changes)

    def _read_logprobs(self, path: Path, value: Any, text: str) -> tuple[Any, bytes]:
        """Let the plugin take the log probabilities *value* at *path*. Return them, and what is left, as JSON."""
        holder: dict[Any, Any] = {path[-1]: value}
        sent_empty = empty_containers(holder)
        logprobs = self._logprob_paths[path](holder, text)
        prune(holder, sent_empty)
        return logprobs, _dumps(holder)


_VALUES: Final = {
    _TIME: rb'"(?:[^"\\]|\\.)*"',
    _NUMBER: rb"-?\d{1,18}(?![\d.eE])",
    _COUNTS: rb"\{",
    _LOGPROBS: rb"[\[{]",
}
"""What each kind of value looks like, or begins with."""


@lru_cache(maxsize=64)
def _pattern(key: str, kind: str) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """How *key* is written, and how it is written before a value of that kind."""
    written = re.escape(_dumps(key)) + rb"\s*:\s*"
    return re.compile(written), re.compile(written + b"(" + _VALUES[kind] + b")", re.DOTALL)


def _find(data: bytes, key: str, kind: str) -> _Cut | None:
    """The value of that kind under *key* in *data*, or ``None`` if there is none, or if the key is in it more than once."""
    any_value, of_kind = _pattern(key, kind)
    found = of_kind.search(data)
    if found is None or len(any_value.findall(data)) != 1:
        return None
    start, end = found.span(1)
    if kind is _COUNTS or kind is _LOGPROBS:
        try:  # each byte stands for a character: only brackets and quotation marks matter
            end = start + _scan(data[start:].decode("latin-1"))[1]
        except (ValueError, RecursionError):  # more digits, or levels, than Python takes
            return None
    return _Cut(start, end, kind)


def _find_text(data: bytes, text: str, beside: list[_Cut]) -> list[_Cut]:
    """The places of *text* in *data* that are not in one of the cuts *beside*."""
    found = _places(data, _dumps(text), beside)
    if found or text.isascii():
        return found
    return _places(data, json.dumps(text).encode(), beside)  # some servers escape what is not ASCII


def _places(data: bytes, written: bytes, beside: list[_Cut]) -> list[_Cut]:
    found = []
    start = data.find(written)
    while start >= 0:
        end = start + len(written)
        if not any(cut.start <= start < cut.end for cut in beside):
            found.append(_Cut(start, end, _TEXT))
        start = data.find(written, end)
    return found


def _compare(
    one: Any, other: Any, path: Path, differences: list[tuple[Path, Any, Any]], strings: set[str]
) -> None:
    """Add where *one* is not *other* to *differences*, with what each has there, and the strings of both to *strings*."""
    if type(one) is type(other) is dict and one.keys() == other.keys():
        for key, item in one.items():
            _compare(item, other[key], (*path, key), differences, strings)
    elif type(one) is type(other) is list and len(one) == len(other):
        for place, item in enumerate(one):
            _compare(item, other[place], (*path, place), differences, strings)
    elif one != other:
        differences.append((path, one, other))
    elif type(one) is str:
        strings.add(one)
