"""The repetition rule: an event that repeats an earlier one but for its text means the same, with the new text."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterator
from types import NoneType
from typing import Any, Final

import orjson

from crosswalk.mapping.event import Delivery, EventMapper, may_hold_empty
from crosswalk.plugin.hooks import LogprobReader, Path
from crosswalk.plugin.registry import is_cancellation
from crosswalk.plugin.state import NOTED, MappingState, empty_containers, prune
from crosswalk.types.answer import ChoiceDraft
from crosswalk.types.delta import UNNUMBERED, ResponseDelta, text_delta
from crosswalk.types.json import (
    EMPTY_OBJECT,
    FrozenObject,
    adopted,
    has_long_integer,
    is_indexed,
    same_json,
)
from crosswalk.types.message import arguments_delta
from crosswalk.types.usage import UsageInfo
from crosswalk.types.values import SegmentType, TokenLogprob

# ------------------------------------------------------------------------- repeated values
# The token counts and log probabilities of a repeated event, which the plugin reads without the rest of the event.


def read_alone(
    events: EventMapper,
    state: MappingState,
    values: dict[str, Any],
    sent_empty: Container[int],
    tokens: DetachedLogprobs | None,
    text: str,
) -> tuple[UsageInfo | None, tuple[TokenLogprob, ...] | None, dict[str, Any]] | None:
    """Let the plugin read *values*, and add the residue to the extensions.

    Args:
        events: the mapper of events.
        state: the state of the answer.
        values: an event with only these values.
        sent_empty: its empty containers, by identity.
        tokens: the log probabilities among them, or ``None`` without any.
        text: the text of the event.

    Returns:
        Counts, log probabilities, and changes of the extensions, or ``None`` if the hooks must map the whole event. A hook
        that fails raises its error then.
    """
    logprobs = usage = remaining = None
    mapper, has_failed, residue = events.mapper, False, values
    try:
        if tokens is not None:
            logprobs = tokens.take(text)
        if mapper.info.usage_key in values:
            usage = mapper.map_usage(values, state)
        prune(values, sent_empty)
        if tokens is not None:
            remaining = values.pop(tokens.first, None)
        if values and mapper.extensions is not None:
            extensions = mapper.extensions(values, state)
            residue = {} if extensions is None else extensions
    except BaseException as error:
        if is_cancellation(error):
            raise
        has_failed = True
    if (
        has_failed
        or NOTED.values
        or type(usage) not in (UsageInfo, NoneType)
        or type(residue) is not dict
        or (tokens is not None and type(logprobs) is not tuple)
        or (remaining is not None and tokens is not None and not tokens.is_held(remaining, state.extensions))
    ):
        NOTED.values.clear()
        return None
    return usage, logprobs, events.extend(residue) if residue else residue


class DetachedLogprobs:
    """Log probabilities that were taken out of an event for a moment.

    Attributes:
        first: the top-level key of the event that they are under.
    """

    __slots__ = ("_holder", "_key", "_owners", "_read", "_steps", "_value", "first")

    def __init__(self, owners: list[Any], steps: Path, key: Any, value: Any, read: LogprobReader) -> None:
        self._owners, self._steps, self._key, self._value, self._read = owners, steps, key, value, read
        self._holder = _only(owners[-1], key, value)
        self.first = str(steps[0] if steps else key)

    def attach(self) -> None:
        """Put them back."""
        self._owners[-1][self._key] = self._value

    def nested(self) -> Any:
        """Return the value under :attr:`first` in an event without other values. An item of an array keeps its index."""
        value: Any = self._holder
        for owner, step in zip(reversed(self._owners[:-1]), reversed(self._steps), strict=True):
            value = [value] if type(owner) is list else _only(owner, step, value)
        return value[self.first]

    def take(self, text: str) -> tuple[TokenLogprob, ...] | None:
        """Let the plugin's function read them."""
        return self._read(self._holder, text)

    def is_held(self, left: Any, extensions: dict[str, Any]) -> bool:
        """Whether the *extensions* hold what is *left* of them already, as what the last event left."""
        return self._key not in self._holder or _holds(extensions.get(self.first), left)


def _only(owner: dict[str, Any], key: Any, value: Any) -> dict[str, Any]:
    """*owner* with *value* under *key*, and with its index, in its order, and nothing else."""
    return {name: value if name == key else owner[name] for name in owner if name in (key, "index")}


def _holds(known: Any, part: Any) -> bool:
    """Whether merging *part* into *known* would change nothing."""
    if type(part) is dict:
        return type(known) is dict and all(key in known and _holds(known[key], part[key]) for key in part)
    if type(part) is list:
        if not (type(known) is list and is_indexed(known) and is_indexed(part)):
            return False
        by_index = {item["index"]: item for item in known}
        return all(_holds(by_index.get(item["index"]), item) for item in part)
    return part is None or same_json(known, part)


# --------------------------------------------------------------------------------- repeats
# The repetition rule: an event that repeats an earlier one but for its text means the same, with the new text.
#
# A plugin declares where its events carry text (``ProviderInfo.text_paths``) and which few values may change alongside:
# a
# timestamp, a running number, token counts, log probabilities. An event is compared without these values, as JSON, so
# that
# ``1``, ``1.0`` and ``true`` differ. If the hooks made one piece of text of an event, the next event that is equal
# without
# these values is a piece of text too, and the hooks need not take it apart. Every other event goes to the hooks.
#
# At most one event of each choice is remembered: the last one. An event that does anything but add text clears them
# all.


_loads: Final = orjson.loads
_dumps: Final = orjson.dumps
_TEXT: Final = SegmentType.TEXT
_REASONING: Final = SegmentType.REASONING
_INEXACT: Final = re.compile(rb"[:,\[]-?(?:\d{19}|[\d.]+e)")
"""A number in compact JSON that orjson may have read with fewer digits than were sent."""


class _TextPath:
    """One of the paths that carry text, and the events that had their text there, by their JSON without it."""

    __slots__ = ("key", "repeats", "steps")

    def __init__(self, path: Path) -> None:
        *self.steps, self.key = path
        self.repeats: dict[bytes, _Repeat] = {}

    def locate(self, event: Any) -> Any:
        """Return the object or array in *event* with a text here, or ``None`` without any."""
        try:
            for step in self.steps:
                event = event[step]
            text = event[self.key]
        except (KeyError, IndexError, TypeError):
            return None
        return event if type(text) is str and text else None


class _Repeat:
    """The meaning of an event: a piece of text, reasoning or arguments.

    Attributes:
        skeleton: the event as JSON without its text and the values that may change.
        name: its SSE name.
        detached: whether it had a timestamp, token counts and log probabilities.
        choice: the number of its choice.
        parts: that choice.
        kind: the kind of text, or ``None`` for arguments.
        call: the position of the arguments' call, or -1 for text.
        pieces: the pieces of its arguments.
        texts: the texts of this choice that the hooks have not seen.
        strings: the other strings of the event, empty until :meth:`is_exact` collects them.
        before: the event's bytes before its text if only the text may change, otherwise empty.
        behind: the bytes behind it.
    """

    __slots__ = (
        "_is_exact", "_text", "before", "behind", "call", "choice", "detached", "kind", "name", "parts", "pieces",
        "skeleton", "strings", "texts",
    )  # fmt: skip

    def __init__(
        self,
        skeleton: bytes,
        name: str | None,
        text: str,
        detached: tuple[bool, bool, bool],
        delta: ResponseDelta,
        parts: ChoiceDraft,
        texts: list[str],
    ) -> None:
        self._text = text
        self.detached = detached
        self.texts = texts
        self.skeleton = skeleton
        self.name = name
        self.choice = delta.choice
        self.parts = parts
        self.kind: SegmentType | None = None
        self.call = -1
        self.pieces: list[str] = []
        if delta.tool_call_delta is not None:
            self.call = delta.tool_call_delta.index
            self.pieces = parts.calls[self.call].arguments
        else:
            self.kind = _TEXT if delta.content_delta is not None else _REASONING
        self.strings: frozenset[str] = frozenset()
        self.before = self.behind = b""
        self._is_exact: bool | None = None

    def is_exact(self) -> bool:
        """Whether each number of the event was read with all its digits, and its text was nowhere else in it.

        Collects the other strings of the event.
        """
        if self._is_exact is None:
            self._is_exact = bool(self.skeleton) and _INEXACT.search(self.skeleton) is None
            if self._is_exact:
                self.strings = frozenset(_strings(_loads(self.skeleton)))
                self._is_exact = self._text not in self.strings
        return self._is_exact

    def find(self, data: bytes, text: str) -> bool:
        """Find the *text* in the bytes of the event *data*: whatever has the same bytes around a string is a repetition."""
        before, _, behind = data.partition(_dumps(text))
        try:
            is_here = _dumps(_loads(before + b"null" + behind)) == self.skeleton
        except ValueError:  # the first string like it is a key
            return False
        if is_here:
            self.before, self.behind = before, behind
        return is_here


class Repeats:
    """Recognizes the events of one answer that repeat an earlier one.

    Args:
        events: maps the other events.
        delivery: delivers deltas.
        state: the state of the answer.

    Attributes:
        event: the last event, decoded, if the hooks must map it, or ``None`` if it must be parsed again.
    """

    def __init__(self, events: EventMapper, delivery: Delivery, state: MappingState) -> None:
        info = events.mapper.info
        self.event: Any = None
        self._events = events
        self._delivery = delivery
        self._state = state
        self._paths = [_TextPath(path) for path in info.text_paths]
        self._path = self._paths[0]
        self._timestamp_key = info.timestamp_key
        self._number_key = info.number_key
        self._usage_key = info.usage_key
        self._logprob_paths = [(path[:-1], path[-1], read) for path, read in info.logprob_paths.items()]
        self._changing = {self._timestamp_key, self._usage_key}
        self._number: Any = None  # of the last event
        self._fast: _Repeat | None = None  # the last repetition, if only its text may change
        self._by_choice: dict[int, tuple[_TextPath, bytes]] = {}
        self._candidate: tuple[_TextPath, bytes, str, tuple[bool, bool, bool]] | None = None
        self._timestamp: str | None = None  # of the candidate
        self._texts: dict[int, list[str]] = defaultdict(list)
        state.repeated_texts = self._texts

    def read(self, data: bytes, name: str | None) -> list[ResponseDelta] | None:
        """Return the deltas of the event *data* if it is a repetition, or ``None`` if the hooks must map it."""
        fast = self._fast
        if (
            fast is not None
            and data.startswith(fast.before)
            and data.endswith(fast.behind)
            and fast.name == name
        ):
            try:
                text = _loads(data[len(fast.before) : -len(fast.behind)])
            except ValueError:
                text = None
            if text and type(text) is str and text not in fast.strings:
                return [self._deliver(fast, text, EMPTY_OBJECT)]
        self._candidate = self.event = None
        try:
            event = _loads(data)
        except ValueError:
            self._number = None
            return None
        path = self._path
        holder = path.locate(event) or self._locate(event)
        number_before = self._number
        if self._number_key is not None:
            self._number = event.get(self._number_key) if type(event) is dict else None
        if holder is None:
            self.event = event
            return None
        path = self._path
        text, holder[path.key] = holder[path.key], None
        timestamp = number = usage = tokens = None
        if (key := self._timestamp_key) is not None and type(timestamp := event.get(key)) is str:
            event[key] = None
        else:
            timestamp = None
        if (key := self._number_key) is not None and type(number := event.get(key)) is int:
            event[key] = None
        else:
            number = None
        if (key := self._usage_key) is not None and type(usage := event.get(key)) is dict:
            event[key] = None
        else:
            usage = None
        if self._logprob_paths:
            tokens = self._detach_logprobs(event)
        detached = timestamp is not None, usage is not None, tokens is not None
        try:
            skeleton = _dumps(event)
        except TypeError:  # nested deeper than orjson writes
            skeleton = b""
        repeat = path.repeats.get(skeleton)
        if (
            repeat is None
            or repeat.name != name
            or repeat.detached != detached
            or not repeat.is_exact()
            or text in repeat.strings  # the hooks may compare the two
            or (self._number_key is not None and not _follows(number, number_before))
            or ((usage is not None or tokens is not None) and has_long_integer(data))
        ):
            holder[path.key] = text
            if timestamp is not None:
                event[self._timestamp_key] = timestamp
            if number is not None:
                event[self._number_key] = number
            if usage is not None:
                event[self._usage_key] = usage
            if tokens is not None:
                tokens.attach()
            self.event = event
            if timestamp is not None or self._timestamp_key is None or event.get(self._timestamp_key) is None:
                self._candidate = path, skeleton, text, detached
                self._timestamp = timestamp
            return None
        if usage is not None or tokens is not None:
            values = {self._timestamp_key: timestamp, self._usage_key: usage}
            return self._deliver_counted(repeat, data, text, event, values, tokens)
        if timestamp is not None:
            return [self._deliver(repeat, text, self._with_timestamp(str(self._timestamp_key), timestamp))]
        if number is None and (repeat.before or repeat.find(data, text)):
            self._fast = repeat
        return [self._deliver(repeat, text, EMPTY_OBJECT)]

    def note(
        self,
        name: str | None,
        deltas: list[ResponseDelta],
        usage: UsageInfo | None,
        changes: dict[str, Any],
    ) -> None:
        """Remember the last event of :meth:`read` if the hooks only added text.

        Args:
            name: its SSE name.
            deltas: its deltas, before they are delivered.
            usage: its token counts, or ``None`` without any.
            changes: its changes to the extensions.
        """
        for texts in self._texts.values():
            texts.clear()
        candidate, self._candidate, self._fast = self._candidate, None, None
        delta = deltas[0] if len(deltas) == 1 else None
        if (
            candidate is None
            or delta is None
            or not self._events.is_settled
            or self._number_key in changes  # which the hooks then do not take for the next number
            or not self._keeps_timestamp()
            or (usage is not None and not candidate[3][1])
            or (delta.logprobs is not None and not candidate[3][2])
            or not self._is_piece(delta, candidate[2])
        ):
            self.forget()
            return
        if changes and not changes.keys() <= self._changing:
            self.forget()  # the others were mapped before these fields came
        path, skeleton, text, detached = candidate
        choice = delta.choice
        earlier = self._by_choice.get(choice)
        if earlier is not None:
            earlier[0].repeats.pop(earlier[1], None)
        self._by_choice[choice] = path, skeleton
        path.repeats[skeleton] = _Repeat(
            skeleton, name, text, detached, delta, self._state.choice(choice), self._texts[choice]
        )

    def forget(self) -> None:
        """Forget all events, because the next ones may have another meaning."""
        if self._by_choice:
            self._by_choice.clear()
            for path in self._paths:
                path.repeats.clear()
        self._fast = None

    def _keeps_timestamp(self) -> bool:
        """Whether the extensions keep the timestamp of the event that was looked at last as it came."""
        timestamp = self._timestamp
        return timestamp is None or self._state.extensions.get(str(self._timestamp_key)) == timestamp

    def _locate(self, event: Any) -> Any:
        """Return the container of the text of *event*, at the path in :attr:`_path`, or ``None`` without a text."""
        for path in self._paths:
            holder = path.locate(event)
            if holder is not None:
                self._path = path
                return holder
        return None

    def _is_piece(self, delta: ResponseDelta, text: str) -> bool:
        """Whether *delta* is *text*, as text, reasoning or arguments, and nothing else."""
        call = delta.tool_call_delta
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
        ):
            return False
        if call is None:
            return (delta.content_delta, delta.reasoning_delta) in ((text, None), (None, text))
        if delta.content_delta is not None or delta.reasoning_delta is not None or delta.logprobs is not None:
            return False
        opened = self._state.choice(delta.choice).calls.get(call.index)
        if opened is None:
            return False  # the plugin made the delta without the state
        is_new = (
            not opened.arguments and opened.id is opened.name is None
        )  # the next such event may open another one
        is_its_own = (
            call.id is call.name is opened.other_id is None
        )  # the owner of another id depends on the arguments
        return call.arguments_delta == text and is_its_own and not is_new

    def _detach_logprobs(self, event: Any) -> DetachedLogprobs | None:
        for steps, key, read in self._logprob_paths:
            owners = [event]
            try:
                for step in steps:
                    owners.append(owners[-1][step])
                value = owners[-1].get(key)
            except (KeyError, IndexError, TypeError, AttributeError):
                continue
            if value:
                owners[-1][key] = None
                return DetachedLogprobs(owners, steps, key, value, read)
        return None

    def _deliver(self, repeat: _Repeat, text: str, extensions: FrozenObject) -> ResponseDelta:
        """Deliver a piece of text, reasoning or arguments: the last event of its choice was such a piece, too."""
        state = self._state
        index = state.delta_count
        state.delta_count = index + 1
        repeat.texts.append(text)
        if repeat.kind is None:
            repeat.pieces.append(text)
            call = arguments_delta(repeat.call, text)
            return text_delta(index, None, None, call, repeat.choice, extensions)
        repeat.parts.text.append(text)
        if repeat.kind is _TEXT:
            return text_delta(index, text, None, None, repeat.choice, extensions)
        return text_delta(index, None, text, None, repeat.choice, extensions)

    def _with_timestamp(self, key: str, timestamp: str) -> FrozenObject:
        """Keep *timestamp* in the extensions, and return the part that the delta shows."""
        extensions = self._state.extensions
        if extensions.get(key) == timestamp:
            return EMPTY_OBJECT
        extensions[key] = timestamp
        self._events.forget_residue()
        return adopted({key: timestamp})

    def _deliver_counted(
        self,
        repeat: _Repeat,
        data: bytes,
        text: str,
        event: dict[str, Any],
        values: dict[Any, Any],
        tokens: DetachedLogprobs | None,
    ) -> list[ResponseDelta] | None:
        """Deliver a repetition with counts or log probabilities, or return ``None`` if the hooks must map it."""
        residue = {
            key: tokens.nested() if tokens is not None and key == tokens.first else values[key]
            for key in event
            if values.get(key) is not None or (tokens is not None and key == tokens.first)
        }
        sent_empty = empty_containers(residue) if may_hold_empty(data) else {}
        read = read_alone(self._events, self._state, residue, sent_empty, tokens, text)
        if read is None:
            self.forget()
            return None
        usage, logprobs, changes = read
        repeat.texts.append(text)
        if repeat.kind is None:
            fragment = arguments_delta(repeat.call, text)
            delta = text_delta(UNNUMBERED, None, None, fragment, repeat.choice, EMPTY_OBJECT)
        else:
            content, reasoning = (text, None) if repeat.kind is _TEXT else (None, text)
            delta = text_delta(UNNUMBERED, content, reasoning, None, repeat.choice, EMPTY_OBJECT, logprobs)
        return self._delivery.deliver([delta], usage, changes)


def _follows(number: Any, before: Any) -> bool:
    """Whether an event with this running *number* comes right after one with the number *before*."""
    if number is None:
        return type(before) is not int
    return type(before) is int and bool(number - 1 == before)


def _strings(value: Any) -> Iterator[str]:
    """All strings in *value*, keys left out."""
    if type(value) is str:
        yield value
    elif type(value) is dict or type(value) is list:
        for item in value.values() if type(value) is dict else value:
            yield from _strings(item)
