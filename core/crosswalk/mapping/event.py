"""One event: the hooks take it apart, the rules for every provider hold them to account, and deltas come out, in order."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from types import GeneratorType
from typing import Any, Final, Literal, TypeAlias

import attrs
import orjson

from crosswalk.errors import (
    ErrorInfo,
    ErrorKind,
    MappingError,
    PluginError,
    TrailingContentError,
    UnknownEventError,
    UnknownFinishReasonError,
    WireTypeError,
)
from crosswalk.mapping.failures import classify, refined
from crosswalk.plain_errors import is_cancellation
from crosswalk.plugin.registry import Mapper
from crosswalk.plugin.state import (
    NOTED,
    End,
    MappingState,
    empty_containers,
    mistyped,
    note_again,
    prune,
    take_string,
)
from crosswalk.text import where_raised
from crosswalk.types.delta import (
    UNNUMBERED,
    ResponseDelta,
    ended,
    last_delta,
    text_delta,
    with_changes,
)
from crosswalk.types.json import (
    EMPTY_OBJECT,
    PIECES,
    Arrays,
    FrozenObject,
    adds_up,
    adopted,
    copy_json,
    dump_json,
    may_repeat_keys,
    merge,
    thaw,
)
from crosswalk.types.usage import Provenance, UsageInfo
from crosswalk.types.values import FinishReason, Segment, SegmentType, error_segment
from crosswalk.wire.framing import load_event

# -------------------------------------------------------------------------------- delivery
# The deltas of an answer as consumers get them: numbered, each fact once, and the end held back to the last one.
#
# Servers repeat finish words, correct their counts, and send fields after the finish word. A consumer gets one final
# delta for
# each choice, after everything else.


_ERROR: Final = FinishReason.ERROR  # an enum's members are slow to look up


class Delivery:
    """Adds deltas to the state of an answer and hands out those that may be shown before its end.

    Args:
        state: the state of the answer.

    Attributes:
        is_watched: whether anybody looks at the deltas. If not, they carry neither counts nor extensions, which the state
            has.
    """

    def __init__(self, state: MappingState) -> None:
        self.is_watched = True
        self._state = state
        self._delivered_usage: UsageInfo | None = None
        self._late_extensions: dict[
            str, Any
        ] = {}  # extensions that arrived after the end, for the final delta

    def deliver(
        self, deltas: list[ResponseDelta], usage: UsageInfo | None, changes: dict[str, Any]
    ) -> list[ResponseDelta]:
        """Deliver the deltas of one event, numbered and without their end.

        Args:
            deltas: the deltas that the plugin made of the event.
            usage: the event's token counts, or ``None`` without any.
            changes: the event's changes to the extensions, which contain them already.
        """
        state = self._state
        if not self.is_watched:
            if usage is not None:
                state.report(usage)
            usage, changes = None, {}
        is_undelivered = usage is not None and state.usage is not self._delivered_usage
        if (
            len(deltas) == 1
            and not is_undelivered
            and (delta := deltas[0]).index == UNNUMBERED
            and delta.raw_finish_reason is None
            and delta.finish_reason is None
            and delta.usage is None
            and delta.extensions is EMPTY_OBJECT
        ):  # most events
            if usage is not None:
                state.report(usage)
                self._delivered_usage = state.usage
                extensions = adopted(changes) if changes else EMPTY_OBJECT
                delta = with_changes(delta, state.delta_count, extensions, state.usage)
                deltas = [delta]
            elif changes:
                delta = with_changes(delta, state.delta_count, adopted(changes), None)
                deltas = [delta]
            else:
                vars(delta)["index"] = state.delta_count  # it belongs to the reader, and need not be copied
            state.delta_count += 1
            (state.choices.get(delta.choice) or state.choice(delta.choice)).add(delta)
            return deltas
        delivered_deltas: list[ResponseDelta] = []
        if usage is not None:
            earlier_usage, delivered_usage = state.usage, self._delivered_usage
            if (
                is_undelivered
                and earlier_usage is not None
                and earlier_usage != usage
                and (delivered_usage is None or earlier_usage != delivered_usage)
            ):
                # Counts that are about to be replaced before anyone received them get a delta of their own.
                self._delivered_usage = earlier_usage
                self._add(with_changes(_BLANK, UNNUMBERED, EMPTY_OBJECT, earlier_usage), delivered_deltas)
            state.report(usage)
        remaining_deltas: list[ResponseDelta] = []
        for delta in deltas:
            has_end = delta.raw_finish_reason is not None or delta.finish_reason is not None
            part = self._without_end(delta) if has_end else delta
            if part is not None:
                remaining_deltas.append(part)
        if not remaining_deltas:
            if changes:
                self._deliver_changes(changes, delivered_deltas)
            return delivered_deltas
        last_number = len(remaining_deltas) - 1
        for number, delta in enumerate(remaining_deltas):
            extensions, counts = delta.extensions, delta.usage
            if extensions is not EMPTY_OBJECT:
                state.extend(extensions._data, PIECES)
            if changes:
                extensions, changes = _joined(extensions, changes), {}
            if counts is not None:
                state.report(counts)
                self._delivered_usage = state.usage
            elif number == last_number and usage is not None:
                counts = self._delivered_usage = state.usage
            if (
                extensions is not EMPTY_OBJECT
                or counts is not None
                or delta.index != UNNUMBERED
                or delta.raw_finish_reason is not None
                or delta.finish_reason is not None
            ):
                delta = with_changes(delta, UNNUMBERED, extensions, counts)
            self._add(delta, delivered_deltas)
        return delivered_deltas

    def final(self, choice: int, end: End, segment: Segment | None = None) -> list[ResponseDelta]:
        """End *choice* and return its last delta, if anybody looks. That of the first has usage and late extensions."""
        state = self._state
        draft = state.choices.get(choice) or state.choice(choice)
        draft.finish, draft.raw_finish = end.reason, end.finish_word
        if segment is not None:
            draft.insert(segment)
        if not self.is_watched:
            return []
        late_extensions: dict[str, Any] = {}
        if choice == 0:
            late_extensions = self._late_extensions
            if state.error is not None and state.error.extensions:
                late_extensions = {**state.error.extensions.thawed(), **late_extensions}
        delta = last_delta(
            state.delta_count,
            choice,
            end.reason,
            end.finish_word,
            state.usage if choice == 0 else None,
            segment,
            adopted(late_extensions) if late_extensions else EMPTY_OBJECT,
        )
        state.delta_count += 1
        return [delta]

    def _deliver_changes(self, changes: dict[str, Any], delivered_deltas: list[ResponseDelta]) -> None:
        """Deliver extensions without a delta. Those that arrive after the end wait for the final delta."""
        if not self._state.ends and self._state.error is None:
            self._add(text_delta(UNNUMBERED, None, "", 0, adopted(changes)), delivered_deltas)
            return
        late_extensions = self._late_extensions
        if late_extensions.keys().isdisjoint(changes):
            self._late_extensions = {**late_extensions, **changes}
            return
        if _overwrites(changes, late_extensions):
            self._add(ResponseDelta(extensions=adopted(late_extensions)), delivered_deltas)
            self._late_extensions = changes
        else:
            self._late_extensions = copy_json(late_extensions)
            merge(self._late_extensions, changes, Arrays(), PIECES)

    def _add(self, delta: ResponseDelta, delivered_deltas: list[ResponseDelta]) -> None:
        state = self._state
        vars(delta)["index"] = state.delta_count
        state.delta_count += 1
        (state.choices.get(delta.choice) or state.choice(delta.choice)).add(delta)
        delivered_deltas.append(delta)

    def _without_end(self, delta: ResponseDelta) -> ResponseDelta | None:
        """Return *delta*, which ends its choice, if it has more than that. An error waits, and delivers the previous one."""
        state = self._state
        if delta.segment is not None and delta.finish_reason is _ERROR:
            earlier_error, state.error = state.error, delta
            for name, value in delta.extensions.items():
                state.extensions.setdefault(name, thaw(value))
            return earlier_error
        if delta.usage is not None:
            state.report(delta.usage)
        state.choice(delta.choice)
        return None if has_only_its_end(delta) else delta


_BLANK: Final = text_delta(UNNUMBERED, None, "", 0, EMPTY_OBJECT)


def has_output(delta: ResponseDelta) -> bool:
    """Whether *delta* carries visible content: text, reasoning or a tool call."""
    return (
        delta.content_delta is not None
        or delta.reasoning_delta is not None
        or delta.tool_call_delta is not None
    )


def texts_of(delta: ResponseDelta) -> list[str]:
    """The texts of *delta*: text, reasoning, refusal, arguments, or the content of a segment."""
    call, segment = delta.tool_call_delta, delta.segment
    texts = (
        delta.content_delta,
        delta.reasoning_delta,
        delta.refusal_delta,
        call and call.arguments_delta,
        segment and segment.content,
    )
    return [text for text in texts if text]


def has_only_its_end(delta: ResponseDelta) -> bool:
    """Return whether *delta*, apart from counts, only has the end of its choice."""
    return not (
        delta.content_delta is not None
        or delta.reasoning_delta is not None
        or delta.tool_call_delta is not None
        or delta.refusal_delta is not None
        or delta.segment is not None
        or delta.correction is not None
        or delta.logprobs
        or (delta.extensions is not EMPTY_OBJECT and delta.extensions)
    )


def _joined(own_extensions: FrozenObject, changes: dict[str, Any]) -> FrozenObject:
    if not own_extensions:
        return adopted(changes)
    merged_extensions = own_extensions.thawed()
    merge(merged_extensions, changes, Arrays(), PIECES)
    return adopted(merged_extensions)


def _overwrites(changes: dict[str, Any], extensions: dict[str, Any]) -> bool:
    """Whether merging *changes* into *extensions* would replace a value."""
    return any(
        name in extensions
        and not (
            isinstance(value, dict)
            and isinstance(extensions[name], dict)
            and not _overwrites(value, extensions[name])
        )
        for name, value in changes.items()
    )


# ---------------------------------------------------------------------------------- ending
# The end of an answer: the finish words of its choices, resolved at the end by one precedence for all providers.


_STOP: Final = FinishReason.STOP
_TOOL_CALLS: Final = FinishReason.TOOL_CALLS
# Of two ends of one choice, the later in this list counts: the one further from a whole answer.
_SEVERITY = (
    FinishReason.STOP,
    FinishReason.TOOL_CALLS,
    FinishReason.LENGTH,
    FinishReason.CONTENT_FILTER,
    FinishReason.CANCELLED,
    FinishReason.ERROR,
)


def take_end(
    part: dict[str, Any], key: str, state: MappingState, *, default: str | None = None
) -> Iterable[ResponseDelta]:
    """Return the delta of the finish word under *key* of *part*. The first word counts, and a different one stays.

    Args:
        part: the object with the word.
        key: the key of the word.
        state: the state of this answer.
        default: the word if it has none, or ``None`` if the answer has not ended then.

    Raises:
        WireTypeError: it is not a string.
    """
    word, end = take_string(part, key), state.ends.get(0)
    if word is None:
        word = default
    if word is None:
        return ()
    if end is None or end.finish_word is None:
        return (ended(word),)
    if word not in (end.finish_word, default):
        part[key] = word
    return ()


def _meaning(state: MappingState, mapper: Mapper, finish_word: str) -> tuple[FinishReason, str | None]:
    """Return the meaning of the provider's word, and the word itself if it is unknown."""
    try:
        reason = mapper.map_finish_reason(finish_word, state)
        if reason is None:
            raise UnknownFinishReasonError(finish_word)
    except UnknownFinishReasonError as error:
        try:
            return FinishReason(finish_word), None  # canonical words keep their meaning
        except ValueError:
            if state.unknown_finish is None:
                state.unknown_finish = error
            return FinishReason.STOP, finish_word
    if type(reason) is FinishReason:
        return reason, None
    try:
        return FinishReason(reason), None  # a plugin's word for it will do
    except ValueError:
        raise mapper.broken(f"map_finish_reason gave {type(reason).__name__}, not a FinishReason") from None


def missing(state: MappingState, mapper: Mapper) -> str | None:
    """Return why the answer is incomplete although the input has ended, or ``None`` if it is complete."""
    if state.error is not None or not mapper.has_terminal:
        return None
    if 0 in state.ends and state.choices.keys() <= state.ends.keys():
        return None
    open_choices = sorted((state.choices.keys() | {0}) - state.ends.keys())
    choice_note = "" if open_choices == [0] else f" of choice {open_choices[0]}"
    return f"the input ended without the provider's terminal signal{choice_note}"


def final_deltas(state: MappingState, delivery: Delivery) -> list[ResponseDelta]:
    """Deliver the last delta of each choice. The one of the first choice comes last and completes the answer."""
    last_deltas: list[ResponseDelta] = []
    for position, choice in enumerate(state.others if len(state.choices) > 1 else ()):
        end = _settle(state, choice, f"alternatives[{position}].finish_reason")
        last_deltas += delivery.final(choice, end)
    end = _settle(state, 0, "finish_reason")
    segment = _segment(state, end) if end.reason is _ERROR else None
    return [*last_deltas, *delivery.final(0, end, segment)]


def _settle(state: MappingState, choice: int, path: str) -> End:
    """Return the end of *choice* after the precedence, and note derived values.

    An error ends every choice. Tool calls make ``tool_calls`` of a ``stop``; nothing else is overridden. A word for tool
    calls without a call stays, marked as derived.
    """
    end = state.ends.get(choice)
    if state.error is not None:
        finish_word = end.finish_word if end is not None else state.error.raw_finish_reason
        return End(_ERROR, finish_word)
    reason = _STOP if end is None else end.reason
    is_without_call = False
    if reason is _STOP or reason is _TOOL_CALLS:
        draft = state.choices.get(choice)  # given calls, not those that a plugin asked the state for
        has_calls = draft is not None and draft.has_calls
        is_without_call = reason is _TOOL_CALLS and not has_calls
        if has_calls:
            reason = _TOOL_CALLS
    finish_word = None if end is None else end.finish_word
    if end is not None and end.unmapped:
        state.provenance[path] = Provenance.UNMAPPED
    elif finish_word in state.vague_words:
        state.provenance[path] = Provenance.ABSENT
    elif end is None or reason is not end.reason or is_without_call or finish_word == "":
        state.provenance[path] = Provenance.DERIVED
    return end if end is not None and end.reason is reason else End(reason, finish_word)


def _segment(state: MappingState, end: End) -> Segment | None:
    """Return the error segment of an answer that ended with an error."""
    if state.error is not None:
        return state.error.segment
    reason_phrase = f"with {end.finish_word[:60]!r}" if end.finish_word else "without a reason"
    info = ErrorInfo(
        ErrorKind.UNKNOWN, f"the provider ended the answer {reason_phrase}", code=end.finish_word or None
    )
    return error_segment(refined(info, classify(None, "", [end.finish_word or ""])))


# ----------------------------------------------------------------------------------- event
# One event: the plugin's hooks take it apart, and the rules that are the same for every provider hold them to account.


Unknown: TypeAlias = Literal["raise", "keep"]
Mapped: TypeAlias = tuple[UsageInfo | None, dict[str, Any]]
"""An event's token counts, ``None`` without any, and what it changed in the extensions."""


class EventMapper:
    """Maps one event after the other with a provider's hooks.

    Args:
        mapper: the provider.
        state: the state of the answer.
        unknown: how to treat an unknown event type or finish word.
        note_unknown: called with provider, kind and word for each unknown word that is kept, or ``None``.

    Attributes:
        mapper: the provider, or the provider of the dialect in this answer.
        residue: what the hooks left of the last event.
        may_switch: whether the answer may still turn out to be in another provider's dialect.
    """

    def __init__(
        self,
        mapper: Mapper,
        state: MappingState,
        unknown: Unknown,
        note_unknown: Callable[[str, str, str], None] | None,
    ) -> None:
        self.mapper = mapper
        self.residue: dict[str, Any] = {}
        self._is_settled = False
        self._merged_residue: dict[str, Any] | None = None  # of the last event, if it was merged
        self._state = state
        self._unknown_policy = unknown
        self._note_unknown = note_unknown
        self.may_switch = bool(mapper.info.speaks)
        self._is_first = True
        self._last_residue: bytes | None = None

    @property
    def is_settled(self) -> bool:
        """Whether the last event, sent again with another text, would change nothing but that text."""
        return self._is_settled and not (
            self._merged_residue is not None and self._adds_up(self._merged_residue)
        )

    def map(self, event: Any, name: str | None, source: Any, deltas: list[ResponseDelta]) -> Mapped:
        """Map *event* and add its residue to the extensions.

        Args:
            event: the event, which the hooks take apart.
            name: the name from an SSE ``event:`` line, or ``None`` without one.
            source: the bytes of *event*, or an object that is not changed.
            deltas: receives the deltas one by one, so that those before an error are not lost.

        Raises:
            MappingError: the event cannot be mapped.
            PluginError: a hook violates its specification.
        """
        state = self._state
        state.event_name = name
        state.continues = self._is_settled = False
        self._merged_residue = None
        notes = NOTED.values
        outer_notes = mistyped() if notes else []  # of an event with a hook that reads this one
        try:
            usage, residue = self._call_hooks(event, source, deltas)
            self.residue = residue
            try:
                if residue and self._is_first:
                    self._is_first = self._is_settled = False
                    return usage, state.extend(residue, self.mapper.rules)
                return usage, self._extend(residue) if residue else residue
            except RecursionError:  # over several events
                raise self.mapper.broken("it left in the extensions a value that holds itself") from None
        except UnknownEventError as error:
            if self._unknown_policy == "raise":
                raise
            residue = self._whole(error, source)  # including what the deltas before the error took
            self._is_first = False
            return None, self._extend(residue) if residue else residue
        except BaseException as error:
            failure = self._failure(error, event)
            raise failure from error.__cause__ if failure is error else error
        finally:
            if outer_notes or notes:
                note_again(outer_notes)

    def extend(self, residue: dict[str, Any]) -> dict[str, Any]:
        """Add *residue* to the extensions and return what changed."""
        self._last_residue = None
        return self._state.extend(residue, self.mapper.rules)

    def forget_residue(self) -> None:
        """Say that the extensions changed since the last event."""
        self._last_residue = None

    def _call_hooks(
        self, event: Any, source: Any, deltas: list[ResponseDelta]
    ) -> tuple[UsageInfo | None, dict[str, Any]]:
        """Return the event's counts and its residue. Its deltas are appended to *deltas*."""
        if self.may_switch and (chosen_mapper := self.mapper.dialect_of(event)) is not None:
            self.may_switch = False
            self.mapper = chosen_mapper
        state, mapper, ends = self._state, self.mapper, self._state.ends
        is_wire = type(source) is bytes
        empty_containers_sent = {} if is_wire and not may_hold_empty(source) else empty_containers(event)
        had_ended, had_other_id, has_parts = bool(ends), state.has_other_ids, False
        mapped_deltas = mapper.map_delta(event, state)
        if (
            type(mapped_deltas) is not GeneratorType
            and mapped_deltas is not None
            and not hasattr(type(mapped_deltas), "__iter__")
        ):
            raise mapper.broken(f"map_delta gave {type(mapped_deltas).__name__}, not deltas")
        for delta in mapped_deltas or ():
            if type(delta) is not ResponseDelta:
                raise mapper.broken(f"map_delta gave {type(delta).__name__}, not ResponseDelta")
            if ends:
                if had_ended and state.has_other_ids and not had_other_id:
                    raise TrailingContentError(_ANOTHER_ID_CAUSE)
                if delta.choice in ends and (delta.refusal_delta is not None or has_output(delta)):
                    self._refuse_trailing(delta.choice)
            if delta.raw_finish_reason is None and delta.finish_reason is None:
                deltas.append(delta)
            elif delta.usage is None and has_only_its_end(delta):
                if delta.choice not in state.choices:
                    state.choice(delta.choice)
                self._note_end(delta)
                continue  # it is held back to the last delta of its choice
            else:
                deltas.append(delta)
                self._note_end(delta)
            if delta.tool_call_delta is not None or delta.segment is not None:
                has_parts = True
        if had_ended and state.has_other_ids and not had_other_id:
            raise TrailingContentError(_ANOTHER_ID_CAUSE)
        if has_parts and is_wire:
            keep_repeated_keys(deltas, source)
        usage = mapper.map_usage(event, state)
        if usage is not None and type(usage) is not UsageInfo:
            raise mapper.broken(f"map_usage gave {type(usage).__name__}, not UsageInfo")
        residue = event if type(event) is dict else {"event": event}
        if residue:
            try:
                prune(residue, empty_containers_sent)
            except RecursionError:  # JSON of a server is never as deep
                raise mapper.broken("it left in the event a value that holds itself, or nearly so") from None
        if mapper.extensions is not None:
            extensions = mapper.extensions(event, state)
            residue = {} if extensions is None else extensions
            if type(residue) is not dict:
                raise mapper.broken(f"extensions gave {type(residue).__name__}, not dict")
        if NOTED.values:
            self._note_mistyped(mistyped(), residue)
        else:
            self._is_settled = True
        return usage, residue

    def _note_mistyped(self, notes: list[tuple[Any, Any]], residue: dict[str, Any]) -> None:
        container_ids = {id(container) for container, _ in notes}
        location_by_id = {
            id(location.value): location
            for location in self._state.placed(residue, self.mapper.rules)
            if id(location.value) in container_ids
        }
        for container, key in notes:
            location = location_by_id.get(id(container))
            path = ".".join(filter(None, ("metadata.extensions", location.path if location else None)))
            step = f".{key}" if type(key) is str else f"[{location.items[key] if location else key}]"
            self._state.note(path + step, Provenance.MISTYPED)

    def _extend(self, residue: dict[str, Any]) -> dict[str, Any]:
        """Add *residue* to the extensions and return what changed."""
        if self._state.holds(residue):
            return {}
        # Most events leave exactly what the one before left, which need not be compared leaf by leaf.
        encoded_residue = _as_bytes(residue) if len(residue) > 1 else None
        is_repeated = encoded_residue is not None and encoded_residue == self._last_residue
        if is_repeated and not self._adds_up(residue):
            return {}
        self._last_residue, self._merged_residue = encoded_residue, residue
        return self._state.extend(residue, self.mapper.rules)

    def _adds_up(self, residue: dict[str, Any]) -> bool:
        """Whether *residue*, which was merged, could add to the extensions once more."""
        return self._state.has_mixed_arrays or adds_up(residue, self.mapper.rules)

    def _failure(self, error: BaseException, event: Any) -> BaseException:
        """The error to raise for *error*, which a hook raised in the middle of *event*."""
        if isinstance(error, WireTypeError):
            path = path_to(event, error.__dict__.pop("container", None))
            if path and error.place:
                error.place = f"{path}{error.place}" if error.place[0] == "[" else f"{path}.{error.place}"
        if (
            isinstance(error, MappingError)
            or is_cancellation(error)
            or (isinstance(error, PluginError) and error.plugin == self.mapper.provider)
        ):
            return error
        if not isinstance(error, Exception):
            return self.mapper.failed("the plugin", error)
        # A plugin's bug on an unusual payload must not surface as a bare KeyError (promise P4). The text of an error may
        # quote content. The one error text that is shown is the one that every plugin author meets first.
        text = f" ({error})" if getattr(error, "code", None) == "ACODE-RSP-009" else ""
        return MappingError(f"the plugin failed with {type(error).__name__}{text}{where_raised(error)}")

    def _whole(self, error: UnknownEventError, source: Any) -> dict[str, Any]:
        """Return the unknown event of *source* as extensions."""
        self._state.note("metadata.extensions", Provenance.UNMAPPED)
        if self._note_unknown is not None:
            self._note_unknown(self.mapper.provider, "event", error.event_type or "")
        # A hook may have taken from it before it turned out to be unknown.
        event = load_event(source, halves="mend") if type(source) is bytes else copy_json(source)
        return event if type(event) is dict else {"event": event}

    def _note_end(self, delta: ResponseDelta) -> None:
        """Note the end in *delta*, which ends its choice.

        Raises:
            PluginError: ``map_finish_reason`` returned something other than a finish reason.
        """
        state = self._state
        finish_word, reason, unknown_word = delta.raw_finish_reason, delta.finish_reason, None
        if reason is None:
            assert finish_word is not None, "a delta that ends says how"
            reason, unknown_word = _meaning(state, self.mapper, finish_word)
        earlier_end = state.ends.get(delta.choice)
        if finish_word is None and earlier_end is not None:
            finish_word = earlier_end.finish_word
        if earlier_end is None or _SEVERITY.index(reason) >= _SEVERITY.index(earlier_end.reason):
            state.ends[delta.choice] = End(reason, finish_word, unmapped=unknown_word is not None)
        elif earlier_end.finish_word is None:  # the first word there is
            state.ends[delta.choice] = End(earlier_end.reason, finish_word, unmapped=earlier_end.unmapped)
        if unknown_word is not None and self._note_unknown is not None:
            self._note_unknown(self.mapper.provider, "finish reason", unknown_word)

    def _refuse_trailing(self, choice: int) -> None:
        if self._state.continues or self.mapper.info.repeats_finish or self._state.error is not None:
            return
        raise TrailingContentError(
            f"content after the end of choice {choice}: a second answer, or one out of order"
        )


_SHORT_SIZE: Final = 4096
"""Up to here looking for the brackets of an empty object takes less time than looking at all containers."""


def may_hold_empty(data: bytes) -> bool:
    """Return whether the JSON *data* may contain an empty object or array. Indented JSON may have a space in it."""
    # `in` looks for a number first and would raise and catch an error for each byte string.
    if len(data) > _SHORT_SIZE:
        return True
    return data.rfind(b"{}") >= 0 or data.rfind(b"[]") >= 0 or data[1:2] <= b" "


_ANOTHER_ID_CAUSE: Final = "another answer's id after the end: a second answer has begun"


def _as_bytes(residue: dict[str, Any]) -> bytes | None:
    try:
        return orjson.dumps(residue)
    except TypeError:  # nested too deep, a long integer, or returned by a hook, which may return anything
        return None


# -------------------------------------------------------------------------------- repeated
# Keys that an object of arguments repeats: its text keeps them, as the text in the pieces of a stream does.


_FEW_CALLS: Final = 8
"""Up to so many arguments are looked for one by one in the event's bytes, which is faster than to parse it once more."""
_MOST_MISSES: Final = 16
"""The number of arguments without an object in the event after which the search ends, to bound its time."""


def keep_repeated_keys(deltas: list[ResponseDelta], source: bytes) -> None:
    """Give arguments in *deltas* that *source* sends as an object with a repeated key the text that it has there.

    The parser keeps the last value of such a key, and who reads the arguments could not know that there was another.
    """
    argument_texts: dict[int, str] = {}
    for number, delta in enumerate(deltas):
        call, segment = delta.tool_call_delta, delta.segment
        text = call.arguments_delta if call is not None else None
        if segment is not None and segment.type is SegmentType.TOOL_CALL:
            text = segment.content
        if text and text[0] == "{" and text[-1] == "}" and len(text) > 2:
            argument_texts[number] = text
    if len(argument_texts) <= _FEW_CALLS:
        for number, text in [*argument_texts.items()]:
            if source.rfind(orjson.dumps(text)) >= 0 or _is_as_written(text, source):
                del argument_texts[number]
    if not argument_texts or not may_repeat_keys(source):
        return
    try:
        objects = _Objects(source)
        for number, text in argument_texts.items():
            deltas[number] = _with_arguments(deltas[number], objects.text_of(text))
    except (RecursionError, TypeError):  # nested deeper than Python's own parser, or orjson's writer, goes
        return


def _is_as_written(text: str, source: bytes) -> bool:
    """Return whether *source* has the object *text* letter by letter, and no other object that begins with its first key.

    A repeated key keeps its first place, so the object that was sent begins with the same key.
    """
    written = text.encode()
    key = written[1 : written.find(b'"', 2) + 1]
    # A key can be written in another way with \u, or with \/ if it has a slash.
    is_plain = source.rfind(b"\\u") < 0 and key.find(b"/") < 0
    return is_plain and source.rfind(written) >= 0 and source.count(key) == 1


def _with_arguments(delta: ResponseDelta, text: str) -> ResponseDelta:
    call, segment = delta.tool_call_delta, delta.segment
    if call is not None:
        return attrs.evolve(delta, tool_call_delta=attrs.evolve(call, arguments_delta=text))
    assert segment is not None
    return attrs.evolve(delta, segment=attrs.evolve(segment, content=text))


class _Objects:
    """The objects of a JSON text in order, and the original text of those with a repeated key.

    Args:
        source: the JSON.

    Raises:
        RecursionError: it is nested deeper than Python's parser goes.
    """

    def __init__(self, source: bytes) -> None:
        self._objects: list[dict[str, Any]] = []
        self._strings: set[str] = set()
        self._repeating_pairs: dict[int, list[tuple[str, Any]]] = {}
        json.loads(source, object_pairs_hook=self._note)
        self._next = self._misses = 0

    def _note(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        self._objects.append(value)
        self._strings.update(item for _, item in pairs if type(item) is str)
        if len(value) < len(pairs):
            self._repeating_pairs[id(value)] = pairs
        return value

    def text_of(self, written: str) -> str:
        """Return the original text of the next object that was *written* with the last value of each key, or *written*.

        Arguments that were sent as a string are what was *written*.

        Raises:
            TypeError: the first value of a repeated key is nested too deeply to be written.
        """
        if not self._repeating_pairs or self._misses > _MOST_MISSES or written in self._strings:
            return written
        wanted_object = json.loads(written)
        for position in range(self._next, len(self._objects)):
            candidate = self._objects[position]
            if candidate == wanted_object and dump_json(candidate).decode() == written:
                self._next = position + 1
                return dump_json(self._as_it_stands(candidate)).decode()
        self._misses += 1
        return written

    def _as_it_stands(self, value: Any) -> Any:
        if type(value) is list:
            return [self._as_it_stands(item) for item in value]
        if type(value) is not dict:
            return value
        pairs = self._repeating_pairs.get(id(value))
        if pairs is None:
            return {key: self._as_it_stands(item) for key, item in value.items()}
        members = (orjson.dumps(key) + b":" + dump_json(self._as_it_stands(item)) for key, item in pairs)
        return orjson.Fragment(b"{" + b",".join(members) + b"}")


def path_to(value: Any, container: Any) -> str | None:
    """Return the path in *value* to the very object *container*, as ``choices[0].delta``, or ``None`` if it is not in
    it.
    """
    return next((path for child, path in _containers(value, "") if child is container), None)


def _containers(value: Any, path: str) -> Iterator[tuple[Any, str]]:
    level = [(value, path)]
    while level:
        yield from level
        level = [
            (child, (f"{path}[{key}]" if type(parent) is list else f"{path}.{key}" if path else str(key)))
            for parent, path in level
            if type(parent) in (dict, list)
            for key, child in (parent.items() if type(parent) is dict else enumerate(parent))
            if type(child) in (dict, list)
        ]
